// The component's life: what each control call means for the instance.
#ifndef RLH_NO_CONTROL
#include "service.h"

enum { STATE_WAIT = 30 }; // seconds; the state was sent before the call

static void refuse(struct call *c, int code, const char *message) {
    c->code = code;
    snprintf(c->message, sizeof c->message, "%s", message);
}

bool service_takes_failure(struct service *s, const char *reason) {
    if (!pthread_equal(pthread_self(), s->main) || !s->in_call) return false;
    snprintf(s->failure, sizeof s->failure, "%s", reason);
    return true;
}

void service_failed(struct service *s) { __atomic_store_n(&s->failed, true, __ATOMIC_SEQ_CST); }

// judge answers the call with the result of a callback, or with the text of rlh_fail.
static bool judge(struct service *s, struct call *c, int err) {
    s->in_call = false;
    if (err == RLH_OK && s->failure[0] == 0) return true;
    refuse(c, RLH_CODE_FAILED, s->failure[0] != 0 ? s->failure : rlh_strerror(err));
    return false;
}

static void enter(struct service *s) {
    s->in_call = true;
    s->failure[0] = 0;
}

// ---- Describe

static void write_port(struct text *t, const rlh_port *p, bool first) {
    text_put(t, first ? "{\"name\":" : ",{\"name\":");
    text_quote(t, p->name);
    text_put(t, ",\"payload\":");
    text_quote(t, p->payload);
    text_put(t, ",\"doc\":");
    text_quote(t, p->doc != NULL ? p->doc : "");
    char schema[48];
    snprintf(schema, sizeof schema, ",\"schema\":\"%llu\"}", (unsigned long long)p->schema);
    text_put(t, p->on_loan ? ",\"on_loan\":true" : ",\"on_loan\":false");
    text_put(t, schema);
}

static void write_ports(struct text *t, const rlh_component *k) {
    text_put(t, "\"signals\":[");
    for (size_t i = 0; i < k->signal_count; i++) write_port(t, &k->signals[i], i == 0);
    text_put(t, "],\"slots\":[");
    for (size_t i = 0; i < k->slot_count; i++) write_port(t, &k->slots[i].port, i == 0);
    text_put(t, "]}");
}

static void write_kind(struct text *t, const rlh_component *k, bool first) {
    text_put(t, first ? "{\"name\":" : ",{\"name\":");
    text_quote(t, k->kind);
    text_put(t, ",\"doc\":");
    text_quote(t, k->doc != NULL ? k->doc : "");
    text_put(t, ",");
    requests_write(t, k);
    text_put(t, ",");
    write_ports(t, k);
}

static void describe(struct service *s, struct call *c) {
    bool saves = false;
    for (size_t i = 0; i < s->kind_count; i++) saves = saves || s->kinds[i].snapshot != NULL;
    struct text *t = &c->reply;
    text_put(t, "{\"abi\":\"" RLH_ABI "\",\"sdk\":\"" RLH_SDK "\",\"capabilities\":[");
    if (saves) text_put(t, "\"" RLH_CAP_SNAPSHOT "\"");
    text_put(t, "],\"kinds\":[");
    for (size_t i = 0; i < s->kind_count; i++) write_kind(t, &s->kinds[i], i == 0);
    text_put(t, "]}");
}

// ---- Configure, Start, Stop

void rlh_set_ports(rlh_host *host, const rlh_port *signals, size_t signal_count, const rlh_slot *slots, size_t slot_count) {
    struct service *s = host->service;
    if (s == NULL || s->kind == NULL || s->life != DESCRIBED) return;
    s->configured.signals = signals;
    s->configured.signal_count = signal_count;
    s->configured.slots = slots;
    s->configured.slot_count = slot_count;
}

static const rlh_component *find_kind(const struct service *s, const char *name) {
    for (size_t i = 0; i < s->kind_count; i++) {
        if (strcmp(s->kinds[i].kind, name) == 0) return &s->kinds[i];
    }
    return NULL;
}

static void forget(struct service *s) {
    free(s->self);
    s->self = NULL;
    s->kind = NULL;
    s->life = DESCRIBED;
    memset(s->timers, 0, sizeof s->timers);
    memset(s->asked, 0, sizeof s->asked);
}

static void configure(struct service *s, struct call *c) {
    if (s->life > CONFIGURED) {
        refuse(c, RLH_CODE_ORDER, "the component has been started");
        return;
    }
    forget(s);
    if (rlh_host_configure(s->host, c->request, c->len) != RLH_OK) {
        refuse(c, RLH_CODE_INVALID, "the configuration makes no sense");
        return;
    }
    const rlh_component *kind = find_kind(s, rlh_identify(s->host)->kind);
    if (kind == NULL) {
        snprintf(c->message, sizeof c->message, "this plugin has no kind \"%.64s\"", rlh_identify(s->host)->kind);
        c->code = RLH_CODE_INVALID;
        return;
    }
    s->configured = *kind;
    s->kind = &s->configured;
    s->self = calloc(1, s->kind->self_bytes > 0 ? s->kind->self_bytes : 1);
    if (s->self == NULL) {
        refuse(c, RLH_CODE_FAILED, "out of memory");
        return;
    }
    enter(s);
    int err = s->kind->configure != NULL ? s->kind->configure(s->host, s->self) : RLH_OK;
    if (config_wrong(s->host)) err = RLH_OK; // configure has reported the errors
    if (!judge(s, c, err)) return;
    config_finish(s->host, &c->reply);
    write_ports(&c->reply, s->kind);
    s->life = config_wrong(s->host) || config_check_only(s->host) ? DESCRIBED : CONFIGURED;
}

