"""Small runs of every engine as text: when an engine decides otherwise, the difference says what."""

from __future__ import annotations

import pytest
from golden_log import GOLDEN, readable, require_golden

from argosy.engines.registry import ENGINES
from argosy.model.random import Random
from argosy.model.scenario import MachineCrash, SchedulerCrash
from argosy.model.truth import SimulatedJob
from argosy.records.journal_file import JournalFile
from argosy.testing import conformance
from argosy.testing.builders import GIB, SECOND, cell, job, scenario


def workload() -> list[SimulatedJob]:
    """More than the cell holds at once, some of it with precedence, and one job that fits nowhere."""
    random = Random(3)
    jobs = [
        job(
            f"j{i}",
            1 + random.below(3),
            cpu=1_000 * (1 + random.below(3)),
            memory=GIB * (1 + random.below(4)),
            seconds=1 + random.below(4),
            submit=i * 0.2,
            precedence=random.below(2),
        )
        for i in range(7)
    ]
    return [*jobs, job("giant", 1, cpu=64_000, submit=0.5)]


@pytest.mark.parametrize("engine", ENGINES)
def test_small_runs_are_pinned_as_text(engine: str, request: pytest.FixtureRequest) -> None:
    spec = scenario(
        engine,
        workload(),
        cell=cell(3),
        horizon=8 * SECOND,
        faults=(
            MachineCrash(at=SECOND, machine="m1", down=3 * SECOND),
            SchedulerCrash(at=2 * SECOND, scheduler="s-1", down=2 * SECOND),
        ),
    )
    journal = JournalFile(conformance.ConformanceRun(ENGINES[engine], spec).log)
    update = request.config.getoption("--update-golden")
    require_golden(engine.replace("+", "-plus"), readable(journal), update=update)


@pytest.mark.parametrize(
    "alike",
    [
        # Without long jobs.
        ("sparrow", "hawk"),
        # With one path and no partition.
        ("omega", "monolithic"),
        # Without constraints.
        ("jkube", "jkube-plus-plus", "kube-modern"),
    ],
    ids=" ".join,
)
def test_engines_that_differ_only_in_what_is_not_asked_for_decide_alike(
    alike: tuple[str, ...],
) -> None:
    assert len({(GOLDEN / f"{name}.txt").read_text("utf-8") for name in alike}) == 1


def test_every_kept_log_is_of_an_engine() -> None:
    names = {engine.replace("+", "-plus") for engine in ENGINES}
    assert {path.stem for path in GOLDEN.glob("*.txt")} == names


def test_another_decision_is_shown_as_a_difference(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("golden_log.GOLDEN", tmp_path)
    require_golden("one", "first\nsecond\n", update=True)
    with pytest.raises(pytest.fail.Exception, match=r"(?s)--update-golden.*-second\n\+other"):
        require_golden("one", "first\nother\n", update=False)
