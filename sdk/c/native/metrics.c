// Metrics: counters, gauges and histograms by name, sent to the host now and then by the wire's thread.
#include "internal.h"
#include "json.h"

#include <math.h>

enum {
    METRICS_MAX = 256,
    NAME_MAX_BYTES = 95,
    OBSERVATIONS_MAX = 2000, // between two frames, all histograms together; a frame holds no more
};

enum metric_kind { COUNTER, GAUGE, HISTOGRAM };

struct metric {
    char name[NAME_MAX_BYTES + 1];
    enum metric_kind kind;
    uint64_t count;
    double value;
    double *observed; // since the last frame
    size_t observed_count, observed_room;
};

struct metrics {
    pthread_mutex_t sending; // before mutex: frames leave in the order in which they were made
    pthread_mutex_t mutex;
    struct metric all[METRICS_MAX];
    size_t count, observed;
    bool changed;
};

struct metrics *metrics_new(void) {
    struct metrics *m = calloc(1, sizeof *m);
    if (m == NULL) return NULL;
    pthread_mutex_init(&m->sending, NULL);
    pthread_mutex_init(&m->mutex, NULL);
    return m;
}

void metrics_free(struct metrics *m) {
    if (m == NULL) return;
    for (size_t i = 0; i < m->count; i++) free(m->all[i].observed);
    pthread_mutex_destroy(&m->mutex);
    pthread_mutex_destroy(&m->sending);
    free(m);
}

// is_name reports whether a name is short enough for a frame with the most metrics.
static bool is_name(const char *name) {
    size_t n = 0;
    for (; name[n] != 0; n++) {
        if (n == NAME_MAX_BYTES || (unsigned char)name[n] < 0x20) return false;
    }
    return n > 0;
}

// find returns the metric of a name and kind, creating it if needed, or NULL. The caller holds the mutex.
static struct metric *find(struct metrics *m, const char *name, enum metric_kind kind) {
    for (size_t i = 0; i < m->count; i++) {
        if (m->all[i].kind == kind && strcmp(m->all[i].name, name) == 0) return &m->all[i];
    }
    if (m->count == METRICS_MAX || !is_name(name)) return NULL;
    struct metric *new = &m->all[m->count++];
    *new = (struct metric){.kind = kind};
    memcpy(new->name, name, strlen(name));
    return new;
}

void rlh_count(rlh_host *host, const char *name, uint64_t add) {
    struct metrics *m = host->metrics;
    pthread_mutex_lock(&m->mutex);
    struct metric *x = find(m, name, COUNTER);
    if (x != NULL) {
        x->count += add;
        m->changed = true;
    }
    pthread_mutex_unlock(&m->mutex);
}

void rlh_gauge(rlh_host *host, const char *name, double value) {
    struct metrics *m = host->metrics;
    pthread_mutex_lock(&m->mutex);
    struct metric *x = isfinite(value) ? find(m, name, GAUGE) : NULL;
    if (x != NULL) {
        x->value = value;
        m->changed = true;
    }
    pthread_mutex_unlock(&m->mutex);
}

// has_room makes room for one more observation of x and reports whether it could.
static bool has_room(const struct metrics *m, struct metric *x) {
    if (m->observed == OBSERVATIONS_MAX) return false;
    if (x->observed_count < x->observed_room) return true;
    size_t room = x->observed_room == 0 ? 16 : 2 * x->observed_room;
    double *more = realloc(x->observed, room * sizeof *more);
    if (more == NULL) return false;
    x->observed = more;
    x->observed_room = room;
    return true;
}

void rlh_observe(rlh_host *host, const char *name, double value) {
    struct metrics *m = host->metrics;
    pthread_mutex_lock(&m->mutex);
    struct metric *x = isfinite(value) ? find(m, name, HISTOGRAM) : NULL;
    if (x != NULL && has_room(m, x)) {
        x->observed[x->observed_count++] = value;
        m->observed++;
        m->changed = true;
    }
    pthread_mutex_unlock(&m->mutex);
}

static void write_value(struct text *t, struct metric *x) {
    switch (x->kind) {
    case COUNTER: text_format(t, "%llu", (unsigned long long)x->count); break;
    case GAUGE: text_format(t, "%.17g", x->value); break;
    case HISTOGRAM:
        for (size_t i = 0; i < x->observed_count; i++) text_format(t, "%s%.17g", i == 0 ? "[" : ",", x->observed[i]);
        text_put(t, "]");
        x->observed_count = 0;
        break;
    }
}

// write_kind adds all metrics of one kind as an object of the frame.
static void write_kind(struct text *t, struct metrics *m, enum metric_kind kind, const char *key) {
    size_t n = 0;
    for (size_t i = 0; i < m->count; i++) {
        struct metric *x = &m->all[i];
        if (x->kind != kind || (kind == HISTOGRAM && x->observed_count == 0)) continue;
        text_format(t, "%s", n++ == 0 ? "" : ",");
        if (n == 1) text_format(t, "%s\"%s\":{", t->at[t->len - 1] == '{' ? "" : ",", key);
        text_quote(t, x->name);
        text_put(t, ":");
        write_value(t, x);
    }
    if (n > 0) text_put(t, "}");
}

// write_frame writes the metrics that have changed and reports whether there are any.
static bool write_frame(struct text *t, struct metrics *m) {
    pthread_mutex_lock(&m->mutex);
    bool changed = m->changed;
    m->changed = false;
    m->observed = 0;
    text_put(t, "{\"stats\":{");
    if (changed && !t->failed) {
        write_kind(t, m, COUNTER, "counters");
        write_kind(t, m, GAUGE, "gauges");
        write_kind(t, m, HISTOGRAM, "histograms");
    }
    text_put(t, "}}");
    pthread_mutex_unlock(&m->mutex);
    return changed;
}

void metrics_send(rlh_host *host) {
    struct text t = {0};
    pthread_mutex_lock(&host->metrics->sending);
    if (write_frame(&t, host->metrics)) {
        wire_send_text(host, &t, -1);
    } else {
        text_free(&t);
    }
    pthread_mutex_unlock(&host->metrics->sending);
}
