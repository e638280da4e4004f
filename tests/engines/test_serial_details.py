"""What all serial schedulers share, on the example of Omega: withdrawals, losses and what is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs
from serial_attempts import cell_of, end, only, submit, take, tasks_of

from argosy.agents.committing import refused
from argosy.cell import Cell
from argosy.cell.bitmaps import to_mask
from argosy.engines.api import Context
from argosy.engines.omega import Omega, OmegaSettings
from argosy.engines.registry import ENGINES
from argosy.engines.shared.failure_domains import over_domains
from argosy.model.effects import Abandon, Commit, Explain, Think, WakeMe
from argosy.model.events import (
    Committed,
    DecisionDue,
    JobCancelled,
    JobChanged,
    JobSubmitted,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import Refusal, Why
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import SchedulerLimits
from argosy.model.transactions import OPERATOR, AddMachine, Transaction
from argosy.model.truth import group_with_truth, simulated_job
from argosy.testing.builders import GIB, SECOND, job, machines, scenario
from argosy.worlds.sim import SimulatedWorld

NOTHING = np.empty(0, np.int64)


def an_omega(**settings: Any) -> Omega:
    return Omega(OmegaSettings(**settings), Context("s", (), Random(1)))


def of(effects: Any, kind: type) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def decide(engine: Omega, cell: Cell, thinking: Think) -> Any:
    return engine.handle(DecisionDue(thinking.token), cell, 0)


def test_lost_tasks_are_tried_in_the_order_of_their_numbers() -> None:
    engine, cell, wide = an_omega(), cell_of(1), job("a", 4).job
    take(cell, 0, 1)
    waits = JobSubmitted(wide, 0, tasks_of(0, 2, 3))
    _, effects = end(engine, cell, only(engine.handle(waits, cell, 0), Think))
    lost = TasksLost(wide, 0, tasks_of(0, 0), np.zeros(1, np.int32), Why.PREEMPTED)
    assert not engine.handle(lost, cell, 0)
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0)))
    thinking = only(engine.handle(TimerFired(only(effects, WakeMe).name), cell, SECOND), Think)
    claims, _ = end(engine, cell, thinking, SECOND)
    assert claims.tasks.tolist() == tasks_of(0, 0).tolist()


def test_tasks_removed_during_a_decision_are_not_explained() -> None:
    engine, cell = an_omega(), cell_of(4)
    large, smaller = (job("a", count, cpu=64_000).job for count in (2, 1))
    thinking = only(submit(engine, cell, large, 0), Think)
    engine.handle(JobChanged(smaller, 0, NOTHING, tasks_of(0, 1)), cell, 0)
    explained = only(decide(engine, cell, thinking), Explain)
    assert explained.tasks.tolist() == tasks_of(0, 0).tolist()


def test_a_task_without_room_that_is_removed_during_a_decision_is_not_tried_again() -> None:
    engine, cell = an_omega(), cell_of(1)
    thinking = only(submit(engine, cell, job("a", 2).job, 0), Think)
    engine.handle(JobChanged(job("a", 1).job, 0, NOTHING, tasks_of(0, 1)), cell, 0)
    claims, effects = end(engine, cell, thinking)
    assert claims.tasks.tolist() == tasks_of(0, 0).tolist()
    assert not effects


def test_a_job_cancelled_while_it_waits_is_not_tried_when_its_time_has_come() -> None:
    engine, cell, giant = an_omega(), cell_of(4), job("a", 1, cpu=64_000).job
    _, effects = end(engine, cell, only(submit(engine, cell, giant, 0), Think))
    engine.handle(JobCancelled(giant, 0, tasks_of(0, 0)), cell, 0)
    assert not engine.handle(TimerFired(only(effects, WakeMe).name), cell, SECOND)


def test_a_commit_of_several_groups_has_no_single_explanation() -> None:
    groups = [group_with_truth(1, Resources(cpu, GIB), (SECOND,)) for cpu in (500, 1_000)]
    for count in (1, 2):
        engine, cell = an_omega(), cell_of(4)
        thinking = only(submit(engine, cell, simulated_job("a", *groups[:count]).job, 0), Think)
        commit = only(decide(engine, cell, thinking), Commit)
        assert (commit.explanation is None) == (count == 2)


@pytest.mark.parametrize("preempts", [True, False])
def test_only_a_job_that_preempts_is_committed_with_the_right_to(preempts: bool) -> None:
    engine, cell = an_omega(preempt=True), cell_of(1)
    thinking = only(submit(engine, cell, job("a", preempts=preempts).job, 0), Think)
    assert only(decide(engine, cell, thinking), Commit).transaction.preempt is preempts


def test_a_decision_that_is_no_longer_the_current_one_is_not_committed_twice() -> None:
    engine, cell = an_omega(), cell_of(4)
    thinking = only(submit(engine, cell, job("a", 1).job, 0), Think)
    submit(engine, cell, job("b", 1).job, 1)
    end(engine, cell, thinking)
    assert not decide(engine, cell, thinking)


def test_an_attempt_that_places_only_a_part_counts_as_lost() -> None:
    engine, cell = an_omega(patience=1), cell_of(2)
    thinking = only(submit(engine, cell, job("a", 3).job, 0), Think)
    commit = only(decide(engine, cell, thinking), Commit)
    assert not commit.transaction.preempt
    outcome = cell.commit(commit.transaction)
    thinking = only(engine.handle(Committed(commit.token, outcome), cell, 0), Think)
    assert only(decide(engine, cell, thinking), Commit).transaction.preempt


def test_after_a_withdrawal_in_transit_the_next_refusal_is_handled_as_usual() -> None:
    engine, cell, first = an_omega(), cell_of(4), job("a", 1).job
    thinking = only(submit(engine, cell, first, 0), Think)
    submit(engine, cell, job("b", 1).job, 1)
    commit = only(decide(engine, cell, thinking), Commit)
    engine.handle(JobCancelled(first, 0, tasks_of(0, 0)), cell, 0)
    gone = refused(Refusal(Why.CANCELLED, machine=0), ("cpu", "memory"))
    effects = engine.handle(Committed(commit.token, gone), cell, 0)
    thinking = only(effects, Think)
    assert thinking.job == 1
    commit = only(decide(engine, cell, thinking), Commit)
    limited = refused(Refusal(Why.JOB_LIMIT, machine=0), ("cpu", "memory"))
    # At its limit, a scheduler waits.
    assert only(engine.handle(Committed(commit.token, limited), cell, 0), WakeMe)


def test_what_was_refused_and_is_still_wanted_is_tried_again_after_a_withdrawal() -> None:
    engine, cell = an_omega(), cell_of(2)
    thinking = only(submit(engine, cell, job("a", 2, gang=True).job, 0), Think)
    commit = only(decide(engine, cell, thinking), Commit)
    smaller = job("a", 1, gang=True).job
    engine.handle(JobChanged(smaller, 0, NOTHING, tasks_of(0, 1)), cell, 0)
    take(cell, 0, 1)
    outcome = cell.commit(commit.transaction)
    assert not outcome.accepted.any()
    thinking = only(engine.handle(Committed(commit.token, outcome), cell, 0), Think)
    claims, effects = end(engine, cell, thinking)
    assert claims.tasks.tolist() == tasks_of(0, 0).tolist()
    assert not effects


def test_after_a_conflict_a_job_is_tried_again_at_once_and_at_a_limit_later() -> None:
    for why, waits in ((Why.NO_ROOM, False), (Why.JOB_LIMIT, True)):
        engine, cell = an_omega(), cell_of(4)
        commit = only(
            decide(engine, cell, only(submit(engine, cell, job("a").job, 0), Think)), Commit
        )
        outcome = refused(Refusal(why, machine=0), ("cpu", "memory"))
        effects = engine.handle(Committed(commit.token, outcome), cell, 0)
        assert bool(of(effects, WakeMe)) == waits
        assert bool(of(effects, Think)) != waits


def test_any_unfinished_job_may_be_tried_again_after_a_fixed_time() -> None:
    """As in the published simulator of the Omega paper: after a conflict too, and without doubling."""
    engine, cell = an_omega(t_job=0, t_task=0, retry_after=SECOND), cell_of(1)
    thinking = only(submit(engine, cell, job("a", 1, cpu=1_000).job, 0), Think)
    commit = only(decide(engine, cell, thinking), Commit)
    take(cell, 0, 1)
    answer = Committed(commit.token, cell.commit(commit.transaction))
    for _ in range(3):
        waits = only(engine.handle(answer, cell, 0), WakeMe)
        assert waits.at == SECOND
        thinking = only(engine.handle(TimerFired(waits.name), cell, 0), Think)
        answer = DecisionDue(thinking.token)


def test_each_failure_domain_gets_an_equal_part_rounded_up() -> None:
    cell = Cell(("cpu", "memory"), {"rack": ("r0", "r1")})
    joins = tuple(AddMachine(machine) for machine in machines(8))
    cell.commit(Transaction(OPERATOR, machines=joins))
    assert [part for _, part in over_domains("rack", 5, cell, Random(1))] == [3, 3]
    assert [part for _, part in over_domains("rack", 4, cell, Random(1))] == [2, 2]


def domains(*joined: dict[str, str]) -> Cell:
    """Machines m0, m1 and so on in these sets of racks and feeds."""
    cell = Cell(("cpu", "memory"), {"rack": ("r0", "r1"), "feed": ("f0", "f1")})
    for at, groups in enumerate(joined):
        joins = {group: (name,) for group, name in groups.items()}
        machine = Machine(f"m{at}", Resources(64_000, 64 * GIB), joins=joins)
        cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
    return cell


def parts_by_machines(cell: Cell, count: int) -> dict[tuple[int, ...], int]:
    """How many tasks each set of machines gets."""
    parts = over_domains(("rack", "feed"), count, cell, Random(1))
    return {
        tuple(np.flatnonzero(to_mask(machines, cell.machines)).tolist()): part
        for machines, part in parts
    }


def test_two_tasks_share_no_failure_domain_if_they_need_not() -> None:
    crossed = [{"rack": f"r{at // 2}", "feed": f"f{at % 2}"} for at in range(4)]
    two = parts_by_machines(domains(*crossed), 2)
    assert set(two) in ({(0,), (3,)}, {(1,), (2,)})
    assert parts_by_machines(domains(*crossed), 8) == {(at,): 2 for at in range(4)}


def test_nested_failure_domains_are_filled_evenly_on_both_levels() -> None:
    # Feed f0 has only rack r0; feed f1 has machines of both.
    nested = domains(
        {"rack": "r0", "feed": "f0"}, {"rack": "r0", "feed": "f1"}, {"rack": "r1", "feed": "f1"}
    )
    assert parts_by_machines(nested, 4) == {(0,): 2, (2,): 2}


def test_machines_in_the_same_domains_are_one_choice() -> None:
    alike = domains(*[{"rack": "r0", "feed": "f0"}] * 3, {"rack": "r1", "feed": "f1"})
    assert parts_by_machines(alike, 6) == {(0, 1, 2): 3, (3,): 3}


def test_a_job_is_given_up_after_its_attempts_and_not_before() -> None:
    engine, cell = an_omega(attempts=3, backoff=0), cell_of(4)
    effects = submit(engine, cell, job("a", 1, cpu=64_000).job, 0)
    for _ in range(2):
        effects = decide(engine, cell, only(effects, Think))
        assert not of(effects, Abandon)
    gone = only(decide(engine, cell, only(effects, Think)), Abandon)
    assert gone.explanation.refused.lacking == 3


def test_a_job_of_several_groups_does_not_carry_the_explanation_of_the_job_before() -> None:
    engine, cell = an_omega(), cell_of(8)
    groups = [group_with_truth(1, Resources(cpu, GIB), (SECOND,)) for cpu in (1_000, 2_000)]
    made = [job("a").job, simulated_job("b", *groups).job, job("c").job]
    told = []
    for number, each in enumerate(made):
        commit = only(decide(engine, cell, only(submit(engine, cell, each, number), Think)), Commit)
        engine.handle(Committed(commit.token, cell.commit(commit.transaction)), cell, 0)
        told.append(commit.explanation is not None)
    assert told == [True, False, True]


@pytest.mark.parametrize(
    ("engine", "settings"), [("monolithic", {"order": "precedence"}), ("yarn", {})]
)
def test_a_job_beyond_a_limit_lets_others_go_first_even_without_a_pause(
    engine: str, settings: dict[str, Any]
) -> None:
    jobs = [job("high", precedence=1), job("low", seconds=1, submit=0.5)]
    spec = scenario(engine, jobs, replicas=1, horizon=3 * SECOND)
    entry = structs.replace(
        spec.fleet[0],
        settings={**spec.fleet[0].settings, **settings, "backoff": 0},
        limits=SchedulerLimits(precedence=0),
    )
    world = SimulatedWorld(structs.replace(spec, fleet=(entry,)), ENGINES)
    world.run()
    assert world.runtime.open_tasks == 1, "only the job beyond the limit is left"
