// Channels: a connection to one that another process serves. The frames are core/channel/remote's: a request, then its
// answer, since a connection is one thread's at a time.
#include "internal.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { OP_HELLO = 1, OP_PUT, OP_GET, OP_BATCH, OP_ALLOC = 6, OP_MAP, OP_FREE, OP_STOP = 12, OP_BYE };
enum { FRAMES_VERSION = 1, ITEM_INLINE_MAX = 64 << 10, REPLY_MAX = 128 << 10, KEY_MAX = 1024, PAGE = 4096 };
enum { FLAG_PACKED = 2 }; // the table of items and their data lie in the spare region

struct request {
    uint8_t op, flags;
    uint16_t key; // bytes, which follow; then the item's
    uint32_t seq, ack, most;
    double weight;
    int64_t wait;
    uint64_t region, size, release;
};
_Static_assert(sizeof(struct request) == 56, "request");

struct reply {
    uint8_t op, status, flags, zero;
    uint32_t seq, count, pages;
    uint64_t spare;
};
_Static_assert(sizeof(struct reply) == 24, "reply");

struct entry {
    double weight;
    uint64_t region, size;
};
_Static_assert(sizeof(struct entry) == 24, "entry");

struct rlh_channel {
    int fd;
    uint32_t seq, ack; // ack: replies with items that the program has used
    uint32_t got;      // and ones that it has or is about to have
    char *frame;       // of a reply
    size_t len;
    int file; // that came with it, or -1
    char *items; // memory of the items that the last get returned
    char reason[200];
};

static int fail(rlh_channel *c, int code, const char *text, size_t len) {
    if (len >= sizeof c->reason) len = sizeof c->reason - 1;
    memcpy(c->reason, text, len);
    c->reason[len] = 0;
    return code;
}

static int lost(rlh_channel *c) {
    static const char text[] = "the server of the channel has ended";
    return fail(c, RLH_ERR_CLOSED, text, sizeof text - 1);
}

static int nonsense(rlh_channel *c) {
    static const char text[] = "the answer of the channel's server makes no sense";
    return fail(c, RLH_ERR_INVALID, text, sizeof text - 1);
}

static int send_request(rlh_channel *c, struct request *r, const char *key, const void *data, size_t len) {
    r->seq = ++c->seq;
    if (r->op != OP_MAP && r->op != OP_FREE) c->ack = c->got; // those two are for items that get has not returned yet
    r->ack = c->ack;
    struct iovec parts[] = {{r, sizeof *r}, {(void *)(uintptr_t)key, r->key}, {(void *)(uintptr_t)data, len}};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = 3};
    ssize_t n;
    do {
        n = sendmsg(c->fd, &m, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? lost(c) : RLH_OK;
}

// receive reads one reply, and the file that comes with it.
static int receive(rlh_channel *c) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {c->frame, REPLY_MAX};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n;
    do {
        n = recvmsg(c->fd, &m, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) return lost(c);
    c->len = (size_t)n;
    struct cmsghdr *head = CMSG_FIRSTHDR(&m);
    if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) memcpy(&c->file, CMSG_DATA(head), sizeof(int));
    return c->len < sizeof(struct reply) ? nonsense(c) : RLH_OK;
}

// code_of returns the code of a status.
static int code_of(uint8_t status) {
    static const int codes[] = {RLH_OK, RLH_ERR_TIMEOUT, RLH_ERR_TIMEOUT, RLH_ERR_CLOSED, RLH_ERR_TOO_LONG, RLH_ERR_INVALID};
    return status < sizeof codes / sizeof *codes ? codes[status] : RLH_ERR_REFUSED;
}

// ask sends a request and waits for its answer.
static int ask(rlh_channel *c, struct request *r, const char *key, const void *data, size_t len, struct reply *answer) {
    int code = send_request(c, r, key, data, len);
    if (code == RLH_OK) code = receive(c);
    if (code != RLH_OK) return code;
    memcpy(answer, c->frame, sizeof *answer);
    if (answer->seq != r->seq) return nonsense(c);
    if (answer->status == 0 && (r->op == OP_GET || r->op == OP_BATCH)) c->got++;
    if (answer->status == 0) return RLH_OK;
    return fail(c, code_of(answer->status), c->frame + sizeof *answer, c->len - sizeof *answer);
}

