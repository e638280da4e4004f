"""Tasks that came back from full queues (`[machines] limit`), and wait at their scheduler for room.

Shared by the engines that use machines' queues. Tasks wait in order of arrival, one line for each kind
of task. For each line the scheduler asks machines once to report as soon as a queue has room, and then
sends only as many tasks as there is room for. So a full cell costs a few events per task that starts,
however many tasks wait and however long.
"""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from argosy.engines.shared.withdrawal import WaitingTasks, Withdrawal, update
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.random import Random
from argosy.model.transactions import MachineArray

#: What tasks of one line have in common: they can use the same machines.
LineKey: TypeAlias = tuple[object, ...]


class Backlog:
    """All and only lines with tasks. Each has one question under way once its scheduler has asked."""

    def __init__(self) -> None:
        self._lines: dict[LineKey, deque[WaitingTasks]] = {}
        #: By the token of the question.
        self._asked: dict[int, LineKey] = {}

    def __bool__(self) -> bool:
        return bool(self._lines)

    def __contains__(self, kind: LineKey) -> bool:
        return kind in self._lines

    def add(self, kind: LineKey, work: WaitingTasks) -> bool:
        """Tasks of one group of a job join the end of their line; whether they are its first."""
        line = self._lines.setdefault(kind, deque())
        line.append(work)
        return len(line) == 1

    def head(self, kind: LineKey) -> WaitingTasks | None:
        line = self._lines.get(kind)
        return line[0] if line else None

    def sent(self, kind: LineKey, count: int) -> None:
        """So many tasks of the first in line are on their way."""
        line = self._lines[kind]
        job, number, tasks = line[0]
        if count < len(tasks):
            line[0] = (job, number, tasks[count:])
            return
        line.popleft()
        if not line:
            del self._lines[kind]

    def asks(self, token: int, kind: LineKey) -> None:
        self._asked[token] = kind

    def answered(self, token: int) -> LineKey | None:
        """The kind that the question was about, if its answer is still wanted."""
        kind = self._asked.pop(token, None)
        return kind if kind in self._lines else None

    def forget_questions(self) -> list[LineKey]:
        """Machines have changed: every line has to ask anew."""
        self._asked.clear()
        return list(self._lines)

    def withdraw(self, event: Withdrawal) -> None:
        for kind in list(self._lines):
            left = (update(work, event) for work in self._lines[kind])
            line = deque(work for work in left if len(work[2]))
            if line:
                self._lines[kind] = line
            else:
                del self._lines[kind]


def all_full(machines: MachineArray) -> Explanation:
    """Why tasks wait that only these machines could take."""
    return Explanation(
        looked_at=len(machines),
        ruled_out={"queue full": len(machines)},
        nearest_miss=Refusal(Why.QUEUE_FULL, machine=int(machines[0])),
        remedy="wait until a queue has room, or raise `limit` of [machines]",
    )


def room_in_queue() -> Explanation:
    """Of tasks that waited until a queue had room."""
    return Explanation(rule="queue with room")


def with_room(
    machines: MachineArray,
    room: NDArray[np.int64],
    count: int,
    random: Random,
    waits: NDArray[np.int64] | None = None,
    step: int = 0,
) -> MachineArray:
    """Up to `count` places in the queues of `machines`, as far as these have room. The smallest waits
    come first, each place taken adding `step`; without waits, and among equals, the order is random."""
    roomy = machines[room[machines] > 0]
    order = np.argsort(random.integers(len(roomy), 2**62), kind="stable")
    if waits is not None:
        order = order[np.argsort(waits[roomy[order]], kind="stable")]
    roomy = roomy[order[:count]]
    places = np.minimum(room[roomy], count)
    chosen = np.repeat(roomy, places)
    # The first place of each machine, the second, and so on.
    taken = np.arange(len(chosen)) - np.repeat(np.cumsum(places) - places, places)
    keys = taken if waits is None else waits[chosen] + taken * step
    return chosen[np.argsort(keys, kind="stable")[:count]]
