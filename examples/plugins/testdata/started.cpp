// An environment in C++ with a constructor of its own, beside a static one that must run once.
#include "rl_env.h"
#include "rl_math.h"

static int32_t starts;

namespace {
struct Table {
    double sine[16];
    Table()
    {
        starts++;
        for (int i = 0; i < 16; i++) sine[i] = rl_sin(i * RL_PI / 8);
    }
};
} // namespace

static Table table;

class Walk {
    int32_t position = 3, steps = 0;

public:
    bool setup(rl_config *config)
    {
        if (position != 3) return rl_fail("the constructor did not run");
        position = (int32_t)rl_arg_i64(config, "position", position);
        return true;
    }
    void look(float *obs) const { obs[0] = (float)table.sine[position & 15]; }
    void reset(rl_rng *rng, float *obs)
    {
        position = (int32_t)rl_below(rng, 16);
        steps = 0;
        look(obs);
    }
    void step(const int32_t *action, float *obs, rl_result *out)
    {
        if (starts != 1) __builtin_trap();
        position += action[0] ? 1 : -1;
        out->reward = (float)action[0];
        out->truncated = ++steps == 20;
        look(obs);
    }
    void legal(uint8_t *mask) const { mask[0] = mask[1] = 1; }
};

static bool setup(Walk *env, rl_config *config) { return env->setup(config); }
static void reset(Walk *env, rl_rng *rng, float *obs) { env->reset(rng, obs); }
static void step(Walk *env, rl_rng *, const int32_t *action, float *obs, rl_result *out) { env->step(action, obs, out); }
static void mask(void *all, uint32_t i, uint8_t *legal) { ((const Walk *)all + i)->legal(legal); }

RL_ENV(Walk, setup, reset, step, .name = "started@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, -1, 1, 1),
       .episode_limit = 20, .mask = mask)
