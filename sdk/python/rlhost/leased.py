"""Arrays over memory that others read too."""

from __future__ import annotations

from typing import Any

import numpy


class Leased(numpy.ndarray):
    """A view of a block that can only be read. DLPack's consumers get a copy of it: its older version cannot say that memory
    is read-only, and PyTorch lets tensors be written where the newer one says so."""

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
        except TypeError:  # NumPy before 2.1 knows the older protocol alone, which a consumer has to take as well
            return owned.__dlpack__(stream=how.get("stream"))

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """What is computed from a view is an array like any other."""
        return array[()] if array.ndim == 0 else array
