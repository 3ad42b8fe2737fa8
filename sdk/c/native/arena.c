// Arenas: the mapping, loans, credits.
#include "internal.h"

#include <unistd.h>

// header_check compares the words segment with the announcement and the sizes of the files. Later only the copies made
// here are read.
static int header_check(rlh_arena *a, const rlh_arena_info *said) {
    const rlh_arena_header *h = a->header;
    if (a->words_mapped < RLH_ARENA_BLOCKS_AT || LOAD(&h->magic) != RLH_ARENA_MAGIC || h->version != RLH_ARENA_VERSION ||
        h->arena != said->id || h->blocks != said->blocks || h->block_bytes != said->block_bytes) {
        return RLH_ERR_INVALID;
    }
    size_t hints_at = LOAD_RELAXED(&h->hints_at), stride = LOAD_RELAXED(&h->stride);
    size_t blocks_end = RLH_ARENA_BLOCKS_AT + (size_t)said->blocks * RLH_ARENA_BLOCK_BYTES;
    a->hint_words = (said->blocks + (size_t)RLH_ARENA_HINT_BLOCKS - 1) / RLH_ARENA_HINT_BLOCKS;
    if (hints_at < blocks_end || hints_at % 8 != 0 || hints_at > a->words_mapped ||
        8 * a->hint_words > a->words_mapped - hints_at || stride < said->block_bytes || stride % 64 != 0 ||
        stride > a->data_mapped / said->blocks) {
        return RLH_ERR_INVALID;
    }
    a->blocks = (rlh_arena_block *)(void *)((char *)a->header + RLH_ARENA_BLOCKS_AT);
    a->hints = (uint64_t *)(void *)((char *)a->header + hints_at);
    a->info.stride = stride;
    return RLH_OK;
}

static int map_segments(rlh_arena *a, int words_fd, int data_fd, const rlh_arena_info *said) {
    if (said->blocks < 1 || said->blocks > RLH_MAX_BLOCK + 1 || said->block_bytes < 1 || said->id > RLH_MAX_ARENA) {
        return RLH_ERR_INVALID;
    }
    void *words = NULL, *data = NULL;
    int err = memory_map(words_fd, true, &a->words_mapped, &words);
    a->header = words;
    if (err != RLH_OK) return err;
    err = memory_map(data_fd, !said->read_only, &a->data_mapped, &data);
    a->data = data;
    return err == RLH_OK ? header_check(a, said) : err;
}

int rlh_arena_attach(rlh_arena **out, int words_fd, int data_fd, const rlh_arena_info *said, uint32_t holder,
                     rlh_freed_fn freed, void *user) {
    if (holder > RLH_MAX_HOLDER) return RLH_ERR_INVALID;
    rlh_arena *a = calloc(1, sizeof *a);
    if (a == NULL) return RLH_ERR_MEMORY;
    pthread_mutex_init(&a->mutex, NULL);
    a->info = *said;
    a->info.name = strdup(said->name != NULL ? said->name : "");
    a->info.schema = strdup(said->schema != NULL ? said->schema : "");
    a->freed = freed;
    a->user = user;
    arena_identify(a, holder);
    int err = a->info.name != NULL && a->info.schema != NULL ? map_segments(a, words_fd, data_fd, said) : RLH_ERR_MEMORY;
    if (err == RLH_OK) a->locals = aligned_alloc(64, (size_t)said->blocks * sizeof *a->locals);
    if (err == RLH_OK && a->locals == NULL) err = RLH_ERR_MEMORY;
    if (err != RLH_OK) {
        rlh_arena_detach(a);
        return err;
    }
    memset(a->locals, 0, (size_t)said->blocks * sizeof *a->locals);
    columns_read(a);
    *out = a;
    return RLH_OK;
}

void rlh_arena_detach(rlh_arena *a) {
    if (a == NULL) return;
    memory_unmap(a->header, a->words_mapped);
    memory_unmap(a->data, a->data_mapped);
    while (a->credits != NULL) {
        struct credit *older = a->credits->older;
        free(a->credits);
        a->credits = older;
    }
    columns_free(a);
    free(a->locals);
    free((char *)a->info.name);
    free((char *)a->info.schema);
    pthread_mutex_destroy(&a->mutex);
    free(a);
}

