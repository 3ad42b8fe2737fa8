// Hand-written. Unit tests of an environment in C, as a program of this machine: reset with a seed, step with actions, look at what
// the environment wrote, by name.
//
//	#define RL_NO_MAIN // the tests have one
//	#include "walk.c"
//	#include "rl_test.h"
//
//	RL_TEST(the_end_pays)
//	{
//	    rl_test_open("length=3\n"); // arguments; without it, the first reset opens one without any
//	    rl_test_reset(7);
//	    rl_test_state(Walk)->position = 1;
//	    rl_test_step(1); // an action: its elements, those of the first agent first
//	    RL_EXPECT(rl_test_terminated(0));
//	    RL_EXPECT_EQ(rl_test_reward(0), 1);
//	    RL_EXPECT_NEAR(rl_test_final("", 0, 0), 1, 1e-6);
//	}
//
//	RL_TEST_MAIN
//
//	cc -g -fsanitize=address,undefined -I sdk/c walk_test.c -o walk_test -lm && ./walk_test [NAME…]
//
// One environment is open at a time. An episode that ends begins anew in the same step: its last observation is rl_test_final, and
// rl_test_obs is the first of the next one. A tensor is named by its path, "" where it has none. A name, an agent or an element that is not
// there ends the program with the line and what there is. A failed expectation is printed with its line, and the tests go on; the program
// returns 1 then.
#ifndef RL_TEST_H
#define RL_TEST_H

#ifndef RL_NO_MAIN
#error "write #define RL_NO_MAIN before the environment's file: rl_test.h brings another main"
#endif

static rl_play rl_tested;
static bool rl_test_is_open;
static const char *rl_test_running, *rl_test_file;
static int rl_test_line, rl_test_failures;

typedef struct rl_test_case {
    const char *name;
    void (*run)(void);
    struct rl_test_case *next;
} rl_test_case;

static rl_test_case *rl_test_first, **rl_test_last = &rl_test_first;

