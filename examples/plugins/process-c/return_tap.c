// return_tap: a component that looks at every trajectory block on its way to the learner.
//
// It leases each block, takes the mean, least and greatest reward of its valid env steps from the columns where they
// lie, reports them as metrics, and passes the block on. See README.md for how it is built and wired.
#include <stdint.h>
#include <string.h>

#include "rlhost.h"

enum { TRAJECTORIES }; // signals

struct tap {
    int64_t log_every; // blocks; 0: never
    uint64_t blocks;
};

struct rewards {
    size_t count;
    double sum, least, greatest;
};

// read_rewards takes the rewards of the block's env steps; rows of phantom steps belong to no episode. The columns'
// strides are those of the announced schema, which the library has checked against the block's size.
static struct rewards read_rewards(const rlh_column_view *reward, const rlh_column_view *valid, const void *block) {
    struct rewards r = {0};
    for (size_t t = 0; t < reward->rows; t++) {
        for (size_t env = 0; env < reward->envs; env++) {
            if (valid != NULL && rlh_u8_at(valid, block, t, env, 0) == 0) continue;
            double x = (double)rlh_f32_at(reward, block, t, env, 0);
            r.sum += x;
            if (r.count == 0 || x < r.least) r.least = x;
            if (r.count == 0 || x > r.greatest) r.greatest = x;
            r.count++;
        }
    }
    return r;
}

static void report(rlh_host *host, struct tap *tap, const struct rewards *r) {
    double mean = r->count > 0 ? r->sum / (double)r->count : 0;
    tap->blocks++;
    rlh_count(host, "return_tap/blocks", 1);
    rlh_count(host, "return_tap/env_steps", r->count);
    rlh_gauge(host, "return_tap/least_reward", r->least);
    rlh_gauge(host, "return_tap/greatest_reward", r->greatest);
    rlh_observe(host, "return_tap/mean_reward", mean);
    if (tap->log_every > 0 && tap->blocks % (uint64_t)tap->log_every == 0) {
        rlh_log(host, RLH_INFO, "block %llu: %zu env steps, reward mean %g, from %g to %g",
                (unsigned long long)tap->blocks, r->count, mean, r->least, r->greatest);
    }
}

static void on_trajectories(rlh_host *host, void *self, const rlh_message *m) {
    rlh_arena *arena = rlh_arena_of(host, m->handle);
    const rlh_column_view *reward = arena != NULL ? rlh_column(arena, "reward") : NULL;
    const void *block;
    int err = reward != NULL && strcmp(reward->dtype, "f32") == 0 ? rlh_lease(arena, m->handle, &block) : RLH_ERR_INVALID;
    if (err != RLH_OK) {
        rlh_fail(host, "on_trajectories: no rewards in what came: %s", rlh_strerror(err));
        return;
    }
    struct rewards r = read_rewards(reward, rlh_column(arena, "valid"), block);
    rlh_release(arena, m->handle);
    report(host, self, &r);
    err = rlh_emit(host, TRAJECTORIES, m); // the library keeps a claim on the block until the host has it
    if (err != RLH_OK && err != RLH_ERR_CLOSED) rlh_fail(host, "trajectories: %s", rlh_strerror(err));
}

static int configure(rlh_host *host, void *self) {
    struct tap *tap = self;
    tap->log_every = 100;
    if (rlh_config_int(host, "log_every", &tap->log_every) == RLH_OK && tap->log_every < 0) {
        rlh_config_error(host, "log_every", "is negative", "write 0 for no lines at all", NULL);
    }
    return RLH_OK;
}

// set_log_every changes how often lines are logged while the run goes on, and answers with the value before.
static int set_log_every(rlh_host *host, void *self, rlh_question *q) {
    (void)host;
    struct tap *tap = self;
    int64_t before = tap->log_every, blocks = before;
    if (rlh_arg_int(q, "blocks", &blocks) != RLH_OK) return RLH_ERR_INVALID;
    if (blocks < 0) return rlh_raise(q, "RangeError", "%lld blocks are less than none", (long long)blocks);
    tap->log_every = blocks;
    return rlh_answer_int(q, before);
}

static const rlh_request requests[] = {{"set_log_every", "blocks integer", "blocks from one line of the log to the next", set_log_every}};

// The number of blocks survives a restart, so that the lines of the log go on counting.
static int snapshot(rlh_host *host, void *self) {
    const struct tap *tap = self;
    return rlh_state_put(host, &tap->blocks, sizeof tap->blocks);
}

static int restore(rlh_host *host, void *self, const void *state, size_t n) {
    (void)host;
    struct tap *tap = self;
    if (n != sizeof tap->blocks) return RLH_ERR_INVALID;
    memcpy(&tap->blocks, state, n);
    return RLH_OK;
}

static const rlh_port signals[] = {{"trajectories", "trajectory", "every block that came, unchanged", 0, 0}};
static const rlh_slot slots[] = {{{"on_trajectories", "trajectory", "full blocks", 0, 0}, on_trajectories}};
static const rlh_component return_tap = {
    .kind = "return_tap",
    .doc = "reports the rewards of every trajectory block and passes it on",
    .signals = signals,
    .signal_count = 1,
    .slots = slots,
    .slot_count = 1,
    .self_bytes = sizeof(struct tap),
    .configure = configure,
    .snapshot = snapshot,
    .restore = restore,
    .requests = requests,
    .request_count = 1,
};

int main(void) { return rlh_serve(&return_tap, 1); }
