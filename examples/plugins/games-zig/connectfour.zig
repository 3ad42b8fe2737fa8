//! Connect Four, as connectfour-c: two agents that act in turn.
const rl = @import("rlhost");

const columns = 7;
const rows = 6;
const cells = columns * rows;

const Game = extern struct {
    stones: [2][cells]u8 = @splat(@splat(0)), // 1 where the player has one; row 0 is the lowest
    height: [columns]u8 = @splat(0),
    turn: u8 = 0,
    count: u8 = 0,

    pub const name = "connectfour@1";
    pub const action = rl.discrete(columns);
    pub const obs = rl.box(f32, 0, 1, .{ 2, rows, columns });
    pub const agents = 2;
    pub const limit = cells;

    pub fn init(_: rl.Config) rl.Error!Game {
        return .{};
    }

    fn look(env: *const Game, seen: []f32) void {
        for (0..2) |k| {
            for (0..2) |side| {
                for (env.stones[k ^ side], 0..) |stone, i| seen[(2 * k + side) * cells + i] = @floatFromInt(stone);
            }
        }
    }

    pub fn reset(env: *Game, rng: *rl.Rng, seen: []f32) void {
        env.* = .{ .turn = @intCast(rng.below(2)) }; // the first player has the better game
        env.look(seen);
    }

    /// Counts the player's stones from a cell on in one direction, that cell left out.
    fn run(stones: *const [cells]u8, column: i32, row: i32, dc: i32, dr: i32) i32 {
        var n: i32 = 0;
        var c = column + dc;
        var r = row + dr;
        while (c >= 0 and c < columns and r >= 0 and r < rows and stones[@intCast(r * columns + c)] == 1) {
            n += 1;
            c += dc;
            r += dr;
        }
        return n;
    }

    fn wins(stones: *const [cells]u8, column: i32, row: i32) bool {
        for ([_][2]i32{ .{ 1, 0 }, .{ 0, 1 }, .{ 1, 1 }, .{ 1, -1 } }) |d| {
            if (run(stones, column, row, d[0], d[1]) + run(stones, column, row, -d[0], -d[1]) >= 3) return true;
        }
        return false;
    }

    pub fn step(env: *Game, _: *rl.Rng, move: []const i32, seen: []f32, out: []rl.Result) void {
        const k = env.turn;
        const column: usize = @intCast(move[k]);
        const full = env.height[column] == rows; // who plays a full column has lost
        var won = false;
        if (!full) {
            const row: usize = env.height[column];
            env.height[column] += 1;
            env.stones[k][row * columns + column] = 1;
            env.count += 1;
            won = wins(&env.stones[k], @intCast(column), @intCast(row));
        }
        env.turn = 1 - k;
        env.look(seen);
        out[0].terminated = won or full or env.count == cells;
        if (won or full) {
            out[k].reward = if (won) 1 else -1;
            out[1 - k].reward = -out[k].reward;
        }
    }

    pub fn mask(env: *Game, legal: []u8) void {
        for (legal, 0..) |*one, i| one.* = @intFromBool(env.height[i % columns] < rows);
    }

    pub fn active(env: *Game, acts: []u8) void {
        acts[1 - env.turn] = 0;
    }
};

comptime {
    rl.environment(Game);
}
