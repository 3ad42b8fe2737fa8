// Tests of the C SDK, native. The environment has everything that CartPole has not: a box action, a byte image, an
// action that depends on arguments, a mask in its second form (-DMASKED), in its third (-DSEVERAL), beside the image, a number
// of a Discrete and a vector, a discount and figures, and in its fourth (-DACTS) several actions, with masks.
#define RL_NO_MAIN
#include "rl_env.h"
#include <math.h>

typedef struct {
    int64_t limit;
    double gain;
    bool loud;
    uint32_t steps;
    float sum;
} Probe;

static const rl_argument arguments[] = {
    {"limit", "steps of an episode", RL_ARG_INTEGER, "3", 1, 1000, NULL, 0}, {"gain", "", RL_ARG_NUMBER, "1", 0, 0, NULL, 0},
    {"loud", NULL, RL_ARG_BOOL, "false", 0, 0, NULL, 0}, {"name", "five letters", RL_ARG_CHOICE, "probe", 0, 0, "probe\nabcde", RL_ARG_AFFECTS_SPACES}};

static bool setup(Probe *env, rl_config *config)
{
    env->limit = rl_arg_i64(config, "limit", 3);
    env->gain = rl_arg_f64(config, "gain", 1.0);
    env->loud = rl_arg_bool(config, "loud", false);
    rl_text name = rl_arg_text(config, "name", "probe");
    return name.len == 5 || rl_fail("name must have five letters");
}

#ifdef SEVERAL
typedef void *const Obs;
static const rl_named seen[] = {
    {"image", RL_BOX(RL_U8, 0, 255, 3, 5)}, {"inventory/gold", RL_DISCRETE(100)}, {"inventory/luck", RL_BOX(RL_F32, 0, 9, 2)}};
static const rl_figure told[] = {{"score", RL_TENSOR_SUM}, {"end/age", RL_TENSOR_EPISODE}};
#define OBS RL_OBSERVATIONS(seen), RL_FIGURES(told), .discount = true
#else
typedef uint8_t Obs;
#define OBS .obs = RL_BOX(RL_U8, 0, 255, 3, 5)
#endif

static void look(const Probe *env, Obs *obs)
{
#ifdef SEVERAL
    uint8_t *image = obs[0];
    int32_t *gold = obs[1];
    float *luck = obs[2];
    *gold = (int32_t)env->steps + 50;
    luck[0] = (float)env->steps;
    luck[1] = env->sum;
#else
    uint8_t *image = obs;
#endif
    for (uint32_t k = 0; k < 15; k++) image[k] = (uint8_t)(env->steps * 16 + k);
}

static void reset(Probe *env, rl_rng *rng, Obs *obs)
{
    env->steps = 0;
    env->sum = rl_uniform(rng, 0, 1);
    look(env, obs);
}

#ifdef ACTS
typedef const void *Action;
static const rl_named acts[] = {
    {"wheel", RL_BOX(RL_F32, -1, 1, 2)}, {"gear", RL_DISCRETE_FROM(-1, 3)}, {"lamps", RL_MULTI_BINARY(2)}, {"dial/0", RL_MULTI_DISCRETE(2, 3)}};
#define ACTION_FIELD RL_ACTIONS(acts)
#elif defined MASKED
typedef int32_t Action;
#define ACTION RL_DISCRETE(3)
#else
typedef float Action;
#define ACTION RL_BOX(RL_F32, -1, 1, 2)
#endif
#ifndef ACTION_FIELD
#define ACTION_FIELD .action = ACTION
#endif

static void step(Probe *env, rl_rng *rng, const Action *action, Obs *obs, rl_result *out)
{
    (void)rng;
    env->steps++;
#ifdef ACTS
    const float *wheel = action[0];
    const int32_t *gear = action[1], *lamps = action[2], *dial = action[3];
    env->sum += wheel[0] + 2 * wheel[1] + (float)(gear[0] + 4 * lamps[0] + 8 * lamps[1] + 16 * dial[0] + 32 * dial[1]);
#elif defined MASKED
    env->sum += (float)action[0];
#else
    env->sum += action[0] + 10 * action[1];
#endif
    look(env, obs);
    out->reward = env->sum * (float)env->gain;
    out->truncated = env->steps >= env->limit;
    out->terminated = out->truncated && env->loud;
#ifdef SEVERAL
    out->discount = 1 - 0.25f * (float)env->steps;
    out->figures[0] = env->sum;
    if (out->truncated) out->figures[1] = (float)env->steps;
#endif
}

