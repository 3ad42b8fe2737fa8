"""The comparisons. Each part is a function that takes one round: ours, the peers, ours again."""

import os
import pathlib
import tempfile
import time

import ours
import peers
import seeds

SMALL, LARGE, BOX = "4-64-64", "64-512-512", "17-64-64-box6"

# Least ratios to PyTorch by network, rows and whether it is compiled.
STEP_BARS = {(SMALL, 1024, False): 4, (SMALL, 1024, True): 2.5, (LARGE, 1024, False): 1.3, (LARGE, 1024, True): 1.15,
             (BOX, 1024, False): 3.5}


def cartpole(rows, seed, quick):
    """From process start to a mean return of 475, with the same settings in both; the seed is the round."""
    def run(*sets, one_core=False):
        return reached(ours.train("pipeline.toml", f"run.seed={seed}", *sets, one_core=one_core))

    a, a1 = run(), run("train.mode=sync", one_core=True)
    their = ["--seed", seed, "--env-steps", 2048 if quick else 500_000]
    [p] = peers.run("sb3", "sb3_cartpole.py", *their, threads=1)
    if not quick:
        reached(p)
    b, b1 = run(), run("train.mode=sync", one_core=True)

    sb3, start = "Stable-Baselines3 PPO", "CartPole, process start to return 475"
    rows.add(start, sb3, "s", a["wall_seconds"], p["wall_seconds"], b["wall_seconds"], bar=15, faster="less")
    rows.add(f"{start}, sync, one core", sb3, "s", a1["wall_seconds"], p["wall_seconds"], b1["wall_seconds"], faster="less")
    rows.add("learning phase alone", sb3, "env steps/s", a["env_steps_per_s"], p["env_steps_per_s"], b["env_steps_per_s"])
    rows.add("learning phase alone, sync, one core", sb3, "env steps/s", a1["env_steps_per_s"], p["env_steps_per_s"],
             b1["env_steps_per_s"])
    rows.add("env steps to return 475", sb3, "env steps", a["env_steps"], p["env_steps"], b["env_steps"], faster="less")


def reached(result):
    if not result["reached"]:
        raise ours.Failed(f"the goal was not reached: {result}")
    return result


def best_rate(figures, **want):
    """The most env steps/s of a peer's figures with those values."""
    chosen = [f for f in figures if all(f.get(k) == v for k, v in want.items())]
    return max(f["best_env_steps_per_s"] for f in chosen)


def env(rows, _, quick):
    """CartPole alone on one core: a C guest through rl_step, metered, in its windows."""
    seconds = 0.3 if quick else 2
    scalar = "examples/plugins/cartpole-c/cartpole_scalar.wasm"

    def run():
        return {n: ours.bench_env("cartpole@1", n, seconds) for n in (64, 1024)} | {
            "scalar": ours.bench_env(scalar, 64, seconds)}

    a = run()
    gym = peers.run("envpool", "gymnasium_cartpole.py", "--seconds", seconds, one_core=True)
    pool = peers.run("envpool", "envpool_cartpole.py", "--seconds", seconds, one_core=True)
    b = run()

    def add(what, against, key, theirs, bar=None):
        rows.add(what, against, "env steps/s", a[key]["alone"], theirs, b[key]["alone"], bar)

    add("C guest, 64 envs a call", "Gymnasium CartPoleVectorEnv, 64 envs", 64, best_rate(gym, envs=64), 15)
    add("C guest, 64 envs a call", "EnvPool, 64 envs", 64, best_rate(pool, envs=64, mode="sync"), 15)
    add("C guest, 1,024 envs a call", "Gymnasium CartPoleVectorEnv, 1,024 envs", 1024, best_rate(gym, envs=1024))
    add("C guest, 1,024 envs a call", "EnvPool, its best of 4 settings", 1024, best_rate(pool))
    add("C guest, 64 envs a call", "the same as native Go", 64, (a[64]["native Go"] + b[64]["native Go"]) / 2, 1.0)
    add("C guest without SIMD, 64 envs a call", "the same as native Go", "scalar",
        (a["scalar"]["native Go"] + b["scalar"]["native Go"]) / 2, 0.5)


def pixels(rows, _, quick):
    """A grey picture of 84×84 a step on one core: a C guest that draws it where the learner's gather reads it, in blocks of 16
    steps, and the guest's own step without them."""
    seconds = 0.3 if quick else 2

    def run():
        return {n: ours.bench_env("squash@1", n, seconds, "--horizon", 16) for n in (64, 1024)}

    a = run()
    gym = peers.run("envpool", "gymnasium_squash.py", "--seconds", seconds, one_core=True)
    pool = peers.run("envpool", "envpool_pong.py", "--seconds", seconds, one_core=True)
    b = run()
    for n in (64, 1024):
        for way in ("through the bus", "alone"):
            for against, theirs in (("Gymnasium, the same game in NumPy", gym), ("EnvPool, Pong, a frame a step", pool)):
                rows.add(f"pixel guest {way}, {n:,} envs", against, "env steps/s", a[n][way], best_rate(theirs, envs=n), b[n][way])


