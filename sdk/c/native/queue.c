// Queues: any number of producers and consumers, each of which may be killed at any moment.
//
// A claim is one compare-and-swap on the first cell of a batch, which then names the owner and the number of cells.
// A process that finds a claim moves the index past it. The cells of a batch are filled last to first, so that the
// batch becomes visible as a whole, with its first cell.
#include "internal.h"

#include <sched.h>

// A read that does not fit the index is repeated, because another process has moved the index meanwhile. So many in a
// row happen only if a process writes nonsense.
enum { ROUNDS_MAX = 1 << 12 };

enum { HOLDS_MAX = 1000 }; // tries to claim a queue's bound

// Functions with the argument any are compiled twice, for queues of messages of any size and for those whose messages have a
// cell each: small messages are put and got within some tens of nanoseconds.
#define TWICE static inline __attribute__((always_inline))

static bool is_any(const rlh_ring *ring) { return ring->kind == RLH_RING_BYTES; }

TWICE unsigned count_bits(bool any) { return any ? RLH_RING_BYTES_COUNT_BITS : RLH_RING_COUNT_BITS; }
TWICE unsigned position_from(bool any) { return 64 - (any ? RLH_RING_BYTES_POSITION_BITS : RLH_RING_POSITION_BITS); }

TWICE uint64_t make_ctl(bool any, uint64_t position, uint64_t state, uint64_t count, uint64_t owner) {
    return position << position_from(any) | state << (RLH_RING_OWNER_BITS + count_bits(any)) | count << RLH_RING_OWNER_BITS | owner;
}
TWICE uint64_t ctl_position(bool any, uint64_t v) { return v >> position_from(any); }
TWICE unsigned ctl_state(bool any, uint64_t v) { return v >> (RLH_RING_OWNER_BITS + count_bits(any)) & 15; }
static uint32_t ctl_owner(uint64_t v) { return (uint32_t)(v & ((1u << RLH_RING_OWNER_BITS) - 1)); }

// ctl_count returns how many cells a claim takes, limited to 1 to the ring's cells: another process wrote it.
TWICE uint32_t ctl_count(const rlh_ring *ring, bool any, uint64_t v) {
    uint32_t n = (uint32_t)(v >> RLH_RING_OWNER_BITS & ((UINT64_C(1) << count_bits(any)) - 1));
    if (n == 0) return 1;
    return n > ring->cells ? ring->cells : n;
}

// distance returns how far a cell's position lies ahead of another.
TWICE int64_t distance(bool any, uint64_t ctl, uint64_t position) {
    return (int64_t)((ctl_position(any, ctl) - position) << position_from(any));
}

TWICE rlh_ring_cell *cell(const rlh_ring *ring, uint64_t position) {
    return (rlh_ring_cell *)(void *)ring_cell_at(ring, position);
}

// span returns how many cells a message takes.
TWICE uint32_t span(const rlh_ring *ring, bool any, uint32_t len) {
    return !any || len <= ring->payload ? 1 : (uint32_t)(((uint64_t)len + ring->payload - 1) / ring->payload);
}

// len_of returns the length of the message that begins in a cell, limited to the longest: another process wrote it.
TWICE uint32_t len_of(const rlh_ring *ring, const rlh_ring_cell *c) {
    uint32_t len = LOAD_RELAXED(&c->len);
    return len > ring->longest ? ring->longest : len;
}

struct batch {
    const rlh_item *from;
    rlh_item *to;
    size_t count, room;
    uint32_t cells; // of the messages to put
    char *memory;
};

// fill_more fills the cells of a message behind its first, last to first.
static void fill_more(rlh_ring *ring, uint64_t position, const rlh_item *item) {
    const bool any = true;
    for (uint32_t k = span(ring, any, item->len); k-- > 1;) {
        rlh_ring_cell *c = cell(ring, position + k);
        uint32_t from = k * ring->payload, n = item->len - from;
        memcpy(c + 1, (const char *)item->bytes + from, n < ring->payload ? n : ring->payload);
        STORE_RELAXED(&c->ctl, make_ctl(any, position + k, RLH_RING_READY, 0, 0));
    }
}

