// Rings: the segment, sleeping and waking.
//
// A futex word has bit 0 set while a process sleeps, and counts wakes in the other bits. A sleeper sets the bit, looks
// again, then sleeps while the word is unchanged; a waker, after its publishing store, clears a set bit and wakes all,
// or one where there may be many. A sleeper that dies leaves only the bit set, which costs the next waker one call.
//
// Where there may be many, a woken process must set the bit again for the others: it does so when it has found
// something, since it may now be busy; woken in vain, it sleeps for a while without setting it, because a process that
// was awake took the item. If it dies first, the others look again when their sleep ends.
#include "internal.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    SPIN_MIN = 8,
    SPIN_MAX = 200,  // pauses; about 5 microseconds, longer spins slow a busy machine down
    SPIN_PROBE = 8,  // pauses between looks
    MISSES_MAX = 4,
    SKIP_MIN = 4,    // waits without giving the processor away
    SKIP_MAX = 2048,
    TRIES_MAX = 16,  // compare-and-swaps on a futex word: correct peers change it rarely
};

// Sleeps, in nanoseconds. The longest bounds the delay when a killed process has lost a wake.
#define YIELD_MAX INT64_C(100000)
#define OVERTAKEN INT64_C(200000) // more than YIELD_MAX: for so long the processor was others'
#define SLEEP_MAX INT64_C(100000000)
#define SHARED_SLEEP_MAX INT64_C(8000000)
#define VAIN_MIN INT64_C(1000000)
#define VAIN_MAX INT64_C(4000000)

