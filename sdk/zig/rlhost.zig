//! Environments in Zig, over the object of sdk/c/rl_guest.c.
//!
//!     const rl = @import("rlhost");
//!
//!     const Walk = struct {                                             // the state of one environment
//!         position: i32 = 0,
//!
//!         pub const name = "walk@1";
//!         pub const action = rl.discrete(2);
//!         pub const obs = rl.box(f32, 0, 1, .{1});
//!
//!         pub fn init(config: rl.Config) rl.Error!Walk                  // once; read arguments
//!         pub fn reset(walk: *Walk, rng: *rl.Rng, seen: []f32) void     // write the first observation
//!         pub fn step(walk: *Walk, rng: *rl.Rng, move: []const i32, seen: []f32, out: *rl.Result) void
//!     };
//!
//!     comptime {
//!         rl.environment(Walk);
//!     }
//!
//! Several observations are a struct of spaces, `pub const obs = .{ .map = rl.box(u8, 0, 3, .{ 9, 9 }), .gold = rl.discrete(100) }`;
//! seen is then a rl.Rows(Walk.obs), and seen.at("gold") the elements of one. Several actions are the same. Of several agents,
//! `pub const agents = 4`, the rows lie one behind the other, and out is a slice of a result for each.
//!
//! With `pub const lanes = 8` the struct holds eight environments, each of which is an element of its arrays, a lane of vectors. Its
//! functions have the lane as their second parameter, and one more steps all of them where rows are packed:
//!
//!         pub fn steps(carts: *Carts, batch: rl.Batch(Carts)) void

const std = @import("std");
const c = @import("guest.zig");

/// What init returns after `fail`.
pub const Error = error{Refused};

/// What the pipeline gives under args. A key that nobody asks for is an error that names it.
pub const Config = struct {
    handle: *anyopaque,

    pub fn integer(config: Config, key: [:0]const u8, fallback: i64) i64 {
        return c.rl_guest_integer(config.handle, key, fallback);
    }
    pub fn number(config: Config, key: [:0]const u8, fallback: f64) f64 {
        return c.rl_guest_number(config.handle, key, fallback);
    }
    pub fn truth(config: Config, key: [:0]const u8, fallback: bool) bool {
        return c.rl_guest_truth(config.handle, key, fallback);
    }
    /// Valid during the call.
    pub fn text(config: Config, key: [:0]const u8, fallback: [:0]const u8) []const u8 {
        var len: u32 = 0;
        return c.rl_guest_text(config.handle, key, fallback, &len).?[0..len];
    }
};

/// The random stream of one environment (splitmix64), the same in every SDK.
pub const Rng = extern struct {
    state: u64,

    /// 64 random bits.
    pub inline fn next(rng: *Rng) u64 {
        rng.state +%= 0x9E3779B97F4A7C15;
        var z = rng.state;
        z = (z ^ (z >> 30)) *% 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27)) *% 0x94D049BB133111EB;
        return z ^ (z >> 31);
    }
    /// From low to high.
    pub inline fn uniform(rng: *Rng, low: f32, high: f32) f32 {
        const unit = @as(f32, @floatFromInt(@as(i32, @intCast(rng.next() >> 40)))) * 0x1p-24;
        return low + (high - low) * unit;
    }
    /// From 0 to n-1, or 0 if n is 0.
    pub inline fn below(rng: *Rng, n: u32) u32 {
        return @truncate(((rng.next() >> 32) * n) >> 32);
    }
};

/// What a step says besides its observation; it starts as zero. If both flags are set, terminated wins.
pub const Result = extern struct {
    reward: f32 = 0,
    terminated: bool = false,
    truncated: bool = false,
    /// With `pub const discounted = true`: of what follows, 0 to 1.
    discount: f32 = 0,
    /// The values of `pub const infos`, in their order.
    infos: [*]f32 = undefined,
};

