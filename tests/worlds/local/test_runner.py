"""The local world with real processes: run, fail, stop, outlive the server, and be adopted."""

from __future__ import annotations

import errno
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.engines.registry import ENGINES
from argosy.model.jobs import Execution, Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, FleetEntry
from argosy.records.journal_file import JournalFile
from argosy.records.replay import Replay
from argosy.worlds.local import runner
from argosy.worlds.local.launcher import LaunchHelper
from argosy.worlds.local.outputs import read_output
from argosy.worlds.local.runner import ProcessRunner
from argosy.worlds.local.spec import SupervisorError
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.supervised import SupervisedTry, TryState
from argosy.worlds.local.turn import LocalCluster, TryResult
from argosy.worlds.local.world import LocalWorld

DEADLINE = 30.0


class RealServer:
    """A world with real processes, driven by hand."""

    def __init__(self, directory: Path, engine: str = "omega") -> None:
        self.directory = directory
        self.cluster = LocalCluster(
            cell=CellSpec(
                machines=tuple(Machine(f"m{n}", Resources(2000, 2**30)) for n in range(2))
            ),
            fleet=(FleetEntry(name="s", engine=engine),),
        )
        self.start()

    def start(self) -> None:
        self.store = LocalStore(self.directory)
        self.runner = ProcessRunner(self.directory, self._ended)
        clock = time.monotonic_ns
        self.world = LocalWorld(
            self.store, ENGINES, self.runner, lambda: clock() // 1000, cluster=self.cluster
        )

    def _ended(self, number: int, result: TryResult) -> None:
        self.world.ended(number, result)

    def kill(self) -> None:
        """All that the server had in memory is gone; processes are not."""
        self.runner.close()
        self.store.close()

    def step(self) -> None:
        """Waits for a report or until something is due, and does what follows."""
        due = self.world.next_due()
        wait = 0.5 if due is None else min(0.5, max(0.0, (due - self.world.now) / 1e6))
        ready, _, _ = select.select([self.runner.reports], [], [], wait)
        self.runner.hear() if ready else self.runner.sweep()
        self.world.commit()

    def run_until(self, states: dict[str, str]) -> None:
        """Until the jobs are in these states."""
        deadline = time.monotonic() + DEADLINE
        while not states.items() <= self.states().items():
            assert time.monotonic() < deadline, self.states()
            self.step()

    def states(self) -> dict[str, str]:
        return dict(self.store.rows("SELECT id, state FROM jobs ORDER BY seq"))

    def output(self, number: int) -> str:
        return read_output(self.runner.directory_of(number), "stdout").data.decode()


def shell(name: str, script: str, count: int = 1, *, retries: int = 0, **how: object) -> Job:
    execution = Execution(command=("/bin/sh", "-c", script), **how)  # type: ignore[arg-type]
    group = TaskGroup(
        count=count, request=Resources(500, 2**28), retries=retries, execution=execution
    )
    return Job(id=name, groups=(group,))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RealServer]:
    server = RealServer(tmp_path)
    yield server
    for number in list(server.world.tries):
        server.runner.stop(number)
    server.kill()


def test_a_command_runs_with_its_environment_and_its_output_is_kept(server: RealServer) -> None:
    script = 'echo "$GREETING from $ARGOSY_JOB/$ARGOSY_TASK of $ARGOSY_TASKS"; cat'
    server.world.submit(
        shell("hello", script, 2, environment={"GREETING": "greetings"}, stdin="and more\n")
    )
    server.run_until({"hello": "finished"})
    outputs = sorted(server.output(number) for number in (1, 2))
    assert outputs == [
        "greetings from hello/0 of 2\nand more\n",
        "greetings from hello/1 of 2\nand more\n",
    ]


def test_a_failing_command_is_tried_again_and_then_fails(server: RealServer) -> None:
    server.world.submit(shell("bad", "exit 7", retries=1))
    server.run_until({"bad": "failed"})
    assert (
        server.store.rows("SELECT exit_status, outcome FROM tries")
        == [(7, "exited with code 7")] * 2
    )


