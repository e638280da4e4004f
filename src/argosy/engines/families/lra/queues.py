"""Fairness between queues: whose job is next, and what a queue may still take.

A queue is an owner's; with the policy `capacity`, owners without a queue of their own share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.engines.families.lra.settings import TaskQueueSettings
from argosy.engines.shared.serial import JobQueue, PendingJob
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.jobs import Job
from argosy.model.transactions import TaskArray

HeldAmounts = NDArray[np.int64]
_MEMORY: Final = "memory"


class Shares:
    """Resources each queue and each job holds, per dimension, counting what this scheduler has placed
    since it started."""

    def __init__(self, settings: TaskQueueSettings) -> None:
        self._settings = settings
        self._held: dict[str, HeldAmounts] = {}
        #: Only for the policy `fair`.
        self._by_job: dict[int, HeldAmounts] = {}
        #: By decision under way: what its claims would add to queues.
        self._promised: dict[str, dict[str, HeldAmounts]] = {}
        #: Whether some queue may not have the whole cell.
        self.has_limits = any(each.most < 1 for each in settings.capacities.values())

    def change(self, job: Job, number: int, shape: int, count: int, view: View) -> None:
        request = count * np.array(view.shape_request(shape), np.int64)
        queue = self._settings.queue_of(job.owner)
        self._held[queue] = _sum(self._held.get(queue), request)
        if self._settings.policy == "fair":
            self._by_job[number] = _sum(self._by_job.get(number), request)

    def forget(self, number: int) -> None:
        """The job is over."""
        self._by_job.pop(number, None)

    def promise(self, decision: str, works: Iterable[tuple[Job, TaskArray]], view: View) -> None:
        """What a decision under way is about, until the next call with its name."""
        self._promised.pop(decision, None)
        if not self.has_limits:
            return
        wanted: dict[str, HeldAmounts] = {}
        for job, tasks in works:
            queue = self._settings.queue_of(job.owner)
            wanted[queue] = _sum(wanted.get(queue), _request(job, tasks, view))
        self._promised[decision] = wanted

    def share(self, owner: str, view: View) -> float:
        """What the owner's queue holds of the cell, as its policy weighs it; the smallest is next."""
        settings = self._settings
        queue = settings.queue_of(owner)
        held = self._held.get(queue)
        if held is None:
            return 0.0
        match settings.policy:
            case "capacity":
                return _dominant(held, view) / settings.capacity_of(queue).guaranteed
            case "fair":
                part = _memory(held, view) / max(1, view.capacity_total().get(_MEMORY, 0))
                return part / settings.queues.get(queue, 1.0)
            case "share":
                return _dominant(held, view) / settings.queues.get(queue, 1.0)

    def next(self, works: JobQueue, view: View) -> PendingJob | None:
        """The job to decide on; None if every queue with work is at its limit."""
        settings = self._settings
        if not self.has_limits and settings.policy != "fair" and works:
            # Most often all jobs are alike, and queues may be long.
            oldest = next(iter(works))
            owner, precedence = oldest.job.owner, oldest.job.precedence
            if all(w.job.owner == owner and w.job.precedence == precedence for w in works):
                return oldest
        first: PendingJob | None = None
        first_key: tuple[float, str, int, int] | None = None
        shares: dict[str, float] = {}
        for work in works:
            job = work.job
            queue = settings.queue_of(job.owner)
            if queue not in shares:
                shares[queue] = self.share(job.owner, view)
            held = self._by_job.get(work.number)
            of_job = 0 if held is None else _memory(held, view)
            key = (shares[queue], queue, -job.precedence, of_job)
            if first_key is not None and key >= first_key:
                continue
            if self.has_limits and not self.allowance(job, work.tasks, view):
                continue
            first, first_key = work, key
        return first

    def allowance(self, job: Job, tasks: TaskArray, view: View) -> int:
        """How many of the tasks, from the first on, the queue may take now; of a gang all or none."""
        queue = self._settings.queue_of(job.owner)
        most = self._settings.capacity_of(queue).most
        if not self.has_limits or most >= 1:
            return len(tasks)
        left = np.floor(most * _whole(view)).astype(np.int64) - self._used(queue, view)
        count = 0
        for group, mine in job.tasks_by_group(tasks):
            request = np.array(view.shape_request(view.shape(group.request)), np.int64)
            is_asked = request > 0
            fits = len(mine)
            if is_asked.any():
                fits = max(0, min(fits, int((left[is_asked] // request[is_asked]).min())))
            count += fits
            if fits < len(mine):
                return 0 if job.gang else count
            left -= fits * request
        return count

    def is_ahead(self, job: Job, others: Iterable[Job], view: View) -> bool:
        """Whether one of the other jobs is of a queue that has less."""
        settings = self._settings
        queues = {settings.queue_of(other.owner): other.owner for other in others}
        queues.pop(settings.queue_of(job.owner), None)
        own = self.share(job.owner, view)
        return any(self.share(owner, view) < own for owner in queues.values())

    def limited(self, job: Job, tasks: TaskArray, view: View) -> Explanation:
        """Why tasks beyond the queue's limit wait."""
        queue = self._settings.queue_of(job.owner)
        most = self._settings.capacity_of(queue).most
        over = self._used(queue, view) + _request(job, tasks, view) - most * _whole(view)
        at = int(np.argmax(over / _whole(view)))
        refused = Refusal(Why.RESOURCE_LIMIT, dimension=view.dimensions[at], lacking=int(over[at]))
        remedy = f"a higher limit than {100 * most:.4g} % of the cell for the queue {queue!r}"
        return Explanation(refused=refused, remedy=f"{remedy}, or ends of tasks of its own")

    def _used(self, queue: str, view: View) -> HeldAmounts:
        used = np.zeros(len(view.dimensions), np.int64)
        for amounts in (self._held, *self._promised.values()):
            if queue in amounts:
                used = _sum(amounts[queue], used)
        return used


def _sum(before: HeldAmounts | None, more: HeldAmounts) -> HeldAmounts:
    """Resources that were unknown before are added at the end."""
    if before is None:
        return more
    if len(before) < len(more):
        before = np.concatenate([before, np.zeros(len(more) - len(before), np.int64)])
    total: HeldAmounts = before + more
    return total


def _whole(view: View) -> NDArray[np.int64]:
    whole = np.array(list(view.capacity_total().values()), np.int64)
    return np.asarray(np.maximum(1, whole), np.int64)


def _dominant(held: HeldAmounts, view: View) -> float:
    return float((held / _whole(view)[: len(held)]).max())


def _memory(held: HeldAmounts, view: View) -> int:
    return int(held[view.dimensions.index(_MEMORY)]) if _MEMORY in view.dimensions else 0


def _request(job: Job, tasks: TaskArray, view: View) -> HeldAmounts:
    total = np.zeros(len(view.dimensions), np.int64)
    for group, mine in job.tasks_by_group(tasks):
        request: Sequence[int] = view.shape_request(view.shape(group.request))
        total += len(mine) * np.array(request, np.int64)
    return total
