"""A policy of your own: its network, how it acts, and what of it is learned."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .layout import Box, Discrete, _actions
from .spec import ACTION_MASK, OBSERVATION, EnvSpec, Tensor, numbered

if TYPE_CHECKING:
    import numpy

    from .describing import Description


@dataclasses.dataclass(frozen=True)
class PolicySpec:
    """What a policy is made for: the observations and actions of the agents that it plays."""

    env: EnvSpec  # for these agents alone
    seed: int = 0  # of the run

    @functools.cached_property
    def obs(self) -> dict[str, Tensor]:
        """The observations by their paths; ``obs`` is the path of the only one of a space without parts."""
        return {t.path or numbered("obs", i): t for i, t in enumerate(self.env.of_role(OBSERVATION))}

    @functools.cached_property
    def actions(self) -> tuple[Discrete | Box, ...]:
        """The actions: one, or one for each part of a Dict or Tuple."""
        return _actions(self.env, {})

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the only observation. Raises ValueError where there are several."""
        if len(self.obs) != 1:
            raise ValueError(f"the environment has {len(self.obs)} observations, {', '.join(self.obs)}: use spec.obs")
        return next(iter(self.obs.values())).shape

    @property
    def choices(self) -> int:
        """How many values the only Discrete action has. Raises ValueError for other actions."""
        first = self.actions[0]
        if len(self.actions) != 1 or not isinstance(first, Discrete) or len(first.counts) != 1:
            raise ValueError("the environment's action is not one Discrete choice: use spec.actions")
        return first.counts[0]

    @property
    def masks(self) -> tuple[int, ...]:
        """The places of the actions that have a mask."""
        return tuple(sorted(t.pair for t in self.env.of_role(ACTION_MASK)))


class Policy:
    """A policy of your own. Subclass it, alone or next to torch.nn.Module, and learn it by a PolicyLearner.

    Its constructor gets a PolicySpec, and the keys of ``args`` of the policy's table by their names. The same class is made in the process that
    acts and in the one that learns, and its parameters go from the second to the first, so it must have the same ones in both."""

    state_size = 0  # numbers that it keeps for each environment from row to row; zeros where an episode begins

    def act(self, obs: Any, state: Any, mask: Any, greedy: bool) -> tuple[Any, Any, Any, Any]:
        """Acts on a batch of rows, and returns action, log_prob, value and state.

        ``obs`` is [rows, ...] as the environment has it, or a dict of such by path where there are several; ``state`` is [rows, state_size];
        ``mask`` is true for each legal choice, [rows, choices], None without a mask, and a tuple of such for several actions; ``greedy`` asks for the
        most probable action in the place of a drawn one. A subclass of torch.nn.Module gets tensors on the device of its parameters, without
        gradients, others get NumPy arrays.

        An action is [rows] of whole numbers that count from 0, [rows, elements] of MultiDiscrete and MultiBinary, or [rows, elements] of a Box as
        it was drawn, which the host clips to the bounds; of several actions a tuple. log_prob and value are [rows]. state may be None where
        nothing is kept."""
        raise NotImplementedError(f"{type(self).__name__} has no act(self, obs, state, mask, greedy)")

    def describe(self, spec: PolicySpec) -> Description | None:
        """Says what the policy computes in the host's terms, so that the host acts by it where the policy's table has ``acts = "host"``. None, as
        here, is a policy that acts in a process of its own alone. Where a class has both, act and the description are compared before they are used.
        A class without PyTorch returns an object with the methods document, check, tensors, load and missing of a Description."""
        return None

    def load_parameters(self, values: Mapping[str, numpy.ndarray]) -> None:
        """Takes values for its parameters. Parameters that cannot be written in place, such as those of JAX, need a method of their own."""
        for name, into in named(self).items():
            if hasattr(into, "detach"):
                import torch
                into.detach().copy_(torch.from_numpy(values[name]).reshape(into.shape))
            else:
                into[...] = values[name].reshape(into.shape)


def is_module(of: Any) -> bool:
    """Whether something is a torch.nn.Module, without importing PyTorch."""
    return any(c.__module__ == "torch.nn.modules.module" and c.__name__ == "Module" for c in type(of).__mro__)


def named(policy: Policy) -> dict[str, Any]:
    """The parameters of a policy by name: of an nn.Module all floats of its state_dict, of others what parameters() returns."""
    if is_module(policy):
        return {name: t for name, t in policy.state_dict().items() if t.is_floating_point()}  # type: ignore[attr-defined]
    method = getattr(policy, "parameters", None)
    if method is None:
        raise TypeError(f"{type(policy).__name__} has no parameters(): return its arrays by their names, or make it a torch.nn.Module")
    given = method()
    if not isinstance(given, Mapping):
        raise TypeError(f"parameters() of {type(policy).__name__} returned a {type(given).__name__}, want a dict of arrays by name")
    return dict(given)


def shapes(policy: Policy) -> dict[str, tuple[int, ...]]:
    """The shapes of the parameters, in their order. A single number has the shape of one element."""
    return {name: tuple(t.shape) or (1,) for name, t in named(policy).items()}


def make(of: type[Policy], spec: PolicySpec, args: Mapping[str, Any]) -> Policy:
    """Makes a policy, and checks what can be checked of it."""
    if not issubclass(of, Policy):
        raise TypeError(f"{of.__name__} is no subclass of rlhost.Policy")
    try:
        made = of(spec, **args)  # type: ignore[call-arg]
    except TypeError as e:
        if e.__traceback__ is not None and e.__traceback__.tb_next is None:  # the call itself, not something within
            raise TypeError(f"{of.__name__} cannot be made: {e}; its constructor gets a PolicySpec, and the keys of args: "
                            f"{', '.join(args) or 'none'}") from None
        raise
    size = made.state_size
    if not isinstance(size, int) or size < 0:
        raise TypeError(f"state_size of {of.__name__} is {size!r}, want a whole number, 0 or more")
    for name, shape in shapes(made).items():
        if 0 in shape:
            raise ValueError(f"parameter {name} of {of.__name__} has the shape {list(shape)}, with no elements")
    return made


def described(policy: Policy, spec: PolicySpec) -> Description | None:
    """The description of a policy, checked; None where it has none. Raises ValueError for one that is not whole, or not of what act computes."""
    made = policy.describe(spec)
    if made is not None:
        made.check()
    return made
