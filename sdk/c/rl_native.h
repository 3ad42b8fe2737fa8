// Hand-written. A native build of an environment: the same exports over one static memory, and a main that
// plays random episodes, so that a debugger, a profiler and sanitizers see the author's code. Included by
// rl_batch.h, and by rl_guest.h for guests that are written against the ABI itself.
//
//	cc -g -fsanitize=address,undefined -I sdk/c walk.c -o walk -lm
//	./walk [envs=8] [steps=1000] [seed=1] [trace=no] [key=value…]
//
// It plays agents, groups, turns and masks: an action is one of the legal ones. With trace=yes it prints a hash of all
// that the environment wrote, which is that of the module too.
#ifndef RL_NATIVE_H
#define RL_NATIVE_H

#include "rl_author.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Addresses are offsets into this memory, as they are offsets into linear memory in a guest.
static uint8_t rl_native_memory[64u << 20] __attribute__((aligned(RL_PAGE)));
static uint32_t rl_native_used = RL_PAGE;

RL_INLINE void *rl_at(uint32_t address) { return rl_native_memory + address; }

int32_t rl_alloc(uint32_t size, uint32_t align)
{
    uint32_t at = (rl_native_used + align - 1) & ~(align - 1);
    if (at > sizeof rl_native_memory || size > sizeof rl_native_memory - at) return 0;
    rl_native_used = at + size;
    return (int32_t)at;
}

void rl_free(uint32_t pointer, uint32_t size) { (void)pointer, (void)size; }

// ---- a batch that is played --------------------------------------------------------------------------------

#define RL_PLAY_TENSORS 256

// rl_play is a batch with its description and its tensors, which have two rows of time.
typedef struct rl_play {
    uint32_t envs, batch;
    char config[1024], name[256]; // name@version
    uint8_t described[1 << 16];
    rl_spec spec;
    rl_tensor_desc desc[RL_PLAY_TENSORS];
    rl_binding bind[RL_PLAY_TENSORS];
    uint32_t agents[RL_PLAY_TENSORS], elems[RL_PLAY_TENSORS], bytes[RL_PLAY_TENSORS]; // rows of an environment, and what one holds
    uint32_t seeds;
} rl_play;

// rl_play_why returns the text of the newest error.
RL_QUIET static const char *rl_play_why(void)
{
    static char text[257];
    int32_t len = rl_last_error(0, 256); // the first page of the memory is nobody's
    len = len > 0 && len <= 256 ? len : 0;
    memcpy(text, rl_at(0), (size_t)len);
    text[len] = 0;
    return text;
}

RL_QUIET static void rl_play_die(const char *call, int32_t status)
{
    fprintf(stderr, "%s: status %" PRId32 " %s\n", call, status, rl_play_why());
    exit(1);
}

RL_QUIET static uint32_t rl_play_memory(uint32_t size)
{
    uint32_t at = (uint32_t)rl_alloc(size, RL_PAGE);
    if (!at) {
        fprintf(stderr, "rl_native.h: 64 MiB hold the tensors of no more environments: give fewer\n");
        exit(1);
    }
    return at;
}

// rl_play_text returns the address of a text in the guest's memory.
RL_QUIET static uint32_t rl_play_text(const char *text)
{
    uint32_t at = rl_play_memory((uint32_t)strlen(text) + 1);
    memcpy(rl_at(at), text, strlen(text) + 1);
    return at;
}

// rl_play_string is a string of the description.
RL_QUIET static const char *rl_play_string(const rl_play *p, uint32_t at) { return (const char *)p->described + p->spec.strings_at + at; }

