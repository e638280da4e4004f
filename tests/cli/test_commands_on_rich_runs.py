"""Commands on scenarios with what a campaign never draws: all that they print and write is kept as
digests. See `pinned_digests` for how to compare before and after a change."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from pinned_commands import Folder
from pinned_digests import require_digests
from rich_jobs import Document, Stream
from rich_scenarios import rich_scenario
from rich_workloads import WORKLOADS

from argosy.scenarios.toml_text import to_toml

PINNED: Final = Path(__file__).parent / "pinned"
SEED: Final = 23
OUTPUTS: Final = ("table", "json", "csv")
#: Scenarios with each workload.
EACH: Final = 7


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARGOSY_DEBUG", raising=False)
    return Folder(tmp_path)


def first_tasks(folder: Folder, document: Document) -> list[str]:
    """Of the jobs that the journal names first."""
    journal = folder.path / "run" / "journal.jsonl"
    if not journal.exists():
        return ["j0/0"]
    lines = journal.read_text("utf-8").splitlines()
    words = [line.partition('"job":{"id":"')[2].partition('"')[0] for line in lines[:400]]
    return [f"{word}/0" for word in dict.fromkeys(words) if word][:6]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_runs_of_each_workload_and_all_that_is_told_of_them(
    folder: Folder, workload: str, pytestconfig: pytest.Config
) -> None:
    outcomes = {}
    step, at = len(WORKLOADS), list(WORKLOADS).index(workload)
    for number in range(at, at + EACH * step, step):
        rich = rich_scenario(SEED, number)
        stream = Stream(f"commands {number}")
        folder.remove("trace", "cluster.json", "cluster.yaml", "run", "page.html", "page.md")
        folder.write({"rich.toml": to_toml(rich.document)} | rich.files)
        form, other = stream.pick(OUTPUTS), stream.pick(OUTPUTS)
        pages = ("--html", "page.html", "--markdown", "page.md") if stream.has(0.5) else ()
        seed = ("--seed", str(stream.below(99))) if stream.has(0.3) else ()
        strict = ("--strict",) if stream.has(0.1) else ()
        engine = ("--engine", "kube-modern") if stream.has(0.1) else ()
        options = (*pages, *seed, *strict, *engine, "-o", form)
        outcomes[f"{number}: run"] = folder.call("run", "rich.toml", "--out", "run", *options)
        asked: list[tuple[str, ...]] = [
            ("summary", "run", "--recount", "-o", other),
            ("summary", "run", "-o", form),
            ("audit", "--run", "run", "-o", other),
            ("replay", "run"),
            ("constraints", "lint", "rich.toml", "-o", other),
        ]
        asked += [
            (what, task, "--run", "run", "-o", stream.pick(OUTPUTS))
            for task in first_tasks(folder, rich.document)
            for what in ("why", "story")
        ]
        outcomes[f"{number}: told"] = folder.calls(asked)
        if stream.has(0.5):
            chosen = ("--engine", "sparrow", "--engine", "kube", "--seeds", "2", "--jobs", "1")
            compared = ("compare", "rich.toml", *chosen, *pages, *strict, "-o", other)
            outcomes[f"{number}: compared"] = folder.call(*compared)
    require_digests(PINNED / f"rich_runs_{workload}.txt", outcomes, pytestconfig)
