"""Bounds on the work of a run: events, rounds, searches, arcs and calls of Python functions.

Work, unlike time, is the same on every computer, however busy. Each bound is a tenth to a quarter above
what the run takes; who exceeds one on purpose raises it and says why.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from argosy.cell import View
from argosy.engines.families.flow.policies.multi_dimensional import MultiDimensional
from argosy.engines.families.flow.policy import ArcCosts
from argosy.engines.families.flow.pricing import price_of, second_best
from argosy.engines.families.flow.scheduler import FlowScheduler
from argosy.engines.families.lra.reasons import unplaced
from argosy.engines.registry import ENGINES
from argosy.host.host import Host
from argosy.host.journal import Journal
from argosy.model.random import Random
from argosy.model.truth import SimulatedJob
from argosy.solvers.flow import FlowNetwork, FlowSolution
from argosy.solvers.flow.arrays import Numbers
from argosy.solvers.placement.heuristics import place
from argosy.testing.builders import cell, job, scenario
from argosy.worlds.sim import SimulatedWorld


def _crowd(count: int) -> list[SimulatedJob]:
    """Jobs of up to eight tasks in bursts: half of the time there are more than fit."""
    random = Random(5)
    return [
        job(
            f"j{number}",
            1 + random.below(8),
            cpu=(500, 1_000, 2_000)[random.below(3)],
            seconds=5 + random.below(30),
            submit=60 * (number // 100) + 0.1 * (number % 100),
        )
        for number in range(count)
    ]


@contextmanager
def _counting(*functions: Callable[..., Any]) -> Iterator[Counter[str]]:
    """Counts calls of these functions by name, and of all Python functions as `calls`."""
    codes = {function.__code__: function.__qualname__ for function in functions}
    counts: Counter[str] = Counter()

    def note(frame: FrameType, what: str, _: Any) -> None:
        if what == "call":
            counts["calls"] += 1
            if (name := codes.get(frame.f_code)) is not None:
                counts[name] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield counts
    finally:
        sys.setprofile(before)


def _work(
    engine: str,
    jobs: list[SimulatedJob],
    *functions: Callable[..., Any],
    machines: int = 30,
    has_journal: bool = True,
) -> Counter[str]:
    """What a run with the engine takes; also how many `events` its engines handle."""
    replicas = 1 if ENGINES[engine].capabilities.alone else 3
    spec = scenario(engine, jobs, cell=cell(machines), replicas=replicas, audit=False)
    world = SimulatedWorld(spec, ENGINES, Journal() if has_journal else None)
    with _counting(*functions) as counts:
        world.run()
    assert int(world.host.board.counts()[3]) == sum(made.tasks for made in jobs)
    counts["events"] = world.host.events
    return counts


CROWD = _crowd(200)
TASKS = sum(made.tasks for made in CROWD)


@pytest.mark.parametrize(
    ("engine", "events", "calls"),
    [
        ("omega", 3, 53),
        ("monolithic", 3, 47),
        ("mesos", 5, 186),
        ("spread", 5, 208),
        ("ilp-all", 3, 225),
        ("firmament", 6, 380),
        ("quincy", 6, 361),
        ("kube", 18, 450),
    ],
)
def test_a_job_that_finds_room_takes_so_many_events_and_calls(
    engine: str, events: int, calls: int
) -> None:
    counts = _work(engine, CROWD, machines=900, has_journal=False)
    assert counts["events"] <= events * len(CROWD) + 20
    assert counts["calls"] <= calls * len(CROWD)


@pytest.mark.parametrize(
    ("engine", "events", "calls"),
    [
        ("omega", 4.2, 94),
        ("monolithic", 2.8, 57),
        ("mesos", 2.6, 240),
        ("spread", 4.1, 118),
        ("ilp-all", 2.0, 600),
        ("firmament", 2.9, 187),
        ("quincy", 3.2, 201),
        ("kube", 7.4, 232),
    ],
)
def test_a_task_in_a_crowded_cell_takes_so_many_events_and_calls(
    engine: str, events: float, calls: int
) -> None:
    counts = _work(engine, CROWD)
    assert counts["events"] <= events * TASKS
    assert counts["calls"] <= calls * TASKS


def test_a_flow_scheduler_has_fewer_rounds_than_tasks_and_prices_few_of_them() -> None:
    counts = _work("firmament", CROWD, FlowScheduler._begin, second_best, price_of)
    assert counts["FlowScheduler._begin"] <= 0.85 * TASKS
    assert counts["second_best"] <= 0.55 * TASKS
    assert counts["price_of"] <= 0.95 * TASKS


@pytest.mark.parametrize(("engine", "posted"), [("kube", 5.3), ("firmament", 1.9)])
def test_an_end_that_comes_next_is_told_without_a_detour_over_the_clock(
    engine: str, posted: float
) -> None:
    counts = _work(engine, CROWD, Host.post)
    assert counts["Host.post"] <= posted * TASKS


def test_a_journal_that_is_read_during_the_run_adds_no_detours() -> None:
    class Timely(Journal):
        is_timely = True

    posted = []
    for journal in (Journal(), Timely()):
        spec = scenario("monolithic", CROWD, cell=cell(30), audit=False)
        with _counting(Host.post, Host.request) as counts:
            SimulatedWorld(spec, ENGINES, journal).run()
        posted.append((counts["Host.post"], counts["Host.request"]))
    assert posted[0] == posted[1]


def test_ends_during_a_pause_are_not_looked_at_one_by_one() -> None:
    counts = _work("firmament", CROWD, FlowScheduler._has_room)
    assert counts["FlowScheduler._has_room"] <= 0.5 * TASKS


def test_a_round_prices_only_the_machines_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all of them whenever other tasks wait than before."""
    pool_terms, priced = MultiDimensional.pool_terms, list[int]()

    def noted(self: MultiDimensional, requests: Numbers, machines: Numbers) -> ArcCosts:
        priced.append(len(machines))
        return pool_terms(self, requests, machines)

    monkeypatch.setattr(MultiDimensional, "pool_terms", noted)
    _work("firmament", CROWD)
    assert sum(priced) <= 2.5 * TASKS


def test_one_flow_in_sixteen_starts_from_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    solve, warm = FlowNetwork.solve, list[bool]()

    def noted(self: FlowNetwork, *args: Any, **options: Any) -> FlowSolution:
        warm.append(options.get("warm", True))
        return solve(self, *args, **options)

    monkeypatch.setattr(FlowNetwork, "solve", noted)
    _work("quincy", CROWD)
    assert warm.count(False) == -(-len(warm) // 16)


def test_applications_without_a_place_that_ask_for_the_same_share_an_explanation() -> None:
    counts = _work("ilp-all", CROWD, unplaced, place)
    assert counts["unplaced"] <= len(CROWD)
    assert counts["place"] <= 2.7 * len(CROWD)


def test_a_task_that_found_no_room_is_searched_for_only_where_something_changed() -> None:
    """Most find a machine among those in turn. If there are no victims, nobody searches for some."""
    counts = _work("kube", CROWD, View.find, View.evictable)
    assert counts["View.find"] <= 1.45 * TASKS
    assert not counts["View.evictable"]