// rl_play_describe reads the description; it returns a negative status if there is none.
RL_QUIET static int32_t rl_play_describe(rl_play *p, uint32_t config)
{
    uint32_t at = rl_play_memory(sizeof p->described);
    int32_t need = rl_describe(config, (uint32_t)strlen(p->config), at, sizeof p->described);
    if (need < 0) return need;
    if ((uint32_t)need > sizeof p->described) return RL_STATUS_MEMORY;
    memcpy(p->described, rl_at(at), (size_t)need);
    memcpy(&p->spec, p->described, sizeof p->spec);
    if (p->spec.tensors > RL_PLAY_TENSORS) return RL_STATUS_MEMORY;
    const rl_group_desc *groups = (const rl_group_desc *)(const void *)(p->described + sizeof p->spec);
    const uint8_t *tensors = (const uint8_t *)(groups + p->spec.groups);
    memcpy(p->desc, tensors, p->spec.tensors * sizeof p->desc[0]);
    snprintf(p->name, sizeof p->name, "%s%s%s", rl_play_string(p, p->spec.name), p->spec.version ? "@" : "",
             rl_play_string(p, p->spec.version));
    for (uint32_t k = 0; k < p->spec.tensors; k++) {
        const rl_tensor_desc *d = &p->desc[k];
        p->agents[k] = d->flags & RL_TENSOR_PER_AGENT && p->spec.groups ? groups[d->group].agents : 1;
        p->elems[k] = 1;
        for (uint32_t i = 0; i < d->rank; i++) p->elems[k] *= d->shape[i];
        p->bytes[k] = rl_dtype_bytes(d->dtype);
    }
    return 0;
}

// rl_play_row is the row of an agent of an environment at a time.
RL_QUIET static uint8_t *rl_play_row(const rl_play *p, uint32_t k, uint32_t t, uint32_t env, uint32_t agent)
{
    const rl_binding *b = &p->bind[k];
    return (uint8_t *)rl_at(b->ptr) + (size_t)t * b->stride_t + (size_t)env * b->stride_env + (size_t)agent * b->stride_agent;
}

// rl_play_number is element i of a row, as a number.
RL_QUIET static double rl_play_number(const rl_play *p, uint32_t k, const uint8_t *row, uint32_t i)
{
    const void *at = row + (size_t)i * p->bytes[k];
    switch (p->desc[k].dtype) {
    case RL_F32: return *(const float *)at;
    case RL_I8: return *(const int8_t *)at;
    case RL_I16: return *(const int16_t *)at;
    case RL_I32: return *(const int32_t *)at;
    case RL_I64: return (double)*(const int64_t *)at;
    default: return *(const uint8_t *)at;
    }
}

// rl_play_next is the first tensor of a role and a group from tensor k on, or as many as there are.
RL_QUIET static uint32_t rl_play_next(const rl_play *p, uint32_t k, uint32_t role, uint32_t group)
{
    while (k < p->spec.tensors && (p->desc[k].role != role || p->desc[k].group != group)) k++;
    return k;
}

// rl_play_bind gives every tensor two rows of time, packed.
RL_QUIET static int32_t rl_play_bind(rl_play *p)
{
    for (uint32_t k = 0; k < p->spec.tensors; k++) {
        uint32_t row = p->elems[k] * p->bytes[k];
        bool timeless = p->desc[k].flags & RL_TENSOR_NO_TIME;
        p->bind[k].stride_t = timeless ? 0 : row * p->agents[k] * p->envs;
        p->bind[k].stride_env = row * p->agents[k];
        p->bind[k].stride_agent = p->desc[k].flags & RL_TENSOR_PER_AGENT ? row : 0;
        p->bind[k].stride_elem = p->bytes[k];
        p->bind[k].ptr = rl_play_memory(row * p->agents[k] * p->envs * 2);
        if (p->desc[k].role == RL_ROLE_RESET_PARAM) // nobody gives any
            for (uint32_t i = 0; i < p->elems[k] * p->agents[k] * p->envs; i++) ((float *)rl_at(p->bind[k].ptr))[i] = NAN;
    }
    uint32_t at = rl_play_memory(sizeof p->bind);
    memcpy(rl_at(at), p->bind, sizeof p->bind);
    return rl_bind(p->batch, at, p->spec.tensors);
}

