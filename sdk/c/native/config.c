// The configuration of an instance, and the errors in its table.
#include "internal.h"
#include "json.h"
#include "service.h"

#include <errno.h>

enum { TABLES_MAX = 32 }; // within each other

struct entry {
    char *key, *value;
    bool asked;
};

// grant is a column that wires let the component write in blocks of a slot's messages.
struct grant {
    char *slot, *column;
};

struct config {
    rlh_identity identity;
    char *name, *kind, *run_name, *run_dir, *level;
    struct entry *entries;
    size_t count;
    struct grant *grants;
    size_t grant_count;
    uint64_t holder;
    bool check_only;
    struct text errors; // elements of a JSON array
    bool wrong;
};

static void free_strings(struct config *c) {
    for (size_t i = 0; i < c->count; i++) {
        free(c->entries[i].key);
        free(c->entries[i].value);
    }
    free(c->entries);
    for (size_t i = 0; i < c->grant_count; i++) {
        free(c->grants[i].slot);
        free(c->grants[i].column);
    }
    free(c->grants);
    free(c->name);
    free(c->kind);
    free(c->run_name);
    free(c->run_dir);
    free(c->level);
    text_free(&c->errors);
}

void config_free(struct config *c) {
    if (c == NULL) return;
    free_strings(c);
    free(c);
}

static bool add_entry(struct config *c, const char *key, char *value) {
    struct entry *more = value != NULL ? realloc(c->entries, (c->count + 1) * sizeof *more) : NULL;
    if (more == NULL) {
        free(value);
        return false;
    }
    c->entries = more;
    char *copy = strdup(key);
    c->entries[c->count++] = (struct entry){.key = copy, .value = value};
    return copy != NULL;
}

// scalar returns the text of a value: a string as it is, anything else as JSON has it.
static char *scalar(const struct json *doc, json_place at) {
    return json_is(doc, at, JSON_STRING) ? json_text(doc, at) : json_raw(doc, at);
}

// joined returns the elements of an array with commas between them.
static char *joined(const struct json *doc, json_place array) {
    struct text t = {0};
    text_put(&t, "");
    for (json_place at = json_first(doc, array), first = at; at != JSON_NONE; at = json_next(doc, array, at)) {
        char *element = scalar(doc, at);
        if (at != first) text_put(&t, ",");
        if (element != NULL) text_put(&t, element);
        t.failed = t.failed || element == NULL;
        free(element);
    }
    if (!t.failed) return t.at;
    text_free(&t);
    return NULL;
}

// read_table adds the values of a table; keys of nested tables are joined with a dot.
static bool read_table(struct config *c, const struct json *doc, json_place table, const char *prefix, int depth) {
    bool ok = depth < TABLES_MAX;
    for (json_place key = json_first(doc, table), value; ok && key != JSON_NONE; key = json_next(doc, table, value)) {
        value = json_next(doc, table, key);
        struct text name = {0};
        char *last = json_text(doc, key);
        text_put(&name, prefix);
        text_put(&name, last != NULL ? last : "");
        if (json_is(doc, value, JSON_OBJECT)) text_put(&name, ".");
        ok = last != NULL && !name.failed;
        free(last);
        if (ok && json_is(doc, value, JSON_OBJECT)) {
            ok = read_table(c, doc, value, name.at, depth + 1);
        } else if (ok && !json_is(doc, value, JSON_NULL)) {
            ok = add_entry(c, name.at, json_is(doc, value, JSON_ARRAY) ? joined(doc, value) : scalar(doc, value));
        }
        text_free(&name);
    }
    return ok;
}

static bool read_grants(struct config *c, const struct json *doc, json_place grants) {
    for (json_place slot = json_first(doc, grants), list; slot != JSON_NONE; slot = json_next(doc, grants, list)) {
        list = json_next(doc, grants, slot);
        for (json_place at = json_first(doc, list); at != JSON_NONE; at = json_next(doc, list, at)) {
            struct grant *more = realloc(c->grants, (c->grant_count + 1) * sizeof *more);
            if (more == NULL) return false;
            c->grants = more;
            more += c->grant_count++;
            *more = (struct grant){.slot = json_text(doc, slot), .column = json_text(doc, at)};
            if (more->slot == NULL || more->column == NULL) return false;
        }
    }
    return true;
}

static const char *or_empty(const char *s) { return s != NULL ? s : ""; }

static bool read_document(struct config *c, const struct json *doc) {
    json_place run = json_get(doc, 0, "run");
    uint64_t id = 0;
    json_u64(doc, json_get(doc, 0, "id"), &id);
    json_u64(doc, json_get(doc, 0, "holder"), &c->holder);
    json_i64(doc, json_get(doc, 0, "index"), &c->identity.index);
    json_i64(doc, json_get(doc, 0, "count"), &c->identity.count);
    json_place seed = json_get(doc, run, "seed");
    bool has_seed = json_decimal(doc, seed, &c->identity.seed) || seed == JSON_NONE || json_is(doc, seed, JSON_NULL);
    c->name = json_text(doc, json_get(doc, 0, "name"));
    c->kind = json_text(doc, json_get(doc, 0, "kind"));
    c->level = json_text(doc, json_get(doc, 0, "log_level"));
    c->run_name = json_text(doc, json_get(doc, run, "name"));
    c->run_dir = json_text(doc, json_get(doc, run, "dir"));
    c->check_only = json_true(doc, json_get(doc, 0, "check_only"));
    c->identity.id = (uint32_t)id;
    c->identity.synchronous = json_true(doc, json_get(doc, run, "synchronous"));
    c->identity.name = or_empty(c->name);
    c->identity.kind = or_empty(c->kind);
    c->identity.run_name = or_empty(c->run_name);
    c->identity.run_dir = or_empty(c->run_dir);
    return read_grants(c, doc, json_get(doc, 0, "grants")) && read_table(c, doc, json_get(doc, 0, "config"), "", 0) && has_seed && id <= UINT16_MAX && c->holder <= RLH_MAX_HOLDER;
}

