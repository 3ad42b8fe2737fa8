// The client of channels: WHAT NAME. The test in Go serves the channel, of 2 items a key and 8 MiB, and looks at what
// is left.
#include "check.h"

#include <unistd.h>

static void check_item(const rlh_channel_item *item, double weight, char first, size_t len) {
    CHECK(item->weight == weight);
    CHECK_EQUAL(item->len, len);
    for (size_t i = 0; i < len; i++) CHECK(((const char *)item->bytes)[i] == (char)(first + (char)(i % 61)));
}

static void put(rlh_channel *c, const char *key, double weight, char first, size_t len) {
    char *bytes = malloc(len + 1);
    for (size_t i = 0; i < len; i++) bytes[i] = (char)(first + (char)(i % 61));
    int code = rlh_channel_put(c, key, weight, bytes, len, RLH_FOREVER);
    if (code != RLH_OK) fprintf(stderr, "%s\n", rlh_channel_reason(c));
    CHECK_EQUAL(code, RLH_OK);
    free(bytes);
}

// test_items_of_any_size puts and gets items in the frame, at its limit, and in regions of their own.
static void test_items_of_any_size(rlh_channel *c) {
    rlh_channel_item item;
    static const size_t sizes[] = {0, 1, 1000, 64 << 10, (64 << 10) + 1, 1 << 20, 3000001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        put(c, "sizes", (double)i, 'a', sizes[i]);
        CHECK_EQUAL(rlh_channel_get(c, "sizes", &item, RLH_FOREVER), RLH_OK);
        check_item(&item, (double)i, 'a', sizes[i]);
    }
    for (int i = 0; i < 50; i++) { // regions are given back: they would be 150 MB
        put(c, "again", 1, 'b', 3000001);
        CHECK_EQUAL(rlh_channel_get(c, "again", &item, RLH_FOREVER), RLH_OK);
    }
}

static void test_batches(rlh_channel *c) {
    rlh_channel_item items[8];
    put(c, "batch", 3, 'a', 10);
    put(c, "batch", 4, 'b', 100000);
    CHECK_EQUAL(rlh_channel_get_batch(c, "batch", 7, items, 8, RLH_FOREVER), 2);
    check_item(&items[0], 3, 'a', 10);
    check_item(&items[1], 4, 'b', 100000);
    put(c, "batch", 3, 'a', 60000);
    put(c, "batch", 4, 'b', 60000);
    CHECK_EQUAL(rlh_channel_get_batch(c, "batch", 100, items, 1, RLH_FOREVER), 1); // as many as there is room for
    check_item(&items[0], 3, 'a', 60000);
    CHECK_EQUAL(rlh_channel_get_batch(c, "batch", 100, items, 8, 1000000), 1); // what there is when the time is over
    check_item(&items[0], 4, 'b', 60000);
    CHECK_EQUAL(rlh_channel_get_batch(c, "batch", 100, items, 8, 1000000), RLH_ERR_TIMEOUT);
    CHECK_EQUAL(rlh_channel_get_batch(c, "batch", 100, items, 0, 0), RLH_ERR_INVALID);
}

// test_a_batch_of_many is one whose items together do not fit into a frame.
static void test_a_batch_of_many(const char *name) {
    rlh_channel *c;
    rlh_channel_item items[6];
    CHECK_EQUAL(rlh_channel_connect(&c, name), RLH_OK);
    for (int i = 0; i < 5; i++) put(c, "many", 1, (char)('a' + i), 60000);
    CHECK_EQUAL(rlh_channel_get_batch(c, "many", 5, items, 6, RLH_FOREVER), 5);
    for (int i = 0; i < 5; i++) check_item(&items[i], 1, (char)('a' + i), 60000);
    rlh_channel_disconnect(c);
}

