// The link: messages from and to the host.
//
// Each side counts the other's data messages that it has finished, and sends the count in the Ctl of every message. A
// message of its own carries it when the host keeps a claim for it, when there is nothing else to do, and when half a
// window is unacknowledged.
#include "internal.h"

enum {
    BATCH = 64,                 // messages taken out of the ring at once
    WAITING_MAX = 1 << 20,      // messages received and not handed out: a host that keeps its windows sends far fewer
    TELL_BEHIND = RLH_LINK_WINDOW / 2,
    ROOM_WAIT = 10 * 1000 * 1000, // nanoseconds between looks at the ring in while the ring out is full
};

// FLUSH ends a wait because another thread has left a message to send.
#define FLUSH (-1000)

int rlh_host_open(rlh_host **out, int wire_fd, int in_fd, int out_fd, const rlh_handlers *handlers) {
    rlh_host *host = calloc(1, sizeof *host);
    if (host == NULL) return RLH_ERR_MEMORY;
    if (handlers != NULL) host->handlers = *handlers;
    host->wire = wire_fd;
    host->quit = -1;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&host->answered, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&host->reading, NULL);
    pthread_mutex_init(&host->mutex, NULL);
    pthread_mutex_init(&host->out_mutex, NULL);
    int err = rlh_ring_attach(&host->in, in_fd, RLH_RING_MESSAGES, 0);
    if (err == RLH_OK) err = rlh_ring_attach(&host->out, out_fd, RLH_RING_MESSAGES, 0);
    if (err == RLH_OK) err = wire_open(host);
    if (err != RLH_OK) {
        rlh_host_close(host);
        return err;
    }
    *out = host;
    return RLH_OK;
}

void rlh_host_close(rlh_host *host) {
    if (host == NULL) return;
    wire_close(host);
    link_close(host);
    for (size_t id = 0; id <= RLH_MAX_ARENA; id++) rlh_arena_detach(host->arenas[id]);
    while (host->retired != NULL) {
        rlh_arena *older = host->retired->older;
        rlh_arena_detach(host->retired);
        host->retired = older;
    }
    rlh_ring_detach(host->in);
    rlh_ring_detach(host->out);
    config_free(host->config);
    pthread_mutex_destroy(&host->out_mutex);
    pthread_mutex_destroy(&host->mutex);
    pthread_mutex_destroy(&host->reading);
    pthread_cond_destroy(&host->answered);
    free(host);
}

int rlh_host_bind(rlh_host *host, uint32_t holder, uint32_t sender, const rlh_port *signals, size_t signal_count,
                  size_t slot_count) {
    if (holder < 1 || holder > RLH_MAX_HOLDER || sender > UINT16_MAX || host->bound) return RLH_ERR_INVALID;
    if (signal_count > RLH_LINK_CONTROL || slot_count > RLH_LINK_CONTROL) return RLH_ERR_INVALID;
    host->on_loan = calloc(signal_count + 1, sizeof *host->on_loan);
    host->sequences = calloc(signal_count + 1, sizeof *host->sequences);
    if (host->on_loan == NULL || host->sequences == NULL) return RLH_ERR_MEMORY;
    for (size_t i = 0; i < signal_count; i++) host->on_loan[i] = signals[i].on_loan != 0;
    host->signal_count = signal_count;
    host->slot_count = slot_count;
    host->sender = sender;
    pthread_mutex_lock(&host->reading); // so that no arena is attached meanwhile
    host->holder = holder;
    for (size_t id = 0; id <= RLH_MAX_ARENA; id++) {
        if (host->arenas[id] != NULL) arena_identify(host->arenas[id], holder);
    }
    pthread_mutex_unlock(&host->reading);
    host->bound = true;
    return RLH_OK;
}

void link_close(rlh_host *host) {
    for (; host->acked < host->sent; host->acked++) {
        rlh_handle h = host->claimed[host->acked % RLH_LINK_WINDOW];
        rlh_arena *a = h != 0 ? LOAD(&host->arenas[rlh_handle_arena(h)]) : NULL;
        if (a != NULL) unclaim(a, h);
    }
    free(host->on_loan);
    free(host->sequences);
    free(host->waiting);
    free(host->unsent);
}

