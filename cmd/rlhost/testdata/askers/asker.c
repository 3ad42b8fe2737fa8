// As sdk/c/native/testdata/asker.c, in a module.
#define RL_ASK_BYTES 4096
#include "rl_ask.h"

typedef struct {
    uint32_t count, len;
    char last[1024];
} Came;

typedef struct { Came came; } Asker;

static void keep(Came *a, const char *text, uint32_t n)
{
    if (n > sizeof a->last - a->len) n = sizeof a->last - a->len;
    __builtin_memcpy(a->last + a->len, text, n);
    a->len += n;
}

static bool told(void *self, const rl_answered *t)
{
    Came *a = &((Asker *)self)->came;
    char code[] = {'E', (char)('0' + t->fault / 100), (char)('0' + t->fault / 10 % 10), (char)('0' + t->fault % 10), ' '};
    a->count++;
    a->len = 0;
    if (t->fault) {
        keep(a, code, sizeof code);
        keep(a, t->type.at, t->type.len);
        keep(a, ": ", 2);
    }
    keep(a, t->text.at, t->text.len);
    return true;
}

static const rl_ask_spec ASKS[] = {
    {"total", "", "without arguments", told},
    {"times", "times any", "", told},
    {"echo", "yes any, n any, x any, text any, list any, table any", "", told},
    {"numbers", "n any, x any, text any, list any, table any", "", told},
    {"wrong", "what any", "", told},
    {"burst", "what any", "of a component that panics", told},
    {"other", "ask any, args any", "what another asks", told},
};

static bool is(rl_text text, const char *name)
{
    return text.len == rl_length(name) && !__builtin_memcmp(text.at, name, text.len);
}

static bool carry(void *self, rl_config *args, rl_reply *reply)
{
    (void)self;
    rl_text ask = rl_arg_text(args, "ask", ""), text = rl_arg_text(args, "args", "{}");
    for (uint32_t i = 0; i < RL_COUNT(ASKS); i++) {
        if (!is(ask, ASKS[i].name)) continue;
        rl_ask_make(i);
        if (text.len > rl_ask_args.cap) return rl_fail("the arguments are too long");
        __builtin_memcpy(rl_ask_args.text, text.at, text.len);
        rl_ask_args.len = text.len;
        int32_t number = rl_ask_send(rl_arg_i64(args, "within_ms", 0) * 1000000);
        return number > 0 && rl_reply_whole(reply, number);
    }
    return rl_fail("there is no such question");
}

static bool last(void *self, rl_config *args, rl_reply *reply)
{
    (void)args;
    Came *a = &((Asker *)self)->came;
    return rl_reply_json(reply, "[") && rl_reply_whole(reply, a->count) && rl_reply_json(reply, ",") && rl_reply_text(reply, a->last, a->len) && rl_reply_json(reply, "]");
}

static const rl_request_spec REQUESTS[] = {
    {"carry", "ask text, args text, within_ms integer?", "asks a question", carry},
    {"last", "", "how many answers have come, and the last one", last},
};

RL_COMPONENT(Asker, .name = "asker@1", RL_REQUESTS(REQUESTS), RL_ASKS(ASKS), RL_SAVED(Asker, came))
