"""What schedulers and queues hold and want: ties, bounds, resources that come later, and jobs that
change."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
from serial_attempts import cell_of, end, only, submit, take, tasks_of

from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.families.lra.queues import Shares
from argosy.engines.families.lra.settings import QueueCapacity, TaskQueueSettings
from argosy.engines.omega.fairness import LEASE, CurrentShare, FairShare, fair_shares
from argosy.engines.shared.serial import PendingJob
from argosy.engines.yarn import Yarn
from argosy.engines.yarn.engine import YarnSettings
from argosy.model.effects import Commit, Explain, Think
from argosy.model.events import (
    Committed,
    DecisionDue,
    JobCancelled,
    JobChanged,
    MachineChanged,
    MachineJoined,
    TaskFinished,
)
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Claims, Transaction, Wants
from argosy.testing.builders import GIB, SECOND, job

GPUS = Machine("gpus", Resources(8_000, 64 * GIB, {"gpu": 4}))


def join(cell: Cell, machine: Machine) -> None:
    cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))


def of_owner(owner: str, tasks: int = 1, **fields: Any) -> Job:
    made: Job = job(f"{owner}-{tasks}", tasks, owner=owner, **fields).job
    return made


def half_for(*owners: str) -> TaskQueueSettings:
    limits = {owner: QueueCapacity(0.5, 0.5) for owner in owners}
    return TaskQueueSettings(policy="capacity", capacities=limits)


class TestDemand:
    def test_resources_that_come_later_are_counted_from_then_on(self) -> None:
        """Seven cores of eight are wanted; then there are GPUs, and somebody wants all of them."""
        cell, fair = cell_of(8), FairShare("s", 1.0)
        made = job("a", 7).job
        fair.want(made, tasks_of(0, *range(7)), cell)
        said = fair.to_say(0)
        assert said is not None
        assert said.amounts == (7_000, 7 * GIB)
        join(cell, GPUS)
        share = fair.share(cell, 0)
        assert (share.held.tolist(), share.whole.tolist()) == (
            [0, 0, 0],
            [16_000, 128 * GIB, 4],
        )
        # Zeros at the end are nothing new.
        assert fair.to_say(0) is None
        picky = job("b", 4, request=Resources(1_000, GIB, {"gpu": 1})).job
        fair.want(picky, tasks_of(1, 0, 1, 2), cell)
        said = fair.to_say(0)
        assert said is not None
        assert said.amounts == (10_000, 10 * GIB, 3)
        fair.forget(picky, tasks_of(1, 0, 1))
        fair.forget(made, tasks_of(0, 0))
        said = fair.to_say(0)
        assert said is not None
        assert said.amounts == (7_000, 7 * GIB, 1)

    def test_what_was_accepted_is_wanted_no_longer_and_the_rest_still_is(self) -> None:
        cell, fair = cell_of(8), FairShare("s", 1.0)
        fair.want(job("a", 5).job, tasks_of(0, *range(5)), cell)
        join(cell, GPUS)
        small, large = (cell.shape(Resources(cpu, GIB)) for cpu in (1_000, 2_000))
        rows = np.zeros(4, np.int32)
        shapes = np.array([small, large, small, small], np.int32)
        claims = Claims(tasks_of(0, 0, 1, 2, 3), rows, shapes, cell.versions(rows))
        fair.got(claims, np.array([True, True, False, True]), cell)
        said = fair.to_say(0)
        assert said is not None
        assert said.amounts == (1_000, 2 * GIB, 0)
        # It never falls below zero, whatever else is accepted.
        fair.got(claims, np.array([True, True, True, True]), cell)
        fair.want(job("b", 2).job, tasks_of(1, 0, 1), cell)
        said = fair.to_say(0)
        assert said is not None
        assert said.amounts == (2_000, 2 * GIB, 0)

    def test_a_group_that_no_machine_can_hold_leaves_the_others_of_its_job(self) -> None:
        cell, fair = cell_of(8), FairShare("s", 1.0)
        requests = (
            Resources(1_000, GIB, {"gpu": 1}),
            Resources(9_000, GIB),
            Resources(1_000, 65 * GIB),
            Resources(1_000, 2 * GIB, {"gpu": 0}),
            Resources(8_000, 64 * GIB),
        )
        mixed = Job("mixed", tuple(TaskGroup(1, request) for request in requests))
        fair.want(mixed, tasks_of(0, *range(5)), cell)
        said = fair.to_say(0)
        assert said is not None
        assert said.amounts == (9_000, 66 * GIB)

    def test_a_demand_that_falls_is_announced_by_the_tenth_of_what_was_said(self) -> None:
        cell, fair = cell_of(200), FairShare("s", 1.0)
        made = job("a", 100, memory=0).job
        fair.want(made, tasks_of(0, *range(100)), cell)
        assert fair.to_say(0) is not None
        fair.forget(made, tasks_of(0, *range(10)))
        assert fair.to_say(0) is None
        fair.forget(made, tasks_of(0, 10))
        said = fair.to_say(5)
        assert said == Wants(1.0, (89_000, 0), 5 + LEASE)

    def test_nothing_is_said_of_nothing(self) -> None:
        cell, fair = cell_of(8), FairShare("s", 1.0)
        assert fair.to_say(0) is None
        fair.want(job("a", 1).job, tasks_of(0, 0), cell)
        assert fair.to_say(0) is not None
        fair.want_nothing()
        said = fair.to_say(1)
        assert said is not None
        assert said.amounts == (0, 0)
        # What was said and is zero needs no repetition.
        assert fair.to_say(10 * LEASE) is None


class TestShare:
    def test_its_own_announcement_is_not_that_of_a_rival(self) -> None:
        cell, fair = cell_of(8), FairShare("s", 1.0)
        fair.want(job("a", 20).job, tasks_of(0, *range(20)), cell)
        cell.commit(Transaction("s", wants=Wants(1.0, (20_000, 20 * GIB), LEASE)))
        assert fair.share(cell, 0).most == np.inf

    def test_weights_and_what_is_held_decide_how_much_of_what_is_left_is_its_own(self) -> None:
        """Of eight cores, the rival holds two and wants six more, three times as heavily."""
        cell, fair = cell_of(8), FairShare("s", 1.0)
        rows = np.zeros(2, np.int32)
        shapes = np.full(2, cell.shape(Resources(1_000, 0)), np.int32)
        claims = Claims(tasks_of(9, 0, 1), rows, shapes, cell.versions(rows))
        wants = Wants(3.0, (6_000, 0), LEASE)
        assert cell.commit(Transaction("rival", claims, wants=wants)).all_accepted
        fair.want(job("a", 20, memory=0).job, tasks_of(0, *range(20)), cell)
        found = fair.share(cell, 0)
        assert (found.most, found.held.tolist()) == (pytest.approx(0.25), [0, 0])
        # Both fit if it wants no more than what is left; so it does if that is its share.
        little = FairShare("s", 1.0)
        little.want(job("b", 2, memory=0).job, tasks_of(1, 0, 1), cell)
        assert little.share(cell, 0).most == np.inf

    @pytest.mark.parametrize(("held", "is_reached"), [(0.25, True), (0.249, False), (0.26, True)])
    def test_a_share_is_reached_by_the_resource_held_most(
        self, held: float, is_reached: bool
    ) -> None:
        share = CurrentShare(0.25, np.array([0.1, held]), np.array([8_000.0, 100.0]))
        assert share.is_reached is is_reached

    def test_a_refusal_names_the_resource_held_most(self) -> None:
        cell = cell_of(8)
        share = CurrentShare(0.25, np.array([0.125, 0.5]), np.array([8_000.0, 64.0 * GIB]))
        assert share.refusal(Resources(3_000, 5 * GIB), cell) == Refusal(
            Why.RESOURCE_LIMIT, dimension="memory", lacking=5 * GIB + 16 * GIB
        )

    def test_every_group_counts_for_those_that_follow(self) -> None:
        cell, whole = cell_of(32), np.array([32_000.0, 64.0 * GIB])
        groups = (
            TaskGroup(3, Resources(1_000, 0)),
            TaskGroup(2, Resources(2_000, 0)),
            TaskGroup(9, Resources(500, 0)),
        )
        mixed = Job("mixed", groups)
        share = CurrentShare(0.25, np.array([0.0, 0.2]), whole)
        # 3 + 4 cores, and two of half a core make eight.
        assert share.first(mixed, tasks_of(0, *range(14)), cell) == 7
        # The first one to reach the share is still claimed, also if it goes beyond.
        assert share.first(mixed, tasks_of(0, *range(3, 14)), cell) == 2 + 8

    def test_owners_without_demand_get_nothing_and_take_nothing(self) -> None:
        room = np.array([1.0, 1.0])
        demands = np.array([[2.0, 0.0], [0.0, 0.0], [0.0, 0.5]])
        assert fair_shares(room, demands, [1.0, 5.0, 1.0]).tolist() == [1.0, 0.0, 0.5]
        assert fair_shares(room, demands[1:2], [1.0]).tolist() == [0.0]
        # Without room for what it needs, an owner has no share; the other is as before.
        assert fair_shares(np.array([0.0, 1.0]), demands, [1.0] * 3).tolist() == [0.0, 0.0, 0.5]


class TestQueues:
    def test_of_queues_that_hold_the_same_the_first_by_name_is_next(self) -> None:
        cell, shares = cell_of(8), Shares(TaskQueueSettings())
        works = [
            PendingJob(of_owner("bob", precedence=9), 0, tasks_of(0, 0)),
            PendingJob(of_owner("ann"), 1, tasks_of(1, 0)),
            PendingJob(of_owner("ann", precedence=1), 2, tasks_of(2, 0)),
        ]
        for order in (works, works[::-1]):
            assert shares.next(deque(order), cell) is works[2]

    def test_a_queue_at_its_limit_leaves_the_turn_to_the_next(self) -> None:
        cell, shares = cell_of(8), Shares(half_for("ann"))
        shape = cell.shape(Resources(1_000, GIB))
        shares.change(of_owner("ann"), 7, shape, 4, cell)
        shares.change(of_owner("bob"), 8, shape, 5, cell)
        ann = PendingJob(of_owner("ann", precedence=9), 0, tasks_of(0, 0))
        bob = PendingJob(of_owner("bob"), 1, tasks_of(1, 0))
        assert shares.next(deque([ann, bob]), cell) is bob
        assert shares.next(deque([ann]), cell) is None
        shares.change(of_owner("ann"), 7, shape, -1, cell)
        assert shares.next(deque([ann, bob]), cell) is ann

    def test_more_than_the_limit_leaves_nothing_rather_than_less_than_nothing(self) -> None:
        cell, shares = cell_of(8), Shares(half_for("ann"))
        shares.change(of_owner("ann"), 7, cell.shape(Resources(3_000, GIB)), 2, cell)
        groups = (TaskGroup(2, Resources(1_000, GIB)), TaskGroup(2, Resources(0, GIB)))
        mixed = Job("mixed", groups, owner="ann")
        assert shares.allowance(mixed, tasks_of(0, *range(4)), cell) == 0

    def test_resources_that_come_later_are_held_by_nobody_so_far(self) -> None:
        cell = cell_of(8)
        shares, fair = Shares(half_for("ann")), Shares(TaskQueueSettings(policy="fair"))
        shape = cell.shape(Resources(2_000, 4 * GIB))
        for each in (shares, fair):
            each.change(of_owner("ann"), 0, shape, 1, cell)
        join(cell, GPUS)
        picky = job("b", 9, owner="ann", request=Resources(0, 0, {"gpu": 1})).job
        assert shares.share("ann", cell) == 0.125 / 0.5
        assert fair.share("ann", cell) == 4 / 128
        assert shares.allowance(picky, tasks_of(1, *range(9)), cell) == 2
        shares.promise("tasks", [(picky, tasks_of(1, 0))], cell)
        assert shares.allowance(picky, tasks_of(1, *range(9)), cell) == 1
        for each in (shares, fair):
            each.change(picky, 1, cell.shape(Resources(0, 0, {"gpu": 1})), 3, cell)
        assert shares.share("ann", cell) == 0.75 / 0.5
        assert fair.share("ann", cell) == 4 / 128

    def test_a_cell_without_memory_shares_nothing_by_memory(self) -> None:
        cell, shares = Cell(("cpu",), {}), Shares(TaskQueueSettings(policy="fair"))
        join(cell, Machine("m0", Resources(8_000)))
        shares.change(of_owner("ann"), 0, cell.shape(Resources(2_000)), 2, cell)
        assert shares.share("ann", cell) == 0.0

    def test_the_limit_that_is_exceeded_most_is_told(self) -> None:
        """Half of 16 cores and 128 GiB: by four cores, a quarter, and by 4 GiB, a small part."""
        cell, shares = cell_of(8, 8), Shares(half_for("ann"))
        large = job("large", 8, owner="ann", cpu=1_500, memory=17 * GIB // 2).job
        tasks = tasks_of(0, *range(8))
        assert shares.limited(large, tasks, cell).refused == Refusal(
            Why.RESOURCE_LIMIT, dimension="cpu", lacking=4_000
        )
        # Nothing is held by anybody: five of them are within both limits.
        assert shares.allowance(large, tasks, cell) == 5
        wide = job("wide", 8, owner="ann", cpu=100, memory=9 * GIB).job
        assert shares.limited(wide, tasks, cell).refused == Refusal(
            Why.RESOURCE_LIMIT, dimension="memory", lacking=8 * GIB
        )

    def test_owners_of_one_queue_are_not_ahead_of_each_other(self) -> None:
        cell, shares = cell_of(8), Shares(half_for("ann"))
        shares.change(of_owner("eve"), 0, cell.shape(Resources(2_000, GIB)), 1, cell)
        ann, bob, eve = map(of_owner, ("ann", "bob", "eve"))
        # Those without a queue of their own share one.
        assert not shares.is_ahead(eve, [bob], cell)
        assert shares.is_ahead(eve, [bob, ann], cell)
        assert not shares.is_ahead(ann, [bob, eve], cell)


def yarn(**settings: Any) -> Yarn:
    return Yarn(YarnSettings(order="placement", **settings), Context("s", (), Random(1)))


def finished(cell: Cell, *tasks: int) -> TaskFinished:
    """Tasks of a core and a GiB on m0 have ended."""
    numbers = np.array(tasks, np.int64)
    cell.commit(Transaction(OPERATOR, releases=numbers))
    shapes = np.full(len(numbers), cell.shape(Resources(1_000, GIB)), np.int32)
    where = np.zeros(len(numbers), np.int32)
    return TaskFinished(numbers, where, np.zeros(len(numbers), np.int64), shapes)


class TestJobsOfQueues:
    def test_a_job_that_grows_is_held_until_its_last_task_ends(self) -> None:
        engine, cell = yarn(), cell_of(8)
        small, large = of_owner("ann", 1), of_owner("ann", 3)
        end(engine, cell, only(submit(engine, cell, small, 0), Think))
        changed = JobChanged(large, 0, tasks_of(0, 1, 2), np.empty(0, np.int64))
        end(engine, cell, only(engine.handle(changed, cell, 0), Think))
        found = [engine._shares.share("ann", cell)]
        for index in range(3):
            engine.handle(finished(cell, int(tasks_of(0, index)[0])), cell, 0)
            found.append(engine._shares.share("ann", cell))
        assert found == [3 / 8, 2 / 8, 1 / 8, 0.0]
        assert not engine._jobs
        # What is heard of a job that is over changes nothing.
        engine.handle(finished(cell, int(tasks_of(0, 0)[0])), cell, 0)
        assert engine._shares.share("ann", cell) == 0.0

    def test_jobs_wait_for_their_limit_until_something_ends_or_a_machine_changes(self) -> None:
        for event in (MachineChanged(0), MachineJoined(1)):
            engine, cell = (
                yarn(policy="capacity", capacities=half_for("ann").capacities),
                cell_of(8),
            )
            thinking = only(submit(engine, cell, of_owner("ann", 6), 0), Think)
            claims, effects = end(engine, cell, thinking)
            assert claims.tasks.tolist() == tasks_of(0, 0, 1, 2, 3).tolist()
            told = only(effects, Explain)
            assert told.tasks.tolist() == tasks_of(0, 4, 5).tolist()
            # Nobody is told twice, and nothing has changed.
            assert not engine.handle(event, cell, 0)
            assert len(submit(engine, cell, of_owner("ann", 2), 1)) == 1
            join(cell, Machine("m1", Resources(4_000, 64 * GIB)))
            thinking = only(engine.handle(event, cell, 0), Think)
            # While one is decided on, no other begins.
            assert not engine.handle(event, cell, 0)
            claims, effects = end(engine, cell, thinking)
            assert claims.tasks.tolist() == tasks_of(0, 4, 5).tolist()
            # The other was told before; the first is over.
            assert not [each for each in effects if isinstance(each, Explain)]
            effects = engine.handle(finished(cell, int(tasks_of(0, 0)[0])), cell, 0)
            claims, effects = end(engine, cell, only(effects, Think))
            assert claims.tasks.tolist() == tasks_of(1, 0).tolist()
            # It was decided on, so it is told again.
            assert only(effects, Explain).tasks.tolist() == tasks_of(1, 1).tolist()

    def test_a_decision_of_which_nothing_comes_promises_nothing(self) -> None:
        engine, cell = yarn(policy="capacity", capacities=half_for("ann").capacities), cell_of(8)
        made = of_owner("ann", 4)
        thinking = only(submit(engine, cell, made, 0), Think)
        tasks = tasks_of(0, *range(4))
        assert engine._shares.allowance(made, tasks, cell) == 0
        commit = only(engine.handle(DecisionDue(thinking.token), cell, 0), Commit)
        take(cell, 0, 8)
        outcome = cell.commit(commit.transaction)
        assert not outcome.accepted.any()
        engine.handle(JobCancelled(made, 0, tasks), cell, SECOND)
        engine.handle(Committed(commit.token, outcome), cell, SECOND)
        assert engine._shares.allowance(made, tasks, cell) == 4
        assert engine._shares.share("ann", cell) == 0.0
