"""How much slow deciders gain by looking where others do not. Run by hand:

    python bench/conflicts.py

Nine schedulers that take five seconds a decision share a tenth of the Omega paper's cluster B for an
hour, with six and ten times its batch arrivals. Each way of choosing machines runs under the same seeds.
Conflicts per successful transaction, busyness, and the mean times to a job's first attempt (wait) and to
its last task's placement are medians over them; virtual time, so they do not depend on the computer.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import chain
from typing import Any

from argosy.engines.registry import ENGINES
from argosy.measures.measure import summarise
from argosy.model.random import Random
from argosy.model.scenario import (
    CellSpec,
    ConstantLatency,
    FleetEntry,
    Network,
    Output,
    Scenario,
    Takes,
)
from argosy.workloads import clusters
from argosy.worlds.sim import SimulatedWorld

SECOND = 1_000_000
SPAN = 3_600 * SECOND
BATCH_SCHEDULERS = 8
SCALE = 0.1
REGIONS = (1, 9, 36)
RATES = (6.0, 10.0)
PLACEMENTS = ("first-fit", "best-fit", "worst-fit")
FIGURES = ("conflicts", "busyness", "wait", "placed")


def entry(kind: str, settings: dict[str, Any], replicas: int = 1) -> FleetEntry:
    takes = Takes(kinds=(kind,))
    return FleetEntry(name=kind, engine="omega", settings=settings, replicas=replicas, takes=takes)


def measure(seed: int, rate: float, settings: dict[str, Any]) -> dict[str, float]:
    spec = clusters.cluster("B")
    random = Random(seed).child("workload")
    slow = {"t_job": 5 * SECOND, "t_task": 5_000, "backoff": 0, **settings}
    at_once = {"t_job": 0, "t_task": 0, "backoff": 0}
    scenario = Scenario(
        name="conflicts",
        seed=seed,
        cell=CellSpec(machines=clusters.machines(spec, SCALE)),
        jobs=(),
        fleet=(
            entry("batch", slow, BATCH_SCHEDULERS),
            entry("service", slow),
            entry(clusters.FILL, at_once),
        ),
        network=Network(latency=ConstantLatency(delay=0)),
        horizon=SPAN,
        output=Output(log="none", tasks=False),
    )
    jobs = chain(
        clusters.fill(spec, random, scale=SCALE),
        clusters.jobs(spec, SPAN, random, rate={"batch": rate}, scale=SCALE),
    )
    world = SimulatedWorld(scenario, ENGINES, None, jobs=jobs)
    world.run()
    summary = summarise(world, "")
    deciders = [s for s in summary.schedulers if s.name != clusters.FILL]
    conflicts = sum(s.conflicts for s in deciders)
    return {
        "conflicts": conflicts / max(1, sum(s.transactions for s in deciders) - conflicts),
        "busyness": statistics.fmean(s.busyness for s in deciders),
        "wait": summary.wait_time.mean / SECOND,
        "placed": summary.placement_latency.mean / SECOND,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = range(1, parser.parse_args().seeds + 1)
    began = time.process_time()
    print("rate  placement  regions" + "".join(f"{name:>12}" for name in FIGURES))
    for rate in RATES:
        for placement in PLACEMENTS:
            for regions in REGIONS:
                settings = {"placement": placement, "regions": regions}
                found = [measure(seed, rate, settings) for seed in seeds]
                values = (statistics.median(run[name] for run in found) for name in FIGURES)
                row = "".join(f"{value:12.3f}" for value in values)
                print(f"{rate:4g}  {placement:9}  {regions:7}{row}", flush=True)
    print(f"{time.process_time() - began:.0f} s of CPU time")


if __name__ == "__main__":
    main()
