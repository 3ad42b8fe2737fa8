// gRPC over HTTP/2, by libnghttp2. Every request is one message of at most REQUEST_MAX bytes, whose body is a
// google.protobuf.BytesValue; so is every reply. The two streams that go-plugin holds open never end.
#ifndef RLH_NO_CONTROL
#include "grpc.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    REQUEST_MAX = 16 << 20,
    STREAMS_MAX = 64,
    PREFIX = 5, // of a gRPC message: not compressed, length
};

struct stream {
    struct grpc *grpc;
    int32_t id;
    char path[128];
    uint8_t *in;
    size_t in_len, in_room;
    bool too_long, answered;
    uint8_t *out;
    size_t out_len, out_at;
    struct call *call; // pending
    struct stream *next;
};

struct grpc {
    int fd;
    nghttp2_session *session;
    struct grpc_handlers handlers;
    struct stream *streams;
};

#define HEADER(name, value) \
    { (uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, strlen(value), NGHTTP2_NV_FLAG_NONE }

void call_free(struct call *c) {
    if (c == NULL) return;
    free(c->request);
    text_free(&c->reply);
    free(c);
}

static void free_stream(struct stream *s) {
    if (s->call != NULL) s->call->stream = NULL;
    free(s->in);
    free(s->out);
    free(s);
}

static struct stream *stream_of(nghttp2_session *session, int32_t id) {
    return nghttp2_session_get_stream_user_data(session, id);
}

// ---- answers

// read_out gives libnghttp2 the next bytes of a reply; the status follows them.
static ssize_t read_out(nghttp2_session *session, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
                        nghttp2_data_source *source, void *user) {
    (void)user;
    struct stream *s = source->ptr;
    if (s->out == NULL) return NGHTTP2_ERR_DEFERRED; // held open
    size_t n = s->out_len - s->out_at;
    if (n > room) n = room;
    memcpy(to, s->out + s->out_at, n);
    s->out_at += n;
    if (s->out_at == s->out_len) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_nv status[] = {HEADER("grpc-status", "0")};
        nghttp2_submit_trailer(session, id, status, 1);
    }
    return (ssize_t)n;
}

static void submit(struct stream *s) {
    nghttp2_nv headers[] = {HEADER(":status", "200"), HEADER("content-type", "application/grpc")};
    nghttp2_data_provider data = {.source = {.ptr = s}, .read_callback = read_out};
    s->answered = true;
    nghttp2_submit_response(s->grpc->session, s->id, headers, 2, &data);
}

static void answer_error(struct stream *s, int code, const char *message) {
    char status[16], escaped[3 * 512 + 1], *to = escaped;
    snprintf(status, sizeof status, "%d", code);
    for (const unsigned char *c = (const unsigned char *)message; *c != 0 && to < escaped + sizeof escaped - 4; c++) {
        if (*c >= 0x20 && *c < 0x7F && *c != '%') {
            *to++ = (char)*c;
        } else {
            to += snprintf(to, 4, "%%%02X", *c);
        }
    }
    *to = 0;
    nghttp2_nv headers[] = {HEADER(":status", "200"), HEADER("content-type", "application/grpc"),
                            HEADER("grpc-status", status), HEADER("grpc-message", escaped)};
    s->answered = true;
    nghttp2_submit_response(s->grpc->session, s->id, headers, 4, NULL);
}