void arena_identify(rlh_arena *a, uint32_t holder) {
    a->holder = holder;
    a->me = UINT64_C(1) << holder;
}

const rlh_arena_info *rlh_arena_get_info(const rlh_arena *a) { return &a->info; }

int arena_check(const rlh_arena *a, rlh_handle h) {
    if (rlh_handle_arena(h) != a->info.id) return RLH_ERR_FOREIGN;
    return rlh_handle_block(h) < a->info.blocks ? RLH_OK : RLH_ERR_RANGE;
}

char *arena_bytes(const rlh_arena *a, uint32_t block) { return a->data + (size_t)block * a->info.stride; }

static int may_loan(const rlh_arena *a) {
    if (a->info.read_only) return RLH_ERR_READ_ONLY;
    return atomic_load(&a->removed) ? RLH_ERR_CLOSED : RLH_OK;
}

// take moves a block from FREE to WRITE. The hint is cleared after the word changes: a hint too many costs a look, one
// too few would hide the block until a search.
static int take(rlh_arena *a, uint32_t block, rlh_handle *h, void **bytes) {
    for (;;) {
        uint64_t w = LOAD(&a->blocks[block].word), generation = word_generation(w);
        if (word_state(w) != RLH_ARENA_FREE) return RLH_ERR_BUSY;
        if (!cas64(&a->blocks[block].word, w, make_word(generation, RLH_ARENA_WRITE, a->me))) continue;
        __atomic_fetch_and(&a->hints[block / RLH_ARENA_HINT_BLOCKS], ~(UINT64_C(1) << (block % RLH_ARENA_HINT_BLOCKS)),
                           __ATOMIC_SEQ_CST);
        *h = (uint64_t)a->info.id << (RLH_BLOCK_BITS + RLH_GENERATION_BITS) | (uint64_t)block << RLH_GENERATION_BITS |
             generation;
        if (bytes != NULL) *bytes = arena_bytes(a, block);
        return RLH_OK;
    }
}

// take_hinted tries the blocks that one word of hints calls free.
static int take_hinted(rlh_arena *a, size_t at, rlh_handle *h, void **bytes) {
    for (uint64_t hint = LOAD(&a->hints[at]); hint != 0; hint &= hint - 1) {
        uint32_t block = (uint32_t)(at * RLH_ARENA_HINT_BLOCKS) + (uint32_t)__builtin_ctzll(hint);
        if (block >= a->info.blocks) break;
        if (take(a, block, h, bytes) == RLH_OK) return RLH_OK;
    }
    return RLH_ERR_EXHAUSTED;
}

// take_searched looks at the words themselves. Two passes that find no free block and the same generations prove
// that between them none was free.
static int take_searched(rlh_arena *a, rlh_handle *h, void **bytes) {
    uint64_t before = 0;
    for (int pass = 0;; pass++) {
        uint64_t sum = 0;
        for (uint32_t block = 0; block < a->info.blocks; block++) {
            uint64_t w = LOAD(&a->blocks[block].word);
            for (; word_state(w) == RLH_ARENA_FREE; w = LOAD(&a->blocks[block].word)) {
                if (take(a, block, h, bytes) == RLH_OK) return RLH_OK;
            }
            sum += word_generation(w);
        }
        if (pass > 0 && sum == before) return RLH_ERR_EXHAUSTED;
        before = sum;
    }
}

int rlh_loan(rlh_arena *a, rlh_handle *h, void **bytes) {
    int err = may_loan(a);
    if (err != RLH_OK) return err;
    size_t start = LOAD_RELAXED(&a->header->cursor);
    if (start >= a->hint_words) start = 0;
    for (size_t k = 0; k < a->hint_words; k++) {
        size_t at = start + k < a->hint_words ? start + k : start + k - a->hint_words;
        if (take_hinted(a, at, h, bytes) != RLH_OK) continue;
        if (k > 0) STORE_RELAXED(&a->header->cursor, (uint32_t)at);
        return RLH_OK;
    }
    return take_searched(a, h, bytes);
}

