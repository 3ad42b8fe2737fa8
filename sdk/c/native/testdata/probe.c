// The probe of the runtimes' conformance suite, in C: a component that follows its messages. The same one in Go, and
// the meaning of each message, is plugins/plugintest/probe.go.
#define _POSIX_C_SOURCE 200809L // nanosleep
#include "../rlhost.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NUMBERS, BLOCKS, ANSWERS, ASKS }; // signals
enum { LISTED_MAX = 4096, FIXED_SLOTS = 4, INPUTS_MAX = 8 };
enum {
    ECHO, COUNT, ADD, MAKE, ABORT, RELEASE, LEASE, STOP, BOUNDARY, FAIL, STAT, LOG, BURST, ASK, REPLY, HISTORY, SLEEP,
    EXIT, CONFIG, KEEP, PAIR,
};
enum { SUM, HOLD, PASS, TWICE }; // of on_block
enum { LATE = 1, LOST = 99 };    // of on_ask

struct probe {
    int64_t scale, blocks, block_bytes, nested, inputs;
    int fail_start;
    const char *label;
    rlh_arena *arena;
    uint64_t numbers, sum;
    float history[4];
    rlh_handle leases[LISTED_MAX], kept[LISTED_MAX], asked[LISTED_MAX];
    rlh_message held[LISTED_MAX]; // unanswered requests
    rlh_slot slots[FIXED_SLOTS + INPUTS_MAX];
    char names[INPUTS_MAX][16];
    size_t lease_count, kept_count, asked_count, held_count;
};

// must fails the component where a call should have worked.
static void must(rlh_host *host, int err) {
    if (err != RLH_OK) rlh_fail(host, "probe: %s", rlh_strerror(err));
}

static void say(rlh_host *host, rlh_message m) { must(host, rlh_emit(host, NUMBERS, &m)); }

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double from_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static size_t bytes_of(rlh_arena *a) { return rlh_arena_get_info(a)->block_bytes; }

static uint64_t sum_of(rlh_arena *a, const void *block) {
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes_of(a); i++) sum += ((const unsigned char *)block)[i];
    return sum;
}

// ---- life

static void want_between(rlh_host *host, const char *key, int64_t *value, int64_t low, int64_t high) {
    if (rlh_config_int(host, key, value) != RLH_OK || (*value >= low && *value <= high)) return;
    char reason[100];
    snprintf(reason, sizeof reason, "is %lld, want %lld to %lld", (long long)*value, (long long)low, (long long)high);
    rlh_config_error(host, key, reason, NULL, NULL);
}

static int start(rlh_host *host, void *self) {
    struct probe *p = self;
    if (p->fail_start) {
        rlh_fail(host, "told to fail");
        return RLH_ERR_REFUSED;
    }
    int err = rlh_add_arena(host, &p->arena, "probe", (uint32_t)p->blocks, (size_t)p->block_bytes, NULL);
    if (err == RLH_ERR_REFUSED) rlh_fail(host, "%s", rlh_reason(host));
    return err;
}

static void stop(rlh_host *host, void *self) {
    struct probe *p = self;
    for (size_t i = 0; i < p->lease_count; i++) must(host, rlh_release(rlh_arena_of(host, p->leases[i]), p->leases[i]));
    for (size_t i = 0; i < p->kept_count; i++) must(host, rlh_abort(p->arena, p->kept[i]));
    for (size_t i = 0; i < p->asked_count; i++) must(host, rlh_abort(p->arena, p->asked[i]));
}

struct state {
    uint64_t numbers, sum;
    float history[4];
};

static int snapshot(rlh_host *host, void *self) {
    struct probe *p = self;
    struct state s = {p->numbers, p->sum, {p->history[0], p->history[1], p->history[2], p->history[3]}};
    int err = rlh_state_put(host, &s, sizeof s);
    return err != RLH_OK ? err : rlh_state_put(host, p->label, strlen(p->label));
}

static int restore(rlh_host *host, void *self, const void *state, size_t n) {
    struct probe *p = self;
    struct state s;
    if (n != sizeof s + strlen(p->label) || memcmp((const char *)state + sizeof s, p->label, strlen(p->label)) != 0) {
        rlh_fail(host, "the saved state is not that of a probe with the label \"%s\"", p->label);
        return RLH_ERR_INVALID;
    }
    memcpy(&s, state, sizeof s);
    p->numbers = s.numbers;
    p->sum = s.sum;
    memcpy(p->history, s.history, sizeof p->history);
    return RLH_OK;
}

