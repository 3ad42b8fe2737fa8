// Timers of a component.
#ifndef RLH_NO_CONTROL
#include "service.h"

static int begin_timer(rlh_host *host, int64_t after, int64_t every, rlh_timed *run) {
    struct service *s = host->service;
    if (s == NULL || run == NULL) return RLH_ERR_INVALID;
    for (size_t i = 0; i < RLH_MOST_TIMERS; i++) {
        struct timer *t = &s->timers[i];
        if (t->run != NULL) continue;
        *t = (struct timer){.run = run, .number = ++s->timer_count, .at = deadline_after(after > 0 ? after : 0), .every = every};
        return t->number;
    }
    return RLH_ERR_EXHAUSTED;
}

int rlh_after(rlh_host *host, int64_t nanoseconds, rlh_timed *run) { return begin_timer(host, nanoseconds, 0, run); }

int rlh_every(rlh_host *host, int64_t nanoseconds, rlh_timed *run) {
    return nanoseconds < 1 ? RLH_ERR_INVALID : begin_timer(host, nanoseconds, nanoseconds, run);
}

int rlh_cancel(rlh_host *host, int timer) {
    struct service *s = host->service;
    for (size_t i = 0; s != NULL && i < RLH_MOST_TIMERS; i++) {
        if (s->timers[i].run == NULL || s->timers[i].number != timer) continue;
        s->timers[i].run = NULL;
        return RLH_OK;
    }
    return RLH_ERR_SPENT;
}

// fire runs one timer that is due, after it has been set to its next time: it may cancel itself.
static void fire(struct service *s, struct timer *t, int64_t now) {
    rlh_timed *run = t->run;
    if (t->every > 0) {
        t->at += ((now - t->at) / t->every + 1) * t->every;
    } else {
        t->run = NULL;
    }
    run(s->host, s->self);
}

int64_t service_fire(struct service *s) {
    int64_t next = RLH_FOREVER;
    for (size_t i = 0; i < RLH_MOST_TIMERS; i++) {
        struct timer *t = &s->timers[i];
        if (t->run == NULL) continue;
        int64_t now = deadline_after(0);
        if (t->at <= now) fire(s, t, now);
        if (t->run != NULL && (next == RLH_FOREVER || t->at < next)) next = t->at;
    }
    return next;
}
#else
typedef int rlh_no_timers; // a file needs a declaration
#endif
