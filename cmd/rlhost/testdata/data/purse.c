// A component that reads a file of data before it starts, and passes blocks on.
#include "rl_component.h"
#include "rl_data.h"

typedef struct { int32_t limit; } Purse;

static bool setup(void *self, rl_config *config)
{
    (void)config;
    Purse *purse = self;
    char text[4];
    long n = rl_data("sizes/length.txt", text, sizeof text);
    if (n < 2) return rl_fail(rl_data_error(n));
    purse->limit = 10 * (text[0] - '0') + text[1] - '0';
    return purse->limit > 0 || rl_fail("length.txt has no number");
}

static bool on_trajectories(void *self, const rl_message *m)
{
    (void)self;
    return rl_emit(0, m);
}

static const rl_signal_spec SIGNALS[] = {{"trajectories", "trajectory", "as they came", 0}};
static const rl_slot_spec SLOTS[] = {{"on_trajectories", "trajectory", "full blocks", on_trajectories, 0, 0, 0}};

RL_COMPONENT(Purse, .name = "purse@1", .setup = setup, RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS))
