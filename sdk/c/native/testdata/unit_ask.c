// Questions to other components: the frames with their answers, and the values in these.
#include "check.h"

#include "../service.h"

// told reads a frame that answers question 7; rest follows the number.
static struct told *told(const char *rest) {
    struct text t = {0};
    text_format(&t, "{\"told\":{\"call\":7%s}}", rest);
    struct told *x = told_read(t.at, t.len);
    text_free(&t);
    return x;
}

// came is what the component got.
static int came;
static rlh_told last;

static void values(rlh_host *host, void *self, const rlh_told *t) {
    (void)host, (void)self;
    int64_t n = 1;
    double x = 1;
    int yes = 7;
    came++;
    CHECK(t->question == 7 && t->fault == 0 && strstr(t->json, "\"whole\": 3.0") != NULL && t->text[0] == 0 && t->type[0] == 0 && t->place[0] == 0);
    CHECK(rlh_told_int(t, "n", &n) == RLH_OK && n == -5 && rlh_told_int(t, "whole", &n) == RLH_ERR_INVALID);
    CHECK(rlh_told_float(t, "x", &x) == RLH_OK && x == 2.5 && rlh_told_float(t, "n", &x) == RLH_OK && x == -5);
    CHECK(rlh_told_bool(t, "yes", &yes) == RLH_OK && yes == 1);
    CHECK(strcmp(rlh_told_text(t, "s"), "a\"\xc3\xa4") == 0 && strcmp(rlh_told_text(t, "list"), "[1, {}]") == 0 && rlh_told_text(t, "none") == NULL);
    CHECK(rlh_told_int(t, NULL, &n) == RLH_ERR_INVALID && rlh_told_int(t, "x", &n) == RLH_ERR_INVALID && rlh_told_int(t, "none", &n) == RLH_ERR_INVALID);
    CHECK(rlh_told_float(t, "s", &x) == RLH_ERR_INVALID && rlh_told_float(t, "big", &x) == RLH_ERR_INVALID && rlh_told_bool(t, "n", &yes) == RLH_ERR_INVALID);
    CHECK(n == -5 && x == -5 && yes == 1);
}

static void keeps(rlh_host *host, void *self, const rlh_told *t) {
    (void)host, (void)self;
    int64_t n = 1;
    came++;
    last = *t;
    const char *text = rlh_told_text(t, NULL);
    CHECK(t->fault != 0 || strcmp(text != NULL ? text : "null", t->json) == 0);
    CHECK(rlh_told_int(t, "n", &n) == RLH_ERR_INVALID);
    CHECK((rlh_told_int(&last, NULL, &n) == RLH_OK) == (t->fault == 0 && strcmp(t->json, "41") == 0));
}

static const rlh_asking asks[] = {{"values", NULL, NULL, values}, {"keeps", NULL, NULL, keeps}, {"unheard", NULL, NULL, NULL}};

// give has the component told an answer to question 7, which was one of asks.
static struct told *give(const char *rest, uint32_t ask) {
    static struct service s;
    s = (struct service){.configured = {.asks = asks, .ask_count = 3}, .asked = {[200] = {.number = 7, .ask = ask}}};
    s.kind = &s.configured;
    struct told *t = told(rest);
    CHECK(t != NULL);
    int before = came;
    service_told(&s, t);
    CHECK(came == before + (ask < 2 ? 1 : 0));
    service_told(&s, t); // a second time it is no question's
    CHECK(came == before + (ask < 2 ? 1 : 0));
    return t;
}

static void test_answers(void) {
    told_free(give(",\"reply\":{\"n\":1,\"\\u006e\":-5,\"whole\": 3.0,\"x\":2.5,\"yes\":true,\"s\":\"a\\\"\\u00e4\",\"list\":[1, {}],\"big\":1e999}", 0));
    told_free(give(",\"reply\":41", 1));
    told_free(give(",\"reply\":[41]", 1));
    told_free(give("", 1)); // what has no reply is null
    told_free(give(",\"reply\":null", 2));
}

static void test_faults(void) {
    static const struct {
        const char *frame;
        int fault;
        const char *type, *place;
    } list[] = {
        {",\"error\":{\"text\":\"no\",\"type\":\"ValueError\",\"place\":\"x.py:3\"}", RLH_ANSWER_RAISED, "ValueError", "x.py:3"},
        {",\"error\":{\"text\":\"no\",\"why\":\"args\"}", RLH_ANSWER_REFUSED, "", ""},
        {",\"error\":{\"text\":\"no\",\"why\":\"late\"}", RLH_ANSWER_LATE, "", ""},
        {",\"error\":{\"text\":\"no\",\"why\":\"lost\"}", RLH_ANSWER_LOST, "", ""},
        {",\"error\":{\"text\":\"no\",\"why\":\"busy\"}", RLH_ANSWER_BUSY, "", ""},
        {",\"error\":{\"text\":\"no\",\"answer\":true}", RLH_ANSWER_NO_ANSWER, "", ""},
        {",\"error\":{\"text\":\"no\",\"why\":\"other\"},\"reply\":41", RLH_ANSWER_RAISED, "", ""},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        struct told *t = give(list[i].frame, 1);
        CHECK(last.fault == list[i].fault && last.json == NULL && strcmp(last.text, "no") == 0);
        CHECK(strcmp(last.type, list[i].type) == 0 && strcmp(last.place, list[i].place) == 0);
        told_free(t);
    }
}

static void test_frames_that_are_no_answers(void) {
    static const char *const list[] = {"", "{}", "[]", "{\"told\":null}", "{\"told\":{}}", "{\"told\":{\"call\":0}}", "{\"told\":{\"call\":-1}}", "{\"told\":{\"call\":2147483648}}",
        "{\"told\":{\"call\":\"1\"}}", "{\"told\":{\"call\":1}", "{\"request\":{\"call\":1}}"};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) CHECK(told_read(list[i], strlen(list[i])) == NULL);
}

static void test_answers_keep_their_order(void) {
    struct told_list list = {0};
    for (int round = 0; round < 2; round++) {
        struct told *first = told(""), *second = told("");
        told_push(&list, first);
        told_push(&list, second);
        CHECK(told_pop(&list) == first && told_pop(&list) == second && told_pop(&list) == NULL);
        told_free(first);
        told_free(second);
    }
}

static void test_quote(void) {
    char to[8];
    CHECK(rlh_quote(to, sizeof to, "a\"b\\") == RLH_ERR_TOO_LONG && to[0] == 0);
    CHECK(rlh_quote(to, sizeof to, "a\"bcd") == RLH_ERR_TOO_LONG); // 8 bytes and the zero byte
    CHECK(rlh_quote(to, sizeof to, "a\"bc") == RLH_OK && strcmp(to, "\"a\\\"bc\"") == 0);
    CHECK(rlh_quote(NULL, 0, "a") == RLH_ERR_TOO_LONG);
}

void unit_ask(void) {
    test_answers();
    test_faults();
    test_frames_that_are_no_answers();
    test_answers_keep_their_order();
    test_quote();
}
