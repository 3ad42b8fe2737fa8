// The wire: the socket between host and plugin that carries files. A thread of its own reads it, so that arenas are
// known before the messages that need them; a thread that meets an unknown arena reads the pending frames itself.
#include "internal.h"
#include "json.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { METRICS_PERIOD = 250 }; // milliseconds

#define ARENA_WAIT INT64_C(1000000000) // nanoseconds

// frame is one datagram. Its untaken files are closed.
struct frame {
    struct json doc;
    const char *text;
    size_t len;
    int fds[RLH_MAX_FILES];
    size_t fd_count;
};

static void close_files(int *fds, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (fds[i] >= 0) close(fds[i]);
        fds[i] = -1;
    }
}

// add_answer wakes the waiter of a call with its answer.
static void add_answer(rlh_host *host, const struct answer *a) {
    struct answer *copy = malloc(sizeof *copy);
    if (copy == NULL) abort(); // the caller would wait forever
    *copy = *a;
    pthread_mutex_lock(&host->mutex);
    copy->next = host->answers;
    host->answers = copy;
    pthread_cond_broadcast(&host->answered);
    pthread_mutex_unlock(&host->mutex);
}

// await_answer takes the answer to a call off the list.
static int await_answer(rlh_host *host, uint64_t call, bool state, int64_t timeout, struct answer *out) {
    int64_t deadline = deadline_after(timeout);
    pthread_mutex_lock(&host->mutex);
    for (;;) {
        for (struct answer **at = &host->answers; *at != NULL; at = &(*at)->next) {
            if ((*at)->call != call || (*at)->state != state) continue;
            struct answer *found = *at;
            *at = found->next;
            pthread_mutex_unlock(&host->mutex);
            *out = *found;
            free(found);
            return RLH_OK;
        }
        if (deadline < 0) {
            pthread_cond_wait(&host->answered, &host->mutex);
            continue;
        }
        struct timespec until = {.tv_sec = deadline / 1000000000, .tv_nsec = deadline % 1000000000};
        if (pthread_cond_timedwait(&host->answered, &host->mutex, &until) == ETIMEDOUT) break;
    }
    pthread_mutex_unlock(&host->mutex);
    return RLH_ERR_TIMEOUT;
}

// keep_arena replaces the previous arena of the ID, which stays mapped: its blocks may still be in use.
static void keep_arena(rlh_host *host, rlh_arena *a, uint32_t id) {
    pthread_mutex_lock(&host->mutex);
    rlh_arena *before = host->arenas[id];
    if (before != NULL) {
        atomic_store(&before->removed, true);
        before->older = host->retired;
        host->retired = before;
    }
    STORE(&host->arenas[id], a);
    if (id >= host->arena_end) STORE(&host->arena_end, id + 1);
    pthread_cond_broadcast(&host->answered);
    pthread_mutex_unlock(&host->mutex);
}

static void on_arena(rlh_host *host, struct frame *f, json_place at) {
    struct answer answer = {.fd = -1};
    json_u64(&f->doc, json_get(&f->doc, at, "call"), &answer.call);
    uint64_t id = 0, blocks = 0;
    size_t block_bytes = 0;
    bool ok = json_u64(&f->doc, json_get(&f->doc, at, "id"), &id) && id <= RLH_MAX_ARENA &&
              json_u64(&f->doc, json_get(&f->doc, at, "blocks"), &blocks) && blocks <= RLH_MAX_BLOCK + 1 &&
              json_size(&f->doc, json_get(&f->doc, at, "block_bytes"), &block_bytes, SIZE_MAX / 2) && f->fd_count == 2;
    char *name = json_text(&f->doc, json_get(&f->doc, at, "name"));
    json_place schema_at = json_get(&f->doc, at, "schema");
    char *schema = json_is(&f->doc, schema_at, JSON_OBJECT) ? json_raw(&f->doc, schema_at) : NULL;
    rlh_arena_info said = {.id = (uint32_t)id, .blocks = (uint32_t)blocks, .block_bytes = block_bytes,
        .read_only = json_true(&f->doc, json_get(&f->doc, at, "read_only")), .name = name, .schema = schema};
    rlh_arena *a = NULL;
    int err = ok ? rlh_arena_attach(&a, f->fds[0], f->fds[1], &said, host->holder, link_credit, host) : RLH_ERR_INVALID;
    if (err == RLH_OK) {
        keep_arena(host, a, said.id);
        answer.arena = a;
    } else {
        fprintf(stderr, "arena %s cannot be used: %s\n", name != NULL ? name : "?", rlh_strerror(err));
        answer.refusal = strdup(rlh_strerror(err));
    }
    free(name);
    free(schema);
    if (answer.call != 0) {
        add_answer(host, &answer);
    } else {
        free(answer.refusal);
    }
}

