"""Every check notices what it is for, in journals that were tampered with."""

import io
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from argosy.campaign.findings import CHECKS
from argosy.campaign.recount import Where
from argosy.campaign.trial import _compare_counts, judge
from argosy.campaign.worlds import WORLDS, WorldRecording
from argosy.engines.registry import ENGINES
from argosy.host import records
from argosy.model.constraints.text import parse_constraint
from argosy.model.explanations import Explanation
from argosy.model.jobs import job_of
from argosy.model.machine_model import MachineModel, Steal
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import (
    CellSpec,
    FleetEntry,
    MachineCrash,
    Scenario,
    SchedulerLimits,
)
from argosy.model.transactions import DrainMachine, RemoveMachine, ResizeMachine
from argosy.records.journal_file import JournalFile
from argosy.testing.builders import SECOND, cell, job, scenario

HORIZON = 600 * SECOND
Change = Callable[[records.JournalRecord], list[records.JournalRecord]]


def recorded(spec: Scenario, world: str = "simulated") -> WorldRecording:
    return WORLDS[world].run(spec, ENGINES)


def tampered(recording: WorldRecording, change: Change) -> WorldRecording:
    """The recording with each record replaced by what `change` makes of it."""
    stream = io.BytesIO()
    for record in JournalFile(recording.journal).records():
        for made in change(record):
            stream.write(msgspec.json.encode(made) + b"\n")
    return msgspec.structs.replace(recording, journal=stream.getvalue(), counts=None)


def kinds(spec: Scenario, recording: WorldRecording, **options: bool) -> dict[str, str]:
    """What is found, but for the replay, which no tampered journal survives."""
    found = judge(spec, ENGINES, recording, **options)
    return {finding.check: finding.kind for finding in found if finding.check != "replay"}


def replace(record: records.JournalRecord, **fields: object) -> list[records.JournalRecord]:
    return [msgspec.structs.replace(record, **fields)]


def only(kind: type, change: Change) -> Change:
    """`change` for records of one kind, others as they are."""
    return lambda record: change(record) if isinstance(record, kind) else [record]


@pytest.fixture(scope="module")
def plain() -> Scenario:
    """Omega with room for all."""
    jobs = [
        job("a", 4, cpu=3_000, seconds=10),
        job("b", 2, seconds=5, submit=1, kind="service"),
        job("gang", 3, seconds=5, submit=2, gang=True),
    ]
    return scenario("omega", jobs, replicas=1, horizon=HORIZON)


@pytest.fixture(scope="module")
def queued() -> Scenario:
    """Murmuration: tasks start from queues."""
    jobs = [job("a", 12, cpu=4_000, seconds=10), job("b", 2, seconds=5, submit=1)]
    return scenario("murmuration", jobs, replicas=1, horizon=HORIZON)


@pytest.mark.parametrize("world", WORLDS)
def test_nothing_is_wrong_with_what_is_right(plain: Scenario, queued: Scenario, world: str) -> None:
    is_exact = WORLDS[world].is_exact
    for spec in (plain, queued):
        assert judge(spec, ENGINES, recorded(spec, world), is_exact=is_exact) == []


@pytest.mark.parametrize("world", WORLDS)
def test_a_run_ends_with_its_last_task_or_at_its_horizon(world: str) -> None:
    for seconds in (5, None):
        made = job("a", seconds=seconds, kind="service" if seconds is None else "batch")
        ended = recorded(scenario("omega", [made], replicas=1, horizon=HORIZON), world).ended_at
        assert ended == HORIZON if seconds is None else 5 * SECOND <= ended < 60 * SECOND


def test_a_machine_with_too_many_tasks_is_noticed(plain: Scenario) -> None:
    crowded = tampered(
        recorded(plain),
        only(records.PlacedRecord, lambda r: replace(r, machines=[0] * len(r.machines))),
    )
    assert kinds(plain, crowded)["oversubscribed"] == "capacity"


