#!/usr/bin/env python3
"""JAX at the work of gpu/cuda's benchmarks, compiled by jax.jit: see peer_torch.py for what an act and an update are."""

import same

try:
    import jax
    import numpy
    from jax import numpy as np
except ImportError as e:
    same.missing(e)


def layers(key, sizes):
    return [(jax.random.normal(k, (n, m)) * (2 / n) ** 0.5, np.zeros(m)) for k, n, m in zip(jax.random.split(key, len(sizes)), sizes, sizes[1:])]


def network(sizes, actions, shared):
    """The parameters: hidden layers and heads of actor and critic, by name."""
    hidden, critic, head, value = jax.random.split(jax.random.key(1), 4)
    made = {"hidden": layers(hidden, sizes), "head": layers(head, (sizes[-1], actions)), "value": layers(value, (sizes[-1], 1))}
    return made if shared else {**made, "critic": layers(critic, sizes)}


def dense(x, layer):
    return x @ layer[0] + layer[1]


def through(hidden, x):
    for layer in hidden:
        x = np.tanh(dense(x, layer))
    return x


def forward(params, obs):
    """Log-probabilities of all actions and values."""
    x = through(params["hidden"], obs)
    y = through(params["critic"], obs) if "critic" in params else x
    return jax.nn.log_softmax(dense(x, params["head"][0])), dense(y, params["value"][0])[:, 0]


def chosen(log_probs, action):
    return np.take_along_axis(log_probs, action[:, None], 1)[:, 0]


@jax.jit
def acted(params, key, obs):
    key, draw = jax.random.split(key)
    log_probs, value = forward(params, obs)
    action = jax.random.categorical(draw, log_probs)
    return key, (action, chosen(log_probs, action), value)


def loss(params, obs, action, log_prob, advantage, target):
    log_probs, value = forward(params, obs)
    ratio = np.exp(chosen(log_probs, action) - log_prob)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    policy = -np.minimum(ratio * advantage, ratio.clip(1 - same.CLIP, 1 + same.CLIP) * advantage).mean()
    entropy = -(np.exp(log_probs) * log_probs).sum(1).mean()
    return policy + same.VALUE * 0.5 * ((value - target) ** 2).mean() - same.ENTROPY * entropy


@jax.jit
def updated(state, *batch):
    """One step of Adam, with the gradient clipped by its norm."""
    params, m, v, steps = state
    grad = jax.grad(loss)(params, *batch)
    norm = np.sqrt(sum((g**2).sum() for g in jax.tree.leaves(grad)))
    grad = jax.tree.map(lambda g: g * np.minimum(1, same.NORM / (norm + 1e-6)), grad)
    steps += 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grad)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, v, grad)
    rate, scale = same.RATE / (1 - 0.9**steps), 1 / (1 - 0.999**steps)
    return jax.tree.map(lambda p, m, v: p - rate * m / (np.sqrt(v * scale) + same.EPS), params, m, v), m, v, steps


def act(way, sizes, actions, shared, rows):
    params, obs = network(sizes, actions, shared), numpy.random.default_rng(1).standard_normal((rows, sizes[0]), numpy.float32)
    key = jax.random.key(2)

    def call():
        nonlocal key
        key, outputs = acted(params, key, obs)
        jax.device_get(outputs)

    return call


def update(way, sizes, actions, shared, rows):
    params, rng = network(sizes, actions, shared), numpy.random.default_rng(1)
    obs, action = rng.standard_normal((rows, sizes[0]), numpy.float32), rng.integers(0, actions, rows, numpy.int32)
    log_prob = numpy.asarray(chosen(forward(params, obs)[0], action))
    batch = obs, action, log_prob, rng.standard_normal(rows, numpy.float32), rng.standard_normal(rows, numpy.float32)
    zeros = jax.tree.map(np.zeros_like, params)
    state = params, zeros, zeros, np.zeros((), np.int32)

    def call():
        nonlocal state
        state = jax.block_until_ready(updated(state, *batch))

    return call


def main():
    args = same.arguments(__doc__)
    try:
        device = jax.devices(args.device)[0]
    except RuntimeError as e:
        same.missing(e)
    with jax.default_device(device):
        same.measure(args, ["jax-jit"], act, update)


if __name__ == "__main__":
    main()
