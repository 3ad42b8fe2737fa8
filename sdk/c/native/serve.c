// rlh_serve: the handshake, and the main thread's loop.
#ifndef RLH_NO_CONTROL
#include "service.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static void post(void *user, struct call *c) {
    struct service *s = user;
    pthread_mutex_lock(&s->mutex);
    if (c == NULL) {
        s->ended = true;
    } else {
        c->next = NULL;
        *s->last = c;
        s->last = &c->next;
    }
    pthread_cond_signal(&s->posted);
    pthread_mutex_unlock(&s->mutex);
    // A component that waits for the host in an emit must not delay its own stop.
    if (c == NULL || strcmp(c->method, RLH_METHOD_STOP) == 0) rlh_end(s->host);
    rlh_wake(s->host);
}

// on_frame keeps a question, or an answer, for the main thread.
static void on_frame(void *user, const char *json, size_t len, const int *fds, size_t fd_count) {
    struct service *s = user;
    for (size_t i = 0; i < fd_count; i++) close(fds[i]);
    rlh_question *q = question_read(json, len);
    struct told *t = q == NULL ? told_read(json, len) : NULL;
    if (q == NULL && t == NULL) return;
    pthread_mutex_lock(&s->mutex);
    if (q != NULL) {
        question_push(&s->questions, q);
    } else {
        told_push(&s->told, t);
    }
    pthread_mutex_unlock(&s->mutex);
    rlh_wake(s->host);
}

static bool is_asked(struct service *s) {
    pthread_mutex_lock(&s->mutex);
    bool asked = s->questions.first != NULL || s->told.first != NULL;
    pthread_mutex_unlock(&s->mutex);
    return asked;
}

// next_call takes the oldest call; with wait it waits for one, or for the end. Within a slot the component cannot be
// stopped.
static struct call *next_call(struct service *s, bool wait, bool within_slot) {
    pthread_mutex_lock(&s->mutex);
    while (wait && s->first == NULL && !s->ended) pthread_cond_wait(&s->posted, &s->mutex);
    struct call *c = s->first;
    if (within_slot && c != NULL && strcmp(c->method, RLH_METHOD_STOP) == 0) c = NULL;
    if (c != NULL && (s->first = c->next) == NULL) s->last = &s->first;
    pthread_mutex_unlock(&s->mutex);
    return c;
}

static bool has_ended(struct service *s) {
    pthread_mutex_lock(&s->mutex);
    bool ended = s->ended;
    pthread_mutex_unlock(&s->mutex);
    return ended;
}

static bool has_failed(struct service *s) { return __atomic_load_n(&s->failed, __ATOMIC_SEQ_CST); }

static void run_calls(struct service *s, bool wait, bool within_slot) {
    for (struct call *c; (c = next_call(s, wait, within_slot)) != NULL; wait = false) {
        service_call(s, c);
        control_answer(s->control, c);
    }
}

// answer_one answers the oldest question, if there is one.
static void answer_one(struct service *s) {
    pthread_mutex_lock(&s->mutex);
    rlh_question *q = question_pop(&s->questions);
    pthread_mutex_unlock(&s->mutex);
    if (q == NULL) return;
    rlh_finish(s->host); // the message before it does not wait for the answer
    struct text frame = {0};
    bool answers = question_answer(q, s->host, s->kind, s->self, &frame);
    question_free(q);
    if (answers && !has_failed(s)) {
        wire_send_text(s->host, &frame, -1);
    } else {
        text_free(&frame);
    }
}

// tell_one gives the component the oldest answer, if there is one.
static void tell_one(struct service *s) {
    pthread_mutex_lock(&s->mutex);
    struct told *t = told_pop(&s->told);
    pthread_mutex_unlock(&s->mutex);
    if (t == NULL) return;
    rlh_finish(s->host);
    service_told(s, t);
    told_free(t);
}

static void on_woken(void *user) { run_calls(user, false, true); }

static void begin(struct service *s) {
    if (s->begun || !rlh_begun(s->host)) return;
    s->begun = true;
    if (s->kind->begin != NULL) s->kind->begin(s->host, s->self);
}

// receive runs the slot of one message. It returns false when the link has ended.
static bool receive(struct service *s, int64_t *idle_at) {
    const rlh_component *k = s->kind;
    begin(s);
    int64_t due = s->begun ? service_fire(s) : RLH_FOREVER;
    if (has_failed(s)) return true;
    rlh_message m;
    bool idles = k->idle != NULL && s->begun && *idle_at >= 0;
    bool timed = due != RLH_FOREVER && (!idles || due < *idle_at);
    bool asked = s->begun && is_asked(s); // a question or an answer is next
    int err = rlh_receive(s->host, &m, asked ? 0 : timed ? left_until(due) : idles ? left_until(*idle_at) : RLH_FOREVER);
    switch (err) {
    case RLH_OK:
        begin(s);
        if (m.slot < k->slot_count && k->slots[m.slot].run != NULL) {
            s->kept = rlh_kept(s->host);
            s->in_slot = true;
            k->slots[m.slot].run(s->host, s->self, &m);
            s->in_slot = false;
        }
        return true;
    case RLH_ERR_TIMEOUT:
        if (idles && now() >= *idle_at) *idle_at = deadline_after(k->idle(s->host, s->self));
        return true;
    case RLH_ERR_WOKEN: return true;
    case RLH_ERR_CLOSED: return false;
    default: rlh_fail(s->host, "messages from the host: %s", rlh_strerror(err)); return false;
    }
}

