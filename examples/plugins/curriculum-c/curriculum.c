// A curriculum: one number for the episodes to come, which rises by a step whenever so many episodes have had a mean return of goal or
// more. The wire to on_resets must grant write = ["reset_param"]; it needs the grant metric.
#include "rl_component.h"

typedef struct {
    struct {
        double level, sum;
        uint64_t episodes; // since the level was last looked at
    } seen;
    double first, last, step, goal; // the table
    uint64_t window;
    uint32_t level; // metric
} Curriculum;

static bool setup(void *self, rl_config *config)
{
    Curriculum *c = self;
    int64_t window = rl_arg_i64(config, "window", 100);
    c->first = rl_arg_f64(config, "first", 1);
    c->last = rl_arg_f64(config, "last", 10);
    c->step = rl_arg_f64(config, "step", 1);
    c->goal = rl_arg_f64(config, "goal", 0.9);
    c->seen.level = c->first;
    c->window = (uint64_t)window;
    return (window > 0 && c->first <= c->last && c->step > 0) || rl_fail("window: and step want more than 0, and last as much as first or more");
}

static bool start(void *self)
{
    Curriculum *c = self;
    c->level = rl_metric(RL_METRIC_GAUGE, "curriculum/level");
    return true;
}

static bool on_episodes(void *self, const rl_message *m)
{
    Curriculum *c = self;
    c->seen.sum += (double)rl_episode_of(m).total;
    if (++c->seen.episodes < c->window) return true;
    if (c->seen.sum / (double)c->window >= c->goal) c->seen.level += c->step;
    if (c->seen.level > c->last) c->seen.level = c->last;
    c->seen.sum = 0, c->seen.episodes = 0;
    return true;
}

static bool on_resets(void *self, const rl_message *m)
{
    Curriculum *c = self;
    const rl_column *param = rl_column_of(m, 0);
    rl_report(c->level, c->seen.level);
    for (uint32_t env = 0; env < param->envs; env++) *RL_AT(float, param, 0, env, 0, 0) = (float)c->seen.level;
    return rl_emit(0, m);
}

static const rl_want WANTS[] = {{"reset_param", RL_F32, RL_COLUMN_WRITE}};
static const rl_signal_spec SIGNALS[] = {{"params", "reset_params", "they have been written", 0}};
static const rl_slot_spec SLOTS[] = {{"on_episodes", "episode", "episodes that have ended", on_episodes, 0, 0, 0},
                                     {"on_resets", "reset_request", "episodes to come want reset parameters", on_resets, RL_WANTS(WANTS), 0}};

RL_COMPONENT(Curriculum, .name = "curriculum@1", .setup = setup, .start = start, RL_SIGNALS(SIGNALS), RL_SLOTS(SLOTS), RL_SAVED(Curriculum, seen))
