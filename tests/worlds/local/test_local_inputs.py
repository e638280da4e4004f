"""What a local world is asked and told between its turns: ids, keys, places, due times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from test_local_world import SECOND, LocalBench, sleeper

from argosy.engines.registry import ENGINES
from argosy.model.errors import FleetRefused, ModelError, UnknownName
from argosy.model.explanations import Why
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import FleetEntry, NotModelled
from argosy.worlds.local.changes import LifeNote, decode_changes
from argosy.worlds.local.stored_cluster import replace_fleet
from argosy.worlds.local.turn import TryResult
from argosy.worlds.local.world import LocalWorld


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[LocalBench]:
    bench = LocalBench(tmp_path)
    yield bench
    bench.store.close()


class TestKeys:
    def test_a_key_is_found_before_and_after_its_turn_is_written(self, bench: LocalBench) -> None:
        bench.world.submit(sleeper("a"), ("first", b"1"))
        bench.world.note_key("second", b"2", "noted")
        for _ in range(2):
            assert bench.world.job_of_key("first") == (b"1", "a")
            assert bench.world.job_of_key("second") == (b"2", "noted")
            assert bench.world.job_of_key("third") is None
            bench.go(1)
        bench.kill()
        bench.start()
        assert bench.world.job_of_key("second") == (b"2", "noted")


class TestIds:
    def test_a_job_is_known_from_its_submission_until_long_after_its_end(
        self, bench: LocalBench
    ) -> None:
        world = bench.world
        assert world.job_seq("a") is None
        world.submit(sleeper("a"))
        assert (world.job_seq("a"), world.job_seq("b")) == (1, None)
        world.submit(sleeper("b"))
        assert world.job_seq("b") == 2
        assert (world.coming_version("b"), world.coming_version("c")) == (1, None)
        bench.go(1)
        bench.end_all()
        bench.go(1)
        assert (world.job_seq("a"), world.coming_version("a")) == (1, None)

    def test_new_ids_count_on_over_restarts(self, bench: LocalBench) -> None:
        assert bench.world.new_id() == "job-1"
        bench.world.submit(sleeper("other"))
        assert bench.world.new_id() == "job-2"
        bench.go(1)
        bench.kill()
        bench.start()
        assert bench.world.new_id() == "job-2"


class TestPlaces:
    def test_a_job_that_was_placed_elsewhere_starts_on_that_machine(
        self, bench: LocalBench
    ) -> None:
        assert bench.world.place(sleeper("a"), 2, "far", "Bind", ("key", b"1")) is None
        assert bench.world.job_of_key("key") == (b"1", "a")
        with pytest.raises(ModelError, match="there is a job a already"):
            bench.world.place(sleeper("a"), 2, "far", "Bind", ("other", b"1"))
        bench.go(1)
        assert [where for _, _, where in bench.processes.running.values()] == ["m2"]

    def test_a_refused_place_leaves_nothing(self, bench: LocalBench) -> None:
        large = sleeper("a")
        large = replace(large, groups=(replace(large.groups[0], request=Resources(1_001, 1)),))
        refusal = bench.world.place(large, 2, "far", "Bind", ("key", b"1"))
        assert refusal is not None
        assert refusal.why is Why.NO_ROOM
        assert bench.world.job_of_key("key") is None
        bench.go(1)
        assert bench.states() == {}
        assert bench.world.job_seq("a") is None


class TestCancelling:
    def test_only_the_tasks_that_are_named_are_cancelled(self, bench: LocalBench) -> None:
        bench.world.submit(sleeper("a", 4))
        bench.go(1)
        assert bench.world.cancel("a", [1, 3]) == 2
        assert bench.world.cancel("a", []) == 0
        bench.go(1)
        left = sorted(index for _, index, _ in bench.processes.running.values())
        assert left == [0, 2]
        with pytest.raises(UnknownName, match="unknown job 'x'"):
            bench.world.scale("x", sleeper("x"))


class TestDueTimes:
    def test_a_turn_with_something_to_write_is_due_at_once(self, bench: LocalBench) -> None:
        assert bench.world.next_due() is None
        bench.time = 7 * SECOND
        bench.world.submit(sleeper("a"))
        bench.world.coming_version("a")
        assert bench.world.next_due() == bench.world.now
        bench.go(1)
        assert bench.world.next_due() is None

    def test_the_earlier_of_a_restart_and_an_event_is_due_next(self, bench: LocalBench) -> None:
        bench.world.submit(sleeper("web", 2, endless=True))
        bench.go(1)
        bench.world.ended(1, None)
        bench.world.commit()
        first = bench.world.next_due()
        assert first == bench.world.now + SECOND
        bench.time += SECOND // 2
        bench.world.ended(2, None)
        bench.world.commit()
        assert bench.world.next_due() == first

    def test_a_world_begins_no_earlier_than_it_is_told(self, bench: LocalBench) -> None:
        bench.go(3)
        bench.kill()
        bench.time = 100
        for began, expected in ((10 * SECOND, 10 * SECOND), (5, None)):
            bench.store = type(bench.store)(bench.directory)
            last = bench.store.rows("SELECT max(at) FROM turns")[0][0]
            world = LocalWorld(
                bench.store, ENGINES, bench.processes, lambda: bench.time, began=began
            )
            assert world.now == (last + 1 if expected is None else expected)
            bench.store.close()


class TestLives:
    def test_each_life_is_written_with_its_beginning(self, bench: LocalBench) -> None:
        bench.time = 4 * SECOND
        bench.world.change_fleet((FleetEntry(name="t", engine="omega"),))
        assert bench.world.life == 2
        rows = bench.store.rows("SELECT life, began, length(header) > 0 FROM lives ORDER BY life")
        assert rows == [(1, 0, 1), (2, 4 * SECOND, 1)]
        noted = [
            note
            for (changes,) in bench.store.rows("SELECT changes FROM turns ORDER BY turn")
            for note in decode_changes(changes)
            if isinstance(note, LifeNote)
        ]
        assert noted == [LifeNote(0, 1), LifeNote(4 * SECOND, 2)]
        assert [each.header().setup.is_resumed for each in bench.journals()] == [False, False]
        bench.world.submit(sleeper("a"))
        bench.go(1)
        bench.kill()
        bench.start()
        header = bench.journals()[-1].header().setup
        assert header.is_resumed
        assert header.began > 4 * SECOND
        assert [entry.decision_time for entry in header.fleet] == [NotModelled()]

    def test_machines_keep_their_places_in_a_new_life(self, bench: LocalBench) -> None:
        bench.world.remove_machine("m1")
        bench.world.add_machine(Machine("m9", Resources(1000, 2**30)))
        bench.world.submit(sleeper("a", 8))
        bench.go(1)
        before = dict(bench.processes.running)
        bench.world.change_fleet((FleetEntry(name="t", engine="omega"),))
        assert bench.world.machine_numbers() == {"m0": 0, "m2": 1, "m3": 2, "m9": 3}
        assert {
            bench.world.projection.machines[live.machine].name
            for live in bench.world.tries.values()
        } == {"m0", "m2", "m3", "m9"}
        bench.go(1)
        assert bench.processes.running == before

    def test_an_engine_that_cannot_begin_leaves_the_fleet_as_it_was(
        self, bench: LocalBench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Unable(ENGINES["omega"]):  # type: ignore[misc, valid-type]
            def __init__(self, *_: object) -> None:
                raise ValueError("not today")

        monkeypatch.setattr(bench.world, "_engines", {**ENGINES, "unable": Unable})
        bench.world.submit(sleeper("a", 2))
        bench.go(1)
        with pytest.raises(FleetRefused):
            bench.world.change_fleet((FleetEntry(name="t", engine="unable"),))
        assert [entry.name for entry in bench.world.cluster.fleet] == ["s"]
        bench.go(1)
        assert sorted(bench.world.tries) == sorted(bench.processes.running) == [1, 2]

    def test_another_fleet_can_be_put_into_the_database(self, bench: LocalBench) -> None:
        bench.kill()
        bench.store = type(bench.store)(bench.directory)
        before = replace_fleet(bench.store, (FleetEntry(name="t", engine="sparrow"),))
        assert [entry.name for entry in before] == ["s"]
        bench.store.close()
        bench.start()
        assert [entry.engine for entry in bench.world.cluster.fleet] == ["sparrow"]

    def test_an_end_that_the_next_try_takes_over_outlives_a_change_of_the_fleet(
        self, bench: LocalBench
    ) -> None:
        bench.world.submit(sleeper("a"))
        bench.go(1)
        bench.processes.is_slow = True
        for name in ("m0", "m1", "m2", "m3"):
            bench.world.remove_machine(name)
        bench.go(1)
        bench.end(1)
        bench.world.commit()
        bench.world.add_machine(Machine("new", Resources(1000, 2**30)))
        bench.world.change_fleet((FleetEntry(name="t", engine="spread"),))
        bench.go(1)
        assert bench.processes.launched == [1]
        assert bench.states() == {"a": "finished"}


class TestRestoring:
    def test_a_task_whose_machine_is_gone_is_stopped_and_starts_elsewhere(
        self, bench: LocalBench
    ) -> None:
        bench.world.submit(sleeper("a", 2))
        bench.go(1)
        gone = bench.processes.running[1][2]
        bench.kill()
        bench.store = type(bench.store)(bench.directory)
        with bench.store.turn() as turn:
            turn.execute("DELETE FROM machines WHERE name = ?", (gone,))
        bench.store.close()
        bench.start()
        assert bench.processes.stopped == [
            number for number in (1, 2) if number not in bench.processes.running
        ]
        bench.go(1)
        rows = bench.store.rows("SELECT outcome FROM tries WHERE try = 1")
        assert rows == [("lost",)]
        assert len(bench.processes.running) == 2
        assert gone not in {where for _, _, where in bench.processes.running.values()}

    def test_an_end_while_the_server_was_away_counts_once(self, bench: LocalBench) -> None:
        bench.world.submit(sleeper("a", 2, retries=0))
        bench.go(1)
        bench.kill()
        del bench.processes.running[2]
        bench.processes.ends[2] = TryResult(9, "broken")
        bench.start()
        bench.go(1)
        rows = bench.store.rows("SELECT idx, state, exit_status, reason FROM tasks ORDER BY idx")
        failed = [row for row in rows if row[1] == "failed"]
        assert [row[2:] for row in failed] == [(9, "broken")]
        assert bench.store.rows("SELECT exit_status, outcome FROM tries WHERE try = 2") == [
            (9, "broken")
        ]

    def test_nobody_waits_for_a_try_of_a_task_that_the_job_has_no_more(
        self, bench: LocalBench
    ) -> None:
        number = bench.with_a_stopping_try()
        bench.world.scale("a", sleeper("a", 1))
        bench.go(1)
        assert (number,) in bench.store.rows("SELECT try FROM stops")
        bench.kill()
        bench.start()
        bench.processes.ends[number] = TryResult(0)
        bench.processes.is_slow = False
        bench.go(1)
        bench.world.submit(sleeper("b"))
        bench.go(1)
        assert bench.store.rows("SELECT try FROM stops") == []

    def test_an_end_on_a_machine_that_is_gone_leaves_nothing_to_stop(
        self, bench: LocalBench
    ) -> None:
        bench.world.submit(sleeper("a"))
        bench.go(1)
        _, _, gone = bench.processes.running.pop(1)
        bench.processes.ends[1] = TryResult(0)
        bench.kill()
        bench.store = type(bench.store)(bench.directory)
        with bench.store.turn() as turn:
            turn.execute("DELETE FROM machines WHERE name = ?", (gone,))
        bench.store.close()
        bench.start()
        assert bench.processes.stopped == []
        assert bench.store.rows("SELECT try FROM stops") == []
        assert list(bench.processes.running) == [2]

    def test_a_try_that_goes_on_has_run_since_its_start(self, bench: LocalBench) -> None:
        bench.go(3)
        bench.world.submit(sleeper("web", endless=True))
        bench.go(5)
        [(began,)] = bench.store.rows("SELECT started FROM tries")
        assert bench.world.now - began == 5 * SECOND
        bench.world.change_fleet((FleetEntry(name="t", engine="spread"),))
        assert bench.world.tries[1].since == began
        bench.kill()
        bench.start()
        assert bench.world.tries[1].since == began


class TestScaling:
    def test_what_a_removed_task_did_is_not_the_end_of_one_that_is_added_later(
        self, bench: LocalBench
    ) -> None:
        number = bench.with_a_stopping_try()
        bench.world.scale("a", sleeper("a", 1))
        bench.go(1)
        bench.processes.is_slow = False
        bench.processes.stopping.clear()
        bench.end(number)
        bench.world.scale("a", sleeper("a", 2))
        bench.go(1)
        assert bench.store.rows("SELECT try FROM stops") == []
        running = sorted(index for _, index, _ in bench.processes.running.values())
        assert running == [0, 1]


def test_a_machine_that_comes_back_is_as_it_is_then(bench: LocalBench) -> None:
    world = bench.world
    world.remove_machine("m3")
    back = Machine("m3", Resources(7_000, 2**30), {"arch": "arm"})
    world.add_machine(back)
    bench.go(1)
    assert (back, False) in world.present_machines()
    assert world.host.view.attributes == (("arch", "arm"),)
    bench.kill()
    bench.start()
    assert (back, False) in bench.world.present_machines()