def test_a_command_that_cannot_start_fails_with_the_reason(server: RealServer) -> None:
    group = TaskGroup(
        count=1,
        request=Resources(500, 2**28),
        execution=Execution(command=("/no/such/program",)),
    )
    server.world.submit(Job(id="nowhere", groups=(group,)))
    server.run_until({"nowhere": "failed"})
    ((status, reason),) = server.store.rows("SELECT exit_status, reason FROM tasks")
    assert status == 127
    assert reason == "could not start: the command was not found (No such file or directory)"


def test_a_command_whose_time_is_up_has_failed(server: RealServer) -> None:
    server.world.submit(shell("slow", "exec sleep 60", timeout=100_000))
    server.run_until({"slow": "failed"})
    ((reason,),) = server.store.rows("SELECT reason FROM tasks")
    assert reason == "killed by signal 15 after its time was up"


def test_a_cancelled_command_is_gone(server: RealServer) -> None:
    server.world.submit(shell("long", "echo ready; exec sleep 600"))
    deadline = time.monotonic() + DEADLINE
    while 1 not in server.world.tries or not server.output(1):
        assert time.monotonic() < deadline
        server.step()
    pid = server.runner._tries[1].status().start.pid  # type: ignore[union-attr]
    server.world.cancel("long")
    server.run_until({"long": "cancelled"})
    while os.path.exists(f"/proc/{pid}"):
        assert time.monotonic() < deadline
        server.step()


def test_processes_outlive_the_server_and_no_end_is_missed(server: RealServer) -> None:
    gates = [server.directory / f"gate{index}" for index in range(2)]
    for gate in gates:
        os.mkfifo(gate)
    server.world.submit(
        shell("a", f"read line < {server.directory}/gate$ARGOSY_TASK; echo $line", 2)
    )
    deadline = time.monotonic() + DEADLINE
    while len(server.world.tries) < 2:
        assert time.monotonic() < deadline
        server.step()
    running = [server.runner._tries[number] for number in (1, 2)]
    server.kill()
    # Opening waits until the command reads.
    gates[0].write_text("one\n")
    while not any(each.status().state.is_over for each in running):
        assert time.monotonic() < deadline
    server.start()
    gates[1].write_text("two\n")
    server.run_until({"a": "finished"})
    assert len(server.store.rows("SELECT * FROM tries")) == 2, "nothing ran twice"
    assert sorted(server.output(number) for number in (1, 2)) == ["one\n", "two\n"]


@pytest.mark.parametrize("engine", ["murmuration", "sparrow", "firmament", "medea"])
def test_engines_of_every_kind_run_real_tasks(tmp_path: Path, engine: str) -> None:
    server = RealServer(tmp_path, engine)
    for number in range(4):
        server.world.submit(shell(f"j{number}", "exit 0", 3))
    server.run_until({f"j{number}": "finished" for number in range(4)})
    assert len(server.store.rows("SELECT * FROM tries WHERE exit_status = 0")) == 12
    rows = server.store.rows(
        "SELECT header FROM lives UNION ALL SELECT * FROM (SELECT lines FROM turns ORDER BY turn)"
    )
    lines = b"".join(row[0] for row in rows)
    Replay(JournalFile(lines), ENGINES).run()
    server.kill()


