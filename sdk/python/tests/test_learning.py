"""What a learner's author is told of its policy, without PyTorch."""

import dataclasses
import math
import re
import struct
import subprocess
import tempfile
import types
import unittest

import numpy

from rlhost import EnvSpec, Learner, PolicyLayout, Tensor
from rlhost.component import ConfigErrors
from rlhost.host import Policy
from rlhost.layout import Box, Core, Discrete, Input
from rlhost.arena import Trajectory
from rlhost.learning import Dataset, LearnerConfig, _members
from rlhost.spec import ACTION, ACTION_MASK, ACTIVE, BINARY, IMAGE_CHW, IMAGE_HWC, NO_HIGH, OBSERVATION

try:
    import torch
except ImportError:
    torch = None


def host(tensors, table=None, groups=(), group=0):
    """What a host tells of a policy for an environment with these tensors."""
    env = EnvSpec("test@1", tensors, groups=groups)
    return types.SimpleNamespace(policies={"main": Policy(table or {}, "env", group)}, env=lambda name: env)


def layout(tensors, table=None):
    """The layout of that policy."""
    return PolicyLayout.of(host(tensors, table), "main")


OBS = Tensor(OBSERVATION, "f32", (3,))
CHOICE = Tensor(ACTION, "i32", n=4)


class DeviceTest(unittest.TestCase):
    def test_a_device_is_cpu_or_one_of_cuda(self):
        LearnerConfig().check()
        for name in ("", "CPU", "gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:0 ", "cuda0"):
            with self.subTest(name), self.assertRaises(ConfigErrors) as caught:
                LearnerConfig(device=name).check()
            [error] = caught.exception.errors
            self.assertEqual((error.key, error.code, error.help), ("device", "", "want cpu, cuda or cuda:N, where N counts from 0"))

    def test_a_device_that_is_not_there_is_an_error_with_a_remedy(self):
        if torch and torch.cuda.is_available():
            name, says, remedy = f"cuda:{torch.cuda.device_count()}", "GPUs", "want cuda:0"
        else:
            name, says, remedy = "cuda", "finds no GPU" if torch else "PyTorch cannot be imported", 'write device = "cpu"'
        with self.assertRaises(ConfigErrors) as caught:
            LearnerConfig(device=name).check()
        [error] = caught.exception.errors
        self.assertEqual((error.key, error.code), ("device", "E039"))
        self.assertIn(says, error.reason)
        self.assertIn(remedy, error.help)


class PartsTest(unittest.TestCase):
    def block(self, steps=3, envs=4, agents=2):
        width = envs * agents
        obs = numpy.arange((steps + 1) * width * 5, dtype=numpy.float32).reshape(steps + 1, width, 5)
        return Trajectory({"obs": obs, "valid": numpy.ones((steps, width), numpy.uint8), "policy_version": numpy.zeros((steps + 1, 1), numpy.int64),
                           "meta": numpy.zeros((1, 1, 64), numpy.uint8)}, steps, envs)

    def test_a_part_of_a_block_is_views_of_some_environments_with_all_their_agents_and_rows(self):
        block = self.block()
        part = block.part(1, 2)
        self.assertEqual((part.envs, part.steps, part.obs.shape, part.policy_version.shape), (2, 3, (4, 4, 5), (4, 1)))
        numpy.testing.assert_array_equal(part.obs, block.obs[:, 2:6])
        self.assertTrue(numpy.shares_memory(part.obs, block.obs))
        numpy.testing.assert_array_equal(part.meta, block.meta)
        for first, envs in ((0, 0), (-1, 2), (3, 2), (0, 5)):
            with self.subTest(first=first, envs=envs), self.assertRaises(ValueError):
                block.part(first, envs)

    def test_parts_lie_side_by_side_in_a_dataset(self):
        first, second = self.block(), self.block()
        made = Dataset([first.part(3, 1), second, first.part(0, 1)], 0)["obs"]
        numpy.testing.assert_array_equal(made, numpy.concatenate([first.obs[:, 6:], second.obs, first.obs[:, :2]], 1))

    def test_a_dataset_lists_trajectories_and_their_parts(self):
        block = numpy.zeros(64, numpy.uint8)
        struct.pack_into("<QII2Q4I", block, 0, 7, 2, 1, 11, 22, 1, 3, 4, 0)
        self.assertEqual(_members(block), [(11, None), (22, (3, 4))])
        for at, value in ((8, 7), (12, 3), (32, 2)):
            bad = block.copy()
            bad[at] = value
            with self.subTest(at), self.assertRaises(ValueError):
                _members(bad)


