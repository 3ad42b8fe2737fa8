// A component that uses what the SDK has besides what the examples use. The same stands in whole.rs and in whole/whole.go.
#include "rl_ask.h"

typedef struct { uint32_t state, me, outcomes, value, named, cancelled, answered, fault, question; } Whole;

static bool start(void *self)
{
    Whole *w = self;
    w->state = rl_metric(RL_METRIC_GAUGE, "whole/state");
    w->me = rl_metric(RL_METRIC_GAUGE, "whole/me");
    w->outcomes = rl_metric(RL_METRIC_GAUGE, "whole/outcomes");
    w->value = rl_metric(RL_METRIC_GAUGE, "whole/value");
    w->named = rl_metric(RL_METRIC_GAUGE, "whole/named");
    w->cancelled = rl_metric(RL_METRIC_GAUGE, "whole/cancelled");
    w->answered = rl_metric(RL_METRIC_GAUGE, "whole/answered");
    w->fault = rl_metric(RL_METRIC_GAUGE, "whole/fault");
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
    case 4:
        rl_ask_make(1);
        return rl_reply_json(&rl_ask_args, "{\"x\":") && rl_reply_number(&rl_ask_args, 2.5) && rl_reply_json(&rl_ask_args, "}") &&
               (w->question = (uint32_t)rl_ask_send(1000000000)) <= INT32_MAX;
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

static bool nobody(void *self, const rl_answered *a) { return (void)self, (void)a, rl_fail("an answer to another question"); }

static bool came(void *self, const rl_answered *a)
{
    Whole *w = self;
    rl_config members;
    if (a->question != w->question) return rl_fail("an answer to another question");
    rl_report(w->fault, a->fault + a->type.len / 100.0);
    if (a->fault) return true;
    rl_report(w->answered, rl_answer_members(a, &members) ? rl_arg_f64(&members, "y", -1) : rl_answer_f64(a, -1));
    return true;
}

static const rl_ask_spec ASKS[] = {{"other", "", "is not asked", nobody}, {"half", "x number", "of another", came}};
static const rl_request_spec REQUESTS[] = {{"twice", "x number, name text?, n integer?", "twice x", twice}};
static const rl_want WANTS[] = {{"nothing", RL_F32, RL_COLUMN_OPTIONAL}};
static const rl_signal_spec SIGNALS[] = {{"out", "note", "notes", 0x8000000000000009}};
static const rl_slot_spec SLOTS[] = {{"in", "trajectory", "what to do", on_in, RL_WANTS(WANTS), 7}};

RL_COMPONENT(Whole, .name = "whole@1", RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS), RL_REQUESTS(REQUESTS), RL_ASKS(ASKS), .start = start, .pause = pause, .resume = resume, .stop = stop)