static void on_failed(rlh_host *host, struct frame *f, json_place at) {
    struct answer answer = {.fd = -1, .refusal = json_text(&f->doc, json_get(&f->doc, at, "reason"))};
    if (answer.refusal == NULL) answer.refusal = strdup("no reason given");
    json_u64(&f->doc, json_get(&f->doc, at, "call"), &answer.call);
    add_answer(host, &answer);
}

static void on_state(rlh_host *host, struct frame *f, json_place at) {
    struct answer answer = {.fd = -1, .state = true};
    json_u64(&f->doc, json_get(&f->doc, at, "call"), &answer.call);
    if (json_size(&f->doc, json_get(&f->doc, at, "bytes"), &answer.bytes, SIZE_MAX / 2) && f->fd_count >= 1) {
        answer.fd = f->fds[0];
        f->fds[0] = -1;
    }
    add_answer(host, &answer);
}

static void on_removed(rlh_host *host, const struct frame *f, json_place at) {
    uint64_t id;
    if (!json_u64(&f->doc, at, &id) || id > RLH_MAX_ARENA) return;
    rlh_arena *a = LOAD(&host->arenas[id]);
    if (a != NULL) atomic_store(&a->removed, true);
}

// on_frame handles one frame. A field that is null is not set.
static void on_frame(rlh_host *host, struct frame *f) {
    json_place at;
    if (json_is(&f->doc, at = json_get(&f->doc, 0, "arena"), JSON_OBJECT)) {
        on_arena(host, f, at);
    } else if (json_is(&f->doc, at = json_get(&f->doc, 0, "removed"), JSON_NUMBER)) {
        on_removed(host, f, at);
    } else if (json_is(&f->doc, at = json_get(&f->doc, 0, "failed"), JSON_OBJECT)) {
        on_failed(host, f, at);
    } else if (json_is(&f->doc, at = json_get(&f->doc, 0, "state"), JSON_OBJECT)) {
        on_state(host, f, at);
    } else if (host->handlers.frame != NULL) {
        host->handlers.frame(host->handlers.user, f->text, f->len, f->fds, f->fd_count);
        for (size_t i = 0; i < f->fd_count; i++) f->fds[i] = -1; // the handler's now
    }
    close_files(f->fds, f->fd_count);
}

static void take_files(struct msghdr *m, struct frame *f) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (f->fd_count < RLH_MAX_FILES) {
                f->fds[f->fd_count++] = fd;
            } else {
                close(fd);
            }
        }
    }
}

