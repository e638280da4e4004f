"""How much memory simulations of many jobs take. Run by hand:

    python bench/memory.py
    python bench/memory.py --jobs 100000

A hundred machines and two `omega` schedulers; jobs of one to four tasks, each a few seconds long. Every
line is a process of its own:

    world       the simulated world alone; jobs come from a generator (`SimulatedWorld(jobs=...)`)
    generated   `argosy run` on a scenario whose jobs are drawn, saved in a directory
    trace       `argosy run` on a scenario that names a trace of JSON lines, saved
    default     as `generated`, with the timelines of tasks and the journal that runs have by default

All but the last are without a journal and without timelines of tasks. What grows with the number of
jobs is what summaries are made of (names, kinds, and when each was submitted, tried, placed and done),
and for a scenario the jobs themselves, packed. `first` is the processor time until the first event is
simulated: imports, reading or drawing all jobs, checking them, and saving the scenario.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from argosy.model.truth import SimulatedJob
from argosy.worlds.sim import SimulatedWorld

SIZES = (100_000, 1_000_000)
WAYS = ("world", "generated", "trace", "default")
MOST_MEGABYTES = 200
#: Jobs come a hundred a second. Drawing ends at an offered load, so a little more or less than asked for
#: are drawn; and never more than a million.
PER_SECOND = 100
OFFERED = 0.19
SCENARIO = """
name = "memory"

[[cell.machines]]
name = "m"
count = 100
capacity = {{ cpu = 32000, memory = "128GiB" }}

{workload}

[[fleet]]
name = "s"
engine = "omega"
replicas = 2
settings = {{ t_job = "1ms" }}

{output}
"""
DRAWN = """
[workload.synthetic]
span = "{span}s"
utilisation = {offered}

[workload.synthetic.kinds.batch]
requests = [{{ request = {{ cpu = 500, memory = "64MiB" }} }}]
tasks = {{ shape = "uniform", low = 1, high = 4 }}
duration = {{ shape = "uniform", low = "2s", high = "8s" }}
"""
TRACE = """
[workload.trace]
path = "jobs.jsonl"
"""
LITTLE = """
[output]
log = "none"
tasks = false
"""


def made(count: int) -> Iterator[SimulatedJob]:
    from argosy.testing.builders import job

    for number in range(count):
        yield job(
            f"job-{number:07}",
            1 + number % 4,
            cpu=500,
            seconds=2 + number % 7,
            submit=number / PER_SECOND,
        )


def run_world(count: int) -> int:
    """How many jobs were done."""
    from argosy.engines.registry import ENGINES
    from argosy.model.scenario import FleetEntry, Output, Scenario
    from argosy.testing.builders import GIB, cell

    scenario = Scenario(
        name="memory",
        seed=1,
        cell=cell(100, cpu=32_000, memory=128 * GIB),
        jobs=(),
        fleet=(FleetEntry(name="s", engine="omega", replicas=2, settings={"t_job": 1_000}),),
        output=Output(log="none", tasks=False),
    )
    world = SimulatedWorld(scenario, ENGINES, jobs=made(count))
    world.run()
    return len(world.host.jobs)


def write_scenario(way: str, count: int, folder: Path) -> Path:
    workload = TRACE if way == "trace" else DRAWN.format(span=count // PER_SECOND, offered=OFFERED)
    path = folder / "memory.toml"
    output = "" if way == "default" else LITTLE
    path.write_text(SCENARIO.format(workload=workload, output=output))
    if way == "trace":
        from argosy.workloads.trace import write_trace

        write_trace(folder / "jobs.jsonl", made(count))
    return path


def run_command(scenario: Path) -> int:
    from argosy.cli import main

    out = scenario.parent / "run"
    with suppress(SystemExit):
        main(["run", str(scenario), "--out", str(out), "--output", "csv"])
    summary = json.loads((out / "summary.json").read_bytes())
    return int(summary["counts"]["jobs_finished"])


def run_once(way: str, count: int, scenario: Path) -> dict[str, float]:
    first: list[float] = []
    simulate = SimulatedWorld.run

    def noted(world: SimulatedWorld, *arguments: object) -> None:
        first.append(time.process_time())
        simulate(world, *arguments)  # type: ignore[arg-type]

    SimulatedWorld.run = noted  # type: ignore[method-assign]
    done = run_world(count) if way == "world" else run_command(scenario)
    return {
        "done": done,
        "first": first[0],
        "seconds": time.process_time(),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024,
    }


def measure(way: str, count: int) -> dict[str, float]:
    """In a process of its own, whose last line is the result."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = write_scenario(way, count, Path(folder))
        command = [sys.executable, __file__, "--once", way, "--jobs", str(count), str(scenario)]
        ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    result: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, action="append")
    parser.add_argument("--way", choices=WAYS, action="append")
    parser.add_argument("--once", help=argparse.SUPPRESS)
    parser.add_argument("scenario", nargs="?", type=Path, default=Path(), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.once:
        print(json.dumps(run_once(asked.once, asked.jobs[0], asked.scenario)))
        return
    print(f"{'':<10}{'jobs done':>11}{'MiB':>6}{'CPU s':>8}{'µs/job':>8}{'first s':>9}   target")
    for way in asked.way or WAYS:
        for count in asked.jobs or SIZES:
            result = measure(way, count)
            met = "met" if result["megabytes"] <= MOST_MEGABYTES else "MISSED"
            print(
                f"{way:<10}{result['done']:>11,.0f}{result['megabytes']:>6,.0f}"
                f"{result['seconds']:>8.1f}{1e6 * result['seconds'] / count:>8.1f}"
                f"{result['first']:>9.1f}   {MOST_MEGABYTES} MiB {met}",
                flush=True,
            )


if __name__ == "__main__":
    main()
