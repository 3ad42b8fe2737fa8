"""The control service of a plugin: gRPC with bytes in and out, and no generated code."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from typing import Any

SERVICE = "/rlhost.plugin.v1.Plugin/"
HEALTH = "/grpc.health.v1.Health/Check"
SHUTDOWN = "/plugin.GRPCController/Shutdown"

_HEALTHY = b"\x08\x01"  # HealthCheckResponse{status: SERVING}


class Refusal(Exception):
    """A refused call, with the name of its gRPC code, such as FAILED_PRECONDITION."""

    def __init__(self, code: str, reason: str):
        super().__init__(reason)
        self.code = code


def pack(document: Any) -> bytes:
    """A google.protobuf.BytesValue that holds a JSON document."""
    data = json.dumps(document, separators=(",", ":")).encode()
    length, n = b"", len(data)
    while n > 0x7F:
        length += bytes([n & 0x7F | 0x80])
        n >>= 7
    return b"\x0a" + length + bytes([n]) + data


def unpack(message: bytes) -> Any:
    """The JSON document of a BytesValue; an empty one is {}."""
    if not message:
        return {}
    if message[0] != 0x0A:
        raise Refusal("INVALID_ARGUMENT", "the request is not a BytesValue")
    length, shift, at = 0, 0, 1
    while True:
        if at >= len(message) or shift > 28:
            raise Refusal("INVALID_ARGUMENT", "the request is cut off")
        length |= (message[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if message[at - 1] < 0x80:
            break
    if length != len(message) - at:
        raise Refusal("INVALID_ARGUMENT", f"the request has {len(message) - at} bytes of {length}")
    try:
        return json.loads(message[at:]) if length else {}
    except ValueError as e:
        raise Refusal("INVALID_ARGUMENT", f"the request is not JSON: {e}") from None


_FORK = "GRPC_ENABLE_FORK_SUPPORT"


class Server:
    """Listens on a socket of its own, at path or in the folder that the host names. call(method, document) runs on the server's
    threads and returns a document; end is called when the host asks the process to end."""

    def __init__(self, call: Callable[[str, Any], Any], end: Callable[[], None], path: str = ""):
        from concurrent import futures

        # gRPC's handlers of forks make a child crash now and then that is forked while a call is under way, as all are that an environment
        # forks when it is made. The child does not use gRPC.
        os.environ[_FORK] = "0"
        import grpc

        def control(method: str) -> Callable[[bytes, Any], bytes]:
            def run(message: bytes, context: Any) -> bytes:
                try:
                    return pack(call(method, unpack(message)))
                except Refusal as e:
                    context.abort(grpc.StatusCode[e.code], str(e))
                    raise
            return run

        def shutdown(message: bytes, context: Any) -> bytes:
            context.add_callback(end)  # after the answer
            return b""

        class Handler(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio has no types
            def service(self, details: Any) -> Any:
                method = details.method
                if method.startswith(SERVICE):
                    return grpc.unary_unary_rpc_method_handler(control(method[len(SERVICE):]))
                if method == HEALTH:
                    return grpc.unary_unary_rpc_method_handler(lambda message, context: _HEALTHY)
                if method == SHUTDOWN:
                    return grpc.unary_unary_rpc_method_handler(shutdown)
                return None

        # One thread for calls, and one for health checks while a call runs.
        self._server = grpc.server(futures.ThreadPoolExecutor(2, "control"), handlers=[Handler()], options=[
            ("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 64 << 20)])
        folder = os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or tempfile.gettempdir()
        self.path = path or os.path.join(folder, f"plugin{os.getpid()}")
        self._server.add_insecure_port("unix:" + self.path)
        self._server.start()
        os.environ.pop(_FORK, None)

    def stop(self) -> None:
        """Ends all calls."""
        self._server.stop(0.2).wait()
