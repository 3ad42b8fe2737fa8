"""A host of environments for tests and benchmarks: blocks, scratch area, and the calls of the step path."""

import base64
import importlib
import mmap
import os
import sys

import numpy

import rlhost
from fakehost import FakeHost, sealed
from rlhost import _native
from rlhost.arena import read_columns, view

SAME_STEP, NEXT_STEP, DISABLED = 2, 1, 4
GYMNASIUM = "rlhost.gymnasium"


def layout(steps, envs, *observed, soa=False, actions=(("i32", ()),), mask=0, active=False, infos=0):
    """Columns as the host lays them out, and the bytes of a block. observed are the parts of the observation: (dtype, shape)."""
    columns, end = [], 0

    def several(name, rows, parts):
        return [(f"{name}/{i}" if i else name, dtype, rows, shape) for i, (dtype, shape) in enumerate(parts)]

    masks = [("action_mask", "u8", steps + 1, (mask,))] if mask else []
    masks += [("active", "u8", steps + 1, ())] if active else []
    masks += several("reset_info", steps + 1, [("f32", ())] * infos)
    for name, dtype, rows, shape in (*several("action", steps, actions), *several("obs", steps + 1, observed), ("reward", "f32", steps, ()),
                                     ("terminated", "u8", steps, ()), ("truncated", "u8", steps, ()), *masks, *several("final_obs", 1, observed)):
        size, elems = (1 if dtype == "u8" else 4), int(numpy.prod(shape, dtype=int))
        stride_env, stride_elem = (size, size * envs) if soa and elems > 1 else (size * elems, size)
        columns.append({"name": name, "dtype": dtype, "rows": rows, "envs": envs, "elems": elems, "shape": list(shape),
                        "offset": end, "stride_t": size * envs * elems, "stride_env": stride_env, "stride_elem": stride_elem})
        end = (end + rows * size * envs * elems + 63) // 64 * 64
    return {"kind": "trajectory", "steps": steps, "envs": envs, "columns": columns}, (end + 4095) // 4096 * 4096


class Blocks:
    """A file of blocks, and their columns."""

    def __init__(self, number, schema, bytes, count):
        self.number, self.schema, self.bytes = number, schema, bytes
        self.fd = sealed(bytes * count)
        memory = numpy.frombuffer(mmap.mmap(self.fd, bytes * count), numpy.uint8)
        self.columns = [{name: view(memory, i * bytes, c) for name, c in read_columns(schema).items()} for i in range(count)]


class Link:
    """What a worker of this process answers to."""

    def __init__(self):
        self.answers = []
        self.states = {}  # by the number of their call

    def bind(self, *arguments):
        pass

    def wire_send(self, document):
        pass

    def state_send(self, call, data):
        self.states[call] = data

    def send(self, slot, kind, inline0, inline1, t=0, split=0):
        self.answers.append(rlhost.Message(slot=slot, kind=kind, inline=(inline0, inline1), t=t, split=split))


class InProcess:
    """A worker in this process, in the place of a FakeHost: what it does is the same, and it starts at once."""

    def __init__(self, module):
        from rlhost.gymnasium import Worker
        kinds = importlib.import_module(module)
        self.worker, self.link = Worker(kinds.Source, kinds.Batch), Link()
        self.worker.open(self.link)

    def call(self, method, document):
        return self.worker.call(method, document)

    def send_frame(self, document, fds):
        self.worker.frame(document, tuple(os.dup(fd) for fd in fds))

    def send(self, m):
        self.worker.message(m)

    def receive(self):
        return self.link.answers.pop(0)

    def close(self):
        self.worker.close()


LATER = {"of_a_later_version": [{"use": None}]}  # ignored


class EnvHost:
    """One worker process with a batch of environments, or one in this process."""

    def __init__(self, use, envs, args=None, autoreset=SAME_STEP, first_column=0, block_envs=None, environment=None,
                 own_process=True, module=GYMNASIUM, threads=1):
        self.host = FakeHost([sys.executable, "-m", module], environment).connect() if own_process else InProcess(module)
        try:
            loaded = self.host.call("EnvLoad", {"name": "test", "use": use, "args": args or {}, "threads": threads, **LATER})
            self.spec = rlhost.EnvSpec.unpack(base64.b64decode(loaded["spec"]["describe"]))
            self.hash = loaded["hash"]
            self.scratch = self.host.call("EnvMake", {
                "name": "rollout[0]", "envs": envs, "first_env": first_column, "autoreset": autoreset, "seed": "1",
                "first_column": first_column, "block_envs": block_envs or envs, **LATER})
        except BaseException:
            self.host.close()
            raise
        self.envs = envs
        fd = sealed(self.scratch["bytes"])
        self.area = numpy.frombuffer(mmap.mmap(fd, self.scratch["bytes"]), numpy.uint8)
        self.host.send_frame({"file": {"number": 0, "bytes": self.scratch["bytes"]}}, [fd])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.host.close()

    def share(self, blocks):
        """Announces a file of blocks."""
        self.host.send_frame({"file": {"number": blocks.number, "bytes": blocks.bytes * len(blocks.columns),
                                       "schema": {**blocks.schema, **LATER}, **LATER}, **LATER}, [blocks.fd])

    def ask(self, slot, t=0, kind=0, inline=(0, 0)):
        """Sends a call without waiting for the answer."""
        self.host.send(rlhost.Message(slot=slot, t=t, kind=kind, inline=inline))

    def answer(self):
        """Waits for the answer; a complaint is returned as (status, environment, text)."""
        m = self.host.receive()
        while m.slot == _native.LINK_ENV_METRIC:
            m = self.host.receive()
        assert m.slot == _native.LINK_ENV_REPLY, m
        if m.kind:
            text = bytes(self.area[self.scratch["text_at"]:][:m.inline[0]]).decode()
            return -m.kind, m.inline[1] - 1, text
        return None

    def bind(self, blocks, index):
        self.ask(_native.LINK_ENV_BIND, index, 0, (blocks.number, index * blocks.bytes))
        return self.answer()

    def reset(self, t=0, seeds=None, mask=None):
        kind = 0
        if seeds is not None:
            kind |= _native.LINK_ENV_SEEDS
            self.area[self.scratch["seeds_at"]:][:8 * self.envs] = numpy.array(seeds, "<u8").view(numpy.uint8)
        if mask is not None:
            kind |= _native.LINK_ENV_MASK
            self.area[self.scratch["mask_at"]:][:self.envs] = mask
        self.ask(_native.LINK_ENV_RESET, t, kind)
        return self.answer()

    def step(self, t):
        self.ask(_native.LINK_ENV_STEP, t)
        return self.answer()
