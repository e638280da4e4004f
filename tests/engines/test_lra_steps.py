"""Schedulers of long-running applications as functions from events to effects: intervals, batches, and
what is told after a conflict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs
from serial_attempts import cell_of, only, take, tasks_of

from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.families.lra.cluster import make_ledger
from argosy.engines.families.lra.hard import hard_rows
from argosy.engines.families.lra.manager import ConstraintManager
from argosy.engines.families.lra.memory import Memory
from argosy.engines.families.lra.reasons import unplaced, violated
from argosy.engines.registry import ENGINES
from argosy.host.scheduler import make_settings
from argosy.model.constraints.text import parse_constraint
from argosy.model.effects import Abandon, Commit, Explain, Think, WakeMe
from argosy.model.events import (
    Committed,
    DecisionDue,
    JobCancelled,
    JobChanged,
    JobSubmitted,
    MachineChanged,
    MachineJoined,
    TaskFinished,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import Job
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import (
    OPERATOR,
    AddMachine,
    Claims,
    DrainMachine,
    RelabelMachine,
    Transaction,
)
from argosy.solvers.placement import ContainerKind, Objective, PlacementAnswer
from argosy.solvers.placement.answer import appraise
from argosy.testing.builders import GIB, SECOND, job

INTERVAL = 10 * SECOND


def an_engine(**settings: Any) -> Any:
    engine = ENGINES["jkube"]
    made = make_settings(engine, {"interval": INTERVAL, **settings})
    return engine(made, Context("s", (), Random(1)))


def service(name: str, tasks: int, **fields: Any) -> Job:
    return job(name, tasks, kind="service", seconds=None, tags=("w",), **fields).job


def submit(engine: Any, cell: Cell, made: Job, number: int, now: int = 0) -> Any:
    tasks = tasks_of(number, *range(made.tasks))
    return engine.handle(JobSubmitted(made, number, tasks), cell, now)


def plan(engine: Any, cell: Cell, now: int = INTERVAL) -> Any:
    return engine.handle(TimerFired("interval"), cell, now)


def decide(engine: Any, cell: Cell, effects: Any, now: int = INTERVAL) -> Any:
    [thinking] = [e for e in effects if isinstance(e, Think) and e.token > -(2**30)]
    return engine.handle(DecisionDue(thinking.token), cell, now)


def answer(engine: Any, cell: Cell, effects: Any, now: int = INTERVAL) -> Any:
    commit = only(effects, Commit)
    return engine.handle(Committed(commit.token, cell.commit(commit.transaction)), cell, now)


def lost(made: Job, number: int, *indices: int) -> TasksLost:
    tasks = tasks_of(number, *indices)
    return TasksLost(made, number, tasks, np.zeros(len(tasks), np.int32), Why.MACHINE_GONE)


def test_applications_wait_for_the_next_multiple_of_the_interval() -> None:
    for now, expected in ((0, 10), (3 * SECOND, 10), (10 * SECOND, 20), (27 * SECOND, 30)):
        engine, cell = an_engine(), cell_of(4)
        assert only(submit(engine, cell, service("a", 1), 0, now), WakeMe).at == expected * SECOND
        # One timer serves all that come before it.
        assert not submit(engine, cell, service("b", 1), 1, now)
    engine = an_engine(interval=0)
    assert only(submit(engine, cell_of(4), service("a", 1), 0, 3), WakeMe).at == 3


def test_without_an_interval_an_application_that_comes_at_time_0_is_decided_on_then() -> None:
    engine = an_engine(interval=0)
    assert only(submit(engine, cell_of(4), service("a", 1), 0, 0), WakeMe).at == 0


def test_a_batch_takes_time_for_each_application_and_each_container() -> None:
    engine, cell = an_engine(t_lra=1_000, t_container=10), cell_of(8)
    for number, tasks in enumerate((2, 3)):
        submit(engine, cell, service(f"a{number}", tasks), number)
    first, other = plan(engine, cell)
    assert (first.duration, first.job, first.lane) == (2 * 1_000 + 5 * 10, 0, "lra")
    # The attempt at the others is part of the first one's.
    assert (other.duration, other.job, other.lane) == (0, 1, "lra")


def test_lost_containers_wait_together() -> None:
    engine, cell, made = an_engine(), cell_of(8), service("a", 3)
    assert only(engine.handle(lost(made, 0, 2), cell, 0), WakeMe)
    assert not engine.handle(lost(made, 0, 0), cell, 0)
    commit = only(decide(engine, cell, plan(engine, cell)), Commit)
    assert sorted(commit.transaction.claims.tasks.tolist()) == tasks_of(0, 0, 2).tolist()


def test_containers_lost_while_others_of_their_application_find_no_place_join_them() -> None:
    engine, cell, made = an_engine(), cell_of(8), service("a", 3, cpu=3_000)
    take(cell, 0, 8)
    engine.handle(lost(made, 0, 0), cell, 0)
    thinking = plan(engine, cell)
    engine.handle(lost(made, 0, 1), cell, INTERVAL)
    effects = decide(engine, cell, thinking)
    assert only(effects, Explain).tasks.tolist() == tasks_of(0, 0).tolist()
    assert only(effects, WakeMe).at == 2 * INTERVAL
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, *range(8))))
    commit = only(decide(engine, cell, plan(engine, cell, 2 * INTERVAL)), Commit)
    assert sorted(commit.transaction.claims.tasks.tolist()) == tasks_of(0, 0, 1).tolist()


def test_a_conflict_is_told_with_the_reason_of_the_container_that_had_it() -> None:
    for last in (0, 1):
        engine, cell = an_engine(), cell_of(4, 4)
        submit(engine, cell, service("a", 2, cpu=4_000), 0)
        effects = decide(engine, cell, plan(engine, cell))
        take(cell, int(only(effects, Commit).transaction.claims.machines[last]), 1)
        told = only(answer(engine, cell, effects), Explain)
        assert len(told.tasks) == 2
        assert told.explanation.refused.why is Why.NO_ROOM


def test_after_a_conflict_an_application_is_decided_on_again_in_the_next_interval() -> None:
    engine, cell = an_engine(attempts=2), cell_of(4, 4)
    submit(engine, cell, service("a", 1, cpu=4_000), 0)
    effects = decide(engine, cell, plan(engine, cell))
    take(cell, int(only(effects, Commit).transaction.claims.machines[0]), 1, 98)
    assert only(answer(engine, cell, effects), WakeMe).at == 2 * INTERVAL
    effects = decide(engine, cell, plan(engine, cell, 2 * INTERVAL), 2 * INTERVAL)
    take(cell, int(only(effects, Commit).transaction.claims.machines[0]), 1, 97)
    gone = only(answer(engine, cell, effects, 2 * INTERVAL), Abandon)
    assert gone.explanation.refused.lacking == 2


def test_nothing_is_planned_while_a_plan_is_under_way() -> None:
    engine, cell = an_engine(), cell_of(8)
    submit(engine, cell, service("a", 1), 0)
    thinking = plan(engine, cell)
    # The next interval begins with the answer, not before.
    assert not submit(engine, cell, service("b", 1), 1, INTERVAL + 1)
    assert not plan(engine, cell, 2 * INTERVAL)
    effects = answer(engine, cell, decide(engine, cell, thinking))
    assert only(effects, WakeMe).at == 2 * INTERVAL


def test_an_application_cancelled_during_its_decision_is_not_claimed() -> None:
    engine, cell, made = an_engine(), cell_of(8), service("a", 2)
    submit(engine, cell, made, 0)
    submit(engine, cell, service("b", 1), 1)
    thinking = plan(engine, cell)
    engine.handle(JobCancelled(made, 0, tasks_of(0, 0, 1)), cell, INTERVAL)
    commit = only(decide(engine, cell, thinking), Commit)
    assert commit.transaction.claims.tasks.tolist() == tasks_of(1, 0).tolist()


def test_an_application_that_shrinks_while_it_waits_is_placed_with_what_is_left() -> None:
    engine, cell = an_engine(), cell_of(8)
    submit(engine, cell, service("a", 3), 0)
    smaller = service("a", 1)
    removed = JobChanged(smaller, 0, np.empty(0, np.int64), tasks_of(0, 1, 2))
    engine.handle(removed, cell, 0)
    commit = only(decide(engine, cell, plan(engine, cell)), Commit)
    assert commit.transaction.claims.tasks.tolist() == tasks_of(0, 0).tolist()


def test_an_application_whose_last_waiting_task_is_cancelled_is_not_planned() -> None:
    engine, cell, made = an_engine(), cell_of(8), service("a", 1)
    submit(engine, cell, made, 0)
    engine.handle(JobCancelled(made, 0, tasks_of(0, 0)), cell, 0)
    assert not plan(engine, cell)


def test_machines_that_take_no_claims_are_no_room_for_applications() -> None:
    engine, cell = an_engine(), cell_of(8, 2)
    cell.commit(Transaction(OPERATOR, machines=(DrainMachine(0, draining=True),)))
    submit(engine, cell, service("a", 2), 0)
    commit = only(decide(engine, cell, plan(engine, cell)), Commit)
    assert commit.transaction.claims.machines.tolist() == [1, 1]


def test_hard_constraints_count_while_their_application_is_there() -> None:
    cell = cell_of(4)
    manager = ConstraintManager(make_ledger(cell))
    assert not manager.has_hard
    hard, soft = (parse_constraint(f"w -> {{w, 0, 1}} in machine{end}") for end in (" hard", ""))
    for number, constraint in enumerate((soft, hard, hard)):
        manager.submit(number, structs.replace(service(f"j{number}", 1), constraints=(constraint,)))
        assert manager.has_hard == (number > 0)
    manager.withdraw(1)
    assert manager.has_hard
    manager.withdraw(2)
    assert not manager.has_hard
    assert not manager.is_idle
    manager.withdraw(0)
    assert manager.is_idle


def test_a_memory_is_made_anew_when_machines_join_or_are_relabelled() -> None:
    cell = cell_of(4)
    memory = Memory(cell, "s")
    assert not memory.is_outgrown(cell)
    cell.commit(Transaction(OPERATOR, machines=(RelabelMachine(0, {"disk": "ssd"}),)))
    assert memory.is_outgrown(cell)
    memory = Memory(cell, "s")
    joins = AddMachine(Machine("m1", Resources(4_000, GIB)))
    cell.commit(Transaction(OPERATOR, machines=(joins,)))
    assert memory.is_outgrown(cell)


def test_a_job_whose_claims_are_refused_after_it_was_cancelled_is_forgotten() -> None:
    engine, cell, made = an_engine(), cell_of(4), service("a", 1, cpu=4_000)
    submit(engine, cell, made, 0)
    effects = decide(engine, cell, plan(engine, cell))
    engine.handle(JobCancelled(made, 0, tasks_of(0, 0)), cell, INTERVAL)
    assert 0 in engine._jobs
    take(cell, 0, 1)
    assert not answer(engine, cell, effects)
    assert 0 not in engine._jobs


def test_no_more_containers_move_in_an_interval_than_may() -> None:
    apart = parse_constraint("appID:self -> {appID:self, 0, 0} in machine")
    for most in (0, 1, 2):
        engine, cell = an_engine(migrate=most), cell_of(8, 8, 8)
        take(cell, 1, 8, 98)
        take(cell, 2, 8, 97)
        made = structs.replace(service("a", 3), constraints=(apart,))
        cell.admit(0, made)
        submit(engine, cell, made, 0)
        answer(engine, cell, decide(engine, cell, plan(engine, cell)))
        for number in (97, 98):
            cell.commit(Transaction(OPERATOR, releases=tasks_of(number, *range(8))))
        submit(engine, cell, service("b", 1, cpu=100), 1, INTERVAL)
        commit = only(decide(engine, cell, plan(engine, cell, 2 * INTERVAL)), Commit)
        moved = np.isin(commit.transaction.claims.tasks, tasks_of(0, 0, 1, 2))
        assert int(moved.sum()) == most


def tagged(cell: Cell, number: int, tag: str, *machines: int) -> Claims:
    """Claims of a job's tasks with this tag, one on each of these machines."""
    rows = np.array(machines, np.int32)
    shapes = np.full(len(rows), cell.shape(Resources(1_000, GIB), frozenset({tag})), np.int32)
    return Claims(tasks_of(number, *range(len(rows))), rows, shapes, cell.versions(rows))


