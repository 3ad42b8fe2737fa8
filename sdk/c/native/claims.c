// Claims on committed blocks. A process has one bit in a block's word; its threads share it through a counter in the
// process's own memory, which is gone when it dies. The last claim of a process clears its bit, and the last bit frees
// the block.
//
// The counter is generation:37 | closing:1 | count:26. A value of an older generation than the word's means no
// claims. While closing is set, one thread is between the counter and the word, and others wait for it.
#include "internal.h"

#include <sched.h>

#define CLAIM_BITS 26
#define CLAIM_MAX ((UINT64_C(1) << CLAIM_BITS) - 1)
#define CLAIM_CLOSING (UINT64_C(1) << CLAIM_BITS)
#define CLAIM_GENERATION_FROM (CLAIM_BITS + 1)

static uint64_t make_claims(uint64_t generation, uint64_t n) { return generation << CLAIM_GENERATION_FROM | n; }
static uint64_t claims_generation(uint64_t c) { return c >> CLAIM_GENERATION_FROM; }
static bool claims_closing(uint64_t c) { return (c & CLAIM_CLOSING) != 0; }
static uint64_t claims_count(uint64_t c) { return c & CLAIM_MAX; }

static uint64_t *counter_of(const rlh_arena *a, rlh_handle h) { return &a->locals[rlh_handle_block(h)].claims; }

// readable reports whether a new claim on h may begin while the block's word is w.
static int readable(uint64_t w, rlh_handle h) {
    if (word_is(w, rlh_handle_generation(h), RLH_ARENA_LIVE)) return RLH_OK;
    return word_is(w, rlh_handle_generation(h), RLH_ARENA_WRITE) ? RLH_ERR_STATE : RLH_ERR_STALE;
}

// refusal returns why a missing claim on h cannot be released.
static int refusal(const rlh_arena *a, rlh_handle h) {
    uint64_t w = LOAD(block_word(a, h)), generation = rlh_handle_generation(h);
    if (word_is(w, generation, RLH_ARENA_LIVE) || word_is(w, generation, RLH_ARENA_ZOMBIE)) return RLH_ERR_SPENT;
    return readable(w, h);
}

// enter_first sets this process's bit on a block that others hold. The caller has set closing.
static int enter_first(rlh_arena *a, rlh_handle h) {
    uint64_t generation = rlh_handle_generation(h), *counter = counter_of(a, h);
    for (;;) {
        uint64_t w = LOAD(block_word(a, h));
        int err = readable(w, h);
        if (err != RLH_OK) {
            // Nothing pins the block, so a commit of a later generation may have overwritten the counter.
            cas64(counter, make_claims(generation, CLAIM_CLOSING), make_claims(generation, 0));
            return err;
        }
        if (cas64(block_word(a, h), w, w | a->me)) {
            STORE(counter, make_claims(generation, 1));
            return RLH_OK;
        }
    }
}

// enter adds a claim. The counter is read before the word: a counter of a newer generation than the handle's is then
// impossible, and one of an older generation means no claims. While the counter is not zero this process's bit pins
// the block, so counting up is enough.
static int enter(rlh_arena *a, rlh_handle h) {
    uint64_t generation = rlh_handle_generation(h), *counter = counter_of(a, h);
    for (;;) {
        uint64_t c = LOAD(counter);
        int err = readable(LOAD(block_word(a, h)), h);
        if (err != RLH_OK) return err;
        if (claims_generation(c) != generation || (!claims_closing(c) && claims_count(c) == 0)) {
            if (cas64(counter, c, make_claims(generation, CLAIM_CLOSING))) return enter_first(a, h);
        } else if (claims_closing(c)) {
            sched_yield(); // another thread clears closing within a few instructions
        } else if (claims_count(c) == CLAIM_MAX) {
            return RLH_ERR_CLAIMS;
        } else if (cas64(counter, c, c + 1)) {
            return RLH_OK;
        }
    }
}

// drop clears this process's bit in the word of a block that the bit pins; without holders the block becomes free.
static bool drop(rlh_arena *a, rlh_handle h) {
    for (;;) {
        uint64_t w = LOAD(block_word(a, h));
        if ((w & a->me) == 0) return false;
        uint64_t next = w & ~a->me;
        bool last = word_holders(next) == 0;
        if (last) next = word_freed(w);
        if (!cas64(block_word(a, h), w, next)) continue;
        if (last) arena_announce(a, rlh_handle_block(h), word_generation(w));
        return last;
    }
}

