"""Outputs, processes and launches without supervisors: files and descriptors that a test has made."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from argosy.worlds.local import (
    SupervisedTry,
    TrySpec,
    TryState,
    TryStatus,
    launcher,
    outputs,
    processes,
    read_output,
)
from argosy.worlds.local.launcher import LARGEST_MESSAGE, Launcher
from argosy.worlds.local.outputs import OutputPart, segment_starts
from argosy.worlds.local.processes import boot_id, is_alive, open_process, send_signal, stat_of
from argosy.worlds.local.records import SupervisorIdentity
from argosy.worlds.local.spec import SupervisorError


class TestOutputs:
    @pytest.fixture
    def directory(self, tmp_path: Path) -> str:
        for name, text in {
            "stdout.0": "0123",
            "stdout.4": "456",
            "stdout.7": "789abc",
            "stdout.x": "not a segment",
            "stdouts.2": "another stream",
            "stderr.3": "err",
            "7": "not one either",
        }.items():
            (tmp_path / name).write_text(text)
        return str(tmp_path)

    def test_segments_are_those_of_the_stream_in_order(self, directory: str) -> None:
        assert segment_starts(directory, "stdout") == [0, 4, 7]
        assert segment_starts(directory, "stderr") == [3]
        assert segment_starts(f"{directory}/nowhere", "stdout") == []

    @pytest.mark.parametrize(
        ("start", "limit", "expected"),
        [
            (0, 99, (0, b"0123456789abc")),
            (0, 4, (0, b"0123")),
            (0, 5, (0, b"01234")),
            (3, 99, (3, b"3456789abc")),
            (4, 2, (4, b"45")),
            (7, 99, (7, b"789abc")),
            (12, 99, (12, b"c")),
            (13, 99, (13, b"")),
            (99, 99, (99, b"")),
            (5, 0, (5, b"")),
        ],
    )
    def test_a_part_begins_where_it_is_asked_for(
        self, directory: str, start: int, limit: int, expected: tuple[int, bytes]
    ) -> None:
        part = read_output(directory, "stdout", start, limit)
        assert (part.start, part.data) == expected
        assert part.end == expected[0] + len(expected[1])

    def test_what_was_dropped_is_passed_over_and_a_gap_ends_the_part(self, directory: str) -> None:
        os.unlink(f"{directory}/stdout.0")
        assert read_output(directory, "stdout") == OutputPart(4, b"456789abc")
        assert read_output(directory, "stderr") == OutputPart(3, b"err")
        Path(directory, "stdout.4").write_text("45")
        assert read_output(directory, "stdout") == OutputPart(4, b"45")
        assert read_output(directory, "stdout", 6) == OutputPart(7, b"789abc")

    def test_a_segment_that_is_dropped_meanwhile_is_like_one_that_was_before(
        self, directory: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(outputs, "segment_starts", lambda *_: [0, 2, 4, 7])
        os.unlink(f"{directory}/stdout.0")
        assert read_output(directory, "stdout") == OutputPart(4, b"456789abc")
        os.unlink(f"{directory}/stdout.7")
        assert read_output(directory, "stdout") == OutputPart(4, b"456")


def identity(**changes: Any) -> SupervisorIdentity:
    """Of this process."""
    own = stat_of(os.getpid())
    assert own is not None
    known = {"pid": os.getpid(), "start_ticks": own.start_ticks, "boot": boot_id(), "at": 0}
    return SupervisorIdentity(**{**known, **changes})


class TestProcesses:
    def test_a_process_is_described_by_the_kernel(self) -> None:
        own = stat_of(os.getpid())
        assert own is not None
        assert (own.parent, own.session) == (os.getppid(), os.getsid(0))
        assert own.state == "R"
        assert stat_of(2**22 + 1) is None

    @pytest.mark.parametrize(
        ("changes", "lives"),
        [
            ({}, True),
            ({"start_ticks": 1}, False),
            ({"boot": "another"}, False),
            ({"pid": 0}, False),
            ({"pid": -1}, False),
            ({"pid": 2**22 + 1}, False),
        ],
    )
    def test_a_process_is_itself_only_with_its_start_and_boot(
        self, changes: dict[str, Any], lives: bool
    ) -> None:
        known = identity(**changes)
        assert is_alive(known) is lives
        before = len(os.listdir("/proc/self/fd"))
        descriptor = open_process(known)
        assert (descriptor is not None) is lives
        if descriptor is not None:
            os.close(descriptor)
        # A signal that does nothing here.
        assert send_signal(known, signal.SIGCONT) is lives
        assert len(os.listdir("/proc/self/fd")) == before, "nothing is left open"

    def test_a_process_that_has_ended_and_is_not_reaped_does_not_live(self) -> None:
        child = os.posix_spawn("/bin/true", ["true"], {})
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        ended = stat_of(child)
        assert ended is not None
        assert ended.state == "Z"
        assert not is_alive(identity(pid=child, start_ticks=ended.start_ticks))
        os.waitpid(child, 0)


class Helper:
    def __init__(self) -> None:
        self.started: list[tuple[str, bytes]] = []

    def start(self, path: str, spec: bytes = b"") -> None:
        self.started.append((path, spec))


class TestLaunches:
    @pytest.mark.parametrize("more", [0, 1])
    def test_a_specification_goes_with_the_message_if_it_fits(
        self, tmp_path: Path, more: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        helper = Helper()
        made = Launcher(tmp_path / "program", helper)  # type: ignore[arg-type]
        spec, path = TrySpec(name="7", command=("x",), cgroup="/c"), str(tmp_path / "try")
        room = len(path) + 1 + len(spec.encode())
        monkeypatch.setattr(launcher, "LARGEST_MESSAGE", room - more)
        launched = made.launch_new(path, spec)
        assert (launched.directory, launched.name, launched._cgroup) == (path, "7", "/c")
        assert helper.started == [(path, b"" if more else spec.encode())]
        assert os.path.exists(path) is bool(more)
        assert LARGEST_MESSAGE == 2**16

    def test_a_try_is_launched_once_in_a_directory(self, tmp_path: Path) -> None:
        helper = Helper()
        made = Launcher(tmp_path / "program", helper)  # type: ignore[arg-type]
        directory = tmp_path / "try"
        directory.mkdir(mode=0o700)
        spec = TrySpec(name="7", command=("x",))
        made.launch(directory, spec)
        assert (directory / "spec").stat().st_mode & 0o777 == 0o600
        assert (directory / "spec").read_bytes() == spec.encode()
        with pytest.raises(SupervisorError, match="a try was launched here before"):
            made.launch(directory, spec)
        assert helper.started == [(str(directory), b"")]
        assert made.reap() == 0

    def test_a_supervisor_that_somebody_else_has_reaped_is_not_waited_for(
        self, tmp_path: Path
    ) -> None:
        made = Launcher("/bin/true")
        directory = tmp_path / "try"
        directory.mkdir(mode=0o700)
        launched = made.launch(directory, TrySpec(name="7", command=("x",)))
        [(pid, _)] = made._children.values()
        os.waitpid(pid, 0)
        assert made.reap() == 0
        assert not made._children
        # It is withdrawn already: a supervisor that came now would do nothing.
        assert not launched.withdraw()

    def test_a_helper_that_cannot_start_leaves_no_specification(self, tmp_path: Path) -> None:
        class Broken(Helper):
            def start(self, path: str, spec: bytes = b"") -> None:
                raise SupervisorError("no supervisor")

        made = Launcher(tmp_path / "program", Broken())  # type: ignore[arg-type]
        directory = tmp_path / "try"
        directory.mkdir(mode=0o700)
        with pytest.raises(SupervisorError, match="no supervisor"):
            made.launch(directory, TrySpec(name="7", command=("x",)))
        assert list(directory.iterdir()) == []

    @pytest.mark.parametrize(
        ("release", "is_old"),
        [("5.8.0", True), ("4.19", True), ("5.9.0-1", False), ("5.10", False), ("6.1.0", False)],
    )
    def test_kernels_are_new_enough_from_the_first_with_what_is_needed(
        self, monkeypatch: pytest.MonkeyPatch, release: str, is_old: bool
    ) -> None:
        monkeypatch.setattr(launcher.platform, "release", lambda: release)
        if not is_old:
            assert launcher.supervisor_program().name == "argosy-supervisor"
            return
        with pytest.raises(
            SupervisorError, match=f"on Linux {release}; expected Linux 5.9 or newer"
        ):
            launcher.supervisor_program()


def test_the_dead_are_those_that_the_kernel_calls_so() -> None:
    assert frozenset("ZX") == processes.DEAD


def test_what_a_lost_try_left_in_its_cgroup_is_killed_after_an_adoption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cgroup, directory = tmp_path / "cgroup", tmp_path / "try"
    for folder in (cgroup, directory):
        folder.mkdir()
    (cgroup / "cgroup.procs").write_text("11\n12\n")
    spec = f"format=1\0name=t\0cgroup={cgroup}\0arg=true\0"
    (directory / "spec").write_bytes(spec.encode())
    monkeypatch.setattr(SupervisedTry, "withdraw", lambda adopted: False)
    lost = TryStatus(state=TryState.LOST)
    monkeypatch.setattr(SupervisedTry, "status", lambda adopted: lost)
    identity = SupervisorIdentity(boot=boot_id(), pid=1, start_ticks=1, at=0)
    monkeypatch.setattr(SupervisedTry, "identity", lambda adopted: identity)
    assert SupervisedTry.adopt(directory).clear_leftovers() == 2
    assert (cgroup / "cgroup.kill").read_text() == "1"
