// A component that sends requests to other components, as it is told. Askers in Go, Python and a module are in cmd/rlhost/request_askers_test.go.
#include <stdio.h>
#include <string.h>

#include "rlhost.h"

typedef struct {
    int64_t count; // answers so far
    char last[1024];
} asker;

static void told(rlh_host *host, void *self, const rlh_told *t) {
    (void)host;
    asker *a = self;
    a->count++;
    if (t->fault == 0) {
        snprintf(a->last, sizeof a->last, "%s", t->json);
    } else {
        snprintf(a->last, sizeof a->last, "E%03d %s: %s", t->fault, t->type, t->text);
    }
}

static const rlh_asking asks[] = {
    {"total", NULL, "without arguments", told},
    {"times", "times any", NULL, told},
    {"echo", "yes any, n any, x any, text any, list any, table any", NULL, told},
    {"numbers", "n any, x any, text any, list any, table any", NULL, told},
    {"wrong", "what any", NULL, told},
    {"burst", "what any", "of a component that panics", told},
    {"other", "ask any, args any", "what another asks", told},
};
enum { ASKS = sizeof asks / sizeof *asks };

static int carry(rlh_host *host, void *self, rlh_question *q) {
    (void)self;
    const char *ask = rlh_arg_text(q, "ask"), *args = rlh_arg_text(q, "args");
    int64_t within = 0;
    if (rlh_arg_int(q, "within_ms", &within) != RLH_OK) return RLH_ERR_INVALID;
    for (uint32_t i = 0; i < ASKS; i++) {
        if (strcmp(asks[i].name, ask) != 0) continue;
        int number = rlh_ask(host, i, args, within * 1000000);
        return number < 0 ? rlh_raise(q, "AskError", "%s", rlh_strerror(number)) : rlh_answer_int(q, number);
    }
    return rlh_raise(q, "KeyError", "no question %s", ask);
}

static int last(rlh_host *host, void *self, rlh_question *q) {
    (void)host;
    const asker *a = self;
    rlh_answer_json(q, "[");
    rlh_answer_int(q, a->count);
    rlh_answer_json(q, ",");
    rlh_answer_text(q, a->last);
    return rlh_answer_json(q, "]");
}

static const rlh_request requests[] = {
    {"carry", "ask text, args text, within_ms integer?", "asks a question", carry},
    {"last", NULL, "how many answers have come, and the last one", last},
};
static const rlh_component kind = {.kind = "asker", .doc = "asks others", .self_bytes = sizeof(asker), .requests = requests, .request_count = 2, .asks = asks, .ask_count = ASKS};

int main(void) { return rlh_serve(&kind, 1); }
