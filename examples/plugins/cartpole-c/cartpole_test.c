// Tests of CartPole, natively: see sdk/c/rl_test.h.
#define RL_NO_MAIN
#include "cartpole.c"
#include "rl_test.h"

RL_TEST(an_episode_begins_near_the_middle)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        rl_test_reset(seed);
        for (uint32_t i = 0; i < 4; i++) RL_EXPECT(fabs(rl_test_obs("", 0, i)) <= 0.05);
    }
}

RL_TEST(a_seed_gives_the_same_episode)
{
    rl_test_reset(3);
    rl_test_step(1);
    double angle = rl_test_obs("", 0, 2);
    rl_test_reset(3);
    rl_test_step(1);
    RL_EXPECT_EQ(rl_test_obs("", 0, 2), angle);
    rl_test_reset(4);
    rl_test_step(1);
    RL_EXPECT(rl_test_obs("", 0, 2) != angle);
}

RL_TEST(a_push_moves_the_cart_that_way)
{
    for (int right = 0; right < 2; right++) {
        rl_test_reset(1);
        double speed = rl_test_obs("", 0, 1);
        rl_test_step(right);
        RL_EXPECT_NEAR(rl_test_obs("", 0, 1) - speed, right ? 0.195 : -0.195, 0.01);
        RL_EXPECT_EQ(rl_test_reward(0), 1);
    }
}

RL_TEST(the_pole_falls_where_nobody_balances)
{
    rl_test_reset(1);
    int steps = 0;
    do rl_test_step(1);
    while (++steps < 100 && !rl_test_terminated(0));
    RL_EXPECT(steps < 12);
    RL_EXPECT(fabs(rl_test_final("", 0, 2)) > 0.2094);
    RL_EXPECT(fabs(rl_test_obs("", 0, 2)) <= 0.05); // of the next episode
    RL_EXPECT(!rl_test_truncated(0));
}

RL_TEST(time_is_limited)
{
    rl_test_open("max_steps=3\n");
    rl_test_reset(1);
    rl_test_step(0);
    rl_test_step(1);
    RL_EXPECT(!rl_test_truncated(0));
    rl_test_step(0);
    RL_EXPECT(rl_test_truncated(0) && !rl_test_terminated(0));
    RL_EXPECT(strstr(rl_test_refused("max_steps=0\n"), "max_steps"));
}

RL_TEST_MAIN
