"""A resource that consists of devices: shares fit on one device, whole devices are wholly free."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.cell.bitmaps import to_bitmap
from argosy.cell.cell import Cell
from argosy.cell.search import Rule
from argosy.model.devices import MachineDevices
from argosy.model.errors import ModelError
from argosy.model.explanations import Why
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import (
    OPERATOR,
    AddMachine,
    Claims,
    Outcome,
    ResizeMachine,
    Transaction,
)

DIMENSIONS = ("cpu", "memory", "gpu")


def cell_of(*gpus: int, cpu: int = 100) -> Cell:
    cell = Cell(DIMENSIONS, audited=True, devices="gpu")
    added = (AddMachine(Machine(f"m{at}", capacity(each, cpu))) for at, each in enumerate(gpus))
    cell.commit(Transaction(OPERATOR, machines=tuple(added)))
    return cell


def capacity(gpus: int, cpu: int = 100) -> Resources:
    return Resources(cpu, 100, {"gpu": gpus * 1000})


def shape(cell: Cell, gpu: int, *, cpu: int = 1, precedence: int = 0) -> int:
    return cell.shape(Resources(cpu, 1, {"gpu": gpu}), precedence=precedence)


def claim(cell: Cell, *rows: tuple[int, int, int], gang: bool = False, **terms: bool) -> Outcome:
    """Rows of (task, machine, shape)."""
    tasks, machines, shapes = (list(column) for column in zip(*rows, strict=True))
    claims = Claims(
        np.array(tasks, np.int64),
        np.array(machines, np.int32),
        np.array(shapes, np.int32),
        cell.versions()[machines],
        np.zeros(len(rows), np.int32) if gang else None,
    )
    return cell.commit(Transaction("anna", claims, **terms))


def release(cell: Cell, *tasks: int) -> None:
    cell.commit(Transaction("anna", releases=np.array(tasks, np.int64)))


def whys(outcome: Outcome) -> list[Why]:
    return [Why(int(why)) for why in outcome.whys]


def usable(cell: Cell, machine: int = 0) -> int:
    return int(cell.free()[machine, 2])


def test_what_two_devices_have_left_is_no_share_of_one() -> None:
    cell = cell_of(2)
    large, small = shape(cell, 600), shape(cell, 800)
    assert claim(cell, (1, 0, large), (2, 0, large)).all_accepted
    assert usable(cell) == 400
    outcome = claim(cell, (3, 0, small))
    assert whys(outcome) == [Why.NO_ROOM]


def test_a_refusal_names_the_resource_and_what_the_best_device_lacks() -> None:
    cell = cell_of(2)
    large, small = shape(cell, 600), shape(cell, 800)
    rows = [(1, 0, large), (2, 0, large), (3, 0, small)]
    outcome = claim(cell, *rows)
    tasks, machines, shapes = (list(column) for column in zip(*rows, strict=True))
    asked = Claims(
        np.array(tasks, np.int64),
        np.array(machines, np.int32),
        np.array(shapes, np.int32),
        np.zeros(3, np.uint32),
    )
    refusal = outcome.refusal(asked, 2)
    assert (refusal.dimension, refusal.lacking) == ("gpu", 400)


def test_whole_devices_are_wholly_free_ones() -> None:
    cell = cell_of(3)
    claim(cell, (1, 0, shape(cell, 10)))
    assert usable(cell) == 2000
    assert whys(claim(cell, (2, 0, shape(cell, 3000)))) == [Why.NO_ROOM]
    assert claim(cell, (3, 0, shape(cell, 2000))).all_accepted
    assert usable(cell) == 990


def test_more_than_a_device_takes_whole_ones() -> None:
    cell = cell_of(3)
    assert claim(cell, (1, 0, shape(cell, 1500))).all_accepted
    assert usable(cell) == 1000


def test_shares_go_where_the_least_is_left() -> None:
    cell = cell_of(2)
    claim(cell, (1, 0, shape(cell, 700)))
    claim(cell, (2, 0, shape(cell, 300)))
    assert usable(cell) == 1000
    assert cell.native.claim_devices(1) == cell.native.claim_devices(2) == 0b01


def test_a_task_that_ends_gives_back_its_own_device() -> None:
    cell = cell_of(2)
    share = shape(cell, 600)
    claim(cell, (1, 0, share), (2, 0, share))
    release(cell, 1)
    assert usable(cell) == 1000
    assert cell.native.claim_devices(2) == 0b10


def test_a_gang_that_does_not_fit_leaves_devices_as_they_were() -> None:
    cell = cell_of(2)
    share = shape(cell, 600)
    claim(cell, (1, 0, share))
    outcome = claim(cell, (2, 0, share), (3, 0, share), gang=True)
    assert whys(outcome) == [Why.TOGETHER, Why.NO_ROOM]
    assert usable(cell) == 1000


def test_a_task_moves_within_its_own_room() -> None:
    cell = cell_of(1)
    share = shape(cell, 600)
    claim(cell, (1, 0, share))
    assert claim(cell, (1, 0, share), move=True).all_accepted
    assert usable(cell) == 400


def test_preemption_does_not_free_devices() -> None:
    cell = cell_of(1)
    claim(cell, (1, 0, shape(cell, 600)))
    high = shape(cell, 600, precedence=5)
    assert whys(claim(cell, (2, 0, high), preempt=True)) == [Why.NO_ROOM]
    assert cell.evictable(5)[0].tolist() == [1, 1, 0]


def test_preemption_makes_other_room_where_a_device_is_free() -> None:
    cell = cell_of(2, cpu=4)
    claim(cell, (1, 0, shape(cell, 600, cpu=4)))
    high = shape(cell, 600, cpu=4, precedence=5)
    outcome = claim(cell, (2, 0, high), preempt=True)
    assert outcome.all_accepted
    assert cell.machine_of(1) is None


def test_a_machine_that_loses_devices_loses_the_tasks_on_them() -> None:
    cell = cell_of(2)
    share = shape(cell, 600)
    claim(cell, (1, 0, share), (2, 0, share), (3, 0, shape(cell, 0)))
    cell.commit(Transaction(OPERATOR, machines=(ResizeMachine(0, capacity(1)),)))
    assert [cell.machine_of(task) for task in (1, 2, 3)] == [0, None, 0]
    assert usable(cell) == 400
    cell.commit(Transaction(OPERATOR, machines=(ResizeMachine(0, capacity(3)),)))
    assert usable(cell) == 2000


@pytest.mark.parametrize("gpu", [1500, 17_000])
def test_a_machine_has_whole_devices_and_not_too_many(gpu: int) -> None:
    cell = cell_of()
    added = AddMachine(Machine("m", Resources(1, 1, {"gpu": gpu})))
    with pytest.raises((ModelError, ValueError), match="0 to 16 whole devices"):
        cell.commit(Transaction(OPERATOR, machines=(added,)))


def test_devices_are_of_a_resource_that_the_cell_has() -> None:
    with pytest.raises(ModelError, match="devices of 'fpga'"):
        Cell(DIMENSIONS, devices="fpga")


def test_a_snapshot_keeps_its_devices() -> None:
    cell = cell_of(2)
    share = shape(cell, 600)
    before = cell.snapshot()
    claim(cell, (1, 0, share), (2, 0, share))
    assert int(before.free()[0, 2]) == 2000
    assert len(before.find(share, 3, Rule.BEST, Random(1)).machines) == 2
    assert len(cell.find(share, 3, Rule.BEST, Random(1)).machines) == 0


@pytest.mark.parametrize("rule", [Rule.FIRST, Rule.BEST, Rule.WORST])
def test_a_search_for_several_tasks_counts_devices(rule: Rule) -> None:
    cell = cell_of(2)
    half = shape(cell, 500)
    claim(cell, (1, 0, half), (2, 0, shape(cell, 1000)), (3, 0, shape(cell, 0)))
    release(cell, 2)
    claim(cell, (4, 0, shape(cell, 510)))
    assert usable(cell) == 500
    found = cell.find(shape(cell, 240), 9, rule, Random(1))
    assert len(found.machines) == 4
    assert found.nearest_miss is not None
    assert found.nearest_miss.dimension == "gpu"


AMOUNTS = st.sampled_from([0, 50, 160, 250, 330, 460, 500, 590, 650, 810, 1000, 1500, 2000, 4000])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("claim"), st.integers(0, 2), AMOUNTS),
        st.tuples(st.just("gang"), st.integers(0, 2), AMOUNTS),
        st.tuples(st.just("release"), st.integers(0, 200), st.just(0)),
    ),
    max_size=40,
)


@given(sizes=st.tuples(*[st.integers(0, 4)] * 3), steps=STEPS)
def test_the_cell_packs_devices_as_its_slow_model(
    sizes: tuple[int, int, int], steps: list[tuple[str, int, int]]
) -> None:
    cell = cell_of(*sizes, cpu=1000)
    model = [MachineDevices(each * 1000) for each in sizes]
    where: dict[int, int] = {}
    task = 0
    for what, number, amount in steps:
        if what == "release":
            if where:
                gone = sorted(where)[number % len(where)]
                model[where.pop(gone)].release(gone)
                release(cell, gone)
            continue
        wanted = shape(cell, amount)
        copies = 3 if what == "gang" else 1
        room = copies if amount == 0 else model[number].slots(amount)
        here = to_bitmap(np.arange(3) == number)
        found = cell.find(wanted, copies, Rule.FIRST, Random(1), within=here)
        assert len(found.machines) == min(copies, room)
        tasks = range(task, task + copies)
        task += copies
        outcome = claim(cell, *((each, number, wanted) for each in tasks), gang=copies > 1)
        assert outcome.all_accepted == (room >= copies)
        if outcome.all_accepted:
            for each in tasks:
                model[number].hold(each, amount)
                where[each] = number
        assert usable(cell, number) == model[number].usable()
        assert all(free >= 0 for free in model[number].free)
