"""Every task that waits has an explanation, and it is the right one."""

from __future__ import annotations

import pytest

from argosy.engines.registry import ENGINES
from argosy.host.records import ExplainedRecord
from argosy.model.explanations import Explanation, Why
from argosy.model.resources import Resources
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.testing.builders import GIB, SECOND, cell, job, scenario
from argosy.testing.conformance import ConformanceRun


def run(engine: str, jobs: list[SimulatedJob]) -> ConformanceRun:
    spec = scenario(engine, jobs, replicas=1, cell=cell(2), horizon=30 * SECOND)
    return ConformanceRun(ENGINES[engine], spec)


def told(trial: ConformanceRun, name: str, index: int) -> Explanation:
    """What a task was told last."""
    lines = [line for line in trial.of(ExplainedRecord, name) if index in line.indices]
    return lines[-1].explanation


@pytest.mark.parametrize("engine", ENGINES)
def test_every_waiting_member_of_a_gang_is_explained(engine: str) -> None:
    large = group_with_truth(1, Resources(9_000, GIB), (SECOND,))
    small = group_with_truth(2, Resources(500, GIB), (SECOND,))
    run(engine, [simulated_job("gang", large, small, gang=True)]).require_accounted_for()


@pytest.mark.parametrize(
    "engine", ["omega", "monolithic", "partitioned", "spread", "mesos", "medea"]
)
def test_a_task_that_finds_a_machine_is_not_told_that_none_can_take_it(engine: str) -> None:
    large = group_with_truth(1, Resources(9_000, GIB), (SECOND,))
    small = group_with_truth(2, Resources(500, GIB), (SECOND,))
    trial = run(engine, [simulated_job("gang", large, small, gang=True)])
    waits = told(trial, "gang", 1)
    assert waits.refused is not None
    assert waits.refused.why is Why.TOGETHER
    assert waits.remedy == "room for all 3 tasks at once; 2 had room"
    blocks = told(trial, "gang", 0)
    assert blocks.nearest_miss is not None
    assert blocks.remedy.startswith("no machine is large enough")


@pytest.mark.parametrize("engine", ["omega", "spread", "mesos"])
def test_equal_members_of_a_gang_are_told_for_how_many_there_is_room(engine: str) -> None:
    trial = run(engine, [job("gang", 3, cpu=3_000, gang=True)])
    for index in range(3):
        remedy = told(trial, "gang", index).remedy
        if engine == "mesos" and told(trial, "gang", index).refused is None:
            # The two that have found a machine keep it; the other is looked for alone.
            assert remedy == "free 2 cores on the nearest machine, or ask for 2 cores less"
        else:
            assert remedy == "room for all 3 tasks at once; 2 had room"
