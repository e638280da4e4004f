"""Small runs of every engine as text: when an engine decides otherwise, the difference says what."""

from __future__ import annotations

from typing import Any

import pytest
from golden_log import GOLDEN, readable, require_golden
from msgspec import structs

from argosy.engines.registry import ENGINES
from argosy.model.constraints.text import parse_constraint
from argosy.model.machine_model import MachineModel
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import (
    CellSpec,
    MachineCrash,
    MachineDrain,
    MachineResize,
    SchedulerCrash,
)
from argosy.model.tasks import task_numbers
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.records.journal_file import JournalFile
from argosy.testing import conformance
from argosy.testing.builders import GIB, SECOND, cell, job, scenario, shared_job


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


#: Settings that make an engine do most of what it can.
EVENTFUL: dict[str, tuple[str, dict[str, Any]]] = {
    "omega": ("omega", {"preempt": True, "patience": 1, "attempts": 12, "spread": "rack"}),
    "omega-atomic": ("omega", {"transaction": "atomic", "detection": "coarse"}),
    "mapreduce": ("mapreduce", {"policy": "global-cap", "cap": 0.9, "interval": 2 * SECOND}),
    "mapreduce-relative": ("mapreduce", {"policy": "relative-job-size", "interval": SECOND}),
    "monolithic": ("monolithic", {"paths": {"service": {"t_job": 700_000}}, "attempts": 4}),
    "partitioned": ("partitioned", {"end": 0.5, "placement": "worst-fit"}),
    "mesos": ("mesos", {"offers": "fair-share", "retry": "first", "attempts": 6}),
    "kube": ("kube", {"score": "most-allocated", "looks": 3, "retry": 2 * SECOND}),
    "murmuration": (
        "murmuration",
        {
            "order": "shortest-job",
            "slack": 2,
            "gossip": "task",
            "estimates": "learnt",
            "locality": 5,
        },
    ),
    "firmament": ("firmament", {"migration": 5, "preemption": 20}),
    "firmament-network": ("firmament", {"policy": "network-aware"}),
    "firmament-load": ("firmament", {"policy": "load-spreading", "slots": 2}),
    "quincy": ("quincy", {"data": {"rate": 100 * 2**20}, "slots": 3}),
    "spread": ("spread", {"attempts": 12}),
    "sparrow": ("sparrow", {"t_job": 1_000, "t_task": 100, "repeated": True, "cancel": False}),
    "hawk": ("hawk", {"cutoff": 3 * SECOND, "long_share": 0.6}),
    "eagle": ("eagle", {"cutoff": 3 * SECOND, "long_share": 0.6, "stale_state": True}),
    "yaq-c": ("yaq-c", {"limit": 2, "share": 0.8}),
    "yaq-d": ("yaq-d", {"limit": 2, "jitter": SECOND}),
    "medea": ("medea", {"interval": 2 * SECOND, "migrate": 3, "queues": {"ann": 2.0}}),
    "medea-relax": ("medea", {"algorithm": "node-candidates", "conflict": "relax"}),
    "jkube": ("jkube", {"interval": 2 * SECOND, "conflict": "kill"}),
    "jkube++": ("jkube++", {"interval": 2 * SECOND, "conflict": "reserve"}),
    "kube-modern": ("kube-modern", {"interval": 2 * SECOND}),
    "yarn": ("yarn", {"policy": "fair", "locality_delay": 1}),
    "ilp-all": ("ilp-all", {"interval": 2 * SECOND}),
    "vela": ("vela", {"machines": 0.5, "timeout": SECOND, "reschedules": 5, "adapt": True}),
}


def eventful_cell() -> CellSpec:
    """Two racks; one machine is an Arm, and some have a faster network."""
    plain = cell(6, per_rack=3)
    machines = tuple(
        structs.replace(
            machine,
            capacity=structs.replace(machine.capacity, extras={"bandwidth": 1_000 * (1 + i % 2)}),
            attributes={"arch": "arm" if i == 4 else "x86"},
        )
        for i, machine in enumerate(plain.machines)
    )
    return structs.replace(plain, machines=machines)


def elastic(count: int) -> SimulatedJob:
    return job("elastic", count, seconds=4, submit=0.9)


