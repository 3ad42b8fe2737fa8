// Pendulum-v1 with Gymnasium's equations: a pendulum that hangs on a motor too weak to lift it must swing up and then stay
// upright.
//
//	max_steps  truncate an episode after so many steps (200)
//
// The arithmetic is float64, as Gymnasium's is; what the policy sees, and the torque that it chooses, is float32.
#include "rl_env.h"
#include "rl_math.h"

#define PI 3.14159265358979323846
#define GRAVITY 10.0
#define TIME_STEP 0.05
#define TOP_SPEED 8.0
#define TOP_TORQUE 2.0f

typedef struct {
    double angle, speed; // the angle is 0 upright
    int32_t steps, max_steps;
} Pendulum;

static bool setup(Pendulum *p, rl_config *config)
{
    int64_t max_steps = rl_arg_i64(config, "max_steps", 200);
    if (max_steps < 1 || max_steps > INT32_MAX) return rl_fail("max_steps must be 1 to 2147483647");
    p->max_steps = (int32_t)max_steps;
    return true;
}

static void look(const Pendulum *p, float *obs)
{
    obs[0] = (float)rl_cos(p->angle);
    obs[1] = (float)rl_sin(p->angle);
    obs[2] = (float)p->speed;
}

static void reset(Pendulum *p, rl_rng *rng, float *obs)
{
    p->angle = PI * rl_uniform(rng, -1, 1);
    p->speed = rl_uniform(rng, -1, 1);
    p->steps = 0;
    look(p, obs);
}

// wrapped returns an angle between -pi and pi.
static double wrapped(double angle)
{
    double turned = rl_fmod(angle + PI, 2 * PI);
    return (turned < 0 ? turned + 2 * PI : turned) - PI;
}

// action: the torque, -2 to 2.
static void step(Pendulum *p, rl_rng *rng, const float *action, float *obs, rl_result *out)
{
    (void)rng; // nothing is random after the start
    float torque = *action < -TOP_TORQUE ? -TOP_TORQUE : *action > TOP_TORQUE ? TOP_TORQUE : *action;
    double off = wrapped(p->angle);
    double cost = off * off + 0.1 * (p->speed * p->speed) + 0.001f * (torque * torque);
    double speed = p->speed + (3 * GRAVITY / 2 * rl_sin(p->angle) + 3.0f * torque) * TIME_STEP;
    p->speed = speed < -TOP_SPEED ? -TOP_SPEED : speed > TOP_SPEED ? TOP_SPEED : speed;
    p->angle += p->speed * TIME_STEP;
    p->steps++;
    look(p, obs);
    out->reward = (float)-cost;
    out->truncated = p->steps >= p->max_steps;
}

static bool describe(rl_config *config, rl_env *env)
{
    env->episode_limit = (uint32_t)rl_arg_i64(config, "max_steps", 200);
    return true;
}

#ifndef PARTS // a file that includes this one makes an environment of its own of its parts
RL_ENV(Pendulum, setup, reset, step, .name = "pendulum@1", .action = RL_BOX(RL_F32, -2, 2, 1),
       .obs = {.dtype = RL_F32, .rank = 1, .shape = {3}, .lows = (const float[]){-1, -1, -8}, .highs = (const float[]){1, 1, 8}},
       .episode_limit = 200, .describe = describe)
#endif
