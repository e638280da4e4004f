"""Specifications that a supervisor takes and refuses, what it records, and where segments end."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
from supervised import PATIENCE

from argosy.worlds.local import CaptureLimits
from argosy.worlds.local.launcher import supervisor_program
from argosy.worlds.local.outputs import segment_starts

GOOD = {
    "format": "1",
    "name": "a",
    "arg": "/bin/true",
    "segment_bytes": "9",
    "segments": "1",
}


def run(directory, spec):
    """Runs the supervisor in the foreground; returns what it recorded of the end."""
    (directory / "spec").write_bytes(spec)
    done = subprocess.run([str(supervisor_program()), directory], timeout=PATIENCE)
    assert done.returncode == 0
    return values(directory / "end")


def values(path):
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


def text(**changed):
    fields = {**GOOD, **changed}
    return "".join(
        f"{key}={value}\0" for key, value in fields.items() if value is not None
    ).encode()


REFUSED = {
    "nothing": b"",
    "another format": text(format="2"),
    "no format": text(format=None),
    "the format alone": b"format=1\0",
    "the format not first": b"name=a\0format=1\0arg=/bin/true\0segment_bytes=9\0segments=1\0",
    "the format twice": text() + b"format=1\0",
    "no name": text(name=None),
    "an empty name": text(name=""),
    "no command": text(arg=None),
    "no size": text(segment_bytes=None),
    "no bytes": text(segment_bytes="0"),
    "no number of segments": text(segments=None),
    "no segments": text(segments="0"),
    "negative segments": text(segments="-1"),
    "a negative timeout": text(timeout="-1"),
    "a negative grace": text(grace="-1"),
    "no equals sign": text() + b"timeout\0",
    "an empty record": text() + b"\0",
    "an empty number": text(timeout=""),
    "a number and more": text(timeout="1s"),
    "a number after a space": text(timeout=" 1"),
    "a number that is too large": text(timeout="9223372036854775808"),
    "a fraction": text(grace="1.5"),
    "a negative processor": text(cpu="-1"),
    "a processor without a number": text(cpu="x"),
    "neither true nor false": text(merged="2"),
    "no truth at all": text(reports_start=""),
    "an unknown key": text(colour="red"),
    "an empty key": text() + b"=1\0",
    "a name twice": text() + b"name=b\0",
    "no end": text() + b"timeout=1",
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_specification_that_is_not_one_starts_nothing(tmp_path, case):
    end = run(tmp_path, REFUSED[case])
    assert (end["outcome"], end["failure"], end["errno"]) == ("not-started", "bad-spec", "0")
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    "spec",
    [
        text(),
        text(timeout="0", grace="0", umask="0", nice="0", memory_bytes="0", open_files="0"),
        text(timeout="9000000", grace="9223372036854775807", reports_start="0", merged="0"),
        text(cgroup="", reports="", cpu_milli="0", cpu_weight="0", processes="0"),
        text(reports_start="1") + b"arg=again\0env=A=B=C\0env=A=D\0cpu=0\0cpu=0\0",
    ],
)
def test_a_specification_at_its_bounds_is_carried_out(tmp_path, spec):
    end = run(tmp_path, spec)
    assert (end["outcome"], end["code"], end["failure"]) == ("exited", "0", "none")
    assert list(end) == [
        "format", "outcome", "code", "signal", "cause", "failure", "errno", "out_of_memory",
        "started_at", "ended_at", "ran", "user_cpu", "system_cpu", "max_rss", "left_behind",
        "stdout_bytes", "stdout_first", "stdout_lost",
        "stderr_bytes", "stderr_first", "stderr_lost",
    ]  # fmt: skip
    started = values(tmp_path / "started")
    assert list(started) == [
        "format", "pid", "start_ticks", "at", "memory_by", "cpu_by", "processes_by",
    ]  # fmt: skip
    assert started["at"] == end["started_at"]
    assert {started[key] for key in ("memory_by", "cpu_by", "processes_by")} == {"none"}
    assert (end["out_of_memory"], end["left_behind"], end["signal"]) == ("unknown", "0", "0")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "end", "spec", "started", "supervisor",
    ]  # fmt: skip


def test_a_command_that_did_not_start_took_no_time_and_wrote_nothing(tmp_path):
    end = run(tmp_path, text(arg="/no/such/command", memory_bytes="999999999"))
    assert (end["outcome"], end["failure"], end["errno"]) == ("not-started", "not-found", "2")
    for key in ("code", "signal", "ran", "user_cpu", "system_cpu", "max_rss", "started_at"):
        assert end[key] == "0", key
    assert not (tmp_path / "started").exists()
    assert end["stdout_bytes"] == end["stdout_first"] == "0"


def test_a_segment_to_which_nothing_could_be_written_is_removed(tmp_path):
    try:
        os.mknod(tmp_path / "stdout.0", stat.S_IFCHR | 0o600, os.makedev(1, 7))
    except PermissionError:
        pytest.skip("only root can make a device that is always full")
    end = run(tmp_path, text(arg="/bin/echo"))
    assert (end["stdout_bytes"], end["stdout_lost"], end["stdout_first"]) == ("1", "1", "1")
    assert segment_starts(tmp_path, "stdout") == []


def test_who_limits_memory_is_told(tmp_path):
    end = run(tmp_path, text(memory_bytes="1000000000"))
    assert end["outcome"] == "exited"
    assert values(tmp_path / "started")["memory_by"] == "rlimit"


#: Writes the parts given, each once the one before has been read.
WRITER = """
import fcntl, os, sys, termios
for part in eval(sys.argv[1]):
    while part:
        part = part[os.write(1, part):]
    while any(fcntl.ioctl(1, termios.FIONREAD, bytes(4))):
        os.sched_yield()
