"""Min-cost flow on networks made after the solver was finished, against OR-Tools. Run by hand:

    python bench/flow_unseen.py [--machines N] [--runs N] [--kinds a,b]

`clones`: jobs of 1 to 200 tasks that are alike, each with 12 machines. `classes`: tasks have an arc to
a class of equal tasks and one for waiting at their own cost; classes choose racks of 7 to 60
machines. `gangs`: vertices of up to 64 units, arcs of smaller capacity, machines of up to 128 slots.
`grid`: machines belong to a row and to a column, tasks to either. `sparse`: one or two machines of
one slot each. `dense`: sixty machines each at quadratic costs. `priced`: exponential costs, and machines
whose slots get dearer in three steps. `skew`: half of the tasks want a twentieth of the machines.

Conditions and targets are those of flow_zones.py.
"""

from __future__ import annotations

import numpy as np

from flow_shapes import SINK, UNLIMITED, WAITING, Shape, measure


def clones(shape: Shape) -> None:
    random, arcs = shape.random, shape.arcs
    machines = shape.machines(shape.machine_count, 2, 20, 10)
    sizes = np.minimum(random.geometric(1 / 30, len(shape.tasks)), 200)
    job = np.repeat(np.arange(len(sizes)), sizes)[: len(shape.tasks)]
    count = int(job[-1]) + 1
    liked = random.choice(machines, (count, 12))
    price = random.gamma(2, 60, (count, 12)).astype(np.int64)
    tasks = np.repeat(shape.tasks, 12)
    arcs.add(tasks, liked[job].ravel(), 1, price[job].ravel())
    arcs.add(shape.tasks, WAITING, 1, random.integers(600, 2_000, count)[job])


def classes(shape: Shape) -> None:
    random, arcs = shape.random, shape.arcs
    machines = shape.machines(shape.machine_count, 5, 30, 0)
    bounds = np.cumsum(random.integers(7, 61, len(machines)))
    rack_of = np.searchsorted(bounds, np.arange(len(machines)), side="right")
    racks = shape.vertices(int(rack_of[-1]) + 1)
    arcs.add(racks[rack_of], machines, shape.slots, random.integers(0, 15, len(machines)))
    groups = shape.vertices(max(1, len(shape.tasks) // 25))
    member = random.choice(groups, len(shape.tasks))
    arcs.add(shape.tasks, member, 1, random.integers(0, 40, len(shape.tasks)))
    arcs.add(shape.tasks, WAITING, 1, 500 + random.integers(0, 700, len(shape.tasks)))
    owners = np.repeat(groups, 5)
    price = random.normal(200, 60, len(owners)).clip(0).astype(np.int64)
    arcs.add(owners, random.choice(racks, len(owners)), UNLIMITED, price)
    owners = np.repeat(groups, 8)
    price = random.integers(0, 150, len(owners))
    arcs.add(
        owners, random.choice(machines, len(owners)), random.integers(1, 9, len(owners)), price
    )


def gangs(shape: Shape) -> None:
    random, arcs = shape.random, shape.arcs
    machines = shape.machines(shape.machine_count, 8, 128, 6)
    left, sizes = len(shape.tasks), []
    while left > 0:
        sizes.append(min(left, int(random.integers(1, 65))))
        left -= sizes[-1]
    shape.supplies.pop()
    shape.count -= len(shape.tasks)
    supply = np.array(sizes)
    gang = shape.vertices(len(supply))
    shape.supplies[-1] = supply
    owners = np.repeat(np.arange(len(supply)), 9)
    width = 1 + random.integers(0, supply[owners])
    price = random.integers(0, 500, len(owners))
    arcs.add(gang[owners], random.choice(machines, len(owners)), width, price)
    arcs.add(gang, WAITING, supply, random.integers(500, 1_500, len(supply)))


def grid(shape: Shape) -> None:
    random, arcs = shape.random, shape.arcs
    machines = shape.machines(shape.machine_count, 3, 9, 2)
    width = max(2, int(len(machines) ** 0.5))
    number = np.arange(len(machines))
    for line, dearest in ((number // width, 10), (number % width, 40)):
        lines = shape.vertices(int(line.max()) + 1)
        arcs.add(lines[line], machines, shape.slots, random.integers(0, dearest, len(machines)))
        tasks, chosen = shape.choose(lines, 3)
        arcs.add(tasks, chosen, 1, random.integers(50, 400, len(tasks)))
    arcs.add(shape.tasks, WAITING, 1, 450 + random.integers(0, 50, len(shape.tasks)))


def sparse(shape: Shape) -> None:
    random, arcs = shape.random, shape.arcs
    machines = shape.machines(8 * shape.machine_count, 1, 1, 0)
    for share in (1.0, 0.6):
        tasks = shape.tasks[random.random(len(shape.tasks)) < share]
        price = random.integers(1, 10_000, len(tasks))
        arcs.add(tasks, random.choice(machines, len(tasks)), 1, price)
    anywhere = shape.vertices(1)
    arcs.add(anywhere, machines, 1, random.integers(0, 3_000, len(machines)))
    arcs.add(shape.tasks, anywhere, 1, 4_000)
    arcs.add(shape.tasks, WAITING, 1, random.integers(8_000, 20_000, len(shape.tasks)))


def dense(shape: Shape) -> None:
    random, arcs = shape.random, shape.arcs
    machines = shape.machines(shape.machine_count // 2, 4, 8, 0)
    tasks, chosen = shape.choose(machines, 60)
    arcs.add(tasks, chosen, 1, random.integers(0, 60, len(tasks)) ** 2)
    arcs.add(shape.tasks, WAITING, 1, random.integers(100, 4_000, len(shape.tasks)))


def priced(shape: Shape) -> None:
    random, arcs = shape.random, shape.arcs
    machines = shape.machines(shape.machine_count, 9, 9, 0)
    arcs.add(np.repeat(machines, 2), SINK, 2, np.tile([20, 60], len(machines)))
    extra = shape.vertices(int(4 * len(machines) * shape.utilisation), 1)
    shape.tasks = np.concatenate([shape.tasks, extra])
    tasks, chosen = shape.choose(machines, 7)
    arcs.add(tasks, chosen, 1, random.exponential(120, len(tasks)).astype(np.int64))
    arcs.add(
        shape.tasks, WAITING, 1, 400 + random.exponential(400, len(shape.tasks)).astype(np.int64)
    )


def skew(shape: Shape) -> None:
    random, arcs = shape.random, shape.arcs
    machines = shape.machines(shape.machine_count, 4, 24, 4)
    popular = machines[: max(1, len(machines) // 20)]
    keen = shape.tasks[random.random(len(shape.tasks)) < 0.5]
    owners = np.repeat(keen, 4)
    arcs.add(owners, random.choice(popular, len(owners)), 1, random.integers(0, 80, len(owners)))
    tasks, chosen = shape.choose(machines, 5)
    arcs.add(tasks, chosen, 1, random.integers(60, 600, len(tasks)))
    arcs.add(shape.tasks, WAITING, 1, random.integers(700, 900, len(shape.tasks)))


MAKERS = {
    "clones": clones,
    "classes": classes,
    "gangs": gangs,
    "grid": grid,
    "sparse": sparse,
    "dense": dense,
    "priced": priced,
    "skew": skew,
}


if __name__ == "__main__":
    measure(MAKERS, seed=17, description=__doc__)
