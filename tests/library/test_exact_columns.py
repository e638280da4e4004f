"""The columns of a result on a run that can be followed by hand."""

from __future__ import annotations

from pathlib import Path

import argosy
from argosy.model.scenario import ConstantLatency, Network
from argosy.testing.builders import SECOND, cell, job, scenario

#: A machine of four cores; decisions take a second. The second job waits until the first has ended, and
#: the third never fits.
JOBS = [
    job("a", 2, cpu=2_000, seconds=3, owner="ann", precedence=1),
    job("b", 1, cpu=4_000, seconds=2, submit=2, kind="service"),
    job("c", 1, cpu=8_000, seconds=2, submit=3),
]


def result(**keep: Path) -> argosy.Result:
    spec = scenario(
        "omega",
        JOBS,
        replicas=1,
        cell=cell(1),
        settings={"t_job": SECOND, "t_task": 0, "backoff": SECOND, "attempts": 3},
        network=Network(latency=ConstantLatency(delay=0)),
    )
    return argosy.run(spec, **keep)


def test_tasks_have_a_row_each_in_the_order_in_which_they_ended() -> None:
    columns = {name: column.tolist() for name, column in result().tasks_columns().items()}
    assert columns["job"] == ["a", "a", "b"]
    assert columns["index"] == [0, 1, 0]
    assert columns["kind"] == ["batch", "batch", "service"]
    assert columns["machine"] == ["m0"] * 3
    assert columns["submitted"] == [0, 0, 2 * SECOND]
    assert columns["placed"][:2] == columns["started"][:2] == [SECOND, SECOND]
    assert columns["finished"][:2] == [4 * SECOND] * 2
    assert columns["finished"][2] - columns["started"][2] == 2 * SECOND
    assert columns["started"][2] >= 4 * SECOND


def test_jobs_have_a_row_each_in_the_order_of_submission(tmp_path: Path) -> None:
    found = result(keep=tmp_path / "run")
    columns = {name: column.tolist() for name, column in found.jobs_columns().items()}
    assert columns["job"] == ["a", "b", "c"]
    assert columns["kind"] == ["batch", "service", "batch"]
    assert columns["owner"] == ["ann", "", ""]
    assert columns["precedence"] == [1, 0, 0]
    assert columns["tasks"] == [2, 1, 1]
    assert columns["submitted"] == [0, 2 * SECOND, 3 * SECOND]
    assert columns["attempted"][:2] == [0, 2 * SECOND]
    assert columns["wait_time"][:2] == [0, 0]
    assert columns["placement_latency"][0] == SECOND
    assert columns["jct"][0] == 4 * SECOND
    assert columns["jct"][1] == columns["finished"][1] - 2 * SECOND
    assert (columns["placed"][2], columns["finished"][2], columns["jct"][2]) == (-1, -1, -1)
    assert columns["placement_latency"][2] == -1
    assert repr(found) == "<Result of test, seed 1, under omega: 2 of 3 jobs finished>"
    assert found.directory == tmp_path / "run"
    again = argosy.open_run(tmp_path / "run")
    assert again.summary == found.summary
    assert {name: column.tolist() for name, column in again.jobs_columns().items()} == columns