def eventful_jobs() -> list[SimulatedJob]:
    """One job of each sort, and enough of the usual ones for a full cell."""
    apart = parse_constraint("w -> {w, 0, 0} in machine hard")
    near = parse_constraint("cache -> {w, 1, inf} in rack")
    large, small = (
        group_with_truth(count, Resources(cpu, GIB), (seconds * SECOND,), estimate=seconds * SECOND)
        for count, cpu, seconds in ((2, 3_000, 4), (3, 500, 1))
    )
    random = Random(5)
    usual = [
        job(
            f"j{i}",
            1 + random.below(3),
            cpu=1_000 * (1 + random.below(2)),
            seconds=1 + random.below(5),
            submit=0.3 * i,
            precedence=random.below(3),
            owner=("ann", "bob")[i % 2],
        )
        for i in range(8)
    ]
    web = {"seconds": None, "kind": "service", "cpu": 500}
    return [
        *usual,
        job("web", 2, tags=("w",), constraints=(apart,), submit=0.1, **web),
        job("cache", 2, tags=("cache",), constraints=(near,), submit=1.5, **web),
        job("picky", 3, requires={"arch": "arm"}, seconds=3, submit=0.4),
        job("gang", 4, cpu=2_500, gang=True, seconds=2, submit=0.6),
        simulated_job("mixed", large, small, submit=int(0.8 * SECOND), precedence=1),
        shared_job("shared", 2, (20, 6), (2, 1), submit=1),
        job("hasty", 1, cpu=4_000, seconds=1, submit=1.2, precedence=9),
        elastic(2),
        job("victim", 5, seconds=9, submit=1.4),
        job("giant", 1, cpu=64_000, submit=0.5),
    ]


def disturb(world: conformance.World) -> None:
    """The user cancels a task and later its job, and makes a job larger, then smaller."""
    host = world.host

    def cancel(indices: list[int] | None) -> None:
        number = host.jobs.names.index("victim")
        host.cancel(number, None if indices is None else task_numbers(number, indices))

    def resize(count: int) -> None:
        number = host.jobs.names.index("elastic")
        before = host.jobs.job(number)
        world.machines.add(number, elastic(count))
        group = structs.replace(before.groups[0], count=count)
        host.scale(number, structs.replace(before, groups=(group,)))

    world.inject(2 * SECOND, lambda: cancel([1]))
    world.inject(4 * SECOND, lambda: cancel(None))
    world.inject(int(2.5 * SECOND), lambda: resize(6))
    world.inject(5 * SECOND, lambda: resize(2))


@pytest.mark.parametrize("name", EVENTFUL)
def test_eventful_runs_are_pinned_with_the_reasons_for_waiting(
    name: str, request: pytest.FixtureRequest
) -> None:
    engine, settings = EVENTFUL[name]
    is_alone = ENGINES[engine].capabilities.alone
    spec = scenario(
        engine,
        eventful_jobs(),
        settings=settings,
        replicas=1 if is_alone else 2,
        cell=eventful_cell(),
        machines=MachineModel(limit=2, long_above=3 * SECOND, heartbeat=SECOND),
        horizon=14 * SECOND,
        faults=(
            MachineCrash(at=3 * SECOND, machine="m4", down=2 * SECOND),
            MachineDrain(at=SECOND, machine="m2", lasts=4 * SECOND),
            MachineResize(at=6 * SECOND, machine="m0", capacity=Resources(1_000, 4 * GIB)),
            SchedulerCrash(at=7 * SECOND, scheduler="s" if is_alone else "s-1", down=SECOND),
        ),
    )
    run = conformance.SCRIPTED(ENGINES[engine], spec, script=disturb)
    update = request.config.getoption("--update-golden")
    text = readable(JournalFile(run.log), reasons=True)
    require_golden(f"eventful/{name.replace('+', '-plus')}", text, update=update)


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
    assert {engine for engine, _ in EVENTFUL.values()} == set(ENGINES)
    kept = {path.stem for path in (GOLDEN / "eventful").glob("*.txt")}
    assert kept == {name.replace("+", "-plus") for name in EVENTFUL}


def test_another_decision_is_shown_as_a_difference(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("golden_log.GOLDEN", tmp_path)
    require_golden("one", "first\nsecond\n", update=True)
    with pytest.raises(pytest.fail.Exception, match=r"(?s)--update-golden.*-second\n\+other"):
        require_golden("one", "first\nother\n", update=False)