// ---- out

// transmit puts a message into the ring if there is room. The caller holds out_mutex.
static int transmit(rlh_host *host, const rlh_message *m) {
    rlh_message copy = *m;
    copy.ctl = LOAD(&host->finished);
    int n = messages_try_put(host->out, &copy, 1);
    if (n == 1) {
        STORE(&host->told, copy.ctl);
        ring_has_put(host->out);
    }
    return n;
}

// flush puts the unsent messages and reports whether none is left. The caller holds out_mutex.
static bool flush(rlh_host *host) {
    size_t n = 0;
    while (n < host->unsent_count && transmit(host, &host->unsent[n]) == 1) n++;
    if (n > 0) {
        memmove(host->unsent, host->unsent + n, (host->unsent_count - n) * sizeof *host->unsent);
        STORE(&host->unsent_count, host->unsent_count - n);
    }
    return host->unsent_count == 0;
}

// send_soon puts a message or keeps it for the main thread to put. Any thread.
static int send_soon(rlh_host *host, const rlh_message *m) {
    int err = RLH_OK;
    pthread_mutex_lock(&host->out_mutex);
    int n = flush(host) ? transmit(host, m) : 0;
    if (n < 0) err = n;
    if (n == 0 && host->unsent_count == host->unsent_room) {
        size_t room = host->unsent_room == 0 ? 64 : 2 * host->unsent_room;
        rlh_message *more = realloc(host->unsent, room * sizeof *more);
        if (more == NULL) {
            err = RLH_ERR_MEMORY;
        } else {
            host->unsent = more;
            host->unsent_room = room;
        }
    }
    if (n == 0 && err == RLH_OK) {
        host->unsent[host->unsent_count] = *m;
        STORE(&host->unsent_count, host->unsent_count + 1);
    }
    pthread_mutex_unlock(&host->out_mutex);
    if (n == 0) rlh_ring_kick(host->in);
    return err;
}

void link_credit(void *user, rlh_handle h) {
    rlh_message m = {.slot = RLH_LINK_CREDIT, .handle = h};
    send_soon(user, &m);
}

// tell acknowledges the finished messages, unless the host knows already.
static void tell(rlh_host *host) {
    if (LOAD(&host->told) == host->finished) return;
    rlh_message m = {.slot = RLH_LINK_ACK};
    send_soon(host, &m);
}

void rlh_acknowledge(rlh_host *host) { tell(host); }

// ---- in

static bool push_waiting(rlh_host *host, const rlh_message *m) {
    if (host->waiting_count == host->waiting_room) {
        size_t room = host->waiting_room == 0 ? 256 : 2 * host->waiting_room;
        rlh_message *more = room <= WAITING_MAX ? malloc(room * sizeof *more) : NULL;
        if (more == NULL) return false;
        for (size_t i = 0; i < host->waiting_count; i++) {
            more[i] = host->waiting[(host->waiting_head + i) & (host->waiting_room - 1)];
        }
        free(host->waiting);
        host->waiting = more;
        host->waiting_room = room;
        host->waiting_head = 0;
    }
    host->waiting[(host->waiting_head + host->waiting_count++) & (host->waiting_room - 1)] = *m;
    return true;
}

static rlh_message pop_waiting(rlh_host *host) {
    rlh_message m = host->waiting[host->waiting_head];
    host->waiting_head = (host->waiting_head + 1) & (host->waiting_room - 1);
    host->waiting_count--;
    return m;
}

// acknowledged releases the claims of messages that the host has finished with.
static int acknowledged(rlh_host *host, uint64_t ctl) {
    if (ctl - host->acked > host->sent - host->acked) return RLH_ERR_INVALID;
    for (; host->acked < ctl; host->acked++) {
        rlh_handle h = host->claimed[host->acked % RLH_LINK_WINDOW];
        rlh_arena *a = h != 0 ? LOAD(&host->arenas[rlh_handle_arena(h)]) : NULL;
        if (a != NULL) unclaim(a, h);
    }
    return RLH_OK;
}

