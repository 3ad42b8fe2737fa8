// Rings and arenas within one process, where sanitizers see everything.
#include "check.h"

static rlh_ring *make_ring(uint32_t kind, uint32_t cells, uint32_t payload, uint32_t owner, int *fd) {
    rlh_ring *r;
    CHECK_EQUAL(rlh_ring_create(fd, kind, cells, payload), RLH_OK);
    CHECK_EQUAL(rlh_ring_attach(&r, *fd, kind, owner), RLH_OK);
    return r;
}

static void test_messages_keep_their_order(void) {
    int fd;
    rlh_ring *put = make_ring(RLH_RING_MESSAGES, 4, 64, 0, &fd), *get;
    CHECK_EQUAL(rlh_ring_attach(&get, fd, RLH_RING_MESSAGES, 0), RLH_OK);
    rlh_message in[8] = {{0}}, out[8];
    for (uint64_t i = 0; i < 8; i++) in[i].sequence = i;
    CHECK_EQUAL(rlh_messages_get(get, out, 8, 0), RLH_ERR_TIMEOUT);
    CHECK_EQUAL(rlh_messages_put(put, in, 8, 0), 4);
    CHECK_EQUAL(rlh_messages_put(put, in, 1, 1000000), RLH_ERR_TIMEOUT);
    CHECK_EQUAL(rlh_messages_get(get, out, 3, RLH_FOREVER), 3);
    CHECK_EQUAL(rlh_messages_put(put, in + 4, 4, 0), 3);
    CHECK_EQUAL(rlh_messages_get(get, out + 3, 5, 0), 1);
    CHECK_EQUAL(rlh_messages_get(get, out + 4, 4, 0), 3);
    for (uint64_t i = 0; i < 7; i++) CHECK_EQUAL(out[i].sequence, i);
    rlh_ring_shut(put);
    CHECK_EQUAL(rlh_messages_put(put, in, 1, 0), RLH_ERR_CLOSED);
    CHECK_EQUAL(rlh_messages_get(get, out, 1, RLH_FOREVER), RLH_ERR_CLOSED);
    rlh_ring_detach(put);
    rlh_ring_detach(get);
    close(fd);
}

static void test_nonsense_indexes_are_nothing(void) {
    int fd;
    rlh_ring *r = make_ring(RLH_RING_MESSAGES, 4, 64, 0, &fd);
    rlh_message m[4] = {{0}};
    const uint64_t nonsense[] = {UINT64_MAX, 5, 1 << 20, UINT64_MAX / 2};
    for (size_t i = 0; i < 4; i++) {
        r->header->tail = nonsense[i];
        CHECK_EQUAL(rlh_messages_get(r, m, 4, 0), RLH_ERR_TIMEOUT);
        r->header->head = nonsense[i];
        CHECK(rlh_ring_used(r) <= 4);
    }
    CHECK_EQUAL(rlh_messages_put(r, m, 4, 0), 4);
    CHECK_EQUAL(rlh_messages_put(r, m, 1, 0), RLH_ERR_TIMEOUT);
    rlh_ring_detach(r);
    close(fd);
}

static void test_headers_are_checked(void) {
    for (int field = 0; field < 7; field++) {
        int fd;
        rlh_ring *r = make_ring(RLH_RING_QUEUE, 8, 100, 1, &fd), *again;
        uint32_t *const places[] = {&r->header->version, &r->header->kind, &r->header->cells, &r->header->cell_bytes,
                                    &r->header->payload, (uint32_t *)(void *)&r->header->magic,
                                    (uint32_t *)(void *)&r->header->cells_at};
        for (int i = 0; i < 5; i++) {
            uint32_t before = *places[field];
            const uint32_t values[] = {0, before + 64, before * 2, UINT32_MAX, before ^ 0x80000000u};
            *places[field] = values[i];
            CHECK_EQUAL(rlh_ring_attach(&again, fd, RLH_RING_QUEUE, 1), RLH_ERR_INVALID);
            *places[field] = before;
        }
        CHECK_EQUAL(rlh_ring_attach(&again, fd, RLH_RING_MESSAGES, 1), RLH_ERR_INVALID);
        rlh_ring_detach(r);
        close(fd);
    }
    int fd = memfd_create("not sealed", 0);
    rlh_ring *r;
    CHECK(fd >= 0 && ftruncate(fd, 1 << 16) == 0);
    CHECK_EQUAL(rlh_ring_attach(&r, fd, RLH_RING_MESSAGES, 0), RLH_ERR_INVALID);
    close(fd);
}

