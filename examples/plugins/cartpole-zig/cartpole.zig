//! CartPole-v1 with Gymnasium's equations in float32. Every operation is a single IEEE operation in the order that the other
//! languages share, so that the same seeds give the same bits in all of them.
const rl = @import("rlhost");

// Gymnasium's constants: gravity 9.8, cart 1.0, pole 0.1, half length 0.5, force 10, 0.02 s a step. Masses and
// lengths occur folded into these, each rounded once.
const gravity: f32 = 9.8;
const left_bits: u32 = 0xc111745d; // -10 / 1.1, force over total mass; action 1 turns the sign
const pole_ratio: f32 = 0.045454547; // pole mass times half length, over total mass
const length_full: f32 = 0.6666667; // half length times 4/3
const tau: f32 = 0.02;
const x_limit_bits: u32 = 0x4019999a; // 2.4
const theta_limit_bits: u32 = 0x3e567750; // 12 degrees
const abs_bits: u32 = 0x7fffffff;

// Coefficients of sine and cosine, each rounded once.
const s3: f32 = -1.0 / 6.0;
const s5: f32 = 1.0 / 120.0;
const s7: f32 = -1.0 / 5040.0;
const c2: f32 = -0.5;
const c4: f32 = 1.0 / 24.0;
const c6: f32 = -1.0 / 720.0;

const CartPole = struct {
    state: [4]f32 = @splat(0), // x, x_dot, theta, theta_dot
    steps: u32 = 0,
    max_steps: u32,

    pub const name = "cartpole@1";
    pub const action = rl.discrete(2);
    pub const obs = rl.box(f32, 0, 0, .{4});
    pub const args = .{
        .max_steps = rl.Arg{ .kind = .integer, .value = "500", .doc = "steps after which an episode is truncated", .min = 1, .max = 0x7fffffff },
    };

    pub fn describe(config: rl.Config) void {
        rl.limit(@truncate(@as(u64, @bitCast(config.integer("max_steps", 500)))));
    }

    pub fn init(config: rl.Config) rl.Error!CartPole {
        const limit = config.integer("max_steps", 500);
        if (limit < 1 or limit > 0x7fffffff) return rl.fail("max_steps must be 1 to 2147483647");
        return .{ .max_steps = @intCast(limit) };
    }

    pub fn reset(env: *CartPole, rng: *rl.Rng, seen: []f32) void {
        for (&env.state) |*value| value.* = rng.uniform(-0.05, 0.05);
        env.steps = 0;
        @memcpy(seen, &env.state);
    }

    pub fn step(env: *CartPole, _: *rl.Rng, move: []const i32, seen: []f32, out: *rl.Result) void {
        const x_dot = env.state[1];
        const theta_dot = env.state[3];
        const force: f32 = @bitCast(@as(u32, @bitCast(move[0])) << 31 ^ left_bits);
        const square = env.state[2] * env.state[2];
        const sine = env.state[2] * (1 + square * (s3 + square * (s5 + square * s7)));
        const cosine = 1 + square * (c2 + square * (c4 + square * c6));
        const push = force + pole_ratio * (theta_dot * theta_dot) * sine;
        const theta_acc = (gravity * sine - cosine * push) / (length_full - pole_ratio * (cosine * cosine));
        const x_acc = push - pole_ratio * (theta_acc * cosine);
        const x = env.state[0] + tau * x_dot;
        const theta = env.state[2] + tau * theta_dot;
        env.state = .{ x, x_dot + tau * x_acc, theta, theta_dot + tau * theta_acc };
        env.steps += 1;
        @memcpy(seen, &env.state);
        out.reward = 1;
        // A state that is not a number has large bits, so it also ends its episode.
        out.terminated = @as(u32, @bitCast(x)) & abs_bits > x_limit_bits or @as(u32, @bitCast(theta)) & abs_bits > theta_limit_bits;
        out.truncated = env.steps >= env.max_steps;
    }

    /// State (f32) and steps (u32); the SDK adds flags (u32) and random stream (u64).
    pub const save_bytes = 20;

    pub fn save(env: *CartPole, to: []u8) void {
        @memcpy(to[0..16], @as(*const [16]u8, @ptrCast(&env.state)));
        @memcpy(to[16..20], @as(*const [4]u8, @ptrCast(&env.steps)));
    }

    pub fn load(env: *CartPole, from: []const u8) bool {
        const steps: u32 = @bitCast(from[16..20].*);
        if (steps > env.max_steps) return false;
        env.state = @bitCast(from[0..16].*);
        env.steps = steps;
        return true;
    }
};

comptime {
    rl.environment(CartPole);
}
