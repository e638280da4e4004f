"""Flow problems of known shapes, generated from a seed, for benchmarks, tests and exchange."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from argosy.solvers.flow.clusters import CLUSTERS, cluster
from argosy.solvers.flow.problem import FlowProblem
from argosy.solvers.flow.quincy import QuincyShape, quincy

#: Takes a size (machines or vertices) and a seed.
Generator = Callable[[int, int], FlowProblem]

#: Of the kinds of clusters, unless said otherwise: tasks as a share of all slots.
UTILISATION: Final = 0.9


def quincy_like(machines: int, seed: int) -> FlowProblem:
    """A cluster with data locality, 90 % full, with 90 % of its tasks running."""
    return quincy(QuincyShape(machines), seed)[1]


def oversubscribed(machines: int, seed: int) -> FlowProblem:
    """The same with more tasks than slots: the hard case."""
    return quincy(QuincyShape(machines, utilisation=1.05), seed)[1]


def load_spreading(machines: int, seed: int) -> FlowProblem:
    """As many new tasks as machines at one aggregator, whose arcs cost the number of tasks already
    there."""
    random = np.random.default_rng(seed)
    slots = 12
    running = random.integers(0, slots // 2, machines)
    # Vertices: sink, aggregator, machines, tasks. Each slot is its own arc.
    free = slots - running
    machine = np.repeat(np.arange(machines), free)
    position = np.arange(len(machine)) - np.repeat(np.cumsum(free) - free, free)
    tasks = 2 + machines + np.arange(machines)
    supplies = np.zeros(2 + 2 * machines, np.int64)
    supplies[tasks] = 1
    supplies[0] = -machines
    return _problem(
        supplies,
        (tasks, np.ones(machines), np.ones(machines), 0),
        (tasks, np.zeros(machines), np.ones(machines), 1_000),
        (np.ones(len(machine)), 2 + machine, np.ones(len(machine)), running[machine] + position),
        (2 + np.arange(machines), np.zeros(machines), free, 0),
    )


def random_network(vertices: int, seed: int) -> FlowProblem:
    """Random arcs, including loops and parallel ones, and a ring that keeps the problem feasible."""
    random = np.random.default_rng(seed)
    arcs = 6 * vertices
    supplies = random.integers(-20, 21, vertices)
    supplies[0] -= supplies.sum()
    ring = np.arange(vertices)
    enough = np.full(vertices, max(1, np.abs(supplies).sum()))
    tails, heads = random.integers(0, vertices, (2, arcs))
    return _problem(
        supplies,
        (ring, np.roll(ring, -1), enough, 2_000),
        (tails, heads, random.integers(0, 50, arcs), random.integers(-30, 1_000, arcs)),
    )


def adversarial(vertices: int, seed: int) -> FlowProblem:
    """A grid of narrow arcs with equal costs, crossed by long arcs, each twice as expensive as the
    last."""
    random = np.random.default_rng(seed)
    side = max(2, int(np.sqrt(vertices)))
    number = np.arange(side * side).reshape(side, side)
    supplies = np.zeros(side * side, np.int64)
    supplies[number[:, 0]] = side
    supplies[number[:, -1]] = -side
    right = (number[:, :-1].ravel(), number[:, 1:].ravel())
    down = (number[:-1].ravel(), number[1:].ravel())
    rows = [
        (*right, random.integers(1, side + 1, len(right[0])), random.integers(0, 3, len(right[0]))),
        (*down, random.integers(0, side, len(down[0])), random.integers(-1, 3, len(down[0]))),
        (*down[::-1], random.integers(0, side, len(down[0])), random.integers(1, 4, len(down[0]))),
    ]
    level = np.arange(side)
    doubling = 2 ** np.minimum(level, 30)
    rows.append((number[:, 0], number[::-1, -1], np.full(side, side), doubling))
    rows.append((number[:, 0], number[:, -1], np.full(side, side), np.full(side, 2**31)))
    return _problem(supplies, *rows)


def _kind(name: str) -> Generator:
    return lambda machines, seed: cluster(CLUSTERS[name], machines, UTILISATION, seed)


GENERATORS: Final[dict[str, Generator]] = {
    "quincy": quincy_like,
    "oversubscribed": oversubscribed,
    "load-spreading": load_spreading,
    "random": random_network,
    "adversarial": adversarial,
    **{name: _kind(name) for name in CLUSTERS},
}


def _problem(supplies: ArrayLike, *rows: tuple[ArrayLike, ...]) -> FlowProblem:
    """A problem from groups of arcs (tails, heads, capacities, costs); a group may have one cost for
    all."""
    columns = [np.concatenate([np.atleast_1d(row[i]) for row in rows]) for i in range(3)]
    costs = np.concatenate([np.broadcast_to(np.asarray(row[3]), np.shape(row[0])) for row in rows])
    return FlowProblem(
        supplies=np.asarray(supplies, np.int64),
        tails=columns[0].astype(np.int32),
        heads=columns[1].astype(np.int32),
        capacities=columns[2].astype(np.int64),
        costs=costs.astype(np.int64),
    )
