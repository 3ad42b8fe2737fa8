// Requests: frames with questions, their arguments, and the frames with answers.
#include "check.h"

#include "../service.h"

static int arguments(rlh_host *host, void *self, rlh_question *q) {
    (void)host, (void)self;
    int64_t n = 7;
    double x = 7;
    int yes = 7;
    CHECK(rlh_arg_int(q, "none", &n) == RLH_OK && n == 7 && rlh_arg_float(q, "none", &x) == RLH_OK && x == 7);
    CHECK(rlh_arg_bool(q, "none", &yes) == RLH_OK && yes == 7 && rlh_arg_text(q, "none") == NULL);
    CHECK(rlh_arg_int(q, "n", &n) == RLH_OK && n == 2 && rlh_arg_float(q, "n", &x) == RLH_OK && x == 2);
    CHECK(rlh_arg_bool(q, "yes", &yes) == RLH_OK && yes == 1);
    const char *first = rlh_arg_text(q, "s"), *list = rlh_arg_text(q, "list"), *number = rlh_arg_text(q, "n");
    CHECK(strcmp(first, "a\"b\xc3\xa4") == 0 && strcmp(list, "[1, {}]") == 0 && strcmp(number, "2") == 0);
    CHECK(strstr(rlh_args(q), "\"list\":[1, {}]") != NULL);
    return rlh_answer_text(q, first);
}

static int misread(rlh_host *host, void *self, rlh_question *q) {
    (void)host, (void)self;
    int64_t n = 7;
    double x = 7;
    int yes = 7;
    CHECK(rlh_arg_int(q, "s", &n) == RLH_ERR_INVALID && rlh_arg_float(q, "s", &x) == RLH_ERR_INVALID && rlh_arg_bool(q, "s", &yes) == RLH_ERR_INVALID);
    CHECK(rlh_arg_int(q, "half", &n) == RLH_ERR_INVALID && rlh_arg_int(q, "big", &n) == RLH_ERR_INVALID && rlh_arg_int(q, "list", &n) == RLH_ERR_INVALID);
    CHECK(n == 7 && x == 7 && yes == 7);
    rlh_arg_int(q, "half", &n);
    return rlh_answer_json(q, "1"); // the error counts
}

static int floats(rlh_host *host, void *self, rlh_question *q) {
    (void)host, (void)self;
    static const double list[] = {0, -1, 0.1, 1.0 / 3, 1e300, 5e-324, 123456789012345680.0};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        CHECK(rlh_answer_json(q, i == 0 ? "[" : ",") == RLH_OK && rlh_answer_float(q, list[i]) == RLH_OK);
    }
    CHECK(rlh_answer_json(q, ",") == RLH_OK && rlh_answer_int(q, INT64_MIN) == RLH_OK && rlh_answer_json(q, ",") == RLH_OK);
    CHECK(rlh_answer_bool(q, 2) == RLH_OK);
    return rlh_answer_json(q, "]");
}

static int raised(rlh_host *host, void *self, rlh_question *q) {
    (void)host, (void)self;
    rlh_answer_json(q, "1");
    CHECK(rlh_raise(q, "First", "gone") == RLH_ERR_REFUSED);
    return rlh_raise(q, "KeyError", "no key %d", 5);
}

static int code(rlh_host *host, void *self, rlh_question *q) {
    (void)host, (void)self, (void)q;
    return RLH_ERR_TIMEOUT;
}

static int nothing(rlh_host *host, void *self, rlh_question *q) {
    (void)host, (void)self, (void)q;
    return RLH_OK;
}

static int exactly(rlh_host *host, void *self, rlh_question *q) {
    (void)host;
    int64_t *bytes = self; // of the answer
    rlh_answer_json(q, "\"");
    for (int64_t i = 2; i < *bytes; i++) rlh_answer_json(q, "x");
    return rlh_answer_json(q, "\"");
}

