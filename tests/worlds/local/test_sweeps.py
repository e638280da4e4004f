"""What a sweep passes on: what never started, reports, and ends whose reports were lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_runner_parts import Ends, KnownTry

from argosy.worlds.local.reports import TryReport
from argosy.worlds.local.runner import ProcessRunner
from argosy.worlds.local.supervised import TryState
from argosy.worlds.local.turn import TryResult


@pytest.fixture
def ends() -> Ends:
    return []


@pytest.fixture
def runner(tmp_path: Path, ends: Ends) -> Iterator[ProcessRunner]:
    made = ProcessRunner(tmp_path, lambda *end: ends.append(end))
    yield made
    made.close()


def reporting(runner: ProcessRunner, *reports: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    left = list(reports)

    def pending() -> list[Any]:
        found = left.copy()
        left.clear()
        return found

    monkeypatch.setattr(runner.reports, "pending", pending)


def report(name: str, state: TryState, error: int = 0) -> Any:
    return TryReport(name=name, state=state, error=error)


def test_a_sweep_tells_of_what_never_started_first_and_once(
    runner: ProcessRunner, ends: Ends
) -> None:
    known: Any = KnownTry(TryState.LOST)
    runner._tries = {4: known, 5: KnownTry()}  # type: ignore[dict-item]
    runner._stillborn = [(2, TryResult(7, "no")), (3, None)]
    runner.sweep()
    assert [number for number, _ in ends] == [2, 3, 4]
    assert ends[0] == (2, TryResult(7, "no"))
    assert known.told == ["clear"]
    assert (list(runner._tries), runner.has_stillborn, runner.is_idle) == ([5], False, False)
    runner.sweep()
    assert len(ends) == 3


def test_a_sweep_hears_reports_of_tries_that_it_would_not_look_at(
    runner: ProcessRunner, ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner._tries = {8: KnownTry(), 9: KnownTry()}  # type: ignore[dict-item]
    reporting(
        runner,
        report("8", TryState.WITHDRAWN, 2),
        report("x", TryState.ENDED),
        report("7", TryState.WITHDRAWN, 2),
        monkeypatch=monkeypatch,
    )
    runner.sweep()
    [(number, result)] = ends
    assert number == 8
    assert result is not None
    assert "No such file" in (result.reason or "")
    assert list(runner._tries) == [9]


def test_a_sweep_gives_up_what_nobody_claims_in_time(
    runner: ProcessRunner, ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    unclaimed, claimed = KnownTry(), KnownTry(claimed=True)
    runner._tries = {1: unclaimed, 2: claimed}  # type: ignore[dict-item]
    runner._unclaimed = {1: 0.0, 2: 0.0, 3: 0.0}
    monkeypatch.setattr("argosy.worlds.local.runner.time.monotonic", lambda: 10.0**9)
    runner.sweep()
    assert [number for number, _ in ends] == [1]
    assert unclaimed.told == ["withdraw"]
    assert (list(runner._tries), runner._unclaimed) == ([2], {})
    assert not runner.is_idle
    assert (runner.is_running(1), runner.is_running(2)) == (False, True)