// take_in handles the link's part of a message, and keeps messages to a slot.
static int take_in(rlh_host *host, const rlh_message *m) {
    int err = acknowledged(host, m->ctl);
    if (err != RLH_OK) return err;
    switch (m->slot) {
    case RLH_LINK_ACK: return RLH_OK;
    case RLH_LINK_BOUNDARY_OVER: host->boundary_over = true; return RLH_OK;
    case RLH_LINK_RUN:
        host->begun = true;
        STORE(&host->awake, 1);
        return RLH_OK;
    default: break;
    }
    if (m->slot < RLH_LINK_CONTROL && m->slot >= host->slot_count) return RLH_ERR_INVALID;
    if (m->slot > RLH_LINK_RUN && m->slot < RLH_LINK_ENV_BIND) return RLH_OK; // from a later version
    host->begun = true;
    return push_waiting(host, m) ? RLH_OK : RLH_ERR_MEMORY;
}

struct intake {
    rlh_host *host;
    bool wakeable; // rlh_wake ends the wait
    rlh_message batch[BATCH];
};

static int attempt_intake(rlh_ring *ring, void *arguments) {
    struct intake *x = arguments;
    if (LOAD(&x->host->ended) != 0) return RLH_ERR_CLOSED;
    if (x->wakeable && LOAD(&x->host->awake) != 0) return RLH_ERR_WOKEN;
    if (LOAD(&x->host->unsent_count) != 0 && rlh_ring_used(x->host->out) < x->host->out->cells) return FLUSH;
    return messages_try_get(ring, x->batch, BATCH);
}

// intake waits for messages and takes them in. It returns how many, or an error.
static int intake(rlh_host *host, int64_t timeout, bool wakeable) {
    struct intake x;
    x.host = host; // not the batch, which need not be cleared each time
    x.wakeable = wakeable;
    int n = ring_wait_get(host->in, attempt_intake, &x, timeout);
    if (n == FLUSH) {
        pthread_mutex_lock(&host->out_mutex);
        flush(host);
        pthread_mutex_unlock(&host->out_mutex);
        return 0;
    }
    for (int i = 0; i < n; i++) {
        int err = take_in(host, &x.batch[i]);
        if (err != RLH_OK) return err;
    }
    return n;
}

void rlh_wake(rlh_host *host) {
    __atomic_store_n(&host->awake, 1, __ATOMIC_SEQ_CST);
    rlh_ring_kick(host->in);
}

int rlh_begun(const rlh_host *host) { return host->begun; }

void rlh_end(rlh_host *host) {
    __atomic_store_n(&host->ended, 1, __ATOMIC_SEQ_CST);
    rlh_ring_kick(host->in);
}

// is_asked_for reports whether the block of a message is on loan: then no claim goes with it.
static bool is_asked_for(rlh_host *host, rlh_handle h) {
    const rlh_arena *a = rlh_arena_of(host, h);
    return a != NULL && arena_check(a, h) == RLH_OK &&
           word_is(LOAD(block_word(a, h)), rlh_handle_generation(h), RLH_ARENA_WRITE);
}

void rlh_finish(rlh_host *host) {
    if (!host->current) return;
    host->current = false;
    STORE(&host->finished, host->finished + 1);
    if (host->urgent || host->finished - LOAD(&host->told) >= TELL_BEHIND) tell(host);
}

void rlh_settle(rlh_host *host) {
    rlh_finish(host);
    tell(host);
}

// hand_out takes the next message and reports whether it is for the caller.
static bool hand_out(rlh_host *host, rlh_message *m) {
    *m = pop_waiting(host);
    if (m->slot == RLH_LINK_CREDIT) {
        rlh_arena *a = rlh_arena_of(host, m->handle);
        if (a != NULL) rlh_arena_credited(a, m->handle);
        return false;
    }
    host->current = m->slot < RLH_LINK_CONTROL;
    host->urgent = host->current && m->handle != 0 && !is_asked_for(host, m->handle);
    m->ctl = 0;
    return true;
}

