from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from argosy.cell import Rule, View
from argosy.engines.api import Capabilities, Context, Finishes, Settings
from argosy.model.effects import Effect, Enqueue, Explain, Send, Think, WakeMe
from argosy.model.events import (
    DecisionDue,
    Event,
    JobSubmitted,
    MachineChanged,
    MachineJoined,
    MachineLost,
    MessageReceived,
    Started,
    TaskFinished,
    TasksLost,
    TimerFired,
)
from argosy.model.jobs import Job, TaskGroup
from argosy.model.transactions import MachineArray, ShapeArray, TaskArray
from argosy.model.units import Micros


class MurmurationSettings(Settings, frozen=True):
    """How a Murmuration scheduler orders and decides."""

    #: Decision time is t_job + t_task x tasks.
    t_job: Micros = Micros(100_000)
    t_task: Micros = Micros(5_000)
    #: Which job comes next: the earliest, or the one with the least estimated work.
    order: Literal["fcfs", "shortest-job"] = "fcfs"
    #: What a task without an estimate is taken to run for: such tasks mostly run until stopped.
    unknown_estimate: Annotated[Micros, Meta(ge=1)] = Micros(3_600_000_000)
    #: How long a scheduler that starts again waits for a peer's view before it goes on without.
    ask_timeout: Annotated[Micros, Meta(ge=1_000)] = Micros(1_000_000)


class Placed(msgspec.Struct, frozen=True):
    """Gossip: tasks of one shape were placed, one row a task, each with the wait it adds."""

    machines: MachineArray
    waits: NDArray[np.int64]
    shape: int


class Removed(msgspec.Struct, frozen=True):
    """Gossip: tasks of one shape lost their place, each with the wait it had added."""

    machines: MachineArray
    waits: NDArray[np.int64]
    shape: int


class AskWaits(msgspec.Struct, frozen=True):
    """A scheduler that starts again asks a peer for its view."""


class Waits(msgspec.Struct, frozen=True):
    waits: NDArray[np.int64]
    held: NDArray[np.int64]


