// A queue whose owners die between two changes. Its arguments are the kind of the queue and its cells; each line of standard input
// is a call. The answer has: whether the call was stopped, tail, head, and the word and first byte of every cell.
#include "check.h"

#include <setjmp.h>

static rlh_ring *queue;
static long left = -1; // changes before the call is stopped; -1: it is not
static jmp_buf stopped;

// step counts the changes of the queue's indices and of its cells' words.
void step(const volatile void *at) {
    if (left < 0) return;
    const rlh_ring_header *h = queue->header;
    size_t into = (size_t)((const volatile char *)at - queue->cells_at); // large where it is before the cells
    bool word = into < (size_t)queue->cells * queue->cell_bytes && into % queue->cell_bytes == 0;
    if ((word || at == &h->tail || at == &h->head) && left-- == 0) longjmp(stopped, 1);
}

// call does what a line says: "p COUNT FIRST" puts items of one byte, "g COUNT" gets items, "r" recovers the owner.
static void call(char what, size_t count, unsigned first) {
    static char memory[1 << 10];
    char bytes[RLH_MAX_RING_BATCH];
    rlh_item items[RLH_MAX_RING_BATCH];
    CHECK(count <= RLH_MAX_RING_BATCH);
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (char)(first + i);
        items[i] = (rlh_item){&bytes[i], 1, 0};
    }
    if (what == 'p') {
        rlh_queue_put(queue, items, count, 0);
    } else if (what == 'g') {
        rlh_queue_get(queue, items, count, memory, sizeof memory, 0);
    } else {
        rlh_queue_recover(queue, queue->owner, NULL, NULL);
    }
}

static int call_until(char what, size_t count, unsigned first) {
    if (setjmp(stopped) != 0) return 1;
    call(what, count, first);
    left = -1;
    return 0;
}

int main(int argc, char **args) {
    CHECK_EQUAL(argc, 3);
    uint32_t cells = (uint32_t)atoi(args[2]);
    int fd;
    CHECK_EQUAL(strcmp(args[1], "bytes") == 0 ? rlh_queue_create(&fd, 48 * cells) : rlh_ring_create(&fd, RLH_RING_QUEUE, cells, 1), RLH_OK);
    CHECK_EQUAL(rlh_ring_attach(&queue, fd, RLH_RING_QUEUE, 1), RLH_OK);
    CHECK_EQUAL(queue->cells, cells);
    char what;
    unsigned owner, count, first;
    long stop;
    while (scanf(" %c %u %ld %u %u", &what, &owner, &stop, &count, &first) == 5) {
        queue->owner = owner;
        left = stop;
        int early = call_until(what, count, first);
        printf("%d %llu %llu", early, (unsigned long long)queue->header->tail,
               (unsigned long long)queue->header->head);
        for (uint32_t i = 0; i < cells; i++) {
            const rlh_ring_cell *c = (const rlh_ring_cell *)(const void *)ring_cell_at(queue, i);
            printf(" %llu %u", (unsigned long long)c->ctl, *(const unsigned char *)(c + 1));
        }
        puts("");
        fflush(stdout);
    }
    rlh_ring_detach(queue);
    close(fd);
}
