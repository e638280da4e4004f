"""One framework: its jobs, its filters, and the offers it declined."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.cell.bitmaps import to_mask
from argosy.engines.shared.serial import KindTime
from argosy.engines.shared.withdrawal import Withdrawal, claims_left, left
from argosy.model.effects import Explain, WakeMe
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.jobs import Job
from argosy.model.transactions import Claims, MachineArray, TaskArray
from argosy.model.units import Micros, format_duration


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

    __slots__ = (
        "attempts",
        "behind",
        "held",
        "hoard",
        "is_begun",
        "job",
        "number",
        "rests_until",
        "tasks",
    )

    def __init__(self, job: Job, number: int, tasks: TaskArray) -> None:
        self.job = job
        self.number = number
        self.tasks = tasks
        self.attempts = 0
        #: Whether some of its tasks were placed.
        self.is_begun = False
        self.rests_until = 0
        #: The job that it was told goes first.
        self.behind: HoardedJob | None = None
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

    def __init__(
        self, kind: str, settings: FrameworkSettings, refuse: int, *, failed_first: bool
    ) -> None:
        """With `failed_first`, a job that could not be placed is tried again before all others."""
        self.kind = kind
        self.settings = settings
        self._failed_first = failed_first
        self.queue: deque[HoardedJob] = deque()
        #: Jobs that were not wholly placed and are not tried yet, in the order of their return.
        self.resting: deque[HoardedJob] = deque()
        self.deciding: HoardedJob | None = None
        #: The current offer, per machine and dimension.
        self.offer: NDArray[np.int64] | None = None
        self.claims: Claims | None = None
        #: Whether the claims are on their way, and what was withdrawn since.
        self.is_committing = False
        self.withdrawals: list[Withdrawal] = []
        self.explains: list[Explain] = []
        #: How the claims were chosen, if all tasks are alike.
        self.explanation: Explanation | None = None
        self.unplaced = np.empty(0, np.int64)
        self._refuse = refuse if settings.refuse is None else settings.refuse
        #: What was declined on each machine, and until when that counts.
        self._declined = np.zeros((0, 0), np.int64)
        self._until = np.zeros(0, np.int64)
        #: Why it was offered nothing when its jobs were last told, and the jobs that came since.
        self._told: frozenset[str] = frozenset()
        self._untold: list[HoardedJob] = []

    @property
    def wants_offers(self) -> bool:
        return bool(self.queue) and self.deciding is None

    def submit(self, work: HoardedJob) -> None:
        """Queues a job; it may want what was declined."""
        self.queue.append(work)
        if len(self._untold) > 2 * len(self.queue):
            # Most have been tried since, and need not be told.
            self._untold = [each for each in self._untold if not each.attempts]
        self._untold.append(work)
        self._until[:] = 0

    def withdraw(self, event: Withdrawal) -> None:
        """Drops withdrawn tasks."""
        for work in (*self.queue, *self.resting):
            work.withdraw(event)
        self.queue = deque(work for work in self.queue if len(work.tasks))
        self.resting = deque(work for work in self.resting if len(work.tasks))
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
        """What of `available` passes the filters."""
        passes = self._wanted(view) & ~self._refused(available, now)
        return available if passes.all() else np.where(passes[:, None], available, 0)

    def _wanted(self, view: View) -> NDArray[np.bool_]:
        """Machines by their attributes."""
        wanted = np.ones(view.machines, np.bool_)
        if self.settings.only:
            wanted &= to_mask(view.where(self.settings.only), view.machines)
        for name, value in self.settings.avoid.items():
            wanted &= ~to_mask(view.where({name: value}), view.machines)
        return wanted

    def _refused(self, available: NDArray[np.int64], now: int) -> NDArray[np.bool_]:
        """Machines that were declined and have no more than then."""
        if self._declined.shape != available.shape:
            return np.zeros(len(available), np.bool_)
        refused: NDArray[np.bool_] = self._until > now
        return refused & ~(available > self._declined).any(axis=1)

    def decline(
        self, offer: NDArray[np.int64] | None, used: MachineArray, now: int, *, is_short: bool
    ) -> None:
        """If an offer was too small, or the framework is at its limit, what was of no use is refused for
        a while, unless a job that was never tried may have use for it."""
        if not self._refuse or offer is None or not is_short:
            return
        if not self._failed_first and any(not work.attempts for work in self.queue):
            return
        if self._declined.shape != offer.shape:
            self._until = np.zeros(len(offer), np.int64)
            self._declined = np.zeros_like(offer)
        unused: NDArray[np.bool_] = np.asarray(offer.any(axis=1))
        unused[used] = False
        self._until[unused] = now + self._refuse
        self._declined[unused] = offer[unused]

    def put_back(self, work: HoardedJob) -> list[Explain]:
        """Queues a job with tasks that have no machine. If it is tried again before all others, those
        never tried are told, once for each job that goes first."""
        if not self._failed_first:
            self.queue.append(work)
            return []
        told = Explanation(
            refused=Refusal(Why.BEHIND, task=int(work.tasks[0])),
            remedy="room for the jobs that go first, or retry = 'last'",
        )
        others = [each for each in self.queue if not each.attempts and each.behind is not work]
        for each in others:
            each.behind = work
        self.queue.appendleft(work)
        return [Explain(each.tasks, told) for each in others]

    def let_rest(self, works: Sequence[HoardedJob], until: int) -> list[WakeMe]:
        for work in works:
            work.rests_until = until
        self.resting.extend(works)
        return [WakeMe(until, "rest")] if works else []

    def end_rests(self, now: int) -> None:
        while self.resting and self.resting[0].rests_until <= now:
            self.queue.append(self.resting.popleft())

    def unoffered(
        self, available: NDArray[np.int64], view: View, now: int, *, has_its_share: bool = False
    ) -> list[Explain]:
        """Why the framework is offered nothing, for jobs that were never tried and were not told yet."""
        free, there = view.free().any(axis=1), available.any(axis=1)
        wanted, refused = self._wanted(view), self._refused(available, now)
        masks = {
            "full": ~free,
            "offered": free & ~there,
            "not wanted": there & ~wanted,
            "declined": there & wanted & refused,
            "beyond its share": there & wanted & ~refused & has_its_share,
        }
        ruled_out = {name: int(mask.sum()) for name, mask in masks.items() if mask.any()}
        jobs = self._untold if self._told == ruled_out.keys() else [*self.queue]
        self._told, self._untold = frozenset(ruled_out), []
        told = Explanation(
            looked_at=view.machines,
            ruled_out=ruled_out,
            refused=Refusal(Why.NOT_OFFERED),
            remedy=self._remedy(ruled_out),
        )
        return [Explain(work.tasks, told) for work in jobs if not work.attempts and len(work.tasks)]

    def _remedy(self, ruled_out: dict[str, int]) -> str:
        if "declined" in ruled_out:
            return (
                f"wait: declined machines are offered again after {format_duration(self._refuse)}"
            )
        if "beyond its share" in ruled_out:
            return "wait until tasks of the framework end, or set offers = 'all'"
        if "offered" in ruled_out:
            return "wait until others return their offers, or set offers = 'fair-share'"
        if "full" in ruled_out:
            return "wait until tasks end, or add a machine"
        return f"change the filters of the framework {self.kind}, or add a machine that passes them"
