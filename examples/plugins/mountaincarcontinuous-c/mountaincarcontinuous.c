// MountainCarContinuous-v0 with Gymnasium's equations: a car in a valley whose engine is too weak for the hill must first
// swing back to gather speed, and each push costs.
//
//	max_steps  truncate an episode after so many steps (999)
//
// Gymnasium's arithmetic is float32 here, but for the first step of an episode, which is float64.
#include "rl_env.h"
#include "rl_math.h"

#define LEFT_WALL (-1.2)
#define RIGHT_END 0.6
#define TOP_SPEED 0.07
#define GOAL 0.45
#define ENGINE 0.0015f
#define GRAVITY 0.0025

typedef struct {
    double position, velocity; // float32 numbers after the first step
    int32_t steps, max_steps;
} Car;

static bool setup(Car *car, rl_config *config)
{
    int64_t max_steps = rl_arg_i64(config, "max_steps", 999);
    if (max_steps < 1 || max_steps > INT32_MAX) return rl_fail("max_steps must be 1 to 2147483647");
    car->max_steps = (int32_t)max_steps;
    return true;
}

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

// DRIVE moves the car by one step in the arithmetic of a type, and says whether it has reached the goal.
#define DRIVE(type)                                                                                            \
    static bool drive_##type(Car *car, float push)                                                             \
    {                                                                                                          \
        type position = (type)car->position, velocity = (type)car->velocity;                                   \
        velocity += push - (float)(GRAVITY * rl_cos(3 * position)); /* the valley is sin(3 * position) */      \
        if (velocity > (type)TOP_SPEED) velocity = (type)TOP_SPEED;                                            \
        if (velocity < (type)-TOP_SPEED) velocity = (type)-TOP_SPEED;                                          \
        position += velocity;                                                                                  \
        if (position > (type)RIGHT_END) position = (type)RIGHT_END;                                            \
        if (position < (type)LEFT_WALL) position = (type)LEFT_WALL;                                            \
        if (position == (type)LEFT_WALL && velocity < 0) velocity = 0; /* the wall takes the speed away */     \
        car->position = (float)position;                                                                       \
        car->velocity = (float)velocity;                                                                       \
        return position >= (type)GOAL && velocity >= 0;                                                        \
    }
DRIVE(float)
DRIVE(double)

// action: how hard the engine pushes, -1 to the left to 1 to the right.
static void step(Car *car, rl_rng *rng, const float *action, float *obs, rl_result *out)
{
    (void)rng; // nothing is random after the start
    float push = (*action < -1 ? -1 : *action > 1 ? 1 : *action) * ENGINE;
    out->terminated = car->steps++ ? drive_float(car, push) : drive_double(car, push);
    out->reward = (float)((out->terminated ? 100.0 : 0.0) - (double)*action * *action * 0.1);
    out->truncated = car->steps >= car->max_steps;
    look(car, obs);
}

static bool describe(rl_config *config, rl_env *env)
{
    env->episode_limit = (uint32_t)rl_arg_i64(config, "max_steps", 999);
    return true;
}

RL_ENV(Car, setup, reset, step, .name = "mountaincarcontinuous@1", .action = RL_BOX(RL_F32, -1, 1, 1),
       .obs = {.dtype = RL_F32, .rank = 1, .shape = {2}, .lows = (const float[]){-1.2f, -0.07f}, .highs = (const float[]){0.6f, 0.07f}},
       .episode_limit = 999, .describe = describe)
