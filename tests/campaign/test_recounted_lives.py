"""A recount of journals that were written by hand: each record, and what the next server restores."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec import structs

from argosy.campaign.recount import CampaignRule, Recount, Start, Where
from argosy.engines.registry import ENGINES
from argosy.host import records
from argosy.host.job_state import JobState
from argosy.host.records import VERSION
from argosy.host.setup import HostSetup
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.jobs import task_number
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec
from argosy.model.transactions import (
    DrainMachine,
    MachineChange,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
)
from argosy.model.truth import group_with_truth, simulated_job
from argosy.testing.builders import SECOND, cell, job, scenario

LATE = 9 * SECOND
A, B, C = job("a", 3), job("b", cpu=500, seconds=5), job("c", submit=3)
SPEC = scenario("omega", [A, B, C], replicas=1, cell=cell(4))
SAID = Explanation(remedy="wait")


def header(began: int = 0, cell: CellSpec = SPEC.cell) -> records.Header:
    setup = structs.replace(HostSetup.of(SPEC), began=began, cell=cell)
    return records.Header(version=VERSION, setup=setup)


def submitted(number: int, made: Any, at: int = 0) -> records.JournalRecord:
    return records.SubmittedRecord(at, number, made.job, "s")


def placed(name: str, *places: tuple[int, int], at: int = 0) -> records.JournalRecord:
    indices, machines = ([pair[n] for pair in places] for n in (0, 1))
    return records.PlacedRecord(at, name, indices, machines, "s")


def ended(*tasks: int, at: int) -> records.JournalRecord:
    return records.EndedRecord(at, list(tasks))


def restored(
    number: int, made: Any = A, at: int = LATE, **state: tuple[int, ...]
) -> records.JournalRecord:
    return records.RestoredRecord(at, number, made.job, "s", JobState(submitted=0, **state))


def changed(change: MachineChange, at: int = SECOND) -> records.JournalRecord:
    return records.MachineRecord(at, change)


FIRST = (header(), submitted(0, A), submitted(1, B), placed("a", (0, 0), (1, 1)))
B_ENDS = (placed("b", (0, 2)), ended(task_number(1, 0), at=5 * SECOND))
GOES_ON = {"running": (0, 1), "machines": (0, 1)}


class Started(CampaignRule):
    def __init__(self, recount: Recount) -> None:
        super().__init__(recount)
        self.starts: list[Start] = []

    def settled(self, at: int, starts: list[Start]) -> None:
        self.starts += starts


def recounted(
    *lives: tuple[records.JournalRecord, ...], spec: Any = SPEC, **options: bool
) -> Recount:
    recount = Recount(spec, ENGINES, **options)
    for life in lives:
        recount.read(life, [])
    return recount


def kinds(recount: Recount) -> dict[str, str]:
    return {check: finding.kind for check, finding in recount.findings.items()}


class TestNextServer:
    def second(self, *journal: records.JournalRecord, cell: CellSpec = SPEC.cell) -> Recount:
        return recounted((*FIRST, *B_ENDS), (header(8 * SECOND, cell), *journal))

    def test_what_runs_goes_on_and_what_waits_waits_anew(self) -> None:
        found = self.second(restored(0, **GOES_ON))
        assert kinds(found) == {}
        first, waits = found.tasks[0], found.tasks[2]
        assert (first.where, first.machine, first.scheduler) == (Where.RUNNING, 0, "s")
        assert (first.since, first.began) == (0, 0)
        assert (waits.where, waits.since) == (Where.PENDING, LATE)
        assert [machine.held for machine in found.machines] == [{0}, {1}, set(), set()]
        assert {machine.changed_at for machine in found.machines} == {8 * SECOND}
        assert found.holdings["s"] == {0, 1}
        assert found.fleet_changed_at == 8 * SECOND
        states = Counter(held.where for held in found.tasks_of_all_lives())
        assert states == {Where.RUNNING: 2, Where.PENDING: 1, Where.FINISHED: 1}
        assert found.running_time(0) == 10 * SECOND

    def test_who_held_a_task_that_waits_again_holds_it_no_more(self) -> None:
        assert self.second(restored(0, running=(1,), machines=(1,))).holdings["s"] == {1}

    def test_a_delayed_start_is_kept(self) -> None:
        queue = records.EnqueuedRecord(0, "a", [0], [0], "s")
        start = records.StartedRecord(SECOND, [0], [0], 7)
        found = recounted(
            (header(), submitted(0, A), queue, start),
            (header(LATE), restored(0, running=(0,), machines=(0,))),
        )
        assert (found.tasks[0].since, found.tasks[0].began) == (SECOND, SECOND + 7)

    def test_machines_may_have_other_numbers(self) -> None:
        turned = structs.replace(SPEC.cell, machines=SPEC.cell.machines[::-1])
        drained = (*FIRST, changed(DrainMachine(1), at=2 * SECOND))
        life = (header(LATE, turned), restored(0, running=(0,), machines=(3,)), restored(1, B))
        found = recounted(drained, life)
        assert kinds(found) == {}
        assert [m.draining_since for m in found.machines] == [None, None, 2 * SECOND, None]

    @pytest.mark.parametrize(
        ("journal", "kind"),
        [
            ((), "missing"),
            ((restored(0, running=(1,), machines=(1,)),), None),
            ((restored(0),), None),
            ((restored(0, running=(0, 1), machines=(0, 2)),), "elsewhere"),
            ((restored(0, **GOES_ON, finished=(2,)),), "pending as finished"),
            ((restored(0, running=(1,), machines=(1,), failed=(0,)),), "running as failed"),
            ((restored(1, **GOES_ON),), "job"),
            ((restored(0, job("a", 3, cpu=7), **GOES_ON),), "job"),
            ((restored(0, **GOES_ON), restored(1, B)), "job"),
            ((restored(0, **GOES_ON), restored(1, **GOES_ON)), "job"),
            ((submitted(0, C, at=LATE), restored(1, **GOES_ON)), "missing"),
        ],
    )
    def test_what_was_not_over_is_restored_as_it_was(
        self, journal: tuple[records.JournalRecord, ...], kind: str | None
    ) -> None:
        assert kinds(self.second(*journal)).get("restored") == kind

    def test_what_is_missing_is_missing_once(self) -> None:
        one = self.second(submitted(0, C, at=LATE), placed("c", (0, 0), at=LATE))
        assert one.findings["restored"].detail == "a was not over, and is not restored"
        # The next life does not miss it again.
        one.findings.clear()
        one.read((header(20 * SECOND), restored(0, C, running=(0,), machines=(0,))), [])
        assert kinds(one) == {}

    @pytest.mark.parametrize(
        ("machines", "kind"),
        [
            (SPEC.cell.machines[:3], "machine missing"),
            ((*SPEC.cell.machines, Machine("new", Resources(1))), "machine"),
            (
                (
                    structs.replace(SPEC.cell.machines[0], capacity=Resources(1)),
                    *SPEC.cell.machines[1:],
                ),
                "machine",
            ),
        ],
    )
    def test_machines_are_restored_as_they_were(
        self, machines: tuple[Machine, ...], kind: str
    ) -> None:
        found = self.second(restored(0, **GOES_ON), cell=CellSpec(machines=machines))
        assert kinds(found) == {"restored": kind}

    def test_a_machine_that_was_gone_does_not_come_back_by_itself(self) -> None:
        gone = (*FIRST, changed(RemoveMachine(3)))
        rest = (restored(0, **GOES_ON), restored(1, B))
        fewer = CellSpec(machines=SPEC.cell.machines[:3])
        assert kinds(recounted(gone, (header(LATE, fewer), *rest))) == {}
        assert kinds(recounted(gone, (header(LATE), *rest))) == {"restored": "machine"}

    def test_a_machine_that_was_resized_keeps_its_size(self) -> None:
        grown = (*FIRST, changed(ResizeMachine(3, Resources(7, 7))))
        rest = (restored(0, **GOES_ON), restored(1, B))
        assert kinds(recounted(grown, (header(LATE), *rest))) == {"restored": "machine"}
        larger = structs.replace(SPEC.cell.machines[3], capacity=Resources(7, 7))
        machines = CellSpec(machines=(*SPEC.cell.machines[:3], larger))
        assert kinds(recounted(grown, (header(LATE, machines), *rest))) == {}

    def test_what_was_over_stays_over_and_explained(self) -> None:
        for said in (SAID, Explanation()):
            given_up = records.AbandonedRecord(SECOND, "a", [2], "s", said)
            found = recounted(
                (*FIRST, given_up), (header(LATE), restored(0, **GOES_ON, abandoned=(2,)))
            )
            assert found.tasks[2].is_explained == (said is SAID)
        assert (
            kinds(recounted((*FIRST, ended(0, at=10 * SECOND)), (header(LATE), restored(0))))[
                "restored"
            ]
            == "finished as pending"
        )

    def test_what_was_queued_waits_again(self) -> None:
        queued = (*FIRST, records.EnqueuedRecord(0, "a", [2], [3], "s"))
        found = recounted(queued, (header(LATE), restored(0, **GOES_ON), restored(1, B)))
        assert kinds(found) == {}
        assert found.tasks[2].where is Where.PENDING

    def test_jobs_are_numbered_anew(self) -> None:
        found = recounted((header(), submitted(0, C, at=3 * SECOND), submitted(1, B)))
        assert [found.request(task_number(number, 0))["cpu"] for number in (0, 1)] == [1_000, 500]
        found.read((placed("c", (0, 0)), ended(0, at=10 * SECOND)), [])
        found.read((header(LATE), restored(0, B)), [])
        assert found.request(0)["cpu"] == 500
        assert found.name(0) == "b/0"

    @pytest.mark.parametrize("journal", [(B,), (job("x"),)])
    def test_nobody_submits_what_was_submitted_or_what_nobody_knows(
        self, journal: tuple[Any]
    ) -> None:
        found = self.second(restored(0, **GOES_ON), submitted(1, *journal, at=LATE))
        assert kinds(found) == {"submissions": "unknown or again"}

    def test_a_job_may_come_late_to_the_next_server_but_never_early(self) -> None:
        assert kinds(self.second(restored(0, **GOES_ON), submitted(1, C, at=LATE))) == {}
        assert kinds(recounted((header(), submitted(0, C, at=3 * SECOND)))) == {}
        for at in (3 * SECOND + 1, 3 * SECOND - 1):
            found = recounted((header(), submitted(0, C, at=at)))
            assert kinds(found) == {"submissions": "time"}
        early = recounted((header(),), (header(1), submitted(0, C, at=2)))
        assert kinds(early) == {"submissions": "time"}


def test_jobs_of_another_system_come_at_any_time_under_any_name() -> None:
    journal = header(), submitted(0, job("x"), at=7), submitted(1, B, at=8)
    found = recounted(journal, is_overruled=True)
    assert found.running_time(0) is None
    assert kinds(found) == {"submissions": "time"}
    assert kinds(recounted(journal[:2], is_overruled=True)) == {}
    wrong = recounted((header(), submitted(1, job("x"))), is_overruled=True)
    assert kinds(wrong) == {"submissions": "unknown or again"}


def test_each_task_has_the_request_and_time_of_its_group() -> None:
    groups = (
        group_with_truth(2, Resources(1), (5, 6)),
        group_with_truth(1, Resources(2), ()),
        group_with_truth(2, Resources(3), (9, 8)),
    )
    made = simulated_job("g", groups[0])
    parts = tuple(group for each in groups for group in simulated_job("g", each).job.groups)
    truths = tuple(truth for each in groups for truth in simulated_job("g", each).truth)
    made = structs.replace(made, job=structs.replace(made.job, groups=parts), truth=truths)
    spec = scenario("omega", [made], replicas=1)
    found = recounted((header(), submitted(0, made)), spec=spec)
    assert kinds(found) == {}
    # Every group is compared, but for how often its tasks are tried again.
    other = structs.replace(parts[2], request=Resources(4))
    for last, told in (
        (structs.replace(parts[2], retries=3), {}),
        (other, {"submissions": "specification"}),
    ):
        given = structs.replace(made.job, groups=(*parts[:2], last))
        record = records.SubmittedRecord(0, 0, given, "s")
        assert kinds(recounted((header(), record), spec=spec)) == told
    # Workers beyond a job's own are like its last group.
    assert [found.request(index)["cpu"] for index in range(7)] == [1, 1, 2, 3, 3, 3, 3]
    assert [found.running_time(index) for index in range(6)] == [5, 6, None, 9, 8, None]


@pytest.mark.parametrize(
    ("journal", "found"),
    [
        ((placed("a", (0, 3), at=1),), {}),
        ((placed("a", (2, 3), at=1),), {}),
        ((records.EnqueuedRecord(1, "a", [0], [3], "s"),), "running, then queued"),
        ((records.StartedRecord(1, [2], [3]),), "pending, then started"),
        (
            (records.EnqueuedRecord(1, "a", [2], [3], "s"), placed("a", (2, 3), at=1)),
            "queued, then placed",
        ),
        ((records.LostRecord(1, "a", [0], [0], "lost"),), {}),
        ((records.LostRecord(1, "a", [0], [-1], "lost"),), {}),
        ((records.LostRecord(1, "a", [0], [1], "lost"),), "running, then lost elsewhere"),
        ((records.LostRecord(1, "a", [2], [-1], "lost"),), {}),
        ((records.LostRecord(1, "a", [2], [0], "lost"),), "pending, then lost"),
        ((records.ReleasedRecord(1, "a", [0], "s"),), {}),
        ((records.ReleasedRecord(1, "a", [2], "s"),), "pending, then released"),
        ((records.AbandonedRecord(1, "a", [2], "s", SAID),), {}),
        ((records.AbandonedRecord(1, "a", [0], "s", SAID),), "running, then abandoned"),
        ((records.CancelledRecord(1, 0, [0, 2]), ended(0, at=2)), "cancelled, then ended"),
    ],
)
def test_steps_that_are_impossible_where_a_task_was_are_noticed(
    journal: tuple[records.JournalRecord, ...], found: Any
) -> None:
    recount = recounted((*FIRST, *journal))
    assert kinds(recount) == (found if found == {} else {"task-steps": found})


def test_a_task_that_moves_or_leaves_makes_room() -> None:
    found = recounted((*FIRST, placed("a", (0, 3), at=7)))
    assert [machine.held for machine in found.machines] == [set(), {1}, set(), {0}]
    assert found.machines[3].changed_at == 7
    assert (found.tasks[0].since, found.tasks[0].machine) == (7, 3)
    for at, step in (
        (8, records.LostRecord(8, "a", [1], [1], "lost")),
        (9, records.CancelledRecord(9, 0, [1])),
        (9, ended(1, at=9)),
    ):
        left = recounted((*FIRST, step))
        assert (left.machines[1].held, left.machines[1].changed_at) == (set(), at)
        assert left.holdings["s"] == {0}
        assert left.tasks[1].since == at


def test_a_task_that_is_cancelled_when_it_is_over_stays_as_it_is() -> None:
    found = recounted((*FIRST, ended(0, at=5), records.CancelledRecord(6, 0, [0, 1, 2])))
    assert [found.tasks[index].where.value for index in range(3)] == [
        "finished",
        "cancelled",
        "cancelled",
    ]
    queued = records.EnqueuedRecord(0, "b", [0], [3], "s")
    found = recounted((*FIRST, queued, records.CancelledRecord(6, 1, [0])))
    assert found.tasks[task_number(1, 0)].where is Where.CANCELLED


def test_starts_are_the_decisions_of_the_fleet() -> None:
    recount = Recount(SPEC, ENGINES)
    rule = Started(recount)
    journal = (
        *FIRST,
        records.EnqueuedRecord(0, "a", [2], [3], "s"),
        records.StartedRecord(4, [2], [1], 5),
        placed("a", (0, 3), at=6),
        records.PlacedRecord(6, "b", [0], [2], "somebody else"),
    )
    recount.read(journal, [rule])
    assert rule.starts == [
        Start(0, 0, "s", 0, is_claim=True, is_move=False),
        Start(1, 1, "s", 0, is_claim=True, is_move=False),
        Start(2, 1, "s", 4, is_claim=False, is_move=False),
        Start(0, 3, "s", 6, is_claim=True, is_move=True),
    ]
    assert (recount.tasks[2].since, recount.tasks[2].began) == (4, 9)
    assert recount.machines[2].held == {task_number(1, 0)}


def test_running_times_are_counted_from_the_start_and_neither_shorter_nor_longer() -> None:
    for after, told in ((10 * SECOND, {}), (10 * SECOND - 1, {"running-time": "ended"})):
        assert kinds(recounted((*FIRST, ended(0, at=after)))) == told
    longer = (*FIRST, ended(0, at=10 * SECOND + 1))
    assert kinds(recounted(longer)) == {"running-time": "ended"}
    assert kinds(recounted(longer, is_exact=False)) == {}


class TestMachines:
    def after(self, *changes: MachineChange) -> Any:
        journal = (changed(each, at) for at, each in enumerate(changes, 1))
        return recounted((header(), *journal)).machines[0]

    def test_a_machine_drains_since_it_was_first_told_to(self) -> None:
        drain, undo = DrainMachine(0), DrainMachine(0, draining=False)
        assert self.after(drain, drain).draining_since == 1
        assert self.after(drain, undo).draining_since is None
        assert self.after(drain, undo, drain).draining_since == 3
        assert self.after(RemoveMachine(0), drain).draining_since is None
        gone = self.after(drain, RemoveMachine(0))
        assert (gone.is_up, gone.draining_since, gone.changed_at) == (False, None, 2)
        assert self.after(RemoveMachine(0), ReviveMachine(0)).is_up

    def test_labels_and_sizes_are_replaced(self) -> None:
        found = self.after(
            ResizeMachine(0, Resources(7, 8)), RelabelMachine(0, {"disk": "ssd"}, {"rack": ("x",)})
        )
        assert (found.capacity["cpu"], found.capacity["memory"]) == (7, 8)
        assert (found.attributes, found.joins) == ({"disk": "ssd"}, {"rack": ("x",)})

    def test_marks_are_attributes_of_machines_in_the_sets(self) -> None:
        def mark(group: str, *sets: str, **fields: bool) -> records.JournalRecord:
            return records.MarkedRecord(1, "hot", group, list(sets), **fields)

        def hot(*marks: records.JournalRecord) -> list[str]:
            machines = recounted((header(), *marks)).machines
            return [each.name for each in machines if each.attribute("hot") == "true"]

        assert hot(mark("machine", "m1", "m3")) == ["m1", "m3"]
        assert hot(mark("rack", "r0")) == ["m0", "m1", "m2", "m3"]
        assert hot(mark("rack", "m1")) == []
        off = mark("machine", "m1", is_given=False)
        assert hot(mark("rack", "r0"), off) == ["m0", "m2", "m3"]


def test_a_scheduler_that_stops_takes_its_own_probes_with_it() -> None:
    spec = scenario("sparrow", [A, B], replicas=2, cell=cell(4))
    told = records.ExplainedRecord(0, "a", [0, 1, 2], "s-0", SAID)
    journal = (
        header(),
        submitted(0, A),
        submitted(1, B),
        told,
        records.ProbedRecord(0, "a", [0], [0, 1], "s-0"),
        records.ProbedRecord(0, "a", [1], [0, 1], "s-1"),
        records.EnqueuedRecord(0, "a", [2], [0], "s-0"),
        records.CrashedRecord(5, "s-0"),
    )
    found = recounted(journal, spec=spec)
    states = [found.tasks[index].where.value for index in range(3)]
    assert states == ["pending", "queued", "queued"]
    assert (found.tasks[0].since, found.tasks[1].since) == (5, 0)
    assert [found.tasks[index].is_explained for index in range(3)] == [False, True, True]
    assert found.is_alive == {"s-0": False, "s-1": True}
    back = recounted((*journal, records.RestartedRecord(7, "s-0")), spec=spec)
    assert (back.is_alive["s-0"], back.fleet_changed_at) == (True, 7)


def test_what_goes_first_is_the_task_that_was_named_last() -> None:
    def said(**fields: Any) -> records.JournalRecord:
        return records.ExplainedRecord(1, "a", [2], "s", Explanation(**fields))

    behind = said(refused=Refusal(Why.BEHIND, task=5))
    assert recounted((*FIRST, behind)).tasks[2].behind == 5
    assert recounted((*FIRST, behind, said(remedy="wait"))).tasks[2].behind == -1
    assert recounted((*FIRST, said(refused=Refusal(Why.NO_ROOM, task=5)))).tasks[2].behind == -1


def test_a_task_that_fails_waits_again_and_is_over_only_when_it_is_given_up() -> None:
    def retried(for_good: bool) -> records.JournalRecord:
        return records.RetriedRecord(3, "a", [0], 1, "", for_good=for_good)

    fails = records.FailedRecord(2, 0, 1, 1, "")
    assert recounted((*FIRST, fails)).tasks[0].where is Where.PENDING
    assert recounted((*FIRST, fails, retried(False))).tasks[0].where is Where.PENDING
    found = recounted((*FIRST, fails, retried(True)))
    assert (found.tasks[0].where, kinds(found)) == (Where.FAILED, {})


def test_only_the_first_of_each_check_is_told() -> None:
    found = recounted((*FIRST, ended(2, at=1), ended(2, at=2)))
    assert kinds(found) == {"task-steps": "pending, then ended"}
