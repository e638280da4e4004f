"""The test bed of the Vela paper.

Ten clusters by Table II, one scheduler in Zurich, jobs of one container that runs until stopped. Values
that the paper does not give are read as follows.

- Distances: round trips between Zurich and the regions, rounded from what providers publish.
- Computing: the paper's scheduler uses 93 % of 8 processors at 107 jobs a second, so 69.5 ms a job. Of
  these, 2 ms are for the decision, 4 ms for the commit, and the rest for reading the 400 machines of its
  samples: 159 microseconds each. What is computed at once shares the processors equally.
- Agents: a sample takes 70 ms besides the round trip, which is what is left of the paper's 209 ms for a
  sample of no machines; a commit takes 5 ms. Agents are not short of processors: the paper's use 26 %.
- Arrivals of figure 4: 100 a second.
- Rescheduling: at once, ten times.

At smaller scales, clusters, jobs, arrivals and samplers shrink alike, so that as many tasks per machine
are under way at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from argosy.engines.registry import ENGINES
from argosy.model.machines import CLUSTER_GROUP, Cluster, Machine
from argosy.model.resources import Resources
from argosy.model.scenario import (
    AgentModel,
    CellSpec,
    Fault,
    Federation,
    FleetEntry,
    GroupSpec,
    Output,
    Places,
    Scenario,
)
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
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
AGENTS: Final = AgentModel(t_sample=70_000, t_fetch=5_000)
SAMPLERS: Final = 80
CORES: Final = 8
#: Computing time of the scheduler, in microseconds: per machine in a sample, per commit, per decision.
T_READ: Final = 159
T_COMMIT: Final = 4_000
T_DECISION: Final = 2_000
#: Cores and GiB of the jobs that one iteration of the paper's load generator creates.
MIX: Final = (1, 2, 2, 4)
MINUTES: Final = 3


def clusters() -> list[Cluster]:
    return [
        Cluster(f"{kind}-{region}", region)
        for kind, regions in REGIONS.items()
        for region in regions
    ]


def sizes_of(kind: str, count: int) -> list[Resources]:
    """The machines of a cluster, `cloud` or `edge`: the shares of Table II, as nearly as whole machines
    allow."""
    sizes: list[Resources] = []
    share = 0
    for percent, cores, memory in CLOUD if kind == "cloud" else EDGE:
        share += percent
        until = (count * share + 50) // 100
        sizes += [Resources(1_000 * cores, memory * GIB)] * (until - len(sizes))
    return sizes


@cache
def table_ii(per_cluster: int) -> CellSpec:
    """The machines of Table II."""
    machines: list[Machine] = []
    for cluster in clusters():
        machines.extend(
            Machine(f"{cluster.name}/m{number}", size, joins={CLUSTER_GROUP: (cluster.name,)})
            for number, size in enumerate(sizes_of(cluster.name.partition("-")[0], per_cluster))
        )
    names = tuple(cluster.name for cluster in clusters())
    return CellSpec(machines=tuple(machines), groups=(GroupSpec(name=CLUSTER_GROUP, sets=names),))


def capacity(cell: CellSpec, cores: int) -> int:
    """How many jobs of so many cores, and as many GiB, the cell holds."""
    return sum(
        min(m.capacity.cpu // (1_000 * cores), m.capacity.memory // (cores * GIB))
        for m in cell.machines
    )


def container(
    number: int, cores: int, submit: float, seconds: float = 0, **fields: Any
) -> SimulatedJob:
    """A job of one container of so many cores and GiB, which runs until stopped or for `seconds`."""
    durations = (int(seconds * SECOND),) if seconds else ()
    group = group_with_truth(1, Resources(1_000 * cores, cores * GIB), durations, **fields)
    return simulated_job(f"j{number}", group, submit=int(submit * SECOND))


def mixed(rate: float, seconds: float = 0) -> list[SimulatedJob]:
    """Three minutes of the paper's load generator, with so many jobs a second."""
    count = int(60 * MINUTES * rate)
    return [
        container(number, MIX[number % len(MIX)], number / rate, seconds) for number in range(count)
    ]


def share_of_paper(per_cluster: int) -> float:
    return per_cluster / PAPER_MACHINES


def scheduler_settings(per_cluster: int, part: float = 1.0) -> dict[str, Any]:
    """Samplers and processors of the paper's scheduler, shrunk with the clusters, and by `part` if
    several share them. A whole number of processors computes as much as the paper's in proportion."""
    size = share_of_paper(per_cluster) * part
    cores = max(1, round(CORES * size))
    stretch = cores / (CORES * size)
    return {
        "samplers": max(1, round(SAMPLERS * size)),
        "committers": max(1, round(SAMPLERS * size)),
        "cores": cores,
        # Samples shrink with the clusters, decisions and commits do not.
        "t_read": round(T_READ * stretch / share_of_paper(per_cluster)),
        "t_commit": round(T_COMMIT * stretch),
        "t_decision": round(T_DECISION * stretch),
    }


def federation(schedulers: Iterable[str]) -> Federation:
    delays = {f"{HOME}<>{place}": 500 * trip for place, trip in ROUND_TRIPS.items()}
    return Federation(
        clusters=tuple(clusters()),
        places=Places(default=50_000, delays=delays),
        schedulers=dict.fromkeys(schedulers, HOME),
    )


def simulate(
    per_cluster: int,
    seed: int,
    jobs: Iterable[SimulatedJob],
    entry: FleetEntry,
    *,
    until: float,
    agents: AgentModel | None = AGENTS,
    faults: tuple[Fault, ...] = (),
) -> SimulatedWorld:
    """The world after the run."""
    scenario = Scenario(
        name="vela",
        seed=seed,
        cell=table_ii(per_cluster),
        jobs=tuple(jobs),
        fleet=(entry,),
        federation=federation(entry.scheduler_names()),
        agents=agents,
        faults=faults,
        horizon=int(until * SECOND),
        output=Output(log="none", tasks=False),
    )
    world = SimulatedWorld(scenario, ENGINES)
    world.run()
    return world


def vela(settings: dict[str, Any], replicas: int = 1) -> FleetEntry:
    return FleetEntry(
        name="vela",
        engine="vela",
        settings={"backoff": 0, **settings},
        replicas=replicas,
        split="round-robin",
    )
