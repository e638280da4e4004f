"""Machines and the node groups they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, TypeAlias

import msgspec

from argosy.model.resources import Resources


class Machine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One machine as the operator describes it.

    A *node group* ("rack", "zone", "upgrade-domain") is a category of node sets; `joins` lists, per
    group, the sets that this machine is in. Groups may nest or overlap, and a machine may be in several
    sets of one group. Every machine also forms a set of its own in the group ``machine``.
    """

    name: str
    capacity: Resources
    attributes: dict[str, str] = {}
    joins: dict[str, tuple[str, ...]] = {}

    def enlarged(self, capacity: Resources) -> Machine:
        """With the larger amount of each resource."""
        largest = dict(self.capacity.items())
        for name, amount in capacity.items():
            largest[name] = max(largest.get(name, 0), amount)
        cpu, memory = largest.pop("cpu"), largest.pop("memory")
        return msgspec.structs.replace(self, capacity=Resources(cpu, memory, largest))


class Cluster(msgspec.Struct, frozen=True):
    """The machines of a federation that one agent is responsible for.

    A federation is one cell. Every machine is in exactly one cluster, and each cluster is a set of the
    node group ``cluster``. `place` is where the cluster is; distances are between places.
    """

    name: str
    place: str


#: The node group of a federation whose sets are the clusters.
CLUSTER_GROUP: Final = "cluster"
#: The node group in which every machine is its own set.
MACHINE_GROUP: Final = "machine"
#: Marks settings whose value is a node group of the cell, so that scenarios can be checked.
GROUP_NAME: Final = msgspec.Meta(extra={"names": "node group"})
#: Empty: none.
GroupName: TypeAlias = Annotated[str, GROUP_NAME]
#: One or several, whose sets may nest or overlap.
GroupNames: TypeAlias = Annotated[str | tuple[str, ...], GROUP_NAME]


def static_tags(attributes: Mapping[str, str]) -> frozenset[str]:
    """A machine's permanent tags: ``key:value`` for each attribute, and ``key`` if the value is
    ``true``."""
    tags = {f"{key}:{value}" for key, value in attributes.items()}
    return frozenset(tags | {key for key, value in attributes.items() if value == "true"})
