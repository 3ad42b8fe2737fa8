// Drives the queue of rlhost's library for native plugins in C.
#include "drive.hpp"

#include "rlhost.h"

namespace {

class Fifo {
public:
    Fifo() { check(rlh_ring_create(&file, RLH_RING_QUEUE, 4096, sizeof(Message))); }
    void join(unsigned who) { check(rlh_ring_attach(&ring, file, RLH_RING_QUEUE, who)); }

    void put(const Message *messages, size_t n) {
        rlh_item items[256];
        for (size_t i = 0; i < n; i++) items[i] = {&messages[i], sizeof(Message), 0};
        check(rlh_queue_put(ring, items, n, RLH_FOREVER));
    }

    size_t get(Message *out, size_t n) {
        rlh_item items[256];
        return size_t(check(rlh_queue_get(ring, items, n, out, n * sizeof(Message), RLH_FOREVER)));
    }

private:
    static int check(int result) {
        if (result < 0) { fprintf(stderr, "native: error %d\n", result); _exit(1); }
        return result;
    }
    int file = -1;
    rlh_ring *ring = nullptr;
};

}  // namespace

int main(int argc, char **argv) { return drive<Fifo>(argc, argv); }
