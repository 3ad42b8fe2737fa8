"""Environments of Gymnasium worked for a host."""

import gc
import json
import os
import pathlib
import re
import unittest
import weakref

import grpc
import gymnasium
import numpy

from envhost import DISABLED, NEXT_STEP, SAME_STEP, Blocks, EnvHost, layout
from rlhost import spec
from rlhost.control import Refusal
from rlhost.gymnasium.batch import Batch, told
from rlhost.gymnasium.observations import characters
from rlhost.gymnasium.source import SEED_MASK, Source, Unusable

STEPS = 64
ODD = {"PYTHONPATH": str(pathlib.Path(__file__).parent)}


class Reference:
    """Environments stepped by Gymnasium itself, with same-step autoreset."""

    def __init__(self, use, seeds):
        self.envs = [gymnasium.make(use) for _ in seeds]
        self.seeds = seeds

    def reset(self):
        return [env.reset(seed=seed & SEED_MASK)[0] for env, seed in zip(self.envs, self.seeds)]

    def step(self, actions):
        rows = []
        for env, action in zip(self.envs, actions):
            obs, reward, terminated, truncated, _ = env.step(int(action))
            last = None
            if terminated or truncated:
                last, (obs, _) = obs, env.reset()
            rows.append((obs, reward, terminated, truncated, last))
        return rows


def odd(use="odd_envs:Odd-v0", envs=1, own_process=False, **more):
    return EnvHost(use, envs, environment=ODD, own_process=own_process, **more)


class ForkTest(unittest.TestCase):
    def test_children_live_that_are_forked_while_a_call_is_under_way(self):
        schema, size = layout(8, 3, ("f32", ()))
        with odd("forking_envs:Forking", 3, own_process=True) as host:
            blocks = Blocks(1, schema, size, 1)
            host.share(blocks)
            self.assertIsNone(host.bind(blocks, 0))
            self.assertIsNone(host.reset(0, range(3)))
            for t in range(8):
                self.assertIsNone(host.step(t))
            numpy.testing.assert_array_equal(blocks.columns[0]["obs"], numpy.arange(9)[:, None].repeat(3, 1))


class TraceTest(unittest.TestCase):
    def test_traces_are_gymnasiums_own_bit_for_bit(self):
        for use, soa, episodes in (("CartPole-v1", False, 50), ("Acrobot-v1", True, 1)):
            with self.subTest(use=use):
                self.assertGreaterEqual(self.compare(use, soa), episodes)

    def compare(self, use, soa, rounds=9):
        """Plays some blocks with two workers that share them, and counts the episodes that ended."""
        rng = numpy.random.default_rng(3)
        seeds = [int(s) for s in rng.integers(0, 1 << 63, 5)]
        reference = Reference(use, seeds)
        ended = 0
        with EnvHost(use, 2, block_envs=5) as a, EnvHost(use, 3, first_column=2, block_envs=5) as b:
            shape = reference.envs[0].observation_space.shape
            blocks = Blocks(1, *layout(STEPS, 5, ("f32", shape), soa=soa), 2)
            for worker, part in ((a, slice(0, 2)), (b, slice(2, 5))):
                worker.share(blocks)
                self.assertIsNone(worker.bind(blocks, 0))
                self.assertIsNone(worker.reset(0, seeds[part]))
            carried = blocks.columns[0]["obs"][0].copy()
            numpy.testing.assert_array_equal(carried, numpy.array(reference.reset(), "f4"))
            for n in range(rounds):
                block = blocks.columns[n % 2]
                block["obs"][0] = carried
                block["action"][:] = rng.integers(0, a.spec.actions, (STEPS, 5))
                for worker in (a, b):
                    self.assertIsNone(worker.bind(blocks, n % 2))
                for t in range(STEPS):
                    a.ask(0xFF22, t)
                    b.ask(0xFF22, t)
                    self.assertIsNone(a.answer())
                    self.assertIsNone(b.answer())
                    for env, (obs, reward, terminated, truncated, last) in enumerate(reference.step(block["action"][t])):
                        self.assertEqual(block["obs"][t + 1, env].tobytes(), obs.astype("f4").tobytes())
                        self.assertEqual(block["reward"][t, env], numpy.float32(reward))
                        self.assertEqual((block["terminated"][t, env], block["truncated"][t, env]), (terminated, truncated))
                        if last is not None:
                            ended += 1
                            self.assertEqual(block["final_obs"][0, env].tobytes(), last.astype("f4").tobytes())
                carried = block["obs"][STEPS].copy()
        return ended


