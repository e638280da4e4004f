"""Schedulers with a part of the machines each, and one for everything, by kind and by precedence."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs
from serial_attempts import cell_of, end, only, placed, submit, take, tasks_of

from argosy.engines.api import Context
from argosy.engines.monolithic.engine import Monolithic, MonolithicSettings
from argosy.engines.partitioned.engine import Partitioned, PartitionedSettings
from argosy.engines.shared.serial import KindTime
from argosy.model.effects import Think
from argosy.model.events import JobCancelled, JobSubmitted
from argosy.model.jobs import Job
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Transaction
from argosy.model.units import Micros
from argosy.testing.builders import GIB, job


def a_part(name: str = "s-0", peers: tuple[str, ...] = (), **settings: float) -> Partitioned:
    return Partitioned(PartitionedSettings(**settings), Context(name, peers, Random(1)))


@pytest.mark.parametrize(
    ("begin", "end_", "expected"),
    [(0.0, 1.0, [0, 1, 2, 3, 4, 5, 6, 7]), (0.25, 0.75, [2, 3, 4, 5]), (0.5, 1.0, [4, 5, 6, 7])],
)
def test_a_scheduler_uses_its_share_of_the_machines(
    begin: float, end_: float, expected: list[int]
) -> None:
    cell = cell_of(*[1] * 8)
    machines = placed(a_part(begin=begin, end=end_), cell, job("a", len(expected)).job, 0)
    assert sorted(machines) == expected


def test_replicas_divide_their_share_in_the_order_of_their_names() -> None:
    names = ("s-0", "s-1", "s-2")
    for at, name in enumerate(names):
        cell = cell_of(*[1] * 9)
        # Each is told of its peers, in whatever order.
        peers = tuple(reversed([other for other in names if other != name]))
        engine = a_part(name, peers, begin=1 / 3)
        expected = [3 + 2 * at, 4 + 2 * at]
        assert sorted(placed(engine, cell, job("a", 2).job, 0)) == expected


def test_a_share_grows_with_the_cell() -> None:
    engine, cell = a_part(begin=0.5), cell_of(1, 1)
    assert placed(engine, cell, job("a", 1).job, 0) == [1]
    for name in ("m2", "m3"):
        joins = AddMachine(Machine(name, Resources(1_000, 64 * GIB)))
        cell.commit(Transaction(OPERATOR, machines=(joins,)))
    assert sorted(placed(engine, cell, job("b", 2).job, 1)) == [2, 3]


def test_an_empty_share_places_nothing() -> None:
    engine, cell = a_part(begin=0.5, end=0.5), cell_of(4, 4)
    claims, _ = end(engine, cell, only(submit(engine, cell, job("a", 1).job, 0), Think))
    assert claims is None


def test_a_decision_takes_as_long_as_the_kind_of_its_job_says() -> None:
    slow = {"service": KindTime(Micros(900), Micros(70))}
    settings = MonolithicSettings(t_job=Micros(100), t_task=Micros(5), paths=slow)
    for kind, expected in (("batch", 100 + 3 * 5), ("service", 900 + 3 * 70)):
        engine = Monolithic(settings, Context("s", (), Random(1)))
        thinking = only(submit(engine, cell_of(4), job("a", 3, kind=kind).job, 0), Think)
        assert thinking.duration == expected


def test_a_decision_on_the_rest_of_a_job_takes_as_long_as_the_rest() -> None:
    slow = {"service": KindTime(Micros(900), Micros(70))}
    settings = MonolithicSettings(paths=slow)
    engine, cell = Monolithic(settings, Context("s", (), Random(1))), cell_of(4)
    rest = JobSubmitted(job("a", 3, kind="service").job, 0, tasks_of(0, 2))
    assert only(engine.handle(rest, cell, 0), Think).duration == 900 + 70


def test_taken_machines_of_the_own_share_are_not_replaced_by_others() -> None:
    engine, cell = a_part(end=0.5), cell_of(1, 1)
    take(cell, 0, 1)
    claims, _ = end(engine, cell, only(submit(engine, cell, job("a", 1).job, 0), Think))
    assert claims is None


def a_monolith(**settings: Any) -> Monolithic:
    return Monolithic(MonolithicSettings(**settings), Context("s", (), Random(1)))


def ranked(name: str, precedence: int, tasks: int = 1) -> Job:
    return structs.replace(job(name, tasks, cpu=1_000).job, precedence=precedence)


@pytest.mark.parametrize(
    ("order", "expected"), [("arrival", [1, 2, 3, 4]), ("precedence", [2, 4, 1, 3])]
)
def test_jobs_go_by_arrival_or_by_precedence(order: str, expected: list[int]) -> None:
    engine, cell = a_monolith(order=order), cell_of(8)
    thinking = only(submit(engine, cell, ranked("first", 0), 0), Think)
    for number, precedence in ((1, 0), (2, 9), (3, -5), (4, 9)):
        assert not submit(engine, cell, ranked(f"j{number}", precedence), number)
    decided = []
    for _ in expected:
        _, effects = end(engine, cell, thinking)
        thinking = only(effects, Think)
        decided.append(thinking.job)
    assert decided == expected


def test_a_cancelled_job_leaves_the_order_of_the_others() -> None:
    engine, cell = a_monolith(order="precedence"), cell_of(8)
    thinking = only(submit(engine, cell, ranked("first", 0), 0), Think)
    for number, precedence in ((1, 0), (2, 9), (3, 5)):
        submit(engine, cell, ranked(f"j{number}", precedence), number)
    engine.handle(JobCancelled(ranked("j2", 9), 2, tasks_of(2, 0)), cell, 0)
    _, effects = end(engine, cell, thinking)
    assert only(effects, Think).job == 3


@pytest.mark.parametrize(("preempt", "expected"), [(True, [0]), (False, None)])
def test_strict_priority_takes_the_room_of_others(
    preempt: bool, expected: list[int] | None
) -> None:
    engine, cell = a_monolith(preempt=preempt), cell_of(1)
    assert placed(engine, cell, ranked("low", 0), 0) == [0]
    claims, _ = end(engine, cell, only(submit(engine, cell, ranked("high", 9), 1), Think))
    assert (claims.machines.tolist() if claims else None) == expected
    assert cell.machine_of(int(tasks_of(0, 0)[0])) == (None if preempt else 0)
