"""Priorities, queues and locality of Medea's task scheduler, and what applications owe them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec import structs

from argosy.engines.families.lra.settings import LraSettings, QueueCapacity, TaskQueueSettings
from argosy.engines.registry import ENGINES
from argosy.host.records import (
    AttemptRecord,
    ExplainedRecord,
    LostRecord,
    PlacedRecord,
    RefusedRecord,
)
from argosy.model.constraints.text import parse_constraint
from argosy.model.explanations import Why
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import GIB, SECOND, cell, job, scenario
from argosy.testing.conformance import RUNNING, ConformanceRun

ALGORITHMS = ["ilp", "tag-popularity", "node-candidates", "serial", "node-candidates-first-fit"]
FAST = {"t_job": 1_000, "t_task": 0, "backoff": 0}


def run(
    engine: str, jobs: list[SimulatedJob], settings: dict[str, Any] | None = None, **fields: Any
) -> ConformanceRun:
    fields.setdefault("horizon", 120 * SECOND)
    spec = scenario(engine, jobs, replicas=1, settings=settings or {}, **fields)
    return ConformanceRun(ENGINES[engine], spec)


def service(name: str, tasks: int = 1, *constraints: str, **fields: Any) -> SimulatedJob:
    texts = tuple(map(parse_constraint, constraints))
    return job(name, tasks, kind="service", seconds=None, constraints=texts, **fields)


def machines_of(trial: ConformanceRun, name: str) -> list[int]:
    found: dict[int, int] = {}
    for line in trial.of(PlacedRecord, name):
        found.update(zip(line.indices, line.machines, strict=True))
    return [found[index] for index in sorted(found)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_of_applications_that_do_not_all_fit_those_of_higher_precedence_are_placed(
    algorithm: str,
) -> None:
    """One large application of high precedence, or three small ones."""
    jobs = [service(f"low{i}", 2, cpu=4_000) for i in range(3)]
    jobs.append(service("high", 8, cpu=4_000, precedence=3))
    trial = run("medea", jobs, {"algorithm": algorithm})
    assert len(machines_of(trial, "high")) == 8
    assert trial.counts[RUNNING] == 8


def test_tasks_of_higher_precedence_go_first_within_their_queue() -> None:
    jobs = [job(f"j{i}", 1, cpu=100, precedence=i % 3, submit=0.001 * i) for i in range(9)]
    # The first is being decided on when the others come.
    trial = run("medea", jobs, {"t_job": SECOND})
    order = [line.job for line in trial.of(PlacedRecord)]
    assert order == ["j0", "j2", "j5", "j8", "j1", "j4", "j7", "j3", "j6"]


def test_reserving_also_holds_against_tasks_that_are_being_decided() -> None:
    """The task is decided at 9.9 s and comes to the cell when the application is decided."""
    jobs = [service("app", 2, cpu=3_000), job("short", 7, cpu=3_000, seconds=40, submit=9.9)]
    settings = {"t_lra": 2_000_000, "t_job": SECOND, "t_task": 0, "algorithm": "serial"}
    refused = run("medea", jobs, settings).of(RefusedRecord)
    assert {line.job for line in refused} == {"app"}
    trial = run("medea", jobs, {**settings, "conflict": "reserve"})
    assert not trial.of(RefusedRecord)
    assert len(machines_of(trial, "short")) == 7


@pytest.mark.parametrize("precedence", [0, 1])
def test_killing_spares_tasks_of_higher_precedence_only(precedence: int) -> None:
    jobs = [
        service("app", 2, cpu=3_000),
        job("short", 8, cpu=3_000, seconds=40, submit=10.05, precedence=precedence),
    ]
    settings = {"t_lra": 2_000_000, "t_job": 10_000, "t_task": 100, "conflict": "kill"}
    trial = run("medea", jobs, settings)
    assert bool(trial.of(LostRecord, "short")) == (precedence == 0)
    assert (trial.of(PlacedRecord, "app")[0].at < 15 * SECOND) == (precedence == 0)


@pytest.mark.parametrize("engine", ["medea", "jkube"])
def test_containers_move_when_room_appears_without_any_application_waiting(engine: str) -> None:
    apart = "appID:self -> {appID:self, 0, 0} in machine"
    full = [job(f"t{i}", 1, cpu=4_000, seconds=25) for i in range(7)]
    jobs = [service("a", 2, apart, cpu=1_000), *full]
    assert len(set(machines_of(run(engine, jobs), "a"))) == 1
    trial = run("medea", jobs, {"migrate": 4})
    assert len(set(machines_of(trial, "a"))) == 2
    assert trial.of(PlacedRecord, "a")[-1].at < 41 * SECOND


@pytest.mark.parametrize(
    ("routing", "applications"),
    [
        ("kind", {"svc", "both"}),
        ("constraints", {"near", "both"}),
        ("either", {"svc", "near", "both"}),
    ],
)
def test_applications_are_told_by_kind_or_by_use_of_constraints(
    routing: str, applications: set[str]
) -> None:
    apart = "appID:self -> {appID:self, 0, 0} in machine"
    jobs = [
        service("svc"),
        job("near", 1, constraints=(parse_constraint(apart),)),
        service("both", 1, apart),
        job("plain", 1),
    ]
    trial = run("medea", jobs, {"routing": routing})
    waited = {line.job for line in trial.of(PlacedRecord) if line.at > 10 * SECOND}
    assert waited == applications


def test_an_application_gives_way_to_owners_who_have_less_for_so_many_intervals() -> None:
    jobs = [
        job("many", 20, cpu=1_000, seconds=100, owner="rich"),
        service("app", 1, cpu=100, owner="rich", submit=1),
        job("large", 1, cpu=4_000, owner="poor", submit=2),
        job("rest", 12, cpu=1_000, seconds=100, owner="rich", submit=0.5),
    ]
    for delay, at in ((0, 10), (2, 30)):
        trial = run("medea", jobs, {"fair_delay": delay})
        assert trial.of(AttemptRecord, "app")[0].at == at * SECOND
    told = trial.of(ExplainedRecord, "app")
    assert told[0].explanation.refused is not None
    assert told[0].explanation.refused.why is Why.BEHIND


def test_an_application_does_not_give_way_to_owners_who_have_more() -> None:
    jobs = [
        job("many", 20, cpu=1_000, seconds=100, owner="rich"),
        service("app", 1, cpu=100, owner="poor", submit=1),
        job("large", 1, cpu=4_000, owner="rich", submit=2),
    ]
    trial = run("medea", jobs, {"fair_delay": 5})
    assert trial.of(AttemptRecord, "app")[0].at == 10 * SECOND


@pytest.mark.parametrize("engine", ["medea", "yarn"])
def test_queues_of_the_capacity_policy_fill_in_proportion_and_never_beyond_their_limit(
    engine: str,
) -> None:
    """Eight machines of four cores, so 32 tasks; a and b would take all of it."""
    capacities = {"a": {"guaranteed": 0.5, "most": 0.75}, "b": {"guaranteed": 0.25, "most": 0.25}}
    jobs = [
        job(f"{owner}{i}", 5, cpu=1_000, seconds=300, owner=owner, submit=0.001 * i)
        for i in range(8)
        for owner in ("a", "b")
    ]
    jobs.append(job("c", 2, cpu=1_000, seconds=300, owner="c", submit=1))
    settings = {"policy": "capacity", "capacities": capacities, **FAST, "backoff": SECOND}
    for wanted, expected in ((jobs, {"a": 24, "b": 8}), (jobs[:-1:2], {"a": 24})):
        trial = run(engine, wanted, settings)
        held = Counter[str]()
        for line in trial.of(PlacedRecord):
            held[line.job[0]] += len(line.indices)
        assert {owner: held[owner] for owner in expected} == expected
    told = trial.of(ExplainedRecord)[-1].explanation
    assert told.refused is not None
    assert told.refused.why is Why.RESOURCE_LIMIT
    assert "75 % of the cell for the queue 'a'" in told.remedy


def test_what_waited_for_a_queues_limit_goes_on_when_its_tasks_end() -> None:
    capacities = {"a": {"guaranteed": 0.1, "most": 0.25}}
    jobs = [job(f"a{i}", 4, cpu=1_000, seconds=10, owner="a") for i in range(6)]
    trial = run("yarn", jobs, {"policy": "capacity", "capacities": capacities, **FAST})
    assert trial.counts[RUNNING] == 0
    ends = Counter(
        line.at // (10 * SECOND) for line in trial.of(PlacedRecord) for _ in line.indices
    )
    assert ends == {0: 8, 1: 8, 2: 8}


def test_a_queues_limit_holds_for_applications_too() -> None:
    capacities = {"a": {"guaranteed": 0.1, "most": 0.25}}
    jobs = [service(f"s{i}", 4, cpu=1_000, owner="a") for i in range(4)]
    trial = run("medea", jobs, {"policy": "capacity", "capacities": capacities})
    assert trial.counts[RUNNING] == 8
    assert "25 % of the cell" in trial.of(ExplainedRecord, "s3")[0].explanation.remedy


def test_the_fair_policy_shares_a_queue_among_its_jobs() -> None:
    """One job of the owner holds most of the cell and wants the rest when eight others come."""
    jobs = [
        job("fill", 8, cpu=1_000, seconds=20, owner="a"),
        job("old", 40, cpu=1_000, seconds=300, owner="a", submit=0.5),
    ]
    jobs += [job(f"new{i}", 1, cpu=1_000, seconds=300, owner="a", submit=1) for i in range(8)]
    for policy, expected in (("share", False), ("fair", True)):
        trial = run("medea", jobs, {**FAST, "policy": policy, "t_job": 50_000}, horizon=25 * SECOND)
        placed = {line.job for line in trial.of(PlacedRecord)}
        assert (placed == {"fill", "old", *(f"new{i}" for i in range(8))}) is expected


def test_the_fair_policy_goes_by_memory() -> None:
    """One owner's tasks have much memory, the other's many cores."""
    wide = {"cpu": 2_000, "memory": 2 * GIB}
    deep = {"cpu": 500, "memory": 4 * GIB}
    jobs = [
        job(f"{owner}{i}", 1, seconds=20, owner=owner, **size)
        for i in range(20)
        for owner, size in (("a", wide), ("b", deep))
    ]
    for policy, more in (("share", "b"), ("fair", "a")):
        first = [
            line.job[0] for line in run("medea", jobs, {"policy": policy, **FAST}).of(PlacedRecord)
        ]
        assert Counter(first[:12]).most_common(1)[0][0] == more


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"policy": "capacity", "queues": {"a": 2.0}},
            "weights of queues with the policy capacity",
        ),
        ({"capacities": {"a": QueueCapacity(0.5)}}, "capacities of queues with the policy share"),
        (
            {
                "policy": "capacity",
                "capacities": {"a": QueueCapacity(0.8), "b": QueueCapacity(0.3)},
            },
            "queues are guaranteed 110 % of the cell together",
        ),
        (
            {"policy": "capacity", "capacities": {"a": QueueCapacity(0.8, 0.5)}},
            "queue a is guaranteed 0.8, but may hold 0.5",
        ),
    ],
)
@pytest.mark.parametrize("kind", [TaskQueueSettings, LraSettings])
def test_settings_of_queues_that_make_no_sense_are_refused(
    kind: type[TaskQueueSettings], settings: dict[str, Any], problem: str
) -> None:
    found = kind(**settings).queue_mismatch()
    assert found is not None
    assert found.problem == problem


def data_cell() -> Any:
    plain = cell(8)
    machines = tuple(
        structs.replace(each, attributes={"data": "x"}) if at == 5 else each
        for at, each in enumerate(plain.machines)
    )
    return structs.replace(plain, machines=machines)


@pytest.mark.parametrize("engine", ["medea", "yarn"])
def test_tasks_go_to_their_data_then_to_its_rack_then_anywhere(engine: str) -> None:
    jobs = [job("map", 24, cpu=1_000, seconds=300, prefers={"data": "x"})]
    trial = run(engine, jobs, cell=data_cell())
    held = Counter(machines_of(trial, "map"))
    assert held[5] == 4
    assert sum(held[machine] for machine in range(4, 8)) == 16
    assert sum(held.values()) == 24


def test_tasks_wait_for_machines_near_their_data_for_so_many_attempts() -> None:
    jobs = [job("map", 5, cpu=1_000, seconds=5, prefers={"data": "x"})]
    for delay, expected in ((0, {5: 4}), (5, {5: 5})):
        trial = run("medea", jobs, {"locality_delay": delay}, cell=data_cell())
        held = Counter(machines_of(trial, "map"))
        assert (held[5], sum(held.values())) == (expected[5], 5)


def test_yarn_neither_waits_for_an_interval_nor_places_all_or_nothing() -> None:
    jobs = [service("big", 9, "appID:self -> {appID:self, 0, 0} in rack hard", cpu=4_000)]
    trial = run("yarn", jobs)
    placed = trial.of(PlacedRecord, "big")
    assert placed[0].at < SECOND
    assert sum(len(line.indices) for line in placed) == 8


def test_machines_of_yarn_take_one_container_at_a_heartbeat_in_any_order() -> None:
    trial = run("yarn", [service("a", 16, cpu=100)], cell=cell(8))
    machines = machines_of(trial, "a")
    assert Counter(machines) == dict.fromkeys(range(8), 2)
    assert machines[:8] == machines[8:] != sorted(machines[:8])
    (line,) = trial.of(PlacedRecord)
    assert line.explanation is not None
    assert line.explanation.rule == "the machine that reports next"
