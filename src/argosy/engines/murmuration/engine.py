from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import ClassVar, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.cell import Rule, View
from argosy.engines.api import Capabilities, Context, Finishes, Settings
from argosy.model.effects import Effect, Enqueue, Explain, Send, Think
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
)
from argosy.model.jobs import Job, TaskGroup
from argosy.model.transactions import MachineArray, ShapeArray, TaskArray
from argosy.model.units import Micros



class MurmurationSettings(Settings):
    """How a Murmuration scheduler orders and decides."""

    #: Decision time is t_job + t_task x tasks.
    t_job: Micros = Micros(100_000)
    t_task: Micros = Micros(5_000)
    #: Which job comes next: the earliest, or the one with the least estimated work.
    order: Literal["fcfs", "shortest-job"] = "fcfs"
    #: What a task without an estimate is taken to run for.
    unknown_estimate: Micros = Micros(60_000_000)


class Placed(msgspec.Struct, frozen=True):
    """Gossip: this much expected wait was added to these machines (one row per task)."""

    machines: MachineArray
    waits: NDArray[np.int64]


class AskWaits(msgspec.Struct, frozen=True):
    """A scheduler that starts again asks a peer for its view."""


class Waits(msgspec.Struct, frozen=True):
    waits: NDArray[np.int64]


class Murmuration:
    name: ClassVar[str] = "murmuration"
    summary: ClassVar[str] = "Gossiped expected waits: one attempt per task, queues at the machines."
    settings_type: ClassVar[type[Settings]] = MurmurationSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        queues=True, gossip=True, finishes=Finishes.ALL, machine_events=True
    )

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, MurmurationSettings)
        self._settings = settings
        self._context = context
        #: Expected wait of every machine: the sum, over tasks queued and running there, of estimate x
        #: the share of the machine the task takes. A machine of one slot makes that the paper's sum.
        self._waits = np.zeros(0, np.int64)
        self._capacity = np.zeros((0, 0), np.int64)
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
                self._add(machines, -self._waits_of(machines, estimates, shapes, view))
            case MessageReceived(sender, payload):
                return self._hear(sender, payload)
            case JobSubmitted(job, number, tasks) | TasksLost(job, number, tasks):
                self._push(job, number, tasks)
                return self._begin()
            case DecisionDue():
                return self._decide(view)
            case MachineLost(machine):
                self._waits[machine] = 0
            case MachineJoined() | MachineChanged():
                self._learn_machines(view)
                for job, number, tasks in self._stuck:
                    self._push(job, number, tasks)
                self._stuck.clear()
                return self._begin()
            case Started(again=True) if self._context.peers:
                return self._ask_two_peers()
        return ()

    def _learn_machines(self, view: View) -> None:
        known = len(self._waits)
        self._waits = np.concatenate([self._waits, np.zeros(view.machines - known, np.int64)])
        self._capacity = np.maximum(view.capacity(), 1)

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
            keys=self._waits,
            step=steps,
            needs_room=False,
        )
        if not len(found.machines):
            self._stuck.append((job, number, tasks))
            return (Explain(tasks, found.explanation()),)
        waits = steps[found.machines]
        self._add(found.machines, waits)
        effects: list[Effect] = [Enqueue(tasks, found.machines, found.explanation())]
        if self._context.peers:
            effects.append(Send(self._context.peers, Placed(found.machines, waits)))
        return effects

    def _steps(self, estimate: int, shape: int, view: View) -> NDArray[np.int64]:
        """What one task of this shape adds to the expected wait of each machine."""
        share = (self._request(shape, view) / self._capacity).max(axis=1)
        return (estimate * share).astype(np.int64)

    def _waits_of(
        self,
        machines: MachineArray,
        estimates: NDArray[np.int64],
        shapes: ShapeArray,
        view: View,
    ) -> NDArray[np.int64]:
        requests = np.stack([self._request(shape, view) for shape in shapes.tolist()])
        share = (requests / self._capacity[machines]).max(axis=1)
        return (estimates * share).astype(np.int64)

    def _request(self, shape: int, view: View) -> NDArray[np.int64]:
        if shape not in self._requests:
            self._requests[shape] = np.array(view.shape_request(shape), np.int64)
        return self._requests[shape]

    def _add(self, machines: MachineArray, waits: NDArray[np.int64]) -> None:
        """A wait never falls below zero: notices may come twice, or before what they answer."""
        np.add.at(self._waits, machines, waits)
        self._waits[machines] = np.maximum(self._waits[machines], 0)

    def _hear(self, sender: str, payload: object) -> Sequence[Effect]:
        match payload:
            case Placed(machines, waits):
                self._add(machines, waits)
            case AskWaits() if not self._is_asking:
                return (Send((sender,), Waits(self._waits.copy())),)
            case Waits(waits) if self._is_asking:
                self._is_asking = False
                self._waits[: len(waits)] = waits[: len(self._waits)]
        return ()

    def _ask_two_peers(self) -> Sequence[Effect]:
        self._is_asking = True
        peers = list(self._context.peers)
        chosen = [peers.pop(self._context.random.below(len(peers)))]
        if peers:
            chosen.append(peers.pop(self._context.random.below(len(peers))))
        return (Send(tuple(chosen), AskWaits()),)