@pytest.mark.parametrize("resource", ["cpu", "memory", "gpu"])
def test_every_resource_is_recounted(resource: str) -> None:
    request = Resources(1_000, 1_000, {"gpu": 1})
    machine = Machine("m", Resources(2_000, 2_000, {"gpu": 2}))
    spec = scenario(
        "omega", [job("a", 2, request=request)], replicas=1, cell=CellSpec(machines=(machine,))
    )
    recording = recorded(spec)
    assert kinds(spec, recording) == {}
    amounts = {"cpu": 2_000, "memory": 2_000, "gpu": 2, resource: 1}
    small = Resources(amounts["cpu"], amounts["memory"], {"gpu": amounts["gpu"]})
    smaller = msgspec.structs.replace(machine, capacity=small)
    cell = CellSpec(machines=(smaller,))
    assert kinds(msgspec.structs.replace(spec, cell=cell), recording) == {
        "oversubscribed": "capacity"
    }


def test_tasks_that_outlive_their_machine_are_noticed(plain: Scenario) -> None:
    spec = msgspec.structs.replace(plain, faults=(MachineCrash(at=3 * SECOND, machine="m0"),))
    recording = recorded(spec)
    assert kinds(spec, recording) == {}
    kept = tampered(recording, only(records.LostRecord, lambda r: []))
    if kept.journal == recording.journal:
        pytest.fail("the crash hit nothing")
    assert kinds(spec, kept)["oversubscribed"] == "gone"


def test_a_machine_that_shrinks_must_evict(plain: Scenario) -> None:
    def resized(record: records.EndedRecord) -> list[records.JournalRecord]:
        changes = [ResizeMachine(machine, Resources()) for machine in range(8)]
        return [*(records.MachineRecord(record.at, change) for change in changes), record]

    shrunk = tampered(recorded(plain), only(records.EndedRecord, resized))
    assert kinds(plain, shrunk)["oversubscribed"] == "capacity"


def without_attributes(spec: Scenario) -> Scenario:
    """The same scenario, but no machine has the attribute that tasks got in the other."""
    machines = tuple(msgspec.structs.replace(m, attributes={}) for m in spec.cell.machines)
    cell = msgspec.structs.replace(spec.cell, machines=machines)
    return msgspec.structs.replace(spec, cell=cell)


@pytest.mark.parametrize(("engine", "how"), [("omega", "claimed"), ("murmuration", "queued")])
def test_a_missing_attribute_is_noticed_however_the_task_came_there(engine: str, how: str) -> None:
    bare = scenario(engine, [job("a", 3, requires={"disk": "ssd"})], replicas=1, horizon=HORIZON)
    machines = tuple(
        msgspec.structs.replace(m, attributes={"disk": "ssd"}) for m in bare.cell.machines
    )
    spec = msgspec.structs.replace(bare, cell=msgspec.structs.replace(bare.cell, machines=machines))
    recording = recorded(spec)
    assert kinds(spec, recording) == {}
    assert kinds(without_attributes(spec), recording) == {"requires": how}


def test_stolen_and_moved_tasks_are_told_from_others() -> None:
    spec = scenario("murmuration", [job("a", 1, requires={"disk": "ssd"})], replicas=1)
    bare = msgspec.structs.replace(spec, horizon=HORIZON)
    with_disk = tuple(
        msgspec.structs.replace(m, attributes={"disk": "ssd"}) if n else m
        for n, m in enumerate(bare.cell.machines)
    )
    spec = msgspec.structs.replace(
        bare, cell=msgspec.structs.replace(bare.cell, machines=with_disk)
    )
    recording = recorded(spec)
    stolen = tampered(recording, only(records.StartedRecord, lambda r: replace(r, machines=[0])))
    assert kinds(spec, stolen) == {"requires": "stolen"}

    def moved(record: records.JournalRecord) -> list[records.JournalRecord]:
        if isinstance(record, records.EndedRecord):
            due = records.DueRecord(record.at, 1)
            return [due, records.PlacedRecord(record.at, "a", [0], [0], "s"), record]
        return [record]

    assert kinds(spec, tampered(recording, moved))["requires"] == "moved"


