// A logger: a line for each episode that ends, or each so many, and metrics of all. It needs the grants log and metric.
#include "rl_request.h"

typedef struct {
    struct {
        uint64_t episodes, longest;
    } seen;
    uint32_t every, count, length, total, longest; // the table; metrics
} Logger;

static bool setup(void *self, rl_config *config)
{
    Logger *logger = self;
    int64_t every = rl_arg_i64(config, "every", 1);
    logger->every = (uint32_t)every;
    return (every > 0 && every <= UINT32_MAX) || rl_fail("every: want 1 or more");
}

static bool start(void *self)
{
    Logger *logger = self;
    logger->count = rl_metric(RL_METRIC_COUNTER, "episodes/count");
    logger->length = rl_metric(RL_METRIC_HISTOGRAM, "episodes/length");
    logger->total = rl_metric(RL_METRIC_HISTOGRAM, "episodes/return");
    logger->longest = rl_metric(RL_METRIC_GAUGE, "episodes/longest");
    return true;
}

static bool on_episodes(void *self, const rl_message *m)
{
    Logger *logger = self;
    rl_episode e = rl_episode_of(m);
    rl_report(logger->count, 1);
    rl_report(logger->length, e.length);
    rl_report(logger->total, (double)e.total);
    if (e.length > logger->seen.longest) logger->seen.longest = e.length;
    rl_report(logger->longest, (double)logger->seen.longest);
    if (logger->seen.episodes++ % logger->every) return true;
    rl_line_text("environment ");
    rl_line_number(e.env);
    rl_line_text(e.terminated ? " terminated after " : " was truncated after ");
    rl_line_number(e.length);
    rl_line_text(" env steps");
    rl_line_end(RL_INFO);
    return true;
}

static bool longest(void *self, rl_config *args, rl_reply *reply)
{
    Logger *logger = self;
    int64_t longest = (int64_t)logger->seen.longest;
    if (rl_arg_bool(args, "reset", false)) logger->seen.longest = 0;
    return rl_reply_whole(reply, longest);
}

static const rl_request_spec REQUESTS[] = {{"longest", "reset bool?", "env steps of the longest episode, since a reset", longest}};
static const rl_slot_spec SLOTS[] = {{"on_episodes", "episode", "episodes that have ended", on_episodes, 0, 0, 0}};

RL_COMPONENT(Logger, .name = "episodes@1", .setup = setup, .start = start, RL_SLOTS(SLOTS), RL_REQUESTS(REQUESTS), RL_SAVED(Logger, seen))