static void run(struct service *s) {
    bool linked = true;
    int64_t idle_at = 0;
    while (!has_ended(s)) {
        // What a component does not take once it has failed is its successor's.
        bool works = s->life == STARTED && linked && !has_failed(s);
        run_calls(s, !works, false);
        if (works && s->life == STARTED && !has_ended(s) && !has_failed(s)) linked = receive(s, &idle_at);
        bool goes_on = works && linked && s->begun;
        if (goes_on && !has_failed(s)) answer_one(s);
        if (goes_on && !has_failed(s)) tell_one(s);
    }
    service_stop(s);
}

// is_started_by_host reports whether the host started this program; if not, it prints what this program is.
static bool is_started_by_host(const struct service *s) {
    const char *cookie = getenv(RLH_COOKIE_KEY);
    if (cookie != NULL && strcmp(cookie, RLH_COOKIE_VALUE) == 0) return true;
    fprintf(stderr, "This program is a plugin of rlhost (SDK " RLH_SDK ", protocol %d). It is not started by hand:\n"
                    "a component of a pipeline names it, and the host starts it. It has\n", RLH_PROTOCOL_VERSION);
    for (size_t i = 0; i < s->kind_count; i++) {
        fprintf(stderr, "    %-20s %s\n", s->kinds[i].kind, s->kinds[i].doc != NULL ? s->kinds[i].doc : "");
    }
    return false;
}

// speaks_version reports whether the host offers this library's version. If not, the handshake names it all the same,
// and the host reports the mismatch.
static bool speaks_version(void) {
    const char *offered = getenv("PLUGIN_PROTOCOL_VERSIONS");
    if (offered == NULL || offered[0] == 0) return true; // an early host with a single version
    for (const char *at = offered; at != NULL; at = strchr(at, ',')) {
        if (*at == ',') at++;
        if (strtol(at, NULL, 10) == RLH_PROTOCOL_VERSION) return true;
    }
    return false;
}

// take_stdout returns the host's standard output; later prints go to standard error.
static int take_stdout(void) {
    fflush(stdout);
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
    if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return -1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    return fd;
}

static bool shake_hands(const struct service *s, int fd) {
    char line[256];
    int n = snprintf(line, sizeof line, "1|%d|unix|%s|grpc\n", RLH_PROTOCOL_VERSION, control_path(s->control));
    return n > 0 && (size_t)n < sizeof line && write(fd, line, (size_t)n) == n;
}

static int open_all(struct service *s) {
    rlh_handlers handlers = {.user = s, .woken = on_woken, .frame = on_frame};
    for (int fd = RLH_FD_WIRE; fd <= RLH_FD_OUT; fd++) fcntl(fd, F_SETFD, FD_CLOEXEC);
    int err = rlh_host_open(&s->host, RLH_FD_WIRE, RLH_FD_IN, RLH_FD_OUT, &handlers);
    if (err != RLH_OK) return err;
    s->host->service = s;
    return control_open(&s->control, post, s);
}

int rlh_serve(const rlh_component *kinds, size_t count) {
    struct service s = {.kinds = kinds, .kind_count = count, .main = pthread_self(), .mutex = PTHREAD_MUTEX_INITIALIZER,
                        .posted = PTHREAD_COND_INITIALIZER};
    s.last = &s.first;
    if (!is_started_by_host(&s)) return 1;
    int out = take_stdout();
    if (!speaks_version()) {
        fprintf(stderr, "the host speaks versions %s of the plugin protocol, this plugin %d\n",
                getenv("PLUGIN_PROTOCOL_VERSIONS"), RLH_PROTOCOL_VERSION);
    }
    const char *transport = getenv(RLH_TRANSPORT_KEY);
    if (transport != NULL && strcmp(transport, RLH_TRANSPORT_RINGS) != 0) {
        fprintf(stderr, "the host uses the transport %s, this plugin %s\n", transport, RLH_TRANSPORT_RINGS);
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN); // Ctrl-C on the terminal is for the host, which then stops its plugins
    int err = out >= 0 ? open_all(&s) : RLH_ERR_SYSTEM;
    if (err == RLH_OK && !shake_hands(&s, out)) err = RLH_ERR_SYSTEM;
    if (err != RLH_OK) {
        fprintf(stderr, "the plugin cannot begin: %s%s%s\n", rlh_strerror(err), err == RLH_ERR_SYSTEM ? ": " : "",
                err == RLH_ERR_SYSTEM ? strerror(errno) : "");
    } else {
        run(&s);
    }
    if (s.control != NULL) control_close(s.control);
    rlh_host_close(s.host);
    for (rlh_question *q; (q = question_pop(&s.questions)) != NULL;) question_free(q);
    for (struct told *t; (t = told_pop(&s.told)) != NULL;) told_free(t);
    return err == RLH_OK ? 0 : 1;
}
#else
typedef int rlh_no_serve; // a file needs a declaration
#endif
