"""Mesos: offers, what is held back while a framework decides, fairness, hoarding."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from msgspec import structs

from argosy.engines.mesos.framework import Framework, FrameworkSettings, HoardedJob
from argosy.engines.registry import ENGINES
from argosy.host.records import AbandonedRecord, AttemptRecord, ExplainedRecord, PlacedRecord
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.resources import Resources
from argosy.model.scenario import (
    CellSpec,
    ConstantLatency,
    MachineCrash,
    Network,
    SchedulerLimits,
)
from argosy.model.tasks import first_tasks
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import GIB, SECOND, cell, job, machines, scenario
from argosy.testing.conformance import ConformanceRun

SLOW_SERVICE = {"frameworks": {"service": {"t_job": 20 * SECOND, "t_task": 0}}}


def trial(jobs: list[SimulatedJob], **fields: Any) -> ConformanceRun:
    fields.setdefault("network", Network(latency=ConstantLatency(delay=0)))
    return ConformanceRun(ENGINES["mesos"], scenario("mesos", jobs, replicas=1, **fields))


def placed_at(result: ConformanceRun) -> dict[str, list[int]]:
    placed: dict[str, list[int]] = {}
    for line in result.of(PlacedRecord):
        placed.setdefault(line.job, []).append(line.at)
    return placed


def test_an_offer_takes_the_allocator_a_millisecond() -> None:
    result = trial([job("a", 2)], settings={"t_job": 0, "t_task": 0})
    assert placed_at(result) == {"a": [1_000]}


def test_a_slow_framework_locks_everybody_else_out() -> None:
    jobs = [job("slow", 1, kind="service"), job("quick", 1, submit=1)]
    at = placed_at(trial(jobs, settings=SLOW_SERVICE))
    assert at["slow"] == [20 * SECOND + 1_000]
    # Everything is on offer to the service framework, though it wants one core.
    assert at["quick"][0] > 20 * SECOND


def test_fair_share_offers_leave_something_for_others() -> None:
    jobs = [job("slow", 1, kind="service"), job("first", 1), job("quick", 1, submit=1)]
    at = placed_at(trial(jobs, settings={**SLOW_SERVICE, "offers": "fair-share"}))
    assert at["quick"][0] < 2 * SECOND


def test_resources_freed_during_a_decision_can_be_offered_to_others() -> None:
    jobs = [
        job("ends", 1, seconds=5),
        job("slow", 1, kind="service", submit=1),
        job("quick", 1, submit=2),
    ]
    at = placed_at(trial(jobs, settings=SLOW_SERVICE))
    assert 5 * SECOND < at["quick"][0] < 20 * SECOND


def test_a_job_is_abandoned_after_too_many_offers_that_did_not_suffice() -> None:
    jobs = [
        job("ends", 1, seconds=2, cpu=500),
        job("slow", 1, kind="service", submit=1),
        job("large", 8, submit=1.5),
    ]
    result = trial(jobs, settings={**SLOW_SERVICE, "attempts": 5, "refuse": 0})
    assert [line.job for line in result.of(AbandonedRecord)] == ["large"]


@pytest.mark.parametrize("retry", ["last", "first"])
def test_a_job_that_fails_waits_behind_others_or_holds_them_up(retry: str) -> None:
    jobs = [job("giant", 1, cpu=64_000), job("small", 1, submit=0.05)]
    result = trial(jobs, settings={"retry": retry, "attempts": 5})
    at = placed_at(result)["small"][0]
    gone = next(line.at for line in result.of(AbandonedRecord))
    assert (at > gone) == (retry == "first")


def test_the_framework_furthest_below_its_share_is_offered_first() -> None:
    jobs = [
        job("hog", 8, seconds=60, cpu=3_000),
        job("more", 1, submit=5, cpu=500),
        job("needy", 1, submit=5, kind="service", cpu=500),
    ]
    at = placed_at(trial(jobs, settings={"t_job": 0, "t_task": 0}))
    assert at["needy"] < at["more"]


def test_a_gang_hoards_until_it_is_complete() -> None:
    jobs = [
        job("first", 4, cpu=4_000, seconds=10),
        job("gang", 8, cpu=4_000, seconds=5, submit=1, gang=True),
        job("small", 4, cpu=4_000, seconds=1, submit=2),
    ]
    result = trial(jobs, settings={"t_job": 100_000, "t_task": 0})
    result.require_all_finished()
    at = placed_at(result)
    assert len(at["gang"]) == 1
    assert at["gang"][0] > 10 * SECOND
    # The four machines that stood idle were hoarded, so the small job had to wait as well.
    assert at["small"][0] > 10 * SECOND


def test_busyness_is_reported_by_framework() -> None:
    jobs = [job("slow", 1, kind="service", seconds=60), job("quick", 1, seconds=60, cpu=100)]
    result = trial(jobs, settings=SLOW_SERVICE, cell=cell(2), horizon=40 * SECOND)
    lanes = result.world.host.schedulers[0].lanes
    assert lanes["service"].total(40 * SECOND) == 20 * SECOND
    assert lanes["batch"].total(40 * SECOND) < SECOND


def disks(*kinds: str) -> CellSpec:
    """A machine for each kind of disk."""
    built = machines(len(kinds))
    named = [
        structs.replace(m, attributes={"disk": kind}, joins={})
        for m, kind in zip(built, kinds, strict=True)
    ]
    return CellSpec(machines=tuple(named))


def machines_of(result: ConformanceRun, name: str) -> set[int]:
    return {machine for line in result.of(PlacedRecord, name) for machine in line.machines}


@pytest.mark.parametrize(
    "filters",
    [{"only": {"disk": "ssd"}}, {"avoid": {"disk": "hdd", "nothing": "has this"}}],
    ids=str,
)
def test_a_framework_is_offered_only_what_passes_its_filter(filters: dict[str, Any]) -> None:
    jobs = [job("service", 8, kind="service", cpu=1_000), job("batch", 8, cpu=1_000)]
    settings = {"frameworks": {"service": filters}}
    result = trial(jobs, settings=settings, cell=disks("hdd", "ssd", "hdd", "ssd", "hdd"))
    result.require_all_finished()
    assert machines_of(result, "service") == {1, 3}
    assert machines_of(result, "batch") & {0, 2, 4}


def test_a_slow_framework_locks_up_only_what_passes_its_filter() -> None:
    jobs = [job("slow", 1, kind="service"), job("quick", 1, submit=1)]
    framework = {**SLOW_SERVICE["frameworks"]["service"], "only": {"disk": "ssd"}}
    settings = {"frameworks": {"service": framework}}
    at = placed_at(trial(jobs, settings=settings, cell=disks("hdd", "ssd")))
    assert at["quick"][0] < 2 * SECOND < at["slow"][0]


def attempts_of(result: ConformanceRun, name: str) -> list[int]:
    return [x.at for x in result.of(AttemptRecord, name)]


@pytest.mark.parametrize("own", [False, True])
def test_what_was_declined_is_not_offered_again_for_a_while(own: bool) -> None:
    """A job that fits nowhere; each refusal lasts five seconds, unless it is said otherwise."""
    quick: dict[str, Any] = {"t_job": 100_000, "t_task": 0}
    refusing = {"frameworks": {"batch": {**quick, "refuse": 5 * SECOND}}}
    settings = refusing if own else quick
    giant = [job("giant", 1, cpu=9_000)]
    at = attempts_of(trial(giant, settings=settings, horizon=21 * SECOND), "giant")
    assert all(later - earlier >= 5 * SECOND for earlier, later in pairwise(at))
    assert len(at) == 5
    at_once = trial(giant, settings={**quick, "refuse": 0}, horizon=21 * SECOND)
    assert len(attempts_of(at_once, "giant")) > 200


def test_a_machine_that_has_more_than_was_declined_is_offered_again() -> None:
    jobs = [
        job("first", 2, cpu=3_000, seconds=3),
        job("next", 2, cpu=3_000, seconds=3, submit=1),
    ]
    settings = {"t_job": 100_000, "t_task": 0, "refuse": 600 * SECOND}
    result = trial(jobs, settings=settings, cell=cell(2))
    result.require_all_finished()
    assert 3 * SECOND < placed_at(result)["next"][0] < 6 * SECOND
    assert len(attempts_of(result, "next")) == 2


def test_a_machine_that_has_more_of_one_resource_than_was_declined_is_offered_again() -> None:
    jobs = [
        job("first", 1, cpu=3_000, memory=0, seconds=3),
        job("next", 1, cpu=3_000, seconds=3, submit=1),
    ]
    settings = {"t_job": 100_000, "t_task": 0, "refuse": 600 * SECOND}
    result = trial(jobs, settings=settings, cell=cell(1))
    assert 3 * SECOND < placed_at(result)["next"][0] < 6 * SECOND


def test_a_new_job_revives_what_its_framework_declined() -> None:
    jobs = [job("giant", 1, cpu=9_000), job("small", 1, submit=10)]
    settings = {"t_job": 100_000, "t_task": 0, "refuse": 600 * SECOND, "attempts": 2}
    at = placed_at(trial(jobs, settings=settings, horizon=30 * SECOND))
    assert at["small"][0] < 12 * SECOND


def test_each_framework_is_held_to_the_limits_of_its_entry() -> None:
    jobs = [job("a", 8), job("b", 8, kind="service")]
    spec = scenario("mesos", jobs, replicas=1, horizon=5 * SECOND)
    entry = structs.replace(
        spec.fleet[0], limits=SchedulerLimits(resources=Resources(2_000, 64 * GIB))
    )
    result = ConformanceRun(ENGINES["mesos"], structs.replace(spec, fleet=(entry,)))
    held = {name: usage.resources["cpu"] for name, usage in result.world.host.cell.usage().items()}
    assert (held["s:batch"], held["s:service"]) == (2_000, 2_000)


def starved(*giants: SimulatedJob, **settings: Any) -> ConformanceRun:
    """A small job of a framework that holds something, beside jobs of one that holds nothing."""
    jobs = [
        job("up", 1, kind="service", seconds=None),
        *giants,
        job("late", 1, kind="service", seconds=1, submit=10),
    ]
    return trial(jobs, settings=settings, cell=cell(4), horizon=60 * SECOND)


@pytest.mark.parametrize("retry", ["last", "first"])
def test_a_job_that_fits_nowhere_does_not_keep_offers_from_other_frameworks(retry: str) -> None:
    giants = [job(f"giant{i}", 1, cpu=9_000, submit=5 + i) for i in range(2)]
    assert placed_at(starved(*giants, retry=retry))["late"][0] < 16 * SECOND


def test_a_framework_at_its_limit_declines_what_it_is_offered() -> None:
    jobs = [job("runs", 1, seconds=None), job("more", 1, submit=5)]
    spec = scenario("mesos", jobs, replicas=1, horizon=30 * SECOND)
    entry = structs.replace(spec.fleet[0], limits=SchedulerLimits(jobs=1))
    result = ConformanceRun(ENGINES["mesos"], structs.replace(spec, fleet=(entry,)))
    attempts = attempts_of(result, "more")
    assert len(attempts) > 2
    assert all(later - earlier >= 5 * SECOND for earlier, later in pairwise(attempts))


def waits(result: ConformanceRun, name: str) -> list[Explanation]:
    return [line.explanation for line in result.of(ExplainedRecord, name)]


def test_a_job_is_told_that_everything_is_on_offer_to_others() -> None:
    result = starved(job("giant", 1, cpu=9_000, submit=5), refuse=0)
    assert "late" not in placed_at(result)
    (told,) = waits(result, "late")
    assert told.refused is not None
    assert told.refused.why is Why.NOT_OFFERED
    assert told.ruled_out == {"offered": 4}
    assert told.remedy == "wait until others return their offers, or set offers = 'fair-share'"


def test_a_job_is_told_which_machines_its_framework_declined_or_does_not_want() -> None:
    jobs = [job("giant", 1, cpu=9_000), job("small", 1, submit=1, cpu=100)]
    framework = {"only": {"disk": "ssd"}, "refuse": 30 * SECOND}
    settings = {"frameworks": {"batch": framework}, "retry": "first"}
    result = trial(jobs, settings=settings, cell=disks("hdd", "ssd"), horizon=20 * SECOND)
    # The new job is first offered what was declined; the one that fits nowhere takes the offer again.
    told = waits(result, "small")[-1]
    assert told.ruled_out == {"declined": 1, "not wanted": 1}
    assert told.remedy == "wait: declined machines are offered again after 30 s"


@pytest.mark.parametrize("refuse", [0, 5 * SECOND])
def test_jobs_behind_one_that_is_tried_first_again_are_told_which(refuse: int) -> None:
    jobs = [job("giant", 1, cpu=9_000), *(job(f"small{i}", 2, submit=1 + i) for i in range(2))]
    settings = {"refuse": refuse, "retry": "first"}
    result = trial(jobs, settings=settings, horizon=20 * SECOND)
    assert not placed_at(result)
    for name in ("small0", "small1"):
        (told,) = (
            told.refused
            for told in waits(result, name)
            if told.refused is not None and told.refused.why is Why.BEHIND
        )
        assert told.task == 0


def test_a_job_is_told_if_no_machine_passes_the_filters_of_its_framework() -> None:
    settings = {"frameworks": {"batch": {"only": {"disk": "tape"}}}}
    result = trial([job("a", 1)], settings=settings, cell=disks("hdd"), horizon=20 * SECOND)
    (told,) = waits(result, "a")
    assert told.ruled_out == {"not wanted": 1}
    assert told.remedy.startswith("change the filters of the framework batch")


def test_offers_go_on_after_a_time_without_machines() -> None:
    only = scenario(
        "mesos",
        [job("a", 1, seconds=1), job("b", 1, submit=2, seconds=1)],
        cell=CellSpec(machines=machines(1)),
        faults=(MachineCrash(at=1_500_000, machine="m0", down=2 * SECOND),),
        replicas=1,
    )
    result = ConformanceRun(ENGINES["mesos"], only)
    assert [line.job for line in result.of(PlacedRecord)] == ["a", "b"]


def test_only_jobs_that_were_never_tried_are_told_who_goes_first() -> None:
    framework = Framework("batch", FrameworkSettings(), 0, failed_first=True)
    first, tried, fresh, told = (
        HoardedJob(job(name, 1).job, number, first_tasks(number, 1))
        for number, name in enumerate(("first", "tried", "fresh", "told"))
    )
    tried.attempts = 1
    told.behind = first
    framework.queue.extend((tried, fresh, told))
    (line,) = framework.put_back(first)
    assert line.tasks.tolist() == fresh.tasks.tolist()
    assert line.explanation.refused == Refusal(Why.BEHIND, task=int(first.tasks[0]))
    assert [*framework.queue] == [first, tried, fresh, told]
    assert framework.put_back(framework.queue.popleft()) == []
