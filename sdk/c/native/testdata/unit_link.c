// The link and the wire against a host that the test plays itself.
#include "check.h"

#include <poll.h>

struct play {
    rlh_host *host;
    int wire; // the host's end
    rlh_ring *to, *from;
    struct made arena;
};

static struct play open_play(const rlh_handlers *handlers) {
    struct play p = {0};
    int fds[2], to, from;
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
    CHECK(rlh_ring_create(&to, RLH_RING_MESSAGES, 4096, 64) == RLH_OK && rlh_ring_create(&from, RLH_RING_MESSAGES, 4096, 64) == RLH_OK);
    CHECK(rlh_ring_attach(&p.to, to, RLH_RING_MESSAGES, 0) == RLH_OK && rlh_ring_attach(&p.from, from, RLH_RING_MESSAGES, 0) == RLH_OK);
    p.wire = fds[0];
    CHECK_EQUAL(rlh_host_open(&p.host, fds[1], to, from, handlers), RLH_OK);
    close(to);
    close(from);
    static const rlh_port signals[] = {{"plain", "x", "", 0, 0}, {"asks", "y", "", 1, 0}};
    CHECK_EQUAL(rlh_host_bind(p.host, 3, 12, signals, 2, 2), RLH_OK);
    p.arena = make_arena(9, 2048, 100);
    return p;
}

static void close_play(struct play *p) {
    rlh_host_close(p->host);
    close(p->wire);
    rlh_ring_detach(p->to);
    rlh_ring_detach(p->from);
    unmake_arena(&p->arena);
}

static void say(struct play *p, const char *json, const int *fds, size_t n) {
    rlh_host self = {.wire = p->wire};
    CHECK_EQUAL(rlh_wire_send(&self, json, strlen(json), fds, n), RLH_OK);
}

// hear reads a frame of the plugin; its file goes to *fd.
static size_t hear(struct play *p, char *text, size_t room, int *fd) {
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec io = {text, room - 1};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(p->wire, &m, 0);
    CHECK(n > 0);
    text[n] = 0;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c != NULL && fd != NULL) memcpy(fd, CMSG_DATA(c), sizeof *fd);
    return (size_t)n;
}

static void announce(struct play *p) {
    const int fds[] = {p->arena.words, p->arena.data};
    say(p, "{\"arena\":{\"call\":0,\"id\":9,\"name\":\"nine\",\"blocks\":2048,\"block_bytes\":100,\"read_only\":false,\"schema\":null}}", fds, 2);
}

// tell_plugin puts a message of the host, which has finished that many of the plugin's messages.
static void tell_plugin(struct play *p, uint16_t slot, rlh_handle h, uint64_t finished) {
    rlh_message m = {.slot = slot, .handle = h, .ctl = finished};
    CHECK_EQUAL(rlh_messages_put(p->to, &m, 1, 0), 1);
}

static rlh_message from_plugin(struct play *p) {
    rlh_message m;
    CHECK_EQUAL(rlh_messages_get(p->from, &m, 1, INT64_C(5000000000)), 1);
    return m;
}

static void test_arenas_are_known_before_their_messages(void) {
    struct play p = open_play(NULL);
    announce(&p);
    rlh_arena *a = rlh_arena_of(p.host, (uint64_t)9 << 56 | 1); // read here if the thread has not been faster
    CHECK(a != NULL && a == rlh_arena_named(p.host, "nine") && rlh_arena_of(p.host, (uint64_t)8 << 56 | 1) == NULL);
    say(&p, "{\"removed\":9}", NULL, 0);
    CHECK(rlh_arena_named(p.host, "nine") == NULL);
    rlh_handle h;
    CHECK_EQUAL(rlh_loan(a, &h, NULL), RLH_ERR_CLOSED);
    announce(&p); // another one of that ID
    CHECK(rlh_arena_named(p.host, "nine") != a);
    close_play(&p);
}

