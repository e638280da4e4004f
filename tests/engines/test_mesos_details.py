"""Mesos: what is set aside for whom, and what a framework remembers from one decision to the next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from serial_attempts import cell_of, only, take, tasks_of
from test_mesos_offers import a_mesos, answer, decide, large, of, offer, submit
from test_mesos_whole_queue import at_once

from argosy.cell import Cell
from argosy.engines.mesos.framework import Framework, FrameworkSettings, HoardedJob
from argosy.model.effects import Abandon, Commit, Explain, Think, WakeMe
from argosy.model.events import JobCancelled, JobChanged, TimerFired
from argosy.model.jobs import Job, TaskGroup
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, Transaction
from argosy.model.truth import group_with_truth, simulated_job
from argosy.testing.builders import GIB, SECOND, job

SMALL = Resources(1_000, GIB)


def test_an_offer_that_nobody_wants_any_more_is_not_made_nor_waited_for() -> None:
    engine, cell, made = a_mesos(), cell_of(4), job("a")
    submit(engine, cell, made, 0)
    engine.handle(JobCancelled(made.job, 0, tasks_of(0, 0)), cell, 0)
    assert offer(engine, cell) == ()
    assert only(submit(engine, cell, job("b"), 1, SECOND), WakeMe).at == SECOND + 1_000


@pytest.mark.parametrize("rest", [0, SECOND])
def test_what_a_gang_hoards_is_offered_to_nobody(rest: int) -> None:
    """It waits for its second machine in the queue, or rests."""
    engine, cell = a_mesos(refuse=0, rest=rest), cell_of(4, 4)
    take(cell, 1, 4)
    submit(engine, cell, large("gang", 2, gang=True), 0)
    decide(engine, cell, only(offer(engine, cell), Think))
    submit(engine, cell, job("other", kind="service"), 1)
    for _ in range(3):
        for thinking in of(offer(engine, cell), Think):
            assert not of(decide(engine, cell, thinking), Commit)


def test_what_a_gang_hoards_stays_its_own_while_it_decides_on_more() -> None:
    engine, cell = a_mesos(refuse=0), cell_of(4, 4)
    take(cell, 1, 4)
    submit(engine, cell, large("gang", 2, gang=True), 0)
    decide(engine, cell, only(offer(engine, cell), Think))
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0, 1, 2, 3)))
    assert only(offer(engine, cell), Think).job == 0
    submit(engine, cell, job("other", kind="service"), 1)
    assert not of(offer(engine, cell), Think)


def test_a_job_of_several_groups_has_no_single_explanation() -> None:
    for count in (1, 2):
        engine, cell = a_mesos(), cell_of(8)
        groups = [group_with_truth(1, Resources(cpu, GIB), (SECOND,)) for cpu in (500, 1_000)]
        submit(engine, cell, simulated_job("a", *groups[:count]), 0)
        commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
        assert (commit.explanation is None) is (count == 2)


def test_what_is_cancelled_during_a_second_decision_is_not_claimed_either() -> None:
    engine, cell, made = a_mesos(refuse=0), cell_of(4), large("a", 3)
    submit(engine, cell, made, 0)
    commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
    answer(engine, cell, commit)
    cell.commit(Transaction(OPERATOR, releases=commit.transaction.claims.tasks))
    thinking = only(offer(engine, cell), Think)
    engine.handle(JobCancelled(made.job, 0, tasks_of(0, 1, 2)), cell, 0)
    assert not of(decide(engine, cell, thinking), Commit)


def test_a_job_that_once_got_something_is_given_up_later_even_if_it_then_gets_nothing() -> None:
    engine, cell = a_mesos(refuse=0, attempts=9, attempts_in_vain=2), cell_of(4)
    submit(engine, cell, large("a", 2), 0)
    answer(engine, cell, only(decide(engine, cell, only(offer(engine, cell), Think)), Commit))
    for number in (97, 98):
        cell.commit(Transaction(OPERATOR, releases=tasks_of(0, 0, 1)))
        commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
        take(cell, 0, 1, number=number)
        assert not of(answer(engine, cell, commit), Abandon)
        cell.commit(Transaction(OPERATOR, releases=tasks_of(number, 0)))


class TestWholeQueues:
    def test_a_job_of_which_a_part_was_chosen_is_not_in_vain(self) -> None:
        engine, cell = at_once(rest=0, attempts_in_vain=2), cell_of(4)
        submit(engine, cell, large("a", 2), 0)
        [commit] = decide(engine, cell, only(offer(engine, cell), Think))
        answer(engine, cell, commit)
        for _ in range(3):
            cell.commit(Transaction(OPERATOR, releases=tasks_of(0, 0, 1)))
            take(cell, 0, 1)
            effects = offer(engine, cell)
            assert not of(effects, Abandon)
            decide(engine, cell, only(effects, Think))
            cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0)))

    def test_tasks_that_require_nothing_do_not_speak_for_those_that_do(self) -> None:
        engine, cell = at_once(), cell_of(1, 4, m1={"disk": "ssd"})
        take(cell, 0, 1)
        picky = group_with_truth(5, SMALL, (SECOND,), requires={"disk": "hdd"})
        plain = group_with_truth(2, SMALL, (SECOND,))
        submit(engine, cell, simulated_job("picky", picky), 0)
        submit(engine, cell, simulated_job("plain", plain), 1)
        effects = offer(engine, cell)
        commit = only(decide(engine, cell, of(effects, Think)[0]), Commit)
        assert commit.transaction.claims.tasks.tolist() == tasks_of(1, 0, 1).tolist()
        assert only(effects, Explain).explanation.ruled_out["filtered"] == 2

    def test_a_job_that_changed_during_its_commit_is_tried_again_as_it_is_now(self) -> None:
        engine, cell = at_once(rest=0), cell_of(4, 4)
        submit(engine, cell, large("a", 2), 0)
        commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
        smaller = Job("a", (TaskGroup(1, Resources(4_000, 64 * GIB)),))
        change = JobChanged(smaller, 0, tasks_of(0)[:0], tasks_of(0, 1))
        engine.handle(change, cell, 0)
        take(cell, 0, 4)
        take(cell, 1, 4, number=98)
        answer(engine, cell, commit)
        [framework] = engine._frameworks.values()
        [work] = framework.queue
        assert (work.job, work.tasks.tolist()) == (smaller, tasks_of(0, 0).tolist())

    @pytest.mark.parametrize(("cores", "is_made"), [(3, False), (4, True)])
    def test_a_small_offer_is_less_than_a_hundredth_of_the_cell(
        self, cores: int, is_made: bool
    ) -> None:
        engine, cell = at_once(least_cores=100), cell_of(*[4] * 100)
        for machine in range(100):
            take(cell, machine, 4, number=100 + machine)
        cell.commit(Transaction(OPERATOR, releases=tasks_of(100, *range(cores))))
        submit(engine, cell, job("a"), 0)
        assert bool(of(offer(engine, cell), Think)) is is_made


def test_rests_end_at_their_time() -> None:
    engine, cell = a_mesos(refuse=0, rest=SECOND), cell_of(4)
    submit(engine, cell, large("a", 2), 0)
    answer(engine, cell, only(decide(engine, cell, only(offer(engine, cell), Think)), Commit))
    cell.commit(Transaction(OPERATOR, releases=tasks_of(0, 0)))
    assert not engine.handle(TimerFired("rest"), cell, SECOND - 1)
    assert engine.handle(TimerFired("rest"), cell, SECOND)


class TestFilters:
    def framework(self, *, failed_first: bool = False, **settings: Any) -> Framework:
        made = FrameworkSettings(**settings)
        return Framework("batch", made, 5, failed_first=failed_first)

    def offered(self, framework: Framework, cell: Cell, now: int, more: int = 0) -> list[int]:
        """The machines that pass, if all have so much more memory than they say."""
        available = cell.free()
        available[:, 1] += more
        return np.flatnonzero(framework.acceptable(available, cell, now).any(axis=1)).tolist()

    def test_all_of_some_attributes_and_none_of_others(self) -> None:
        marks = {"m1": {"a": "1"}, "m2": {"b": "1"}, "m3": {"b": "2"}}
        cell = cell_of(4, 4, 4, 4, **marks)
        assert self.offered(self.framework(avoid={"a": "1", "b": "1"}), cell, 0) == [0, 3]
        assert self.offered(self.framework(only={"b": "2"}), cell, 0) == [3]

    def test_what_was_of_no_use_is_refused_until_its_time_is_over_or_there_is_more(self) -> None:
        framework, cell = self.framework(), cell_of(4, 4, 4)
        used = np.array([1], np.int32)
        framework.decline(cell.free(), used, 10, is_short=True)
        assert self.offered(framework, cell, 14) == [1]
        assert self.offered(framework, cell, 14, more=1) == [0, 1, 2]
        assert self.offered(framework, cell, 15) == [0, 1, 2]

    @pytest.mark.parametrize(
        ("settings", "is_short"), [({}, False), ({"refuse": 0}, True), ({"refuse": 3}, True)]
    )
    def test_nothing_is_refused_that_sufficed_or_for_longer_than_is_set(
        self, settings: dict[str, int], is_short: bool
    ) -> None:
        framework, cell = self.framework(**settings), cell_of(4)
        framework.decline(cell.free(), np.zeros(0, np.int32), 10, is_short=is_short)
        assert self.offered(framework, cell, 13) == [0]

    @pytest.mark.parametrize("failed_first", [False, True])
    def test_a_job_that_was_never_tried_may_have_use_for_it_if_it_is_next(
        self, failed_first: bool
    ) -> None:
        framework, cell = self.framework(failed_first=failed_first), cell_of(4)
        framework.submit(HoardedJob(job("new").job, 0, tasks_of(0, 0)))
        framework.decline(cell.free(), np.zeros(0, np.int32), 10, is_short=True)
        assert self.offered(framework, cell, 11) == ([] if failed_first else [0])
        framework.submit(HoardedJob(job("newer").job, 1, tasks_of(1, 0)))
        assert self.offered(framework, cell, 11) == [0]

    def test_a_job_is_told_once_for_each_that_goes_first(self) -> None:
        framework = self.framework(failed_first=True)
        framework.submit(HoardedJob(job("new").job, 0, tasks_of(0, 0)))
        first = HoardedJob(job("first").job, 1, tasks_of(1, 0))
        assert len(framework.put_back(first)) == 1
        framework.queue.remove(first)
        assert not framework.put_back(first)
        framework.queue.remove(first)
        assert len(framework.put_back(HoardedJob(job("other").job, 2, tasks_of(2, 0)))) == 1

    def test_why_nothing_is_offered_is_told_again_only_if_it_changes(self) -> None:
        framework = self.framework(failed_first=True, avoid={"a": "1"})
        cell = cell_of(4, 4, m1={"a": "1"})
        framework.submit(HoardedJob(job("a").job, 0, tasks_of(0, 0)))
        available = cell.free()
        framework.decline(available, np.zeros(0, np.int32), 10, is_short=True)
        available[0] = 0

        def told(now: int) -> list[dict[str, int]]:
            effects = framework.unoffered(available, cell, now)
            return [each.explanation.ruled_out for each in effects]

        assert told(11) == [{"offered": 1, "not wanted": 1}]
        assert told(12) == []
        framework.submit(HoardedJob(job("b").job, 1, tasks_of(1, 0)))
        assert len(told(13)) == 1
        available[1] = 0
        assert told(14) == [{"offered": 2}] * 2
