"""Ports that stay reserved.

A free port that is looked up and released may be taken before the server that needs it starts, or while
it restarts. Here the socket stays bound for as long as the port is needed. It does not listen, so it
gets no connections; servers bind to the same port with SO_REUSEPORT, which the kernel allows to
processes of the same user.
"""

from __future__ import annotations

import socket

from argosy.kubernetes.control_plane.programs import HOST


class HeldPorts:
    def __init__(self, count: int) -> None:
        self._sockets = [socket.socket() for _ in range(count)]
        for each in self._sockets:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            each.bind((HOST, 0))
        self.numbers = [each.getsockname()[1] for each in self._sockets]

    def close(self) -> None:
        for each in self._sockets:
            each.close()