static const rlh_request requests[] = {
    {"arguments", "n integer, yes bool?,s text", "reads", arguments}, {"misread", NULL, NULL, misread}, {"floats", "", "", floats},
    {"raised", "x", "", raised},                                      {"code", "a b c?", "", code},      {"nothing", "?", "", nothing},
    {"exactly", NULL, "", exactly},                                   {"unbound", NULL, "", NULL},
};
static const rlh_asking asks[] = {{"weigh", "item text", "how heavy", NULL}, {"level", NULL, NULL, NULL}};
static const rlh_component kind = {.kind = "unit", .requests = requests, .request_count = sizeof requests / sizeof *requests, .asks = asks, .ask_count = 2};

// ask answers a question of that name and those arguments, and returns the frame.
static char *ask(const char *name, const char *args, void *self) {
    struct text t = {0}, frame = {0};
    text_format(&t, "{\"request\":{\"call\":18446744073709551615,\"name\":\"%s\",\"args\":", name);
    text_put(&t, args);
    text_put(&t, ",\"within_ns\":60000000000}}");
    rlh_question *q = question_read(t.at, t.len);
    text_free(&t);
    CHECK(q != NULL && question_answer(q, NULL, &kind, self, &frame));
    question_free(q);
    CHECK(!frame.failed);
    return frame.at;
}

static void check_answer(const char *name, const char *args, const char *want) {
    char *got = ask(name, args, NULL);
    struct text whole = {0};
    text_put(&whole, "{\"answer\":{\"call\":18446744073709551615,");
    text_put(&whole, want);
    text_put(&whole, "}}");
    if (strcmp(got, whole.at) != 0) {
        fprintf(stderr, "%s: %s, want %s\n", name, got, whole.at);
        exit(1);
    }
    free(got);
    text_free(&whole);
}

static void test_answers(void) {
    check_answer("arguments", "{\"n\":1,\"\\u006e\":2,\"yes\":true,\"s\":\"a\\\"b\\u00e4\",\"list\":[1, {}]}", "\"reply\":\"a\\\"b\xc3\xa4\"");
    check_answer("misread", "{\"s\":\"1\",\"half\":1.5,\"big\":9223372036854775808.0,\"list\":[]}",
                 "\"error\":{\"type\":\"\",\"text\":\"the argument half is 1.5, want a whole number of 64 bits\",\"place\":\"\"}");
    check_answer("floats", "{}", "\"reply\":[0,-1,0.1,0.3333333333333333,1e+300,4.94065645841247e-324,1.2345678901234568e+17,-9223372036854775808,true]");
    check_answer("code", "{}", "\"error\":{\"type\":\"\",\"text\":\"timeout\",\"place\":\"\"}");
    check_answer("nothing", "{}", "\"error\":{\"type\":\"\",\"text\":\"is not JSON: \\\"\\\"\",\"place\":\"\",\"answer\":true}");
    check_answer("other", "{}", "\"error\":{\"type\":\"\",\"text\":\"this program does not answer the request other\",\"place\":\"\"}");
    check_answer("unbound", "{}", "\"error\":{\"type\":\"\",\"text\":\"this program does not answer the request unbound\",\"place\":\"\"}");
    char *got = ask("raised", "{}", NULL);
    CHECK(strstr(got, "\"type\":\"KeyError\",\"text\":\"no key 5\",\"place\":\"unit_request.c:") != NULL && strstr(got, "reply") == NULL);
    free(got);
    for (int64_t bytes = RLH_MAX_REQUEST_BYTES - 1; bytes <= RLH_MAX_REQUEST_BYTES + 1; bytes++) {
        got = ask("exactly", "{}", &bytes);
        CHECK((strstr(got, "\"reply\":") != NULL) == (bytes <= RLH_MAX_REQUEST_BYTES));
        CHECK((strstr(got, "has 122881 bytes, at most 122880\",\"place\":\"\",\"answer\":true") != NULL) == (bytes > RLH_MAX_REQUEST_BYTES));
        CHECK(strlen(got) <= RLH_MAX_FRAME);
        free(got);
    }
}

