"""What serial schedulers choose, on what terms and what they tell: cases at the edge of another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from serial_attempts import cell_of, end, only, placed, submit, take, tasks_of

from argosy.agents.committing import refused
from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.omega import Omega, OmegaSettings
from argosy.engines.omega.fairness import LEASE, FairShare
from argosy.engines.registry import ENGINES
from argosy.host.scheduler import make_settings
from argosy.model.constraints.text import parse_constraint
from argosy.model.effects import Commit, Explain, Think, WakeMe
from argosy.model.events import Committed, DecisionDue, JobCancelled, TimerFired
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Transaction, Wants
from argosy.testing.builders import GIB, SECOND, job, machines

SMALL = Resources(1_000, GIB)


def an_engine(name: str, seed: int = 1, **settings: Any) -> Any:
    engine = ENGINES[name]
    return engine(make_settings(engine, settings), Context("s", (), Random(seed)))


def an_omega(name: str = "s", peers: tuple[str, ...] = (), **settings: Any) -> Omega:
    return Omega(OmegaSettings(**settings), Context(name, peers, Random(1)))


def of(effects: Any, kind: type) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def rival(cell: Cell, cores: int, name: str = "rival", weight: float = 1.0) -> None:
    wants = Wants(weight, (1_000 * cores, 0), LEASE)
    cell.commit(Transaction(name, wants=wants))


def test_plain_tasks_are_claimed_with_the_precedence_of_their_job() -> None:
    engine, cell = an_omega(), cell_of(4)
    made = job("a", 2, precedence=3).job
    claims, _ = end(engine, cell, only(submit(engine, cell, made, 0), Think))
    assert claims.shapes.tolist() == [cell.shape(SMALL, (), 3)] * 2


@pytest.mark.parametrize("engine", ["omega", "monolithic", "partitioned", "mapreduce"])
def test_tasks_go_to_the_machines_that_they_wish_for(engine: str) -> None:
    cell = cell_of(*[4] * 8, m5={"fast": "true"})
    made = Job("a", (TaskGroup(3, SMALL, wishes={"fast": 1}),))
    assert placed(an_engine(engine), cell, made, 0) == [5, 5, 5]


@pytest.mark.parametrize("seed", range(4))
def test_wishes_come_before_an_even_spread(seed: int) -> None:
    cell = Cell(("cpu", "memory"), {"rack": ("r0", "r1")})
    joins = [AddMachine(machine) for machine in machines(7)]
    fast = Machine("fast", Resources(4_000, 16 * GIB), {"fast": "true"}, {"rack": ("r1",)})
    cell.commit(Transaction(OPERATOR, machines=(*joins, AddMachine(fast))))
    made = Job("a", (TaskGroup(2, SMALL, wishes={"fast": 1}),))
    assert placed(an_engine("omega", seed, spread="rack"), cell, made, 0) == [7, 7]


@pytest.mark.parametrize("seed", range(4))
def test_machines_near_the_data_come_before_an_even_spread(seed: int) -> None:
    cell = Cell(("cpu", "memory"), {"rack": ("r0", "r1")})
    joins = [AddMachine(machine) for machine in machines(7)]
    near = Machine("near", Resources(4_000, 16 * GIB), {"data": "x"}, {"rack": ("r1",)})
    cell.commit(Transaction(OPERATOR, machines=(*joins, AddMachine(near))))
    made = Job("a", (TaskGroup(2, SMALL, prefers={"data": "x"}),))
    engine = an_engine("yarn", seed, order="placement", spread="rack")
    assert placed(engine, cell, made, 0) == [7, 7]


@pytest.mark.parametrize("preempts", [False, True])
def test_only_a_job_that_preempts_chooses_a_machine_that_is_taken(preempts: bool) -> None:
    engine, cell = an_omega(preempt=True), cell_of(1)
    take(cell, 0, 1)
    made = job("a", precedence=5, preempts=preempts).job
    thinking = only(submit(engine, cell, made, 0), Think)
    effects = engine.handle(DecisionDue(thinking.token), cell, 0)
    assert bool(of(effects, Commit)) is preempts
    assert bool(of(effects, Explain)) is not preempts


@pytest.mark.parametrize("groups", [1, 2])
def test_a_gang_of_which_no_task_has_room_is_told_what_each_lacks(groups: int) -> None:
    engine, cell = an_omega(), cell_of(4)
    giant = TaskGroup(2, Resources(64_000, GIB))
    thinking = only(submit(engine, cell, Job("a", (giant,) * groups, gang=True), 0), Think)
    told = of(engine.handle(DecisionDue(thinking.token), cell, 0), Explain)
    assert [len(each.tasks) for each in told] == [2] * groups
    for each in told:
        assert each.explanation.gang_room is None
        assert each.explanation.nearest_miss.lacking == 60_000


def test_what_is_cancelled_of_another_job_does_not_change_how_an_answer_is_taken() -> None:
    engine, cell, other = an_omega(), cell_of(4), job("b").job
    thinking = only(submit(engine, cell, job("a").job, 0), Think)
    submit(engine, cell, other, 1)
    commit = only(engine.handle(DecisionDue(thinking.token), cell, 0), Commit)
    engine.handle(JobCancelled(other, 1, tasks_of(1, 0)), cell, 0)
    limited = refused(Refusal(Why.JOB_LIMIT, machine=0), cell.dimensions)
    assert only(engine.handle(Committed(commit.token, limited), cell, 0), WakeMe)


def test_an_answer_to_something_else_does_not_end_a_decision() -> None:
    """Such as the release of workers, whose answer nobody waits for."""
    engine, cell = an_engine("mapreduce"), cell_of(4)
    thinking = only(submit(engine, cell, job("a").job, 0), Think)
    commit = only(engine.handle(DecisionDue(thinking.token), cell, 0), Commit)
    outcome = cell.commit(commit.transaction)
    assert not engine.handle(Committed(0, outcome), cell, 0)
    submit(engine, cell, job("b").job, 1)
    assert only(engine.handle(Committed(commit.token, outcome), cell, 0), Think).job == 1


@pytest.mark.parametrize(("named", "used"), [("self", 2), ("a", 2), ("b", 1)])
def test_a_job_may_name_itself_to_keep_its_tasks_apart(named: str, used: int) -> None:
    rule = parse_constraint(f"appID:{named} -> {{appID:{named}, 0, 0}} in machine hard")
    made = job("a", 2, constraints=(rule,)).job
    assert len(set(placed(an_omega(placement="best-fit"), cell_of(8, 8), made, 0))) == used


def test_omega_keeps_only_tasks_of_one_application_apart() -> None:
    for tag, is_supported in (("appID:self", True), ("appID:a", True), ("web", False)):
        rule = parse_constraint(f"{tag} -> {{{tag}, 0, 0}} in machine hard")
        assert Omega.supports(rule) is is_supported


def test_each_replica_begins_in_a_region_of_its_own_even_if_there_are_more_of_them() -> None:
    names = ("s-0", "s-1", "s-2")
    first = []
    for name in names:
        peers = tuple(each for each in names if each != name)
        first += placed(an_omega(name, peers, regions=2), cell_of(4, 4), job("a").job, 0)
    assert [(machine - first[0]) % 2 for machine in first] == [0, 1, 0]


@pytest.mark.parametrize(("t_job", "rest"), [(0, 1_000), (999, 1_000), (5_000, 5_000)])
def test_without_a_back_off_a_scheduler_at_its_share_rests_for_a_decision(
    t_job: int, rest: int
) -> None:
    engine, cell = an_omega(weight=1.0, backoff=0, t_job=t_job, t_task=0), cell_of(8)
    rival(cell, 8)
    _, effects = end(engine, cell, only(submit(engine, cell, job("a", 8).job, 0), Think), SECOND)
    assert only(effects, WakeMe).at == SECOND + rest
    # One timer serves all who come while it rests.
    assert not of(submit(engine, cell, job("b").job, 1, SECOND), WakeMe)
    assert only(engine.handle(TimerFired("rest"), cell, 2 * SECOND), WakeMe)


def test_a_decision_takes_time_for_the_tasks_that_the_share_allows() -> None:
    engine, cell = an_omega(weight=1.0, t_job=1_000, t_task=10), cell_of(8)
    rival(cell, 8)
    assert only(submit(engine, cell, job("a", 8).job, 0), Think).duration == 1_040


class TestFairShares:
    def share(self, *, own: int, others: int, weight: float = 1.0) -> float:
        cell, fair = cell_of(8), FairShare("s", 1.0)
        fair.want(job("a", own).job, tasks_of(0, *range(own)), cell)
        rival(cell, others, weight=weight)
        return fair.share(cell, 0).most

    def test_shares_are_as_the_weights(self) -> None:
        assert self.share(own=20, others=20) == pytest.approx(1 / 2)
        assert self.share(own=20, others=20, weight=3.0) == pytest.approx(1 / 4)

    def test_who_wants_less_than_its_share_has_no_bound(self) -> None:
        assert self.share(own=3, others=20) == np.inf
        assert self.share(own=4, others=4) == np.inf
        assert self.share(own=5, others=4) == pytest.approx(4 / 8)

    def test_its_own_announcement_is_no_rivals(self) -> None:
        cell, fair = cell_of(8), FairShare("s", 1.0)
        fair.want(job("a", 20).job, tasks_of(0, *range(20)), cell)
        rival(cell, 20, name="s")
        assert fair.share(cell, 0).most == np.inf

    def test_a_task_as_large_as_the_largest_machine_counts(self) -> None:
        cell, fair = cell_of(8), FairShare("s", 1.0)
        fair.want(job("a", 1, cpu=8_000).job, tasks_of(0, 0), cell)
        said = fair.to_say(0)
        assert said is not None
        assert said.amounts[0] == 8_000

    def test_of_a_lost_part_only_that_part_is_wanted_and_never_less_than_nothing(self) -> None:
        cell, fair, made = cell_of(8), FairShare("s", 1.0), job("a", 10).job
        fair.want(made, tasks_of(0, 0, 1, 2), cell)
        fair.forget(made, tasks_of(0, *range(5)))
        fair.want(made, tasks_of(0, 7, 8), cell)
        said = fair.to_say(0)
        assert said is not None
        assert said.amounts[0] == 2_000


@pytest.mark.parametrize("sizes", [(2, 6), (6, 2), (4, 4)])
def test_each_group_of_a_job_is_spread_by_itself(sizes: tuple[int, int]) -> None:
    cell = Cell(("cpu", "memory"), {"rack": ("r0", "r1")})
    cell.commit(Transaction(OPERATOR, machines=tuple(map(AddMachine, machines(8)))))
    groups = tuple(TaskGroup(count, Resources(100 * count, GIB)) for count in sizes)
    found = placed(an_engine("omega", spread="rack"), cell, Job("j", groups), 0)
    first, second = found[: sizes[0]], found[sizes[0] :]
    for part in (first, second):
        racks = np.bincount(np.array(part) // 4, minlength=2)
        assert racks.tolist() == [len(part) // 2] * 2
