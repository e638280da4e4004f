"""Min-cost flow on clusters as somebody draws them who has not seen the solver. Run by hand:

    python bench/flow_clusters.py [--machines N] [--runs N] [--kinds a,b]

`aged`: jobs of Pareto sizes and inputs of heavy-tailed ones, up to ten machines and three racks a
task of which a few are cheap, most tasks running and 60 % of them well, and waiting that gets dearer
with age. `tiers`: three generations of machines in zones of unlike sizes, and four priorities whose
costs of waiting are far apart. `services`: replicas that are spread over racks, in two steps of limited
capacity, with as many batch tasks beside them. `data`: tasks that read one or two blocks of three
replicas, some blocks hot, at costs that grow with the distance. `ties`: eight different costs.

Conditions and targets are those of flow_zones.py.
"""

from __future__ import annotations

import numpy as np

from flow_shapes import SINK, UNLIMITED, WAITING, Shape, measure

RACK = 40
#: Machines in what a vertex stands for (itself, a rack, a pod), and the cost of reading in there.
WIDTHS = (1, RACK, 10 * RACK)
DISTANCES = (0, 1, 3)
FAR = 7


def filled(shape: Shape, slots: np.ndarray) -> np.ndarray:
    """Machines with these slots, and tasks for them."""
    shape.slots = slots
    machines = shape.vertices(len(slots))
    shape.arcs.add(machines, SINK, slots, 0)
    shape.tasks = shape.vertices(int(slots.sum() * shape.utilisation), 1)
    return machines


def grouped(shape: Shape, below: np.ndarray, slots: np.ndarray, width: int) -> np.ndarray:
    """A vertex above each so many neighbours, with arcs to them."""
    number = np.arange(len(below)) // width
    above = shape.vertices(int(number[-1]) + 1)
    shape.arcs.add(above[number], below, slots, 0)
    return above


def link(shape: Shape, tasks: np.ndarray, places: np.ndarray, costs: np.ndarray) -> None:
    """Arcs from each task to its row of places; of equal ones the first, and none to places below 0."""
    owners = np.repeat(tasks, places.shape[1])
    _, first = np.unique(owners * shape.count + places.ravel(), return_index=True)
    kept = np.sort(first[places.ravel()[first] >= 0])
    shape.arcs.add(owners[kept], places.ravel()[kept], 1, costs.ravel()[kept].astype(np.int64))


def members(sizes: np.ndarray, count: int) -> np.ndarray:
    """The job of each task, for jobs of these sizes as far as there are tasks."""
    return np.repeat(np.arange(len(sizes)), sizes)[:count]


