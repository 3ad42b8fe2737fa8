"""A codec that needs no pickle, which rlhost.Queue has by default: bytes that hold nothing but data.

    data = rlhost.plain.dumps((7, "reset", {"reward": 1.5}))
    assert rlhost.plain.loads(data) == (7, "reset", {"reward": 1.5})

It takes None, bool, int, float, str, bytes, NumPy's scalars and arrays of numbers, and tuples, lists, sets and dicts of them.
loads raises ValueError for bytes it does not understand; it never runs code and never allocates more than the bytes
justify.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Sequence
from typing import Any

_COUNT = struct.Struct("<I")


def dumps(message: Any) -> bytes:
    """The bytes of a message. TypeError names an unsupported type."""
    from . import _native  # here, because objects can be described without it
    return _native.plain_dumps(message)


class Place(int):
    """Stands in a message for an array that is kept elsewhere; see loads."""


def loads(data: bytes, places: Sequence[Any] = ()) -> Any:
    """The message encoded in bytes of dumps. ValueError for other bytes. Where the message had a Place of n, there is the n-th of places."""
    from . import _native
    try:
        return _native.plain_loads(bytes(data), places)
    except (struct.error, IndexError, ValueError, TypeError, OverflowError) as e:
        raise ValueError(f"these {len(data)} bytes are no message of rlhost.plain: {e}") from None


def _leaf(x: Any) -> bytes:
    """What plain.c leaves to Python: an integer of any size, a place, an array."""
    kind = type(x)
    if kind is int:
        return _sized(b"I", x.to_bytes(x.bit_length() // 8 + 1, "little", signed=True))
    if kind is Place:
        return b"p" + _COUNT.pack(x)
    numpy = sys.modules.get("numpy")  # if it is not imported there are no arrays
    if numpy is None or not isinstance(x, (numpy.ndarray, numpy.generic)) or x.dtype.kind not in "biufc":
        raise TypeError(f"rlhost.plain takes no {kind.__name__}: None, bool, int, float, str, bytes, arrays of numbers, and "
                        "tuples, lists, sets and dicts of them")
    head = _sized(b"a" if isinstance(x, numpy.ndarray) else b"g", x.dtype.str.encode())
    return head + b"%c" % x.ndim + struct.pack(f"<{x.ndim}Q", *x.shape) + bytes(x.tobytes())


def _sized(kind: bytes, data: bytes) -> bytes:
    return kind + _COUNT.pack(len(data)) + data


def _read_leaf(data: bytes, at: int, places: Sequence[Any]) -> tuple[Any, int]:
    """What _leaf has written at a byte, and where it ends."""
    kind, count, at = data[at:at + 1], _COUNT.unpack_from(data, at + 1)[0], at + 5
    if kind == b"p":
        return places[count], at
    if count > len(data) - at:
        raise ValueError(f"it has {count} more at byte {at} of {len(data)}")
    text, at = data[at:at + count], at + count
    if kind == b"I":
        return int.from_bytes(text, "little", signed=True), at
    return _read_array(data, at, text.decode(), kind == b"a")


def _read_array(data: bytes, at: int, name: str, whole: bool) -> tuple[Any, int]:
    import numpy
    if not re.fullmatch(r"[<>|=][biufc]\d{1,2}", name):
        raise ValueError(f"it has an array of {name!r}")
    dtype = numpy.dtype(name)
    rank, at = data[at], at + 1
    shape = struct.unpack_from(f"<{rank}Q", data, at)
    at += 8 * rank
    count = 1
    for size in shape:
        count *= size
    if count * dtype.itemsize > len(data) - at or rank > 32:
        raise ValueError(f"it has an array of shape {shape} in {len(data) - at} bytes")
    array = numpy.frombuffer(data, dtype, count, at).reshape(shape).copy()
    return (array if whole else array[()]), at + count * dtype.itemsize