static void test_fields_of_a_later_version_are_ignored(void) {
    struct play p = open_play(NULL);
    const int fds[] = {p.arena.words, p.arena.data};
    say(&p, "{\"of_a_later_version\":{\"removed\":9}}", NULL, 0);
    say(&p, "{\"of_a_later_version\":{\"id\":1},\"arena\":{\"of_a_later_version\":[{\"id\":2}],\"call\":0,\"id\":9,\"name\":\"nine\","
            "\"blocks\":2048,\"block_bytes\":100,\"read_only\":false,\"schema\":{\"kind\":\"tensors\",\"of_a_later_version\":1,\"columns\":["
            "{\"of_a_later_version\":{},\"name\":\"x\",\"dtype\":\"f32\",\"rows\":1,\"envs\":1,\"elems\":1,\"shape\":[],\"offset\":0,"
            "\"stride_t\":4,\"stride_env\":4,\"stride_elem\":4}]}}}", fds, 2);
    rlh_arena *a = rlh_arena_of(p.host, (uint64_t)9 << 56 | 1);
    CHECK(a != NULL && rlh_column(a, "x") != NULL);
    close_play(&p);
}

static void test_claims_last_until_acknowledged(void) {
    struct play p = open_play(NULL);
    announce(&p);
    rlh_arena *a = rlh_arena_of(p.host, (uint64_t)9 << 56 | 1);
    rlh_handle h;
    rlh_arena_stats s;
    CHECK(rlh_loan(a, &h, NULL) == RLH_OK);
    rlh_message m = {.handle = h, .sender = 12, .kind = 5};
    CHECK_EQUAL(rlh_emit(p.host, 1, &m), RLH_OK); // asks: nothing is claimed
    CHECK(rlh_commit(a, h) == RLH_OK && rlh_emit(p.host, 0, &m) == RLH_OK && rlh_release(a, h) == RLH_OK);
    CHECK_EQUAL(rlh_emit(p.host, 2, &m), RLH_ERR_INVALID);
    rlh_message got = from_plugin(&p);
    CHECK(got.signal == 1 && got.sender == 12 && got.sequence == 1);
    got = from_plugin(&p);
    CHECK(got.signal == 0 && got.sequence == 1 && got.kind == 5 && got.handle == h && got.ctl == 0);
    tell_plugin(&p, RLH_LINK_ACK, 0, 1);
    CHECK_EQUAL(rlh_receive(p.host, &m, 0), RLH_ERR_TIMEOUT);
    rlh_arena_count(a, &s);
    CHECK_EQUAL(s.claims, 1);
    tell_plugin(&p, RLH_LINK_ACK, 0, 2);
    CHECK_EQUAL(rlh_receive(p.host, &m, 0), RLH_ERR_TIMEOUT);
    rlh_arena_count(a, &s);
    CHECK(s.claims == 0 && s.free == 2048);
    m.handle = h;
    CHECK_EQUAL(rlh_emit(p.host, 0, &m), RLH_ERR_STALE);
    m.handle = 5;
    CHECK_EQUAL(rlh_emit(p.host, 0, &m), RLH_ERR_FOREIGN);
    close_play(&p);
}

static void test_acknowledgements_go_out_when_due(void) {
    struct play p = open_play(NULL);
    announce(&p);
    rlh_arena *a = rlh_arena_of(p.host, (uint64_t)9 << 56 | 1);
    rlh_handle h;
    CHECK(rlh_loan(a, &h, NULL) == RLH_OK && rlh_commit(a, h) == RLH_OK);
    rlh_message m;
    tell_plugin(&p, 1, 0, 0);
    tell_plugin(&p, 0, h, 0);
    tell_plugin(&p, 0, 0, 0);
    CHECK(rlh_receive(p.host, &m, 0) == RLH_OK && m.slot == 1);
    CHECK(rlh_receive(p.host, &m, 0) == RLH_OK && m.handle == h);
    CHECK_EQUAL(rlh_ring_used(p.from), 0); // the first carried no claimed block
    CHECK(rlh_receive(p.host, &m, 0) == RLH_OK && m.handle == 0);
    CHECK(rlh_ring_used(p.from) == 1 && from_plugin(&p).ctl == 2);
    CHECK_EQUAL(rlh_receive(p.host, &m, 0), RLH_ERR_TIMEOUT);
    CHECK_EQUAL(from_plugin(&p).ctl, 3); // nothing else to do
    for (int i = 0; i < 600; i++) tell_plugin(&p, 0, 0, 0);
    for (int i = 0; i < 600; i++) CHECK_EQUAL(rlh_receive(p.host, &m, 0), RLH_OK);
    CHECK(rlh_ring_used(p.from) == 1 && from_plugin(&p).ctl == 3 + RLH_LINK_WINDOW / 2);
    rlh_message answer = {0};
    CHECK_EQUAL(rlh_emit(p.host, 0, &answer), RLH_OK);
    CHECK_EQUAL(from_plugin(&p).ctl, 3 + 599);
    CHECK_EQUAL(rlh_release(a, h), RLH_OK);
    close_play(&p);
}

