"""Real servers in directories of their own, of which nothing is left afterwards."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from killable_server import KillableServer
from supervised import processes_with

collect_ignore_glob = [] if sys.platform == "linux" else ["test_*.py"]


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Callable[..., KillableServer]]:
    """Makes a server on `tmp_path/cluster`, or in the directory given; it does not run yet."""
    made = []

    def make(directory: Path | None = None, *options: str, **others: object) -> KillableServer:
        options = options or ("--machines", "4", "--engine", "omega")
        server = KillableServer(directory or tmp_path / "cluster", *options, **others)  # type: ignore[arg-type]
        made.append(server)
        return server

    yield make
    for server in made:
        server.close()
    assert processes_with(str(tmp_path)) == []


@pytest.fixture
def server(make_server: Callable[..., KillableServer]) -> KillableServer:
    """A server that runs."""
    return make_server().start()
