"""A try as its files describe it, and children that a launcher reaps, without any supervisor."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from argosy.worlds.local import SupervisedTry, TrySpec, TryState, launcher, processes, supervised
from argosy.worlds.local.launcher import Launcher, LaunchHelper
from argosy.worlds.local.records import SupervisorIdentity, read_identity
from argosy.worlds.local.spec import SupervisorError

SPEC = TrySpec(name="t", command=("true",))


def identity(pid: int = 1, boot: str = "now") -> SupervisorIdentity:
    return SupervisorIdentity(pid=pid, start_ticks=1, boot=boot, at=1)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the files and the kernel say; ends are read one after the other."""
    says: dict[str, Any] = {"ends": [None, None], "start": None, "alive": False, "sent": []}
    says["identity"] = identity()

    def send(who: SupervisorIdentity, number: int) -> bool:
        says["sent"].append((who.pid, number))
        return bool(says["alive"])

    def kill(start: Any) -> int:
        says["sent"].append(start)
        return 2

    monkeypatch.setattr(supervised, "read_end", lambda _: says["ends"].pop(0))
    monkeypatch.setattr(supervised, "read_start", lambda _: says["start"])
    monkeypatch.setattr(supervised, "read_identity", lambda _: says["identity"])
    monkeypatch.setattr(processes, "is_alive", lambda _: says["alive"])
    monkeypatch.setattr(processes, "boot_id", lambda: "now")
    monkeypatch.setattr(processes, "send_signal", send)
    monkeypatch.setattr(processes, "kill_session", kill)
    return says


@pytest.mark.parametrize(
    ("says", "state", "start", "end"),
    [
        ({"ends": ["end"]}, TryState.ENDED, None, "end"),
        ({"identity": None}, TryState.LAUNCHED, None, None),
        ({"identity": identity(0)}, TryState.WITHDRAWN, None, None),
        ({"alive": True}, TryState.STARTING, None, None),
        ({"alive": True, "start": "s"}, TryState.RUNNING, "s", None),
        # It ended between the first look and the second.
        ({"ends": [None, "end"], "start": "s"}, TryState.ENDED, None, "end"),
        ({"start": "s"}, TryState.LOST, "s", None),
        ({}, TryState.LOST, None, None),
    ],
)
def test_the_state_of_a_try_follows_from_its_files(
    told: dict[str, Any], says: dict[str, Any], state: TryState, start: Any, end: Any
) -> None:
    told.update(says)
    found = SupervisedTry("/nowhere", "t").status()
    assert (found.state, found.start, found.end) == (state, start, end)
    over = (TryState.ENDED, TryState.WITHDRAWN, TryState.LOST)
    assert found.state.is_over == (state in over)


def test_stopping_asks_and_killing_does_not(told: dict[str, Any]) -> None:
    known = SupervisedTry("/nowhere", "t")
    assert (known.stop(), known.kill()) == (False, False)
    told["alive"] = True
    assert (known.stop(), known.kill()) == (True, True)
    assert told["sent"] == [(1, signal.SIGTERM), (1, signal.SIGUSR1)] * 2


@pytest.mark.parametrize(
    ("says", "killed"),
    [
        ({"start": "s"}, 2),
        ({}, 0),
        ({"start": "s", "alive": True}, 0),
        ({"start": "s", "ends": ["end"]}, 0),
        # Nothing outlives the computer's restart.
        ({"start": "s", "identity": identity(boot="before")}, 0),
    ],
)
def test_only_what_a_lost_try_left_since_the_computer_started_is_killed(
    told: dict[str, Any], says: dict[str, Any], killed: int
) -> None:
    told.update(says)
    assert SupervisedTry("/nowhere", "t").clear_leftovers() == killed
    assert told["sent"] == (["s"] if killed else [])


def test_those_in_a_cgroup_and_those_in_the_session_are_counted_together(
    told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cgroup.procs").write_text("7\n8\n9\n")
    removed: list[str] = []
    monkeypatch.setattr(os, "rmdir", removed.append)
    told["start"] = "s"
    assert SupervisedTry("/nowhere", "t", str(tmp_path)).clear_leftovers() == 5
    assert (tmp_path / "cgroup.kill").read_text() == "1"
    assert removed == [str(tmp_path)]


def test_a_try_is_withdrawn_once_in_a_private_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervised.time, "time_ns", lambda: 5_000_999)
    taken = SupervisedTry(str(tmp_path / "new"), "t")
    assert taken.withdraw()
    claim = read_identity(taken.directory)
    assert claim is not None
    assert (claim.pid, claim.at, claim.boot) == (0, 5_000, processes.boot_id())
    assert stat.S_IMODE(os.stat(taken.directory).st_mode) == 0o700
    assert not taken.withdraw()
    assert not SupervisedTry(taken.directory, "t").withdraw()


