"""Engines x seeds without running them: what each point is, whose failure counts, and how it is told."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from made_up import summary

from argosy.engines.registry import ENGINES
from argosy.experiments import contest, execute, on_recorded, sweep
from argosy.experiments.pool import BUG, Failure, raised_again, result_of, unwrap
from argosy.experiments.sweep import OWN_FLEET, SweepPoint, TookTooLong
from argosy.host.records import CrashedRecord
from argosy.model.errors import ArgosyError, CommandError, ScenarioError, UnknownName
from argosy.model.scenario import Output
from argosy.records.directory import RUNNING, RunMark, open_run
from argosy.scenarios.ignored_demands import IgnoredDemand
from argosy.testing.builders import SECOND, job, scenario

BROKEN = Failure("engine", "broken")


def point(engine: str, seed: int = 1, **fields: Any) -> SweepPoint:
    return SweepPoint(fields.pop("source", Path("s.toml")), engine, seed, **fields)


class TestPoints:
    @pytest.fixture
    def loaded(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        given: list[Any] = []

        def load(path: Path, **options: Any) -> Any:
            given.append((path, options))
            return scenario("omega", [], seed=options["seed"])

        def run(spec: Any, directory: Any, *, progress: Any, also: Any) -> Any:
            if progress is not None:
                progress(0.25)
            given.append((spec.seed, spec.engine_names(), directory, also))
            return summary(seed=spec.seed)

        monkeypatch.setattr(sweep, "load", load)
        monkeypatch.setattr(sweep, "execute", run)
        return given

    def test_a_file_is_loaded_for_each_seed(self, loaded: list[Any]) -> None:
        told: list[float] = []
        changes: Any = ("change",)
        also = (("own", ENGINES["omega"]),)
        made = point("sparrow", 7, published=True, also=also, changes=changes)
        found = sweep.run_all([made, point(OWN_FLEET, 8)], 1, told.append)
        assert [each.seed for each in found if not isinstance(each, Failure)] == [7, 8]
        known = {"own": ENGINES["omega"]}
        assert loaded == [
            (Path("s.toml"), {"seed": 7, "published": True, "also": known, "changes": changes}),
            (7, ["sparrow"], None, known),
            (Path("s.toml"), {"seed": 8, "published": False, "also": {}, "changes": ()}),
            (8, ["omega"], None, {}),
        ]
        assert told == [0.125, 0.5, 0.625, 1.0]

    def test_a_scenario_only_gets_the_seed(self, loaded: list[Any]) -> None:
        source = scenario("omega", [], seed=3)
        sweep.run_all([point(OWN_FLEET, 9, source=source)], 4, lambda share: None)
        assert loaded == [(9, ["omega"], None, {})]

    def test_the_first_failure_of_an_engine_is_that_of_all_its_runs(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ran: list[str] = []

        def attempt(made: SweepPoint, tell: Any = None) -> Any:
            ran.append(str(made))
            if made.engine == "a" and made.seed == 2:
                return BROKEN
            return summary(seed=made.seed)

        monkeypatch.setattr(sweep, "_attempt", attempt)
        points = [point(engine, seed) for engine in "ab" for seed in (1, 2, 3)]
        found = sweep.run_all(points, 1, lambda share: None)
        assert [each if isinstance(each, Failure) else each.seed for each in found] == [
            *(1, BROKEN, BROKEN),
            *(1, 2, 3),
        ]
        assert ran == ["a, seed 1", "a, seed 2", "b, seed 1", "b, seed 2", "b, seed 3"]

    def test_a_run_that_takes_too_long_is_given_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = [0.0]
        monkeypatch.setattr(sweep.time, "monotonic", lambda: clock[0])
        told: list[float] = []
        listen = sweep._limited(2.0, told.append)
        assert listen is not None
        listen(0.1)
        clock[0] = 2.0
        listen(0.2)
        clock[0] = 2.001
        with pytest.raises(
            TookTooLong, match="30% of the run was done after the time limit of 2 s"
        ):
            listen(0.3)
        assert told == [0.1, 0.2, 0.3]
        assert sweep._limited(None, None) is None
        assert sweep._limited(None, told.append) == told.append

    def test_an_error_becomes_plain_values(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(error: Exception) -> Failure:
            def run(*_: Any) -> Any:
                raise error

            monkeypatch.setattr(sweep, "_run", run)
            found = sweep._attempt(point("a"))
            assert isinstance(found, Failure)
            assert "Traceback" in found.trace
            return found

        assert fail(ScenarioError("wrong", hint="look"))[:2] == ("scenario", "wrong; look")
        assert fail(KeyError("x"))[:2] == (BUG, "KeyError: 'x'")


class TestFutures:
    def future(self, result: Any = None, *, error: Exception | None = None) -> Future[Any]:
        made: Future[Any] = Future()
        if error is not None:
            made.set_exception(error)
        elif result is None:
            made.cancel()
        else:
            made.set_result(result)
        return made

    def test_whichever_came_first_the_failure_of_the_first_point_counts(self) -> None:
        later = Failure("engine", "later")
        points = [point("a", 1), point("a", 2), point("a", 3), point("b", 1)]
        results = [summary(), BROKEN, later, summary(seed=4)]
        futures = [self.future(each) for each in results]
        found = sweep._settled(points, futures)
        assert found[:3] == [BROKEN] * 3
        assert found[3] == results[3]
        cancelled = [self.future(), self.future(BROKEN), self.future(), self.future(results[3])]
        assert sweep._settled(points, cancelled)[:3] == [BROKEN] * 3

    def test_a_failure_cancels_what_is_left_of_its_engine(self) -> None:
        waiting: Future[Any] = Future()
        others: Future[Any] = Future()
        others.set_result(summary())
        told: list[float] = []
        points = [point("a", 1), point("a", 2), point("b", 1)]
        sweep._await(points, [self.future(BROKEN), waiting, others], told.append)
        assert waiting.cancelled()
        assert told[-1] == 1

    def test_a_process_that_was_killed_is_a_mistake_of_the_command(self) -> None:
        killed = self.future(error=BrokenProcessPool())
        with pytest.raises(CommandError, match="a, seed 1: the process was killed"):
            result_of(point("a"), killed)
        assert sweep._has_failed(killed)
        assert sweep._has_failed(self.future(BROKEN))
        assert not sweep._has_failed(self.future(summary()))
        assert not sweep._has_failed(self.future())

    def test_an_error_is_raised_again_as_what_it_was(self) -> None:
        again = raised_again("p", Failure("scenario", "wrong", "the trace"))
        assert type(again) is ScenarioError
        assert (str(again), again.code) == ("p: wrong", "scenario")
        assert again.__notes__ == ["In the process that ran it:\nthe trace"]
        bug = raised_again("p", Failure(BUG, "KeyError: 'x'"))
        assert type(bug) is RuntimeError
        assert str(bug) == "p: KeyError: 'x'"
        strange = raised_again("p", Failure("of the future", "?"))
        assert type(strange) is ArgosyError
        assert strange.code == "of the future"
        with pytest.raises(UnknownName, match="p: unknown"):
            unwrap("p", self.future(Failure(UnknownName.code, "unknown")))
        assert unwrap("p", self.future("fine")) == "fine"


class TestContests:
    IGNORES: dict[str, tuple[IgnoredDemand, ...]] = {"a": (), "b": (), "c": ()}  # noqa: RUF012

    def hold(self, monkeypatch: pytest.MonkeyPatch, ends: dict[str, Any], **options: Any) -> Any:
        self.points: list[SweepPoint] = []

        def run_all(points: Any, processes: int, tell: Any) -> Any:
            self.points, self.processes = points, processes
            return [
                ends.get(each.engine) or summary(each.engine, seed=each.seed) for each in points
            ]

        monkeypatch.setattr(contest, "run_all", run_all)
        return contest.hold_contest(
            Path("s"), self.IGNORES, [4, 5], tell=lambda share: None, **options
        )

    def test_runs_are_by_engine_and_in_the_order_of_seeds(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        changes: Any = ("x",)
        held = self.hold(
            monkeypatch,
            {"b": BROKEN},
            published=True,
            also={"own": ENGINES["omega"]},
            processes=3,
            time_limit=2.5,
            changes=changes,
        )
        assert {name: [each.seed for each in ran] for name, ran in held.runs.items()} == {
            "a": [4, 5],
            "c": [4, 5],
        }
        assert held.failures == {"b": "with seed 4: broken"}
        assert (held.ignores, held.has_bug, self.processes) == (self.IGNORES, False, 3)
        assert [(each.engine, each.seed) for each in self.points] == [
            (engine, seed) for engine in "abc" for seed in (4, 5)
        ]
        also = (("own", ENGINES["omega"]),)
        assert self.points[0] == SweepPoint(Path("s"), "a", 4, True, also, changes, 2.5)

    def test_an_engine_that_fails_with_a_later_seed_has_no_runs(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def run_all(points: Any, processes: int, tell: Any) -> Any:
            later = Failure("scenario", "later")
            return [
                later if each[1:3] == ("a", 5) else summary(each.engine, seed=each.seed)
                for each in points
            ]

        monkeypatch.setattr(contest, "run_all", run_all)
        held = contest.hold_contest(Path("s"), {"a": (), "b": ()}, [4, 5], tell=lambda share: None)
        assert list(held.runs) == ["b"]
        assert held.failures == {"a": "with seed 5: later"}

    def test_if_all_fail_the_first_error_is_raised(self, monkeypatch: pytest.MonkeyPatch) -> None:
        other = Failure("scenario", "other")
        with pytest.raises(ScenarioError, match="a, seed 4: first"):
            self.hold(monkeypatch, {"a": Failure("scenario", "first"), "b": other, "c": other})
        held = self.hold(monkeypatch, {"a": Failure(BUG, "KeyError")})
        assert held.has_bug

    def test_demands_are_those_of_the_fleet_that_is_asked_about(self) -> None:
        spec = scenario("omega", [job("a", 2, gang=True)])
        found = contest.demands_ignored(spec, ["omega", "sparrow", OWN_FLEET])
        assert {name: [each.what for each in told] for name, told in found.items()} == {
            "omega": [],
            "sparrow": ["gangs"],
            OWN_FLEET: [],
        }
        (told,) = on_recorded.recorded_ignores(scenario("sparrow", [job("a", 2, gang=True)]))
        assert (told.engine, told.what) == ("sparrow", "gangs")
        assert on_recorded.recorded_ignores(scenario("nobody", [])) == ()
        tried = on_recorded.try_engine(spec, "sparrow")
        assert [each.what for each in tried.ignores] == ["gangs"]
        assert tried.summary.fleet.startswith("sparrow")


class TestExecution:
    def test_what_is_kept_says_how_it_was_made(self, tmp_path: Path) -> None:
        spec = scenario(
            "omega", [job("a", 2, seconds=3), job("b", 1, seconds=None)], horizon=9 * SECOND
        )
        shares: list[float] = []
        made = execute.execute(
            spec, tmp_path / "r", command=["argosy", "run"], progress=shares.append
        )
        run = open_run(tmp_path / "r")
        assert run.summary() == made
        provenance = run.provenance()
        assert provenance.command == ["argosy", "run"]
        assert provenance.numpy == np.__version__
        assert 0 <= provenance.seconds < 60
        assert provenance.started.endswith("+00:00")
        assert shares
        tasks = run.kept_tasks()
        assert tasks["finished"].tolist().count(-1) == 1
        assert (len(tasks["task"]), made.counts.tasks_running) == (3, 1)
        assert run.kept_jobs()["finished"].tolist()[1] == -1
        memory = execute.execute_in_memory(spec)
        assert memory.summary() == made
        assert memory.scenario() == spec
        for name, column in memory.kept_tasks().items():
            assert column.tolist() == tasks[name].tolist()
        assert memory.read_journal().data == run.read_journal().data

    def test_a_run_without_a_journal_has_no_digest(self, tmp_path: Path) -> None:
        spec = scenario("omega", [job("a")], output=Output(log="none"))
        shares: list[float] = []
        made = execute.execute(spec, tmp_path / "r", progress=shares.append)
        assert (made.log_digest, shares) == ("", [1.0])
        assert "journal" not in " ".join(path.name for path in (tmp_path / "r").iterdir())
        assert execute.execute_in_memory(spec).summary() == made
        spoken = execute.execute(scenario("omega", [job("a")]), None)
        assert len(spoken.log_digest) == 32

    def test_lines_are_written_once_a_second(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = [10.0]
        monkeypatch.setattr(execute.time, "monotonic", lambda: clock[0])
        journal = execute._TimelyJournal(None)
        flushes: list[float] = []
        monkeypatch.setattr(journal, "flush", lambda: flushes.append(clock[0]))
        for now in (10.0, 10.5, 10.999, 11.0, 11.5, 12.5):
            clock[0] = now
            journal.after_event()
        assert flushes == [10.0, 11.0, 12.5]


class TestPools:
    def run(self, monkeypatch: pytest.MonkeyPatch, processes: int, points: int) -> Any:
        asked: list[int] = []

        class Pool:
            def submit(self, call: Any, made: SweepPoint) -> Future[Any]:
                future: Future[Any] = Future()
                future.set_result(summary(seed=made.seed))
                return future

        @contextmanager
        def pool(processes: int) -> Iterator[Pool]:
            asked.append(processes)
            yield Pool()

        monkeypatch.setattr(sweep, "worker_pool", pool)
        monkeypatch.setattr(sweep, "_one_by_one", lambda points, tell: asked.append(0))
        told: list[float] = []
        found = sweep.run_all([point("a", n) for n in range(points)], processes, told.append)
        return asked, found, told

    @pytest.mark.parametrize(
        ("processes", "points", "asked"), [(4, 3, 3), (2, 3, 2), (1, 3, 0), (4, 1, 0)]
    )
    def test_there_are_no_more_processes_than_runs(
        self, monkeypatch: pytest.MonkeyPatch, processes: int, points: int, asked: int
    ) -> None:
        used, found, told = self.run(monkeypatch, processes, points)
        assert used == [asked]
        if asked:
            assert [each.seed for each in found] == list(range(points))
            assert told == [1.0]


class TestWholeRuns:
    def test_a_run_that_fails_leaves_nothing(self, tmp_path: Path) -> None:
        def stop(share: float) -> None:
            raise KeyboardInterrupt

        spec = scenario("omega", [job("a")])
        with pytest.raises(KeyboardInterrupt):
            execute.execute(spec, tmp_path / "r", progress=stop)
        assert not (tmp_path / "r").exists()

    def test_a_run_in_progress_says_who_writes_it(self, tmp_path: Path) -> None:
        marks: list[RunMark] = []

        def look(share: float) -> None:
            marks.append(msgspec.json.decode((tmp_path / "r" / RUNNING).read_bytes(), type=RunMark))

        execute.execute(scenario("omega", [job("a")]), tmp_path / "r", command=["x"], progress=look)
        [mark] = marks
        assert (mark.command, mark.process) == (["x"], os.getpid())
        assert mark.started == open_run(tmp_path / "r").provenance().started

    def test_a_scenario_says_how_much_its_journal_tells(self) -> None:
        def lines(log: str) -> int:
            spec = scenario("murmuration", [job("a", 2)], output=Output(log=log))  # type: ignore[arg-type]
            return len(execute.execute_in_memory(spec).read_journal().data.splitlines())

        assert lines("decisions") < lines("replayable") < lines("everything")

    def test_lines_are_written_after_an_event_once_a_second(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        times = iter((0.0, 0.99, 1.0))
        monkeypatch.setattr(execute, "time", SimpleNamespace(monotonic=lambda: next(times)))
        stream = io.BytesIO()
        journal = execute._TimelyJournal(stream)
        assert journal.is_timely
        written = []
        for _ in range(3):
            journal.write(CrashedRecord(1, "s"))
            journal.after_event()
            written.append(stream.getvalue().count(b"\n"))
        assert written == [1, 1, 3]

    def test_progress_and_classes_reach_an_engine_on_recorded_jobs(self) -> None:
        told: list[float] = []
        own = {"own": ENGINES["omega"]}
        tried = on_recorded.try_engine(
            scenario("sparrow", [job("a")]), "own", progress=told.append, also=own
        )
        assert told == [1.0]
        assert tried.summary.fleet.startswith("own")

    def test_jobs_kept_in_memory_are_copies(self) -> None:
        memory = execute.execute_in_memory(scenario("omega", [job("a")]))
        assert all(column.flags.owndata for column in memory.kept_jobs().values())
