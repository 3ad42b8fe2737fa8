// A reader of JSON documents from another process, and a writer. Nothing recurses, nothing is read beyond the text, and
// a document that breaks the grammar is refused as a whole.
#ifndef RLH_JSON_H
#define RLH_JSON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    JSON_DEPTH_MAX = 10000, // as in Go
    JSON_BYTES_MAX = 16 << 20,
};

enum json_type { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

// json_node is one value, or a key, which is a string. Its text is [from, to), of strings without the quotes; next is
// the node after its last descendant. Nodes of an object alternate: key, value.
struct json_node {
    uint32_t from, to, next;
    enum json_type type;
};

struct json {
    const char *text;
    struct json_node *nodes;
    size_t count, room;
};

// json_parse reads a whole document; the root is node 0. The text must outlive the result. It returns false, with
// nothing to free, if the text is no document.
bool json_parse(struct json *doc, const char *text, size_t len);
void json_free(struct json *doc);

// A place is the index of a node, or JSON_NONE, which no function finds anything in.
typedef size_t json_place;
#define JSON_NONE SIZE_MAX

// json_get finds the value of a key in an object.
json_place json_get(const struct json *doc, json_place object, const char *key);
// json_first and json_next iterate over the nodes of an array or object.
json_place json_first(const struct json *doc, json_place container);
json_place json_next(const struct json *doc, json_place container, json_place at);
bool json_is(const struct json *doc, json_place at, enum json_type type);

// These leave *value alone and return false if there is no value of that type and range.
bool json_u64(const struct json *doc, json_place at, uint64_t *value);
// json_decimal returns the number in a string of decimal digits: numbers that use all of their 64 bits are written so.
bool json_decimal(const struct json *doc, json_place at, uint64_t *value);
bool json_i64(const struct json *doc, json_place at, int64_t *value);
// json_f64 takes a number that a double holds.
bool json_f64(const struct json *doc, json_place at, double *value);
bool json_size(const struct json *doc, json_place at, size_t *value, size_t most);
bool json_true(const struct json *doc, json_place at);
// json_text returns a string with its escapes decoded, or NULL. The caller frees it.
char *json_text(const struct json *doc, json_place at);
// json_raw returns the unparsed text of any value, or NULL. The caller frees it.
char *json_raw(const struct json *doc, json_place at);

// text is a growing string. Running out of memory sets failed; after that additions do nothing.
struct text {
    char *at;
    size_t len, room;
    bool failed;
};

void text_add(struct text *t, const char *bytes, size_t n);
void text_put(struct text *t, const char *string);
void text_format(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
// text_quote adds a JSON string. Bytes that are not UTF-8 become question marks.
void text_quote(struct text *t, const char *string);
void text_free(struct text *t);

#endif