#ifdef ACTS
static void mask(void *all, uint32_t i, uint8_t *legal)
{
    const Probe *env = (const Probe *)all + i;
    for (uint32_t k = 0; k < 12; k++) legal[k] = (k + env->steps) % 3 != 0;
}
#define EXTRA .mask = mask,
#elif defined MASKED
static void mask(void *all, uint32_t i, uint8_t *legal)
{
    const Probe *env = (const Probe *)all + i;
    for (uint32_t k = 0; k < 3; k++) legal[k] = k <= env->steps;
}
#define EXTRA .mask = mask,
#else
#define EXTRA
#endif

RL_ENV(Probe, setup, reset, step, EXTRA .name = "probe@2", ACTION_FIELD, OBS,
       RL_ARGUMENTS(arguments), .max_envs = 100)

static int failures;

#define CHECK(condition)                                                                                       \
    do {                                                                                                       \
        if (!(condition)) {                                                                                    \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                             \
            failures++;                                                                                        \
        }                                                                                                      \
    } while (0)

// Bench is one batch with two rows of time, in rows or columns.
typedef struct {
    uint32_t batch, envs;
    rl_part part[RL_TENSORS];
    rl_binding bind[RL_TENSORS];
} Bench;

// parts fills the table of all tensors and returns how many there are.
static uint32_t parts(rl_part *p)
{
    for (uint32_t k = 0; k < rl_count_parts(); k++) p[k] = rl_part_of(&rl_the_env, k);
    return rl_count_parts();
}

static uint32_t put(const void *data, uint32_t n)
{
    uint32_t at = (uint32_t)rl_alloc(n + 1, 64);
    memcpy(rl_at(at), data, n);
    return at;
}

static int32_t create(const char *config, uint32_t envs, uint32_t mode)
{
    return rl_create(put(config, (uint32_t)strlen(config)), (uint32_t)strlen(config), envs, mode);
}

static Bench start(const char *config, uint32_t envs, uint32_t mode, bool columns)
{
    Bench b = {.envs = envs};
    uint32_t count = parts(b.part);
    b.batch = (uint32_t)create(config, envs, mode);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t size = rl_dtype_bytes(b.part[k].desc.dtype), n = rl_elements(&b.part[k].space);
        uint32_t stride_t = rl_is_final(k) ? 0 : size * n * envs;
        b.bind[k] = (rl_binding){.ptr = (uint32_t)rl_alloc(2 * size * n * envs, 64), .stride_t = stride_t,
                                 .stride_env = columns ? size : size * n, .stride_elem = columns ? size * envs : size};
    }
    CHECK(rl_bind(b.batch, put(b.bind, sizeof b.bind), count) == RL_STATUS_OK);
    return b;
}

static void *element(const Bench *b, uint32_t k, uint32_t t, uint32_t i, uint32_t e)
{
    const rl_binding *x = &b->bind[k];
    return rl_at(x->ptr + t * x->stride_t + i * x->stride_env + e * x->stride_elem);
}

static void seed(const Bench *b, uint32_t t)
{
    uint64_t seeds[100];
    for (uint32_t i = 0; i < b->envs; i++) seeds[i] = 7 + i;
    CHECK(rl_reset(b->batch, t, 0, put(seeds, 8 * b->envs)) == RL_STATUS_OK);
}

static const char *error(void)
{
    static char text[257];
    uint32_t at = (uint32_t)rl_alloc(256, 1);
    int32_t n = rl_last_error(at, 256);
    memcpy(text, rl_at(at), (size_t)n);
    text[n] = 0;
    return text;
}

