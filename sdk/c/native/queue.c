// Queues: any number of producers and consumers, each of which may be killed at any moment.
//
// A claim is one compare-and-swap on the first cell of a batch, which then names the owner and the number of cells.
// Whoever comes across a claim helps the index over it. The cells of a batch are filled last to first, so that the
// batch becomes visible as a whole, with its first cell.
#include "internal.h"

#define POSITION_FROM (64 - RLH_RING_POSITION_BITS)
#define POSITION_MASK ((UINT64_C(1) << RLH_RING_POSITION_BITS) - 1)

// A look that finds nothing to hold on to is repeated, because another process has moved the index meanwhile. This
// many in a row only happen when somebody writes nonsense.
enum { ROUNDS_MAX = 1 << 12 };

static uint64_t make_ctl(uint64_t position, uint64_t state, uint64_t count, uint64_t owner) {
    return position << POSITION_FROM | state << (RLH_RING_OWNER_BITS + RLH_RING_COUNT_BITS) |
           count << RLH_RING_OWNER_BITS | owner;
}
static uint64_t ctl_position(uint64_t v) { return v >> POSITION_FROM; }
static unsigned ctl_state(uint64_t v) { return v >> (RLH_RING_OWNER_BITS + RLH_RING_COUNT_BITS) & 15; }
static uint32_t ctl_owner(uint64_t v) { return (uint32_t)(v & ((1u << RLH_RING_OWNER_BITS) - 1)); }

// ctl_count is how many cells a claim takes; of what another process wrote, at least one and no more than there are.
static uint32_t ctl_count(const rlh_ring *ring, uint64_t v) {
    uint32_t n = (uint32_t)(v >> RLH_RING_OWNER_BITS & RLH_MAX_RING_BATCH);
    if (n == 0) return 1;
    return n > ring->cells ? ring->cells : n;
}

// distance is how far a cell's position lies ahead of another.
static int64_t distance(uint64_t ctl, uint64_t position) {
    return (int64_t)((ctl_position(ctl) - position) << POSITION_FROM);
}

static rlh_ring_cell *cell(const rlh_ring *ring, uint64_t position) {
    return (rlh_ring_cell *)(void *)ring_cell_at(ring, position);
}

struct batch {
    const rlh_item *from;
    rlh_item *to;
    size_t count, room;
    char *memory;
};

static void fill(rlh_ring *ring, uint64_t tail, const struct batch *b, uint32_t n) {
    for (uint32_t i = n; i-- > 0;) {
        rlh_ring_cell *c = cell(ring, tail + i);
        if (b->from[i].len > 0) memcpy(c + 1, b->from[i].bytes, b->from[i].len);
        STORE_RELAXED(&c->len, b->from[i].len);
        STORE_RELAXED(&c->kind, b->from[i].kind);
        uint64_t ready = make_ctl(tail + i, RLH_RING_READY, 0, 0);
        if (i > 0) {
            STORE_RELAXED(&c->ctl, ready); // nobody looks at it before the first cell's store, which orders it
        } else {
            STORE(&c->ctl, ready);
        }
    }
}

// are_free tells whether n cells from a position on are free, looking at the last first: they become free in order,
// but for what a dead consumer leaves behind.
static bool are_free(const rlh_ring *ring, uint64_t position, uint32_t n) {
    for (uint32_t i = n; i-- > 0;) {
        if (LOAD(&cell(ring, position + i)->ctl) != make_ctl(position + i, RLH_RING_FREE, 0, 0)) return false;
    }
    return true;
}

static int attempt_put(rlh_ring *ring, void *arguments) {
    const struct batch *b = arguments;
    rlh_ring_header *h = ring->header;
    if (LOAD_RELAXED(&h->closed) != 0 || LOAD_RELAXED(&ring->cancelled) != 0) return RLH_ERR_CLOSED;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        uint64_t tail = LOAD(&h->tail);
        rlh_ring_cell *first = cell(ring, tail);
        uint64_t v = LOAD(&first->ctl);
        int64_t ahead = distance(v, tail);
        if (ahead < 0 && LOAD(&h->tail) == tail) return 0; // full
        if (ahead != 0) continue;
        if (ctl_state(v) != RLH_RING_FREE) { // somebody's claim, whose owner has not moved the tail yet
            cas64(&h->tail, tail, tail + (ctl_state(v) == RLH_RING_WRITING ? ctl_count(ring, v) : 1));
            continue;
        }
        uint32_t n = (uint32_t)b->count;
        if (!are_free(ring, tail + 1, n - 1)) {
            if (LOAD(&h->tail) == tail) return 0;
            continue;
        }
        if (!cas64(&first->ctl, v, make_ctl(tail, RLH_RING_WRITING, n, ring->owner))) continue;
        cas64(&h->tail, tail, tail + n);
        fill(ring, tail, b, n);
        return (int)n;
    }
    return RLH_ERR_INVALID;
}

