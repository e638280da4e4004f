"""How much work a job costs, counted in calls and events: a slowdown fails here without being timed.

Counts depend on nothing but the code. A bound is a tenth above the count when it was set. If a change
needs more calls for a good reason, raise it; if it needs far fewer, lower it.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from argosy.engines.registry import ENGINES
from argosy.host.journal import Journal
from argosy.model.random import Random
from argosy.model.scenario import FleetEntry, Output, Scenario
from argosy.testing.builders import GIB, cell, job
from argosy.worlds.sim import SimulatedWorld

JOBS = 400


class CallCounter:
    """Counts calls of Python functions, and of all functions, while it is active."""

    def __init__(self) -> None:
        self.python = 0
        self.all = 0

    def __enter__(self) -> CallCounter:
        sys.setprofile(self._count)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _count(self, frame: FrameType, event: str, argument: Any) -> None:
        self.python += event == "call"
        self.all += event in ("call", "c_call")


def world(engine: str, jobs: int, *, log: bool = False) -> SimulatedWorld:
    random = Random(1)
    spec = Scenario(
        name="work",
        seed=1,
        cell=cell(100, cpu=16_000, memory=64 * GIB),
        jobs=tuple(
            job(f"j{i}", 1 + random.below(4), seconds=1 + random.below(60), submit=i * 0.2)
            for i in range(jobs)
        ),
        fleet=(FleetEntry(name="s", engine=engine, replicas=3),),
        output=Output(log="replayable" if log else "none", tasks=False),
    )
    return SimulatedWorld(spec, {engine: ENGINES[engine]}, Journal() if log else None)


def calls_per_job(engine: str, *, log: bool) -> tuple[float, float]:
    """Calls of Python functions, and of all functions, that another job costs."""
    # The difference of two runs is free of what every run costs once.
    counts = []
    for jobs in (JOBS, 2 * JOBS):
        run = world(engine, jobs, log=log)
        with CallCounter() as counter:
            run.run()
        assert run.host.board.counts()[3] == sum(run.host.jobs.counts)
        counts.append(counter)
    fewer, more = counts
    return (more.python - fewer.python) / JOBS, (more.all - fewer.all) / JOBS


@pytest.mark.parametrize(
    ("engine", "log", "python", "all_calls"),
    [
        ("omega", False, 51, 100),
        ("omega", True, 72, 139),
        ("murmuration", False, 56, 104),
        ("murmuration", True, 67, 129),
        ("sparrow", False, 56, 129),
    ],
)
def test_a_job_costs_no_more_calls_than_it_did(
    engine: str, log: bool, python: float, all_calls: float
) -> None:
    world(engine, 10, log=log).run()  # whatever is made once and kept
    found = calls_per_job(engine, log=log)
    assert found[0] <= python, f"{found[0]:.1f} calls of Python functions a job"
    assert found[1] <= all_calls, f"{found[1]:.1f} calls of any functions a job"


@pytest.mark.parametrize(("engine", "events"), [("omega", 3), ("murmuration", 2), ("sparrow", 1)])
def test_a_job_costs_no_more_events_than_it_did(engine: str, events: int) -> None:
    """`omega` hears of the job, of the end of its decision time and of its commit."""
    found = []
    for jobs in (JOBS, 2 * JOBS):
        run = world(engine, jobs)
        run.run()
        found.append(run.host.events)
    # Schedulers that gossip also compare what they know, now and then.
    assert found[1] - found[0] <= 1.05 * events * JOBS
