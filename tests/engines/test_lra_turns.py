"""Schedulers of long-running applications: what is refused, lost, relaxed or not worth a decision."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from serial_attempts import cell_of, end, only, take, tasks_of
from test_lra_plans import APART, running
from test_lra_steps import INTERVAL, an_engine, answer, decide, lost, plan, service, submit

from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.families.lra.memory import Memory
from argosy.engines.families.lra.plans import Application, kinds_of, tasks_by_kind
from argosy.engines.yarn import Yarn
from argosy.engines.yarn.engine import YarnSettings
from argosy.model.constraints.parts import container_tag
from argosy.model.constraints.text import parse_constraint
from argosy.model.effects import Abandon, Commit, Explain, Think, WakeMe
from argosy.model.events import MachineChanged, TasksLost
from argosy.model.explanations import Why
from argosy.model.jobs import Job, TaskGroup
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Claims, Transaction
from argosy.testing.builders import GIB, job, machines


def racks(per_rack: int = 2) -> Cell:
    """Machines of four cores in two racks."""
    cell = Cell(("cpu", "memory"), {"rack": ("r0", "r1")}, audited=True)
    joins = tuple(AddMachine(machine) for machine in machines(2 * per_rack, per_rack=per_rack))
    cell.commit(Transaction(OPERATOR, machines=joins))
    return cell


@pytest.mark.parametrize(("has_rule", "decisions"), [(False, 0), (True, 1)])
def test_without_constraints_no_container_can_be_better_off(has_rule: bool, decisions: int) -> None:
    operator = [msgspec.to_builtins(APART)] if has_rule else []
    engine, cell = an_engine(migrate=1, operator=operator), cell_of(4)
    assert only(engine.handle(MachineChanged(0), cell, 0), WakeMe).at == INTERVAL
    effects = plan(engine, cell)
    assert len([each for each in effects if isinstance(each, Think)]) == decisions
    # Nothing has changed since: there is no further interval.
    assert [each for each in effects if isinstance(each, WakeMe)] == []


def test_an_application_with_an_impossible_constraint_is_given_up_and_told_which() -> None:
    engine, cell = an_engine(), cell_of(4)
    rule = parse_constraint("w -> {w, 0, 0} in rack hard")
    made = service("a", 2, constraints=(rule,))
    cell.admit(3, made)
    gone = only(submit(engine, cell, made, 3), Abandon)
    assert gone.tasks.tolist() == tasks_of(3, 0, 1).tolist()
    assert gone.explanation.refused.why is Why.FILTERED
    assert "'w -> {w, 0, 0} in rack hard': " in gone.explanation.remedy
    assert plan(engine, cell) == ()
    # Another application of that number, later, is not blamed for it.
    memory = Memory(cell, "s")
    assert str(memory.refused(3)) == gone.explanation.remedy
    cell.retire(3)
    memory.refresh(cell)
    assert memory.refused(3) is None
    cell.admit(3, service("b", 1))
    memory.refresh(cell)
    assert memory.refused(3) is None


def test_without_machines_an_application_is_told_to_add_some() -> None:
    engine, cell = an_engine(), cell_of()
    submit(engine, cell, service("a", 1), 0)
    effects = decide(engine, cell, plan(engine, cell))
    told = only(effects, Explain)
    assert (told.tasks.tolist(), told.explanation.remedy) == (
        tasks_of(0, 0).tolist(),
        "add a machine",
    )
    assert only(effects, WakeMe).at == 2 * INTERVAL


@pytest.mark.parametrize("is_free", [True, False])
def test_after_a_conflict_an_application_may_move_within_its_rack(is_free: bool) -> None:
    engine, cell = an_engine(conflict="relax", attempts=5), racks()
    submit(engine, cell, service("a", 1, cpu=4_000), 0)
    effects = decide(engine, cell, plan(engine, cell))
    first = only(effects, Commit)
    [machine] = first.transaction.claims.machines.tolist()
    other = machine ^ 1
    take(cell, machine, 1)
    if not is_free:
        take(cell, other, 1, number=98)
    effects = answer(engine, cell, effects)
    if not is_free:
        # The other rack is free, but not this one.
        assert [type(each) for each in effects] == [Explain, WakeMe]
        assert effects[0].explanation.refused.why is Why.NO_ROOM
        assert effects[0].explanation.refused.machine == machine
        return
    [second] = effects
    assert second.transaction.claims.machines.tolist() == [other]
    assert (second.token, second.explanation.rule) == (first.token, "relaxed after a conflict")
    assert not answer(engine, cell, effects)


def test_a_relaxed_application_has_made_an_attempt_more() -> None:
    engine, cell = an_engine(conflict="relax", attempts=2), racks(per_rack=3)
    submit(engine, cell, service("a", 1, cpu=4_000), 0)
    effects = decide(engine, cell, plan(engine, cell))
    for number in (97, 98):
        [machine] = only(effects, Commit).transaction.claims.machines.tolist()
        take(cell, machine, 1, number=number)
        effects = answer(engine, cell, effects)
    gone = only(effects, Abandon)
    assert gone.explanation.refused.lacking == 2


def test_what_is_lost_is_held_no_longer_and_what_is_refused_never_was() -> None:
    engine = Yarn(YarnSettings(order="placement"), Context("s", (), Random(1)))
    cell, made = cell_of(4, 4), job("a", 4, owner="ann").job

    def share() -> float:
        return engine._shares.share("ann", cell)

    claims, _ = end(engine, cell, only(submit(engine, cell, made, 0), Think))
    assert (len(claims), share()) == (4, 0.5)
    gone = TasksLost(made, 0, tasks_of(0, 1, 3), np.zeros(2, np.int32), Why.MACHINE_GONE)
    cell.commit(Transaction(OPERATOR, releases=gone.tasks))
    thinking = only(engine.handle(gone, cell, 0), Think)
    assert share() == 0.25
    claims, _ = end(engine, cell, thinking)
    assert (claims.tasks.tolist(), share()) == (gone.tasks.tolist(), 0.5)


def test_lost_containers_of_an_application_are_held_no_longer() -> None:
    engine, cell, made = an_engine(), cell_of(4), service("a", 2, owner="ann")
    submit(engine, cell, made, 0)
    answer(engine, cell, decide(engine, cell, plan(engine, cell)))
    assert engine._shares.share("ann", cell) == 0.5
    engine.handle(lost(made, 0, 1), cell, INTERVAL)
    assert engine._shares.share("ann", cell) == 0.25


def test_assumed_claims_are_forgotten_even_if_something_fails() -> None:
    cell = cell_of(4, 4)
    memory = Memory(cell, "s", (APART,))
    rows = np.array([0, 0, 1], np.int32)
    shapes = np.full(3, cell.shape(Resources(1_000, GIB), frozenset({"w"})), np.int32)
    claims = Claims(tasks_of(0, 0, 1, 2), rows, shapes, cell.versions(rows))

    def fail() -> None:
        with memory.assumed(claims, cell):
            assert running(memory) == [2, 1]
            _ = 1 // 0

    with memory.assumed(None, cell):
        assert running(memory) == [0, 0]
    with pytest.raises(ZeroDivisionError):
        fail()
    assert running(memory) == [0, 0]


def test_containers_that_constraints_name_are_kinds_of_their_own() -> None:
    groups = (
        TaskGroup(3, Resources(1_000, GIB), tags=("w",)),
        TaskGroup(2, Resources(2_000, GIB), tags=("x",)),
    )
    made = Job("j", groups)
    application = Application(made, 5, tasks_of(5, 0, 1, 2, 4))

    def kinds(names: frozenset[str]) -> list[tuple[int, list[int]]]:
        found = [(group, tasks.tolist()) for group, _, tasks in kinds_of(application, names)]
        return [(groups.index(group), tasks) for group, tasks in found]

    first, second = tasks_of(5, 0, 1, 2).tolist(), tasks_of(5, 4).tolist()
    assert kinds(frozenset()) == [(0, first), (1, second)]
    assert kinds(frozenset({"other/1"})) == [(0, first), (1, second)]
    named = frozenset({container_tag("j", 1), container_tag("other", 0)})
    [without, alone] = tasks_of(5, 0, 2).tolist(), tasks_of(5, 1).tolist()
    assert kinds(named) == [(0, without), (0, alone), (1, second)]
    tags = [tags for _, tags, _ in kinds_of(application, frozenset())]
    assert [sorted({"w", "x"} & set(each)) for each in tags] == [["w"], ["x"]]
    both = [application, Application(made, 6, tasks_of(6, 3))]
    assert [each.tolist() for each in tasks_by_kind(both, frozenset())] == [
        first,
        second,
        tasks_of(6, 3).tolist(),
    ]


def test_a_batch_reserves_the_room_of_its_plan_until_it_is_answered() -> None:
    engine, cell = an_engine(conflict="reserve"), cell_of(4, 4)
    submit(engine, cell, service("a", 1, cpu=3_000), 0)
    effects = plan(engine, cell)
    found: Any = -engine.reserved(cell)
    assert sorted(found[:, 0].tolist()) == [0, 3_000]
    effects = decide(engine, cell, effects)
    assert engine.reserved(cell) is not None
    answer(engine, cell, effects)
    assert engine.reserved(cell) is None