static void start(struct service *s, struct call *c) {
    if (s->life != CONFIGURED) {
        refuse(c, RLH_CODE_ORDER, "the component is not configured");
        return;
    }
    int err = rlh_host_bind(s->host, config_holder(s->host), rlh_identify(s->host)->id, s->kind->signals,
                            s->kind->signal_count, s->kind->slot_count);
    if (err != RLH_OK) {
        refuse(c, RLH_CODE_INVALID, "the configuration names no holder");
        return;
    }
    wire_drain(s->host);
    enter(s);
    s->life = STARTED; // stop releases its resources, also if start fails
    if (s->kind->start != NULL) err = s->kind->start(s->host, s->self);
    if (judge(s, c, err)) text_put(&c->reply, "{}");
}

void service_stop(struct service *s) {
    if (s->life == STARTED && s->kind->stop != NULL) s->kind->stop(s->host, s->self);
    if (s->life == STARTED) metrics_send(s->host);
    forget(s);
    s->life = STOPPED;
}

static void stop(struct service *s, struct call *c) {
    enter(s);
    service_stop(s);
    if (judge(s, c, RLH_OK)) text_put(&c->reply, "{}");
}

// ---- Snapshot, Restore

int rlh_state_put(rlh_host *host, const void *bytes, size_t n) {
    if (host->service == NULL) return RLH_ERR_INVALID;
    text_add(&host->service->state, bytes, n);
    return host->service->state.failed ? RLH_ERR_MEMORY : RLH_OK;
}

static bool can_be_saved(const struct service *s, struct call *c, bool has) {
    if (s->life != STARTED) {
        refuse(c, RLH_CODE_ORDER, "the component does not run");
        return false;
    }
    if (has) return true;
    snprintf(c->message, sizeof c->message, "components of kind \"%s\" cannot be saved", s->kind->kind);
    c->code = RLH_CODE_UNSUPPORTED;
    return false;
}

static void snapshot(struct service *s, struct call *c) {
    if (!can_be_saved(s, c, s->kind != NULL && s->kind->snapshot != NULL)) return;
    uint32_t kept = s->in_slot ? s->kept : rlh_kept(s->host);
    if (kept > 0) {
        snprintf(c->message, sizeof c->message, "it keeps blocks (%u), which are no part of a state", kept);
        c->code = RLH_CODE_UNSUPPORTED;
        return;
    }
    text_free(&s->state);
    enter(s);
    int err = s->kind->snapshot(s->host, s->self);
    if (!judge(s, c, err)) return;
    rlh_acknowledge(s->host); // the messages in the state are finished
    metrics_send(s->host);
    uint64_t call = __atomic_add_fetch(&s->host->calls, 1, __ATOMIC_SEQ_CST);
    err = s->state.failed ? RLH_ERR_MEMORY : rlh_state_send(s->host, call, s->state.at, s->state.len);
    if (err != RLH_OK) {
        refuse(c, RLH_CODE_FAILED, rlh_strerror(err));
    } else {
        text_format(&c->reply, "{\"call\":%llu,\"bytes\":%zu}", (unsigned long long)call, s->state.len);
    }
    text_free(&s->state);
}

static void restore(struct service *s, struct call *c) {
    if (!can_be_saved(s, c, s->kind != NULL && s->kind->restore != NULL)) return;
    struct json doc;
    uint64_t call = 0;
    bool ok = json_parse(&doc, c->request, c->len) && json_u64(&doc, json_get(&doc, 0, "call"), &call);
    json_free(&doc);
    if (!ok) {
        refuse(c, RLH_CODE_INVALID, "no call is named");
        return;
    }
    void *bytes;
    size_t n;
    int err = rlh_state_take(s->host, call, &bytes, &n, STATE_WAIT * INT64_C(1000000000));
    if (err != RLH_OK) {
        refuse(c, RLH_CODE_FAILED, err == RLH_ERR_TIMEOUT ? "the state did not come" : rlh_strerror(err));
        return;
    }
    enter(s);
    err = s->kind->restore(s->host, s->self, bytes, n);
    free(bytes);
    if (judge(s, c, err)) text_put(&c->reply, "{}");
}

void service_call(struct service *s, struct call *c) {
    static const struct {
        const char *method;
        void (*run)(struct service *, struct call *);
    } methods[] = {
        {RLH_METHOD_DESCRIBE, describe}, {RLH_METHOD_CONFIGURE, configure}, {RLH_METHOD_START, start},
        {RLH_METHOD_SNAPSHOT, snapshot}, {RLH_METHOD_RESTORE, restore},     {RLH_METHOD_STOP, stop},
    };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (strcmp(methods[i].method, c->method) != 0) continue;
        methods[i].run(s, c);
        return;
    }
    refuse(c, RLH_CODE_UNSUPPORTED, "this plugin has no such method");
}
#else
typedef int rlh_no_component; // a file needs a declaration
#endif
