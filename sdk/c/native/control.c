// The control connection: a unix socket that the host connects to, and a thread that serves it. The calls themselves
// run on the main thread, so the host hears of the plugin's health even while a slot takes its time.
#ifndef RLH_NO_CONTROL
#include "grpc.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 8 };

struct control {
    struct sockaddr_un address;
    int listener, bell; // the bell is an eventfd: look at answers and quit
    pthread_t thread;
    post_call post;
    void *user;
    struct grpc *connections[CONNECTIONS_MAX];
    size_t count;

    pthread_mutex_t mutex;
    struct call *answers; // finished by the main thread
    bool quit;
    atomic_bool ended;
};

static void ring(struct control *c) {
    uint64_t one = 1;
    if (write(c->bell, &one, sizeof one) < 0) return; // full: the wake is pending already
}

static void on_call(void *user, struct call *call) {
    struct control *c = user;
    c->post(c->user, call);
}

static void on_shutdown(void *user) {
    struct control *c = user;
    atomic_store(&c->ended, true);
}

static void take_connection(struct control *c) {
    int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    if (c->count == CONNECTIONS_MAX) {
        close(fd);
        return;
    }
    struct grpc_handlers handlers = {.user = c, .call = on_call, .shutdown = on_shutdown};
    struct grpc *g = grpc_open(fd, &handlers);
    if (g != NULL) c->connections[c->count++] = g;
}

// send_answers sends the answers of the main thread, and reports whether this thread must end.
static bool send_answers(struct control *c) {
    uint64_t rings;
    if (read(c->bell, &rings, sizeof rings) < 0) errno = 0; // no wake
    pthread_mutex_lock(&c->mutex);
    struct call *list = c->answers;
    c->answers = NULL;
    bool quit = c->quit;
    pthread_mutex_unlock(&c->mutex);
    while (list != NULL) {
        struct call *next = list->next;
        grpc_answer(list);
        list = next;
    }
    return quit;
}

static void drop(struct control *c, size_t i) {
    grpc_close(c->connections[i]);
    c->connections[i] = c->connections[--c->count];
}

static void *serve(void *user) {
    struct control *c = user;
    for (bool quit = false; !quit;) {
        struct pollfd fds[2 + CONNECTIONS_MAX] = {{.fd = c->listener, .events = POLLIN}, {.fd = c->bell, .events = POLLIN}};
        size_t n = c->count;
        for (size_t i = 0; i < n; i++) {
            bool writes = grpc_wants_write(c->connections[i]);
            fds[2 + i] = (struct pollfd){.fd = grpc_fd(c->connections[i]), .events = (short)(writes ? POLLIN | POLLOUT : POLLIN)};
        }
        if (poll(fds, (nfds_t)(2 + n), -1) < 0) continue;
        bool alive[CONNECTIONS_MAX];
        for (size_t i = 0; i < n; i++) alive[i] = fds[2 + i].revents == 0 || grpc_read(c->connections[i]);
        quit = send_answers(c);
        for (size_t i = n; i-- > 0;) {
            if (!alive[i] || !grpc_write(c->connections[i])) drop(c, i);
        }
        if (fds[0].revents != 0) take_connection(c);
        if (atomic_load(&c->ended)) c->post(c->user, NULL);
    }
    return NULL;
}

// listen_at makes the socket, to which only this user can connect.
static int listen_at(struct control *c) {
    const char *dir = getenv("PLUGIN_UNIX_SOCKET_DIR");
    if (dir == NULL || dir[0] == 0) dir = "/tmp";
    c->address.sun_family = AF_UNIX;
    int n = snprintf(c->address.sun_path, sizeof c->address.sun_path, "%s/plugin-%ld", dir, (long)getpid());
    if (n < 0 || (size_t)n >= sizeof c->address.sun_path) {
        fprintf(stderr, "the socket's folder %s has a name that is too long\n", dir);
        c->address.sun_path[0] = 0;
        return RLH_ERR_TOO_LONG;
    }
    c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->listener < 0) return RLH_ERR_SYSTEM;
    mode_t before = umask(0177);
    int err = bind(c->listener, (const struct sockaddr *)(const void *)&c->address, sizeof c->address);
    umask(before);
    if (err != 0) {
        c->address.sun_path[0] = 0; // not ours to remove
        return RLH_ERR_SYSTEM;
    }
    return listen(c->listener, CONNECTIONS_MAX) == 0 ? RLH_OK : RLH_ERR_SYSTEM;
}

static void free_control(struct control *c) {
    while (c->count > 0) drop(c, c->count - 1);
    if (c->listener >= 0) close(c->listener);
    if (c->bell >= 0) close(c->bell);
    if (c->address.sun_path[0] != 0) unlink(c->address.sun_path);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

int control_open(struct control **out, post_call post, void *user) {
    struct control *c = calloc(1, sizeof *c);
    if (c == NULL) return RLH_ERR_MEMORY;
    pthread_mutex_init(&c->mutex, NULL);
    c->post = post;
    c->user = user;
    c->listener = -1;
    c->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int err = c->bell >= 0 ? listen_at(c) : RLH_ERR_SYSTEM;
    if (err == RLH_OK && (errno = pthread_create(&c->thread, NULL, serve, c)) != 0) err = RLH_ERR_SYSTEM;
    if (err != RLH_OK) {
        int why = errno;
        free_control(c);
        errno = why;
        return err;
    }
    *out = c;
    return RLH_OK;
}

const char *control_path(const struct control *c) { return c->address.sun_path; }

bool control_ended(const struct control *c) { return atomic_load(&c->ended); }

void control_answer(struct control *c, struct call *call) {
    pthread_mutex_lock(&c->mutex);
    call->next = c->answers;
    c->answers = call;
    pthread_mutex_unlock(&c->mutex);
    ring(c);
}

void control_close(struct control *c) {
    pthread_mutex_lock(&c->mutex);
    c->quit = true;
    pthread_mutex_unlock(&c->mutex);
    ring(c);
    pthread_join(c->thread, NULL);
    free_control(c);
}
#else
typedef int rlh_no_control; // a file needs a declaration
#endif