static void test_arguments(void)
{
    CHECK(create("gain=0.5\nlimit=2\nloud=true\nname=abcde\n", 1, RL_AUTORESET_SAME_STEP) >= 0);
    CHECK(create("lmit=2\n", 1, RL_AUTORESET_SAME_STEP) == RL_STATUS_CONFIG && !strcmp(error(), "unknown argument lmit"));
    CHECK(create("limit=2x\n", 1, RL_AUTORESET_SAME_STEP) == RL_STATUS_CONFIG);
    CHECK(!strcmp(error(), "argument limit: want a whole number"));
    CHECK(create("gain=fast\n", 1, RL_AUTORESET_SAME_STEP) == RL_STATUS_CONFIG);
    CHECK(!strcmp(error(), "argument gain: want a number"));
    CHECK(create("loud=1\n", 1, RL_AUTORESET_SAME_STEP) == RL_STATUS_CONFIG);
    CHECK(!strcmp(error(), "argument loud: want true or false"));
    CHECK(create("name=abc\n", 1, RL_AUTORESET_SAME_STEP) == RL_STATUS_CONFIG);
    CHECK(!strcmp(error(), "name must have five letters"));
    CHECK(create("", 0, RL_AUTORESET_SAME_STEP) == RL_STATUS_ARGUMENT);
    CHECK(create("", 101, RL_AUTORESET_SAME_STEP) == RL_STATUS_ARGUMENT);
    CHECK(create("", 1, 3) == RL_STATUS_UNSUPPORTED);
}

static void check_number(const char *text)
{
    char line[64];
    snprintf(line, sizeof line, "x=%s\n", text);
    rl_config c = {.text = line, .len = (uint32_t)strlen(line)};
    double got = rl_arg_f64(&c, "x", NAN), want = strtod(text, NULL);
    if (c.failed || fabs(got - want) > 1e-15 * fabs(want)) printf("%s: got %.17g\n", text, got), failures++;
}

static void test_numbers(void)
{
    const char *good[] = {"0", "-0", "1", "-1.5", "3.14159265358979", "1e-05", "1e+06", "2.5E3", ".5", "5.", "1e300", "1e-300",
                          "123456789012345678901234567890", "0.000000000000000000000001234567890123456789", "9007199254740993"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) check_number(good[i]);
    rl_rng rng = rl_seed(1);
    for (int i = 0; i < 2000; i++) {
        char text[40];
        snprintf(text, sizeof text, "%.15g", (double)rl_uniform(&rng, -1, 1) * pow(10, (double)rl_below(&rng, 40) - 20));
        check_number(text);
    }
    const char *bad[] = {"", "-", ".", "e5", "1e", "1e+", "1.2.3", "0x10", "nan", "inf", "1 ", "--1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[64];
        snprintf(line, sizeof line, "x=%s\n", bad[i]);
        rl_config c = {.text = line, .len = (uint32_t)strlen(line)};
        rl_arg_f64(&c, "x", 0);
        if (!c.failed) printf("accepted the number \"%s\"\n", bad[i]), failures++;
    }
    rl_config c = {.text = "a=9223372036854775807\nb=-9223372036854775808\nc=9223372036854775808\n", .len = 70};
    CHECK(rl_arg_i64(&c, "a", 0) == INT64_MAX && rl_arg_i64(&c, "b", 0) == INT64_MIN && !c.failed);
    rl_arg_i64(&c, "c", 0);
    CHECK(c.failed);
}