class PolicyLayoutTest(unittest.TestCase):
    def test_a_choice_is_described_by_its_values(self):
        made = layout([CHOICE, OBS], {"net": {"hidden": [5]}})
        self.assertEqual((made.obs, made.actions), (3, (Discrete((4,)),)))
        self.assertEqual(made.tensors()["actor.head.weight"], (5, 4))
        self.assertEqual(made.network()["policy"], [{"action": "action", "from": "actor.head", "categorical": {"n": 4}}])

    def test_an_action_has_the_values_of_each_element(self):
        for action, want, outputs, described in (
                (Tensor(ACTION, "i32", n=3, start=-1), Discrete((3,), -1), 3, {"start": -1, "categorical": {"n": 3}}),
                (Tensor(ACTION, "i32", (2,), n=3), Discrete((3, 3)), 6, {"multi_categorical": {"counts": [3, 3]}}),
                (Tensor(ACTION, "i32", (2,), counts=[3, 2], start=1), Discrete((3, 2), 1), 5, {"start": 1, "multi_categorical": {"counts": [3, 2]}}),
                (Tensor(ACTION, "i32", (2, 2), n=2, flags=BINARY), Discrete((2,) * 4, binary=True), 4, {"bernoulli": {"n": 4}}),
                (Tensor(ACTION, "i32", (1,), n=2, flags=BINARY), Discrete((2,)), 2, {"categorical": {"n": 2}}),
                (Tensor(ACTION, "i32", (2,), n=2), Discrete((2, 2)), 4, {"multi_categorical": {"counts": [2, 2]}})):
            with self.subTest(action=action):
                made = layout([action, OBS], {"net": {"hidden": [5]}})
                self.assertEqual((made.actions, made.tensors()["actor.head.bias"]), ((want,), (outputs,)))
                self.assertEqual(made.network()["policy"], [{"action": "action", "from": "actor.head", **described}])

    def test_each_action_has_a_head_and_a_mask_of_its_own(self):
        box = Tensor(ACTION, "f32", (2,), low=-1, high=1)
        masks = [Tensor(ACTION_MASK, "u8", (4,), pair=1), Tensor(ACTION_MASK, "u8", (6,), index=1, pair=2)]
        made = layout([box, Tensor(ACTION, "i32", n=4, index=1), Tensor(ACTION, "i32", (3,), n=2, index=2), OBS, *masks],
                      {"net": {"hidden": [5]}})
        self.assertEqual([(a.column, getattr(a, "mask", "")) for a in made.actions],
                         [("raw_action", ""), ("action/1", "action_mask"), ("action/2", "action_mask/1")])
        self.assertEqual(list(made.tensors())[2:9], [
            "actor.head.weight", "actor.head.bias", "actor.log_std.value", "actor.head.1.weight", "actor.head.1.bias",
            "actor.head.2.weight", "actor.head.2.bias"])
        self.assertEqual([(d["action"], d["from"]) for d in made.network()["policy"]],
                         [("action", "actor.log_std"), ("action/1", "actor.head.1"), ("action/2", "actor.head.2")])

    def test_a_learner_is_given_the_actions_that_it_learns(self):
        box, several = Tensor(ACTION, "f32", (2,)), [CHOICE, Tensor(ACTION, "i32", n=2, index=1)]
        for actions, joint, boxes, want in (
                ([box], True, False, "the action is a Box"), (several, False, True, "the environment has 2 actions"),
                ([Tensor(ACTION, "i32", (2,), n=3)], False, True, "the action has 2 elements with values from 0 on"),
                ([Tensor(ACTION, "i32", n=3, start=1)], False, True, "the action has 1 elements with values from 1 on"),
                ([box], False, True, ""), (several, True, False, ""), ([*several, box], True, True, "")):
            learner = Learner()
            learner.joint, learner.boxes, learner.config = joint, boxes, LearnerConfig()
            learner.policy = layout([*actions, OBS])
            with self.subTest(want, actions=actions):
                if not want:
                    learner._check_actions()
                    continue
                with self.assertRaisesRegex(ValueError, f"'main': {want}, which this learner does not learn: want one choice"):
                    learner._check_actions()

    def test_a_state_of_another_network_is_refused(self):
        table = {"net": {"hidden": [5]}, "normalize_obs": True}
        several = [CHOICE, Tensor(ACTION, "f32", (2,), index=1), OBS]
        made = layout(several, table)
        made.check(layout(several, {**table, "action": {"log_std_init": 1}}).network())
        core = {"hidden": [5], "core": {"kind": "gru", "size": 4}}
        for tensors, other, want in (
                ([CHOICE, Tensor(ACTION, "f32", (3,), index=1), OBS], table, "actions"), ([CHOICE, OBS], table, "actions"),
                ([Tensor(ACTION, "i32", n=4, start=1), *several[1:]], table, "actions"), (several, {**table, "action": {"log_std": "network"}}, "actions"),
                (several, {**table, "net": {"hidden": [5, 5]}}, "hidden"), (several, {**table, "net": core, "share_trunk": False}, "core"),
                (several, {**table, "share_trunk": True}, "share_trunk"), (several, {**table, "normalize_obs": False}, "inputs"),
                ([*several, Tensor(OBSERVATION, "f32", index=1)], table, "inputs"),
                (several, {**table, "net": {"hidden": [5], "activation": "elu"}}, "activation")):
            with self.subTest(want), self.assertRaisesRegex(ValueError, f"the saved policy has {want} .*, the pipeline"):
                made.check(layout(tensors, other).network())
        keys = {"obs": 3, "actions": 4, "hidden": [5], "activation": "tanh", "share_trunk": False, "normalize_obs": True, "hidden_gain": 1.4}
        layout([CHOICE, OBS], table).check(keys)  # of format 0
        with self.assertRaisesRegex(ValueError, "actions"):
            layout([CHOICE, OBS], table).check({**keys, "actions": 5})

    def test_a_box_is_described_by_how_it_is_drawn(self):
        action = Tensor(ACTION, "f32", (2,), low=-1, high=1, flags=NO_HIGH)
        made = layout([action, OBS], {"net": {"hidden": [5]}, "action": {"log_std_init": -0.5}})
        self.assertEqual(made.actions, (Box(2, (-1, -1), (math.inf, math.inf), "parameter", -0.5),))
        self.assertEqual(list(made.tensors().items())[2:5],
                         [("actor.head.weight", (5, 2)), ("actor.head.bias", (2,)), ("actor.log_std.value", (2,))])
        made = layout([action, OBS], {"action": {"log_std": "network", "squash": "tanh"}})
        [box] = made.actions
        self.assertEqual((box.outputs, box.squash, "actor.log_std.value" in made.tensors()), (4, True, False))

    def test_observations_enter_as_suits_their_tensors(self):
        tensors = [Tensor(OBSERVATION, "f32", (2,), path="arm"), Tensor(OBSERVATION, "i32", (2,), counts=[3, 4], start=-1, index=1, path="gear"),
                   Tensor(OBSERVATION, "u8", (5, 5, 1), index=2, flags=IMAGE_HWC, path="eye"), Tensor(OBSERVATION, "i32", n=4, index=3)]
        made = layout([CHOICE, *tensors], {"net": {"hidden": [5]}, "normalize_obs": True})
        self.assertEqual(made.inputs, (
            Input(2, "running", "arm", "obs"), Input(2, "onehot", "gear", "obs/1", "i32", counts=(3, 4), start=-1),
            Input(25, "scale", "eye", "obs/2", "u8", scale=1 / 255), Input(1, "onehot", "obs/3", "obs/3", "i32", counts=(4,))))
        self.assertEqual((made.obs, made.running, made.tensors()["critic.0.weight"]), (38, [0, 1], (38, 5)))
        network = made.network()
        self.assertEqual(network["inputs"][1], {"path": "gear", "shape": [2], "norm": "onehot", "dtype": "i32", "choices": [3, 4], "start": -1})
        self.assertEqual(network["nodes"][0], {"name": "actor.join", "in": ["arm", "gear", "eye", "obs/3"], "concat": {}})
        [raw] = layout([CHOICE, Tensor(OBSERVATION, "u8", (4,))]).inputs
        self.assertEqual(raw, Input(4, dtype="u8"))
        for high, scale, want in ((255, 0, 1 / 255), (15, 0, 1 / 15), (1, 0, 1), (15, 0.5, 0.5)):
            [picture] = layout([CHOICE, Tensor(OBSERVATION, "u8", (3, 35, 40), high=high, scale=scale, flags=IMAGE_CHW)]).inputs
            self.assertEqual((picture.norm, picture.scale), ("scale", want))

    def test_a_learner_is_given_the_observations_that_it_learns_from(self):
        several = [OBS, Tensor(OBSERVATION, "f32", index=1, path="more")]
        for observed, inputs, want in ((several, False, "2 observations"), ([Tensor(OBSERVATION, "i32", n=16)], False, "an observation of i32"),
                                       (several, True, ""), ([OBS], False, "")):
            learner = Learner()
            learner.inputs, learner.config, learner.policy = inputs, LearnerConfig(), layout([CHOICE, *observed])
            with self.subTest(want):
                if not want:
                    learner._check_inputs()
                    continue
                with self.assertRaisesRegex(ValueError, f"'main': the environment has {want}, which this learner does not learn from: want one of f32"):
                    learner._check_inputs()

    def test_a_policy_has_the_spaces_of_the_agents_that_it_plays(self):
        tensors = [CHOICE, OBS, Tensor(ACTION, "i32", n=2, group=1), Tensor(OBSERVATION, "f32", (5,), group=1), Tensor(ACTIVE, "u8", group=1)]
        groups = (("hunters", 3), ("prey", 1))
        for group, obs, values, agents, turns in ((0, 3, 4, 3, False), (1, 5, 2, 1, True)):
            made = PolicyLayout.of(host(tensors, groups=groups, group=group), "main")
            self.assertEqual((made.obs, made.actions, made.env.agents), (obs, (Discrete((values,)),), agents))
            learner = Learner()
            learner.config = LearnerConfig()
            if turns:
                with self.assertRaisesRegex(ValueError, "'main': its agents do not always act, which this learner does not learn"):
                    learner.start(host(tensors, groups=groups, group=group))

    def test_a_core_lies_behind_the_hidden_layers(self):
        made = layout([CHOICE, OBS], {"net": {"hidden": [5], "core": {"kind": "gru"}}})
        self.assertEqual((made.core, made.core.state, made.share_trunk), (Core("gru", 128, 16), 128, True))
        net = {"hidden": [5], "core": {"kind": "lstm", "size": 7}, "chunk": 8}
        made = layout([CHOICE, OBS], {"net": net, "share_trunk": False})
        self.assertEqual((made.core, made.core.state), (Core("lstm", 7, 8), 14))
        self.assertEqual(list(made.tensors().items())[2:8], [
            ("actor.core.weight_ih", (5, 28)), ("actor.core.weight_hh", (7, 28)), ("actor.core.bias_ih", (28,)),
            ("actor.core.bias_hh", (28,)), ("actor.head.weight", (7, 4)), ("actor.head.bias", (4,))])
        network = made.network()
        self.assertEqual([n["name"] for n in network["nodes"] if "lstm" in n], ["actor.core", "critic.core"])
        self.assertEqual((network["chunk"], network["policy"][0]["categorical"]), (8, {"n": 4}))

    def test_a_core_needs_a_learner_of_cores_and_whole_chunks(self):
        for cores, minibatch, want in ((False, 64, "has a core 'gru', which this learner does not learn"), (True, 15, "want 16 or more")):
            learner = Learner()
            learner.cores, learner.config = cores, LearnerConfig(minibatch=minibatch)
            with self.subTest(want), self.assertRaisesRegex(ValueError, want):
                learner.start(host([CHOICE, OBS], {"net": {"core": {"kind": "gru"}}}))

    def test_what_it_does_not_have_is_refused(self):
        for tensors, table, want in (
                ([CHOICE, Tensor(OBSERVATION, "i32", n=65, path="place")], {}, "'place' is of 65 values, which are embedded"),
                ([CHOICE, Tensor(OBSERVATION, "u8", (40, 36, 3), flags=IMAGE_HWC)], {}, "which has convolutions"),
                ([CHOICE, Tensor(OBSERVATION, "u8", (3, 40, 36), flags=IMAGE_CHW)], {}, "which has convolutions"),
                ([CHOICE, OBS], {"frame_stack": 4}, "want no frame_stack"),
                ([CHOICE, OBS], {"inputs": ["last_action"]}, "inputs"),
                ([CHOICE, OBS], {"net": {"kind": "impala"}}, "kind"),
                ([CHOICE, OBS], {"net": {"core": {"kind": "gru"}}, "encoder": {"obs": {"kind": "mlp"}}}, "encoder"),
                ([CHOICE, OBS], {"net": {"nodes": [{"name": "core", "in": ["obs"], "gru": {"size": 16}}]}}, "kind"),
        ):
            with self.subTest(want), self.assertRaisesRegex(ValueError, want):
                layout(tensors, table)


