"""What a pod asks of a node, and what a node has to give.

A pod's init containers run one after another before the others; those that are sidecars keep running.
So the pod needs the most that is ever in use at once, plus the overhead of its runtime. Requests for the
pod as a whole take the place of what its containers ask for.
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
    needed = _highest_use(spec.containers, spec.init_containers)
    if spec.resources is not None:
        for name, amount in amounts(spec.resources.requests).items():
            if name.startswith(_POD_LEVEL):
                needed[name] = amount
    needed.update(amounts(spec.overhead))
    needed[PODS] = 1
    return _resources(needed)


def _highest_use(
    containers: Iterable[PodContainer], init_containers: Iterable[PodContainer]
) -> Counter[str]:
    sidecars: Counter[str] = Counter()
    highest: Counter[str] = Counter()
    for container in init_containers:
        asked = amounts(container.resources.requests)
        if container.restart_policy == _SIDECAR:
            sidecars.update(asked)
            highest |= sidecars
        else:
            highest |= sidecars + asked
    running = sidecars.copy()
    for container in containers:
        running.update(amounts(container.resources.requests))
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
