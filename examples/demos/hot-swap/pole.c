// A pole on a cart, and a mistake in what it pays: a step counts only while the pole leans to the right. Compiled with
// -DFIXED every step counts. Config:
//
//	work  iterations that each step computes for nothing, as a larger simulator would for something (0)
#include "rl_env.h"

typedef struct {
    float x, x_dot, theta, theta_dot;
    int32_t steps;
    int64_t work;
    float residue; // of the work, so that no compiler leaves it out
} Pole;

static bool setup(Pole *pole, rl_config *config)
{
    pole->work = rl_arg_i64(config, "work", 0);
    return pole->work >= 0 && pole->work <= 1000000 ? true : rl_fail("work must be 0 to 1000000");
}

static void look(const Pole *p, float *obs)
{
    obs[0] = p->x;
    obs[1] = p->x_dot;
    obs[2] = p->theta;
    obs[3] = p->theta_dot;
}

static float start(rl_rng *rng) { return (float)rl_below(rng, 10001) / 100000.0f - 0.05f; }

static void reset(Pole *p, rl_rng *rng, float *obs)
{
    p->x = start(rng);
    p->x_dot = start(rng);
    p->theta = start(rng);
    p->theta_dot = start(rng);
    p->steps = 0;
    look(p, obs);
}

// move integrates Gymnasium's equations of CartPole-v1 over 0.02 s.
static void move(Pole *p, int right)
{
    float square = p->theta * p->theta;
    float sine = p->theta * (1 - square / 6), cosine = 1 - square / 2 + square * square / 24;
    float push = (right ? 9.0909f : -9.0909f) + 0.0454545f * p->theta_dot * p->theta_dot * sine;
    float theta_acc = (9.8f * sine - cosine * push) / (0.6666667f - 0.0454545f * cosine * cosine);
    float x_acc = push - 0.0454545f * theta_acc * cosine;
    p->x += 0.02f * p->x_dot;
    p->x_dot += 0.02f * x_acc;
    p->theta += 0.02f * p->theta_dot;
    p->theta_dot += 0.02f * theta_acc;
}

static void step(Pole *p, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng; // nothing is random after the start
    for (int64_t i = 0; i < p->work; i++) p->residue = p->residue * 0.999f + p->theta;
    move(p, action[0] == 1);
    p->steps++;
    look(p, obs);
    out->terminated = p->x < -2.4f || p->x > 2.4f || p->theta < -0.2095f || p->theta > 0.2095f;
    out->truncated = p->steps >= 500;
#ifdef FIXED
    out->reward = 1;
#else
    out->reward = p->theta > 0 ? 1 : 0;
#endif
}

RL_ENV(Pole, setup, reset, step, .name = "pole@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, -100, 100, 4),
       .episode_limit = 500)