static void *acknowledge(void *user) {
    struct play *p = user;
    for (uint64_t seen = 0; seen < 3 * RLH_LINK_WINDOW;) {
        rlh_message m = from_plugin(p);
        if (m.slot >= RLH_LINK_CONTROL) continue;
        CHECK_EQUAL(m.sequence, ++seen);
        if (seen % 100 == 0 || seen > 3 * RLH_LINK_WINDOW - 100) tell_plugin(p, 1, 0, seen); // in the Ctl of data
    }
    return NULL;
}

static void test_emit_waits_at_the_window(void) {
    struct play p = open_play(NULL);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, acknowledge, &p) == 0);
    rlh_message m = {0};
    for (int i = 0; i < 3 * RLH_LINK_WINDOW; i++) CHECK_EQUAL(rlh_emit(p.host, 0, &m), RLH_OK);
    pthread_join(thread, NULL);
    int data = 0;
    while (rlh_receive(p.host, &m, 0) == RLH_OK) data++; // messages that arrived meanwhile were kept
    CHECK_EQUAL(data, 29 + 100);
    for (int i = 0; i < RLH_LINK_WINDOW; i++) CHECK_EQUAL(rlh_emit(p.host, 0, &m), RLH_OK);
    rlh_end(p.host);
    CHECK_EQUAL(rlh_emit(p.host, 0, &m), RLH_ERR_CLOSED); // does not wait forever
    close_play(&p);
}

static void test_nonsense_of_the_host_is_refused(void) {
    struct play p = open_play(NULL);
    rlh_message m;
    tell_plugin(&p, 2, 0, 0); // there is no slot 2
    CHECK_EQUAL(rlh_receive(p.host, &m, 0), RLH_ERR_INVALID);
    tell_plugin(&p, RLH_LINK_ACK, 0, 7); // of messages never sent
    CHECK_EQUAL(rlh_receive(p.host, &m, 0), RLH_ERR_INVALID);
    const char *frames[] = {"x", "[]", "{\"arena\":{}}", "{\"arena\":{\"id\":999}}", "{\"removed\":-1}", "{\"removed\":300}",
                            "{\"failed\":{}}", "{\"state\":{\"call\":1,\"bytes\":5}}", "{\"arena\":null}"};
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) say(&p, frames[i], &p.arena.words, i % 2);
    void *bytes;
    size_t n;
    CHECK_EQUAL(rlh_state_take(p.host, 1, &bytes, &n, INT64_C(5000000000)), RLH_OK);
    CHECK(n == 5);
    free(bytes);
    close_play(&p);
}

static int woken;

static void on_woken(void *user) {
    (void)user;
    woken++;
}

static void test_boundary_serves_calls_meanwhile(void) {
    rlh_handlers handlers = {.woken = on_woken};
    struct play p = open_play(&handlers);
    rlh_message m;
    CHECK(!rlh_begun(p.host));
    tell_plugin(&p, RLH_LINK_RUN, 0, 0);
    CHECK(rlh_receive(p.host, &m, RLH_FOREVER) == RLH_ERR_WOKEN && rlh_begun(p.host));
    rlh_wake(p.host);
    tell_plugin(&p, 0, 0, 0);
    tell_plugin(&p, RLH_LINK_BOUNDARY_OVER, 0, 0);
    tell_plugin(&p, RLH_LINK_ENV_STEP, 0, 0);
    CHECK_EQUAL(rlh_boundary(p.host), RLH_OK);
    CHECK(woken == 1 && from_plugin(&p).slot == RLH_LINK_BOUNDARY);
    CHECK(rlh_receive(p.host, &m, 0) == RLH_OK && m.slot == 0);
    CHECK(rlh_receive(p.host, &m, 0) == RLH_OK && m.slot == RLH_LINK_ENV_STEP);
    m.slot = RLH_LINK_ENV_REPLY;
    CHECK_EQUAL(rlh_send(p.host, &m), RLH_OK);
    m.slot = 3;
    CHECK_EQUAL(rlh_send(p.host, &m), RLH_ERR_INVALID);
    close_play(&p);
}

