// halve: a component that halves rewards where they lie, if its wires let it.
#include "rlhost.h"

static void on_trajectories(rlh_host *host, void *self, const rlh_message *m) {
    (void)self;
    void *block;
    int err = rlh_lease_writable(host, "on_trajectories", "reward", m->handle, &block);
    if (err != RLH_OK) {
        rlh_fail(host, "%s", err == RLH_ERR_REFUSED ? rlh_reason(host) : rlh_strerror(err));
        return;
    }
    rlh_arena *arena = rlh_arena_of(host, m->handle);
    const rlh_column_view *reward = rlh_column(arena, "reward");
    for (size_t t = 0; t < reward->rows; t++) {
        for (size_t env = 0; env < reward->envs; env++) *(float *)rlh_to(reward, block, t, env, 0) /= 2;
    }
    rlh_emit(host, 0, m);
    rlh_release(arena, m->handle);
}

int main(void) {
    static const rlh_port signals[] = {{"trajectories", "trajectory", "a block with half the rewards", 0, 0}};
    static const rlh_slot slots[] = {{{"on_trajectories", "trajectory", "a full block", 0, 0}, on_trajectories}};
    static const rlh_component halve = {
        .kind = "halve", .doc = "halves rewards", .signals = signals, .signal_count = 1, .slots = slots, .slot_count = 1};
    return rlh_serve(&halve, 1);
}
