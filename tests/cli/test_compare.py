"""`argosy compare` as its users meet it."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import QUICKSTART, Call, process

from argosy.cli import compare
from argosy.report import comparison

BROKEN_ENGINE = """
from argosy.engines.omega.engine import Omega


class Broken(Omega):
    name = "broken"

    def handle(self, event, view, now):
        raise RuntimeError("out of fuel")
"""

#: One machine that takes short tasks first: the long urgent one is passed over, the short one is not.
PASSED_OVER = """
name = "urgent"
seed = 1

[[cell.machines]]
name = "only"
count = 1
capacity = { cpu = 1000, memory = "1GiB" }

[machines]
queue = "shortest-first"

[[workload.jobs]]
id = "first"
request = { cpu = 1000, memory = "1GiB" }
duration = "10s"
estimate = "10s"

[[workload.jobs]]
id = "long"
submit = "1s"
precedence = 5
request = { cpu = 1000, memory = "1GiB" }
duration = "60s"
estimate = "60s"

[[workload.jobs]]
id = "short"
submit = "2s"
precedence = 5
request = { cpu = 1000, memory = "1GiB" }
duration = "5s"
estimate = "5s"

[[workload.jobs]]
id = "late"
submit = "3s"
request = { cpu = 1000, memory = "1GiB" }
duration = "10s"
estimate = "10s"

