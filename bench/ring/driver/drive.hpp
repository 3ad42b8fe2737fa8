// What the drivers share: processes that produce and consume over a queue, given as a type Fifo with
//   void put(const Message *, size_t n);      waits for room
//   size_t get(Message *, size_t n);          waits for a message, returns how many it took
//   void join(unsigned who);                  called in each process, with a number of its own, before the first use
// PRODUCERS CONSUMERS EACH PUT GET prints the nanoseconds from the opening of the processes' common gate to the last
// message that a consumer took; rtt ROUNDS GAP_US prints the p50 and p99 of round trips in nanoseconds.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

constexpr uint64_t pill = ~0ull;

struct Message { uint64_t words[2]; };

struct Board {
    std::atomic<uint32_t> ready, gate;
    std::atomic<int32_t> producing;
    struct { uint64_t finished, sum, count; } child[64];
};

inline uint64_t now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

template <class T> T *shared(size_t bytes) {
    void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (p == MAP_FAILED) { perror("mmap"); exit(1); }
    return static_cast<T *>(p);
}

inline void wait_for_gate(Board *board) {
    board->ready++;
    while (!board->gate) usleep(200);
}

template <class Fifo> void produce(Board *board, Fifo &fifo, int consumers, uint64_t each, size_t batch) {
    std::vector<Message> messages(batch);
    wait_for_gate(board);
    for (uint64_t sent = 0; sent < each;) {
        size_t n = std::min<uint64_t>(batch, each - sent);
        for (size_t i = 0; i < n; i++) messages[i].words[0] = messages[i].words[1] = ++sent;
        fifo.put(messages.data(), n);
    }
    if (--board->producing == 0) {
        Message last{{pill, pill}};
        for (int i = 0; i < consumers; i++) fifo.put(&last, 1);
    }
}

template <class Fifo> void consume(Board *board, Fifo &fifo, int me, size_t batch) {
    std::vector<Message> messages(batch);
    uint64_t sum = 0, count = 0;
    wait_for_gate(board);
    for (int pills = 0; pills == 0;) {
        size_t n = fifo.get(messages.data(), batch);
        for (size_t i = 0; i < n; i++) {
            if (messages[i].words[0] == pill) { pills++; continue; }
            sum += messages[i].words[0];
            count++;
        }
        if (pills == 0) continue;
        board->child[me] = {now(), sum, count};
        for (Message more{{pill, pill}}; pills > 1; pills--) fifo.put(&more, 1);
    }
}

template <class Fifo> int mix(int producers, int consumers, uint64_t each, size_t put, size_t get) {
    auto board = shared<Board>(sizeof(Board));
    Fifo fifo;
    board->producing = producers;
    for (int i = 0; i < producers + consumers; i++) {
        if (fork() != 0) continue;
        fifo.join(unsigned(i + 1));
        if (i < producers) produce(board, fifo, consumers, each, put);
        else consume(board, fifo, i - producers, get);
        _exit(0);
    }
    while (board->ready != uint32_t(producers + consumers)) usleep(200);
    usleep(2000);  // until everybody sleeps in front of the gate
    uint64_t started = now(), finished = 0, sum = 0, count = 0;
    board->gate = 1;
    while (wait(nullptr) > 0) {}
    for (int i = 0; i < consumers; i++) {
        finished = std::max(finished, board->child[i].finished);
        sum += board->child[i].sum;
        count += board->child[i].count;
    }
    if (count != each * producers || sum != each * (each + 1) / 2 * producers) {
        fprintf(stderr, "driver: %lu messages of sum %lu\n", count, sum);
        return 1;
    }
    printf("%lu\n", finished - started);
    return 0;
}

template <class Fifo> int round_trips(size_t rounds, unsigned gap) {
    Fifo there, back;
    if (fork() == 0) {
        there.join(2), back.join(2);
        for (Message m;;) {
            there.get(&m, 1);
            back.put(&m, 1);
            if (m.words[0] == pill) _exit(0);
        }
    }
    there.join(1), back.join(1);
    std::vector<uint64_t> times;
    for (size_t i = 0; i < rounds; i++) {
        if (gap) usleep(gap);
        Message m{{i, i}};
        uint64_t from = now();
        there.put(&m, 1);
        back.get(&m, 1);
        times.push_back(now() - from);
    }
    Message last{{pill, pill}};
    there.put(&last, 1);
    std::sort(times.begin(), times.end());
    printf("%lu %lu\n", times[times.size() / 2], times[times.size() * 99 / 100]);
    return 0;
}

template <class Fifo> int drive(int argc, char **argv) {
    if (argc == 4 && !strcmp(argv[1], "rtt")) return round_trips<Fifo>(strtoul(argv[2], nullptr, 10), unsigned(atoi(argv[3])));
    if (argc != 6) { fprintf(stderr, "usage: PRODUCERS CONSUMERS EACH PUT GET | rtt ROUNDS GAP_US\n"); return 2; }
    return mix<Fifo>(atoi(argv[1]), atoi(argv[2]), strtoul(argv[3], nullptr, 10), strtoul(argv[4], nullptr, 10), strtoul(argv[5], nullptr, 10));
}
