// CartPole of which x and theta are observed, and not how fast they change: a policy has to remember where they were. All else, and the
// argument, is cartpole.c's.
#define PARTS
#include "cartpole.c"

// one is where cartpole.c writes the observation of one environment.
static rl_tensor one(float *seen) { return (rl_tensor){.at = (uint8_t *)seen, .elem = sizeof *seen, .elems = 4, .bytes = sizeof *seen}; }

static void show(const float *seen, const rl_tensor *obs, uint32_t i)
{
    uint8_t *to = rl_row(obs, i);
    *(float *)(void *)to = seen[0];
    *(float *)(void *)(to + obs->elem) = seen[2];
}

static void reset_positions(void *state, uint32_t i, rl_rng *rng, const rl_tensor *obs, void *row)
{
    float seen[4];
    rl_tensor all = one(seen);
    reset(state, i, rng, &all, row);
    show(seen, obs, i);
}

static void step_positions(void *state, uint32_t first, uint32_t count, const rl_view *view)
{
    float seen[4];
    rl_view v = *view;
    v.obs = one(seen);
    for (uint32_t i = first; i < first + count; i++) {
        step(state, i, 1, &v);
        show(seen, &view->obs, i);
    }
}

RL_VECTOR_ENV(.name = "cartpole-positions@1", .action = RL_DISCRETE(2), .obs = RL_BOX(RL_F32, 0, 0, 2), .episode_limit = 500, RL_ARGUMENTS(arguments),
              .picture_width = PICTURE_WIDTH, .picture_height = PICTURE_HEIGHT, .picture_fps = 50, .render = render, .draw = draw,
              .describe = describe, .create = create, .destroy = destroy, .reset = reset_positions, .step = step_positions,
              .save_bytes = 20, .save = save, .load = load_env)
