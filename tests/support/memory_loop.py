"""An event loop in virtual time whose sockets are in memory: a whole server and its clients run in one
process, without waiting, and the same each time."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from argosy.client.flows import Patience
from argosy.service.callers import Caller
from argosy.testing.virtual_loop import VirtualLoop

#: When the clocks of a memory loop begin: microseconds since 1970, and since the computer was started.
NOON = 1_777_636_800_000_000
UPTIME = 1_000_000_000

ProtocolFactory = Callable[[], asyncio.BaseProtocol]


class SocketFacts:
    """What is asked of a transport's socket."""

    def __init__(self, family: int, address: Any) -> None:
        self.family = family
        self._address = address

    def setsockopt(self, *_: object) -> None:
        """There is nothing to set."""

    def getsockname(self) -> Any:
        return self._address


class MemoryTransport(asyncio.Transport):
    """One end of a connection. What is written arrives at the other end in the loop's next turn."""

    def __init__(
        self, loop: MemoryLoop, protocol: asyncio.BaseProtocol, facts: SocketFacts
    ) -> None:
        super().__init__({"socket": facts, "peername": ("127.0.0.1", 40_000)})
        self._loop = loop
        self._protocol = protocol
        self._is_closing = False
        self._is_lost = False
        self._is_paused = False
        self._coming: list[bytes | None] = []
        self.peer: MemoryTransport

    def write(self, data: Any) -> None:
        if not self._is_closing and data:
            self._loop.call_soon(self.peer.arrive, bytes(data))

    def arrive(self, data: bytes | None) -> None:
        """Some bytes, or the end."""
        self._coming.append(data)
        self._deliver()

    def _deliver(self) -> None:
        while self._coming and not self._is_paused and not self._is_lost:
            data = self._coming.pop(0)
            assert isinstance(self._protocol, asyncio.Protocol)
            if data is not None:
                self._protocol.data_received(data)
            else:
                self._protocol.eof_received()
                self.close()

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._loop.call_soon(self.peer.arrive, None)
            self._loop.call_soon(self._lose)

    def abort(self) -> None:
        self.close()

    def _lose(self) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._protocol.connection_lost(None)

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self._loop.call_soon(self._deliver)

    def is_reading(self) -> bool:
        return not self._is_paused

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is kept."""

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def can_write_eof(self) -> bool:
        return False


class MemoryServer:
    """A place where connections are taken."""

    def __init__(self, loop: MemoryLoop, place: Any, facts: SocketFacts) -> None:
        self._loop = loop
        self._place = place
        self.sockets = (facts,)

    def close(self) -> None:
        self._loop.listening.pop(self._place, None)


class MemoryLoop(VirtualLoop):
    """`at_hosts` are factories by host and port, `at_paths` by what a socket's file is."""

    def __init__(self) -> None:
        super().__init__()
        self.listening: dict[Any, tuple[ProtocolFactory, SocketFacts]] = {}
        self._ports = 7_000

    async def create_unix_server(  # type: ignore[override]
        self, factory: ProtocolFactory, *, sock: socket.socket, **_: Any
    ) -> MemoryServer:
        path = sock.getsockname()
        sock.close()
        facts = SocketFacts(socket.AF_UNIX, "")
        place = _file_at(path)
        self.listening[place] = factory, facts
        return MemoryServer(self, place, facts)

    async def create_server(  # type: ignore[override]
        self, factory: ProtocolFactory, host: str, port: int, **_: Any
    ) -> MemoryServer:
        if not port:
            self._ports += 1
            port = self._ports
        if (host, port) in self.listening:
            raise OSError(98, "Address already in use")
        facts = SocketFacts(socket.AF_INET, (host, port))
        self.listening[host, port] = factory, facts
        return MemoryServer(self, (host, port), facts)

    async def create_unix_connection(  # type: ignore[override]
        self, factory: ProtocolFactory, path: str, **_: Any
    ) -> tuple[MemoryTransport, asyncio.BaseProtocol]:
        if not os.path.exists(path):
            raise FileNotFoundError(2, "No such file or directory")
        return self._connected(_file_at(path), factory)

    async def create_connection(  # type: ignore[override]
        self, factory: ProtocolFactory, host: str, port: int, **_: Any
    ) -> tuple[MemoryTransport, asyncio.BaseProtocol]:
        return self._connected((host, port), factory)

    def _connected(
        self, place: Any, factory: ProtocolFactory
    ) -> tuple[MemoryTransport, asyncio.BaseProtocol]:
        if place not in self.listening:
            raise ConnectionRefusedError(111, "Connection refused")
        answering, facts = self.listening[place]
        asker = factory()
        mine = MemoryTransport(self, asker, SocketFacts(facts.family, ""))
        there = answering()
        mine.peer = MemoryTransport(self, there, facts)
        mine.peer.peer = mine
        there.connection_made(mine.peer)
        asker.connection_made(mine)
        return mine, asker

    def add_signal_handler(self, sig: int, *_: Any) -> None:  # type: ignore[override]
        """Nobody sends signals."""

    def remove_signal_handler(self, sig: int) -> bool:
        return False


def _file_at(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


@contextmanager
def memory_loop() -> Iterator[MemoryLoop]:
    """A loop by which all clocks go, as long as the block lasts."""
    loop = MemoryLoop()

    def since(micros: int) -> Callable[[], int]:
        return lambda: (micros + loop.micros) * 1_000

    def seconds_since(micros: int) -> Callable[[], float]:
        return lambda: (micros + loop.micros) / 1e6

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time_ns", since(NOON))
        patch.setattr(time, "time", seconds_since(NOON))
        for name in ("monotonic", "perf_counter"):
            patch.setattr(time, f"{name}_ns", since(UPTIME))
            patch.setattr(time, name, seconds_since(UPTIME))
        # What has taken the clock for a default.
        for kind in (Caller, Patience):
            patch.setattr(kind.__init__, "__defaults__", (time.monotonic,))
        asyncio.set_event_loop(loop)
        try:
            yield loop
        finally:
            asyncio.set_event_loop(None)
            loop.close()
