"""Jobs for a live cluster as tables."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.model.jobs import Job
from argosy.model.truth import GroupTruth, SimulatedJob
from argosy.workloads.job_tables import job_table, read_job
from argosy.workloads.live_jobs import IN_DOCUMENTS, IN_FILES, live_job_table, read_live_job
from argosy.workloads.tables import Misfit, path_text

SMALL = {"cpu": "500m", "memory": "64MiB"}


def read(**table: Any) -> Job:
    return read_live_job({"request": SMALL, "command": "sleep 1", **table}, default_id="j-1")


def refusal(table: object, **arguments: Any) -> Misfit:
    with pytest.raises(Misfit) as caught:
        read_live_job(table, default_id="j-1", **arguments)
    return caught.value


def test_a_job_without_an_id_gets_the_default_one() -> None:
    assert read().id == "j-1"
    assert read(id="mine").id == "mine"


def test_a_batch_task_of_unknown_length_is_not_endless() -> None:
    assert not read().groups[0].endless
    assert read().groups[0].estimate is None


def test_a_service_is_endless_unless_it_says_otherwise() -> None:
    assert read(kind="service").groups[0].endless
    assert read(endless=True).groups[0].endless
    assert not read(kind="service", endless=False).groups[0].endless
    assert not read(kind="service", estimate="1h").groups[0].endless


@pytest.mark.parametrize("key", ["duration", "durations", "phases", "submit"])
def test_what_only_a_simulation_knows_is_refused(key: str) -> None:
    misfit = refusal({"request": SMALL, "command": "true", key: "10s"})
    assert path_text(misfit.path) == key
    assert "only for simulated jobs" in str(misfit.error)


def test_durations_are_refused_in_groups_too() -> None:
    group = {"request": SMALL, "command": "true"}
    misfit = refusal({"groups": [group, {**group, "duration": "1s"}]}, path=("jobs", 2))
    assert path_text(misfit.path) == "jobs[2].groups[1].duration"


@pytest.mark.parametrize(
    ("table", "place", "problem"),
    [
        ({"request": SMALL}, "", "nothing to execute"),
        ({"command": "true"}, "", "missing key 'request'"),
        ({"request": SMALL, "command": "true", "image": "alpine"}, "image", "container images"),
        ({"request": SMALL, "comand": "true"}, "comand", "unknown key 'comand'"),
        ({"request": SMALL, "command": "true", "groups": []}, "request", "both 'request' and"),
        ({"request": SMALL, "command": "true", "id": "a/b"}, "id", "job id 'a/b'"),
        (
            {"request": SMALL, "command": "true", "endless": True, "estimate": "1s"},
            "endless",
            "endless tasks with an estimate",
        ),
        (["true"], "", "an array is not a table"),
    ],
)
def test_a_mistake_has_its_place(table: object, place: str, problem: str) -> None:
    misfit = refusal(table)
    assert path_text(misfit.path) == place
    assert problem in misfit.error.problem
    assert misfit.error.expected


def test_times_need_units_in_files_but_not_in_documents() -> None:
    table = {"request": SMALL, "command": "true", "estimate": 5_000_000}
    assert read_live_job(table, default_id="x").groups[0].estimate == 5_000_000
    assert "no unit" in refusal(table, converter=IN_FILES).error.problem


groups = st.fixed_dictionaries(
    {"request": st.just(SMALL), "command": st.just(["sh", "-c", "echo $ARGOSY_TASK"])},
    optional={
        "count": st.integers(1, 9),
        "estimate": st.integers(0, 10**9),
        "tags": st.just(["web"]),
        "requires": st.just({"disk": "ssd"}),
        "environment": st.dictionaries(st.sampled_from("AB"), st.text("xyz")),
        "working_directory": st.just("/tmp"),
        "stdin": st.just("in"),
        "timeout": st.integers(0, 10**9),
        "grace": st.integers(0, 10**9),
        "retries": st.integers(0, 3),
        "backoff": st.integers(0, 10**6),
    },
)
jobs = st.fixed_dictionaries(
    {"kind": st.sampled_from(["batch", "service", "nightly"])},
    optional={
        "name": st.just("a name"),
        "owner": st.just("ann"),
        "precedence": st.integers(-5, 5),
        "gang": st.booleans(),
        "constraints": st.just(["web -> {web, 0, 0} in machine"]),
    },
)


@given(jobs, st.lists(groups, min_size=1, max_size=3))
def test_a_written_job_reads_back_the_same(
    job: dict[str, Any], parts: list[dict[str, Any]]
) -> None:
    table = job | (parts[0] if len(parts) == 1 else {"groups": parts})
    read = read_live_job(table, default_id="j-7")
    written = msgspec.json.decode(msgspec.json.encode(live_job_table(read)))
    assert read_live_job(written, default_id="another") == read


def test_a_recorded_job_without_an_estimate_reads_back() -> None:
    job = read()
    line = msgspec.json.encode(job_table(SimulatedJob(job, 5, (GroupTruth((7,)),))))
    again = read_job(IN_DOCUMENTS, msgspec.json.decode(line))
    assert again.truth == (GroupTruth((7,)),)
    assert again.groups[0].estimate == 7


@pytest.mark.parametrize(
    ("groups", "problem", "path"),
    [
        ([5], "5 is not a table", ("groups", 0)),
        (["duration"], "'duration' is not a table", ("groups", 0)),
        (
            ({"request": {}, "command": "a"}, {"request": {}, "phases": []}),
            "phases is only for simulated jobs: a live task ends when its process does",
            ("groups", 1, "phases"),
        ),
    ],
)
def test_groups_of_a_live_job_are_tables_without_what_is_simulated(
    groups: Any, problem: str, path: tuple[str | int, ...]
) -> None:
    with pytest.raises(Misfit) as caught:
        read_live_job({"id": "a", "groups": groups}, default_id="b")
    assert (caught.value.error.problem, caught.value.path) == (problem, path)
