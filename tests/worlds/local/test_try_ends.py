"""How the end of a try reads, which exit status it has, and what a supervisor is told to run."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.worlds.local import CaptureLimits, ProcessLimits, SupervisorError, TryEnd, TrySpec
from argosy.worlds.local.records import EndCause, StartFailure, TryOutcome
from argosy.worlds.local.runner import _result
from argosy.worlds.local.spec import spec_values
from argosy.worlds.local.supervised import TryState, TryStatus
from argosy.worlds.local.world import TryResult


def end(outcome: TryOutcome, **fields: Any) -> TryEnd:
    numbers = ("code", "signal", "errno", "started_at", "ended_at", "ran")
    used = ("user_cpu", "system_cpu", "max_rss", "left_behind")
    return TryEnd(
        **{
            **dict.fromkeys((*numbers, *used), 0),
            "outcome": outcome,
            "cause": EndCause.NONE,
            "failure": StartFailure.NONE,
            "out_of_memory": None,
            "streams": {},
            **fields,
        }
    )


EXITED, SIGNALLED, NOT_STARTED = TryOutcome.EXITED, TryOutcome.SIGNALLED, TryOutcome.NOT_STARTED


@pytest.mark.parametrize(
    ("ended", "status", "reason"),
    [
        (end(EXITED), 0, ""),
        (end(EXITED, code=3), 3, "exited with code 3"),
        (end(EXITED, out_of_memory=True), 0, ""),
        (end(EXITED, code=1, out_of_memory=True), 1, "exited with code 1, out of memory"),
        (end(EXITED, code=1, out_of_memory=False), 1, "exited with code 1"),
        (
            end(EXITED, cause=EndCause.STOP),
            -15,
            "exited with code 0 after it was asked to stop",
        ),
        (
            end(EXITED, code=2, cause=EndCause.TIMEOUT),
            2,
            "exited with code 2 after its time was up",
        ),
        (end(SIGNALLED, signal=11), -11, "killed by signal 11"),
        (
            end(SIGNALLED, signal=9, cause=EndCause.KILL),
            -9,
            "killed by signal 9 because it was to be killed",
        ),
        (end(NOT_STARTED), 126, "stopped before it started"),
        (
            end(NOT_STARTED, failure=StartFailure.NOT_FOUND, errno=2),
            127,
            "could not start: the command was not found (No such file or directory)",
        ),
        (
            end(NOT_STARTED, failure=StartFailure.NOT_EXECUTABLE),
            126,
            "could not start: the command cannot be executed",
        ),
        (
            end(NOT_STARTED, failure=StartFailure.BAD_SPEC),
            126,
            "could not start: its specification cannot be read",
        ),
    ],
)
def test_an_end_has_a_status_and_a_reason_unless_all_is_well(
    ended: TryEnd, status: int, reason: str
) -> None:
    was_stopped = ended.cause in (EndCause.STOP, EndCause.KILL)
    result = _result(TryStatus(state=TryState.ENDED, end=ended))
    assert result == TryResult(status, reason, was_stopped)


def test_a_try_without_an_end_has_no_result_but_a_sentence() -> None:
    for state, said in (
        (TryState.RUNNING, "it is running"),
        (TryState.LOST, "its supervisor died, so how it ended is unknown"),
        (TryState.WITHDRAWN, "stopped before it started"),
    ):
        status = TryStatus(state=state)
        assert (_result(status), status.sentence()) == (None, said)


def test_a_specification_is_written_as_the_supervisor_reads_it() -> None:
    spec = TrySpec(
        name="7",
        command=("echo", "a=b", ""),
        environment={"A": "1=2"},
        capture=CaptureLimits(segment_bytes=5, segments=2, merged=True),
        limits=ProcessLimits(memory_bytes=9, cpu_milli=8, nice=-3, cpus=(0, 2)),
        timeout=4,
        grace=6,
        reports="/r",
        cgroup="/c",
    )
    assert spec.encode().decode().split("\0")[:-1] == [
        "format=1",
        "name=7",
        "arg=echo",
        "arg=a=b",
        "arg=",
        "env=A=1=2",
        "directory=/",
        "input=/dev/null",
        "segment_bytes=5",
        "segments=2",
        "merged=1",
        "timeout=4",
        "grace=6",
        "umask=18",
        "reports=/r",
        "cgroup=/c",
        "memory_bytes=9",
        "cpu_milli=8",
        "nice=-3",
        "cpu=0",
        "cpu=2",
    ]
    values = spec_values(spec.encode())
    assert (values["name"], values["cgroup"], values["grace"]) == ("7", "/c", "6")
    assert not {"arg", "env", "cpu"} & set(values)


def test_what_a_specification_leaves_out_has_its_default() -> None:
    spec = TrySpec(name="7", command=("true",))
    values = spec_values(spec.encode())
    assert "reports" not in values
    assert "cgroup" not in values
    assert "memory_bytes" not in values
    assert (values["grace"], values["timeout"], values["merged"]) == ("10000000", "0", "0")
    assert (values["segment_bytes"], values["segments"]) == (str(8 * 2**20), "4")


@pytest.mark.parametrize(
    "data", [b"format=1\0name\0", b"format=2\0name=a\0", b"format=1\0name=\0", b"name=a\0", b""]
)
def test_what_is_no_specification_is_refused(data: bytes) -> None:
    with pytest.raises(SupervisorError):
        spec_values(data)


@pytest.mark.parametrize(
    ("fields", "least"),
    [
        (lambda n: {"capture": CaptureLimits(segments=n)}, 1),
        (lambda n: {"capture": CaptureLimits(segment_bytes=n)}, 1),
        (lambda n: {"timeout": n}, 0),
        (lambda n: {"grace": n}, 0),
        (lambda n: {"umask": n}, 0),
        (lambda n: {"limits": ProcessLimits(memory_bytes=n)}, 0),
        (lambda n: {"limits": ProcessLimits(cpu_milli=n)}, 0),
        (lambda n: {"limits": ProcessLimits(processes=n)}, 0),
        (lambda n: {"limits": ProcessLimits(open_files=n)}, 0),
        (lambda n: {"limits": ProcessLimits(cpus=(n,))}, 0),
        (lambda n: {"limits": ProcessLimits(cpu_weight=10_000 - n)}, 0),
    ],
)
def test_numbers_of_a_specification_reach_their_bounds(fields: Any, least: int) -> None:
    TrySpec(name="a", command=("true",), **fields(least))
    with pytest.raises(SupervisorError, match=r"at least|at most"):
        TrySpec(name="a", command=("true",), **fields(least - 1))