static void test_queue_keeps_items_whole(void) {
    int fd;
    rlh_ring *q = make_ring(RLH_RING_QUEUE, 8, 40, 5, &fd);
    rlh_item in[8], out[8];
    char bytes[8][40], memory[200];
    for (uint32_t i = 0; i < 8; i++) {
        memset(bytes[i], (int)('a' + i), 40);
        in[i] = (rlh_item){bytes[i], 5 * i, i};
    }
    CHECK_EQUAL(rlh_queue_put(q, in, 8, 0), 8);
    CHECK_EQUAL(rlh_queue_put(q, in, 1, 0), RLH_ERR_TIMEOUT);
    CHECK_EQUAL(rlh_queue_put(q, in, 9, 0), RLH_ERR_TOO_LONG);
    CHECK_EQUAL(rlh_queue_get(q, out, 8, memory, 12, 0), 2); // 0 and 5 bytes; the third would be 10 more
    CHECK_EQUAL(rlh_queue_get(q, out, 8, memory, 9, 0), RLH_ERR_TOO_LONG);
    CHECK_EQUAL(rlh_queue_get(q, out, 3, memory, sizeof memory, 0), 3);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK(out[i].len == 5 * (i + 2) && out[i].kind == i + 2 && memcmp(out[i].bytes, bytes[i + 2], out[i].len) == 0);
    }
    CHECK_EQUAL(rlh_queue_put(q, in, 6, 0), RLH_ERR_TIMEOUT); // all or none
    CHECK_EQUAL(rlh_queue_put(q, in, 5, 0), 5);
    in[0].len = 41;
    CHECK_EQUAL(rlh_queue_put(q, in, 1, 0), RLH_ERR_TOO_LONG);
    rlh_ring_detach(q);
    close(fd);
}

struct losses {
    uint32_t count, kinds[8];
};

static void on_lost(void *user, const rlh_item *item) {
    struct losses *l = user;
    CHECK(l->count < 8);
    l->kinds[l->count++] = item->kind;
}

// test_claims_of_the_dead_are_repaired leaves claims behind as a dying process does.
static void test_claims_of_the_dead_are_repaired(void) {
    int fd;
    rlh_ring *q = make_ring(RLH_RING_QUEUE, 8, 16, 5, &fd);
    rlh_item items[8];
    char memory[256];
    for (uint32_t i = 0; i < 8; i++) items[i] = (rlh_item){"x", 1, i};
    uint64_t *word = (uint64_t *)(void *)ring_cell_at(q, 0);
    *word = (uint64_t)RLH_RING_WRITING << 20 | 3u << 12 | 7; // claimed by 7, who has not moved the tail
    CHECK_EQUAL(rlh_queue_put(q, items, 2, 0), 2);           // helps over the claim
    CHECK_EQUAL(q->header->tail, 5);
    CHECK_EQUAL(rlh_queue_get(q, items, 8, memory, 256, 0), RLH_ERR_TIMEOUT);
    rlh_queue_recover(q, 7, NULL, NULL);
    rlh_queue_recover(q, 7, NULL, NULL);
    CHECK_EQUAL(rlh_queue_get(q, items, 8, memory, 256, 0), 2);
    CHECK(items[0].kind == 0 && items[1].kind == 1);

    for (uint32_t i = 0; i < 8; i++) items[i] = (rlh_item){"x", 1, i};
    CHECK_EQUAL(rlh_queue_put(q, items, 4, 0), 4); // positions 5 to 8
    word = (uint64_t *)(void *)ring_cell_at(q, 5);
    *word = (uint64_t)5 << 24 | (uint64_t)RLH_RING_READING << 20 | 2u << 12 | 7;
    struct losses lost = {0};
    rlh_queue_recover(q, 7, on_lost, &lost);
    CHECK_EQUAL(lost.count, 2);
    CHECK_EQUAL(rlh_queue_get(q, items, 8, memory, 256, 0), 2);
    CHECK(items[0].kind == 2 && items[1].kind == 3);
    rlh_ring_detach(q);
    close(fd);
}