static void pause_once(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static uint32_t cell_bytes_for(uint32_t kind, uint32_t payload) {
    if (kind == RLH_RING_MESSAGES) return RLH_MESSAGE_BYTES;
    if (payload <= 16) return 32;
    return (payload + RLH_RING_CELL_HEAD_BYTES + 63) & ~UINT32_C(63);
}

static bool sizes_valid(uint32_t kind, uint32_t cells, uint32_t payload, uint32_t limit) {
    if (cells < 2 || cells > RLH_MAX_RING_CELLS || (cells & (cells - 1)) != 0) return false;
    if (kind == RLH_RING_MESSAGES) return payload == RLH_MESSAGE_BYTES;
    if (payload < 1 || payload > RLH_MAX_RING_PAYLOAD) return false;
    if (kind == RLH_RING_BYTES) return limit >= 1 && limit <= cells && limit <= RLH_MAX_RING_LIMIT;
    return kind == RLH_RING_QUEUE;
}

static unsigned position_from(uint32_t kind) {
    return 64 - (kind == RLH_RING_BYTES ? RLH_RING_BYTES_POSITION_BITS : RLH_RING_POSITION_BITS);
}

static int create(int *fd, uint32_t kind, uint32_t cells, uint32_t payload, uint32_t limit) {
    if (!sizes_valid(kind, cells, payload, limit)) return RLH_ERR_INVALID;
    uint32_t cell_bytes = cell_bytes_for(kind, payload);
    size_t total = RLH_RING_HEADER_BYTES + (size_t)cells * cell_bytes;
    void *at;
    int err = memory_create("rlhost ring", total, fd, &at);
    if (err != RLH_OK) return err;
    rlh_ring_header *h = at;
    h->version = RLH_RING_VERSION;
    h->kind = kind;
    h->cells = cells;
    h->cell_bytes = cell_bytes;
    h->payload = payload;
    h->cells_at = RLH_RING_HEADER_BYTES;
    h->total = total;
    h->limit = limit;
    for (uint32_t i = 0; i < cells && kind != RLH_RING_MESSAGES; i++) {
        rlh_ring_cell *c = (rlh_ring_cell *)(void *)((char *)at + RLH_RING_HEADER_BYTES + (size_t)i * cell_bytes);
        c->ctl = (uint64_t)i << position_from(kind);
    }
    STORE(&h->magic, RLH_RING_MAGIC);
    memory_unmap(at, total);
    err = memory_seal(*fd);
    if (err != RLH_OK) close(*fd);
    return err;
}

int rlh_ring_create(int *fd, uint32_t kind, uint32_t cells, uint32_t payload) {
    return kind == RLH_RING_BYTES ? RLH_ERR_INVALID : create(fd, kind, cells, payload, 0);
}

int rlh_queue_create(int *fd, uint64_t bytes) {
    if (bytes < 1 || bytes > UINT32_MAX) return RLH_ERR_INVALID;
    // Small cells waste little on small messages; one claim must be able to take all cells.
    uint32_t cell_bytes = 64, payload = cell_bytes - RLH_RING_CELL_HEAD_BYTES, cells = 2;
    while ((bytes + payload - 1) / payload > RLH_MAX_RING_LIMIT) {
        cell_bytes *= 2;
        payload = cell_bytes - RLH_RING_CELL_HEAD_BYTES;
    }
    uint32_t limit = (uint32_t)((bytes + payload - 1) / payload);
    while (cells < limit) cells *= 2;
    return create(fd, RLH_RING_BYTES, cells, payload, limit);
}

// ring_check copies the header and compares it with the size of the file.
static int ring_check(rlh_ring *ring, uint32_t kind) {
    const rlh_ring_header *h = ring->header;
    if (ring->mapped < RLH_RING_HEADER_BYTES || LOAD(&h->magic) != RLH_RING_MAGIC) return RLH_ERR_INVALID;
    uint32_t version = LOAD_RELAXED(&h->version);
    ring->kind = LOAD_RELAXED(&h->kind);
    ring->cells = LOAD_RELAXED(&h->cells);
    ring->cell_bytes = LOAD_RELAXED(&h->cell_bytes);
    ring->payload = LOAD_RELAXED(&h->payload);
    ring->limit = LOAD_RELAXED(&h->limit);
    if (ring->kind == RLH_RING_BYTES && kind == RLH_RING_QUEUE) kind = RLH_RING_BYTES; // attached in the same way
    if (version != RLH_RING_VERSION || ring->kind != kind || !sizes_valid(kind, ring->cells, ring->payload, ring->limit)) {
        return RLH_ERR_INVALID;
    }
    if (kind != RLH_RING_BYTES) ring->limit = ring->cells;
    uint64_t longest = (uint64_t)ring->payload * (kind == RLH_RING_BYTES ? ring->limit : 1);
    ring->longest = longest > UINT32_MAX ? UINT32_MAX : (uint32_t)longest;
    size_t total = RLH_RING_HEADER_BYTES + (size_t)ring->cells * ring->cell_bytes;
    if (ring->cell_bytes != cell_bytes_for(kind, ring->payload) || total > ring->mapped ||
        LOAD_RELAXED(&h->total) != total || LOAD_RELAXED(&h->cells_at) != RLH_RING_HEADER_BYTES) {
        return RLH_ERR_INVALID;
    }
    ring->cells_at = (char *)ring->header + RLH_RING_HEADER_BYTES;
    ring->tail = ring->tail_seen = LOAD(&h->tail);
    ring->head = ring->head_seen = LOAD(&h->head);
    return RLH_OK;
}

int rlh_ring_attach(rlh_ring **out, int fd, uint32_t kind, uint32_t owner) {
    if (owner >= 1u << RLH_RING_OWNER_BITS) return RLH_ERR_INVALID;
    rlh_ring *ring = calloc(1, sizeof *ring);
    if (ring == NULL) return RLH_ERR_MEMORY;
    void *at = NULL;
    int err = memory_map(fd, true, &ring->mapped, &at);
    ring->header = at;
    ring->owner = owner;
    ring->putting = (struct patience){.spin = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? SPIN_MAX : 0, .row = SKIP_MIN};
    ring->getting = ring->putting;
    if (err == RLH_OK) err = ring_check(ring, kind);
    if (err != RLH_OK) {
        rlh_ring_detach(ring);
        return err;
    }
    *out = ring;
    return RLH_OK;
}

void rlh_ring_detach(rlh_ring *ring) {
    if (ring == NULL) return;
    memory_unmap(ring->header, ring->mapped);
    free(ring);
}

uint32_t rlh_ring_cells(const rlh_ring *ring) { return ring->cells; }
uint32_t rlh_ring_payload(const rlh_ring *ring) { return ring->payload; }

uint32_t rlh_ring_used(const rlh_ring *ring) {
    uint64_t head = LOAD(&ring->header->head), used = LOAD(&ring->header->tail) - head;
    return used > ring->cells ? ring->cells : (uint32_t)used;
}

static void futex_wake(uint32_t *word, int most) { syscall(SYS_futex, word, FUTEX_WAKE, most, NULL, NULL, 0); }

static void futex_wait(uint32_t *word, uint32_t seen, int64_t ns) {
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0); // the caller looks again, whatever it returns
}

