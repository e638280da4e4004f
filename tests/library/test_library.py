"""Argosy as a library: scenarios in, typed values out, the same as on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pytest
from outside import EXAMPLE

import argosy
from argosy import cli
from argosy.engines.registry import find_engine
from argosy.library.frames import frame
from argosy.model.scenario import Output, Scenario
from argosy.records.directory import open_run
from argosy.testing.builders import job, scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"
QUICKSTART = SCENARIOS / "quickstart.toml"
#: Its jobs are drawn.
DRAWN = """
name = "drawn"
horizon = "1min"

[[cell.machines]]
name = "m"
count = 4
capacity = { cpu = 4000, memory = "16GiB" }

[workload.synthetic]
span = "30s"
utilisation = 0.6

[workload.synthetic.kinds.batch]
share = 1.0
tasks = { shape = "pareto", low = 1, high = 9, alpha = 1.1 }
duration = { shape = "lognormal", median = "5s", sigma = 1.0 }
requests = [{ weight = 1, request = { cpu = 500, memory = "1GiB" } }]

[[fleet]]
name = "scheduler"
engine = "omega"
"""


@pytest.fixture
def drawn(tmp_path: Path) -> Path:
    file = tmp_path / "drawn.toml"
    file.write_text(DRAWN)
    return file


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str | Path) -> Any:
        with pytest.raises(SystemExit) as stop:
            cli.main([*map(str, arguments), "-o", "json"])
        assert stop.value.code == 0
        return json.loads(capsys.readouterr().out)

    return call


class TestRun:
    @pytest.mark.parametrize("seed", [1, 7])
    @pytest.mark.parametrize("engine", [None, "kube"])
    def test_it_decides_what_the_command_decides(
        self, engine: str | None, seed: int, drawn: Path, command: Any
    ) -> None:
        chosen = () if engine is None else ("--engine", engine)
        shown = command("run", drawn, "--seed", str(seed), *chosen, "--no-save")
        for result in (
            argosy.run(argosy.load(drawn), engine, seed=seed),
            argosy.run(drawn, engine, seed=seed),
            argosy.run(str(drawn), engine, seed=seed),
        ):
            assert result.summary.log_digest == shown["log_digest"]

    def test_a_published_form_is_the_commands(self, drawn: Path, command: Any) -> None:
        shown = command("run", drawn, "--as-published", "--engine", "sparrow", "--no-save")
        loaded = argosy.load(drawn, published=True)
        assert argosy.run(loaded, "sparrow").summary.log_digest == shown["log_digest"]

    @pytest.mark.usefixtures("fresh_modules")
    def test_an_engine_may_be_a_class(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(str(EXAMPLE))
        roomiest = find_engine("roomiest:Roomiest")
        by_class = argosy.run(QUICKSTART, roomiest).summary
        by_name = argosy.run(QUICKSTART, "roomiest:Roomiest").summary
        assert by_class.fleet == "roomiest:Roomiest x3"
        assert by_class == by_name

    def test_anything_but_an_engine_is_refused(self) -> None:
        with pytest.raises(argosy.EngineFault, match="engine dict has no 'name'"):
            argosy.run(QUICKSTART, dict)  # type: ignore[arg-type]
        with pytest.raises(argosy.UnknownEngine, match="did you mean 'omega'"):
            argosy.run(QUICKSTART, "omgea")

    def test_a_run_is_saved_in_the_given_directory(self, tmp_path: Path) -> None:
        kept = argosy.run(QUICKSTART, keep=tmp_path / "run")
        in_memory = argosy.run(QUICKSTART)
        assert kept.directory == tmp_path / "run"
        assert in_memory.directory is None
        assert kept.summary == in_memory.summary
        assert open_run(tmp_path / "run").scenario() == kept.scenario == in_memory.scenario
        assert type(in_memory.scenario) is Scenario
        with pytest.raises(argosy.CommandError, match="already exists"):
            argosy.run(QUICKSTART, keep=tmp_path / "run")

    def test_progress_is_told(self, drawn: Path) -> None:
        shares: list[float] = []
        argosy.run(drawn, progress=shares.append)
        assert shares == sorted(shares)
        assert shares

    def test_a_result_says_what_it_is(self) -> None:
        assert repr(argosy.run(QUICKSTART)) == (
            "<Result of quickstart, seed 1, under omega x3: 3 of 4 jobs finished>"
        )


class TestSeeds:
    def test_another_seed_draws_other_jobs(self, drawn: Path) -> None:
        scenario = argosy.load(drawn)
        assert argosy.run(scenario, seed=2).scenario.jobs == argosy.load(drawn, seed=2).jobs
        assert argosy.run(scenario, seed=2).scenario.jobs != scenario.jobs

    def test_a_scenario_changed_after_loading_keeps_its_seed(self, drawn: Path) -> None:
        changed = msgspec.structs.replace(argosy.load(drawn), horizon=30_000_000)
        assert argosy.run(changed).summary.ended_at <= 30_000_000
        with pytest.raises(argosy.ScenarioError, match=r"changed after loading.*for seed 2"):
            argosy.run(changed, seed=2)
        with pytest.raises(argosy.ScenarioError, match="changed after loading"):
            argosy.compare(changed, ["omega"], 2)

    def test_a_scenario_built_in_python_keeps_its_jobs(self) -> None:
        built = scenario("omega", [job("a", 2)])
        assert argosy.run(built, seed=9).scenario.jobs == built.jobs
        assert argosy.compare(built, ["omega"], [3, 4]).seeds == (3, 4)

    def test_a_seed_that_is_named_twice_is_run_once(self) -> None:
        found = argosy.compare(scenario("omega", [job("a", 2)]), ["omega"], [3, 4, 3])
        assert found.seeds == (3, 4)
        assert [run.seed for run in found.runs["omega"]] == [3, 4]

    @pytest.mark.parametrize("seed", [-1, 2**63])
    def test_an_invalid_seed_is_refused(self, seed: int) -> None:
        with pytest.raises(argosy.CommandError, match=r"expected a whole number from 0 to 2\^63"):
            argosy.run(scenario("omega", [job("a", 2)]), seed=seed)
        with pytest.raises(argosy.CommandError, match=r"expected a whole number from 0 to 2\^63"):
            argosy.compare(QUICKSTART, ["omega"], [seed])


class TestQuestions:
    def test_why_and_story_answer_alike_in_memory_and_from_a_directory(
        self, tmp_path: Path
    ) -> None:
        in_memory = argosy.run(QUICKSTART)
        argosy.run(QUICKSTART, keep=tmp_path / "run")
        answer = argosy.why(in_memory, "crawl/199")
        assert isinstance(answer, argosy.WhyAnswer)
        assert answer == argosy.why(tmp_path / "run", "crawl/199") == in_memory.why("crawl/199")
        told = argosy.story(in_memory, "crawl/199")
        assert all(isinstance(line, argosy.StoryLine) for line in told)
        assert told == argosy.story(argosy.open_run(tmp_path / "run"), "crawl/199")

    def test_a_task_that_is_not_there_is_refused(self) -> None:
        result = argosy.run(QUICKSTART)
        with pytest.raises(argosy.UnknownName, match=r"unknown job 'crawler'.*mean 'crawl'"):
            argosy.why(result, "crawler/0")
        with pytest.raises(argosy.CommandError, match="expected crawl/0 to crawl/199"):
            argosy.story(result, "crawl/200")

    def test_a_run_without_a_log_says_so(self) -> None:
        quiet = scenario("omega", [job("a", 2)], output=Output(log="none"))
        with pytest.raises(argosy.RunDirectoryError, match="has no journal"):
            argosy.why(argosy.run(quiet), "a/0")


class TestReplay:
    def test_a_run_leads_to_the_same_decisions_again(self) -> None:
        result = argosy.run(QUICKSTART, "omega")
        done = argosy.replay(result)
        assert done.inputs > 20
        assert done.ended_at <= result.summary.ended_at

    def test_an_engine_from_elsewhere_is_found_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(str(EXAMPLE))
        assert argosy.run(QUICKSTART, "roomiest:Roomiest").replay().lines > 100


class TestColumns:
    def test_tasks_come_with_the_names_of_jobs_and_machines(self) -> None:
        result = argosy.run(QUICKSTART)
        columns = result.tasks_columns()
        counts = result.summary.counts
        assert {len(column) for column in columns.values()} == {
            counts.tasks_finished + counts.tasks_running
        }
        jobs = {each.id: each for each in result.scenario.jobs}
        for name, index in zip(columns["job"].tolist(), columns["index"].tolist(), strict=True):
            assert 0 <= index < jobs[name].tasks
        assert set(columns["machine"]) <= {each.name for each in result.scenario.cell.machines}
        assert (columns["submitted"] <= columns["placed"]).all()
        done = columns["finished"] >= 0
        assert done.sum() == counts.tasks_finished
        assert (columns["started"] <= columns["finished"])[done].all()

    def test_jobs_come_with_their_times(self, tmp_path: Path) -> None:
        result = argosy.run(QUICKSTART, keep=tmp_path / "run")
        columns = result.jobs_columns()
        assert columns["job"].tolist() == [each.id for each in result.scenario.jobs]
        assert columns["tasks"].sum() == result.summary.counts.tasks
        finished = columns["jct"] >= 0
        assert finished.sum() == result.summary.counts.jobs_finished
        assert columns["jct"][finished].mean() == result.summary.jct.mean
        assert columns["wait_time"].mean() == result.summary.wait_time.mean

    def test_what_a_job_did_not_reach_is_minus_one(self, drawn: Path) -> None:
        short = msgspec.structs.replace(argosy.load(drawn), horizon=2_000_000)
        columns = argosy.run(short).jobs_columns()
        unfinished = columns["finished"] < 0
        assert unfinished.any()
        assert set(columns["jct"][unfinished].tolist()) == {-1}

    def test_jobs_that_were_never_submitted_have_no_row(self, drawn: Path) -> None:
        short = msgspec.structs.replace(argosy.load(drawn), horizon=2_000_000)
        result = argosy.run(short)
        assert 0 < len(result.jobs_columns()["job"]) < len(short.jobs)
        assert len(result.jobs_columns()["job"]) == result.summary.counts.jobs


class TestCompare:
    def test_it_says_what_the_command_says(self, drawn: Path, command: Any) -> None:
        chosen = ("--engine", "omega", "--engine", "sparrow", "--seeds", "2")
        shown = command("compare", drawn, *chosen, "--metric", "wait", "--jobs", "1")
        compared = argosy.compare(argosy.load(drawn), ["omega", "sparrow"], 2)
        [ranking] = shown["comparisons"]
        assert json.loads(msgspec.json.encode(compared.ranking("wait"))) == ranking
        assert compared.best("wait") == ranking["best"]
        digests = [run["log_digest"] for run in shown["runs"]]
        assert compared.columns()["log_digest"].tolist() == digests

    def test_a_published_form_stays_as_published_under_other_seeds(self, drawn: Path) -> None:
        loaded = argosy.load(drawn, published=True)
        compared = argosy.compare(loaded, "sparrow", seeds=[1, 2]).runs["sparrow"]
        alone = [argosy.run(loaded, "sparrow", seed=seed).summary for seed in (1, 2)]
        assert [run.log_digest for run in compared] == [run.log_digest for run in alone]

    def test_processes_change_nothing(self, drawn: Path) -> None:
        alone = argosy.compare(drawn, ["omega"], 2)
        assert argosy.compare(drawn, ["omega"], 2, processes=2) == alone

    def test_columns_have_a_row_a_run(self) -> None:
        compared = argosy.compare(QUICKSTART, ["omega", "murmuration"], [5, 3])
        columns = compared.columns()
        assert columns["engine"].tolist() == ["omega"] * 2 + ["murmuration"] * 2
        assert columns["seed"].tolist() == [5, 3, 5, 3]
        assert columns["jct_p50"].dtype == np.float64
        assert compared.verdict()
        assert "murmuration ignores gangs" in str(compared.ignores["murmuration"][0])

    def test_nothing_to_compare_is_refused(self) -> None:
        with pytest.raises(argosy.CommandError, match="no engines to compare"):
            argosy.compare(QUICKSTART, [])
        with pytest.raises(argosy.CommandError, match="no seeds"):
            argosy.compare(QUICKSTART, ["omega"], 0)

    def test_an_error_in_another_process_is_of_its_own_class(
        self, drawn: Path, fresh_modules: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(fresh_modules)
        text = (EXAMPLE / "roomiest.py").read_text()
        Path("roomiest.py").write_text(text.replace("        return effects", "        return 5"))
        with pytest.raises(argosy.EngineFault, match=r"roomiest:Roomiest, seed 1: .* returned int"):
            argosy.compare(drawn, ["roomiest:Roomiest"], 2, processes=2)


class TestFrames:
    def test_a_library_that_lacks_something_itself_is_not_taken_for_absent(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def imported(name: str) -> Any:
            raise ModuleNotFoundError(name="dateutil")

        monkeypatch.setattr("importlib.import_module", imported)
        with pytest.raises(ModuleNotFoundError) as caught:
            frame({})
        assert caught.value.name == "dateutil"

    def test_pandas_makes_the_frames(self) -> None:
        import pandas

        result = argosy.run(QUICKSTART)
        tasks, jobs = result.tasks_frame(), result.jobs_frame()
        assert isinstance(tasks, pandas.DataFrame)
        assert list(tasks.columns) == list(result.tasks_columns())
        assert (
            tasks.groupby("job")["finished"].max()["report"]
            == (jobs.set_index("job")["finished"]["report"])
        )
        frame = argosy.compare(QUICKSTART, ["omega", "kube"], 2).frame()
        assert frame.groupby("engine")["jct_mean"].median().idxmin() in ("omega", "kube")

    def test_without_pandas_polars_does(self, monkeypatch: pytest.MonkeyPatch) -> None:
        polars = ModuleType("polars")
        polars.DataFrame = dict  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "pandas", None)
        monkeypatch.setitem(sys.modules, "polars", polars)
        result = argosy.run(QUICKSTART)
        assert list(result.jobs_frame()) == list(result.jobs_columns())

    def test_without_either_the_columns_are_pointed_at(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("pandas", "polars"):
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(argosy.MissingLibrary, match="pip install pandas, or use the columns"):
            argosy.run(QUICKSTART).tasks_frame()
