"""The frames between a store and the host: a head, then the data of the operation."""

from __future__ import annotations

import ast
import functools
import math
import struct

import numpy as np

from .errors import WrongDType

VERSION = 2
MAX_FRAME = 64 << 10
MAX_RANK = 8

HELLO, CREATE, OPEN, REMOVE, NEW, SPARE, COMMIT, ABORT, READ, LATEST, POP, BATCH, RELEASE, DELETE, STAT, \
    LIST, CANCEL, LOCK, UNLOCK = range(1, 20)
ONE_WAY, NEXT, REVOKE, REUSE, WRITE, NO_FILE, RANGE = (1 << i for i in range(7))
GROW, ALONE, TEAR, MEND = REVOKE, WRITE, REVOKE, REUSE  # of CREATE, LOCK and UNLOCK
TORN = 1 << 31  # in the number of a view's tracks

REQUEST = struct.Struct("<BBBxIIIQQQq")  # op flags values seq object count claim index release wait
REPLY = struct.Struct("<BBxxIIIQQQII")   # op status seq object block claim index spare spare_block count
VIEW = struct.Struct("<QII")             # index block tracks
VALUE = struct.Struct("<BBxxxxxx")       # dtype rank
LAYOUT = struct.Struct("<IIQI")          # capacity blocks size tracks
COLUMN = struct.Struct("<QQQBB")         # at stride bytes dtype name
CONFIG = struct.Struct("<QqI")           # capacity spares tracks
TRACK = struct.Struct("<QBB")            # bytes dtype name

ANY, BYTES, PLAIN, DESCRIBED, PICKLED = 0, 32, 33, 34, 35
DTYPES = {
    1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 6: "<f2", 8: "<f4", 9: "<f8", 10: "?",
    16: "<u2", 17: "<u4", 18: "<u8", 19: "<c8", 20: "<c16",
}
DTYPE_OF = {number: np.dtype(name) for number, name in DTYPES.items()}
NUMBER_OF = {dtype: number for number, dtype in DTYPE_OF.items()}
DIMS = [struct.Struct("<%dQ" % rank) for rank in range(MAX_RANK + 1)]

# Places in a reply's head, then those after the head.
R_STATUS, R_OBJECT, R_BLOCK, R_CLAIM, R_INDEX, R_SPARE, R_SPARE_BLOCK, R_COUNT = 1, 3, 4, 5, 6, 7, 8, 9


def number_of(dtype: np.dtype, what: str) -> int:
    """The number of a dtype in frames. Without one it raises WrongDType, which names the purpose."""
    number = NUMBER_OF.get(dtype)
    if number is not None:
        return number
    if dtype.hasobject or dtype.kind not in "biufcSUMmV":
        raise WrongDType("%s: dtype %s cannot be shared, because it has pointers: make it one of numbers, text of a fixed "
                         "length or records of them, or push bytes" % (what, dtype))
    return DESCRIBED


# An array of another dtype than those of DTYPES: its elements, then this text, then the text's length.
_LENGTH = struct.Struct("<I")


@functools.lru_cache(256)
def description(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """The text after the elements of an array whose dtype has no number."""
    text = repr((np.lib.format.dtype_to_descr(dtype), shape)).encode()
    return text + _LENGTH.pack(len(text))


def described(block: memoryview) -> tuple[np.dtype, tuple[int, ...]]:
    """The dtype and shape of the array in a block. ValueError if there is none."""
    try:
        length, = _LENGTH.unpack(block[-_LENGTH.size:])
        text = bytes(block[-_LENGTH.size - length:-_LENGTH.size]) if length < 1 << 16 else b""
        descr, shape = ast.literal_eval(text.decode())
        dtype = np.lib.format.descr_to_dtype(descr)
        if dtype.hasobject or any(type(n) is not int or n < 0 for n in shape):
            raise ValueError("an array that cannot be shared")
        if dtype.itemsize * math.prod(shape) + len(text) + _LENGTH.size != len(block):
            raise ValueError("a description that does not fit its %d bytes" % len(block))
        return dtype, tuple(shape)
    except (struct.error, SyntaxError, TypeError, KeyError, MemoryError, RecursionError) as e:
        raise ValueError("%d bytes that are no array: %s" % (len(block), e)) from None
