// Questions that the component asks others, and their answers.
#include "service.h"

struct told {
    rlh_told said;
    char *frame;
    struct json doc;
    json_place reply;
    struct kept *kept;
    struct told *next;
};

// ---- asking

static bool is_object(const char *args, size_t len) {
    struct json doc;
    if (!json_parse(&doc, args, len)) return false;
    bool ok = json_is(&doc, 0, JSON_OBJECT);
    json_free(&doc);
    return ok;
}

static struct asked *find_asked(struct service *s, int number) {
    for (size_t i = 0; i < RLH_MOST_QUESTIONS; i++) {
        if (s->asked[i].number == number) return &s->asked[i];
    }
    return NULL;
}

int rlh_ask(rlh_host *host, uint32_t ask, const char *args, int64_t within) {
    struct service *s = host->service;
    if (s == NULL || s->life != STARTED || ask >= s->kind->ask_count || within < 0) return RLH_ERR_INVALID;
    if (args == NULL) args = "{}";
    size_t len = strlen(args);
    if (len > RLH_MAX_REQUEST_BYTES) return RLH_ERR_TOO_LONG;
    if (!is_object(args, len)) return RLH_ERR_INVALID;
    struct asked *place = find_asked(s, 0);
    if (place == NULL) return RLH_ERR_EXHAUSTED;
    struct text t = {0};
    int number = ++s->ask_count;
    text_format(&t, "{\"ask\":{\"call\":%d,\"name\":", number);
    text_quote(&t, s->kind->asks[ask].name);
    text_format(&t, ",\"within_ns\":%lld,\"args\":", (long long)within);
    text_add(&t, args, len);
    text_put(&t, "}}");
    int err = wire_send_text(host, &t, -1);
    if (err != RLH_OK) return err;
    *place = (struct asked){.number = number, .ask = ask};
    return number;
}

int rlh_quote(char *to, size_t room, const char *text) {
    struct text t = {0};
    text_quote(&t, text);
    bool fits = !t.failed && t.len < room;
    if (fits) {
        memcpy(to, t.at, t.len + 1);
    } else if (room > 0) {
        to[0] = 0;
    }
    int err = t.failed ? RLH_ERR_MEMORY : fits ? RLH_OK : RLH_ERR_TOO_LONG;
    text_free(&t);
    return err;
}

// ---- answers

void told_free(struct told *t) {
    if (t == NULL) return;
    texts_free(t->kept);
    json_free(&t->doc);
    free(t->frame);
    free(t);
}

static const char *member_text(struct told *t, json_place at, const char *name) {
    const char *text = text_kept(&t->kept, json_text(&t->doc, json_get(&t->doc, at, name)));
    return text != NULL ? text : "";
}

// fault_of returns the number of the code of an error.
static int fault_of(struct told *t, json_place error) {
    static const struct {
        const char *why;
        int fault;
    } faults[] = {{RLH_WHY_ARGS, RLH_ANSWER_REFUSED}, {RLH_WHY_LATE, RLH_ANSWER_LATE}, {RLH_WHY_LOST, RLH_ANSWER_LOST}, {RLH_WHY_BUSY, RLH_ANSWER_BUSY}};
    if (json_true(&t->doc, json_get(&t->doc, error, "answer"))) return RLH_ANSWER_NO_ANSWER;
    const char *why = member_text(t, error, "why");
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        if (strcmp(faults[i].why, why) == 0) return faults[i].fault;
    }
    return RLH_ANSWER_RAISED;
}

static bool read_told(struct told *t, const char *json, size_t len) {
    t->frame = malloc(len + 1);
    if (t->frame == NULL) return false;
    memcpy(t->frame, json, len);
    t->frame[len] = 0;
    if (!json_parse(&t->doc, t->frame, len)) return false;
    uint64_t call = 0;
    json_place at = json_get(&t->doc, 0, "told");
    if (!json_u64(&t->doc, json_get(&t->doc, at, "call"), &call) || call == 0 || call > INT32_MAX) return false;
    json_place error = json_get(&t->doc, at, "error");
    t->said = (rlh_told){.question = (int)call, .text = "", .type = "", .place = "", .own = t};
    t->reply = JSON_NONE;
    if (!json_is(&t->doc, error, JSON_OBJECT)) {
        t->reply = json_get(&t->doc, at, "reply");
        t->said.json = text_kept(&t->kept, t->reply != JSON_NONE ? json_raw(&t->doc, t->reply) : strdup("null"));
        return t->said.json != NULL;
    }
    t->said.fault = fault_of(t, error);
    t->said.text = member_text(t, error, "text");
    t->said.type = member_text(t, error, "type");
    t->said.place = member_text(t, error, "place");
    return true;
}

struct told *told_read(const char *json, size_t len) {
    struct told *t = calloc(1, sizeof *t);
    if (t != NULL && read_told(t, json, len)) return t;
    told_free(t);
    return NULL;
}

void told_push(struct told_list *list, struct told *t) {
    if (list->first == NULL) {
        list->first = t;
    } else {
        list->last->next = t;
    }
    list->last = t;
}

struct told *told_pop(struct told_list *list) {
    struct told *t = list->first;
    if (t != NULL) list->first = t->next;
    return t;
}

void service_told(struct service *s, struct told *t) {
    struct asked *a = find_asked(s, t->said.question);
    if (a == NULL) return;
    uint32_t ask = a->ask;
    a->number = 0;
    if (s->kind->asks[ask].told != NULL) s->kind->asks[ask].told(s->host, s->self, &t->said);
}

// ---- values of an answer

static json_place value_at(const rlh_told *t, const char *key) {
    return key != NULL ? member_named(&t->own->doc, t->own->reply, key) : t->own->reply;
}

int rlh_told_int(const rlh_told *t, const char *key, int64_t *value) {
    return json_i64(&t->own->doc, value_at(t, key), value) ? RLH_OK : RLH_ERR_INVALID;
}

int rlh_told_float(const rlh_told *t, const char *key, double *value) {
    return json_f64(&t->own->doc, value_at(t, key), value) ? RLH_OK : RLH_ERR_INVALID;
}

int rlh_told_bool(const rlh_told *t, const char *key, int *value) {
    const struct json *doc = &t->own->doc;
    json_place at = value_at(t, key);
    if (!json_is(doc, at, JSON_TRUE) && !json_is(doc, at, JSON_FALSE)) return RLH_ERR_INVALID;
    *value = json_is(doc, at, JSON_TRUE);
    return RLH_OK;
}

const char *rlh_told_text(const rlh_told *t, const char *key) {
    const struct json *doc = &t->own->doc;
    json_place at = value_at(t, key);
    return text_kept(&t->own->kept, json_is(doc, at, JSON_STRING) ? json_text(doc, at) : json_raw(doc, at));
}
