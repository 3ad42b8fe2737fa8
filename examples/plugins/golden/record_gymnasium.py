"""Records CartPole-v1 of Gymnasium into cartpole.trace, which the tests hold every guest to.

    python3 -m venv venv && venv/bin/pip install gymnasium==1.4.0 && venv/bin/python record_gymnasium.py

The file, little endian: 8 bytes "rlgold1\n", u32 number of episodes; for each episode u32 number of steps and the
first state, 4 f64 (x, x_dot, theta, theta_dot); for each step u8 action, u8 terminated, u8 truncated, u8 0,
f32 reward, and the next state, 4 f64. States are the environment's own float64 ones, not its float32 observations.
"""

import struct
from pathlib import Path

import gymnasium
import numpy

PINNED = "1.4.0"


def balance(target, noise):
    """A controller that keeps the pole up near a cart position, with a share of random actions."""

    def act(state, rng):
        if rng.random() < noise:
            return int(rng.integers(2))
        x, x_dot, theta, theta_dot = state
        return int(theta + 0.3 * theta_dot + 0.03 * (x - target) + 0.08 * x_dot > 0)

    return act


def random(state, rng):
    return int(rng.integers(2))


def always(action):
    return lambda state, rng: action


# Random play, pushes to one side, balance to the time limit, and a drift off the track.
POLICIES = [random] * 8 + [always(0), always(1), balance(0, 0.1), balance(1, 0.2), balance(6, 0.0), balance(-6, 0.05)]


def record(env, act, seed):
    """Plays one episode and returns its bytes."""
    rng = numpy.random.default_rng(seed)
    env.reset(seed=seed)
    first = [float(v) for v in env.unwrapped.state]
    steps = []
    ended = False
    while not ended:
        action = act(env.unwrapped.state, rng)
        _, reward, terminated, truncated, _ = env.step(action)
        state = [float(v) for v in env.unwrapped.state]
        steps.append(struct.pack("<BBBBf4d", action, terminated, truncated, 0, reward, *state))
        ended = terminated or truncated
    print(f"seed {seed}: {len(steps)} steps, terminated {terminated}, truncated {truncated}, x {state[0]:.2f}")
    return struct.pack("<I4d", len(steps), *first) + b"".join(steps)


def main():
    if gymnasium.__version__ != PINNED:
        raise SystemExit(f"gymnasium {PINNED} wanted, this is {gymnasium.__version__}")
    env = gymnasium.make("CartPole-v1")
    episodes = [record(env, act, seed) for seed, act in enumerate(POLICIES)]
    data = b"rlgold1\n" + struct.pack("<I", len(episodes)) + b"".join(episodes)
    Path(__file__).with_name("cartpole.trace").write_bytes(data)
    print(f"{len(data)} bytes")


if __name__ == "__main__":
    main()
