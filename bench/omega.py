"""How long a day and a week of a busy cell take to simulate, and how much memory. Run by hand:

    python bench/omega.py
    python bench/omega.py --days 7 --runs 1

The cell is that of the Omega paper's lightweight simulator: 10,000 machines, 60 % full from the
beginning, 86,400 batch jobs of 100 tasks a day on average and 4,320 service jobs, whose scheduler thinks
for 10 s about each. Every run is a process of its own, on one core. The peer is the same simulation
written plainly in Python, in this file; it simulates an hour, and its time is scaled to the span.
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

from argosy.model.random import Random
from argosy.model.truth import SimulatedJob
from argosy.papers.experiment import ExperimentPoint
from argosy.papers.omega.world import HOUR, run_point
from argosy.workloads import clusters

#: Seconds for so many days, and megabytes at any time.
TARGETS = {1: 8.0, 7: 60.0}
MOST_MEGABYTES = 1_000
T_JOB = {"batch": 100_000, "service": 10_000_000, "fill": 0}
T_TASK = {"batch": 5_000, "service": 5_000, "fill": 0}


def simulate(days: int) -> dict[str, float]:
    point = ExperimentPoint(
        paper="omega",
        figure="bench",
        parameters={"cluster": "lightweight", "hours": 24.0 * days, "service_t_job": 10.0},
        seed=1,
        scale="bench",
    )
    begin = time.process_time()
    values = run_point(point).values
    return {
        "seconds": time.process_time() - begin,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024,
        "jobs": values["batch.jobs"] + values["service.jobs"],
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--days", type=int, choices=sorted(TARGETS), action="append")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--once", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.once:
        print(json.dumps(simulate(asked.once)))
        return
    hour = statistics.median(plain_hour() for _ in range(asked.runs))
    print(f"{'days':>4}{'jobs':>10}{'CPU s':>9}{'plain Python':>14}{'MiB':>7}   target")
    for days in asked.days or sorted(TARGETS):
        command = [sys.executable, __file__, "--once", str(days)]
        one_core = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        results = [
            json.loads(
                subprocess.run(command, env=one_core, check=True, stdout=subprocess.PIPE).stdout
            )
            for _ in range(asked.runs)
        ]
        seconds = statistics.median(result["seconds"] for result in results)
        megabytes = max(result["megabytes"] for result in results)
        met = seconds <= TARGETS[days] and megabytes <= MOST_MEGABYTES
        print(
            f"{days:>4}{results[0]['jobs']:>10,.0f}{seconds:>9.2f}{hour * 24 * days / seconds:>13.1f}x"
            f"{megabytes:>7,.0f}   {TARGETS[days]:g} s and {MOST_MEGABYTES:,} MB "
            f"{'met' if met else 'MISSED'}"
        )


if __name__ == "__main__":
    main()
