"""Commands that read a run take its journal file as well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from argosy.cli.app import app
from argosy.experiments.execute import execute
from argosy.records import directory
from argosy.testing.builders import SECOND, job, scenario

SPEC = scenario("omega", [job("a", 3), job("web", 1, seconds=None)], horizon=60 * SECOND)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    execute(SPEC, tmp_path / "run")
    return tmp_path / "run"


def ask(command: str, path: Path) -> Any:
    done = CliRunner().invoke(app, [*command.split(), str(path), "-o", "json"])
    assert done.exit_code == 0, done.exception
    return json.loads(done.stdout)


@pytest.mark.parametrize("command", ["why a/0 --run", "why web --run", "story a/1 --run"])
def test_answers_about_tasks_are_the_same(kept: Path, command: str) -> None:
    assert ask(command, kept / directory.JOURNAL) == ask(command, kept)


def test_an_audit_ends_with_the_last_line(kept: Path) -> None:
    whole, alone = ask("audit --run", kept), ask("audit --run", kept / directory.JOURNAL)
    # A journal does not say that the run went on after its last line.
    assert alone["ended_at"] < whole["ended_at"]
    claims = [[each["claims"] for each in found["schedulers"]] for found in (whole, alone)]
    assert claims[0] == claims[1]
