"""How many tasks go where: the capacities of the arcs into and out of machines.

Where all tasks ask for the same, a machine's room is a number of slots, whoever holds them, and the flow
is exact. Where they differ, slots do not exist. A machine with room for a task that waits then takes
what fits into its free resources beside what runs there; one without takes a task only in exchange for
one that is at least as large. Each task alone is then sure to fit; those that would not fit together are
sorted out when the flow has become placements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from argosy.engines.flow.pools import Pool, Pools, fitting
from argosy.engines.flow.statistics import Statistics

if TYPE_CHECKING:
    from argosy.engines.flow.graph import Graph

Numbers = NDArray[np.int64]


def set_rooms(graph: Graph, statistics: Statistics) -> None:
    pools = graph.pools
    living = pools.living()
    if not living:
        return
    numbers = np.array([pool.number for pool in living], np.int64)
    if (pools.requests[numbers] == pools.requests[numbers[0]]).all():
        rooms, through = _slots(pools, numbers, statistics)
    else:
        rooms, through = _exchanges(pools, living, numbers, statistics)
    if graph.settings.slots:
        most = np.maximum(0, graph.settings.slots - statistics.pinned_tasks)
        through, rooms = np.minimum(through, most), np.minimum(rooms, most)
    rooms = np.where(pools.allowed[numbers] & statistics.usable, rooms, 0)
    most_arcs = max(1, graph.settings.most_arcs // len(living))
    pools.set(numbers, rooms, graph.policy.pool_terms(pools.requests[numbers]), most_arcs)
    terms = graph.policy.sink_terms()
    if terms.most is not None:
        through = np.minimum(through, terms.most)
    graph.set_sink_terms(np.maximum(through, statistics.own_tasks), terms)


def _slots(pools: Pools, numbers: Numbers, statistics: Statistics) -> tuple[Numbers, Numbers]:
    slots = fitting(pools.requests[numbers[:1]], statistics.free + statistics.own)[0]
    slots[~statistics.usable] = 0
    return np.broadcast_to(slots, (len(numbers), len(slots))), slots


def _exchanges(
    pools: Pools, living: list[Pool], numbers: Numbers, statistics: Statistics
) -> tuple[Numbers, Numbers]:
    pools.look(statistics.free)
    is_pending = np.array([pool.pending > 0 for pool in living], np.bool_)
    fits = np.where(pools.allowed[numbers] & statistics.usable, pools.fits[numbers], 0)
    spare = np.max(fits[is_pending] if is_pending.any() else fits, axis=0)
    is_open = spare > 0
    rooms = np.where(is_open, fits, 0)
    if is_pending.any() and not is_open.all():
        requests = pools.requests[numbers]
        is_larger = (requests[None, :, :] >= requests[is_pending][:, None, :]).all(axis=2)
        swaps = is_larger.astype(np.int64) @ pools.running[numbers]
        rooms[is_pending] = np.where(is_open, rooms[is_pending], swaps)
    return rooms, statistics.own_tasks + spare
