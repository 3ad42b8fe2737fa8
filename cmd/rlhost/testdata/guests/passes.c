// A component that passes blocks on, and does something else with each `every`-th (0: with none).
//
//	fault = 1 out of bounds, 2 a loop without end, 3 keeps it from going on, 4 sends it on twice
#include "rl_component.h"

enum { TRAP = 1, LOOP, DROP, TWICE };
enum { TRAJECTORIES }; // signals

typedef struct {
    int64_t fault, every, came;
} Passes;

static volatile int32_t sink;

static bool setup(void *self, rl_config *config)
{
    Passes *passes = self;
    passes->fault = rl_arg_i64(config, "fault", 0);
    passes->every = rl_arg_i64(config, "every", 0);
    return true;
}

static bool on_trajectories(void *self, const rl_message *m)
{
    Passes *passes = self;
    bool now = passes->every > 0 && ++passes->came % passes->every == 0;
    if (!now) return rl_emit(TRAJECTORIES, m);
    switch (passes->fault) {
    case TRAP: *(volatile int32_t *)0xfffffff0u = 1; break;
    case LOOP: for (;;) sink++;
    case DROP: return true;
    case TWICE: return rl_emit(TRAJECTORIES, m) && rl_emit(TRAJECTORIES, m);
    }
    return rl_emit(TRAJECTORIES, m);
}

static const rl_signal_spec SIGNALS[] = {{"trajectories", "trajectory", "as they came", 0}};
static const rl_slot_spec SLOTS[] = {{"on_trajectories", "trajectory", "full blocks", on_trajectories, 0, 0, 0}};

RL_COMPONENT(Passes, .name = "passes@1", .setup = setup, RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS))
