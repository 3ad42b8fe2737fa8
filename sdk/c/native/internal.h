// Declarations private to the library.
#ifndef RLH_INTERNAL_H
#define RLH_INTERNAL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlhost.h"

// Words in shared memory are plain integers in the shared structs; access them only with these.
#define LOAD(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define LOAD_RELAXED(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define STORE_RELAXED(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

static inline bool cas64(uint64_t *p, uint64_t from, uint64_t to) {
    return __atomic_compare_exchange_n(p, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static inline bool cas32(uint32_t *p, uint32_t from, uint32_t to) {
    return __atomic_compare_exchange_n(p, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

// ---------------------------------------------------------------------------------------------- memory (memory.c)

// memory_create makes a memory file of that many bytes and maps it; memory_seal fixes its size.
int memory_create(const char *name, size_t bytes, int *fd, void **at);
int memory_seal(int fd);
// memory_map maps a file of fixed size and sets *bytes to its size.
int memory_map(int fd, bool writable, size_t *bytes, void **at);
void memory_unmap(void *at, size_t bytes);
// memory_write makes a sealed memory file of n bytes; memory_read reads the first n bytes of one: free() the result.
int memory_write(const char *name, const void *bytes, size_t n, int *fd);
int memory_read(int fd, size_t n, void **bytes);

// now is the monotonic clock, in nanoseconds.
int64_t now(void);
// deadline_after and left_until convert a timeout into a point in time and back; both accept RLH_FOREVER.
int64_t deadline_after(int64_t timeout);
int64_t left_until(int64_t deadline);

// ---------------------------------------------------------------------------------------------- rings (ring.c)

// patience is how one end waits, adapted to its earlier waits.
struct patience {
    uint32_t spin;   // pauses before anything else; 0: none
    uint32_t misses; // yields in a row that found nothing
    uint32_t skip;   // waits that must not yield
    uint32_t row;    // waits to skip after the next row of misses
};

struct rlh_ring {
    rlh_ring_header *header;
    char *cells_at;
    size_t mapped;
    // Constant: checked when attaching, never read from the header again.
    uint32_t cells, cell_bytes, payload, kind, owner;
    uint32_t limit;               // cells that may be in use
    uint32_t longest;             // bytes of a message
    uint32_t cancelled; // calls of this process return
    // For rings of messages: this end's own index, and the other's as last seen. The producer uses tail and head_seen,
    // the consumer head and tail_seen.
    uint64_t tail, head_seen, head, tail_seen;
    struct patience putting, getting;
    rlh_queue_bound *bound; // of a queue, or NULL
};

// An attempt returns how many items it moved, 0 if it must wait, or an error.
typedef int (*ring_attempt)(rlh_ring *ring, void *arguments);
// ring_wait_get repeats an attempt until it does not return 0: first spinning, then asleep until a put.
int ring_wait_get(rlh_ring *ring, ring_attempt attempt, void *arguments, int64_t timeout);
int ring_wait_put(rlh_ring *ring, ring_attempt attempt, void *arguments, int64_t timeout);
// ring_has_put wakes waiting consumers, ring_has_got waiting producers.
void ring_has_put(rlh_ring *ring);
void ring_has_got(rlh_ring *ring);

int messages_try_put(rlh_ring *ring, const rlh_message *m, size_t count);
int messages_try_get(rlh_ring *ring, rlh_message *m, size_t count);

static inline char *ring_cell_at(const rlh_ring *ring, uint64_t position) {
    return ring->cells_at + (size_t)(position & (ring->cells - 1)) * ring->cell_bytes;
}

// ---------------------------------------------------------------------------------------------- arenas

// credit is the receiver of a block's credit in this process.
struct credit {
    rlh_free_fn run;
    void *user;
    struct credit *older; // kept until the arena is detached, since another thread may be running it
};

// local is this process's own state of a block, a cache line.
struct local {
    uint64_t claims; // see claims.c
    struct credit *credit;
    uint64_t credited; // generation whose end was credited last
    char pad[40];
};

struct rlh_arena {
    rlh_arena_info info;
    rlh_arena_header *header;
    rlh_arena_block *blocks;
    uint64_t *hints;
    size_t hint_words;
    char *data;
    size_t words_mapped, data_mapped;
    uint64_t me; // this process's bit
    uint32_t holder;
    struct local *locals;
    rlh_freed_fn freed;
    void *user;
    atomic_bool removed;
    atomic_bool own; // the component has asked for it
    int64_t kept;    // claims of the component, not of messages that wait

    rlh_column_view *columns;
    size_t column_count;

    pthread_mutex_t mutex; // adding credits
    struct credit *credits;
    rlh_arena *older; // arenas whose ID has been reused
};

// columns_read parses the columns out of the arena's schema.
void columns_read(rlh_arena *arena);
void columns_free(rlh_arena *arena);
// arena_identify sets the holder of an arena before its first use.
void arena_identify(rlh_arena *arena, uint32_t holder);
// arena_announce tells the creditor of a block that it has become free; generation is the use that ended.
void arena_announce(rlh_arena *arena, uint32_t block, uint64_t generation);
// arena_check returns 0 if h may name a block of the arena.
int arena_check(const rlh_arena *arena, rlh_handle h);
char *arena_bytes(const rlh_arena *arena, uint32_t block);
// claim and unclaim are rlh_retain and rlh_release for the library's own claims, such as those of messages that wait.
int claim(rlh_arena *arena, rlh_handle h);
int unclaim(rlh_arena *arena, rlh_handle h);
// claim_kept counts claims of the component.
void claim_kept(rlh_arena *arena, int64_t more);
// claim_first counts the claim that a commit leaves to its writer; claim_undo undoes that.
bool claim_first(rlh_arena *arena, rlh_handle h);
void claim_undo(rlh_arena *arena, rlh_handle h);

// The word of a block: generation:37 | state:3 | holders:24.
#define HOLDER_MASK ((UINT64_C(1) << RLH_ARENA_HOLDER_BITS) - 1)
#define GENERATION_FROM (RLH_ARENA_HOLDER_BITS + RLH_ARENA_STATE_BITS)

static inline uint64_t make_word(uint64_t generation, uint64_t state, uint64_t holders) {
    return generation << GENERATION_FROM | state << RLH_ARENA_HOLDER_BITS | holders;
}
static inline uint64_t word_generation(uint64_t w) { return w >> GENERATION_FROM; }
static inline uint64_t word_state(uint64_t w) { return w >> RLH_ARENA_HOLDER_BITS & 7; }
static inline uint64_t word_holders(uint64_t w) { return w & HOLDER_MASK; }
static inline bool word_is(uint64_t w, uint64_t generation, uint64_t state) {
    return w >> RLH_ARENA_HOLDER_BITS == make_word(generation, state, 0) >> RLH_ARENA_HOLDER_BITS;
}
// word_freed is the word of the block's next use. Generation 0 is skipped, so that handle 0 never names anything.
static inline uint64_t word_freed(uint64_t w) {
    uint64_t g = word_generation(w);
    return make_word(g >= RLH_MAX_GENERATION ? 1 : g + 1, RLH_ARENA_FREE, 0);
}

static inline uint64_t *block_word(const rlh_arena *a, rlh_handle h) { return &a->blocks[rlh_handle_block(h)].word; }

// ---------------------------------------------------------------------------------------------- the host

// answer is the answer to a pending call: a state, an arena, or a refusal.
struct answer {
    uint64_t call;
    int fd;      // of a state, else -1
    bool state;  // this is a state
    size_t bytes;
    rlh_arena *arena;
    char *refusal;
    struct answer *next;
};

// metrics holds the component's metrics; see metrics.c.
struct metrics;

struct rlh_host {
    rlh_handlers handlers;
    rlh_ring *in, *out;

    // The wire (wire.c). mutex guards answers, reason and the table of arenas against writers; reading guards
    // receiving.
    int wire, quit; // quit is an eventfd that ends the thread
    pthread_t thread;
    bool threaded;
    pthread_mutex_t reading, mutex;
    pthread_cond_t answered;
    struct answer *answers;
    char *reason;
    uint64_t calls;
    char *frame; // RLH_MAX_FRAME + 1 bytes
    rlh_arena *arenas[RLH_MAX_ARENA + 1];
    uint32_t arena_end; // all IDs are below
    rlh_arena *retired;
    struct metrics *metrics;

    // The link (link.c). All of it but out_mutex, and the fields that it guards, belongs to the main thread.
    uint32_t holder, sender;
    bool *on_loan; // by signal
    uint64_t *sequences;
    size_t signal_count, slot_count;
    bool bound, current, urgent, boundary_over, begun;
    rlh_message *waiting; // received and not handed out, a ring
    size_t waiting_room, waiting_head, waiting_count;
    rlh_handle claimed[RLH_LINK_WINDOW]; // by messages sent and not acknowledged, 0 = none
    uint64_t sent, acked;
    uint64_t finished; // messages of the host, in total
    pthread_mutex_t out_mutex;
    uint64_t told;         // newest acknowledgement in the out ring
    rlh_message *unsent;   // messages that had no room in the out ring
    size_t unsent_count, unsent_room;
    uint32_t awake, ended; // set by rlh_wake and rlh_end

    // The configuration (config.c).
    struct config *config;
    // The component (serve.c).
    struct service *service;
};

int wire_open(rlh_host *host);
void wire_close(rlh_host *host);
// wire_refused keeps the reason of a refusal, for rlh_reason, and owns the text.
void wire_refused(rlh_host *host, char *reason);
// wire_drain reads the pending frames of the wire. Any thread.
void wire_drain(rlh_host *host);
// wire_send_text sends a frame, with a file unless fd is -1, and frees the text.
struct text;
int wire_send_text(rlh_host *host, struct text *t, int fd);
// link_credit tells the host that a block is free; it is the freed function of all arenas.
void link_credit(void *host, rlh_handle h);
void link_close(rlh_host *host);

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);
// metrics_send sends the metrics that have changed, if any.
void metrics_send(rlh_host *host);

void config_free(struct config *config);

#endif
