"""Records MinAtar's Breakout and Freeway into *.board, which the tests hold the guests of minatar-c to.

    python3 -m venv venv && venv/bin/pip install MinAtar==1.0.15 && venv/bin/python record_minatar.py

A file, little endian: u32 number of episodes, u32 numbers in a state, u32 cells of an observation; for each episode u32 number of
steps and the first state, i32 each; for each step u8 action, of the smallest set, u8 reward, u8 terminated, and the observation, a
bit for each cell, row by row, the planes of a cell side by side; the first cell is the highest bit of the first byte.

States are those of the guests: of Breakout the paddle and the ball's row, column and directions, with all bricks there; of Freeway the chicken's
row and the steps before it can move again, then for each car its column, the steps before it moves, its pause after each
move and its direction. Freeway draws new speeds at each reward: there an episode here ends, and the next begins.
"""

import struct
from importlib.metadata import version
from pathlib import Path

import numpy
from minatar.environment import Environment

PINNED = "1.0.15"


def breakout_state(game):
    return [game.pos, game.ball_y, game.ball_x, 1 if game.ball_dir >= 2 else -1, 1 if game.ball_dir in (1, 2) else -1]


def freeway_state(game):
    cars = [number for column, _, wait, speed in game.cars for number in (column, wait, abs(speed), 1 if speed > 0 else -1)]
    return [game.pos, game.move_timer, *cars]


def follow(noise):
    """Keeps the paddle below the ball, with a share of random actions while the ball goes up."""

    def act(game, rng):
        if game.ball_dir < 2 and rng.random() < noise:
            return int(rng.integers(3))
        return 0 if game.pos == game.ball_x else 1 if game.ball_x < game.pos else 2

    return act


def cross(noise):
    """Goes up, with a share of random actions."""
    return lambda game, rng: int(rng.integers(3)) if rng.random() < noise else 1


# Of each game its state and the plays: a policy and the most steps.
PLAYS = {
    "breakout": (breakout_state, [(follow(0.0), 800), (follow(0.1), 300), (follow(0.3), 300), (follow(0.5), 300), (follow(0.7), 300), (follow(1.0), 300)]),
    "freeway": (freeway_state, [(cross(1.0), 100), (cross(0.0), 300), (cross(0.2), 300)]),
}


def bits(env):
    return numpy.packbits(env.state().astype(bool).ravel()).tobytes()


def record(name, state, act, limit, seed):
    """Plays once and returns the episodes that come of it, each as its bytes."""
    rng = numpy.random.default_rng(seed)
    env = Environment(name, sticky_action_prob=0.0)
    env.seed(seed)
    env.reset()
    actions = env.minimal_action_set()
    episodes, first, steps, rewards = [], state(env.env), [], 0
    for _ in range(limit):
        action = act(env.env, rng)
        reward, terminated = env.act(actions[action])
        steps.append(struct.pack("<BBB", action, reward, terminated) + bits(env))
        rewards += reward
        if terminated or (name == "freeway" and reward):
            episodes.append((first, steps))
            first, steps = state(env.env), []
        if terminated:
            break
    if steps:
        episodes.append((first, steps))
    print(f"{name} seed {seed}: {sum(len(s) for _, s in episodes)} steps, {rewards} rewards, terminated {terminated}")
    return [struct.pack(f"<I{len(first)}i", len(steps), *first) + b"".join(steps) for first, steps in episodes]


def main():
    if version("MinAtar") != PINNED:
        raise SystemExit(f"MinAtar {PINNED} wanted, this is {version('MinAtar')}")
    for name, (state, plays) in PLAYS.items():
        recorded = [episode for seed, (act, limit) in enumerate(plays) for episode in record(name, state, act, limit, seed)]
        env = Environment(name)
        env.reset()
        data = struct.pack("<III", len(recorded), len(state(env.env)), env.state().size) + b"".join(recorded)
        Path(__file__).with_name(f"{name}.board").write_bytes(data)
        print(f"{len(data)} bytes")


if __name__ == "__main__":
    main()