static void test_cells_of_the_dead_take_no_room(void) {
    int fd;
    rlh_ring *q = make_ring(RLH_RING_QUEUE, 8, 16, 5, &fd);
    rlh_item items[8];
    for (uint32_t i = 0; i < 8; i++) items[i] = (rlh_item){"x", 1, i};
    uint64_t *word = (uint64_t *)(void *)ring_cell_at(q, 0);
    *word = (uint64_t)RLH_RING_WRITING << 20 | 8u << 12 | 7;
    CHECK_EQUAL(rlh_queue_put(q, items, 1, 0), RLH_ERR_TIMEOUT);
    rlh_queue_recover(q, 7, NULL, NULL);
    rlh_queue_stats stats;
    rlh_queue_count(q, &stats);
    CHECK_EQUAL(stats.items, 0);
    CHECK_EQUAL(rlh_queue_put(q, items, 8, 0), 8); // nobody has got anything
    rlh_ring_detach(q);
    close(fd);
}

static rlh_ring *make_any(uint64_t bytes, int *fd) {
    rlh_ring *r;
    CHECK_EQUAL(rlh_queue_create(fd, bytes), RLH_OK);
    CHECK_EQUAL(rlh_ring_attach(&r, *fd, RLH_RING_QUEUE, 5), RLH_OK);
    return r;
}

static void test_queue_takes_items_of_any_size(void) {
    int fd;
    CHECK_EQUAL(rlh_queue_create(&fd, 0), RLH_ERR_INVALID);
    CHECK_EQUAL(rlh_queue_create(&fd, UINT64_C(1) << 32), RLH_ERR_INVALID);
    rlh_ring *q = make_any(480, &fd);
    char bytes[481], memory[960];
    for (int i = 0; i < 481; i++) bytes[i] = (char)i;
    rlh_item out[8];
    for (uint32_t len = 0; len <= 480; len++) { // round and round
        rlh_item in[3] = {{bytes, len, 1}, {bytes, 480 - len > 48 ? 480 - len - 48 : 0, 2}, {bytes, 481, 3}};
        CHECK_EQUAL(rlh_queue_put(q, in + 2, 1, 0), RLH_ERR_TOO_LONG);
        int n = (int)rlh_queue_batch(q, in, 3);
        CHECK_EQUAL(n, len > 432 ? 1 : 2);
        CHECK_EQUAL(rlh_queue_put(q, in, (size_t)n, 0), n);
        rlh_queue_stats stats;
        rlh_queue_count(q, &stats);
        CHECK(stats.items == (uint64_t)n && stats.bytes == in[0].len + (n > 1 ? in[1].len : 0));
        if (len > 0) CHECK_EQUAL(rlh_queue_get(q, out, 8, memory, len - 1, 0), RLH_ERR_TOO_LONG);
        CHECK_EQUAL(rlh_queue_get(q, out, 8, memory, sizeof memory, 0), n);
        for (int i = 0; i < n; i++) CHECK(out[i].len == in[i].len && out[i].kind == in[i].kind && memcmp(out[i].bytes, bytes, out[i].len) == 0);
    }
    CHECK_EQUAL(q->header->head, q->header->tail);
    rlh_ring_detach(q);
    close(fd);
}

struct whole {
    int count;
    uint32_t lens[4];
    char bytes[4][200];
};

