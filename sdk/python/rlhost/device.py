"""Leased blocks as PyTorch's tensors on a GPU. PyTorch is imported with the first use."""

from __future__ import annotations

import logging
import re
import warnings
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .component import ConfigError

if TYPE_CHECKING:
    from .arena import Segment, Trajectory

_PORTABLE, _READ_ONLY = 1, 8  # cudaHostRegisterPortable, for every device, and cudaHostRegisterReadOnly


def check_device(name: str) -> None:
    """Raises ConfigError for a device that is none of cpu, cuda and cuda:N, or is not there."""
    found = re.fullmatch(r"cpu|cuda(?::(\d+))?", name)
    if not found:
        raise ConfigError("device", f'is "{name}"', "want cpu, cuda or cuda:N, where N counts from 0")
    if name == "cpu":
        return
    help = 'write device = "cpu", or see nvidia-smi and install a PyTorch that is built for CUDA'
    try:
        import torch
    except ImportError as e:
        raise ConfigError("device", f'is "{name}" and PyTorch cannot be imported: {e}', help, "E039") from None
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count == 0:
        raise ConfigError("device", f'is "{name}", and PyTorch {torch.__version__} finds no GPU', help, "E039")
    if int(found[1] or 0) >= count:
        raise ConfigError("device", f'is "{name}", and PyTorch finds {count} GPUs', f"want cuda:0 to cuda:{count - 1}", "E039")


class Upload:
    """Copies blocks to a device, each whole and by one copy. The memory of their arenas is registered with the driver when a block
    is first copied, and until the arena is let go, so that the device copies it itself and meanwhile the next one is submitted.
    Memory that the driver refuses is copied by the processor first, which the log says once."""

    def __init__(self, log: logging.Logger, cudart: Any = None):
        self._log, self._cudart = log, cudart  # cudaHostRegister and cudaHostUnregister of torch.cuda.cudart()
        self._known: weakref.WeakSet[Segment] = weakref.WeakSet()
        self._told = False

    def columns(self, blocks: Sequence[Trajectory], names: Sequence[str], device: Any) -> dict[str, Any]:
        """The columns of all blocks side by side as tensors on the device. When it returns nothing reads the blocks any more."""
        import torch
        device = torch.device(device)
        whole = [self._copy(b, device) for b in blocks]
        if device.type == "cuda":
            copied = torch.cuda.Event()
            copied.record(torch.cuda.current_stream(device))
            copied.synchronize()
        return {name: torch.cat([_view(w, b, name) for w, b in zip(whole, blocks)], 1) for name in names}

    def _copy(self, block: Trajectory, device: Any) -> Any:
        """The bytes of a block on the device, once what was submitted there has been done."""
        import torch
        of = block.segment
        assert of is not None
        if device.type == "cuda":
            self._register(of, device)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a lease can only be read; nobody else sees this tensor
            source = torch.from_numpy(of.memory[block.start:block.start + of.block_bytes])
        return source.to(device, non_blocking=True, copy=True)

    def _register(self, of: Segment, device: Any) -> None:
        """Registers the memory, unless that has been tried."""
        if of in self._known:
            return
        self._known.add(of)
        import torch
        cudart = self._cudart or torch.cuda.cudart()
        code = int(cudart.cudaHostRegister(of.address, of.memory.nbytes, _PORTABLE | (_READ_ONLY if of.read_only else 0)))
        if code == 0:
            # Called before the memory is unmapped, which the segment keeps; a process that ends needs it not.
            weakref.finalize(of, cudart.cudaHostUnregister, of.address).atexit = False
            return
        _forget(device)
        if not self._told:
            self._told = True
            self._log.warning("memory of blocks cannot be registered with the device: the processor copies them first",
                              extra={"fields": {"arena": of.name, "error": code}})


def _forget(device: Any) -> None:
    """Has PyTorch take note of an error of CUDA's, which the next kernel would be blamed for."""
    import torch
    try:
        torch.zeros(1, device=device)
    except RuntimeError:
        pass


def _view(whole: Any, block: Trajectory, name: str) -> Any:
    """A column of a block whose bytes are in a tensor."""
    import numpy
    import torch
    a, segment = block[name], block.segment
    assert segment  # of a block in memory that the host shares
    size = a.itemsize
    at = a.__array_interface__["data"][0] - segment.address - block.start
    span = sum((n - 1) * stride for n, stride in zip(a.shape, a.strides)) + size
    dtype = torch.from_numpy(numpy.empty(0, a.dtype)).dtype
    return whole[at:at + span].view(dtype).as_strided(a.shape, [stride // size for stride in a.strides])