// ---- on_number

// finish commits a block, emits it and releases its own claim.
static void finish(rlh_host *host, struct probe *p, rlh_handle h, rlh_message m, uint64_t x) {
    int err = rlh_commit(p->arena, h);
    m.handle = h;
    m.inline_[0] = x;
    m.inline_[1] = (uint64_t)p->block_bytes;
    if (err == RLH_OK) err = rlh_emit(host, BLOCKS, &m);
    if (err == RLH_OK) err = rlh_release(p->arena, h);
    must(host, err);
}

static void make(rlh_host *host, struct probe *p, const rlh_message *m) {
    uint64_t n = m->inline_[1] > 0 ? m->inline_[1] : 1;
    for (uint64_t k = 0; k < n; k++) {
        rlh_handle h;
        void *bytes;
        if (rlh_loan(p->arena, &h, &bytes) != RLH_OK) {
            rlh_message none = *m;
            none.t = 1;
            say(host, none);
            return;
        }
        for (size_t i = 0; i < bytes_of(p->arena); i++) ((unsigned char *)bytes)[i] = (unsigned char)(m->inline_[0] + i);
        finish(host, p, h, *m, m->inline_[0]);
    }
}

static uint64_t abort_one(rlh_host *host, struct probe *p) {
    rlh_handle h;
    void *bytes;
    if (rlh_loan(p->arena, &h, &bytes) != RLH_OK) return 0;
    *(char *)bytes = 1;
    must(host, rlh_abort(p->arena, h));
    return 1;
}

static uint64_t keep(struct probe *p) {
    if (p->kept_count == LISTED_MAX || rlh_loan(p->arena, &p->kept[p->kept_count], NULL) != RLH_OK) return 0;
    p->kept_count++;
    return 1;
}

static void hold(struct probe *p, rlh_handle h) {
    if (p->lease_count < LISTED_MAX) p->leases[p->lease_count++] = h;
}

static uint64_t lease(rlh_host *host, struct probe *p, rlh_handle h, bool keeps) {
    rlh_arena *a = rlh_arena_of(host, h);
    switch (a != NULL ? rlh_retain(a, h) : RLH_ERR_FOREIGN) {
    case RLH_OK:
        if (keeps) {
            hold(p, h);
        } else {
            must(host, rlh_release(a, h));
        }
        return 0;
    case RLH_ERR_FOREIGN: return 2;
    case RLH_ERR_RANGE: return 3;
    case RLH_ERR_STATE: return 4;
    default: return 1;
    }
}

static void release_all(rlh_host *host, struct probe *p, rlh_message m) {
    m.handle = 0;
    m.inline_[0] = m.inline_[1] = 0;
    if (p->lease_count == 0) say(host, m);
    for (size_t i = 0; i < p->lease_count; i++) {
        rlh_handle h = p->leases[i];
        rlh_arena *a = rlh_arena_of(host, h);
        const void *bytes;
        int err = rlh_lease(a, h, &bytes);
        if (err == RLH_OK) {
            m.inline_[0] = sum_of(a, bytes);
            err = rlh_release(a, h);
        }
        m.inline_[1] = h;
        must(host, err);
        must(host, rlh_release(a, h));
        say(host, m);
    }
    p->lease_count = 0;
}

static void ask(rlh_host *host, struct probe *p, rlh_message m) {
    rlh_handle h;
    void *bytes;
    if (p->asked_count == LISTED_MAX || rlh_loan(p->arena, &h, &bytes) != RLH_OK) {
        m.t = 1;
        say(host, m);
        return;
    }
    const uint64_t words[2] = {m.inline_[0], 0};
    memcpy(bytes, words, sizeof words);
    p->asked[p->asked_count++] = h;
    m.handle = h;
    must(host, rlh_emit(host, ASKS, &m));
}

static void answer(rlh_host *host, const rlh_message *m) {
    rlh_arena *a = rlh_arena_of(host, m->handle);
    void *bytes;
    if (a == NULL || bytes_of(a) < 16 || rlh_loaned(a, m->handle, &bytes) != RLH_OK) {
        rlh_message lost = *m;
        lost.handle = 0;
        lost.kind = LOST;
        say(host, lost);
        return;
    }
    uint64_t words[2];
    memcpy(words, bytes, sizeof words);
    words[1] = 2 * words[0] + 1;
    memcpy(bytes, words, sizeof words);
    must(host, rlh_emit(host, ANSWERS, m));
}

