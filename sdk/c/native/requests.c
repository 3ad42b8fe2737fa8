// Requests: questions to the component, their arguments, and their answers.
#include "service.h"

#include <errno.h>
#include <stdarg.h>

enum { RAISED_MAX = 4096, SHOWN_MAX = 40 };

struct rlh_question {
    char *frame;
    struct json doc;
    json_place args;
    uint64_t call;
    char *name, *args_text;
    int64_t until; // nobody waits for an answer that was not begun by then
    struct kept *kept;
    struct text answer;
    bool raised;
    struct text type, reason, place;
    rlh_question *next;
};

// ---- texts and values

json_place member_named(const struct json *doc, json_place object, const char *name) {
    json_place found = JSON_NONE;
    if (!json_is(doc, object, JSON_OBJECT)) return found;
    for (json_place key = json_first(doc, object), value; key != JSON_NONE; key = json_next(doc, object, value)) {
        value = json_next(doc, object, key);
        char *text = json_text(doc, key);
        if (text != NULL && strcmp(text, name) == 0) found = value;
        free(text);
    }
    return found;
}

const char *text_kept(struct kept **list, char *text) {
    struct kept *k = text != NULL ? malloc(sizeof *k) : NULL;
    if (k == NULL) {
        free(text);
        return NULL;
    }
    *k = (struct kept){.text = text, .next = *list};
    *list = k;
    return text;
}

void texts_free(struct kept *list) {
    while (list != NULL) {
        struct kept *next = list->next;
        free(list->text);
        free(list);
        list = next;
    }
}

// ---- questions

void question_free(rlh_question *q) {
    if (q == NULL) return;
    texts_free(q->kept);
    json_free(&q->doc);
    free(q->frame);
    free(q->name);
    free(q->args_text);
    text_free(&q->answer);
    text_free(&q->type);
    text_free(&q->reason);
    text_free(&q->place);
    free(q);
}

static bool read_question(rlh_question *q, const char *json, size_t len) {
    int64_t within = 0;
    q->frame = malloc(len + 1);
    if (q->frame == NULL) return false;
    memcpy(q->frame, json, len);
    q->frame[len] = 0;
    if (!json_parse(&q->doc, q->frame, len)) return false;
    json_place at = json_get(&q->doc, 0, "request");
    q->args = json_get(&q->doc, at, "args");
    q->name = json_text(&q->doc, json_get(&q->doc, at, "name"));
    q->args_text = json_raw(&q->doc, q->args);
    if (!json_u64(&q->doc, json_get(&q->doc, at, "call"), &q->call) || !json_i64(&q->doc, json_get(&q->doc, at, "within_ns"), &within)) return false;
    q->until = now() + (within < INT64_MAX / 2 ? within : INT64_MAX / 2);
    return q->name != NULL && q->args_text != NULL && json_is(&q->doc, q->args, JSON_OBJECT);
}

rlh_question *question_read(const char *json, size_t len) {
    rlh_question *q = calloc(1, sizeof *q);
    if (q != NULL && read_question(q, json, len)) return q;
    question_free(q);
    return NULL;
}

void question_push(struct question_list *list, rlh_question *q) {
    if (list->first == NULL) {
        list->first = q;
    } else {
        list->last->next = q;
    }
    list->last = q;
}

rlh_question *question_pop(struct question_list *list) {
    rlh_question *q = list->first;
    if (q != NULL) list->first = q->next;
    return q;
}

// ---- arguments

static json_place find_arg(const rlh_question *q, const char *name) { return member_named(&q->doc, q->args, name); }

static const char *keep(rlh_question *q, char *text) { return text_kept(&q->kept, text); }

static int misfits(rlh_question *q, const char *name, const char *value, const char *want) {
    if (value == NULL) return RLH_ERR_MEMORY;
    q->raised = true;
    text_free(&q->reason);
    text_format(&q->reason, "the argument %.64s is %.60s, want %s", name, value, want);
    return RLH_ERR_INVALID;
}

