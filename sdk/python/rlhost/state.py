"""Saved states as bytes, little endian: magic, u64 length of the head, the head as JSON, then the tensors' float32
elements and the blobs in the order of the head, without gaps."""

from __future__ import annotations

import itertools
import json
import math
import struct
from typing import Any

from .component import State

calls = itertools.count(1)  # of sent states

_MAGIC = b"RLSTATE1"
_HEAD = struct.Struct("<8sQ")


def pack(state: State) -> bytes:
    """The bytes of a state, equal for equal states."""
    head: dict[str, Any] = {"meta": state.meta, "tensors": [], "blobs": []}
    parts = []
    for name, tensor in sorted(state.tensors.items()):
        import numpy
        data = numpy.ascontiguousarray(tensor, "<f4")
        head["tensors"].append({"name": name, "shape": list(numpy.shape(tensor))})
        parts.append(data.tobytes())
    for name, blob in sorted(state.blobs.items()):
        head["blobs"].append({"name": name, "bytes": len(blob)})
        parts.append(bytes(blob))
    text = json.dumps(head, separators=(",", ":")).encode()
    return b"".join([_HEAD.pack(_MAGIC, len(text)), text, *parts])


def unpack(data: bytes) -> State:
    """The inverse of pack; ValueError for invalid bytes. Arrays are copies."""
    if not data.startswith(_MAGIC):
        return State(blobs={"state": data})
    if len(data) < _HEAD.size or _HEAD.unpack_from(data)[1] > len(data) - _HEAD.size:
        raise ValueError("the saved state ends within its head")
    at = _HEAD.size + _HEAD.unpack_from(data)[1]
    head = json.loads(data[_HEAD.size:at])
    state = State(head.get("meta"))
    for t in head.get("tensors") or []:
        import numpy
        count = math.prod(t["shape"])
        if count > (len(data) - at) // 4:
            raise ValueError(f"the saved state ends within tensor {t['name']}")
        state.tensors[t["name"]] = numpy.frombuffer(data, "<f4", count, at).reshape(t["shape"]).copy()
        at += 4 * count
    for b in head.get("blobs") or []:
        if b["bytes"] > len(data) - at:
            raise ValueError(f"the saved state ends within blob {b['name']}")
        state.blobs[b["name"]] = data[at:at + b["bytes"]]
        at += b["bytes"]
    return state
