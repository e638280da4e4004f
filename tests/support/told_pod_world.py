"""A world of pods that writes down all that it is told, and all that is ordered of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from recorded_pod_world import RecordedPodWorld

from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import Job
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.worlds.kubernetes.tracked import BindOrder, EvictOrder, NominateOrder


def _amounts(resources: Resources) -> str:
    return f"{resources.cpu}m {resources.memory >> 30}Gi"


def _tasks(tasks: Sequence[tuple[str, int]]) -> str:
    return " ".join(f"{job}/{index}" for job, index in tasks)


class ToldPodWorld(RecordedPodWorld):
    def __init__(self) -> None:
        super().__init__()
        self._told: list[str] = []

    def told(self) -> list[str]:
        """All since the last call; orders come last, and are taken."""
        orders: list[str] = []
        while self.cluster.orders:
            match self.cluster.orders.popleft():
                case BindOrder(pod, node):
                    orders.append(f"order: bind {pod.uid} to {node}")
                case EvictOrder(pod, why):
                    orders.append(f"order: evict {pod.uid}, {why.name.lower()}")
                case NominateOrder(pod, node):
                    orders.append(f"order: nominate {node} for {pod.uid}")
        told, self._told = self._told, []
        return told + orders

    def submit_all(self, jobs: Iterable[Job]) -> None:
        found = list(jobs)
        names = (f"{job.id} ({_amounts(job.groups[0].request)})" for job in found)
        self._told.append(f"submit {', '.join(names)}")
        super().submit_all(found)

    def adopt(
        self,
        jobs: Sequence[tuple[Job, str]],
        by: str,
        instead_of: Sequence[tuple[str, int]] = (),
        replaced: Sequence[tuple[str, int]] = (),
    ) -> list[Refusal | None]:
        names = (f"{job.id} ({_amounts(job.groups[0].request)}) on {node}" for job, node in jobs)
        text = f"adopt {', '.join(names)} by {by}"
        text += f", instead of {_tasks(instead_of)}" if instead_of else ""
        self._told.append(text + (f", replacing {_tasks(replaced)}" if replaced else ""))
        return super().adopt(jobs, by, instead_of, replaced)

    def cancel(self, name: str, indices: Sequence[int] | None = None) -> int:
        self._told.append(f"cancel {name}" + ("" if indices is None else f" {list(indices)}"))
        return super().cancel(name, indices)

    def settle(self) -> None:
        self._told.append("settle")

    def finish(self, number: int, status: int, reason: str) -> None:
        self._told.append(f"try {number} has finished with {status} {reason}".rstrip())
        super().finish(number, status, reason)

    def gone(self, number: int) -> None:
        self._told.append(f"try {number} is gone")
        super().gone(number)

    def refuse_try(self, number: int, why: Why) -> None:
        self._told.append(f"try {number} is refused, {why.name.lower()}")
        super().refuse_try(number, why)

    def mark(self, attribute: str, group: str, sets: Sequence[str], is_given: bool) -> None:
        nodes = ", ".join(sorted(sets))
        self._told.append(f"{'mark' if is_given else 'unmark'} {group} {nodes}: {attribute}")

    def add_machine(self, machine: Machine) -> None:
        self._told.append(f"add {machine.name} ({_amounts(machine.capacity)})")
        super().add_machine(machine)

    def remove_machine(self, name: str) -> None:
        self._told.append(f"remove {name}")
        super().remove_machine(name)

    def fit_machine(self, name: str, capacity: Resources) -> None:
        self._told.append(f"fit {name} to {_amounts(capacity)}")
        super().fit_machine(name, capacity)

    def relabel_machine(self, machine: Machine) -> None:
        labels: dict[str, Any] = dict(machine.attributes)
        self._told.append(f"relabel {machine.name} {labels}")
