//! What a build.zig of a project with an environment needs, see docs/reference/sdk-zig.md.
const std = @import("std");

pub fn build(b: *std.Build) void {
    _ = b.addModule("rlhost", .{ .root_source_file = b.path("rlhost.zig") });
}

/// The module of an environment: NAME.wasm from NAME.zig, with the object of sdk/c.
pub fn environment(b: *std.Build, name: []const u8) *std.Build.Step.Compile {
    const sdk = b.dependencyFromBuildZig(@This(), .{});
    const wasm = b.resolveTargetQuery(.{
        .cpu_arch = .wasm32,
        .os_tag = .freestanding,
        .cpu_features_add = std.Target.wasm.featureSet(&.{ .simd128, .bulk_memory }),
    });
    const root = b.createModule(.{
        .root_source_file = b.path(b.fmt("{s}.zig", .{name})),
        .target = wasm,
        .optimize = .ReleaseFast,
        .imports = &.{.{ .name = "rlhost", .module = sdk.module("rlhost") }},
    });
    root.addIncludePath(sdk.path("../c"));
    root.addCSourceFile(.{ .file = sdk.path("../c/rl_guest.c"), .flags = &.{"-O3"} });
    const made = b.addExecutable(.{ .name = name, .root_module = root });
    made.entry = .disabled;
    b.installArtifact(made);
    return made;
}
