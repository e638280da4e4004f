"""What must not be held against an engine: each rule complains of a bare case, and is silent about it if
there is a good reason."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from argosy.campaign.recount import CampaignRule, Recount
from argosy.campaign.rules import (
    GangsStartTogether,
    HardConstraintsAreKept,
    LimitsAreKept,
    MachinesAreThere,
)
from argosy.campaign.waiting import (
    PATIENCE,
    JobsAreSubmitted,
    NoTaskIsForgotten,
    QueuesMove,
    TasksEnd,
    WaitingIsExplained,
)
from argosy.engines.registry import ENGINES
from argosy.host import records
from argosy.model.constraints.text import parse_constraint
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.jobs import task_number
from argosy.model.resources import Resources
from argosy.model.scenario import Scenario, SchedulerLimits, Takes
from argosy.model.transactions import DrainMachine, RemoveMachine, ReviveMachine
from argosy.model.truth import group_with_truth, simulated_job
from argosy.testing.builders import GIB, SECOND, cell, job, scenario

SAID = Explanation(remedy="wait")
APART = parse_constraint("a -> {a, 0, 0} in machine")
ALONE = parse_constraint("a -> {a, 0, 0} in machine hard")
NEXT = records.DueRecord(0, 1)
DRAINS = records.MachineRecord(0, DrainMachine(0))
DRAINS_LATER = records.MachineRecord(SECOND, DrainMachine(0))
CRASH = records.CrashedRecord(0, "s")
GONE = records.MachineRecord(0, RemoveMachine(0))
BACK = records.MachineRecord(0, ReviveMachine(0))


def world(engine: str = "omega", machines: int = 1, **fields: Any) -> Scenario:
    """A job of one task on one machine, under one scheduler."""
    made = job("a", **{"cpu": 4_000, "seconds": 10, **fields})
    return scenario(engine, [made], replicas=1, cell=cell(machines))


def with_entry(spec: Scenario, **fields: Any) -> Scenario:
    return structs.replace(spec, fleet=(structs.replace(spec.fleet[0], **fields),))


def found(
    rule: type[CampaignRule],
    spec: Scenario,
    *journal: records.JournalRecord,
    at: int = PATIENCE,
    is_exact: bool = True,
) -> dict[str, str]:
    """What the rule finds wrong at the end, after the first job was submitted at 0 and more happened."""
    recount = Recount(spec, ENGINES, is_exact=is_exact)
    submitted = records.SubmittedRecord(0, 0, spec.jobs[0].job, "s")
    made = rule(recount)
    recount.read([submitted, *journal], [made])
    recount.finish(at, [made])
    return {name: finding.kind for name, finding in recount.findings.items()}


def explained(explanation: Explanation = SAID, at: int = 0) -> records.JournalRecord:
    return records.ExplainedRecord(at, "a", [0], "s", explanation)


def placed(machine: int = 0, at: int = 0, indices: tuple[int, ...] = (0,)) -> records.PlacedRecord:
    return records.PlacedRecord(at, "a", list(indices), [machine] * len(indices), "s")


def lost(at: int) -> records.JournalRecord:
    return records.LostRecord(at, "a", [0], [0], "preempted")


def refused(why: Why | int) -> records.JournalRecord:
    return records.RefusedRecord(0, "a", [0], [0], "s", [int(why)], [0], [0])


def test_a_task_that_waits_without_a_word_is_held_against_its_engine() -> None:
    assert found(WaitingIsExplained, world()) == {"unexplained": "waiting"}
    assert found(WaitingIsExplained, world(), explained(Explanation())) != {}
    assert found(WaitingIsExplained, world(), refused(0)) != {}
    # What was said before it ran is no reason for waiting again.
    again = (explained(), placed(), lost(1))
    assert found(WaitingIsExplained, world(), *again, at=PATIENCE + 1) != {}
    abandoned = records.AbandonedRecord(0, "a", [0], "s", Explanation())
    assert found(WaitingIsExplained, world(), abandoned) == {"unexplained": "abandoned"}


@pytest.mark.parametrize(
    ("spec", "journal", "at"),
    [
        (world(), (), PATIENCE - 1),
        (world(), (explained(),), PATIENCE),
        (world(), (explained(), explained(Explanation())), PATIENCE),
        (world(), (refused(Why.NO_ROOM),), PATIENCE),
        (world(), (refused(Why.NO_ROOM), refused(0)), PATIENCE),
        (world(), (placed(),), PATIENCE),
        (world(), (placed(), lost(1)), PATIENCE),
        (world(), (CRASH,), PATIENCE),
        (world(), (CRASH, records.RestartedRecord(1, "s")), PATIENCE),
        (with_entry(world(), takes=Takes(kinds=("service",))), (), PATIENCE),
        (world(), (records.AbandonedRecord(0, "a", [0], "s", SAID),), PATIENCE),
    ],
)
def test_waiting_for_a_good_reason_needs_no_word(
    spec: Scenario, journal: tuple[records.JournalRecord, ...], at: int
) -> None:
    assert found(WaitingIsExplained, spec, *journal, at=at) == {}


def test_a_task_that_waits_beside_an_idle_machine_is_held_against_its_engine() -> None:
    for spec in (
        world(),
        world(tasks=2, machines=2),
        with_entry(world(), takes=Takes(kinds=("batch",))),
    ):
        assert found(NoTaskIsForgotten, spec, explained()) == {"forgotten": ""}
    drained = records.MachineRecord(0, DrainMachine(0, draining=False))
    assert found(NoTaskIsForgotten, world(), DRAINS, drained) == {"forgotten": ""}


def test_a_task_that_goes_first_is_a_reason_while_it_waits() -> None:
    first = Explanation(refused=Refusal(Why.BEHIND, task=task_number(1, 0)))
    spec = beside(world(machines=2), cpu=64_000)
    second = records.SubmittedRecord(0, 1, spec.jobs[1].job, "s")
    assert found(NoTaskIsForgotten, spec, second, explained(first)) == {}
    runs = records.PlacedRecord(0, "b", [0], [1], "s")
    assert found(NoTaskIsForgotten, spec, second, explained(first), runs) == {"forgotten": ""}
    # Of other refusals, the task is the one that was refused.
    full = Explanation(refused=Refusal(Why.NO_ROOM, task=task_number(1, 0)))
    assert found(NoTaskIsForgotten, spec, second, explained(full)) == {"forgotten": ""}


BUSY = (
    records.SubmittedRecord(0, 1, job("b").job, "s"),
    records.PlacedRecord(0, "b", [0], [0], "s"),
)
QUEUED = (BUSY[0], records.EnqueuedRecord(0, "b", [0], [1], "s"))


def beside(spec: Scenario, **fields: Any) -> Scenario:
    """With a second job."""
    return structs.replace(spec, jobs=(*spec.jobs, job("b", **fields)))


@pytest.mark.parametrize(
    ("spec", "journal", "at"),
    [
        (world(), (), PATIENCE - 1),
        (world(), (DRAINS,), PATIENCE),
        (world(), (records.MachineRecord(0, RemoveMachine(0)),), PATIENCE),
        (world(), (DRAINS_LATER, records.MachineRecord(2, DrainMachine(0, False))), PATIENCE),
        (world(), (CRASH,), PATIENCE),
        (world(), (CRASH, records.RestartedRecord(1, "s")), PATIENCE),
        (world(), (placed(), lost(1)), PATIENCE),
        (world(tasks=2), (), PATIENCE),
        (world(cpu=4_001), (), PATIENCE),
        (world(requires={"arch": "arm"}), (), PATIENCE),
        (world(gang=True), (), PATIENCE),
        (world(constraints=(APART,)), (), PATIENCE),
        (
            structs.replace(world(), cell=structs.replace(cell(1), constraints=(APART,))),
            (),
            PATIENCE,
        ),
        (world("partitioned"), (), PATIENCE),
        (with_entry(world(), limits=SchedulerLimits(jobs=9)), (), PATIENCE),
        (with_entry(world("firmament"), settings={"slots": 3}), (), PATIENCE),
        (with_entry(world(), takes=Takes(kinds=("service",))), (), PATIENCE),
        (beside(world()), BUSY, PATIENCE),
        (beside(world()), (*BUSY, records.LostRecord(1, "b", [0], [0], "preempted")), PATIENCE),
        (beside(world(machines=2)), QUEUED, PATIENCE),
        (beside(world(), constraints=(APART,)), (), PATIENCE),
    ],
)
def test_waiting_beside_an_idle_machine_may_have_a_good_reason(
    spec: Scenario, journal: tuple[records.JournalRecord, ...], at: int
) -> None:
    assert found(NoTaskIsForgotten, spec, *journal, at=at) == {}


def enqueued(*machines: int, at: int = 0) -> records.JournalRecord:
    if len(machines) > 1:
        return records.ProbedRecord(at, "a", [0], list(machines), "s")
    return records.EnqueuedRecord(at, "a", [0], list(machines), "s")


def test_a_task_that_is_queued_at_an_idle_machine_is_held_against_the_world() -> None:
    assert found(QueuesMove, world("yaq-c"), enqueued(0)) == {"stuck-queue": "queue"}
    probed = found(QueuesMove, world("sparrow", machines=2), enqueued(0, 1))
    assert probed == {"stuck-queue": "probe"}
    # Draining machines run what is queued there.
    assert found(QueuesMove, world("yaq-c"), enqueued(0), DRAINS) == {"stuck-queue": "queue"}


@pytest.mark.parametrize(
    ("spec", "journal", "at"),
    [
        (world(), (enqueued(0),), PATIENCE - 1),
        (world(), (enqueued(0, at=1),), PATIENCE),
        (world(cpu=4_001), (enqueued(0),), PATIENCE),
        (world(requires={"arch": "arm"}), (enqueued(0),), PATIENCE),
        (world(), (enqueued(0), records.MachineRecord(0, RemoveMachine(0))), PATIENCE),
        (beside(world()), (enqueued(0), *BUSY), PATIENCE),
        (beside(world("sparrow", machines=2)), (enqueued(0, 1), *BUSY), PATIENCE),
        (world(), (), PATIENCE),
    ],
)
def test_a_task_may_have_to_stay_in_its_queue(
    spec: Scenario, journal: tuple[records.JournalRecord, ...], at: int
) -> None:
    assert found(QueuesMove, spec, *journal, at=at) == {}


@pytest.mark.parametrize(("is_exact", "grace"), [(True, 0), (False, PATIENCE)])
def test_a_task_runs_as_long_as_the_scenario_says(is_exact: bool, grace: int) -> None:
    due = 10 * SECOND + grace
    assert found(TasksEnd, world(), placed(), at=due, is_exact=is_exact) == {}
    late = found(TasksEnd, world(), placed(), at=due + 1, is_exact=is_exact)
    assert late == {"running-time": "still running"}
    assert found(TasksEnd, world(seconds=None), placed(), at=due + 1, is_exact=is_exact) == {}
    assert found(TasksEnd, world(), at=due + 1, is_exact=is_exact) == {}


def test_each_group_of_a_job_runs_as_long_as_it_says() -> None:
    groups = [group_with_truth(2, Resources(100, GIB), (s * SECOND,)) for s in (10, 20)]
    spec = scenario("omega", [simulated_job("a", *groups)], replicas=1, cell=cell(1))
    recount = Recount(spec, ENGINES)
    recount.read([records.SubmittedRecord(0, 0, spec.jobs[0].job, "s")], [])
    times = [recount.running_time(task_number(0, index)) for index in range(5)]
    assert times == [10 * SECOND, 10 * SECOND, 20 * SECOND, 20 * SECOND, None]


def test_only_jobs_whose_time_has_come_must_have_been_submitted() -> None:
    spec = beside(world(), submit=5)
    assert found(JobsAreSubmitted, spec, at=5 * SECOND) == {}
    assert found(JobsAreSubmitted, spec, at=5 * SECOND + 1) == {"submissions": "missing"}
    submitted = records.SubmittedRecord(5 * SECOND, 1, spec.jobs[1].job, "s")
    assert found(JobsAreSubmitted, spec, submitted, at=6 * SECOND) == {}


EXACT = SchedulerLimits(resources=Resources(4_000, GIB), jobs=1, precedence=0)


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        (EXACT, ""),
        (SchedulerLimits(), ""),
        (SchedulerLimits(resources=Resources(0, GIB)), ""),
        (SchedulerLimits(resources=Resources(3_999, GIB)), "resources"),
        (SchedulerLimits(resources=Resources(4_000, GIB - 1)), "resources"),
        (SchedulerLimits(precedence=-1), "precedence"),
    ],
)
def test_a_limit_may_be_reached_and_not_exceeded(limits: SchedulerLimits, kind: str) -> None:
    told = found(LimitsAreKept, with_entry(world(), limits=limits), placed())
    assert told == ({"limits": kind} if kind else {})
    # Engines that queue are not bound by limits for claims.
    queueing = with_entry(world("sparrow"), limits=limits)
    assert found(LimitsAreKept, queueing, placed()) == {}


def test_one_beyond_its_limit_is_found_beside_one_that_queues() -> None:
    spec = beside(world(cpu=1_000))
    strict = structs.replace(spec.fleet[0], limits=SchedulerLimits(precedence=-1))
    queueing = structs.replace(spec.fleet[0], name="q", engine="sparrow")
    mixed = structs.replace(spec, fleet=(strict, queueing))
    second = records.SubmittedRecord(0, 1, spec.jobs[1].job, "q")
    first = records.PlacedRecord(0, "b", [0], [0], "q")
    assert found(LimitsAreKept, mixed, second, first, placed()) == {"limits": "precedence"}


def test_only_mesos_has_a_limit_for_each_kind_of_job() -> None:
    for engine, told in (("mesos", {}), ("omega", {"limits": "jobs"})):
        spec = beside(world(engine, cpu=1_000), kind="service")
        second = records.SubmittedRecord(0, 1, spec.jobs[1].job, "s")
        both = (placed(), second, records.PlacedRecord(0, "b", [0], [0], "s"))
        one_job = with_entry(spec, limits=SchedulerLimits(jobs=1))
        assert found(LimitsAreKept, one_job, *both) == told


def started(machine: int, at: int) -> records.JournalRecord:
    return records.StartedRecord(at, [task_number(0, 0)], [machine])


@pytest.mark.parametrize(
    ("engine", "journal", "kind"),
    [
        ("omega", (DRAINS_LATER, placed(at=SECOND)), ""),
        ("omega", (DRAINS_LATER, placed(at=SECOND + 1)), "draining"),
        ("sparrow", (DRAINS_LATER, placed(at=SECOND + 1)), ""),
        ("omega", (records.MachineRecord(0, RemoveMachine(0)), placed()), "gone"),
        ("yaq-c", (enqueued(0), DRAINS_LATER, started(0, 5 * SECOND)), ""),
        ("yaq-c", (DRAINS, enqueued(0, at=60 * SECOND), started(0, 61 * SECOND)), ""),
        (
            "yaq-c",
            (DRAINS, enqueued(0, at=60 * SECOND + 1), started(0, 61 * SECOND)),
            "draining, and it was sent there long afterwards",
        ),
        (
            "yaq-c",
            (DRAINS, DRAINS_LATER, enqueued(0, at=60 * SECOND + 1), started(0, 61 * SECOND)),
            "draining, and it was sent there long afterwards",
        ),
        ("yaq-c", (enqueued(1), DRAINS, started(0, SECOND)), "draining, and stole it"),
        # A crash ends the draining, and a machine that is gone does not drain.
        ("omega", (DRAINS, GONE, BACK, placed(at=SECOND)), ""),
        ("omega", (GONE, DRAINS, BACK, placed(at=SECOND)), ""),
    ],
)
def test_draining_machines_may_only_run_what_was_theirs(
    engine: str, journal: tuple[records.JournalRecord, ...], kind: str
) -> None:
    told = found(MachinesAreThere, world(engine, machines=2), *journal)
    assert told == ({"machine-state": kind} if kind else {})


def test_a_running_task_is_lost_where_it_runs() -> None:
    for machine, told in ((0, {}), (-1, {}), (1, {"task-steps": "running, then lost elsewhere"})):
        gone = records.LostRecord(1, "a", [0], [machine], "machine gone")
        assert found(TasksEnd, world(machines=2), placed(), gone) == told


def test_a_gang_starts_together_once() -> None:
    spec = world(tasks=3, gang=True, cpu=1_000)
    assert found(GangsStartTogether, spec, placed(indices=(0, 1))) == {"gang": ""}
    whole = placed(indices=(0, 1, 2))
    assert found(GangsStartTogether, spec, whole, NEXT, lost(1), placed(at=1)) == {}


def test_hard_constraints_are_one_schedulers_to_keep_and_moves_are_not_judged() -> None:
    spec = world("medea", machines=3, tasks=3, cpu=1_000, tags=("a",), constraints=(ALONE,))
    together = placed(indices=(0, 1))
    assert found(HardConstraintsAreKept, spec, together) == {"hard-constraint": ""}
    assert found(HardConstraintsAreKept, with_entry(spec, replicas=2), together) == {}
    apart = (placed(0), placed(1, indices=(1,)), NEXT)
    beside_it = placed(0, indices=(2,))
    assert found(HardConstraintsAreKept, spec, *apart, beside_it) == {"hard-constraint": ""}
    # What a move was to make room for cannot be told.
    assert found(HardConstraintsAreKept, spec, *apart, placed(2, indices=(1,)), beside_it) == {}
