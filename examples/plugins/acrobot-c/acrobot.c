// Acrobot-v1 with Gymnasium's equations: two links hang from a hinge, a motor at the joint between them must swing the
// free end above the height of one link over the hinge.
//
//	max_steps  truncate an episode after so many steps (500)
//
// The arithmetic is float64 in the order of Gymnasium's, what the policy sees is float32: cosine and sine of both
// angles, then both angular velocities.
#include "rl_env.h"
#include "rl_math.h"

// Both links: mass 1 kg, length 1 m, centre of mass in the middle, moment of inertia 1 kg m².
#define MASS 1.0
#define LENGTH 1.0
#define CENTRE 0.5
#define INERTIA 1.0
#define GRAVITY 9.8
#define TAU 0.2 // seconds a step
#define TOP_SPEED_1 (4 * RL_PI)
#define TOP_SPEED_2 (9 * RL_PI)

// State is the two angles, the first from hanging down, the second from the first, and their velocities.
typedef struct {
    double theta1, theta2, omega1, omega2;
} State;

typedef struct {
    State now;
    int32_t steps, max_steps;
} Acrobot;

static bool setup(Acrobot *env, rl_config *config)
{
    int64_t max_steps = rl_arg_i64(config, "max_steps", 500);
    if (max_steps < 1 || max_steps > INT32_MAX) return rl_fail("max_steps must be 1 to 2147483647");
    env->max_steps = (int32_t)max_steps;
    return true;
}

// change returns how fast the state changes under a torque (the equations of Sutton and Barto's book).
static State change(State s, double torque)
{
    double cos2 = rl_cos(s.theta2), sin2 = rl_sin(s.theta2);
    double d1 = MASS * (CENTRE * CENTRE) + MASS * (LENGTH * LENGTH + CENTRE * CENTRE + 2 * LENGTH * CENTRE * cos2) + INERTIA + INERTIA;
    double d2 = MASS * (CENTRE * CENTRE + LENGTH * CENTRE * cos2) + INERTIA;
    double phi2 = MASS * CENTRE * GRAVITY * rl_cos(s.theta1 + s.theta2 - RL_PI / 2);
    double phi1 = -MASS * LENGTH * CENTRE * (s.omega2 * s.omega2) * sin2 - 2 * MASS * LENGTH * CENTRE * s.omega2 * s.omega1 * sin2 +
                  (MASS * CENTRE + MASS * LENGTH) * GRAVITY * rl_cos(s.theta1 - RL_PI / 2) + phi2;
    double alpha2 = (torque + d2 / d1 * phi1 - MASS * LENGTH * CENTRE * (s.omega1 * s.omega1) * sin2 - phi2) /
                    (MASS * (CENTRE * CENTRE) + INERTIA - d2 * d2 / d1);
    double alpha1 = -(d2 * alpha2 + phi1) / d1;
    return (State){s.omega1, s.omega2, alpha1, alpha2};
}

// ahead returns the state after a time at a rate of change.
static State ahead(State s, double time, State rate)
{
    return (State){s.theta1 + time * rate.theta1, s.theta2 + time * rate.theta2, s.omega1 + time * rate.omega1,
                   s.omega2 + time * rate.omega2};
}

// runge_kutta returns the state one step on, by the method of fourth order.
static State runge_kutta(State s, double torque)
{
    State k1 = change(s, torque), k2 = change(ahead(s, TAU / 2, k1), torque);
    State k3 = change(ahead(s, TAU / 2, k2), torque), k4 = change(ahead(s, TAU, k3), torque);
#define MEAN(of) (k1.of + 2 * k2.of + 2 * k3.of + k4.of)
    return ahead(s, TAU / 6, (State){MEAN(theta1), MEAN(theta2), MEAN(omega1), MEAN(omega2)});
}

// wrap brings an angle into -pi … pi.
static double wrap(double angle)
{
    while (angle > RL_PI) angle -= 2 * RL_PI;
    while (angle < -RL_PI) angle += 2 * RL_PI;
    return angle;
}

static double clip(double x, double most) { return x < -most ? -most : x > most ? most : x; }

static void look(const State *s, float *obs)
{
    obs[0] = (float)rl_cos(s->theta1);
    obs[1] = (float)rl_sin(s->theta1);
    obs[2] = (float)rl_cos(s->theta2);
    obs[3] = (float)rl_sin(s->theta2);
    obs[4] = (float)s->omega1;
    obs[5] = (float)s->omega2;
}

static void reset(Acrobot *env, rl_rng *rng, float *obs)
{
    double start[4];
    for (int i = 0; i < 4; i++) start[i] = rl_uniform(rng, -0.1f, 0.1f);
    env->now = (State){start[0], start[1], start[2], start[3]};
    env->steps = 0;
    look(&env->now, obs);
}

// action: 0, 1, 2 for a torque of -1, 0, 1.
static void step(Acrobot *env, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    (void)rng; // nothing is random after the start
    State s = runge_kutta(env->now, *action - 1);
    env->now = (State){wrap(s.theta1), wrap(s.theta2), clip(s.omega1, TOP_SPEED_1), clip(s.omega2, TOP_SPEED_2)};
    env->steps++;
    look(&env->now, obs);
    out->terminated = -rl_cos(env->now.theta1) - rl_cos(env->now.theta2 + env->now.theta1) > 1;
    out->truncated = env->steps >= env->max_steps;
    out->reward = out->terminated ? 0 : -1;
}

static bool describe(rl_config *config, rl_env *env)
{
    env->episode_limit = (uint32_t)rl_arg_i64(config, "max_steps", 500);
    return true;
}

RL_ENV(Acrobot, setup, reset, step, .name = "acrobot@1", .action = RL_DISCRETE(3), .obs = RL_BOX(RL_F32, 0, 0, 6),
       .episode_limit = 500, .describe = describe)