static void keep_whole(void *user, const rlh_item *item) {
    struct whole *w = user;
    CHECK(w->count < 4 && item->len <= 200);
    w->lens[w->count] = item->len;
    memcpy(w->bytes[w->count++], item->bytes, item->len);
}

// test_long_items_of_the_dead_come_back_whole leaves the claim of a consumer that died while it freed its cells.
static void test_long_items_of_the_dead_come_back_whole(void) {
    int fd;
    rlh_ring *q = make_any(960, &fd); // 20 of 32 cells
    char bytes[150], memory[1000];
    for (int i = 0; i < 150; i++) bytes[i] = (char)i;
    rlh_item items[4] = {{"a", 1, 0}, {bytes, 150, 1}, {"b", 1, 2}};
    CHECK_EQUAL(rlh_queue_put(q, items, 3, 0), 3); // cells 0, 1 to 4, 5
    uint64_t *first = (uint64_t *)(void *)ring_cell_at(q, 0);
    *first = (uint64_t)RLH_RING_READING << 28 | 6u << 12 | 7;
    for (uint64_t i = 3; i < 6; i++) *(uint64_t *)(void *)ring_cell_at(q, i) = (i + 32) << 32; // free again
    rlh_item more = {bytes, 150, 9};
    for (int i = 0; i < 5; i++) CHECK_EQUAL(rlh_queue_put(q, &more, 1, 0), i < 3 ? 1 : RLH_ERR_TIMEOUT);
    struct whole lost = {0};
    rlh_queue_recover(q, 7, keep_whole, &lost);
    CHECK_EQUAL(lost.count, 2);
    CHECK(lost.lens[0] == 1 && lost.lens[1] == 150 && memcmp(lost.bytes[1], bytes, 150) == 0);
    CHECK_EQUAL(rlh_queue_get(q, items, 4, memory, sizeof memory, 0), 3);
    for (int i = 0; i < 3; i++) CHECK(items[i].len == 150 && memcmp(items[i].bytes, bytes, 150) == 0);
    for (int i = 0; i < 5; i++) CHECK_EQUAL(rlh_queue_put(q, &more, 1, 0), 1);
    rlh_ring_detach(q);
    close(fd);
}

// test_a_bound_holds beside the bytes, and a holder of it that has died is one more thing to repair.
static void test_a_bound_holds(void) {
    for (int any = 0; any < 2; any++) {
        int fd;
        rlh_ring *q = any ? make_any(48 * 8, &fd) : make_ring(RLH_RING_QUEUE, 8, 16, 5, &fd);
        rlh_queue_bound bound = {.most = 5};
        rlh_queue_bind(q, &bound);
        rlh_item items[8];
        char memory[128];
        for (uint32_t i = 0; i < 8; i++) items[i] = (rlh_item){"x", 1, i};
        CHECK_EQUAL(rlh_queue_batch(q, items, 8), 5);
        CHECK_EQUAL(rlh_queue_put(q, items, 6, 0), RLH_ERR_TOO_LONG);
        for (int round = 0; round < 20; round++) {
            CHECK_EQUAL(rlh_queue_put(q, items, 3, 0), 3);
            CHECK_EQUAL(rlh_queue_put(q, items, 3, 0), RLH_ERR_TIMEOUT); // all or none
            CHECK_EQUAL(rlh_queue_put(q, items, 2, 0), 2);
            CHECK_EQUAL(rlh_queue_put(q, items, 1, 0), RLH_ERR_TIMEOUT);
            CHECK_EQUAL(rlh_queue_get(q, items, 8, memory, sizeof memory, 0), 5);
        }
        bound.holder = 7; // as owner 7 leaves it when it is killed during a put
        CHECK_EQUAL(rlh_queue_put(q, items, 1, 0), RLH_ERR_TIMEOUT);
        rlh_queue_recover(q, 8, NULL, NULL);
        CHECK_EQUAL(rlh_queue_put(q, items, 1, 0), RLH_ERR_TIMEOUT);
        rlh_queue_recover(q, 7, NULL, NULL);
        CHECK_EQUAL(rlh_queue_put(q, items, 5, 0), 5);
        rlh_ring_shut(q);
        CHECK_EQUAL(rlh_queue_put(q, items, 1, 0), RLH_ERR_CLOSED);
        rlh_ring_detach(q);
        close(fd);
    }
}