// receive_one reads one frame if there is one. It returns 1, 0 if there is none, or -1 at the end. The caller holds
// reading.
static int receive_one(rlh_host *host) {
    union {
        char bytes[CMSG_SPACE(sizeof(int) * RLH_MAX_FILES)];
        struct cmsghdr align;
    } control;
    struct iovec io = {host->frame, RLH_MAX_FRAME};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(host->wire, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0) return -1;
    struct frame f = {.text = host->frame, .len = (size_t)n};
    host->frame[n] = 0;
    take_files(&m, &f);
    if ((m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || !json_parse(&f.doc, f.text, f.len)) {
        fprintf(stderr, "a frame on the wire makes no sense\n");
        close_files(f.fds, f.fd_count);
        return 1;
    }
    on_frame(host, &f);
    json_free(&f.doc);
    return 1;
}

// inside keeps a handler that looks for an arena from overwriting its own frame.
static _Thread_local bool inside;

static int drain(rlh_host *host) {
    if (inside) return 0;
    inside = true;
    pthread_mutex_lock(&host->reading);
    int n;
    while ((n = receive_one(host)) > 0) {
    }
    pthread_mutex_unlock(&host->reading);
    inside = false;
    return n;
}

void wire_drain(rlh_host *host) { drain(host); }

static void *read_wire(void *argument) {
    rlh_host *host = argument;
    for (;;) {
        struct pollfd fds[2] = {{.fd = host->wire, .events = POLLIN}, {.fd = host->quit, .events = POLLIN}};
        int n = poll(fds, 2, METRICS_PERIOD);
        if (fds[1].revents != 0) return NULL;
        metrics_send(host);
        if (n <= 0 || fds[0].revents == 0 || drain(host) == 0) continue;
        if (host->handlers.gone == NULL) _exit(0); // without the host there is nothing to do
        host->handlers.gone(host->handlers.user);
        return NULL;
    }
}

int wire_open(rlh_host *host) {
    host->frame = malloc(RLH_MAX_FRAME + 1);
    host->metrics = metrics_new();
    if (host->frame == NULL || host->metrics == NULL) return RLH_ERR_MEMORY;
    host->quit = eventfd(0, EFD_CLOEXEC);
    if (host->quit < 0) return RLH_ERR_SYSTEM;
    errno = pthread_create(&host->thread, NULL, read_wire, host);
    host->threaded = errno == 0;
    return host->threaded ? RLH_OK : RLH_ERR_SYSTEM;
}

void wire_close(rlh_host *host) {
    if (host->threaded) {
        uint64_t one = 1;
        if (write(host->quit, &one, sizeof one) == sizeof one) pthread_join(host->thread, NULL);
    }
    if (host->quit >= 0) close(host->quit);
    while (host->answers != NULL) {
        struct answer *next = host->answers->next;
        close_files(&host->answers->fd, 1);
        free(host->answers->refusal);
        free(host->answers);
        host->answers = next;
    }
    free(host->reason);
    free(host->frame);
    metrics_free(host->metrics);
}

int rlh_wire_send(rlh_host *host, const char *json, size_t len, const int *fds, size_t fd_count) {
    if (len == 0 || len > RLH_MAX_FRAME) return RLH_ERR_TOO_LONG;
    if (fd_count > RLH_MAX_FILES) return RLH_ERR_INVALID;
    union {
        char bytes[CMSG_SPACE(sizeof(int) * RLH_MAX_FILES)];
        struct cmsghdr align;
    } control = {{0}};
    struct iovec io = {(char *)json, len};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1};
    if (fd_count > 0) {
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * fd_count);
    }
    for (;;) {
        if (sendmsg(host->wire, &m, MSG_NOSIGNAL) >= 0) return RLH_OK;
        if (errno == EPIPE || errno == ECONNRESET) return RLH_ERR_CLOSED;
        if (errno != EINTR && errno != EAGAIN) return RLH_ERR_SYSTEM;
        struct pollfd p = {.fd = host->wire, .events = POLLOUT};
        poll(&p, 1, -1);
    }
}

int wire_send_text(rlh_host *host, struct text *t, int fd) {
    int err = t->failed ? RLH_ERR_MEMORY : rlh_wire_send(host, t->at, t->len, &fd, fd >= 0 ? 1 : 0);
    text_free(t);
    return err;
}

void wire_refused(rlh_host *host, char *reason) {
    pthread_mutex_lock(&host->mutex);
    free(host->reason);
    host->reason = reason;
    pthread_mutex_unlock(&host->mutex);
}

