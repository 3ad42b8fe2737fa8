// An environment without the SDK's exports, one counter in each, that is wrong where WRONG says.
#include "rl_abi.h"

#define NOTHING 0
#define NO_FINAL 1   // does not write the last observation of an episode
#define STRIDES 2    // works addresses out from the described shape
#define FLAGS 4      // sets another axis of time than its role has
#define STATE 5      // is right, and needs more than this host runs
#define FINAL_NAN 6  // a last observation that is not a number
#define ENDED_MASK 7 // no action is legal behind an end under next_step
#define RANGE_MOVES 8 // rl_step_range does something once a call
#define BIND_BEGINS 9 // rl_bind begins the episodes anew
#define DRAW_MOVES 10 // a picture moves the environment on
#define DRAW_SHORT 11 // a picture of fewer bytes than its size
#define SAVE_HEAD 12  // a saved state whose head has another length
#define ANY_STATE 13  // loads a state of any version
#define READS_BACK 14 // adds to what it wrote in the step before
#define KEYS_OUTSIDE 15 // names a key with an action that there is not

#ifndef WRONG
#define WRONG NOTHING
#endif

enum { ACTION, OBS, REWARD, TERMINATED, TRUNCATED, FINAL, MASK, TENSORS, ELEMS = 3, MOST = 64, PERIOD = 7, WIDE = 4, HIGH = 2 };

static rl_binding at[TENSORS];
static uint32_t envs, mode, heap;
static struct { uint32_t age, seed, ended; } state[MOST];
extern unsigned char __heap_base;