static int leave(rlh_arena *a, rlh_handle h) {
    uint64_t generation = rlh_handle_generation(h), *counter = counter_of(a, h);
    for (;;) {
        uint64_t c = LOAD(counter);
        if (claims_generation(c) != generation || (!claims_closing(c) && claims_count(c) == 0)) return refusal(a, h);
        if (claims_closing(c)) {
            if (word_generation(LOAD(block_word(a, h))) != generation) return RLH_ERR_STALE;
            sched_yield();
        } else if (claims_count(c) > 1) {
            if (cas64(counter, c, c - 1)) return RLH_OK;
        } else if (cas64(counter, c, make_claims(generation, CLAIM_CLOSING))) {
            // The counter of a block that becomes free stays closing: its generation is over.
            if (!drop(a, h)) STORE(counter, make_claims(generation, 0));
            return RLH_OK;
        }
    }
}

bool claim_first(rlh_arena *a, rlh_handle h) {
    uint64_t generation = rlh_handle_generation(h), *counter = counter_of(a, h);
    for (;;) {
        uint64_t c = LOAD(counter); // before the word, as in enter, so that it never belongs to a later use
        if (LOAD(block_word(a, h)) != make_word(generation, RLH_ARENA_WRITE, a->me)) return false;
        if (claims_generation(c) == generation) return false;
        if (cas64(counter, c, make_claims(generation, 1))) return true;
    }
}

void claim_undo(rlh_arena *a, rlh_handle h) {
    uint64_t generation = rlh_handle_generation(h);
    cas64(counter_of(a, h), make_claims(generation, 1), make_claims(generation, 0));
}

int claim(rlh_arena *a, rlh_handle h) {
    int err = arena_check(a, h);
    return err == RLH_OK ? enter(a, h) : err;
}

int unclaim(rlh_arena *a, rlh_handle h) {
    int err = arena_check(a, h);
    return err == RLH_OK ? leave(a, h) : err;
}

void claim_kept(rlh_arena *a, int64_t more) { __atomic_fetch_add(&a->kept, more, __ATOMIC_SEQ_CST); }

int rlh_retain(rlh_arena *a, rlh_handle h) {
    int err = claim(a, h);
    if (err == RLH_OK) claim_kept(a, 1);
    return err;
}

int rlh_lease(rlh_arena *a, rlh_handle h, const void **bytes) {
    int err = rlh_retain(a, h);
    if (err == RLH_OK && bytes != NULL) *bytes = arena_bytes(a, rlh_handle_block(h));
    return err;
}

int rlh_release(rlh_arena *a, rlh_handle h) {
    int err = unclaim(a, h);
    if (err == RLH_OK) claim_kept(a, -1);
    return err;
}

uint32_t rlh_kept(const rlh_host *host) {
    int64_t kept = 0;
    uint32_t end = LOAD(&host->arena_end);
    for (uint32_t id = 0; id < end; id++) {
        const rlh_arena *a = LOAD(&host->arenas[id]);
        if (a != NULL && !atomic_load(&a->own)) kept += LOAD(&a->kept);
    }
    return kept > 0 ? (uint32_t)kept : 0;
}

int rlh_revoke(rlh_arena *a, rlh_handle h) {
    int err = arena_check(a, h);
    if (err != RLH_OK) return err;
    for (;;) {
        uint64_t w = LOAD(block_word(a, h));
        err = readable(w, h);
        if (err != RLH_OK) return err;
        if (cas64(block_word(a, h), w, make_word(word_generation(w), RLH_ARENA_ZOMBIE, word_holders(w)))) return RLH_OK;
    }
}

static void count_block(rlh_arena_stats *s, uint64_t w, uint64_t me) {
    switch (word_state(w)) {
    case RLH_ARENA_FREE: s->free++; break;
    case RLH_ARENA_WRITE:
        s->write++;
        if ((w & me) != 0) s->loans++;
        break;
    case RLH_ARENA_LIVE: s->live++; break;
    case RLH_ARENA_ZOMBIE: s->zombie++; break;
    default: s->closed++; break;
    }
}

void rlh_arena_count(const rlh_arena *a, rlh_arena_stats *s) {
    *s = (rlh_arena_stats){0};
    for (uint32_t block = 0; block < a->info.blocks; block++) {
        uint64_t c = LOAD(&a->locals[block].claims), w = LOAD(&a->blocks[block].word);
        count_block(s, w, a->me);
        bool held = word_state(w) == RLH_ARENA_LIVE || word_state(w) == RLH_ARENA_ZOMBIE;
        if (held && claims_generation(c) == word_generation(w) && !claims_closing(c)) s->claims += (uint32_t)claims_count(c);
    }
}