def test_half_a_gang_is_noticed(plain: Scenario) -> None:
    def first_two(record: records.PlacedRecord) -> list[records.JournalRecord]:
        if record.job != "gang":
            return [record]
        later = msgspec.structs.replace(record, indices=record.indices[2:], machines=[7])
        first = msgspec.structs.replace(
            record, indices=record.indices[:2], machines=record.machines[:2]
        )
        return [first, records.DueRecord(record.at, 1), later]

    split = tampered(recorded(plain), only(records.PlacedRecord, first_two))
    assert kinds(plain, split) == {"gang": ""}


def test_a_broken_hard_constraint_is_noticed() -> None:
    apart = parse_constraint("web -> {web, 0, 0} in machine hard")
    made = job("a", 3, seconds=None, kind="service", tags=("web",), constraints=(apart,))
    spec = scenario("medea", [made], replicas=1, horizon=HORIZON)
    recording = recorded(spec)
    assert kinds(spec, recording) == {}
    together = tampered(
        recording, only(records.PlacedRecord, lambda r: replace(r, machines=[0] * 3))
    )
    assert kinds(spec, together) == {"hard-constraint": ""}
    by_omega = (FleetEntry(name="s", engine="omega"),)
    # Whoever does not claim to follow constraints is not held to them.
    assert kinds(msgspec.structs.replace(spec, fleet=by_omega), together) == {}


@pytest.mark.parametrize(
    ("change", "kind"), [(DrainMachine(0), "draining"), (RemoveMachine(0), "gone")]
)
def test_a_claim_on_a_machine_that_takes_none_is_noticed(
    plain: Scenario, change: object, kind: str
) -> None:
    def early(record: records.JournalRecord) -> list[records.JournalRecord]:
        if isinstance(record, records.SubmittedRecord) and record.number == 0:
            return [records.MachineRecord(0, change), record]  # type: ignore[arg-type]
        if isinstance(record, records.PlacedRecord) and record.job == "b":
            return replace(record, machines=[0, 1])
        return [record]

    assert kinds(plain, tampered(recorded(plain), early))["machine-state"] == kind


def test_draining_machines_run_their_queue_and_steal_nothing(queued: Scenario) -> None:
    recording = recorded(queued)

    def drained(*, steals: bool) -> Change:
        def change(record: records.JournalRecord) -> list[records.JournalRecord]:
            if isinstance(record, records.EnqueuedRecord):
                machines = range(8)
                drains = [records.MachineRecord(record.at, DrainMachine(n)) for n in machines]
                return [record, *drains]
            if isinstance(record, records.StartedRecord) and steals and record.at > 9 * SECOND:
                return replace(record, machines=[n ^ 1 for n in record.machines])
            return [record]

        return change

    assert kinds(queued, tampered(recording, drained(steals=False))) == {}
    stolen = kinds(queued, tampered(recording, drained(steals=True)))
    assert stolen["machine-state"] == "draining, and stole it"


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        (SchedulerLimits(resources=Resources(4_000)), "resources"),
        (SchedulerLimits(jobs=1), "jobs"),
        (SchedulerLimits(precedence=-1), "precedence"),
    ],
)
def test_a_limit_that_is_not_kept_is_noticed(
    plain: Scenario, limits: SchedulerLimits, kind: str
) -> None:
    fleet = (msgspec.structs.replace(plain.fleet[0], limits=limits),)
    assert kinds(msgspec.structs.replace(plain, fleet=fleet), recorded(plain)) == {"limits": kind}


def test_a_task_that_ends_without_having_run_is_noticed(plain: Scenario) -> None:
    found = kinds(plain, tampered(recorded(plain), only(records.PlacedRecord, lambda r: [])))
    assert found["task-steps"] == "pending, then ended"


@pytest.mark.parametrize("is_exact", [True, False])
def test_a_task_that_never_ends_is_noticed(plain: Scenario, is_exact: bool) -> None:
    endless = tampered(recorded(plain), only(records.EndedRecord, lambda r: []))
    endless = msgspec.structs.replace(endless, ended_at=HORIZON)
    assert kinds(plain, endless, is_exact=is_exact) == {"running-time": "still running"}


