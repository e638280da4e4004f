"""A real server with real tasks, for tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from argosy.client import Client
from argosy.model.errors import ArgosyError

#: Seconds after which a test is taken to hang.
PATIENCE = 60
URL = re.compile(r"https?://[^,\s]+")


class LiveServer:
    """`argosy up` in a directory; it can be stopped and started again."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.directory = directory
        self.url = ""
        self._process: subprocess.Popen[str] | None = None
        self._arguments: Sequence[str] = arguments

    def start(self) -> Self:
        command = [sys.executable, "-m", "argosy.cli", "up", "--dir", str(self.directory)]
        self._process = subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0", *self._arguments],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        assert line.startswith("argosy: up:"), line
        found = URL.search(line)
        assert found is not None, line
        self.url = found[0]
        # What a cluster is made with is remembered.
        self._arguments = ()
        return self

    def stop(self, *, stop_tasks: bool = False) -> None:
        if self._process is None:
            return
        try:
            with self.client() as client:
                client.shutdown(stop_tasks=stop_tasks)
        except ArgosyError:
            self._process.terminate()
        self._process.communicate(timeout=PATIENCE)
        self._process = None

    def client(self) -> Client:
        return Client(directory=self.directory)

    @property
    def environment(self) -> dict[str, str]:
        """For commands, which then talk to this server."""
        rest = {name: text for name, text in os.environ.items() if not name.startswith("ARGOSY_")}
        return {**rest, "ARGOSY_DIR": str(self.directory)}


@contextmanager
def live_server(directory: Path, *arguments: str) -> Iterator[LiveServer]:
    server = LiveServer(directory, *arguments).start()
    try:
        yield server
    finally:
        server.stop(stop_tasks=True)