const char *rlh_reason(rlh_host *host) { return host->reason != NULL ? host->reason : ""; }

int rlh_add_arena(rlh_host *host, rlh_arena **arena, const char *name, uint32_t blocks, size_t block_bytes,
                  const char *schema) {
    uint64_t call = __atomic_add_fetch(&host->calls, 1, __ATOMIC_SEQ_CST);
    struct text t = {0};
    text_format(&t, "{\"add_arena\":{\"call\":%llu,\"name\":", (unsigned long long)call);
    text_quote(&t, name);
    text_format(&t, ",\"blocks\":%u,\"block_bytes\":%zu", blocks, block_bytes);
    if (schema != NULL) {
        text_put(&t, ",\"schema\":");
        text_put(&t, schema);
    }
    text_put(&t, "}}");
    int err = wire_send_text(host, &t, -1);
    struct answer answer;
    if (err == RLH_OK) err = await_answer(host, call, false, RLH_FOREVER, &answer);
    if (err != RLH_OK) return err;
    if (answer.arena == NULL) {
        wire_refused(host, answer.refusal);
        return RLH_ERR_REFUSED;
    }
    *arena = answer.arena;
    atomic_store(&answer.arena->own, true);
    return RLH_OK;
}

int rlh_state_take(rlh_host *host, uint64_t call, void **bytes, size_t *n, int64_t timeout) {
    struct answer answer;
    int err = await_answer(host, call, true, timeout, &answer);
    if (err != RLH_OK) return err;
    err = answer.fd >= 0 ? memory_read(answer.fd, answer.bytes, bytes) : RLH_ERR_INVALID;
    *n = answer.bytes;
    close_files(&answer.fd, 1);
    return err;
}

int rlh_state_send(rlh_host *host, uint64_t call, const void *bytes, size_t n) {
    int fd;
    int err = memory_write("rlhost state", bytes, n, &fd);
    if (err != RLH_OK) return err;
    struct text t = {0};
    text_format(&t, "{\"state\":{\"call\":%llu,\"bytes\":%zu}}", (unsigned long long)call, n);
    err = wire_send_text(host, &t, fd);
    close(fd);
    return err;
}

static bool is_there(const rlh_arena *a) { return a != NULL && !atomic_load(&a->removed); }

// await_arena waits for an arena whose announcement on the wire arrives after a message on the ring that names it. For
// a wrong handle the wait is in vain.
static rlh_arena *await_arena(rlh_host *host, uint32_t id) {
    int64_t deadline = deadline_after(ARENA_WAIT);
    struct timespec until = {.tv_sec = deadline / 1000000000, .tv_nsec = deadline % 1000000000};
    pthread_mutex_lock(&host->mutex);
    int err = 0;
    while (host->arenas[id] == NULL && err == 0 && LOAD(&host->ended) == 0) {
        err = pthread_cond_timedwait(&host->answered, &host->mutex, &until);
    }
    rlh_arena *a = host->arenas[id];
    pthread_mutex_unlock(&host->mutex);
    return a;
}

rlh_arena *rlh_arena_of(rlh_host *host, rlh_handle h) {
    uint32_t id = rlh_handle_arena(h);
    if (id == 0) return NULL; // no arena has that ID
    rlh_arena *a = LOAD(&host->arenas[id]);
    if (is_there(a)) return a;
    wire_drain(host);
    a = LOAD(&host->arenas[id]);
    return a != NULL || inside ? a : await_arena(host, id);
}

rlh_arena *rlh_arena_named(rlh_host *host, const char *name) {
    wire_drain(host);
    for (size_t id = 0; id <= RLH_MAX_ARENA; id++) {
        rlh_arena *a = LOAD(&host->arenas[id]);
        if (is_there(a) && strcmp(a->info.name, name) == 0) return a;
    }
    return NULL;
}
