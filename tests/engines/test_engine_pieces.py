"""Pieces of Mesos, MapReduce and Vela by themselves: what a framework is offered and tells its jobs,
answers to offers, room for workers, and what a scheduler counts."""

from __future__ import annotations

import numpy as np
import pytest
from serial_attempts import cell_of, take, tasks_of

from argosy.engines.mapreduce.policies import most_workers, shared_room
from argosy.engines.mesos.answers import AnswerPart, OfferAnswer
from argosy.engines.mesos.framework import Framework, FrameworkSettings, HoardedJob
from argosy.engines.vela.figures import PhaseTimes, VelaFigures
from argosy.model.effects import WakeMe
from argosy.model.events import JobCancelled, JobChanged
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import MOST_TASKS, job_of
from argosy.model.transactions import Claims, Outcome
from argosy.model.units import Micros
from argosy.testing.builders import SECOND, job


def a_framework(
    settings: FrameworkSettings | None = None, refuse: int = 100, *, failed_first: bool = False
) -> Framework:
    return Framework("batch", settings or FrameworkSettings(), refuse, failed_first=failed_first)


def work(number: int, tasks: int = 1, *, attempts: int = 0) -> HoardedJob:
    made = HoardedJob(job(f"j{number}", tasks).job, number, tasks_of(number, *range(tasks)))
    made.attempts = attempts
    return made


def claims(number: int, *rows: tuple[int, int]) -> Claims:
    """Of tasks by index, and their machines."""
    zeros = np.zeros(len(rows), np.int32)
    machines = np.array([machine for _, machine in rows], np.int32)
    tasks = tasks_of(number, *(index for index, _ in rows))
    return Claims(tasks, machines, zeros, zeros.astype(np.uint32))


OFFER = np.array([[4, 8], [2, 8], [0, 0]], np.int64)
NOBODY = np.empty(0, np.int32)


class TestOffers:
    def test_machines_pass_by_their_attributes(self) -> None:
        disks = {"m0": {"disk": "ssd"}, "m1": {"disk": "ssd", "old": "yes"}}
        cell = cell_of(4, 4, 4, **disks)
        settings = FrameworkSettings(only={"disk": "ssd"}, avoid={"old": "yes", "disk": "hdd"})
        found = a_framework(settings).acceptable(np.full((3, 2), 5), cell, 0)
        assert found.tolist() == [[5, 5], [0, 0], [0, 0]]
        everything = np.full((3, 2), 5)
        assert a_framework().acceptable(everything, cell, 0) is everything

    def test_a_declined_machine_comes_back_in_time_or_with_more(self) -> None:
        framework, cell = a_framework(refuse=100), cell_of(4, 4, 4)
        framework.decline(OFFER, np.array([1], np.int32), 50, is_short=True)

        def passes(now: int, offer: np.ndarray = OFFER) -> list[bool]:
            return framework.acceptable(offer, cell, now).any(axis=1).tolist()

        # The second machine was used, and the third had nothing.
        assert passes(149) == [False, True, False]
        assert passes(150) == [True, True, False]
        more = OFFER + np.array([[0, 1], [0, 0], [1, 0]])
        assert passes(149, more) == [True, True, True]
        assert passes(149, OFFER - np.array([[1, 0], [0, 0], [0, 0]])) == [False, True, False]
        # A new job may want what was declined.
        framework.submit(work(1))
        assert passes(60) == [True, True, False]

    @pytest.mark.parametrize(
        ("refuse", "own", "is_short", "waiting", "failed_first", "declines"),
        [
            (100, None, True, None, False, True),
            (0, None, True, None, False, False),
            (0, 100, True, None, False, True),
            (100, 0, True, None, False, False),
            (100, None, False, None, False, False),
            (100, None, True, 0, False, False),
            (100, None, True, 1, False, True),
            (100, None, True, 0, True, True),
        ],
    )
    def test_an_offer_is_declined_if_it_was_short_and_nobody_else_may_use_it(
        self,
        refuse: int,
        own: int | None,
        is_short: bool,
        waiting: int | None,
        failed_first: bool,
        declines: bool,
    ) -> None:
        """`waiting`: how often a queued job was tried."""
        settings = FrameworkSettings(refuse=None if own is None else Micros(own))
        framework = a_framework(settings, refuse, failed_first=failed_first)
        if waiting is not None:
            framework.queue.append(work(1, attempts=waiting))
        framework.decline(OFFER, NOBODY, 0, is_short=is_short)
        framework.decline(None, NOBODY, 0, is_short=True)
        found = framework.acceptable(OFFER, cell_of(4, 4, 4), 50).any(axis=1).tolist()
        assert found == [not declines, not declines, False]

    def test_a_job_that_came_back_is_last_or_rests(self) -> None:
        framework = a_framework()
        first, second = work(0), work(1)
        framework.submit(first)
        assert framework.put_back(second) == []
        assert [*framework.queue] == [first, second]
        third, fourth = work(2), work(3)
        assert framework.let_rest([third], 10) == [WakeMe(10, "rest")]
        framework.let_rest([fourth], 20)
        assert framework.let_rest([], 30) == []
        framework.end_rests(9)
        assert len(framework.queue) == 2
        framework.end_rests(10)
        assert [*framework.queue] == [first, second, third]
        assert [*framework.resting] == [fourth]

    def test_offers_are_wanted_while_jobs_wait_and_none_is_decided_on(self) -> None:
        framework = a_framework()
        assert not framework.wants_offers
        framework.submit(work(0))
        assert framework.wants_offers
        framework.deciding = work(1)
        assert not framework.wants_offers


