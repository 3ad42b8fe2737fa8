#!/usr/bin/env python3
"""PyTorch on one thread with the networks over images: one PPO minibatch step of 256 rows and acting for 64 rows, eager and
with torch.compile, in channels_last, from bytes of 84×84×4 that the network scales.

With --cpu times are of the processor and not of the clock, for machines with other work."""

import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F

import report
import torch_step

ACTIONS = 6


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return x + self.second(F.relu(self.first(F.relu(x))))


def nature():
    """Mnih et al. 2015."""
    return nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(),
                         nn.Flatten(), nn.Linear(3136, 512), nn.ReLU())


def impala():
    """Espeholt et al. 2018."""
    layers, before = [], 4
    for channels in (16, 32, 32):
        layers += [nn.Conv2d(before, channels, 3, padding=1), nn.MaxPool2d(3, 2, 1), Residual(channels), Residual(channels)]
        before = channels
    return nn.Sequential(*layers, nn.ReLU(), nn.Flatten(), nn.Linear(3872, 256), nn.ReLU())


class Policy(torch_step.Policy):
    """The trunk is one for actor and critic; the loss is that of the other networks."""

    def __init__(self, trunk, width):
        nn.Module.__init__(self)
        self.trunk, self.logits, self.value = trunk, nn.Linear(width, ACTIONS), nn.Linear(width, 1)

    def features(self, obs):
        return self.trunk(obs.permute(0, 3, 1, 2).float() / 255)

    def loss(self, obs, action, log_prob, advantage, target):
        x = self.features(obs)
        return torch_step.clipped_loss(*torch_step.chosen(self.logits(x), action), self.value(x).squeeze(1), log_prob, advantage, target)

    def act(self, obs):
        x = self.features(obs)
        return *torch_step.draw(self.logits(x)), self.value(x)


NETS = {"nature_cnn": (nature, 512), "impala": (impala, 256)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--net", choices=NETS, action="append", help="measure this network alone")
    parser.add_argument("--seconds", type=float, default=10, help="time for each figure")
    parser.add_argument("--cpu", action="store_true", help="time of the processor")
    parser.add_argument("--eager", action="store_true", help="leave out torch.compile")
    args = parser.parse_args()
    if args.cpu:
        time.perf_counter_ns = time.process_time_ns
    torch.set_num_threads(1)
    torch.manual_seed(1)
    for name in args.net or NETS:
        trunk, width = NETS[name]
        for compiled in (False,) if args.eager else (False, True):
            policy = Policy(trunk(), width).to(memory_format=torch.channels_last)
            obs = torch.randint(256, (256, 84, 84, 4), dtype=torch.uint8)
            action = torch.randint(ACTIONS, (256, 1))
            batch = obs, action, torch.full((256,), -1.8), torch.randn(256), torch.randn(256)
            best, median = report.times(torch_step.training_step(policy, batch, compiled), args.seconds)
            report.emit(peer="torch", what="step", compiled=compiled, net=name, rows=256, best_ns=best, median_ns=median)
            with torch.inference_mode():
                call = torch.compile(policy.act) if compiled else policy.act
                best, median = report.times(lambda: call(obs[:64]), args.seconds)
            report.emit(peer="torch", what="act", compiled=compiled, net=name, rows=64, best_ns=best, median_ns=median)


if __name__ == "__main__":
    main()