// fill fills the cells of a claim, last to first. They are invisible until the first cell's store, which orders the
// others.
TWICE void fill(rlh_ring *ring, bool any, uint64_t tail, const struct batch *b) {
    uint64_t at = tail + b->cells;
    for (size_t i = b->count; i-- > 0;) {
        uint32_t len = b->from[i].len;
        if (any && len > ring->payload) {
            at -= span(ring, any, len);
            fill_more(ring, at, &b->from[i]);
        } else {
            at--;
        }
        rlh_ring_cell *c = cell(ring, at);
        if (len > 0) memcpy(c + 1, b->from[i].bytes, any && len > ring->payload ? ring->payload : len);
        STORE_RELAXED(&c->len, len);
        STORE_RELAXED(&c->kind, b->from[i].kind);
        uint64_t ready = make_ctl(any, at, RLH_RING_READY, 0, 0);
        if (i > 0) {
            STORE_RELAXED(&c->ctl, ready);
        } else {
            STORE(&c->ctl, ready);
        }
    }
}

// are_free reports whether n cells from position on are free, reading the last first: they become free in order, except
// for those of a dead consumer.
TWICE bool are_free(const rlh_ring *ring, bool any, uint64_t position, uint32_t n) {
    for (uint32_t i = n; i-- > 0;) {
        if (LOAD(&cell(ring, position + i)->ctl) != make_ctl(any, position + i, RLH_RING_FREE, 0, 0)) return false;
    }
    return true;
}

// skip_voids skips the cells at the head whose producers died before they were ready. It reports whether there were
// any.
static bool skip_voids(rlh_ring *ring) {
    bool any = is_any(ring), found = false;
    for (uint32_t i = 0; i < ring->cells; i++) {
        uint64_t head = LOAD(&ring->header->head), v = make_ctl(any, head, RLH_RING_VOID, 0, 0);
        rlh_ring_cell *c = cell(ring, head);
        if (LOAD(&c->ctl) != v) break;
        found = true;
        if (!cas64(&c->ctl, v, make_ctl(any, head, RLH_RING_VOIDING, 1, ring->owner))) continue;
        cas64(&ring->header->head, head, head + 1);
        STORE(&c->ctl, make_ctl(any, head + ring->cells, RLH_RING_FREE, 0, 0));
    }
    return found;
}

TWICE int put_batch(rlh_ring *ring, bool any, const struct batch *b) {
    rlh_ring_header *h = ring->header;
    if (LOAD_RELAXED(&h->closed) != 0 || LOAD_RELAXED(&ring->cancelled) != 0) return RLH_ERR_CLOSED;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        uint64_t tail = LOAD(&h->tail);
        rlh_ring_cell *first = cell(ring, tail);
        uint64_t v = LOAD(&first->ctl);
        int64_t ahead = distance(any, v, tail);
        if (ahead < 0 && LOAD(&h->tail) == tail && !skip_voids(ring)) return 0;
        if (ahead != 0) continue;
        if (ctl_state(any, v) != RLH_RING_FREE) { // claimed; the owner has not moved the tail yet
            cas64(&h->tail, tail, tail + (ctl_state(any, v) == RLH_RING_WRITING ? ctl_count(ring, any, v) : 1));
            continue;
        }
        uint32_t n = b->cells;
        if (any) {
            uint64_t used = tail - LOAD(&h->head);
            if ((int64_t)used < 0) continue;
            if (used + n > ring->limit) {
                if (!skip_voids(ring)) return 0;
                continue;
            }
        }
        if (!are_free(ring, any, tail + 1, n - 1)) {
            if (LOAD(&h->tail) == tail && !skip_voids(ring)) return 0;
            continue;
        }
        if (!cas64(&first->ctl, v, make_ctl(any, tail, RLH_RING_WRITING, n, ring->owner))) continue;
        cas64(&h->tail, tail, tail + n);
        fill(ring, any, tail, b);
        return (int)b->count;
    }
    return RLH_ERR_INVALID;
}

// fits counts the messages from head on that are ready, up to the batch's count and room, and notes their lengths and
// how many cells they take. Where the first cell of a message is ready, its others are.
TWICE uint32_t fits(const rlh_ring *ring, bool any, uint64_t head, const struct batch *b, uint32_t *lens, uint32_t *cells) {
    size_t used = 0;
    uint32_t n = 0, at = 0;
    while (n < b->count && at < ring->limit) {
        const rlh_ring_cell *c = cell(ring, head + at);
        if (n > 0 && LOAD(&c->ctl) != make_ctl(any, head + at, RLH_RING_READY, 0, 0)) break;
        uint32_t len = len_of(ring, c), k = span(ring, any, len);
        if (len > b->room - used || k > ring->limit - at) break;
        used += len;
        at += k;
        lens[n++] = len;
    }
    *cells = at;
    return n;
}

