"""A codec for rlhost.Queue that needs no pickle: bytes that hold nothing but data.

    q = rlhost.Queue(message_bytes=256, dumps=rlhost.plain.dumps, loads=rlhost.plain.loads)
    q.put((7, "reset", {"reward": 1.5}))

It takes None, bool, int, float, str, bytes, NumPy's scalars and arrays of numbers, and tuples, lists and dicts of them.
loads raises ValueError for bytes it does not understand; it never runs code and never allocates more than the bytes
justify.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Sequence
from typing import Any

_DEPTH = 64
_COUNT = struct.Struct("<I")
_INT = struct.Struct("<q")
_FLOAT = struct.Struct("<d")
_SEQUENCES: dict[bytes, Any] = {b"(": tuple, b"[": list}


def dumps(message: Any) -> bytes:
    """The bytes of a message. TypeError names an unsupported type."""
    out: list[bytes] = []
    _write(message, out, _DEPTH)
    return b"".join(out)


class Place(int):
    """Stands in a message for an array that is kept elsewhere; see loads."""


def loads(data: bytes, places: Sequence[Any] = ()) -> Any:
    """The message encoded in bytes of dumps. ValueError for other bytes. Where the message had a Place of n, there is the n-th of places."""
    try:
        message, at = _read(bytes(data), 0, _DEPTH, places)
    except (struct.error, IndexError, UnicodeDecodeError, TypeError, OverflowError) as e:
        raise ValueError(f"these {len(data)} bytes are no message of rlhost.plain: {e}") from None
    if at != len(data):
        raise ValueError(f"these {len(data)} bytes are no message of rlhost.plain: it ends at {at}")
    return message


def _write(x: Any, out: list[bytes], depth: int) -> None:
    if depth == 0:
        raise TypeError(f"rlhost.plain takes containers in containers up to {_DEPTH} deep")
    kind = type(x)
    if x is None:
        out.append(b"N")
    elif kind is bool:
        out.append(b"T" if x else b"F")
    elif kind is int:
        if -1 << 63 <= x < 1 << 63:
            out.append(b"i" + _INT.pack(x))
        else:
            _sized(b"I", x.to_bytes(x.bit_length() // 8 + 1, "little", signed=True), out)
    elif kind is Place:
        out.append(b"p" + _COUNT.pack(x))
    elif kind is float:
        out.append(b"f" + _FLOAT.pack(x))
    elif kind is str:
        _sized(b"s", x.encode(), out)
    elif kind in (bytes, bytearray):
        _sized(b"b", bytes(x), out)
    elif kind in (tuple, list):
        out.append((b"(" if kind is tuple else b"[") + _COUNT.pack(len(x)))
        for item in x:
            _write(item, out, depth - 1)
    elif kind is dict:
        out.append(b"{" + _COUNT.pack(len(x)))
        for key, value in x.items():
            _write(key, out, depth - 1)
            _write(value, out, depth - 1)
    else:
        _write_array(x, out)


def _sized(kind: bytes, data: bytes, out: list[bytes]) -> None:
    out += (kind, _COUNT.pack(len(data)), data)


def _write_array(x: Any, out: list[bytes]) -> None:
    numpy = sys.modules.get("numpy")  # if it is not imported there are no arrays
    if numpy is None or not isinstance(x, (numpy.ndarray, numpy.generic)) or x.dtype.kind not in "biufc":
        raise TypeError(f"rlhost.plain takes no {type(x).__name__}: None, bool, int, float, str, bytes, arrays of numbers, and "
                        "tuples, lists and dicts of them")
    _sized(b"a" if isinstance(x, numpy.ndarray) else b"g", x.dtype.str.encode(), out)
    out.append(b"%c" % x.ndim + struct.pack(f"<{x.ndim}Q", *x.shape) + x.tobytes())


def _read(data: bytes, at: int, depth: int, places: Sequence[Any]) -> tuple[Any, int]:
    if depth == 0:
        raise ValueError(f"a message of rlhost.plain is not more than {_DEPTH} deep")
    kind, at = data[at:at + 1], at + 1
    if kind in (b"N", b"T", b"F"):
        return {b"N": None, b"T": True, b"F": False}[kind], at
    if kind == b"i":
        return _INT.unpack_from(data, at)[0], at + 8
    if kind == b"f":
        return _FLOAT.unpack_from(data, at)[0], at + 8
    if kind == b"p":
        return places[_COUNT.unpack_from(data, at)[0]], at + 4
    if kind not in (b"I", b"s", b"b", b"(", b"[", b"{", b"a", b"g"):
        raise ValueError(f"byte {at - 1} of a message of rlhost.plain is {kind!r}")
    count, at = _COUNT.unpack_from(data, at)[0], at + 4
    if count > len(data) - at:  # each item takes a byte or more
        raise ValueError(f"a message of rlhost.plain has {count} more at byte {at} of {len(data)}")
    if kind in _SEQUENCES:
        items = []
        for _ in range(count):
            item, at = _read(data, at, depth - 1, places)
            items.append(item)
        return _SEQUENCES[kind](items), at
    if kind == b"{":
        found = {}
        for _ in range(count):
            key, at = _read(data, at, depth - 1, places)
            found[key], at = _read(data, at, depth - 1, places)
        return found, at
    text, at = data[at:at + count], at + count
    if kind == b"I":
        return int.from_bytes(text, "little", signed=True), at
    if kind == b"s":
        return text.decode(), at
    return (text, at) if kind == b"b" else _read_array(data, at, text.decode(), kind == b"a")


def _read_array(data: bytes, at: int, name: str, whole: bool) -> tuple[Any, int]:
    import numpy
    if not re.fullmatch(r"[<>|=][biufc]\d{1,2}", name):
        raise ValueError(f"a message of rlhost.plain has an array of {name!r}")
    dtype = numpy.dtype(name)
    rank, at = data[at], at + 1
    shape = struct.unpack_from(f"<{rank}Q", data, at)
    at += 8 * rank
    count = 1
    for size in shape:
        count *= size
    if count * dtype.itemsize > len(data) - at or rank > 32:
        raise ValueError(f"a message of rlhost.plain has an array of shape {shape} in {len(data) - at} bytes")
    array = numpy.frombuffer(data, dtype, count, at).reshape(shape).copy()
    return (array if whole else array[()]), at + count * dtype.itemsize
