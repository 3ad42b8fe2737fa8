//! Spaces, as sanity-c/spaces.c: a Dict of three observations.
const rl = @import("rlhost");

const Spaces = extern struct {
    answer: [3]i32 = @splat(0),

    pub const name = "spaces@1";
    pub const action = rl.multiDiscrete(.{ 2, 2, 3 });
    pub const obs = .{ .picture = rl.image(5, 5, 1), .@"notes/numbers" = rl.box(i8, -10, 10, .{5}), .@"notes/clue" = rl.discrete(3) };
    pub const limit = 1;

    pub fn init(_: rl.Config) rl.Error!Spaces {
        return .{};
    }

    pub fn reset(env: *Spaces, rng: *rl.Rng, seen: rl.Rows(obs)) void {
        var white: i32 = 0;
        var sum: i32 = 0;
        var bits = rng.next();
        for (seen.at("picture")) |*pixel| {
            pixel.* = if (bits & 1 == 1) 255 else 0;
            white += @intCast(bits & 1);
            bits >>= 1;
        }
        for (seen.at("notes/numbers")) |*number| {
            number.* = @intCast(@as(i32, @intCast(rng.below(21))) - 10);
            sum += number.*;
        }
        const clue: i32 = @intCast(rng.below(3));
        seen.at("notes/clue")[0] = clue;
        env.answer = .{ @intFromBool(white > 12), @intFromBool(sum > 0), clue };
    }

    /// Shows the next questions already: what is seen at the end of an episode matters to nobody.
    pub fn step(env: *Spaces, rng: *rl.Rng, move: []const i32, seen: rl.Rows(obs), out: *rl.Result) void {
        var right: f32 = 0;
        for (move, env.answer) |given, answer| {
            if (given == answer) right += 1;
        }
        out.reward = right / 3;
        out.terminated = true;
        env.reset(rng, seen);
    }
};

comptime {
    rl.environment(Spaces);
}