static void test_description(void)
{
    int32_t need = rl_describe(put("", 0), 0, put("", 0), 0);
    uint32_t tensors = rl_count_parts();
    uint32_t at = (uint32_t)rl_alloc((uint32_t)need, 64);
    memset(rl_at(at), 0xee, (size_t)need);
    CHECK(rl_describe(put("", 0), 0, at, (uint32_t)need - 1) == need && *(uint8_t *)rl_at(at) == 0xee);
    CHECK(rl_describe(put("", 0), 0, at, (uint32_t)need) == need);
    rl_spec *spec = rl_at(at);
    const char *strings = (const char *)spec + spec->strings_at;
    CHECK(spec->size == RL_SPEC_BYTES && spec->abi_major == 1 && spec->tensors == tensors && spec->max_envs == 100);
    CHECK(spec->tensor_bytes == RL_TENSOR_BYTES && spec->binding_bytes == RL_BINDING_BYTES && spec->state_version == 0);
    CHECK(spec->strings_at + spec->strings_len == (uint32_t)need && !strings[0]);
    CHECK(!strcmp(strings + spec->name, "probe") && !strcmp(strings + spec->version, "2") && isnan(spec->reward_threshold));
    rl_tensor_desc *d = (rl_tensor_desc *)(spec + 1);
    CHECK(d[1].role == RL_ROLE_OBSERVATION && d[1].rank == 2 && d[1].shape[0] == 3 && d[1].shape[1] == 5 && d[1].high == 255);
    CHECK(d[1].flags == RL_TENSOR_AT_T1 && d[2].flags & RL_TENSOR_NO_LOW && d[5].flags & RL_TENSOR_NO_TIME);
    CHECK(d[5].role == RL_ROLE_FINAL_OBSERVATION && d[5].pair == 0);
    const rl_arg_desc *a = (const rl_arg_desc *)(d + tensors);
    CHECK(spec->args == 4 && spec->arg_bytes == RL_ARG_BYTES && !strcmp(strings + a[0].name, "limit") && !strcmp(strings + a[0].doc, "steps of an episode"));
    CHECK(a[0].kind == RL_ARG_INTEGER && a[0].min == 1 && a[0].max == 1000 && !strcmp(strings + a[0].value, "3") && !a[0].choices && !a[1].doc && !a[2].doc);
    CHECK(a[3].kind == RL_ARG_CHOICE && a[3].flags == RL_ARG_AFFECTS_SPACES && !strcmp(strings + a[3].choices, "probe\nabcde"));
}

// test_spaces looks at what the description says of each kind of space.
static void test_spaces(void)
{
    static const float lows[] = {-1, 0}, highs[] = {1, 2};
    rl_env env = rl_the_env;
    env.actions = NULL;
    env.action = (rl_space)RL_MULTI_DISCRETE(3, 1, 4);
    env.obs = (rl_space){.dtype = RL_F32, .rank = 1, .shape = {2}, .lows = lows, .highs = highs, .name = "inventory/0"};
    env.observations = NULL;
    static uint8_t to[4096];
    uint32_t need = rl_put_description(&env, NULL);
    CHECK(need <= sizeof to && rl_put_description(&env, to) == need);
    rl_spec *spec = (rl_spec *)(void *)to;
    rl_tensor_desc *d = (rl_tensor_desc *)(void *)(to + sizeof *spec);
    CHECK(rl_choices(&env.action) == 8 && d[0].n == 0 && d[0].shape[0] == 3 && ((uint32_t *)(void *)(to + d[0].values))[2] == 4);
    CHECK(((float *)(void *)(to + d[1].values))[0] == -1 && ((float *)(void *)(to + d[1].values))[3] == 2);
    CHECK(!strcmp((char *)to + spec->strings_at + d[1].path, "inventory/0") && !(d[1].flags & RL_TENSOR_NO_LOW));
    env.obs = (rl_space)RL_IMAGE(4, 5, 3);
    env.action = (rl_space)RL_MULTI_BINARY(7);
    rl_put_description(&env, to);
    CHECK(d[0].n == 2 && d[0].flags & RL_TENSOR_BINARY && d[1].dtype == RL_U8 && d[1].flags & RL_TENSOR_IMAGE_HWC && d[1].scale < 0.004f);
}

static void act(Bench *b, uint32_t i)
{
#ifdef ACTS
    *(float *)element(b, RL_T_ACTION, 0, i, 0) = 0;
    *(float *)element(b, RL_T_ACTION, 0, i, 1) = -0.5f;
    *(int32_t *)element(b, rl_slot_action(1), 0, i, 0) = -1;
    *(int32_t *)element(b, rl_slot_action(2), 0, i, 0) = 1;
    *(int32_t *)element(b, rl_slot_action(2), 0, i, 1) = 0;
    *(int32_t *)element(b, rl_slot_action(3), 0, i, 0) = *(int32_t *)element(b, rl_slot_action(3), 0, i, 1) = 0;
#elif defined MASKED
    *(int32_t *)element(b, RL_T_ACTION, 0, i, 0) = 2;
#else
    *(float *)element(b, RL_T_ACTION, 0, i, 0) = 0.25f;
    *(float *)element(b, RL_T_ACTION, 0, i, 1) = 0.175f;
#endif
}

