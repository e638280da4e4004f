"""The readers of Google's public traces, on small tables made here in the same format."""

import gzip
import json
from itertools import islice
from pathlib import Path

import pytest
from click.testing import CliRunner

from argosy.cli.app import app
from argosy.experiments.execute import execute
from argosy.model.errors import ScenarioError, TraceError
from argosy.model.resources import Resources
from argosy.records.directory import open_run
from argosy.scenarios.loader import load
from argosy.workloads import google2011, google2019
from argosy.workloads.google_jobs import APART, LARGEST_MACHINE, Notes, scaled

SECOND = 1_000_000
START = 600 * SECOND
WHOLE = Resources(10_000, 10_000)


def write(path: Path, lines: list[str], *, compressed: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if compressed else data)
    return path


# The trace of 2011.

SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL, LOST = range(7)


def job_event(time, job, event):
    return f"{time * SECOND},,{job},{event},kim,2,name,logical"


def task_event(time, job, index, event, *, priority=0, cpu="0.25", memory="0.125", apart=""):
    return f"{time * SECOND},,{job},{index},,{event},kim,2,{priority},{cpu},{memory},0.001,{apart}"


def constraint(time, job, index, operator, name, value):
    return f"{time * SECOND},{job},{index},{operator},{name},{value}"


def trace_2011(directory: Path, jobs, tasks, constraints=(), *, compressed=False) -> Path:
    end = ".csv.gz" if compressed else ".csv"
    for table, lines in (
        ("job_events", jobs),
        ("task_events", tasks),
        ("task_constraints", constraints),
    ):
        half = len(lines) // 2
        for part, some in enumerate((list(lines[:half]), list(lines[half:]))):
            if some:
                name = f"part-{part:05}-of-00002{end}"
                write(directory / table / name, some, compressed=compressed)
    return directory


def simple_jobs(*numbers):
    return [job_event(700, number, SUBMIT) for number in numbers] + [
        job_event(900, number, FINISH) for number in numbers
    ]


def simple_tasks(*numbers, priority=0):
    return [
        task_event(time, number, 0, event, priority=priority)
        for time, event in ((700, SUBMIT), (710, SCHEDULE), (760, FINISH))
        for number in numbers
    ]


@pytest.mark.parametrize("compressed", [False, True])
def test_a_job_runs_for_as_long_as_its_tasks_did(tmp_path, compressed):
    tasks = sorted(
        [
            *simple_tasks(7),
            task_event(700, 7, 1, SUBMIT),
            task_event(705, 7, 1, SCHEDULE),
            task_event(805, 7, 1, KILL),
        ],
        key=lambda line: int(line.split(",")[0]),
    )
    trace_2011(tmp_path, simple_jobs(7), tasks, compressed=compressed)
    notes = Notes()
    (job,) = google2011.jobs(tmp_path, whole=WHOLE, notes=notes)
    assert (job.id, job.submit, job.job.owner, job.kind) == ("7", 100 * SECOND, "kim", "batch")
    (group,) = job.groups
    assert group.request == Resources(2500, 1250)
    assert sorted(job.truth[0].durations) == [50 * SECOND, 100 * SECOND]
    assert (notes.jobs, notes.tasks, notes.not_expressible) == (1, 2, {})


def test_requests_of_one_cpu_and_another_memory_differ(tmp_path):
    tasks = [
        task_event(time, number, 0, event, memory=memory)
        for time, event in ((700, SUBMIT), (710, SCHEDULE), (760, FINISH))
        for number, memory in ((1, "0.125"), (2, "0.5"))
    ]
    trace_2011(tmp_path, simple_jobs(1, 2), tasks)
    requests = [job.groups[0].request for job in google2011.jobs(tmp_path, whole=WHOLE)]
    assert requests == [Resources(2500, 1250), Resources(2500, 5000)]


