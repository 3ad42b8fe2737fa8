// The configuration: what the host tells an instance of a component, and what is wrong with its table.
#include "internal.h"
#include "json.h"
#include "service.h"

#include <errno.h>

struct entry {
    char *key, *value;
    bool asked;
};

struct config {
    rlh_identity identity;
    char *name, *kind, *run_name, *run_dir, *level;
    struct entry *entries;
    size_t count;
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

// read_lines splits "key=value\n" lines; what follows a line break within a value is lost.
static bool read_lines(struct config *c, char *lines) {
    size_t count = 0;
    for (const char *s = lines; *s != 0; s++) count += *s == '\n';
    c->entries = calloc(count + 1, sizeof *c->entries);
    if (c->entries == NULL) return false;
    for (char *line = lines, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = 0;
        char *equals = strchr(line, '=');
        if (equals == NULL) continue;
        struct entry *e = &c->entries[c->count++];
        e->key = strndup(line, (size_t)(equals - line));
        e->value = strdup(equals + 1);
        if (e->key == NULL || e->value == NULL) return false;
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
    json_u64(doc, json_get(doc, run, "seed"), &c->identity.seed);
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
    char *lines = json_text(doc, json_get(doc, 0, "lines"));
    bool ok = lines == NULL || read_lines(c, lines);
    free(lines);
    return ok && id <= UINT16_MAX && c->holder <= RLH_MAX_HOLDER;
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
    text_put(reply, "],\"flow\":null}");
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