// rl_play_open describes, makes and binds a batch; p has its number of environments and its arguments. Where it returns a negative
// status, call is the function that gave it.
RL_QUIET static int32_t rl_play_open(rl_play *p, const char **call)
{
    uint32_t config = rl_play_text(p->config);
    *call = "rl_describe";
    int32_t status = rl_play_describe(p, config);
    if (status < 0) return status;
    *call = "rl_create";
    status = rl_create(config, (uint32_t)strlen(p->config), p->envs, RL_AUTORESET_SAME_STEP);
    if (status < 0) return status;
    p->batch = (uint32_t)status;
    p->seeds = rl_play_memory(8 * p->envs);
    *call = "rl_bind";
    return rl_play_bind(p);
}

// rl_play_reset begins an episode in each environment, with neighbouring seeds.
RL_QUIET static int32_t rl_play_reset(rl_play *p, uint64_t seed)
{
    for (uint32_t i = 0; i < p->envs; i++) ((uint64_t *)rl_at(p->seeds))[i] = seed + i;
    return rl_reset(p->batch, 0, 0, p->seeds);
}

// rl_play_forward makes the rows behind a step those before the next one, as a host does.
RL_QUIET static void rl_play_forward(rl_play *p)
{
    for (uint32_t k = 0; k < p->spec.tensors; k++)
        if (p->desc[k].flags & RL_TENSOR_AT_T1) memcpy(rl_play_row(p, k, 0, 0, 0), rl_play_row(p, k, 1, 0, 0), p->bind[k].stride_t);
}

// ---- random episodes ---------------------------------------------------------------------------------------

#ifndef RL_NO_MAIN

typedef struct rl_play_options {
    uint32_t steps;
    uint64_t seed;
    bool trace;
} rl_play_options;

static int rl_play_order(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void rl_play_arguments(rl_play *p, rl_play_options *o, int argc, char **argv)
{
    qsort(argv + 1, argc > 1 ? (size_t)argc - 1 : 0, sizeof *argv, rl_play_order);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "trace=yes")) o->trace = true;
        if (!strncmp(argv[i], "trace=", 6) || sscanf(argv[i], "envs=%" SCNu32, &p->envs) == 1 ||
            sscanf(argv[i], "steps=%" SCNu32, &o->steps) == 1 || sscanf(argv[i], "seed=%" SCNu64, &o->seed) == 1)
            continue;
        size_t used = strlen(p->config);
        snprintf(p->config + used, sizeof p->config - used, "%s\n", argv[i]);
    }
}

// rl_play_choice draws one of n values, of which a mask, if there is one, allows some.
static uint32_t rl_play_choice(const uint8_t *mask, uint32_t n, rl_rng *rng)
{
    uint32_t legal = 0, k = 0;
    for (uint32_t v = 0; mask && v < n; v++) legal += mask[v] != 0;
    if (!legal) return rl_below(rng, n);
    for (uint32_t left = rl_below(rng, legal) + 1; left; k++) left -= mask[k] != 0;
    return k - 1;
}

// rl_play_mask is the mask of an action, or as many as there are tensors.
static uint32_t rl_play_mask(const rl_play *p, uint32_t action)
{
    uint32_t k = 0, group = p->desc[action].group;
    while ((k = rl_play_next(p, k, RL_ROLE_ACTION_MASK, group)) < p->spec.tensors && p->desc[k].pair != p->desc[action].index) k++;
    return k;
}

// rl_play_draw writes random actions into a row.
static void rl_play_draw(const rl_play *p, uint32_t k, uint8_t *row, const uint8_t *mask, rl_rng *rng)
{
    const rl_tensor_desc *a = &p->desc[k];
    const void *values = a->values ? p->described + a->values : NULL; // of each element
    for (uint32_t i = 0; i < p->elems[k]; i++) {
        uint8_t *to = row + (size_t)i * p->bytes[k];
        if (a->dtype == RL_I32) {
            uint32_t n = values ? ((const uint32_t *)values)[i] : a->n;
            *(int32_t *)(void *)to = a->start + (int32_t)rl_play_choice(mask, n, rng);
            if (mask) mask += n;
        } else if (a->dtype == RL_F32) {
            float low = values ? ((const float *)values)[i] : a->low, high = values ? ((const float *)values)[p->elems[k] + i] : a->high;
            bool bounded = low < high && low > -3e38f && high < 3e38f;
            *(float *)(void *)to = rl_uniform(rng, bounded ? low : -1, bounded ? high : 1);
        }
    }
}

