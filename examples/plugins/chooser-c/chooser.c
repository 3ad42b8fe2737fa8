// A chooser of blocks: of each `of` that come it passes on the `keep` with the highest mean reward, the best first, and sends the
// others on a signal of their own. Until then it leases them.
#include "rl_component.h"

enum { BEST, OTHERS }; // signals
enum { REWARD, VALID };  // columns
enum { MOST = 64 };

typedef struct {
    uint32_t of, keep; // the table
    uint32_t held;
    rl_message blocks[MOST]; // the best first
    double means[MOST];
} Chooser;

static bool setup(void *self, rl_config *config)
{
    Chooser *c = self;
    int64_t of = rl_arg_i64(config, "of", 2), keep = rl_arg_i64(config, "keep", 1);
    c->of = (uint32_t)of;
    c->keep = (uint32_t)keep;
    return (keep > 0 && keep < of && of <= MOST) || rl_fail("keep: want 1 or more, and less than of, which is at most 64");
}

static double mean_of(const rl_column *reward, const rl_column *valid)
{
    double sum = 0, rows = 0;
    for (uint32_t t = 0; t < reward->rows; t++)
        for (uint32_t env = 0; env < reward->envs; env++)
            for (uint32_t agent = 0; agent < reward->agents; agent++) {
                double counts = *RL_AT(uint8_t, valid, t, env, agent, 0);
                sum += counts * (double)*RL_AT(float, reward, t, env, agent, 0);
                rows += counts;
            }
    return sum / (rows > 1 ? rows : 1);
}

static bool on_trajectories(void *self, const rl_message *m)
{
    Chooser *c = self;
    if (!rl_lease(m->block)) return false;
    double mean = mean_of(rl_column_of(m, REWARD), rl_column_of(m, VALID));
    uint32_t at = c->held++;
    for (; at > 0 && c->means[at - 1] < mean; at--) c->blocks[at] = c->blocks[at - 1], c->means[at] = c->means[at - 1];
    c->blocks[at] = *m, c->means[at] = mean;
    if (c->held < c->of) return true;
    for (c->held = 0, at = 0; at < c->of; at++)
        if (!rl_emit(at < c->keep ? BEST : OTHERS, &c->blocks[at]) || !rl_release(c->blocks[at].block)) return false;
    return true;
}

static const rl_want WANTS[] = {{"reward", RL_F32, 0}, {"valid", RL_U8, 0}};
static const rl_signal_spec SIGNALS[] = {{"trajectories", "trajectory", "the best blocks", 0}, {"others", "trajectory", "the others", 0}};
static const rl_slot_spec SLOTS[] = {{"on_trajectories", "trajectory", "full blocks", on_trajectories, RL_WANTS(WANTS), 0}};

RL_COMPONENT(Chooser, .name = "chooser@1", .setup = setup, RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS))
