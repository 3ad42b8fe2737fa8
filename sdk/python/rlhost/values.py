"""Signals whose messages are values: what rlhost.plain takes, in blocks that nobody has to make by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import plain

if TYPE_CHECKING:
    from . import _native
    from .component import Signal
    from .host import Host

PAYLOAD = "value"
COLUMN = "value"  # of the blocks: bytes of rlhost.plain, as many as the first inline word says


class Values:
    """The blocks of one signal."""

    def __init__(self, host: Host, signal: Signal):
        self._host, self._signal = host, signal
        n = signal.value_bytes
        column = {"name": COLUMN, "dtype": "u8", "rows": 1, "envs": 1, "elems": n, "shape": [n], "offset": 0,
                  "stride_t": n, "stride_env": n, "stride_elem": 1}
        blocks = host.readers.get(signal.name, 0) + 1  # one to write while receivers have claims on the others
        self._arena = host.add_arena(signal.name, blocks, n, schema={"kind": "tensors", "columns": [column], "bytes": n})

    def put(self, value: Any) -> tuple[int, int]:
        """Writes a value into a block, and returns the handle, whose claim is the caller's, and the length."""
        data = plain.dumps(value)
        if len(data) > self._signal.value_bytes:
            raise ValueError(f"E096 signal {self._host.name}.{self._signal.name}: a value of {len(data)} bytes, at most {self._signal.value_bytes}; "
                             f'rlhost.Signal("{self._signal.name}", "{PAYLOAD}", value_bytes=N) sets how many')
        with self._arena.loan() as loan:
            loan.array[:len(data)] = memoryview(data)
            return loan.commit(), len(data)

    def release(self, handle: int) -> None:
        """Releases the claim of put."""
        self._arena.release(handle)


def taking(host: Host, run: Callable[[Any], object]) -> Callable[[_native.Message], None]:
    """The function for messages whose values a method takes."""
    def take(m: _native.Message) -> None:
        with host.lease(m.handle) as block:
            count = m.inline[0]
            if count > len(block.array):
                raise ValueError(f"a value of {count} bytes in a block of {len(block.array)}")
            value = plain.loads(block.array[:count].tobytes())
        run(value)
    return take
