// Memory: a cue is shown in the first step and asked for some steps later. The answer is the score: a policy that keeps nothing
// from step to step can only guess.
//
//	delay  steps between the cue and the question, 0 to 10000 (8); an episode has one more
//
// The observation is the cue, -1 or 1, in the first step and 0 in the others, then 1 where the question is asked. Actions before the
// question do nothing. Optimal score 1; answers at random have 0.5.
#include "rl_env.h"

typedef struct {
    int32_t cue; // the right answer
    int32_t steps, delay;
} Memory;

// delay_of reads the argument.
static bool delay_of(rl_config *config, int32_t *delay)
{
    int64_t given = rl_arg_i64(config, "delay", 8);
    *delay = (int32_t)given;
    return given >= 0 && given <= 10000 ? true : rl_fail("delay must be 0 to 10000");
}

static bool setup(Memory *memory, rl_config *config) { return delay_of(config, &memory->delay); }

static void look(const Memory *memory, float *obs)
{
    obs[0] = memory->steps ? 0 : (float)(2 * memory->cue - 1);
    obs[1] = memory->steps == memory->delay;
}

static void reset(Memory *memory, rl_rng *rng, float *obs)
{
    memory->cue = (int32_t)rl_below(rng, 2);
    memory->steps = 0;
    look(memory, obs);
}

static void step(Memory *memory, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng; // nothing is random after the start
    out->terminated = memory->steps == memory->delay;
    out->reward = out->terminated && *action == memory->cue;
    memory->steps++;
    look(memory, obs);
}

static bool describe(rl_config *config, rl_env *env)
{
    int32_t delay;
    if (!delay_of(config, &delay)) return false;
    env->episode_limit = (uint32_t)delay + 1;
    return true;
}

RL_ENV(Memory, setup, reset, step, .name = "memory@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, -1, 1, 2), .episode_limit = 9,
       .describe = describe)
