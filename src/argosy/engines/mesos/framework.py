"""One framework: its jobs, its filters, and the offers it declined."""

from __future__ import annotations

from collections import deque

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.cell.bitmaps import to_mask
from argosy.engines.shared.serial import KindTime
from argosy.engines.shared.withdrawal import Withdrawal, claims_left, left
from argosy.model.effects import Explain
from argosy.model.jobs import Job
from argosy.model.transactions import Claims, TaskArray
from argosy.model.units import Micros


class FrameworkSettings(KindTime, frozen=True):
    """A framework's decision time and filters."""

    #: Only machines with all these attributes are offered.
    only: dict[str, str] = msgspec.field(default_factory=dict)
    #: Machines with any of these attributes are not offered.
    avoid: dict[str, str] = msgspec.field(default_factory=dict)
    #: Overrides the engine's `refuse`.
    refuse: Micros | None = None


class HoardedJob:
    """The unplaced tasks of one job, and the claims hoarded for it until they are complete."""

    __slots__ = ("attempts", "held", "hoard", "job", "number", "tasks")

    def __init__(self, job: Job, number: int, tasks: TaskArray) -> None:
        self.job = job
        self.number = number
        self.tasks = tasks
        self.attempts = 0
        self.hoard: list[Claims] = []
        #: Resources of the hoard, per machine and dimension.
        self.held: NDArray[np.int64] | None = None

    def withdraw(self, event: Withdrawal) -> None:
        """If tasks of the job are withdrawn, its hoard is given up."""
        if self.number == event.number:
            hoarded = [claims.tasks for claims in self.hoard]
            self.job = event.job
            self.tasks = np.sort(left(np.concatenate([self.tasks, *hoarded]), event))
            self.hoard.clear()
            self.held = None


class Framework:
    """A framework's queue, current offer and filters. A declined machine is not offered again for a
    while, unless it has more free by then or the framework has a new job."""

    def __init__(self, kind: str, settings: FrameworkSettings, refuse: int) -> None:
        self.kind = kind
        self.settings = settings
        self.queue: deque[HoardedJob] = deque()
        self.deciding: HoardedJob | None = None
        #: The current offer, per machine and dimension.
        self.offer: NDArray[np.int64] | None = None
        self.claims: Claims | None = None
        #: Whether the claims are on their way, and what was withdrawn since.
        self.is_committing = False
        self.withdrawals: list[Withdrawal] = []
        self.explains: list[Explain] = []
        self.unplaced = np.empty(0, np.int64)
        self._refuse = refuse if settings.refuse is None else settings.refuse
        #: What was declined on each machine, and until when that counts.
        self._declined = np.zeros((0, 0), np.int64)
        self._until = np.zeros(0, np.int64)

    @property
    def wants_offers(self) -> bool:
        return bool(self.queue) and self.deciding is None

    def submit(self, work: HoardedJob) -> None:
        """Queues a job; it may want what was declined."""
        self.queue.append(work)
        self._until[:] = 0

    def withdraw(self, event: Withdrawal) -> None:
        """Drops withdrawn tasks."""
        for work in self.queue:
            work.withdraw(event)
        self.queue = deque(work for work in self.queue if len(work.tasks))
        if self.deciding is None or self.deciding.number != event.number:
            return
        if self.is_committing:
            self.withdrawals.append(event)
            return
        self.explains = []
        if self.deciding.job.gang:
            # The hoard may be all that is left, so the job is decided again.
            self.claims, self.unplaced = None, self.unplaced[:0]
        self.deciding.withdraw(event)
        self.claims, self.unplaced = claims_left(self.claims, event), left(self.unplaced, event)

    def acceptable(self, available: NDArray[np.int64], view: View, now: int) -> NDArray[np.int64]:
        """The part of `available` that passes the filters."""
        passes = np.ones(len(available), np.bool_)
        if self.settings.only:
            passes &= to_mask(view.where(self.settings.only), view.machines)
        for name, value in self.settings.avoid.items():
            passes &= ~to_mask(view.where({name: value}), view.machines)
        if len(self._until) == len(available):
            passes &= (self._until <= now) | (available > self._declined).any(axis=1)
        return available if passes.all() else np.where(passes[:, None], available, 0)

    def decline(self, now: int) -> None:
        """If some tasks found no place in the offer, declines its unused machines for a while, unless a
        queued job that was never tried may want them."""
        if not self._refuse or self.offer is None or not len(self.unplaced):
            return
        if any(not work.attempts for work in self.queue):
            return
        if len(self._until) != len(self.offer):
            self._until = np.zeros(len(self.offer), np.int64)
            self._declined = np.zeros_like(self.offer)
        unused: NDArray[np.bool_] = np.asarray(self.offer.any(axis=1))
        if self.claims is not None:
            unused[self.claims.machines] = False
        self._until[unused] = now + self._refuse
        self._declined[unused] = self.offer[unused]
