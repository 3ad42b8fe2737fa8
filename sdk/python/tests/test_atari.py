"""The wrappers for games, beside Gymnasium's AtariPreprocessing on a real game, and on a game whose every step is known."""

import json
import sys
import types
import unittest
import unittest.mock

import ale_py
import gymnasium
import numpy
from gymnasium.wrappers import AtariPreprocessing

from rlhost.gymnasium.atari import FireReset, FrameSkip, LifeLoss, NoopReset
from rlhost.gymnasium.source import Source

gymnasium.register_envs(ale_py)


def breakout():
    return gymnasium.make("ALE/Breakout-v5", frameskip=1, repeat_action_probability=0.0)


class Game(gymnasium.Env):
    """A life has four steps, a game three lives. It observes its step and its life; FIRE is action 2."""

    def __init__(self):
        self.observation_space = gymnasium.spaces.Box(0, 99, (2,), numpy.int32)
        self.action_space = gymnasium.spaces.Discrete(3)
        self.actions = []

    def get_action_meanings(self):
        return ["NOOP", "LEFT", "FIRE"]

    def seen(self):
        return numpy.array([self.n % 5, self.n], numpy.int32), {"lives": 3 - self.n // 4}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.n = 0
        self.actions.append("reset")
        return self.seen()

    def step(self, action):
        self.n += 1
        self.actions.append(action)
        obs, info = self.seen()
        return obs, float(action), self.n == 12, False, info


class AtariTest(unittest.TestCase):
    @unittest.mock.patch.dict(sys.modules, cv2=types.SimpleNamespace(resize=lambda picture, size, interpolation: picture.copy(), INTER_AREA=3))
    def test_a_real_game_is_as_gymnasium_preprocesses_it(self):
        theirs = AtariPreprocessing(breakout(), noop_max=30, frame_skip=4, screen_size=(160, 210), terminal_on_life_loss=True, grayscale_obs=False)
        ours = FrameSkip(LifeLoss(NoopReset(breakout())))
        rng, lives, rewards = numpy.random.default_rng(1), 0, 0.0
        for seed in range(10):
            a, b = ours.reset(seed=seed), theirs.reset(seed=seed)
            numpy.testing.assert_array_equal(a[0], b[0])
            self.assertEqual(a[1]["frame_number"], b[1]["frame_number"])
            over = False
            while not over:
                action = int(rng.integers(4))
                a, b = ours.step(action), theirs.step(action)
                self.assertEqual(a[1:4], b[1:4])
                self.assertEqual(a[4]["frame_number"], b[4]["frame_number"])
                over = a[2] or a[3]
                rewards += a[1]
                if not over:  # theirs observes frames from before, where a step is cut
                    numpy.testing.assert_array_equal(a[0], b[0])
            lives += 1
            self.assertEqual(a[4]["lives"], 4)
        self.assertEqual(lives, 10)
        self.assertGreater(rewards, 0)

    def test_a_lost_life_ends_what_is_learned_from_and_not_the_game(self):
        game = Game()
        env, lengths, told = LifeLoss(game), [], []
        for _ in range(6):
            env.reset(seed=3 if not lengths else None)
            length = 0
            over = False
            while not over:
                _, _, over, _, info = env.step(1)
                length += 1
            lengths.append(length)
            told.append((info.get("game_return"), info.get("game_length")))
        # A later life begins with a step of NOOP.
        self.assertEqual(lengths, [4, 3, 3] * 2)
        self.assertEqual(told, [(None, None), (None, None), (10.0, 12)] * 2)
        self.assertEqual(game.actions.count("reset"), 2)
        env.step(1)
        env.reset(seed=1)  # a seed begins a game wherever this one is
        self.assertEqual(game.actions[-1], "reset")

    def test_frames_rewards_and_ends_within_a_step(self):
        env = FrameSkip(LifeLoss(Game()), 3)
        env.reset(seed=1)
        self.assertEqual([(o.tolist(), r, e) for o, r, e, *_ in (env.step(1), env.step(2))], [([3, 3], 3.0, False), ([4, 4], 2.0, True)])
        env.reset()
        self.assertEqual(env.step(1)[0].tolist(), [3, 8])  # steps 6, 7 and 8: observed 1, 2 and 3

    def test_episodes_and_lives_begin_with_fire(self):
        game = Game()
        env = FireReset(LifeLoss(game))
        obs, _ = env.reset(seed=1)
        self.assertEqual((obs.tolist(), game.actions), ([1, 1], ["reset", 2]))
        while not env.step(1)[2]:
            pass
        env.reset()
        self.assertEqual(game.actions[-2:], [0, 2])

    def test_noops_differ_by_seed_and_begin_again_where_an_episode_ends(self):
        def begun(seed):
            game = Game()
            NoopReset(game, 11).reset(seed=seed)
            return game.n
        self.assertGreater(len({begun(seed) for seed in range(20)}), 5)
        self.assertEqual(begun(4), begun(4))
        self.assertLess(max(NoopReset(Game(), 40).reset(seed=seed)[0][1] for seed in range(20)), 12)

    def test_what_does_not_suit_is_named(self):
        pole = gymnasium.make("CartPole-v1")
        for make, text in ((lambda: FireReset(pole), "no action FIRE: it has no get_action_meanings"), (lambda: LifeLoss(pole).reset(seed=1), 'no "lives": it has nothing'),
                           (lambda: FrameSkip(pole, 0), "skip is 0"), (lambda: NoopReset(pole, 0), "most is 0")):
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                make()

    def test_a_source_has_them_by_name(self):
        names = ["rlhost.gymnasium.atari:LifeLoss", {"use": "rlhost.gymnasium.atari:FrameSkip", "skip": 2}]
        made = Source("test_atari:Game", {"gym_wrap": json.dumps(names)}).make()
        self.assertIsInstance(made, FrameSkip)
        self.assertIsInstance(made.env, LifeLoss)


if __name__ == "__main__":
    unittest.main()