@pytest.mark.parametrize(("priority", "kind"), [(0, "batch"), (8, "batch"), (9, "service")])
def test_priorities_up_to_eight_are_batch(tmp_path, priority, kind):
    trace_2011(tmp_path, simple_jobs(1), simple_tasks(1, priority=priority))
    (job,) = google2011.jobs(tmp_path)
    assert (job.kind, job.job.precedence) == (kind, priority)


def test_only_the_last_run_of_an_evicted_task_counts(tmp_path):
    events = (SUBMIT, SCHEDULE, EVICT, SUBMIT, SCHEDULE, FINISH)
    times = (700, 710, 720, 720, 730, 790)
    tasks = [task_event(time, 1, 0, event) for time, event in zip(times, events, strict=True)]
    trace_2011(tmp_path, simple_jobs(1), tasks)
    notes = Notes()
    (job,) = google2011.jobs(tmp_path, notes=notes)
    assert job.truth[0].durations == (60 * SECOND,)
    assert notes.reruns == 1


def test_what_runs_on_at_the_end_runs_until_stopped_and_what_never_ran_is_left_out(tmp_path):
    tasks = [
        task_event(700, 1, 0, SUBMIT),
        task_event(700, 1, 1, SUBMIT),
        task_event(710, 1, 0, SCHEDULE),
        f"{2**63 - 1},,1,0,,{FINISH},kim,2,0,0.25,0.125,0.001,",
    ]
    trace_2011(tmp_path, [job_event(700, 1, SUBMIT)], tasks)
    notes = Notes()
    (job,) = google2011.jobs(tmp_path, notes=notes)
    assert (job.tasks, job.truth[0].durations) == (1, ())
    assert (notes.still_running, notes.never_ran) == (1, 1)


def test_what_ran_before_the_start_has_its_remaining_time(tmp_path):
    tasks = [
        task_event(0, 1, 0, SUBMIT),
        task_event(0, 1, 1, SUBMIT),
        task_event(0, 1, 0, SCHEDULE),
        task_event(0, 1, 1, SCHEDULE),
        task_event(600, 1, 1, FINISH),
        task_event(650, 1, 0, FINISH),
    ]
    trace_2011(tmp_path, [job_event(0, 1, SUBMIT), job_event(900, 1, FINISH)], tasks)
    (job,) = google2011.jobs(tmp_path)
    assert (job.submit, job.tasks, job.truth[0].durations) == (0, 1, (50 * SECOND,))


def test_a_window_takes_what_runs_at_its_start_and_what_is_submitted_within(tmp_path):
    tasks = sorted(
        (
            task_event(begin + offset, number, 0, event)
            for number, begin in ((1, 620), (2, 690), (3, 740), (4, 800))
            for offset, event in ((0, SUBMIT), (0, SCHEDULE), (60, FINISH))
        ),
        key=lambda line: int(line.split(",")[0]),
    )
    ends = [job_event(time, n, FINISH) for n, time in ((1, 680), (2, 750), (3, 800), (4, 860))]
    trace_2011(tmp_path, ends, tasks)
    found = list(google2011.jobs(tmp_path, start=700 * SECOND, span=100 * SECOND))
    assert [(job.id, job.submit, job.truth[0].durations) for job in found] == [
        ("2", 0, (50 * SECOND,)),
        ("3", 40 * SECOND, (60 * SECOND,)),
    ]


def test_constraints_of_2011_become_requirements(tmp_path):
    constraints = [
        constraint(700, 1, 0, 0, "arch", "x"),
        constraint(700, 1, 0, 0, "arch", "x"),
        constraint(700, 1, 0, 0, "arch", "y"),
        constraint(700, 1, 0, 0, "disk", ""),
        constraint(700, 1, 0, 1, "rack", "r1"),
        constraint(700, 1, 0, 2, "clock", "3"),
        constraint(700, 1, 0, 3, "clock", "1"),
    ]
    tasks = simple_tasks(1)
    tasks[0] = task_event(700, 1, 0, SUBMIT, apart="1")
    trace_2011(tmp_path, simple_jobs(1), tasks, constraints)
    notes = Notes()
    (job,) = google2011.jobs(tmp_path, notes=notes)
    assert job.groups[0].requires == {
        "arch": "x",
        "disk=": "yes",
        "rack!=r1": "yes",
        "clock<3": "yes",
        "clock>1": "yes",
    }
    assert job.job.constraints == (APART,)
    assert notes.not_expressible == {"attribute equal to two values": 1}