"""


def segments_of(bench, parts, size, count=9):
    capture = CaptureLimits(segment_bytes=size, segments=count)
    each = bench.python(WRITER, parts, capture=capture)
    end = bench.ended(each)
    assert end.code == 0
    starts = segment_starts(each.directory, "stdout")
    kept = b"".join(Path(each.directory, f"stdout.{start}").read_bytes() for start in starts)
    whole = b"".join(eval(parts))
    assert end.streams["stdout"].written == len(whole)
    assert end.streams["stdout"].first == (starts[0] if starts else len(whole))
    assert kept == whole[end.streams["stdout"].first :]
    return starts


@pytest.mark.parametrize(
    ("parts", "size", "starts"),
    [
        # As much as a segment holds fills one, and one more byte begins the next.
        ("[b'aaaa\\n' * 2]", 10, [0]),
        ("[b'aaaa\\n' * 2, b'b']", 10, [0, 10]),
        ("[b'aaaa\\n' * 2 + b'b']", 10, [0, 10]),
        ("[b'aaaa\\n'] * 5", 10, [0, 10, 20]),
        # What is begun of a line moves to the next segment.
        ("[b'aaaa\\nbb', b'bbbb\\n']", 10, [0, 5]),
        ("[b'aaaa\\nbbbbb', b'\\n']", 10, [0, 5]),
        # There is no line before it, or it is longer than a segment.
        ("[b'aaaaaa', b'bbbbbb\\n']", 10, [0, 10]),
        ("[b'a\\n', b'b' * 25, b'\\n']", 10, [0, 2, 12, 22]),
        # All that ends within a chunk goes together.
        ("[b'a\\nbb\\nccc\\ndddd\\n']", 10, [0, 9]),
        ("[b'\\n' * 21]", 10, [0, 10, 20]),
        ("[]", 10, []),
    ],
)
def test_a_segment_ends_where_a_line_does_if_there_is_one(bench, parts, size, starts):
    assert segments_of(bench, parts, size) == starts


@pytest.mark.parametrize(("begun", "second"), [(65_536, 30_000), (65_537, 100_000)])
def test_a_line_of_which_too_much_is_written_is_split(bench, begun, second):
    parts = f"[b'a' * 29_999 + b'\\n', b'x' * {begun}, b'y' * 30_000]"
    assert segments_of(bench, parts, 100_000) == [0, second]


@pytest.mark.parametrize(("count", "starts"), [(1, [20]), (2, [10, 20]), (3, [0, 10, 20])])
def test_as_many_segments_are_kept_as_were_asked_for(bench, count, starts):
    assert segments_of(bench, "[b'aaaa\\n'] * 5", 10, count) == starts


def test_a_supervisor_is_told_one_directory():
    program = str(supervisor_program())
    for arguments in ([], ["one", "two"]):
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "usage: argosy-supervisor DIRECTORY | --launcher\n"