static void answer_bytes(struct stream *s, const void *message, size_t n) {
    s->out = malloc(n + PREFIX);
    if (s->out == NULL) {
        answer_error(s, RLH_CODE_FAILED, "out of memory");
        return;
    }
    uint8_t prefix[PREFIX] = {0, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
    memcpy(s->out, prefix, PREFIX);
    if (n > 0) memcpy(s->out + PREFIX, message, n);
    s->out_len = n + PREFIX;
    submit(s);
}

// answer_document wraps a document into a BytesValue: tag 1, length, bytes.
static void answer_document(struct stream *s, const struct text *t) {
    struct text body = {0};
    size_t n = t->len;
    text_add(&body, "\x0a", 1);
    do {
        char byte = (char)((n & 0x7F) | (n > 0x7F ? 0x80 : 0));
        text_add(&body, &byte, 1);
        n >>= 7;
    } while (n > 0);
    if (t->len > 0) text_add(&body, t->at, t->len);
    if (body.failed || t->failed) {
        answer_error(s, RLH_CODE_FAILED, "out of memory");
    } else {
        answer_bytes(s, t->len > 0 ? body.at : "", t->len > 0 ? body.len : 0);
    }
    text_free(&body);
}

void grpc_answer(struct call *c) {
    struct stream *s = c->stream;
    if (s != NULL) {
        s->call = NULL;
        if (c->code == 0) {
            answer_document(s, &c->reply);
        } else {
            answer_error(s, c->code, c->message);
        }
    }
    call_free(c);
}

// ---- requests

// unwrap finds the bytes of a BytesValue in a gRPC message. Unknown fields are skipped, as protobuf requires.
static bool unwrap(const uint8_t *in, size_t len, const uint8_t **bytes, size_t *n) {
    *bytes = (const uint8_t *)"";
    *n = 0;
    if (len < PREFIX || in[0] != 0) return false;
    size_t body = (size_t)in[1] << 24 | (size_t)in[2] << 16 | (size_t)in[3] << 8 | in[4], at = PREFIX;
    if (body != len - PREFIX) return false;
    while (at < len) {
        uint8_t tag = in[at++];
        size_t size = 0;
        int shift = 0;
        for (;; shift += 7) {
            if (at == len || shift > 28) return false;
            size |= (size_t)(in[at] & 0x7F) << shift;
            if ((in[at++] & 0x80) == 0) break;
        }
        if ((tag & 7) == 0) continue; // a number, which the loop has just read
        if ((tag & 7) != 2 || size > len - at) return false;
        if (tag >> 3 == 1) {
            *bytes = in + at;
            *n = size;
        }
        at += size;
    }
    return true;
}

static void start_call(struct stream *s, const char *method) {
    const uint8_t *bytes;
    size_t n;
    if (s->too_long) {
        answer_error(s, RLH_CODE_FAILED, "the request is too long");
        return;
    }
    if (!unwrap(s->in, s->in_len, &bytes, &n) || strlen(method) >= sizeof(((struct call *)0)->method)) {
        answer_error(s, RLH_CODE_INVALID, "the request is no google.protobuf.BytesValue");
        return;
    }
    struct call *c = calloc(1, sizeof *c);
    if (c != NULL) c->request = malloc(n + 1);
    if (c == NULL || c->request == NULL) {
        free(c);
        answer_error(s, RLH_CODE_FAILED, "out of memory");
        return;
    }
    memcpy(c->request, bytes, n);
    c->request[n] = 0;
    c->len = n;
    strcpy(c->method, method);
    c->stream = s;
    s->call = c;
    s->grpc->handlers.call(s->grpc->handlers.user, c);
}

static void on_request(struct stream *s) {
    static const char own[] = "/" RLH_SERVICE "/";
    if (strcmp(s->path, "/grpc.health.v1.Health/Check") == 0) {
        answer_bytes(s, "\x08\x01", 2); // status: SERVING
    } else if (strcmp(s->path, "/plugin.GRPCController/Shutdown") == 0) {
        answer_bytes(s, "", 0);
        s->grpc->handlers.shutdown(s->grpc->handlers.user);
    } else if (strncmp(s->path, own, sizeof own - 1) == 0) {
        start_call(s, s->path + sizeof own - 1);
    } else {
        answer_error(s, RLH_CODE_UNSUPPORTED, "this plugin has no such method");
    }
}

static bool is_held_open(const struct stream *s) {
    return strcmp(s->path, "/plugin.GRPCStdio/StreamStdio") == 0 || strcmp(s->path, "/plugin.GRPCBroker/StartStream") == 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *f, void *user) {
    (void)user;
    if (f->hd.type != NGHTTP2_DATA && f->hd.type != NGHTTP2_HEADERS) return 0;
    struct stream *s = stream_of(session, f->hd.stream_id);
    if (s == NULL || s->answered || s->call != NULL) return 0;
    if (is_held_open(s)) {
        submit(s);
    } else if ((f->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        on_request(s);
    }
    return 0;
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *f, void *user) {
    struct grpc *g = user;
    if (f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    struct stream *s = calloc(1, sizeof *s);
    if (s == NULL) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    s->grpc = g;
    s->id = f->hd.stream_id;
    s->next = g->streams;
    g->streams = s;
    nghttp2_session_set_stream_user_data(session, s->id, s);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *f, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t len, uint8_t flags, void *user) {
    (void)flags, (void)user;
    struct stream *s = stream_of(session, f->hd.stream_id);
    if (s != NULL && name_len == 5 && memcmp(name, ":path", 5) == 0 && len < sizeof s->path) {
        memcpy(s->path, value, len);
        s->path[len] = 0;
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t n, void *user) {
    (void)flags, (void)user;
    struct stream *s = stream_of(session, id);
    if (s == NULL || s->too_long || s->answered || is_held_open(s)) return 0;
    if (n > s->in_room - s->in_len) {
        size_t room = 2 * (s->in_len + n);
        uint8_t *more = room <= 2 * REQUEST_MAX ? realloc(s->in, room) : NULL;
        if (more == NULL) {
            s->too_long = true;
            return 0;
        }
        s->in = more;
        s->in_room = room;
    }
    memcpy(s->in + s->in_len, bytes, n);
    s->in_len += n;
    return 0;
}

static int on_end(nghttp2_session *session, int32_t id, uint32_t code, void *user) {
    (void)code;
    struct grpc *g = user;
    struct stream *s = stream_of(session, id);
    for (struct stream **at = &g->streams; s != NULL && *at != NULL; at = &(*at)->next) {
        if (*at != s) continue;
        *at = s->next;
        free_stream(s);
        break;
    }
    return 0;
}

// ---- the connection

static ssize_t on_send(nghttp2_session *session, const uint8_t *bytes, size_t n, int flags, void *user) {
    (void)session, (void)flags;
    ssize_t sent = send(((struct grpc *)user)->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return sent;
    return errno == EAGAIN || errno == EINTR ? NGHTTP2_ERR_WOULDBLOCK : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static bool open_session(struct grpc *g) {
    nghttp2_session_callbacks *c;
    if (nghttp2_session_callbacks_new(&c) != 0) return false;
    nghttp2_session_callbacks_set_send_callback(c, on_send);
    nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(c, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, on_end);
    int err = nghttp2_session_server_new(&g->session, c, g);
    nghttp2_session_callbacks_del(c);
    nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX},
                                         {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 4 << 20}};
    return err == 0 && nghttp2_submit_settings(g->session, NGHTTP2_FLAG_NONE, settings, 2) == 0;
}

struct grpc *grpc_open(int fd, const struct grpc_handlers *handlers) {
    struct grpc *g = calloc(1, sizeof *g);
    if (g == NULL) {
        close(fd);
        return NULL;
    }
    g->fd = fd;
    g->handlers = *handlers;
    if (open_session(g) && grpc_write(g)) return g;
    grpc_close(g);
    return NULL;
}

int grpc_fd(const struct grpc *g) { return g->fd; }

bool grpc_read(struct grpc *g) {
    uint8_t bytes[16384];
    ssize_t n = recv(g->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    return n > 0 && nghttp2_session_mem_recv(g->session, bytes, (size_t)n) == n;
}

bool grpc_write(struct grpc *g) {
    return nghttp2_session_send(g->session) == 0 &&
           (nghttp2_session_want_read(g->session) != 0 || nghttp2_session_want_write(g->session) != 0);
}

bool grpc_wants_write(const struct grpc *g) { return nghttp2_session_want_write(g->session) != 0; }

void grpc_close(struct grpc *g) {
    while (g->streams != NULL) {
        struct stream *next = g->streams->next;
        free_stream(g->streams);
        g->streams = next;
    }
    nghttp2_session_del(g->session);
    close(g->fd);
    free(g);
}
#else
typedef int rlh_no_grpc; // a file needs a declaration
#endif
