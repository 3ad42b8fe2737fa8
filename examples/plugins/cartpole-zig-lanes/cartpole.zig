//! CartPole-v1 as cartpole-zig, with eight environments in the lanes of vectors. Every operation is written once, for one lane and for all,
//! and is a single IEEE operation in the order that the other languages share, so that the same seeds give the same bits in all of them.
const rl = @import("rlhost");

// Gymnasium's constants: gravity 9.8, cart 1.0, pole 0.1, half length 0.5, force 10, 0.02 s a step. Masses and
// lengths occur folded into these, each rounded once.
const gravity: f32 = 9.8;
const left_bits: u32 = 0xc111745d; // -10 / 1.1, force over total mass; action 1 turns the sign
const pole_ratio: f32 = 0.045454547; // pole mass times half length, over total mass
const length_full: f32 = 0.6666667; // half length times 4/3
const tau: f32 = 0.02;
const x_limit: f32 = 2.4;
const theta_limit: f32 = 0.20943951; // 12 degrees

// Coefficients of sine and cosine, each rounded once.
const s3: f32 = -1.0 / 6.0;
const s5: f32 = 1.0 / 120.0;
const s7: f32 = -1.0 / 5040.0;
const c2: f32 = -0.5;
const c4: f32 = 1.0 / 24.0;
const c6: f32 = -1.0 / 720.0;

/// The equations, for n environments at once.
fn Physics(comptime n: usize) type {
    return struct {
        const F = @Vector(n, f32);
        const U = @Vector(n, u32);
        const State = struct { x: F, x_dot: F, theta: F, theta_dot: F };

        fn all(value: f32) F {
            return @splat(value);
        }

        fn advance(old: State, move: U) State {
            const force: F = @bitCast(move << @splat(31) ^ @as(U, @splat(left_bits)));
            const square = old.theta * old.theta;
            const sine = old.theta * (all(1) + square * (all(s3) + square * (all(s5) + square * all(s7))));
            const cosine = all(1) + square * (all(c2) + square * (all(c4) + square * all(c6)));
            const push = force + all(pole_ratio) * (old.theta_dot * old.theta_dot) * sine;
            const theta_acc = (all(gravity) * sine - cosine * push) / (all(length_full) - all(pole_ratio) * (cosine * cosine));
            const x_acc = push - all(pole_ratio) * (theta_acc * cosine);
            return .{
                .x = old.x + all(tau) * old.x_dot,
                .x_dot = old.x_dot + all(tau) * x_acc,
                .theta = old.theta + all(tau) * old.theta_dot,
                .theta_dot = old.theta_dot + all(tau) * theta_acc,
            };
        }

        /// 1 for each that is out of bounds, which a state that is not a number is, too.
        fn fallen(state: State) U {
            const stands = @select(u32, @abs(state.x) <= all(x_limit), @as(U, @splat(1)), @as(U, @splat(0)));
            return @select(u32, @abs(state.theta) <= all(theta_limit), stands, @as(U, @splat(0))) ^ @as(U, @splat(1));
        }
    };
}

