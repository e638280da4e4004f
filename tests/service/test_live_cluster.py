"""What drives a live cluster, apart from any server."""

from __future__ import annotations

import asyncio
import errno
from typing import Any, cast

import pytest

from argosy.service import live
from argosy.service.live import LiveCluster


class FailingReporter:
    """Cannot look at processes at first."""

    has_stillborn = False

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.has_looked = asyncio.Event()

    def hear(self) -> None:
        raise AssertionError("nothing was reported")

    def sweep(self) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        self.has_looked.set()


def test_looks_at_processes_go_on_after_one_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SWEEP", 0.0)
    told: list[str] = []

    async def sweep() -> None:
        reporter = FailingReporter(failures=2)
        cluster = LiveCluster(lambda _: cast(Any, None), reporter, told.append)
        sweeping = asyncio.create_task(cluster._sweep())
        await asyncio.wait_for(reporter.has_looked.wait(), 30)
        sweeping.cancel()

    asyncio.run(sweep())
    assert told == ["cannot look at the tasks' processes: Too many open files"] * 2
