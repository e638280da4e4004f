"""Figure 11c: latencies of tasks of a Google-like trace, with and without applications beside them.

The load is that of the Firmament paper's experiments, reconstructed from published data on the Google
trace and sped up 200 times. Decisions take their real processor time; the two schedulers decide in
parallel, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import chain
from typing import Any, Final

import numpy as np

from argosy.engines.medea import Medea
from argosy.engines.yarn import Yarn
from argosy.model.constraints.text import parse_constraint
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import (
    ConstantLatency,
    FleetEntry,
    Measured,
    Network,
    Output,
    Scenario,
)
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.model.units import MICROS_PER_SECOND
from argosy.papers.experiment import DONE, ExperimentPoint, PointResult
from argosy.papers.firmament.workload import BEGIN, GIB, Load, arriving, cluster, found
from argosy.papers.medea.trial import HBASE_AS_PRINTED, HBASE_ROLES, MB
from argosy.worlds.sim import SimulatedWorld

SPEED_UP: Final = 200.0
SECONDS: Final = 60.0
#: Containers of applications per arriving task.
EXTRA: Final = 0.1
KIND: Final = "lra"
_PERCENTILES: Final = (5, 25, 50, 75, 99)


def beside_applications(point: ExperimentPoint) -> PointResult:
    """Task latencies with YARN alone, or with Medea and 10 % more containers, which belong to
    applications."""
    engine = str(point.parameters["engine"])
    machines = 40 if point.scale == "smoke" else 256
    # The room that tasks leave free is for applications, which do not end.
    load = Load(
        machines=machines, utilisation=0.6, speed_up=SPEED_UP, seconds=SECONDS, seed=point.seed
    )
    tasks = list(arriving(load))
    count = sum(group.count for job in tasks for group in job.groups)
    lras = list(_applications(load, int(EXTRA * count))) if engine == Medea.name else []
    world = _world(load, engine, chain(found(load), merge(tasks, lras, key=lambda job: job.submit)))
    world.run()
    submit, _, placed, _ = world.host.board.job_columns()
    sizes = np.array(world.host.jobs.counts, np.int64)
    is_lra = np.array([kind == KIND for kind in world.kinds])
    mine = (submit >= int(BEGIN * MICROS_PER_SECOND)) & ~is_lra
    there = mine & (placed >= 0)
    # A job's tasks count as placed with the last of them.
    waits = np.repeat((placed - submit)[there], sizes[there]) / 1_000
    values = {f"p{share}": float(np.percentile(waits, share)) for share in _PERCENTILES}
    values["applications"] = float((is_lra & (placed >= 0)).sum())
    values["containers"] = float(sizes[is_lra & (placed >= 0)].sum() / max(1, sizes[mine].sum()))
    # Of the tasks and of the applications, whichever is less.
    shares_placed = [
        float(sizes[kind & (placed >= 0)].sum() / sizes[kind].sum())
        for kind in (mine, is_lra)
        if kind.any()
    ]
    values[DONE] = min(shares_placed)
    shares = np.arange(1, 100)
    return PointResult(values, {"waits": np.percentile(waits, shares).tolist()})


class _World(SimulatedWorld):
    """Records the kind of each job, by number."""

    def __init__(self, scenario: Scenario, jobs: Iterator[SimulatedJob]) -> None:
        self.kinds: list[str] = []
        super().__init__(scenario, {Medea.name: Medea, Yarn.name: Yarn}, jobs=self._noted(jobs))

    def _noted(self, jobs: Iterator[SimulatedJob]) -> Iterator[SimulatedJob]:
        for job in jobs:
            self.kinds.append(job.kind)
            yield job


def _world(load: Load, engine: str, jobs: Iterator[SimulatedJob]) -> _World:
    # The same task scheduler for both: machines by first fit.
    settings: dict[str, Any] = (
        {"long_running": [KIND]} if engine == Medea.name else {"order": "placement"}
    )
    scenario = Scenario(
        name="beside",
        seed=load.seed,
        cell=cluster(load),
        jobs=(),
        fleet=(FleetEntry(name="s", engine=engine, settings=settings, decision_time=Measured()),),
        network=Network(latency=ConstantLatency(delay=0)),
        horizon=int((BEGIN + load.seconds + 20) * MICROS_PER_SECOND),
        output=Output(log="none"),
    )
    return _World(scenario, jobs)


def _applications(load: Load, containers: int) -> Iterator[SimulatedJob]:
    """HBase instances at random times, with this many containers in total."""
    random = Random(load.seed).child("applications")
    size = sum(count for _, _, count in HBASE_ROLES)
    moments = sorted(random.uniform() for _ in range(max(1, containers // size)))
    constraints = tuple(map(parse_constraint, HBASE_AS_PRINTED))
    for number, moment in enumerate(moments):
        groups = tuple(
            group_with_truth(count, Resources(1_000, memory // MB * GIB), tags=(role,))
            for role, memory, count in HBASE_ROLES
        )
        at = int((BEGIN + moment * load.seconds) * MICROS_PER_SECOND)
        yield simulated_job(f"lra-{number}", *groups, submit=at, kind=KIND, constraints=constraints)
