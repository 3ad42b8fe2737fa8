"""What descriptions of environments and of components have in common: records, strings, and what is read first."""

import ctypes

from page import blank

MAX_TENSORS, MAX_ELEMS, MAX_BYTES = 1024, 1 << 24, 1 << 20


class Refused(Exception):
    """The guest is not loaded."""


class TooOld(Refused):
    """The guest wants what this host does not run: that is not its author's mistake."""

    def __init__(self, text):
        super().__init__(text + ": update this host")


def must(holds, text):
    """Refuses the guest where something does not hold."""
    if not holds:
        raise Refused(text)


class Description:
    """What a guest says about itself: the major version and the needs are read first, then all else."""

    head = None  # the kind of its head, which begins with size, abi_major and abi_minor
    features = 0  # that this host runs
    minor = 0  # version that this host speaks
    least = 0  # bytes of the head in version 1.0

    def __init__(self, blob):
        must(len(blob) >= 24, f"a head of {len(blob)} bytes")
        known = blob[:max(int.from_bytes(blob[:4], "little"), self.least)][:ctypes.sizeof(self.head)]
        h = self.head.from_buffer_copy(known.ljust(ctypes.sizeof(self.head), b"\0"))  # what a shorter one has not is 0
        must(h.abi_major > 0, f"ABI {h.abi_major}.{h.abi_minor}, which there never was")
        if h.abi_major > 1:
            raise TooOld(f"the guest needs ABI {h.abi_major}.{h.abi_minor}")
        if missing := h.needs & ~self.features:
            raise TooOld("the guest needs features " + ", ".join(str(i) for i in range(64) if missing >> i & 1) + ", which this host does not run")
        try:
            self.read(blob, h)
        except TooOld:
            raise
        except Refused as e:  # in a later version it may be right
            raise TooOld(str(e)) if h.abi_minor > self.minor else e

    def read(self, blob, h):
        """Reads the head and the strings; subclasses go on."""
        self.blob, self.h = blob, h
        must(self.least <= h.size <= min(4096, len(blob)) and h.size % 4 == 0, f"a head of {h.size} bytes")
        must(blank(h), "the head has reserved bytes that are not 0")
        must(h.strings_at >= h.size and 0 < h.strings_len <= len(blob) - h.strings_at, "the strings end outside the description")
        self.strings = blob[h.strings_at:h.strings_at + h.strings_len]
        must(self.strings[0] == 0 and self.strings[-1] == 0, "the strings do not begin and end with a NUL")

    def records(self, kind, at, each, n, name, multiple=4):
        """The records at a place, each of so many bytes, of which the known ones are read."""
        must(ctypes.sizeof(kind) <= each <= 4096 and each % multiple == 0, f"{name}_bytes is {each}")
        must(n * each <= len(self.blob) - at, f"{n} records of {name} end outside the description")
        return [kind.from_buffer_copy(self.blob, at + i * each) for i in range(n)]

    def string(self, at):
        must(at < len(self.strings), "a string lies outside the table")
        raw = self.strings[at:self.strings.index(0, at)]
        must(len(raw) <= 4096, "a string of more than 4,096 bytes")
        text = raw.decode(errors="surrogateescape")
        must(not any(0xdc80 <= ord(c) <= 0xdcff for c in text), "a string is not UTF-8")
        must(all(c == "\n" or ord(c) >= 32 and not 127 <= ord(c) < 160 for c in text), "a string has control characters")
        return text
