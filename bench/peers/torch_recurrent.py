#!/usr/bin/env python3
"""PyTorch on one thread with a recurrent network: one PPO minibatch step of 64 chunks of 16 rows and acting for 64 rows, eager
and with torch.compile, each in the fastest of two ways: the fused module over whole chunks, which no episode ends in, and a
cell step by step, whose state is set to zero where one begins.

The minibatch comes ready made, chunks in order of time."""

import argparse

import torch
from torch import nn

import report
import torch_step

OBS, HIDDEN, SIZE, ACTIONS = 4, 64, 128, 2
STEPS, CHUNKS = 16, 64


class Policy(torch_step.Policy):
    """Two tanh layers and a core behind them, which actor and critic share. The loss is that of the other networks."""

    def __init__(self, core):
        nn.Module.__init__(self)
        self.trunk = nn.Sequential(nn.Linear(OBS, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh())
        self.core = core
        self.logits, self.value = nn.Linear(SIZE, ACTIONS), nn.Linear(SIZE, 1)

    def loss(self, obs, start, state, action, log_prob, advantage, target):
        """Rows are [STEPS][CHUNKS]; start is 0 where an episode begins, else 1."""
        x = self.remember(self.trunk(obs), start, state).flatten(0, 1)
        return torch_step.clipped_loss(*torch_step.chosen(self.logits(x), action), self.value(x).squeeze(1), log_prob, advantage, target)

    def act(self, obs, state):
        x, state = self.follow(self.trunk(obs), state)
        return *torch_step.draw(self.logits(x)), self.value(x), state


def single(state):
    """A state as PyTorch takes it: alone where it has one part."""
    return state if len(state) > 1 else state[0]


class Whole(Policy):
    """The fused module, in one call."""

    def remember(self, x, _, state):
        return self.core(x, single(tuple(s.unsqueeze(0) for s in state)))[0]

    def follow(self, x, state):
        out, state = self.core(x.unsqueeze(0), single(tuple(s.unsqueeze(0) for s in state)))
        return out.squeeze(0), state


class Cells(Policy):
    """A cell, called for each step."""

    def remember(self, x, start, state):
        outs = []
        for t in range(STEPS):
            out, state = self.follow(x[t], tuple(s * start[t] for s in state))
            outs.append(out)
        return torch.stack(outs)

    def follow(self, x, state):
        after = self.core(x, single(state))
        return (after, (after,)) if len(state) == 1 else (after[0], after)


# By name of the network: the module, the cell, and the tensors of a state.
CORES = {"gru": (nn.GRU, nn.GRUCell, 1), "lstm": (nn.LSTM, nn.LSTMCell, 2)}


def minibatch(parts):
    rows = STEPS * CHUNKS
    return (torch.randn(STEPS, CHUNKS, OBS), (torch.rand(STEPS, CHUNKS, 1) > 0.1).float(),
            tuple(torch.randn(CHUNKS, SIZE) for _ in range(parts)), torch.randint(ACTIONS, (rows, 1)),
            torch.full((rows,), -0.7), torch.randn(rows), torch.randn(rows))


def fastest(ways, seconds):
    """Best and median time of the fastest way, and its name."""
    figures = {name: report.times(way, seconds / len(ways)) for name, way in ways.items()}
    name = min(figures, key=figures.get)
    return *figures[name], name


def measure(net, name, seconds, compiled):
    module, cell, parts = CORES[name]
    policies = {"module": Whole(module(HIDDEN, SIZE)), "cells": Cells(cell(HIDDEN, SIZE))}
    batch = minibatch(parts)
    steps = {way: torch_step.training_step(p, batch, compiled) for way, p in policies.items()}
    best, median, way = fastest(steps, seconds)
    report.emit(peer="torch", what="step", compiled=compiled, net=net, rows=STEPS * CHUNKS, way=way, best_ns=best, median_ns=median)
    with torch.inference_mode():
        calls = {way: torch.compile(p.act) if compiled else p.act for way, p in policies.items()}
        acts = {way: lambda call=call: call(batch[0][0], batch[2]) for way, call in calls.items()}
        best, median, way = fastest(acts, seconds)
    report.emit(peer="torch", what="act", compiled=compiled, net=net, rows=CHUNKS, way=way, best_ns=best, median_ns=median)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--core", choices=CORES, action="append", help="measure this core alone")
    parser.add_argument("--seconds", type=float, default=6, help="time for each figure")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    for name in args.core or CORES:
        for compiled in (False, True):
            measure(f"{OBS}-{HIDDEN}-{HIDDEN}-{name}{SIZE}", name, args.seconds, compiled)


if __name__ == "__main__":
    main()