/// What draw paints on: height rows of width pixels of three bytes, black at first. Places are in pixels from the upper left corner, with
/// fractions; colours are 0xRRGGBB. What lies outside is cut off.
pub const Picture = extern struct {
    rgb: [*]u8,
    width: i32,
    height: i32,

    pub fn rect(picture: *Picture, x: f32, y: f32, width: f32, height: f32, colour: u32) void {
        c.rl_guest_rect(picture, x, y, width, height, colour);
    }
    pub fn disc(picture: *Picture, x: f32, y: f32, radius: f32, colour: u32) void {
        c.rl_guest_disc(picture, x, y, radius, colour);
    }
    /// From one point to another.
    pub fn line(picture: *Picture, x: f32, y: f32, to_x: f32, to_y: f32, thick: f32, colour: u32) void {
        c.rl_guest_line(picture, x, y, to_x, to_y, thick, colour);
    }
};

/// The elements of an observation or an action.
pub const Space = struct {
    Element: type,
    kind: enum { box, discrete, multi_discrete, multi_binary, image },
    low: f32 = 0,
    high: f32 = 0,
    first: i32 = 0,
    numbers: []const u32, // shape of a box or image, values of a discrete space or of each element, elements of multi_binary
    scale: f32 = 0,

    /// What the host multiplies an element by where it enters a network.
    pub fn scaled(comptime space: Space, comptime factor: f32) Space {
        var other = space;
        other.scale = factor;
        return other;
    }
    /// The same space with another first value, if it is discrete.
    pub fn from(comptime space: Space, comptime first: i32) Space {
        var other = space;
        other.first = first;
        return other;
    }
    fn elements(comptime space: Space) usize {
        return switch (space.kind) {
            .box, .image => @reduce(.Mul, @as(@Vector(space.numbers.len, usize), space.numbers[0..space.numbers.len].*)),
            .discrete => 1,
            .multi_discrete => space.numbers.len,
            .multi_binary => space.numbers[0],
        };
    }
};

fn list(comptime numbers: anytype) []const u32 {
    const kept: [numbers.len]u32 = numbers;
    return &kept;
}

/// A tensor of u8, i8, i16, i32, i64 or f32, from low to high; equal bounds mean unbounded. That of an action is of f32.
pub fn box(comptime Element: type, comptime low: f32, comptime high: f32, comptime shape: anytype) Space {
    return .{ .Element = Element, .kind = .box, .low = low, .high = high, .numbers = list(shape) };
}
/// One i32 from 0 to values-1.
pub fn discrete(comptime values: u32) Space {
    return .{ .Element = i32, .kind = .discrete, .numbers = list(.{values}) };
}
/// Several, with so many values each.
pub fn multiDiscrete(comptime values: anytype) Space {
    return .{ .Element = i32, .kind = .multi_discrete, .numbers = list(values) };
}
/// n of 0 or 1.
pub fn multiBinary(comptime n: u32) Space {
    return .{ .Element = i32, .kind = .multi_binary, .numbers = list(.{n}) };
}
/// A picture of u8.
pub fn image(comptime height: u32, comptime width: u32, comptime channels: u32) Space {
    return .{ .Element = u8, .kind = .image, .numbers = list(.{ height, width, channels }) };
}

/// How the values of an info become one in an episode.
pub const Gather = enum(u32) { last, sum, mean, max, min };

/// An info: `pub const infos = .{ .score = rl.Gather.sum }` is told as out.infos[0].
/// An argument: `pub const args = .{ .length = rl.Arg{ .kind = .integer, .value = "8", .doc = "cells", .min = 2, .max = 1000 } }`.
pub const Arg = struct {
    kind: enum(u32) { integer = 1, number, truth, text, choice },
    value: [:0]const u8,
    doc: [:0]const u8 = "",
    min: f64 = 0,
    max: f64 = 0,
    choices: [:0]const u8 = "",
    affects_spaces: bool = false,
};

/// The rows of several observations: at("gold") has the elements of one, of("gold", k) those of agent k.
pub fn Rows(comptime spaces: anytype) type {
    return Named(spaces, false);
}
/// The same of several actions.
pub fn Moves(comptime spaces: anytype) type {
    return Named(spaces, true);
}

