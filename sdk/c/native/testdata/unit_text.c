// Documents: reading and writing JSON, columns, the configuration.
#include "check.h"

#include "../service.h"

static bool parses(const char *text) {
    struct json doc;
    bool ok = json_parse(&doc, text, strlen(text));
    json_free(&doc);
    return ok;
}

static void test_documents_are_checked(void) {
    const char *right[] = {"{}", "[]", " null ", "true", "-0.5e+10", "\"\\u00e4\\n\"", "{\"a\":[1,{\"b\":null}],\"c\":\"\"}", "[[[]]]"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) CHECK(parses(right[i]));
    const char *wrong[] = {"", "{", "}", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "01", "1.", "1e", "-", "nul", "\"", "\"\\x\"",
                           "\"\\u12\"", "\"\n\"", "[1] 2", "{\"a\":1,}", "[1 2]", "+1", ".5"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) CHECK(!parses(wrong[i]));
    static char deep[2 * JSON_DEPTH_MAX + 3];
    memset(deep, '[', sizeof deep);
    memset(deep + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
    deep[2 * JSON_DEPTH_MAX] = 0;
    CHECK(parses(deep));
    memset(deep, '[', JSON_DEPTH_MAX + 1);
    memset(deep + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
    deep[2 * JSON_DEPTH_MAX + 2] = 0;
    CHECK(!parses(deep));
}

static void test_values_are_found(void) {
    const char *text = "{\"a\":{\"x\":[1,2,3]},\"u\":18446744073709551615,\"n\":-5,\"big\":18446744073709551616,"
                       "\"f\":1.5,\"d\":\"18446744073709551615\",\"e\":\"18446744073709551616\",\"g\":\"-1\",\"h\":\"\",\"t\":true,\"s\":\"\\ud83d\\ude00\\u0041\\ud800\\\"\\\\\\/\\b\\u0000\"}";
    struct json d;
    CHECK(json_parse(&d, text, strlen(text)));
    uint64_t u = 7;
    int64_t n = 7;
    size_t size = 7;
    CHECK(json_u64(&d, json_get(&d, 0, "u"), &u) && u == UINT64_MAX);
    CHECK(!json_u64(&d, json_get(&d, 0, "n"), &u) && json_i64(&d, json_get(&d, 0, "n"), &n) && n == -5);
    CHECK(!json_u64(&d, json_get(&d, 0, "big"), &u) && !json_i64(&d, json_get(&d, 0, "u"), &n));
    CHECK(!json_u64(&d, json_get(&d, 0, "f"), &u) && !json_u64(&d, json_get(&d, 0, "nothing"), &u));
    u = 7;
    CHECK(json_decimal(&d, json_get(&d, 0, "d"), &u) && u == UINT64_MAX);
    const char *no_decimal[] = {"u", "e", "g", "h", "t", "s", "a", "nothing"};
    for (size_t i = 0; i < sizeof no_decimal / sizeof *no_decimal; i++) CHECK(!json_decimal(&d, json_get(&d, 0, no_decimal[i]), &u));
    CHECK_EQUAL(u, UINT64_MAX);
    CHECK(!json_size(&d, json_get(&d, 0, "u"), &size, 100) && size == 7);
    CHECK(json_true(&d, json_get(&d, 0, "t")) && !json_true(&d, json_get(&d, 0, "u")));
    json_place list = json_get(&d, json_get(&d, 0, "a"), "x");
    uint64_t sum = 0, count = 0;
    for (json_place at = json_first(&d, list); at != JSON_NONE; at = json_next(&d, list, at), count++) {
        CHECK(json_u64(&d, at, &u));
        sum += u;
    }
    CHECK(count == 3 && sum == 6);
    char *s = json_text(&d, json_get(&d, 0, "s")), *raw = json_raw(&d, json_get(&d, 0, "a"));
    CHECK(strcmp(s, "\xf0\x9f\x98\x80" "A\xef\xbf\xbd\"\\/\b\xef\xbf\xbd") == 0);
    CHECK(strcmp(raw, "{\"x\":[1,2,3]}") == 0);
    CHECK(json_text(&d, json_get(&d, 0, "t")) == NULL && json_get(&d, list, "x") == JSON_NONE);
    free(s);
    free(raw);
    json_free(&d);
}

static void test_written_strings_can_be_read(void) {
    struct text t = {0};
    text_quote(&t, "a\"b\\c\n\x01\xc3\xa4\xff\xc3");
    CHECK(strcmp(t.at, "\"a\\\"b\\\\c\\u000a\\u0001\xc3\xa4??\"") == 0 && parses(t.at));
    text_free(&t);
    for (int i = 0; i < 1000; i++) text_format(&t, "%d,", i);
    CHECK_EQUAL(t.len, 10 * 2 + 90 * 3 + 900 * 4);
    text_free(&t);
}

static const char columns[] =
    "{\"kind\":\"tensors\",\"columns\":["
    "{\"name\":\"reward\",\"dtype\":\"f32\",\"rows\":4,\"envs\":2,\"elems\":1,\"shape\":[],\"offset\":64,\"stride_t\":8,\"stride_env\":4,\"stride_elem\":4},"
    "{\"name\":\"beyond\",\"dtype\":\"f32\",\"rows\":4,\"envs\":2,\"elems\":1,\"shape\":[],\"offset\":996,\"stride_t\":8,\"stride_env\":4,\"stride_elem\":4},"
    "{\"name\":\"wraps\",\"dtype\":\"u8\",\"rows\":4611686018427387904,\"envs\":1,\"elems\":1,\"shape\":[],\"offset\":0,\"stride_t\":4,\"stride_env\":4,\"stride_elem\":4},"
    "{\"name\":\"odd\",\"dtype\":\"f32\",\"rows\":1,\"envs\":1,\"elems\":1,\"shape\":[],\"offset\":2,\"stride_t\":4,\"stride_env\":4,\"stride_elem\":4},"
    "{\"name\":\"what\",\"dtype\":\"f31\",\"rows\":1,\"envs\":1,\"elems\":1,\"shape\":[],\"offset\":0,\"stride_t\":4,\"stride_env\":4,\"stride_elem\":4},"
    "{\"name\":\"obs\",\"dtype\":\"u8\",\"rows\":1,\"envs\":2,\"elems\":12,\"shape\":[3,4],\"offset\":128,\"stride_t\":24,\"stride_env\":12,\"stride_elem\":1},"
    "7,{}]}";

static void test_columns_lie_in_the_block(void) {
    struct made m = make_arena(3, 2, 1000);
    rlh_arena_info said = m.info;
    said.schema = columns;
    rlh_arena *a;
    CHECK_EQUAL(rlh_arena_attach(&a, m.words, m.data, &said, 1, NULL, NULL), RLH_OK);
    size_t n;
    rlh_columns(a, &n);
    CHECK_EQUAL(n, 2);
    const char *refused[] = {"beyond", "wraps", "odd", "what"};
    for (size_t i = 0; i < 4; i++) CHECK(rlh_column(a, refused[i]) == NULL);
    const rlh_column_view *reward = rlh_column(a, "reward"), *obs = rlh_column(a, "obs");
    CHECK(reward != NULL && obs != NULL && obs->dims == 2 && obs->shape[1] == 4 && strcmp(obs->dtype, "u8") == 0);
    rlh_handle h;
    void *bytes;
    CHECK_EQUAL(rlh_loan(a, &h, &bytes), RLH_OK);
    *(float *)(void *)((char *)bytes + 64 + 3 * 8 + 4) = 2.5f;
    CHECK(rlh_f32_at(reward, bytes, 3, 1, 0) == 2.5f);
    CHECK_EQUAL(rlh_abort(a, h), RLH_OK);
    rlh_arena_detach(a);
    unmake_arena(&m);
}

static void test_configuration_is_read(void) {
    const char *doc = "{\"of_a_later_version\":{\"name\":\"x\",\"run\":[1]},\"kind\":\"k\",\"name\":\"k[1]\",\"id\":9,\"index\":1,\"count\":2,\"holder\":4,"
                      "\"config\":{\"a\":1,\"b\":{\"c\":\"x=y\\nz\",\"l\":[1,\"two\",2.5],\"e\":[]},\"d\":\"\",\"e\":true,\"f\":2.5,"
                      "\"bad\":\"2x\",\"none\":null},\"run\":{\"of_a_later_version\":[null],\"name\":\"r\",\"seed\":\"18446744073709551615\","
                      "\"dir\":\"/tmp\",\"synchronous\":true},\"check_only\":false}";
    rlh_host host = {0};
    CHECK_EQUAL(rlh_host_configure(&host, "{", 1), RLH_ERR_INVALID);
    CHECK_EQUAL(rlh_host_configure(&host, "[]", 2), RLH_ERR_INVALID);
    const char *number = "{\"run\":{\"seed\":5}}", *none = "{\"run\":{\"seed\":null}}";
    CHECK_EQUAL(rlh_host_configure(&host, number, strlen(number)), RLH_ERR_INVALID);
    CHECK_EQUAL(rlh_host_configure(&host, none, strlen(none)), RLH_OK);
    CHECK_EQUAL(rlh_host_configure(&host, doc, strlen(doc)), RLH_OK);
    const rlh_identity *me = rlh_identify(&host);
    CHECK(strcmp(me->name, "k[1]") == 0 && me->seed == UINT64_MAX && me->synchronous && me->id == 9 && me->count == 2);
    int64_t a = 5, missing = 6, bad = 7;
    double f = 0;
    int e = 0;
    CHECK(rlh_config_int(&host, "a", &a) == RLH_OK && a == 1);
    CHECK(rlh_config_int(&host, "missing", &missing) == RLH_OK && missing == 6);
    CHECK(rlh_config_int(&host, "bad", &bad) == RLH_ERR_INVALID && bad == 7);
    CHECK(rlh_config_float(&host, "f", &f) == RLH_OK && f == 2.5);
    CHECK(rlh_config_bool(&host, "e", &e) == RLH_OK && e == 1);
    CHECK(strcmp(rlh_config(&host, "b.c"), "x=y\nz") == 0 && strcmp(rlh_config(&host, "d"), "") == 0);
    CHECK(strcmp(rlh_config(&host, "b.l"), "1,two,2.5") == 0 && strcmp(rlh_config(&host, "b.e"), "") == 0);
    CHECK(rlh_config(&host, "b") == NULL && rlh_config(&host, "none") == NULL);
    struct text reply = {0};
    config_finish(&host, &reply); // "bad" was read, and is a wrong number; the ports follow
    CHECK(strcmp(reply.at, "{\"errors\":[{\"key\":\"bad\",\"reason\":\"is \\\"2x\\\", want an integer\",\"help\":\"\","
                           "\"code\":\"\"}],\"flow\":null,") == 0);
    text_free(&reply);
    CHECK_EQUAL(rlh_host_configure(&host, doc, strlen(doc)), RLH_OK);
    config_free(host.config);
}

// configures reports whether a configuration with so many tables in each other is taken.
static bool configures(int tables) {
    struct text t = {0};
    rlh_host host = {0};
    text_put(&t, "{\"config\":");
    for (int i = 1; i < tables; i++) text_put(&t, "{\"a\":");
    text_put(&t, "{\"b\":5}");
    for (int i = 0; i < tables; i++) text_put(&t, "}");
    int err = rlh_host_configure(&host, t.at, t.len);
    text_free(&t);
    config_free(host.config);
    return err == RLH_OK;
}

static void test_tables_in_tables_end_somewhere(void) { CHECK(configures(1) && configures(32) && !configures(33) && !configures(9000)); }

void unit_text(void) {
    test_tables_in_tables_end_somewhere();
    test_documents_are_checked();
    test_values_are_found();
    test_written_strings_can_be_read();
    test_columns_lie_in_the_block();
    test_configuration_is_read();
}
