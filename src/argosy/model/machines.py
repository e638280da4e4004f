"""Machines and the node groups they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, TypeAlias

import msgspec

from argosy.model.resources import Resources


class Machine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One machine as the operator describes it.

    A *node group* ("rack", "zone", "upgrade-domain") is a category of node sets; `joins` names, per
    group, the sets this machine is in. Groups may nest or overlap, and a machine may be in several
    sets of one group. Every machine also forms a set of its own in the group ``machine``.
    """

    name: str
    capacity: Resources
    attributes: dict[str, str] = {}
    joins: dict[str, tuple[str, ...]] = {}


class Cluster(msgspec.Struct, frozen=True):
    """Some of a federation's machines: those that one agent answers for.

    A federation is one cell. Every machine is in exactly one of its clusters, which is a set of the
    node group ``cluster``. `place` says where the cluster is: places have distances, clusters do not.
    """

    name: str
    place: str


#: The group of a federation in which every cluster is a set.
CLUSTER_GROUP: Final = "cluster"
#: The group in which every machine is a set of its own.
MACHINE_GROUP: Final = "machine"
#: Marks settings that name a node group of the cell: what a scenario gives for one is checked.
GROUP_NAME: Final = msgspec.Meta(extra={"names": "node group"})
#: Empty: none.
GroupName: TypeAlias = Annotated[str, GROUP_NAME]


def static_tags(attributes: Mapping[str, str]) -> frozenset[str]:
    """The tags a machine has for good: ``key:value`` for each attribute, and ``key`` where the value
    is ``true``."""
    tags = {f"{key}:{value}" for key, value in attributes.items()}
    return frozenset(tags | {key for key, value in attributes.items() if value == "true"})