// test_steps looks at one episode of three steps; an action adds two to the sum in either form.
static void test_steps(bool columns)
{
    Bench b = start("limit=3\n", 5, RL_AUTORESET_SAME_STEP, columns);
    CHECK(rl_step(b.batch, 0) == RL_STATUS_STATE);
    seed(&b, 0);
    rl_rng rng = rl_seed(7 + 3);
    float sum = rl_uniform(&rng, 0, 1);
    for (uint32_t i = 0; i < 5; i++) act(&b, i);
    for (uint32_t s = 1; s <= 3; s++) {
        CHECK(rl_step(b.batch, 0) == RL_STATUS_OK);
        sum += 2;
        CHECK(fabsf(*(float *)element(&b, RL_T_REWARD, 0, 3, 0) - sum) < 1e-5f);
        CHECK(*(uint8_t *)element(&b, RL_T_OBS, 1, 3, 14) == (s < 3 ? s * 16 + 14 : 14));
        CHECK(*(uint8_t *)element(&b, RL_T_TRUNCATED, 0, 3, 0) == (s == 3));
    }
    CHECK(*(uint8_t *)element(&b, RL_T_FINAL, 0, 4, 14) == 3 * 16 + 14);
    CHECK(rl_step_range(b.batch, 0, 5, 0) == RL_STATUS_OK && rl_step_range(b.batch, 0, 4, 2) == RL_STATUS_ARGUMENT);
    CHECK(rl_step_range(b.batch, 0, UINT32_MAX, 2) == RL_STATUS_ARGUMENT);
    CHECK(rl_destroy(b.batch) == RL_STATUS_OK && rl_step(b.batch, 0) == RL_STATUS_ARGUMENT);
}

static void test_terminated_wins(void)
{
    Bench b = start("limit=1\nloud=true\n", 1, RL_AUTORESET_NEXT_STEP, false);
    seed(&b, 0);
    act(&b, 0);
    CHECK(rl_step(b.batch, 0) == RL_STATUS_OK);
    CHECK(*(uint8_t *)element(&b, RL_T_TERMINATED, 0, 0, 0) == 1 && *(uint8_t *)element(&b, RL_T_TRUNCATED, 0, 0, 0) == 0);
    CHECK(rl_step(b.batch, 0) == RL_STATUS_OK);
    CHECK(*(float *)element(&b, RL_T_REWARD, 0, 0, 0) == 0 && *(uint8_t *)element(&b, RL_T_OBS, 1, 0, 1) == 1);
    rl_destroy(b.batch);
}

static void test_saved_state(void)
{
    Bench b = start("limit=9\n", 2, RL_AUTORESET_DISABLED, false);
    seed(&b, 0);
    act(&b, 0), act(&b, 1);
    rl_step(b.batch, 0);
    uint32_t at = (uint32_t)rl_alloc(1024, 64);
    int32_t n = rl_save(b.batch, 0, at, 1024);
    CHECK(n == (int32_t)sizeof(Probe) + 20 && rl_save(b.batch, 0, at, 1) == n && rl_save(b.batch, 2, at, 1024) == RL_STATUS_ARGUMENT);
    CHECK(rl_load(b.batch, 1, at, (uint32_t)n) == RL_STATUS_OK && rl_load(b.batch, 1, at, (uint32_t)n - 1) == RL_STATUS_ARGUMENT);
    uint32_t *head = rl_at(at);
    CHECK(head[0] == 0 && head[1] == (uint32_t)n - 8);
    head[0] = 1;
    CHECK(rl_load(b.batch, 1, at, (uint32_t)n) == RL_STATUS_VERSION && rl_load(b.batch, 1, at, 7) == RL_STATUS_ARGUMENT);
    rl_step(b.batch, 0);
    CHECK(*(float *)element(&b, RL_T_REWARD, 0, 0, 0) == *(float *)element(&b, RL_T_REWARD, 0, 1, 0));
    rl_destroy(b.batch);
}

