"""What is told while runs go on and of how they were made: shares of many runs, lines that can be read
already, interrupts, and the place a run came from."""

from __future__ import annotations

import io
import platform
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from made_up import summary

from argosy.engines.families.lra import program
from argosy.experiments import contest, sweep
from argosy.experiments.execute import _after_writing, _TimelyJournal, execute
from argosy.experiments.pool import Failure, uninterrupted
from argosy.experiments.sweep import OWN_FLEET, SweepPoint
from argosy.host.records import CrashedRecord
from argosy.model.errors import MissingExtra
from argosy.records.directory import open_run
from argosy.scenarios.loader import scenario_digest
from argosy.testing.builders import job, scenario
from argosy.version import __version__


def points(*engines: str) -> list[SweepPoint]:
    return [SweepPoint(Path("s"), engine, seed) for seed, engine in enumerate(engines)]


class TestManyRuns:
    def shares(
        self, monkeypatch: pytest.MonkeyPatch, engines: str, *steps: tuple[int, Any]
    ) -> tuple[list[float], list[Future[Any]]]:
        """What is told of runs of these engines, one of which ends each time that something is told."""
        monkeypatch.setattr(sweep, "_TICK_SECONDS", 0)
        futures: list[Future[Any]] = [Future() for _ in engines]
        coming, told = iter(steps), list[float]()

        def tell(share: float) -> None:
            told.append(share)
            at, ended = next(coming)
            if isinstance(ended, Exception):
                futures[at].set_exception(ended)
            elif not futures[at].cancelled():
                futures[at].set_result(ended)

        with_end: Callable[[float], None] = tell
        sweep._await(points(*engines), futures, lambda share: share < 1 and with_end(share))
        return told, futures

    def test_the_share_of_runs_that_have_ended_grows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ends = [(2, summary()), (0, summary()), (1, summary()), (3, summary())]
        told, futures = self.shares(monkeypatch, "aabb", *ends)
        assert told == [0.0, 0.25, 0.5, 0.75]
        assert not any(future.cancelled() for future in futures)

    @pytest.mark.parametrize("end", [Failure("engine", "broken"), RuntimeError("lost")])
    def test_a_run_that_fails_ends_those_of_its_engine_alone(
        self, end: object, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told, futures = self.shares(monkeypatch, "abaab", (2, end), (1, summary()), (4, summary()))
        # Two others of the engine are not needed any more, and one of the other engine is next.
        assert told == [0.0, 0.6, 0.8]
        assert [future.cancelled() for future in futures] == [True, False, False, True, False]


def test_lines_of_what_has_happened_can_be_read_when_progress_is_told() -> None:
    stream, told = io.BytesIO(), list[tuple[float, int]]()
    journal = _TimelyJournal(stream)
    tell = _after_writing(journal, lambda share: told.append((share, len(stream.getvalue()))))
    assert tell is not None
    journal.write(CrashedRecord(1, "s"))
    assert stream.getvalue() == b""
    tell(0.25)
    assert told == [(0.25, len(stream.getvalue()))]
    assert stream.getvalue().count(b"\n") == 1
    shares: list[float] = []
    plain = _after_writing(None, shares.append)
    assert plain is not None
    plain(0.5)
    assert shares == [0.5]
    assert _after_writing(journal, None) is None


def test_a_run_says_what_it_was_made_by_and_from(tmp_path: Path) -> None:
    spec = scenario("omega", [job("a")])
    execute(spec, tmp_path / "r", command=["argosy", "run", "x"])
    provenance = open_run(tmp_path / "r").provenance()
    assert (provenance.argosy, provenance.python) == (__version__, platform.python_version())
    assert provenance.platform == platform.platform()
    assert provenance.scenario_digest == scenario_digest(spec)
    assert provenance.command == ["argosy", "run", "x"]


class TestInterrupts:
    @pytest.fixture
    def ignored(self) -> Iterator[None]:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        yield
        signal.signal(signal.SIGINT, before)

    def test_an_interrupt_that_nobody_wants_stays_ignored(self, ignored: None) -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())

    def test_without_an_interrupt_everything_is_as_before(self) -> None:
        before = signal.getsignal(signal.SIGINT)
        with uninterrupted():
            assert signal.getsignal(signal.SIGINT) is not before
            assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, set())
        assert signal.getsignal(signal.SIGINT) is before
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())

    def test_a_thread_leaves_interrupts_to_the_main_one(self) -> None:
        before, found = signal.getsignal(signal.SIGINT), list[object]()

        def start() -> None:
            with uninterrupted():
                found.append(signal.getsignal(signal.SIGINT))
                found.append(signal.pthread_sigmask(signal.SIG_BLOCK, set()))

        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
        assert found == [before, set()]


def test_a_contest_asks_for_what_an_engine_needs_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(program, "has_solver", lambda: False)
    spec = scenario("omega", [job("a")])
    assert list(contest.demands_ignored(spec, [OWN_FLEET, "sparrow"])) == [OWN_FLEET, "sparrow"]
    with pytest.raises(MissingExtra) as caught:
        contest.demands_ignored(spec, [OWN_FLEET, "sparrow", "ilp-all"])
    assert caught.value.problem == "ilp-all needs the extra 'ilp', which is not installed"
    assert caught.value.hint == (
        "pip install 'argosy[ilp]', or choose an engine that solves no program"
    )