// map_region maps a region of this connection's.
static int map_region(rlh_channel *c, uint64_t region, size_t *mapped, void **at) {
    struct reply answer;
    c->file = -1;
    int code = ask(c, &(struct request){.op = OP_MAP, .region = region}, "", NULL, 0, &answer);
    if (code == RLH_OK && c->file < 0) code = nonsense(c);
    if (code == RLH_OK) code = memory_map(c->file, true, mapped, at);
    if (c->file >= 0) close(c->file);
    c->file = -1;
    return code;
}

// copy_out copies the first bytes of a region to new memory, all of them where *len is 0, and gives the region back.
static int copy_out(rlh_channel *c, uint64_t region, size_t *len, char **out) {
    size_t mapped;
    void *at;
    int code = map_region(c, region, &mapped, &at);
    if (code != RLH_OK) return code;
    if (*len == 0) *len = mapped;
    *out = *len <= mapped ? malloc(*len) : NULL;
    code = *len > mapped ? nonsense(c) : *out == NULL ? RLH_ERR_MEMORY : RLH_OK;
    if (code == RLH_OK) memcpy(*out, at, *len);
    memory_unmap(at, mapped);
    int freed = send_request(c, &(struct request){.op = OP_FREE}, "", &region, sizeof region);
    if (code == RLH_OK && freed != RLH_OK) {
        free(*out);
        return freed;
    }
    return code;
}

// key_of writes the length of a key into a request. The server says what is wrong with one, but for its length, which has no room there.
static int key_of(rlh_channel *c, const char *key, struct request *r) {
    size_t len = strlen(key);
    r->key = (uint16_t)len;
    if (len <= KEY_MAX) return RLH_OK;
    int n = snprintf(c->reason, sizeof c->reason, "a key of %zu bytes, at most %d", len, KEY_MAX);
    (void)n;
    return RLH_ERR_INVALID;
}

static int socket_path(char *path, size_t room, const char *name) {
    const char *dir = getenv("XDG_RUNTIME_DIR");
    int n = dir != NULL && dir[0] == '/' ? snprintf(path, room, "%s/rlhost/channel-%s.sock", dir, name) : -1;
    if (n < 0 || (size_t)n > 103) n = snprintf(path, room, "/tmp/rlhost-%u/channel-%s.sock", (unsigned)geteuid(), name);
    return n < 0 || (size_t)n >= room ? RLH_ERR_INVALID : RLH_OK;
}

int rlh_channel_connect(rlh_channel **out, const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (name[0] == 0 || strlen(name) > 64 || strchr(name, '/') != NULL) return RLH_ERR_INVALID;
    int code = socket_path(address.sun_path, sizeof address.sun_path, name);
    if (code != RLH_OK) return code;
    rlh_channel *c = calloc(1, sizeof *c);
    char *frame = malloc(REPLY_MAX);
    if (c == NULL || frame == NULL) {
        free(c);
        free(frame);
        return RLH_ERR_MEMORY;
    }
    c->frame = frame;
    c->file = -1;
    c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct reply answer;
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        code = RLH_ERR_SYSTEM;
    } else {
        code = ask(c, &(struct request){.op = OP_HELLO, .size = FRAMES_VERSION}, "", NULL, 0, &answer);
    }
    if (code == RLH_OK) {
        *out = c;
        return RLH_OK;
    }
    int why = errno;
    if (c->fd >= 0) close(c->fd);
    free(frame);
    free(c);
    errno = why;
    return code;
}

void rlh_channel_disconnect(rlh_channel *c) {
    if (c == NULL) return;
    if (send_request(c, &(struct request){.op = OP_BYE}, "", NULL, 0) == RLH_OK) {
        while (receive(c) == RLH_OK) {} // until the server has closed its end
    }
    close(c->fd);
    free(c->items);
    free(c->frame);
    free(c);
}

const char *rlh_channel_reason(const rlh_channel *c) { return c->reason; }

// fill_region returns a region with the bytes of a large item.
static int fill_region(rlh_channel *c, const void *bytes, size_t len, uint64_t *region) {
    struct reply answer;
    int code = ask(c, &(struct request){.op = OP_ALLOC, .size = len}, "", NULL, 0, &answer);
    if (code != RLH_OK) return code;
    size_t mapped;
    void *at;
    code = map_region(c, answer.spare, &mapped, &at);
    if (code != RLH_OK) {
        send_request(c, &(struct request){.op = OP_FREE}, "", &answer.spare, sizeof answer.spare);
        return code;
    }
    *region = answer.spare;
    if (len <= mapped) memcpy(at, bytes, len);
    memory_unmap(at, mapped);
    return len <= mapped ? RLH_OK : nonsense(c);
}

