"""Environments of PettingZoo worked for a host."""

import pathlib
import unittest

import numpy

from envhost import Blocks, EnvHost, layout
from rlhost import spec
from rlhost.control import Refusal
from rlhost.gymnasium.source import SEED_MASK
from rlhost.pettingzoo import Batch, Source
from rlhost.pettingzoo.source import names

import odd_agents

STEPS = 32
ODD = {"PYTHONPATH": str(pathlib.Path(__file__).parent)}


def hosted(use, envs=2, own_process=False, **more):
    return EnvHost(use, envs, environment=ODD, own_process=own_process, module="rlhost.pettingzoo", **more)


class RaceReference:
    """A race stepped by PettingZoo itself: rows of all agents, in order."""

    def __init__(self, seed):
        self.env = odd_agents.race()
        self.seen, _ = self.env.reset(seed=seed & SEED_MASK)

    def active(self):
        return [a in self.env.agents for a in self.env.possible_agents]

    def step(self, actions):
        names = self.env.possible_agents
        acting = list(self.env.agents)
        self.seen, rewards, terminated, truncated, _ = self.env.step({a: int(x) for a, x in zip(names, actions) if a in acting})
        last = self.seen
        if not self.env.agents:
            self.seen, _ = self.env.reset()
        return [(rewards.get(a, 0), terminated.get(a, False), truncated.get(a, False), last.get(a)) for a in names]


