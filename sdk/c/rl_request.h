// Hand-written. Requests that a component in C answers: questions that other programs and components ask it by name.
//
//	#include "rl_request.h"                                                // in the place of rl_component.h
//
//	static bool level(void *self, rl_config *args, rl_reply *reply)
//	{
//	    Curriculum *c = self;
//	    c->level = rl_arg_f64(args, "to", c->level);
//	    return rl_reply_number(reply, c->level);                          // or false after rl_fail
//	}
//
//	static const rl_request_spec REQUESTS[] = {{"level", "to number?", "the level, after it was set", level}};
//
//	RL_COMPONENT(Curriculum, .name = "curriculum@1", RL_REQUESTS(REQUESTS))
//
// The host has checked the arguments against their description. Numbers, bools and texts are read as keys of a table are; a list or a table is its
// JSON text, from rl_arg_text. A text with a line break is refused.
#ifndef RL_REQUEST_H
#define RL_REQUEST_H

#include "rl_component.h"

// rl_reply is the answer to a request: JSON, put together by the functions below, which return false where it becomes too long.
struct rl_reply {
    char *text;
    uint32_t len, cap;
};

// RL_REQUESTS gives a component the list of requests that it answers.
#define RL_REQUESTS(list) .requests = (list), .request_count = RL_COUNT(list)

// rl_reply_json adds text that is JSON, or a part of it such as {"level": as it is.
RL_QUIET static bool rl_reply_json(rl_reply *r, const char *text)
{
    uint32_t n = rl_length(text);
    if (n > r->cap - r->len) return rl_fail("the answer is too long");
    __builtin_memcpy(r->text + r->len, text, n);
    r->len += n;
    return true;
}

// rl_reply_whole adds a whole number.
RL_QUIET static bool rl_reply_whole(rl_reply *r, int64_t n)
{
    char digits[21];
    uint32_t at = sizeof digits - 1;
    uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    digits[at] = 0;
    do digits[--at] = (char)('0' + left % 10);
    while (left /= 10);
    if (n < 0) digits[--at] = '-';
    return rl_reply_json(r, digits + at);
}

// rl_reply_number adds a number with its first 15 digits, or null where it is none.
RL_QUIET static bool rl_reply_number(rl_reply *r, double x)
{
    if (x - x != 0) return rl_reply_json(r, "null");
    if (x < 0 && !rl_reply_json(r, "-")) return false;
    if (x < 0) x = -x;
    if (x < 1e15 && x == (double)(int64_t)x) return rl_reply_whole(r, (int64_t)x);
    int e = 0;
    while (x >= 1e15) x /= 10, e++;
    while (x < 1e14) x *= 10, e--;
    int64_t digits = (int64_t)(x + 0.5);
    for (; digits % 10 == 0; e++) digits /= 10;
    if (e < 0 && e > -15) { // as people write it
        int64_t unit = 1;
        for (int i = 0; i > e; i--) unit *= 10;
        if (!rl_reply_whole(r, digits / unit) || !rl_reply_json(r, ".")) return false;
        for (digits %= unit, unit /= 10; unit; digits %= unit, unit /= 10)
            if (!rl_reply_whole(r, digits / unit)) return false;
        return true;
    }
    return rl_reply_whole(r, digits) && rl_reply_json(r, "e") && rl_reply_whole(r, e);
}

// rl_reply_text adds a text of so many bytes of UTF-8, in quotes.
RL_QUIET static bool rl_reply_text(rl_reply *r, const char *text, uint32_t n)
{
    static const char hex[] = "0123456789abcdef";
    if (!rl_reply_json(r, "\"")) return false;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t c = (uint8_t)text[i];
        char one[7] = {(char)c, 0, 0, 0, 0, 0, 0};
        if (c == '"' || c == '\\') {
            one[0] = '\\', one[1] = (char)c;
        } else if (c < 32) {
            __builtin_memcpy(one, "\\u00", 4);
            one[4] = hex[c >> 4], one[5] = hex[c & 15];
        }
        if (c ? !rl_reply_json(r, one) : !rl_reply_json(r, "\\u0000")) return false;
    }
    return rl_reply_json(r, "\"");
}

// ---- arguments ----------------------------------------------------------------------------------------------

// rl_json reads JSON that the host has checked, and writes lines key=value over it, which are never longer.
typedef struct rl_json {
    char *text;
    uint32_t at, len, to;
} rl_json;