def test_jobs_are_given_as_soon_as_they_are_over(tmp_path):
    jobs = [job_event(700, 1, SUBMIT), job_event(765, 1, FINISH), job_event(800, 2, SUBMIT)]
    broken = ["this line would be an error"]
    trace_2011(tmp_path, jobs, [*simple_tasks(1), task_event(800, 2, 0, SUBMIT), *broken])
    stream = google2011.jobs(tmp_path)
    assert next(stream).id == "1"
    with pytest.raises(TraceError):
        next(stream)


def test_machines_of_2011_are_those_of_the_asked_time(tmp_path):
    events = [
        "0,5,0,p1,0.5,0.25",
        "0,4,0,p1,1,1",
        f"{650 * SECOND},4,1,,,",
        "0,6,0,p2,,",
        f"{500 * SECOND},5,2,p1,0.75,0.25",
        f"{900 * SECOND},7,0,p1,1,1",
    ]
    attributes = ["0,5,arch,x,0", "0,5,disk,9,0", f"{550 * SECOND},5,disk,,1"]
    write(tmp_path / "machine_events" / "part-00000-of-00001.csv", events)
    write(tmp_path / "machine_attributes" / "part-00000-of-00001.csv", attributes)
    notes = Notes()
    at_start = google2011.machines(tmp_path, notes=notes)
    assert [machine.name for machine in at_start] == ["m4", "m5"]
    assert at_start[1].capacity == Resources(48_000, 64 << 30)
    assert at_start[1].attributes == {"arch": "x", "platform": "p1"}
    assert (notes.machine_changes, notes.machines_left_out) == (2, 1)
    assert [m.name for m in google2011.machines(tmp_path, at=950 * SECOND)] == ["m5", "m7"]
    assert len(google2011.machines(tmp_path, most=1)) == 1


def test_attributes_that_machines_get_later_are_not_there_yet(tmp_path):
    later = 650 * SECOND
    attributes = ["0,5,arch,x,0", f"{later},5,arch,y,0", f"{later},5,disk,9,0"]
    write(tmp_path / "machine_events" / "part-00000-of-00001.csv", ["0,5,0,p1,0.5,0.25"])
    write(tmp_path / "machine_attributes" / "part-00000-of-00001.csv", attributes)
    (at_start,) = google2011.machines(tmp_path)
    assert at_start.attributes == {"arch": "x", "platform": "p1"}
    (afterwards,) = google2011.machines(tmp_path, at=later)
    assert afterwards.attributes == {"arch": "y", "disk": "9", "platform": "p1"}


def test_requests_are_rounded_up_and_capacities_down():
    assert scaled(0.00001, 0.3, whole=Resources(100, 101), up=True) == Resources(1, 31)
    assert scaled(0.99999, 0.3, whole=Resources(100, 101), up=False) == Resources(99, 30)
    assert scaled(1.0, None, whole=LARGEST_MACHINE, up=True) == Resources(64_000, 0)


