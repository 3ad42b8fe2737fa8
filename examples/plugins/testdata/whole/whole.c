// A component that uses what the SDK has besides what the examples use. The same stands in whole.rs and in whole/whole.go.
#include "rl_request.h"

typedef struct { uint32_t state, me, outcomes, value, named, cancelled; } Whole;

static bool start(void *self)
{
    Whole *w = self;
    w->state = rl_metric(RL_METRIC_GAUGE, "whole/state");
    w->me = rl_metric(RL_METRIC_GAUGE, "whole/me");
    w->outcomes = rl_metric(RL_METRIC_GAUGE, "whole/outcomes");
    w->value = rl_metric(RL_METRIC_GAUGE, "whole/value");
    w->named = rl_metric(RL_METRIC_GAUGE, "whole/named");
    w->cancelled = rl_metric(RL_METRIC_GAUGE, "whole/cancelled");
    rl_report(w->me, rl_length(rl_my_name) * 1e6 + rl_me.index * 1e4 + rl_me.count * 1e2 + rl_me.synchronous * 10 + (double)rl_me.seed);
    return true;
}

static bool on_in(void *self, const rl_message *m)
{
    Whole *w = self;
    rl_column c;
    switch (m->kind) {
    case 0:
        if (rl_column_named(m->block, "reward", 0, &c)) return rl_fail("there is no reward");
        rl_report(w->value, *RL_AT(float, &c, 0, 0, 0, 0));
        rl_report(w->named, rl_column_named(m->block, "absent", 0, &c) == RL_STATUS_UNSUPPORTED);
        if (rl_column_named(m->block, "reward", RL_COLUMN_WRITE, &c)) return rl_fail("reward cannot be written");
        *RL_AT(float, &c, 0, 0, 0, 0) += 1;
        return true;
    case 1: {
        rl_message note = {0};
        double all = 0;
        for (int i = 0; i < 3; i++) all = all * 10 + rl_offer(0, &note);
        rl_report(w->outcomes, all);
        return true;
    }
    case 2: {
        int32_t timer = rl_timer_start(3600000000000, 0);
        bool first = rl_timer_cancel(timer), second = rl_timer_cancel(timer);
        rl_report(w->cancelled, first && !second);
        return true;
    }
    }
    return rl_stop_run(RL_STOP_FOR_ENV_STEPS) || rl_fail("the run does not stop");
}

static bool pause(void *self) { return rl_report(((Whole *)self)->state, 1), true; }
static bool resume(void *self) { return rl_report(((Whole *)self)->state, 2), true; }
static bool stop(void *self) { return rl_report(((Whole *)self)->state, 3), true; }

static bool twice(void *self, rl_config *args, rl_reply *reply)
{
    (void)self;
    rl_text name = rl_arg_text(args, "name", "");
    double x = rl_arg_f64(args, "x", 0);
    if (x < 0) return rl_fail("x: want 0 or more");
    return rl_reply_json(reply, "{\"x\":") && rl_reply_number(reply, 2 * x) && rl_reply_json(reply, ",\"name\":") && rl_reply_text(reply, name.at, name.len) &&
           rl_reply_json(reply, ",\"n\":") && rl_reply_whole(reply, rl_arg_i64(args, "n", -1)) && rl_reply_json(reply, "}");
}

static const rl_request_spec REQUESTS[] = {{"twice", "x number, name text?, n integer?", "twice x", twice}};
static const rl_want WANTS[] = {{"nothing", RL_F32, RL_COLUMN_OPTIONAL}};
static const rl_signal_spec SIGNALS[] = {{"out", "note", "notes", 0x8000000000000009}};
static const rl_slot_spec SLOTS[] = {{"in", "trajectory", "what to do", on_in, RL_WANTS(WANTS), 7}};

RL_COMPONENT(Whole, .name = "whole@1", RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS), RL_REQUESTS(REQUESTS), .start = start, .pause = pause, .resume = resume, .stop = stop)
