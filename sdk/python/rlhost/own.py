"""Learning a policy of your own."""

from __future__ import annotations

import io
import random
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .component import State
from .learning import Learner
from .policy import Policy, PolicySpec, described, is_module, make, named

if TYPE_CHECKING:
    import numpy

    from .describing import Description
    from .network import Network

_OWN = "policy."  # begins the names of the tensors
_BLOB = "own."  # begins the names of blobs of states
_REST = _BLOB + "net"  # of the policy, what the host does not need to act


class PolicyLearner(Learner):
    """Improves a policy of your own, of the class that a subclass names as ``network``. The subclass implements learn, which changes self.net.

    What has a state_dict among the attributes of the learner, such as optimisers and further modules of PyTorch, is saved and resumed with it, and
    so are PyTorch's random numbers. For other state a subclass has learner_state and set_learner_state."""

    networks = joint = inputs = boxes = cores = True
    network: type[Policy]
    net: Any  # an instance of network, from begin_learning on
    _described: Description | None = None  # where the host acts

    def begin_learning(self, policy: Network) -> None:
        """Makes the policy. A subclass makes its optimiser after it."""
        name, spec = self.config.policy, PolicySpec(policy.env, self.host.seed)
        table = self.host.policies[name].table
        if not table.get("plugin"):
            raise ValueError(f"policy {name!r} has a network of the host, and {type(self).__name__} learns one of its own: write plugin = into "
                             f"[policy.{name}], with the name of the plugin of this learner")
        _seed(self.host.seed)
        self.net = make(self.network, spec, table.get("args") or {})
        self._described = None if policy.external else described(self.net, spec)
        if {key: tuple(t.shape) or (1,) for key, t in self.parameters().items()} != policy.tensors():
            raise ValueError(f"{self.network.__name__} has other parameters here than in the process that acts: let them depend on nothing but the "
                             f"environment and args")

    def parameters(self) -> Mapping[str, Any]:
        """Those of the policy: by its own names or, where the host acts, as the host has them."""
        if self._described:
            return self._described.tensors()
        return {_OWN + name: t.reshape(1) if t.ndim == 0 else t for name, t in named(self.net).items()}

    def learner_state(self) -> State:
        """The state_dicts of attributes."""
        parts = self._parts()
        if not parts and not is_module(self.net):
            return State()
        import torch
        blobs = {_BLOB + name: _saved(part.state_dict()) for name, part in parts.items()}
        if self._described:
            blobs[_REST] = _saved(self._described.missing())
        return State(blobs={**blobs, _BLOB + "torch": _saved(torch.get_rng_state())})

    def set_learner_state(self, state: State) -> None:
        """Continues from them. What a state does not have, because its learner had no such attribute, begins anew."""
        for name, part in self._parts().items():
            if (blob := state.blobs.get(_BLOB + name)) is not None:
                part.load_state_dict(_read(blob))
        if self._described and (blob := state.blobs.get(_REST)) is not None:
            self.net.load_state_dict(_read(blob), strict=False)
        if (blob := state.blobs.get(_BLOB + "torch")) is not None:
            import torch
            torch.set_rng_state(_read(blob))

    def _parts(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items()
                if name != "net" and callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None))}

    def _take(self, values: Mapping[str, numpy.ndarray]) -> None:
        if self._described:
            self._described.load(values)
            return
        self.net.load_parameters({name.removeprefix(_OWN): value for name, value in values.items()})


def _saved(what: Any) -> bytes:
    import torch
    into = io.BytesIO()
    torch.save(what, into)
    return into.getvalue()


def _read(blob: bytes) -> Any:
    import torch
    return torch.load(io.BytesIO(blob), weights_only=True)  # runs nothing that the file says


def _seed(seed: int) -> None:
    """Seeds Python, NumPy and, where it is imported, PyTorch."""
    import numpy
    random.seed(seed)
    numpy.random.seed(seed % (1 << 32))
    if "torch" in sys.modules:
        import torch
        torch.manual_seed(seed)
