"""What messages of the host's own payloads carry."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from . import _native

class Episode(NamedTuple):
    """An episode that has ended: what a message of the payload ``episode`` says."""

    total: float  # its return
    length: int  # env steps
    env: int  # global index
    terminated: bool
    task: int
    agent: int

    @classmethod
    def of(cls, m: _native.Message) -> Episode:
        """The episode of a message."""
        low, high = m.inline
        (total,) = struct.unpack("<f", struct.pack("<I", low & 0xFFFFFFFF))
        return cls(total, low >> 32, high & 0xFFFFFFFF, bool(high >> 32 & 1), high >> 33 & 0xFFFF, high >> 49)
