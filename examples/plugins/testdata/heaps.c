// Uses malloc beside the SDK's own memory: every block is filled, checked when its turn comes again, and freed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rl_env.h"

enum { BLOCKS = 32, LIMIT = 100 };

typedef struct {
    uint32_t steps, sum;
} Heaps;

static struct {
    unsigned char *at;
    size_t size;
    unsigned char fill;
} blocks[BLOCKS];

static bool setup(Heaps *env, rl_config *config)
{
    (void)env, (void)config;
    return true;
}

// turn replaces one block by another and returns how many of the old one's bytes are not what they were.
static uint32_t turn(uint32_t n)
{
    uint32_t k = n % BLOCKS, wrong = 0;
    for (size_t i = 0; i < blocks[k].size; i++) wrong += blocks[k].at[i] != blocks[k].fill;
    free(blocks[k].at);
    blocks[k].size = 1 + n * 7919 % 20000;
    blocks[k].fill = (unsigned char)n;
    blocks[k].at = malloc(blocks[k].size);
    if (!blocks[k].at) abort();
    memset(blocks[k].at, blocks[k].fill, blocks[k].size);
    return wrong;
}

static void look(const Heaps *env, float *obs)
{
    char text[32];
    snprintf(text, sizeof text, "%.3f", env->sum % 1000 / 1000.0);
    obs[0] = strtof(text, NULL);
}

static void reset(Heaps *env, rl_rng *rng, float *obs)
{
    env->steps = 0;
    env->sum = rl_below(rng, 1000);
    look(env, obs);
}

static void step(Heaps *env, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    static uint32_t turns;
    (void)rng;
    if (turn(turns++)) __builtin_trap();
    env->sum += 1 + (uint32_t)action[0];
    env->steps++;
    look(env, obs);
    out->reward = (float)action[0];
    out->truncated = env->steps == LIMIT;
}

RL_ENV(Heaps, setup, reset, step, .name = "heaps@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 1, 1), .episode_limit = LIMIT)
