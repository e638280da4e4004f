"""A summary counted from the journal alone, held against the one of the world that wrote it."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import Any

import pytest

from argosy.engines.registry import ENGINES
from argosy.host.journal import Journal
from argosy.host.records import PlacedRecord, RefusedRecord, SubmittedRecord
from argosy.host.setup import HostSetup
from argosy.measures.from_journal import NOT_TOLD, sample_times, summarise_state
from argosy.measures.measure import summarise
from argosy.model.explanations import Why
from argosy.model.resources import Resources
from argosy.model.scenario import (
    ConstantLatency,
    MachineCrash,
    MachineDrain,
    MachineResize,
    Network,
    Scenario,
    SchedulerCrash,
)
from argosy.records.journal_file import JournalFile
from argosy.records.state import RunState
from argosy.records.steps import JournalSteps
from argosy.records.summary import Summary
from argosy.testing import conformance
from argosy.testing.builders import GIB, SECOND, cell, job, scenario, shared_job
from argosy.worlds.sim import SimulatedWorld

ALIKE = (
    *("scenario", "seed", "fleet", "ended_at", "counts", "wait_time", "placement_latency", "jct"),
    *("breakdown", "response_time", "timeline", "kinds", "owners", "speed_up"),
)
#: These hold slots for unanswered probes, which the journal does not contain.
PROBING = ("sparrow", "hawk", "eagle")


def both(spec: Scenario, *cancelled: int) -> tuple[Summary, Summary]:
    """The world's and the journal's summary; these jobs are cancelled after five seconds."""
    stream = io.BytesIO()
    journal = Journal(stream)
    world = SimulatedWorld(spec, ENGINES, journal)
    for number in cancelled:
        world.inject(5 * SECOND, lambda number=number: world.host.cancel(number))  # type: ignore[misc]
    world.run()
    journal.flush()
    counted = summarise_state(
        RunState.of(JournalFile(stream.getvalue()), until=world.host.runtime.now)
    )
    return summarise(world, ""), counted


def spec(engine: str, **fields: Any) -> Scenario:
    jobs = [
        *conformance.workload(50, spacing=0.1),
        job("web", 2, seconds=None, kind="service", owner="ann"),
        job("giant", 1, cpu=64_000, submit=1),
        shared_job("shared", 2, (7, 3), (1.0, 2.0), submit=2),
    ]
    faults = (
        MachineCrash(at=2 * SECOND, machine="m3", down=6 * SECOND),
        MachineDrain(at=3 * SECOND, machine="m4", lasts=SECOND),
        MachineResize(at=4 * SECOND, machine="m5", capacity=Resources(2_000, 8 * GIB)),
    )
    return scenario(engine, jobs, faults=faults, horizon=40 * SECOND, **fields)


@pytest.mark.parametrize(
    "engine",
    ["omega", "mapreduce", "mesos", "murmuration", "firmament", "sparrow", "eagle", "kube"],
)
def test_the_journal_says_what_the_world_says(engine: str) -> None:
    world, counted = both(spec(engine), 1, 2, 3)
    for name in ALIKE:
        assert getattr(counted, name) == getattr(world, name), name
    assert counted.counts.jobs_endless == 1
    assert counted.counts.tasks_cancelled or counted.counts.tasks_finished
    assert (counted.events, counted.network, counted.log_digest) == (0, {}, "")
    for ours, theirs in zip(counted.schedulers, world.schedulers, strict=True):
        assert (ours.name, ours.engine, ours.jobs) == (theirs.name, theirs.engine, theirs.jobs)
        assert (ours.conflicts, ours.refused) == (theirs.conflicts, theirs.refused)
    for name in ("at", "pending", "queued", "running"):
        assert counted.series[name] == world.series[name]
    if engine not in PROBING:
        assert counted.utilisation == pytest.approx(world.utilisation)
        for name in ("cpu", "memory"):
            assert counted.series[name] == pytest.approx(world.series[name])
    assert counted.left_out == [NOT_TOLD]


def test_a_machine_that_is_resized_while_it_is_away_does_not_count_until_it_is_back() -> None:
    faults = (
        MachineCrash(at=2 * SECOND, machine="m3", down=20 * SECOND),
        MachineResize(at=4 * SECOND, machine="m3", capacity=Resources(64_000, 256 * GIB)),
    )
    jobs = [job("web", 2, seconds=None, kind="service")]
    world, counted = both(scenario("omega", jobs, faults=faults, horizon=40 * SECOND))
    assert counted.utilisation == pytest.approx(world.utilisation)


def test_transactions_are_counted_by_instants() -> None:
    world, counted = both(spec("omega", replicas=1))
    assert counted.schedulers[0].transactions == world.schedulers[0].transactions
    assert counted.conflict_fraction == world.conflict_fraction
    assert counted.schedulers[0].busyness == pytest.approx(world.schedulers[0].busyness, rel=0.01)


@pytest.mark.parametrize("faults", [(), (SchedulerCrash(at=20 * SECOND, scheduler="s", down=1),)])
def test_a_decision_cut_short_counts_up_to_then(faults: tuple[SchedulerCrash, ...]) -> None:
    slow = {"t_lra": 60 * SECOND}
    jobs = [job(name, kind="service") for name in "abc"]
    made = scenario("jkube", jobs, replicas=1, settings=slow, faults=faults, horizon=45 * SECOND)
    world, counted = both(made)
    assert world.schedulers[0].busyness <= 1
    assert counted.schedulers[0].busyness == pytest.approx(world.schedulers[0].busyness, rel=0.01)


@pytest.mark.parametrize("minutes", [0, 1, 7, 60, 60 * 24])
def test_samples_are_even_and_few(minutes: int) -> None:
    times = sample_times(minutes * 60 * SECOND).tolist()
    assert times[0] == 0
    assert len(times) < 400
    assert len({after - before for before, after in pairwise(times)}) <= 1


def test_what_was_cancelled_is_counted_by_both() -> None:
    jobs = [job("web", 3, seconds=None), job("giant", 2, cpu=64_000), job("a", 1, seconds=2)]
    world, counted = both(scenario("omega", jobs, horizon=9 * SECOND), 0, 1, 2)
    assert world.counts == counted.counts
    assert (counted.counts.tasks_cancelled, counted.counts.tasks_finished) == (5, 1)


def test_conflicts_before_any_success_are_all_there_is() -> None:
    steps = JournalSteps(HostSetup.of(scenario("omega", [])))
    steps.read(SubmittedRecord(0, 0, job("a", 2).job, "s-0"))
    no_room = int(Why.NO_ROOM)
    steps.read(RefusedRecord(5, "a", [0, 1], [0, 1], "s-0", [no_room] * 2, [0] * 2, [1] * 2))
    steps.read(RefusedRecord(6, "a", [0], [0], "s-0", [int(Why.JOB_LIMIT)], [0], [1]))
    counted = summarise_state(RunState(steps, 10))
    assert counted.conflict_fraction == 1
    assert counted.schedulers[0].transactions == 2
    assert counted.schedulers[0].refused == {"no_room": 2, "job_limit": 1}


def test_conflicts_are_told_for_each_success() -> None:
    steps = JournalSteps(HostSetup.of(scenario("omega", [])))
    steps.read(SubmittedRecord(0, 0, job("a", 5).job, "s-0"))
    for at in range(5):
        steps.read(PlacedRecord(at, "a", [at], [at], f"s-{at % 2}"))
    for at, who in ((6, "s-0"), (7, "s-1")):
        steps.read(RefusedRecord(at, "a", [0], [0], who, [int(Why.NO_ROOM)], [0], [1]))
    counted = summarise_state(RunState(steps, 10))
    assert counted.conflict_fraction == 2 / 5
    assert [each.transactions for each in counted.schedulers] == [4, 3]
    assert [each.conflicts for each in counted.schedulers] == [1, 1]


def test_a_job_that_is_over_at_once_is_finished() -> None:
    settings = {"t_job": 0, "t_task": 0}
    network = Network(latency=ConstantLatency(delay=0))
    jobs = [job("a", 2, seconds=0, gang=True), job("b", 1, seconds=5)]
    for summary in both(
        scenario("omega", jobs, settings=settings, network=network, horizon=4 * SECOND)
    ):
        assert (summary.counts.jobs_finished, summary.counts.tasks_finished) == (1, 2)
        assert summary.kinds["batch"].jobs_finished == 1
        assert summary.wait_time.count == summary.placement_latency.count == 2
        assert (summary.jct.count, summary.jct.largest) == (1, 0)
        assert summary.breakdown == {"waiting": 0, "placing": 0, "running": 0}
    assert both(scenario("omega", jobs, settings=settings, network=network))[0].counts.gangs == 1


def test_nothing_has_happened_in_a_journal_without_time() -> None:
    steps = JournalSteps(HostSetup.of(scenario("omega", [])))
    counted = summarise_state(RunState(steps, 0))
    assert [each.busyness for each in counted.schedulers] == [0.0, 0.0]
    assert counted.utilisation == {"cpu": 0.0, "memory": 0.0}
    assert counted.series["at"] == [0]
    assert (counted.conflict_fraction, counted.speed_up) == (0, None)


def test_two_precedences_are_enough_to_be_passed_over() -> None:
    jobs = [
        job("first", 1, cpu=4_000, seconds=10),
        job("urgent", 1, cpu=4_000, seconds=10, submit=1, precedence=5),
        job("later", 1, cpu=4_000, seconds=10, submit=2),
    ]
    world, counted = both(scenario("sparrow", jobs, cell=cell(1), replicas=1))
    assert counted.counts.jobs_preceding == world.counts.jobs_preceding == 1
    assert counted.counts.jobs_passed_over == world.counts.jobs_passed_over
    equal = [job("a", 1), job("b", 1, submit=1)]
    assert both(scenario("sparrow", equal))[1].counts.jobs_preceding == 0