@pytest.mark.parametrize(
    ("line", "field", "problem"),
    [
        ("x,,1,0,,0,kim,2,0,0.1,0.1,0,", "time", "not a whole number"),
        ("-5,,1,0,,0,kim,2,0,0.1,0.1,0,", "time", "out of range"),
        ("7,,1,0,,0,kim,2,0,lots,0.1,0,", "CPU request", "not a number"),
        ("7,,1,0,,0,kim,2,0,nan,0.1,0,", "CPU request", "an amount of nan"),
        ("7,,1,0,,0,kim,2,0,-1,0.1,0,", "CPU request", "an amount of -1"),
        ("7,,,0,,0,kim,2,0,0.1,0.1,0,", "job ID", "is missing"),
        ("7,,1,0,,12,kim,2,0,0.1,0.1,0,", "event type", "12 is none of the known"),
        ("7,,1,0,,0,kim,2,99999,0.1,0.1,0,", "priority", "out of range"),
        ("7,,1,0,,0,kim,2,0,0.1,0.1,0,maybe", "different machines restriction", "truth value"),
        ("7,,1,0,,0,k\x07m,2,0,0.1,0.1,0,", "user", "not printable"),
        ("7,,1,0,,0,kim,2,0,0.1", "CPU request", "10 fields"),
        ("7,,1,0,,0,kim,2,0,0.1,0.1,0,,,", "different machines restriction", "15 fields"),
    ],
)
def test_a_mistake_in_a_line_is_found_with_its_place(tmp_path, line, field, problem):
    trace_2011(tmp_path, simple_jobs(1), [])
    path = write(tmp_path / "task_events" / "part-00000-of-00001.csv", ["", line])
    with pytest.raises(TraceError, match="expected") as caught:
        list(google2011.jobs(tmp_path))
    error = caught.value
    assert (error.file, error.line, error.field) == (str(path), 2, field)
    assert problem in error.problem
    assert error.expected


def test_a_gzip_file_that_ends_too_early_is_named(tmp_path):
    trace_2011(tmp_path, simple_jobs(1), [])
    path = tmp_path / "task_events" / "part-00000-of-00001.csv.gz"
    write(path, simple_tasks(*range(2000)), compressed=True)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(TraceError, match="ends too early") as caught:
        list(google2011.jobs(tmp_path))
    assert caught.value.file == str(path)
    assert caught.value.line is not None
    assert caught.value.hint == "fetch this part again"


