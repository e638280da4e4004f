"""Shared by the engines that use machines' queues: which machines can take a task, random draws among
them, and tasks that no machine can take."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

from argosy.cell import Rule, View
from argosy.cell.bitmaps import to_mask
from argosy.engines.shared.withdrawal import WaitingTasks, Withdrawal, update
from argosy.model.effects import Effect, Explain
from argosy.model.jobs import Job, TaskGroup
from argosy.model.random import Random
from argosy.model.transactions import MachineArray, TaskArray


def share_of(share: float, machines: int) -> int:
    """A share of the machines as a whole number, ignoring binary rounding errors."""
    return ceil(round(share * machines, 6))


class Candidates:
    """Machines that are up and large enough, by shape and required attributes."""

    def __init__(self, *, but_last: float = 0.0, only_last: float = 1.0) -> None:
        #: Machines of the last such share are left out; none but those of the last such share count.
        self._but_last = but_last
        self._only_last = only_last
        self._known: dict[tuple[object, ...], MachineArray] = {}

    def forget(self) -> None:
        """Drops the cache after machines have changed."""
        self._known.clear()

    def of(self, job: Job, group: TaskGroup, view: View) -> MachineArray:
        shape = view.shape(group.request, group.tags, job.precedence)
        if view.unknown_resource(shape) is not None:
            return np.empty(0, np.int32)
        key = (shape, view.machines, *sorted(group.requires.items()))
        found = self._known.get(key)
        if found is None:
            request = np.array(view.shape_request(shape), np.int64)
            able = (view.capacity() >= request).all(axis=1) & (view.takes_claims() != 0)
            if group.requires:
                able &= to_mask(view.where(group.requires), view.machines)
            able[view.machines - share_of(self._but_last, view.machines) :] = False
            able[: view.machines - share_of(self._only_last, view.machines)] = False
            found = self._known[key] = np.flatnonzero(able).astype(np.int32)
        return found


def draw(machines: MachineArray, count: int, random: Random, *, repeated: bool) -> MachineArray:
    """`count` random machines: independent draws, or without repetition as far as possible."""
    size = len(machines)
    below = random.below
    if repeated:
        return machines[np.array([below(size) for _ in range(count)], np.int64)]
    rounds, rest = divmod(count, size)
    places: NDArray[np.int64] = np.tile(np.arange(size, dtype=np.int64), rounds)
    if rest:
        # The first steps of a shuffle, storing only the positions that moved.
        moved: dict[int, int] = {}
        last = []
        for at in range(rest):
            other = at + below(size - at)
            last.append(moved.get(other, other))
            moved[other] = moved.get(at, at)
        places = np.concatenate([places, np.array(last, np.int64)])
    return machines[places]


class Stuck:
    """Tasks that no machine can take; retried when machines join or change."""

    def __init__(self) -> None:
        self._tasks: list[WaitingTasks] = []

    def add(
        self, job: Job, number: int, group: TaskGroup, tasks: TaskArray, view: View, random: Random
    ) -> Effect:
        self._tasks.append((job, number, tasks))
        shape = view.shape(group.request, group.tags, job.precedence)
        within = view.where(group.requires) if group.requires else None
        seen = view.find(shape, 1, Rule.FIRST, random, within=within, needs_room=False)
        return Explain(tasks, seen.explanation())

    def withdraw(self, event: Withdrawal) -> None:
        self._tasks = [update(work, event) for work in self._tasks]

    def take(self) -> Sequence[WaitingTasks]:
        tasks, self._tasks = self._tasks, []
        return tasks
