"""The test bed of the Vela paper, and how a point is run in it.

Ten clusters by Table II, one scheduler in Zurich, jobs of one container that runs until stopped. Values
that the paper does not give are read as follows.

- Distances: round trips between Zurich and the regions, rounded from what providers publish.
- Agents: a sample takes 600 ms besides the round trip, so that 80 samplers manage about the 107 jobs a
  second at which the paper's scheduler stops keeping up; a commit takes 5 ms. Figure 9 has clusters of
  one size, so nothing depends on the machines drawn. The paper's commits are to the cache, without
  Kubernetes.
- Arrivals of figure 4: 100 a second.
- Rescheduling: at once, ten times.

At smaller scales, clusters, jobs, arrivals and samplers shrink alike, so that as many tasks per machine
are under way at once.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from argosy.engines.registry import ENGINES
from argosy.model.machines import CLUSTER_GROUP, Cluster, Machine
from argosy.model.resources import Resources
from argosy.model.scenario import (
    AgentModel,
    CellSpec,
    Federation,
    FleetEntry,
    GroupSpec,
    Output,
    Places,
    Scenario,
)
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.papers.experiment import ExperimentPoint, PointResult
from argosy.papers.vela.points import MACHINES
from argosy.worlds.sim import SimulatedWorld

GIB: Final = 2**30
SECOND: Final = 1_000_000
PAPER_MACHINES: Final = 2_000
#: Share of the cluster in percent, cores and GiB.
CLOUD: Final = ((50, 2, 4), (30, 4, 8), (20, 8, 16))
EDGE: Final = ((20, 4, 2), (40, 4, 4), (30, 4, 1), (10, 4, 8))
REGIONS: Final = {
    "cloud": ("belgium", "oregon", "finland"),
    "edge": ("belgium", "netherlands", "frankfurt", "montreal", "oregon", "finland", "iowa"),
}
#: Round trips to Zurich, in milliseconds.
ROUND_TRIPS: Final = {
    "belgium": 14, "netherlands": 16, "frankfurt": 8, "finland": 36, "montreal": 98, "iowa": 114,
    "oregon": 146,
}  # fmt: skip
HOME: Final = "zurich"
AGENTS: Final = AgentModel(t_sample=600_000, t_fetch=5_000)
SAMPLERS: Final = 80
#: Cores and GiB of the jobs that one iteration of the paper's load generator creates.
MIX: Final = (1, 2, 2, 4)
MINUTES: Final = 3


def clusters() -> list[Cluster]:
    return [
        Cluster(f"{kind}-{region}", region)
        for kind, regions in REGIONS.items()
        for region in regions
    ]


@cache
def table_ii(per_cluster: int) -> CellSpec:
    """The machines of Table II."""
    machines: list[Machine] = []
    for cluster in clusters():
        kinds = CLOUD if cluster.name.startswith("cloud") else EDGE
        sizes = [
            (cores, memory)
            for percent, cores, memory in kinds
            for _ in range(per_cluster * percent // 100)
        ]
        machines.extend(
            Machine(
                f"{cluster.name}/m{number}",
                Resources(1_000 * cores, memory * GIB),
                joins={CLUSTER_GROUP: (cluster.name,)},
            )
            for number, (cores, memory) in enumerate(sizes)
        )
    names = tuple(cluster.name for cluster in clusters())
    return CellSpec(machines=tuple(machines), groups=(GroupSpec(name=CLUSTER_GROUP, sets=names),))


def capacity(cell: CellSpec, cores: int) -> int:
    """How many jobs of so many cores, and as many GiB, the cell holds."""
    return sum(
        min(m.capacity.cpu // (1_000 * cores), m.capacity.memory // (cores * GIB))
        for m in cell.machines
    )


def run_point(point: ExperimentPoint) -> PointResult:
    return _tuning(point) if point.figure == "4" else _conflicts(point)


def _tuning(point: ExperimentPoint) -> PointResult:
    per_cluster = MACHINES[point.scale]
    cell = table_ii(per_cluster)
    count, rate = capacity(cell, 4), 100 * per_cluster / PAPER_MACHINES
    jobs = [_job(number, 4, number / rate) for number in range(count)]
    settings = {
        "clusters": int(point.parameters["clusters"]) / 100,
        "machines": int(point.parameters["machines"]) / 100,
    }
    # Agents take no time here: the question is what is found, not when.
    found = _run(point, jobs, settings, None, until=count / rate + 600)
    return PointResult({**found, "jobs": count, "failed": found["abandoned"] / count})


def _conflicts(point: ExperimentPoint) -> PointResult:
    per_cluster = MACHINES[point.scale]
    rate = int(point.parameters["rate"]) * per_cluster / PAPER_MACHINES
    count = int(60 * MINUTES * rate)
    jobs = [_job(number, MIX[number % len(MIX)], number / rate) for number in range(count)]
    settings = {
        "candidates": int(point.parameters["candidates"]),
        "prefer": str(point.parameters["prefer"]),
        "samplers": SAMPLERS * per_cluster // PAPER_MACHINES,
    }
    found = _run(point, jobs, settings, AGENTS, until=60 * MINUTES + 300)
    throughput = (found["placed"] - 1) / found["placing s"] if found["placing s"] else 0.0
    return PointResult(
        {
            **found,
            "jobs": count,
            "conflicting": found["conflicts"] / count,
            "retried": found["placed by a later candidate"] / count,
            "throughput": throughput * PAPER_MACHINES / per_cluster,
        }
    )


def _job(number: int, cores: int, submit: float) -> SimulatedJob:
    group = group_with_truth(1, Resources(1_000 * cores, cores * GIB), ())
    return simulated_job(f"j{number}", group, submit=int(submit * SECOND))


def _run(
    point: ExperimentPoint,
    jobs: list[SimulatedJob],
    settings: dict[str, Any],
    agents: AgentModel | None,
    until: float,
) -> dict[str, float]:
    """The scheduler's own figures after the run."""
    delays = {f"{HOME}<>{place}": 500 * trip for place, trip in ROUND_TRIPS.items()}
    scenario = Scenario(
        name="vela",
        seed=point.seed,
        cell=table_ii(MACHINES[point.scale]),
        jobs=tuple(jobs),
        fleet=(FleetEntry(name="vela", engine="vela", settings={"backoff": 0, **settings}),),
        federation=Federation(
            clusters=tuple(clusters()),
            places=Places(default=50_000, delays=delays),
            schedulers={"vela": HOME},
        ),
        agents=agents,
        horizon=int(until * SECOND),
        output=Output(log="none", tasks=False),
    )
    world = SimulatedWorld(scenario, ENGINES)
    world.run()
    return world.host.schedulers[0].figures()