static void copy(void *to, const void *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) ((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
}

void rl_env_v1(void) {}

static rl_tensor_desc tensor(uint16_t role, uint32_t time, uint8_t dtype, uint32_t elems, uint32_t n)
{
    rl_tensor_desc d = {.role = role, .flags = time, .dtype = dtype, .n = n, .rank = elems > 1};
    d.shape[0] = elems > 1 ? elems : 0;
    if (dtype == RL_F32 && elems > 1) d.flags |= RL_TENSOR_NO_LOW | RL_TENSOR_NO_HIGH;
    if (WRONG == FLAGS && role == RL_ROLE_REWARD) d.flags = RL_TENSOR_AT_T1;
    return d;
}

static const char strings[] = "\0bare\0001\0left=0\nup=2"; // and the NUL at its end

int32_t rl_describe(uint32_t config, uint32_t config_len, uint32_t buf, uint32_t cap)
{
    (void)config, (void)config_len;
    rl_spec s = {.size = sizeof s, .abi_major = 1, .tensor_bytes = sizeof(rl_tensor_desc), .binding_bytes = sizeof(rl_binding),
                 .group_bytes = RL_GROUP_BYTES, .arg_bytes = RL_ARG_BYTES, .max_envs = MOST, .tensors = TENSORS, .episode_limit = PERIOD,
                 .render_modes = RL_RENDER_TEXT | RL_RENDER_RGB, .render_width = WIDE, .render_height = HIGH, .state_version = 3,
                 .autoreset = RL_AUTORESET_SAME_STEP | RL_AUTORESET_NEXT_STEP, .caps = RL_CAP_STRIDES, .name = 1, .version = 6};
    rl_tensor_desc d[TENSORS] = {
        tensor(RL_ROLE_ACTION, RL_TENSOR_AT_T, RL_I32, 1, 2),
        tensor(RL_ROLE_OBSERVATION, RL_TENSOR_AT_T1, RL_F32, ELEMS, 0),
        tensor(RL_ROLE_REWARD, RL_TENSOR_AT_T, RL_F32, 1, 0),
        tensor(RL_ROLE_TERMINATED, RL_TENSOR_AT_T, RL_U8, 1, 0),
        tensor(RL_ROLE_TRUNCATED, RL_TENSOR_AT_T, RL_U8, 1, 0),
        tensor(RL_ROLE_FINAL_OBSERVATION, RL_TENSOR_NO_TIME, RL_F32, ELEMS, 0),
        tensor(RL_ROLE_ACTION_MASK, RL_TENSOR_AT_T1, RL_U8, 2, 0),
    };
    if (WRONG == KEYS_OUTSIDE) s.keys = 8; // of two actions
    if (WRONG == STATE) s.needs = 1u << 4; // reserved
    s.strings_at = sizeof s + sizeof d;
    s.strings_len = sizeof strings;
    if (cap < s.strings_at + s.strings_len) return (int32_t)(s.strings_at + s.strings_len);
    copy((void *)(uintptr_t)buf, &s, sizeof s);
    copy((void *)(uintptr_t)(buf + sizeof s), d, sizeof d);
    copy((void *)(uintptr_t)(buf + s.strings_at), strings, s.strings_len);
    return (int32_t)(s.strings_at + s.strings_len);
}

int32_t rl_alloc(uint32_t size, uint32_t align)
{
    if (!heap) heap = (uint32_t)(uintptr_t)&__heap_base;
    uint32_t p = (heap + align - 1) & ~(align - 1);
    heap = p + size;
    while ((uint32_t)__builtin_wasm_memory_size(0) << 16 < heap) __builtin_wasm_memory_grow(0, 1);
    return (int32_t)p;
}

void rl_free(uint32_t pointer, uint32_t size) { (void)pointer, (void)size; }

int32_t rl_create(uint32_t config, uint32_t config_len, uint32_t num_envs, uint32_t autoreset)
{
    (void)config, (void)config_len;
    envs = num_envs, mode = autoreset;
    return 0;
}

int32_t rl_bind(uint32_t batch, uint32_t bindings, uint32_t n)
{
    (void)batch;
    copy(at, (void *)(uintptr_t)bindings, n * sizeof at[0]);
    for (uint32_t env = 0; env < envs && WRONG == BIND_BEGINS; env++) state[env].age = 0;
    return 0;
}

static void *place(uint32_t k, uint32_t t, uint32_t env, uint32_t i)
{
    uint32_t each = WRONG == STRIDES && k == OBS ? 4 : at[k].stride_elem;
    return (void *)(uintptr_t)(at[k].ptr + t * at[k].stride_t + env * at[k].stride_env + i * each);
}

static void observe(uint32_t k, uint32_t t, uint32_t env)
{
    for (uint32_t i = 0; i < ELEMS; i++) *(float *)place(k, t, env, i) = (float)(state[env].age + i + state[env].seed % 5);
    if (k == FINAL && WRONG == FINAL_NAN) *(float *)place(k, t, env, 1) = __builtin_nanf("");
    for (uint32_t i = 0; i < 2 && k == OBS; i++) *(uint8_t *)place(MASK, t, env, i) = WRONG != ENDED_MASK || !state[env].ended || i;
}

static void begin(uint32_t env) { state[env].age = state[env].ended = 0; }

int32_t rl_reset(uint32_t batch, uint32_t t, uint32_t mask, uint32_t seeds)
{
    (void)batch, (void)mask;
    for (uint32_t env = 0; env < envs; env++) {
        if (seeds) state[env].seed = (uint32_t)((uint64_t *)(uintptr_t)seeds)[env];
        begin(env);
        observe(OBS, t, env);
    }
    return 0;
}

static void advance(uint32_t t, uint32_t env)
{
    uint32_t ended = state[env].ended;
    uint8_t over = !ended && ++state[env].age == PERIOD;
    *(float *)place(REWARD, t, env, 0) = ended ? 0 : (float)*(int32_t *)place(ACTION, t, env, 0);
    *(uint8_t *)place(TERMINATED, t, env, 0) = 0;
    *(uint8_t *)place(TRUNCATED, t, env, 0) = over;
    if (over && mode == RL_AUTORESET_SAME_STEP && WRONG != NO_FINAL) observe(FINAL, 0, env);
    state[env].ended = over;
    if (ended || (over && mode == RL_AUTORESET_SAME_STEP)) {
        begin(env);
        state[env].seed = state[env].seed * 1664525 + 1013904223;
    }
    observe(OBS, t + 1, env);
    if (WRONG == READS_BACK) *(float *)place(OBS, t + 1, env, 0) = *(float *)place(OBS, t, env, 0) + 1;
}

int32_t rl_step(uint32_t batch, uint32_t t)
{
    (void)batch;
    for (uint32_t env = 0; env < envs; env++) advance(t, env);
    return 0;
}

int32_t rl_step_range(uint32_t batch, uint32_t t, uint32_t first, uint32_t count)
{
    (void)batch;
    if (WRONG == RANGE_MOVES) state[first].seed++;
    for (uint32_t env = first; env < first + count; env++) advance(t, env);
    return 0;
}

int32_t rl_render(uint32_t batch, uint32_t env, uint32_t view, uint32_t buf, uint32_t cap)
{
    (void)batch;
    uint32_t n = view & 0xff ? WIDE * HIGH * 3 - (WRONG == DRAW_SHORT) : 1;
    if (cap < n) return (int32_t)n;
    for (uint32_t i = 0; i < n; i++) ((uint8_t *)(uintptr_t)buf)[i] = (uint8_t)('0' + state[env].age);
    if (WRONG == DRAW_MOVES) state[env].seed++;
    return (int32_t)n;
}

typedef struct { uint32_t version, bytes, age, seed, ended; } saved;

int32_t rl_save(uint32_t batch, uint32_t env, uint32_t buf, uint32_t cap)
{
    (void)batch;
    saved s = {3, WRONG == SAVE_HEAD ? sizeof s : sizeof s - 8, state[env].age, state[env].seed, state[env].ended};
    if (cap >= sizeof s) copy((void *)(uintptr_t)buf, &s, sizeof s);
    return sizeof s;
}

int32_t rl_load(uint32_t batch, uint32_t env, uint32_t buf, uint32_t len)
{
    (void)batch;
    saved s;
    if (len < 8) return RL_STATUS_ARGUMENT;
    copy(&s, (void *)(uintptr_t)buf, len < sizeof s ? len : sizeof s);
    if (s.version != 3 && WRONG != ANY_STATE) return RL_STATUS_VERSION;
    if (len != sizeof s || s.bytes != sizeof s - 8) return RL_STATUS_ARGUMENT;
    state[env].age = s.age, state[env].seed = s.seed, state[env].ended = s.ended;
    return 0;
}
