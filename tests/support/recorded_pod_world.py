"""A world of pods that decides nothing by itself: a test does, and sees what it was told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import Job
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.worlds.kubernetes.cluster import PodCluster


class RecordedPodWorld:
    """Implements `PodWorld`; `cluster` is set after it was made."""

    cluster: PodCluster

    def __init__(self) -> None:
        self.machines: dict[str, Resources] = {}
        self.waiting: dict[str, Job] = {}
        #: Jobs with their machines; and the numbers of tries.
        self.placed: dict[str, tuple[Job, str]] = {}
        self.tries: dict[int, str] = {}
        #: Who adopted jobs, what was cancelled, how tries ended, and what waits in queues.
        self.adopted: list[tuple[str, str]] = []
        self.cancelled: list[tuple[str, Sequence[int] | None]] = []
        self.finished: list[tuple[int, int, str]] = []
        self.queues: dict[str, list[tuple[str, int]]] = {}
        self._moving: set[int] = set()
        self._used: set[str] = set()
        self._last = 0

    def submit_all(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            assert job.id not in self._used
            self._used.add(job.id)
            self.waiting[job.id] = job

    def adopt(
        self,
        jobs: Sequence[tuple[Job, str]],
        by: str,
        instead_of: Sequence[tuple[str, int]] = (),
        replaced: Sequence[tuple[str, int]] = (),
    ) -> list[Refusal | None]:
        for name, _ in replaced:
            self.cancel(name)
        for name, _ in instead_of:
            for number in [number for number, of in self.tries.items() if of == name]:
                self.refuse_try(number, Why.STALE)
        self.adopted += [(job.id, by) for job, _ in jobs]
        return [self._adopt(*job) for job in jobs]

    def _adopt(self, job: Job, machine: str) -> Refusal | None:
        assert job.id not in self._used
        if not self.fits(job, machine):
            return Refusal(Why.NO_ROOM)
        self._used.add(job.id)
        self.placed[job.id] = job, machine
        self._launch(job.id)
        return None

    def cancel(self, name: str, indices: Sequence[int] | None = None) -> int:
        self.cancelled.append((name, indices))
        self.waiting.pop(name, None)
        self.placed.pop(name, None)
        return 1

    def is_over(self, name: str) -> bool:
        return name not in self.waiting and name not in self.placed

    def settle(self) -> None:
        """Decisions are the test's."""

    def job_seq(self, name: str) -> int | None:
        return 0 if name in self._used else None

    def finish(self, number: int, status: int, reason: str) -> None:
        self.finished.append((number, status, reason))
        self._forget(number)

    def gone(self, number: int) -> None:
        self._forget(number)

    def _forget(self, number: int) -> None:
        assert isinstance(number, int), "what has not begun is not gone either"
        job = self.tries.pop(number, "")
        if number not in self._moving:
            self.placed.pop(job, None)
        elif job in self.placed:
            self._launch(job)

    def refuse_try(self, number: int, why: Why) -> None:
        job = self.tries.pop(number, "")
        if job in self.placed:
            self.waiting[job] = self.placed.pop(job)[0]
            self.cluster.pushed_off(job, why)
            self.cluster.follow_up()

    def mark(self, attribute: str, group: str, sets: Sequence[str], is_given: bool) -> None:
        """Rules are tested elsewhere."""

    def has_machine(self, name: str) -> bool:
        return name in self.machines

    def add_machine(self, machine: Machine) -> None:
        self.machines[machine.name] = machine.capacity

    def remove_machine(self, name: str) -> None:
        del self.machines[name]
        for job, (work, where) in list(self.placed.items()):
            if where == name:
                del self.placed[job]
                self.waiting[job] = work
                self.cluster.pushed_off(job, Why.MACHINE_GONE)
        self.cluster.follow_up()

    def fit_machine(self, name: str, capacity: Resources) -> None:
        self.machines[name] = capacity

    def relabel_machine(self, machine: Machine) -> None:
        """Rules are tested elsewhere."""

    def free_on(self, machine: str) -> Resources:
        free = dict(self.machines[machine].items())
        for job, where in self.placed.values():
            if where == machine:
                for name, amount in job.groups[0].request.items():
                    free[name] = free.get(name, 0) - amount
        cpu, memory = max(0, free.pop("cpu")), max(0, free.pop("memory"))
        return Resources(cpu, memory, {name: max(0, each) for name, each in free.items()})

    def fits(self, job: Job, machine: str) -> bool:
        free = dict(self.free_on(machine).items())
        return all(
            amount <= free.get(name, 0) for name, amount in job.groups[0].request.items() if amount
        )

    def queued(self) -> dict[str, list[tuple[str, int]]]:
        return self.queues

    # What the test decides.

    def place(self, name: str, machine: str) -> bool:
        """A scheduler chooses a machine, and pushes off what is in the way."""
        job = self.waiting[name]
        pushed = []
        lower = sorted(
            (
                (other.precedence, each)
                for each, (other, where) in self.placed.items()
                if where == machine and other.precedence < job.precedence
            ),
        )
        while not self.fits(job, machine):
            if not lower:
                for each, kept in pushed:
                    self.placed[each] = kept
                return False
            each = lower.pop(0)[1]
            pushed.append((each, self.placed.pop(each)))
        del self.waiting[name]
        self.placed[name] = job, machine
        for each, (other, _) in pushed:
            self.waiting[each] = other
            self.cluster.pushed_off(each, Why.PREEMPTED)
        if not self.cluster.claimed(name, machine):
            self.waiting[name] = self.placed.pop(name)[0]
            self.cluster.pushed_off(name, Why.FILTERED)
        self.cluster.follow_up()
        if name in self.placed:
            self._launch(name)
        return True

    def move(self, name: str, machine: str) -> None:
        """A scheduler moves what runs. It begins there when it has ended where it was."""
        self.placed[name] = self.placed[name][0], machine
        self._moving.update(number for number, job in self.tries.items() if job == name)
        self.cluster.pushed_off(name, Why.MOVED)
        self.cluster.claimed(name, machine)
        self.cluster.follow_up()

    def _launch(self, name: str) -> None:
        self._last += 1
        self.tries[self._last] = name
        self.cluster.launch(self._last, name)