// test_garbage_in_a_queue_ends: whatever a peer writes, calls return and stay within the memory.
static void test_garbage_in_a_queue_ends(void) {
    uint64_t seed = 42;
    for (int round = 0; round < 400; round++) {
        int fd;
        rlh_ring *q = round < 200 ? make_ring(RLH_RING_QUEUE, 4, 16, 5, &fd) : make_any(100, &fd);
        uint64_t *words = (uint64_t *)(void *)q->cells_at;
        for (int i = 0; i < 16; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            words[i] = round % 2 == 0 ? seed : seed & 0x30FFFFFF;
        }
        q->header->head = round % 4 == 0 ? seed >> 3 : 0;
        rlh_item items[4];
        char memory[64], long_one[100] = {0};
        rlh_queue_stats stats;
        for (int i = 0; i < 4; i++) {
            rlh_queue_get(q, items, 4, memory, sizeof memory, 0);
            rlh_item item = {long_one, round < 200 ? 1 : 99, 0};
            rlh_queue_put(q, &item, 1, 0);
            rlh_queue_count(q, &stats);
            rlh_queue_recover(q, (uint32_t)(seed & 0xFFF), on_lost, &(struct losses){0});
        }
        rlh_ring_detach(q);
        close(fd);
    }
}

static void test_life_of_a_block(void) {
    struct made m = make_arena(9, 2, 100);
    rlh_arena *a, *b;
    CHECK_EQUAL(rlh_arena_attach(&a, m.words, m.data, &m.info, 1, NULL, NULL), RLH_OK);
    CHECK_EQUAL(rlh_arena_attach(&b, m.words, m.data, &m.info, 2, NULL, NULL), RLH_OK);
    rlh_handle h, other, third;
    void *bytes;
    const void *read;
    CHECK_EQUAL(rlh_loan(a, &h, &bytes), RLH_OK);
    CHECK_EQUAL(rlh_retain(b, h), RLH_ERR_STATE);
    CHECK_EQUAL(rlh_loaned(b, h, &bytes), RLH_OK);
    strcpy(bytes, "hello");
    CHECK_EQUAL(rlh_commit(b, h), RLH_ERR_SPENT);
    CHECK_EQUAL(rlh_commit(a, h), RLH_OK);
    CHECK_EQUAL(rlh_commit(a, h), RLH_ERR_SPENT);
    CHECK_EQUAL(rlh_abort(a, h), RLH_ERR_SPENT);
    CHECK_EQUAL(rlh_loaned(b, h, &bytes), RLH_ERR_STALE);
    CHECK_EQUAL(rlh_lease(b, h, &read), RLH_OK);
    CHECK(strcmp(read, "hello") == 0);
    CHECK_EQUAL(rlh_release(a, h), RLH_OK);
    CHECK_EQUAL(rlh_release(a, h), RLH_ERR_SPENT);
    CHECK_EQUAL(rlh_revoke(a, h), RLH_OK);
    CHECK_EQUAL(rlh_retain(a, h), RLH_ERR_STALE);
    CHECK(strcmp(read, "hello") == 0);
    CHECK_EQUAL(rlh_loan(a, &other, NULL), RLH_OK);
    CHECK_EQUAL(rlh_loan(a, &third, NULL), RLH_ERR_EXHAUSTED);
    CHECK_EQUAL(rlh_loan_block(a, rlh_handle_block(h), &third, NULL), RLH_ERR_BUSY);
    CHECK_EQUAL(rlh_loan_block(a, 2, &third, NULL), RLH_ERR_RANGE);
    rlh_arena_stats s;
    rlh_arena_count(b, &s);
    CHECK(s.zombie == 1 && s.write == 1 && s.claims == 1 && s.loans == 0);
    CHECK_EQUAL(rlh_release(b, h), RLH_OK);
    CHECK_EQUAL(rlh_release(b, h), RLH_ERR_STALE);
    CHECK_EQUAL(rlh_abort(a, other), RLH_OK);
    CHECK_EQUAL(rlh_retain(a, h + 1), RLH_ERR_STALE);
    CHECK_EQUAL(rlh_retain(a, 0), RLH_ERR_FOREIGN);
    CHECK_EQUAL(rlh_retain(a, h | (uint64_t)RLH_MAX_BLOCK << RLH_GENERATION_BITS), RLH_ERR_RANGE);
    CHECK_EQUAL(rlh_retain(a, h ^ (uint64_t)1 << 56), RLH_ERR_FOREIGN);
    rlh_arena_detach(a);
    rlh_arena_detach(b);
    unmake_arena(&m);
}

