// Reading JSON.
#include "json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct json *doc;
    size_t at, len;
};

static int peek(const struct reader *r) { return r->at < r->len ? (unsigned char)r->doc->text[r->at] : -1; }

static void skip_space(struct reader *r) {
    for (int c = peek(r); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(r)) r->at++;
}

static bool accept(struct reader *r, int c) {
    if (peek(r) != c) return false;
    r->at++;
    return true;
}

// open_node adds a node that begins here; close_node sets its end.
static bool open_node(struct reader *r, enum json_type type, size_t *node) {
    struct json *d = r->doc;
    if (d->count == d->room) {
        size_t room = d->room == 0 ? 64 : 2 * d->room;
        struct json_node *more = realloc(d->nodes, room * sizeof *more);
        if (more == NULL) return false;
        d->nodes = more;
        d->room = room;
    }
    *node = d->count++;
    d->nodes[*node] = (struct json_node){.from = (uint32_t)r->at, .type = type};
    return true;
}

static void close_node(struct reader *r, size_t node, size_t to) {
    r->doc->nodes[node].to = (uint32_t)to;
    r->doc->nodes[node].next = (uint32_t)r->doc->count;
}

static bool is_digit(int c) { return c >= '0' && c <= '9'; }

static int hex_digit(int c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool read_escape(struct reader *r) {
    int c = peek(r);
    if (c < 0) return false;
    r->at++;
    if (c != 'u') return strchr("\"\\/bfnrt", c) != NULL && c != 0;
    for (int i = 0; i < 4; i++, r->at++) {
        if (hex_digit(peek(r)) < 0) return false;
    }
    return true;
}

static bool read_string(struct reader *r) {
    size_t node;
    if (!accept(r, '"') || !open_node(r, JSON_STRING, &node)) return false;
    for (;;) {
        int c = peek(r);
        if (c < 0x20) return false; // the end of the text, or a control character
        r->at++;
        if (c == '"') break;
        if (c == '\\' && !read_escape(r)) return false;
    }
    close_node(r, node, r->at - 1);
    return true;
}

static bool read_digits(struct reader *r) {
    if (!is_digit(peek(r))) return false;
    while (is_digit(peek(r))) r->at++;
    return true;
}

static bool read_number(struct reader *r) {
    size_t node;
    if (!open_node(r, JSON_NUMBER, &node)) return false;
    accept(r, '-');
    if (!accept(r, '0') && !read_digits(r)) return false;
    if (accept(r, '.') && !read_digits(r)) return false;
    if (accept(r, 'e') || accept(r, 'E')) {
        if (!accept(r, '+')) accept(r, '-');
        if (!read_digits(r)) return false;
    }
    close_node(r, node, r->at);
    return true;
}

static bool read_word(struct reader *r, const char *word, enum json_type type) {
    size_t node, n = strlen(word);
    if (r->len - r->at < n || memcmp(r->doc->text + r->at, word, n) != 0 || !open_node(r, type, &node)) return false;
    r->at += n;
    close_node(r, node, r->at);
    return true;
}

static bool read_scalar(struct reader *r) {
    switch (peek(r)) {
    case '"': return read_string(r);
    case 't': return read_word(r, "true", JSON_TRUE);
    case 'f': return read_word(r, "false", JSON_FALSE);
    case 'n': return read_word(r, "null", JSON_NULL);
    default: return read_number(r);
    }
}

// stack has the open arrays and objects, of which each has the place of the one around it as its next.
struct stack {
    json_place top;
    int depth;
};

static bool in_object(const struct reader *r, const struct stack *s) { return r->doc->nodes[s->top].type == JSON_OBJECT; }

// read_key reads the key of the next member, where one has a key.
static bool read_key(struct reader *r, const struct stack *s) {
    skip_space(r);
    if (!in_object(r, s)) return true;
    if (!read_string(r)) return false;
    skip_space(r);
    return accept(r, ':');
}

static bool push(struct reader *r, struct stack *s) {
    size_t node;
    if (s->depth == JSON_DEPTH_MAX || !open_node(r, peek(r) == '{' ? JSON_OBJECT : JSON_ARRAY, &node)) return false;
    r->doc->nodes[node].next = (uint32_t)s->top;
    *s = (struct stack){.top = node, .depth = s->depth + 1};
    r->at++;
    skip_space(r);
    return true;
}

static bool pop(struct reader *r, struct stack *s) {
    if (!accept(r, in_object(r, s) ? '}' : ']')) return false;
    size_t around = r->doc->nodes[s->top].next;
    close_node(r, s->top, r->at);
    *s = (struct stack){.top = around, .depth = s->depth - 1};
    skip_space(r);
    return true;
}

static bool ends_here(const struct reader *r) { return peek(r) == '}' || peek(r) == ']'; }

// read_value reads a value with all that is in it. It does not call itself: what is deep comes from elsewhere.
static bool read_value(struct reader *r) {
    struct stack s = {0};
    for (;;) {
        skip_space(r);
        if (peek(r) == '{' || peek(r) == '[') {
            if (!push(r, &s)) return false;
            if (!ends_here(r)) {
                if (!read_key(r, &s)) return false;
                continue;
            }
        } else if (!read_scalar(r)) {
            return false;
        }
        skip_space(r);
        while (s.depth > 0 && ends_here(r)) {
            if (!pop(r, &s)) return false;
        }
        if (s.depth == 0) return true;
        if (!accept(r, ',') || !read_key(r, &s)) return false;
    }
}

bool json_parse(struct json *doc, const char *text, size_t len) {
    *doc = (struct json){.text = text};
    struct reader r = {.doc = doc, .len = len};
    if (len <= JSON_BYTES_MAX && read_value(&r) && r.at == len) return true;
    json_free(doc);
    return false;
}

void json_free(struct json *doc) {
    free(doc->nodes);
    *doc = (struct json){0};
}

bool json_is(const struct json *doc, json_place at, enum json_type type) {
    return at < doc->count && doc->nodes[at].type == type;
}

json_place json_first(const struct json *doc, json_place container) {
    if (!json_is(doc, container, JSON_ARRAY) && !json_is(doc, container, JSON_OBJECT)) return JSON_NONE;
    return container + 1 < doc->nodes[container].next ? container + 1 : JSON_NONE;
}

json_place json_next(const struct json *doc, json_place container, json_place at) {
    if (at >= doc->count || container >= doc->count) return JSON_NONE;
    size_t next = doc->nodes[at].next;
    return next < doc->nodes[container].next ? next : JSON_NONE;
}

static bool equals(const struct json *doc, json_place at, const char *string) {
    const struct json_node *n = &doc->nodes[at];
    return n->to - n->from == strlen(string) && memcmp(doc->text + n->from, string, n->to - n->from) == 0;
}

json_place json_get(const struct json *doc, json_place object, const char *key) {
    if (!json_is(doc, object, JSON_OBJECT)) return JSON_NONE;
    for (json_place at = json_first(doc, object); at != JSON_NONE;) {
        json_place value = json_next(doc, object, at);
        if (value == JSON_NONE) break;
        if (equals(doc, at, key)) return value;
        at = json_next(doc, object, value);
    }
    return JSON_NONE;
}

// copy copies the text of a number or string, which the document does not end with a zero byte.
static bool copy(const struct json *doc, json_place at, enum json_type type, char buf[64]) {
    if (!json_is(doc, at, type)) return false;
    const struct json_node *n = &doc->nodes[at];
    if (n->to - n->from >= 64) return false;
    memcpy(buf, doc->text + n->from, n->to - n->from);
    buf[n->to - n->from] = 0;
    return true;
}

// number copies an integer's text.
static bool number(const struct json *doc, json_place at, char buf[64]) {
    return copy(doc, at, JSON_NUMBER, buf) && strpbrk(buf, ".eE") == NULL;
}

static bool parse_u64(const char *digits, uint64_t *value) {
    if (*digits == 0 || digits[strspn(digits, "0123456789")] != 0) return false;
    errno = 0;
    unsigned long long v = strtoull(digits, NULL, 10);
    if (errno != 0) return false;
    *value = v;
    return true;
}

bool json_u64(const struct json *doc, json_place at, uint64_t *value) {
    char buf[64];
    return number(doc, at, buf) && parse_u64(buf, value);
}

bool json_decimal(const struct json *doc, json_place at, uint64_t *value) {
    char buf[64];
    return copy(doc, at, JSON_STRING, buf) && parse_u64(buf, value);
}

bool json_i64(const struct json *doc, json_place at, int64_t *value) {
    char buf[64];
    if (!number(doc, at, buf)) return false;
    errno = 0;
    long long v = strtoll(buf, NULL, 10);
    if (errno != 0) return false;
    *value = v;
    return true;
}

bool json_f64(const struct json *doc, json_place at, double *value) {
    char *text = json_is(doc, at, JSON_NUMBER) ? json_raw(doc, at) : NULL, *end = NULL;
    double x = text != NULL ? strtod(text, &end) : 0;
    bool ok = text != NULL && *end == 0 && x - x == 0; // the end is earlier in a locale with commas
    free(text);
    if (ok) *value = x;
    return ok;
}

bool json_size(const struct json *doc, json_place at, size_t *value, size_t most) {
    uint64_t v;
    if (!json_u64(doc, at, &v) || v > most) return false;
    *value = (size_t)v;
    return true;
}

bool json_true(const struct json *doc, json_place at) { return json_is(doc, at, JSON_TRUE); }

char *json_raw(const struct json *doc, json_place at) {
    if (at >= doc->count) return NULL;
    const struct json_node *n = &doc->nodes[at];
    size_t quotes = n->type == JSON_STRING ? 1 : 0;
    return strndup(doc->text + n->from - quotes, n->to - n->from + 2 * quotes);
}
