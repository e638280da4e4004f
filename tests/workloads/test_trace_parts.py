"""Parts of the readers and writers of traces: events in, jobs out; whole tables of jobs."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import ModelError, TraceError
from argosy.model.jobs import Execution, Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.truth import GroupTruth, SimulatedJob
from argosy.workloads.cluster_specs import TimeExponential
from argosy.workloads.fanout import PATTERNS
from argosy.workloads.google_jobs import (
    Ask,
    Assembly,
    GoogleMachines,
    Notes,
    TraceEvent,
    What,
    scaled,
)
from argosy.workloads.google_tables import AFTER_THE_END, Row, bare_rows, lines, named_rows, parts
from argosy.workloads.job_tables import job_table

SMALL, LARGE = Ask(Resources(1, 1)), Ask(Resources(2, 2), (("disk", "ssd"),))
SUBMITTED, SCHEDULED, STOPPED, ENDED = What.SUBMITTED, What.SCHEDULED, What.STOPPED, What.ENDED


def assembled(
    *events: TraceEvent, start: int = 0, span: int | None = None
) -> tuple[list[SimulatedJob], Notes]:
    notes = Notes()
    return list(Assembly(start, span, notes).read(events)), notes


def of_task(time: int, what: What, task: int = 0, job: int = 1, ask: Ask = SMALL) -> TraceEvent:
    return TraceEvent(time, what, job, task, ask)


class TestAssembly:
    def test_tasks_with_equal_requests_are_a_group_and_endless_ones_apart(self) -> None:
        jobs, notes = assembled(
            TraceEvent(5, SUBMITTED, 1, priority=3, owner="ann"),
            *(of_task(6, SCHEDULED, task) for task in range(3)),
            of_task(6, SCHEDULED, 3, ask=LARGE),
            of_task(6, SUBMITTED, 4),
            of_task(9, STOPPED, 0),
            of_task(16, STOPPED, 1),
            of_task(6, STOPPED, 3, ask=LARGE),
            TraceEvent(20, ENDED, 1),
        )
        [found] = jobs
        assert (found.id, found.submit, found.job.kind) == ("1", 5, "batch")
        assert (found.job.precedence, found.job.owner) == (3, "ann")
        assert [(each.count, each.request, each.requires) for each in found.job.groups] == [
            (2, SMALL.request, {}),
            (1, SMALL.request, {}),
            (1, LARGE.request, {"disk": "ssd"}),
        ]
        # What took no time takes a microsecond.
        assert [truth.durations for truth in found.truth] == [(3, 10), (), (1,)]
        assert [group.endless for group in found.job.groups] == [False, True, False]
        assert (notes.jobs, notes.tasks, notes.never_ran, notes.still_running) == (1, 4, 1, 1)

    def test_only_the_last_run_counts_and_earlier_ones_are_noted(self) -> None:
        jobs, notes = assembled(
            of_task(0, SCHEDULED),
            of_task(4, STOPPED),
            of_task(5, STOPPED),
            of_task(10, SCHEDULED),
            of_task(17, STOPPED),
        )
        assert jobs[0].truth == (GroupTruth((7,)),)
        assert (notes.reruns, notes.never_ran) == (1, 0)

    def test_a_task_that_ran_before_the_window_has_what_is_left(self) -> None:
        events = [
            of_task(10, SCHEDULED, 0),
            of_task(10, SCHEDULED, 1),
            of_task(100, SCHEDULED, 2),
            of_task(100, STOPPED, 0),
            of_task(100, STOPPED, 2),
            of_task(130, STOPPED, 1),
        ]
        [found], notes = assembled(*events, start=100)
        assert found.submit == 0
        # The first was over when the window began; the third began and ended at that moment.
        assert found.truth == (GroupTruth((30, 1)),)
        assert notes.tasks == 2

    def test_a_window_ends_when_everything_in_it_is_over(self) -> None:
        events = [
            of_task(10, SCHEDULED, job=1),
            TraceEvent(20, SUBMITTED, 2),
            of_task(20, SCHEDULED, job=3),
            of_task(25, STOPPED, job=1),
            TraceEvent(25, ENDED, 1),
        ]
        jobs, _ = assembled(*events, span=20)
        assert [found.id for found in jobs] == ["1"]
        jobs, _ = assembled(*events, span=21)
        assert [found.id for found in jobs] == ["1", "3"]
        late = TraceEvent(AFTER_THE_END, SUBMITTED, 9)
        jobs, _ = assembled(late, of_task(AFTER_THE_END, SCHEDULED, job=9))
        assert jobs == []

    def test_jobs_come_in_order_of_submission_as_soon_as_those_before_are_over(self) -> None:
        events = iter(
            [
                of_task(0, SCHEDULED, job=1),
                of_task(1, SCHEDULED, job=2),
                of_task(2, STOPPED, job=2),
                TraceEvent(2, ENDED, 2),
                of_task(3, STOPPED, job=1),
                TraceEvent(3, ENDED, 1),
                of_task(4, SCHEDULED, job=1),
                TraceEvent(5, ENDED, 7),
            ]
        )
        notes = Notes()
        reading = Assembly(0, None, notes).read(events)
        assert [next(reading).id, next(reading).id] == ["1", "2"]
        assert next(events).time == 4
        assert list(reading) == []
        assert notes.late_events == 0

    def test_events_after_a_job_are_counted(self) -> None:
        _, notes = assembled(
            of_task(0, SCHEDULED),
            TraceEvent(3, ENDED, 1),
            of_task(4, SCHEDULED),
            TraceEvent(5, ENDED, 1),
        )
        assert notes.late_events == 2

    def test_what_a_job_says_of_itself_overrides_what_its_tasks_say(self) -> None:
        def event(priority: int, task: int | None, owner: str = "") -> TraceEvent:
            ask = None if task is None else SMALL
            return TraceEvent(0, SCHEDULED, 1, task, ask, priority, priority < 9, owner)

        for events, priority, kind, owner in (
            ([event(3, 0), event(10, 1)], 3, "batch", ""),
            ([event(3, 0), event(10, None, "ann"), event(4, 1, "bob")], 10, "service", "ann"),
            ([event(10, None), event(3, None), event(10, 0)], 3, "batch", ""),
        ):
            [found], _ = assembled(*events)
            assert (found.job.precedence, found.job.kind, found.job.owner) == (
                priority,
                kind,
                owner,
            )


def test_notes_say_what_was_left_out() -> None:
    notes = Notes(
        never_ran=1_000, reruns=2, late_events=3, machine_changes=4, machines_left_out=5, still_running=6
    )  # fmt: skip
    known: dict[str, str] = {}
    for relation, name, value in (
        ("NOT_EQUAL", "a", "1"), ("EQUAL", "a", ""), ("EQUAL", "a", "1"), ("EQUAL", "a", "1"),
        ("EQUAL", "a", "2"), ("NOT_EQUAL", "b", "1"),
    ):  # fmt: skip
        notes.require(known, relation, name, value)
    assert known == {"a": "1"}
    assert notes.sentences() == [
        "ignored in the trace: tasks that never ran (1,000)",
        "ignored in the trace: runs that a task's last one repeated (2)",
        "ignored in the trace: events of jobs that were over (3)",
        "ignored in the trace: machines that came, went or changed later (4)",
        "ignored in the trace: machines without a capacity (5)",
        "a job cannot express what the trace says: attribute equal to nothing (1)",
        "a job cannot express what the trace says: attribute equal to two values (1)",
        "a job cannot express what the trace says: attribute not-equal (2)",
    ]
    assert Notes().sentences() == []


def test_amounts_are_rounded_so_that_nothing_fits_that_did_not() -> None:
    whole = Resources(10, 1_000)
    assert scaled(0.25, 0.0005, whole=whole, up=True) == Resources(3, 1)
    assert scaled(0.25, 0.0005, whole=whole, up=False) == Resources(2, 0)
    assert scaled(None, None, whole=whole, up=True) == Resources(0, 0)


class TestMachines:
    def test_the_latest_state_up_to_the_time_counts(self) -> None:
        notes = Notes()
        machines = GoogleMachines(Path("trace"), 10, notes)
        one, two = Machine("1", Resources(1, 1)), Machine("1", Resources(2, 2))
        machines.take(5, 1, two)
        machines.take(4, 1, one)
        machines.take(11, 1, None)
        machines.take(10, 3, Machine("3", Resources(3, 3), {"switch": "s"}))
        machines.take(10, 2, one)
        machines.take(10, 2, None)
        machines.take(3, 4, Machine("4", Resources(0, 4)))
        machines.take(3, 5, Machine("5", Resources(4, 0)))
        machines.take(3, 6, Machine("6", Resources(4, 4)))
        for time, name, value in ((9, "b", "1"), (8, "b", "0"), (10, "a", "x"), (11, "c", "y")):
            machines.take_attribute(time, 3, name, value)
        machines.take_attribute(1, 1, "gone", "1")
        machines.take_attribute(2, 1, "gone", None)
        found = machines.machines()
        assert [machine.name for machine in found] == ["1", "3", "6"]
        assert found[0] == two
        assert list(found[1].attributes.items()) == [("a", "x"), ("b", "1"), ("switch", "s")]
        assert (notes.machine_changes, notes.machines_left_out) == (1, 2)
        assert [machine.name for machine in machines.machines(2)] == ["1", "3"]

    def test_no_machine_is_an_error(self) -> None:
        with pytest.raises(TraceError, match="no machine is there") as caught:
            GoogleMachines(Path("trace"), 10, Notes()).machines()
        assert (caught.value.file, caught.value.expected) == (
            "trace/machine_events",
            "machines added by 10 µs",
        )


class TestTables:
    def test_parts_are_read_in_the_order_of_their_names(self, tmp_path: Path) -> None:
        (tmp_path / "job").mkdir()
        names = ["job/part-2.csv", "job/part-1.csv.gz", "job/notes.txt", "job-1.json", "job.csv"]
        names += ["job_part3.csv", "job_events.csv", "jobs.csv"]
        for name in names:
            (tmp_path / name).write_text("")
        found = [str(path.relative_to(tmp_path)) for path in parts(tmp_path, "job")]
        assert found == [
            "job/part-1.csv.gz",
            "job/part-2.csv",
            "job-1.json",
            "job.csv",
            "job_part3.csv",
        ]
        assert parts(tmp_path, "task", optional=True) == []
        with pytest.raises(TraceError, match="no table job_event") as caught:
            parts(tmp_path, "job_event")
        assert caught.value.hint is not None
        assert "job_events.csv" in caught.value.hint

    def test_lines_have_their_numbers_and_empty_ones_are_left_out(self, tmp_path: Path) -> None:
        text = b"a\r\n\nb\n"
        (tmp_path / "t.csv").write_bytes(text)
        (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text))
        for name in ("t.csv", "t.csv.gz"):
            assert list(lines(tmp_path / name)) == [(1, "a"), (3, "b")]

    @pytest.mark.parametrize(
        ("name", "data", "line", "says"),
        [
            ("t.csv.gz", gzip.compress(b"a\nb\n" * 9)[:-8], None, "ends too early"),
            ("t.csv.gz", b"a\nb\n", 1, "not gzip"),
            ("t.csv", b"a\n\xff\n", 1, "not UTF-8 at byte 2"),
        ],
    )
    def test_a_file_that_breaks_off_is_named_with_its_line(
        self, tmp_path: Path, name: str, data: bytes, line: int | None, says: str
    ) -> None:
        (tmp_path / name).write_bytes(data)
        with pytest.raises(TraceError, match=says) as caught:
            list(lines(tmp_path / name))
        assert caught.value.file == str(tmp_path / name)
        assert caught.value.line == line or line is None

    def test_rows_with_too_many_or_too_few_fields_are_named(self, tmp_path: Path) -> None:
        path = tmp_path / "t.csv"
        for text, field, number in (("1\n", "a", 1), ("1,2\n1,2,3\n", "b", 2)):
            path.write_text(text)
            with pytest.raises(TraceError) as caught:
                list(bare_rows(path, ("a", "b")))
            assert (caught.value.field, caught.value.line) == (field, number)
            assert caught.value.expected == "2: a, b"
            path.write_text("a,b\n" + text)
            with pytest.raises(TraceError) as caught:
                list(named_rows(path, ("a", "b")))
            assert (caught.value.field, caught.value.line) == (field, number + 1)
            assert caught.value.expected == "2, as in the heading"

    def test_nested_objects_are_dotted_names(self, tmp_path: Path) -> None:
        path = tmp_path / "t.json"
        path.write_text('{"a": {"x": 1, "y": 2}, "b": 3}\n')
        [row] = named_rows(path, ("b",))
        assert row.fields == {"b": 3, "a.x": 1, "a.y": 2}
        (tmp_path / "t.csv").write_text('b,"a.x"\n3,"1,5"\n')
        [row] = named_rows(tmp_path / "t.csv", ("b",))
        assert (row.fields, row.line) == ({"b": "3", "a.x": "1,5"}, 2)


class TestRows:
    def row(self, value: object) -> Row:
        return Row(Path("t"), 4, {"x": value})

    @pytest.mark.parametrize(
        ("value", "expected"), [(3, 3), ("-7", -7), (4.0, 4), ("", 9), (None, 9)]
    )
    def test_whole_numbers(self, value: object, expected: int) -> None:
        assert self.row(value).whole("x", 9) == expected

    @pytest.mark.parametrize("value", [1.5, "x", float("inf"), True, [1]])
    def test_what_is_no_whole_number(self, value: object) -> None:
        with pytest.raises(TraceError, match="is not a whole number") as caught:
            self.row(value).whole("x")
        assert (caught.value.file, caught.value.line, caught.value.field) == ("t", 4, "x")
        with pytest.raises(TraceError, match="is missing"):
            self.row(None).whole("x")

    @pytest.mark.parametrize(
        ("value", "expected"),
        [(2**53, 2**53), (0, 0), *((big, AFTER_THE_END) for big in (2**63 - 1, 2**70))],
    )
    def test_times(self, value: int, expected: int) -> None:
        assert self.row(value).time("x") == expected

    @pytest.mark.parametrize("value", [-1, 2**53 + 1])
    def test_impossible_times(self, value: int) -> None:
        with pytest.raises(TraceError, match="out of range"):
            self.row(value).time("x")

    @pytest.mark.parametrize(
        ("value", "expected"), [(None, None), ("", None), ("0", 0.0), (1000, 1000.0)]
    )
    def test_shares(self, value: object, expected: float | None) -> None:
        assert self.row(value).share("x") == expected

    @pytest.mark.parametrize("value", [-0.1, 1000.5, "nan", "x", [1]])
    def test_what_is_no_share(self, value: object) -> None:
        with pytest.raises(TraceError) as caught:
            self.row(value).share("x")
        assert caught.value.expected == "a share of the largest machine"

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (None, False),
            ("", False),
            (True, True),
            ("TRUE", True),
            ("false", False),
            (0, False),
            (1, True),
        ],
    )
    def test_flags(self, value: object, expected: bool) -> None:
        assert self.row(value).flag("x") is expected
        with pytest.raises(TraceError, match="is not a truth value"):
            self.row("yes").flag("x")

    def test_choices_by_name_or_number(self) -> None:
        for value, expected in (("b", 1), (1, 1), ("0", 0), ("", 1)):
            assert self.row(value).choice("x", ("a", "b"), 1) == expected
        for value in (2, -1):
            with pytest.raises(TraceError, match="none of the known") as caught:
                self.row(value).choice("x", ("a", "b"))
            assert caught.value.expected == "0 a, 1 b"

    def test_priorities_and_texts(self) -> None:
        assert Row(Path("t"), 1, {"priority": "11"}).priority() == 11
        assert Row(Path("t"), 1, {}).priority(2) == 2
        with pytest.raises(TraceError, match="out of range"):
            Row(Path("t"), 1, {"priority": -1}).priority()
        assert (self.row(None).text("x"), self.row(7).text("x")) == ("", "7")
        with pytest.raises(TraceError, match="is not printable"):
            self.row("a\n").text("x")


def test_a_job_is_written_with_everything_that_is_not_the_default() -> None:
    execution = Execution(command=("a", "b"), timeout=5)
    full = TaskGroup(
        2, Resources(500, 0, {"gpu": 1}), estimate=9, tags=("t",), requires={"r": "1"},
        prefers={"p": "2"}, demands={"d": "3"}, retries=4, backoff=6, execution=execution,
    )  # fmt: skip
    plain = TaskGroup(1, Resources(1, 1), estimate=7)
    constraint = parse_constraint("t -> {t, 0, 0} in machine")
    made = Job(
        "j", (full, plain), kind="service", name="n", precedence=3, gang=True, owner="o", program="p",
        constraints=(constraint,),
    )  # fmt: skip
    written = job_table(SimulatedJob(made, 8, (GroupTruth((1, 2)), GroupTruth((7,)))))
    assert written == {
        "id": "j",
        "submit": 8,
        "kind": "service",
        "name": "n",
        "precedence": 3,
        "gang": True,
        "owner": "o",
        "program": "p",
        "constraints": ["t -> {t, 0, 0} in machine"],
        "groups": [
            {
                "count": 2,
                "request": {"cpu": 500, "gpu": 1},
                "durations": [1, 2],
                "estimate": 9,
                "tags": ["t"],
                "requires": {"r": "1"},
                "prefers": {"p": "2"},
                "demands": {"d": "3"},
                "retries": 4,
                "backoff": 6,
                "command": ("a", "b"),
                "timeout": 5,
            },
            {"count": 1, "request": {"cpu": 1, "memory": 1}, "duration": 7},
        ],
    }
    bare = job_table(SimulatedJob(Job("k", (plain,)), 0, (GroupTruth((7,)),)))
    assert bare == {
        "id": "k", "submit": 0, "kind": "batch", "count": 1, "request": {"cpu": 1, "memory": 1},
        "duration": 7,
    }  # fmt: skip


def test_a_mean_is_positive() -> None:
    assert TimeExponential(mean=1).mean == 1
    with pytest.raises(ModelError, match="a mean of 0"):
        TimeExponential(mean=0)


def test_the_mean_rate_of_a_pattern_is_that_of_a_log_normal_distribution() -> None:
    from math import exp, log

    found: dict[str, Any] = {name: pattern.mean for name, pattern in PATTERNS.items()}
    for name, (median, peak) in {"A": (8, 28), "B": (9, 40), "C": (9, 195), "D": (10, 373)}.items():
        assert found[name] == pytest.approx(median * exp((log(peak / median) / 3.09) ** 2 / 2))
