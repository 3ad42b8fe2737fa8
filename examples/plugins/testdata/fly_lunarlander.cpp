// Flies recorded episodes of Gymnasium, as golden/record_lunarlander.py writes them, in the sources of the port, with the sines of the C
// library that Gymnasium uses, and tells how many steps there were and how many had another bit:
//
//	fly_lunarlander lunarlander.trace | fly_lunarlander lunarlandercontinuous.trace continuous
#define RL_NO_MAIN
#include "rl_math.h"

#include <cmath>

#define rl_sin ::sin
#define rl_cos ::cos
#define rl_tanh ::tanh
#define rl_sinf sinf
#define rl_cosf cosf
#include "lunarlander.cpp"

#include <cstdio>

// Recorded is a step of a record.
struct Recorded {
    uint8_t action, terminated, truncated, none;
    float reward, obs[8];
};

static bool read(void *to, size_t bytes, FILE *from) { return fread(to, bytes, 1, from) == 1; }

int main(int argc, char **argv)
{
    static const Engines choices[] = {{0, 0}, {0, -1}, {1, 0}, {0, 1}};
    Options options;
    options.wind = options.continuous = argc > 2;
    FILE *record = argc > 1 ? fopen(argv[1], "rb") : nullptr;
    struct {
        char magic[8];
        uint32_t episodes, state, obs;
    } head;
    if (!record || !read(&head, sizeof head, record) || head.state != 0 || head.obs != 8) return 1;
    int steps = 0, differ = 0;
    for (uint32_t seed = 0, length = 0; seed < head.episodes; seed++) {
        rl_rng rng = rl_seed(seed);
        Flight flight(rl_next(&rng), options);
        float obs[8];
        rl_result out = {};
        flight.step(Engines{0, 0}, obs, out);
        if (!read(&length, sizeof length, record)) return 1;
        for (uint32_t t = 0; t < length; t++, steps++) {
            Recorded want;
            if (!read(&want, sizeof want, record)) return 1;
            Engines levels = {(float)(want.action % 16 / 7.5 - 1), (float)(want.action / 16 / 7.5 - 1)};
            out = {};
            flight.step(options.continuous ? levels : choices[want.action], obs, out);
            differ += out.reward != want.reward || memcmp(obs, want.obs, sizeof obs) || out.terminated != want.terminated;
        }
    }
    printf("%d steps, %d differ\n", steps, differ);
    return 0;
}
