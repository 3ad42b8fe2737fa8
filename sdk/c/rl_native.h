// Hand-written. A native build of an environment: the same exports over one static memory, and a main that
// plays random episodes and prints a hash of all that they wrote, so that a debugger and sanitizers see the
// author's code. Included by rl_batch.h.
//
//	cc -g -fsanitize=address,undefined -I sdk/c walk.c -o walk && ./walk [envs=8] [steps=1000] [seed=1] [key=value…]
#ifndef RL_NATIVE_H
#define RL_NATIVE_H

#include <inttypes.h>
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

#ifndef RL_NO_MAIN

typedef struct rl_play {
    uint32_t envs, steps;
    uint64_t seed;
    char config[1024], name[256]; // name@version
    uint8_t described[1 << 16];
    rl_spec spec;
    rl_tensor_desc desc[RL_TENSORS];
    rl_binding bind[RL_TENSORS];
    uint32_t elems[RL_TENSORS], bytes[RL_TENSORS];
} rl_play;

static void rl_play_die(const char *call, int32_t status)
{
    char text[257] = "";
    uint32_t at = (uint32_t)rl_alloc(256, 1);
    int32_t len = rl_last_error(at, 256);
    memcpy(text, rl_at(at), len > 0 && len <= 256 ? (size_t)len : 0);
    fprintf(stderr, "%s: status %" PRId32 " %s\n", call, status, text);
    exit(1);
}

static uint32_t rl_play_text(const char *text)
{
    uint32_t at = (uint32_t)rl_alloc((uint32_t)strlen(text) + 1, 1);
    strcpy((char *)rl_at(at), text);
    return at;
}

