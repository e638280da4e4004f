"""Mesos: offers, what is held back while a framework decides, fairness, hoarding."""

from __future__ import annotations

from typing import Any

from argosy.engines.registry import ENGINES
from argosy.model.jobs import Job
from argosy.model.scenario import ConstantLatency, Network
from argosy.testing.builders import SECOND, cell, job, scenario
from argosy.testing.conformance import Trial

SLOW_SERVICE = {"frameworks": {"service": {"t_job": 20 * SECOND, "t_task": 0}}}


def trial(jobs: list[Job], **fields: Any) -> Trial:
    fields.setdefault("network", Network(latency=ConstantLatency(delay=0)))
    return Trial(ENGINES["mesos"], scenario("mesos", jobs, replicas=1, **fields))


def placed_at(result: Trial) -> dict[str, list[int]]:
    placed: dict[str, list[int]] = {}
    for line in result.lines:
        if line["what"] == "placed":
            placed.setdefault(line["job"], []).append(line["at"])
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


def test_what_is_freed_meanwhile_can_be_offered_to_others() -> None:
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
    result = trial(jobs, settings={**SLOW_SERVICE, "attempts": 5})
    assert [line["job"] for line in result.lines if line["what"] == "abandoned"] == ["large"]


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
    assert at["small"][0] > at["gang"][0]


def test_busyness_is_told_by_framework() -> None:
    jobs = [job("slow", 1, kind="service", seconds=60), job("quick", 1, seconds=60, cpu=100)]
    result = trial(jobs, settings=SLOW_SERVICE, cell=cell(2), horizon=40 * SECOND)
    lanes = result.world.schedulers[0].lanes
    assert lanes["service"].total(40 * SECOND) == 20 * SECOND
    assert lanes["batch"].total(40 * SECOND) < SECOND
