"""Min-cost flow on networks unlike those of the other benchmarks, against OR-Tools. Run by hand:

    python bench/flow_shapes.py [--machines N] [--runs N] [--kinds a,b]

`levels`: three levels of aggregators (region, zone, row), few arcs to machines. `giants`: a fiftieth
of the machines, with fifty times the slots, and four different costs. `jobs`: tasks have an arc to
their job alone, which chooses machines and has its own cost of waiting. `repelled`: thirty machines
each, the same for all tasks of a job, at costs that rise with how popular they are, and negative
costs for staying. `wide`: costs from 1 to 10 million.

They played no part in choosing the solver's limits, but `jobs` led to the contraction of tasks with
two arcs. Conditions and targets are those of flow_zones.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

import numpy as np

from argosy.solvers.flow import FlowProblem
from flow_zones import WANTED, Arcs, compare

SINK, WAITING = 0, 1
UNLIMITED = 2**31 - 1


class Shape:
    """Vertices are numbered as they are made; the sink is the first."""

    def __init__(self, machines: int, utilisation: float, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.utilisation = utilisation
        self.arcs = Arcs()
        self.supplies = [np.zeros(2, np.int64)]
        self.count = 2
        self.arcs.add([WAITING], SINK, UNLIMITED, 0)
        self.machine_count = machines

    def vertices(self, count: int, supply: int = 0) -> np.ndarray:
        self.supplies.append(np.full(count, supply, np.int64))
        self.count += count
        return np.arange(self.count - count, self.count)

    def machines(self, count: int, least: int, most: int, dearest: int) -> np.ndarray:
        """Machines with any number of slots between the two, and tasks for them."""
        random = self.random
        self.slots = random.integers(least, most + 1, count)
        machines = self.vertices(count)
        self.arcs.add(machines, SINK, self.slots, random.integers(0, dearest + 1, count))
        self.tasks = self.vertices(int(self.slots.sum() * self.utilisation), 1)
        return machines

    def choose(self, choices: np.ndarray, times: int) -> tuple[np.ndarray, np.ndarray]:
        """Each task with as many of the choices."""
        tasks = np.repeat(self.tasks, times)
        return tasks, self.random.choice(choices, len(tasks))

    def problem(self) -> FlowProblem:
        supplies = np.concatenate(self.supplies)
        supplies[SINK] = -supplies.sum()
        return self.arcs.problem(supplies)


def levels(shape: Shape) -> None:
    random, arcs = shape.random, shape.arcs
    machines = shape.machines(shape.machine_count, 6, 18, 0)
    below, capacities = machines, shape.slots
    names = []
    for width in (16, 12, 8):
        above = shape.vertices(-(-len(below) // width))
        parent = np.arange(len(below)) // width
        arcs.add(above[parent], below, capacities, random.integers(0, 30, len(below)))
        capacities = np.bincount(parent, weights=capacities).astype(np.int64)
        names.append(above)
        below = above
    for (tasks, chosen), cost in zip(
        [shape.choose(names[0], 2), shape.choose(names[1], 1), shape.choose(names[2], 1)],
        (20, 90, 200),
        strict=True,
    ):
        arcs.add(tasks, chosen, 1, cost + random.integers(0, 60, len(tasks)))
    tasks, chosen = shape.choose(machines, 1)
    arcs.add(tasks, chosen, 1, random.integers(0, 200, len(tasks)))
    arcs.add(shape.tasks, WAITING, 1, random.integers(300, 3_000, len(shape.tasks)))


def giants(shape: Shape) -> None:
    random, arcs = shape.random, shape.arcs
    machines = shape.machines(max(4, shape.machine_count // 50), 200, 1_000, 0)
    tasks, chosen = shape.choose(machines, 6)
    arcs.add(tasks, chosen, 1, random.choice([0, 1, 2, 5], len(tasks)))
    anywhere = shape.vertices(1)
    arcs.add(anywhere, machines, shape.slots, 0)
    arcs.add(shape.tasks, anywhere, 1, 8)
    arcs.add(shape.tasks, WAITING, 1, random.choice([10, 20, 40], len(shape.tasks)))


def jobs(shape: Shape) -> None:
    random, arcs = shape.random, shape.arcs
    machines = shape.machines(shape.machine_count, 8, 16, 3)
    count = max(1, len(shape.tasks) // 12)
    job, waiting = shape.vertices(count), shape.vertices(count)
    member = random.integers(0, count, len(shape.tasks))
    arcs.add(shape.tasks, job[member], 1, 0)
    arcs.add(shape.tasks, waiting[member], 1, random.integers(0, 50, len(shape.tasks)))
    arcs.add(waiting, SINK, UNLIMITED, random.integers(100, 5_000, count))
    likes = np.repeat(job, 20)
    price = random.integers(0, 400, len(likes))
    arcs.add(likes, random.choice(machines, len(likes)), random.integers(1, 5, len(likes)), price)


def repelled(shape: Shape) -> None:
    random, arcs = shape.random, shape.arcs
    machines = shape.machines(shape.machine_count, 4, 12, 20)
    count = max(1, len(shape.tasks) // 40)
    popular = (random.pareto(1.5, (count, 30)) * len(machines) / 20).astype(int) % len(machines)
    cost = 50 + 300_000 // (100 + popular)
    member = random.integers(0, count, len(shape.tasks))
    arcs.add(np.repeat(shape.tasks, 30), machines[popular[member].ravel()], 1, cost[member].ravel())
    tasks, chosen = shape.choose(machines, 1)
    arcs.add(tasks, chosen, 1, -random.integers(0, 100, len(tasks)))
    arcs.add(shape.tasks, WAITING, 1, 4_000 + random.integers(0, 1_000, len(shape.tasks)))


def wide(shape: Shape) -> None:
    random, arcs = shape.random, shape.arcs
    machines = shape.machines(shape.machine_count, 1, 24, 0)
    tasks, chosen = shape.choose(machines, 8)
    arcs.add(tasks, chosen, 1, (10 ** random.uniform(0, 7, len(tasks))).astype(np.int64))
    room = shape.vertices(20)
    arcs.add(np.repeat(room, len(machines)), np.tile(machines, 20), np.tile(shape.slots, 20), 0)
    tasks, chosen = shape.choose(room, 2)
    arcs.add(tasks, chosen, 1, (10 ** random.uniform(4, 7, len(tasks))).astype(np.int64))
    arcs.add(shape.tasks, WAITING, 1, 10**7 + random.integers(0, 10**7, len(shape.tasks)))


MAKERS = {"levels": levels, "giants": giants, "jobs": jobs, "repelled": repelled, "wide": wide}


def measure(
    makers: Mapping[str, Callable[[Shape], None]],
    seed: int,
    description: str | None,
    machines: int = 1_000,
) -> None:
    """All kinds that are asked for on the command line, at each utilisation."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--machines", type=int, default=machines)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--kinds", default=",".join(makers))
    asked = parser.parse_args()
    for kind in asked.kinds.split(","):
        for utilisation, wanted in WANTED.items():
            shape = Shape(asked.machines, utilisation, seed)
            makers[kind](shape)
            compare(f"{kind:8} {utilisation:5.0%}", shape.problem(), asked.runs, wanted)


if __name__ == "__main__":
    measure(MAKERS, seed=5, description=__doc__, machines=2_000)
