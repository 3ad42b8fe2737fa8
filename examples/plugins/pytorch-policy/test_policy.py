"""The host's description of a policy in PyTorch computes what the policy computes. make test-peers runs it."""

import importlib.util
import pathlib
import sys
import unittest

import numpy
import rlhost
import rlhost.torch
import torch
from rlhost.answers import ask
from rlhost.policy import PolicySpec, described
from rlhost.spec import ACTION, IMAGE_CHW, IMAGE_HWC, OBSERVATION, EnvSpec, Tensor
from torch import nn

HERE = pathlib.Path(__file__).parent


def script(name):
    """One of the examples, as a module."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    made = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def spec(*tensors):
    """What a policy is told of an environment with these tensors."""
    return PolicySpec(EnvSpec("env", list(tensors)), 1)


NUMBERS = Tensor(OBSERVATION, "f32", (6,))
PICTURE = Tensor(OBSERVATION, "u8", (9, 7, 3), high=255, flags=IMAGE_HWC)
CHOICE = Tensor(ACTION, "i32", n=4)
SEVERAL = Tensor(ACTION, "i32", (3,), counts=(2, 2, 3))
BOX = Tensor(ACTION, "f32", (2,), low=-1, high=1)


class Mixed(rlhost.Policy, nn.Module):
    """Reads a picture with its channels first, a number by its values, and others; an LSTM, and an action of each kind."""

    def __init__(self, spec, bug=""):
        super().__init__()
        self.bug, self.state_size = bug, 2 * 8
        self.eyes = nn.Sequential(nn.Conv2d(3, 5, 3, stride=2, padding=1), nn.ELU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(5 * 2 * 2, 12), nn.LayerNorm(12), nn.GELU(), nn.Dropout())
        self.ears, self.memory = nn.Linear(6, 12, bias=False), nn.LSTMCell(12 + 12 + 3, 8)
        self.heads, self.critic = nn.ModuleList([nn.Linear(8, 4), nn.Linear(8, 7), nn.Linear(8, 2)]), nn.Linear(8, 1)
        self.log_std = nn.Parameter(torch.tensor([-1.0, 0.5]))

    def act(self, obs, state, mask, greedy):
        one_hot = nn.functional.one_hot(obs["hour"].long() - 10, 3).float()
        seen = self.eyes(obs["planes"].float() / 255)
        h, c = self.memory(torch.cat([seen, self.ears(obs["near"]), one_hot], 1), (state[:, :8], state[:, 8:]))
        choice, several, box = (head(h) for head in self.heads)
        several = torch.stack([part.argmax(1) for part in several.split([2, 2, 3], 1)], 1)
        value = self.critic(h).squeeze(1) * (2 if self.bug == "value" else 1)
        choice = choice.argmin(1) if self.bug == "action" else choice.argmax(1)
        return (choice, several, box), torch.zeros(len(h)), value, torch.cat([h, c], 1)

    def describe(self, spec):
        net = rlhost.torch.Description(self, spec)
        seen = net.through(self.eyes, net.input("planes", scale=1 / 255))
        x = net.through(self.memory, net.join(seen, net.through(self.ears, net.input("near")), net.input("hour", onehot=True)))
        for i, head in enumerate(self.heads):
            net.action(net.through(head, x), self.log_std if i == 2 else None)
        net.value(net.through(self.critic, x))
        return net


MIXED = spec(Tensor(OBSERVATION, "u8", (3, 9, 7), high=255, flags=IMAGE_CHW, path="planes"), Tensor(OBSERVATION, "f32", (6,), path="near", index=1),
             Tensor(OBSERVATION, "i32", n=3, start=10, path="hour", index=2), CHOICE, Tensor(ACTION, "i32", (3,), counts=(2, 2, 3), index=1),
             Tensor(ACTION, "f32", (2,), low=-1, high=1, index=2))


class Described(unittest.TestCase):
    def test_a_description_computes_what_act_does(self):
        ppo, recurrent = script("ppo"), script("recurrent")
        for name, made, of in (("dense", ppo.Net, spec(NUMBERS, CHOICE)), ("of a flat picture", ppo.Net, spec(PICTURE, CHOICE)),
                               ("recurrent", recurrent.Net, spec(NUMBERS, CHOICE)), ("convolutions", recurrent.Net, spec(PICTURE, SEVERAL)),
                               ("of a picture without channels", recurrent.Net, spec(Tensor(OBSERVATION, "u8", (5, 5), high=255), CHOICE)),
                               ("mixed", Mixed, MIXED)):
            with self.subTest(name):
                torch.manual_seed(2)
                self.compare(made(of), of)

    def compare(self, net, of):
        """Greedy actions, values and states of 1,000 rows of a policy with other parameters than those that it began with."""
        for p in net.parameters():
            p.data += 0.1 * torch.randn_like(p)
        said, random, rows = described(net, of), numpy.random.default_rng(3), 1000
        self.assertTrue(net.training)  # it was compared as it acts, and learns as before
        net.eval()
        computed = rlhost.torch.Network(said.network())
        for name, value in said.tensors().items():
            computed.tensors()[name].data.copy_(value)
        obs = {path: random.integers(0, 256, (rows, *t.shape)).astype("u1") if t.dtype == "u8" else random.integers(t.start, t.start + t.n, (rows, *t.shape)).astype("i4") if t.n
               else random.normal(size=(rows, *t.shape)).astype("f4") for path, t in of.obs.items()}
        state = random.normal(size=(rows, net.state_size)).astype("f4")
        own = ask(net, of, obs, state, [None] * len(of.actions), True)
        with torch.no_grad():
            params, value, after = computed({path: torch.from_numpy(x) for path, x in obs.items()}, torch.from_numpy(state))
        numpy.testing.assert_allclose(own.value, value, atol=1e-4)
        numpy.testing.assert_allclose(own.state, after, atol=1e-4)
        for mine, theirs in zip(own.actions, computed.greedy(params)):
            if mine.dtype == numpy.float32:
                numpy.testing.assert_allclose(mine, theirs, atol=1e-4)
            else:
                self.assertGreaterEqual((mine == theirs.numpy()).all(1).mean(), 0.999)  # ties aside
                self.assertGreater(len(numpy.unique(mine)), 1)

    def test_parameters_come_back(self):
        net = Mixed(MIXED)
        said = net.describe(MIXED)
        was, saved = {k: v.clone() for k, v in net.state_dict().items()}, {k: v.numpy().copy() for k, v in said.tensors().items()}
        for p in net.parameters():
            p.data.zero_()
        said.load(saved)
        for name, value in net.state_dict().items():
            self.assertTrue(torch.equal(value, was[name]), name)
        net.extra = nn.Linear(3, 2)
        self.assertEqual(set(said.missing()), {"extra.weight", "extra.bias"})

    def test_what_cannot_be_described_is_named(self):
        for bug, says in (("value", "value of row 0 is"), ("action", "action of row 0 is")):
            with self.subTest(bug), self.assertRaisesRegex(ValueError, f"act of Mixed and its description differ in .* of 64 rows: {says}"):
                described(Mixed(MIXED, bug), MIXED)

        class Wrong(rlhost.Policy, nn.Module):
            def __init__(self, case):
                super().__init__()
                self.case, self.layer, self.head, self.tail, self.grouped = case, nn.Linear(6, 6), nn.Linear(6, 4), nn.Linear(6, 1), nn.Conv2d(3, 3, 3, groups=3)
                self.odd, self.conv, self.norm = nn.Softmax(1), nn.Conv2d(4, 2, 3), nn.LayerNorm(3 * 7 * 5)

            def describe(self, of):
                net = rlhost.torch.Description(self, of)
                self.case(self, net)
                net.document()
                return net

        for want, of, case in (
            ("module odd is Softmax", NUMBERS, lambda p, net: net.through(p.odd, net.input())),
            ("0 of 1 actions and no value", NUMBERS, lambda p, net: net.through(p.layer, net.input())),
            ("no module of Wrong", NUMBERS, lambda p, net: net.through(nn.Linear(6, 6), net.input())),
            ("layer is there twice", NUMBERS, lambda p, net: net.through(p.layer, net.through(p.layer, net.input()))),
            ("module layer reads 6 numbers, and head has 4", NUMBERS, lambda p, net: net.through(p.layer, net.through(p.head, net.input()))),
            ("action is drawn from 4 numbers, and layer has 6", NUMBERS, lambda p, net: net.action(net.through(p.layer, net.input()))),
            ("the value is one number, and layer has 6", NUMBERS, lambda p, net: net.value(net.through(p.layer, net.input()))),
            ("no observation 'far'", NUMBERS, lambda p, net: net.input("far")),
            ("is not Discrete", NUMBERS, lambda p, net: net.input(onehot=True)),
            ("reads a picture, and obs has the shape .6.", NUMBERS, lambda p, net: net.through(p.conv, net.input())),
            ("reads 4 channels, and obs has 3", PICTURE, lambda p, net: net.through(p.conv, net.input())),
            ("module grouped is Conv2d", PICTURE, lambda p, net: net.through(p.grouped, net.input())),
            ("enters in two ways", PICTURE, lambda p, net: (net.input(), net.input(scale=0.5))),
        ):
            with self.subTest(want), self.assertRaisesRegex((ValueError, TypeError), want):
                described(Wrong(case), spec(of, CHOICE))


if __name__ == "__main__":
    unittest.main()
