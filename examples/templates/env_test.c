// Tests of the environment as a program of this machine: see sdk/c/rl_test.h.
#define RL_NO_MAIN
#include "{name}.c"
#include "rl_test.h"

RL_TEST(the_end_pays)
{
    rl_test_open("length=3\n");
    rl_test_reset(1);
    rl_test_state(Corridor)->cell = 1;
    rl_test_step(1);
    RL_EXPECT(rl_test_terminated(0));
    RL_EXPECT_EQ(rl_test_reward(0), 1);
}

RL_TEST(a_corridor_has_two_cells_at_least) { RL_EXPECT(rl_test_refused("length=1\n")[0]); }

RL_TEST_MAIN
