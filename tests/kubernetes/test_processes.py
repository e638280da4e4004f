"""Processes that end with whoever started them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.kubernetes.control_plane.failures import ControlPlaneError
from argosy.kubernetes.control_plane.processes import KeptProcess, ProcessKeeper

#: Seconds after which a test is taken to hang.
PATIENCE = 30.0
ENDLESS = ["/bin/sleep", "100000"]
USER = """
import os, sys
from pathlib import Path
from argosy.kubernetes.control_plane.processes import ProcessKeeper

directory = Path(sys.argv[1])
keeper = ProcessKeeper(directory, directory / "keeper.log")
started = keeper.start(["/bin/sleep", "100000"], directory / "log")
# A process that inherits everything, as that of a fork does, does not keep the others alive.
if os.fork():
    print(keeper._process.pid, started.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "home"
    (directory / "logs").mkdir(parents=True)
    return directory


@pytest.fixture
def keeper(home: Path) -> Iterator[ProcessKeeper]:
    kept = ProcessKeeper(home, home / "logs" / "keeper.log")
    yield kept
    kept.close()


def ends(descriptor: int) -> bool:
    """Whether the process ends within the test's patience."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    try:
        return bool(poll.poll(PATIENCE * 1000))
    finally:
        os.close(descriptor)


def started(keeper: ProcessKeeper, home: Path, *command: str) -> KeptProcess:
    return keeper.start(list(command) or ENDLESS, home / "logs" / "log")


def test_closing_ends_all_processes_and_removes_the_directory(
    keeper: ProcessKeeper, home: Path
) -> None:
    processes = [started(keeper, home) for _ in range(2)]
    assert not any(each.has_ended() for each in processes)
    keeper.close()
    assert all(each.has_ended() for each in processes)
    assert not home.exists()
    for each in processes:
        each.close()


def test_logs_can_be_kept(keeper: ProcessKeeper, home: Path) -> None:
    (home / "data").mkdir()
    (home / "token").write_text("secret")
    process = started(keeper, home, "/bin/echo", "written")
    assert process.has_ended(PATIENCE)
    process.close()
    keeper.close(keep=home / "logs")
    assert [path.name for path in home.iterdir()] == ["logs"]
    assert (home / "logs" / "log").read_text() == "written\n"


def test_a_killed_process_is_gone_when_kill_returns(keeper: ProcessKeeper, home: Path) -> None:
    process = started(keeper, home)
    process.kill()
    assert process.has_ended()
    process.kill()
    process.close()


def test_a_process_outlives_the_thread_that_started_it(keeper: ProcessKeeper, home: Path) -> None:
    processes: list[KeptProcess] = []
    thread = threading.Thread(target=lambda: processes.append(started(keeper, home)))
    thread.start()
    thread.join()
    second = started(keeper, home, "/bin/true")
    assert second.has_ended(PATIENCE)
    assert not processes[0].has_ended()
    for each in (second, *processes):
        each.close()


def test_a_program_that_does_not_exist_is_an_error(keeper: ProcessKeeper, home: Path) -> None:
    with pytest.raises(ControlPlaneError, match=r"/no/such cannot be started: .*No such file"):
        started(keeper, home, "/no/such")
    process = started(keeper, home)
    assert not process.has_ended()
    process.close()


def test_nothing_starts_once_who_starts_it_is_gone_and_closing_goes_on(
    keeper: ProcessKeeper, home: Path
) -> None:
    process = started(keeper, home)
    keeper._process.kill()
    keeper._process.wait(PATIENCE)
    for _ in range(2):
        with pytest.raises(ControlPlaneError, match=r"^/bin/sleep cannot be started: .+"):
            started(keeper, home)
    # The kernel has killed it, and what is gone can be killed.
    assert process.has_ended(PATIENCE)
    process.kill()
    process.close()
    keeper.close(keep=home / "logs")


@pytest.mark.parametrize("victim", ["user", "keeper"])
def test_nothing_survives_a_kill(home: Path, victim: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", USER, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as user:
        assert user.stdout is not None
        keeper, process = (os.pidfd_open(int(pid)) for pid in user.stdout.readline().split())
        if victim == "user":
            user.kill()
        else:
            signal.pidfd_send_signal(keeper, signal.SIGKILL)
        assert ends(process)
        assert ends(keeper)
        user.kill()
    if victim == "user":
        assert not home.exists()