// drain_more copies a message's cells after the first and frees them, last to first.
static void drain_more(rlh_ring *ring, uint64_t position, uint32_t len, char *to) {
    const bool any = true;
    uint32_t cells = span(ring, any, len);
    for (uint32_t k = 1; k < cells; k++) {
        uint32_t from = k * ring->payload, n = len - from;
        memcpy(to + from, cell(ring, position + k) + 1, n < ring->payload ? n : ring->payload);
    }
    for (uint32_t k = cells; k-- > 1;)
        STORE_RELAXED(&cell(ring, position + k)->ctl, make_ctl(any, position + k + ring->cells, RLH_RING_FREE, 0, 0));
}

// drain copies the messages of a claim and frees its cells, last to first: a message whose first cell is free has been
// taken. No producer passes a cell that is not free, so the cells behind it stay until then.
TWICE void drain(rlh_ring *ring, bool any, uint64_t head, const struct batch *b, const uint32_t *lens, uint32_t n, uint32_t cells) {
    size_t at = 0;
    uint64_t position = head + cells;
    for (uint32_t i = 0; i < n; i++) at += lens[i];
    for (uint32_t i = n; i-- > 0;) {
        uint32_t len = lens[i];
        at -= len;
        if (any && len > ring->payload) {
            position -= span(ring, any, len);
            drain_more(ring, position, len, b->memory + at);
        } else {
            position--;
        }
        rlh_ring_cell *c = cell(ring, position);
        if (len > 0) memcpy(b->memory + at, c + 1, any && len > ring->payload ? ring->payload : len);
        b->to[i] = (rlh_item){b->memory + at, len, LOAD_RELAXED(&c->kind)};
        uint64_t freed = make_ctl(any, position + ring->cells, RLH_RING_FREE, 0, 0);
        // The first cell names the owner of all, so it is freed last; its store orders the others.
        if (i > 0) {
            STORE_RELAXED(&c->ctl, freed);
        } else {
            STORE(&c->ctl, freed);
        }
    }
}

TWICE int get_batch(rlh_ring *ring, bool any, const struct batch *b) {
    rlh_ring_header *h = ring->header;
    uint32_t lens[RLH_MAX_RING_BATCH];
    if (LOAD_RELAXED(&ring->cancelled) != 0) return RLH_ERR_CLOSED;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        uint32_t closed = LOAD(&h->closed); // before the cell, so that messages put before the close are seen
        uint64_t head = LOAD(&h->head);
        rlh_ring_cell *first = cell(ring, head);
        uint64_t v = LOAD(&first->ctl);
        int64_t ahead = distance(any, v, head);
        unsigned state = ctl_state(any, v);
        bool waits = ahead < 0 || (ahead == 0 && (state == RLH_RING_FREE || state == RLH_RING_WRITING));
        if (waits && LOAD(&h->head) == head) {
            return closed != 0 && state != RLH_RING_WRITING ? RLH_ERR_CLOSED : 0;
        }
        if (waits || ahead != 0) continue;
        if (state == RLH_RING_VOID) {
            skip_voids(ring);
            continue;
        }
        if (state != RLH_RING_READY) {
            cas64(&h->head, head, head + ctl_count(ring, any, v));
            continue;
        }
        uint32_t cells, n = fits(ring, any, head, b, lens, &cells);
        if (n == 0) {
            if (LOAD(&first->ctl) == v) return RLH_ERR_TOO_LONG;
            continue;
        }
        if (!cas64(&first->ctl, v, make_ctl(any, head, RLH_RING_READING, cells, ring->owner))) continue;
        cas64(&h->head, head, head + cells);
        drain(ring, any, head, b, lens, n, cells);
        return (int)n;
    }
    return RLH_ERR_INVALID;
}

static int put_any(rlh_ring *ring, void *b) { return put_batch(ring, true, b); }
static int put_cells(rlh_ring *ring, void *b) { return put_batch(ring, false, b); }

// hold claims the bound for a put, which takes no longer than one. It gives up where the holder is stopped or dead.
static bool hold(const rlh_ring *ring) {
    for (int i = 0; i < HOLDS_MAX; i++) {
        if (cas32(&ring->bound->holder, 0, ring->owner)) return true;
        sched_yield();
    }
    return false;
}

