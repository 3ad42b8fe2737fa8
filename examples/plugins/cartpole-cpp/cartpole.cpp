// CartPole-v1 with Gymnasium's equations in float32, as a class. Every operation is a single IEEE operation in the order that the other
// languages share, so that the same seeds give the same bits in all of them.
#include "rl_env.hpp"

#include <array>
#include <bit>

// Gymnasium's constants: gravity 9.8, cart 1.0, pole 0.1, half length 0.5, force 10, 0.02 s a step. Masses and
// lengths occur folded into these, each rounded once.
constexpr float GRAVITY = 9.8f;
constexpr uint32_t LEFT_BITS = 0xc111745d; // -10 / 1.1, force over total mass; action 1 turns the sign
constexpr float POLE_RATIO = 0.045454547f; // pole mass times half length over total mass
constexpr float LENGTH_FULL = 0.6666667f;  // half length times 4/3
constexpr float TAU = 0.02f;
constexpr uint32_t X_LIMIT_BITS = 0x4019999a;     // 2.4
constexpr uint32_t THETA_LIMIT_BITS = 0x3e567750; // 12 degrees
constexpr uint32_t ABS_BITS = 0x7fffffff;

class CartPole {
    std::array<float, 4> state{}; // x, x_dot, theta, theta_dot
    uint32_t steps = 0, max_steps = 0;

public:
    static bool spaces(rl_config *config, rl_env *env)
    {
        env->episode_limit = (uint32_t)rl_arg_i64(config, "max_steps", 500);
        return true;
    }

    bool setup(rl_config *config)
    {
        int64_t limit = rl_arg_i64(config, "max_steps", 500);
        if (limit < 1 || limit > INT32_MAX) return rl_fail("max_steps must be 1 to 2147483647");
        max_steps = (uint32_t)limit;
        return true;
    }

    void reset(rl_rng &rng, float *obs)
    {
        for (float &value : state) value = rl_uniform(&rng, -0.05f, 0.05f);
        steps = 0;
        std::copy(state.begin(), state.end(), obs);
    }

    void step(rl_rng &, const int32_t *action, float *obs, rl_result &out)
    {
        auto [x, x_dot, theta, theta_dot] = state;
        float force = std::bit_cast<float>((uint32_t)*action << 31 ^ LEFT_BITS), square = theta * theta;
        float sine = theta * (1.0f + square * (-1.0f / 6 + square * (1.0f / 120 + square * (-1.0f / 5040))));
        float cosine = 1.0f + square * (-0.5f + square * (1.0f / 24 + square * (-1.0f / 720)));
        float push = force + POLE_RATIO * (theta_dot * theta_dot) * sine;
        float theta_acc = (GRAVITY * sine - cosine * push) / (LENGTH_FULL - POLE_RATIO * (cosine * cosine));
        float x_acc = push - POLE_RATIO * (theta_acc * cosine);
        state = {x + TAU * x_dot, x_dot + TAU * x_acc, theta + TAU * theta_dot, theta_dot + TAU * theta_acc};
        std::copy(state.begin(), state.end(), obs);
        // A state that is not a number has large bits, so it also ends its episode.
        out.terminated = (std::bit_cast<uint32_t>(state[0]) & ABS_BITS) > X_LIMIT_BITS ||
                         (std::bit_cast<uint32_t>(state[2]) & ABS_BITS) > THETA_LIMIT_BITS;
        out.truncated = ++steps >= max_steps;
        out.reward = 1;
    }

    template <class Archive> void fields(Archive &archive) { archive(state, steps); }
};

static const rl_argument arguments[] = {{"max_steps", "steps after which an episode is truncated", RL_ARG_INTEGER, "500", 1, INT32_MAX, nullptr, 0}};

RL_CLASS(CartPole, .name = "cartpole@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 0, 4), RL_ARGUMENTS(arguments), .episode_limit = 500)