class TestUnoffered:
    def test_every_machine_has_its_reason_and_the_first_of_them_its_remedy(self) -> None:
        cell = cell_of(1, 1, 1, 1, 1, m2={"old": "yes"})
        take(cell, 0, 1)
        # Memory is left on the first machine, so it is not full.
        settings = FrameworkSettings(avoid={"old": "yes"})
        framework = a_framework(settings, refuse=3 * SECOND)
        available = cell.free().copy()
        available[1] = 0
        declined = available.copy()
        declined[[2, 4]] = 0
        framework.decline(declined, NOBODY, 0, is_short=True)
        framework.queue.extend((work(0), work(1, attempts=1)))
        [told] = framework.unoffered(available, cell, 1, has_its_share=True)
        assert told.tasks.tolist() == tasks_of(0, 0).tolist()
        assert told.explanation.looked_at == 5
        assert told.explanation.refused == Refusal(Why.NOT_OFFERED)
        assert told.explanation.ruled_out == {
            "offered": 1,
            "not wanted": 1,
            "declined": 2,
            "beyond its share": 1,
        }
        assert told.explanation.remedy == "wait: declined machines are offered again after 3 s"

    @pytest.mark.parametrize(
        ("is_offered", "has_its_share", "remedy"),
        [
            (False, True, "wait until tasks of the framework end, or set offers = 'all'"),
            (True, False, "wait until others return their offers, or set offers = 'fair-share'"),
        ],
    )
    def test_remedies(self, is_offered: bool, has_its_share: bool, remedy: str) -> None:
        framework, cell = a_framework(), cell_of(1)
        framework.submit(work(0))
        available = np.zeros_like(cell.free()) if is_offered else cell.free()
        [told] = framework.unoffered(available, cell, 0, has_its_share=has_its_share)
        assert told.explanation.remedy == remedy

    def test_filters_are_the_last_reason(self) -> None:
        framework, cell = a_framework(FrameworkSettings(only={"disk": "ssd"})), cell_of(1)
        framework.submit(work(0))
        [told] = framework.unoffered(cell.free(), cell, 0, has_its_share=True)
        assert told.explanation.ruled_out == {"not wanted": 1}
        assert told.explanation.remedy == (
            "change the filters of the framework batch, or add a machine that passes them"
        )

    def test_only_new_jobs_are_told_the_same_again(self) -> None:
        framework, cell = a_framework(), cell_of(1)
        nothing = np.zeros_like(cell.free())

        def told(*, has_its_share: bool = False, available: np.ndarray = nothing) -> list[int]:
            found = framework.unoffered(available, cell, 0, has_its_share=has_its_share)
            return [job_of(int(each.tasks[0])) for each in found]

        framework.submit(work(1))
        assert told() == [1]
        assert told() == []
        framework.submit(work(2))
        assert told() == [2]
        # For another reason, all are told.
        assert told(available=cell.free(), has_its_share=True) == [1, 2]


