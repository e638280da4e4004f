"""`argosy summary`: of runs that are finished, go on, or are a journal alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import argosy.experiments.execute as execution
from argosy.cli.app import app
from argosy.experiments.execute import execute
from argosy.records import directory
from argosy.testing.builders import SECOND, job, scenario

SPEC = scenario("omega", [job("a", 3, seconds=10), job("b", 1, seconds=5, submit=60)], replicas=1)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    execute(SPEC, tmp_path / "run")
    return tmp_path / "run"


def call(*arguments: str) -> Result:
    done = CliRunner().invoke(app, ["summary", *arguments])
    assert done.exit_code == 0, done.output
    return done


def test_a_finished_run_has_kept_its_summary(kept: Path) -> None:
    shown = call(str(kept), "-o", "json")
    found = json.loads(shown.stdout)
    assert (found["status"], found["counts"]["tasks_finished"]) == ("finished", 4)
    assert found["log_digest"]
    assert shown.stderr == ""
    assert "life of tasks" in call(str(kept)).stdout


def test_a_recount_says_the_same_and_what_it_cannot_say(kept: Path) -> None:
    first, again = (
        json.loads(call(str(kept), "-o", "json", *more).stdout) for more in ([], ["--recount"])
    )
    for name in ("counts", "jct", "wait_time", "response_time", "timeline", "kinds", "ended_at"):
        assert first[name] == again[name]
    assert again["utilisation"] == pytest.approx(first["utilisation"])
    table = call(str(kept), "--recount")
    assert "holds no messages" in table.stderr
    assert "messages" not in table.stdout


def test_a_journal_on_its_own_is_enough(kept: Path) -> None:
    found = json.loads(call(str(kept / directory.JOURNAL), "-o", "json").stdout)
    assert (found["status"], found["counts"]["tasks_finished"]) == ("journal", 4)
    row = call(str(kept / directory.JOURNAL), "-o", "csv").stdout.splitlines()
    assert row[0].startswith("run,status,scenario")


def test_a_run_in_progress_is_counted_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "_FLUSH_SECONDS", 0.0)
    monkeypatch.chdir(tmp_path)
    seen = []

    def look(share: float) -> None:
        if share == 1.0:
            shown = call("-o", "json")
            seen.append(json.loads(shown.stdout))
            assert "run in progress" in shown.stderr

    execute(SPEC, Path("runs/here"), progress=look)
    (found,) = seen
    assert found["status"] == "running"
    assert found["ended_at"] == 60 * SECOND
    assert (found["counts"]["tasks_finished"], found["counts"]["tasks_pending"]) == (3, 1)
    assert found["series"]["running"][5] == 3