class VersionsTest(unittest.TestCase):
    def test_versions_continue_from_what_was_published_before(self):
        for published, restored, want in ((0, 0, 0), (7, 0, 8), (7, 3, 8), (7, 7, 7), (7, 9, 9), (0, 9, 9)):
            learner = Learner()
            learner.host, learner.version, learner._publish = types.SimpleNamespace(published=published), restored, lambda: None
            learner.begin()
            self.assertEqual(learner.version, want, f"published {published}, restored {restored}")


class LearnerConfigTest(unittest.TestCase):
    def test_it_has_the_keys_of_the_built_in_learner(self):
        pipeline = 'rlhost = 1\n[run]\nname = "a"\n[env.a]\nuse = "cartpole@1"\n[train]\npreset = "ppo"\n'
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as f:
            f.write(pipeline)
            f.flush()
            shown = subprocess.run(["rlhost", "show", "--expanded", f.name], check=True, capture_output=True, text=True).stdout
        table = shown.split("[component.learner]\n")[1].split("\n[")[0]
        keys = re.findall(r"^([a-z0-9_]+) = ", table, re.M)
        self.assertIn("learning_rate", keys)
        self.assertEqual(set(keys) - {f.name for f in dataclasses.fields(LearnerConfig)}, {"kind", "count", "loop", "swap"})

    def test_what_a_learner_does_not_do_is_refused(self):
        table = {"accumulate": 2, "burn_in_rows": 3}
        Learner().configure({"accumulate": 1, "burn_in_rows": 0})
        with self.assertRaisesRegex(ConfigErrors, "`accumulate` is 2, and Learner makes .*raise minibatch.*`burn_in_rows` is 3, .*take it out"):
            Learner().configure(table)
        able = type("Able", (Learner,), {"accumulates": True, "warms": True, "cores": True})()
        able.configure(table)
        self.assertEqual((able.config.accumulate, able.config.burn_in_rows), (2, 3))
        with self.assertRaisesRegex(ConfigErrors, "`learners` is 2, and Able learns alone.*`hosts` is 1, and Able"):
            able.configure({"learners": 2, "hosts": 1})
        for key, value in (("accumulate", 0), ("accumulate", 4097), ("burn_in_rows", -1)):
            with self.subTest(key), self.assertRaisesRegex(ConfigErrors, f"`{key}` is {value}"):
                able.configure({key: value})

    def test_burn_in_leaves_rows_of_a_chunk(self):
        for table, rows, want in (({}, 1, "keeps no state that rows could warm up"), ({"net": {"core": {"kind": "gru"}}}, 16, "chunks of 16 rows")):
            learner = Learner()
            learner.cores, learner.config = True, LearnerConfig(burn_in_rows=rows)
            with self.subTest(want), self.assertRaisesRegex(ValueError, want):
                learner.start(host([CHOICE, OBS], table))

    def test_a_rate_that_follows_the_divergence_has_bounds(self):
        LearnerConfig(adaptive_kl=0.01).check()
        for keys, want in (({"adaptive_kl": -1.0}, "adaptive_kl"), ({"adaptive_kl": 0.01, "lr_anneal_env_steps": 5}, "lr_anneal_env_steps"),
                           ({"learning_rate_min": 0.1, "learning_rate_max": 0.01}, "learning_rate_min")):
            with self.subTest(want), self.assertRaises(ConfigErrors) as raised:
                LearnerConfig(**keys).check()
            self.assertIn(want, str(raised.exception))


if __name__ == "__main__":
    unittest.main()