def test_a_file_that_is_not_gzip_or_not_text_is_named(tmp_path):
    trace_2011(tmp_path, simple_jobs(1), [])
    path = write(tmp_path / "task_events" / "part-00000-of-00001.csv.gz", ["plain"])
    with pytest.raises(TraceError, match="not gzip"):
        list(google2011.jobs(tmp_path))
    path.unlink()
    (tmp_path / "task_events" / "part-00000-of-00001.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(TraceError, match="not UTF-8"):
        list(google2011.jobs(tmp_path))


def test_a_missing_table_or_directory_is_named(tmp_path):
    trace_2011(tmp_path, simple_jobs(1), [])
    with pytest.raises(TraceError, match="no table task_events"):
        list(google2011.jobs(tmp_path))
    with pytest.raises(TraceError, match="cannot be read"):
        google2011.machines(tmp_path / "nowhere")


def test_events_out_of_order_are_refused_or_sorted(tmp_path):
    tasks = simple_tasks(1)
    trace_2011(tmp_path, simple_jobs(1), tasks[::-1])
    with pytest.raises(TraceError, match="in order of time") as caught:
        list(google2011.jobs(tmp_path))
    assert "in_order=False" in str(caught.value.hint)
    (job,) = google2011.jobs(tmp_path, in_order=False)
    assert job.truth[0].durations == (50 * SECOND,)


def test_events_after_a_jobs_end_are_counted(tmp_path):
    tasks = [*simple_tasks(1), task_event(950, 1, 0, KILL)]
    trace_2011(tmp_path, simple_jobs(1), tasks)
    notes = Notes()
    assert len(list(google2011.jobs(tmp_path, notes=notes))) == 1
    assert notes.late_events == 1


# The traces of 2019. Numbers of 64 bits are text, as exports have them.


def collection(time, number, event, **more):
    return {"time": str(time * SECOND), "type": event, "collection_id": str(number)} | more


def instance(time, number, index, event, **more):
    asked = {"resource_request": {"cpus": 0.25, "memory": 0.5}, "priority": 110}
    return collection(time, number, event, instance_index=index, **asked) | more


def trace_2019(directory: Path, collections, instances, *, end=".json.gz") -> Path:
    for table, rows in (("collection_events", collections), ("instance_events", instances)):
        lines = [json.dumps(row) for row in rows]
        write(directory / f"{table}-000000000000{end}", lines, compressed=end.endswith("gz"))
    return directory


def life(number, begin=700, end=760, **more):
    return [
        instance(begin, number, 0, 0, **more),
        instance(begin + 1, number, 0, 3, **more),
        instance(end, number, 0, 6, **more),
    ]


@pytest.mark.parametrize("end", [".json.gz", ".json", ".jsonl"])
def test_a_collection_is_a_job(tmp_path, end):
    collections = [
        collection(700, 9, 0, priority=200, user="lee"),
        collection(760, 9, 6, priority=200),
    ]
    trace_2019(tmp_path, collections, life(9, priority=200), end=end)
    (job,) = google2019.jobs(tmp_path, whole=WHOLE)
    assert (job.id, job.submit, job.job.owner) == ("9", 100 * SECOND, "lee")
    assert (job.kind, job.job.precedence) == ("service", 200)
    assert job.groups[0].request == Resources(2500, 5000)
    assert job.truth[0].durations == (59 * SECOND,)


@pytest.mark.parametrize(
    ("priority", "scheduler", "kind"),
    [
        (0, 0, "batch"),
        (115, 0, "batch"),
        (116, 0, "service"),
        (360, 0, "service"),
        (116, "SCHEDULER_BATCH", "batch"),
    ],
)
def test_free_and_best_effort_tiers_are_batch(tmp_path, priority, scheduler, kind):
    told = {"priority": priority, "scheduler": scheduler}
    collections = [collection(700, 9, "SUBMIT", **told), collection(760, 9, "FINISH", **told)]
    trace_2019(tmp_path, collections, life(9, priority=priority))
    (job,) = google2019.jobs(tmp_path)
    assert job.kind == kind


def test_what_runs_inside_an_alloc_set_takes_no_room_of_its_own(tmp_path):
    collections = [
        collection(700, 1, 0, collection_type=1),
        collection(700, 2, 0, alloc_collection_id="1"),
    ]
    instances = sorted(
        life(1, collection_type=1) + life(2, alloc_collection_id="1"),
        key=lambda row: int(row["time"]),
    )
    trace_2019(tmp_path, collections, instances)
    notes = Notes()
    assert [job.id for job in google2019.jobs(tmp_path, notes=notes)] == ["1"]
    assert notes.not_expressible == {
        "job inside an alloc set": 1,
        "task inside an alloc set": 1,
    }


def test_constraints_of_2019_are_read_or_counted(tmp_path):
    told = [
        {"name": "arch", "value": "x", "relation": 0},
        {"name": "gpu", "relation": "PRESENT"},
        {"name": "clock", "value": "2", "relation": 5},
    ]
    limits = {"max_per_machine": 1, "max_per_switch": 0, "start_after_collection_ids": ["3"]}
    trace_2019(tmp_path, [collection(700, 1, 0, **limits)], life(1, constraint=told))
    notes = Notes()
    (job,) = google2019.jobs(tmp_path, notes=notes)
    assert job.groups[0].requires == {"arch": "x"}
    assert notes.not_expressible == {
        "attribute present": 1,
        "attribute greater-than-equal": 1,
        "at most so many tasks on a machine": 1,
        "not before another job is over": 1,
    }


def test_a_csv_export_says_the_same(tmp_path):
    heading = "time,type,collection_id,priority,instance_index,resource_request.cpus"
    heading += ",resource_request.memory,constraint"
    told = '"[{""name"": ""arch"", ""value"": ""x"", ""relation"": 0}]"'
    rows = [
        f"{time},{event},9,0,0,0.25,0.5,{told}" for time, event in ((700, 0), (701, 3), (760, 6))
    ]
    rows = [row.replace(",", "000000,", 1) for row in rows]
    write(tmp_path / "instance_events.csv", [heading, *rows])
    write(tmp_path / "collection_events.csv", ["time,type,collection_id", "700000000,0,9"])
    (job,) = google2019.jobs(tmp_path, whole=WHOLE)
    assert job.groups[0].request == Resources(2500, 5000)
    assert job.groups[0].requires == {"arch": "x"}
    assert job.truth[0].durations == (59 * SECOND,)


def test_exports_out_of_order_are_refused_or_sorted(tmp_path):
    rows = life(2, 800, 860) + life(1)
    trace_2019(tmp_path, [collection(700, 1, 0), collection(800, 2, 0)], rows)
    with pytest.raises(TraceError, match="in order of time"):
        list(google2019.jobs(tmp_path))
    assert [job.id for job in google2019.jobs(tmp_path, in_order=False)] == ["1", "2"]


def test_machines_of_2019_have_their_switch(tmp_path):
    events = [
        {"time": 0, "machine_id": "3", "type": 1, "switch_id": "s1", "platform_id": "p",
         "capacity": {"cpus": 0.5, "memory": 0.25}},
        {"time": 0, "machine_id": "4", "type": 1, "capacity": {"cpus": 1, "memory": 1}},
        {"time": 1, "machine_id": "4", "type": 2},
    ]  # fmt: skip
    attributes = [{"time": 0, "machine_id": "3", "name": "arch", "value": "x", "deleted": False}]
    write(tmp_path / "machine_events.json", [json.dumps(row) for row in events])
    write(tmp_path / "machine_attributes.json", [json.dumps(row) for row in attributes])
    (machine,) = google2019.machines(tmp_path)
    assert machine.name == "m3"
    assert machine.capacity == Resources(32_000, 64 << 30)
    assert machine.attributes == {"arch": "x", "platform": "p", "switch": "s1"}
    write(tmp_path / "machine_events.json", [json.dumps(events[2])])
    with pytest.raises(TraceError, match="no machine"):
        google2019.machines(tmp_path)


@pytest.mark.parametrize(
    ("line", "field", "problem"),
    [
        ("[1]", None, "not a JSON object"),
        ('{"time": 1', None, "not a JSON object"),
        ('{"time": ' + "[" * 5000, None, "not a JSON object"),
        ('{"time": 1.5, "type": 0, "collection_id": 1}', "time", "not a whole number"),
        ('{"time": 1, "type": "SUBMITTED", "collection_id": 1}', "type", "not a whole number"),
        ('{"time": 1, "type": 0}', "collection_id", "is missing"),
        (
            '{"time": 1, "type": 0, "collection_id": 1, "resource_request": {"cpus": "many"}}',
            "resource_request.cpus",
            "not a number",
        ),
        (
            '{"time": 1, "type": 0, "collection_id": 1, "constraint": 5}',
            "constraint",
            "not an array",
        ),
        (
            '{"time": 1, "type": 0, "collection_id": 1, "constraint": "' + "[" * 5000 + '"}',
            "constraint",
            "not an array",
        ),
        (
            '{"time": 1, "type": 0, "collection_id": 1, "constraint": [{"value": "x"}]}',
            "constraint[0].name",
            "is missing",
        ),
    ],
)
def test_a_mistake_in_json_is_found_with_its_place(tmp_path, line, field, problem):
    trace_2019(tmp_path, [], [])
    path = write(tmp_path / "instance_events-000000000001.json", [line])
    with pytest.raises(TraceError) as caught:
        list(google2019.jobs(tmp_path))
    error = caught.value
    assert (error.file, error.line, error.field) == (str(path), 1, field)
    assert problem in error.problem
    assert error.expected


def test_a_csv_without_its_heading_or_with_a_short_line_is_refused(tmp_path):
    trace_2019(tmp_path, [], [])
    path = write(tmp_path / "instance_events-1.csv", ["700,0,9"])
    with pytest.raises(TraceError, match="no heading"):
        list(google2019.jobs(tmp_path))
    write(path, ["time,type,collection_id", f"700,0,{'9' * 200_000}"])
    with pytest.raises(TraceError, match="not CSV"):
        list(google2019.jobs(tmp_path))
    write(path, ["time,type,collection_id", "700,0"])
    with pytest.raises(TraceError, match="2 fields") as caught:
        list(google2019.jobs(tmp_path))
    assert (caught.value.line, caught.value.field) == (2, "type")


def test_reading_streams(tmp_path):
    """A million lines would follow; ten jobs need only the first few."""
    numbers = range(2000)
    rows = [row for n in numbers for row in life(n, 700 + n * 100, 760 + n * 100)]
    ends = [collection(761 + n * 100, n, 6) for n in numbers]
    trace_2019(tmp_path, ends, [*rows, {"time": "wrong"}])
    assert len(list(islice(google2019.jobs(tmp_path), 10))) == 10


SCENARIO = """
name = "traced"
[workload.{version}]
path = "trace"
{more}
[[fleet]]
name = "all"
engine = "omega"
"""


def test_a_scenario_replays_a_trace_on_its_machines(tmp_path):
    trace = trace_2011(tmp_path / "trace", simple_jobs(1, 2), simple_tasks(1, 2))
    write(trace / "machine_events" / "part-00000-of-00001.csv", ["0,5,0,p,1,1", "0,6,0,p,1,1"])
    file = write(
        tmp_path / "traced.toml", [SCENARIO.format(version="google2011", more="machines = 1")]
    )
    loaded = load(file)
    assert [machine.name for machine in loaded.cell.machines] == ["m5"]
    assert [job.id for job in loaded.jobs] == ["1", "2"]
    assert execute(loaded, None).counts.jobs_finished == 2


def test_what_a_job_cannot_express_of_a_trace_is_reported(tmp_path):
    told = [constraint(700, number, 0, 0, "platform", value) for number in (1, 2) for value in "pq"]
    trace = trace_2011(tmp_path / "trace", simple_jobs(1, 2), simple_tasks(1, 2), told)
    comes_later = "700000000,6,0,p,1,1"
    write(trace / "machine_events" / "part-00000-of-00001.csv", ["0,5,0,p,1,1", comes_later])
    file = write(tmp_path / "traced.toml", [SCENARIO.format(version="google2011", more="")])
    notes = [
        "ignored in the trace: machines that came, went or changed later (1)",
        "a job cannot express what the trace says: attribute equal to two values (2)",
    ]
    kept = tmp_path / "run"
    for command in (["run", "--out", str(kept)], ["compare", "--engine", "omega", "--seeds", "1"]):
        done = CliRunner().invoke(app, [command[0], str(file), *command[1:], "-o", "json"])
        assert [line for line in done.stderr.splitlines() if line.startswith("note: ")] == [
            f"note: {text}" for text in notes
        ]
        assert json.loads(done.stdout)["left_out"] == notes
    run = open_run(kept)
    assert run.summary().left_out == list(run.scenario().left_out) == notes


def test_a_scenario_reads_unordered_exports_and_a_window(tmp_path):
    trace = trace_2019(tmp_path / "trace", [], life(2, 800, 860) + life(1))
    machine = {"time": 0, "machine_id": 3, "type": 1, "capacity": {"cpus": 1, "memory": 1}}
    write(trace / "machine_events.json", [json.dumps(machine)])
    window = 'start = "750s"\nspan = "1min"'
    file = write(tmp_path / "traced.toml", [SCENARIO.format(version="google2019", more=window)])
    assert [(job.id, job.submit) for job in load(file).jobs] == [("1", 0), ("2", 50 * SECOND)]
    late = SCENARIO.format(version="google2019", more='start = "900s"')
    with pytest.raises(ScenarioError, match="no jobs") as caught:
        load(write(file, [late]))
    assert caught.value.field == "workload.google2019"


def test_a_trace_that_is_not_there_is_placed_in_the_scenario(tmp_path):
    file = write(tmp_path / "traced.toml", [SCENARIO.format(version="google2011", more="")])
    with pytest.raises(ScenarioError, match="no directory 'trace'") as caught:
        load(file)
    assert (caught.value.field, caught.value.line) == ("workload.google2011.path", 4)
    (tmp_path / "trace").mkdir()
    with pytest.raises(TraceError, match="no table machine_events"):
        load(file)