const CartPoles = struct {
    x: [lanes]f32 align(16) = @splat(0),
    x_dot: [lanes]f32 = @splat(0),
    theta: [lanes]f32 = @splat(0),
    theta_dot: [lanes]f32 = @splat(0),
    count: [lanes]u32 = @splat(0), // steps of the episode
    max_steps: u32,

    pub const lanes = 8;

    pub const name = "cartpole@1";
    pub const action = rl.discrete(2);
    pub const obs = rl.box(f32, 0, 0, .{4});
    pub const args = .{
        .max_steps = rl.Arg{ .kind = .integer, .value = "500", .doc = "steps after which an episode is truncated", .min = 1, .max = 0x7fffffff },
    };

    pub fn describe(config: rl.Config) void {
        rl.limit(@truncate(@as(u64, @bitCast(config.integer("max_steps", 500)))));
    }

    pub fn init(config: rl.Config) rl.Error!CartPoles {
        const limit = config.integer("max_steps", 500);
        if (limit < 1 or limit > 0x7fffffff) return rl.fail("max_steps must be 1 to 2147483647");
        return .{ .max_steps = @intCast(limit) };
    }

    fn look(carts: *const CartPoles, lane: usize) [4]f32 {
        return .{ carts.x[lane], carts.x_dot[lane], carts.theta[lane], carts.theta_dot[lane] };
    }

    pub fn reset(carts: *CartPoles, lane: usize, rng: *rl.Rng, seen: []f32) void {
        carts.x[lane] = rng.uniform(-0.05, 0.05);
        carts.x_dot[lane] = rng.uniform(-0.05, 0.05);
        carts.theta[lane] = rng.uniform(-0.05, 0.05);
        carts.theta_dot[lane] = rng.uniform(-0.05, 0.05);
        carts.count[lane] = 0;
        @memcpy(seen, &carts.look(lane));
    }

    pub fn step(carts: *CartPoles, lane: usize, _: *rl.Rng, move: []const i32, seen: []f32, out: *rl.Result) void {
        const s = carts.look(lane);
        const one = Physics(1);
        const next = one.advance(.{ .x = .{s[0]}, .x_dot = .{s[1]}, .theta = .{s[2]}, .theta_dot = .{s[3]} }, .{@bitCast(move[0])});
        carts.x[lane] = next.x[0];
        carts.x_dot[lane] = next.x_dot[0];
        carts.theta[lane] = next.theta[0];
        carts.theta_dot[lane] = next.theta_dot[0];
        carts.count[lane] += 1;
        @memcpy(seen, &carts.look(lane));
        out.reward = 1;
        out.terminated = one.fallen(next)[0] != 0;
        out.truncated = carts.count[lane] >= carts.max_steps;
    }

    pub fn steps(carts: *CartPoles, batch: rl.Batch(CartPoles)) void {
        const high = carts.half(4, batch); // first, so that one check of an address is enough
        const low = carts.half(0, batch);
        batch.terminated.* = joined(low.fallen, high.fallen);
        batch.truncated.* = joined(low.late, high.late);
    }

    /// Steps lanes k to k+3.
    inline fn half(carts: *CartPoles, comptime k: usize, batch: rl.Batch(CartPoles)) struct { fallen: @Vector(4, u32), late: @Vector(4, u32) } {
        const few = Physics(4);
        const count = @as(few.U, carts.count[k..][0..4].*) + @as(few.U, @splat(1));
        const old: few.State = .{
            .theta_dot = carts.theta_dot[k..][0..4].*,
            .theta = carts.theta[k..][0..4].*,
            .x_dot = carts.x_dot[k..][0..4].*,
            .x = carts.x[k..][0..4].*,
        };
        const next = few.advance(old, @bitCast(batch.moves[k..][0..4].*));
        carts.count[k..][0..4].* = count;
        carts.theta_dot[k..][0..4].* = next.theta_dot;
        carts.theta[k..][0..4].* = next.theta;
        carts.x_dot[k..][0..4].* = next.x_dot;
        carts.x[k..][0..4].* = next.x;
        const rows = transposed(.{ next.x, next.x_dot, next.theta, next.theta_dot });
        inline for (.{ 3, 2, 1, 0 }) |row| batch.seen[k + row] = rows[row];
        batch.reward[k..][0..4].* = @splat(1);
        const limit: few.U = @splat(carts.max_steps);
        return .{ .fallen = few.fallen(next), .late = @select(u32, count >= limit, @as(few.U, @splat(1)), @as(few.U, @splat(0))) };
    }

    /// State (f32) and steps (u32); the SDK adds flags (u32) and random stream (u64).
    pub const save_bytes = 20;

    pub fn save(carts: *CartPoles, lane: usize, to: []u8) void {
        @memcpy(to[0..16], @as(*const [16]u8, @ptrCast(&carts.look(lane))));
        @memcpy(to[16..20], @as(*const [4]u8, @ptrCast(&carts.count[lane])));
    }

    pub fn load(carts: *CartPoles, lane: usize, from: []const u8) bool {
        const count: u32 = @bitCast(from[16..20].*);
        if (count > carts.max_steps) return false;
        const state: [4]f32 = @bitCast(from[0..16].*);
        carts.x[lane], carts.x_dot[lane], carts.theta[lane], carts.theta_dot[lane] = state;
        carts.count[lane] = count;
        return true;
    }
};

/// The same vector, of which the compiler knows nothing: what it knows of shuffles it would take apart.
inline fn hidden(vector: anytype) @TypeOf(vector) {
    return asm (""
        : [out] "=r" (-> @TypeOf(vector)),
        : [in] "0" (vector),
    );
}

/// The lowest byte of each.
inline fn joined(low: @Vector(4, u32), high: @Vector(4, u32)) [8]u8 {
    const bytes = [16]i32{ 0, 4, 8, 12, -1, -5, -9, -13, 0, 4, 8, 12, -1, -5, -9, -13 };
    const all = @shuffle(u8, @as(@Vector(16, u8), @bitCast(low)), @as(@Vector(16, u8), @bitCast(high)), bytes);
    return @bitCast(@as(@Vector(2, u64), @bitCast(hidden(all)))[0]);
}

/// Four columns as four rows.
inline fn transposed(columns: [4]@Vector(4, f32)) [4]@Vector(4, f32) {
    const low = [4]i32{ 0, -1, 1, -2 };
    const high = [4]i32{ 2, -3, 3, -4 };
    const ab = hidden(@shuffle(f32, columns[0], columns[1], low));
    const ab2 = hidden(@shuffle(f32, columns[0], columns[1], high));
    const cd = hidden(@shuffle(f32, columns[2], columns[3], low));
    const cd2 = hidden(@shuffle(f32, columns[2], columns[3], high));
    const first = [4]i32{ 0, 1, -1, -2 };
    const second = [4]i32{ 2, 3, -3, -4 };
    return .{ @shuffle(f32, ab, cd, first), @shuffle(f32, ab, cd, second), @shuffle(f32, ab2, cd2, first), @shuffle(f32, ab2, cd2, second) };
}

comptime {
    rl.environment(CartPoles);
}
