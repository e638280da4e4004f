"""What Medea's two schedulers do when applications and tasks want the same room."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.engines.api import supports_constraint
from argosy.engines.registry import ENGINES
from argosy.host.records import (
    AbandonedRecord,
    ExplainedRecord,
    LostRecord,
    PlacedRecord,
    RefusedRecord,
)
from argosy.model.constraints import Constraint
from argosy.model.constraints.text import parse_constraint
from argosy.model.explanations import Why
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import (
    CellSpec,
    ConstantLatency,
    FleetEntry,
    GroupSpec,
    MachineDrain,
    Network,
    SchedulerLimits,
)
from argosy.model.truth import SimulatedJob
from argosy.scenarios.ignored_demands import ignored_demands
from argosy.testing.builders import SECOND, cell, job, scenario
from argosy.testing.conformance import ConformanceRun

#: Engines that place tasks at once, beside the applications.
BESIDE = ["medea", "jkube", "jkube++", "kube-modern"]
EVERYONE = [*BESIDE, "ilp-all"]


def service(name: str, **fields: Any) -> SimulatedJob:
    return job(name, kind="service", seconds=None, **fields)


def run(
    engine: str, jobs: list[SimulatedJob], settings: dict[str, Any], **fields: Any
) -> ConformanceRun:
    fields.setdefault("horizon", 60 * SECOND)
    spec = scenario(engine, jobs, replicas=1, settings=settings, **fields)
    return ConformanceRun(ENGINES[engine], spec)


@pytest.mark.parametrize("engine", BESIDE)
def test_an_application_never_kills_another_of_its_batch(engine: str) -> None:
    """A task takes half of the room for which two applications are under decision."""
    jobs = [
        service("low"),
        service("high", submit=1, precedence=1),
        job("task", submit=10.01, seconds=20, precedence=9),
    ]
    settings = {"conflict": "kill", "t_lra": 1_000_000, "t_job": 10_000}
    trial = run(engine, jobs, settings, cell=cell(1, cpu=2_000))
    assert trial.of(LostRecord) == []
    first = trial.of(PlacedRecord, "high")[0].at
    # The one of higher precedence is served first; the other waits until the task has ended.
    assert first < 15 * SECOND
    assert [Why(why) for why in trial.of(RefusedRecord, "low")[0].whys] == [Why.NO_ROOM]
    assert trial.of(PlacedRecord, "low")[0].at > 30 * SECOND


@pytest.mark.parametrize("engine", EVERYONE)
@pytest.mark.parametrize("latency", [0, 500])
def test_a_limit_is_no_conflict_that_relaxing_could_settle(engine: str, latency: int) -> None:
    trial = run(
        engine,
        [service("a"), service("b")],
        {"conflict": "relax"},
        network=Network(latency=ConstantLatency(delay=latency)),
        fleet=(
            FleetEntry(
                name="s",
                engine=engine,
                settings={"conflict": "relax"},
                limits=SchedulerLimits(jobs=1),
            ),
        ),
    )
    assert len(trial.of(PlacedRecord, "a")) == 1
    # Once an interval, not again and again at the same instant.
    refused = trial.of(RefusedRecord, "b")
    assert 1 < len(refused) <= 6
    assert {Why(why) for line in refused for why in line.whys} == {Why.JOB_LIMIT}
    told = trial.of(ExplainedRecord, "b")[-1].explanation.refused
    assert told is not None
    assert told.why is Why.JOB_LIMIT


@pytest.mark.parametrize(("attempts", "is_placed"), [(1, False), (2, True)])
def test_relaxing_counts_as_an_attempt(attempts: int, is_placed: bool) -> None:
    jobs = [service("app", cpu=3_000), job("short", cpu=3_000, seconds=40, submit=10.05)]
    settings = {
        "conflict": "relax",
        "t_lra": 2_000_000,
        "t_job": 10_000,
        "placement": "worst-fit",
        "attempts": attempts,
    }
    trial = run("medea", jobs, settings)
    assert len(trial.of(PlacedRecord, "app")) == is_placed
    assert len(trial.of(AbandonedRecord, "app")) == (not is_placed)


MOVING = ["medea", "jkube", "jkube++", "kube-modern", "ilp-all"]


def migration(engine: str, *, apart: str, whose: tuple[Constraint, ...] = ()) -> list[int]:
    """Where a container that must be on m4 or m5 runs, one after another: one beside it begins to break
    the constraint `apart`, and there is plenty of room on all machines."""
    arch = {"arch": "x86"}
    built = [
        Machine(f"m{i}", Resources(4_000, 2**34), arch if i > 3 else {}, {"rack": ("r0",)})
        for i in range(6)
    ]
    spec = CellSpec(
        machines=tuple(built), groups=(GroupSpec(name="rack", sets=("r0",)),), constraints=whose
    )
    own = () if whose else (parse_constraint(apart),)
    jobs = [
        service("a", cpu=500, tags=("t",), requires=arch, constraints=own),
        # It takes the other machine that has what the first requires, so both share one.
        job("filler", cpu=4_000, seconds=25, requires=arch, submit=11),
        service("b", cpu=500, tags=("u",), requires=arch, submit=15),
        service("c", cpu=500, submit=41),
    ]
    trial = run(engine, jobs, {"migrate": 1}, cell=spec, horizon=70 * SECOND)
    return [machine for line in trial.of(PlacedRecord, "a") for machine in line.machines]


@pytest.mark.parametrize("engine", MOVING)
@pytest.mark.parametrize("is_operators", [False, True])
def test_a_container_moves_only_to_machines_that_have_what_it_requires(
    engine: str, is_operators: bool
) -> None:
    text = "t -> {u, 0, 0} in machine"
    whose = (parse_constraint(text),) if is_operators else ()
    homes = migration(engine, apart=text, whose=whose)
    assert len(homes) == 2
    assert set(homes) == {4, 5}


@pytest.mark.parametrize("engine", EVERYONE)
def test_an_application_that_asks_for_nothing_keeps_off_draining_machines(engine: str) -> None:
    drains = tuple(MachineDrain(at=0, machine=f"m{n}") for n in range(7))
    asks_nothing = service("tiny", cpu=0, memory=0)
    trial = run(engine, [asks_nothing], {}, cell=cell(8), faults=drains)
    assert trial.of(RefusedRecord) == []
    (placed,) = trial.of(PlacedRecord, "tiny")
    assert placed.machines == [7]


@pytest.mark.parametrize(
    ("engine", "text", "follows"),
    [
        ("jkube", "web -> {web, 0, 0} in machine", True),
        ("jkube", "web -> {web, 0, 2} in machine", False),
        ("jkube++", "web -> {web, 0, 2} in machine", True),
        ("kube-modern", "web -> {web, 0, 2} in machine", True),
        ("kube-modern", "web -> {web, 2, 4} in machine", False),
        ("yarn", "web -> {web, 0, 0} in machine", False),
        ("medea", "web -> {web, 2, 4} in machine", True),
        ("omega", "web -> {web, 0, 0} in machine", False),
    ],
)
def test_engines_say_which_constraints_they_follow(engine: str, text: str, follows: bool) -> None:
    made = service("a", tags=("web",), constraints=(parse_constraint(text),))
    assert supports_constraint(ENGINES[engine], made.job.constraints[0]) is follows
    notes = ignored_demands(scenario(engine, [made]), ENGINES)
    assert any("constraints" in note.what for note in notes) is not follows
