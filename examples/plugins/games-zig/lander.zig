//! Lander, as lander-c: sines and cosines of rl_math.h.
const rl = @import("rlhost");

const Lander = extern struct {
    x: f64 = 0,
    y: f64 = 0,
    vx: f64 = 0,
    vy: f64 = 0,
    angle: f64 = 0,
    turn: f64 = 0,
    steps: i32 = 0,

    pub const name = "lander@1";
    pub const action = rl.discrete(4);
    pub const obs = rl.box(f32, 0, 0, .{6});
    pub const limit = 300;
    pub const picture = .{ .width = 60, .height = 40, .fps = 30 };

    pub fn init(_: rl.Config) rl.Error!Lander {
        return .{};
    }

    fn look(env: *const Lander, seen: []f32) void {
        for (seen, [_]f64{ env.x, env.y, env.vx, env.vy, env.angle, env.turn }) |*to, value| to.* = @floatCast(value);
    }

    pub fn reset(env: *Lander, rng: *rl.Rng, seen: []f32) void {
        env.x = rng.uniform(-0.5, 0.5);
        env.y = 1;
        env.vx = rng.uniform(-0.02, 0.02);
        env.vy = 0;
        env.angle = rng.uniform(-0.3, 0.3);
        env.turn = 0;
        env.steps = 0;
        env.look(seen);
    }

    pub fn step(env: *Lander, _: *rl.Rng, move: []const i32, seen: []f32, out: *rl.Result) void {
        const main: f64 = if (move[0] == 2) 0.004 else 0;
        const side: f64 = if (move[0] == 1) 0.01 else if (move[0] == 3) -0.01 else 0;
        env.vx = env.vx - main * rl.sin(env.angle);
        env.vy = env.vy + main * rl.cos(env.angle) - 0.0015;
        env.turn = env.turn + side;
        env.x = env.x + env.vx;
        env.y = env.y + env.vy;
        env.angle = env.angle + env.turn;
        env.steps += 1;
        env.look(seen);
        const down = env.y <= 0;
        const lost = @abs(env.x) > 1.5 or env.y > 2 or @abs(env.angle) > 3;
        const soft = env.vy > -0.04 and @abs(env.angle) < 0.3 and @abs(env.x) < 0.4;
        out.reward = if (down and soft) 1 else if (down or lost) -1 else if (move[0] != 0) -0.001 else 0;
        out.terminated = down or lost;
        out.truncated = env.steps >= 300;
    }

    pub fn draw(env: *const Lander, p: *rl.Picture) void {
        p.rect(0, 0, 60, 40, 0x101820);
        p.rect(22, 38, 16, 2, 0x808080);
        p.disc(30 + @as(f32, @floatCast(env.x)) * 20, 36 - @as(f32, @floatCast(env.y)) * 16, 2.5, 0xffcc00);
    }
};

comptime {
    rl.environment(Lander);
}