class Murmuration:
    name: ClassVar[str] = "murmuration"
    summary: ClassVar[str] = (
        "Gossiped expected waits: one attempt per task, queues at the machines."
    )
    settings_type: ClassVar[type[Settings]] = MurmurationSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        queues=True, gossip=True, finishes=Finishes.ALL, machine_events=True
    )

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, MurmurationSettings)
        self._settings = settings
        self._context = context
        #: Work at every machine: the sum, over tasks queued and running there, of estimate x the share
        #: of the machine the task takes. On a machine of one slot that is the paper's expected wait.
        self._waits = np.zeros(0, np.int64)
        #: What those tasks ask for, a row a machine: where there is room beside it, a task waits not.
        self._held = np.zeros((0, 0), np.int64)
        self._capacity = np.zeros((0, 0), np.int64)
        self._shares: dict[int, NDArray[np.float64]] = {}
        self._requests: dict[int, NDArray[np.int64]] = {}
        #: (rank, number of arrival, job, job's number, tasks): a heap.
        self._queue: list[tuple[int, int, Job, int, TaskArray]] = []
        self._arrivals = 0
        #: Tasks for which no machine is large enough.
        self._stuck: list[tuple[Job, int, TaskArray]] = []
        self._deciding: tuple[Job, int, TaskArray] | None = None
        self._is_asking = False

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        if len(self._waits) < view.machines:
            self._learn_machines(view)
        match event:
            case TaskFinished(machines=machines, estimates=estimates, shapes=shapes):
                self._forget(machines, estimates, shapes, view)
            case MessageReceived(sender, payload):
                return self._hear(sender, payload, view)
            case JobSubmitted(job, number, tasks):
                self._push(job, number, tasks)
                return self._begin()
            case TasksLost(job, number, tasks, machines):
                self._push(job, number, tasks)
                return [*self._take_off(job, tasks, machines, view), *self._begin()]
            case DecisionDue():
                return self._decide(view)
            case MachineLost(machine):
                self._waits[machine] = 0
                self._held[machine] = 0
            case MachineJoined() | MachineChanged():
                self._learn_machines(view)
                for job, number, tasks in self._stuck:
                    self._push(job, number, tasks)
                self._stuck.clear()
                return self._begin()
            case Started(again=True) if self._context.peers:
                return self._ask_two_peers(now)
            case TimerFired():
                self._is_asking = False
        return ()

    def _learn_machines(self, view: View) -> None:
        known = len(self._waits)
        new, width = view.machines - known, len(view.dimensions)
        self._waits = np.concatenate([self._waits, np.zeros(new, np.int64)])
        self._held = np.concatenate(
            [self._held.reshape(known, width), np.zeros((new, width), np.int64)]
        )
        self._capacity = view.capacity()
        self._shares.clear()

    def _push(self, job: Job, number: int, tasks: TaskArray) -> None:
        rank = 0
        if self._settings.order == "shortest-job":
            rank = sum(self._estimate(group) * group.count for group in job.groups)
        self._arrivals += 1
        heapq.heappush(self._queue, (rank, self._arrivals, job, number, tasks))

    def _estimate(self, group: TaskGroup) -> int:
        return self._settings.unknown_estimate if group.expected is None else group.expected

    def _begin(self) -> Sequence[Effect]:
        if self._deciding is not None or not self._queue:
            return ()
        _, _, job, number, tasks = heapq.heappop(self._queue)
        self._deciding = (job, number, tasks)
        duration = self._settings.t_job + self._settings.t_task * len(tasks)
        return (Think(duration, number, number),)

    def _decide(self, view: View) -> Sequence[Effect]:
        """One attempt: every task goes to the machine with the smallest expected wait."""
        assert self._deciding is not None
        job, number, tasks = self._deciding
        self._deciding = None
        effects: list[Effect] = []
        for group, mine in job.tasks_by_group(tasks):
            effects.extend(self._place(job, number, group, mine, view))
        effects.extend(self._begin())
        return effects

    def _place(
        self, job: Job, number: int, group: TaskGroup, tasks: TaskArray, view: View
    ) -> Sequence[Effect]:
        shape = view.shape(group.request, group.tags, job.precedence)
        steps = self._steps(self._estimate(group), shape, view)
        found = view.find(
            shape,
            len(tasks),
            Rule.SMALLEST_KEY,
            self._context.random,
            within=view.where(group.requires) if group.requires else None,
            keys=np.where(self._has_room(shape, view), 0, self._waits),
            step=steps,
            needs_room=False,
        )
        if not len(found.machines):
            self._stuck.append((job, number, tasks))
            return (Explain(tasks, found.explanation()),)
        waits = steps[found.machines]
        self._add(found.machines, waits, shape, view)
        effects: list[Effect] = [Enqueue(tasks, found.machines, found.explanation())]
        if self._context.peers:
            effects.append(Send(self._context.peers, Placed(found.machines, waits, shape)))
        return effects

    def _steps(self, estimate: int, shape: int, view: View) -> NDArray[np.int64]:
        """What one task of this shape adds to the expected wait of each machine."""
        return (estimate * self._share(shape, view)).astype(np.int64)

    def _take_off(
        self, job: Job, tasks: TaskArray, machines: MachineArray, view: View
    ) -> Sequence[Effect]:
        """Lost tasks no longer wait where they were; peers heard of them from here alone."""
        effects: list[Effect] = []
        where = dict(zip(tasks.tolist(), machines.tolist(), strict=True))
        for group, mine in job.tasks_by_group(tasks):
            shape = view.shape(group.request, group.tags, job.precedence)
            left = np.array([where[task] for task in mine.tolist()], np.int32)
            waits = self._steps(self._estimate(group), shape, view)[left]
            self._remove(left, waits, shape, view)
            if self._context.peers:
                effects.append(Send(self._context.peers, Removed(left, waits, shape)))
        return effects

    def _remove(
        self, machines: MachineArray, waits: NDArray[np.int64], shape: int, view: View
    ) -> None:
        """Nothing falls below zero: notices may come twice, or before what they answer."""
        np.subtract.at(self._waits, machines, waits)
        np.subtract.at(self._held, machines, self._request(shape, view))
        self._waits[machines] = np.maximum(self._waits[machines], 0)
        self._held[machines] = np.maximum(self._held[machines], 0)

    def _forget(
        self,
        machines: MachineArray,
        estimates: NDArray[np.int64],
        shapes: ShapeArray,
        view: View,
    ) -> None:
        """Tasks ended: mostly one at a time, so plain numbers beat array operations. Nothing falls
        below zero: notices may come twice, or before what they answer."""
        waits = self._waits
        for machine, estimate, shape in zip(
            machines.tolist(), estimates.tolist(), shapes.tolist(), strict=True
        ):
            left = waits.item(machine) - int(estimate * self._share(shape, view).item(machine))
            waits[machine] = max(left, 0)
            row = self._held[machine]
            np.maximum(row - self._request(shape, view), 0, out=row)

    def _share(self, shape: int, view: View) -> NDArray[np.float64]:
        """The share of each machine that a task of this shape takes, in its scarcest dimension."""
        share = self._shares.get(shape)
        if share is None:
            request = self._request(shape, view)
            share = self._shares[shape] = (request / np.maximum(self._capacity, 1)).max(axis=1)
        return share

    def _request(self, shape: int, view: View) -> NDArray[np.int64]:
        request = self._requests.get(shape)
        if request is None:
            request = self._requests[shape] = np.array(view.shape_request(shape), np.int64)
        return request

    def _has_room(self, shape: int, view: View) -> NDArray[np.bool_]:
        """Machines that could start one more task of this shape at once, as far as is known."""
        fits = self._held + self._request(shape, view) <= self._capacity
        room: NDArray[np.bool_] = np.all(fits, axis=1)
        return room

    def _add(
        self, machines: MachineArray, waits: NDArray[np.int64], shape: int, view: View
    ) -> None:
        np.add.at(self._waits, machines, waits)
        np.add.at(self._held, machines, self._request(shape, view))

    def _hear(self, sender: str, payload: object, view: View) -> Sequence[Effect]:
        match payload:
            case Placed(machines, waits, shape):
                self._add(machines, waits, shape, view)
            case Removed(machines, waits, shape):
                self._remove(machines, waits, shape, view)
            case AskWaits() if not self._is_asking:
                return (Send((sender,), Waits(self._waits.copy(), self._held.copy())),)
            case Waits(waits, held) if self._is_asking:
                self._is_asking = False
                # What was placed since the start may be in the answer already: the larger is right.
                known = min(len(waits), len(self._waits))
                np.maximum(self._waits[:known], waits[:known], out=self._waits[:known])
                np.maximum(self._held[:known], held[:known], out=self._held[:known])
        return ()

    def _ask_two_peers(self, now: int) -> Sequence[Effect]:
        self._is_asking = True
        peers = list(self._context.peers)
        chosen = [peers.pop(self._context.random.below(len(peers)))]
        if peers:
            chosen.append(peers.pop(self._context.random.below(len(peers))))
        timeout = now + self._settings.ask_timeout
        return (Send(tuple(chosen), AskWaits()), WakeMe(timeout, "ask"))
