
test "the end pays" {
    const std = @import("std");
    var corridor = Corridor{ .length = 3, .cell = 1 };
    var rng: rl.Rng = undefined;
    var seen = [_]f32{0};
    var out: rl.Result = .{};
    corridor.step(&rng, &.{1}, &seen, &out);
    try std.testing.expect(out.terminated);
    try std.testing.expectEqual(1, out.reward);
    try std.testing.expectEqual(1, seen[0]);
}