static void test_bindings(void)
{
    Bench b = start("", 2, RL_AUTORESET_SAME_STEP, false);
    uint32_t n = parts(b.part);
    CHECK(rl_bind(b.batch, put(b.bind, sizeof b.bind), n - 1) == RL_STATUS_ARGUMENT);
    Bench bad = b;
    bad.bind[RL_T_REWARD].stride_env = 6;
    CHECK(rl_bind(b.batch, put(bad.bind, sizeof bad.bind), n) == RL_STATUS_ARGUMENT);
    bad = b;
    bad.bind[RL_T_FINAL].ptr = 0;
    CHECK(rl_bind(b.batch, put(bad.bind, sizeof bad.bind), n) == RL_STATUS_ARGUMENT);
    CHECK(rl_bind(99, put(b.bind, sizeof b.bind), n) == RL_STATUS_ARGUMENT);
    rl_destroy(b.batch);
}

#ifdef SEVERAL
static float luck(const Bench *b, uint32_t t, uint32_t i, uint32_t e) { return *(float *)element(b, rl_slot_obs(2), t, i, e); }
static int32_t gold(const Bench *b, uint32_t k, uint32_t t) { return *(int32_t *)element(b, k, t, 3, 0); }

// test_several looks at each of the observations, with the last ones and those of an environment that waits.
static void test_several(uint32_t mode, bool columns)
{
    Bench b = start("limit=2\n", 5, mode, columns);
    const rl_tensor_desc *d = &b.part[rl_slot_obs(2)].desc, *last = &b.part[rl_slot_final(2)].desc;
    CHECK(d->role == RL_ROLE_OBSERVATION && d->index == 2 && d->dtype == RL_F32 && !strcmp(b.part[rl_slot_obs(2)].space.name, "inventory/luck"));
    CHECK(last->role == RL_ROLE_FINAL_OBSERVATION && last->index == 2 && last->pair == 2 && b.part[rl_slot_obs(1)].desc.n == 100);
    seed(&b, 0);
    for (uint32_t i = 0; i < 5; i++) act(&b, i);
    CHECK(gold(&b, rl_slot_obs(1), 0) == 50 && luck(&b, 0, 3, 0) == 0);
    float first = luck(&b, 0, 3, 1);
    CHECK(rl_step(b.batch, 0) == RL_STATUS_OK);
    CHECK(gold(&b, rl_slot_obs(1), 1) == 51 && luck(&b, 1, 3, 0) == 1 && fabsf(luck(&b, 1, 3, 1) - first - 2) < 1e-5f);
    CHECK(rl_step(b.batch, 0) == RL_STATUS_OK);
    bool same = mode == RL_AUTORESET_SAME_STEP;
    CHECK(gold(&b, rl_slot_obs(1), 1) == (same ? 50 : 52) && luck(&b, 1, 3, 0) == (same ? 0 : 2));
    if (same) CHECK(gold(&b, rl_slot_final(1), 0) == 52 && *(float *)element(&b, rl_slot_final(2), 0, 3, 0) == 2);
    for (uint32_t i = 0; mode == RL_AUTORESET_DISABLED && i < 5; i++) *(int32_t *)element(&b, rl_slot_obs(1), 0, i, 0) = 7;
    CHECK(rl_step(b.batch, 0) == RL_STATUS_OK);
    CHECK(gold(&b, rl_slot_obs(1), 1) == (same ? 51 : mode == RL_AUTORESET_DISABLED ? 7 : 50));
    rl_destroy(b.batch);
}
#endif

