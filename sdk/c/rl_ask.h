// Hand-written. Questions that a component in C asks others.
//
//	#include "rl_ask.h"                                                    // in the place of rl_component.h
//
//	static bool total_came(void *self, const rl_answered *a)
//	{
//	    Coach *c = self;
//	    if (a->fault) return rl_say_fault(a);                             // to the log; the component continues
//	    c->newest = rl_answer_f64(a, 0);
//	    return true;
//	}
//
//	static const rl_ask_spec ASKS[] = {{"total", "times integer", "episodes so far", total_came}};
//
//	RL_COMPONENT(Coach, .name = "coach@1", RL_ASKS(ASKS), .timer = look)
//
// and in a slot, a timer, an answer or a request:
//
//	rl_ask_make(0);
//	rl_reply_json(&rl_ask_args, "{\"times\":") && rl_reply_whole(&rl_ask_args, 1) && rl_reply_json(&rl_ask_args, "}");
//	rl_ask_send(5000000000);                                              // nanoseconds; the answer comes later, or the fault late
//
// The key asks of the component's table says which component answers.
#ifndef RL_ASK_H
#define RL_ASK_H

#include "rl_request.h"

// rl_answered is the answer to a question: a JSON value, or why there is none. It is valid while the function that gets it runs.
struct rl_answered {
    uint32_t question; // the number that rl_ask_send has returned
    uint32_t fault;    // 0, or RL_ANSWER_LATE and so on
    rl_text text;      // JSON; after a fault its text
    rl_text type;      // of an error of the other component, such as ValueError
    rl_text place;     // where it happened
};

// RL_ASKS gives a component the list of questions that it asks.
#define RL_ASKS(list) .asks = (list), .ask_count = RL_COUNT(list)

// rl_ask_args are the arguments of the next question, which rl_reply_json and so on write; there is room for RL_ASK_BYTES.
#ifndef RL_ASK_BYTES
#define RL_ASK_BYTES 1024
#endif
static char rl_ask_text[RL_ASK_BYTES] RL_QUIET;
static uint32_t rl_ask_next RL_QUIET;
static rl_reply rl_ask_args RL_QUIET;

// rl_ask_make begins a question, by its place in the list. One that is sent without arguments has none.
RL_QUIET static void rl_ask_make(uint32_t ask)
{
    rl_ask_next = ask;
    rl_ask_args.text = rl_ask_text;
    rl_ask_args.len = 0;
    rl_ask_args.cap = sizeof rl_ask_text;
}

// rl_ask_send asks the question, for an answer within nanoseconds, 0 = half a minute. It returns the question's number, or a negative
// status after rl_fail: RL_STATUS_MEMORY says that too many questions have no answer yet.
RL_QUIET static int32_t rl_ask_send(int64_t within)
{
    int32_t n = rl_component_ask(rl_ask_next, rl_address(rl_ask_text), rl_ask_args.len, within);
    if (n < 0) rl_fail(n == RL_STATUS_MEMORY ? "too many questions have no answer yet" : "a question was not accepted");
    return n;
}

// rl_answer_members makes keys of the members of an answer that is an object, for rl_arg_f64 and so on. It writes over the text, and returns
// false for an answer that is none, or has a line break in a text.
RL_QUIET static bool rl_answer_members(const rl_answered *a, rl_config *members)
{
    members->text = a->text.at;
    members->len = 0;
    members->asked = 0;
    members->failed = false;
    if (a->fault || !a->text.len || a->text.at[0] != '{') return false;
    members->len = rl_json_lines((char *)(uintptr_t)a->text.at, a->text.len);
    return members->len != UINT32_MAX;
}

// rl_answer_f64 returns an answer that is a number, or fallback.
RL_QUIET static double rl_answer_f64(const rl_answered *a, double fallback)
{
    char line[64] = "=";
    if (a->fault || !a->text.len || a->text.len > sizeof line - 2) return fallback;
    __builtin_memcpy(line + 1, a->text.at, a->text.len);
    rl_config one = {line, a->text.len + 1, 0, false};
    return rl_arg_f64(&one, "", fallback);
}

// rl_say_fault logs why a question has no answer, as a warning, and returns true; the pipeline must grant "log".
RL_QUIET static bool rl_say_fault(const rl_answered *a)
{
    static char line[256];
    static const char head[] = "no answer: ";
    uint32_t n = sizeof head - 1, more = a->text.len < sizeof line - n ? a->text.len : (uint32_t)sizeof line - n;
    __builtin_memcpy(line, head, n);
    __builtin_memcpy(line + n, a->text.at, more);
    rl_component_log(2, rl_address(line), n + more);
    return true;
}

RL_EXPORT(rl_answer) int32_t rl_answer(uint32_t answer, uint32_t len)
{
    const rl_answer_call *call = rl_at(answer);
    if (len < sizeof *call || call->ask >= rl_the_component.ask_count) return RL_STATUS_ARGUMENT;
    const char *at = rl_at(answer);
    rl_answered a = {call->question, call->fault, rl_piece(at + call->text_at, call->text_len), rl_piece(at + call->type_at, call->type_len),
                   rl_piece(at + call->place_at, call->place_len)};
    return rl_the_component.asks[call->ask].answer(rl_self, &a) ? 0 : RL_STATUS_INTERNAL;
}

#endif
