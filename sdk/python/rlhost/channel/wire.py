"""The frames between a client and the server of a channel, as core/channel/remote has them."""

from __future__ import annotations

import struct

VERSION = 1
MAX_INLINE = 64 << 10   # bytes of an item that travels in a frame
MAX_REPLY = 128 << 10
MAX_KEY = 1024
PAGE_SHIFT = 12

HELLO, PUT, GET, BATCH, PEEK, ALLOC, MAP, FREE, CANCEL, PUT_BACK, STAT, STOP, BYE = range(1, 14)
NO_WAIT, NEXT, EARLY = 1, 2, 4
COPY, PACKED, FILE, ROOM = 1, 2, 4, 8

REQUEST = struct.Struct("<BBHIIIdqQQQ")  # op flags key seq ack most weight wait region size release
REPLY = struct.Struct("<BBBxIIIQ")       # op status flags seq count pages spare
ITEM = struct.Struct("<dQQ")             # weight region bytes
REGION = struct.Struct("<Q")
