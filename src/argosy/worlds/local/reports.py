"""Hearing that tries have changed.

A report says only which try and what state it reached; the files say the rest. Reports may be
lost, so a server also sweeps over its tries from time to time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from pathlib import Path
from typing import Final

import msgspec

from argosy.worlds.local.records import parse_lines
from argosy.worlds.local.spec import SupervisorError
from argosy.worlds.local.supervised import TryState

#: More than a report ever takes.
LARGEST: Final = 1 << 16
STATES: Final = {
    "started": TryState.RUNNING,
    "ended": TryState.ENDED,
    "withdrawn": TryState.WITHDRAWN,
}


class TryReport(msgspec.Struct, frozen=True, gc=False):
    #: The `name` of its specification.
    name: str
    state: TryState
    #: If it was withdrawn, because its files could not be made: the system's error number.
    error: int = 0


class ReportSocket:
    """Where supervisors send reports. Keep it in a private directory: who can write to it can
    lie."""

    def __init__(self, path: str | Path) -> None:
        self.path = os.path.abspath(path)
        #: Datagrams that were not reports.
        self.malformed = 0
        kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        self._socket = socket.socket(socket.AF_UNIX, kind)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        # Named by its directory's descriptor: an address has room for 107 bytes only.
        folder, leaf = os.path.split(self.path)
        directory = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._socket.bind(f"/proc/self/fd/{directory}/{leaf}")
        except BaseException:
            self._socket.close()
            raise
        finally:
            os.close(directory)
        os.chmod(self.path, 0o600)

    def fileno(self) -> int:
        return self._socket.fileno()

    def pending(self) -> list[TryReport]:
        """What has come in; does not wait."""
        reports: list[TryReport] = []
        while True:
            try:
                data = self._socket.recv(LARGEST)
            except BlockingIOError:
                return reports
            reports += self._parsed(data)

    async def receive(self) -> list[TryReport]:
        """Waits for a report, and returns it with all that have come in."""
        loop = asyncio.get_running_loop()
        while True:
            data = await loop.sock_recv(self._socket, LARGEST)
            if reports := self._parsed(data) + self.pending():
                return reports

    def close(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self._socket.close()

    def _parsed(self, data: bytes) -> list[TryReport]:
        try:
            values = parse_lines(data, self.path)
            error = int(values.get("errno", "0"))
            return [TryReport(values["try"], STATES[values["state"]], error)]
        except (SupervisorError, KeyError, ValueError):
            self.malformed += 1
            return []