def children() -> dict[int, str]:
    """The states of this process's children by pid, as the kernel calls them."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            stat = Path(f"/proc/{pid}/stat").read_text()
            found[int(pid)] = stat.rpartition(")")[2].split()[0]
    return found


def test_a_server_has_one_helper_and_no_other_children(server: RealServer) -> None:
    before = set(children())
    server.world.submit(shell("many", "exit 0", 20))
    server.run_until({"many": "finished"})
    (helper,) = set(children()) - before
    server.runner.close()
    assert helper not in children(), "it is gone, and no zombie"


def test_a_helper_that_was_killed_is_replaced(server: RealServer) -> None:
    before = set(children())
    server.world.submit(shell("first", "exit 0"))
    server.run_until({"first": "finished"})
    (helper,) = set(children()) - before
    os.kill(helper, signal.SIGKILL)
    deadline = time.monotonic() + DEADLINE
    while children()[helper] != "Z":
        assert time.monotonic() < deadline
    server.world.submit(shell("second", "exit 0"))
    server.run_until({"second": "finished"})


def test_a_try_that_no_supervisor_comes_for_is_given_up(
    server: RealServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "LONGEST_START", 0.0)
    monkeypatch.setattr(LaunchHelper, "start", lambda helper, path, spec=b"": None)
    server.world.submit(shell("orphan", "exit 0"))
    server.run_until({"orphan": "failed"})
    rows = server.store.rows("SELECT exit_status, outcome FROM tries")
    assert rows == [(126, "its supervisor did not start")]


def test_a_launch_makes_no_files_in_the_server(
    server: RealServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    mkdir = os.mkdir

    def counted(path: str, *arguments: object, **named: object) -> None:
        made.append(os.fspath(path))
        mkdir(path, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "mkdir", counted)
    server.world.submit(shell("many", "exit 0", 20))
    server.run_until({"many": "finished"})
    assert made == [f"{server.directory}/tries/000"]


class HeldHelper:
    """Keeps launches until they are released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._start = LaunchHelper.start
        self.held: list[tuple[LaunchHelper, str, bytes]] = []
        monkeypatch.setattr(
            LaunchHelper, "start", lambda helper, *launch: self.held.append((helper, *launch))
        )

    def release(self) -> None:
        for launch in self.held:
            self._start(*launch)


def test_a_try_that_was_given_up_before_its_supervisor_came_never_runs(
    server: RealServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = HeldHelper(monkeypatch)
    ran = server.directory / "ran"
    server.world.submit(shell("early", f"touch {ran}"))
    server.world.commit()
    assert not os.path.exists(server.runner.directory_of(1))
    assert server.runner.adopt(1) is False, "as a server that finds it in its database"
    helper.release()
    # Whoever gets the lock knows that all launches are over.
    server.kill()
    server.start()
    known = SupervisedTry(server.runner.directory_of(1), "1")
    assert known.status().state is TryState.WITHDRAWN
    assert not ran.exists()


def test_a_server_waits_for_launches_that_an_earlier_one_has_begun(
    server: RealServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.world.submit(shell("long", "exec sleep 600"))
    server.world.commit()
    helper = server.runner._helper._pid
    os.kill(helper, signal.SIGSTOP)
    monkeypatch.setattr(runner, "LONGEST_LAUNCH", 0.0)
    try:
        with pytest.raises(SupervisorError, match="still being started"):
            ProcessRunner(server.directory, server._ended)
    finally:
        os.kill(helper, signal.SIGCONT)


def test_a_supervisor_that_cannot_make_its_files_says_so(server: RealServer) -> None:
    shard = server.directory / "tries" / "000"
    server.world.submit(shell("first", "exit 0"))
    server.run_until({"first": "finished"})
    shutil.rmtree(shard)
    shard.write_text("in the way")
    server.world.submit(shell("second", "exit 0"))
    server.run_until({"second": "failed"})
    rows = server.store.rows("SELECT exit_status, outcome FROM tries WHERE try = 2")
    assert rows == [(126, "cannot start: Not a directory")]


def test_a_specification_that_is_too_long_for_a_message_is_written_by_the_server(
    server: RealServer,
) -> None:
    script = 'echo "${#LONG}"'
    server.world.submit(shell("long", script, environment={"LONG": "x" * 100_000}))
    server.run_until({"long": "finished"})
    assert server.output(1) == "100000\n"


def test_a_sweep_looks_at_every_try_though_one_cannot_be_given_up(
    server: RealServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = HeldHelper(monkeypatch)
    monkeypatch.setattr(runner, "LONGEST_START", 0.0)
    server.world.submit(shell("held", "exit 0"))
    server.world.commit()
    monkeypatch.setattr(LaunchHelper, "start", helper._start)
    server.world.submit(shell("well", "exit 0"))
    server.world.commit()
    monkeypatch.setattr(server.runner, "hear", lambda: None)

    def no_room(each: SupervisedTry) -> bool:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(SupervisedTry, "withdraw", no_room)
        deadline = time.monotonic() + DEADLINE
        while server.states()["well"] != "finished":
            assert time.monotonic() < deadline
            with pytest.raises(OSError, match="No space"):
                server.runner.sweep()
            server.world.commit()
    server.runner.sweep()
    server.world.commit()
    assert server.states()["held"] == "failed"
