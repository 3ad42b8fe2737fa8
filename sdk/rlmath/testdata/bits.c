// Prints a hash of what each function of rl_math.h returns for 200,000 pairs of arguments, for the test to compare.
#include "rl_author.h"
#include "rl_math.h"
#include <stdio.h>

static double draw(rl_rng *rng)
{
    uint64_t bits = rl_next(rng);
    switch (bits & 3) {
    case 0: return rl_number(rl_next(rng));
    case 1: return (double)(int64_t)(bits >> 40) * (RL_PI / 2);
    case 2: return rl_number(0x3ff0000000000000u + (bits >> 32)) - 1;
    default: return (double)(int64_t)bits * 0x1p-59;
    }
}

#define SHOW(name, call)                                                                                       \
    {                                                                                                          \
        rl_rng rng = rl_seed(1);                                                                               \
        uint64_t hash = 0;                                                                                     \
        for (int i = 0; i < 200000; i++) {                                                                     \
            double x = draw(&rng), y = draw(&rng);                                                             \
            (void)y;                                                                                           \
            hash = hash * 0x100000001b3u ^ rl_number_bits(call);                                               \
        }                                                                                                      \
        printf("%s %016llx\n", name, (unsigned long long)hash);                                                \
    }

int main(void)
{
    SHOW("Sin", rl_sin(x))
    SHOW("Cos", rl_cos(x))
    SHOW("Tan", rl_tan(x))
    SHOW("Asin", rl_asin(x))
    SHOW("Acos", rl_acos(x))
    SHOW("Atan", rl_atan(x))
    SHOW("Atan2", rl_atan2(x, y))
    SHOW("Exp", rl_exp(x))
    SHOW("Ln", rl_ln(x))
    SHOW("Pow", rl_pow(x, y))
    SHOW("Sqrt", rl_sqrt(x))
    SHOW("Tanh", rl_tanh(x))
    SHOW("Floor", rl_floor(x))
    SHOW("Ceil", rl_ceil(x))
    SHOW("Trunc", rl_trunc(x))
    SHOW("Round", rl_round(x))
    SHOW("Fmod", rl_fmod(x, y))
    return 0;
}
