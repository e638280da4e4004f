"""Sockets that take a limited number of connections."""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

from argosy.service.problems import MEDIA_TYPE, RETRY_AFTER, PlainHttpError, encode_problem

#: Connections at once: over the network, and over the socket in the directory. The user of this computer
#: gets in however many others there are.
MOST_CONNECTIONS: Final = 500


class FullHouse(asyncio.Protocol):
    """Says that there are too many connections, whatever is asked."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        body = encode_problem(PlainHttpError(503, "too many connections"))
        head = (
            "HTTP/1.1 503 Service Unavailable\r\n"
            f"Content-Type: {MEDIA_TYPE}\r\n"
            f"Content-Length: {len(body)}\r\n"
            f"Retry-After: {RETRY_AFTER}\r\n"
            "Connection: close\r\n\r\n"
        )
        transport.write(head.encode() + body)
        transport.close()


class Door:
    """Makes the protocols of new connections. Of those that come at one moment, a few more than
    the limit may get in."""

    def __init__(self, server: web.Server, most: int) -> None:
        self._server = server
        self._most = most
        self._made: set[asyncio.BaseProtocol] = set()

    def __call__(self) -> asyncio.BaseProtocol:
        if len(self._made) >= self._most:
            self._made.intersection_update(self._server.connections)
        if len(self._made) >= self._most:
            return FullHouse()
        protocol = self._server()
        self._made.add(protocol)
        return protocol
