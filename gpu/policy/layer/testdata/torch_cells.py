"""Prints what PyTorch's GRU and LSTM compute, with gradients, for torch_cells.json:

    python torch_cells.py > torch_cells.json

Every number that enters is a wave (see wave), so that a test can make the same ones. Two environments run for five steps;
the second begins an episode at step 3, from zeros.
"""

import json

import torch

IN, SIZE, STEPS, ENVS, RESET = 3, 4, 5, 2, 3


def wave(start, *shape):
    """Elements sin(start), sin(start + 1) and so on, in the order of the tensor."""
    count = torch.Size(shape).numel()
    return torch.sin(torch.arange(start, start + count, dtype=torch.float64)).reshape(shape)


def run(kind):
    net = getattr(torch.nn, kind)(IN, SIZE).double()
    for i, p in enumerate(net.parameters()):
        p.data = wave(100 * (i + 1), *p.shape)
    x = wave(7, STEPS, ENVS, IN).requires_grad_()
    state = [0.5 * wave(50 + 10 * i, 1, ENVS, SIZE) for i in range(2 if kind == "LSTM" else 1)]
    outputs = []
    for t in range(STEPS):
        keep = torch.ones(1, ENVS, 1, dtype=torch.float64)
        keep[0, 1, 0] = float(t != RESET)
        state = [keep * s for s in state]
        out, after = net(x[t : t + 1], tuple(state) if kind == "LSTM" else state[0])
        state = list(after) if kind == "LSTM" else [after]
        outputs.append(out)
    out = torch.cat(outputs)
    (out * wave(900, *out.shape)).sum().backward()
    flat = lambda tensor: tensor.detach().flatten().tolist()
    grads = dict((name.removesuffix("_l0"), flat(p.grad)) for name, p in net.named_parameters())
    return {"out": flat(out), "state": flat(torch.cat(state, dim=2)), "dx": flat(x.grad), "grads": grads}


print(json.dumps({"torch": torch.__version__.split("+")[0], "GRU": run("GRU"), "LSTM": run("LSTM")}, indent=1))
