"""Jobs and machines of a public trace in the place of drawn ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from argosy.papers.omega import traces
from argosy.testing.builders import job
from argosy.workloads import clusters, google2011


def test_what_runs_at_the_beginning_is_the_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def jobs(directory: Path, *, span: int) -> list[Any]:
        asked.append((directory, span))
        return [job("early", 2, kind="service"), job("late", 3, submit=1, kind="service")]

    monkeypatch.setattr(google2011, "jobs", jobs)
    monkeypatch.setattr(google2011, "machines", lambda directory: (directory,))
    early, late = traces.jobs(Path("trace"), 60)
    assert asked == [(Path("trace"), 60)]
    assert (early.id, early.tasks, early.job.kind) == ("early", 2, clusters.FILL)
    assert late == job("late", 3, submit=1, kind="service")
    assert traces.machines(Path("trace")) == (Path("trace"),)
