"""The local world over a real database, with processes that only remember what they are told."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.engines.registry import ENGINES
from argosy.model.errors import ModelError, ScenarioError, UnknownName
from argosy.model.jobs import Execution, Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, FleetEntry, Takes
from argosy.model.transactions import AddMachine
from argosy.records.journal_file import JournalFile
from argosy.records.replay import Replay
from argosy.worlds.local.store import LocalStore, StoreError, holds_cluster
from argosy.worlds.local.turn import LocalCluster, TryResult
from argosy.worlds.local.world import LocalWorld

SECOND = 1_000_000


class ScriptedProcesses:
    """Like a computer whose processes outlive the server."""

    def __init__(self) -> None:
        self.running: dict[int, tuple[str, int, str]] = {}
        self.launched: list[int] = []
        self.stopped: list[int] = []
        self.ends: dict[int, TryResult] = {}
        #: Stopped processes that have not told so yet, and whether they take their time.
        self.stopping: list[int] = []
        self.is_slow = False
        #: Whether the server dies before it can start or stop anything.
        self.is_out_of_reach = False

    def launch(self, number: int, job: Job, index: int, machine: Machine) -> None:
        if self.is_out_of_reach:
            raise KeyboardInterrupt
        assert number not in self.launched, "a try is launched twice"
        assert (job.id, index) not in [row[:2] for row in self.running.values()], "it runs already"
        self.launched.append(number)
        self.running[number] = (job.id, index, machine.name)

    def stop(self, number: int) -> None:
        if self.is_out_of_reach:
            raise KeyboardInterrupt
        self.stopped.append(number)
        self.stopping.append(number)
        if not self.is_slow:
            self.running.pop(number, None)

    def discard_after(self, number: int) -> int:
        for stranger in [other for other in self.running if other > number]:
            self.stop(stranger)
        return max([number, *self.launched])

    def adopt(self, number: int) -> TryResult | bool:
        return self.ends.get(number, number in self.running)


class LocalBench:
    """A server that can be killed and started again on the same directory."""

    def __init__(self, directory: Path, engine: str = "omega") -> None:
        self.directory, self.processes, self.time = directory, ScriptedProcesses(), 0
        self.cluster = LocalCluster(
            cell=CellSpec(
                machines=tuple(Machine(f"m{n}", Resources(1000, 2**30)) for n in range(4))
            ),
            fleet=(FleetEntry(name="s", engine=engine),),
        )
        self.start()

    def start(self) -> None:
        self.store = LocalStore(self.directory)
        self.world = LocalWorld(
            self.store, ENGINES, self.processes, lambda: self.time, cluster=self.cluster
        )

    def kill(self) -> None:
        """The server is gone, with all that it had in memory."""
        self.store.close()

    def go(self, seconds: float) -> None:
        """Time passes, and the world does all that is due."""
        until = self.time + int(seconds * SECOND)
        while True:
            self.world.commit()
            self.report_stops()
            due = self.world.next_due()
            step = until if due is None else min(until, self.time + max(0, due - self.world.now))
            if step >= until:
                break
            self.time = max(step, self.time + 1)
        self.time = until
        self.world.commit()

    def report_stops(self) -> None:
        if not self.processes.is_slow:
            for number in self.processes.stopping:
                self.processes.running.pop(number, None)
                self.world.ended(number, self.processes.ends.get(number))
            self.processes.stopping.clear()

    def end(self, number: int, status: int = 0) -> None:
        del self.processes.running[number]
        self.processes.ends[number] = TryResult(status, "" if status == 0 else "it failed")
        self.world.ended(number, self.processes.ends[number])

    def end_all(self) -> None:
        for number in list(self.processes.running):
            self.end(number)

    def with_a_stopping_try(self) -> int:
        """Job `a`, whose second task has lost its machine; returns the try, which has not ended."""
        self.world.submit(sleeper("a", 2))
        self.go(1)
        self.processes.is_slow = True
        [number] = [n for n, (_, index, _) in self.processes.running.items() if index == 1]
        self.world.remove_machine(self.processes.running[number][2])
        self.go(1)
        return number

    def states(self) -> dict[str, str]:
        return dict(self.store.rows("SELECT id, state FROM jobs ORDER BY seq"))

    def journals(self) -> list[JournalFile]:
        lives = self.store.rows("SELECT header, life FROM lives ORDER BY life")
        turns = "SELECT lines FROM turns WHERE life = ? ORDER BY turn"
        return [
            JournalFile(header + b"".join(lines for (lines,) in self.store.rows(turns, (life,))))
            for header, life in lives
        ]


def sleeper(name: str, count: int = 1, *, endless: bool = False, retries: int = 0) -> Job:
    group = TaskGroup(
        count=count,
        request=Resources(500, 2**20),
        endless=endless,
        retries=retries,
        execution=Execution(command=("sleep", "1")),
    )
    return Job(id=name, groups=(group,), kind="service" if endless else "batch")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[LocalBench]:
    bench = LocalBench(tmp_path)
    yield bench
    bench.store.close()


def test_a_job_runs_and_ends(bench: LocalBench) -> None:
    bench.world.submit(sleeper("a", 3))
    bench.go(1)
    assert sorted(index for _, index, _ in bench.processes.running.values()) == [0, 1, 2]
    assert bench.states() == {"a": "running"}
    bench.end_all()
    bench.go(1)
    assert bench.states() == {"a": "finished"}
    assert bench.world.projection.by_id == {}


def test_nothing_starts_before_its_turn_is_on_the_disk(bench: LocalBench) -> None:
    other = sqlite3.connect(bench.directory / "argosy.db", isolation_level=None)
    bench.store._db.execute("PRAGMA busy_timeout = 0")
    bench.world.submit(sleeper("a"))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked by another program") as error:
        bench.go(1)
    assert error.value.is_passing
    assert (bench.processes.launched, bench.states()) == ([], {})
    other.execute("ROLLBACK")
    bench.go(1)
    assert (len(bench.processes.launched), bench.states()) == (1, {"a": "running"})
    other.close()


def test_a_server_that_was_killed_goes_on_with_what_ran_and_what_waits(bench: LocalBench) -> None:
    bench.world.submit(sleeper("a", 10))
    bench.go(1)
    assert len(bench.processes.running) == 8
    bench.kill()
    ended, *_ = list(bench.processes.running)
    del bench.processes.running[ended]
    bench.processes.ends[ended] = TryResult(0)
    before = len(bench.processes.launched)
    bench.start()
    bench.go(1)
    assert len(bench.processes.launched) == before + 1, "one ended, so one more has room"
    assert len(bench.processes.running) == 8
    while bench.processes.running:
        bench.end_all()
        bench.go(1)
    assert bench.states() == {"a": "finished"}
    assert len(bench.processes.launched) == 10
    for journal in bench.journals():
        Replay(journal, ENGINES).run()


def test_a_try_that_nobody_knows_of_is_tried_again(bench: LocalBench) -> None:
    bench.world.submit(sleeper("a"))
    bench.go(1)
    bench.kill()
    bench.processes.running.clear()
    bench.start()
    bench.go(1)
    assert len(bench.processes.launched) == 2
    rows = bench.store.rows("SELECT outcome FROM tries ORDER BY try")
    assert rows == [("lost",), ("",)]


def test_a_stop_that_the_server_did_not_live_to_send_is_sent_by_the_next(
    bench: LocalBench,
) -> None:
    bench.world.submit(sleeper("a", 2))
    bench.go(1)
    bench.processes.is_out_of_reach = True
    bench.world.cancel("a")
    with pytest.raises(KeyboardInterrupt):
        bench.go(1)
    assert bench.states() == {"a": "cancelled"}
    assert len(bench.processes.running) == 2
    bench.kill()
    bench.processes.is_out_of_reach = False
    bench.start()
    assert bench.processes.stopped == [1, 2]
    bench.go(1)
    bench.world.submit(sleeper("b"))
    bench.go(1)
    bench.kill()
    bench.start()
    assert bench.processes.stopped == [1, 2], "once they are gone, nobody stops them again"


def test_a_task_that_loses_its_machine_runs_elsewhere_when_its_process_is_gone(
    bench: LocalBench,
) -> None:
    bench.world.submit(sleeper("a"))
    bench.go(1)
    bench.processes.is_slow = True
    [(_, _, machine)] = bench.processes.running.values()
    bench.world.remove_machine(machine)
    bench.go(60)
    assert bench.states() == {"a": "running"}
    assert (bench.processes.launched, bench.processes.stopped) == ([1], [1])
    bench.kill()
    bench.start()
    bench.go(60)
    assert (bench.processes.launched, bench.processes.stopped) == ([1], [1, 1])
    bench.processes.is_slow = False
    bench.go(1)
    assert len(bench.processes.launched) == 2
    bench.end_all()
    bench.go(1)
    assert bench.states() == {"a": "finished"}


@pytest.mark.parametrize("is_killed", [False, True], ids=["at once", "after a restart"])
def test_a_task_that_ended_while_it_lost_its_machine_does_not_run_again(
    bench: LocalBench, is_killed: bool
) -> None:
    bench.world.submit(sleeper("a"))
    bench.go(1)
    bench.processes.is_slow = True
    [(_, _, machine)] = bench.processes.running.values()
    bench.world.remove_machine(machine)
    bench.go(1)
    if is_killed:
        bench.kill()
        bench.start()
    bench.processes.ends[1] = TryResult(0)
    bench.processes.is_slow = False
    bench.go(1)
    assert bench.states() == {"a": "finished"}
    assert bench.processes.launched == [1]
    *_, (outcome, status) = bench.store.rows("SELECT outcome, exit_status FROM tries ORDER BY try")
    assert (outcome, status) == ("ended as try 1", 0)


def test_a_task_whose_end_is_heard_in_the_turn_that_takes_its_machine_does_not_run_again(
    bench: LocalBench,
) -> None:
    bench.world.submit(sleeper("a"))
    bench.go(1)
    [(_, _, machine)] = bench.processes.running.values()
    bench.world.remove_machine(machine)
    bench.world.ended(1, TryResult(0))
    bench.go(1)
    assert bench.states() == {"a": "finished"}
    assert bench.processes.launched == [1]
    for journal in bench.journals():
        Replay(journal, ENGINES).run()


def test_a_task_that_comes_back_by_scaling_is_another_task(bench: LocalBench) -> None:
    number = bench.with_a_stopping_try()
    bench.world.scale("a", sleeper("a", 1))
    bench.world.scale("a", sleeper("a", 2))
    bench.processes.ends[number] = TryResult(0)
    bench.processes.is_slow = False
    bench.go(1)
    rows = bench.store.rows("SELECT state FROM tasks WHERE idx = 1")
    assert rows == [("running",)]


def test_a_task_that_is_cancelled_before_its_turn_to_start_never_starts(bench: LocalBench) -> None:
    bench.world.submit(sleeper("a"))
    bench.go(1)
    bench.processes.is_slow = True
    [(_, _, machine)] = bench.processes.running.values()
    bench.world.remove_machine(machine)
    bench.go(1)
    bench.world.cancel("a")
    bench.go(1)
    bench.processes.is_slow = False
    bench.go(1)
    assert bench.states() == {"a": "cancelled"}
    assert (bench.processes.launched, bench.processes.running) == ([1], {})


def test_a_try_that_is_lost_starts_again_where_it_is_a_little_later(bench: LocalBench) -> None:
    bench.world.submit(sleeper("a"))
    bench.go(1)
    where = bench.processes.running.pop(1)
    bench.world.ended(1, None)
    bench.go(0.99)
    assert bench.processes.running == {}
    bench.go(0.02)
    assert bench.processes.running == {2: where}
    assert bench.store.rows("SELECT outcome FROM tries ORDER BY try") == [("lost",), ("",)]
    bench.end_all()
    bench.go(1)
    assert bench.states() == {"a": "finished"}
    for journal in bench.journals():
        Replay(journal, ENGINES).run()


def test_processes_that_a_damaged_database_has_forgotten_are_stopped(bench: LocalBench) -> None:
    bench.world.submit(sleeper("a"))
    bench.go(1)
    bench.kill()
    bench.processes.launched.append(7)
    bench.processes.running[7] = ("b", 0, "m0")
    bench.start()
    bench.world.submit(sleeper("c"))
    bench.go(1)
    assert bench.processes.stopped == [7]
    assert bench.processes.launched == [1, 7, 8], "its number is not used again"


def test_a_start_that_was_cut_short_is_made_up_for(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    directory.mkdir()
    assert not holds_cluster(directory)
    empty = sqlite3.connect(directory / "argosy.db")
    empty.execute("PRAGMA journal_mode = WAL")
    empty.close()
    assert not holds_cluster(directory)
    LocalStore(directory).close()
    assert not holds_cluster(directory)
    LocalBench(directory).kill()
    assert holds_cluster(directory)


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "argosy.db")
    other.execute("CREATE TABLE songs (name)")
    other.close()
    with pytest.raises(StoreError, match="the database has format unknown"):
        LocalStore(tmp_path)


def test_failures_are_counted_over_restarts(bench: LocalBench) -> None:
    bench.world.submit(sleeper("a", retries=1))
    bench.go(1)
    bench.end(1, status=3)
    bench.go(1)
    bench.kill()
    bench.start()
    bench.go(1)
    bench.end(2, status=4)
    bench.go(1)
    assert bench.states() == {"a": "failed"}
    assert bench.store.rows("SELECT exit_status, reason, failures FROM tasks") == [
        (4, "it failed", 2)
    ]


def test_a_job_that_was_scaled_down_outlives_the_server(bench: LocalBench) -> None:
    bench.world.submit(sleeper("a", 3))
    bench.go(1)
    bench.world.scale("a", sleeper("a", 1))
    bench.go(1)
    bench.kill()
    bench.start()
    bench.world.scale("a", sleeper("a", 2))
    bench.go(1)
    assert sorted(index for _, index, _ in bench.processes.running.values()) == [0, 1]
    bench.end_all()
    bench.go(1)
    assert bench.states() == {"a": "cancelled"}, "task 2 was"
    for journal in bench.journals():
        Replay(journal, ENGINES).run()


def test_a_service_that_dies_starts_again_where_it_is_later_each_time(bench: LocalBench) -> None:
    bench.world.submit(sleeper("web", endless=True))
    bench.go(1)
    where = bench.processes.running[1]
    for number, wait in ((1, 1), (2, 2), (3, 4)):
        bench.end(number)
        bench.go(wait - 0.01)
        assert bench.processes.running == {}
        bench.go(0.02)
        assert bench.processes.running == {number + 1: where}
    assert bench.states() == {"web": "running"}


def test_a_service_that_dies_soon_after_a_restart_waits_longer_however_old_it_is(
    bench: LocalBench,
) -> None:
    bench.world.submit(sleeper("web", endless=True))
    bench.go(100)
    for number, wait in ((1, 1), (2, 2)):
        bench.end(number)
        bench.go(wait - 0.01)
        assert bench.processes.running == {}
        bench.go(0.02)
        assert list(bench.processes.running) == [number + 1]
    bench.go(100)
    bench.end(3)
    bench.go(1.01)
    assert list(bench.processes.running) == [4], "it was well for long enough"


def test_a_cancelled_job_is_stopped(bench: LocalBench) -> None:
    bench.world.submit(sleeper("a", 2))
    bench.go(1)
    assert bench.world.cancel("a") == 2
    bench.go(1)
    assert bench.processes.stopped == [1, 2]
    assert bench.states() == {"a": "cancelled"}
    with pytest.raises(ModelError, match="job a is over"):
        bench.world.cancel("a")
    with pytest.raises(UnknownName, match="unknown job 'b'"):
        bench.world.cancel("b")


def test_a_task_that_is_removed_and_added_again_has_not_ended(bench: LocalBench) -> None:
    ended = "SELECT state, ended IS NULL FROM tasks WHERE idx = 1"
    bench.world.submit(sleeper("a", 2))
    bench.go(1)
    bench.world.scale("a", sleeper("a", 1))
    bench.go(1)
    assert bench.store.rows(ended) == [("cancelled", False)]
    bench.world.scale("a", sleeper("a", 2))
    bench.go(1)
    assert bench.store.rows(ended) == [("running", True)]


def test_an_id_is_used_once(bench: LocalBench) -> None:
    bench.world.submit(sleeper("a"))
    bench.go(1)
    with pytest.raises(ModelError, match="there is a job a already"):
        bench.world.submit(sleeper("a"))
    bench.end_all()
    bench.go(1)
    with pytest.raises(ModelError, match="there is a job a already"):
        bench.world.submit(sleeper("a"))


def test_machines_come_go_drain_and_shrink_while_it_runs(bench: LocalBench) -> None:
    bench.world.submit(sleeper("a", 12))
    bench.go(1)
    bench.world.add_machine(Machine("new", Resources(1000, 2**30)))
    bench.go(30)
    assert [name for _, _, name in bench.processes.running.values()].count("new") == 2
    bench.world.drain_machine("m0")
    bench.world.remove_machine("m1")
    bench.go(1)
    assert len(bench.processes.stopped) == 2
    bench.kill()
    bench.start()
    bench.go(1)
    assert sorted(bench.world.machine_numbers()) == ["m0", "m2", "m3", "new"]
    assert bench.world.host.view.is_draining(bench.world.machine_number("m0"))
    assert {name for _, _, name in bench.processes.running.values()} == {"m0", "m2", "m3", "new"}


def test_a_machine_that_was_removed_can_come_back_as_another(bench: LocalBench) -> None:
    bench.world.drain_machine("m0")
    bench.world.remove_machine("m0")
    bench.go(1)
    bench.world.add_machine(Machine("m0", Resources(4000, 2**30), {"disk": "ssd"}))
    bench.go(1)
    names = sorted(bench.world.machine_numbers())
    assert names == ["m0", "m1", "m2", "m3"]
    bench.world.submit(sleeper("a", 14))
    bench.go(30)
    assert [name for _, _, name in bench.processes.running.values()].count("m0") == 8
    for journal in bench.journals():
        Replay(journal, ENGINES).run()
    bench.kill()
    bench.start()
    assert sorted(bench.world.machine_numbers()) == names
    [(back, is_draining)] = [
        pair for pair in bench.world.present_machines() if pair[0].name == "m0"
    ]
    assert (back.capacity.cpu, back.attributes, is_draining) == (4000, {"disk": "ssd"}, False)


def test_a_machine_that_was_removed_is_unknown(bench: LocalBench) -> None:
    bench.world.remove_machine("m1")
    for change in (bench.world.remove_machine, bench.world.drain_machine):
        with pytest.raises(UnknownName, match="m1"):
            change("m1")


def test_a_machine_that_is_refused_leaves_no_trace(bench: LocalBench) -> None:
    with pytest.raises(ModelError, match="there is a machine 'm0' already"):
        bench.world.host.change_machine(AddMachine(Machine("m0", Resources(1, 1))))
    bench.go(1)
    assert sorted(bench.world.machine_numbers()) == ["m0", "m1", "m2", "m3"]
    bench.kill()
    bench.start()
    assert sorted(bench.world.machine_numbers()) == ["m0", "m1", "m2", "m3"]


def test_the_fleet_changes_and_what_runs_goes_on(bench: LocalBench) -> None:
    bench.world.submit(sleeper("a", 10))
    bench.go(1)
    ran = dict(bench.processes.running)
    bench.world.change_fleet((FleetEntry(name="queues", engine="murmuration"),))
    bench.go(1)
    assert bench.processes.running == ran
    assert bench.processes.stopped == []
    bench.kill()
    bench.start()
    assert [entry.engine for entry in bench.world.cluster.fleet] == ["murmuration"]
    while bench.processes.running:
        bench.end_all()
        bench.go(1)
    assert bench.states() == {"a": "finished"}
    assert len(bench.processes.launched) == 10
    for journal in bench.journals():
        Replay(journal, ENGINES).run()


def test_a_fleet_that_does_not_take_every_job_changes_nothing(bench: LocalBench) -> None:
    bench.world.submit(sleeper("a", 10))
    bench.go(1)
    ran = dict(bench.processes.running)
    others = FleetEntry(name="services", engine="omega", takes=Takes(kinds=("service",)))
    with pytest.raises(ScenarioError, match="no scheduler takes jobs of kind 'batch'"):
        bench.world.change_fleet((others,))
    assert [entry.name for entry in bench.world.cluster.fleet] == ["s"]
    assert bench.processes.running == ran
    while bench.processes.running:
        bench.end_all()
        bench.go(1)
    assert bench.states() == {"a": "finished"}
    assert len(bench.processes.launched) == 10


def test_a_second_server_on_the_same_directory_is_refused(bench: LocalBench) -> None:
    with pytest.raises(StoreError, match=r"is in use by process \d+; stop that server"):
        LocalStore(bench.directory)


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_every_engine_runs_real_tasks_over_three_lives(tmp_path: Path, engine: str) -> None:
    bench = LocalBench(tmp_path, engine)
    for number in range(4):
        bench.world.submit(sleeper(f"j{number}", 3))
    for _ in range(60):
        bench.go(10)
        for number in list(bench.processes.running)[::2]:
            bench.end(number)
        bench.kill()
        bench.start()
        if not bench.world.projection.by_id:
            break
    assert set(bench.states().values()) == {"finished"}
    assert len(bench.processes.launched) == 12, "no task ran twice"
    for journal in bench.journals():
        Replay(journal, ENGINES).run()
    bench.kill()