static uint64_t answer_all(rlh_host *host, struct probe *p) {
    uint64_t n = p->held_count;
    for (size_t i = 0; i < n; i++) answer(host, &p->held[i]);
    p->held_count = 0;
    return n;
}

static void burst(rlh_host *host, rlh_message m) {
    uint32_t n = (uint32_t)m.inline_[0];
    for (m.t = 0; m.t < n; m.t++) say(host, m);
}

static void sleep_ms(uint64_t ms) {
    struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

static void measure(rlh_host *host, const rlh_message *m) {
    double x = from_bits(m->inline_[1]);
    rlh_count(host, "probe/told", m->inline_[0]);
    rlh_gauge(host, "probe/gauge", x);
    rlh_observe(host, "probe/histogram", x);
}

static rlh_message describe_config(rlh_host *host, const struct probe *p, rlh_message m) {
    const rlh_identity *me = rlh_identify(host);
    m.inline_[0] = (uint64_t)p->scale;
    m.inline_[1] = (uint64_t)p->nested;
    m.t = (uint32_t)strlen(p->label);
    m.split = (uint32_t)me->index;
    m.policy_version = me->seed;
    return m;
}

static void on_number(rlh_host *host, void *self, const rlh_message *m) {
    struct probe *p = self;
    uint64_t x = m->inline_[0];
    rlh_message copy = *m;
    p->numbers++;
    memmove(p->history, p->history + 1, 3 * sizeof *p->history);
    p->history[3] = (float)(x % 65536);
    switch (m->kind) {
    case ECHO: break;
    case COUNT: copy.inline_[0] = p->numbers; copy.inline_[1] = p->sum; break;
    case ADD: p->sum += x * (uint64_t)p->scale; return;
    case MAKE: make(host, p, m); return;
    case ABORT: copy.inline_[0] = abort_one(host, p); break;
    case RELEASE: release_all(host, p, copy); return;
    case LEASE: copy.inline_[1] = lease(host, p, x, false); break;
    case PAIR: copy.inline_[1] = lease(host, p, x, true); break;
    case STOP: must(host, rlh_stop_run(host, (int)x)); return;
    case BOUNDARY: must(host, rlh_boundary(host)); break;
    case FAIL: rlh_fail(host, "told to fail"); return;
    case STAT: measure(host, m); break;
    case LOG: rlh_log(host, RLH_WARN, "probe says %llu", (unsigned long long)x); return;
    case BURST: burst(host, copy); return;
    case ASK: ask(host, p, copy); return;
    case REPLY: copy.inline_[0] = answer_all(host, p); break;
    case HISTORY: copy.inline_[0] = bits_of((double)p->history[0]); copy.inline_[1] = bits_of((double)p->history[3]); break;
    case SLEEP: sleep_ms(x); break;
    case EXIT: _Exit((int)x);
    case CONFIG: copy = describe_config(host, p, copy); break;
    case KEEP: copy.inline_[0] = keep(p); break;
    default: return;
    }
    say(host, copy);
}

// ---- the other slots

static uint64_t sum_leased(rlh_host *host, rlh_handle h, bool twice) {
    rlh_arena *a = rlh_arena_of(host, h);
    const void *bytes;
    int err = a != NULL ? rlh_lease(a, h, &bytes) : RLH_ERR_FOREIGN;
    if (err == RLH_OK && twice) {
        err = rlh_lease(a, h, &bytes);
        must(host, rlh_release(a, h));
    }
    must(host, err);
    if (err != RLH_OK) return 0;
    uint64_t sum = sum_of(a, bytes);
    must(host, rlh_release(a, h));
    return sum;
}

static void on_block(rlh_host *host, void *self, const rlh_message *m) {
    struct probe *p = self;
    rlh_message copy = *m;
    rlh_arena *a = rlh_arena_of(host, m->handle);
    copy.handle = 0;
    copy.inline_[1] = m->handle;
    switch (m->kind) {
    case SUM: copy.inline_[0] = sum_leased(host, m->handle, false); break;
    case TWICE: copy.inline_[0] = sum_leased(host, m->handle, true); break;
    case HOLD:
        must(host, a != NULL ? rlh_retain(a, m->handle) : RLH_ERR_FOREIGN);
        hold(p, m->handle);
        copy.inline_[0] = p->lease_count;
        break;
    case PASS: must(host, rlh_emit(host, BLOCKS, m)); return;
    default: return;
    }
    say(host, copy);
}

static void on_ask(rlh_host *host, void *self, const rlh_message *m) {
    struct probe *p = self;
    if (m->kind == LATE && p->held_count < LISTED_MAX) {
        p->held[p->held_count++] = *m;
        return;
    }
    answer(host, m);
}

static void on_answer(rlh_host *host, void *self, const rlh_message *m) {
    struct probe *p = self;
    for (size_t i = 0; i < p->asked_count; i++) {
        if (p->asked[i] != m->handle) continue;
        memmove(p->asked + i, p->asked + i + 1, (--p->asked_count - i) * sizeof *p->asked);
        void *bytes;
        must(host, rlh_loaned(p->arena, m->handle, &bytes));
        uint64_t words[2];
        memcpy(words, bytes, sizeof words);
        rlh_message block = *m;
        block.kind = ASK;
        finish(host, p, m->handle, block, words[1]);
        return;
    }
}

// ---- ports

static const rlh_port signals[] = {
    {"numbers", "number", "what on_number was told to say", 0, 0x8000000000000005},
    {"blocks", "tensor", "blocks made and passed on", 0, 0},
    {"answers", "answer", "rows that others have asked about", 1, 0},
    {"asks", "ask", "a row of a block on loan", 1, 0},
};
static const rlh_slot fixed_slots[FIXED_SLOTS] = {
    {{"on_number", "number", "what to do", 0, 7}, on_number},
    {{"on_block", "tensor", "a block", 0, 0}, on_block},
    {{"on_ask", "ask", "a row to write", 0, 0}, on_ask},
    {{"on_answer", "answer", "the row is written", 0, 0}, on_answer},
};

static void on_input(rlh_host *host, void *self, const rlh_message *m) {
    (void)self;
    say(host, (rlh_message){.kind = m->kind, .t = m->slot - FIXED_SLOTS});
}

// set_inputs adds as many slots as the table says.
static void set_inputs(rlh_host *host, struct probe *p) {
    const char *carries = rlh_config(host, "carries");
    want_between(host, "inputs", &p->inputs, 0, INPUTS_MAX);
    if (p->inputs < 1 || p->inputs > INPUTS_MAX) return;
    memcpy(p->slots, fixed_slots, sizeof fixed_slots);
    for (int64_t i = 0; i < p->inputs; i++) {
        snprintf(p->names[i], sizeof p->names[i], "on_input_%lld", (long long)i);
        rlh_port port = {p->names[i], carries != NULL ? carries : "number", "says which input it is", 0, 0};
        p->slots[FIXED_SLOTS + i] = (rlh_slot){port, on_input};
    }
    rlh_set_ports(host, signals, sizeof signals / sizeof *signals, p->slots, FIXED_SLOTS + (size_t)p->inputs);
}

static int configure(rlh_host *host, void *self) {
    struct probe *p = self;
    p->scale = 1;
    p->blocks = 4;
    p->block_bytes = 4096;
    want_between(host, "scale", &p->scale, 1, 1000);
    p->label = rlh_config(host, "label");
    if (p->label == NULL) p->label = "";
    if (strcmp(p->label, "bad") == 0) rlh_config_error(host, "label", "is \"bad\"", "use another word", "E020");
    want_between(host, "blocks", &p->blocks, 1, 64);
    want_between(host, "block_bytes", &p->block_bytes, 64, 1 << 20);
    rlh_config_bool(host, "fail_start", &p->fail_start);
    rlh_config_int(host, "nested.value", &p->nested);
    set_inputs(host, p);
    return RLH_OK;
}

int main(void) {
    static const rlh_component probe = {
        .kind = "probe", .doc = "does as it is told", .signals = signals, .signal_count = 4, .slots = fixed_slots,
        .slot_count = FIXED_SLOTS, .self_bytes = sizeof(struct probe), .configure = configure, .start = start,
        .snapshot = snapshot, .restore = restore, .stop = stop,
    };
    return rlh_serve(&probe, 1);
}
