//! Tuple, as sanity-c/tuple.c: three actions of three kinds, and masks.
const rl = @import("rlhost");

const Tuple = extern struct {
    lamps: [3]i32 = @splat(0),
    gear: i32 = 0,
    stuck: i32 = 0,
    barred: i32 = 0,
    wheel: f32 = 0,

    pub const name = "tuple@1";
    pub const action = .{ .lamps = rl.multiBinary(3), .@"drive/gear" = rl.discrete(3).from(-1), .@"drive/wheel" = rl.box(f32, -1, 1, .{1}) };
    pub const obs = rl.box(f32, -1, 1, .{5});
    pub const limit = 1;

    pub fn init(_: rl.Config) rl.Error!Tuple {
        return .{};
    }

    pub fn reset(env: *Tuple, rng: *rl.Rng, seen: []f32) void {
        const bits = rng.next();
        for (&env.lamps, 0..) |*lamp, i| {
            lamp.* = @intCast(bits >> @intCast(i) & 1);
            seen[i] = @floatFromInt(lamp.*);
        }
        const gear = rng.below(3);
        env.gear = @as(i32, @intCast(gear)) - 1;
        env.stuck = @intCast(rng.below(3));
        env.barred = @as(i32, @intCast((gear + 1 + rng.below(2)) % 3)) - 1;
        env.wheel = rng.uniform(-1, 1);
        seen[3] = @floatFromInt(env.gear);
        seen[4] = env.wheel;
    }

    pub fn mask(env: *Tuple, legal: []u8) void {
        for (0..3) |k| {
            for (0..2) |on| legal[2 * k + on] = @intFromBool(k != env.stuck or on == env.lamps[k]);
            legal[6 + k] = @intFromBool(@as(i32, @intCast(k)) - 1 != env.barred);
        }
    }

    /// Shows the next panel already: what is seen at the end of an episode matters to nobody.
    pub fn step(env: *Tuple, rng: *rl.Rng, move: rl.Moves(action), seen: []f32, out: *rl.Result) void {
        var right: f32 = if (move.at("drive/gear")[0] == env.gear) 1 else 0;
        for (move.at("lamps"), env.lamps) |given, lamp| {
            if (given == lamp) right += 1;
        }
        const away = @abs(move.at("drive/wheel")[0] - env.wheel);
        out.reward = (right + (if (away < 1) 1 - away else 0)) / 5;
        out.terminated = true;
        env.reset(rng, seen);
    }
};

comptime {
    rl.environment(Tuple);
}