class DescriptionTest(unittest.TestCase):
    def test_cartpole(self):
        with EnvHost("CartPole-v1", 1, own_process=False) as worker:
            described = worker.spec
            self.assertEqual((described.obs_elems, described.actions, described.episode_limit), (4, 2, 500))
            self.assertEqual(described.name, "CartPole-v1@" + gymnasium.__version__)
            self.assertEqual(described.autoreset, SAME_STEP | NEXT_STEP | DISABLED)
            self.assertEqual(len(worker.hash), 64)

    def test_arguments_reach_the_environment_and_its_hash(self):
        with EnvHost("FrozenLake-v1", 1, {"map_name": "8x8", "is_slippery": "false"}, own_process=False) as a:
            self.assertEqual(a.spec.tensor(spec.OBSERVATION).n, 64)
            with EnvHost("FrozenLake-v1", 1, {"map_name": "8x8"}, own_process=False) as b:
                self.assertNotEqual(a.hash, b.hash)

    def test_environments_of_ones_own_are_imported_first(self):
        with odd() as worker:
            self.assertEqual(worker.spec.tensors[1].shape, (2, 3))
            self.assertEqual(worker.spec.episode_limit, 4)
        with odd(args={"observation": "image"}) as worker:
            picture = worker.spec.tensors[1]
            self.assertEqual((picture.dtype, picture.shape, picture.high, picture.flags & spec.IMAGE_HWC), ("u8", (4, 4, 3), 255, spec.IMAGE_HWC))

    def test_what_it_cannot_run_is_named(self):
        cases = [
            ({"observation": "graph"}, "^E018 .*observation space Graph"), ({"observation": "starts"}, "^E018 .*observation space MultiDiscrete"),
            ({"action": "text"}, "action space Text"), ({"nonsense": "1"}, "^E019 .*unexpected keyword argument 'nonsense'"),
        ]
        for args, words in cases:
            with self.subTest(args), self.assertRaisesRegex(Refusal, words):
                odd(args=args)
        for use, words in (("CartPool-v1", "^E010 .*Did you mean: `CartPole`"), ("CartPole-v9", "^E010 .*doesn't exist"),
                           ("LunarLander-v1", "^E010 .*deprecated"), ("no.such.module:X-v0", "^E019 .*No module named 'no'"),
                           ("ALE/NoGame-v5", '^E010 .*(pip install ale-py.*"gymnasium:ale_py:ALE/NoGame-v5"|NoGame)'),
                           ("MinAtar/Pong-v1", "^E010 .*(pip install MinAtar|Pong)")):
            with self.subTest(use), self.assertRaisesRegex(Refusal, words):
                odd(use)
        with self.assertRaises(grpc.RpcError) as caught:
            odd(args={"observation": "graph"}, own_process=True)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNKNOWN)
        self.assertIn("observation space Graph", caught.exception.details())


