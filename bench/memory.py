"""How much memory a simulation of many jobs takes if they are made as they come due. Run by hand:

    python bench/memory.py
    python bench/memory.py --jobs 100000

A hundred machines and two `omega` schedulers; jobs of one to four tasks, each a few seconds long, come
from a generator (`SimulatedWorld(jobs=...)`), so only those under way are in memory as jobs. What grows
with the number of jobs is what summaries are made of: names, kinds, and when each was submitted, tried,
placed and done. Without a journal and without timelines of tasks. Every size is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator

from argosy.engines.registry import ENGINES
from argosy.model.scenario import FleetEntry, Output, Scenario
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import GIB, cell, job
from argosy.worlds.sim import SimulatedWorld

SIZES = (100_000, 1_000_000)
MOST_MEGABYTES = 200


def made(count: int) -> Iterator[SimulatedJob]:
    for number in range(count):
        yield job(
            f"job-{number:07}",
            1 + number % 4,
            cpu=500,
            seconds=2 + number % 7,
            submit=number * 0.01,
        )


def run(count: int) -> dict[str, float]:
    scenario = Scenario(
        name="memory",
        seed=1,
        cell=cell(100, cpu=32_000, memory=128 * GIB),
        jobs=(),
        fleet=(FleetEntry(name="s", engine="omega", replicas=2, settings={"t_job": 1_000}),),
        output=Output(log="none", tasks=False),
    )
    begin = time.process_time()
    world = SimulatedWorld(scenario, ENGINES, jobs=made(count))
    world.run()
    return {
        "done": float(world.host.board.counts()[3]),
        "seconds": time.process_time() - begin,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, action="append")
    parser.add_argument("--once", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.once:
        print(json.dumps(run(asked.once)))
        return
    print(f"{'jobs':>10}{'tasks done':>12}{'CPU s':>8}{'µs/job':>8}{'MiB':>7}   target")
    for count in asked.jobs or SIZES:
        command = [sys.executable, __file__, "--once", str(count)]
        ran = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        result = json.loads(ran.stdout)
        met = "met" if result["megabytes"] <= MOST_MEGABYTES else "MISSED"
        print(
            f"{count:>10,}{result['done']:>12,.0f}{result['seconds']:>8.1f}"
            f"{1e6 * result['seconds'] / count:>8.1f}{result['megabytes']:>7,.0f}"
            f"   {MOST_MEGABYTES} MiB {met}"
        )


if __name__ == "__main__":
    main()
