// An environment that shows random bytes of the host, which it asks for at each reset and at each step. Its episodes are as
// long as one of the bytes says.
#include "rl_env.h"

typedef struct {
    uint8_t bytes[5];
    int32_t left;
} Noise;

__attribute__((import_module("wasi_snapshot_preview1"), import_name("random_get"))) int32_t random_get(void *buf, uint32_t len);

static bool setup(Noise *n, rl_config *config)
{
    (void)n;
    (void)config;
    return true;
}

static void show(Noise *n, float *obs)
{
    random_get(n->bytes, sizeof n->bytes);
    for (int i = 0; i < 5; i++) obs[i] = n->bytes[i];
}

static void reset(Noise *n, rl_rng *rng, float *obs)
{
    (void)rng;
    show(n, obs);
    n->left = n->bytes[0] % 11;
}

static void step(Noise *n, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng;
    (void)action;
    show(n, obs);
    out->reward = n->bytes[1];
    out->terminated = n->left-- <= 0;
}

RL_ENV(Noise, setup, reset, step, .name = "noise@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 255, 5))
