"""What the local world writes down: rows that agree with its host, and what became of every try."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_local_world import SECOND, LocalBench, ScriptedProcesses, sleeper

from argosy.engines.registry import ENGINES
from argosy.host import TaskState
from argosy.host.job_state import JobState
from argosy.host.journal import Journal
from argosy.host.records import EnqueuedRecord, PlacedRecord, RestoredRecord, SubmittedRecord
from argosy.host.setup import HostSetup
from argosy.model.errors import ModelError, UnknownName
from argosy.model.jobs import index_of, job_of
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import FleetEntry, MachineCrash, MachineResize, SchedulerCrash
from argosy.model.tasks import indices_of
from argosy.model.truth import SimulatedJob
from argosy.testing import conformance
from argosy.testing.builders import GIB, job, scenario
from argosy.testing.scripted_world import ScriptedWorld
from argosy.worlds.local.projection import STATES, Projection
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.world import LocalWorld, TryResult


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[LocalBench]:
    bench = LocalBench(tmp_path)
    yield bench
    bench.store.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    store = LocalStore(tmp_path / "rows")
    yield store
    store.close()


@pytest.mark.parametrize("engine", ["omega", "murmuration", "sparrow", "mesos", "firmament"])
def test_rows_agree_with_the_host_whatever_happens(engine: str, store: LocalStore) -> None:
    """Tries fail, machines and schedulers crash, and a job grows, shrinks and grows again."""
    stream = io.BytesIO()
    journal = Journal(stream)
    web = {count: job("web", count, cpu=500, seconds=20) for count in (4, 9, 6)}
    doomed = job("doomed", 3, seconds=100)
    spec = scenario(
        engine,
        [web[4], *conformance.workload(25, spacing=0.02), job("giant", 1, cpu=64_000), doomed],
        faults=(
            SchedulerCrash(at=SECOND, scheduler="s-1", down=3 * SECOND),
            # For good: its peer takes over what it had.
            SchedulerCrash(at=9 * SECOND, scheduler="s-0"),
            MachineCrash(at=2 * SECOND, machine="m3", down=6 * SECOND),
            MachineResize(at=3 * SECOND, machine="m5", capacity=Resources(2_000, 8 * GIB)),
        ),
        horizon=40 * SECOND,
    )
    world = ScriptedWorld(spec, ENGINES, journal)

    def scale(made: SimulatedJob) -> None:
        world.machines.add(0, made)
        world.host.scale(0, made.job)

    for second, count in ((4, 9), (6, 6), (8, 9)):
        world.inject(second * SECOND, lambda count=count: scale(web[count]))  # type: ignore[misc]
    names = [made.id for made in spec.jobs]
    world.inject(5 * SECOND, lambda: world.host.cancel(names.index("doomed")))
    world.run()
    journal.flush()
    setup = HostSetup.of(spec)
    projection = Projection(1)
    projection.begin_life(setup.cell.machines, 1, 0)
    lines = stream.getvalue().splitlines(keepends=True)
    # Turns of 40 lines; of each, only what changed is written.
    for turn, start in enumerate(range(0, len(lines), 40), 1):
        projection.fold(b"".join(lines[start : start + 40]))
        with store.turn() as cursor:
            projection.write(cursor, turn, turn)
        projection.committed()
    board, states = world.host.board, list(TaskState.__members__.values())
    rows = store.rows(
        f"SELECT seq, id, scheduler, state, ended, {', '.join(STATES)} FROM jobs ORDER BY seq"
    )
    assert len(rows) == len(world.host.jobs)
    for seq, name, scheduler, state, ended, *counts in rows:
        number = seq - 1
        expected = {
            each.name.lower(): set(indices_of(board.tasks_in(number, each)).tolist())
            for each in states
        }
        assert counts == [len(expected[each]) for each in STATES], name
        told = store.rows("SELECT idx, state FROM tasks WHERE job = ?", (seq,))
        for index, known in told:
            assert index in expected[known], (name, index)
        is_open = any(expected[each] for each in ("pending", "queued", "running"))
        assert (ended is None) is is_open
        assert (name in projection.by_id) is is_open
        if is_open:
            assert scheduler == world.host.schedulers[board.owner(number)].name
        assert (state in ("pending", "running")) is is_open
    running = {
        (job_of(task), index_of(task)): setup.cell.machines[machine].name
        for task, machine in zip(
            *(x.tolist() for x in world.runtime.running_columns()[:2]), strict=True
        )
    }
    assert running == {
        (seq - 1, index): machine
        for seq, index, machine in store.rows(
            "SELECT job, idx, machine FROM tasks WHERE state = 'running'"
        )
    }


def tries(bench: LocalBench) -> list[tuple[Any, ...]]:
    """Job, index, exit status and outcome of each try; -1 while it runs."""
    return bench.store.rows(
        "SELECT jobs.id, idx, CASE WHEN tries.ended IS NULL THEN -1 ELSE exit_status END, outcome "
        "FROM tries JOIN jobs ON jobs.seq = tries.job ORDER BY try"
    )


class TestTries:
    def test_each_try_says_what_became_of_it(self, bench: LocalBench) -> None:
        bench.world.submit(sleeper("a", 4, retries=1))
        bench.go(1)
        where = {index: name for _, index, name in bench.processes.running.values()}
        bench.end(1)
        bench.end(2, status=3)
        bench.go(1)
        assert bench.world.cancel("a", [2, 0]) == 1
        bench.go(1)
        bench.world.remove_machine(where[3])
        bench.go(1)
        told = tries(bench)
        assert told[:4] == [
            ("a", 0, 0, "exited"),
            ("a", 1, 3, "it failed"),
            ("a", 2, None, "cancelled"),
            ("a", 3, None, "evicted"),
        ]
        assert sorted(told[4:]) == [("a", 1, -1, ""), ("a", 3, -1, "")]
        assert bench.processes.stopped == [3, 4]
        assert bench.states() == {"a": "running"}
        bench.end_all()
        bench.go(1)
        # As bad as the worst of its tasks.
        assert bench.states() == {"a": "cancelled"}

    def test_a_report_about_a_try_that_is_over_changes_nothing(self, bench: LocalBench) -> None:
        bench.world.submit(sleeper("a", 2))
        bench.go(1)
        bench.end(1)
        bench.world.ended(1, TryResult(7, "late"))
        bench.world.ended(99, TryResult(7, "unknown"))
        bench.go(1)
        assert tries(bench) == [("a", 0, 0, "exited"), ("a", 1, -1, "")]

    def test_times_are_those_of_starts_and_ends(self, bench: LocalBench) -> None:
        bench.time = 5 * SECOND
        bench.world.submit(sleeper("a"))
        bench.go(2)
        bench.end(1, status=1)
        bench.go(2)
        ((started, ended),) = bench.store.rows("SELECT started, ended FROM tries")
        assert 5 * SECOND <= started < 7 * SECOND
        assert ended == 7 * SECOND
        assert bench.store.rows("SELECT started, ended, try FROM tasks") == [(started, ended, 1)]
        assert bench.store.rows("SELECT submitted, ended FROM jobs") == [(5 * SECOND, ended)]

    def test_a_task_cancelled_in_the_turn_that_placed_it_never_starts(
        self, bench: LocalBench
    ) -> None:
        bench.world.submit(sleeper("a"))
        bench.world.settle()
        bench.time += 10 * SECOND
        bench.world.cancel("a")
        bench.go(1)
        assert (bench.processes.launched, bench.processes.stopped) == ([], [])
        assert bench.states() == {"a": "cancelled"}


class TestServices:
    def test_waits_double_up_to_a_minute_and_begin_again_after_a_calm_one(
        self, bench: LocalBench
    ) -> None:
        bench.world.submit(sleeper("web", endless=True))
        bench.go(1)
        for wait in (1, 2, 4, 8, 16, 32, 60, 60):
            number = max(bench.processes.running)
            bench.end(number)
            bench.world.commit()
            assert bench.world.next_due() == bench.world.now + wait * SECOND
            bench.go(wait)
        number = max(bench.processes.running)
        bench.go(60)
        bench.end(number, status=-9)
        bench.world.commit()
        assert bench.world.next_due() == bench.world.now + SECOND
        bench.go(1)
        number += 1
        bench.go(59.9)
        bench.end(number)
        bench.world.commit()
        assert bench.world.next_due() == bench.world.now + 2 * SECOND

    def test_one_that_is_cancelled_while_it_waits_keeps_how_it_ended(
        self, bench: LocalBench
    ) -> None:
        bench.world.submit(sleeper("web", endless=True))
        bench.go(1)
        bench.end(1, status=5)
        bench.world.commit()
        assert tries(bench) == [("web", 0, 5, "it failed")]
        bench.world.cancel("web")
        bench.go(5)
        assert tries(bench) == [("web", 0, 5, "it failed")]
        assert (bench.processes.launched, bench.processes.stopped) == ([1], [])
        assert bench.states() == {"web": "cancelled"}

    def test_one_that_died_while_the_server_was_away_starts_again(self, bench: LocalBench) -> None:
        bench.world.submit(sleeper("web", endless=True))
        bench.go(1)
        where = bench.processes.running.pop(1)
        bench.kill()
        bench.processes.ends[1] = TryResult(0)
        bench.start()
        bench.go(0.5)
        assert bench.processes.running == {}
        bench.go(1)
        assert bench.processes.running == {2: where}

    def test_one_that_has_started_again_is_stopped_like_any_other(self, bench: LocalBench) -> None:
        bench.world.submit(sleeper("web", endless=True))
        bench.go(1)
        bench.end(1)
        bench.go(2)
        assert bench.processes.launched == [1, 2]
        bench.world.cancel("web")
        bench.go(1)
        assert (bench.processes.stopped, bench.processes.running) == ([2], {})
        assert tries(bench) == [("web", 0, 0, "exited"), ("web", 0, None, "cancelled")]


class TestMachines:
    def test_names_are_unique_and_must_be_known(self, bench: LocalBench) -> None:
        with pytest.raises(ModelError, match="there is a machine m1 already"):
            bench.world.add_machine(Machine("m1", Resources(1, 1)))
        for change in (
            lambda: bench.world.remove_machine("m9"),
            lambda: bench.world.drain_machine("m9"),
            lambda: bench.world.resize_machine("m9", Resources(1, 1)),
        ):
            with pytest.raises(UnknownName, match="unknown machine 'm9'"):
                change()

    def test_changes_are_there_for_the_next_server(self, bench: LocalBench) -> None:
        world = bench.world
        world.drain_machine("m0")
        world.drain_machine("m1")
        world.drain_machine("m1", draining=False)
        world.resize_machine("m2", Resources(3_000, GIB))
        world.remove_machine("m3")
        world.commit()
        world.add_machine(Machine("new", Resources(7_000, GIB), attributes={"arch": "arm"}))
        bench.go(1)
        bench.kill()
        bench.start()
        world = bench.world
        numbers = world.machine_numbers()
        view = world.host.view
        draining = {name: view.is_draining(number) for name, number in numbers.items()}
        assert draining == {"m0": True, "m1": False, "m2": False, "new": False}
        sizes = {name: int(view.capacity()[number][0]) for name, number in numbers.items()}
        assert sizes == {"m0": 1_000, "m1": 1_000, "m2": 3_000, "new": 7_000}
        assert view.attributes == (("arch", "arm"),)


def test_tasks_in_a_machines_queue_are_pending_after_a_restart() -> None:
    projection, made = Projection(1), job("a", 3).job
    projection.begin_life([Machine("m0", Resources(4_000, GIB))], 1, 0)
    for record in (
        SubmittedRecord(0, 0, made, "s"),
        EnqueuedRecord(1, "a", [0, 1], [0, 0], "s"),
        PlacedRecord(1, "a", [2], [0], "s"),
        RestoredRecord(5, 0, made, "s", JobState(submitted=0, running=(2,), machines=(0,))),
    ):
        projection._fold(record)
    tasks = projection.by_id["a"].tasks
    assert [tasks[index].state for index in range(3)] == ["pending", "pending", "running"]


class TestTurns:
    def test_a_new_cluster_needs_machines_and_a_fleet(self, tmp_path: Path) -> None:
        store = LocalStore(tmp_path)
        with pytest.raises(ModelError, match="a new cluster needs machines and a fleet"):
            LocalWorld(store, ENGINES, ScriptedProcesses(), lambda: 0)
        store.close()

    def test_time_goes_on_where_the_last_server_ended(self, bench: LocalBench) -> None:
        bench.time = 9 * SECOND
        bench.world.submit(sleeper("a"))
        bench.go(1)
        (last,) = bench.store.rows("SELECT max(at) FROM turns")[0]
        bench.kill()
        # The clock of another process may begin anywhere.
        bench.time = 3
        bench.start()
        assert bench.world.now == last + 1
        bench.time += 5
        assert bench.world.now == last + 6

    def test_a_turn_in_which_nothing_happens_is_not_written(self, bench: LocalBench) -> None:
        before = bench.store.rows("SELECT count(*) FROM turns")
        bench.go(5)
        assert bench.store.rows("SELECT count(*) FROM turns") == before

    def test_a_key_is_kept_with_its_job(self, bench: LocalBench) -> None:
        bench.time = 2 * SECOND
        bench.world.submit(sleeper("a"), ("key", b"digest"))
        bench.world.submit(sleeper("b"))
        bench.world.commit()
        assert bench.store.rows("SELECT * FROM keys") == [("key", b"digest", "a", 2 * SECOND)]

    def test_the_turns_that_speak_of_a_job_are_found_by_it(self, bench: LocalBench) -> None:
        bench.world.submit(sleeper("a"))
        bench.go(1)
        bench.world.submit(sleeper("b"))
        bench.go(1)
        bench.end_all()
        bench.go(1)
        for seq, name in ((1, b'"a"'), (2, b'"b"')):
            spoken = bench.store.rows("SELECT turn FROM job_turns WHERE job = ?", (seq,))
            turns = bench.store.rows("SELECT turn FROM turns WHERE instr(lines, ?)", (name,))
            assert set(turns) <= set(spoken)
            assert bench.store.rows("SELECT version FROM jobs WHERE seq = ?", (seq,)) == [
                (len(spoken),)
            ]

    def test_versions_of_jobs_only_grow_whoever_serves_them(self, bench: LocalBench) -> None:
        versions = []
        bench.world.submit(sleeper("a", 4))
        for number in range(1, 4):
            bench.go(1)
            bench.end(number)
            bench.go(1)
            versions += bench.store.rows("SELECT version FROM jobs")
            bench.kill()
            bench.start()
        assert versions == sorted(set(versions))
        assert len(versions) == 3

    def test_a_job_of_this_turn_can_be_cancelled_in_it(self, bench: LocalBench) -> None:
        bench.world.submit(sleeper("a", 2))
        assert bench.world.job_seq("nobody") is None
        assert bench.world.cancel("a", [1]) == 1
        bench.go(1)
        assert [index for _, index, _ in bench.processes.running.values()] == [0]
        assert bench.world.job_seq("a") == 1


def test_each_life_has_a_seed_of_its_own(bench: LocalBench) -> None:
    bench.kill()
    bench.start()
    first, second = (journal.header().setup.seed for journal in bench.journals())
    assert second == first + 1


def test_an_id_that_somebody_chose_is_not_given_again(bench: LocalBench) -> None:
    assert bench.world.new_id() == "job-1"
    for name in ("job-2", "job-3"):
        bench.world.submit(sleeper(name))
    assert bench.world.new_id() == "job-4"
    bench.go(1)
    assert bench.world.new_id() == "job-4"


def test_processes_are_started_and_stopped_for_so_long_at_a_time(bench: LocalBench) -> None:
    bench.world.submit(sleeper("a", 3))
    bench.world.write()
    assert bench.processes.launched == [], "only what is on the disk is acted on, by `act`"
    assert [bench.world.act(0.0) for _ in range(3)] == [True, True, False]
    assert len(bench.processes.launched) == 3


def test_a_draining_machine_drains_on_under_another_fleet(bench: LocalBench) -> None:
    def draining() -> list[str]:
        present = bench.world.present_machines()
        return [machine.name for machine, is_draining in present if is_draining]

    bench.world.drain_machine("m1")
    bench.go(1)
    bench.world.change_fleet((FleetEntry(name="t", engine="omega"),))
    assert draining() == ["m1"]
    bench.kill()
    bench.start()
    assert draining() == ["m1"]