static void test_frames_that_are_no_questions(void) {
    static const char *const list[] = {
        "", "{}", "[]", "{\"request\":null}", "{\"request\":5}", "{\"request\":{}}", "{\"told\":{\"call\":1}}",
        "{\"request\":{\"call\":1,\"name\":\"code\",\"args\":[],\"within_ns\":1}}", "{\"request\":{\"call\":1,\"name\":\"code\",\"within_ns\":1}}",
        "{\"request\":{\"call\":-1,\"name\":\"code\",\"args\":{},\"within_ns\":1}}", "{\"request\":{\"call\":1,\"name\":5,\"args\":{},\"within_ns\":1}}",
        "{\"request\":{\"call\":1,\"name\":\"code\",\"args\":{},\"within_ns\":\"1\"}}", "{\"request\":{\"call\":1,\"name\":\"code\",\"args\":{}}}",
        "{\"request\":{\"call\":1,\"name\":\"code\",\"args\":{},\"within_ns\":1}",
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) CHECK(question_read(list[i], strlen(list[i])) == NULL);
    static const char zero[] = "{\"request\":{\"call\":1,\"name\":\"co\0de\",\"args\":{},\"within_ns\":1}}";
    CHECK(question_read(zero, sizeof zero - 1) == NULL);
}

static void test_nobody_waits_any_more(void) {
    for (int i = 0; i < 2; i++) {
        struct text frame = {0};
        const char *late = i == 0 ? "{\"request\":{\"call\":1,\"name\":\"nothing\",\"args\":{},\"within_ns\":-1}}"
                                  : "{\"request\":{\"call\":1,\"name\":\"nothing\",\"args\":{},\"within_ns\":-9223372036854775808}}";
        rlh_question *q = question_read(late, strlen(late));
        CHECK(q != NULL && !question_answer(q, NULL, &kind, NULL, &frame) && frame.at == NULL);
        question_free(q);
    }
}

static void test_questions_keep_their_order(void) {
    struct question_list list = {0};
    CHECK(question_pop(&list) == NULL);
    for (int round = 0; round < 2; round++) {
        rlh_question *made[3];
        for (size_t i = 0; i < 3; i++) {
            const char *text = "{\"request\":{\"call\":1,\"name\":\"nothing\",\"args\":{},\"within_ns\":1}}";
            made[i] = question_read(text, strlen(text));
            question_push(&list, made[i]);
        }
        for (size_t i = 0; i < 3; i++) {
            CHECK(question_pop(&list) == made[i]);
            question_free(made[i]);
        }
        CHECK(question_pop(&list) == NULL);
    }
}

static void test_descriptions(void) {
    struct text t = {0};
    requests_write(&t, &kind);
    const char *want = "\"requests\":[{\"name\":\"arguments\",\"doc\":\"reads\",\"args\":[{\"name\":\"n\",\"type\":\"integer\"},{\"name\":\"yes\",\"type\":\"bool\","
                       "\"optional\":true},{\"name\":\"s\",\"type\":\"text\"}]},{\"name\":\"misread\",\"doc\":\"\",\"args\":[]},{\"name\":\"floats\","
                       "\"doc\":\"\",\"args\":[]},{\"name\":\"raised\",\"doc\":\"\",\"args\":[{\"name\":\"x\",\"type\":\"\"}]},{\"name\":\"code\",\"doc\":\"\","
                       "\"args\":[{\"name\":\"a\",\"type\":\"b c\",\"optional\":true}]},{\"name\":\"nothing\",\"doc\":\"\",\"args\":[{\"name\":\"?\",\"type\":\"\"}]},"
                       "{\"name\":\"exactly\",\"doc\":\"\",\"args\":[]},{\"name\":\"unbound\",\"doc\":\"\",\"args\":[]}],"
                       "\"asks\":[{\"name\":\"weigh\",\"doc\":\"how heavy\",\"args\":[{\"name\":\"item\",\"type\":\"text\"}]},"
                       "{\"name\":\"level\",\"doc\":\"\",\"args\":[]}]";
    if (strcmp(t.at, want) != 0) {
        fprintf(stderr, "%s\nwant\n%s\n", t.at, want);
        exit(1);
    }
    text_free(&t);
}

void unit_request(void) {
    test_answers();
    test_frames_that_are_no_questions();
    test_nobody_waits_any_more();
    test_questions_keep_their_order();
    test_descriptions();
}
