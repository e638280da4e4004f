"""Figures 2 and 7: engines place applications; `performance` models the effect.

In the results, names of numbers from the model begin with `model`; all others (collocation, violations)
are counted on placements alone.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.papers.experiment import DONE, ExperimentPoint, PointResult
from argosy.papers.medea import performance
from argosy.papers.medea.deployment import Deployed, Site, WantedApplication, deploy, site_of
from argosy.papers.medea.trial import HBASE_AS_PRINTED, HBASE_ROLES, MB

#: The machines of section 7.1; section 2 has 275 machines and does not describe them.
MEMORY: Final = 128 * MB
#: Tasks of 4 GB, because machines are eight times as large as in figure 9.
TASK: Final = 4 * MB
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

    def __init__(self, done: Deployed, tag: str) -> None:
        self._done = done
        found = (done.machines_of(number, tag) for number in done.order if _has(done, number, tag))
        self.instances = [workers for workers in found if len(workers)]

    @property
    def crowd(self) -> NDArray[np.int64]:
        everywhere = np.concatenate(self.instances)
        return np.bincount(everywhere, minlength=self._done.site.machines)

    def slowdowns(self, interference: float, load: float) -> list[NDArray[np.float64]]:
        racks, crowd = self._done.set_of, self.crowd
        return [
            performance.slowdowns(workers, racks, crowd, interference, load)
            for workers in self.instances
        ]

    def runtimes(self, interference: float, load: float) -> list[float]:
        return [float(each.mean()) for each in self.slowdowns(interference, load)]


def _has(done: Deployed, number: int, tag: str) -> bool:
    return any(tag in group.tags for group in done.jobs[number].groups)


def streaming(point: ExperimentPoint) -> PointResult:
    """Figure 2a: Storm and Memcached, ten times."""
    wanted = str(point.parameters["wanted"])
    roles = [("storm", 2 * MB, 5), ("memcached", 4 * MB, 1)]
    each = WantedApplication(roles, STORM[wanted])
    done = deploy(point, _site(point, GRIDMIX["2a"]), [each] * 10, _algorithm(wanted))
    times, beside = [], []
    for number in done.order:
        supervisors = done.machines_of(number, "storm")
        memcached = int(done.machines_of(number, "memcached")[0])
        times.append(performance.storm(supervisors, memcached))
        beside.append(float((supervisors == memcached).mean()))
    whole, lookup = np.mean(times, axis=0)
    return PointResult(
        {
            "model.whole": float(whole),
            "model.lookup": float(lookup),
            "beside": float(np.mean(beside)),
            "violating": done.violating()[0],
        }
    )


def region_servers(point: ExperimentPoint) -> PointResult:
    """Figure 2b: 40 HBase instances of 30 region servers, before the tasks arrive. 1,200 servers on 275
    machines cannot all be apart, so the constraint is soft like any other."""
    wanted = str(point.parameters["wanted"])
    site = _site(point, 0.0)
    apart = "appID:self & server -> {server, 0, 0} in machine"
    instances, servers = (4, 30) if point.scale == "smoke" else (40, 30)
    memory = int(0.3 * site.machines * site.memory / (instances * servers))
    each = WantedApplication([("server", memory, servers)], () if wanted == "none" else (apart,))
    placed = Placed(deploy(point, site, [each] * instances, _algorithm(wanted)), "server")
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
    each = WantedApplication(
        # Workers of 1 GB, so that 32 fit on a machine that tasks fill to 70 %.
        [("worker", MB, workers)],
        [
            f"appID:self -> {{appID:self, {workers - 1}, inf}} in rack",
            f"appID:self -> {{appID:self, {limit - 1}, {limit - 1}}} in machine",
        ],
    )
    done = deploy(point, _site(point, load), [each], "ilp")
    placed = Placed(done, "worker")
    (runtime,) = placed.runtimes(performance.HBASE if is_hbase else performance.TENSORFLOW, load)
    return PointResult(
        {
            "model.runtime": runtime,
            "machines": float(len(np.unique(placed.instances[0]))),
            "violating": done.violating()[0],
        }
    )


def deployment(point: ExperimentPoint) -> PointResult:
    """Figure 7: 45 TensorFlow and 50 HBase instances beside tasks, evenly interleaved."""
    site = site_of(point, 400, 10, memory=MEMORY, tasks=GRIDMIX["7"], task=TASK)
    of_each = (4, 5) if point.scale == "smoke" else (45, 50)
    wanted = []
    for number in range(max(of_each)):
        if number < of_each[0]:
            wanted.append(WantedApplication(TENSORFLOW_ROLES, TENSORFLOW))
        wanted.append(WantedApplication(HBASE_ROLES, HBASE_AS_PRINTED))
    done = deploy(point, site, wanted)
    learners, servers = Placed(done, "learner"), Placed(done, "worker")
    gathered = [
        len(np.unique(done.set_of[workers])) == 1
        for workers in learners.instances + servers.instances
    ]
    violating, extent = done.violating()
    return PointResult(
        {
            "violating": violating,
            "extent": extent,
            "gathered": float(np.mean(gathered)),
            "learners": float(learners.crowd.max()),
            "servers": float(servers.crowd.max()),
            "tasks.placed": float(np.isfinite(done.task_times).mean()),
            DONE: done.placed,
        },
        {
            "tasks": _percentiles(done.task_times),
            "model.tensorflow": sorted(learners.runtimes(performance.TENSORFLOW, GRIDMIX["7"])),
            "model.hbase": sorted(servers.runtimes(performance.HBASE, GRIDMIX["7"])),
        },
    )


def _percentiles(times: NDArray[np.float64]) -> list[float]:
    """From 0 to 100, of the finite times."""
    found: list[float] = np.percentile(times[np.isfinite(times)], np.arange(101)).tolist()
    return found


def _site(point: ExperimentPoint, tasks: float) -> Site:
    return site_of(point, 275, 7, memory=MEMORY, tasks=tasks, task=TASK)


def _algorithm(wanted: str) -> str:
    return "yarn" if wanted == "none" else "ilp"
