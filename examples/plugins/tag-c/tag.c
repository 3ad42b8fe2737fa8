// Tag: three hunters after a prey that is faster, on a field whose edges meet. They are two groups of agents, which observe and do
// different things: a hunter moves to a neighbouring cell, the prey by two as well; a hunter sees the prey and the next hunter, the
// prey all hunters. An episode ends when the prey is caught, or after 50 steps.
//
// The layer of rl_env.h is for one group. This is written against the ABI itself, with what rl_author.h has for authors: it shows
// what that layer does for others.
#include "rl_host_memory.h"

#define HUNTERS 3
#define AGENTS (HUNTERS + 1) // the prey is the last
#define STEPS 50
#define BATCHES 64
#define STATE_VERSION 1

typedef struct {
    int32_t size, steps;
    int32_t x[AGENTS], y[AGENTS];
    rl_rng rng;
} Tag;

// Tensors in the order of the description; those of the prey follow, in the same order.
enum { ACTION, OBS, REWARD, TERMINATED, TRUNCATED, FINAL, EACH };

typedef struct {
    uint32_t envs;
    Tag *env;
    rl_binding bind[2 * EACH];
} Batch;

static Batch *batches[BATCHES];
static uint32_t current;

// ---- the game ----------------------------------------------------------------------------------------------

static void begin(Tag *env)
{
    for (int k = 0; k < AGENTS; k++) {
        env->x[k] = (int32_t)rl_below(&env->rng, (uint32_t)env->size);
        env->y[k] = (int32_t)rl_below(&env->rng, (uint32_t)env->size);
    }
    env->steps = 0;
}

// move takes an agent to a neighbouring cell, or by two where the number is 5 to 8; 0 is to stay.
static void move(Tag *env, int k, uint32_t where)
{
    static const int32_t dx[] = {0, 1, -1, 0, 0, 2, -2, 0, 0}, dy[] = {0, 0, 0, 1, -1, 0, 0, 2, -2};
    env->x[k] = (env->x[k] + dx[where] + env->size) % env->size;
    env->y[k] = (env->y[k] + dy[where] + env->size) % env->size;
}

static bool caught(const Tag *env, int k) { return env->x[k] == env->x[HUNTERS] && env->y[k] == env->y[HUNTERS]; }

// offset is how far it is from a to b by the shorter way, from -1 to 1.
static float offset(const Tag *env, int32_t a, int32_t b)
{
    int32_t d = (b - a + env->size + env->size / 2) % env->size - env->size / 2;
    return (float)d / (float)(env->size / 2);
}

// ---- blocks ------------------------------------------------------------------------------------------------

// row is where agent k of its group has tensor n at time t.
static uint8_t *row(const Batch *b, uint32_t n, uint32_t t, uint32_t i, uint32_t k)
{
    const rl_binding *x = &b->bind[n];
    return (uint8_t *)rl_at(x->ptr) + (size_t)t * x->stride_t + (size_t)i * x->stride_env + (size_t)k * x->stride_agent;
}

// see writes what agent k sees of another one into two elements of its row.
static void see(const Batch *b, uint32_t n, uint8_t *to, uint32_t element, const Tag *env, int k, int other)
{
    uint32_t stride = b->bind[n].stride_elem;
    *(float *)(void *)(to + element * stride) = offset(env, env->x[k], env->x[other]);
    *(float *)(void *)(to + (element + 1) * stride) = offset(env, env->y[k], env->y[other]);
}

// look writes what all agents of environment i observe: OBS at time t, or FINAL.
static void look(const Batch *b, uint32_t i, uint32_t tensor, uint32_t t)
{
    const Tag *env = &b->env[i];
    for (int k = 0; k < HUNTERS; k++) {
        uint8_t *to = row(b, tensor, t, i, (uint32_t)k);
        see(b, tensor, to, 0, env, k, HUNTERS);
        see(b, tensor, to, 2, env, k, (k + 1) % HUNTERS);
        see(b, EACH + tensor, row(b, EACH + tensor, t, i, 0), 2 * (uint32_t)k, env, HUNTERS, k);
    }
}

static void step(Batch *b, uint32_t i, uint32_t t)
{
    Tag *env = &b->env[i];
    bool over = false;
    for (int k = 0; k < HUNTERS; k++) move(env, k, *(uint32_t *)(void *)row(b, ACTION, t, i, (uint32_t)k));
    move(env, HUNTERS, *(uint32_t *)(void *)row(b, EACH + ACTION, t, i, 0));
    for (int k = 0; k < HUNTERS; k++) over = over || caught(env, k);
    for (int k = 0; k < HUNTERS; k++) *(float *)(void *)row(b, REWARD, t, i, (uint32_t)k) = over ? 0.5f + 0.5f * caught(env, k) : 0;
    *(float *)(void *)row(b, EACH + REWARD, t, i, 0) = over ? -1 : 0.02f;
    bool late = ++env->steps >= STEPS && !over;
    for (uint32_t group = 0; group <= EACH; group += EACH) {
        *row(b, group + TERMINATED, t, i, 0) = over;
        *row(b, group + TRUNCATED, t, i, 0) = late;
    }
    if (over || late) {
        look(b, i, FINAL, 0);
        begin(env);
    }
    look(b, i, OBS, t + 1);
}