static void test_what_is_refused(rlh_channel *c) {
    rlh_channel_item item;
    char *key = malloc((1 << 20) + 1), *large = calloc(1, 9 << 20);
    memset(key, 'k', 1 << 20);
    key[1 << 20] = 0;
    CHECK_EQUAL(rlh_channel_put(c, key, 1, "x", 1, 0), RLH_ERR_INVALID);
    CHECK(strstr(rlh_channel_reason(c), "a key of 1048576 bytes, at most 1024") != NULL);
    CHECK_EQUAL(rlh_channel_get(c, key, &item, 0), RLH_ERR_INVALID);
    CHECK_EQUAL(rlh_channel_put(c, "", 1, "x", 1, 0), RLH_ERR_INVALID);
    CHECK_EQUAL(rlh_channel_put(c, "k", -1, "x", 1, 0), RLH_ERR_INVALID);
    CHECK(strstr(rlh_channel_reason(c), "a weight of -1: want a number of 0 or more") != NULL);
    CHECK_EQUAL(rlh_channel_put(c, "k", 0.0 / 0.0, "x", 1, 0), RLH_ERR_INVALID);
    CHECK_EQUAL(rlh_channel_get_batch(c, "k", -1, &item, 1, 0), RLH_ERR_INVALID);
    CHECK_EQUAL(rlh_channel_put(c, "k", 1, large, 9 << 20, 0), RLH_ERR_TOO_LONG);
    CHECK_EQUAL(rlh_channel_get(c, "k", &item, 0), RLH_ERR_TIMEOUT);
    CHECK_EQUAL(rlh_channel_get(c, "k", &item, 2000000), RLH_ERR_TIMEOUT);
    put(c, "k", 1, 'a', 1);
    put(c, "k", 1, 'a', 1);
    CHECK_EQUAL(rlh_channel_put(c, "k", 1, "x", 1, 0), RLH_ERR_TIMEOUT);
    CHECK_EQUAL(rlh_channel_put(c, "k", 1, "x", 1, 2000000), RLH_ERR_TIMEOUT);
    CHECK_EQUAL(rlh_channel_get(c, "k", &item, 0), RLH_OK);
    free(key);
    free(large);
}

// wait_for_an_end waits for an item that does not come: somebody closes the channel, or its server ends.
static void wait_for_an_end(rlh_channel *c) {
    rlh_channel_item item;
    CHECK_EQUAL(rlh_channel_get(c, "never", &item, RLH_FOREVER), RLH_ERR_CLOSED);
    CHECK_EQUAL(rlh_channel_get(c, "never", &item, RLH_FOREVER), RLH_ERR_CLOSED);
    CHECK(strlen(rlh_channel_reason(c)) > 0);
}

// die_with_a_batch ends as a program does that is killed, with items in the frame and in regions.
static void die_with_a_batch(rlh_channel *c) {
    rlh_channel_item items[2];
    put(c, "held", 1, 'a', 10);
    put(c, "held", 1, 'b', 100000);
    CHECK_EQUAL(rlh_channel_get_batch(c, "held", 2, items, 2, RLH_FOREVER), 2);
    _exit(0);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    rlh_channel *c;
    CHECK_EQUAL(rlh_channel_connect(&c, "none-of-this-name"), RLH_ERR_SYSTEM);
    CHECK(errno == ENOENT);
    CHECK_EQUAL(rlh_channel_connect(&c, "a/b"), RLH_ERR_INVALID);
    CHECK_EQUAL(rlh_channel_connect(&c, argv[2]), RLH_OK);
    if (strcmp(argv[1], "wait") == 0) {
        wait_for_an_end(c);
    } else if (strcmp(argv[1], "die") == 0) {
        die_with_a_batch(c);
    } else if (strcmp(argv[1], "many") == 0) {
        test_a_batch_of_many(argv[2]);
    } else if (strcmp(argv[1], "close") == 0) {
        CHECK_EQUAL(rlh_channel_close(c), RLH_OK);
        CHECK_EQUAL(rlh_channel_put(c, "k", 1, "x", 1, 0), RLH_ERR_CLOSED);
    } else {
        test_items_of_any_size(c);
        test_batches(c);
        test_what_is_refused(c);
        put(c, "left", 2.5, 'q', 100000);
    }
    rlh_channel_disconnect(c);
    return 0;
}