def learner(rows, _, quick):
    """One optimiser step on one thread."""
    seconds = 0.2 if quick else 2
    cases = [(SMALL, 64), (SMALL, 1024), (LARGE, 1024), (BOX, 1024)]
    a = bench("Update", cases, seconds, "best-ns/step")
    theirs = peers.run("sb3", "torch_step.py", "--only", "step", "--seconds", seconds, one_core=True)
    b = bench("Update", cases, seconds, "best-ns/step")
    against_torch(rows, "learner step", a, theirs, b, STEP_BARS)


def inference(rows, _, quick):
    """Acting for a batch of observations on one thread: both networks, sampling, log-probabilities."""
    seconds = 0.2 if quick else 1
    cases = [(SMALL, 1), (SMALL, 64)]
    a = bench("Act", cases, seconds, "best-ns/op")
    theirs = peers.run("sb3", "torch_step.py", "--only", "act", "--seconds", seconds, one_core=True)
    b = bench("Act", cases, seconds, "best-ns/op")
    against_torch(rows, "inference", a, theirs, b, {(SMALL, 64, False): 5})


def images(net, step_bar, act_bar):
    """A part: one optimiser step of 256 rows and acting for 64, on one thread, with a network over pictures."""
    def part(rows, _, quick):
        step_and_act(rows, "Images", net, 256, "torch_images.py", ["--net", net], 0.2 if quick else 10, (step_bar, act_bar))

    return part


def recurrent(rows, _, quick):
    """One optimiser step of 64 chunks of 16 rows and acting for 64, on one thread, with a core behind two dense layers."""
    for core, bars in (("gru", (2.5, 2.5)), ("lstm", (None, None))):
        step_and_act(rows, "Recurrent", f"4-64-64-{core}128", 1024, "torch_recurrent.py", ["--core", core], 0.2 if quick else 6, bars)


def step_and_act(rows, benchmark, net, step_rows, script, options, seconds, bars):
    """A step of so many rows and acting for 64, beside a script of PyTorch's that measures both."""
    cases = {"step": ("learner step", step_rows, "best-ns/step", bars[0]), "act": ("inference", 64, "best-ns/op", bars[1])}

    def run():
        figures = {}
        for what, (_, n, unit, _) in cases.items():
            pattern = f"^Benchmark{benchmark}$/^net={net}$/^{what}$/^rows={n}$/^kernels=avx"
            figures[what] = best_times(pattern, net, n, seconds, unit)
        return figures

    a = run()
    theirs = peers.run("sb3", script, *options, "--seconds", seconds, one_core=True)
    b = run()
    for what, (name, n, _, bar) in cases.items():
        figures = [t for t in theirs if t["what"] == what]
        against_torch(rows, name, a[what], figures, b[what], {(net, n, compiled): bar for compiled in (False, True)})


def bench(name, cases, seconds, unit):
    """Best times of one of the cpu backend's benchmarks, by network, rows and kernel set."""
    figures = {}
    for net, n in cases:
        figures |= best_times(f"^Benchmark{name}$/^net={net}$/^rows={n}$/^kernels=avx", net, n, seconds, unit)
    return figures


def best_times(pattern, net, n, seconds, unit):
    figures = ours.go_bench("gpu/cpu", pattern, seconds)
    return {(net, n, case.rpartition("kernels=")[2]): values[unit] for case, values in figures.items()}


def against_torch(rows, what, a, theirs, b, bars):
    """Bars are for AVX-512 where the machine has it; on other machines its best set is held against them."""
    bar_kernels = "avx512" if any(kernels == "avx512" for _, _, kernels in a) else "avx2"
    for net, n, kernels in a:
        for t in theirs:
            if (t["net"], t["rows"]) != (net, n):
                continue
            rows.add(f"{what} {net}, {n:,} rows, {kernels}", "torch.compile" if t["compiled"] else "PyTorch eager", "ns",
                     a[net, n, kernels], t["best_ns"], b[net, n, kernels], faster="less",
                     bar=bars.get((net, n, t["compiled"])) if kernels == bar_kernels else None)


