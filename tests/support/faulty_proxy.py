"""An HTTP proxy in front of a real API server that does to connections what networks do."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self
from weakref import WeakSet

import aiohttp
import msgspec
from aiohttp import web

from argosy.kubernetes.connection import Connection, TlsSettings

#: Headers that belong to one connection, or that the proxy writes itself.
_OWN = {"host", "connection", "transfer-encoding", "content-length", "content-encoding", "date"}


@dataclass
class Fault:
    """What happens to a request. Unset, it is passed on."""

    #: Answer so instead of asking the server.
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    #: Break the connection before the server is asked, or when it has answered.
    breaks: str = ""
    #: Wait for this before doing anything.
    gate: asyncio.Event | None = None
    #: After so many lines of the answer: `end` it, `break` the connection in the middle of the next
    #: line, fall `silent`, or go on.
    lines: int = 0
    then: str = ""
    #: Lines written then, before it ends.
    also: bytes = b""
    #: Changes every line.
    edit: Callable[[bytes], bytes] | None = None
    #: Bytes of one piece; between two pieces, the loop turns.
    piece: int = 0


class FaultyProxy:
    """Use it as an async context manager; `connection` goes through it."""

    def __init__(self, upstream: Connection) -> None:
        self._upstream = upstream
        self._faults: list[tuple[Callable[[web.BaseRequest], bool], int, Fault]] = []
        #: By identity: requests have no hash.
        self._streams: dict[int, tuple[web.BaseRequest, asyncio.Event]] = {}
        self._port = 0
        self._sockets: WeakSet[socket.socket] = WeakSet()
        #: Every request that arrived: method, path and query.
        self.seen: list[str] = []
        self._arrival = asyncio.Event()
        self.under_way = 0
        self.most_under_way = 0

    @property
    def connection(self) -> Connection:
        return msgspec.structs.replace(
            self._upstream, server=f"http://127.0.0.1:{self._port}", tls=TlsSettings()
        )

    def inject(
        self, fault: Fault, on: Callable[[web.BaseRequest], bool] = lambda _: True, times: int = 1
    ) -> None:
        """Of several faults that apply to a request, the one that was injected first takes effect."""
        self._faults.append((on, times, fault))

    async def arrivals(self, method: str, count: int) -> None:
        """Returns when so many more requests of a method have arrived."""
        wanted = self._count(method) + count
        while self._count(method) < wanted:
            self._arrival.clear()
            await self._arrival.wait()

    def _count(self, method: str) -> int:
        return sum(each.startswith(method) for each in self.seen)

    def end_streams(self) -> None:
        """Ends all answers that are being passed on, without an error."""
        for _, event in self._streams.values():
            event.set()

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, socket_factory=self._socket),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None),
        )
        self._tls = self._upstream.ssl_context(None) or True
        await self.come_back()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.go_away()
        await self._session.close()
        # Connections of requests that were cut short would wait for the server's goodbye.
        for each in list(self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        while any(each.fileno() >= 0 for each in self._sockets):
            await asyncio.sleep(0)

    def _socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        made = socket.socket(*address[:3])
        self._sockets.add(made)
        return made

    async def come_back(self) -> None:
        self._runner = web.ServerRunner(web.Server(self._serve), shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        if not self._port:
            self._port = self._runner.addresses[0][1]

    async def go_away(self) -> None:
        """As when the server's machine ends: nobody listens, and all connections break."""
        for request, _ in list(self._streams.values()):
            with suppress(ConnectionResetError):
                abort(request)
        await self._runner.cleanup()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        self.seen.append(f"{request.method} {request.rel_url}")
        self._arrival.set()
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        self._streams[id(request)] = (request, asyncio.Event())
        try:
            return await self._pass_on(request, self._fault(request))
        except (aiohttp.ClientError, ConnectionError):
            with suppress(ConnectionResetError):
                abort(request)
            return web.Response(status=502)
        finally:
            del self._streams[id(request)]
            self.under_way -= 1

    def _fault(self, request: web.BaseRequest) -> Fault:
        for at, (applies, times, fault) in enumerate(self._faults):
            if applies(request):
                if times == 1:
                    del self._faults[at]
                else:
                    self._faults[at] = (applies, times - 1, fault)
                return fault
        return Fault()

    async def _pass_on(self, request: web.BaseRequest, fault: Fault) -> web.StreamResponse:
        if fault.gate is not None:
            await fault.gate.wait()
        if fault.breaks == "before":
            abort(request)
        if fault.status:
            return web.Response(status=fault.status, headers=fault.headers, body=fault.body)
        async with self._session.request(
            request.method,
            self._upstream.server + request.rel_url.path,
            params=request.rel_url.query,
            data=await request.read() or None,
            headers=[(k, v) for k, v in request.headers.items() if k.lower() not in _OWN],
            ssl=self._tls,
        ) as answer:
            if fault.breaks == "after":
                await answer.read()
                abort(request)
            headers = {k: v for k, v in answer.headers.items() if k.lower() not in _OWN}
            response = web.StreamResponse(status=answer.status, headers=headers)
            await response.prepare(request)
            async for piece in self._pieces(request, answer, fault):
                await response.write(piece)
            await response.write_eof()
            return response

    async def _pieces(
        self, request: web.BaseRequest, answer: aiohttp.ClientResponse, fault: Fault
    ) -> AsyncIterator[bytes]:
        _, ended = self._streams[id(request)]
        passed = 0
        ending = asyncio.ensure_future(ended.wait())
        try:
            while not ended.is_set():
                if fault.then and passed == fault.lines:
                    yield fault.also
                    if fault.then == "end":
                        return
                    if fault.then == "silent":
                        await asyncio.Event().wait()
                reading = asyncio.ensure_future(answer.content.readline())
                await asyncio.wait({reading, ending}, return_when=asyncio.FIRST_COMPLETED)
                if not reading.done():
                    reading.cancel()
                    return
                line = reading.result()
                if not line:
                    return
                if fault.then == "break" and passed == fault.lines:
                    yield line[: len(line) // 2]
                    abort(request)
                passed += 1
                if fault.edit is not None:
                    line = fault.edit(line)
                size = fault.piece or len(line)
                for start in range(0, len(line), size):
                    yield line[start : start + size]
                    await asyncio.sleep(0)
        finally:
            ending.cancel()


def abort(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
    raise ConnectionResetError