// RL_TEST(name) { … } is a test; they run in their order.
#define RL_TEST(name_)                                                                                         \
    static void name_(void);                                                                                   \
    __attribute__((constructor)) static void rl_add_##name_(void)                                              \
    {                                                                                                          \
        static rl_test_case one = {#name_, name_, NULL};                                                       \
        *rl_test_last = &one;                                                                                  \
        rl_test_last = &one.next;                                                                              \
    }                                                                                                          \
    static void name_(void)

// RL_HERE evaluates a call with its place, for messages.
#define RL_HERE(call) (rl_test_file = __FILE__, rl_test_line = __LINE__, (call))

// RL_EXPECT(condition), RL_EXPECT_EQ(got, want) and RL_EXPECT_NEAR(got, want, within) compare numbers.
#define RL_EXPECT(condition) RL_HERE((condition) ? (void)0 : rl_test_fail("%s", "expected " #condition))
#define RL_EXPECT_EQ(got, want) RL_HERE(rl_test_near(#got, got, want, 0))
#define RL_EXPECT_NEAR(got, want, within) RL_HERE(rl_test_near(#got, got, want, within))

// rl_test_open(arguments) makes an environment with arguments, lines "key=value\n". rl_test_refused(arguments) is what the environment
// says against them, or "" where it takes them. rl_test_reset(seed) begins an episode.
#define rl_test_open(arguments) RL_HERE(rl_test_do_open(arguments))
#define rl_test_refused(arguments) RL_HERE(rl_test_do_refused(arguments))
#define rl_test_reset(seed) RL_HERE(rl_test_do_reset(seed))

// rl_test_step(value…) steps with actions: the elements of all agents, of the first action first.
#define rl_test_step(...) RL_HERE(rl_test_do_step((const double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double)))

// What the newest step or reset wrote. k counts agents; those of several groups, of the first group first.
#define rl_test_obs(path, k, i) RL_HERE(rl_test_read(RL_ROLE_OBSERVATION, "observation", path, k, i))
#define rl_test_final(path, k, i) RL_HERE(rl_test_read(RL_ROLE_FINAL_OBSERVATION, "final observation", path, k, i))
#define rl_test_legal(path, k, i) RL_HERE(rl_test_read(RL_ROLE_ACTION_MASK, "mask", path, k, i))
#define rl_test_info(path) RL_HERE(rl_test_read(RL_ROLE_INFO, "figure", path, 0, 0))
#define rl_test_reward(k) RL_HERE(rl_test_read(RL_ROLE_REWARD, "reward", "", k, 0))
#define rl_test_terminated(k) RL_HERE(rl_test_read(RL_ROLE_TERMINATED, "terminated", "", k, 0))
#define rl_test_truncated(k) RL_HERE(rl_test_read(RL_ROLE_TRUNCATED, "truncated", "", k, 0))
#define rl_test_discount() RL_HERE(rl_test_read(RL_ROLE_DISCOUNT, "discount", "", 0, 0))
#define rl_test_active(k) RL_HERE(rl_test_read(RL_ROLE_ACTIVE, "active", "", k, 0))

// rl_test_state(Type) is the author's struct, of an environment that RL_ENV makes.
#define rl_test_state(Type) ((Type *)rl_batches[rl_tested.batch]->state)

__attribute__((format(printf, 1, 2))) RL_QUIET static void rl_test_fail(const char *format, ...)
{
    va_list more;
    va_start(more, format);
    printf("%s:%d: %s: ", rl_test_file, rl_test_line, rl_test_running);
    vprintf(format, more);
    printf("\n");
    va_end(more);
    rl_test_failures++;
}

// rl_test_stop ends the program where a test cannot go on.
#define rl_test_stop(...) (rl_test_fail(__VA_ARGS__), exit(1))

RL_QUIET static void rl_test_near(const char *text, double got, double want, double within)
{
    if (!(fabs(got - want) <= within)) rl_test_fail("%s is %.9g, want %.9g", text, got, want);
}

RL_QUIET static int32_t rl_test_try(const char *arguments, const char **call)
{
    if (rl_test_is_open) rl_destroy(rl_tested.batch);
    memset(&rl_tested, 0, sizeof rl_tested);
    rl_native_used = RL_PAGE;
    rl_tested.envs = 1;
    snprintf(rl_tested.config, sizeof rl_tested.config, "%s", arguments);
    int32_t status = rl_play_open(&rl_tested, call);
    rl_test_is_open = status >= 0;
    return status;
}

RL_QUIET static void rl_test_do_open(const char *arguments)
{
    const char *call;
    int32_t status = rl_test_try(arguments, &call);
    if (status < 0) rl_test_stop("%s: status %" PRId32 " %s", call, status, rl_play_why());
}

RL_QUIET static const char *rl_test_do_refused(const char *arguments)
{
    const char *call;
    return rl_test_try(arguments, &call) < 0 ? rl_play_why() : "";
}

RL_QUIET static void rl_test_do_reset(uint64_t seed)
{
    if (!rl_test_is_open) rl_test_do_open("");
    int32_t status = rl_play_reset(&rl_tested, seed);
    if (status) rl_test_stop("rl_reset: status %" PRId32 " %s", status, rl_play_why());
}

RL_QUIET static void rl_test_do_step(const double *values, size_t n)
{
    size_t want = 0, used = 0;
    for (uint32_t k = 0; k < rl_tested.spec.tensors; k++) {
        if (rl_tested.desc[k].role != RL_ROLE_ACTION) continue;
        for (uint32_t agent = 0; agent < rl_tested.agents[k]; agent++, want += rl_tested.elems[k])
            for (uint32_t i = 0; i < rl_tested.elems[k] && used < n; i++, used++) {
                void *to = rl_play_row(&rl_tested, k, 0, 0, agent) + i * rl_tested.bytes[k];
                if (rl_tested.desc[k].dtype == RL_I32) *(int32_t *)to = (int32_t)values[used];
                else *(float *)to = (float)values[used];
            }
    }
    if (n != want) rl_test_stop("rl_test_step has %zu values, and an action of all agents %zu elements", n, want);
    int32_t status = rl_test_is_open ? rl_step(rl_tested.batch, 0) : RL_STATUS_STATE;
    if (status) rl_test_stop("rl_step: status %" PRId32 " %s", status, status == RL_STATUS_STATE ? "reset first" : rl_play_why());
    rl_play_forward(&rl_tested);
}

// rl_test_path is the path of a tensor; a final observation has its observation's, and a mask its action's.
RL_QUIET static const char *rl_test_path(uint32_t k) { return rl_play_string(&rl_tested, rl_tested.desc[k].path); }

// rl_test_has lists the paths of a role, for messages.
RL_QUIET static const char *rl_test_has(uint32_t role)
{
    static char text[512];
    text[0] = 0;
    for (uint32_t k = 0; k < rl_tested.spec.tensors; k++) {
        size_t used = strlen(text);
        if (rl_tested.desc[k].role == role) snprintf(text + used, sizeof text - used, "%s\"%s\"", used ? ", " : "", rl_test_path(k));
    }
    return text[0] ? text : "none";
}

RL_QUIET static double rl_test_read(uint32_t role, const char *what, const char *path, uint32_t agent, uint32_t i)
{
    uint32_t rows = 0, elems = 0, left = agent;
    for (uint32_t k = 0; k < rl_tested.spec.tensors; k++) {
        const rl_tensor_desc *d = &rl_tested.desc[k];
        if (d->role != role || strcmp(rl_test_path(k), path)) continue;
        elems = rl_tested.elems[k];
        rows += rl_tested.agents[k];
        bool shared = !(d->flags & RL_TENSOR_PER_AGENT); // by all agents of the group
        if (i < elems && (left < rl_tested.agents[k] || (shared && rl_tested.spec.groups < 2)))
            return rl_play_number(&rl_tested, k, rl_play_row(&rl_tested, k, 0, 0, shared ? 0 : left), i);
        if (left >= rl_tested.agents[k]) left -= rl_tested.agents[k];
    }
    if (!rows) rl_test_stop("no %s \"%s\"; there is %s", what, path, rl_test_has(role));
    rl_test_stop("%s \"%s\" has %" PRIu32 " rows of %" PRIu32 " elements: there is no element %" PRIu32 " of agent %" PRIu32, what, path, rows,
                 elems, i, agent);
    return 0;
}

// RL_TEST_MAIN is the program: all tests, or those whose names it is given.
#define RL_TEST_MAIN                                                                                           \
    int main(int argc, char **argv) { return rl_test_all(argc, argv); }

RL_QUIET static bool rl_test_wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], name)) return true;
    return argc < 2;
}

RL_QUIET static int rl_test_all(int argc, char **argv)
{
    int ran = 0;
    for (rl_test_case *one = rl_test_first; one; one = one->next) {
        if (!rl_test_wanted(one->name, argc, argv)) continue;
        rl_test_running = one->name;
        rl_test_file = __FILE__, rl_test_line = __LINE__;
        rl_test_do_open("");
        one->run();
        ran++;
    }
    if (!ran) {
        printf("no test of that name\n");
        return 1;
    }
    printf("%d tests, %d failures\n", ran, rl_test_failures);
    return rl_test_failures != 0;
}

#endif
