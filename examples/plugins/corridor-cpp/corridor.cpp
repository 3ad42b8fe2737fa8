// A corridor: the policy stands in one of its cells and must find the right end.
#include "rl_env.hpp"

class Corridor {
    int32_t length = 0, cell = 0, steps = 0;

    void look(float *obs) const { obs[0] = (float)cell / (float)(length - 1); }

public:
    bool setup(rl_config *config)
    {
        int64_t cells = rl_arg_i64(config, "length", 8);
        if (cells < 2 || cells > 1000) return rl_fail("length must be 2 to 1000");
        length = (int32_t)cells;
        return true;
    }

    void reset(rl_rng &rng, float *obs)
    {
        cell = (int32_t)rl_below(&rng, (uint32_t)length - 1); // anywhere but the end
        steps = 0;
        look(obs);
    }

    void step(rl_rng &, const int32_t *action, float *obs, rl_result &out)
    {
        cell += action[0] == 1 ? 1 : -1;
        if (cell < 0) cell = 0;
        steps++;
        look(obs);
        out.terminated = cell == length - 1;
        out.truncated = steps >= 50;
        out.reward = out.terminated ? 1.0f : -0.01f;
    }
};

RL_CLASS(Corridor, .name = "corridor@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 1, 1), .episode_limit = 50)
