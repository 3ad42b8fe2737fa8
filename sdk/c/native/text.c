// Text: the escapes of JSON strings, both ways, and a growing buffer.
#include "json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned hex4(const char *s) {
    char digits[5] = {s[0], s[1], s[2], s[3], 0};
    return (unsigned)strtoul(digits, NULL, 16);
}

// put_utf8 writes a code point, which is never longer than its escape.
static char *put_utf8(char *to, unsigned c) {
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
        *to++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *to++ = (char)(0xE0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    } else {
        *to++ = (char)(0xF0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 63));
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    }
    return to;
}

// unicode decodes the digits after \u, which the reader has checked, and moves *s past them. An unpaired surrogate or a
// zero becomes the replacement character.
static unsigned unicode(const char **s, const char *end) {
    unsigned c = hex4(*s);
    *s += 4;
    if (c >= 0xD800 && c < 0xDC00 && end - *s >= 6 && (*s)[0] == '\\' && (*s)[1] == 'u') {
        unsigned low = hex4(*s + 2);
        if (low >= 0xDC00 && low < 0xE000) {
            *s += 6;
            return 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        }
    }
    return c == 0 || (c >= 0xD800 && c < 0xE000) ? 0xFFFD : c;
}

char *json_text(const struct json *doc, json_place at) {
    if (!json_is(doc, at, JSON_STRING)) return NULL;
    const char *s = doc->text + doc->nodes[at].from, *end = doc->text + doc->nodes[at].to;
    char *out = malloc((size_t)(end - s) + 1), *to = out;
    if (out == NULL) return NULL;
    while (s < end) {
        if (*s != '\\') {
            *to++ = *s++;
            continue;
        }
        char c = s[1];
        s += 2;
        switch (c) {
        case 'b': *to++ = '\b'; break;
        case 'f': *to++ = '\f'; break;
        case 'n': *to++ = '\n'; break;
        case 'r': *to++ = '\r'; break;
        case 't': *to++ = '\t'; break;
        case 'u': to = put_utf8(to, unicode(&s, end)); break;
        default: *to++ = c; break;
        }
    }
    *to = 0;
    return out;
}

static bool reserve(struct text *t, size_t n) {
    if (t->failed) return false;
    if (n < t->room - t->len) return true;
    size_t room = t->room == 0 ? 256 : t->room;
    while (room - t->len <= n) {
        if (room > SIZE_MAX / 2) {
            t->failed = true;
            return false;
        }
        room *= 2;
    }
    char *more = realloc(t->at, room);
    if (more == NULL) {
        t->failed = true;
        return false;
    }
    t->at = more;
    t->room = room;
    return true;
}

void text_add(struct text *t, const char *bytes, size_t n) {
    if (!reserve(t, n)) return;
    memcpy(t->at + t->len, bytes, n);
    t->len += n;
    t->at[t->len] = 0;
}

void text_put(struct text *t, const char *string) { text_add(t, string, strlen(string)); }

void text_format(struct text *t, const char *format, ...) {
    char buf[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(buf, sizeof buf, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof buf) {
        t->failed = true;
        return;
    }
    text_add(t, buf, (size_t)n);
}

// utf8_length returns the bytes of the character that begins here, or 0 if it is invalid.
static size_t utf8_length(const unsigned char *s) {
    if (s[0] < 0x80) return 1;
    size_t n = s[0] >= 0xF0 && s[0] < 0xF5 ? 4 : s[0] >= 0xE0 && s[0] < 0xF0 ? 3 : s[0] >= 0xC2 && s[0] < 0xE0 ? 2 : 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0;
    }
    bool overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
    bool beyond = (s[0] == 0xED && s[1] >= 0xA0) || (s[0] == 0xF4 && s[1] >= 0x90);
    return overlong || beyond ? 0 : n;
}

void text_quote(struct text *t, const char *string) {
    text_put(t, "\"");
    for (const unsigned char *s = (const unsigned char *)string; *s != 0;) {
        size_t n = utf8_length(s);
        if (*s == '"' || *s == '\\') {
            text_format(t, "\\%c", *s);
        } else if (*s < 0x20) {
            text_format(t, "\\u%04x", *s);
        } else {
            text_add(t, n == 0 ? "?" : (const char *)s, n == 0 ? 1 : n);
        }
        s += n == 0 ? 1 : n;
    }
    text_put(t, "\"");
}

void text_free(struct text *t) {
    free(t->at);
    *t = (struct text){0};
}
