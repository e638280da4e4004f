"""How long a day and a week of a busy cell take to simulate, and how much memory. Run by hand:

    python bench/omega.py
    python bench/omega.py --days 7 --runs 1

The cell is that of the Omega paper's lightweight simulator: 10,000 machines, 60 % full from the
beginning, 86,400 batch jobs of 100 tasks a day on average and 4,320 service jobs, whose scheduler thinks
for 10 s about each. Every run is a process of its own, on one core. The peer is the same simulation
written plainly in Python, in this file; it simulates an hour, and its time is scaled to the span.

What a job takes and what a task takes are told apart by a day of as many jobs with a sixteenth of the
tasks, simulated in turn with the day as it is. The goal is half of what the published simulator takes.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections import deque
from itertools import chain
from typing import Any

import msgspec

from argosy.model.random import Random
from argosy.model.truth import SimulatedJob
from argosy.papers.experiment import ExperimentPoint
from argosy.papers.omega.world import HOUR, run_point
from argosy.workloads import clusters
from argosy.workloads.clusters import ClusterSpec

#: Seconds for so many days, and megabytes at any time.
TARGETS = {1: 8.0, 7: 60.0}
MOST_MEGABYTES = 1_000
T_JOB = {"batch": 100_000, "service": 10_000_000, "fill": 0}
T_TASK = {"batch": 5_000, "service": 5_000, "fill": 0}
#: Microseconds for each job, and for each task; how many times fewer tasks jobs have in the other run.
MOST_A_JOB, MOST_A_TASK = 12.0, 0.5
FEWER = 16


def with_fewer_tasks(spec: ClusterSpec) -> ClusterSpec:
    kinds = {}
    for name, kind in spec.kinds.items():
        tasks: Any = kind.tasks
        fewer = msgspec.structs.replace(tasks, mean=tasks.mean / FEWER)
        kinds[name] = msgspec.structs.replace(kind, tasks=fewer)
    return msgspec.structs.replace(spec, kinds=kinds)


def simulate(days: int, *, fewer: bool = False) -> dict[str, float]:
    spec = clusters.cluster("lightweight")
    if fewer:
        spec = with_fewer_tasks(spec)
        clusters.cluster = lambda _: spec  # type: ignore[assignment]
    point = ExperimentPoint(
        paper="omega",
        figure="bench",
        parameters={"cluster": "lightweight", "hours": 24.0 * days, "service_t_job": 10.0},
        seed=1,
        scale="bench",
    )
    begin = time.process_time()
    values = run_point(point).values
    seconds = time.process_time() - begin
    jobs = clusters.jobs(spec, 24 * days * HOUR, Random(1).child("workload"))
    return {
        "seconds": seconds,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024,
        "jobs": values["batch.jobs"] + values["service.jobs"],
        "tasks": sum(job.tasks for job in jobs),
        "busyness": values["batch.busyness"],
        "conflicts": values["service.conflicts"],
    }


class Plain:
    """Omega with two schedulers as one would write it down: machines of equal slots, first fit from a
    random start, fine-grained and incremental transactions. Every task asks for one core of four."""

    def __init__(self, machines: int) -> None:
        self.free = [4] * machines
        self.random = Random(2)
        self.events: list[tuple[int, int, str, object]] = []
        self.sequence = 0
        self.queues: dict[str, deque[tuple[SimulatedJob, int]]] = {kind: deque() for kind in T_JOB}
        self.deciding: set[str] = set()

    def at(self, when: int, what: str, value: object) -> None:
        self.sequence += 1
        heapq.heappush(self.events, (when, self.sequence, what, value))

    def begin(self, kind: str, now: int) -> None:
        if kind in self.deciding or not self.queues[kind]:
            return
        job, left = self.queues[kind].popleft()
        self.deciding.add(kind)
        free, machines, taken, chosen = self.free, len(self.free), {}, []
        for _ in range(left):
            machine = self.random.below(machines)
            while free[machine] - taken.get(machine, 0) < 1:
                machine = (machine + 1) % machines
            taken[machine] = taken.get(machine, 0) + 1
            chosen.append(machine)
        self.at(now + T_JOB[kind] + T_TASK[kind] * left, "commit", (job, chosen))

    def commit(self, job: SimulatedJob, chosen: list[int], now: int) -> None:
        left, durations = 0, job.truth[0].durations
        for machine in chosen:
            if self.free[machine] < 1:
                left += 1
                continue
            self.free[machine] -= 1
            if durations:
                self.at(now + durations[0], "finish", machine)
        if left:
            self.queues[job.kind].append((job, left))
        self.deciding.discard(job.kind)
        self.begin(job.kind, now)

    def run(self, horizon: int) -> None:
        spec, random = clusters.cluster("lightweight"), Random(1).child("workload")
        for job in chain(clusters.fill(spec, random), clusters.jobs(spec, horizon, random)):
            self.at(job.submit, "submit", job)
        while self.events and self.events[0][0] <= horizon:
            now, _, what, value = heapq.heappop(self.events)
            if what == "finish":
                self.free[value] += 1  # type: ignore[index]
            elif what == "commit":
                self.commit(*value, now)  # type: ignore[misc]
            else:
                assert isinstance(value, SimulatedJob)
                self.queues[value.kind].append((value, value.groups[0].count))
                self.begin(value.kind, now)


def plain_hour() -> float:
    begin = time.process_time()
    Plain(10_000).run(HOUR)
    return time.process_time() - begin


def measured(days: int, *, fewer: bool = False) -> dict[str, float]:
    """A run in a process of its own."""
    command = [sys.executable, __file__, "--once", str(days), *(["--fewer"] if fewer else [])]
    one_core = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    said = subprocess.run(command, env=one_core, check=True, stdout=subprocess.PIPE).stdout
    return msgspec.json.decode(said, type=dict[str, float])


def median(results: list[dict[str, float]], name: str) -> float:
    return statistics.median(result[name] for result in results)


def tell_apart(many: list[dict[str, float]], few: list[dict[str, float]]) -> str:
    """Microseconds per job and per task, from two days with equally many jobs."""
    more = median(many, "tasks") - median(few, "tasks")
    a_task = (median(many, "seconds") - median(few, "seconds")) / more
    a_job = (median(few, "seconds") - a_task * median(few, "tasks")) / median(few, "jobs")
    met = a_job * 1e6 <= MOST_A_JOB and a_task * 1e6 <= MOST_A_TASK
    return (
        f"a job takes {a_job * 1e6:.1f} µs and a task {a_task * 1e6:.2f} µs: "
        f"{MOST_A_JOB:g} and {MOST_A_TASK:g} {'met' if met else 'MISSED'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--days", type=int, choices=sorted(TARGETS), action="append")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--once", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--fewer", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.once:
        print(json.dumps(simulate(asked.once, fewer=asked.fewer)))
        return
    hour = statistics.median(plain_hour() for _ in range(asked.runs))
    print(f"{'days':>4}{'jobs':>10}{'CPU s':>9}{'plain Python':>14}{'MiB':>7}   target")
    for days in asked.days or sorted(TARGETS):
        results, few = [], []
        for _ in range(asked.runs):
            results.append(measured(days))
            few += [measured(days, fewer=True)] if days == 1 else []
        seconds = median(results, "seconds")
        megabytes = max(result["megabytes"] for result in results)
        met = seconds <= TARGETS[days] and megabytes <= MOST_MEGABYTES
        print(
            f"{days:>4}{results[0]['jobs']:>10,.0f}{seconds:>9.2f}{hour * 24 * days / seconds:>13.1f}x"
            f"{megabytes:>7,.0f}   {TARGETS[days]:g} s and {MOST_MEGABYTES:,} MB "
            f"{'met' if met else 'MISSED'}"
        )
        if few:
            print(tell_apart(results, few))


if __name__ == "__main__":
    main()
