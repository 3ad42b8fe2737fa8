"""Arrays over shared memory."""

from __future__ import annotations

from typing import Any

import numpy


class Leased(numpy.ndarray):
    """A read-only view of a block. DLPack's consumers get a copy: its older version cannot mark memory as read-only,
    and PyTorch ignores the mark of the newer one."""

    def __dlpack__(self, *, copy: bool | None = None, **how: Any) -> Any:
        if self.flags.writeable:  # computed from a view, or a copy of one
            if copy is not None:
                how["copy"] = copy
            return super().__dlpack__(**how)
        if copy is False:
            raise BufferError("this array is a view of a block that can only be read, and a tensor over it could be written: "
                              "make one of a copy, numpy.array(view)")
        owned = numpy.array(self)
        try:
            return owned.__dlpack__(**how)
        except TypeError:  # NumPy before 2.1 knows only the older protocol, which all consumers accept
            return owned.__dlpack__(stream=how.get("stream"))

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """The result of a computation on views is a plain array."""
        return array[()] if array.ndim == 0 else array
