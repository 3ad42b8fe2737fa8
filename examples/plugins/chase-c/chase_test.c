// Tests of the chase, natively: see sdk/c/rl_test.h.
#define RL_NO_MAIN
#include "chase.c"
#include "rl_test.h"

// place puts hunter or prey k onto a cell.
static void place(int k, int32_t x, int32_t y)
{
    rl_test_state(Chase)->x[k] = x;
    rl_test_state(Chase)->y[k] = y;
}

RL_TEST(edges_meet)
{
    rl_test_reset(1);
    place(0, 6, 0);
    rl_test_step(1, 0, 0, 0);
    RL_EXPECT_EQ(rl_test_state(Chase)->x[0], 0);
    place(1, 3, 0);
    rl_test_step(0, 4, 0, 0);
    RL_EXPECT_EQ(rl_test_state(Chase)->y[1], 6);
}

RL_TEST(who_stands_where_the_prey_is_is_rewarded)
{
    rl_test_reset(1);
    rl_test_step(0, 0, 0, 0); // the prey moves in odd steps alone
    for (int k = 0; k <= HUNTERS; k++) place(k, k, k);
    place(2, HUNTERS - 1, HUNTERS);
    rl_test_step(0, 0, 1, 0);
    for (uint32_t k = 0; k < HUNTERS; k++) RL_EXPECT_EQ(rl_test_reward(k), k == 2);
    RL_EXPECT_EQ(rl_test_obs("", 2, 0), 0);
    RL_EXPECT_EQ(rl_test_obs("", 2, 1), 0);
}

RL_TEST(a_hunter_sees_the_shorter_way)
{
    rl_test_reset(1);
    rl_test_step(0, 0, 0, 0);
    place(0, 0, 3);
    place(HUNTERS, 6, 3);
    rl_test_step(0, 0, 0, 0);
    RL_EXPECT_NEAR(rl_test_obs("", 0, 0), -1 / 3., 1e-6);
    RL_EXPECT_EQ(rl_test_obs("", 0, 1), 0);
}

RL_TEST(time_ends_the_episode_of_all)
{
    rl_test_reset(1);
    for (int i = 1; i < STEPS; i++) {
        rl_test_step(0, 0, 0, 0);
        RL_EXPECT(!rl_test_truncated(3));
    }
    rl_test_step(0, 0, 0, 0);
    for (uint32_t k = 0; k < HUNTERS; k++) RL_EXPECT(rl_test_truncated(k) && !rl_test_terminated(k));
    RL_EXPECT_EQ(rl_test_state(Chase)->steps, 0);
}

RL_TEST(the_field_has_a_size)
{
    RL_EXPECT_EQ(strcmp(rl_test_refused("size=2\n"), "size must be 3 to 99"), 0);
    rl_test_open("size=99\n");
    rl_test_reset(1);
    RL_EXPECT_EQ(rl_test_state(Chase)->size, 99);
}

RL_TEST_MAIN
