"""Commands on scenarios that a campaign draws: all that they print and write is kept as digests. See
`pinned_digests` for how to compare before and after a change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from pinned_commands import Folder
from pinned_digests import require_digests

from argosy.campaign.draw import DrawnScenario, ScenarioSource
from argosy.engines.registry import survey
from argosy.scenarios.toml_text import to_toml

PINNED: Final = Path(__file__).parent / "pinned"
SEED: Final = 41
#: Bytes of a journal that is read again and again, and of all journals that answers about a run read.
LARGEST: Final = 400_000
WORK: Final = 2_500_000
#: Scenarios in each group.
GROUP: Final = 12
OUTPUTS: Final = ("table", "json", "csv")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARGOSY_DEBUG", raising=False)
    return Folder(tmp_path)


def drawn(first: int) -> Iterator[DrawnScenario]:
    engines, _ = survey()
    source = ScenarioSource(SEED, engines)
    return (source.draw(number) for number in range(first, first + GROUP))


def some_tasks(document: dict[str, Any]) -> list[str]:
    """The first, a middle and the last task of each job."""
    found = []
    for job in document["workload"]["jobs"]:
        count = sum(group.get("count", 1) for group in job.get("groups", [job]))
        found += [f"{job['id']}/{at}" for at in sorted({0, count // 2, count - 1})]
    return found


def run_outcomes(folder: Folder, scenario: DrawnScenario) -> Iterator[tuple[str, str]]:
    number = scenario.number
    run = ("--out", "run", "--html", "run.html", "--markdown", "run.md")
    yield "run", folder.call("run", "drawn.toml", *run, "-o", OUTPUTS[number % 3])
    journal = folder.path / "run" / "journal.jsonl"
    size = journal.stat().st_size if journal.exists() else 1
    asked = [("summary", "run", "-o", form) for form in OUTPUTS]
    asked += [("summary", "run", "--recount", "-o", OUTPUTS[(number + 1) % 3])]
    asked += [("audit", "--run", "run", "-o", form) for form in OUTPUTS]
    asked += [("constraints", "lint", "drawn.toml", "-o", OUTPUTS[(number + 2) % 3])]
    if size > LARGEST:
        return
    yield "told", folder.calls(asked)
    # Every answer reads the whole journal.
    tasks = some_tasks(scenario.document)[: max(2, WORK // size)]
    told = [
        (what, task, "--run", "run", "-o", OUTPUTS[(at + number) % 3])
        for at, task in enumerate(tasks)
        for what in ("why", "story")
    ]
    yield "answers", folder.calls(told)
    yield from cut_outcomes(folder, scenario, tasks)


def cut_outcomes(
    folder: Folder, scenario: DrawnScenario, tasks: list[str]
) -> Iterator[tuple[str, str]]:
    """Of a journal that ends early: the run as it was at several times."""
    journal = folder.path / "run" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
    for part in (1, 2, 3):
        kept = b"".join(lines[: len(lines) * part // 4])
        if not kept:
            continue
        # The second ends within a line.
        folder.write({"cut.jsonl": kept if part != 2 else kept[:-7]})
        form = OUTPUTS[(scenario.number + part) % 3]
        asked = [("summary", "cut.jsonl", "-o", form), ("audit", "--run", "cut.jsonl", "-o", form)]
        asked += [("replay", "cut.jsonl")] if part == 2 else []
        asked += [
            (what, task, "--run", "cut.jsonl")
            for task in tasks[part - 1 :: 3][:8]
            for what in ("why", "story")
        ]
        yield f"cut after {part} of 4", folder.calls(asked)


@pytest.mark.parametrize("first", range(0, 48, GROUP))
def test_runs_of_drawn_scenarios_and_all_that_is_told_of_them(
    folder: Folder, first: int, pytestconfig: pytest.Config
) -> None:
    outcomes = {}
    for scenario in drawn(first):
        name = f"{scenario.number} {'+'.join(scenario.engines)}"
        folder.write({"drawn.toml": to_toml(scenario.document)})
        for what, text in run_outcomes(folder, scenario):
            outcomes[f"{name}: {what}"] = text
        folder.remove("run")
    require_digests(PINNED / f"drawn_runs_{first}.txt", outcomes, pytestconfig)


@pytest.mark.parametrize("first", range(100, 112, GROUP))
def test_recorded_runs_replayed_compared_and_swept(
    folder: Folder, first: int, pytestconfig: pytest.Config
) -> None:
    outcomes = {}
    others = ("sparrow", "omega", "kube", "eagle", "medea", "yarn", "murmuration", "mesos")
    metrics = ("wait.p90", "end", "conflicts", "jct.largest", "machines", "response", "imbalance")
    for scenario in drawn(first):
        number = scenario.number
        name = f"{number} {'+'.join(scenario.engines)}"
        folder.write({"drawn.toml": to_toml(scenario.document)})
        form, other = OUTPUTS[number % 3], others[number % len(others)]
        chosen = ("--engine", other, "--engine", others[(number + 3) % len(others)])
        asked = ("--metric", metrics[number % len(metrics)], "-o", form)
        folder.call("run", "drawn.toml", "--out", "run")
        journal = folder.path / "run" / "journal.jsonl"
        if journal.stat().st_size > LARGEST:
            # What follows is a dozen such runs.
            folder.remove("run")
            continue
        outcomes[f"{name}: replayed"] = folder.calls(
            [("replay", "run", "-o", form), ("replay", "run", *chosen, "--metric", "jct", *asked)]
        )
        pages = ("--html", "page.html", "--markdown", "page.md") if number % 2 else ()
        seeds = ("--seeds", str(1 + number % 4), "--jobs", "1")
        more = ("--objective", "jct", "--objective", "wait", "--threshold", "10")
        wanted = ("-o", form, *more) if number % 3 else asked
        compared = ("compare", "drawn.toml", *chosen, *seeds, *pages, *wanted)
        outcomes[f"{name}: compared"] = folder.call(*compared)
        values = "workload.jobs.j0.submit=0s,1s,70s" if number % 2 else "seed=1,2"
        swept = ("--vary", values, "--seeds", str(1 + number % 2), "--jobs", "1", *asked)
        page = ("--html", "page.html") if number % 4 else ()
        whose = chosen if number % 5 else ()
        outcomes[f"{name}: swept"] = folder.call("sweep", "drawn.toml", *swept, *page, *whose)
        folder.remove("run", "page.html", "page.md")
    require_digests(PINNED / f"drawn_comparisons_{first}.txt", outcomes, pytestconfig)