class StepTest(unittest.TestCase):
    def begin(self, steps=8, infos=0, **more):
        worker = odd(**more)
        self.addCleanup(worker.host.close)
        actions = [(t.dtype, (t.elems,) if t.shape else ()) for t in worker.spec.tensors if t.role == spec.ACTION]
        observed = [(t.dtype, t.shape) for t in worker.spec.tensors if t.role == spec.OBSERVATION]
        mask = worker.spec.tensor(spec.ACTION_MASK)
        self.blocks = Blocks(1, *layout(steps, worker.envs, *observed, actions=actions, mask=mask.elems if mask else 0, infos=infos), 1)
        worker.share(self.blocks)
        self.assertIsNone(worker.bind(self.blocks, 0))
        return worker, self.blocks.columns[0]

    def test_same_step_writes_both_observations(self):
        worker, block = self.begin()
        self.assertIsNone(worker.reset())
        for t in range(8):
            block["action"][t] = t % 3 - 1
            self.assertIsNone(worker.step(t))
        self.assertEqual(block["obs"][:, 0, 0, 0].tolist(), [0, 1, 2, 3, 0, 1, 2, 3, 0])
        self.assertEqual(block["truncated"][:, 0].tolist(), [0, 0, 0, 1, 0, 0, 0, 1])
        self.assertEqual(block["final_obs"][0, 0, 0, 0], 4)
        self.assertEqual(block["reward"][:, 0].tolist(), [-1, 0, 1, -1, 0, 1, -1, 0])  # Discrete(3, start=-1)

    def test_next_step_ignores_one_action(self):
        worker, block = self.begin(autoreset=NEXT_STEP, use="odd_envs:OddLong-v0")
        block["action"][:] = 1
        self.assertIsNone(worker.reset())
        for t in range(8):
            self.assertIsNone(worker.step(t))
        self.assertEqual(block["obs"][:, 0, 0, 0].tolist(), [0, 1, 2, 3, 4, 5, 0, 1, 2])
        self.assertEqual(block["terminated"][:, 0].tolist(), [0, 0, 0, 0, 1, 0, 0, 0])
        self.assertEqual(block["reward"][:, 0].tolist(), [1, 1, 1, 1, 1, 0, 1, 1])

    def test_disabled_waits_for_a_masked_reset(self):
        worker, block = self.begin(autoreset=DISABLED, envs=2)
        self.assertIsNone(worker.reset())
        for t in range(4):
            self.assertIsNone(worker.step(t))
        self.assertIsNone(worker.reset(4, mask=[0, 1]))
        self.assertEqual(block["obs"][4, :, 0, 0].tolist(), [4, 0])

    def test_disabled_repeats_the_observation_of_an_environment_that_waits(self):
        worker, block = self.begin(autoreset=DISABLED, envs=2)
        block["action"][:] = 1
        self.assertIsNone(worker.reset())
        for t in range(6):
            self.assertIsNone(worker.step(t))
        self.assertIsNone(worker.reset(6, mask=[1, 0]))
        for t in range(6, 8):
            self.assertIsNone(worker.step(t))
        self.assertEqual(block["obs"][:, :, 0, 0].tolist(), [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [4, 4], [0, 4], [1, 4], [2, 4]])
        self.assertEqual(block["truncated"][:, 0].tolist(), [0, 0, 0, 1, 0, 0, 0, 0])
        self.assertEqual(block["truncated"][:, 1].tolist(), [0, 0, 0, 1, 0, 0, 0, 0])
        self.assertEqual(block["reward"][4:, 1].tolist(), [0, 0, 0, 0])

    def test_numbers_at_reset_are_written_where_an_episode_begins(self):
        # The limit is 4 steps; the third reset of an environment says nothing, which is 0.
        for mode, rows in ((SAME_STEP, {0: 1, 4: 2, 8: 0}), (NEXT_STEP, {0: 1, 5: 2})):
            with self.subTest(mode=mode):
                worker, block = self.begin(autoreset=mode, args={"fail": "told"}, envs=2, infos=2)
                told = worker.spec.of_role(spec.RESET_INFO)
                self.assertEqual([(t.path, t.index, bool(t.flags & spec.OPTIONAL)) for t in told], [("reset/odd", 0, True), ("reset/resets", 1, True)])
                block["reset_info"][:], block["reset_info/1"][:] = 77, 77
                self.assertIsNone(worker.reset())
                for t in range(8):
                    self.assertIsNone(worker.step(t))
                for env in range(2):
                    self.assertEqual(block["reset_info/1"][:9, env].tolist(), [rows.get(t, 77) for t in range(9)])
                    self.assertEqual(block["reset_info"][:9, env].tolist(), [rows[t] % 2 if t in rows else 77 for t in range(9)])

    def test_a_host_need_not_have_numbers_at_reset(self):
        worker, block = self.begin(args={"fail": "told"})
        self.assertIsNone(worker.reset())
        self.assertIsNone(worker.step(0))
        self.assertNotIn("reset_info", block)

    def test_a_real_environment_tells_its_numbers_at_reset(self):
        with EnvHost("FrozenLake-v1", 3, own_process=True) as worker:
            self.assertEqual([t.path for t in worker.spec.of_role(spec.RESET_INFO)], ["reset/prob"])
            blocks = Blocks(1, *layout(STEPS, 3, ("i32", ()), infos=1), 1)
            worker.share(blocks)
            self.assertIsNone(worker.bind(blocks, 0))
            block = blocks.columns[0]
            block["reset_info"][:] = 77
            self.assertIsNone(worker.reset(seeds=[1, 2, 3]))
            self.assertEqual(block["reset_info"][:2].tolist(), [[1, 1, 1], [77, 77, 77]])

    def test_numbers_in_dicts_of_an_info_have_paths(self):
        worker, block = self.begin(args={"fail": "nested"}, infos=2)
        self.assertEqual([t.path for t in worker.spec.of_role(spec.RESET_INFO)], ["reset/stats/of/x", "reset/stats/resets"])
        self.assertIsNone(worker.reset())
        for t in range(4):
            self.assertIsNone(worker.step(t))
        self.assertEqual((block["reset_info"][[0, 4], 0].tolist(), block["reset_info/1"][[0, 4], 0].tolist()), ([7, 7], [1, 2]))
        told = []
        batch = Batch(Source("odd_envs:Odd-v0", {"fail": "nested"}), 1, SAME_STEP, lambda *number: told.append(number))
        batch._tell(0, batch.envs[0].unwrapped.info())
        batch._report_told()
        self.assertEqual(told, [(0, "episode_extra_stats/score", 0.0), (0, "episode_extra_stats/deep/y", 1.0), (0, "lives", 3.0)])

    def test_an_environment_that_gives_its_seed_to_an_int_gets_31_bits(self):
        for seed, fail, want in ((1 << 31 | 5, "int", 5), ((1 << 31) - 1, "int", (1 << 31) - 1), (1 << 40 | 9, "int", 9)):
            worker, block = self.begin(args={"fail": fail}, infos=1)
            self.assertIsNone(worker.reset(seeds=[seed]))
            self.assertEqual(block["reset_info"][0, 0], numpy.float32(want))
        self.assertEqual(Source("odd_envs:Odd-v0").seed_mask, SEED_MASK)

    def test_texts_are_characters(self):
        worker, block = self.begin(args={"observation": "mission"})
        self.assertEqual([(t.path, t.dtype, t.shape, t.high) for t in worker.spec.of_role(spec.OBSERVATION)][1], ("words", "u8", (30,), 255))
        self.assertIsNone(worker.reset())
        for t in range(4):
            self.assertIsNone(worker.step(t))
        self.assertEqual([bytes(row) for row in block["obs/1"][:5, 0]], [f"go{n}".encode().ljust(30, b"\0") for n in (0, 1, 2, 3, 0)])
        self.assertEqual(bytes(block["final_obs/1"][0, 0]).rstrip(b"\0"), b"go4")
        worker, block = self.begin(args={"observation": "text"})
        self.assertIsNone(worker.reset())
        for t in range(3):
            self.assertIsNone(worker.step(t))
        self.assertEqual([bytes(row) for row in block["obs"][:4, 0]], [b"\0\0\0", b"a\0\0", b"ab\0", b"abc"])
        self.assertEqual((bytes(characters("é" * 9, 3)), bytes(characters("", 2))), ("éé".encode()[:3], b"\0\0"))
        with self.assertRaisesRegex(ValueError, "the observation 7 is a int, its space has texts"):
            characters(7, 3)

    def test_discrete_observations_are_numbers(self):
        worker, block = self.begin(args={"observation": "discrete"})
        self.assertIsNone(worker.reset())
        for t in range(4):
            self.assertIsNone(worker.step(t))
        self.assertEqual(block["obs"][:5, 0].tolist(), [-1, 0, 1, 2, -1])
        self.assertEqual(block["final_obs"][0, 0], 3)

    def test_each_space_of_observations_has_its_columns(self):
        for observation, tensors, first, last in (
                ("binary", [("", "u8", (3,))], [[1, 0, 1]], [[0, 0, 0]]),
                ("choices", [("", "i32", (2,))], [[3, 4]], [[3, 3]]),
                ("image", [("", "u8", (4, 4, 3))], [[[[1] * 3] * 4] * 4], [[[[4] * 3] * 4] * 4]),
                ("tuple", [("0", "i32", ()), ("1/eye", "u8", (2,)), ("1/place", "f32", (1,))], [1, [1, 1], [0.5]], [4, [4, 4], [2]])):
            with self.subTest(observation):
                worker, block = self.begin(args={"observation": observation})
                described = [t for t in worker.spec.tensors if t.role == spec.OBSERVATION]
                self.assertEqual([(t.path, t.dtype, t.shape) for t in described], tensors)
                self.assertIsNone(worker.reset())
                for t in range(4):
                    self.assertIsNone(worker.step(t))
                suffix = [f"/{i}" if i else "" for i in range(len(tensors))]
                self.assertEqual([block["obs" + i][1, 0].tolist() for i in suffix], first)
                self.assertEqual([block["final_obs" + i][0, 0].tolist() for i in suffix], last)

    def test_box_actions_have_the_type_of_their_space(self):
        worker, block = self.begin(args={"action": "box"})
        self.assertIsNone(worker.reset())
        block["action"][0, 0] = [0.5, -2]
        self.assertIsNone(worker.step(0))
        self.assertEqual(block["reward"][0, 0], -1.5)

    def test_each_space_of_actions_reaches_the_environment(self):
        inf = float("inf")
        for action, tensors, written, total in (
                ("multi", [("i32", (2,), [2, 3], 4, [])], [[4, 6]], 10),
                ("uneven", [("i32", (2,), [2, 3], 0, [])], [[1, 2]], 8),  # a start of each element is added here
                ("binary", [("i32", (3,), [], 0, [])], [[1, 0, 1]], 2),
                ("wide", [("f32", (2, 2), [], 0, [-1, 0, 0, -inf])], [[-1, 0.5, 2, -9]], -7.5),
                ("tuple", [("i32", (), [], -1, []), ("f32", (2,), [], 0, [])], [-1, [0.5, 2]], 1.5)):
            with self.subTest(action):
                worker, block = self.begin(args={"action": action})
                described = [t for t in worker.spec.tensors if t.role == spec.ACTION]
                self.assertEqual([(t.dtype, t.shape, list(t.counts), t.start, list(t.lows)) for t in described], tensors)
                self.assertIsNone(worker.reset())
                for i, values in enumerate(written):
                    block[f"action/{i}" if i else "action"][0, 0] = values
                self.assertIsNone(worker.step(0))
                self.assertEqual(block["reward"][0, 0], total)

    def test_masks_are_those_of_the_coming_action(self):
        for mode, last in ((SAME_STEP, [0, 1, 0]), (NEXT_STEP, [1, 1, 1])):
            worker, block = self.begin(args={"fail": "masked"}, envs=2, autoreset=mode)
            self.assertIsNone(worker.reset())
            for t in range(5):
                self.assertIsNone(worker.step(t))
            want = [[0, 1, 0], [1, 1, 0], [0, 1, 0], [1, 1, 0], last]
            self.assertEqual(block["action_mask"][:5, 1].tolist(), want)

    def test_an_exception_names_its_environment_and_the_worker_lives_on(self):
        worker, block = self.begin(args={"fail": "step"}, envs=3, own_process=True)
        self.assertIsNone(worker.reset())
        self.assertIsNone(worker.step(0))
        self.assertIsNone(worker.reset(1, mask=[1, 0, 1]))
        self.assertIsNone(worker.step(1))
        status, env, text = worker.step(2)
        self.assertEqual((status, env), (-128, 1))
        self.assertRegex(text, r"^RuntimeError: the third step \(odd_envs.py:\d+\)$")
        self.assertEqual(worker.host.call("EnvState", {"do": "renew"}), {"call": 0, "bytes": 0})
        status, _, text = worker.step(2)
        self.assertEqual((status, text), (-3, "no block is bound"))
        self.assertIsNone(worker.bind(self.blocks, 0))
        self.assertIsNone(worker.reset())
        self.assertIsNone(worker.step(0))

    def test_a_fault_names_the_line_of_the_environments_author(self):
        for fail, want in {
            "four": r"^step must return 5 values \(Gymnasium 0.26\), and returns 4: observation, reward, terminated, truncated, info "
                    r"\(odd_envs.py:\d+\)$",
            "shaped": r"^ValueError: the observation has shape \(5,\), its space \(2, 3\) \(odd_envs.py:\d+\)$",
            "within": r"^numpy.linalg.LinAlgError: Singular matrix \(odd_envs.py:\d+\)$",
        }.items():
            worker, _ = self.begin(args={"fail": fail}, envs=2)
            self.assertIsNone(worker.reset())
            status, env, text = worker.step(0)
            self.assertEqual((status, env), (-128, 0))
            self.assertRegex(text, want)

    def test_wrong_shapes_and_failing_resets_are_faults(self):
        worker, _ = self.begin(args={"fail": "shape"})
        self.assertEqual(worker.reset()[:2], (-128, 0))
        worker, _ = self.begin(args={"fail": "reset"})
        self.assertIsNone(worker.reset())
        answers = [worker.step(t) for t in range(4)]
        self.assertEqual(answers[:3], [None] * 3)
        self.assertRegex(answers[3][2], "OSError: no second episode")

    def test_a_reward_that_is_no_number_is_blamed_on_who_gave_it(self):
        worker, _ = self.begin(args={"fail": "reward"}, envs=3)
        self.assertIsNone(worker.reset())
        self.assertIsNone(worker.step(0))
        self.assertIsNone(worker.reset(1, mask=[1, 0, 1]))
        self.assertIsNone(worker.step(1))
        status, env, text = worker.step(2)
        self.assertEqual((status, env), (-128, 1))
        self.assertRegex(text, r"^TypeError: reward is 'much', want one number \(odd_envs.py:\d+\)$")

    def test_closing_lets_go_of_the_environments(self):
        batch = Batch(Source("CartPole-v1"), 2, SAME_STEP)
        envs = [weakref.ref(env.unwrapped) for env in batch.envs]
        batch.close()
        gc.collect()
        self.assertEqual([env() for env in envs], [None, None])

    def test_what_is_hardly_meant_is_said_once(self):
        for fail, args, words in (("outside", {}, r"observes 2e\+06 at \[0, 0\] .*bounds -1e\+06 to 1e\+06"),
                                  ("mask", {}, r"action_mask.*not used"),
                                  ("", {"observation": "wide_image"}, r"images \(4, 4, 3\) of numbers from 0 to 255 in float32: as uint8")):
            with self.subTest(fail or args):
                worker, _ = self.begin(args={"fail": fail, **args}, envs=2, own_process=True)
                self.assertIsNone(worker.reset())
                for t in range(6):
                    self.assertIsNone(worker.step(t))
                lines = [line for line in worker.host.log().splitlines() if re.search(words, json.loads(line)["@message"])]
                self.assertEqual([json.loads(line)["@level"] for line in lines], ["warn"])

    def test_a_scalar_in_the_place_of_a_vector_is_a_fault(self):
        worker, _ = self.begin(args={"fail": "scalar"}, envs=2)
        self.assertIsNone(worker.reset())
        self.assertIsNone(worker.step(0))
        self.assertRegex(worker.step(1)[2], r"the observation has shape \(\), its space \(2, 3\)")

    def test_a_wrong_shape_is_a_fault_however_late(self):
        worker, _ = self.begin(args={"fail": "late"}, envs=2)
        self.assertIsNone(worker.reset())
        for step in range(200):
            if complaint := worker.step(step % 8):
                self.assertGreater(step, 64)
                self.assertRegex(complaint[2], r"the observation has shape \(\), its space \(2, 3\)")
                return
        self.fail("a scalar was repeated")

    def test_a_reset_without_seed_is_told_what_it_lacks(self):
        class Old(gymnasium.Env):
            def reset(self):
                return None
        try:
            Old().reset(seed=1)
        except TypeError as e:
            self.assertIn("def reset(self, seed=None, options=None)", told(e, Old(), "reset"))

    def test_wrappers_of_gymnasium_and_parts_that_are_dropped(self):
        flat = "gymnasium.wrappers:FlattenObservation"
        for args, shape in (({"gym_wrap": json.dumps([flat])}, (6,)), ({"gym_wrap": flat}, (6,)),
                            ({"gym_wrap": json.dumps([flat, {"use": "gymnasium.wrappers:FrameStackObservation", "stack_size": 3}])}, (3, 6))):
            with self.subTest(args):
                source = Source("odd_envs:Odd-v0", args)
                self.assertEqual(source.spec.tensor(spec.OBSERVATION).shape, shape)
        kept = Source("odd_envs:Odd-v0", {"observation": "mission", "drop": json.dumps(["words"])})
        self.assertEqual([t.path for t in kept.spec.of_role(spec.OBSERVATION)], ["place"])
        self.assertNotEqual(kept.hash, Source("odd_envs:Odd-v0", {"observation": "tuple"}).hash)
        for args, text in (({"gym_wrap": "gymnasium.wrappers:Nothing"}, "AttributeError"), ({"gym_wrap": "nowhere:Class"}, "ModuleNotFoundError"),
                           ({"gym_wrap": "FlattenObservation"}, 'want "module:Class"'), ({"drop": "place"}, "want some of the parts of a Dict"),
                           ({"observation": "mission", "drop": '["place", "words"]'}, "but not all"), ({"observation": "mission", "drop": "name"}, "place, words")):
            with self.subTest(args), self.assertRaisesRegex(Unusable, text):
                Source("odd_envs:Odd-v0", args)

    def test_keys_of_a_person_are_described(self):
        self.assertEqual(Source("odd_envs:Played-v0").spec.keys, "none=1\na=0\nd=2\nup=2\nspace=1")
        self.assertEqual(Source("odd_envs:Played-v0", {"keys": "raises"}).spec.keys, "")
        self.assertEqual(Source("odd_envs:Odd-v0").spec.keys, "")

    def test_pictures_are_described_and_sent(self):
        args = {"render_mode": "rgb_array"}
        self.assertEqual(Source("odd_envs:Painted-v0", args).spec.picture, (5, 4, 12.0))
        self.assertEqual(spec.EnvSpec.unpack(Source("odd_envs:Painted-v0", args).spec.pack()).picture, (5, 4, 12.0))
        self.assertIsNone(Source("odd_envs:Painted-v0").spec.picture)
        for picture, text in (("flat", r"shape \(4, 5\) and type uint8: want uint8 of \[height, width, 3\]"), ("floats", "type float64"),
                              ("none", "type object"), ("raises", "RuntimeError: no brush")):
            with self.subTest(picture), self.assertRaisesRegex(Unusable, 'render\\(\\) with render_mode = "rgb_array": .*' + text):
                Source("odd_envs:Painted-v0", {**args, "picture": picture})
        worker, _ = self.begin(use="odd_envs:Painted-v0", args={**args, "picture": "late"})
        self.assertIsNone(worker.reset())
        size = worker.host.call("EnvState", {"do": "render", "env": 0})
        self.assertEqual((size["bytes"], worker.host.link.states[size["call"]]), (60, bytes(60)))
        self.assertIsNone(worker.step(0))
        with self.assertRaisesRegex(Refusal, "no brush"):
            worker.host.call("EnvState", {"do": "render", "env": 0})

    def test_a_reward_may_be_an_array_of_one_element(self):
        worker, block = self.begin(args={"fail": "array"}, envs=2)
        block["action"][0] = [1, -1]
        self.assertIsNone(worker.reset())
        self.assertIsNone(worker.step(0))
        self.assertEqual(block["reward"][0].tolist(), [1, -1])

    def test_a_part_of_another_shape_is_a_fault(self):
        worker, _ = self.begin(args={"observation": "tuple", "fail": "part"})
        self.assertIsNone(worker.reset())
        self.assertIsNone(worker.step(0))
        self.assertRegex(worker.step(1)[2], r"the observation of 1/eye has shape \(3,\), its space \(2,\)")

    def test_an_environment_that_exits_is_a_fault(self):
        worker, _ = self.begin(args={"fail": "exit"}, own_process=True)
        self.assertIsNone(worker.reset())
        answers = [worker.step(t) for t in range(3)]
        self.assertRegex(answers[2][2], "SystemExit: out")

    def test_calls_out_of_range_are_refused(self):
        worker, _ = self.begin()
        self.assertIsNone(worker.reset())
        self.assertEqual(worker.step(8)[0], -1)
        self.assertEqual(worker.reset(900)[0], -1)
        with self.assertRaises(Refusal) as caught:
            worker.host.call("EnvState", {"do": "save", "env": 0})
        self.assertEqual(caught.exception.code, "UNIMPLEMENTED")

    def test_ends_with_its_host(self):
        worker, _ = self.begin(own_process=True)
        worker.host.wire.close()
        self.assertTrue(worker.host.dead(10.0))
        worker, _ = self.begin(own_process=True)
        self.assertEqual(worker.host.shutdown(), 0)
        self.assertNotIn("Traceback", worker.host.log())


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(pathlib.Path(__file__).parent))
    unittest.main()