int rlh_channel_put(rlh_channel *c, const char *key, double weight, const void *bytes, size_t len, int64_t timeout) {
    struct request r = {.op = OP_PUT, .weight = weight, .wait = timeout};
    struct reply answer;
    int code = key_of(c, key, &r);
    if (code == RLH_OK && len > ITEM_INLINE_MAX) {
        r.size = len;
        code = fill_region(c, bytes, len, &r.region);
        len = 0;
    }
    return code == RLH_OK ? ask(c, &r, key, bytes, len, &answer) : code;
}

// take_items points items to the data of a reply, which lies in c->items. Data that lies in regions is appended to it.
static int take_items(rlh_channel *c, size_t used, size_t room, rlh_channel_item *items, uint32_t count) {
    size_t at = (size_t)count * sizeof(struct entry);
    uint64_t total = 0;
    struct entry e;
    if (at > used) return nonsense(c);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&e, c->items + (size_t)i * sizeof e, sizeof e);
        if (e.region == 0 && e.size > used - at) return nonsense(c);
        if (e.region == 0) at += (size_t)e.size;
        if (e.region != 0 && (e.size == 0 || e.size > SIZE_MAX - room - total)) return nonsense(c);
        if (e.region != 0) total += e.size;
    }
    char *all = realloc(c->items, room + (size_t)total);
    if (all == NULL) return RLH_ERR_MEMORY;
    c->items = all;
    at = (size_t)count * sizeof e;
    size_t end = room;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&e, all + (size_t)i * sizeof e, sizeof e);
        size_t len = (size_t)e.size;
        items[i] = (rlh_channel_item){.weight = e.weight, .bytes = all + at, .len = len};
        if (e.region == 0) {
            at += len;
            continue;
        }
        char *copy;
        int code = copy_out(c, e.region, &len, &copy);
        if (code != RLH_OK) return code;
        memcpy(all + end, copy, len);
        free(copy);
        items[i].bytes = all + end;
        end += len;
    }
    return (int)count;
}

// got turns the answer to a get into items.
static int got(rlh_channel *c, const struct reply *answer, rlh_channel_item *items, size_t most) {
    if (answer->count == 0 || answer->count > most) return nonsense(c);
    free(c->items);
    c->items = NULL;
    size_t used = c->len - sizeof *answer;
    if ((answer->flags & FLAG_PACKED) != 0) {
        used = 0;
        int code = copy_out(c, answer->spare, &used, &c->items);
        if (code != RLH_OK) return code;
    } else {
        c->items = malloc(used > 0 ? used : 1);
        if (c->items == NULL) return RLH_ERR_MEMORY;
        memcpy(c->items, c->frame + sizeof *answer, used);
    }
    return take_items(c, used, used, items, answer->count);
}

int rlh_channel_get(rlh_channel *c, const char *key, rlh_channel_item *item, int64_t timeout) {
    struct request r = {.op = OP_GET, .wait = timeout};
    struct reply answer;
    int code = key_of(c, key, &r);
    if (code == RLH_OK) code = ask(c, &r, key, NULL, 0, &answer);
    if (code == RLH_OK) code = got(c, &answer, item, 1);
    return code > 0 ? RLH_OK : code;
}

int rlh_channel_get_batch(rlh_channel *c, const char *key, double weight, rlh_channel_item *items, size_t most, int64_t timeout) {
    if (most == 0) return RLH_ERR_INVALID;
    struct request r = {.op = OP_BATCH, .weight = weight, .most = most < INT32_MAX ? (uint32_t)most : INT32_MAX, .wait = timeout};
    struct reply answer;
    int code = key_of(c, key, &r);
    if (code == RLH_OK) code = ask(c, &r, key, NULL, 0, &answer);
    return code == RLH_OK ? got(c, &answer, items, most) : code;
}

int rlh_channel_close(rlh_channel *c) {
    struct reply answer;
    return ask(c, &(struct request){.op = OP_STOP}, "", NULL, 0, &answer);
}