fn Named(comptime spaces: anytype, comptime read_only: bool) type {
    return struct {
        rows: [*]const *anyopaque,

        fn Elements(comptime field: []const u8) type {
            const Element = @field(spaces, field).Element;
            return if (read_only) []const Element else []Element;
        }
        pub inline fn at(all: @This(), comptime field: []const u8) Elements(field) {
            return all.of(field, 0);
        }
        pub inline fn of(all: @This(), comptime field: []const u8, k: usize) Elements(field) {
            const n = comptime @field(spaces, field).elements();
            return slice(@field(spaces, field), all.rows[comptime place(spaces, field)], k + 1)[k * n ..][0..n];
        }
    };
}

fn place(comptime spaces: anytype, comptime field: []const u8) usize {
    return std.meta.fieldIndex(@TypeOf(spaces), field) orelse @compileError("no space has the name " ++ field);
}

inline fn slice(comptime space: Space, row: *anyopaque, agents: usize) []space.Element {
    return @as([*]space.Element, @ptrCast(@alignCast(row)))[0 .. space.elements() * agents];
}

/// The elements of one row.
pub fn Row(comptime space: Space) type {
    return [space.elements()]space.Element;
}

/// What steps reads and writes, see the top: element k is of lane k. It writes all of seen, reward, terminated and truncated.
pub fn Batch(comptime Env: type) type {
    return struct {
        rng: *[Env.lanes]Rng,
        moves: *const [Env.lanes]Row(Env.action),
        seen: *[Env.lanes]Row(Env.obs),
        reward: *[Env.lanes]f32,
        terminated: *[Env.lanes]u8, // 0 or 1
        truncated: *[Env.lanes]u8,
    };
}

/// The same pointer, of which the compiler knows nothing: offsets from it stay constant, and a check of the highest one is enough.
inline fn hidden(pointer: anytype) @TypeOf(pointer) {
    return asm (""
        : [out] "=r" (-> @TypeOf(pointer)),
        : [in] "0" (pointer),
    );
}

/// Sets the text that the host shows, for init to return the error.
pub fn fail(text: []const u8) Error {
    _ = c.rl_guest_fail(text.ptr, text.len);
    return Error.Refused;
}

/// In a step with `pub const respawn = true`: what seen, as step has it, shows of agent k is its last observation. Its new life is written over it.
pub fn last(k: u32, seen: anytype) void {
    if (@hasField(@TypeOf(seen), "rows")) return c.rl_guest_last(k, seen.rows);
    const row = [1]*anyopaque{@ptrCast(seen.ptr)};
    c.rl_guest_last(k, &row);
}

/// In reset, number k of `pub const reset_infos` of the episode that begins; one that is not told is 0.
pub const tell = c.rl_guest_tell;

/// Reset parameter k, see `pub const params`; NaN where nobody gives it.
pub fn param(k: u32) f32 {
    return c.rl_guest_param(k);
}

/// Sends a line to the host's log; the pipeline must grant "log".
pub fn log(level: enum(u32) { debug, info, warning, err }, text: [:0]const u8) void {
    c.rl_guest_log(@backingInt(level), text);
}

/// For the root file, `pub const panic = rl.panic;`: a panic's text reaches the host, which shows the lines of a module with names.
pub const panic = std.debug.FullPanic(struct {
    fn die(text: []const u8, _: ?usize) noreturn {
        c.rl_guest_die(text.ptr, text.len, null, 0, 0);
    }
}.die);

/// In `pub fn describe(config)`, where limits depend on arguments: steps after which the environment itself truncates.
pub const limit = c.rl_guest_limit;

/// Mathematics with the same bits on every machine.
pub const sin = c.rl_guest_sin;
pub const cos = c.rl_guest_cos;
pub const tan = c.rl_guest_tan;
pub const atan2 = c.rl_guest_atan2;
pub const exp = c.rl_guest_exp;
pub const ln = c.rl_guest_ln;
pub const pow = c.rl_guest_pow;
pub const tanh = c.rl_guest_tanh;

// What made the module, for the words of messages: an export, which the linker makes of no function of Zig's by itself.
comptime {
    asm (
        \\.section .text.rl_sdk_zig,"",@
        \\.globl rl_sdk_zig
        \\rl_sdk_zig:
        \\.functype rl_sdk_zig () -> ()
        \\end_function
        \\.export_name rl_sdk_zig, rl_sdk_zig
    );
}

