"""What traces say twice, too late or only in part, and what comes of it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from argosy.model.errors import TraceError
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.workloads.google_jobs import Ask, Assembly, GoogleMachines, Notes, TraceEvent, What
from argosy.workloads.google_tables import lines, named_rows

SMALL = Ask(Resources(1, 1))


def of_task(time: int, what: What, task: int = 0) -> TraceEvent:
    return TraceEvent(time, what, 1, task, SMALL)


def test_the_end_of_a_job_that_nobody_has_seen_says_nothing_about_what_follows() -> None:
    notes = Notes()
    events = [
        TraceEvent(0, What.ENDED, 1),
        of_task(1, What.SCHEDULED),
        of_task(4, What.STOPPED),
        TraceEvent(5, What.ENDED, 1),
    ]
    [found] = Assembly(0, None, notes).read(events)
    assert (found.submit, found.truth[0].durations) == (1, (3,))
    assert (notes.jobs, notes.late_events) == (1, 0)


def test_tasks_that_ran_equally_long_have_one_duration() -> None:
    events = [of_task(2, What.SCHEDULED, task) for task in range(3)]
    events += [of_task(9, What.STOPPED, task) for task in range(3)]
    [found] = Assembly(0, None, Notes()).read(events)
    assert (found.job.groups[0].count, found.truth[0].durations) == (3, (7,))


def test_of_two_values_at_the_same_time_a_machine_has_the_one_that_is_told_last() -> None:
    machines = GoogleMachines(Path("trace"), 10, Notes())
    machines.take(0, 1, Machine("1", Resources(2, 2), {"own": "x"}))
    for name, value in (("a", "1"), ("a", "2"), ("own", "y")):
        machines.take_attribute(10, 1, name, value)
    [found] = machines.machines()
    # What the machine's own event says goes before.
    assert found.attributes == {"a": "2", "own": "x"}


def test_each_run_before_the_last_is_noted() -> None:
    notes = Notes()
    events = [
        event
        for time in (0, 10, 20, 30)
        for event in (of_task(time, What.SCHEDULED), of_task(time + 3, What.STOPPED))
    ]
    assert len(list(Assembly(0, None, notes).read(events))) == 1
    assert notes.reruns == 3


def test_a_table_with_a_heading_may_be_compressed(tmp_path: Path) -> None:
    for name, text in (
        ("t.csv.gz", b"time,type\n5,6\n"),
        ("t.json.gz", b'{"time": "5", "type": "6"}\n'),
        ("t.csv.part.gz", b"time,type\n5,6\n"),
    ):
        (tmp_path / name).write_bytes(gzip.compress(text, mtime=0))
        [row] = named_rows(tmp_path / name, ("time", "type"))
        assert row.fields == {"time": "5", "type": "6"}


def test_a_compressed_file_that_is_damaged_inside_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    data = bytearray(gzip.compress(bytes(range(256)) * 9, mtime=0))
    data[10:30] = b"\xff" * 20
    path.write_bytes(bytes(data))
    with pytest.raises(TraceError, match=r"not gzip: .+; expected a gzip file") as caught:
        list(lines(path))
    assert (caught.value.file, caught.value.line) == (str(path), 1)
