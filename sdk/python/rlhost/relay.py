"""The program of a plugin that lives in another process: it gives that process what the host gave it, and ends with it.

The host starts its plugins itself, and rlhost.sample is called in a process that is there already."""

import os
import socket
import sys

FILES = (1, 3, 4, 5)  # standard output, for the handshake, and the link


def main() -> None:
    """Connects to the socket that the command line names."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as to:
        to.connect(sys.argv[1])
        socket.send_fds(to, [os.fsencode(os.environ["PLUGIN_UNIX_SOCKET_DIR"])], list(FILES))
        for fd in FILES:
            os.close(fd)
        to.recv(1)  # it ends, or has ended


if __name__ == "__main__":
    main()