// ---- the ABI -----------------------------------------------------------------------------------------------

typedef struct {
    rl_spec head;
    rl_group_desc groups[2];
    rl_tensor_desc tensors[2 * EACH];
    char strings[32];
} Description;

RL_EXPORT(rl_env_v1) void rl_env_v1(void) {}

static rl_tensor_desc tensor(uint16_t role, uint16_t group, uint8_t dtype, uint32_t time)
{
    rl_tensor_desc d;
    __builtin_memset(&d, 0, sizeof d);
    d.role = role;
    d.group = group;
    d.dtype = dtype;
    d.flags = time | (role == RL_ROLE_TERMINATED || role == RL_ROLE_TRUNCATED ? 0 : RL_TENSOR_PER_AGENT);
    d.high = 1;
    return d;
}

// describe_group describes a group whose agents choose one of so many moves and observe so many numbers.
static void describe_group(rl_tensor_desc *to, uint16_t group, uint32_t moves, uint32_t numbers)
{
    to[ACTION] = tensor(RL_ROLE_ACTION, group, RL_I32, RL_TENSOR_AT_T);
    to[ACTION].n = moves;
    to[OBS] = tensor(RL_ROLE_OBSERVATION, group, RL_F32, RL_TENSOR_AT_T1);
    to[REWARD] = tensor(RL_ROLE_REWARD, group, RL_F32, RL_TENSOR_AT_T);
    to[REWARD].low = -1;
    to[TERMINATED] = tensor(RL_ROLE_TERMINATED, group, RL_U8, RL_TENSOR_AT_T);
    to[TRUNCATED] = tensor(RL_ROLE_TRUNCATED, group, RL_U8, RL_TENSOR_AT_T);
    to[FINAL] = tensor(RL_ROLE_FINAL_OBSERVATION, group, RL_F32, RL_TENSOR_NO_TIME);
    for (uint32_t n = OBS; n <= FINAL; n += FINAL - OBS) {
        to[n].rank = 1;
        to[n].shape[0] = numbers;
        to[n].low = -1;
    }
}

RL_EXPORT(rl_describe) int32_t rl_describe(uint32_t config, uint32_t config_len, uint32_t buf, uint32_t cap)
{
    (void)config, (void)config_len; // arguments change nothing of it
    if (cap < sizeof(Description)) return sizeof(Description);
    Description *d = rl_at(buf);
    __builtin_memset(d, 0, sizeof *d);
    __builtin_memcpy(d->strings, "\0tag\0001\0hunters\0prey", 20);
    rl_spec head = {
        .size = RL_SPEC_BYTES, .abi_major = RL_ABI_MAJOR, .abi_minor = RL_ABI_MINOR, .caps = RL_CAP_STRIDES, .needs = RL_FEATURE_AGENTS,
        .tensor_bytes = RL_TENSOR_BYTES, .binding_bytes = RL_BINDING_BYTES, .group_bytes = RL_GROUP_BYTES, .arg_bytes = RL_ARG_BYTES,
        .tensors = 2 * EACH, .groups = 2, .strings_at = __builtin_offsetof(Description, strings), .strings_len = sizeof d->strings,
        .episode_limit = STEPS, .autoreset = RL_AUTORESET_SAME_STEP, .reward_threshold = __builtin_nanf(""),
        .state_version = STATE_VERSION, .name = 1, .version = 5,
    };
    d->head = head;
    d->groups[0].name = 7;
    d->groups[0].agents = HUNTERS;
    d->groups[1].name = 15;
    d->groups[1].agents = 1;
    describe_group(d->tensors, 0, 5, 4);
    describe_group(d->tensors + EACH, 1, 9, 2 * HUNTERS);
    return sizeof *d;
}

static Batch *find(uint32_t batch) { return batch < BATCHES ? batches[batch] : NULL; }

RL_EXPORT(rl_create) int32_t rl_create(uint32_t config, uint32_t config_len, uint32_t num_envs, uint32_t autoreset)
{
    rl_config c = {.text = rl_at(config), .len = config_len};
    int64_t size = rl_arg_i64(&c, "size", 9);
    int32_t slot = 0;
    while (slot < BATCHES && batches[slot]) slot++;
    if (slot == BATCHES) return RL_STATUS_STATE;
    if (autoreset != RL_AUTORESET_SAME_STEP) return RL_STATUS_UNSUPPORTED;
    if (!num_envs || num_envs > 1 << 20) return RL_STATUS_ARGUMENT;
    if (!c.failed && (size < 5 || size > 99)) c.failed = !rl_fail("size must be 5 to 99");
    rl_text key, value;
    for (uint32_t n = 0; !c.failed && rl_line(&c, n, &key, &value); n++)
        if (n > 63 || !(c.asked >> n & 1)) c.failed = !rl_fail("size is the only argument");
    if (c.failed) return RL_STATUS_CONFIG;
    Batch *b = rl_new(1, sizeof *b);
    Tag *env = rl_new(num_envs, sizeof *env);
    if (!b || !env) return RL_STATUS_MEMORY;
    b->envs = num_envs;
    b->env = env;
    for (uint32_t i = 0; i < num_envs; i++) {
        env[i].size = (int32_t)size;
        env[i].rng = rl_seed(i);
    }
    batches[slot] = b;
    return slot;
}