#ifdef SEVERAL
// test_figures looks at the discount and the figures, of which a host need not want any.
static void test_figures(uint32_t mode)
{
    Bench b = start("limit=2\n", 3, mode, false);
    uint32_t score = rl_slot_figure(0), age = rl_slot_figure(1), discount = rl_slot_discount();
    const rl_tensor_desc *d = &b.part[age].desc;
    CHECK(d->role == RL_ROLE_INFO && d->index == 1 && d->flags & RL_TENSOR_EPISODE && d->flags & RL_TENSOR_OPTIONAL);
    CHECK(b.part[score].desc.flags & RL_TENSOR_SUM && !strcmp(b.part[age].space.name, "end/age") && b.part[discount].desc.high == 1);
    seed(&b, 0);
    for (uint32_t i = 0; i < 3; i++) act(&b, i);
    for (uint32_t s = 1; s <= 2; s++) {
        CHECK(rl_step(b.batch, 0) == RL_STATUS_OK);
        CHECK(*(float *)element(&b, discount, 0, 2, 0) == 1 - 0.25f * (float)s && *(float *)element(&b, score, 0, 2, 0) >= 2);
        CHECK(*(float *)element(&b, age, 0, 2, 0) == (s == 2 ? 2 : 0));
    }
    CHECK(rl_step(b.batch, 0) == RL_STATUS_OK);
    if (mode != RL_AUTORESET_SAME_STEP) CHECK(*(float *)element(&b, score, 0, 2, 0) == 0 && *(float *)element(&b, discount, 0, 2, 0) == 0);
    b.bind[score].ptr = 0;
    CHECK(rl_bind(b.batch, put(b.bind, sizeof b.bind), parts(b.part)) == RL_STATUS_OK);
    uint8_t first = *(uint8_t *)rl_at(0);
    seed(&b, 0);
    CHECK(rl_step(b.batch, 0) == RL_STATUS_OK && *(float *)element(&b, discount, 0, 2, 0) == 0.75f && *(uint8_t *)rl_at(0) == first);
    rl_destroy(b.batch);
}
#endif

#ifdef ACTS
// move sets one element of an action.
static void move(Bench *b, uint32_t j, uint32_t i, uint32_t elem, int32_t to) { *(int32_t *)element(b, rl_slot_action(j), 0, i, elem) = to; }

// test_acts looks at what is said of several actions, what reaches the environment, and what of it is refused.
static void test_acts(uint32_t mode, bool columns)
{
    Bench b = start("limit=2\n", 5, mode, columns);
    const rl_part *gear = &b.part[rl_slot_action(1)], *lamps = &b.part[rl_slot_action(2)], *dial = &b.part[rl_slot_action(3)];
    CHECK(b.part[0].desc.role == RL_ROLE_ACTION && b.part[0].desc.index == 0 && b.part[0].desc.dtype == RL_F32 && !strcmp(b.part[0].space.name, "wheel"));
    CHECK(gear->desc.index == 1 && gear->desc.n == 3 && gear->desc.start == -1 && !strcmp(gear->space.name, "gear"));
    CHECK(lamps->desc.index == 2 && lamps->desc.flags & RL_TENSOR_BINARY && lamps->desc.n == 2 && rl_elements(&lamps->space) == 2);
    CHECK(dial->desc.role == RL_ROLE_ACTION && dial->desc.index == 3 && !strcmp(dial->space.name, "dial/0") && rl_choices(&dial->space) == 5);
    for (uint32_t j = 1; j < 4; j++) {
        const rl_part *mask = &b.part[rl_slot_mask(j)];
        CHECK(mask->desc.role == RL_ROLE_ACTION_MASK && mask->desc.index == j - 1 && mask->desc.pair == j && !strcmp(mask->space.name, acts[j].name));
        CHECK(rl_elements(&mask->space) == rl_choices(&acts[j].space));
    }
    seed(&b, 0);
    for (uint32_t i = 0; i < 5; i++) act(&b, i);
    move(&b, 1, 3, 0, 1), move(&b, 2, 3, 0, 0), move(&b, 2, 3, 1, 1), move(&b, 3, 3, 0, 1), move(&b, 3, 3, 1, 2);
    rl_rng rng = rl_seed(7 + 3);
    float first = rl_uniform(&rng, 0, 1);
    const uint32_t at[] = {0, 0, 3, 7}; // where in legal their values begin
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t j = 1; j < 4; j++)
            for (uint32_t k = 0; k < rl_choices(&acts[j].space); k++) {
                if (s == 1 && j == 1 && k == 0) CHECK(rl_step(b.batch, 0) == RL_STATUS_OK);
                CHECK(*(uint8_t *)element(&b, rl_slot_mask(j), s, 3, k) == ((at[j] + k + s) % 3 != 0));
            }
    CHECK(fabsf(*(float *)element(&b, RL_T_REWARD, 0, 3, 0) - (first - 1 + 1 + 8 + 16 + 64)) < 1e-5f);
    const int32_t bad[][3] = {{1, 0, 2}, {1, 0, -2}, {2, 1, 2}, {2, 0, -1}, {3, 0, 2}, {3, 1, 3}};
    for (uint32_t n = 0; n < sizeof bad / sizeof *bad; n++) {
        act(&b, 4);
        move(&b, (uint32_t)bad[n][0], 4, (uint32_t)bad[n][1], bad[n][2]);
        CHECK(rl_step(b.batch, 0) == RL_STATUS_ACTION && rl_current_env() == 4 && !strcmp(error(), "an action is outside its space"));
    }
    act(&b, 4);
    CHECK(rl_step(b.batch, 0) == RL_STATUS_OK && *(uint8_t *)element(&b, RL_T_TRUNCATED, 0, 4, 0) == 1); // none has moved it
    bool waits = mode != RL_AUTORESET_SAME_STEP;
    CHECK(*(uint8_t *)element(&b, rl_slot_mask(1), 1, 3, 0) == waits && *(uint8_t *)element(&b, rl_slot_mask(3), 1, 3, 2) == waits);
    rl_destroy(b.batch);
}
#endif