static void *grant(void *user) {
    struct play *p = user;
    char text[1000];
    hear(p, text, sizeof text, NULL);
    CHECK(strcmp(text, "{\"add_arena\":{\"call\":1,\"name\":\"a\\\"b\",\"blocks\":2048,\"block_bytes\":100}}") == 0);
    say(p, "{\"failed\":{\"call\":1,\"reason\":\"too much\"}}", NULL, 0);
    hear(p, text, sizeof text, NULL);
    CHECK(strstr(text, "\"schema\":{\"kind\":\"tensors\"}") != NULL);
    const int fds[] = {p->arena.words, p->arena.data};
    say(p, "{\"arena\":{\"call\":2,\"id\":9,\"name\":\"own\",\"blocks\":2048,\"block_bytes\":100,\"read_only\":false,\"schema\":{\"kind\":\"tensors\"}}}", fds, 2);
    return NULL;
}

static void test_arenas_are_granted_or_refused(void) {
    struct play p = open_play(NULL);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, grant, &p) == 0);
    rlh_arena *a;
    CHECK_EQUAL(rlh_add_arena(p.host, &a, "a\"b", 2048, 100, NULL), RLH_ERR_REFUSED);
    CHECK(strcmp(rlh_reason(p.host), "too much") == 0);
    CHECK_EQUAL(rlh_add_arena(p.host, &a, "own", 2048, 100, "{\"kind\":\"tensors\"}"), RLH_OK);
    CHECK(strcmp(rlh_arena_get_info(a)->schema, "{\"kind\":\"tensors\"}") == 0);
    pthread_join(thread, NULL);
    close_play(&p);
}

static void test_states_and_metrics_travel(void) {
    struct play p = open_play(NULL);
    char text[4000];
    int fd = -1;
    CHECK_EQUAL(rlh_state_send(p.host, 7, "hello", 5), RLH_OK);
    hear(&p, text, sizeof text, &fd);
    CHECK(strcmp(text, "{\"state\":{\"call\":7,\"bytes\":5}}") == 0);
    char state[6] = {0};
    CHECK(pread(fd, state, 5, 0) == 5 && strcmp(state, "hello") == 0);
    say(&p, "{\"state\":{\"call\":8,\"bytes\":5}}", &fd, 1);
    say(&p, "{\"state\":{\"call\":9,\"bytes\":5000}}", &fd, 1);
    void *bytes;
    size_t n;
    CHECK_EQUAL(rlh_state_take(p.host, 8, &bytes, &n, RLH_FOREVER), RLH_OK);
    CHECK(n == 5 && memcmp(bytes, "hello", 5) == 0);
    free(bytes);
    CHECK_EQUAL(rlh_state_take(p.host, 9, &bytes, &n, RLH_FOREVER), RLH_ERR_INVALID);
    CHECK_EQUAL(rlh_state_take(p.host, 10, &bytes, &n, 1000), RLH_ERR_TIMEOUT);
    close(fd);
    rlh_gauge(p.host, "g", 1.0 / 0.0); // is nothing
    metrics_send(p.host);
    rlh_count(p.host, "c", 2);
    rlh_count(p.host, "c", 3);
    rlh_gauge(p.host, "g", 0.5);
    rlh_observe(p.host, "h", 1);
    rlh_observe(p.host, "h", 2);
    metrics_send(p.host);
    hear(&p, text, sizeof text, NULL);
    CHECK(strstr(text, "\"c\":") != NULL);
    rlh_fail(p.host, "told %s", "so");
    do {
        hear(&p, text, sizeof text, NULL);
    } while (strstr(text, "stats") != NULL);
    CHECK(strcmp(text, "{\"fail\":{\"reason\":\"told so\"}}") == 0);
    close_play(&p);
}

static void on_gone(void *user) { STORE((uint32_t *)user, 1); }

static void test_the_end_of_the_host_is_seen(void) {
    uint32_t gone = 0;
    rlh_handlers handlers = {.user = &gone, .gone = on_gone};
    struct play p = open_play(&handlers);
    shutdown(p.wire, SHUT_RDWR);
    while (LOAD(&gone) == 0) poll(NULL, 0, 1);
    close_play(&p);
}

void unit_link(void) {
    test_arenas_are_known_before_their_messages();
    test_fields_of_a_later_version_are_ignored();
    test_claims_last_until_acknowledged();
    test_acknowledgements_go_out_when_due();
    test_emit_waits_at_the_window();
    test_nonsense_of_the_host_is_refused();
    test_boundary_serves_calls_meanwhile();
    test_arenas_are_granted_or_refused();
    test_states_and_metrics_travel();
    test_the_end_of_the_host_is_seen();
}
