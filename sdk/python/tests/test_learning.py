"""What a learner's author is told of its policy, without PyTorch."""

import math
import types
import unittest

from rlhost import EnvSpec, PolicyLayout, Tensor
from rlhost.component import ConfigErrors
from rlhost.learning import Box, LearnerConfig
from rlhost.spec import ACTION, NO_HIGH, OBSERVATION


def layout(tensors, table=None):
    """The layout of a policy for an environment with these tensors."""
    env = EnvSpec("test@1", tensors)
    host = types.SimpleNamespace(policies={"main": types.SimpleNamespace(env="env", table=table or {})}, env=lambda name: env)
    return PolicyLayout.of(host, "main")


OBS = Tensor(OBSERVATION, "f32", (3,))
CHOICE = Tensor(ACTION, "i32", n=4)


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
                ([CHOICE, OBS], {"net": {"core": {"kind": "gru"}}}, "no core: want net without core 'gru'"),
        ):
            with self.subTest(want), self.assertRaisesRegex(ValueError, want):
                layout(tensors, table)


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