#ifdef MASKED
static void test_mask(void)
{
    Bench b = start("", 2, RL_AUTORESET_SAME_STEP, true);
    seed(&b, 0);
    act(&b, 0), act(&b, 1);
    CHECK(*(uint8_t *)element(&b, RL_T_MASK, 0, 1, 0) == 1 && *(uint8_t *)element(&b, RL_T_MASK, 0, 1, 1) == 0);
    rl_step(b.batch, 0);
    CHECK(*(uint8_t *)element(&b, RL_T_MASK, 1, 1, 1) == 1 && *(uint8_t *)element(&b, RL_T_MASK, 1, 1, 2) == 0);
    *(int32_t *)element(&b, RL_T_ACTION, 0, 1, 0) = 3;
    CHECK(rl_step(b.batch, 0) == RL_STATUS_ACTION && rl_current_env() == 1);
    CHECK(*(uint8_t *)element(&b, RL_T_MASK, 1, 0, 2) == 0);
    rl_destroy(b.batch);
}

// test_mask_behind_an_end: nobody acts there, so all of it is legal; the new episode has the author's mask again.
static void test_mask_behind_an_end(uint32_t mode)
{
    Bench b = start("limit=1\n", 2, mode, true);
    seed(&b, 0);
    act(&b, 0), act(&b, 1);
    rl_step(b.batch, 0);
    CHECK(*(uint8_t *)element(&b, RL_T_MASK, 1, 1, 2) == (mode != RL_AUTORESET_SAME_STEP));
    CHECK(*(uint8_t *)element(&b, RL_T_MASK, 1, 1, 0) == 1);
    if (mode == RL_AUTORESET_DISABLED) seed(&b, 1);
    else if (mode == RL_AUTORESET_NEXT_STEP) rl_step(b.batch, 0);
    CHECK(*(uint8_t *)element(&b, RL_T_MASK, 1, 1, 1) == 0);
    rl_destroy(b.batch);
}
#endif

int main(void)
{
    test_arguments();
    test_numbers();
    test_description();
    test_spaces();
    test_steps(false);
    test_steps(true);
    test_terminated_wins();
    test_saved_state();
    test_bindings();
#ifdef SEVERAL
    for (int columns = 0; columns < 2; columns++) {
        test_several(RL_AUTORESET_NEXT_STEP, columns);
        test_several(RL_AUTORESET_SAME_STEP, columns);
        test_several(RL_AUTORESET_DISABLED, columns);
    }
    test_figures(RL_AUTORESET_NEXT_STEP);
    test_figures(RL_AUTORESET_SAME_STEP);
#endif
#ifdef ACTS
    for (int columns = 0; columns < 2; columns++) {
        test_acts(RL_AUTORESET_NEXT_STEP, columns);
        test_acts(RL_AUTORESET_SAME_STEP, columns);
    }
#endif
#ifdef MASKED
    test_mask();
    test_mask_behind_an_end(RL_AUTORESET_NEXT_STEP);
    test_mask_behind_an_end(RL_AUTORESET_SAME_STEP);
    test_mask_behind_an_end(RL_AUTORESET_DISABLED);
#endif
    for (uint32_t i = 0; i < RL_BATCHES; i++) rl_destroy(i);
    printf("%d failures\n", failures);
    return failures != 0;
}
