"""The frames between a store and the host: a head, and behind it what the operation needs."""

from __future__ import annotations

import struct

import numpy as np

from .errors import WrongDType

VERSION = 1
MAX_FRAME = 64 << 10
MAX_RANK = 8

HELLO, CREATE, OPEN, REMOVE, NEW, SPARE, COMMIT, ABORT, READ, LATEST, POP, BATCH, RELEASE, DELETE, STAT, \
    LIST, CANCEL = range(1, 18)
ONE_WAY, NEXT, REVOKE, REUSE, WRITE, NO_FILE, RANGE = (1 << i for i in range(7))

REQUEST = struct.Struct("<BBBxIIIQQQq")  # op flags values seq object count claim index release wait
REPLY = struct.Struct("<BBxxIIIQQQII")   # op status seq object block claim index spare spare_block count
VIEW = struct.Struct("<QII")             # index block tracks
VALUE = struct.Struct("<BBxxxxxx")       # dtype rank
LAYOUT = struct.Struct("<IIQI")          # capacity blocks size tracks
COLUMN = struct.Struct("<QQQBB")         # at stride bytes dtype name
CONFIG = struct.Struct("<QqI")           # capacity spares tracks
TRACK = struct.Struct("<QBB")            # bytes dtype name

ANY, BYTES = 0, 32
DTYPES = {
    1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 6: "<f2", 8: "<f4", 9: "<f8", 10: "?",
    16: "<u2", 17: "<u4", 18: "<u8", 19: "<c8", 20: "<c16",
}
DTYPE_OF = {number: np.dtype(name) for number, name in DTYPES.items()}
NUMBER_OF = {dtype: number for number, dtype in DTYPE_OF.items()}
DIMS = [struct.Struct("<%dQ" % rank) for rank in range(MAX_RANK + 1)]

# Places in a reply's head, and behind it what is not in the head.
R_STATUS, R_OBJECT, R_BLOCK, R_CLAIM, R_INDEX, R_SPARE, R_SPARE_BLOCK, R_COUNT = 1, 3, 4, 5, 6, 7, 8, 9


def number_of(dtype: np.dtype, what: str) -> int:
    """The number of a dtype in frames; WrongDType says what it was for if there is none."""
    number = NUMBER_OF.get(dtype.newbyteorder("<"))
    if number is None or not dtype.isnative and dtype.itemsize > 1:
        raise WrongDType("%s: dtype %s cannot be shared: make it %s, or push bytes" % (
            what, dtype, ", ".join(sorted(str(d) for d in NUMBER_OF))))
    return number
