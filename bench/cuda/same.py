"""What the peers do, too: the networks, numbers of rows and benchmarks of gpu/cuda/bench_test.go, and how figures are printed."""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))
import report  # noqa: E402

# By the name of the benchmark: observations and hidden layers, actions, whether actor and critic share the layers.
NETWORKS = {"4-64-64": ((4, 64, 64), 2, False), "118-128": ((118, 128, 128), 3, True), "64-512-sh": ((64, 512, 512), 8, False)}
ACT, UPDATE = (64, 1024, 8192, 32768), (256, 1024, 8192, 32768)
MISSING = 77  # exit code: what it needs is not on this machine

CLIP, VALUE, ENTROPY, NORM, RATE, EPS = 0.2, 0.5, 0.01, 0.5, 1e-3, 1e-5  # of the loss and of Adam


def arguments(doc):
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--device", choices=["cpu", "gpu"], default="gpu")
    parser.add_argument("--seconds", type=float, default=2, help="time for each figure")
    parser.add_argument("--most", type=int, default=max(UPDATE), help="leave out more rows than this")
    parser.add_argument("--rows", type=int, nargs="+", default=ACT + UPDATE, help="leave out other numbers of rows")
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS), help="leave out the others")
    parser.add_argument("--ways", nargs="+", help="leave out the others")
    return parser.parse_args()


def missing(why):
    """Ends the program, which cannot run here."""
    print(why, file=sys.stderr)
    sys.exit(MISSING)


def measure(args, ways, act, update):
    """Prints the figures of each way in the form of Go's benchmarks. act and update return, for a way, a network, its actions, whether it is
    shared and rows, what is to be timed: it comes back when the results have."""
    for way in (w for w in ways if not args.ways or w in args.ways):
        for what, prepare, rows in (("Act", act, ACT), ("Update", update, UPDATE)):
            for name in args.networks:
                sizes, actions, shared = NETWORKS[name]
                for n in (n for n in rows if n <= args.most and n in args.rows):
                    _, median = report.times(prepare(way, sizes, actions, shared, n), args.seconds, max(1, 1024 // n))
                    print(f"Benchmark{what}/{name}/{n}/{way} 1 {median:.0f} ns/op {n / median * 1e9:.0f} rows/s", flush=True)