static void count_up(void *user, rlh_arena *a, uint32_t block) {
    (void)a, (void)block;
    ++*(int *)user;
}

static void note_handle(void *user, rlh_handle h) { *(rlh_handle *)user = h; }

static void test_credits_reach_their_creditor(void) {
    struct made m = make_arena(9, 2, 100);
    rlh_arena *a, *b;
    rlh_handle told = 0, h;
    int freed = 0;
    CHECK_EQUAL(rlh_arena_attach(&a, m.words, m.data, &m.info, 1, NULL, NULL), RLH_OK);
    CHECK_EQUAL(rlh_arena_attach(&b, m.words, m.data, &m.info, 2, note_handle, &told), RLH_OK);
    CHECK_EQUAL(rlh_on_free(a, 0, count_up, &freed), RLH_OK);
    CHECK_EQUAL(rlh_on_free(a, 2, count_up, &freed), RLH_ERR_RANGE);
    CHECK_EQUAL(rlh_loan_block(a, 0, &h, NULL), RLH_OK);
    CHECK_EQUAL(rlh_abort(a, h), RLH_OK);
    CHECK_EQUAL(freed, 1);
    CHECK_EQUAL(rlh_loan_block(b, 0, &h, NULL), RLH_OK);
    CHECK_EQUAL(rlh_abort(b, h), RLH_OK);
    CHECK(freed == 1 && told == h);
    rlh_arena_credited(a, told);
    rlh_arena_credited(a, told); // the host may repeat it
    CHECK_EQUAL(freed, 2);
    CHECK_EQUAL(rlh_on_free(a, 0, NULL, NULL), RLH_OK);
    CHECK_EQUAL(rlh_loan_block(a, 0, &h, NULL), RLH_OK);
    CHECK_EQUAL(rlh_abort(a, h), RLH_OK);
    CHECK_EQUAL(freed, 2);
    rlh_arena_detach(a);
    rlh_arena_detach(b);
    unmake_arena(&m);
}

static void test_announcements_are_checked(void) {
    struct made m = make_arena(9, 3, 5000);
    rlh_arena *a;
    const rlh_arena_info wrong[] = {
        {.id = 8, .blocks = 3, .block_bytes = 5000}, {.id = 9, .blocks = 2, .block_bytes = 5000},
        {.id = 9, .blocks = 3, .block_bytes = 5001}, {.id = 9, .blocks = 0, .block_bytes = 5000},
        {.id = 9, .blocks = UINT32_MAX, .block_bytes = 5000}, {.id = 256, .blocks = 3, .block_bytes = 5000},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_EQUAL(rlh_arena_attach(&a, m.words, m.data, &wrong[i], 1, NULL, NULL), RLH_ERR_INVALID);
    }
    CHECK_EQUAL(rlh_arena_attach(&a, m.words, m.data, &m.info, 24, NULL, NULL), RLH_ERR_INVALID);
    uint64_t *const places[] = {&m.header->magic, &m.header->blocks, &m.header->block_bytes, &m.header->stride, &m.header->hints_at};
    for (size_t i = 0; i < 5; i++) {
        uint64_t before = *places[i];
        const uint64_t values[] = {0, before + 1, UINT64_MAX, UINT64_MAX / 2, before * 4096};
        for (size_t k = 0; k < 5; k++) {
            *places[i] = values[k];
            CHECK_EQUAL(rlh_arena_attach(&a, m.words, m.data, &m.info, 1, NULL, NULL), RLH_ERR_INVALID);
        }
        *places[i] = before;
    }
    rlh_arena_info said = m.info;
    said.read_only = 1;
    rlh_handle h;
    CHECK_EQUAL(rlh_arena_attach(&a, m.words, m.data, &said, 1, NULL, NULL), RLH_OK);
    CHECK_EQUAL(rlh_loan(a, &h, NULL), RLH_ERR_READ_ONLY);
    rlh_arena_detach(a);
    unmake_arena(&m);
}