static int rl_play_order(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void rl_play_arguments(rl_play *p, int argc, char **argv)
{
    qsort(argv + 1, argc > 1 ? (size_t)argc - 1 : 0, sizeof *argv, rl_play_order);
    for (int i = 1; i < argc; i++) {
        if (sscanf(argv[i], "envs=%" SCNu32, &p->envs) == 1 || sscanf(argv[i], "steps=%" SCNu32, &p->steps) == 1 ||
            sscanf(argv[i], "seed=%" SCNu64, &p->seed) == 1)
            continue;
        size_t used = strlen(p->config);
        snprintf(p->config + used, sizeof p->config - used, "%s\n", argv[i]);
    }
}

// rl_play_bind gives every tensor two rows of time, packed.
static void rl_play_bind(rl_play *p, uint32_t batch)
{
    for (uint32_t k = 0; k < p->spec.tensors; k++) {
        uint32_t row = p->elems[k] * p->bytes[k];
        bool timeless = p->desc[k].flags & RL_TENSOR_NO_TIME;
        p->bind[k].stride_t = timeless ? 0 : row * p->envs;
        p->bind[k].stride_env = row;
        p->bind[k].stride_elem = p->bytes[k];
        p->bind[k].ptr = (uint32_t)rl_alloc(row * p->envs * 2, RL_PAGE);
        if (!p->bind[k].ptr) rl_play_die("rl_alloc", RL_STATUS_MEMORY);
    }
    uint32_t at = (uint32_t)rl_alloc(sizeof p->bind, 64);
    memcpy(rl_at(at), p->bind, sizeof p->bind);
    int32_t status = rl_bind(batch, at, p->spec.tensors);
    if (status) rl_play_die("rl_bind", status);
}

static void rl_play_describe(rl_play *p, uint32_t config)
{
    uint32_t at = (uint32_t)rl_alloc(sizeof p->described, 64);
    int32_t need = rl_describe(config, (uint32_t)strlen(p->config), at, sizeof p->described);
    if (need < 0 || (uint32_t)need > sizeof p->described) rl_play_die("rl_describe", need < 0 ? need : RL_STATUS_SMALL);
    memcpy(p->described, rl_at(at), (size_t)need);
    memcpy(&p->spec, p->described, sizeof p->spec);
    memcpy(p->desc, p->described + sizeof p->spec, p->spec.tensors * sizeof p->desc[0]);
    const char *strings = (const char *)p->described + p->spec.strings_at;
    snprintf(p->name, sizeof p->name, "%s%s%s", strings + p->spec.name, p->spec.version ? "@" : "", strings + p->spec.version);
    for (uint32_t k = 0; k < p->spec.tensors; k++) {
        p->elems[k] = 1;
        for (uint32_t i = 0; i < p->desc[k].rank; i++) p->elems[k] *= p->desc[k].shape[i];
        p->bytes[k] = rl_dtype_bytes(p->desc[k].dtype);
    }
}

// rl_play_action writes random actions of time 0 into the tensor of one action.
static void rl_play_action(rl_play *p, uint32_t slot, rl_rng *rng)
{
    const rl_tensor_desc *a = &p->desc[slot];
    for (uint32_t i = 0; i < p->envs * p->elems[slot]; i++) {
        uint8_t *to = (uint8_t *)rl_at(p->bind[slot].ptr) + i * p->bytes[slot];
        uint32_t elem = i % p->elems[slot];
        const void *values = a->values ? p->described + a->values : NULL; // of each element
        if (a->dtype == RL_I32) *(int32_t *)(void *)to = a->start + (int32_t)rl_below(rng, values ? ((const uint32_t *)values)[elem] : a->n);
        if (a->dtype != RL_F32) continue;
        float low = values ? ((const float *)values)[elem] : a->low;
        float high = values ? ((const float *)values)[p->elems[slot] + elem] : a->high;
        bool bounded = low < high && low > -3e38f && high < 3e38f;
        *(float *)(void *)to = rl_uniform(rng, bounded ? low : -1, bounded ? high : 1);
    }
}

// rl_play_counts says whether a tensor is part of the trace: what a step writes besides masks and last observations.
static bool rl_play_counts(const rl_tensor_desc *d)
{
    return d->role != RL_ROLE_ACTION && d->role != RL_ROLE_ACTION_MASK && d->role != RL_ROLE_FINAL_OBSERVATION;
}

// rl_play_absorb adds a row of every environment to an FNV-1a hash.
static void rl_play_absorb(const rl_play *p, uint32_t k, uint32_t t, uint64_t *hash)
{
    uint32_t n = p->elems[k] * p->bytes[k] * p->envs;
    const uint8_t *row = (const uint8_t *)rl_at(p->bind[k].ptr) + t * p->bind[k].stride_t;
    for (uint32_t i = 0; i < n; i++) *hash = (*hash ^ row[i]) * 0x100000001B3u;
}

int main(int argc, char **argv)
{
    static rl_play p = {.envs = 8, .steps = 1000, .seed = 1};
    rl_play_arguments(&p, argc, argv);
    uint32_t config = rl_play_text(p.config);
    rl_play_describe(&p, config);
    int32_t batch = rl_create(config, (uint32_t)strlen(p.config), p.envs, RL_AUTORESET_SAME_STEP);
    if (batch < 0) rl_play_die("rl_create", batch);
    rl_play_bind(&p, (uint32_t)batch);
    uint32_t seeds = (uint32_t)rl_alloc(8 * p.envs, 64);
    for (uint32_t i = 0; i < p.envs; i++) ((uint64_t *)rl_at(seeds))[i] = p.seed + i;
    int32_t status = rl_reset((uint32_t)batch, 0, 0, seeds);
    if (status) rl_play_die("rl_reset", status);
    rl_rng rng = rl_seed(p.seed);
    uint64_t episodes = 0, hash = 0xCBF29CE484222325u;
    double total = 0;
    for (uint32_t s = 0; s < p.steps; s++) {
        for (uint32_t k = 0; k < p.spec.tensors; k++)
            if (p.desc[k].role == RL_ROLE_ACTION) rl_play_action(&p, k, &rng);
        if ((status = rl_step((uint32_t)batch, 0))) rl_play_die("rl_step", status);
        for (uint32_t k = 0; k < p.spec.tensors; k++)
            if (rl_play_counts(&p.desc[k])) rl_play_absorb(&p, k, p.desc[k].role == RL_ROLE_OBSERVATION, &hash);
        for (uint32_t i = 0; i < p.envs; i++) {
            total += ((float *)rl_at(p.bind[RL_T_REWARD].ptr))[i];
            episodes += ((uint8_t *)rl_at(p.bind[RL_T_TERMINATED].ptr))[i] | ((uint8_t *)rl_at(p.bind[RL_T_TRUNCATED].ptr))[i];
        }
    }
    printf("%s: %" PRIu64 " env steps, %" PRIu64 " episodes, mean return %.3f, trace %016" PRIx64 "\n", p.name,
           (uint64_t)p.envs * p.steps, episodes, episodes ? total / (double)episodes : total, hash);
    return rl_destroy((uint32_t)batch);
}

#endif
#endif