// fits counts the cells from head on that are ready, up to the batch's count and room, and notes their lengths.
static uint32_t fits(const rlh_ring *ring, uint64_t head, const struct batch *b, uint32_t *lens) {
    size_t used = 0;
    uint32_t n = 0;
    while (n < b->count && n < ring->cells) {
        const rlh_ring_cell *c = cell(ring, head + n);
        if (n > 0 && LOAD(&c->ctl) != make_ctl(head + n, RLH_RING_READY, 0, 0)) break;
        uint32_t len = LOAD_RELAXED(&c->len);
        if (len > ring->payload) len = ring->payload;
        if (len > b->room - used) break;
        used += len;
        lens[n++] = len;
    }
    return n;
}

static void drain(rlh_ring *ring, uint64_t head, const struct batch *b, const uint32_t *lens, uint32_t n) {
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) at += lens[i];
    for (uint32_t i = n; i-- > 0;) {
        rlh_ring_cell *c = cell(ring, head + i);
        at -= lens[i];
        if (lens[i] > 0) memcpy(b->memory + at, c + 1, lens[i]);
        b->to[i] = (rlh_item){b->memory + at, lens[i], LOAD_RELAXED(&c->kind)};
        uint64_t freed = make_ctl(head + i + ring->cells, RLH_RING_FREE, 0, 0);
        // The first cell names the owner of all, so it goes last; its store orders the others.
        if (i > 0) {
            STORE_RELAXED(&c->ctl, freed);
        } else {
            STORE(&c->ctl, freed);
        }
    }
}

// skip passes over a cell whose producer died before it was ready.
static void skip(rlh_ring *ring, rlh_ring_cell *c, uint64_t v, uint64_t head) {
    if (!cas64(&c->ctl, v, make_ctl(head, RLH_RING_VOIDING, 1, ring->owner))) return;
    cas64(&ring->header->head, head, head + 1);
    STORE(&c->ctl, make_ctl(head + ring->cells, RLH_RING_FREE, 0, 0));
}

static int attempt_get(rlh_ring *ring, void *arguments) {
    const struct batch *b = arguments;
    rlh_ring_header *h = ring->header;
    uint32_t lens[RLH_MAX_RING_BATCH];
    if (LOAD_RELAXED(&ring->cancelled) != 0) return RLH_ERR_CLOSED;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        uint32_t closed = LOAD(&h->closed); // before the cell: what was put before it still counts
        uint64_t head = LOAD(&h->head);
        rlh_ring_cell *first = cell(ring, head);
        uint64_t v = LOAD(&first->ctl);
        int64_t ahead = distance(v, head);
        unsigned state = ctl_state(v);
        bool waits = ahead < 0 || (ahead == 0 && (state == RLH_RING_FREE || state == RLH_RING_WRITING));
        if (waits && LOAD(&h->head) == head) {
            return closed != 0 && state != RLH_RING_WRITING ? RLH_ERR_CLOSED : 0;
        }
        if (waits || ahead != 0) continue;
        if (state == RLH_RING_VOID) {
            skip(ring, first, v, head);
            continue;
        }
        if (state != RLH_RING_READY) {
            cas64(&h->head, head, head + ctl_count(ring, v));
            continue;
        }
        uint32_t n = fits(ring, head, b, lens);
        if (n == 0) {
            if (LOAD(&first->ctl) == v) return RLH_ERR_TOO_LONG;
            continue;
        }
        if (!cas64(&first->ctl, v, make_ctl(head, RLH_RING_READING, n, ring->owner))) continue;
        cas64(&h->head, head, head + n);
        drain(ring, head, b, lens, n);
        return (int)n;
    }
    return RLH_ERR_INVALID;
}

