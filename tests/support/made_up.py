"""Summaries made up for tests of reports."""

from __future__ import annotations

from argosy.records.summary import (
    Counts,
    Distribution,
    Placement,
    SchedulerSummary,
    Summary,
    Use,
)
from argosy.report.metrics import find_metric


def spread(mean: float) -> Distribution:
    return Distribution(100, mean, 0.8 * mean, 2 * mean, 4 * mean, 5 * mean)


def summary(
    fleet: str = "omega x2",
    *,
    seed: int = 1,
    jct: float = 10e6,
    wait: float = 1e6,
    finished: int = 100,
) -> Summary:
    return Summary(
        scenario="made-up",
        seed=seed,
        fleet=fleet,
        ended_at=3_600_000_000,
        counts=Counts(
            jobs=100,
            jobs_finished=finished,
            tasks=1000,
            tasks_finished=10 * finished,
            tasks_running=0,
            tasks_queued=0,
            tasks_pending=1000 - 10 * finished,
            tasks_abandoned=0,
            preemptions=0,
            losses=0,
        ),
        wait_time=spread(wait),
        placement_latency=spread(2 * wait),
        jct=spread(jct) if finished else Distribution(),
        response_time=spread(jct / 2),
        breakdown={"waiting": wait, "placing": wait, "running": jct - 2 * wait} if finished else {},
        utilisation={"cpu": 0.61, "memory": 0.4},
        placement=Placement(
            looks=33, mean=Use(concerned=10.0, violating=2.0, imbalance={"cpu": 0.5}), end=Use()
        ),
        conflict_fraction=0.25,
        network={"sent": 1500, "lost": 7},
        schedulers=tuple(
            SchedulerSummary(
                name=f"omega-{number}",
                engine="omega",
                jobs=50,
                busyness=0.3,
                transactions=60,
                conflicts=12,
                refused={"no_room": 30},
                messages_sent=600,
                crashes=0,
            )
            for number in range(2)
        ),
        events=5000,
        log_digest="0" * 64,
        series={},
    )


def runs_of(**jcts: list[float]) -> dict[str, list[Summary]]:
    return {
        engine: [summary(engine, seed=seed, jct=value) for seed, value in enumerate(values)]
        for engine, values in jcts.items()
    }


JCT = find_metric("jct")
