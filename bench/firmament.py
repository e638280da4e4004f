"""The whole engine at the paper's scale, against the Firmament paper's figures. Run by hand:

    python bench/firmament.py                 about a minute
    python bench/firmament.py --only short    one of replay, faster, short

A workload shaped like the Google trace (`argosy.papers.firmament.workload`) on 12,500 machines with
150,000 tasks that run and 90 % of the slots in use, Quincy's policy with local data. Decisions take
the processor time that the engine really uses; prices as explanations are off (`explain_arcs = 0`),
and nothing else takes time. So placement latency is the wait for the round before and the round
itself. `faster` is the same, 300 times as fast. `short` looks for the shortest tasks with which
jobs of ten at 80 % utilisation still take at most 1.5 times as long as alone, on one slot a
machine: the breaking point of section 7.4.
"""

from __future__ import annotations

import argparse

from argosy.papers.experiment import ExperimentPoint
from argosy.papers.firmament.claims import BREAKS, NEAR_IDEAL
from argosy.papers.firmament.replays import short_tasks
from argosy.papers.firmament.workload import DATA, Load
from argosy.papers.firmament.world import replay

SETTINGS = {"policy": "quincy", "data": DATA, "explain_arcs": 0}
#: Of the paper, in seconds.
PAPER_MEDIAN = 0.2


def bench_replay(
    machines: int, speed_up: float, seconds: float, median_ms: float, p99_ms: float
) -> None:
    load = Load(machines=machines, slots=40 / 3, seconds=seconds, speed_up=speed_up)
    done = replay(load, SETTINGS)
    p50, p99 = (1_000 * done.percentile(share) for share in (50, 99))
    print(
        f"{machines:,} machines, {load.live:,} tasks, {speed_up:g}x: {done.arrived:,} tasks arrive in "
        f"{seconds:g} s, {done.placed / max(1, done.arrived):.1%} placed, "
        f"{done.rounds} rounds, busy {done.busy:.1%}"
    )
    print(
        f"  placement latency: median {p50:.1f} ms (at most {median_ms:g}), "
        f"p99 {p99:.1f} ms (at most {p99_ms:g}); {1_000 * PAPER_MEDIAN / max(p50, 1e-3):.0f}x below "
        "the paper's hundreds of milliseconds"
    )


def bench_short(machines: int, jobs: int) -> None:
    paper = BREAKS[machines]
    shortest = None
    for divisor in (1, 2, 5, 10, 20, 50):
        milliseconds = paper / divisor
        parameters = {"machines": machines, "slots": 1, "milliseconds": milliseconds, "jobs": jobs}
        point = ExperimentPoint(
            paper="firmament", figure="17", parameters=parameters, seed=1, scale="full"
        )
        ratio = short_tasks(point)["p50"]
        print(f"  {machines:,} machines, {milliseconds:g} ms: {ratio:.2f}x as long as alone")
        if ratio > NEAR_IDEAL:
            break
        shortest = milliseconds
    if shortest is None:
        print(f"{machines:,} machines: not even the paper's {paper:g} ms")
    else:
        below = f"{paper / shortest:g}x below the paper's {paper:g} ms"
        print(f"{machines:,} machines: {shortest:g} ms, {below}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", choices=("replay", "faster", "short"))
    parser.add_argument("--machines", type=int, default=12_500)
    told = parser.parse_args()
    if told.only in (None, "replay"):
        bench_replay(told.machines, 1.0, 60.0, 20.0, 200.0)
    if told.only in (None, "faster"):
        bench_replay(told.machines, 300.0, 5.0, 1_000.0, 10_000.0)
    if told.only in (None, "short"):
        for machines, jobs in ((100, 2_000), (1_000, 2_000), (10_000, 4_000)):
            bench_short(machines, jobs)


if __name__ == "__main__":
    main()
