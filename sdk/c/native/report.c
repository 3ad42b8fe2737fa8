// Reports of the component: lines of the log, and its failure.
#include "service.h"

#include <stdarg.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 4096 };

static const char *const level_names[] = {"debug", "info", "warn", "error"};

static int level_of(const char *name) {
    for (int i = 0; i < 4; i++) {
        if (strcmp(name, level_names[i]) == 0) return i;
    }
    return RLH_INFO;
}

// rlh_log writes one line of JSON with one write, so that lines of several threads do not mix.
void rlh_log(rlh_host *host, int level, const char *format, ...) {
    if (level < RLH_DEBUG || level > RLH_ERROR || level < level_of(config_level(host))) return;
    char line[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    struct text t = {0};
    text_format(&t, "{\"@level\":\"%s\",\"@message\":", level_names[level]);
    text_quote(&t, line);
    text_put(&t, "}\n");
    if (!t.failed && write(STDERR_FILENO, t.at, t.len) < 0) t.failed = true; // nobody reads it
    text_free(&t);
}

void rlh_fail(rlh_host *host, const char *format, ...) {
    char reason[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    if (host->service != NULL && service_takes_failure(host->service, reason)) return;
    if (host->service != NULL) {
        service_failed(host->service);
        rlh_wake(host); // of another thread
    }
    metrics_send(host); // the host may end this process now
    struct text t = {0};
    text_put(&t, "{\"fail\":{\"reason\":");
    text_quote(&t, reason);
    text_put(&t, "}}");
    wire_send_text(host, &t, -1);
}

#ifdef RLH_NO_CONTROL
bool service_takes_failure(struct service *s, const char *reason) {
    (void)s, (void)reason;
    return false;
}

void service_failed(struct service *s) { (void)s; }
#endif