def test_who_has_claimed_a_try_is_read_once(told: dict[str, Any]) -> None:
    known = SupervisedTry("/nowhere", "t")
    told["identity"] = None
    assert known.identity() is None
    told["identity"] = first = identity()
    assert known.identity() is first
    told["identity"] = None
    assert known.identity() is first


class TestDirectories:
    @pytest.mark.parametrize("mode", [0o701, 0o710, 0o740, 0o770])
    def test_others_must_not_get_in(self, tmp_path: Path, mode: int) -> None:
        tmp_path.chmod(mode)
        with pytest.raises(SupervisorError, match="not private"):
            Launcher(Path("/bin/true")).launch(tmp_path, SPEC)
        assert list(tmp_path.iterdir()) == []

    def test_it_is_a_directory_of_this_user(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "file"
        file.touch(mode=0o600)
        with pytest.raises(SupervisorError, match="not private"):
            Launcher(Path("/bin/true")).launch(file, SPEC)
        monkeypatch.setattr(launcher.os, "geteuid", lambda: os.stat(tmp_path).st_uid + 1)
        tmp_path.chmod(0o700)
        with pytest.raises(SupervisorError, match="not private"):
            Launcher(Path("/bin/true")).launch(tmp_path, SPEC)

    def test_a_specification_that_does_not_fit_on_the_disk_is_a_failure(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tmp_path.chmod(0o700)
        monkeypatch.setattr(launcher.os, "write", lambda file, data: len(data) - 1)
        with pytest.raises(OSError, match="No space left"):
            Launcher(Path("/bin/true")).launch(tmp_path, SPEC)


class TestReaping:
    """Of children that a test has made up, as `waitpid` would tell of them."""

    @pytest.fixture
    def waits(self, monkeypatch: pytest.MonkeyPatch) -> dict[int, Any]:
        answers: dict[int, Any] = {}

        def wait(pid: int, options: int) -> tuple[int, int]:
            assert options == os.WNOHANG
            if isinstance(answers[pid], Exception):
                raise answers[pid]
            return (answers[pid], 0)

        monkeypatch.setattr(launcher.os, "waitpid", wait)
        return answers

    def test_children_are_reaped_once_they_have_exited(
        self, tmp_path: Path, waits: dict[int, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pids = iter((11, 12, 13))
        monkeypatch.setattr(Launcher, "_spawn", lambda self, path: next(pids))
        starts = Launcher(Path("/bin/true"))
        tries = []
        for name in "abc":
            (tmp_path / name).mkdir(mode=0o700)
            tries.append(starts.launch(tmp_path / name, SPEC))
        waits.update({11: 0, 12: 12, 13: ChildProcessError()})
        assert starts.reap(tries[:1]) == 1
        assert starts.reap() == 1
        # Those that exited before they began never will; the one that has not may.
        states = [each.status().state for each in tries]
        assert states == [TryState.LAUNCHED, TryState.WITHDRAWN, TryState.WITHDRAWN]
        waits.update({11: 11, 12: AssertionError(), 13: AssertionError()})
        assert starts.reap(tries) == 0
        assert tries[0].status().state is TryState.WITHDRAWN
        waits[11] = AssertionError()
        assert starts.reap() == 0


class TestHelper:
    def test_one_that_died_is_replaced_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        did: list[Any] = []

        class Socket:
            def __init__(self, fails: bool) -> None:
                self._fails = fails

            def send(self, message: bytes) -> None:
                did.append(message)
                if self._fails:
                    raise BrokenPipeError(32, "Broken pipe")

            def close(self) -> None:
                did.append("closed")

        fails = iter([True, False, True, True])

        def connected(self: Any) -> Any:
            if self._socket is None:
                self._socket, self._pid = Socket(next(fails)), 77
            return self._socket

        monkeypatch.setattr(LaunchHelper, "_connected", connected)
        monkeypatch.setattr(launcher.os, "waitpid", lambda pid, options: did.append((pid, options)))
        helper = LaunchHelper(Path("/bin/true"))
        helper.start("/a", b"spec")
        helper.start("/b")
        gone = ["closed", (77, 0)]
        assert did == [b"/a\0spec", *gone, b"/a\0spec", b"/b"]
        helper.close()
        did.clear()
        with pytest.raises(SupervisorError, match="no supervisor can be started: Broken pipe"):
            helper.start("/c")
        assert did == [b"/c", *gone, b"/c", *gone]
        helper.close()
        assert did == [b"/c", *gone, b"/c", *gone]
