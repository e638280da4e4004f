"""Murmuration and its baselines on the Yahoo and Cloudera workloads. Run by hand:

    python bench/murmuration.py [--trace DIRECTORY] [--runs 3] [--cloudera]

With a directory that holds `yahoo-10k.jobs.csv` and `cloudera-c-10k.jobs.csv` these are the inputs;
otherwise jobs are drawn with the same characteristics. CPU seconds of the simulation on one core, as
medians of several runs; the authors' simulator (3,500 and 25,000 s) is the peer.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from argosy.cell.waits import WaitView
from argosy.engines.registry import ENGINES, find_published
from argosy.model.machine_model import MachineModel
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, FleetEntry, Output, Scenario
from argosy.model.tasks import first_tasks
from argosy.model.truth import SimulatedJob
from argosy.workloads import eagle, fanout
from argosy.worlds.sim import SimulatedWorld

SLOT = Resources(cpu=1000)
HOPS = 1000
FCFS = MachineModel(start_delay=HOPS)
SRJF = MachineModel(queue="shortest-first", start_delay=HOPS)


def jobs_of(directory: Path | None, name: str) -> tuple[SimulatedJob, ...]:
    random = Random(1)
    if directory is not None:
        file = {"yahoo": "yahoo-10k", "cloudera": "cloudera-c-10k"}[name]
        return tuple(eagle.read(directory / f"{file}.jobs.csv", random, speedup=1000))
    return tuple(fanout.generate(fanout.shape(name), 10_000, random, speedup=1000))


def run(
    engine: str,
    jobs: tuple[SimulatedJob, ...],
    machines: int,
    model: MachineModel,
    schedulers: int = 10,
    capacity: Resources = SLOT,
    **settings: Any,
) -> tuple[float, float]:
    """CPU seconds, and the median job completion time in seconds."""
    cell = CellSpec(machines=tuple(Machine(f"m{i}", capacity) for i in range(machines)))
    fleet = FleetEntry(
        name="s", engine=engine, replicas=schedulers, split="random", settings=settings
    )
    world = SimulatedWorld(
        Scenario(
            name="bench",
            seed=1,
            cell=cell,
            jobs=jobs,
            fleet=(fleet,),
            machines=model,
            output=Output(log="none", tasks=False),
        ),
        {engine: ENGINES[engine]},
    )
    begin = time.process_time()
    world.run()
    seconds = time.process_time() - begin
    submit, _, _, done = world.host.board.job_columns()
    return seconds, float(np.median(done - submit)) / 1e6


def report(name: str, target: float, peer: float | None, times: list[float], median: float) -> None:
    seconds = statistics.median(times)
    against = f"{peer / seconds:>9,.0f}x" if peer else f"{'':>10}"
    verdict = "met" if seconds <= target else "MISSED"
    print(f"{name:<44}{seconds:>9.2f} s{against}   {target:g} s {verdict:<8}{median:>12,.1f} s")


def placement(machines: int, tasks: int = 400_000) -> float:
    """Tasks placed a second by one view, jobs of 40, every end reported."""
    view, random = WaitView(), Random(1)
    view.learn(np.full(machines, 1000, np.int64), np.ones(machines, np.uint8))
    view.know_shape(0, np.array([1000], np.int64))
    shapes, times = np.zeros(40, np.int32), np.zeros(40, np.int64)
    begin = time.process_time()
    for job in range(tasks // 40):
        numbers = first_tasks(job, 40)
        estimate = 1_000_000 + 37 * job
        chosen = view.choose(numbers, 40, 0, estimate, job, random)[0]
        view.post_ended(job, job, numbers[:30], chosen[:30], times[:30], shapes[:30], times[:30])
    return tasks / (time.process_time() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cloudera", action="store_true", help="the 2.8 million tasks too")
    options = parser.parse_args()
    print(f"{'':<44}{'CPU':>11}{'peer':>10}   target          median JCT")

    def measure(
        name: str, target: float, peer: float | None, runs: int, *args: Any, **kw: Any
    ) -> float:
        results = [run(*args, **kw) for _ in range(runs)]
        report(name, target, peer, [seconds for seconds, _ in results], results[0][1])
        return statistics.median(seconds for seconds, _ in results)

    yahoo = jobs_of(options.trace, "yahoo")
    tasks = sum(job.tasks for job in yahoo)
    short = {"order": "shortest-job"}
    fcfs, srjf = (find_published(f"murmuration-{order}")[1] for order in ("fcfs", "srjf"))
    for name, model, settings in (
        ("fcfs", FCFS, {}),
        ("srjf", SRJF, short),
        ("fcfs, as published", fcfs.machines, fcfs.settings),
        ("srjf, as published", srjf.machines, srjf.settings),
    ):
        measure(
            f"murmuration {name}: yahoo, 10,000 machines", 5, 3500, options.runs,
            "murmuration", yahoo, 10_000, model, **settings,
        )  # fmt: skip
    for form in ("sparrow", "hawk", "eagle", "yaq-d", "yaq-c"):
        engine, published = find_published(form)
        measure(
            f"{form}, as published: yahoo, 10,000 machines", 10, None, options.runs,
            engine, yahoo, 10_000, published.machines, 1, **published.settings,
        )  # fmt: skip
    small, large = (
        measure(
            f"murmuration fcfs: yahoo, {machines:,} machines", 5, None, options.runs,
            "murmuration", yahoo, machines, FCFS,
        )
        for machines in (1_000, 15_000)
    )  # fmt: skip
    ratio = large / small
    print(f"time per task, 15,000 machines over 1,000: {ratio:.2f} ({1e6 * large / tasks:.1f} µs), "
          f"target 1.5 {'met' if ratio <= 1.5 else 'MISSED'}")  # fmt: skip
    rate = statistics.median(placement(15_000) for _ in range(options.runs))
    print(f"placement at 15,000 machines: {rate:,.0f} tasks/s, "
          f"target 200,000 {'met' if rate >= 200_000 else 'MISSED'}")  # fmt: skip
    spread = tuple(
        fanout.generate(fanout.shape("yahoo"), 500, Random(1), speedup=100, pattern="C", scale=59.0)
    )
    count = sum(job.tasks for job in spread)
    measure(
        f"murmuration: {count:,} tasks of pattern C, 100 machines", 20, None, 1,
        "murmuration", spread, 100, FCFS, capacity=Resources(cpu=110_000),
    )  # fmt: skip
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"largest memory so far: {peak:,.0f} MB, target 1,000 {'met' if peak < 1000 else 'MISSED'}"
    )
    if options.cloudera:
        cloudera = jobs_of(options.trace, "cloudera")
        for name, model, settings in (("fcfs", FCFS, {}), ("srjf", SRJF, short)):
            measure(
                f"murmuration {name}: cloudera, 10,000 machines", 40, 25_000, 1,
                "murmuration", cloudera, 10_000, model, **settings,
            )  # fmt: skip


if __name__ == "__main__":
    main()
