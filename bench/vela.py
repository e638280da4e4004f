"""How long a simulation of Vela over a large federation takes. Run by hand:

    python bench/vela.py
    python bench/vela.py --jobs 10000 --runs 3
    python bench/vela.py --shards 10 --clusters 4 --machines 50000 --jobs 2000

200,000 machines in 100 clusters, mixed as the edge clusters of the Vela paper, and 100,000 jobs of one
core at 500 a second. For each job, five agents look for 4 % of their 2,000 machines. Every run is a
process of its own, on one core; CPU time counts, without that for building the scenario.

With `--shards`, agents take 20 microseconds for each machine drawn: the answer shows what shards of a
cluster save.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

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
from argosy.papers.vela.world import EDGE, GIB, SECOND, container
from argosy.worlds.sim import SimulatedWorld

#: Seconds of CPU time for 100,000 jobs.
TARGET = 60.0
RATE = 500
ASKED = 5


def scenario(clusters: int, machines: int, jobs: int, shards: int) -> Scenario:
    names = [f"c{number}" for number in range(clusters)]
    sizes = [
        (cores, memory) for share, cores, memory in EDGE for _ in range(machines * share // 100)
    ]
    cell = CellSpec(
        machines=tuple(
            Machine(
                f"{name}/m{number}",
                Resources(1_000 * cores, memory * GIB),
                joins={CLUSTER_GROUP: (name,)},
            )
            for name in names
            for number, (cores, memory) in enumerate(sizes)
        ),
        groups=(GroupSpec(name=CLUSTER_GROUP, sets=tuple(names)),),
    )
    return Scenario(
        name="vela",
        seed=1,
        cell=cell,
        jobs=tuple(container(number, 1, number / RATE) for number in range(jobs)),
        fleet=(
            FleetEntry(
                name="vela", engine="vela", settings={"clusters": min(1.0, ASKED / clusters)}
            ),
        ),
        federation=Federation(
            clusters=tuple(Cluster(name, f"p{at % 10}") for at, name in enumerate(names)),
            places=Places(default=20_000),
            schedulers={"vela": "p0"},
        ),
        agents=AgentModel(
            t_sample=5_000, t_machine=20 if shards else 0, t_fetch=1_000, shards=max(1, shards)
        ),
        horizon=(jobs // RATE + 60) * SECOND,
        output=Output(log="none", tasks=False),
    )


def simulate(clusters: int, machines: int, jobs: int, shards: int) -> dict[str, float]:
    spec = scenario(clusters, machines, jobs, shards)
    begin = time.process_time()
    world = SimulatedWorld(spec, ENGINES)
    world.run()
    seconds = time.process_time() - begin
    told = world.host.schedulers[0].figures()
    return {
        "seconds": seconds,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024,
        "placed": told["placed"],
        "sampling": told["mean sampling ms"],
        "retried": told["commits refused"],
        "conflicts": told["conflicts"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--machines", type=int, default=2_000, help="in each cluster")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--shards", type=int, default=0)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.one:
        print(json.dumps(simulate(told.clusters, told.machines, told.jobs, told.shards)))
        return
    command = [sys.executable, __file__, "--one", *sys.argv[1:]]
    found = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(told.runs)
    ]
    seconds = statistics.median(each["seconds"] for each in found)
    last = found[-1]
    print(
        f"{told.clusters * told.machines:,} machines in {told.clusters} clusters, {told.jobs:,} jobs:"
        f" {seconds:.1f} s of CPU time, {1_000 * seconds / told.jobs:.2f} ms a job,"
        f" {last['megabytes']:,.0f} MB"
    )
    print(
        f"placed {last['placed']:,.0f}, conflicts {last['conflicts']:,.0f}, commits refused"
        f" {last['retried']:,.0f}, sampling {last['sampling']:.1f} ms on average"
    )
    limit = TARGET * told.jobs / 100_000
    if not told.shards:
        print(f"at most {limit:g} s are wanted: {'reached' if seconds <= limit else 'missed'}")


if __name__ == "__main__":
    main()