// put_bounded puts where the queue then holds no more items than its bound. The items are counted where the last count
// does not say that there is room: consumers do not touch the bound.
static int put_bounded(rlh_ring *ring, void *arguments) {
    struct batch *b = arguments;
    rlh_queue_bound *bound = ring->bound;
    if (LOAD_RELAXED(&ring->cancelled) != 0 || rlh_ring_is_shut(ring)) return RLH_ERR_CLOSED;
    if (!hold(ring)) return 0;
    uint32_t room = LOAD_RELAXED(&bound->room), most = LOAD_RELAXED(&bound->most);
    if (room < b->count) {
        rlh_queue_stats now;
        rlh_queue_count(ring, &now);
        room = now.items < most ? most - (uint32_t)now.items : 0;
    }
    int n = 0;
    if (room >= b->count) {
        STORE_RELAXED(&bound->room, room - (uint32_t)b->count); // before the put: a process that is killed in between makes it too small
        n = put_batch(ring, is_any(ring), b);
        if (n <= 0) STORE_RELAXED(&bound->room, room);
    }
    STORE(&bound->holder, 0);
    return n;
}

void rlh_queue_bind(rlh_ring *ring, rlh_queue_bound *bound) { ring->bound = bound; }

// most_items returns how many items one put can take.
static size_t most_items(const rlh_ring *ring) {
    size_t n = ring->limit < RLH_MAX_RING_BATCH ? ring->limit : RLH_MAX_RING_BATCH;
    if (ring->bound == NULL) return n;
    uint32_t most = LOAD_RELAXED(&ring->bound->most);
    return n < most ? n : most;
}

static int get_any(rlh_ring *ring, void *b) { return get_batch(ring, true, b); }
static int get_cells(rlh_ring *ring, void *b) { return get_batch(ring, false, b); }

size_t rlh_queue_batch(const rlh_ring *ring, const rlh_item *items, size_t count) {
    uint32_t cells = 0;
    size_t n = 0, most = most_items(ring);
    if (count > most) count = most;
    if (!is_any(ring)) return count;
    while (n < count && items[n].len <= ring->longest) {
        uint32_t k = span(ring, true, items[n].len);
        if (k > ring->limit - cells) break;
        cells += k;
        n++;
    }
    return n;
}

int rlh_queue_put(rlh_ring *ring, const rlh_item *items, size_t count, int64_t timeout) {
    if (ring->kind == RLH_RING_MESSAGES || ring->owner == 0 || count < 1) return RLH_ERR_INVALID;
    if (count > most_items(ring)) return RLH_ERR_TOO_LONG;
    struct batch b = {.from = items, .count = count, .cells = (uint32_t)count};
    bool any = is_any(ring);
    for (size_t i = 0; i < count; i++) {
        if (items[i].len > ring->longest) return RLH_ERR_TOO_LONG;
        if (any) b.cells += span(ring, any, items[i].len) - 1;
        if (b.cells > ring->limit) return RLH_ERR_TOO_LONG; // each adds at most as many, so the sum cannot overflow
    }
    return ring_wait_put(ring, ring->bound != NULL ? put_bounded : any ? put_any : put_cells, &b, timeout);
}

int rlh_queue_get(rlh_ring *ring, rlh_item *items, size_t count, void *memory, size_t room, int64_t timeout) {
    if (ring->kind == RLH_RING_MESSAGES || ring->owner == 0 || count < 1) return RLH_ERR_INVALID;
    struct batch b = {.to = items, .count = count > RLH_MAX_RING_BATCH ? RLH_MAX_RING_BATCH : count,
                      .memory = memory, .room = room};
    return ring_wait_get(ring, is_any(ring) ? get_any : get_cells, &b, timeout);
}

uint32_t rlh_queue_longest(const rlh_ring *ring) { return ring->longest; }

void rlh_queue_count(const rlh_ring *ring, rlh_queue_stats *out) {
    bool any = is_any(ring);
    // One head for both: with a newer one for the number the newest items would not be counted.
    uint64_t head = LOAD(&ring->header->head), apart = LOAD(&ring->header->tail) - head;
    uint32_t used = apart > ring->cells ? ring->cells : (uint32_t)apart;
    *out = (rlh_queue_stats){.full = used >= ring->limit};
    for (uint32_t i = 0; i < used;) {
        const rlh_ring_cell *c = cell(ring, head + i);
        uint64_t v = LOAD(&c->ctl);
        if (v == make_ctl(any, head + i, RLH_RING_READY, 0, 0)) {
            uint32_t len = len_of(ring, c);
            out->items++;
            out->bytes += len;
            i += span(ring, any, len);
        } else {
            bool claimed = ctl_state(any, v) == RLH_RING_WRITING || ctl_state(any, v) == RLH_RING_READING;
            i += claimed ? ctl_count(ring, any, v) : 1;
        }
    }
}