def test_a_move_must_not_join_those_for_whom_a_constraint_is_broken_already() -> None:
    cell = cell_of(8, 8, 8)
    apart = parse_constraint("w -> {d, 0, 0} in machine hard")
    assert cell.commit(Transaction("s", tagged(cell, 1, "d", 0))).all_accepted
    assert cell.commit(Transaction("s", tagged(cell, 0, "w", 0, 0, 1))).all_accepted
    memory = Memory(cell, "s", (apart,))
    own = list(memory.own_containers())
    # The one that is alone joins those on m0, or nobody; one of those on m0 leaves. Nothing is done, so
    # the same may be asked again.
    for index, machine, allowed in ((2, 0, [False]), (2, 2, [True]), (0, 2, [True])) * 3:
        where = np.array([machine], np.int32)
        shapes = tagged(cell, 0, "w", machine).shapes
        move = Claims(tasks_of(0, index), where, shapes, cell.versions(where))
        assert hard_rows(memory, cell, move, np.zeros(1, np.int32)).tolist() == allowed
        assert list(memory.own_containers()) == own


def test_an_assumed_answer_is_forgotten_even_if_judging_it_fails() -> None:
    """A container of before moves from m0 to m1, and a new one starts on m0."""
    cell = cell_of(8, 8)
    apart = parse_constraint("w -> {w, 0, 0} in machine")
    assert cell.commit(Transaction("s", tagged(cell, 0, "w", 0))).all_accepted
    memory = Memory(cell, "s", (apart,))
    request = np.array([1_000, GIB], np.int64)
    kinds = [
        ContainerKind(0, frozenset("w"), request, 1),
        ContainerKind(1, frozenset("w"), request, 1, origin=0),
    ]
    problem = memory.ledger.problem(cell.free(), cell.capacity(), kinds)
    rows, where = np.array([0, 1], np.int32), np.array([0, 1], np.int32)
    worth = appraise(problem, Objective(), rows, where)
    answer = PlacementAnswer(rows, where, worth, "by hand")
    before = violated(memory, problem, answer)
    with pytest.raises(ZeroDivisionError), memory.running(problem, answer):
        _ = 1 // 0
    assert violated(memory, problem, answer) == before


