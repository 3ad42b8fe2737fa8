// Prints the largest error of each function of rl_math.h, in units of the last place of a double, against the C
// library's long double.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rl_math.h"

static uint64_t state = 1;

static uint64_t next(void)
{
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// draw returns any pattern of bits, or a number between bounds of many sizes.
static double draw(void)
{
    static const double size[] = {0.8, 1, 4, 30, 700, 1e6, 1e15};
    uint64_t kind = next() % 8;
    double unit = (double)(int64_t)(next() >> 11) * 0x1p-53;
    return kind == 7 ? rl_number(next()) : (2 * unit - 1) * size[kind];
}

// error compares what is with what should be: no numbers, infinities and zeros must be the same ones.
static double error(double got, long double exact)
{
    double want = (double)exact;
    int exponent;
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : 1e9;
    if (want == 0 || isinf(want) || isinf(got)) return got == want && signbit(got) == signbit(want) ? 0 : 1e9;
    frexp(want, &exponent);
    return (double)(fabsl(got - exact) / ldexpl(1, (exponent < -1021 ? -1021 : exponent) - 53));
}

typedef double one(double);
typedef double two(double, double);
typedef long double one_exact(long double);
typedef long double two_exact(long double, long double);

static void report_one(const char *name, one *function, one_exact *exact, int draws)
{
    double worst = 0, at = 0;
    for (int i = 0; i < draws; i++) {
        double x = draw(), e = error(function(x), exact(x));
        if (e > worst) worst = e, at = x;
    }
    printf("%s %.3f at %a\n", name, worst, at);
}

static void report_two(const char *name, two *function, two_exact *exact, int draws)
{
    double worst = 0, at = 0, with = 0;
    for (int i = 0; i < draws; i++) {
        double x = draw(), y = draw(), e = error(function(x, y), exact(x, y));
        if (e > worst) worst = e, at = x, with = y;
    }
    printf("%s %.3f at %a, %a\n", name, worst, at, with);
}

int main(void)
{
    enum { DRAWS = 300000 };
    report_one("sin", rl_sin, sinl, DRAWS);
    report_one("cos", rl_cos, cosl, DRAWS);
    report_one("tan", rl_tan, tanl, DRAWS);
    report_one("asin", rl_asin, asinl, DRAWS);
    report_one("acos", rl_acos, acosl, DRAWS);
    report_one("atan", rl_atan, atanl, DRAWS);
    report_two("atan2", rl_atan2, atan2l, DRAWS);
    report_one("exp", rl_exp, expl, DRAWS);
    report_one("ln", rl_ln, logl, DRAWS);
    report_two("pow", rl_pow, powl, DRAWS);
    report_one("sqrt", rl_sqrt, sqrtl, DRAWS);
    report_one("tanh", rl_tanh, tanhl, DRAWS);
    report_one("floor", rl_floor, floorl, DRAWS);
    report_one("ceil", rl_ceil, ceill, DRAWS);
    report_one("trunc", rl_trunc, truncl, DRAWS);
    report_one("round", rl_round, roundl, DRAWS);
    report_two("fmod", rl_fmod, fmodl, DRAWS / 30);
    return 0;
}
