"""A server that the tests of a module share, and servers of a test's own."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from live_server import LiveBench

collect_ignore_glob = [] if sys.platform == "linux" else ["test_*.py"]


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