def test_violations_of_before_are_not_told_as_added() -> None:
    """Two on m0 break the constraint for both by 1; a third on m1 is on its own, and a fourth joins."""
    cell = cell_of(8, 8)
    apart = parse_constraint("w -> {w, 0, 0} in machine")
    assert cell.commit(Transaction("s", tagged(cell, 0, "w", 0, 0, 1))).all_accepted
    memory = Memory(cell, "s", (apart,))
    kind = ContainerKind(0, frozenset("w"), np.array([1_000, GIB], np.int64), 1)
    problem = memory.ledger.problem(cell.free(), cell.capacity(), [kind])
    told = {}
    for machine in (0, 1):
        rows = np.array([machine], np.int32)
        kinds = np.zeros(1, np.int32)
        worth = appraise(problem, Objective(), kinds, rows)
        answer = PlacementAnswer(kinds, rows, worth, "by hand")
        told[machine] = violated(memory, problem, answer).violated
    text = "'w -> {w, 0, 0} in machine' is broken for"
    # On m0, three by 2 each instead of two by 1; on m1, two by 1.
    assert told == {
        0: (f"{text} 3 containers, by 4 in all",),
        1: (f"{text} 2 containers, by 2 in all",),
    }


def test_machines_without_room_are_counted_by_the_first_resource_they_lack() -> None:
    """Of four machines, the first is filtered out, though it lacks most."""
    cell = cell_of(1, 8, 2, 3)
    memory = Memory(cell, "s")
    allowed = np.array([False, True, True, True])
    request = np.array([4_000, GIB], np.int64)
    kind = ContainerKind(0, frozenset("w"), request, 1, allowed=allowed)
    found = unplaced(memory, 0, [kind], cell.free(), cell, (1_000, GIB))
    assert (found.looked_at, found.feasible) == (4, 1)
    assert found.ruled_out == {"filtered": 1, "cpu": 2}
    assert found.nearest_miss is None
    take(cell, 1, 8)
    found = unplaced(memory, 0, [kind], cell.free(), cell, (1_000, GIB))
    assert (found.feasible, found.ruled_out) == (0, {"filtered": 1, "cpu": 3})
    # The last lacks one core, the fewest; the first may not be named.
    assert found.nearest_miss == Refusal(Why.NO_ROOM, machine=3, dimension="cpu", lacking=1_000)
    nobody = ContainerKind(0, frozenset("w"), request, 1, allowed=np.zeros(4, bool))
    found = unplaced(memory, 0, [nobody], cell.free(), cell, (1_000, GIB))
    assert (found.ruled_out, found.nearest_miss) == ({"filtered": 4}, None)


