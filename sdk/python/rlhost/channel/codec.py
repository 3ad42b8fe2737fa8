"""Items as bytes. A message of rlhost.plain stands for itself; where arrays are large, or of a dtype that it does not know, they lie behind
the message of the rest, each at a multiple of 64 bytes, so that they can be used where they lie."""

from __future__ import annotations

import ast
import functools
import math
import struct
import sys
from typing import Any

from .. import plain

_APART = b"A"
_HEAD = struct.Struct("<cxxxII")  # "A", the length of the table, the length of the message
_ALIGN = 64
_FIRST = plain.dumps(plain.Place(0))
_LARGE = 512  # bytes of an array that is kept apart

Part = tuple[int, Any]  # where it begins, and a buffer


def encode(item: Any) -> tuple[list[Part], int]:
    """The parts of an item and its length. TypeError names a type that is not supported."""
    arrays: list[Any] = []
    if type(item).__name__ == "ndarray" and item.nbytes >= _LARGE and item.flags.c_contiguous and not item.dtype.hasobject:
        head, begin = _alone(item.dtype, item.shape)
        return [(0, head), (begin, item.reshape(-1).view("u1"))], begin + item.nbytes
    numpy = sys.modules.get("numpy")
    lifted = _lift(item, arrays, numpy, 0) if numpy is not None and type(item) not in _SIMPLE else item
    message = plain.dumps(lifted)
    if not arrays:
        return [(0, message)], len(message)
    text, places = _told(tuple((a.dtype, a.shape) for a in arrays))
    begin = -(-(_HEAD.size + len(text) + len(message)) // _ALIGN) * _ALIGN
    parts: list[Part] = [(0, _HEAD.pack(_APART, len(text), len(message)) + text + message)]
    for a, at in zip(arrays, places):
        parts.append((begin + at, a.reshape(-1).view(numpy.uint8) if a.nbytes else b""))  # type: ignore[union-attr]
    return parts, begin + places[-1] + arrays[-1].nbytes


@functools.lru_cache(256)
def _alone(dtype: Any, shape: tuple[int, ...]) -> tuple[bytes, int]:
    """What lies before an array that is an item by itself, and its length with the gap behind it."""
    text, _ = _told(((dtype, shape),))
    return _HEAD.pack(_APART, len(text), len(_FIRST)) + text + _FIRST, -(-(_HEAD.size + len(text) + len(_FIRST)) // _ALIGN) * _ALIGN


@functools.lru_cache(256)
def _told(arrays: tuple[tuple[Any, tuple[int, ...]], ...]) -> tuple[bytes, list[int]]:
    """The table of arrays, and where each begins behind it."""
    import numpy
    table, places, at = [], [], 0
    for dtype, shape in arrays:
        table.append((numpy.lib.format.dtype_to_descr(dtype), shape, at))
        places.append(at)
        at += -(-dtype.itemsize * math.prod(shape) // _ALIGN) * _ALIGN
    return repr(table).encode(), places


@functools.lru_cache(256)
def _understood(text: bytes) -> list[tuple[Any, tuple[int, ...], int]]:
    """The arrays of a table: dtype, shape and where each begins."""
    import numpy
    found = []
    for descr, shape, at in ast.literal_eval(text.decode()):
        dtype = numpy.lib.format.descr_to_dtype(descr)
        if dtype.hasobject:
            raise ValueError("an array of objects")
        found.append((dtype, shape, at))
    return found


_SHORT = 256  # bytes before the first array that are remembered


@functools.lru_cache(256)
def _only(text: bytes, tables: int) -> tuple[Any, tuple[int, ...], int] | None:
    """The array that is an item by itself, and where it begins, by the table and the message before it; None if the item is more than that."""
    table = _understood(text[:tables])
    if text[tables:] != _FIRST or len(table) != 1:
        return None
    dtype, shape, at = table[0]
    return dtype, shape, -(-(_HEAD.size + len(text)) // _ALIGN) * _ALIGN + at


_SIMPLE = frozenset({type(None), bool, int, float, str, bytes})


def _lift(x: Any, arrays: list[Any], numpy: Any, depth: int) -> Any:
    """The item with the arrays that are kept apart taken out; the same object where there are none."""
    kind = type(x)
    if kind in _SIMPLE or depth > 64:
        return x
    if kind is dict:
        taken = {k: _lift(v, arrays, numpy, depth + 1) for k, v in x.items()}
        return x if all(taken[k] is x[k] for k in x) else taken
    if kind is list or kind is tuple:
        members = [_lift(v, arrays, numpy, depth + 1) for v in x]
        return x if all(a is b for a, b in zip(members, x)) else kind(members)
    if not isinstance(x, numpy.ndarray) or x.nbytes < _LARGE and x.dtype.kind in "biufc":
        return x
    if x.dtype.hasobject:
        raise TypeError(f"an array of {x.dtype} cannot be put into a channel, because its elements are objects of Python")
    arrays.append(numpy.ascontiguousarray(x) if x.ndim else numpy.array(x))
    return plain.Place(len(arrays) - 1)


def fill(parts: list[Part], into: memoryview) -> None:
    """Writes the parts of an item."""
    for at, part in parts:
        into[at:at + len(part)] = part


def join(parts: list[Part], size: int) -> bytes:
    """The bytes of an item."""
    if len(parts) == 1:
        return bytes(parts[0][1])
    out = bytearray(size)
    fill(parts, memoryview(out))
    return bytes(out)


def decode(data: Any, owner: Any = None) -> Any:
    """The item that bytes stand for. Arrays that were kept apart are views of ``owner``, an array of the same bytes, which they keep; without
    one they are arrays of their own. ValueError says why the bytes are no item."""
    if data[:1] != _APART:
        return plain.loads(data)
    import numpy
    try:
        _, tables, messages = _HEAD.unpack_from(data)
        if owner is not None and tables + messages <= _SHORT:
            only = _only(bytes(data[_HEAD.size:_HEAD.size + tables + messages]), tables)
            if only is not None:
                dtype, shape, begin = only
                return numpy.ndarray(shape, dtype, owner, begin)
        table = _understood(bytes(data[_HEAD.size:_HEAD.size + tables]))
        begin = -(-(_HEAD.size + tables + messages) // _ALIGN) * _ALIGN
        if owner is None:
            owner = numpy.array(numpy.frombuffer(data, numpy.uint8))  # aligned, and the receiver's to change
        arrays = [numpy.ndarray(shape, dtype, owner, begin + at) for dtype, shape, at in table]
    except (struct.error, SyntaxError, TypeError, KeyError, MemoryError, RecursionError, UnicodeDecodeError) as e:
        raise ValueError(f"{len(data)} bytes that are no item: {e}") from None
    message = bytes(data[_HEAD.size + tables:_HEAD.size + tables + messages])
    return arrays[0] if message == _FIRST and arrays else plain.loads(message, arrays)
