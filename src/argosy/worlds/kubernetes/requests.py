"""What a pod asks of a node, and what a node has to give.

A pod's init containers run one after another before the others; those that are sidecars keep running.
So the pod needs the most that is ever in use at once, plus the overhead of its runtime. Requests for the
pod as a whole take the place of what its containers ask for. While a container is resized in place, it
counts with the most of what it asks for, has been granted and has in fact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from argosy.kubernetes.objects import Node, Pod, PodContainer
from argosy.kubernetes.quantities import milli_units, whole_units
from argosy.model.resources import BASE_DIMENSIONS, Resources
from argosy.model.units import LARGEST

#: Every pod takes one of as many places as its node allows.
PODS: Final = "pods"
_SIDECAR: Final = "Always"
#: Resources that can be requested for a pod as a whole.
_POD_LEVEL: Final = ("cpu", "memory", "hugepages-")


def amounts(quantities: Mapping[str, str]) -> Counter[str]:
    return Counter(
        {
            name: min(LARGEST, milli_units(text) if name == "cpu" else whole_units(text))
            for name, text in quantities.items()
        }
    )


def pod_request(pod: Pod) -> Resources:
    spec = pod.spec
    needed = _highest_use(spec.containers, spec.init_containers, resized(pod))
    if spec.resources is not None:
        for name, amount in amounts(spec.resources.requests).items():
            if name.startswith(_POD_LEVEL):
                needed[name] = amount
    needed.update(amounts(spec.overhead))
    needed[PODS] = 1
    return _resources(needed)


def resized(pod: Pod) -> dict[str, dict[str, int]]:
    """What containers count with that is not what they ask for, by their names."""
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    found: dict[str, dict[str, int]] = {}
    if not any(each.resources is not None for each in statuses):
        return found
    asked = {
        each.name: each.resources.requests
        for each in (
            *pod.spec.containers,
            *(each for each in pod.spec.init_containers if each.restart_policy == _SIDECAR),
        )
    }
    for status in statuses:
        wanted = asked.get(status.name)
        if status.resources is None or wanted is None:
            continue
        has, granted = status.resources.requests, status.allocated_resources
        if has == wanted and (not granted or granted == wanted):
            continue
        most = amounts(has) | amounts(granted)
        if not _is_infeasible(pod):
            most |= amounts(wanted)
        if most != amounts(wanted):
            found[status.name] = dict(sorted(most.items()))
    return found


def _is_infeasible(pod: Pod) -> bool:
    """Whether the node can never grant what the pod asks for."""
    return any(
        each.type == "PodResizePending" and each.reason == "Infeasible"
        for each in pod.status.conditions
    )


def _highest_use(
    containers: Iterable[PodContainer],
    init_containers: Iterable[PodContainer],
    resized: Mapping[str, Mapping[str, int]],
) -> Counter[str]:
    def count(container: PodContainer) -> Counter[str]:
        other = resized.get(container.name)
        return amounts(container.resources.requests) if other is None else Counter(other)

    sidecars: Counter[str] = Counter()
    highest: Counter[str] = Counter()
    for container in init_containers:
        asked = count(container)
        if container.restart_policy == _SIDECAR:
            sidecars.update(asked)
            highest |= sidecars
        else:
            highest |= sidecars + asked
    running = sidecars.copy()
    for container in containers:
        running.update(count(container))
    return highest | running


def node_capacity(node: Node, wanted: Iterable[str]) -> Resources:
    """What pods can have of those resources, and always of cpu, memory and places for pods."""
    given = amounts(node.status.allocatable)
    kept = {*BASE_DIMENSIONS, PODS, *wanted}
    return _resources({name: amount for name, amount in given.items() if name in kept})


def _resources(amounts: Mapping[str, int]) -> Resources:
    extras = {
        name: amount
        for name, amount in sorted(amounts.items())
        if name not in BASE_DIMENSIONS and amount > 0
    }
    return Resources(max(0, amounts.get("cpu", 0)), max(0, amounts.get("memory", 0)), extras)
