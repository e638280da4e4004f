"""Figures 2 and 7: the real algorithms place applications; `performance` models the effect.

In the results, names of numbers from the model begin with `model`; all others (collocation, violations)
are counted on placements alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.papers.experiment import ExperimentPoint, PointResult
from argosy.papers.medea import performance
from argosy.papers.medea.trial import HBASE_AS_PRINTED, HBASE_ROLES, MB, PlacementTrial, trial

#: The machines of section 7.1; section 2 has 275 machines and does not describe them.
MEMORY: Final = 128 * MB
TENSORFLOW_ROLES: Final = (
    ("learner chief", 4 * MB, 1),
    ("learner", 2 * MB, 7),
    ("server", MB, 2),
)
TENSORFLOW: Final = (
    "appID:self & learner -> {appID:self & learner, 7, inf} in rack",
    "appID:self & learner -> {learner, 0, 3} in machine",
)
#: The constraints of section 2.2 for Storm and Memcached.
STORM: Final = {
    "none": (),
    "within": ("appID:self & storm -> {appID:self & storm, 4, inf} in machine",),
    "within and between": (
        "appID:self & storm -> {appID:self & storm, 4, inf} in machine",
        "appID:self & storm -> {appID:self & memcached, 1, inf} in machine",
    ),
}
GRIDMIX: Final = {"2a": 0.5, "2b": 0.6, "7": 0.5}


class Placed:
    """Instances in a cell: the machines of their workers, and the number of workers on each machine."""

    def __init__(self, cell: PlacementTrial, tag: str) -> None:
        self.cell = cell
        self.tag = tag
        self.instances: list[NDArray[np.int32]] = []

    def add(self, roles: Sequence[tuple[str, int, int]], texts: Sequence[str]) -> None:
        problem, answer = self.cell.place(self.cell.submit(roles, texts, 0))
        kinds = [n for n, kind in enumerate(problem.kinds) if self.tag in kind.tags]
        workers = answer.machines[np.isin(answer.kinds, kinds)]
        if len(workers):
            self.instances.append(workers)

    @property
    def crowd(self) -> NDArray[np.int64]:
        everywhere = np.concatenate(self.instances)
        return np.bincount(everywhere, minlength=len(self.cell.free))

    def slowdowns(self, interference: float, load: float) -> list[NDArray[np.float64]]:
        racks, crowd = self.cell.ledger.families["rack"].set_of, self.crowd
        return [
            performance.slowdowns(workers, racks, crowd, interference, load)
            for workers in self.instances
        ]

    def runtimes(self, interference: float, load: float) -> list[float]:
        return [float(each.mean()) for each in self.slowdowns(interference, load)]


def streaming(point: ExperimentPoint) -> PointResult:
    """Figure 2a: Storm and Memcached, ten times."""
    wanted = str(point.parameters["wanted"])
    cell = _cell(point, 275, "yarn" if wanted == "none" else "ilp", GRIDMIX["2a"])
    times, beside = [], []
    for _ in range(10):
        roles = [("storm", 2 * MB, 5), ("memcached", 4 * MB, 1)]
        _, answer = cell.place(cell.submit(roles, STORM[wanted], 0))
        supervisors, memcached = answer.machines_of(0), int(answer.machines_of(1)[0])
        times.append(performance.storm(supervisors, memcached))
        beside.append(float((supervisors == memcached).mean()))
    whole, lookup = np.mean(times, axis=0)
    return PointResult(
        {
            "model.whole": float(whole),
            "model.lookup": float(lookup),
            "beside": float(np.mean(beside)),
            "violating": cell.violating()[0],
        }
    )


def region_servers(point: ExperimentPoint) -> PointResult:
    """Figure 2b: 40 HBase instances of 30 region servers, before the tasks arrive. 1,200 servers on 275
    machines cannot all be apart, so the constraint is soft like any other."""
    wanted = str(point.parameters["wanted"])
    cell = _cell(point, 275, "yarn" if wanted == "none" else "ilp", 0.0)
    apart = "appID:self & server -> {server, 0, 0} in machine"
    placed = Placed(cell, "server")
    instances, servers = (4, 30) if point.scale == "smoke" else (40, 30)
    memory = int(0.3 * float(cell.capacity.sum()) / (instances * servers))
    for _ in range(instances):
        placed.add([("server", memory, servers)], () if wanted == "none" else (apart,))
    values = {"cubes": _cubes(placed), "crowd": float(placed.crowd.max())}
    for name, kept in (("", 1.0), (".isolated", performance.ISOLATED)):
        every = placed.slowdowns(kept * performance.HBASE, GRIDMIX["2b"])
        # Requests go to all servers of an instance, so their mean time bounds its throughput.
        values[f"model.throughput{name}"] = float(np.mean([1 / each.mean() for each in every]))
        values[f"model.tail{name}"] = float(np.percentile(np.concatenate(every), 99))
    return PointResult(values)


def _cubes(placed: Placed) -> float:
    """The mean cube of a worker's neighbours."""
    crowd = placed.crowd
    return float(np.average((crowd - 1.0) ** performance.POWER, weights=crowd))


def cardinalities(point: ExperimentPoint) -> PointResult:
    """Figures 2c and 2d: one instance, with a given number of workers on each of its machines."""
    limit, load = int(point.parameters["limit"]), float(point.parameters["load"])
    is_hbase = point.figure == "2c"
    workers = 10 if is_hbase else 32
    cell = _cell(point, 275, "ilp", load)
    placed = Placed(cell, "worker")
    placed.add(
        # Workers of 1 GB, so that 32 fit on a machine that tasks fill to 70 %.
        [("worker", MB, workers)],
        [
            f"appID:self -> {{appID:self, {workers - 1}, inf}} in rack",
            f"appID:self -> {{appID:self, {limit - 1}, {limit - 1}}} in machine",
        ],
    )
    (runtime,) = placed.runtimes(performance.HBASE if is_hbase else performance.TENSORFLOW, load)
    return PointResult(
        {
            "model.runtime": runtime,
            "machines": float(len(np.unique(placed.instances[0]))),
            "violating": cell.violating()[0],
        }
    )


def deployment(point: ExperimentPoint) -> PointResult:
    """Figure 7: 45 TensorFlow and 50 HBase instances beside tasks, evenly interleaved."""
    cell = trial(point, 400, 10, memory=MEMORY)
    cell.fill_with_tasks(GRIDMIX["7"])
    learners, servers = Placed(cell, "learner"), Placed(cell, "worker")
    of_each = (4, 5) if point.scale == "smoke" else (45, 50)
    for number in range(max(of_each)):
        if number < of_each[0]:
            learners.add(TENSORFLOW_ROLES, TENSORFLOW)
        servers.add(HBASE_ROLES, HBASE_AS_PRINTED)
    racks = cell.ledger.families["rack"].set_of
    gathered = [
        len(np.unique(racks[workers])) == 1 for workers in learners.instances + servers.instances
    ]
    return PointResult(
        {
            "violating": cell.violating()[0],
            "gathered": float(np.mean(gathered)),
            "learners": float(learners.crowd.max()),
            "servers": float(servers.crowd.max()),
        },
        {
            "model.tensorflow": sorted(learners.runtimes(performance.TENSORFLOW, GRIDMIX["7"])),
            "model.hbase": sorted(servers.runtimes(performance.HBASE, GRIDMIX["7"])),
        },
    )


def _cell(point: ExperimentPoint, machines: int, algorithm: str, load: float) -> PlacementTrial:
    cell = trial(point, machines, 7, memory=MEMORY, algorithm=algorithm)
    cell.fill_with_tasks(load)
    return cell
