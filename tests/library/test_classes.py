"""Engines given as classes: named so that they are found again, and mistaken for no other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from outside import EXAMPLE

import argosy
from argosy import engine
from argosy.engines.omega import Omega
from argosy.engines.registry import find_engine
from argosy.experiments.execute import execute
from argosy.testing.builders import job, scenario

QUICKSTART = Path(__file__).parents[2] / "scenarios" / "quickstart.toml"
JOBS = [job("a", 3, seconds=10), job("b", 1, seconds=5, submit=1)]


class Idle:
    """Gives every task up."""

    name = "idle"
    summary = "Gives every task up."
    settings_type = engine.Settings
    capabilities = engine.Capabilities()

    def __init__(self, settings: engine.Settings, context: engine.Context) -> None: ...

    def handle(self, event: engine.Event, view: engine.View, now: int) -> list[engine.Effect]:
        match event:
            case engine.JobSubmitted(_, _, tasks):
                return [engine.Abandon(tasks, engine.Explanation(remedy="another engine"))]
        return []


class IdleOmega(Idle):
    """Has the name of a built-in engine."""

    name = "omega"


class Derived(Omega):
    """Inherits everything, also the name."""


def local() -> type[engine.Engine]:
    class Local(Idle):
        name = "local"

    return Local


class TestReplay:
    @pytest.mark.parametrize("given", [Idle, IdleOmega, Derived, local()])
    def test_a_run_remembers_its_classes(self, given: Any, tmp_path: Path) -> None:
        spec = scenario("sparrow", JOBS)
        assert argosy.run(spec, given).replay().lines > 5
        assert argosy.replay(argosy.run(spec, given, keep=tmp_path / "run")).lines > 5

    @pytest.mark.parametrize("given", [Idle, IdleOmega, Derived])
    def test_a_saved_run_finds_a_class_that_can_be_imported(
        self, given: Any, tmp_path: Path
    ) -> None:
        argosy.run(scenario("sparrow", JOBS), given, keep=tmp_path / "run")
        assert argosy.replay(tmp_path / "run").lines > 5

    def test_a_class_that_cannot_be_imported_is_passed_again(self, tmp_path: Path) -> None:
        argosy.run(scenario("omega", JOBS), local(), keep=tmp_path / "run")
        with pytest.raises(argosy.EngineNotFound, match=r"with classes=\[\.\.\.\]"):
            argosy.replay(tmp_path / "run")
        assert argosy.replay(tmp_path / "run", classes=[local()]).lines > 5

    def test_a_class_may_have_moved_to_another_module(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        here = Idle.__module__
        monkeypatch.setattr(Idle, "__module__", "long_gone")
        argosy.run(scenario("omega", JOBS), Idle, keep=tmp_path / "run")
        monkeypatch.setattr(Idle, "__module__", here)
        with pytest.raises(argosy.EngineNotFound, match="no module 'long_gone'"):
            argosy.replay(tmp_path / "run")
        assert argosy.replay(tmp_path / "run", classes=[Idle]).lines > 5

    def test_a_class_stands_for_an_installed_engine_of_its_name(self, tmp_path: Path) -> None:
        spec = scenario("idle", JOBS)
        execute(spec, tmp_path / "run", command=["run"], also={"idle": Idle})
        with pytest.raises(argosy.UnknownEngine):
            argosy.replay(tmp_path / "run")
        assert argosy.replay(tmp_path / "run", classes=[Idle]).lines > 5

    def test_a_class_does_not_stand_for_a_built_in_engine_of_its_name(self) -> None:
        result = argosy.run(scenario("omega", JOBS))
        with pytest.raises(argosy.ArgosyError, match="an engine of the run: omega"):
            argosy.replay(result, classes=[IdleOmega])

    def test_a_class_that_is_not_in_the_run_is_refused(self) -> None:
        result = argosy.run(scenario("omega", JOBS))
        with pytest.raises(argosy.CommandError, match="class Idle; expected an engine of the run"):
            argosy.replay(result, classes=[Idle])

    @pytest.mark.usefixtures("fresh_modules")
    def test_the_command_replays_what_the_library_saved(self, tmp_path: Path) -> None:
        script = (
            "import argosy, roomiest; "
            f"argosy.run({str(QUICKSTART)!r}, roomiest.Roomiest, keep='run')"
        )
        (tmp_path / "roomiest.py").write_text((EXAMPLE / "roomiest.py").read_text())
        subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
        done = subprocess.run(
            [sys.executable, "-m", "argosy.cli", "replay", "run", "-o", "json"],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )
        assert json.loads(done.stdout)["same"] is True


class TestNames:
    @pytest.mark.usefixtures("fresh_modules")
    def test_a_class_and_its_reference_give_the_same_journal(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.syspath_prepend(str(EXAMPLE))
        by_class = argosy.run(QUICKSTART, find_engine("roomiest:Roomiest")).summary
        assert by_class == argosy.run(QUICKSTART, "roomiest:Roomiest").summary

    def test_a_built_in_class_has_its_own_name(self) -> None:
        spec = scenario("sparrow", JOBS)
        assert argosy.run(spec, Omega).summary == argosy.run(spec, "omega").summary

    def test_a_class_is_compared_with_the_engine_whose_name_it_has(self) -> None:
        found = argosy.compare(scenario("sparrow", JOBS), ["omega", IdleOmega, Derived], 1)
        omega, idle, derived = (runs[0].counts for runs in found.runs.values())
        assert list(found.runs) == ["omega", f"{__name__}:IdleOmega", f"{__name__}:Derived"]
        assert omega == derived
        assert (omega.tasks_finished, idle.tasks_finished) == (4, 0)

    def test_two_classes_with_one_name_are_refused(self) -> None:
        with pytest.raises(argosy.CommandError, match="two classes called"):
            argosy.compare(scenario("omega", JOBS), [local(), local()], 1)

    def test_one_engine_need_not_be_in_a_list(self) -> None:
        spec = scenario("omega", JOBS)
        assert list(argosy.compare(spec, Idle, 1).runs) == [f"{__name__}:Idle"]
        assert list(argosy.compare(spec, "omega", 1).runs) == ["omega"]

    def test_a_class_inside_a_function_cannot_go_to_other_processes(self) -> None:
        with pytest.raises(argosy.CommandError, match="at the top of a module"):
            argosy.compare(scenario("omega", JOBS), [local()], 2, processes=2)

    def test_a_class_can_run_in_its_published_form(self) -> None:
        sparrow: Any = find_engine("sparrow")

        class Mine(sparrow):  # type: ignore[misc]
            pass

        loaded = argosy.load(QUICKSTART, published=True)
        found, known = argosy.run(loaded, Mine).summary, argosy.run(loaded, "sparrow").summary
        assert found.counts == known.counts


class TestReplayWith:
    @pytest.fixture
    def recorded(self, tmp_path: Path) -> argosy.Result:
        return argosy.run(scenario("omega", JOBS, replicas=1), keep=tmp_path / "run")

    def test_other_engines_run_on_the_recorded_jobs(self, recorded: argosy.Result) -> None:
        shares: list[float] = []
        found = argosy.replay_with(recorded, ["omega", Idle], progress=shares.append)
        assert list(found.runs) == ["recorded", "omega", f"{__name__}:Idle"]
        assert found.runs["omega"][0].jct == found.runs["recorded"][0].jct
        assert found.runs[f"{__name__}:Idle"][0].counts.tasks_finished == 0
        assert found.best() in ("recorded", "omega")
        assert shares == sorted(shares)
        assert set(found.columns()["engine"]) == set(found.runs)

    def test_a_directory_or_a_journal_file_will_do(self, recorded: argosy.Result) -> None:
        assert recorded.directory is not None
        for path in (recorded.directory, recorded.directory / "journal.jsonl"):
            found = argosy.replay_with(path, "murmuration")
            assert found.runs["murmuration"][0].counts.tasks_finished == 4

    def test_what_the_recording_lacks_is_said(self) -> None:
        early = argosy.run(scenario("omega", JOBS, replicas=1, horizon=3_000_000))
        assert argosy.replay_with(early, "omega").left_out == (
            "4 tasks had not ended: their estimates are taken for their running times",
        )

    def test_a_mistake_is_found_before_anything_runs(self, recorded: argosy.Result) -> None:
        with pytest.raises(argosy.UnknownEngine, match="did you mean 'omega'"):
            argosy.replay_with(recorded, ["murmuration", "omgea"])


def test_a_journal_file_is_opened_like_a_run(tmp_path: Path) -> None:
    kept = argosy.run(scenario("omega", JOBS, replicas=1), keep=tmp_path / "run")
    alone = argosy.open_run(tmp_path / "run" / "journal.jsonl")
    assert alone.why("a/1") == kept.why("a/1")
    assert alone.story("a/1") == kept.story("a/1")
    assert alone.replay() == kept.replay()
    assert alone.summary.counts == kept.summary.counts
    for name, column in kept.tasks_columns().items():
        assert alone.tasks_columns()[name].tolist() == column.tolist(), name
    for name, column in kept.jobs_columns().items():
        assert alone.jobs_columns()[name].tolist() == column.tolist(), name


class TestArguments:
    """A mistake of the caller is one `ArgosyError`, never a `TypeError` from inside."""

    @pytest.mark.parametrize(
        ("call", "says"),
        [
            (lambda a: a.run(5), "scenario 5; expected a path, or a Scenario"),
            (lambda a: a.load(5), "scenario 5; expected a path"),
            (lambda a: a.load(QUICKSTART, seed="1"), "seed '1'; expected a whole number from 0"),
            (lambda a: a.run(QUICKSTART, seed="1"), "seed '1'; expected a whole number from 0"),
            (lambda a: a.run(QUICKSTART, seed=True), "seed True; expected a whole number from 0"),
            (lambda a: a.run(QUICKSTART, 5), "engine 5; expected a name, "),
            (lambda a: a.run(QUICKSTART, keep=5), "keep 5; expected a path"),
            (lambda a: a.run(QUICKSTART, progress=5), "progress 5; expected a function"),
            (lambda a: a.open_run(5), "run 5; expected a path"),
            (lambda a: a.why(5, "a/0"), "run 5; expected a Result, or the path of a run"),
            (lambda a: a.replay(None), "run None; expected a Result, or the path of a run"),
            (lambda a: a.compare(5, ["omega"]), "scenario 5; expected a path, or a Scenario"),
            (lambda a: a.compare(QUICKSTART, 5), "engines 5; expected names or classes"),
            (lambda a: a.compare(QUICKSTART, [5]), "engine 5; expected a name, "),
            (lambda a: a.compare(QUICKSTART, "omega", "12"), "seeds '12'; expected how many, or"),
            (lambda a: a.compare(QUICKSTART, "omega", None), "seeds None; expected how many, or"),
            (lambda a: a.compare(QUICKSTART, "omega", [1.5]), "seed 1.5; expected a whole number"),
            (lambda a: a.compare(QUICKSTART, "omega", [[]]), r"seed \[\]; expected a whole number"),
            (lambda a: a.compare(QUICKSTART, "omega", 10**9), "expected at most 10,000"),
            (
                lambda a: a.compare(QUICKSTART, "omega", processes=0),
                "processes 0; expected a whole number of at least 1",
            ),
            (
                lambda a: a.compare(QUICKSTART, "omega", processes="2"),
                "processes '2'; expected a whole number of at least 1",
            ),
        ],
    )
    def test_a_wrong_argument_is_named(self, call: Any, says: str) -> None:
        with pytest.raises(argosy.CommandError, match=says):
            call(argosy)

    def test_questions_about_a_result_are_checked_too(self) -> None:
        result = argosy.run(scenario("omega", JOBS))
        for ask in (result.why, result.story):
            with pytest.raises(argosy.CommandError, match="task 5; expected job/index"):
                ask(5)  # type: ignore[arg-type]
        with pytest.raises(argosy.CommandError, match="metric 5; expected the name of a metric"):
            argosy.compare(scenario("omega", JOBS), "omega", 1).best(5)  # type: ignore[arg-type]
