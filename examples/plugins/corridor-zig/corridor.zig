//! A corridor: the policy stands in one of its cells and must find the right end.
const rl = @import("rlhost");

const Corridor = struct {
    length: i32,
    cell: i32 = 0,
    steps: i32 = 0,

    pub const name = "corridor@1";
    pub const action = rl.discrete(2);
    pub const obs = rl.box(f32, 0, 1, .{1});
    pub const limit = 50;

    pub fn init(config: rl.Config) rl.Error!Corridor {
        const length = config.integer("length", 8);
        if (length < 2 or length > 1000) return rl.fail("length must be 2 to 1000");
        return .{ .length = @intCast(length) };
    }

    fn look(env: *const Corridor, seen: []f32) void {
        seen[0] = @as(f32, @floatFromInt(env.cell)) / @as(f32, @floatFromInt(env.length - 1));
    }

    pub fn reset(env: *Corridor, rng: *rl.Rng, seen: []f32) void {
        env.cell = @intCast(rng.below(@intCast(env.length - 1))); // anywhere but the end
        env.steps = 0;
        env.look(seen);
    }

    pub fn step(env: *Corridor, _: *rl.Rng, move: []const i32, seen: []f32, out: *rl.Result) void {
        env.cell = @max(env.cell + (if (move[0] == 1) @as(i32, 1) else -1), 0);
        env.steps += 1;
        env.look(seen);
        out.terminated = env.cell == env.length - 1;
        out.truncated = env.steps >= 50;
        out.reward = if (out.terminated) 1 else -0.01;
    }
};

comptime {
    rl.environment(Corridor);
}
