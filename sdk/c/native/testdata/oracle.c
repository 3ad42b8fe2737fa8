// A component that answers requests, well and badly. Those in Go and Python are in cmd/rlhost/request_languages_test.go.
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rlhost.h"

typedef struct {
    int64_t numbers, idled;
    bool busy;
} oracle;

static void on_number(rlh_host *host, void *self, const rlh_message *m) {
    oracle *o = self;
    o->busy = true;
    o->numbers++;
    rlh_emit(host, 0, m);
    o->busy = false;
}

static int total(rlh_host *host, void *self, rlh_question *q) {
    (void)host;
    const oracle *o = self;
    int64_t times = 1;
    if (o->busy) return rlh_raise(q, "AssertionError", "in the middle of a message");
    if (rlh_arg_int(q, "times", &times) != RLH_OK) return RLH_ERR_INVALID;
    return rlh_answer_int(q, o->numbers * times);
}

static int64_t idle(rlh_host *host, void *self) {
    (void)host;
    ((oracle *)self)->idled++;
    return 1000000;
}

static int idled(rlh_host *host, void *self, rlh_question *q) {
    (void)host;
    return rlh_answer_int(q, ((oracle *)self)->idled);
}

// echo answers with its arguments, each read by its type.
static int echo(rlh_host *host, void *self, rlh_question *q) {
    (void)host, (void)self;
    int yes = 0;
    int64_t n = 0;
    double x = 0;
    rlh_arg_bool(q, "yes", &yes);
    rlh_arg_int(q, "n", &n);
    rlh_arg_float(q, "x", &x);
    const char *text = rlh_arg_text(q, "text"), *list = rlh_arg_text(q, "list"), *table = rlh_arg_text(q, "table");
    rlh_answer_json(q, "[");
    rlh_answer_bool(q, yes);
    rlh_answer_json(q, ",");
    rlh_answer_int(q, n);
    rlh_answer_json(q, ",");
    rlh_answer_float(q, x);
    rlh_answer_json(q, ",");
    rlh_answer_text(q, text != NULL ? text : "none");
    rlh_answer_json(q, ",");
    rlh_answer_json(q, list != NULL ? list : "[]");
    rlh_answer_json(q, ",");
    rlh_answer_json(q, table != NULL ? table : "{}");
    return rlh_answer_json(q, "]");
}

static int wrong(rlh_host *host, void *self, rlh_question *q) {
    (void)self;
    const char *what = rlh_arg_text(q, "what");
    if (strcmp(what, "raise") == 0) return rlh_raise(q, "ValueError", "no such key: \"%s\"", "\xc3\xa4");
    if (strcmp(what, "code") == 0) return RLH_ERR_STALE;
    if (strcmp(what, "nothing") == 0) return RLH_OK;
    if (strcmp(what, "half") == 0) return rlh_answer_json(q, "{\"a\":");
    if (strcmp(what, "nan") == 0) return rlh_answer_float(q, (double)NAN);
    if (strcmp(what, "long") == 0) {
        rlh_answer_json(q, "\"");
        for (int i = 0; i < 2000; i++) {
            rlh_answer_json(q, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        }
        return rlh_answer_json(q, "\"");
    }
    if (strcmp(what, "slow") == 0) poll(NULL, 0, 1);
    if (strcmp(what, "fail") == 0) rlh_fail(host, "told to fail");
    if (strcmp(what, "crash") == 0) abort();
    if (strcmp(what, "hang") == 0) {
        for (;;) pause();
    }
    return rlh_answer_json(q, "null");
}

static const rlh_port signals[] = {{"numbers", "number", "those that came", 0, 0}};
static const rlh_slot slots[] = {{{"on_number", "number", "any", 0, 0}, on_number}};
static const rlh_request requests[] = {
    {"total", "times integer?", "numbers so far", total},
    {"echo", "yes bool?, n integer?, x number?, text text?, list list?, table table?", "its arguments", echo},
    {"wrong", "what text", NULL, wrong},
    {"idled", NULL, "calls of idle", idled},
};
static const rlh_component kind = {.kind = "oracle", .doc = "answers requests", .signals = signals, .signal_count = 1, .slots = slots,
    .slot_count = 1, .self_bytes = sizeof(oracle), .requests = requests, .request_count = 4, .idle = idle};

int main(void) { return rlh_serve(&kind, 1); }
