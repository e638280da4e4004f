"""Forty machines whose links are shared: the experiment of section 7.5 (figure 19).

In the simulated world tasks do not slow each other down, so this is a separate world around the same
engines: a task reads its input over the network (see `transfers`) and ends when it has read everything.
Decisions take no time. Machines have room for twelve tasks; only Firmament's tasks also request
bandwidth. Of other traffic, Firmament knows what is reserved, or what is measured every second.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from argosy.cell import Cell
from argosy.engines.api import Context, DeliberatesInPlace, Finishes
from argosy.engines.registry import ENGINES
from argosy.host.scheduler import make_settings
from argosy.model.effects import Commit, Deliberate, Effect, Probe, Think, WakeMe
from argosy.model.events import (
    Committed,
    DecisionDue,
    Deliberated,
    Event,
    JobSubmitted,
    Started,
    TaskFinished,
    TimerFired,
    UsageObserved,
)
from argosy.model.jobs import Job, TaskGroup, job_of, task_number
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.tasks import first_tasks
from argosy.model.transactions import OPERATOR, AddMachine, Claims, Transaction
from argosy.model.units import MICROS_PER_SECOND
from argosy.papers.experiment import DONE, ExperimentPoint, PointResult
from argosy.papers.firmament.transfers import Transfers

MACHINES: Final = 40
SLOTS: Final = 12
#: 10 Gbit/s, in bytes per second.
LINK: Final = 1_250_000_000
#: A task alone takes 3.5 to 5 s; it requests two fifths of a link.
ALONE: Final = (3.5, 5.0)
WANTED: Final = 0.4
GIB: Final = 2**30
TASKS: Final = 5
#: Seven iperf servers take 2 x 4 Gbit/s each and seven HTTP clients 1 Gbit/s, all in a higher class.
BACKGROUND: Final = {
    **dict.fromkeys(range(7), 1000000000),
    **dict.fromkeys(range(7, 14), 125000000),
}
#: Fourteen iperf clients send it, 4 Gbit/s each, and three web servers, on machines of their own.
SENT: Final = {
    **dict.fromkeys(range(14, 28), 500000000),
    **dict.fromkeys(range(28, 31), 7 * 125000000 // 3),
}
#: Inputs are read in blocks, a second of an idle link each.
BLOCK: Final = float(LINK)
#: Blocks that a task reads at once in the set-up with several streams, and replicas of a block there.
STREAMS: Final = 4
REPLICAS: Final = 3
#: How often the use of links is measured, in microseconds.
PERIOD: Final = MICROS_PER_SECOND
_FIRMAMENT: Final[dict[str, Any]] = {
    "policy": "network-aware",
    "explain_arcs": 0,
    "reschedule": False,
}
OBSERVED: Final = "firmament-observed"
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "firmament": {**_FIRMAMENT, "bandwidth_use": "reserved"},
    OBSERVED: {**_FIRMAMENT, "bandwidth_use": "observed"},
    "spread": {"t_job": 0, "t_task": 0},
    "kube": {},
    "mesos": {"t_job": 0, "t_task": 0, "t_offer": 0, "refuse": 0},
    "sparrow": {},
}


#: Not a scheduler: each task in isolation on an idle network, the paper's baseline.
IDLE: Final = "idle"


def run_links(point: ExperimentPoint) -> PointResult:
    told = point.parameters
    has_traffic = told["background"] == "yes"
    is_idle = told["scheduler"] == IDLE
    world = LinkWorld(
        "spread" if is_idle else str(told["scheduler"]),
        BACKGROUND if has_traffic else {},
        point.seed,
        float(told.get("wanted", WANTED)),
        sent=None if told["links"] == "receivers" else SENT if has_traffic else {},
        streams=int(told["streams"]),
    )
    world.run(float(told["load"]), int(told["jobs"]))
    times = np.sort(np.array(world.alone() if is_idle else world.responses))
    shares = list(range(1, 101))
    values = {f"p{share}": float(np.percentile(times, share)) for share in (50, 80, 90, 99)}
    values[DONE] = len(times) / (int(told["jobs"]) * TASKS)
    return PointResult(
        values, {"response": [float(np.percentile(times, share)) for share in shares]}
    )


class LinkWorld:
    """One engine, its cell, and links that tasks share. `background` and `sent` are traffic of a higher
    class to and from machines; without `sent`, the links of senders are no limit. A task reads
    in so many `streams` at once."""

    def __init__(
        self,
        scheduler: str,
        background: dict[int, int],
        seed: int,
        wanted: float = WANTED,
        *,
        sent: dict[int, int] | None = None,
        streams: int = 1,
    ) -> None:
        self.cell = Cell(("cpu", "memory", "bandwidth"))
        capacity = Resources(SLOTS * 1_000, SLOTS * 5 * GIB, {"bandwidth": LINK})
        added = tuple(AddMachine(Machine(f"m{n}", capacity)) for n in range(MACHINES))
        self.cell.commit(Transaction(OPERATOR, machines=added))
        self.view = self.cell.view()
        self._random = Random(seed)
        self._background = background
        self.transfers = Transfers(
            [LINK - background.get(machine, 0) for machine in range(MACHINES)],
            None if sent is None else [LINK - sent.get(m, 0) for m in range(MACHINES)],
            BLOCK,
            self._random.child("blocks"),
            streams,
            REPLICAS if streams > 1 else 1,
        )
        self._measures = scheduler == OBSERVED
        engine = "firmament" if self._measures else scheduler
        #: Other engines do not know about the network.
        self._wants = round(wanted * LINK) if engine == "firmament" else 0
        kind = ENGINES[engine]
        self._hears = kind.capabilities.finishes is Finishes.OWN
        self.engine = kind(
            make_settings(kind, SETTINGS[scheduler]),
            Context("s", (), self._random.child("scheduler")),
        )
        self._reserve(background if self._wants and not self._measures else {})
        self._heap: list[tuple[int, int, Event | Job | None]] = []
        self._count = 0
        self.now = 0
        #: When each job was submitted.
        self._submitted: list[int] = []
        self._sizes: dict[int, float] = {}
        self._probed: list[tuple[list[int], list[int], int]] = []
        self.responses: list[float] = []

    def _reserve(self, background: dict[int, int]) -> None:
        """Makes background traffic visible as claims of another scheduler."""
        for machine, amount in background.items():
            shape = self.view.shape(Resources(0, 0, {"bandwidth": amount}))
            where = np.array([machine], np.int32)
            task = np.array([(1 << 60) + machine], np.int64)
            claims = Claims(task, where, np.array([shape], np.int32), self.view.versions(where))
            self.cell.commit(Transaction(OPERATOR, claims))

    def run(self, load: float, jobs: int) -> None:
        """Jobs arrive at a rate at which batch tasks use `load` of the total bandwidth."""
        random = self._random.child("jobs")
        mean = (ALONE[0] + ALONE[1]) / 2
        gap = TASKS * mean / (MACHINES * load)
        at = 0.0
        for number in range(jobs):
            at += random.exponential() * gap
            extras = {"bandwidth": self._wants} if self._wants else {}
            request = Resources(1_000, 4 * GIB, extras)
            estimate = int(mean * MICROS_PER_SECOND)
            job = Job(f"j{number}", (TaskGroup(TASKS, request, estimate),))
            for index in range(TASKS):
                alone = ALONE[0] + (ALONE[1] - ALONE[0]) * random.uniform()
                self._sizes[task_number(number, index)] = alone * LINK
            self._push(int(at * MICROS_PER_SECOND), job)
        self._push(0, Started())
        if self._measures:
            self._push(0, None)
        while True:
            ending = self.transfers.next_end()
            due = self._heap[0][0] if self._heap else None
            if ending is None and due is None:
                return
            if ending is not None and (due is None or ending <= due):
                self.now = ending
                for task, machine in self.transfers.end_blocks(ending):
                    self._end(task, machine)
                continue
            self.now, _, what = heapq.heappop(self._heap)
            if isinstance(what, Job):
                number = len(self._submitted)
                self._submitted.append(self.now)
                tasks = first_tasks(number, TASKS)
                self._tell(JobSubmitted(what, number, tasks))
            elif what is None:
                self._measure()
            else:
                self._tell(what)

    def _measure(self) -> None:
        """Tells how much each link carried in the last period, on average."""
        self.transfers.advance(self.now)
        received = self.transfers.received
        used = [
            self._background.get(machine, 0) + round(received[machine] * MICROS_PER_SECOND / PERIOD)
            for machine in range(MACHINES)
        ]
        received[:] = [0.0] * MACHINES
        where = np.arange(MACHINES, dtype=np.int32)
        self._tell(UsageObserved("bandwidth", where, np.array(used, np.int64)))
        if len(self.responses) < len(self._sizes):
            self._push(self.now + PERIOD, None)

    def alone(self) -> list[float]:
        """How long each task would take in isolation."""
        return [size / LINK for size in self._sizes.values()]

    def _push(self, at: int, what: Event | Job | None) -> None:
        self._count += 1
        heapq.heappush(self._heap, (max(at, self.now), self._count, what))

    def _tell(self, event: Event) -> None:
        self._carry_out(self.engine.handle(event, self.view, self.now))

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Think(_, token):
                    self._push(self.now, DecisionDue(token))
                case Deliberate(token, question):
                    assert isinstance(self.engine, DeliberatesInPlace)
                    decision = self.engine.deliberate_in_place(question)
                    self._push(self.now, Deliberated(token, decision))
                case WakeMe(at, name):
                    if len(self.responses) < len(self._sizes):
                        self._push(at, TimerFired(name))
                case Commit(token, transaction):
                    outcome = self.cell.commit(transaction)
                    if transaction.claims is not None:
                        for task, machine, taken in zip(
                            transaction.claims.tasks.tolist(),
                            transaction.claims.machines.tolist(),
                            outcome.accepted.tolist(),
                            strict=True,
                        ):
                            if taken:
                                self._start(task, machine)
                    self._push(self.now, Committed(token, outcome))
                case Probe(_, machines, request, _, tasks) if tasks is not None:
                    shape = self.view.shape(request)
                    self._probed.append((tasks.tolist(), machines.tolist(), shape))
                    self._answer_probes()

    def _answer_probes(self) -> None:
        """Probes at machines with room are ready at once, and each takes the next task of its job."""
        for tasks, machines, shape in self._probed:
            for machine in [*machines]:
                if not tasks:
                    break
                where = np.array([machine], np.int32)
                claims = Claims(
                    np.array([tasks[0]], np.int64),
                    where,
                    np.array([shape], np.int32),
                    self.view.versions(where),
                )
                if self.cell.commit(Transaction("s", claims)).all_accepted:
                    machines.remove(machine)
                    self._start(tasks.pop(0), machine)
        self._probed = [probed for probed in self._probed if probed[0]]

    def _start(self, task: int, machine: int) -> None:
        self.transfers.begin(task, machine, self._sizes[task], self.now)

    def _end(self, task: int, machine: int) -> None:
        number = job_of(task)
        self.responses.append((self.now - self._submitted[number]) / MICROS_PER_SECOND)
        tasks = np.array([task], np.int64)
        self.cell.commit(Transaction(OPERATOR, releases=tasks))
        self._answer_probes()
        if self._hears:
            where = np.array([machine], np.int32)
            zero = np.zeros(1, np.int32)
            self._tell(TaskFinished(tasks, where, np.zeros(1, np.int64), zero))