RL_QUIET static char rl_json_next(rl_json *j)
{
    while (j->at < j->len && (j->text[j->at] == ' ' || j->text[j->at] == '\n' || j->text[j->at] == '\t' || j->text[j->at] == '\r')) j->at++;
    return j->at < j->len ? j->text[j->at] : 0;
}

// rl_json_hex reads the four digits of an escape.
RL_QUIET static uint32_t rl_json_hex(rl_json *j)
{
    uint32_t code = 0;
    for (int i = 0; i < 4 && j->at < j->len; i++) {
        char c = j->text[j->at++];
        code = code << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    return code;
}

RL_QUIET static void rl_json_utf8(rl_json *j, uint32_t code)
{
    if (code < 0x80) {
        j->text[j->to++] = (char)code;
        return;
    }
    uint32_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    j->text[j->to++] = (char)((0xff80u >> more & 0xff) | code >> 6 * more);
    while (more--) j->text[j->to++] = (char)(0x80 | (code >> 6 * more & 63));
}

// rl_json_string copies a string without its quotes and escapes; false if it has a line break.
RL_QUIET static bool rl_json_string(rl_json *j)
{
    for (j->at++; j->at < j->len && j->text[j->at] != '"';) {
        char c = j->text[j->at++];
        if (c != '\\') {
            j->text[j->to++] = c;
            continue;
        }
        c = j->at < j->len ? j->text[j->at++] : 0;
        uint32_t code = (uint32_t)(c == 'b' ? '\b' : c == 'f' ? '\f' : c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c);
        if (c == 'u') {
            code = rl_json_hex(j);
            if (code >> 10 == 0x36 && j->len - j->at >= 6) { // the first of a pair
                j->at += 2;
                code = 0x10000 + ((code & 0x3ff) << 10) + (rl_json_hex(j) & 0x3ff);
            }
        }
        if (code == '\n') return false;
        rl_json_utf8(j, code);
    }
    j->at++;
    return true;
}

// rl_json_value copies a value: a string without quotes, anything else as it is written but for line breaks between its parts.
RL_QUIET static bool rl_json_value(rl_json *j)
{
    if (rl_json_next(j) == '"') return rl_json_string(j);
    uint32_t depth = 0;
    for (bool quoted = false; j->at < j->len; j->at++) {
        char c = j->text[j->at];
        if (!quoted && !depth && (c == ',' || c == '}' || c == ' ' || c == '\n' || c == '\t' || c == '\r')) break;
        if (!quoted && (c == '\n' || c == '\r')) continue;
        if (c == '"') quoted = !quoted;
        if (quoted && c == '\\') j->text[j->to++] = j->text[j->at++];
        if (!quoted && (c == '{' || c == '[')) depth++;
        if (!quoted && (c == '}' || c == ']')) depth--;
        j->text[j->to++] = j->text[j->at];
    }
    return true;
}

// rl_json_lines makes lines of an object's members, and returns their length; UINT32_MAX after rl_fail.
RL_QUIET static uint32_t rl_json_lines(char *text, uint32_t len)
{
    rl_json j = {text, 0, len, 0};
    for (rl_json_next(&j), j.at++; rl_json_next(&j) == '"';) {
        uint32_t name = j.to;
        if (!rl_json_string(&j)) break;
        j.text[j.to++] = '=';
        rl_json_next(&j), j.at++; // the colon
        if (!rl_json_value(&j)) {
            rl_fail("");
            rl_error_add(text + name, j.to - name);
            rl_error_add(" has a line break, which is not taken", 37);
            return UINT32_MAX;
        }
        j.text[j.to++] = '\n';
        if (rl_json_next(&j) == ',') j.at++;
    }
    return j.to;
}

RL_EXPORT(rl_request) int32_t rl_request(uint32_t request, uint32_t len, uint32_t buf, uint32_t cap)
{
    const rl_request_call *call = rl_at(request);
    if (len < sizeof *call || call->request >= rl_the_component.request_count) return RL_STATUS_ARGUMENT;
    rl_config args = {(const char *)rl_at(request + call->args_at), 0, 0, false};
    rl_reply reply = {(char *)rl_at(buf), 0, cap};
    args.len = rl_json_lines((char *)rl_at(request + call->args_at), call->args_len);
    if (args.len == UINT32_MAX) return RL_STATUS_ARGUMENT;
    rl_error.len = 0;
    if (rl_the_component.requests[call->request].answer(rl_self, &args, &reply) && !args.failed) return (int32_t)reply.len;
    return args.failed ? RL_STATUS_ARGUMENT : RL_STATUS_INTERNAL;
}

#endif
