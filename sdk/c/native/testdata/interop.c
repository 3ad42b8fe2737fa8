// The other end of the host's rings and arenas: runs the command of its first argument on the files from 3 on.
#include "check.h"

#include <sched.h>

#include "../json.h"

static rlh_ring *ring_at(int fd) {
    rlh_ring *r;
    CHECK_EQUAL(rlh_ring_attach(&r, fd, RLH_RING_MESSAGES, 0), RLH_OK);
    return r;
}

static rlh_message numbered(uint64_t i) {
    return (rlh_message){.sequence = i, .handle = 3 * i, .kind = (uint16_t)i, .t = (uint32_t)~i, .inline_ = {i * i, ~i}};
}

// messages-put N BATCH
static void messages_put(uint64_t n, uint64_t batch) {
    rlh_ring *r = ring_at(3);
    rlh_message m[64];
    CHECK(batch >= 1 && batch <= 64);
    for (uint64_t i = 0; i < n;) {
        uint64_t k = n - i < batch ? n - i : batch;
        for (uint64_t j = 0; j < k; j++) m[j] = numbered(i + j);
        int put = rlh_messages_put(r, m, k, RLH_FOREVER);
        CHECK(put > 0);
        i += (uint64_t)put;
    }
    rlh_ring_detach(r);
}

// messages-get N BATCH
static void messages_get(uint64_t n, uint64_t batch) {
    rlh_ring *r = ring_at(3);
    rlh_message m[64];
    CHECK(batch >= 1 && batch <= 64);
    for (uint64_t i = 0; i < n;) {
        int got = rlh_messages_get(r, m, batch, RLH_FOREVER);
        CHECK(got > 0);
        for (int j = 0; j < got; j++, i++) {
            rlh_message want = numbered(i);
            CHECK(memcmp(&m[j], &want, sizeof want) == 0);
        }
    }
    rlh_ring_detach(r);
}

// echo: file 3 to file 4
static void echo(void) {
    rlh_ring *in = ring_at(3), *out = ring_at(4);
    rlh_message m;
    while (rlh_messages_get(in, &m, 1, RLH_FOREVER) == 1) CHECK_EQUAL(rlh_messages_put(out, &m, 1, RLH_FOREVER), 1);
    rlh_ring_detach(in);
    rlh_ring_detach(out);
}

// Operations of arena, in the kind of a message; the answer's kind is minus the error, its inline_[0] what was read.
enum { LOAN = 1, COMMIT, ABORT, LEASE, RELEASE, REVOKE, CLAIMS };

static int operate(rlh_arena *a, rlh_message *m) {
    void *bytes;
    const void *read;
    rlh_arena_stats s;
    int err;
    switch (m->kind) {
    case LOAN:
        err = rlh_loan(a, &m->handle, &bytes);
        if (err == RLH_OK) memcpy(bytes, &m->handle, sizeof m->handle);
        return err;
    case COMMIT: return rlh_commit(a, m->handle);
    case ABORT: return rlh_abort(a, m->handle);
    case LEASE:
        err = rlh_lease(a, m->handle, &read);
        if (err == RLH_OK) memcpy(&m->inline_[0], read, sizeof m->inline_[0]);
        return err;
    case RELEASE: return rlh_release(a, m->handle);
    case REVOKE: return rlh_revoke(a, m->handle);
    case CLAIMS: rlh_arena_count(a, &s); m->inline_[0] = s.claims; return RLH_OK;
    default: return RLH_ERR_INVALID;
    }
}

// arena ID BLOCKS BYTES HOLDER: words 3, data 4, rings 5 and 6
static void arena(char **args) {
    rlh_arena_info said = {.id = (uint32_t)atoi(args[0]), .blocks = (uint32_t)atoi(args[1]), .block_bytes = (size_t)atoi(args[2])};
    rlh_arena *a;
    CHECK_EQUAL(rlh_arena_attach(&a, 3, 4, &said, (uint32_t)atoi(args[3]), NULL, NULL), RLH_OK);
    rlh_ring *in = ring_at(5), *out = ring_at(6);
    rlh_message m;
    while (rlh_messages_get(in, &m, 1, RLH_FOREVER) == 1) {
        m.kind = (uint16_t)-operate(a, &m);
        CHECK_EQUAL(rlh_messages_put(out, &m, 1, RLH_FOREVER), 1);
    }
    rlh_arena_detach(a);
    rlh_ring_detach(in);
    rlh_ring_detach(out);
}

