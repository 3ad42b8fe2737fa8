"""What a learner's author is told of its policy, without PyTorch."""

import math
import types
import unittest

from rlhost import EnvSpec, Learner, PolicyLayout, Tensor
from rlhost.component import ConfigErrors
from rlhost.layout import Box, Core
from rlhost.learning import LearnerConfig
from rlhost.spec import ACTION, NO_HIGH, OBSERVATION

try:
    import torch
except ImportError:
    torch = None


def host(tensors, table=None):
    """What a host tells of a policy for an environment with these tensors."""
    env = EnvSpec("test@1", tensors)
    return types.SimpleNamespace(policies={"main": types.SimpleNamespace(env="env", table=table or {})}, env=lambda name: env)


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


class PolicyLayoutTest(unittest.TestCase):
    def test_a_choice_is_described_by_its_values(self):
        made = layout([CHOICE, OBS], {"net": {"hidden": [5]}})
        self.assertEqual((made.obs, made.actions, made.outputs, made.box), (3, 4, 4, None))
        self.assertEqual(made.tensors()["actor.head.weight"], (5, 4))
        self.assertEqual(made.network()["actions"], 4)

    def test_a_box_is_described_by_how_it_is_drawn(self):
        action = Tensor(ACTION, "f32", (2,), low=-1, high=1, flags=NO_HIGH)
        made = layout([action, OBS], {"net": {"hidden": [5]}, "action": {"log_std_init": -0.5}})
        self.assertEqual(made.box, Box(2, (-1, -1), (math.inf, math.inf), "free", -0.5))
        self.assertEqual(list(made.tensors().items())[2:5],
                         [("actor.head.weight", (5, 2)), ("actor.head.bias", (2,)), ("actor.log_std.value", (2,))])
        made = layout([action, OBS], {"action": {"log_std": "state", "squash": "tanh"}})
        self.assertEqual((made.outputs, made.box.squash, "actor.log_std.value" in made.tensors()), (4, True, False))

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
                ([CHOICE, Tensor(ACTION, "i32", n=2, index=1), OBS], {}, "2 actions"),
                ([CHOICE, OBS, Tensor(OBSERVATION, "f32", index=1, path="more")], {}, "2 observations"),
                ([CHOICE, Tensor(OBSERVATION, "u8", (4, 4, 3))], {}, "no such observation"),
                ([CHOICE, Tensor(OBSERVATION, "i32", n=16)], {}, "no such observation"),
                ([Tensor(ACTION, "i32", (2,), n=3), OBS], {}, "no such action"),
                ([Tensor(ACTION, "i32", n=3, start=1), OBS], {}, "no such action"),
                ([CHOICE, OBS], {"inputs": ["last_action"]}, "inputs"),
                ([CHOICE, OBS], {"net": {"kind": "impala"}}, "kind"),
                ([CHOICE, OBS], {"net": {"core": {"kind": "gru"}}, "encoder": {"obs": {"kind": "mlp"}}}, "encoder"),
                ([CHOICE, OBS], {"net": {"nodes": [{"name": "core", "in": ["obs"], "gru": {"size": 16}}]}}, "kind"),
        ):
            with self.subTest(want), self.assertRaisesRegex(ValueError, want):
                layout(tensors, table)


class VersionsTest(unittest.TestCase):
    def test_versions_continue_from_what_was_published_before(self):
        for published, restored, want in ((0, 0, 0), (7, 0, 8), (7, 3, 8), (7, 9, 9), (0, 9, 9)):
            learner = Learner()
            learner.host, learner.version, learner._publish = types.SimpleNamespace(published=published), restored, lambda: None
            learner.begin()
            self.assertEqual(learner.version, want, f"published {published}, restored {restored}")


class LearnerConfigTest(unittest.TestCase):
    def test_a_rate_that_follows_the_divergence_has_bounds(self):
        LearnerConfig(adaptive_kl=0.01).check()
        for keys, want in (({"adaptive_kl": -1.0}, "adaptive_kl"), ({"adaptive_kl": 0.01, "anneal_env_steps": 5}, "anneal_env_steps"),
                           ({"learning_rate_min": 0.1, "learning_rate_max": 0.01}, "learning_rate_min")):
            with self.subTest(want), self.assertRaises(ConfigErrors) as raised:
                LearnerConfig(**keys).check()
            self.assertIn(want, str(raised.exception))


if __name__ == "__main__":
    unittest.main()