int rlh_host_configure(rlh_host *host, const char *json, size_t len) {
    struct json doc;
    if (!json_parse(&doc, json, len)) return RLH_ERR_INVALID;
    struct config *c = calloc(1, sizeof *c);
    bool ok = c != NULL && json_is(&doc, 0, JSON_OBJECT) && read_document(c, &doc);
    json_free(&doc);
    if (!ok) {
        config_free(c);
        return RLH_ERR_INVALID;
    }
    config_free(host->config);
    host->config = c;
    return RLH_OK;
}

const rlh_identity *rlh_identify(rlh_host *host) {
    static const rlh_identity nobody = {.name = "", .kind = "", .run_name = "", .run_dir = ""};
    return host->config != NULL ? &host->config->identity : &nobody;
}

uint32_t config_holder(const rlh_host *host) { return (uint32_t)host->config->holder; }
bool config_check_only(const rlh_host *host) { return host->config->check_only; }
const char *config_level(const rlh_host *host) { return host->config != NULL ? or_empty(host->config->level) : ""; }

const char *rlh_config(rlh_host *host, const char *key) {
    struct config *c = host->config;
    for (size_t i = 0; c != NULL && i < c->count; i++) {
        if (strcmp(c->entries[i].key, key) != 0) continue;
        c->entries[i].asked = true;
        return c->entries[i].value;
    }
    return NULL;
}

int rlh_lease_writable(rlh_host *host, const char *slot, const char *column, rlh_handle h, void **bytes) {
    const struct config *c = host->config;
    for (size_t i = 0; c != NULL && i < c->grant_count; i++) {
        if (strcmp(c->grants[i].slot, slot) != 0 || strcmp(c->grants[i].column, column) != 0) continue;
        rlh_arena *arena = rlh_arena_of(host, h);
        const void *at = NULL;
        int err = arena == NULL ? RLH_ERR_FOREIGN : arena->info.read_only ? RLH_ERR_READ_ONLY : rlh_lease(arena, h, &at);
        if (err == RLH_OK) *bytes = (void *)(uintptr_t)at;
        return err;
    }
    const char *name = rlh_identify(host)->name; // "[i]" at its end stands for the instance
    int owner = (int)strcspn(name, "[");
    struct text t = {0};
    text_format(&t, "E038 slot %.*s.%s: may not write %s: no wire grants it; add write = [\"%s\"] to each [[wire]] with slot = \"%.*s.%s\"",
                owner, name, slot, column, column, owner, name, slot);
    wire_refused(host, t.at);
    return RLH_ERR_REFUSED;
}

void rlh_config_error(rlh_host *host, const char *key, const char *reason, const char *help, const char *code) {
    if (host->config == NULL) return;
    struct text *t = &host->config->errors;
    text_put(t, host->config->wrong ? ",{\"key\":" : "{\"key\":");
    text_quote(t, key);
    text_put(t, ",\"reason\":");
    text_quote(t, reason);
    text_put(t, ",\"help\":");
    text_quote(t, or_empty(help));
    text_put(t, ",\"code\":");
    text_quote(t, or_empty(code));
    text_put(t, "}");
    host->config->wrong = true;
}

void config_finish(rlh_host *host, struct text *reply) {
    struct config *c = host->config;
    for (size_t i = 0; i < c->count; i++) {
        if (!c->entries[i].asked) rlh_config_error(host, c->entries[i].key, "is not a key of this component", NULL, NULL);
    }
    text_put(reply, "{\"errors\":[");
    if (c->wrong) text_add(reply, c->errors.at, c->errors.len);
    text_put(reply, "],\"flow\":null,");
    reply->failed = reply->failed || c->errors.failed;
}

bool config_wrong(const rlh_host *host) { return host->config->wrong; }

static int wrong_value(rlh_host *host, const char *key, const char *value, const char *want) {
    char reason[160];
    snprintf(reason, sizeof reason, "is \"%.64s\", want %s", value, want);
    rlh_config_error(host, key, reason, NULL, NULL);
    return RLH_ERR_INVALID;
}

int rlh_config_int(rlh_host *host, const char *key, int64_t *value) {
    const char *s = rlh_config(host, key);
    if (s == NULL) return RLH_OK;
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (errno != 0 || end == s || *end != 0) return wrong_value(host, key, s, "an integer");
    *value = v;
    return RLH_OK;
}

int rlh_config_float(rlh_host *host, const char *key, double *value) {
    const char *s = rlh_config(host, key);
    if (s == NULL) return RLH_OK;
    char *end;
    errno = 0;
    double v = strtod(s, &end);
    if (errno == ERANGE || end == s || *end != 0 || v != v || v - v != 0) return wrong_value(host, key, s, "a number");
    *value = v;
    return RLH_OK;
}

int rlh_config_bool(rlh_host *host, const char *key, int *value) {
    const char *s = rlh_config(host, key);
    if (s == NULL) return RLH_OK;
    if (strcmp(s, "true") != 0 && strcmp(s, "false") != 0) return wrong_value(host, key, s, "true or false");
    *value = s[0] == 't';
    return RLH_OK;
}
