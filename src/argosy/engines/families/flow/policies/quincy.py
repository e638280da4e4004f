"""Quincy's policy: data locality against waiting and preemption (the paper's figure 6b).

A batch task costs what it costs to fetch its input: `in_rack` per GiB from the same rack,
`cross_rack` per GiB from another rack, nothing from the machine itself. It has arcs to machines and
racks that hold at least `threshold` of its input; it reaches all others through its pool, at the
cost of fetching everything from another rack. Waiting costs more the longer a job has waited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from argosy.engines.families.flow.cluster import MachineVertices
from argosy.engines.families.flow.local_data import LocalData, StoredInput
from argosy.engines.families.flow.policy import (
    ArcCosts,
    NewGroup,
    Policy,
    Preferences,
    Topology,
    Wishes,
    grouped,
    plain_wishes,
)
from argosy.engines.families.flow.settings import FlowSettings
from argosy.engines.families.flow.statistics import ClusterStatistics
from argosy.model.jobs import BATCH
from argosy.solvers.flow.arrays import Numbers

_GIB = 2**30


class QuincyPolicy(Policy):
    name: ClassVar[str] = "quincy"

    def __init__(
        self, settings: FlowSettings, cluster: MachineVertices, dimensions: tuple[str, ...]
    ) -> None:
        super().__init__(settings, cluster, dimensions)
        self._racks = cluster.racks
        self._data = LocalData(settings.data, cluster.racks)
        self._others = np.empty(0, np.int64)

    def topology(self) -> Topology:
        return grouped(self.cluster.racks)

    def wishes(self, groups: Sequence[NewGroup]) -> Wishes:
        plain = plain_wishes(groups, self.settings)
        if not self.settings.data.rate:
            return plain
        if self._racks is not self.cluster.racks:
            # The cluster has grown: new blocks may be on new machines.
            self._racks = self.cluster.racks
            self._data = LocalData(self.settings.data, self._racks)
        expected = np.array(
            [group.group.estimate or 0 if group.job.kind == BATCH else 0 for group in groups]
        )
        each = expected > 0
        if not each.any():
            return plain
        sizes = np.array([len(group.tasks) for group in groups], np.int64)
        which = np.flatnonzero(np.repeat(each, sizes))
        tasks = np.concatenate([group.tasks for group in groups])[which]
        found = self._data.of(tasks, np.repeat(expected, sizes)[which])
        plain.pool[which] = self._cost(found.bytes, found.bytes * 0, found.bytes * 0, found.blocks)
        near = self._preferences(found)
        return structs.replace(
            plain, each=each, preferences=structs.replace(near, tasks=which[near.tasks])
        )

    def _preferences(self, found: StoredInput) -> Preferences:
        data = self.settings.data
        tasks, machines, here = _largest(
            found.machine_tasks,
            found.machines,
            found.machine_blocks,
            data.threshold * found.blocks[found.machine_tasks],
            data.most_preferences,
        )
        # Blocks elsewhere in the machine's rack are fetched from there.
        span = int(self._racks.max(initial=0)) + 1
        keys = found.rack_tasks * span + found.racks
        beside = found.rack_blocks[np.searchsorted(keys, tasks * span + self._racks[machines])]
        blocks, size = found.blocks, found.bytes
        costs = self._cost(size[tasks], here, beside - here, blocks[tasks])
        rack_tasks, racks, within = _largest(
            found.rack_tasks,
            found.racks,
            found.rack_blocks,
            data.threshold * blocks[found.rack_tasks],
            data.most_preferences,
        )
        rack_costs = self._cost(size[rack_tasks], within * 0, within, blocks[rack_tasks])
        return Preferences(
            np.concatenate([tasks, rack_tasks]),
            np.concatenate([machines, racks]),
            np.repeat([False, True], [len(tasks), len(rack_tasks)]),
            np.concatenate([costs, rack_costs]),
        )

    def _cost(self, size: Numbers, here: Numbers, beside: Numbers, blocks: Numbers) -> Numbers:
        data = self.settings.data
        price = data.in_rack * beside + data.cross_rack * (blocks - here - beside)
        # At most 64 blocks of 1 TiB, at prices of at most 10^6: this stays below 2^63.
        return size // 2**10 * price // (blocks * (_GIB // 2**10))

    def gather(self, statistics: ClusterStatistics) -> None:
        self._others = statistics.pinned_tasks

    def sink_terms(self, machines: Numbers) -> ArcCosts:
        step = self.settings.evenness
        return ArcCosts(step * self._others[machines], step)


def _largest(
    tasks: Numbers, places: Numbers, blocks: Numbers, least: NDArray[np.floating[Any]], most: int
) -> tuple[Numbers, Numbers, Numbers]:
    """For each task, the places with most of its blocks: with at least `least` blocks, and at most
    `most` places."""
    enough = blocks >= least
    tasks, places, blocks = tasks[enough], places[enough], blocks[enough]
    order = np.lexsort((places, -blocks, tasks))
    tasks, places, blocks = tasks[order], places[order], blocks[order]
    rank = np.arange(len(tasks)) - np.searchsorted(tasks, tasks)
    kept = rank < most
    return tasks[kept], places[kept], blocks[kept]
