"""A host for tests: it starts a plugin as the real one does, over real sockets, rings, arenas and gRPC."""

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import tempfile
import time

import grpc

from rlhost import _native, control, serving

CELLS = 4096
HOST = 23  # this process's bit in the words of arenas; the real host's is 0
PLUGIN = 5
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
ACK, CREDIT, BOUNDARY, BOUNDARY_OVER, STOP = 0xFF01, 0xFF02, 0xFF03, 0xFF04, 0xFF05
CONTROL = 0xFF00
PAGE = 4096


class Died(Exception):
    """The plugin ended while an answer was awaited."""


def sealed(size):
    """A memory file of fixed size."""
    fd = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
    return fd


class HostArena:
    """An arena as the host makes it, and this process's view of it."""

    def __init__(self, number, name, blocks, block_bytes, schema=None):
        self.number, self.name, self.blocks, self.block_bytes = number, name, blocks, block_bytes
        self.stride = (block_bytes + PAGE - 1) // PAGE * PAGE
        self.schema = schema
        hints_at = PAGE + 64 * blocks
        words = (hints_at + (blocks + 63) // 64 * 8 + PAGE - 1) // PAGE * PAGE
        self.words_fd, self.data_fd = sealed(words), sealed(blocks * self.stride)
        first = 1
        head = struct.pack("<QIIQQQQQQQ", 0x414E455241524C52, 2, number, blocks, block_bytes, self.stride, hints_at,
                           words, blocks * self.stride, first)
        os.pwrite(self.words_fd, head, 0)
        for block in range(blocks):
            os.pwrite(self.words_fd, struct.pack("<Q", first << 27), PAGE + 64 * block)
        os.pwrite(self.words_fd, b"".join(struct.pack("<Q", (1 << min(64, blocks - i)) - 1) for i in range(0, blocks, 64)),
                  hints_at)
        from rlhost.arena import Arena
        self.view = Arena(_native.Arena.attach(self.words_fd, self.data_fd, number, name, blocks, block_bytes, HOST,
                                               schema=json.dumps(schema) if schema else ""))

    def document(self, call=0):
        return {"call": call, "id": self.number, "name": self.name, "blocks": self.blocks,
                "block_bytes": self.block_bytes, "read_only": False, "schema": self.schema}


class FakeHost:
    """Starts `argv` as a plugin. Use it as a context; what it was told on the wire is in frames."""

    def __init__(self, argv, environment=None, arenas=()):
        self.arenas = {a.number: a for a in arenas}
        self.frames, self.messages = [], []
        self.finished = 0  # data messages of the plugin
        self.folder = tempfile.TemporaryDirectory(prefix="rlhost-test-")
        self.wire, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.in_fd = _native.ring_create(_native.RING_MESSAGES, CELLS, 64)
        self.out_fd = _native.ring_create(_native.RING_MESSAGES, CELLS, 64)
        self.to_plugin, self.from_plugin = _native.MessageRing(self.in_fd), _native.MessageRing(self.out_fd)
        for arena in arenas:
            self.send_frame({"arena": arena.document()}, [arena.words_fd, arena.data_fd])
        out, stdout = os.pipe()
        self.log_file = tempfile.TemporaryFile()
        env = {serving.COOKIE_KEY: serving.COOKIE, "PLUGIN_PROTOCOL_VERSIONS": str(serving.PROTOCOL), "PLUGIN_UNIX_SOCKET_DIR": self.folder.name,
               "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), **(environment or {})}
        # Moved out of the way first, so that no file lands on another's number.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in (theirs.fileno(), self.in_fd, self.out_fd)]
        actions = [(os.POSIX_SPAWN_DUP2, fd, 3 + i) for i, fd in enumerate(high)]
        actions += [(os.POSIX_SPAWN_CLOSE, fd) for fd in high]
        actions += [(os.POSIX_SPAWN_DUP2, stdout, 1), (os.POSIX_SPAWN_DUP2, self.log_file.fileno(), 2)]
        self.started = time.perf_counter()
        self.pid = os.posix_spawn(argv[0], argv, env, file_actions=actions)
        self.status = None
        self.pidfd = os.pidfd_open(self.pid)
        for fd in (*high, stdout):
            os.close(fd)
        theirs.close()
        self.out = out
        self.channel = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()
        if error[0]:
            print(self.log(), file=sys.stderr)

    def connect(self, timeout=20.0):
        """Reads the handshake and opens the control channel."""
        line = b""
        while not line.endswith(b"\n"):
            if not select.select([self.out], [], [], timeout)[0]:
                raise Died(f"no handshake: {self.log()}")
            piece = os.read(self.out, 4096)
            if not piece:
                raise Died(f"no handshake: {self.log()}")
            line += piece
        self.handshake = line.decode().strip()
        self.channel = grpc.insecure_channel("unix:" + self.handshake.split("|")[3])
        return self

    def call(self, method, document=None, timeout=30.0):
        """A control call; grpc.RpcError where it is refused."""
        return control.unpack(self.raw(control.SERVICE + method, control.pack(document or {}), timeout))

    def raw(self, path, data, timeout=30.0):
        return self.channel.unary_unary(path)(data, timeout=timeout, wait_for_ready=True)

    def configure(self, kind, config=None, **more):
        document = {"kind": kind, "name": kind, "id": 7, "index": 0, "count": 1, "holder": PLUGIN, "config": config or {},
                    "run": {"name": "test", "seed": "11", "dir": "", "synchronous": False}, "log_level": "debug", **more}
        return self.call("Configure", document)

    def start(self, kind, config=None, **more):
        """Configures and starts, and fails on complaints."""
        answer = self.configure(kind, config, **more)
        assert not answer["errors"], answer
        self.call("Start")

    # Messages.

    def send(self, m):
        data = bytearray(bytes(m))
        struct.pack_into("<Q", data, 0, self.finished)
        self.to_plugin.put(bytes(data), 5.0)

    def receive(self, timeout=30.0):
        """The next message from the plugin that is not an acknowledgement alone. Data is finished with at once."""
        end = time.monotonic() + timeout
        while True:
            try:
                m = self.from_plugin.get(min(0.2, max(0.0, end - time.monotonic())))
            except _native.TimedOut:
                if self.dead() or time.monotonic() >= end:
                    raise Died(f"no message: {self.log()}") from None
                continue
            self.acked = m.ctl
            if m.slot == ACK:
                continue
            if m.slot < CONTROL:
                self.finished += 1
            return m

    # The wire.

    def send_frame(self, document, fds=()):
        socket.send_fds(self.wire, [json.dumps(document).encode()], list(fds))

    def frame(self, name, timeout=30.0):
        """Waits for a frame of that name and returns (document, files); others are kept."""
        end = time.monotonic() + timeout
        while True:
            for i, (document, fds) in enumerate(self.frames):
                if name in document:
                    del self.frames[i]
                    return document[name], fds
            if not select.select([self.wire], [], [], max(0.0, end - time.monotonic()))[0]:
                raise Died(f"no {name} on the wire: {self.log()}")
            data, fds, _, _ = socket.recv_fds(self.wire, 1 << 17, 4)
            if not data:
                raise Died(f"the wire is closed: {self.log()}")
            self.frames.append((json.loads(data), fds))

    def grant_arena(self, timeout=30.0):
        """Answers the plugin's request for an arena; returns it."""
        asked, _ = self.frame("add_arena", timeout)
        arena = HostArena(len(self.arenas) + 1, asked["name"], asked["blocks"], asked["block_bytes"], asked.get("schema"))
        self.arenas[arena.number] = arena
        self.send_frame({"arena": arena.document(asked["call"])}, [arena.words_fd, arena.data_fd])
        return arena

    # The process.

    def log(self):
        self.log_file.seek(0)
        return self.log_file.read().decode(errors="replace")

    def dead(self, timeout=0.0):
        """Whether the process has ended, after waiting that long for it."""
        if self.status is None and select.select([self.pidfd], [], [], timeout)[0]:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status is not None

    def kill(self, number=signal.SIGKILL):
        if not self.dead():
            signal.pidfd_send_signal(self.pidfd, number)

    def shutdown(self, timeout=60.0):
        """Ends the plugin in order and returns its exit status."""
        with contextlib.suppress(grpc.RpcError):
            self.raw(control.SHUTDOWN, b"")
        assert self.dead(timeout), "the plugin does not end"
        return self.status

    def close(self):
        if self.channel:
            self.channel.close()
        self.kill()
        self.dead(10.0)
        self.wire.close()
        for fd in (self.in_fd, self.out_fd, self.out, self.pidfd):
            os.close(fd)
        self.log_file.close()
        self.folder.cleanup()


def python(module_or_file, *args):
    """The command line that runs a module ("-m name") or a file with this interpreter."""
    return [sys.executable, *module_or_file.split(" "), *args]