int rlh_queue_put(rlh_ring *ring, const rlh_item *items, size_t count, int64_t timeout) {
    if (ring->kind != RLH_RING_QUEUE || ring->owner == 0 || count < 1) return RLH_ERR_INVALID;
    if (count > RLH_MAX_RING_BATCH || count > ring->cells) return RLH_ERR_TOO_LONG;
    struct batch b = {.from = items, .count = count};
    for (size_t i = 0; i < b.count; i++) {
        if (items[i].len > ring->payload) return RLH_ERR_TOO_LONG;
    }
    return ring_wait_put(ring, attempt_put, &b, timeout);
}

int rlh_queue_get(rlh_ring *ring, rlh_item *items, size_t count, void *memory, size_t room, int64_t timeout) {
    if (ring->kind != RLH_RING_QUEUE || ring->owner == 0 || count < 1) return RLH_ERR_INVALID;
    struct batch b = {.to = items, .count = count > RLH_MAX_RING_BATCH ? RLH_MAX_RING_BATCH : count,
                      .memory = memory, .room = room};
    return ring_wait_get(ring, attempt_get, &b, timeout);
}

uint64_t rlh_queue_bytes(const rlh_ring *ring) {
    uint64_t bytes = 0, head = LOAD(&ring->header->head);
    for (uint32_t i = 0, used = rlh_ring_used(ring); i < used; i++) {
        const rlh_ring_cell *c = cell(ring, head + i);
        uint32_t len = LOAD_RELAXED(&c->len);
        if (LOAD(&c->ctl) == make_ctl(head + i, RLH_RING_READY, 0, 0)) bytes += len > ring->payload ? ring->payload : len;
    }
    return bytes;
}

// void_batch makes a dead producer's cells void, the first last: until then the claim tells a repetition all.
static void void_batch(rlh_ring *ring, uint64_t position, uint32_t n) {
    for (uint32_t i = n; i-- > 0;) STORE(&cell(ring, position + i)->ctl, make_ctl(position + i, RLH_RING_VOID, 0, 0));
}

// return_batch frees a dead consumer's cells and hands out what it had not finished with.
static void return_batch(rlh_ring *ring, uint64_t position, uint32_t n, rlh_lost_fn lost, void *user) {
    for (uint32_t i = n; i-- > 0;) {
        rlh_ring_cell *c = cell(ring, position + i);
        if (i > 0 && LOAD(&c->ctl) != make_ctl(position + i, RLH_RING_READY, 0, 0)) continue;
        uint32_t len = LOAD_RELAXED(&c->len);
        if (len > ring->payload) len = ring->payload;
        rlh_item item = {c + 1, len, LOAD_RELAXED(&c->kind)};
        if (lost != NULL) lost(user, &item);
        STORE(&c->ctl, make_ctl(position + i + ring->cells, RLH_RING_FREE, 0, 0));
    }
}

// help moves an index over a claim that its dead owner may not have moved.
static void help(uint64_t *index, uint64_t position, uint32_t n) {
    uint64_t at = LOAD(index);
    if ((at & POSITION_MASK) == position) cas64(index, at, at + n);
}

void rlh_queue_recover(rlh_ring *ring, uint32_t owner, rlh_lost_fn lost, void *user) {
    if (ring->kind != RLH_RING_QUEUE || owner == 0) return;
    for (uint32_t i = 0; i < ring->cells; i++) {
        uint64_t v = LOAD(&cell(ring, i)->ctl), position = ctl_position(v);
        if (ctl_owner(v) != owner || (position & (ring->cells - 1)) != i) continue;
        uint32_t n = ctl_count(ring, v);
        switch (ctl_state(v)) {
        case RLH_RING_WRITING:
            help(&ring->header->tail, position, n);
            void_batch(ring, position, n);
            break;
        case RLH_RING_READING:
            help(&ring->header->head, position, n);
            return_batch(ring, position, n, lost, user);
            break;
        case RLH_RING_VOIDING:
            help(&ring->header->head, position, n);
            return_batch(ring, position, n, NULL, NULL);
            break;
        default: break;
        }
    }
    rlh_ring_kick(ring);
}