def test_a_task_that_ends_twice_is_noticed(plain: Scenario) -> None:
    twice = tampered(recorded(plain), only(records.EndedRecord, lambda r: [r, r]))
    assert kinds(plain, twice)["task-steps"] == "finished, then ended"


def test_a_task_that_is_lost_where_it_did_not_run_is_noticed(plain: Scenario) -> None:
    crash = MachineCrash(at=5 * SECOND, machine="m0", down=SECOND)
    spec = msgspec.structs.replace(plain, faults=(crash,), cell=cell(3))
    recording = recorded(spec)
    assert kinds(spec, recording) == {}
    elsewhere = only(records.LostRecord, lambda r: replace(r, machines=[m + 1 for m in r.machines]))
    found = kinds(spec, tampered(recording, elsewhere))
    assert found["task-steps"] == "running, then lost elsewhere"


def test_a_task_that_ends_too_late_is_noticed(plain: Scenario) -> None:
    late = tampered(recorded(plain), only(records.EndedRecord, lambda r: replace(r, at=r.at + 1)))
    assert kinds(plain, late) == {"running-time": "ended"}
    assert kinds(plain, late, is_exact=False) == {}


def test_a_job_that_is_submitted_otherwise_is_noticed(plain: Scenario) -> None:
    recording = recorded(plain)
    later = tampered(recording, only(records.SubmittedRecord, lambda r: replace(r, at=r.at + 1)))
    assert kinds(plain, later) == {"submissions": "time"}
    other = msgspec.structs.replace(plain, jobs=(job("a", 3, cpu=3_000), *plain.jobs[1:]))
    assert kinds(other, recording)["submissions"] == "specification"
    more = msgspec.structs.replace(plain, jobs=(*plain.jobs, job("more", submit=3)))
    assert kinds(more, recording) == {"submissions": "missing"}


def test_a_world_that_counts_otherwise_is_noticed(plain: Scenario) -> None:
    recording = recorded(plain)
    assert recording.counts is not None
    assert recording.counts[Where.FINISHED] == 9
    wrong = recording.counts | {Where.FINISHED: 8, Where.RUNNING: 1}
    assert "miscounted" in kinds(plain, msgspec.structs.replace(recording, counts=wrong))


def test_waiting_without_a_word_is_noticed() -> None:
    spec = scenario("omega", [job("giant", cpu=64_000)], replicas=1, horizon=HORIZON)
    recording = recorded(spec)
    assert kinds(spec, recording) == {}
    silent = tampered(recording, only(records.ExplainedRecord, lambda r: []))
    assert kinds(spec, silent) == {"unexplained": "waiting"}


def test_giving_up_without_a_word_is_noticed() -> None:
    jobs = [job("giant", cpu=64_000)]
    spec = scenario("omega", jobs, replicas=1, horizon=HORIZON, settings={"attempts": 2})
    recording = recorded(spec)
    assert kinds(spec, recording) == {}
    silent = tampered(
        recording,
        only(records.AbandonedRecord, lambda r: replace(r, explanation=Explanation())),
    )
    assert kinds(spec, silent) == {"unexplained": "abandoned"}


def about_a(record: records.JournalRecord) -> bool:
    """Whether it is a step of a task of the first job."""
    if isinstance(record, records.EndedRecord | records.StartedRecord):
        return all(task < 2**32 for task in record.tasks)
    return isinstance(record, records.PlacedRecord) and record.job == "a"


def test_a_task_that_waits_beside_an_idle_machine_is_noticed(plain: Scenario) -> None:
    forgotten = tampered(recorded(plain), lambda r: [] if about_a(r) else [r])
    assert "forgotten" in kinds(plain, msgspec.structs.replace(forgotten, ended_at=HORIZON))


