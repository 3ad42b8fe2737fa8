// Shared by the test programs: checks that print their line, and arenas as a host would make them.
#ifndef CHECK_H
#define CHECK_H

#include "../internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHECK(condition)                                                                \
    do {                                                                                \
        if (!(condition)) {                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);             \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

#define CHECK_EQUAL(got, want)                                                                               \
    do {                                                                                                     \
        long long got_ = (long long)(got), want_ = (long long)(want);                                        \
        if (got_ != want_) {                                                                                 \
            fprintf(stderr, "%s:%d: %s = %lld, want %lld\n", __FILE__, __LINE__, #got, got_, want_);         \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

// made is an arena's two files, and its words as the host maps them.
struct made {
    int words, data;
    rlh_arena_header *header;
    size_t words_bytes;
    rlh_arena_info info;
};

static inline struct made make_arena(uint32_t id, uint32_t blocks, size_t block_bytes) {
    struct made m = {.info = {.id = id, .blocks = blocks, .block_bytes = block_bytes, .name = "made", .schema = NULL}};
    size_t hints_at = RLH_ARENA_BLOCKS_AT + (size_t)blocks * RLH_ARENA_BLOCK_BYTES;
    size_t stride = (block_bytes + 4095) / 4096 * 4096;
    m.words_bytes = (hints_at + 8 * ((blocks + 63) / 64) + 4095) / 4096 * 4096;
    void *words, *data;
    CHECK(memory_create("words", m.words_bytes, &m.words, &words) == RLH_OK && memory_seal(m.words) == RLH_OK);
    CHECK(memory_create("data", stride * blocks, &m.data, &data) == RLH_OK && memory_seal(m.data) == RLH_OK);
    munmap(data, stride * blocks);
    m.header = words;
    *m.header = (rlh_arena_header){.magic = RLH_ARENA_MAGIC, .version = RLH_ARENA_VERSION, .arena = id, .blocks = blocks,
        .block_bytes = block_bytes, .stride = stride, .hints_at = hints_at, .words_total = m.words_bytes,
        .data_total = stride * blocks, .first = 1};
    rlh_arena_block *block = (rlh_arena_block *)(void *)((char *)words + RLH_ARENA_BLOCKS_AT);
    for (uint32_t i = 0; i < blocks; i++) block[i].word = make_word(1, RLH_ARENA_FREE, 0);
    memset((char *)words + hints_at, 0xFF, 8 * ((blocks + 63) / 64));
    return m;
}

static inline void unmake_arena(struct made *m) {
    munmap(m->header, m->words_bytes);
    close(m->words);
    close(m->data);
}

// The parts of the unit test.
void unit_text(void);
void unit_memory(void);
void unit_link(void);
void unit_request(void);
void unit_ask(void);

#endif
