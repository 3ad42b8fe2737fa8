// A reward shaper: of each reward r the learner gets scale·r + shift, at most clip in magnitude. The wire must grant
// write = ["shaped_reward"].
#include "rl_component.h"

typedef struct {
    double scale, shift, clip; // clip 0 = none
} Shaper;

enum { SHAPED };          // signals
enum { REWARD, LEARNED }; // columns

static bool setup(void *self, rl_config *config)
{
    Shaper *shaper = self;
    shaper->scale = rl_arg_f64(config, "scale", 1);
    shaper->shift = rl_arg_f64(config, "shift", 0);
    shaper->clip = rl_arg_f64(config, "clip", 0);
    return shaper->clip >= 0 || rl_fail("clip: want 0 (none) or more");
}

static float shape(const Shaper *shaper, float reward)
{
    double x = shaper->scale * (double)reward + shaper->shift;
    if (shaper->clip > 0 && x > shaper->clip) x = shaper->clip;
    if (shaper->clip > 0 && x < -shaper->clip) x = -shaper->clip;
    return (float)x;
}

static bool on_rewards(void *self, const rl_message *m)
{
    const rl_column *reward = rl_column_of(m, REWARD), *learned = rl_column_of(m, LEARNED);
    for (uint32_t t = 0; t < reward->rows; t++)
        for (uint32_t env = 0; env < reward->envs; env++)
            for (uint32_t agent = 0; agent < reward->agents; agent++)
                *RL_AT(float, learned, t, env, agent, 0) = shape(self, *RL_AT(float, reward, t, env, agent, 0));
    return rl_emit(SHAPED, m);
}

static const rl_want WANTS[] = {{"reward", RL_F32, 0}, {"shaped_reward", RL_F32, RL_COLUMN_WRITE}};
static const rl_signal_spec SIGNALS[] = {{"shaped", "shaped_rewards", "they have been written", 0}};
static const rl_slot_spec SLOTS[] = {{"on_rewards", "reward_request", "the rewards of a block can be shaped", on_rewards, RL_WANTS(WANTS), 0}};

RL_COMPONENT(Shaper, .name = "shaper@1", .setup = setup, RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS))