def test_a_task_may_wait_beside_an_idle_machine_behind_one_that_goes_first() -> None:
    jobs = [job("giant", cpu=64_000, precedence=1), job("small", submit=1)]
    settings = {"retry": 0, "attempts": 1_000_000}
    spec = scenario("kube", jobs, replicas=1, horizon=HORIZON, settings=settings)
    recording = recorded(spec)
    assert kinds(spec, recording) == {}
    vague = Explanation(remedy="more room")
    told = tampered(
        recording, only(records.ExplainedRecord, lambda r: replace(r, explanation=vague))
    )
    assert kinds(spec, told) == {"forgotten": ""}


def test_a_queue_that_stands_still_is_noticed(queued: Scenario) -> None:
    stuck = tampered(recorded(queued), lambda r: [] if about_a(r) else [r])
    found = kinds(queued, msgspec.structs.replace(stuck, ended_at=HORIZON))
    assert found["stuck-queue"] == "queue"


@pytest.mark.parametrize("busy", [0, 1])
def test_probes_that_stand_still_are_noticed_unless_a_machine_of_theirs_is_busy(busy: int) -> None:
    jobs = [job("a", seconds=10, submit=2)]
    if busy:
        jobs.append(job("long", busy, cpu=3_000, seconds=3_600))
    spec = scenario("sparrow", jobs, replicas=1, cell=cell(2), horizon=HORIZON)
    number = len(jobs) - 1  # Jobs are numbered as they come, and this one comes last.

    def without_a(record: records.JournalRecord) -> list[records.JournalRecord]:
        if isinstance(record, records.EndedRecord | records.StartedRecord):
            return [] if all(job_of(task) == number for task in record.tasks) else [record]
        return [record]

    stuck = tampered(recorded(spec), without_a)
    found = kinds(spec, msgspec.structs.replace(stuck, ended_at=HORIZON))
    assert ("stuck-queue" in found) == (not busy)


def test_a_journal_whose_decisions_do_not_follow_is_noticed(plain: Scenario) -> None:
    other = tampered(
        recorded(plain), only(records.PlacedRecord, lambda r: replace(r, scheduler="s"))
    )
    assert judge(plain, ENGINES, other) == []
    moved = tampered(
        recorded(plain),
        only(
            records.PlacedRecord, lambda r: replace(r, machines=[(n + 1) % 8 for n in r.machines])
        ),
    )
    assert [finding.check for finding in judge(plain, ENGINES, moved)] == ["replay"]


def test_stealing_is_judged_by_the_same_rules() -> None:
    """A real run with stealing, in which every rule holds."""
    jobs = [job("long", 6, cpu=4_000, seconds=60), job("short", 20, seconds=1, submit=1)]
    model = MachineModel(steal=Steal())
    spec = scenario("sparrow", jobs, replicas=2, horizon=HORIZON, machines=model)
    assert kinds(spec, recorded(spec)) == {}


#: No single journal shows these: the tests of whole campaigns have engines that fail the first four, and
#: those of the local world have servers that fail the others.
ELSEWHERE = {
    "crash",
    "engine-fault",
    "time-limit",
    "nondeterministic",
    "restored",
    "processes",
}


def test_every_check_has_a_test() -> None:
    with open(__file__) as source:
        text = source.read()
    assert {check for check in CHECKS if f'"{check}"' not in text} == set()


def test_too_few_and_too_many_tasks_in_a_journal_are_both_miscounted() -> None:
    told: list[tuple[str, str, str]] = []
    held = [SimpleNamespace(where=Where.RUNNING), SimpleNamespace(where=Where.FINISHED)]
    recount: Any = SimpleNamespace(
        tasks_of_all_lives=lambda: held, complain=lambda *all: told.append(all)
    )
    counts = {Where.RUNNING: 2, Where.FINISHED: 0, Where.PENDING: 0}
    _compare_counts(recount, counts)
    assert told == [
        ("miscounted", "running", "2 tasks are running to the world, 1 to its journal"),
        ("miscounted", "finished", "0 tasks are finished to the world, 1 to its journal"),
    ]
    _compare_counts(recount, None)
    assert len(told) == 2
