"""Records environments of Gymnasium into *.trace and taxi.table, which the tests hold every guest to.

    python3 -m venv venv && venv/bin/pip install gymnasium==1.4.0 && venv/bin/python record_gymnasium.py

A file, little endian: 8 bytes "rlgold2\n", u32 number of episodes, u32 numbers in a state, u32 in an observation; for
each episode u32 number of steps and the first state, f64 each; for each step u8 action, u8 terminated, u8 truncated,
u8 0, f32 reward, the next state, f64 each, and the observation, f32 each. States are the environment's own float64
ones, so that a guest can be put into each of them. Where actions are numbers it begins with "rlgold3\n", and a step with f32
action, u8 terminated, u8 truncated, u16 0, f32 reward.

taxi.table has for each state of Taxi-v4 and each of its 6 actions i16 next state, i8 reward, u8 terminated, then for each state
6 bytes, its action mask.
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


def pump(velocity, noise):
    """Pushes along one of the velocities, or against it (~index), with a share of random actions: it gathers speed."""

    def act(state, rng):
        if rng.random() < noise:
            return int(rng.integers(3))
        forward = state[velocity] >= 0 if velocity >= 0 else state[~velocity] < 0
        return 2 if forward else 0

    return act


def random(actions):
    return lambda state, rng: int(rng.integers(actions))


def push(low, high):
    return lambda state, rng: float(numpy.float32(rng.uniform(low, high)))


def swing(strength, noise):
    """Pushes along the velocity, with a share of random actions."""

    def act(state, rng):
        return float(numpy.float32(strength * (rng.uniform(-1, 1) if rng.random() < noise else numpy.sign(state[1] or 1))))

    return act


def upright(state, rng):
    return float(numpy.float32(numpy.clip(-12 * state[0] - 3 * state[1], -2, 2)))


def always(action):
    return lambda state, rng: action


# Of each environment the episodes: a policy, and the first state where it isn't the environment's own.
EPISODES = {
    # Random play, pushes to one side, balance to the time limit, and a drift off the track.
    "CartPole-v1": [(act, None) for act in [random(2)] * 8 + [always(0), always(1), balance(0, 0.1), balance(1, 0.2),
                                                             balance(6, 0.0), balance(-6, 0.05)]],
    # To the time limit, over the line, and from states so fast that angles wrap and velocities are clipped.
    "Acrobot-v1": [(random(3), None), (always(1), None), (pump(~2, 0.0), None), (pump(3, 0.0), None), (pump(3, 0.1), None),
                   (always(2), [3.0, -3.0, 12.0, 28.0]), (random(3), [-3.1, 1.0, -12.5, -28.2])],
    # To the time limit, to the goal, against the wall, and at full speed.
    "MountainCar-v0": [(random(3), None), (always(1), None), (pump(1, 0.0), None), (pump(1, 0.2), None), (always(0), [-1.1, -0.05]),
                       (always(2), [-0.3, 0.0699]), (pump(1, 0.0), [-1.2, 0.0])],
    # To the time limit; to the goal; against the wall and at full speed.
    "MountainCarContinuous-v0": [(push(-1, 1), None), (swing(1, 0.0), None), (swing(1, 0.3), None), (swing(1, 0.0), [-1.1, -0.05]),
                                 (swing(1, 0.1), [-0.3, 0.0699])],
    # At random, swung up, held upright, and so fast that speeds are clipped.
    "Pendulum-v1": [(push(-2, 2), None), (swing(2, 0.0), None), (swing(2, 0.2), None), (upright, [0.2, -0.3]), (always(2.0), [3.0, 7.9]),
                    (always(-2.0), [-15.0, -8.0])],
}


def is_box(env):
    return isinstance(env.action_space, gymnasium.spaces.Box)


def record(env, act, start, seed):
    """Plays one episode and returns its bytes."""
    rng, floats = numpy.random.default_rng(seed), is_box(env)
    env.reset(seed=seed)
    if start:
        env.unwrapped.state = numpy.array(start)
    first = [float(v) for v in env.unwrapped.state]
    steps = []
    ended = False
    while not ended:
        action = act(env.unwrapped.state, rng)
        obs, reward, terminated, truncated, _ = env.step(numpy.array([action], "f4") if floats else action)
        truncated &= not terminated  # in the last step allowed Gymnasium may set both; the host has one end
        state = [float(v) for v in env.unwrapped.state]
        head = struct.pack("<fBBHf" if floats else "<BBBBf", action, terminated, truncated, 0, reward)
        steps.append(head + struct.pack(f"<{len(state)}d{len(obs)}f", *state, *obs))
        ended = terminated or truncated
    print(f"{env.spec.id} seed {seed}: {len(steps)} steps, terminated {terminated}, truncated {truncated}, x {state[0]:.2f}")
    return struct.pack(f"<I{len(first)}d", len(steps), *first) + b"".join(steps), len(first), len(obs)


def main():
    if gymnasium.__version__ != PINNED:
        raise SystemExit(f"gymnasium {PINNED} wanted, this is {gymnasium.__version__}")
    for name, episodes in EPISODES.items():
        env = gymnasium.make(name)
        recorded = [record(env, act, start, seed) for seed, (act, start) in enumerate(episodes)]
        data = (b"rlgold3\n" if is_box(env) else b"rlgold2\n") + struct.pack("<III", len(recorded), *recorded[0][1:]) + b"".join(r[0] for r in recorded)
        Path(__file__).with_name(name.split("-")[0].lower() + ".trace").write_bytes(data)
        print(f"{len(data)} bytes")
    taxi = gymnasium.make("Taxi-v4").unwrapped
    moves = [taxi.P[state][action][0] for state in range(500) for action in range(6)]
    table = b"".join(struct.pack("<hbB", after, reward, over) for _, after, reward, over in moves)
    masks = b"".join(taxi.action_mask(state).tobytes() for state in range(500))
    Path(__file__).with_name("taxi.table").write_bytes(table + masks)


if __name__ == "__main__":
    main()