RL_EXPORT(rl_destroy) int32_t rl_destroy(uint32_t batch)
{
    Batch *b = find(batch);
    if (!b) return RL_STATUS_ARGUMENT;
    rl_put(b->env, b->envs * (uint32_t)sizeof *b->env);
    rl_put(b, sizeof *b);
    batches[batch] = NULL;
    return RL_STATUS_OK;
}

RL_EXPORT(rl_bind) int32_t rl_bind(uint32_t batch, uint32_t bindings, uint32_t n)
{
    Batch *b = find(batch);
    if (!b || n != 2 * EACH) return RL_STATUS_ARGUMENT;
    __builtin_memcpy(b->bind, rl_at(bindings), sizeof b->bind);
    return RL_STATUS_OK;
}

RL_EXPORT(rl_reset) int32_t rl_reset(uint32_t batch, uint32_t t, uint32_t mask, uint32_t seeds)
{
    Batch *b = find(batch);
    if (!b) return RL_STATUS_ARGUMENT;
    if (!b->bind[ACTION].ptr) return RL_STATUS_STATE;
    for (uint32_t i = 0; i < b->envs; i++) {
        if (mask && !((uint8_t *)rl_at(mask))[i]) continue;
        if (seeds) b->env[i].rng = rl_seed(((uint64_t *)rl_at(seeds))[i]);
        begin(&b->env[i]);
        look(b, i, OBS, t);
    }
    return RL_STATUS_OK;
}

RL_EXPORT(rl_step_range) int32_t rl_step_range(uint32_t batch, uint32_t t, uint32_t first, uint32_t count)
{
    Batch *b = find(batch);
    if (!b || first > b->envs || count > b->envs - first) return RL_STATUS_ARGUMENT;
    if (!b->bind[ACTION].ptr) return RL_STATUS_STATE;
    for (current = first; current < first + count; current++) { // before anything moves
        bool known = *(uint32_t *)(void *)row(b, EACH + ACTION, t, current, 0) < 9;
        for (uint32_t k = 0; k < HUNTERS; k++) known = known && *(uint32_t *)(void *)row(b, ACTION, t, current, k) < 5;
        if (known) continue;
        rl_fail("an action is outside its space");
        return RL_STATUS_ACTION;
    }
    for (current = first; current < first + count; current++) step(b, current, t);
    return RL_STATUS_OK;
}

RL_EXPORT(rl_step) int32_t rl_step(uint32_t batch, uint32_t t)
{
    Batch *b = find(batch);
    return b ? rl_step_range(batch, t, 0, b->envs) : RL_STATUS_ARGUMENT;
}

RL_EXPORT(rl_save) int32_t rl_save(uint32_t batch, uint32_t env, uint32_t buf, uint32_t cap)
{
    Batch *b = find(batch);
    if (!b || env >= b->envs) return RL_STATUS_ARGUMENT;
    uint32_t head[2] = {STATE_VERSION, sizeof(Tag)};
    if (cap < sizeof head + sizeof(Tag)) return sizeof head + sizeof(Tag);
    __builtin_memcpy(rl_at(buf), head, sizeof head);
    __builtin_memcpy(rl_at(buf + sizeof head), &b->env[env], sizeof(Tag));
    return sizeof head + sizeof(Tag);
}

RL_EXPORT(rl_load) int32_t rl_load(uint32_t batch, uint32_t env, uint32_t buf, uint32_t len)
{
    Batch *b = find(batch);
    uint32_t head[2];
    if (!b || env >= b->envs || len < sizeof head) return RL_STATUS_ARGUMENT;
    __builtin_memcpy(head, rl_at(buf), sizeof head);
    if (head[0] != STATE_VERSION) return RL_STATUS_VERSION;
    if (head[1] != sizeof(Tag) || len != sizeof head + sizeof(Tag)) return RL_STATUS_ARGUMENT;
    __builtin_memcpy(&b->env[env], rl_at(buf + sizeof head), sizeof(Tag));
    return RL_STATUS_OK;
}

RL_EXPORT(rl_last_error) int32_t rl_last_error(uint32_t buf, uint32_t cap)
{
    if (cap >= rl_error.len) __builtin_memcpy(rl_at(buf), rl_error.text, rl_error.len);
    return (int32_t)rl_error.len;
}

RL_EXPORT(rl_current_env) int32_t rl_current_env(void) { return (int32_t)current; }
