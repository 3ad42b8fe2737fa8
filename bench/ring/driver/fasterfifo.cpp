// Drives the C++ core of faster-fifo.
#include "drive.hpp"

#include "faster_fifo.hpp"

namespace {

constexpr size_t queue_bytes = 100000;  // as in its own table: 4166 messages of 16 bytes and their lengths
constexpr float timeout = 0.1f;

class Fifo {
public:
    Fifo() { create_queue(object, queue_bytes, 1000000000); }
    void join(unsigned) {}

    void put(const Message *messages, size_t n) {
        const void *data[256];
        size_t sizes[256];
        for (size_t i = 0; i < n; i++) { data[i] = &messages[i]; sizes[i] = sizeof(Message); }
        while (queue_put(object, buffer, data, sizes, n, 1, timeout) != Q_SUCCESS) {}
    }

    size_t get(Message *out, size_t n) {
        struct { size_t size; Message message; } framed[256];
        size_t got, bytes, size;
        while (queue_get(object, buffer, framed, n * sizeof framed[0], n, queue_bytes, &got, &bytes, &size, 1, timeout) == Q_EMPTY) {}
        for (size_t i = 0; i < got; i++) out[i] = framed[i].message;
        return got;
    }

private:
    void *object = shared<void>(queue_object_size());
    void *buffer = shared<void>(queue_bytes);
};

}  // namespace

int main(int argc, char **argv) { return drive<Fifo>(argc, argv); }