[[fleet]]
name = "scheduler"
engine = "murmuration"
"""


def test_the_default_threshold_in_the_help_is_the_report_s_own() -> None:
    assert compare.DEFAULT_THRESHOLD == comparison.DEFAULT_THRESHOLD


class TestCompare:
    def test_it_says_which_engine_is_best_by_how_much_and_why(self, argosy: Call) -> None:
        result = argosy("compare", QUICKSTART, "--seeds", "2", "--jobs", "1")
        assert result.code == 0, result.err
        for words in ("by median JCT", "spread of JCT", "why", "A finished job took"):
            assert words in result.out

    def test_results_do_not_depend_on_the_number_of_processes(self) -> None:
        alone, together = (
            process(
                "compare", QUICKSTART, "--seed", "3", "--seed", "1", "--jobs", jobs, "-o", "json"
            )
            for jobs in ("1", "2")
        )
        assert (alone.returncode, together.returncode) == (0, 0), together.stderr
        assert alone.stdout == together.stdout
        assert json.loads(alone.stdout)["seeds"] == [3, 1]

    def test_csv_has_a_row_per_engine_and_seed(self, argosy: Call) -> None:
        arguments = ("--engine", "omega", "--seeds", "2", "--jobs", "1", "-o", "csv")
        rows = list(csv.DictReader(io.StringIO(argosy("compare", QUICKSTART, *arguments).out)))
        assert [(row["engine"], row["seed"]) for row in rows] == [("omega", "1"), ("omega", "2")]

    @pytest.mark.parametrize("processes", [1, 2])
    def test_if_every_engine_fails_the_first_error_is_the_command_s(
        self, tmp_path: Path, processes: int
    ) -> None:
        from argosy.experiments.contest import hold_contest
        from argosy.model.errors import ArgosyError

        gone = tmp_path / "gone.toml"
        with pytest.raises(ArgosyError, match=r"omega, seed 1: .*gone\.toml") as caught:
            hold_contest(
                gone,
                {"omega": (), "kube": ()},
                [1, 2],
                processes=processes,
                tell=lambda share: None,
            )
        assert caught.value.code == "scenario"

    @pytest.mark.parametrize("processes", ["1", "2"])
    def test_an_engine_that_fails_does_not_lose_the_comparison(
        self, argosy: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: str
    ) -> None:
        (tmp_path / "broken_engine.py").write_text(BROKEN_ENGINE)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        arguments = ("--engine", "broken_engine:Broken", "--engine", "omega", "--seeds", "2")
        result = argosy("compare", QUICKSTART, *arguments, "--jobs", processes)
        assert result.code == 1
        assert "omega is best by median JCT." in result.out
        assert "broken_engine:Broken failed: with seed 1: " in result.out
        assert "out of fuel" in result.out
        done = argosy("compare", QUICKSTART, *arguments, "--jobs", processes, "-o", "json")
        document = json.loads(done.out)
        assert "out of fuel" in document["failures"]["broken_engine:Broken"]
        assert {row["engine"] for row in document["runs"]} == {"omega"}

    def test_an_engine_that_takes_too_long_is_given_up(self, argosy: Call) -> None:
        arguments = ("--engine", "omega", "--seeds", "1", "--time-limit", "1us")
        result = argosy("compare", QUICKSTART, *arguments)
        assert result.code == 2
        assert "after the time limit of 1 µs" in result.complaint
        wrong = argosy("compare", QUICKSTART, "--time-limit", "5")
        assert wrong.code == 2
        assert "--time-limit" in wrong.complaint

    def test_objectives_are_told_together(self, argosy: Call) -> None:
        some = ("--engine", "omega", "--engine", "medea", "--seeds", "1", "--rank-all")
        result = argosy(
            "compare", QUICKSTART, *some, "--objective", "violations", "--objective", "jct.p99"
        )
        assert result.code == 0, result.err
        assert "all objectives together" in result.out
        assert "in this order of objectives." in result.out
        both = argosy("compare", QUICKSTART, "--objective", "jct", "--metric", "jct")
        assert (both.code, "one of them" in both.complaint) == (2, True)

    def test_only_five_engines_are_shown_in_detail_unless_all_are_asked_for(
        self, argosy: Call
    ) -> None:
        some = ("--seeds", "1", "--jobs", "1", "--rank-all")
        few, every = (argosy("compare", QUICKSTART, *some, *more).out for more in ((), ("--all",)))
        assert "more engines in detail: --all" in few
        assert "--all" not in every
        assert every.count("kube-modern") > few.count("kube-modern")

    @pytest.mark.parametrize("command", ["run", "compare"])
    def test_what_an_engine_passes_over_is_noted_once(self, argosy: Call, command: str) -> None:
        some = ("--no-save",) if command == "run" else ("--seeds", "2", "--jobs", "1")
        result = argosy(command, QUICKSTART, "--engine", "murmuration", *some)
        assert result.code == 0, result.err
        if command == "run":
            note = "note: murmuration ignores gangs; 1 job asks for one"
            assert result.err.splitlines().count(note) == 1
        else:
            note = "  murmuration ignores gangs (1 job asks for one)"
            assert result.out.splitlines().count(note) == 1
            assert "gangs" not in result.err

    def test_a_run_says_what_share_of_the_jobs_was_passed_over(
        self, argosy: Call, tmp_path: Path
    ) -> None:
        path = tmp_path / "urgent.toml"
        path.write_text(PASSED_OVER, "utf-8")
        note = (
            "note: murmuration ignores priorities:"
            " 50 % of the jobs of higher precedence were passed over"
        )
        told, calm = (
            argosy("run", path, "--no-save", "--engine", engine)
            for engine in ("murmuration", "kube")
        )
        assert told.err.splitlines().count(note) == 1
        assert re.search(r"^passed over +1$", told.out, re.MULTILINE)
        assert "priorities" not in calm.err
        both = ("--engine", "murmuration", "--engine", "kube", "--seeds", "1")
        compared = argosy("compare", path, *both, "-o", "json")
        (ranking,) = json.loads(compared.out)["comparisons"]
        assert ranking["leaders"] == ["kube"]
        assert ranking["standings"][-1]["passed_over"] == 0.5

    def test_json_carries_what_each_engine_ignores(self, argosy: Call) -> None:
        done = argosy("compare", QUICKSTART, "--seeds", "1", "--jobs", "1", "-o", "json")
        (compared,) = json.loads(done.out)["comparisons"]
        ignores = {
            standing["engine"]: {demand["what"] for demand in standing["ignores"]}
            for standing in compared["standings"]
        }
        assert "gangs" in ignores["murmuration"]
        assert "gangs" not in ignores["omega"]

    def test_seeds_beyond_the_largest_are_refused(self, argosy: Call, tmp_path: Path) -> None:
        scenario = tmp_path / "last.toml"
        text = QUICKSTART.read_text().replace("seed = 1", f"seed = {2**63 - 2}")
        scenario.write_text(text)
        refused = argosy("compare", scenario, "--seeds", "3")
        assert refused.code == 2
        assert "--seeds 3 from seed 9223372036854775806" in refused.complaint
        assert argosy("compare", scenario, "--seeds", str(10**18)).code == 2

    def test_ctrl_c_ends_all_processes_cleanly(self, tmp_path: Path) -> None:
        running = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "argosy.cli",
                "compare",
                QUICKSTART,
                "--seeds",
                "400",
                "--jobs",
                "2",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            start_new_session=True,
            env={**os.environ, "PYTHONVERBOSE": "1"},
        )
        assert running.stderr is not None
        # Verbose imports tell, without a clock, when a second process is about to execute.
        sightings = (
            line for line in running.stderr if line.startswith("import 'argosy.experiments.sweep'")
        )
        assert len(list(itertools.islice(sightings, 2))) == 2
        os.killpg(running.pid, signal.SIGINT)
        # Ends only when every process that inherited stderr has ended.
        _, err = running.communicate(timeout=60)
        assert running.returncode == 130
        assert "argosy: interrupted" in err
        assert "Traceback" not in err
