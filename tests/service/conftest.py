"""Real servers, in this process and in others, of which nothing is left afterwards."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from killable_server import KillableServer
from live_bench import LiveBench
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


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBench]:
    bench = LiveBench(tmp_path_factory.mktemp("live"))
    yield bench
    bench.close()


@pytest.fixture
def make_live(tmp_path: Path) -> Iterator[Callable[..., LiveBench]]:
    """Makes servers, by default in the test's directory."""
    made = []

    def make(*arguments: object, directory: Path = tmp_path, **options: object) -> LiveBench:
        made.append(LiveBench(directory, *arguments, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for bench in made:
        bench.close()