int rlh_loan_block(rlh_arena *a, uint32_t block, rlh_handle *h, void **bytes) {
    if (block >= a->info.blocks) return RLH_ERR_RANGE;
    int err = may_loan(a);
    return err == RLH_OK ? take(a, block, h, bytes) : err;
}

static uint64_t writing(const rlh_arena *a, rlh_handle h) {
    return make_word(rlh_handle_generation(h), RLH_ARENA_WRITE, a->me);
}

int rlh_commit(rlh_arena *a, rlh_handle h) {
    int err = arena_check(a, h);
    if (err != RLH_OK) return err;
    if (!claim_first(a, h)) return RLH_ERR_SPENT;
    uint64_t live = make_word(rlh_handle_generation(h), RLH_ARENA_LIVE, a->me);
    if (cas64(block_word(a, h), writing(a, h), live)) {
        claim_kept(a, 1);
        return RLH_OK;
    }
    claim_undo(a, h);
    return RLH_ERR_SPENT;
}

int rlh_abort(rlh_arena *a, rlh_handle h) {
    int err = arena_check(a, h);
    if (err != RLH_OK) return err;
    uint64_t w = writing(a, h);
    if (!cas64(block_word(a, h), w, word_freed(w))) return RLH_ERR_SPENT;
    __atomic_fetch_add(&a->blocks[rlh_handle_block(h)].aborts, 1, __ATOMIC_SEQ_CST);
    arena_announce(a, rlh_handle_block(h), rlh_handle_generation(h));
    return RLH_OK;
}

int rlh_loaned(rlh_arena *a, rlh_handle h, void **bytes) {
    int err = arena_check(a, h);
    if (err != RLH_OK) return err;
    if (a->info.read_only) return RLH_ERR_READ_ONLY;
    if (!word_is(LOAD(block_word(a, h)), rlh_handle_generation(h), RLH_ARENA_WRITE)) return RLH_ERR_STALE;
    *bytes = arena_bytes(a, rlh_handle_block(h));
    return RLH_OK;
}

void arena_announce(rlh_arena *a, uint32_t block, uint64_t generation) {
    uint64_t *hints = &a->hints[block / RLH_ARENA_HINT_BLOCKS], bit = UINT64_C(1) << (block % RLH_ARENA_HINT_BLOCKS);
    if ((LOAD(hints) & bit) == 0) __atomic_fetch_or(hints, bit, __ATOMIC_SEQ_CST);
    uint32_t creditor = LOAD(&a->blocks[block].creditor);
    if (creditor == 0) return;
    rlh_handle h = (uint64_t)a->info.id << (RLH_BLOCK_BITS + RLH_GENERATION_BITS) |
                   (uint64_t)block << RLH_GENERATION_BITS | generation;
    if (creditor == a->holder + 1) {
        rlh_arena_credited(a, h);
    } else if (a->freed != NULL) {
        a->freed(a->user, h);
    }
}

// A free may be reported twice: by this process, and by the host, which looks again after a process has died.
void rlh_arena_credited(rlh_arena *a, rlh_handle h) {
    if (arena_check(a, h) != RLH_OK) return;
    struct local *l = &a->locals[rlh_handle_block(h)];
    uint64_t ended = rlh_handle_generation(h), before = __atomic_exchange_n(&l->credited, ended, __ATOMIC_SEQ_CST);
    const struct credit *c = LOAD(&l->credit);
    if (before != ended && c != NULL && c->run != NULL) c->run(c->user, a, rlh_handle_block(h));
}

int rlh_on_free(rlh_arena *a, uint32_t block, rlh_free_fn run, void *user) {
    if (block >= a->info.blocks) return RLH_ERR_RANGE;
    struct credit *c = malloc(sizeof *c);
    if (c == NULL) return RLH_ERR_MEMORY;
    pthread_mutex_lock(&a->mutex);
    *c = (struct credit){run, user, a->credits};
    a->credits = c;
    STORE(&a->locals[block].credit, c);
    __atomic_store_n(&a->blocks[block].creditor, run != NULL ? a->holder + 1 : 0, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&a->mutex);
    return RLH_OK;
}