class TestWithdrawal:
    def test_a_hoard_is_given_up_with_tasks_of_its_job(self) -> None:
        hoarding = work(0, 4)
        hoarding.tasks = tasks_of(0, 3)
        hoarding.hoard = [claims(0, (2, 0)), claims(0, (0, 1), (1, 1))]
        hoarding.held = OFFER
        hoarding.withdraw(JobCancelled(hoarding.job, 1, tasks_of(1, 0)))
        assert len(hoarding.hoard) == 2
        changed = job("j0", 3).job
        none = tasks_of(0)
        hoarding.withdraw(JobChanged(changed, 0, removed=tasks_of(0, 1), added=none))
        assert hoarding.tasks.tolist() == tasks_of(0, 0, 2, 3).tolist()
        assert (hoarding.hoard, hoarding.held, hoarding.job) == ([], None, changed)

    def test_jobs_without_tasks_leave_the_queue_and_their_rest(self) -> None:
        framework = a_framework()
        waiting, resting, other = work(0), work(0), work(1)
        framework.queue.extend((waiting, other))
        framework.resting.append(resting)
        framework.withdraw(JobCancelled(waiting.job, 0, tasks_of(0, 0)))
        assert ([*framework.queue], [*framework.resting]) == ([other], [])

    @pytest.mark.parametrize("is_committing", [False, True])
    def test_a_decision_under_way_drops_its_claims_unless_they_are_on_their_way(
        self, is_committing: bool
    ) -> None:
        framework = a_framework()
        framework.deciding, framework.is_committing = work(0, 3), is_committing
        framework.claims, framework.unplaced = claims(0, (0, 5), (1, 6)), tasks_of(0, 2)
        other = JobCancelled(framework.deciding.job, 1, tasks_of(1, 0))
        event = JobCancelled(framework.deciding.job, 0, tasks_of(0, 1, 2))
        for each in (other, event):
            framework.withdraw(each)
        assert framework.claims is not None
        assert framework.claims.machines.tolist() == ([5, 6] if is_committing else [5])
        assert len(framework.unplaced) == int(is_committing)
        assert framework.withdrawals == ([event] if is_committing else [])


class TestAnswers:
    def outcome(self, *accepted: bool) -> Outcome:
        count = len(accepted)
        return Outcome(
            accepted=np.array(accepted),
            whys=np.zeros(count, np.uint8),
            details=np.zeros(count, np.int8),
            amounts=np.zeros(count, np.int64),
            evicted=np.empty(0, np.int64),
            evicted_from=NOBODY,
            unreleased=(),
            dimensions=(),
            all_accepted=all(accepted),
            machines=np.zeros(count, np.int32),
        )

    def test_refused_tasks_need_a_machine_unless_they_were_withdrawn(self) -> None:
        part = AnswerPart(work(0, 3, attempts=4), claims(0, (0, 5), (1, 6), (2, 7)), None)
        part.is_committing = True
        part.withdraw(JobCancelled(part.job, 0, tasks_of(0, 1)))
        assert part.claims is not None
        assert part.refused(self.outcome(True, False, False)).tolist() == tasks_of(0, 2).tolist()
        left = part.work_left(tasks_of(0, 2))
        assert (left.number, left.attempts, left.tasks.tolist()) == (0, 4, tasks_of(0, 2).tolist())

    def test_machines_of_an_answer_are_those_of_claims_that_are_left(self) -> None:
        answer = OfferAnswer(a_framework(), OFFER)
        assert answer.machines().tolist() == []
        answer.add(work(0, 2), claims(0, (0, 5), (1, 6)), None)
        answer.add(work(1), claims(1, (0, 7)), None)
        assert answer.machines().tolist() == [5, 6, 7]
        larger = job("j0", 9).job
        answer.withdraw(JobChanged(larger, 0, removed=tasks_of(0, 0), added=tasks_of(0)))
        assert answer.machines().tolist() == [6, 7]
        assert answer.parts[0].job is larger
        answer.withdraw(JobCancelled(answer.parts[1].job, 1, tasks_of(1, 0)))
        assert answer.machines().tolist() == [6]


