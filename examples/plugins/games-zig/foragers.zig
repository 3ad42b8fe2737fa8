//! Foragers, as foragers-c: four agents, each of which begins anew at once.
const rl = @import("rlhost");

const cells = 16;
const full = 12;
const meal = 8;
const old = 32;

const Foragers = extern struct {
    food: i32 = 0,
    at: [agents]i32 = @splat(0),
    energy: [agents]i32 = @splat(0),
    age: [agents]i32 = @splat(0),

    pub const name = "foragers@1";
    pub const action = rl.discrete(3);
    pub const obs = rl.box(f32, -cells, cells, .{3});
    pub const agents = 4;
    pub const respawn = true;

    pub fn init(_: rl.Config) rl.Error!Foragers {
        return .{};
    }

    fn born(env: *Foragers, rng: *rl.Rng, k: usize) void {
        env.at[k] = @intCast(rng.below(cells));
        env.energy[k] = full;
        env.age[k] = 0;
    }

    fn look(env: *const Foragers, k: usize, seen: []f32) void {
        seen[3 * k] = @floatFromInt(env.at[k]);
        seen[3 * k + 1] = @floatFromInt(env.food - env.at[k]);
        seen[3 * k + 2] = @floatFromInt(env.energy[k]);
    }

    pub fn reset(env: *Foragers, rng: *rl.Rng, seen: []f32) void {
        env.food = @intCast(rng.below(cells));
        for (0..agents) |k| env.born(rng, k);
        for (0..agents) |k| env.look(k, seen);
    }

    fn advance(env: *Foragers, rng: *rl.Rng, k: usize, move: i32, out: *rl.Result) void {
        env.at[k] += move - 1;
        env.energy[k] -= 1;
        env.age[k] += 1;
        if (env.at[k] == env.food) {
            out.reward = 1;
            env.energy[k] = @min(env.energy[k] + meal, full);
            env.food = @intCast(rng.below(cells));
        }
        if (env.at[k] < 0 or env.at[k] >= cells or env.energy[k] == 0) {
            out.reward = -1;
            out.terminated = true;
        }
        out.truncated = env.age[k] >= old;
    }

    pub fn step(env: *Foragers, rng: *rl.Rng, move: []const i32, seen: []f32, out: []rl.Result) void {
        for (0..agents) |k| env.advance(rng, k, move[k], &out[k]);
        for (0..agents) |k| env.look(k, seen);
        for (0..agents) |k| {
            if (!out[k].terminated and !out[k].truncated) continue;
            rl.last(@intCast(k), seen);
            env.born(rng, k);
            env.look(k, seen);
        }
    }
};

comptime {
    rl.environment(Foragers);
}