// arena-churn ID BLOCKS BYTES HOLDER: words 3, data 4; loans, writes, claims and releases until it is killed
static void arena_churn(char **args) {
    rlh_arena_info said = {.id = (uint32_t)atoi(args[0]), .blocks = (uint32_t)atoi(args[1]), .block_bytes = (size_t)atoi(args[2])};
    rlh_arena *a;
    CHECK_EQUAL(rlh_arena_attach(&a, 3, 4, &said, (uint32_t)atoi(args[3]), NULL, NULL), RLH_OK);
    for (uint64_t i = 0;; i++) {
        rlh_handle h;
        void *bytes;
        if (rlh_loan(a, &h, &bytes) != RLH_OK) continue;
        memset(bytes, (int)i, said.block_bytes);
        if (i % 5 == 0) {
            CHECK_EQUAL(rlh_abort(a, h), RLH_OK);
            continue;
        }
        CHECK_EQUAL(rlh_commit(a, h), RLH_OK);
        CHECK_EQUAL(rlh_retain(a, h), RLH_OK);
        if (i % 3 == 0) CHECK_EQUAL(rlh_revoke(a, h), RLH_OK);
        CHECK_EQUAL(rlh_release(a, h), RLH_OK);
        CHECK_EQUAL(rlh_release(a, h), RLH_OK);
    }
}

// on_unknown answers a frame that only this test sends: the earlier frames have been handled.
static void on_unknown(void *user, const char *json, size_t len, const int *fds, size_t fd_count) {
    for (size_t i = 0; i < fd_count; i++) close(fds[i]);
    rlh_host *host; // frames may come before rlh_host_open has returned
    while ((host = __atomic_load_n((rlh_host **)user, __ATOMIC_ACQUIRE)) == NULL) sched_yield();
    if (len == 10 && memcmp(json, "{\"ping\":1}", 10) == 0) rlh_wire_send(host, json, len, NULL, 0);
}

// wire: a plugin that listens to its wire (3, rings 4 and 5) until the host is gone
static void wire(void) {
    static rlh_host *host;
    rlh_handlers handlers = {.user = &host, .frame = on_unknown};
    CHECK_EQUAL(rlh_host_open(&host, 3, 4, 5, &handlers), RLH_OK);
    for (;;) pause();
}

// read_all calls every accessor on a document.
static void read_all(const struct json *doc) {
    for (json_place at = 0; at < doc->count; at++) {
        uint64_t u;
        int64_t i;
        json_u64(doc, at, &u);
        json_decimal(doc, at, &u);
        json_i64(doc, at, &i);
        free(json_text(doc, at));
        free(json_raw(doc, at));
        json_get(doc, at, "a");
    }
}

// parse reads documents from standard input, each after its length in four bytes, and prints whether each is valid.
static void parse(void) {
    uint32_t len;
    static char text[1 << 20];
    while (fread(&len, sizeof len, 1, stdin) == 1 && len <= sizeof text && fread(text, 1, len, stdin) == len) {
        char *exact = malloc(len + 1); // so that reads beyond it are detected
        memcpy(exact, text, len);
        struct json doc;
        char answer = json_parse(&doc, exact, len);
        if (answer != 0) read_all(&doc);
        json_free(&doc);
        free(exact);
        fwrite(&answer, 1, 1, stdout);
        fflush(stdout);
    }
}

int main(int argc, char **args) {
    const char *what = argc > 1 ? args[1] : "";
    uint64_t a = argc > 2 ? strtoull(args[2], NULL, 10) : 0, b = argc > 3 ? strtoull(args[3], NULL, 10) : 0;
    if (strcmp(what, "messages-put") == 0) messages_put(a, b);
    else if (strcmp(what, "messages-get") == 0) messages_get(a, b);
    else if (strcmp(what, "echo") == 0) echo();
    else if (strcmp(what, "arena") == 0 && argc == 6) arena(args + 2);
    else if (strcmp(what, "arena-churn") == 0 && argc == 6) arena_churn(args + 2);
    else if (strcmp(what, "wire") == 0) wire();
    else if (strcmp(what, "parse") == 0) parse();
    else return 2;
    return 0;
}