def running(shape: Shape, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the tasks that run, and of the machines they run on: no more than have room."""
    room = shape.random.permutation(np.repeat(np.arange(len(shape.slots)), shape.slots))
    chosen = np.flatnonzero(shape.random.random(len(shape.tasks)) < share)
    return chosen[: len(room)], room[: len(chosen)]


def preferred(shape: Shape, job: np.ndarray, machines: int) -> np.ndarray:
    """Ten machines for each task: half of them from those of its job, more for a larger job."""
    random, count = shape.random, len(job)
    sizes = np.bincount(job)
    order, start = random.permutation(machines), random.integers(0, machines, len(sizes))
    within = (random.random((count, 10)) * (10 + sizes[job] // 4)[:, None]).astype(np.int64)
    shared = order[(start[job][:, None] + within) % machines]
    own = random.integers(0, machines, (count, 10))
    return np.where(random.random((count, 10)) < 0.5, shared, own)


def ageing(shape: Shape, job: np.ndarray) -> None:
    """Each job has a vertex to wait at; its tasks are about as old as each other."""
    random, count = shape.random, len(job)
    unscheduled = shape.vertices(int(job[-1]) + 1)
    age = random.exponential(60, len(unscheduled))[job] + random.exponential(15, count)
    shape.arcs.add(shape.tasks, unscheduled[job], 1, (300 + 10 * age).astype(np.int64))
    shape.arcs.add(unscheduled, SINK, np.bincount(job), 0)


def aged(shape: Shape) -> None:
    random, arcs = shape.random, shape.arcs
    machines = filled(shape, np.full(shape.machine_count, 12))
    racks = grouped(shape, machines, shape.slots, RACK)
    anywhere = grouped(shape, racks, np.full(len(racks), 12 * RACK), len(racks))
    count = len(shape.tasks)
    most = max(1, count // 20)
    job = members(np.minimum(random.pareto(1.1, count) + 1, most).astype(np.int64), count)
    size = np.minimum(random.lognormal(4, 1.2, count), 1_000)
    arcs.add(shape.tasks, anywhere, 1, size.astype(np.int64))

    liked = preferred(shape, job, len(machines))
    listed = np.arange(10) < random.integers(3, 11, count)[:, None]
    part = np.where(np.arange(10) < 3, 0.1, 0.5) * random.uniform(0, 1, liked.shape)
    part += np.where(np.arange(10) < 3, 0, 0.4)
    link(shape, shape.tasks, np.where(listed, machines[liked], -1), part * size[:, None])
    part = np.array([0.2, 0.6, 0.6]) + random.uniform(0, 0.3, (count, 3))
    link(shape, shape.tasks, racks[liked[:, :3] // RACK], part * size[:, None])
    chosen, place = running(shape, 0.85)
    is_well = random.random(len(chosen)) < 0.6
    part = np.where(is_well, 0.05, 0.3) * random.uniform(0, 1, len(chosen)) + 0.7 * ~is_well
    arcs.add(shape.tasks[chosen], machines[place], 1, (part * size[chosen]).astype(np.int64))
    ageing(shape, job)


def tiers(shape: Shape) -> None:
    random, arcs = shape.random, shape.arcs
    generation = random.choice(3, shape.machine_count, p=[0.45, 0.35, 0.2])
    machines = filled(shape, np.array([8, 16, 32])[generation])
    share = np.array([5, 4, 3, 3, 2, 1, 1, 1]) / 20
    group = 3 * np.sort(random.choice(8, len(machines), p=share)) + generation
    groups, anywhere = shape.vertices(24), shape.vertices(1)
    arcs.add(groups[group], machines, shape.slots, random.integers(0, 10, len(machines)))
    arcs.add(anywhere, groups, UNLIMITED, np.tile([30, 10, 0], 8))

    count = len(shape.tasks)
    tier = random.choice(4, count, p=[0.25, 0.45, 0.25, 0.05])
    wait = np.array([200, 1_500, 20_000, 300_000])[tier] * random.uniform(0.8, 1.2, count)
    arcs.add(shape.tasks, WAITING, 1, wait.astype(np.int64))
    arcs.add(shape.tasks, anywhere, 1, 120)
    # The more important a task is, the more it loses on an old machine; some refuse the oldest.
    slower = np.array([1, 2, 5, 10])[tier][:, None] * np.array([12, 5, 0])
    is_strict = (tier == 3) | ((tier == 2) & (random.random(count) < 0.3))
    refused = is_strict[:, None] & (np.arange(3) == 0)
    home = random.choice(8, count, p=share)
    for zone, away in ((home, 0), ((home + random.integers(1, 8, count)) % 8, 40)):
        places = groups[3 * zone[:, None] + np.arange(3)]
        costs = slower + away + random.integers(0, 20 + away, count)[:, None]
        link(shape, shape.tasks, np.where(refused, -1, places), costs)
    chosen, place = running(shape, 0.75)
    stay = slower[chosen, generation[place]] // 2 + random.integers(0, 8, len(chosen))
    arcs.add(shape.tasks[chosen], machines[place], 1, stay)


def spread(shape: Shape, replicas: np.ndarray, racks: np.ndarray) -> None:
    """Services of these replicas: some in each of their racks are welcome, as many more are dearer."""
    random, arcs, count = shape.random, shape.arcs, len(replicas)
    drawn = random.lognormal(2.3, 1, count).astype(np.int64) + 1
    service = members(np.minimum(drawn, 500), count)
    sizes = np.bincount(service)
    vertices = shape.vertices(len(sizes))
    arcs.add(replicas, vertices[service], 1, 40)
    arcs.add(replicas, WAITING, 1, random.integers(5_000, 20_000, len(sizes))[service])
    width = min(24, len(racks))
    start = random.integers(0, len(racks), len(sizes))
    order = random.permutation(len(racks))
    chosen = racks[order[(start[:, None] + np.arange(width)) % len(racks)]].ravel()
    price = random.integers(0, 30, len(chosen))
    for step in (0, 80):
        room = np.repeat(-(-sizes // 6), width)
        arcs.add(np.repeat(vertices, width), chosen, room, price + step)


def services(shape: Shape) -> None:
    random, arcs = shape.random, shape.arcs
    machines = filled(shape, np.full(shape.machine_count, 14))
    racks = grouped(shape, machines, shape.slots, RACK)
    anywhere = grouped(shape, racks, np.full(len(racks), 14 * RACK), len(racks))
    half = len(shape.tasks) // 2
    spread(shape, shape.tasks[:half], racks)

    batch = shape.tasks[half:]
    liked = random.choice(machines, (len(batch), 4))
    link(shape, batch, liked, random.integers(10, 100, liked.shape))
    near = random.choice(racks, (len(batch), 2))
    link(shape, batch, near, random.integers(60, 160, near.shape))
    arcs.add(batch, anywhere, 1, 200)
    arcs.add(batch, WAITING, 1, random.integers(300, 1_000, len(batch)))
    chosen, place = running(shape, 0.8)
    stay = random.integers(0, np.where(chosen < half, 10, 30))
    arcs.add(shape.tasks[chosen], machines[place], 1, stay)


def reading(level: int, places: np.ndarray, replicas: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Costs of reading every block from anywhere in each of the places, which are of this level."""
    far = np.full((*places.shape, size.shape[1]), FAR)
    for above in range(len(WIDTHS) - 1, level - 1, -1):
        around = places // (WIDTHS[above] // WIDTHS[level])
        held = replicas // WIDTHS[above]
        far[(around[:, :, None, None] == held[:, None]).any(-1)] = DISTANCES[above]
    return (far * size[:, None]).sum(-1)


def blocks(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Where the two blocks of each task have their replicas, and their sizes: 0 if there is but one.

    One replica is anywhere, two are in one rack. A thousandth of the blocks gets a tenth of the reads.
    """
    random, count, machines = shape.random, len(shape.tasks), shape.machine_count
    first, second = random.integers(0, machines, (2, count))
    third = np.minimum(second // RACK * RACK + random.integers(0, RACK, count), machines - 1)
    block = (count * random.random((count, 2)) ** 3).astype(np.int64)
    size = random.integers(10, 129, count)[block]
    size[random.random(count) < 0.6, 1] = 0
    return np.stack([first, second, third], axis=1)[block], size


def data(shape: Shape) -> None:
    random, arcs = shape.random, shape.arcs
    machines = filled(shape, np.full(shape.machine_count, 12))
    racks = grouped(shape, machines, shape.slots, WIDTHS[1])
    pods = grouped(shape, racks, np.full(len(racks), 12 * WIDTHS[1]), WIDTHS[2] // WIDTHS[1])
    anywhere = grouped(shape, pods, np.full(len(pods), 12 * WIDTHS[2]), len(pods))
    replicas, size = blocks(shape)
    is_read = np.repeat(size > 0, 3, axis=1)
    for level, vertices in enumerate((machines, racks, pods)):
        places = replicas.reshape(len(shape.tasks), 6) // WIDTHS[level]
        costs = reading(level, places, replicas, size)
        link(shape, shape.tasks, np.where(is_read, vertices[places], -1), costs)
    arcs.add(shape.tasks, anywhere, 1, FAR * size.sum(1))
    wait = 2_000 + random.exponential(1_000, len(shape.tasks))
    arcs.add(shape.tasks, WAITING, 1, wait.astype(np.int64))
    chosen, place = running(shape, 0.5)
    rest = reading(0, place[:, None], replicas[chosen], size[chosen])[:, 0]
    left = random.random(len(chosen))
    arcs.add(shape.tasks[chosen], machines[place], 1, (rest * left).astype(np.int64))


def ties(shape: Shape) -> None:
    random, arcs = shape.random, shape.arcs
    machines = filled(shape, np.full(shape.machine_count, 12))
    racks = grouped(shape, machines, shape.slots, RACK)
    anywhere = grouped(shape, racks, np.full(len(racks), 12 * RACK), len(racks))
    # Some machines are liked more than others; a third of the running tasks are in a poor place.
    liked = machines[(len(machines) * random.random((len(shape.tasks), 4)) ** 2).astype(np.int64)]
    link(shape, shape.tasks, liked, random.integers(1, 3, liked.shape))
    near = random.choice(racks, (len(shape.tasks), 2))
    link(shape, shape.tasks, near, random.integers(3, 5, near.shape))
    arcs.add(shape.tasks, anywhere, 1, 5)
    arcs.add(shape.tasks, WAITING, 1, random.choice([7, 9], len(shape.tasks)))
    chosen, place = running(shape, 0.7)
    arcs.add(shape.tasks[chosen], machines[place], 1, random.choice([0, 0, 4], len(chosen)))


MAKERS = {"aged": aged, "tiers": tiers, "services": services, "data": data, "ties": ties}


if __name__ == "__main__":
    measure(MAKERS, seed=23, description=__doc__)
