"""Items in shared memory, where a receiver uses them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .connection import Connection


class Region(np.ndarray[Any, np.dtype[np.uint8]]):
    """The bytes of an item. The arrays that lie in it keep it, and it gives the region back when it goes."""

    _connection: Connection
    _region = 0

    def __new__(cls, connection: Connection, region: int, memory: Any, size: int) -> Region:
        self = super().__new__(cls, (size,), np.uint8, memory)
        self._connection, self._region = connection, region
        return self

    def __del__(self) -> None:
        if self._region:
            self._connection.free(self._region)