// rl_play_act writes random actions of time 0.
static void rl_play_act(const rl_play *p, rl_rng *rng)
{
    for (uint32_t k = 0; k < p->spec.tensors; k++) {
        if (p->desc[k].role != RL_ROLE_ACTION) continue;
        uint32_t mask = rl_play_mask(p, k);
        for (uint32_t i = 0; i < p->envs; i++)
            for (uint32_t agent = 0; agent < p->agents[k]; agent++)
                rl_play_draw(p, k, rl_play_row(p, k, 0, i, agent), mask < p->spec.tensors ? rl_play_row(p, mask, 0, i, agent) : NULL, rng);
    }
}

// rl_play_absorb adds what a step wrote, but for last observations, to an FNV-1a hash.
static void rl_play_absorb(const rl_play *p, uint64_t *hash)
{
    for (uint32_t k = 0; k < p->spec.tensors; k++) {
        uint32_t flags = p->desc[k].flags;
        if (p->desc[k].role == RL_ROLE_ACTION || flags & RL_TENSOR_NO_TIME) continue;
        const uint8_t *row = rl_play_row(p, k, flags & RL_TENSOR_AT_T1 ? 1 : 0, 0, 0);
        for (uint32_t i = 0; i < p->bind[k].stride_t; i++) *hash = (*hash ^ row[i]) * 0x100000001B3u;
    }
}

typedef struct rl_play_sum {
    double reward;
    uint64_t episodes; // of agents
} rl_play_sum;

// rl_play_count adds rewards and ends of a step. A flag for all agents of a group ends the episode of each.
static void rl_play_count(const rl_play *p, rl_play_sum *sum)
{
    for (uint32_t group = 0; !group || group < p->spec.groups; group++) {
        uint32_t reward = rl_play_next(p, 0, RL_ROLE_REWARD, group), terminated = rl_play_next(p, 0, RL_ROLE_TERMINATED, group),
                 truncated = rl_play_next(p, 0, RL_ROLE_TRUNCATED, group);
        for (uint32_t i = 0; i < p->envs; i++)
            for (uint32_t agent = 0; agent < p->agents[reward]; agent++) {
                sum->reward += *(const float *)(const void *)rl_play_row(p, reward, 0, i, agent);
                sum->episodes += *rl_play_row(p, terminated, 0, i, agent) | *rl_play_row(p, truncated, 0, i, agent);
            }
    }
}

int main(int argc, char **argv)
{
    static rl_play p = {.envs = 8};
    rl_play_options o = {1000, 1, false};
    rl_play_arguments(&p, &o, argc, argv);
    const char *call;
    int32_t status = rl_play_open(&p, &call);
    if (status < 0) rl_play_die(call, status);
    if ((status = rl_play_reset(&p, o.seed))) rl_play_die("rl_reset", status);
    rl_rng rng = rl_seed(o.seed);
    uint64_t hash = 0xCBF29CE484222325u;
    rl_play_sum sum = {0, 0};
    for (uint32_t s = 0; s < o.steps; s++) {
        rl_play_act(&p, &rng);
        if ((status = rl_step(p.batch, 0))) rl_play_die("rl_step", status);
        if (o.trace) rl_play_absorb(&p, &hash);
        rl_play_count(&p, &sum);
        rl_play_forward(&p);
    }
    printf("%s: %" PRIu64 " env steps, %" PRIu64 " episodes, mean return %.3f", p.name, (uint64_t)p.envs * o.steps, sum.episodes,
           sum.episodes ? sum.reward / (double)sum.episodes : sum.reward);
    if (o.trace) printf(", trace %016" PRIx64, hash);
    printf("\n");
    return rl_destroy(p.batch);
}

#endif
#endif
