"""Records LunarLander-v3 of Gymnasium into lunarlander.trace and lunarlandercontinuous.trace, which the tests hold the port to Wasm to.

    python3 -m venv venv && venv/bin/pip install gymnasium==1.4.0 box2d==2.3.10 && venv/bin/python record_lunarlander.py [FOLDER]

A file is as record_gymnasium.py writes it, with no numbers in a state. The environment draws its random numbers from rlhost's stream, so
episode k begins as the port does from seed k. LunarLanderContinuous has wind, and its action k of 256 opens the main engine by level
k % 16 and those at the sides by level k // 16, from -1 to 1 in fifteen steps.
"""

import struct
import sys
from pathlib import Path

import gymnasium
import numpy
from gymnasium.envs.box2d.lunar_lander import LunarLander, heuristic

PINNED = "1.4.0"
WORD = (1 << 64) - 1
LEVELS = numpy.array([level / 7.5 - 1 for level in range(16)], "f4")


class Stream:
    """The random numbers of sdk/c/rl_author.h, where Gymnasium asks NumPy for them."""

    def __init__(self, seed):
        self.state = self.mix((seed + 0x9E3779B97F4A7C15) & WORD)

    @staticmethod
    def mix(z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
        return z ^ (z >> 31)

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & WORD
        return self.mix(self.state)

    def uniform(self, low, high, size=None):
        if size is not None:
            return numpy.array([self.uniform(low, high) for _ in range(size[0])])
        low, high = numpy.float32(low), numpy.float32(high)
        return float(low + (high - low) * numpy.float32(self.next() >> 40) * numpy.float32(2**-24))

    def integers(self, low, high):
        return low + ((self.next() >> 32) * (high - low) >> 32)


class OfStream(LunarLander):
    """Begins each episode from a seed of rlhost's."""

    def begin(self, seed):
        self.start = seed
        return self.reset()[0]

    @property
    def np_random(self):
        if self.start is not None:
            self.stream, self.start = Stream(Stream(self.start).next()), None
        return self.stream


def level(value):
    return int(numpy.abs(LEVELS - value).argmin())


def skilled(env, obs, rng, noise):
    """Gymnasium's own controller, with a share of random actions."""
    if rng.random() < noise:
        return int(rng.integers(256 if env.continuous else 4))
    action = heuristic(env, obs)
    return level(action[0]) + 16 * level(action[1]) if env.continuous else int(action)


def hover(env, obs, rng, noise):
    """Stays in the air to the time limit, where it can."""
    high = obs.copy()
    high[1] -= 0.7
    return skilled(env, high, rng, noise)


def record(env, seed, act, noise):
    """Plays one episode and returns its bytes."""
    rng, obs, steps, ended = numpy.random.default_rng(seed), env.begin(seed), [], False
    while not ended:
        action = act(env, obs, rng, noise)
        engines = numpy.array([LEVELS[action % 16], LEVELS[action // 16]]) if env.continuous else action
        obs, reward, terminated, _, _ = env.step(engines)
        truncated = len(steps) == 999 and not terminated
        steps.append(struct.pack("<BBBBf8f", action, terminated, truncated, 0, reward, *obs))
        ended = terminated or truncated
    print(f"seed {seed}, {act.__name__} {noise}: {len(steps)} steps, the last {reward:.2f}, terminated {terminated}, x {obs[0]:.2f}")
    return struct.pack("<I", len(steps)) + b"".join(steps)


def main():
    if gymnasium.__version__ != PINNED:
        raise SystemExit(f"gymnasium {PINNED} wanted, this is {gymnasium.__version__}")
    for name, env in {"lunarlander": OfStream(), "lunarlandercontinuous": OfStream(continuous=True, enable_wind=True)}.items():
        plays = [(skilled, 0.0)] * 3 + [(skilled, 0.3), (skilled, 1.0), (skilled, 1.0), (hover, 0.1)]
        episodes = [record(env, seed, *play) for seed, play in enumerate(plays)]
        data = b"rlgold2\n" + struct.pack("<III", len(episodes), 0, 8) + b"".join(episodes)
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
        (folder / (name + ".trace")).write_bytes(data)
        print(f"{len(data)} bytes")


if __name__ == "__main__":
    main()
