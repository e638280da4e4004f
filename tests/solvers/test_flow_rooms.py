"""Room on machines, what the flow makes of it and who is admitted, against slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from room_bench import RoomsAndTwin

from argosy.model.tasks import first_tasks
from argosy.solvers.flow import FlowNetwork, Rooms


@pytest.mark.parametrize("seed", range(100))
def test_rooms_placements_and_admission_agree_with_their_slow_twins(seed: int) -> None:
    both = RoomsAndTwin(seed)
    for _ in range(40):
        both.step()
        both.admit_anything()
        match both.below(4):
            case 0:
                both.look()
            case 1 | 2:
                both.round()
    both.round()
    both.compare()


@pytest.mark.parametrize(
    ("running", "waiting", "room"),
    [
        (0, 1, 64),
        (0, 64, 64),
        (64, 0, 64),
        (0, 65, 128),
        (40, 25, 128),
        (128, 0, 128),
        (60, 69, 256),
    ],
)
def test_tasks_that_ask_for_nothing_all_have_room(running: int, waiting: int, room: int) -> None:
    network, one = FlowNetwork(), np.array([1])
    sink, machine, pool = network.add_vertices([0, 0, 0]).tolist()
    roster = network.roster(1, reschedules=True, migration=0)
    roster.add_machines(np.array([machine], np.int32))
    roster.open_pool(0, pool, one * 0, False)
    roster.add_owner()
    rooms = Rooms(roster, 0)
    standing = np.array([[5]]), np.array([True]), np.array([[True]])
    # At first there is one task; then all of them.
    for number, tasks in ((0, 1), (1, running + waiting - 1)):
        if not tasks:
            continue
        roster.add_job(number, tasks, sink, 0)
        rows = roster.enter(first_tasks(number, tasks), 0)
        nothing, costs = one * 0, np.zeros(tasks, np.int64)
        each = np.array([False])
        roster.add_classes(
            one * number, nothing, nothing, nothing, nothing, one * tasks, each, rows, costs, 0, 0
        )
        roster.sync()
        begun = rows[: max(0, running - number)]
        roster.start(begun, begun * 0, begun * 0, 0)
        roster.sync()
        told = [column.tolist() for column in rooms.look(*standing)]
        is_new = number == 0 or running > 1 or room > 64
        assert told == [[0], [0] * is_new, [0] * is_new]
        if is_new:
            expected = room if number else 64
            assert rooms.counted().tolist() == [[expected]]
    assert roster.own_tasks().tolist() == [running]


@pytest.mark.parametrize(("late", "room"), [(1, 0), (0, 1)])
def test_who_may_make_way_is_known_once_a_pool_has_tasks_of_lower_precedence(
    late: int, room: int
) -> None:
    """On a full machine runs a task as large as one that waits and a smaller one, all of precedence 1;
    another as large as the first comes, of a lower precedence or of the same."""
    network, one = FlowNetwork(), np.array([1])
    sink, machine, *pools = network.add_vertices([0] * 5).tolist()
    roster = network.roster(1, reschedules=True, migration=0)
    roster.add_machines(np.array([machine], np.int32))
    roster.add_owner()
    for number, (vertex, size) in enumerate(zip(pools, (3, 2, 1), strict=True)):
        roster.open_pool(number, vertex, one * size, False)
    rooms = Rooms(roster, 0)

    def add(number: int, pool: int, precedence: int, *, runs: bool = False) -> None:
        roster.add_job(number, 1, sink, precedence)
        rows, zero = roster.enter(first_tasks(number, 1), 0), one * 0
        each = np.array([False])
        roster.add_classes(one * number, one * pool, zero, zero, zero, one, each, rows, zero, 0, 0)
        if runs:
            roster.start(rows, zero, zero, 0)
        roster.sync()

    def counted() -> list[list[int]]:
        rooms.look(np.array([[0]]), np.array([True]), np.ones((3, 1), np.bool_))
        found: list[list[int]] = rooms.counted().tolist()
        return found

    add(0, 0, 1, runs=True)
    add(1, 0, 1)
    add(2, 1, 1)
    add(3, 2, 1, runs=True)
    # Only the smaller one stands in the way of an exchange among equals.
    assert counted() == [[0], [0], [0]]
    add(4, 0, late)
    again = counted()
    # Nothing is to be updated, or there is room for each that is as large.
    assert again == ([[room], [room], [0]] if room else [[], [], []])