int rlh_receive(rlh_host *host, rlh_message *m, int64_t timeout) {
    if (!host->bound) return RLH_ERR_INVALID;
    rlh_finish(host);
    int64_t deadline = RLH_FOREVER;
    bool waited = false;
    for (;;) {
        if (__atomic_exchange_n(&host->awake, 0, __ATOMIC_SEQ_CST) != 0) return RLH_ERR_WOKEN;
        while (host->waiting_count > 0) {
            if (hand_out(host, m)) return RLH_OK;
        }
        int n = intake(host, 0, true);
        if (n == RLH_ERR_TIMEOUT) {
            tell(host); // there is nothing else to do
            if (timeout == 0) return RLH_ERR_TIMEOUT;
            if (!waited) deadline = deadline_after(timeout);
            waited = true;
            n = intake(host, left_until(deadline), true);
        }
        if (n < 0 && n != RLH_ERR_WOKEN) return n;
    }
}

// ---- for the component

// put_message puts a message, and takes in messages while there is no room.
static int put_message(rlh_host *host, const rlh_message *m) {
    for (;;) {
        pthread_mutex_lock(&host->out_mutex);
        int n = flush(host) ? transmit(host, m) : 0;
        pthread_mutex_unlock(&host->out_mutex);
        if (n != 0) return n < 0 ? n : RLH_OK;
        n = intake(host, ROOM_WAIT, false);
        if (n < 0 && n != RLH_ERR_TIMEOUT) return n;
    }
}

static int emit_from(rlh_host *host, uint32_t signal, const rlh_message *m, uint32_t sender) {
    if (!host->bound || signal >= host->signal_count) return RLH_ERR_INVALID;
    rlh_handle claimed = 0;
    if (m->handle != 0 && !host->on_loan[signal]) {
        rlh_arena *a = rlh_arena_of(host, m->handle);
        int err = a != NULL ? claim(a, m->handle) : RLH_ERR_FOREIGN;
        if (err != RLH_OK && err != RLH_ERR_STATE) return err;
        if (err == RLH_OK) claimed = m->handle; // a block on loan stays with its writer
    }
    int err = RLH_OK;
    while (err >= 0 && host->sent - host->acked >= RLH_LINK_WINDOW) {
        tell(host);
        err = intake(host, RLH_FOREVER, false);
    }
    rlh_message copy = *m;
    copy.signal = (uint16_t)signal;
    copy.slot = 0;
    copy.sender = (uint16_t)sender;
    copy.sequence = host->sequences[signal] + 1;
    if (err >= 0) err = put_message(host, &copy);
    if (err < 0) {
        if (claimed != 0) unclaim(rlh_arena_of(host, claimed), claimed);
        return err;
    }
    host->sequences[signal]++;
    host->claimed[host->sent++ % RLH_LINK_WINDOW] = claimed;
    return RLH_OK;
}

int rlh_emit(rlh_host *host, uint32_t signal, const rlh_message *m) { return emit_from(host, signal, m, m->sender); }

int rlh_reply(rlh_host *host, uint32_t signal, const rlh_message *m, const rlh_message *request) {
    return emit_from(host, signal, m, request->sender);
}

int rlh_send(rlh_host *host, const rlh_message *m) {
    return m->slot < RLH_LINK_CONTROL ? RLH_ERR_INVALID : put_message(host, m);
}

int rlh_stop_run(rlh_host *host, int reason) {
    rlh_message m = {.slot = RLH_LINK_STOP, .kind = (uint16_t)reason};
    return send_soon(host, &m);
}

int rlh_boundary(rlh_host *host) {
    rlh_message m = {.slot = RLH_LINK_BOUNDARY};
    host->boundary_over = false;
    int err = put_message(host, &m);
    while (err >= 0 && !host->boundary_over) {
        if (__atomic_exchange_n(&host->awake, 0, __ATOMIC_SEQ_CST) != 0 && host->handlers.woken != NULL) {
            host->handlers.woken(host->handlers.user);
        }
        err = intake(host, RLH_FOREVER, true);
        if (err == RLH_ERR_WOKEN) err = RLH_OK;
    }
    return err < 0 ? err : RLH_OK;
}