// hammer loans, claims and releases from several threads; it must read what it wrote.
struct hammer {
    rlh_arena *a;
    uint64_t newest; // handle of the last committed block
    atomic_int reads;
    atomic_bool over;
};

static void *write_blocks(void *user) {
    struct hammer *x = user;
    for (uint64_t i = 1; i <= 20000; i++) {
        rlh_handle h;
        void *bytes;
        if (rlh_loan(x->a, &h, &bytes) != RLH_OK) continue;
        for (int k = 0; k < 4; k++) ((uint64_t *)bytes)[k] = h;
        CHECK_EQUAL(rlh_commit(x->a, h), RLH_OK);
        CHECK_EQUAL(rlh_retain(x->a, h), RLH_OK);
        rlh_handle before = __atomic_exchange_n(&x->newest, h, __ATOMIC_SEQ_CST);
        if (before != 0) CHECK_EQUAL(rlh_release(x->a, before), RLH_OK);
        CHECK_EQUAL(rlh_release(x->a, h), RLH_OK);
    }
    return NULL;
}

static void *read_blocks(void *user) {
    struct hammer *x = user;
    while (!atomic_load(&x->over)) {
        rlh_handle h = LOAD(&x->newest);
        const void *bytes;
        if (h == 0 || rlh_lease(x->a, h, &bytes) != RLH_OK) continue;
        for (int k = 0; k < 4; k++) CHECK(((const uint64_t *)bytes)[k] == h);
        CHECK_EQUAL(rlh_release(x->a, h), RLH_OK);
        atomic_fetch_add(&x->reads, 1);
    }
    return NULL;
}

static void test_threads_share_the_process_bit(void) {
    struct made m = make_arena(9, 6, 64);
    struct hammer x = {0};
    CHECK_EQUAL(rlh_arena_attach(&x.a, m.words, m.data, &m.info, 1, NULL, NULL), RLH_OK);
    pthread_t writers[2], readers[2];
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&writers[i], NULL, write_blocks, &x) == 0);
        CHECK(pthread_create(&readers[i], NULL, read_blocks, &x) == 0);
    }
    for (int i = 0; i < 2; i++) pthread_join(writers[i], NULL);
    atomic_store(&x.over, true);
    for (int i = 0; i < 2; i++) pthread_join(readers[i], NULL);
    CHECK_EQUAL(rlh_release(x.a, x.newest), RLH_OK);
    rlh_arena_stats s;
    rlh_arena_count(x.a, &s);
    CHECK(s.free == 6 && s.claims == 0);
    rlh_arena_detach(x.a);
    unmake_arena(&m);
}

void unit_memory(void) {
    test_messages_keep_their_order();
    test_nonsense_indexes_are_nothing();
    test_headers_are_checked();
    test_queue_keeps_items_whole();
    test_claims_of_the_dead_are_repaired();
    test_cells_of_the_dead_take_no_room();
    test_queue_takes_items_of_any_size();
    test_long_items_of_the_dead_come_back_whole();
    test_a_bound_holds();
    test_garbage_in_a_queue_ends();
    test_life_of_a_block();
    test_credits_reach_their_creditor();
    test_announcements_are_checked();
    test_threads_share_the_process_bit();
}
