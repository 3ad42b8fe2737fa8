// A chase: four hunters on a field whose edges meet, after something that wanders about. Each is rewarded for every step in
// which it stands where the prey is.
#include "rl_env.h"

#define HUNTERS 4
#define STEPS 50

typedef struct {
    int32_t size, steps;
    int32_t x[HUNTERS + 1], y[HUNTERS + 1]; // the prey's last
} Chase;

static bool setup(Chase *env, rl_config *config)
{
    int64_t size = rl_arg_i64(config, "size", 7);
    if (size < 3 || size > 99) return rl_fail("size must be 3 to 99");
    env->size = (int32_t)size;
    return true;
}

// offset is how far it is from a to b by the shorter way, from -1 to 1.
static float offset(const Chase *env, int32_t a, int32_t b)
{
    int32_t d = (b - a + env->size + env->size / 2) % env->size - env->size / 2;
    return (float)d / (float)(env->size / 2);
}

// look writes what each hunter observes: where the prey is, and where the next hunter is.
static void look(const Chase *env, float *obs)
{
    for (int k = 0; k < HUNTERS; k++, obs += 4) {
        int next = (k + 1) % HUNTERS;
        obs[0] = offset(env, env->x[k], env->x[HUNTERS]);
        obs[1] = offset(env, env->y[k], env->y[HUNTERS]);
        obs[2] = offset(env, env->x[k], env->x[next]);
        obs[3] = offset(env, env->y[k], env->y[next]);
    }
}

static void reset(Chase *env, rl_rng *rng, float *obs)
{
    for (int k = 0; k <= HUNTERS; k++) {
        env->x[k] = (int32_t)rl_below(rng, (uint32_t)env->size);
        env->y[k] = (int32_t)rl_below(rng, (uint32_t)env->size);
    }
    env->steps = 0;
    look(env, obs);
}

// move takes a hunter or the prey to a neighbouring cell; 0 is to stay.
static void move(Chase *env, int k, uint32_t where)
{
    static const int32_t dx[] = {0, 1, -1, 0, 0}, dy[] = {0, 0, 0, 1, -1};
    env->x[k] = (env->x[k] + dx[where] + env->size) % env->size;
    env->y[k] = (env->y[k] + dy[where] + env->size) % env->size;
}

static void step(Chase *env, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    for (int k = 0; k < HUNTERS; k++) move(env, k, (uint32_t)action[k]);
    if (++env->steps % 2) move(env, HUNTERS, 1 + rl_below(rng, 4));
    look(env, obs);
    for (int k = 0; k < HUNTERS; k++) out[k].reward = env->x[k] == env->x[HUNTERS] && env->y[k] == env->y[HUNTERS];
    out->truncated = env->steps >= STEPS;
}

RL_ENV(Chase, setup, reset, step, .name = "chase@1", .action = RL_DISCRETE(5), .obs = RL_BOX(RL_F32, -1, 1, 4),
       .episode_limit = STEPS, .agents = HUNTERS)