static void kick(uint32_t *word) {
    for (int i = 0; i < TRIES_MAX; i++) {
        uint32_t v = LOAD(word);
        if (cas32(word, v, (v + 2) & ~1u)) break;
    }
    futex_wake(word, INT_MAX);
}

void rlh_ring_kick(rlh_ring *ring) {
    kick(&ring->header->not_empty);
    kick(&ring->header->not_full);
}

void rlh_ring_shut(rlh_ring *ring) {
    STORE(&ring->header->closed, 1);
    rlh_ring_kick(ring);
}

int rlh_ring_is_shut(const rlh_ring *ring) { return LOAD(&ring->header->closed) != 0; }

void rlh_ring_cancel(rlh_ring *ring) {
    STORE(&ring->cancelled, 1);
    rlh_ring_kick(ring);
}

// wake_sleepers follows a publishing store: the fence keeps the load of the word after it.
static void wake_sleepers(const rlh_ring *ring, uint32_t *word, uint64_t *wakes) {
    uint32_t v = LOAD_RELAXED(word);
    if ((v & 1) != 0 && cas32(word, v, (v + 2) & ~1u)) {
        futex_wake(word, ring->kind == RLH_RING_MESSAGES ? INT_MAX : 1);
        __atomic_fetch_add(wakes, 1, __ATOMIC_RELAXED);
    }
}

void ring_has_put(rlh_ring *ring) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    wake_sleepers(ring, &ring->header->not_empty, &ring->header->empty_wakes);
}

// ring_has_got wakes producers only when the ring is half empty, so that they run in bursts.
void ring_has_got(rlh_ring *ring) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if ((LOAD_RELAXED(&ring->header->not_full) & 1) != 0 && rlh_ring_used(ring) <= ring->limit / 2) {
        wake_sleepers(ring, &ring->header->not_full, &ring->header->full_wakes);
    }
}

// spin repeats an attempt for a while. The outcome adapts the length of the next spin.
static int spin(rlh_ring *ring, ring_attempt attempt, void *arguments, uint32_t *length) {
    uint32_t pauses = LOAD_RELAXED(length);
    if (pauses == 0) return 0;
    for (uint32_t i = 0; i < pauses; i++) {
        pause_once();
        if (i % SPIN_PROBE != SPIN_PROBE - 1) continue;
        int n = attempt(ring, arguments);
        if (n != 0) {
            uint32_t longer = pauses + pauses / 2 + SPIN_PROBE;
            STORE_RELAXED(length, longer > SPIN_MAX ? SPIN_MAX : longer);
            return n;
        }
    }
    STORE_RELAXED(length, pauses / 2 < SPIN_MIN ? SPIN_MIN : pauses / 2);
    return 0;
}

// skip_next makes the next waits do without yields.
static void skip_next(struct patience *p) {
    p->misses = 0;
    p->skip = p->row;
    p->row = 2 * p->row < SKIP_MAX ? 2 * p->row : SKIP_MAX;
}