def sample_factory(rows, seed, quick):
    """Throughput with the same network, batch and epochs, and each system's best settings to a return of 475."""
    limit = ["--seconds", 5] if quick else []
    like = "bench/peers/sample_factory_like.toml"

    def run():
        return ours.train(like, f"run.seed={seed}"), reached(ours.train("pipeline.toml", f"run.seed={seed}"))

    a, a475 = run()
    [example] = peers.run("sf", "sample_factory_cartpole.py", "--seed", seed, *limit)
    [tuned] = peers.run("sf", "sample_factory_cartpole.py", "--settings", "tuned", "--seed", seed, *limit)
    b, b475 = run()
    rows.add("CartPole 512-512, batch 512, 1 epoch, both cores", "Sample Factory's CartPole example", "env steps/s",
             a["env_steps_per_s"], example["env_steps_per_s"], b["env_steps_per_s"], bar=6)
    for name, t in (("Sample Factory's CartPole example", example), ("Sample Factory with our settings", tuned)):
        if t["reached"] or quick:
            rows.add("best settings, process start to return 475", name, "s", a475["wall_seconds"], t["wall_seconds"],
                     b475["wall_seconds"], bar=60, faster="less")


def process(rows, seed, quick):
    """Training with components in processes of their own, against the same in the host."""
    stop = f"run.stop={{ env_steps = {20_480 if quick else 3_000_000} }}"

    def run(*moved):
        sets = [f"component.{name}.runtime=process" for name in moved]
        return ours.train("pipeline.toml", f"run.seed={seed}", stop, *sets)["env_steps_per_s"]

    for moved, bar in ((("inference",), 0.8), (("learner",), None), (("inference", "learner"), None)):
        a, host, b = run(*moved), run(), run(*moved)
        rows.add(f"training, {' and '.join(moved)} in a process", "in the host", "env steps/s", a, host, b, bar)


def own(rows, _, quick):
    """Figures of rlhost that are held against limits, not peers."""
    seconds = 0.2 if quick else 2
    [emit] = ours.go_bench("core/bus", "^BenchmarkEmit_ToAnotherLoop$/^mode=queue/overflow=block$", seconds, one_core=False).values()
    rows.fact("emit to a slot on another loop", emit["ns/op"], "ns", "at most 100", lambda v: v <= 100)
    rows.fact("its allocations", emit["allocs/op"], "", "0", lambda v: v == 0)
    [step] = ours.go_bench("plugins/wasm", "^BenchmarkStep$/^nop$", seconds).values()
    rows.fact("a step call into a guest that does nothing", step["ns/op"], "ns", "at most 60", lambda v: v <= 60)
    rows.fact("allocations of a step call", step["allocs/op"], "", "0", lambda v: v == 0)
    metering = ours.go_bench("plugins/wasm/internal/meter", "^BenchmarkMetering$/./^envs=64$", seconds)
    for name, figures in metering.items():
        guest = name.split("/")[1].removeprefix("cartpole-").replace("_", "-")
        bar = ("at most 1.06", lambda v: v <= 1.06) if guest in ("c", "c-scalar") else (None, None)
        rows.fact(f"metering of the {guest} guest, 64 envs", figures["metered/plain"], "times the time", *bar)
    [share] = ours.go_bench("cmd/rlhost", "^BenchmarkRolloutShare$", seconds, one_core=False).values()
    rows.fact("framework's share of a rollout step", share["framework-%"], "%", "at most 15", lambda v: v <= 15)


def fresh(rows, _, __):
    """`make run` in a fresh clone with empty caches, downloads included."""
    with tempfile.TemporaryDirectory(prefix="rlhost-fresh-") as folder:
        f = pathlib.Path(folder)
        ours.output(["git", "clone", "--quiet", ours.ROOT, f / "rlhost"])
        env = {"GOPATH": str(f / "go"), "GOMODCACHE": str(f / "go" / "mod"), "GOCACHE": str(f / "build"),
               "XDG_CACHE_HOME": str(f / "cache"), "GOFLAGS": (os.environ.get("GOFLAGS", "") + " -modcacherw").strip()}
        began = time.perf_counter()
        ours.output(["make", "run"], cwd=f / "rlhost", **env)
        rows.fact("make run in a fresh clone, empty caches", time.perf_counter() - began, "s", "at most 60", lambda v: v <= 60)


# Parts by name, with how often each is measured and the environments of peers that it needs.
ALL = {
    "cartpole": (cartpole, 5, ["sb3"]),
    "env": (env, 3, ["envpool"]),
    "pixels": (pixels, 3, ["envpool"]),
    "learner": (learner, 3, ["sb3"]),
    "inference": (inference, 3, ["sb3"]),
    "nature": (images("nature_cnn", 1.0, 1.5), 3, ["sb3"]),
    "impala": (images("impala", 0.9, None), 3, ["sb3"]),
    "recurrent": (recurrent, 3, ["sb3"]),
    "sample-factory": (sample_factory, 2, ["sf"]),
    "process": (process, 5, []),
    "own": (own, 3, []),
    "seeds": (seeds.measure, 1, []),
    "fresh": (fresh, 1, []),
}
