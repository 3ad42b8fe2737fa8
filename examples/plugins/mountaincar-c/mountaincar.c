// MountainCar-v0 with Gymnasium's equations: a car in a valley whose engine is too weak for the hill must first swing
// back to gather speed.
//
//	max_steps  truncate an episode after so many steps (200)
//
// The arithmetic is float64, as Gymnasium's is; what the policy sees is float32.
#include "rl_env.h"
#include "rl_math.h"

#define LEFT_WALL (-1.2)
#define RIGHT_END 0.6
#define TOP_SPEED 0.07
#define GOAL 0.5
#define ENGINE 0.001
#define GRAVITY 0.0025

typedef struct {
    double position, velocity;
    int32_t steps, max_steps;
} Car;

static bool setup(Car *car, rl_config *config)
{
    int64_t max_steps = rl_arg_i64(config, "max_steps", 200);
    if (max_steps < 1 || max_steps > INT32_MAX) return rl_fail("max_steps must be 1 to 2147483647");
    car->max_steps = (int32_t)max_steps;
    return true;
}

static double clip(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

static void look(const Car *car, float *obs)
{
    obs[0] = (float)car->position;
    obs[1] = (float)car->velocity;
}

static void reset(Car *car, rl_rng *rng, float *obs)
{
    car->position = -0.5 + 0.1 * rl_uniform(rng, -1, 1);
    car->velocity = 0;
    car->steps = 0;
    look(car, obs);
}

// action: 0 drives to the left, 1 rolls, 2 drives to the right.
static void step(Car *car, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng; // nothing is random after the start
    double push = (*action - 1) * ENGINE + rl_cos(3 * car->position) * -GRAVITY; // the valley is sin(3 * position)
    car->velocity = clip(car->velocity + push, -TOP_SPEED, TOP_SPEED);
    car->position = clip(car->position + car->velocity, LEFT_WALL, RIGHT_END);
    if (car->position == LEFT_WALL && car->velocity < 0) car->velocity = 0; // the wall takes the speed away
    car->steps++;
    look(car, obs);
    out->reward = -1;
    out->terminated = car->position >= GOAL && car->velocity >= 0;
    out->truncated = car->steps >= car->max_steps;
}

static bool describe(rl_config *config, rl_env *env)
{
    env->episode_limit = (uint32_t)rl_arg_i64(config, "max_steps", 200);
    return true;
}

RL_ENV(Car, setup, reset, step, .name = "mountaincar@1", .action = RL_DISCRETE(3), .obs = RL_BOX(RL_F32, -1.2f, 0.6f, 2),
       .episode_limit = 200, .describe = describe)