class ParallelTest(unittest.TestCase):
    def test_traces_are_pettingzoos_own(self):
        seeds, rng = [3, 2**40 + 5], numpy.random.default_rng(1)
        references = [RaceReference(s) for s in seeds]
        with hosted("odd_agents:race", own_process=True) as host:
            blocks = Blocks(1, *layout(STEPS, 2 * 3, ("f32", (2,)), active=True), 1)
            host.share(blocks)
            self.assertIsNone(host.bind(blocks, 0))
            self.assertIsNone(host.reset(seeds=seeds))
            c, ends = blocks.columns[0], 0
            for t in range(STEPS):
                self.compare(c, t, references)
                c["action"][t] = rng.integers(0, 3, 6)
                self.assertIsNone(host.step(t))
                for e, reference in enumerate(references):
                    for k, (reward, terminated, truncated, last) in enumerate(reference.step(c["action"][t, 3 * e:][:3])):
                        row = 3 * e + k
                        self.assertEqual((reward, terminated, truncated), (c["reward"][t, row], c["terminated"][t, row], c["truncated"][t, row]))
                        if terminated or truncated:
                            numpy.testing.assert_array_equal(c["final_obs"][0, row], last)
                            ends += 1
            self.compare(c, STEPS, references)
            self.assertEqual(ends, 2 * 3 * STEPS // 4)

    def test_agents_that_come_back_begin_again(self):
        with hosted("odd_agents:lives", envs=1) as host:
            blocks = Blocks(1, *layout(STEPS, 2, ("f32", (2,)), active=True), 1)
            host.share(blocks)
            self.assertIsNone(host.bind(blocks, 0))
            self.assertIsNone(host.reset(seeds=[3]))
            c = blocks.columns[0]
            for t in range(12):
                self.assertIsNone(host.step(t))
                dead = [t % 2 == 1, t % 4 == 2]
                self.assertEqual(c["terminated"][t].tolist(), dead)
                self.assertEqual(c["active"][t + 1].tolist(), [True, not dead[1]])
                for k, age in ((0, 2), (1, 3)):
                    if dead[k]:
                        numpy.testing.assert_array_equal(c["final_obs"][0, k], [age, 9])
                if dead[0]:
                    numpy.testing.assert_array_equal(c["obs"][t + 1, 0], [0, 7])

    def compare(self, c, t, references):
        for e, reference in enumerate(references):
            self.assertEqual(c["active"][t, 3 * e:][:3].tolist(), reference.active())
            for k, agent in enumerate(reference.env.possible_agents):
                want = reference.seen[agent] if agent in reference.env.agents else [0, 0]
                numpy.testing.assert_array_equal(c["obs"][t, 3 * e + k], want)

    def test_an_exception_names_its_environment(self):
        with hosted("odd_agents:race", args={"fail": "true"}) as host:
            blocks = Blocks(1, *layout(STEPS, 6, ("f32", (2,)), active=True), 1)
            host.share(blocks)
            host.bind(blocks, 0)
            host.reset(seeds=[1, 2])
            _, env, text = host.step(0)
            self.assertEqual(env, 0)
            self.assertIn("OSError: the track is wet (odd_agents.py:", text)

    def test_agents_of_unequal_spaces_are_groups(self):
        with hosted("odd_agents:race", args={"unequal": "true"}) as host:
            self.assertEqual(host.spec.groups, (("group0", 2), ("c", 1)))
            self.assertEqual([t.group for t in host.spec.tensors], [0] * 7 + [1] * 7)
            blocks = Blocks(1, *layout(STEPS, 6, ("f32", (2,)), ("f32", (3,)), active=True, actions=(("i32", ()), ("i32", ()))), 1)
            host.share(blocks)
            host.bind(blocks, 0)
            host.reset(seeds=[1, 2])
            c = blocks.columns[0]
            for t in range(4):
                for mine, others, rows in (("obs", "obs/1", [0, 1, 3, 4]), ("obs/1", "obs", [2, 5])):
                    self.assertEqual(c[mine][t, rows, 0].tolist(), [t if c["active"][t, k] else 0 for k in rows])
                    self.assertFalse(c[others][t, rows].any(), "rows of the other group are nobody's")
                c["action"][t], c["action/1"][t] = [0, 1, 99, 2, 0, 99], [99, 99, 3, 99, 99, 2]
                self.assertIsNone(host.step(t))
                acted = c["active"][t].tolist()
                self.assertEqual(c["reward"][t].tolist(), [r * a for r, a in zip([0, 1, 3, 2, 0, 2], acted)])
            self.assertEqual(c["obs/1"][4, [2, 5], 0].tolist(), [0, 0])
            self.assertEqual(c["final_obs/1"][0, [2, 5], 2].tolist(), [7, 7])

    def test_numbers_at_reset_are_each_agents_own(self):
        with hosted("odd_agents:race", args={"unequal": "true", "told": "true"}) as host:
            told = host.spec.of_role(spec.RESET_INFO)
            self.assertEqual([(t.path, t.group) for t in told], [("reset/lane", 0), ("reset/start", 0), ("reset/lane", 1), ("reset/start", 1)])
            self.assertTrue(all(t.flags & spec.PER_AGENT and t.flags & spec.OPTIONAL for t in told))
            blocks = Blocks(1, *layout(STEPS, 6, ("f32", (2,)), ("f32", (3,)), active=True, infos=4, actions=(("i32", ()), ("i32", ()))), 1)
            host.share(blocks)
            self.assertIsNone(host.bind(blocks, 0))
            c = blocks.columns[0]
            c["action"][:], c["action/1"][:] = 0, 0
            for name in ("reset_info", "reset_info/1", "reset_info/2", "reset_info/3"):
                c[name][:] = 77
            self.assertIsNone(host.reset(seeds=[1, 2]))
            for t in range(4):
                self.assertIsNone(host.step(t))
            for t in range(5):
                begins = t in (0, 4)  # a race has 4 steps
                self.assertEqual(c["reset_info"][t].tolist(), [0, 1, 77, 0, 1, 77] if begins else [77] * 6)
                self.assertEqual(c["reset_info/2"][t].tolist(), [77, 77, 2, 77, 77, 2] if begins else [77] * 6)
                start = c["obs"][t, [0, 3], 1].tolist()
                self.assertEqual(c["reset_info/1"][t, [0, 1, 3, 4]].tolist(), [start[0], start[0], start[1], start[1]] if begins else [77] * 4)

    def test_seeds_have_31_bits_where_more_are_refused(self):
        with hosted("odd_agents:race", args={"told": "true", "narrow": "true"}, envs=1) as host:
            blocks = Blocks(1, *layout(STEPS, 3, ("f32", (2,)), active=True, infos=2), 1)
            host.share(blocks)
            self.assertIsNone(host.bind(blocks, 0))
            c = blocks.columns[0]
            for seed in 5, 1 << 31 | 5:
                self.assertIsNone(host.reset(seeds=[seed]))
                self.assertEqual(c["reset_info/1"][0, 0], numpy.random.default_rng(5).integers(50))

    def test_numbers_at_reset_of_agents_that_take_turns(self):
        with hosted("odd_agents:nim", envs=1) as host:
            self.assertEqual([t.path for t in host.spec.of_role(spec.RESET_INFO)], ["reset/seat"])
            blocks = Blocks(1, *layout(STEPS, 2, ("f32", (1,)), active=True, mask=2, infos=1), 1)
            host.share(blocks)
            self.assertIsNone(host.bind(blocks, 0))
            self.assertIsNone(host.reset(seeds=[1]))
            self.assertEqual(blocks.columns[0]["reset_info"][0].tolist(), [0, 1])

    def test_groups_are_called_as_their_agents(self):
        self.assertEqual(names([["adversary_0", "adversary_1"], ["agent_0"]]), ["adversary", "agent"])
        self.assertEqual(names([["a_0", "b_0"], ["a_1"]]), ["group0", "a"])
        self.assertEqual(names([["x_0"], ["x_1"]]), ["group0", "group1"])
        self.assertEqual(names([[1, 2]]), ["agents"])

    def test_what_cannot_be_found_is_named(self):
        with self.assertRaisesRegex(Refusal, "E010 the module no_such_module cannot be imported"):
            hosted("no_such_module")
        with self.assertRaisesRegex(Refusal, "E010 the module odd_agents has no function chess"):
            hosted("odd_agents:chess")

    def test_an_environment_that_does_not_say_its_agents_is_refused(self):
        for kind in "parallel", "env":
            name = f"pettingzoo.test.example_envs.generated_agents_{kind}_v0"
            with self.assertRaisesRegex(Refusal, f"E018 {name} has no possible_agents: which agents there will be must be known before it begins"):
                hosted(name)


class TurnsTest(unittest.TestCase):
    def test_one_agent_acts_and_both_get_what_comes_of_it(self):
        with hosted("odd_agents:nim", envs=1) as host:
            self.assertEqual(host.spec.agents, 2)
            self.assertTrue(all(t.flags & spec.PER_AGENT for t in host.spec.tensors))
            blocks = Blocks(1, *layout(STEPS, 2, ("f32", (1,)), active=True, mask=2), 1)
            host.share(blocks)
            host.bind(blocks, 0)
            host.reset(seeds=[1])
            c, left, turn = blocks.columns[0], 7, 0
            for t, action in enumerate([1, 1, 0, 1]):  # 2 + 2 + 1 + 2 are the seven
                other = 1 - turn
                self.assertEqual(c["active"][t].tolist(), [1 - turn, turn], f"step {t}")
                self.assertEqual(c["obs"][t, turn, 0], left)
                self.assertEqual(c["action_mask"][t].tolist()[turn], [1, int(left > 1)])
                self.assertEqual(c["action_mask"][t].tolist()[other], [1, 1])
                c["action"][t] = 9  # of who does not act: nobody reads it
                c["action"][t, turn] = action
                self.assertIsNone(host.step(t))
                left -= 1 + action
                over = left <= 0
                self.assertEqual(c["terminated"][t].tolist(), [over, over])
                want = [0.0, 0.0]
                if over:
                    want[turn], want[other] = -1.0, 1.0
                self.assertEqual(c["reward"][t].tolist(), want)
                turn = other
            self.assertTrue(over)
            self.assertEqual(c["final_obs"][0, :, 0].tolist(), [0, 0])
            self.assertEqual((c["active"][t + 1].tolist(), c["obs"][t + 1, 0, 0]), ([1, 0], 7))

    def test_a_source_says_what_it_is(self):
        source = Source("odd_agents:nim")
        self.assertEqual((source.agents, source.turns, source.groups[0].masked), (["first", "second"], True, True))
        self.assertEqual(spec.EnvSpec.unpack(source.spec.pack()).pack(), source.spec.pack())
        batch = Batch(source, 3, spec.SAME_STEP)
        self.assertEqual(len(batch.envs), 3)
        batch.close()


if __name__ == "__main__":
    unittest.main()
