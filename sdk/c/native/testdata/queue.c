// Queues between processes, which this program forks.
#include "check.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

enum { PATIENCE = 300, PRODUCERS = 3, CONSUMERS = 3, FIRST_CONSUMER = 10, ITEMS = 20000, VICTIM = 7 };

// totals is how many items a consumer has got, and the sum of their numbers.
struct totals {
    uint64_t count, sum;
};

static rlh_ring *attach(int fd, uint32_t owner) {
    rlh_ring *q;
    CHECK_EQUAL(rlh_ring_attach(&q, fd, RLH_RING_QUEUE, owner), RLH_OK);
    return q;
}

static pid_t start(void) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) alarm(PATIENCE);
    return pid;
}

static void join(pid_t pid) {
    int status;
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// produce puts items: item i of an owner has i % 40 bytes behind its two numbers.
static void produce(int fd, uint32_t owner) {
    rlh_ring *q = attach(fd, owner);
    uint64_t batch = 1 + 3 * (owner - 1);
    static unsigned char bytes[RLH_MAX_RING_BATCH][64];
    rlh_item items[RLH_MAX_RING_BATCH];
    for (uint64_t i = 0; i < ITEMS;) {
        uint64_t k = ITEMS - i < batch ? ITEMS - i : batch;
        for (uint64_t j = 0; j < k; j++) {
            const uint64_t words[2] = {owner, i + j};
            memcpy(bytes[j], words, sizeof words);
            memset(bytes[j] + 16, (int)(i + j), 40);
            items[j] = (rlh_item){bytes[j], (uint32_t)(16 + (i + j) % 40), (uint32_t)(i + j)};
        }
        CHECK_EQUAL(rlh_queue_put(q, items, k, RLH_FOREVER), k);
        i += k;
    }
    rlh_ring_detach(q);
}

// consume gets items until the queue is shut: each is whole, and a producer's come in order.
static void consume(int fd, uint32_t owner, struct totals *out) {
    rlh_ring *q = attach(fd, owner);
    static char memory[64 * 64];
    uint64_t next[1 + PRODUCERS] = {0};
    rlh_item items[64];
    int n;
    while ((n = rlh_queue_get(q, items, 64, memory, sizeof memory, RLH_FOREVER)) > 0) {
        for (int i = 0; i < n; i++, out->count++) {
            uint64_t words[2];
            CHECK(items[i].len >= 16);
            memcpy(words, items[i].bytes, sizeof words);
            CHECK(words[0] <= PRODUCERS && words[1] >= next[words[0]]);
            CHECK(items[i].len == 16 + words[1] % 40 && items[i].kind == (uint32_t)words[1]);
            for (uint32_t k = 16; k < items[i].len; k++) CHECK(((const unsigned char *)items[i].bytes)[k] == (unsigned char)words[1]);
            next[words[0]] = words[1] + 1;
            out->sum += words[1];
        }
    }
    CHECK_EQUAL(n, RLH_ERR_CLOSED);
    rlh_ring_detach(q);
}

static void test_nothing_is_lost(int fd) {
    struct totals *all = mmap(NULL, CONSUMERS * sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(all != MAP_FAILED);
    pid_t producers[PRODUCERS], consumers[CONSUMERS];
    for (uint32_t i = 0; i < CONSUMERS; i++) {
        if ((consumers[i] = start()) == 0) {
            consume(fd, FIRST_CONSUMER + i, &all[i]);
            exit(0);
        }
    }
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        if ((producers[i] = start()) == 0) {
            produce(fd, 1 + i);
            exit(0);
        }
    }
    for (int i = 0; i < PRODUCERS; i++) join(producers[i]);
    rlh_ring *q = attach(fd, 4);
    rlh_ring_shut(q);
    rlh_ring_detach(q);
    struct totals sum = {0};
    for (int i = 0; i < CONSUMERS; i++) {
        join(consumers[i]);
        sum.count += all[i].count;
        sum.sum += all[i].sum;
    }
    CHECK_EQUAL(sum.count, PRODUCERS * ITEMS);
    CHECK_EQUAL(sum.sum, PRODUCERS * (uint64_t)ITEMS * (ITEMS - 1) / 2);
    munmap(all, CONSUMERS * sizeof *all);
}

static char memory[8 * 16];

// churn puts and gets until it is killed.
static void churn(int fd) {
    rlh_ring *q = attach(fd, VICTIM);
    rlh_item items[8];
    for (uint64_t i = 0;; i++) {
        const rlh_item put[3] = {{"aaaaaaaaaaaaaaaa", 16, 0}, {"bbbbbbbbbbbbbbbb", 16, 0}, {"cccccccccccccccc", 16, 0}};
        rlh_queue_put(q, put, 1 + i % 3, 0);
        rlh_queue_get(q, items, 1 + i % 5, memory, sizeof memory, 0);
    }
}

static void check_whole(void *user, const rlh_item *item) {
    (void)user;
    CHECK_EQUAL(item->len, 16);
    CHECK(memcmp(item->bytes, (const char *)item->bytes + 1, 15) == 0); // all bytes are the same
}

// drain empties a queue, then fills and empties it again: no cell may be stuck.
static void drain(rlh_ring *q) {
    rlh_item item;
    while (rlh_queue_get(q, &item, 1, memory, sizeof memory, 0) == 1) check_whole(NULL, &item);
    uint32_t cells = rlh_ring_cells(q);
    for (uint32_t i = 0; i < cells; i++) {
        item = (rlh_item){"", 0, i};
        CHECK_EQUAL(rlh_queue_put(q, &item, 1, 0), 1);
    }
    for (uint32_t i = 0; i < cells; i++) {
        CHECK_EQUAL(rlh_queue_get(q, &item, 1, memory, sizeof memory, 0), 1);
        CHECK_EQUAL(item.kind, i);
    }
}

// test_killed_process_blocks_nobody kills a process between its puts and gets, after some of its items have been seen.
static void test_killed_process_blocks_nobody(int fd) {
    rlh_ring *q = attach(fd, 1);
    for (int round = 0; round < 20; round++) {
        pid_t victim = start();
        if (victim == 0) churn(fd);
        for (int theirs = 0; theirs < 1 + 9 * round;) {
            rlh_item item = {"dddddddddddddddd", 16, 0};
            rlh_queue_put(q, &item, 1, 0); // it may be full
            if (rlh_queue_get(q, &item, 1, memory, sizeof memory, 0) != 1) continue;
            check_whole(NULL, &item);
            if (*(const char *)item.bytes != 'd') {
                theirs++;
            } else {
                sched_yield(); // the victim may wait for this processor
            }
        }
        CHECK_EQUAL(kill(victim, SIGKILL), 0);
        CHECK_EQUAL(waitpid(victim, NULL, 0), victim);
        rlh_queue_recover(q, VICTIM, check_whole, NULL);
        drain(q);
    }
    rlh_ring_detach(q);
}

// with_both runs a test on a queue with a cell for each item, and on one with as many cells for items of any size.
static void with_both(uint32_t cells, uint32_t payload, void (*test)(int fd)) {
    int fd;
    CHECK_EQUAL(rlh_ring_create(&fd, RLH_RING_QUEUE, cells, payload), RLH_OK);
    test(fd);
    close(fd);
    CHECK_EQUAL(rlh_queue_create(&fd, (uint64_t)cells * 48), RLH_OK);
    test(fd);
    close(fd);
}

int main(void) {
    alarm(PATIENCE);
    with_both(64, 64, test_nothing_is_lost);
    with_both(16, 16, test_killed_process_blocks_nobody);
}