// void_batch makes a dead producer's cells void, the first last: until then the claim lets a repeated call start over.
static void void_batch(rlh_ring *ring, uint64_t position, uint32_t n) {
    bool any = is_any(ring);
    for (uint32_t i = n; i-- > 0;)
        STORE(&cell(ring, position + i)->ctl, make_ctl(any, position + i, RLH_RING_VOID, 0, 0));
}

// hand_out gives one message of a dead consumer to lost.
static void hand_out(const rlh_ring *ring, uint64_t position, uint32_t len, rlh_lost_fn lost, void *user) {
    bool any = is_any(ring);
    const rlh_ring_cell *first = cell(ring, position);
    rlh_item item = {first + 1, len, LOAD_RELAXED(&first->kind)};
    char *whole = NULL;
    if (len > ring->payload) {
        whole = malloc(len);
        if (whole == NULL) return; // the message is lost
        for (uint32_t k = 0; k < span(ring, any, len); k++) {
            uint32_t from = k * ring->payload, n = len - from;
            memcpy(whole + from, cell(ring, position + k) + 1, n < ring->payload ? n : ring->payload);
        }
        item.bytes = whole;
    }
    lost(user, &item);
    free(whole);
}

// return_batch hands out the messages that a dead consumer had not finished, and frees its cells, the first last. A
// message is finished when its first cell is free; the batch is when its own first cell is.
static void return_batch(rlh_ring *ring, uint64_t position, uint32_t n, rlh_lost_fn lost, void *user) {
    bool any = is_any(ring);
    for (uint32_t i = 0; i < n;) {
        const rlh_ring_cell *c = cell(ring, position + i);
        uint32_t len = len_of(ring, c), k = span(ring, any, len);
        if (k > n - i) break; // a process wrote nonsense
        bool taken = i > 0 && LOAD(&c->ctl) != make_ctl(any, position + i, RLH_RING_READY, 0, 0);
        if (!taken && lost != NULL) hand_out(ring, position + i, len, lost, user);
        i += k;
    }
    for (uint32_t i = n; i-- > 0;) {
        rlh_ring_cell *c = cell(ring, position + i);
        if (i > 0 && LOAD(&c->ctl) != make_ctl(any, position + i, RLH_RING_READY, 0, 0)) continue;
        STORE(&c->ctl, make_ctl(any, position + i + ring->cells, RLH_RING_FREE, 0, 0));
    }
}

// help moves an index past a claim whose dead owner may not have done so.
static void help(const rlh_ring *ring, uint64_t *index, uint64_t position, uint32_t n) {
    uint64_t at = LOAD(index);
    unsigned from = position_from(is_any(ring));
    if ((at << from) >> from == position) cas64(index, at, at + n);
}

void rlh_queue_recover(rlh_ring *ring, uint32_t owner, rlh_lost_fn lost, void *user) {
    if (ring->kind == RLH_RING_MESSAGES || owner == 0) return;
    bool any = is_any(ring);
    if (ring->bound != NULL) cas32(&ring->bound->holder, owner, 0);
    for (uint32_t i = 0; i < ring->cells; i++) {
        uint64_t v = LOAD(&cell(ring, i)->ctl), position = ctl_position(any, v);
        if (ctl_owner(v) != owner || (position & (ring->cells - 1)) != i) continue;
        uint32_t n = ctl_count(ring, any, v);
        switch (ctl_state(any, v)) {
        case RLH_RING_WRITING:
            help(ring, &ring->header->tail, position, n);
            void_batch(ring, position, n);
            break;
        case RLH_RING_READING:
            help(ring, &ring->header->head, position, n);
            return_batch(ring, position, n, lost, user);
            break;
        case RLH_RING_VOIDING:
            help(ring, &ring->header->head, position, n);
            return_batch(ring, position, n, NULL, NULL);
            break;
        default: break;
        }
    }
    rlh_ring_kick(ring);
}