/// Makes the module's environment of a struct. Further declarations, all optional: agents, agent_names (one a line), apart (each agent
/// ends by its own result), respawn (and begins anew at once, see `last`), limit, max_envs, dt (seconds in a step), infos, reset_infos
/// (names, see `tell`), keys (actions of a person who plays, one a line: "left=0\nright=1"), args, params (how many), discounted, lanes (see the top); the functions describe(config), mask(self, []u8),
/// active(self, []u8), render(self, []u8) usize, draw(self, *rl.Picture) with `pub const picture = .{ .width = 60, .height = 40, .fps = 30 }`,
/// drop(self), and save(self, []u8), load(self, []const u8) bool with save_bytes and state_version: without them its bytes are saved, so that
/// it must hold no pointers. With lanes it is then not saved.
/// In `zig test` it makes nothing: tests call reset and step of the struct.
pub fn environment(comptime Env: type) void {
    if (@import("builtin").is_test) return;
    const Made = Guest(Env);
    @export(&Made.describe, .{ .name = "rl_guest_describe" });
}

fn Guest(comptime Env: type) type {
    return struct {
        const agents: usize = if (@hasDecl(Env, "agents")) Env.agents else 1;
        const several_obs = @TypeOf(Env.obs) != Space;
        const several_actions = @TypeOf(Env.action) != Space;
        const lanes: usize = if (@hasDecl(Env, "lanes")) Env.lanes else 1;

        fn describe(config: *anyopaque) callconv(.c) bool {
            c.rl_guest_env(Env.name, @sizeOf(Env), setup, reset, step);
            spaces(0, Env.obs);
            spaces(1, Env.action);
            inline for (.{ "limit", "max_envs", "dt", "lanes", "agent_names", "keys", "params" }) |name|
                if (@hasDecl(Env, name)) @field(c, "rl_guest_" ++ name)(@field(Env, name));
            if (@hasDecl(Env, "reset_infos")) inline for (Env.reset_infos) |info| c.rl_guest_reset_info(info);
            if (agents > 1) c.rl_guest_agents(agents, if (@hasDecl(Env, "respawn") and Env.respawn) 2 else @intFromBool(@hasDecl(Env, "apart") and Env.apart));
            if (@hasDecl(Env, "discounted") and Env.discounted) c.rl_guest_discount();
            if (@hasDecl(Env, "infos")) inline for (comptime std.meta.fieldNames(@TypeOf(Env.infos))) |field|
                c.rl_guest_info(field, @backingInt(@field(Env.infos, field)));
            if (@hasDecl(Env, "args")) inline for (comptime std.meta.fieldNames(@TypeOf(Env.args))) |field| {
                const a: Arg = @field(Env.args, field);
                c.rl_guest_argument(field, @backingInt(a.kind), a.value, a.doc, a.min, a.max, a.choices, a.affects_spaces);
            };
            inline for (.{ "mask", "active", "render", "drop" }) |name|
                if (@hasDecl(Env, name)) @field(c, "rl_guest_use_" ++ name)(@field(@This(), name));
            if (@hasDecl(Env, "draw")) c.rl_guest_use_draw(Env.picture.width, Env.picture.height, Env.picture.fps, draw);
            if (@hasDecl(Env, "save")) c.rl_guest_use_save(if (@hasDecl(Env, "state_version")) Env.state_version else 0, Env.save_bytes, save, load);
            if (!several_obs and !several_actions and agents == 1) c.rl_guest_use_many(many);
            if (@hasDecl(Env, "describe")) Env.describe(.{ .handle = config });
            return true;
        }

        fn spaces(part: u32, comptime given: anytype) void {
            if (@TypeOf(given) == Space) return declare(part, null, given);
            inline for (comptime std.meta.fieldNames(@TypeOf(given))) |field| declare(part, field, @field(given, field));
        }

        fn declare(part: u32, field: ?[*:0]const u8, comptime s: Space) void {
            const n: u32 = s.numbers.len;
            const row = switch (s.kind) {
                .box => c.rl_guest_box(part, field, code(s.Element), s.low, s.high, n, s.numbers.ptr),
                .discrete => c.rl_guest_discrete(part, field, s.first, s.numbers[0]),
                .multi_discrete => c.rl_guest_multi_discrete(part, field, n, s.numbers.ptr),
                .multi_binary => c.rl_guest_multi_binary(part, field, s.numbers[0]),
                .image => c.rl_guest_image(part, field, s.numbers[0], s.numbers[1], s.numbers[2]),
            };
            if (s.scale != 0) c.rl_guest_scale(part, row, s.scale);
        }

        fn code(comptime Element: type) u32 {
            const name = comptime [1]u8{std.ascii.toUpper(@typeName(Element)[0])} ++ @typeName(Element)[1..];
            return if (@hasDecl(c.types, name)) @field(c.types, name) else @compileError("elements are of u8, i8, i16, i32, i64 or f32");
        }

        inline fn self(env: *anyopaque) *Env {
            return @ptrCast(@alignCast(env));
        }
        /// Calls a function of the author's for one environment.
        inline fn call(comptime function: []const u8, env: *anyopaque, given: anytype) @typeInfo(@TypeOf(@field(Env, function))).@"fn".return_type.? {
            const own = if (lanes == 1) .{self(env)} else .{ self(env), @as(usize, c.rl_guest_lane()) };
            return @call(.auto, @field(Env, function), own ++ given);
        }
        inline fn seen(rows: [*]const *anyopaque) if (several_obs) Rows(Env.obs) else []Env.obs.Element {
            return if (several_obs) .{ .rows = rows } else slice(Env.obs, rows[0], agents);
        }
        inline fn moves(rows: [*]const *anyopaque) if (several_actions) Moves(Env.action) else []const Env.action.Element {
            return if (several_actions) .{ .rows = rows } else slice(Env.action, rows[0], agents);
        }

        fn setup(env: *anyopaque, config: *anyopaque) callconv(.c) bool {
            const made = Env.init(.{ .handle = config }) catch return false;
            if (lanes == 1 or c.rl_guest_lane() == 0) self(env).* = made;
            return true;
        }
        fn reset(env: *anyopaque, rng: *Rng, obs: [*]const *anyopaque) callconv(.c) void {
            call("reset", env, .{ rng, seen(obs) });
        }
        fn step(env: *anyopaque, rng: *Rng, action: [*]const *anyopaque, obs: [*]const *anyopaque, out: [*]Result) callconv(.c) void {
            call("step", env, .{ rng, moves(action), seen(obs), if (agents > 1) out[0..agents] else &out[0] });
        }
        fn many(env: *anyopaque, count: u32, rows: *const c.Many) callconv(.c) void {
            const r = rows.*; // what a step writes cannot change it
            const all: [*]Env = @ptrCast(@alignCast(env));
            const wide = (lanes > 1 or (@sizeOf(Env) <= small and @sizeOf(Row(Env.obs)) <= small)) and isPacked(&r);
            const before = (lanes - r.index % lanes) % lanes; // in a memory that is not stepped whole
            var i: usize = 0;
            while (i < count and (!wide or i < before)) : (i += 1) one(all, i, &r);
            if (!wide) return;
            i += groups(all, i, (count - i) / group, &r);
            while (i < count) : (i += 1) one(all, i, &r);
        }
        /// Steps so many groups, from environment i on, and returns of how many environments.
        noinline fn groups(all: [*]Env, i: usize, n: usize, r: *const c.Many) usize {
            const from: [*]Env = if (lanes > 1) all + (r.index % lanes + i) / lanes else all + i;
            for (0..n) |k| if (lanes > 1) vector(&from[k], i + k * group, r) else grouped(from + k * group, i + k * group, r);
            return n * group;
        }
        /// Environments and rows of at most so many bytes are stepped in groups: their bytes fit into registers, and addresses are
        /// checked once a group.
        const small = 64;
        const group: usize = if (lanes > 1) lanes else 8;

        fn isPacked(r: *const c.Many) bool {
            return r.next_action == @sizeOf(Row(Env.action)) and r.next_obs == @sizeOf(Row(Env.obs)) and r.next_reward == 4 and
                r.next_terminated == 1 and r.next_truncated == 1;
        }
        /// The rows from environment i on, which are packed.
        inline fn rowsFrom(comptime T: type, rows: anytype, i: usize) *[group]T {
            return @ptrCast(@alignCast(hidden(rows + i * @sizeOf(T))));
        }
        inline fn vector(env: *Env, i: usize, r: *const c.Many) void {
            r.current.* = r.index + i;
            Env.steps(hidden(env), .{
                .rng = r.rng[i..][0..lanes],
                .moves = rowsFrom(Row(Env.action), r.action, i),
                .seen = rowsFrom(Row(Env.obs), r.obs, i),
                .reward = rowsFrom(f32, r.reward, i),
                .terminated = rowsFrom(u8, r.terminated, i),
                .truncated = rowsFrom(u8, r.truncated, i),
            });
        }
        inline fn grouped(all: [*]Env, i: usize, r: *const c.Many) void {
            const here = hidden(all);
            const move = rowsFrom(Row(Env.action), r.action, i);
            const obs = rowsFrom(Row(Env.obs), r.obs, i);
            var reward: [group]f32 = undefined;
            var terminated: [group]bool = undefined;
            var truncated: [group]bool = undefined;
            inline for (0..group) |back| {
                const k = group - 1 - back;
                var own = here[k];
                var out: Result = .{};
                r.current.* = r.index + i + k;
                @call(.always_inline, Env.step, .{ &own, &r.rng[i + k], &move[k], &obs[k], &out });
                here[k] = own;
                reward[k] = out.reward;
                terminated[k] = out.terminated;
                truncated[k] = out.truncated;
            }
            rowsFrom(f32, r.reward, i).* = reward;
            rowsFrom(bool, r.terminated, i).* = terminated;
            rowsFrom(bool, r.truncated, i).* = truncated;
        }
        fn one(all: [*]Env, i: usize, r: *const c.Many) void {
            var out: Result = .{};
            r.current.* = r.index + i;
            const at = r.index % lanes + i;
            const own = if (lanes == 1) .{&all[i]} else .{ &all[at / lanes], at % lanes };
            const move: []const Env.action.Element = slice(Env.action, r.action + i * r.next_action, 1);
            @call(.auto, Env.step, own ++ .{ &r.rng[i], move, slice(Env.obs, r.obs + i * r.next_obs, 1), &out });
            @as(*align(1) f32, @ptrCast(r.reward + i * r.next_reward)).* = out.reward;
            r.terminated[i * r.next_terminated] = @intFromBool(out.terminated);
            r.truncated[i * r.next_truncated] = @intFromBool(out.truncated);
        }
        fn drop(env: *anyopaque) callconv(.c) void {
            call("drop", env, .{});
        }
        fn mask(env: *anyopaque, legal: [*]u8) callconv(.c) void {
            call("mask", env, .{legal[0 .. agents * choices()]});
        }
        fn choices() usize {
            if (!several_actions) return values(Env.action);
            var n: usize = 0;
            inline for (comptime std.meta.fieldNames(@TypeOf(Env.action))) |field| n += values(@field(Env.action, field));
            return n;
        }
        fn values(comptime s: Space) usize {
            return switch (s.kind) {
                .box, .image => 0,
                .multi_binary => 2 * s.numbers[0],
                .discrete, .multi_discrete => @reduce(.Add, @as(@Vector(s.numbers.len, usize), s.numbers[0..s.numbers.len].*)),
            };
        }
        fn active(env: *anyopaque, acts: [*]u8) callconv(.c) void {
            call("active", env, .{acts[0..agents]});
        }
        fn render(env: *anyopaque, to: [*]u8, cap: u32) callconv(.c) u32 {
            return call("render", env, .{to[0..cap]});
        }
        fn draw(env: *anyopaque, to: *Picture) callconv(.c) void {
            call("draw", env, .{to});
        }
        fn save(env: *anyopaque, to: [*]u8) callconv(.c) void {
            call("save", env, .{to[0..Env.save_bytes]});
        }
        fn load(env: *anyopaque, from: ?[*]const u8) callconv(.c) bool {
            return call("load", env, .{from.?[0..Env.save_bytes]});
        }
    };
}