// yield calls sched_yield between attempts, so that a peer on the same processor runs, and a peer on another finds this
// end awake: on virtual machines an idle processor takes tens of microseconds to wake up. After a row of misses it is
// skipped for some waits, twice as many after each further row. A yield that lasts is such a row by itself, even if the
// peer has answered meanwhile: others want the processor, and each yield hands them a whole slice. Only for rings with
// one thread at each end, as in core/ring.
static int yield(rlh_ring *ring, ring_attempt attempt, void *arguments, struct patience *p) {
    if (p->spin == 0) return 0;
    if (p->skip > 0) {
        p->skip--;
        return 0;
    }
    int64_t end = deadline_after(YIELD_MAX), overtaken = deadline_after(YIELD_MAX + OVERTAKEN);
    do {
        sched_yield();
        int n = attempt(ring, arguments);
        if (n == 0) continue;
        if (left_until(overtaken) == 0) {
            skip_next(p);
        } else {
            p->misses = 0;
            p->row = SKIP_MIN;
        }
        return n;
    } while (left_until(end) > 0);
    if (++p->misses == MISSES_MAX || left_until(overtaken) == 0) skip_next(p);
    return 0;
}

// arm marks that this process is about to sleep and sets *seen to the value to sleep on; false if the word kept
// changing.
static bool arm(uint32_t *word, uint32_t *seen) {
    for (int i = 0; i < TRIES_MAX; i++) {
        uint32_t v = LOAD(word);
        *seen = v | 1;
        if ((v & 1) != 0 || cas32(word, v, v | 1)) return true;
    }
    return false;
}

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

// sleep_for repeats an attempt, asleep in between.
static int sleep_for(rlh_ring *ring, ring_attempt attempt, void *arguments, int64_t deadline, uint32_t *word, uint64_t *waits) {
    bool many = ring->kind != RLH_RING_MESSAGES, rung = false;
    int64_t quiet = 0, vain = VAIN_MIN;
    for (;;) {
        uint32_t seen = LOAD(word);
        bool armed = quiet > 0 || arm(word, &seen);
        int n = attempt(ring, arguments);
        int64_t left = left_until(deadline);
        if (n != 0 || left == 0) {
            if (rung) arm(word, &seen);
            return n != 0 ? n : RLH_ERR_TIMEOUT;
        }
        if (!armed) continue; // another process changed the word: look again first
        left = min64(left < 0 ? SLEEP_MAX : left, many ? SHARED_SLEEP_MAX : SLEEP_MAX);
        if (quiet > 0) left = min64(left, quiet);
        quiet = 0;
        __atomic_fetch_add(waits, 1, __ATOMIC_RELAXED);
        futex_wait(word, seen, left);
        if (many && LOAD(word) >> 1 != seen >> 1) {
            quiet = vain;
            vain = min64(2 * vain, VAIN_MAX);
            rung = true;
        }
    }
}

static int wait_for(rlh_ring *ring, ring_attempt attempt, void *arguments, int64_t timeout, uint32_t *word,
                    uint64_t *waits, struct patience *p) {
    int n = attempt(ring, arguments);
    if (n == 0 && timeout == 0) return RLH_ERR_TIMEOUT;
    if (n == 0) n = spin(ring, attempt, arguments, &p->spin);
    if (n == 0 && ring->kind == RLH_RING_MESSAGES) n = yield(ring, attempt, arguments, p);
    return n != 0 ? n : sleep_for(ring, attempt, arguments, deadline_after(timeout), word, waits);
}

int ring_wait_get(rlh_ring *ring, ring_attempt attempt, void *arguments, int64_t timeout) {
    int n = wait_for(ring, attempt, arguments, timeout, &ring->header->not_empty, &ring->header->empty_waits,
                     &ring->getting);
    if (n > 0) ring_has_got(ring);
    return n;
}

int ring_wait_put(rlh_ring *ring, ring_attempt attempt, void *arguments, int64_t timeout) {
    int n = wait_for(ring, attempt, arguments, timeout, &ring->header->not_full, &ring->header->full_waits,
                     &ring->putting);
    if (n > 0) ring_has_put(ring);
    return n;
}
