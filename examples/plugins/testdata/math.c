// Shows the bits of rl_math.h: each step draws arguments of many kinds for one function and observes a hash of what it
// returns.
//
//	function  which one, in the order of the table below
#include "rl_env.h"
#include "rl_math.h"

enum { DRAWS = 64 };

typedef struct {
    int32_t function, steps;
} Math;

// floats is a sum of all float versions; where it is no number, whose sign is the processor's, it is the one NaN.
static double floats(double x, double y)
{
    float a = (float)x, b = (float)y;
    double sum = (double)rl_sinf(a) + rl_cosf(b) + rl_tanf(a) + rl_expf(rl_tanhf(b)) + rl_lnf(rl_absf(a) + 1) + rl_atan2f(a, b) +
                 rl_asinf(rl_tanhf(a)) + rl_acosf(rl_tanhf(b)) + rl_atanf(a) + rl_powf(rl_sqrtf(rl_absf(a)), rl_tanhf(b)) +
                 rl_fmodf(a, b) + rl_floorf(a) + rl_ceilf(a) + rl_truncf(a) + rl_roundf(a);
    return sum == sum ? sum : RL_NAN;
}

static double call(int32_t function, double x, double y)
{
    switch (function) {
    case 0: return rl_sin(x);
    case 1: return rl_cos(x);
    case 2: return rl_tan(x);
    case 3: return rl_asin(x);
    case 4: return rl_acos(x);
    case 5: return rl_atan(x);
    case 6: return rl_atan2(x, y);
    case 7: return rl_exp(x);
    case 8: return rl_ln(x);
    case 9: return rl_pow(x, y);
    case 10: return rl_sqrt(x);
    case 11: return rl_tanh(x);
    case 12: return rl_floor(x);
    case 13: return rl_ceil(x);
    case 14: return rl_trunc(x);
    case 15: return rl_round(x);
    case 16: return rl_fmod(x, y);
    default: return floats(x, y);
    }
}

static bool setup(Math *env, rl_config *config)
{
    env->function = (int32_t)rl_arg_i64(config, "function", 0);
    return true;
}

// draw returns a number of moderate size, of any size, near a multiple of a quarter turn, or any pattern of bits.
static double draw(rl_rng *rng)
{
    static const double size[] = {1, 8, 1000, 1e7};
    uint64_t bits = rl_next(rng);
    double unit = (double)(int64_t)(rl_next(rng) >> 11) * 0x1p-53;
    switch (bits & 7) {
    case 0: return rl_number(rl_next(rng));
    case 1: return (double)(int64_t)(bits >> 40) * (RL_PI / 2);
    case 2: return (double)(int32_t)(bits >> 32) / 2;
    case 3: return rl_number(0x3ff0000000000000u + (bits >> 32)) - 1; // small
    default: return (2 * unit - 1) * size[bits & 3];
    }
}

static void reset(Math *env, rl_rng *rng, float *obs)
{
    (void)rng;
    env->steps = 0;
    for (int i = 0; i < 4; i++) obs[i] = 0;
}

static void step(Math *env, rl_rng *rng, const int32_t *action, float *obs, rl_result *out)
{
    uint64_t hash = 0xCBF29CE484222325u + (uint64_t)action[0];
    for (int i = 0; i < DRAWS; i++) {
        double x = draw(rng), y = draw(rng);
        hash = rl_mix(hash ^ rl_number_bits(call(env->function, x, y)));
    }
    for (int i = 0; i < 4; i++) obs[i] = (float)(hash >> 16 * i & 0xffff);
    out->truncated = ++env->steps == 100;
}

RL_ENV(Math, setup, reset, step, .name = "math@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 0, 4), .episode_limit = 100)
