"""Who gets which job: by kind, by hash of the job, or both; and when a job is given up."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from argosy.engines.registry import ENGINES
from argosy.host.records import (
    AbandonedRecord,
    AttemptRecord,
    LostRecord,
    PlacedRecord,
    RefusedRecord,
    SubmittedRecord,
)
from argosy.model.resources import Resources
from argosy.model.scenario import FleetEntry, SchedulerLimits, Takes
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import GIB, SECOND, cell, job, scenario
from argosy.testing.conformance import ConformanceRun


def entry(name: str, *kinds: str, **fields: Any) -> FleetEntry:
    return FleetEntry(name=name, engine="omega", takes=Takes(kinds=kinds), **fields)


def mixed(count: int = 120) -> list[SimulatedJob]:
    return [
        job(
            f"j{i}", 1, cpu=10, memory=1, kind=("batch", "service", "other")[i % 3], submit=i * 0.01
        )
        for i in range(count)
    ]


def routes(jobs: list[SimulatedJob], *fleet: FleetEntry, **fields: Any) -> dict[str, str]:
    """The scheduler of each job."""
    result = ConformanceRun(ENGINES["omega"], scenario("omega", jobs, fleet=fleet, **fields))
    return {x.job.id: x.scheduler for x in result.of(SubmittedRecord)}


def test_work_is_split_by_kind() -> None:
    jobs = mixed()
    found = routes(jobs, entry("b", "batch"), entry("rest", "service", "other"))
    assert all(found[j.id] == ("b" if j.kind == "batch" else "rest") for j in jobs)


def test_work_is_split_by_a_hash_of_the_job() -> None:
    """It depends on nothing but the job, and is about even."""
    jobs = mixed()
    found = routes(jobs, entry("s", replicas=3))
    fewer = routes(jobs[::2], entry("s", replicas=3), seed=99)
    assert all(found[name] == scheduler for name, scheduler in fewer.items())
    assert min(Counter(found.values()).values()) > 120 / 3 / 2


def test_work_is_split_by_kind_and_then_by_hash() -> None:
    jobs = mixed()
    found = routes(jobs, entry("b", "batch", replicas=3), entry("rest", "service", "other"))
    of_batch = {found[j.id] for j in jobs if j.kind == "batch"}
    assert of_batch == {"b-0", "b-1", "b-2"}
    assert {found[j.id] for j in jobs if j.kind != "batch"} == {"rest"}


def test_entries_that_take_the_same_kind_share_it() -> None:
    found = routes(mixed(), entry("a"), entry("b"))
    assert set(found.values()) == {"a", "b"}


def test_work_can_be_dealt_out_in_turn_or_at_random() -> None:
    jobs = [job(f"j{i}", 1, cpu=10, memory=1, submit=i * 0.01) for i in range(90)]
    in_turn = routes(jobs, entry("s", replicas=3, split="round-robin"))
    assert Counter(in_turn.values()) == {"s-0": 30, "s-1": 30, "s-2": 30}
    by_chance = [
        routes(jobs, entry("s", replicas=3, split="random"), seed=seed) for seed in (1, 1, 2)
    ]
    assert by_chance[0] == by_chance[1] != by_chance[2]


def test_jobs_of_one_owner_can_go_to_one_scheduler() -> None:
    jobs = [
        job(f"j{i}", 1, cpu=10, memory=1, submit=i * 0.01, owner=f"o{i % 8}") for i in range(80)
    ]
    found = routes(jobs, entry("s", replicas=3, split="owner"))
    by_owner = [{found[f"j{i}"] for i in range(owner, 80, 8)} for owner in range(8)]
    assert {len(names) for names in by_owner} == {1}
    assert set.union(*by_owner) == {"s-0", "s-1", "s-2"}


@pytest.mark.parametrize("engine", ["omega", "monolithic", "partitioned", "mesos", "mapreduce"])
def test_a_job_is_given_up_after_a_thousand_attempts(engine: str) -> None:
    settings: dict[str, Any] = {"t_job": 1_000, "t_task": 0}
    settings["refuse" if engine == "mesos" else "backoff"] = 0
    wide = job("wide", 3, cpu=4_000, seconds=None)
    spec = scenario(
        engine, [wide], cell=cell(2), replicas=1, settings=settings, horizon=60 * SECOND
    )
    result = ConformanceRun(ENGINES[engine], spec)
    assert len(result.of(AttemptRecord)) == 1_000
    (given_up,) = result.of(AbandonedRecord)
    # What was placed of it stays.
    assert (len(given_up.indices), result.world.host.cell.claims()) == (1, 2)


def test_a_gang_pushes_out_what_is_below_it_once_all_of_it_fits() -> None:
    """And hoards nothing before: others use the room in the meantime."""
    jobs = [
        job("high", 1, cpu=4_000, seconds=10, precedence=9),
        job("low", 3, cpu=4_000, seconds=60, submit=1),
        job("gang", 4, cpu=4_000, seconds=5, precedence=5, gang=True, submit=2),
    ]
    settings = {"t_job": 10_000, "t_task": 0, "preempt": True, "backoff": 100_000}
    spec = scenario("omega", jobs, cell=cell(4), replicas=1, settings=settings)
    result = ConformanceRun(ENGINES["omega"], spec)
    result.require_all_finished()
    (placed,) = result.of(PlacedRecord, "gang")
    lost = result.of(LostRecord)
    assert placed.at >= 10 * SECOND
    assert [(x.job, x.why, x.at) for x in lost] == [("low", "preempted", placed.at)]


def test_a_job_above_its_schedulers_precedence_limit_waits_and_is_explained() -> None:
    limited = entry("s", limits=SchedulerLimits(precedence=3, resources=Resources(0, 64 * GIB)))
    jobs = [job("modest", 1, precedence=3), job("proud", 1, precedence=4)]
    spec = scenario("omega", jobs, fleet=(limited,), horizon=20 * SECOND)
    result = ConformanceRun(ENGINES["omega"], spec)
    refused = result.of(RefusedRecord)
    assert {x.job for x in refused} == {"proud"}
    assert refused[0].whys == [16]
    # It waits longer each time instead of wearing itself out.
    assert len(refused) < 7