const char *rlh_args(const rlh_question *q) { return q->args_text; }

const char *rlh_arg_text(rlh_question *q, const char *name) {
    json_place at = find_arg(q, name);
    return keep(q, json_is(&q->doc, at, JSON_STRING) ? json_text(&q->doc, at) : json_raw(&q->doc, at));
}

int rlh_arg_float(rlh_question *q, const char *name, double *value) {
    json_place at = find_arg(q, name);
    if (at == JSON_NONE || json_f64(&q->doc, at, value)) return RLH_OK;
    return misfits(q, name, keep(q, json_raw(&q->doc, at)), "a number");
}

int rlh_arg_int(rlh_question *q, const char *name, int64_t *value) {
    json_place at = find_arg(q, name);
    if (at == JSON_NONE || json_i64(&q->doc, at, value)) return RLH_OK;
    return misfits(q, name, keep(q, json_raw(&q->doc, at)), "a whole number of 64 bits");
}

int rlh_arg_bool(rlh_question *q, const char *name, int *value) {
    json_place at = find_arg(q, name);
    if (at == JSON_NONE) return RLH_OK;
    if (!json_is(&q->doc, at, JSON_TRUE) && !json_is(&q->doc, at, JSON_FALSE)) {
        return misfits(q, name, keep(q, json_raw(&q->doc, at)), "true or false");
    }
    *value = json_is(&q->doc, at, JSON_TRUE);
    return RLH_OK;
}

// ---- answers

static int added(const rlh_question *q) {
    if (q->answer.failed) return RLH_ERR_MEMORY;
    return q->answer.len > RLH_MAX_REQUEST_BYTES ? RLH_ERR_TOO_LONG : RLH_OK;
}

int rlh_answer_json(rlh_question *q, const char *json) {
    text_put(&q->answer, json);
    return added(q);
}

int rlh_answer_int(rlh_question *q, int64_t value) {
    text_format(&q->answer, "%lld", (long long)value);
    return added(q);
}

// rlh_answer_float writes the fewest digits that give the same number.
int rlh_answer_float(rlh_question *q, double value) {
    char digits[40];
    for (int n = 15; n <= 17; n++) {
        snprintf(digits, sizeof digits, "%.*g", n, value);
        if (strtod(digits, NULL) == value) break;
    }
    char *comma = strchr(digits, ','); // of a locale
    if (comma != NULL) *comma = '.';
    return rlh_answer_json(q, digits);
}

int rlh_answer_bool(rlh_question *q, int value) { return rlh_answer_json(q, value ? "true" : "false"); }

int rlh_answer_text(rlh_question *q, const char *text) {
    text_quote(&q->answer, text);
    return added(q);
}

