"""Blocking sockets over a memory loop: whoever waits for one lets the loop run meanwhile."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from memory_loop import MemoryLoop

from argosy.client import connections


class Received(asyncio.Protocol):
    def __init__(self) -> None:
        self.data = bytearray()
        self.is_over = False
        self.news = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.news.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_over = True
        self.news.set()


class EnoughHeard(Exception):
    """The time is up that a caller wants to listen for."""


class Weather:
    """How badly connections go: the next so many are refused, and the next so many break off after some
    bytes of the answer, or say nothing at all."""

    def __init__(self) -> None:
        self.refused: list[OSError] = []
        self.cut_after: list[int] = []
        self.said: list[str] = []
        #: In microseconds.
        self.deadline = 1 << 60


class MemorySocket:
    def __init__(self, loop: MemoryLoop, weather: Weather) -> None:
        self._loop = loop
        self._weather = weather
        self._timeout: float | None = None
        self._left: int | None = None
        self._transport: Any = None
        self._received: Received

    def settimeout(self, seconds: float | None) -> None:
        self._timeout = seconds

    def setsockopt(self, *_: object) -> None:
        """There is nothing to set."""

    def connect(self, place: Any) -> None:
        if self._weather.refused:
            raise self._weather.refused.pop(0)
        if self._weather.cut_after:
            self._left = self._weather.cut_after.pop(0)
        if isinstance(place, str):
            made = self._loop.create_unix_connection(Received, place)
        else:
            made = self._loop.create_connection(Received, *place)
        self._transport, received = self._loop.run_until_complete(made)
        assert isinstance(received, Received)
        self._received = received

    def sendall(self, data: bytes) -> None:
        if self._left is not None and self._left < 0:
            raise BrokenPipeError(32, "Broken pipe")
        self._transport.write(data)

    def recv(self, most: int) -> bytes:
        async def arrived() -> None:
            while not (self._received.data or self._received.is_over):
                self._received.news.clear()
                await asyncio.wait_for(self._received.news.wait(), seconds)

        left = (self._weather.deadline - self._loop.micros) / 1e6
        seconds = left if self._timeout is None else min(left, self._timeout)
        if left <= 0:
            raise EnoughHeard
        if self._left == 0:
            raise ConnectionResetError(104, "Connection reset by peer")
        try:
            self._loop.run_until_complete(arrived())
        except TimeoutError:
            if seconds == left:
                raise EnoughHeard from None
            raise TimeoutError("timed out") from None
        if self._left is not None:
            most = min(most, self._left)
        taken = bytes(self._received.data[:most])
        del self._received.data[:most]
        if self._left is not None:
            self._left -= len(taken)
        return taken

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


@contextmanager
def memory_sockets(loop: MemoryLoop) -> Iterator[Weather]:
    """The client's connections lead into the loop as long as the block lasts; sleeping lets it run."""
    weather = Weather()

    def create_connection(place: Any, timeout: float | None) -> MemorySocket:
        made = MemorySocket(loop, weather)
        made.settimeout(timeout)
        made.connect(place)
        return made

    def sleep(seconds: float) -> None:
        weather.said.append(f"sleeps {seconds:g}")
        loop.run_until_complete(asyncio.sleep(seconds))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            connections,
            "socket",
            SimpleNamespace(
                socket=lambda *_: MemorySocket(loop, weather),
                create_connection=create_connection,
                AF_UNIX=socket.AF_UNIX,
                SOCK_STREAM=socket.SOCK_STREAM,
                IPPROTO_TCP=socket.IPPROTO_TCP,
                TCP_NODELAY=socket.TCP_NODELAY,
            ),
        )
        patch.setattr(time, "sleep", sleep)
        yield weather