class TestTasksThatConstraintsConcern:
    """Hard: at most one on each machine."""

    def bench(self, tasks: int, *cores: int, **fields: Any) -> tuple[Any, Cell, Any]:
        apart = parse_constraint("w -> {w, 0, 0} in machine hard")
        engine, cell = an_engine(operator=(apart,), t_job=SECOND), cell_of(*cores)
        made = job("a", tasks, tags=("w",), **fields).job
        return engine, cell, only(submit(engine, cell, made, 0), Think)

    def end(self, engine: Any, cell: Cell, thinking: Think) -> tuple[list[int], Any]:
        """The tasks that are claimed, and what happens once that is answered."""
        effects = engine.handle(DecisionDue(thinking.token), cell, SECOND)
        if not any(isinstance(effect, Commit) for effect in effects):
            return [], effects
        claimed = only(effects, Commit).transaction.claims.tasks.tolist()
        return claimed, answer(engine, cell, effects, SECOND)

    @pytest.mark.parametrize(("gang", "kept"), [(False, 1), (True, 0)])
    def test_what_would_break_one_by_now_is_decided_again_at_once(
        self, gang: bool, kept: int
    ) -> None:
        engine, cell, thinking = self.bench(2, 4, 4, gang=gang)
        assert cell.commit(Transaction("t", tagged(cell, 5, "w", 0))).all_accepted
        claimed, effects = self.end(engine, cell, thinking)
        assert len(claimed) == kept
        told = only(effects, Explain)
        assert told.explanation.refused == Refusal(Why.FILTERED, machine=0)
        assert sorted([*told.tasks.tolist(), *claimed]) == tasks_of(0, 0, 1).tolist()
        # It does not wait for anything to end.
        again = only(effects, Think)
        assert again.token != thinking.token

    def test_what_finds_no_place_is_told_and_decided_on_alone(self) -> None:
        engine, cell, thinking = self.bench(2, 4, 1, cpu=3_000)
        claimed, effects = self.end(engine, cell, thinking)
        assert claimed == tasks_of(0, 0).tolist()
        assert only(effects, Explain).tasks.tolist() == tasks_of(0, 1).tolist()
        claimed, effects = self.end(engine, cell, only(effects, Think))
        assert claimed == []
        assert only(effects, Explain).tasks.tolist() == tasks_of(0, 1).tolist()
        # Nothing of it found a place, so it waits.
        assert only(effects, WakeMe).at > SECOND

    def test_applications_under_way_are_counted_only_while_their_claims_are(self) -> None:
        """The claim of an application for m0 is being answered: then tasks keep off it."""
        apart = parse_constraint("w -> {w, 0, 0} in machine hard")
        for is_committing in (False, True):
            engine, cell = an_engine(operator=(apart,), t_job=SECOND), cell_of(4)
            submit(engine, cell, service("b", 1), 1)
            planned = plan(engine, cell)
            made = job("a", 1, tags=("w",)).job
            thinking = only(submit(engine, cell, made, 0, INTERVAL), Think)
            if is_committing:
                assert only(decide(engine, cell, planned), Commit)
            effects = engine.handle(DecisionDue(thinking.token), cell, INTERVAL)
            commits = [effect for effect in effects if isinstance(effect, Commit)]
            assert len(commits) == (not is_committing)


