// Rings of messages: one producer, one consumer. Unpublished cells are invisible, so a dead process leaves nothing to
// repair.
#include "internal.h"

// room returns how many cells are free as far as the producer knows, and reads the head again if fewer than wanted. A
// head that goes backwards or past the tail is ignored.
static uint64_t room(rlh_ring *ring, size_t wanted) {
    if (ring->cells - (ring->tail - ring->head_seen) < wanted) {
        uint64_t head = LOAD(&ring->header->head);
        if (head - ring->head_seen <= ring->tail - ring->head_seen) ring->head_seen = head;
    }
    return ring->cells - (ring->tail - ring->head_seen);
}

// ready returns how many messages there are as far as the consumer knows, and reads the tail again if there are none. A
// tail that goes backwards or claims more than the ring holds is ignored.
static uint64_t ready(rlh_ring *ring) {
    if (ring->tail_seen == ring->head) {
        uint64_t tail = LOAD(&ring->header->tail);
        if (tail - ring->head <= ring->cells) ring->tail_seen = tail;
    }
    return ring->tail_seen - ring->head;
}

int messages_try_put(rlh_ring *ring, const rlh_message *m, size_t count) {
    if (LOAD_RELAXED(&ring->header->closed) != 0) return RLH_ERR_CLOSED;
    uint64_t free_cells = room(ring, count);
    size_t n = count < free_cells ? count : (size_t)free_cells;
    for (size_t i = 0; i < n; i++) memcpy(ring_cell_at(ring, ring->tail + i), &m[i], sizeof *m);
    if (n > 0) {
        ring->tail += n;
        STORE(&ring->header->tail, ring->tail);
    }
    return (int)n;
}

int messages_try_get(rlh_ring *ring, rlh_message *m, size_t count) {
    uint32_t closed = LOAD(&ring->header->closed); // before the tail, so that messages put before the close are seen
    uint64_t there = ready(ring);
    if (there == 0) return closed != 0 ? RLH_ERR_CLOSED : 0;
    size_t n = count < there ? count : (size_t)there;
    for (size_t i = 0; i < n; i++) memcpy(&m[i], ring_cell_at(ring, ring->head + i), sizeof *m);
    ring->head += n;
    STORE(&ring->header->head, ring->head);
    return (int)n;
}

struct messages {
    rlh_message *to;
    const rlh_message *from;
    size_t count;
};

static int attempt_put(rlh_ring *ring, void *arguments) {
    const struct messages *a = arguments;
    return messages_try_put(ring, a->from, a->count);
}

static int attempt_get(rlh_ring *ring, void *arguments) {
    const struct messages *a = arguments;
    return messages_try_get(ring, a->to, a->count);
}

static bool count_valid(const rlh_ring *ring, size_t count) {
    return ring->kind == RLH_RING_MESSAGES && count >= 1 && count <= INT32_MAX;
}

int rlh_messages_put(rlh_ring *ring, const rlh_message *m, size_t count, int64_t timeout) {
    if (!count_valid(ring, count)) return RLH_ERR_INVALID;
    struct messages a = {.from = m, .count = count};
    return ring_wait_put(ring, attempt_put, &a, timeout);
}

int rlh_messages_get(rlh_ring *ring, rlh_message *m, size_t count, int64_t timeout) {
    if (!count_valid(ring, count)) return RLH_ERR_INVALID;
    struct messages a = {.to = m, .count = count};
    return ring_wait_get(ring, attempt_get, &a, timeout);
}
