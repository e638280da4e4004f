"""How many pods of a malleable job run in parallel."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from argosy.model.resources import Resources
from argosy.worlds.kubernetes.malleable import GrowthSettings, JobProgress, JobScaler

SECOND = 1_000_000
CAPACITY = {"cpu": 20_000, "memory": 0, "pods": 110}


def job(**changes: Any) -> JobProgress:
    """Two of twenty pods of one core run, and each is said to take a minute."""
    usual: dict[str, Any] = {
        "uid": "j",
        "program": "one/j",
        "request": Resources(1_000, 0, {"pods": 1}),
        "asked": 2,
        "wanted": 2,
        "completions": 20,
        "succeeded": 0,
        "running": 2,
        "waiting": 0,
        "fits": 18,
        "in_the_way": 0,
        "estimate": 60 * SECOND,
    }
    return JobProgress(**(usual | changes))


def used(cores: int) -> dict[str, int]:
    return {"cpu": 1_000 * cores, "memory": 0, "pods": cores}


def decide(
    *jobs: JobProgress, cores: int = 2, is_crowded: bool = False, **settings: Any
) -> dict[str, int]:
    scaler = JobScaler(GrowthSettings(**settings))
    return scaler.decide(jobs, used(cores), CAPACITY, 0, is_crowded=is_crowded)


def test_a_job_gets_all_that_is_idle() -> None:
    assert decide(job()) == {"j": 20}


def test_a_job_gets_no_more_pods_than_it_has_completions_left() -> None:
    assert decide(job(completions=12, succeeded=2)) == {"j": 10}


def test_a_global_cap_leaves_the_rest_of_the_cluster_alone() -> None:
    assert decide(job(), policy="global-cap", cap=0.5) == {"j": 10}
    assert decide(job(), cores=11, policy="global-cap", cap=0.5) == {}


def test_a_relative_job_size_is_a_multiple_of_what_was_asked_for() -> None:
    assert decide(job(), policy="relative-job-size", times=3) == {"j": 6}


def test_jobs_share_what_is_idle() -> None:
    decided = decide(job(), job(uid="k"), cores=4)
    assert decided == {"j": 10, "k": 10}


def test_no_more_pods_are_wanted_than_fit_on_nodes_that_admit_them() -> None:
    assert decide(job(fits=3)) == {"j": 5}


def test_a_job_does_not_grow_before_all_its_pods_run() -> None:
    assert decide(job(running=1)) == {}


def test_a_job_of_which_nothing_is_known_does_not_grow() -> None:
    assert decide(job(estimate=None)) == {}


def test_short_work_is_not_worth_more_pods() -> None:
    assert decide(job(estimate=SECOND // 10, completions=4)) == {}


@pytest.mark.parametrize("reason", ["in_the_way", "waiting"])
def test_a_job_gives_back_what_it_did_not_ask_for(reason: str) -> None:
    grown = job(wanted=10, running=10)
    assert decide(replace(grown, **{reason: 3})) == {"j": 7}
    assert decide(replace(grown, **{reason: 50})) == {"j": 2}
    assert decide(replace(job(), **{reason: 3}), is_crowded=True) == {}


def test_nobody_grows_while_others_wait_for_room() -> None:
    in_the_way = job(uid="k", wanted=4, running=4, in_the_way=1)
    assert decide(job(), in_the_way, is_crowded=True) == {"k": 3}


def test_how_long_a_pod_takes_is_learnt_from_the_job_itself() -> None:
    scaler = JobScaler(GrowthSettings())
    unknown = job(estimate=None, succeeded=5)
    assert scaler.decide([unknown], used(2), CAPACITY, 0) == {}
    assert scaler.decide([unknown], used(2), CAPACITY, 60 * SECOND) == {}
    known = replace(unknown, succeeded=7)
    assert scaler.decide([known], used(2), CAPACITY, 120 * SECOND) == {"j": 13}


def test_the_next_run_of_a_program_takes_about_as_long_as_the_last() -> None:
    scaler = JobScaler(GrowthSettings())
    last = job(estimate=None)
    scaler.decide([last], used(2), CAPACITY, 0)
    scaler.decide([replace(last, succeeded=2)], used(2), CAPACITY, 60 * SECOND)
    scaler.decide([], used(0), CAPACITY, 61 * SECOND)
    again = job(uid="next", estimate=None)
    assert scaler.decide([again], used(2), CAPACITY, 62 * SECOND) == {"next": 20}


def test_what_a_job_does_itself_counts_more_than_what_others_did() -> None:
    scaler = JobScaler(GrowthSettings())
    last = job(estimate=None)
    scaler.decide([last], used(2), CAPACITY, 0)
    scaler.decide([replace(last, succeeded=2)], used(2), CAPACITY, 60 * SECOND)
    again = job(uid="next", estimate=None, fits=0)
    scaler.decide([again], used(2), CAPACITY, 62 * SECOND)
    quick = replace(again, succeeded=10, fits=18)
    now = 62 * SECOND + 20_000
    assert scaler.decide([quick], used(2), CAPACITY, now) == {}
    slow = replace(quick, uid="third", succeeded=0)
    assert scaler.decide([slow], used(2), CAPACITY, now) == {"third": 20}


def test_jobs_share_the_nodes_that_admit_them() -> None:
    decided = decide(job(fits=6), job(uid="k", fits=7), cores=4)
    assert decided == {"j": 2 + 6 // 2, "k": 2 + 7 // 2}


@pytest.mark.parametrize(
    ("wanted", "in_the_way", "waiting", "left"),
    [
        (2, 5, 5, None),
        (1, 5, 5, None),
        (3, 0, 0, None),
        (3, 1, 0, 2),
        (3, 0, 1, 2),
        (9, 2, 3, 6),
        (9, 3, 2, 6),
        (9, 7, 0, 2),
        (9, 8, 0, 2),
    ],
)
def test_what_is_beyond_the_pods_asked_for_gives_way(
    wanted: int, in_the_way: int, waiting: int, left: int | None
) -> None:
    grown = job(wanted=wanted, running=wanted, in_the_way=in_the_way, waiting=waiting)
    assert JobScaler(GrowthSettings())._shrunk(grown) == left


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"waiting": 1}, False),
        ({"running": 1}, False),
        ({"running": 3}, True),
        ({"running": 1, "succeeded": 19}, True),
        ({"running": 0, "succeeded": 19}, False),
        ({"running": 0, "succeeded": 20}, False),
        ({"running": 2, "succeeded": 21}, False),
        ({"running": 0, "wanted": 0}, True),
    ],
)
def test_a_job_may_grow_if_all_pods_that_it_can_use_run(
    changes: dict[str, int], expected: bool
) -> None:
    assert JobScaler(GrowthSettings())._may_grow(job(**changes)) is expected


def test_an_average_is_of_the_time_since_the_job_was_first_seen() -> None:
    scaler = JobScaler(GrowthSettings())
    first = job(succeeded=5, estimate=7)

    def average(now: int, **changes: int) -> int | None:
        made = replace(first, **changes)
        scaler.decide([made], used(2), CAPACITY, now)
        return scaler._average(made)

    assert average(10) == 7
    assert average(20, running=4) == 7, "none has ended yet"
    # Two pods for ten, then four for ten, and then three for twenty.
    assert average(30, running=3, succeeded=6) == 2 * 10 + 4 * 10
    assert average(50, succeeded=8) == (2 * 10 + 4 * 10 + 3 * 20) // 3
    assert average(50, succeeded=1_000) == 1, "no pod takes no time"


def test_a_job_that_is_not_half_done_needs_what_is_left_less_half_of_what_runs() -> None:
    asked: list[tuple[object, ...]] = []

    def addition(*how: object) -> int:
        asked.append(how)
        return 3

    module = "argosy.worlds.kubernetes.malleable.best_addition"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, addition)
        assert decide(job(running=4, wanted=4)) == {"j": 7}
        assert decide(job(succeeded=19, running=3, wanted=0)) == {"j": 3}
        assert decide(job(succeeded=18, running=2, wanted=2)) == {}
    minute = 60 * SECOND
    assert asked == [
        ([(20 * minute - 2 * minute, 20)], 4, 16, 1_000_000, 50_000),
        ([(minute, 1)], 1, 1, 1_000_000, 50_000),
    ]


def test_usual_settings_of_growth() -> None:
    usual = GrowthSettings()
    assert (usual.policy, usual.cap, usual.times, usual.interval) == (
        "max-parallelism",
        0.6,
        4.0,
        5.0,
    )