int rlh_raise_at(rlh_question *q, const char *type, const char *file, int line, const char *format, ...) {
    char reason[RAISED_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    const char *base = strrchr(file, '/');
    text_free(&q->type);
    text_free(&q->reason);
    text_free(&q->place);
    text_format(&q->type, "%.200s", type);
    text_put(&q->reason, reason);
    text_format(&q->place, "%.200s:%d", base != NULL ? base + 1 : file, line);
    q->raised = true;
    return RLH_ERR_REFUSED;
}

static const rlh_request *find_request(const rlh_component *kind, const char *name) {
    for (size_t i = 0; i < kind->request_count; i++) {
        if (strcmp(kind->requests[i].name, name) == 0 && kind->requests[i].answer != NULL) return &kind->requests[i];
    }
    return NULL;
}

static void write_field(struct text *t, const char *key, const char *value) {
    text_put(t, key);
    text_quote(t, value != NULL ? value : "");
}

// write_error writes why there is no answer; wrong says that there was one, which is none.
static void write_error(struct text *t, const char *type, const char *reason, const char *place, bool wrong) {
    write_field(t, "\"error\":{\"type\":", type);
    write_field(t, ",\"text\":", reason);
    write_field(t, ",\"place\":", place);
    text_put(t, wrong ? ",\"answer\":true}" : "}");
}

static void quote_part(struct text *t, const char *from, size_t n) {
    char *part = strndup(from, n);
    t->failed = t->failed || part == NULL;
    if (part != NULL) text_quote(t, part);
    free(part);
}

// write_answer writes an answer that is JSON, else what is wrong with it.
static void write_answer(struct text *t, const struct text *answer) {
    struct json doc;
    const char *text = answer->at != NULL ? answer->at : "";
    if (answer->len <= RLH_MAX_REQUEST_BYTES && json_parse(&doc, text, answer->len)) {
        json_free(&doc);
        text_put(t, "\"reply\":");
        text_add(t, text, answer->len);
        return;
    }
    struct text reason = {0};
    if (answer->len > RLH_MAX_REQUEST_BYTES) {
        text_format(&reason, "has %zu bytes, at most %d", answer->len, RLH_MAX_REQUEST_BYTES);
    } else {
        text_put(&reason, "is not JSON: ");
        quote_part(&reason, text, SHOWN_MAX);
    }
    write_error(t, "", reason.at, "", true);
    text_free(&reason);
}

bool question_answer(rlh_question *q, rlh_host *host, const rlh_component *kind, void *self, struct text *frame) {
    if (now() > q->until) return false;
    text_format(frame, "{\"answer\":{\"call\":%llu,", (unsigned long long)q->call);
    const rlh_request *request = find_request(kind, q->name);
    int err = request != NULL ? request->answer(host, self, q) : RLH_OK;
    if (request == NULL) {
        text_put(&q->reason, "this program does not answer the request ");
        text_put(&q->reason, q->name);
        q->raised = true;
    }
    bool too_long = q->answer.len > RLH_MAX_REQUEST_BYTES;
    if (q->raised) {
        write_error(frame, q->type.at, q->reason.at, q->place.at, false);
    } else if (q->answer.failed || (err != RLH_OK && !too_long)) {
        write_error(frame, "", rlh_strerror(q->answer.failed ? RLH_ERR_MEMORY : err), "", false);
    } else {
        write_answer(frame, &q->answer);
    }
    text_put(frame, "}}");
    return true;
}

// ---- descriptions

// write_args writes "lr number, warm bool?" as documents. What is wrong with them the host says.
static void write_args(struct text *t, const char *args) {
    for (const char *at = args; at != NULL && *at != 0;) {
        size_t whole = strcspn(at, ","), name = strcspn(at, " ,");
        const char *type = at + name + (at[name] == ' ' ? 1 : 0);
        size_t n = (size_t)(at + whole - type);
        bool optional = n > 0 && type[n - 1] == '?';
        text_put(t, at == args ? "{\"name\":" : ",{\"name\":");
        quote_part(t, at, name);
        text_put(t, ",\"type\":");
        quote_part(t, type, optional ? n - 1 : n);
        text_put(t, optional ? ",\"optional\":true}" : "}");
        at += whole;
        at += strspn(at, ", ");
    }
}

static void write_question(struct text *t, bool first, const char *name, const char *doc, const char *args) {
    write_field(t, first ? "{\"name\":" : ",{\"name\":", name);
    write_field(t, ",\"doc\":", doc);
    text_put(t, ",\"args\":[");
    write_args(t, args);
    text_put(t, "]}");
}

void requests_write(struct text *t, const rlh_component *kind) {
    text_put(t, "\"requests\":[");
    for (size_t i = 0; i < kind->request_count; i++) {
        const rlh_request *r = &kind->requests[i];
        write_question(t, i == 0, r->name, r->doc, r->args);
    }
    text_put(t, "],\"asks\":[");
    for (size_t i = 0; i < kind->ask_count; i++) {
        const rlh_asking *a = &kind->asks[i];
        write_question(t, i == 0, a->name, a->doc, a->args);
    }
    text_put(t, "]");
}
