"""Which files are parts of a table: in its folder, or beside others under its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.model.errors import TraceError
from argosy.workloads.google_tables import parts


def names(directory: Path, table: str) -> list[str]:
    return [str(path.relative_to(directory)) for path in parts(directory, table)]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for folder in ("job_events", "job-old.csv", "task_events.csv"):
        (tmp_path / folder).mkdir()
    for name in (
        "job_events/part-00001.csv.gz",
        "job_events/part-00000.csv.gz",
        "job_events/README",
        "job_events/sums.txt",
        "job-9.json.gz",
        "job-1.csv",
        "job.csv",
        "job_part.csv",
        "job_parts-2.json",
        "job_x.csv",
        "job2.csv",
        "my-job.csv",
        "job.txt",
        "task_events.csv/part-00000.csv",
    ):
        (tmp_path / name).write_text("")
    return tmp_path


def test_parts_beside_others_have_the_tables_name_and_an_ending(directory: Path) -> None:
    assert names(directory, "job") == [
        "job-1.csv",
        "job-9.json.gz",
        "job.csv",
        "job_part.csv",
        "job_parts-2.json",
    ]


def test_parts_in_the_folder_need_no_name_and_come_before_those_beside_it(directory: Path) -> None:
    (directory / "job_events.csv").write_text("")
    assert names(directory, "job_events") == [
        "job_events/part-00000.csv.gz",
        "job_events/part-00001.csv.gz",
        "job_events.csv",
    ]


def test_a_folder_is_no_part_whatever_its_name(directory: Path) -> None:
    assert parts(directory, "task_events", optional=True) == []
    with pytest.raises(TraceError, match="no table task_events") as caught:
        parts(directory, "task_events")
    assert caught.value.file == str(directory)
    assert caught.value.expected == (
        "task_events/part-00000-of-00500.csv.gz, or task_events-….json.gz"
    )


def test_a_directory_that_is_not_there_is_a_mistake_even_for_optional_tables(
    tmp_path: Path,
) -> None:
    with pytest.raises(TraceError, match="cannot be read: No such file or directory") as caught:
        parts(tmp_path / "none", "job", optional=True)
    assert caught.value.expected == "a directory with the tables of a Google cluster trace"
