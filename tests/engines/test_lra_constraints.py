"""Constraints hold for every kind of job that engines with constraints place, whenever it comes."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.engines.registry import ENGINES
from argosy.host.records import ExplainedRecord, LostRecord, PlacedRecord
from argosy.model.constraints import Constraint
from argosy.model.constraints.meaning import Container, Meaning
from argosy.model.constraints.parts import container_tags, of_job
from argosy.model.constraints.text import parse_constraint
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, ConstantLatency, Network
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.testing.builders import GIB, SECOND, job, machines, scenario
from argosy.testing.conformance import RUNNING, ConformanceRun

AWARE = ["medea", "jkube", "jkube++", "kube-modern", "ilp-all"]
APART = "web -> {web, 0, 0} in machine hard"


def texts(*constraints: str) -> tuple[Constraint, ...]:
    return tuple(map(parse_constraint, constraints))


def tasks(name: str, count: int, *constraints: str, **fields: Any) -> SimulatedJob:
    fields = {"seconds": None, "cpu": 100, **fields}
    return job(name, count, constraints=texts(*constraints), **fields)


def services(name: str, count: int, *constraints: str, **fields: Any) -> SimulatedJob:
    return tasks(name, count, *constraints, kind="service", **fields)


def run(
    engine: str,
    jobs: list[SimulatedJob],
    count: int = 4,
    operator: tuple[str, ...] = (),
    settings: dict[str, Any] | None = None,
    **fields: Any,
) -> ConformanceRun:
    where = CellSpec(machines=machines(count), constraints=texts(*operator))
    fields = {"horizon": 120 * SECOND, "cell": where, **fields}
    spec = scenario(engine, jobs, replicas=1, settings=settings or {}, **fields)
    return ConformanceRun(ENGINES[engine], spec)


def homes(trial: ConformanceRun, name: str) -> dict[int, int]:
    """The machine of each placed task of a job, moved ones where they are now."""
    found: dict[int, int] = {}
    for line in trial.of(PlacedRecord, name):
        found.update(zip(line.indices, line.machines, strict=True))
    return found


def violating(trial: ConformanceRun, jobs: list[SimulatedJob], operator: tuple[str, ...]) -> int:
    """How many containers break something at the end, by the reference."""
    assert not trial.of(LostRecord)
    placed = [
        Container(frozenset(container_tags(made.job, made.job.groups[0])), f"m{machine}")
        for made in jobs
        for machine in homes(trial, made.id).values()
    ]
    constraints = [*texts(*operator), *(c for j in jobs for c in of_job(j.id, j.job.constraints))]
    return Meaning(machines(8)).judge(constraints, placed).containers


@pytest.mark.parametrize("engine", AWARE)
@pytest.mark.parametrize("count", [4, 8])
def test_the_operators_hard_constraints_bind_tasks(engine: str, count: int) -> None:
    jobs = [tasks("a", 3, tags=("web",)), tasks("b", 3, tags=("web",), submit=1)]
    trial = run(engine, jobs, count, (APART,))
    assert not violating(trial, jobs, (APART,))
    # All find a place, or tasks fill the cell one by one and applications stay out as a whole.
    whole = 3 if engine == "ilp-all" else 4
    assert trial.counts[RUNNING] == (6 if count == 8 else whole)


@pytest.mark.parametrize("engine", AWARE)
def test_hard_constraints_of_running_applications_bind_tasks(engine: str) -> None:
    apart = "svc -> {bt, 0, 0} in machine hard"
    jobs = [services("svc", 3, apart, tags=("svc",)), tasks("bt", 5, tags=("bt",), submit=30)]
    trial = run(engine, jobs)
    assert set(homes(trial, "svc").values()).isdisjoint(homes(trial, "bt").values())
    assert trial.counts[RUNNING] == 8


@pytest.mark.parametrize(("gang", "running"), [(True, 0), (False, 4)])
def test_only_a_gang_of_tasks_under_constraints_is_placed_as_a_whole_or_not(
    gang: bool, running: int
) -> None:
    apart = "bt -> {bt, 0, 0} in machine hard"
    trial = run("medea", [tasks("bt", 6, apart, tags=("bt",), gang=gang)])
    assert trial.counts[RUNNING] == running


def test_tasks_without_room_under_the_constraints_of_others_are_told_whose() -> None:
    jobs = [services("svc", 4, "svc -> {bt, 0, 0} in machine hard", tags=("svc",), cpu=3_000)]
    jobs.append(tasks("bt", 1, tags=("bt",), submit=30))
    trial = run("medea", jobs)
    told = trial.of(ExplainedRecord, "bt")
    assert "'svc -> {bt, 0, 0} in machine hard', of svc" in told[0].explanation.remedy


@pytest.mark.parametrize("tag", ["kind:batch", "appID:first", "owner:ann"])
@pytest.mark.parametrize("strength", ["", " hard"])
def test_tasks_carry_the_tags_of_their_job(tag: str, strength: str) -> None:
    near = f"svc -> {{{tag}, 1, inf}} in machine{strength}"
    jobs = [tasks("first", 1, owner="ann", cpu=1_000)]
    jobs.append(services("svc", 2, near, tags=("svc",), submit=12, owner="bob"))
    trial = run("medea", jobs)
    assert set(homes(trial, "svc").values()) == set(homes(trial, "first").values())


@pytest.mark.parametrize("engine", AWARE)
@pytest.mark.parametrize("kind", ["service", "batch"])
def test_a_constraint_names_one_container_of_a_deployed_group(engine: str, kind: str) -> None:
    near = "appID:self -> {containerID:first/2, 1, inf} in machine hard"
    jobs = [services("first", 4, "first -> {first, 0, 0} in machine hard", tags=("first",))]
    jobs.append(tasks("svc", 2, near, kind=kind, submit=12))
    trial = run(engine, jobs)
    assert set(homes(trial, "svc").values()) == {homes(trial, "first")[2]}
    assert len(homes(trial, "svc")) == 2


@pytest.mark.parametrize(
    ("engine", "kind"), [("medea", "service"), ("ilp-all", "service"), ("ilp-all", "batch")]
)
def test_a_constraint_binds_one_container_of_a_group(engine: str, kind: str) -> None:
    alone = "containerID:web/1 -> {web, 0, 0} in machine hard"
    jobs = [tasks("web", 3, alone, tags=("web",), kind=kind, cpu=1_500)]
    trial = run(engine, jobs, 2)
    found = homes(trial, "web")
    assert found[0] == found[2] != found[1]


def test_a_container_has_its_name_for_as_long_as_a_constraint_names_it() -> None:
    jobs = [
        services("db", 3, "db -> {db, 0, 0} in machine hard", tags=("db",)),
        services("far", 1, "far -> {containerID:db/1, 0, 0} in machine hard", tags=("far",), submit=1),
        tasks("short", 2, "short -> {containerID:db/2, 1, inf} in machine hard", tags=("short",),
              submit=12, seconds=20),
        services("near", 1, "near -> {containerID:db/1, 1, inf} in machine hard", tags=("near",),
                 submit=40),
    ]  # fmt: skip
    trial = run("medea", jobs, 3)
    db = homes(trial, "db")
    assert homes(trial, "far")[0] != db[1] == homes(trial, "near")[0]
    assert set(homes(trial, "short").values()) == {db[2]}


@pytest.mark.parametrize("conflict", ["resubmit", "reserve", "relax", "kill"])
def test_named_containers_keep_hard_constraints_that_come_while_they_are_decided(
    conflict: str,
) -> None:
    jobs = [
        services("db", 4, tags=("db",)),
        services("cache", 4, tags=("cache",)),
        services("late", 1, "containerID:db/3 -> {containerID:cache/3, 0, 0} in machine hard",
                 cpu=9_000, submit=10.5),
    ]  # fmt: skip
    trial = run("medea", jobs, 2, settings={"conflict": conflict, "t_lra": SECOND})
    assert homes(trial, "db")[3] != homes(trial, "cache")[3]
    assert len(homes(trial, "db")) == len(homes(trial, "cache")) == 4


def test_an_application_keeps_a_constraint_that_comes_while_it_is_decided() -> None:
    jobs = [
        services("db", 4, tags=("db",)),
        services("cache", 4, tags=("cache",)),
        # Comes when the others are being decided, and never finds a place itself.
        services("late", 1, "db -> {cache, 0, 0} in machine hard", cpu=9_000, submit=10.5),
    ]
    for conflict in ("resubmit", "reserve"):
        trial = run("medea", jobs, 2, settings={"conflict": conflict, "t_lra": SECOND})
        assert set(homes(trial, "db").values()).isdisjoint(homes(trial, "cache").values())
        assert len(homes(trial, "db")) == 4


@pytest.mark.parametrize("delay", [0, 500_000])
def test_tasks_and_applications_decided_at_the_same_time_keep_constraints(delay: int) -> None:
    apart = "web -> {bt, 0, 0} in machine hard"
    network = Network(latency=ConstantLatency(delay=delay))
    for late in range(9, 13):
        jobs = [services("web", 2, apart, tags=("web",))]
        jobs += [tasks(f"bt{i}", 2, tags=("bt",), submit=late + i / 5) for i in range(5)]
        settings = {"t_lra": SECOND, "t_job": SECOND // 2}
        trial = run("medea", jobs, 2, settings=settings, network=network)
        assert not violating(trial, jobs, ())
        assert trial.counts[RUNNING] >= 2


def test_a_container_that_could_move_but_stays_is_reckoned_with() -> None:
    apart = "db -> {cache, 0, 0} in machine hard"
    jobs = [
        services("cache", 1, tags=("cache",), cpu=1_000),
        tasks("full", 1, cpu=4_000, submit=1),
        # It breaks its constraint where it must be, and could be moved if there were room.
        services("db", 1, tags=("db",), cpu=1_000, submit=2),
        services("rule", 1, apart, tags=("rule",), cpu=1_000, submit=20),
        services("more", 1, tags=("cache",), cpu=1_000, submit=40),
    ]
    trial = run("medea", jobs, 2, settings={"migrate": 3})
    assert set(homes(trial, "more").values()).isdisjoint(homes(trial, "db").values())
    assert "more" not in {line.job for line in trial.of(PlacedRecord)}


@pytest.mark.parametrize("engine", AWARE)
def test_one_of_a_jobs_groups_may_be_concerned(engine: str) -> None:
    room = Resources(100, GIB)
    groups = [group_with_truth(2, room, tags=("other",)), group_with_truth(4, room, tags=("web",))]
    trial = run(engine, [simulated_job("mixed", *groups)], 4, (APART,))
    found = homes(trial, "mixed")
    assert len(found) == 6
    assert len({found[index] for index in range(2, 6)}) == 4


def test_jobs_that_no_constraint_concerns_are_placed_as_if_there_were_none() -> None:
    plain = [tasks(f"t{i}", 5, cpu=500, submit=i, seconds=20) for i in range(6)]
    other = services("web", 1, "db -> {cache, 0, 0} in machine hard", tags=("web",), cpu=1)
    first, second = (
        [(line.at, line.machines) for i in range(6) for line in trial.of(PlacedRecord, f"t{i}")]
        for trial in (run("medea", plain), run("medea", [*plain, other]))
    )
    assert first == second
