"""Journal lines folded into rows: what each record does to tasks, and what watchers are told of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.host import records
from argosy.host.job_state import JobState
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.jobs import Job, task_number
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.transactions import (
    AddMachine,
    DrainMachine,
    MachineChange,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
)
from argosy.testing.builders import GIB, job
from argosy.worlds.local.changes import (
    ChangeNote,
    JobNote,
    LifeNote,
    MachineNote,
    TaskNote,
    decode_changes,
)
from argosy.worlds.local.projection import MACHINES_SEQ, STATES, JobRow, Projection, TaskRow
from argosy.worlds.local.store import LocalStore

ROOM = Resources(4_000, GIB)
CHOICE = Explanation(rule="first", score=3)
NOWHERE = Explanation(looked_at=2, remedy="more room")


def spec(count: int = 3) -> Job:
    return job("a", count, precedence=7, owner="ann", kind="batch").job


def begun(*folded: records.JournalRecord, count: int = 3, keeps: bool = False) -> Projection:
    """A projection with the job "a" as number 5, after more records."""
    projection = Projection(1)
    projection.keeps_choices = keeps
    projection.begin_life([Machine("m0", ROOM), Machine("m1", ROOM)], 1, 0)
    fold(projection, records.SubmittedRecord(10, 5, spec(count), "s"), *folded)
    return projection


def fold(projection: Projection, *folded: records.JournalRecord) -> None:
    for record in folded:
        projection._fold(record)


def states(projection: Projection) -> dict[int, tuple[str, str]]:
    tasks = projection.by_id["a"].tasks
    return {index: (row.state, row.machine) for index, row in sorted(tasks.items())}


def counts(projection: Projection) -> dict[str, int]:
    return {state: n for state, n in projection.by_id["a"].counts.items() if n}


def busy(projection: Projection) -> dict[tuple[str, str], int]:
    return {key: count for key, count in projection.busy.items() if count}


def notes(projection: Projection, kind: type[Any]) -> list[ChangeNote]:
    return [note for note in decode_changes(projection.encoded_changes(99)) if type(note) is kind]


FIRST, SECOND = task_number(5, 0), task_number(5, 1)
PLACED = records.PlacedRecord(20, "a", [0, 1], [1, 0], "t:2")
FAILED = records.FailedRecord(30, FIRST, 1, 3, "broken")


@pytest.mark.parametrize(
    ("folded", "told", "left"),
    [
        ((), {}, {"pending": 3}),
        (
            (PLACED,),
            {0: ("running", "m1"), 1: ("running", "m0")},
            {"pending": 1, "running": 2},
        ),
        (
            (records.EnqueuedRecord(20, "a", [0, 2], [0, 1], "s"),),
            {0: ("queued", "m0"), 2: ("queued", "m1")},
            {"pending": 1, "queued": 2},
        ),
        (
            (records.ProbedRecord(20, "a", [1], [0, 1], "s"),),
            {1: ("queued", "")},
            {"pending": 2, "queued": 1},
        ),
        (
            (
                records.EnqueuedRecord(20, "a", [0, 1], [0, 0], "s"),
                records.StartedRecord(21, [SECOND], [1]),
            ),
            {0: ("queued", "m0"), 1: ("running", "m1")},
            {"pending": 1, "queued": 1, "running": 1},
        ),
        (
            (PLACED, records.EndedRecord(25, [FIRST])),
            {0: ("finished", "m1"), 1: ("running", "m0")},
            {"pending": 1, "running": 1, "finished": 1},
        ),
        (
            (PLACED, FAILED, records.RetriedRecord(30, "a", [0], 3, "broken")),
            {0: ("pending", ""), 1: ("running", "m0")},
            {"pending": 2, "running": 1},
        ),
        (
            (PLACED, FAILED, records.RetriedRecord(30, "a", [0], 3, "broken", for_good=True)),
            {0: ("failed", "m1"), 1: ("running", "m0")},
            {"pending": 1, "running": 1, "failed": 1},
        ),
        (
            (PLACED, records.LostRecord(25, "a", [1], [0], "gone")),
            {0: ("running", "m1"), 1: ("pending", "")},
            {"pending": 2, "running": 1},
        ),
        (
            (PLACED, records.ReleasedRecord(25, "a", [0], "s")),
            {0: ("pending", ""), 1: ("running", "m0")},
            {"pending": 2, "running": 1},
        ),
        (
            (records.AbandonedRecord(25, "a", [2], "s", NOWHERE),),
            {2: ("abandoned", "")},
            {"pending": 2, "abandoned": 1},
        ),
        (
            (PLACED, records.CancelledRecord(25, 5, [1, 2])),
            {0: ("running", "m1"), 1: ("cancelled", "m0"), 2: ("cancelled", "")},
            {"running": 1, "cancelled": 2},
        ),
        # Workers beyond those that the job asked for are in no row.
        ((records.PlacedRecord(20, "a", [3], [0], "s"),), {}, {"pending": 3}),
        # Lost when their job is done.
        ((records.LostRecord(25, "b", [0], [0], "gone"),), {}, {"pending": 3}),
    ],
)
def test_each_record_moves_the_tasks_it_speaks_of(
    folded: tuple[records.JournalRecord, ...],
    told: dict[int, tuple[str, str]],
    left: dict[str, int],
) -> None:
    projection = begun(*folded)
    assert states(projection) == told
    assert counts(projection) == left
    # Who runs or waits where is counted along.
    expected: dict[tuple[str, str], int] = {}
    for state, machine in told.values():
        if state in ("running", "queued"):
            expected[machine, state] = expected.get((machine, state), 0) + 1
    assert busy(projection) == expected


def test_a_row_has_the_fields_of_its_job() -> None:
    row = begun(PLACED).by_id["a"]
    row.spec, row.ended = b"spec", 44
    head = (1, "a", b"spec", "batch", "ann", 7, "t", 10, 44, "running")
    assert row.values() == (*head, 0, 1, 0, 2, 0, 0, 0, 0)
    assert row.values(6) == (*head, 6, 1, 0, 2, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("there", "state", "is_over"),
    [
        (("running", "pending", "failed"), "running", False),
        (("queued", "finished"), "pending", False),
        (("pending", "failed"), "pending", False),
        (("finished", "cancelled", "abandoned", "failed"), "failed", True),
        (("finished", "cancelled", "abandoned"), "abandoned", True),
        (("finished", "cancelled"), "cancelled", True),
        (("finished",), "finished", True),
    ],
)
def test_a_job_is_as_bad_as_the_worst_of_its_tasks_once_it_is_over(
    there: tuple[str, ...], state: str, is_over: bool
) -> None:
    row = JobRow(1, spec(), "s", 0, {**dict.fromkeys(STATES, 0), **dict.fromkeys(there, 1)})
    assert (row.state, row.is_over) == (state, is_over)


def test_the_next_host_gets_the_tasks_that_the_job_still_has() -> None:
    row = JobRow(1, spec(7), "s:1", 12, dict.fromkeys(STATES, 0))
    row.tasks = {
        index: TaskRow(state=state, failures=failures)
        for index, (state, failures) in {
            4: ("cancelled", 0),
            0: ("running", 2),
            2: ("failed", 3),
            1: ("finished", 0),
            3: ("queued", 0),
            6: ("abandoned", 0),
            5: ("running", 0),
            # Scaled away.
            7: ("cancelled", 1),
        }.items()
    }
    assert row.as_left() == JobState(
        submitted=12,
        scheduler="s:1",
        running=(0, 5),
        finished=(1,),
        failed=(2,),
        cancelled=(4,),
        abandoned=(6,),
        failures={0: 2, 2: 3},
    )


def test_a_task_remembers_how_it_failed_until_it_ends_well() -> None:
    projection = begun(PLACED, FAILED, records.RetriedRecord(30, "a", [0], 3, "broken"))
    task = projection.by_id["a"].tasks[0]
    assert (task.failures, task.exit_status, task.reason, task.ended) == (1, 3, "broken", None)
    again = records.PlacedRecord(40, "a", [0], [0], "s")
    fold(projection, again, records.EndedRecord(50, [FIRST]))
    assert (task.failures, task.exit_status, task.reason, task.ended) == (1, 0, "", 50)
    assert notes(projection, TaskNote) == [
        TaskNote(20, "a", 0, "running", "m1", None, ""),
        TaskNote(20, "a", 1, "running", "m0", None, ""),
        TaskNote(30, "a", 0, "pending", "", 3, "broken"),
        # One that has failed before says how, until it is known to be well.
        TaskNote(40, "a", 0, "running", "m0", 3, "broken"),
        TaskNote(50, "a", 0, "finished", "m0", 0, ""),
    ]


def test_fewer_tasks_cancel_the_last_and_more_bring_them_back() -> None:
    projection = begun(PLACED, records.EndedRecord(25, [SECOND]))
    row = projection.by_id["a"]
    row.spec = b"old"
    fold(projection, records.ScaledRecord(30, 5, spec(1)))
    assert (row.job.tasks, row.spec) == (1, b"")
    assert [row.tasks[index].state for index in range(3)] == ["running", "finished", "cancelled"]
    fold(projection, records.ScaledRecord(31, 5, spec(5)))
    # What had ended before has ended; two are new.
    assert [row.tasks[index].state for index in range(3)] == ["running", "finished", "pending"]
    assert counts(projection) == {"running": 1, "finished": 1, "pending": 3}
    assert sorted(row.tasks) == [0, 1, 2]


def test_jobs_of_a_restart_have_new_numbers_and_schedulers() -> None:
    projection = begun(PLACED, records.EnqueuedRecord(20, "a", [2], [1], "s"))
    projection.begin_life([Machine("m0", ROOM), Machine("m1", ROOM)], 2, 60)
    assert projection.by_number == {}
    state = JobState(submitted=10, running=(1,), machines=(0,))
    fold(projection, records.RestoredRecord(61, 8, spec(), "u", state))
    row = projection.by_id["a"]
    assert (row.number, row.scheduler, projection.by_number) == (8, "u", {8: row})
    assert states(projection) == {0: ("pending", ""), 1: ("running", "m0"), 2: ("pending", "")}
    assert busy(projection) == {("m0", "running"): 1}
    assert notes(projection, LifeNote) == [LifeNote(0, 1), LifeNote(60, 2)]


@pytest.mark.parametrize(
    "late",
    [
        records.ExplainedRecord(30, "a", [0], "s", NOWHERE),
        records.RefusedRecord(30, "a", [0], [0], "s", [1], [0], [0]),
    ],
)
def test_a_long_decision_may_speak_of_a_job_that_is_over(late: records.JournalRecord) -> None:
    projection = begun(records.CancelledRecord(20, 5, [0, 1, 2]))
    projection.committed()
    fold(projection, late)
    assert projection.by_id == {}
    assert projection.explained == {}


def test_rows_of_an_earlier_server_count_where_they_are() -> None:
    projection = Projection(4)
    row = JobRow(3, spec(), "s", 0, dict.fromkeys(STATES, 0))
    row.tasks = {
        0: TaskRow("running", "m0"),
        1: TaskRow("queued", "m0"),
        2: TaskRow("running", "m0"),
        3: TaskRow("finished", "m0"),
    }
    projection.load(row)
    assert busy(projection) == {("m0", "running"): 2, ("m0", "queued"): 1}
    assert projection.by_id == {"a": row}
    assert projection.has_forgotten
    assert not Projection(1).has_forgotten


class TestMachines:
    @pytest.mark.parametrize(
        ("change", "note", "there"),
        [
            (AddMachine(Machine("new", ROOM)), ("new", "added"), ["m0", "m1", "new"]),
            (ReviveMachine(1), ("m1", "added"), ["m0", "m1"]),
            (RemoveMachine(1), ("m1", "removed"), ["m0", "m1"]),
            (DrainMachine(0), ("m0", "draining"), ["m0", "m1"]),
            (DrainMachine(0, False), ("m0", "accepting"), ["m0", "m1"]),
            (ResizeMachine(1, Resources(9, 9)), ("m1", "resized"), ["m0", "m1"]),
            (RelabelMachine(0, {"os": "x"}), ("m0", "relabelled"), ["m0", "m1"]),
        ],
    )
    def test_each_change_is_told_and_counts(
        self, change: MachineChange, note: tuple[str, Any], there: list[str]
    ) -> None:
        projection = begun()
        before = projection.machine_version
        fold(projection, records.MachineRecord(70, change))
        assert notes(projection, MachineNote) == [MachineNote(70, *note)]
        assert [machine.name for machine in projection.machines] == there
        assert projection.machine_version == before + 1
        assert projection._mentioned == {1, MACHINES_SEQ}

    def test_what_changes_about_a_machine_is_known(self) -> None:
        projection = begun()
        for change in (
            ResizeMachine(1, Resources(9, 8)),
            RelabelMachine(1, {"os": "x"}, {"rack": ("r",)}),
        ):
            fold(projection, records.MachineRecord(70, change))
        assert projection.machines == [
            Machine("m0", ROOM),
            Machine("m1", Resources(9, 8), {"os": "x"}, {"rack": ("r",)}),
        ]


def test_a_task_that_is_added_again_has_no_end() -> None:
    projection = begun(PLACED)
    row = projection.by_id["a"]
    fold(projection, records.ScaledRecord(40, 5, spec(1)))
    assert (row.task(1).ended, row.task(1).machine) == (40, "m0")
    fold(projection, records.ScaledRecord(50, 5, spec(3)))
    assert (row.task(1).ended, row.task(1).state, row.task(1).machine) == (None, "pending", "")


class TestChoices:
    def test_the_last_choice_is_given_once_and_what_was_told_stays(self) -> None:
        projection = begun(records.ExplainedRecord(15, "a", [0], "s", CHOICE), PLACED, keeps=True)
        assert projection.take_choice("a", 1) == (PLACED, CHOICE)
        assert projection.take_choice("a", 1) == (None, CHOICE)
        queued = records.EnqueuedRecord(21, "a", [1], [0], "s")
        probed = records.ProbedRecord(22, "a", [2], [0], "s")
        fold(projection, queued, probed)
        assert projection.take_choice("a", 1)[0] == queued
        assert projection.take_choice("a", 2)[0] == probed

    def test_why_a_task_waits_is_no_choice(self) -> None:
        projection = begun(records.ExplainedRecord(15, "a", [0], "s", NOWHERE), keeps=True)
        assert projection.told == {}
        assert projection.explained == {"a": NOWHERE}

    def test_why_tasks_were_given_up_is_told(self) -> None:
        given_up = records.AbandonedRecord(15, "a", [0], "s", NOWHERE)
        projection = begun(given_up, keeps=True)
        assert (projection.explained, projection.told) == ({"a": NOWHERE}, {})
        assert counts(projection) == {"pending": 2, "abandoned": 1}

    def test_of_several_explanations_the_last_counts(self) -> None:
        first = records.ExplainedRecord(15, "a", [0], "s", NOWHERE)
        second = records.ExplainedRecord(16, "a", [1], "s", CHOICE)
        projection = begun(first, second, keeps=True)
        assert (projection.explained, projection.told) == ({"a": CHOICE}, {"a": CHOICE})
        fold(projection, first)
        assert (projection.explained, projection.told) == ({"a": NOWHERE}, {"a": CHOICE})

    @pytest.mark.parametrize(
        ("whys", "detail", "dimension"),
        [
            ([Why.NO_ROOM], 0, None),
            ([Why.NO_ROOM, Why.RESOURCE_LIMIT], 0, "cpu"),
            ([Why.RESOURCE_LIMIT, Why.RESOURCE_LIMIT], 1, "memory"),
            ([Why.RESOURCE_LIMIT], 2, ""),
            ([Why.RESOURCE_LIMIT], -1, ""),
        ],
    )
    def test_the_first_limit_that_a_job_is_beyond_is_told(
        self, whys: list[Why], detail: int, dimension: str | None
    ) -> None:
        projection = begun()
        projection.dimensions = ("cpu", "memory")
        count = len(whys)
        details = [detail if why is Why.RESOURCE_LIMIT else 1 for why in whys]
        amounts = [100 + at for at in range(count)]
        indices = list(range(count))
        fold(
            projection,
            records.RefusedRecord(
                15, "a", indices, [0] * count, "s", [int(each) for each in whys], details, amounts
            ),
        )
        if dimension is None:
            assert projection.explained == {}
            return
        refused = projection.explained["a"].refused
        assert refused is not None
        first = whys.index(Why.RESOURCE_LIMIT)
        expected = Refusal(Why.RESOURCE_LIMIT, dimension=dimension, lacking=100 + first)
        assert refused == expected
        assert projection.explained["a"].remedy == expected.remedy()

    def test_nothing_is_kept_unless_it_is_wanted(self) -> None:
        projection = begun(records.ExplainedRecord(15, "a", [0], "s", CHOICE), PLACED)
        assert (projection.choices, projection.told) == ({}, {})
        assert projection.explained == {"a": CHOICE}


class TestWriting:
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[LocalStore]:
        store = LocalStore(tmp_path)
        yield store
        store.close()

    def write(self, projection: Projection, store: LocalStore, at: int) -> None:
        with store.turn() as turn:
            projection.write(turn, at, at)
        projection.committed()

    def test_what_a_turn_has_changed_is_not_written_by_the_next(self, store: LocalStore) -> None:
        projection = begun(records.MachineRecord(11, AddMachine(Machine("new", ROOM))))
        self.write(projection, store, 1)
        fold(projection, records.MachineRecord(12, DrainMachine(2)))
        self.write(projection, store, 2)
        with store.turn() as turn:
            turn.execute("UPDATE machines SET is_draining = 0")
        self.write(projection, store, 3)
        assert store.rows("SELECT name, is_draining FROM machines") == [("new", 0)]
        assert sorted(store.rows("SELECT * FROM job_turns")) == [(0, 1), (0, 2), (1, 1)]

    def test_a_job_is_forgotten_once_its_end_is_on_the_disk(self, store: LocalStore) -> None:
        projection = begun(records.ExplainedRecord(15, "a", [0], "s", CHOICE), PLACED, keeps=True)
        row = projection.by_id["a"]
        assert projection.told == {"a": CHOICE}
        assert projection.saved_row("a") is None, "the database does not know it yet"
        assert (projection.coming_version("a"), row.version) == (1, 0)
        self.write(projection, store, 1)
        assert projection.saved_row("a") is row
        assert (projection.coming_version("a"), row.version) == (1, 1)
        assert projection.encoded_changes(1) == b"[]"
        ends = [records.EndedRecord(25, [FIRST, SECOND, task_number(5, 2)])]
        fold(projection, *ends)
        assert notes(projection, JobNote) == [
            JobNote(99, "a", "finished", 2, (0, 0, 0, 3, 0, 0, 0))
        ]
        assert not projection.has_forgotten
        self.write(projection, store, 26)
        assert (projection.by_id, projection.by_number, projection.choices) == ({}, {}, {})
        assert projection.told == {}
        assert projection.has_forgotten
        assert projection.saved_row("a") is None
        assert projection.coming_version("a") is None
        assert store.rows("SELECT ended, state, version FROM jobs") == [(26, "finished", 2)]
        assert store.rows("SELECT * FROM job_turns") == [(1, 1), (1, 26)]

    def test_a_turn_that_is_written_again_keeps_the_time_of_the_first_attempt(
        self, store: LocalStore
    ) -> None:
        projection = begun(count=1)
        fold(projection, records.CancelledRecord(25, 5, [0]))

        def give_up() -> None:
            with store.turn() as turn:
                projection.write(turn, 1, 30)
                raise RuntimeError

        with pytest.raises(RuntimeError):
            give_up()
        self.write(projection, store, 40)
        assert store.rows("SELECT ended FROM jobs") == [(30,)]

    def test_a_job_that_goes_on_after_a_turn_that_was_not_written_has_no_end(
        self, store: LocalStore
    ) -> None:
        projection = begun(count=1)
        fold(projection, records.CancelledRecord(25, 5, [0]))
        with store.turn() as turn:
            projection.write(turn, 1, 30)
        fold(projection, records.ScaledRecord(35, 5, spec(2)))
        self.write(projection, store, 40)
        assert store.rows("SELECT ended, state FROM jobs") == [(None, "pending")]

    def test_only_what_has_changed_is_written(self, store: LocalStore) -> None:
        projection = begun(PLACED)
        self.write(projection, store, 1)
        for text in ("UPDATE jobs SET owner = 'x'", "DELETE FROM tasks"):
            with store.turn() as turn:
                turn.execute(text)
        projection.note_try(projection.by_id["a"], 1, 77, 33)
        self.write(projection, store, 2)
        assert store.rows("SELECT idx, try, started FROM tasks") == [(1, 77, 33)]
        assert store.rows("SELECT version FROM jobs") == [(1,)]
        resubmitted = records.ResubmittedRecord(40, "a", [2], "v")
        fold(projection, resubmitted)
        self.write(projection, store, 3)
        assert store.rows("SELECT owner, scheduler, version FROM jobs") == [("x", "v", 2)]

    @pytest.mark.parametrize(
        "record",
        [
            records.ExplainedRecord(15, "a", [0], "s", NOWHERE),
            records.RefusedRecord(15, "a", [0], [0], "s", [1], [0], [0]),
        ],
    )
    def test_a_turn_that_only_speaks_of_a_job_is_found_by_it(
        self, store: LocalStore, record: records.JournalRecord
    ) -> None:
        projection = begun()
        self.write(projection, store, 1)
        fold(projection, record)
        self.write(projection, store, 2)
        self.write(projection, store, 3)
        assert store.rows("SELECT * FROM job_turns") == [(1, 1), (1, 2)]
        assert store.rows("SELECT version FROM jobs") == [(1,)]
        assert projection.explained == {}