def test_why_some_tasks_are_left_counts_the_room_that_the_others_have_just_taken() -> None:
    """Two of three tasks fit, one a machine: there the third lacks two of its three cores."""
    cell = cell_of(4, 3)
    engine_type = ENGINES["jkube"]
    rule = parse_constraint("w -> {other, 0, 0} in machine")
    context = Context("s", (), Random(1), constraints=(rule,))
    engine = engine_type(make_settings(engine_type, {}), context)
    made = job("a", 3, cpu=3_000, tags=("w",)).job
    commit = only(decide(engine, cell, submit(engine, cell, made, 0)), Commit)
    assert sorted(commit.transaction.claims.machines.tolist()) == [0, 1]
    why = only(answer(engine, cell, [commit]), Explain)
    assert why.tasks.tolist() == tasks_of(0, 2).tolist()
    assert (why.explanation.feasible, why.explanation.ruled_out) == (0, {"cpu": 2})
    miss = Refusal(Why.NO_ROOM, machine=0, dimension="cpu", lacking=2_000)
    assert why.explanation.nearest_miss == miss


@pytest.mark.parametrize("migrate", [0, 1])
def test_containers_that_may_move_are_looked_at_again_when_room_may_have_appeared(
    migrate: int,
) -> None:
    nothing = np.empty(0, np.int64)
    for event in (
        MachineChanged(0),
        MachineJoined(0),
        TaskFinished(nothing, nothing, nothing, nothing),
    ):
        engine = an_engine(migrate=migrate)
        timers = [e for e in engine.handle(event, cell_of(4), 0) if isinstance(e, WakeMe)]
        assert [timer.at for timer in timers] == [INTERVAL] * migrate
