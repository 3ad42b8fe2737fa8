#!/usr/bin/env python3
"""PyTorch at the work of gpu/cuda's benchmarks: eager, with torch.compile, and on a GPU with all of it captured in one CUDA graph.

Act takes observations from pinned memory of the host and brings actions, log-probabilities and values back there. Update is one optimiser
step of PPO on a minibatch of as many rows, whose columns come from there; rlhost's figure also has the targets and the drawing of rows."""

import same

try:
    import torch
    from torch import nn
except ImportError as e:
    same.missing(e)

import torch_step


class Shared(torch_step.Policy):
    """Actor and critic behind the same layers, which are computed once."""

    def __init__(self, sizes, actions):
        super().__init__(sizes[-1:], actions)
        self.trunk = nn.Sequential(torch_step.mlp(sizes[:-1], sizes[-1], 2**0.5), nn.Tanh())

    def taken(self, obs, action):
        return super().taken(self.trunk(obs), action)

    def loss(self, obs, action, *of):
        x = self.trunk(obs)
        taken = torch_step.chosen(self.actor(x), action)
        return torch_step.clipped_loss(*taken, self.critic(x).squeeze(1), *of)

    def act(self, obs):
        return super().act(self.trunk(obs))


def policy_of(sizes, actions, shared, device):
    return (Shared if shared else torch_step.Policy)(sizes, actions).to(device)


def pinned(tensors, device):
    return [t.pin_memory() for t in tensors] if device == "cuda" else list(tensors)


def finished(device):
    if device == "cuda":
        torch.cuda.synchronize()


def captured(run):
    """A CUDA graph of what run submits, after it has run beside it for a while, as PyTorch asks for."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def timed(way, run, device):
    """Run and wait for its end."""
    run = captured(run) if way == "torch-graph" else run

    def call():
        run()
        finished(device)

    return call


def act(device):
    def prepare(way, sizes, actions, shared, rows):
        policy = policy_of(sizes, actions, shared, device)
        call = policy.act if way == "torch-eager" else torch.compile(policy.act)
        [obs] = pinned([torch.randn(rows, sizes[0])], device)
        with torch.no_grad():
            back = pinned([x.cpu() for x in call(obs.to(device))], device)

        def run():
            with torch.no_grad():
                for to, x in zip(back, call(obs.to(device, non_blocking=True))):
                    to.copy_(x, non_blocking=True)

        return timed(way, run, device)

    return prepare


def update(device):
    def prepare(way, sizes, actions, shared, rows):
        policy = policy_of(sizes, actions, shared, "cpu")
        batch = pinned(torch_step.minibatch(policy, sizes, rows), device)
        policy.to(device)
        loss = policy.loss if way == "torch-eager" else torch.compile(policy.loss)
        params = list(policy.parameters())
        adam = torch.optim.Adam(params, lr=same.RATE, eps=same.EPS, fused=True, capturable=way == "torch-graph")

        def run():
            adam.zero_grad(set_to_none=True)
            loss(*(x.to(device, non_blocking=True) for x in batch)).backward()
            nn.utils.clip_grad_norm_(params, same.NORM)
            adam.step()

        return timed(way, run, device)

    return prepare


def main():
    args = same.arguments(__doc__)
    device, ways = "cpu", ["torch-eager", "torch-compiled"]
    if args.device == "gpu":
        if not torch.cuda.is_available():
            same.missing(f"PyTorch {torch.__version__} finds no GPU")
        device, ways = "cuda", [*ways, "torch-graph"]
    else:
        torch.set_num_threads(1)
    torch.manual_seed(1)
    same.measure(args, ways, act(device), update(device))


if __name__ == "__main__":
    main()
