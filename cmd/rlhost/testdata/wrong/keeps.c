// A component that passes blocks on, and from the `from`-th on keeps those that it has passed on, until it keeps `most`.
#include "rl_component.h"

enum { TRAJECTORIES }; // signals

typedef struct {
    int64_t from, most, came, kept;
} Keeps;

static bool setup(void *self, rl_config *config)
{
    Keeps *keeps = self;
    keeps->from = rl_arg_i64(config, "from", 4);
    keeps->most = rl_arg_i64(config, "most", 1);
    return true;
}

static bool on_trajectories(void *self, const rl_message *m)
{
    Keeps *keeps = self;
    if (++keeps->came >= keeps->from && keeps->kept < keeps->most) {
        if (!rl_lease(m->block)) return false;
        keeps->kept++;
    }
    return rl_emit(TRAJECTORIES, m);
}

static const rl_signal_spec SIGNALS[] = {{"trajectories", "trajectory", "as they came", 0}};
static const rl_slot_spec SLOTS[] = {{"on_trajectories", "trajectory", "full blocks", on_trajectories, 0, 0, 0}};

RL_COMPONENT(Keeps, .name = "keeps@1", .setup = setup, RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS))
