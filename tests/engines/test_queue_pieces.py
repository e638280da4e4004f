"""Reports of queues and what is said of full ones, by themselves."""

from __future__ import annotations

import numpy as np
import pytest

from argosy.engines.shared.backlog import all_full, room_in_queue
from argosy.engines.shared.machine_queues import _of_all
from argosy.model.events import QueuesReported
from argosy.model.explanations import Explanation, Refusal, Why


@pytest.mark.parametrize(
    ("machines", "lengths", "waits", "room"),
    [
        (2, [3, 4], [30, 40], [0, 7]),
        (4, [3, 4, 0, 0], [30, 40, 0, 0], [0, 7, 1, 1]),
    ],
)
def test_machines_that_joined_since_are_idle_and_have_room_for_one(
    machines: int, lengths: list[int], waits: list[int], room: list[int]
) -> None:
    report = QueuesReported(9, np.array([3, 4]), np.array([30, 40]), np.array([0, 7]))
    found = _of_all(report, machines)
    assert found.token == 9
    columns = (found.lengths, found.waits, found.room)
    assert [column.tolist() for column in columns] == [lengths, waits, room]
    assert all(column.dtype == np.int64 for column in columns)


def test_what_is_said_of_full_queues_and_of_those_with_room() -> None:
    assert all_full(np.array([4, 2, 7], np.int32)) == Explanation(
        looked_at=3,
        ruled_out={"queue full": 3},
        nearest_miss=Refusal(Why.QUEUE_FULL, machine=4),
        remedy="wait until a queue has room, or raise `limit` of [machines]",
    )
    assert room_in_queue() == Explanation(rule="queue with room")
