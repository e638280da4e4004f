"""Median job completion times of the published simulations: each form x 1,000 to 15,000 machines.

    python bench/published.py --trace DIRECTORY [--seeds 5] [--workload cloudera]

DIRECTORY has `yahoo-10k.jobs.csv` (or `cloudera-c-10k.jobs.csv`), or the `.tr` expanded from it. Each
number is the mean of the medians of several seeds, as the paper's bars are, with the largest distance of
one of them from it. The last rows are against Murmuration-SRJF.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from argosy.engines.registry import ENGINES, find_published
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, FleetEntry, Output, Scenario
from argosy.model.truth import SimulatedJob
from argosy.scenarios.variants import as_published
from argosy.workloads import eagle
from argosy.worlds.sim import SimulatedWorld

SIZES = (1_000, 5_000, 10_000, 15_000)
FILES = {"yahoo": "yahoo-10k", "cloudera": "cloudera-c-10k"}
FORMS = {
    "yahoo": ("murmuration-srjf", "murmuration-fcfs", "sparrow", "eagle", "yaq-d", "yaq-c", "hawk"),
    "cloudera": (
        "murmuration-srjf", "murmuration-fcfs", "sparrow", "eagle-cloudera", "yaq-d-cloudera",
        "yaq-c-cloudera", "hawk-cloudera",
    ),
}  # fmt: skip


def jobs_of(directory: Path, workload: str) -> tuple[SimulatedJob, ...]:
    expanded = directory / f"{FILES[workload]}.tr"
    listed = directory / f"{FILES[workload]}.jobs.csv"
    source = expanded if expanded.exists() else listed
    return tuple(eagle.read(source, Random(1), speedup=1000))


def median(form: str, jobs: tuple[SimulatedJob, ...], machines: int, seed: int) -> float:
    engine, _ = find_published(form)
    slot = Resources(cpu=1000)
    scenario = Scenario(
        name="published",
        seed=seed,
        cell=CellSpec(machines=tuple(Machine(f"m{i}", slot) for i in range(machines))),
        jobs=jobs,
        fleet=(FleetEntry(name="s", engine=engine),),
        output=Output(log="none", tasks=False),
    )
    world = SimulatedWorld(as_published(scenario, form), {engine: ENGINES[engine]})
    world.run()
    submit, _, _, done = world.host.board.job_columns()
    return float(np.median(done - submit)) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--trace", type=Path, required=True)
    parser.add_argument("--workload", choices=sorted(FILES), default="yahoo")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--form", action="append", help="only this; repeatable")
    options = parser.parse_args()
    jobs = jobs_of(options.trace, options.workload)
    print(f"{'median JCT, s':<20}" + "".join(f"{size:>20,}" for size in SIZES))
    means: dict[str, list[float]] = {}
    for form in options.form or FORMS[options.workload]:
        print(f"{form:<20}", end="", flush=True)
        means[form] = []
        for size in SIZES:
            found = [median(form, jobs, size, seed) for seed in range(1, options.seeds + 1)]
            mean = sum(found) / len(found)
            off = max(abs(value - mean) for value in found) / mean
            means[form].append(mean)
            print(f"{mean:>12,.1f} ±{off:5.1%}", end="", flush=True)
        print()
    best = means.get("murmuration-srjf")
    for form, row in means.items() if best else ():
        times = (mine / theirs for mine, theirs in zip(row, best or (), strict=True))
        print(f"{form:<20}" + "".join(f"{factor:>19,.1f}x" for factor in times))


if __name__ == "__main__":
    main()