def test_mean_and_deviation_are_in_milliseconds() -> None:
    times = PhaseTimes()
    assert (times.mean, times.deviation) == (0.0, 0.0)
    for time in (2_000, 4_000, 9_000):
        times.add(time)
    assert times.mean == 5.0
    assert times.deviation == pytest.approx((26 / 3) ** 0.5)
    large = PhaseTimes()
    for time in (10**15, 10**15 + 2_000):
        large.add(time)
    assert large.deviation == pytest.approx(1.0)


def test_every_figure_has_its_name() -> None:
    figures = VelaFigures()
    counters = [
        "placed",
        "conflicts",
        "unplaced",
        "retried",
        "refused",
        "unreached",
        "overdue",
        "rescheduled",
    ]
    counters += ["abandoned", "requests", "drawn", "eligible"]
    for value, name in enumerate(counters, 1):
        setattr(figures, name, value)
    figures.first, figures.last, figures.began, figures.ended = (
        each * SECOND for each in (3, 10, 1, 14)
    )
    phases = ["queueing", "sampling", "commit", "end_to_end", "without_queue"]
    for value, name in enumerate(phases, 1):
        for time in (0, 2_000 * value):
            getattr(figures, name).add(time)
    assert figures.as_dict() == {
        "attempts": 6,
        "placed": 1,
        "conflicts": 2,
        "no machine found": 3,
        "placed by a later candidate": 4,
        "commits refused": 5,
        "agents not reached": 6,
        "samples overdue": 7,
        "rescheduled": 8,
        "abandoned": 9,
        "samples asked": 10,
        "machines drawn": 11,
        "machines eligible": 12,
        "attempting s": 13.0,
        "placing s": 7.0,
        "mean queueing ms": 1.0,
        "mean sampling ms": 2.0,
        "mean commit ms": 3.0,
        "mean end to end ms": 4.0,
        "mean end to end without queue ms": 5.0,
        "sampling deviation ms": 2.0,
        "commit deviation ms": 3.0,
        "end to end without queue deviation ms": 5.0,
    }


@pytest.mark.parametrize(
    ("policy", "sharing", "taken", "expected"),
    [
        # 10 of 16 cores and 44 of 64 GiB are free; a worker takes two cores and a GiB.
        ("max-parallelism", 1, 0, 5),
        ("max-parallelism", 2, 0, 2),
        ("max-parallelism", 1, 2, 3),
        ("max-parallelism", 1, 9, 0),
        # At most three quarters of the cores.
        ("global-cap", 1, 0, 3),
        ("global-cap", 3, 0, 1),
    ],
)
def test_room_for_workers_is_shared_beside_those_that_are_taken(
    policy: str, sharing: int, taken: int, expected: int
) -> None:
    request, used = [("cpu", 2), ("memory", 1), ("gpu", 0)], {"cpu": 6, "memory": 20}
    found = shared_room(policy, 0.75, request, used, {"cpu": 16, "memory": 64}, sharing, taken)
    assert found == expected


@pytest.mark.parametrize(
    ("policy", "times", "useful", "expected"),
    [
        ("max-parallelism", 2.0, 50, 50),
        ("relative-job-size", 2.5, 50, 7),
        ("relative-job-size", 2.5, 6, 6),
    ],
)
def test_a_policy_allows_a_job_of_three_workers_so_many(
    policy: str, times: float, useful: int, expected: int
) -> None:
    assert most_workers(policy, times, useful, 3) == expected


def test_room_for_a_resource_that_the_cell_lacks_is_none() -> None:
    assert shared_room("max-parallelism", 1.0, [("gpu", 1)], {}, {"cpu": 9}, 1) == 0
    assert shared_room("max-parallelism", 1.0, [("cpu", 0)], {}, {"cpu": 9}, 1) == MOST_TASKS
