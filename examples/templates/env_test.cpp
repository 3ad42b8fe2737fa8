// Tests of the environment as a program of this machine: see sdk/c/rl_test.h.
#define RL_NO_MAIN
#include "{name}.cpp"
#include "rl_test.h"

RL_TEST(every_step_costs_but_the_last)
{
    rl_test_open("length=3\n");
    rl_test_reset(1);
    double begin = rl_test_obs("", 0, 0);
    rl_test_step(1);
    RL_EXPECT_NEAR(rl_test_reward(0), begin == 0.5 ? 1 : -0.01, 1e-6);
}

RL_TEST(a_corridor_has_two_cells_at_least) { RL_EXPECT(rl_test_refused("length=1\n")[0]); }

RL_TEST_MAIN
