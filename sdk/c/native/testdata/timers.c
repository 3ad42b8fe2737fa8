// A component that tells by its timers what they did.
#include <stddef.h>

#include "rlhost.h"

typedef struct {
    int each, never, spent, busy;
    int ticks, wrong;
} timers;

static void tell(rlh_host *host, uint64_t what, uint64_t n) {
    rlh_message m = {.inline_ = {what, n}};
    rlh_emit(host, 0, &m);
}

static void never(rlh_host *host, void *self) {
    (void)host;
    ((timers *)self)->wrong++;
}

static void on_tick(rlh_host *host, void *self) {
    timers *t = self;
    if (t->busy) t->wrong++;
    if (++t->ticks < 5) return;
    if (rlh_cancel(host, t->each) != RLH_OK || rlh_cancel(host, t->each) != RLH_ERR_SPENT) t->wrong++;
    if (rlh_cancel(host, t->never) != RLH_OK) t->wrong++;
    tell(host, 2, (uint64_t)t->ticks);
}

static void once(rlh_host *host, void *self) {
    timers *t = self;
    if (rlh_cancel(host, t->spent) != RLH_ERR_SPENT) t->wrong++; // it is this one
    tell(host, 1, 1);
    t->each = rlh_every(host, 1000000, on_tick);
}

static int start(rlh_host *host, void *self) {
    timers *t = self;
    t->never = rlh_after(host, INT64_C(3600) * 1000000000, never);
    t->spent = rlh_after(host, 0, once);
    if (rlh_every(host, 0, never) != RLH_ERR_INVALID || rlh_after(host, 1, NULL) != RLH_ERR_INVALID) t->wrong++;
    int made[RLH_MOST_TIMERS], n = 0;
    while (n < RLH_MOST_TIMERS && (made[n] = rlh_after(host, 1, never)) > 0) n++;
    if (n != RLH_MOST_TIMERS - 2) t->wrong++;
    while (n > 0) {
        if (rlh_cancel(host, made[--n]) != RLH_OK) t->wrong++;
    }
    return RLH_OK;
}

// on_ask answers with the number of ticks, and of what went wrong.
static void on_ask(rlh_host *host, void *self, const rlh_message *m) {
    timers *t = self;
    (void)m;
    t->busy = 1;
    tell(host, 3, (uint64_t)t->ticks << 32 | (uint64_t)t->wrong);
    t->busy = 0;
}

static const rlh_port signals[] = {{"told", "number", "what happened", 0, 0}};
static const rlh_slot slots[] = {{{"on_ask", "number", "a question", 0, 0}, on_ask}};
static const rlh_component kind = {.kind = "timers", .doc = "tells what its timers do", .signals = signals, .signal_count = 1,
    .slots = slots, .slot_count = 1, .self_bytes = sizeof(timers), .start = start};

int main(void) { return rlh_serve(&kind, 1); }
