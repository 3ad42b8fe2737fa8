// Tests that fail, each in its way: what rl_test.h says then.
#define RL_NO_MAIN
#include "../chase-c/chase.c"
#include "rl_test.h"

RL_TEST(wrong_number)
{
    rl_test_reset(1);
    RL_EXPECT_EQ(rl_test_reward(0), 5);
    RL_EXPECT(1 > 2);
}

RL_TEST(right) { rl_test_reset(1); }

RL_TEST(wrong_name)
{
    rl_test_reset(1);
    rl_test_obs("prey", 0, 0);
}

RL_TEST(wrong_agent)
{
    rl_test_reset(1);
    rl_test_obs("", 4, 0);
}

RL_TEST(wrong_action)
{
    rl_test_reset(1);
    rl_test_step(1);
}

RL_TEST(outside)
{
    rl_test_reset(1);
    rl_test_step(0, 0, 0, 5);
}

RL_TEST(early) { rl_test_step(0, 0, 0, 0); }

RL_TEST(refused) { rl_test_open("size=1\n"); }

RL_TEST_MAIN
