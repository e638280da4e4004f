"""Tries that a server was to stop and did not live to see end, and orders in one turn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from test_local_world import SECOND, LocalBench, sleeper

from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.worlds.local.stored_cluster import stored_machines
from argosy.worlds.local.turn import TryResult


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[LocalBench]:
    bench = LocalBench(tmp_path)
    yield bench
    bench.store.close()


def stops(bench: LocalBench) -> list[int]:
    return [number for (number,) in bench.store.rows("SELECT try FROM stops")]


def outcomes(bench: LocalBench) -> list[tuple[int, int | None, str]]:
    return bench.store.rows("SELECT try, exit_status, outcome FROM tries ORDER BY try")


def test_the_end_of_a_cancelled_task_counts_for_nobody_after_a_restart(bench: LocalBench) -> None:
    bench.world.submit(sleeper("a", 2))
    bench.go(1)
    bench.processes.is_slow = True
    [number] = [n for n, (_, index, _) in bench.processes.running.items() if index == 1]
    assert bench.world.cancel("a", [1]) == 1
    bench.go(1)
    bench.kill()
    bench.start()
    assert bench.processes.stopped == [number, number], "the new server asks again"
    bench.processes.stopping.clear()
    bench.end(number)
    bench.world.submit(sleeper("b"))
    bench.go(1)
    assert stops(bench) == []
    assert bench.states() == {"a": "running", "b": "running"}
    assert outcomes(bench)[number - 1] == (number, None, "cancelled")


def test_the_end_of_a_cancelled_task_is_waited_for_by_nobody(bench: LocalBench) -> None:
    bench.world.submit(sleeper("a", 2))
    bench.go(1)
    bench.processes.is_slow = True
    [number] = [n for n, (_, index, _) in bench.processes.running.items() if index == 1]
    bench.world.cancel("a", [1])
    bench.go(1)
    assert stops(bench) == [number]
    bench.processes.stopping.clear()
    bench.end(number)
    bench.world.submit(sleeper("b"))
    bench.go(1)
    assert stops(bench) == []


@pytest.mark.parametrize("trouble", ["gone", "too small"])
def test_what_a_try_did_on_a_machine_that_lost_it_is_the_end_of_its_task(
    bench: LocalBench, trouble: str
) -> None:
    bench.world.submit(sleeper("a"))
    bench.go(1)
    where = bench.processes.running[1][2]
    bench.kill()
    bench.store = type(bench.store)(bench.directory)
    machines = {machine.name: machine for machine, _ in stored_machines(bench.store)}
    with bench.store.turn() as turn:
        if trouble == "gone":
            turn.execute("DELETE FROM machines WHERE name = ?", (where,))
        else:
            small = msgspec.structs.replace(machines[where], capacity=Resources(1, 1))
            turn.execute(
                "UPDATE machines SET spec = ? WHERE name = ?", (msgspec.json.encode(small), where)
            )
    bench.store.close()
    bench.processes.is_slow = True
    bench.start()
    assert (bench.processes.stopped, stops(bench)) == ([1], [1])
    bench.go(1)
    assert bench.processes.launched == [1], "the next try waits for this one"
    bench.processes.stopping.clear()
    bench.end(1)
    bench.go(1)
    assert bench.processes.launched == [1]
    assert bench.states() == {"a": "finished"}
    assert outcomes(bench) == [(1, None, "lost"), (2, 0, "ended as try 1")]
    assert stops(bench) == []


def test_what_was_stopped_is_no_end_of_its_task(bench: LocalBench) -> None:
    number = bench.with_a_stopping_try()
    assert stops(bench) == [number]
    bench.processes.stopping.clear()
    del bench.processes.running[number]
    bench.world.ended(number, TryResult(-15, "", was_stopped=True))
    bench.go(1)
    assert bench.processes.launched == [1, 2, 3]
    assert outcomes(bench)[number - 1] == (number, None, "evicted")
    assert stops(bench) == [number], "that can wait for the next turn with something to write"
    bench.world.submit(sleeper("b"))
    bench.go(1)
    assert stops(bench) == []


def test_the_outcome_says_why_a_try_lost_its_place(bench: LocalBench) -> None:
    bench.world.submit(sleeper("gone"))
    bench.go(1)
    bench.world.remove_machine(bench.processes.running[1][2])
    bench.go(1)
    bench.world.submit(sleeper("given-up"))
    bench.go(1)
    bench.world.cancel("given-up")
    bench.go(1)
    assert [outcome for _, _, outcome in outcomes(bench)] == ["evicted", "", "cancelled"]


def test_a_reason_of_an_end_is_its_outcome(bench: LocalBench) -> None:
    bench.world.submit(sleeper("a", 2, retries=0))
    bench.go(1)
    bench.end(1)
    bench.end(2, 7)
    bench.go(1)
    assert outcomes(bench) == [(1, 0, "exited"), (2, 7, "it failed")]
    [[first], [second]] = bench.store.rows("SELECT ended FROM tries ORDER BY try")
    assert first == second == bench.world.now - SECOND


def test_stops_and_launches_are_left_for_later_once_the_time_is_up(bench: LocalBench) -> None:
    bench.world.submit(sleeper("a", 3))
    bench.world.settle()
    for _ in range(3):
        bench.time += SECOND
        bench.world.write()
    assert bench.processes.launched == []
    assert bench.world.act(0)
    assert bench.world.act(0)
    assert not bench.world.act(0)
    assert bench.processes.launched == [1, 2, 3]
    bench.world.cancel("a")
    bench.world.write()
    assert bench.world.act(0)
    assert len(bench.processes.stopped) == 1
    assert not bench.world.act()
    assert sorted(bench.processes.stopped) == [1, 2, 3]
    assert not bench.world.act(0)


def test_as_much_is_done_as_fits_into_the_time(
    bench: LocalBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = bench.processes.launch

    def slowly(*how: Any) -> None:
        launch(*how)
        bench.time += SECOND // 5

    monkeypatch.setattr(bench.processes, "launch", slowly)
    bench.world.submit(sleeper("a", 6))
    bench.world.settle()
    for _ in range(3):
        bench.time += SECOND
        bench.world.write()
    assert bench.world.act(0.4)
    assert bench.processes.launched == [1, 2]
    assert bench.world.act(0.5)
    assert bench.processes.launched == [1, 2, 3, 4, 5]
    assert not bench.world.act()


def test_a_machine_of_its_own_name_only_is_added_and_only_one_that_is_there_is_changed(
    bench: LocalBench,
) -> None:
    machines = bench.world.machine_numbers()
    assert machines == {"m0": 0, "m1": 1, "m2": 2, "m3": 3}
    bench.world.remove_machine("m1")
    assert bench.world.machine_numbers() == {"m0": 0, "m2": 2, "m3": 3}
    bench.world.add_machine(Machine("m4", Resources(1, 1)))
    bench.world.add_machine(Machine("m1", Resources(2, 2)))
    assert bench.world.machine_numbers() == {**machines, "m4": 4}
    bench.world.drain_machine("m4")
    bench.world.resize_machine("m0", Resources(5, 5))
    bench.world.commit()
    found = {machine.name: (machine.capacity.cpu, drains) for machine, drains in
             bench.world.present_machines()}  # fmt: skip
    expected = {"m0": (5, False), "m1": (2, False), "m2": (1000, False), "m3": (1000, False)}
    assert found == {**expected, "m4": (1, True)}
    stored = {machine.name: (machine.capacity.cpu, drains) for machine, drains in
              stored_machines(bench.store)}  # fmt: skip
    assert stored == found
    bench.world.drain_machine("m4", draining=False)
    bench.world.commit()
    assert not any(drains for _, drains in stored_machines(bench.store))


def test_a_change_that_is_not_on_the_disk_yet_is_due_at_once(bench: LocalBench) -> None:
    bench.go(1)
    assert bench.world.next_due() is None
    bench.world.add_machine(Machine("m4", Resources(1, 1)))
    bench.time += 5
    assert bench.world.next_due() == bench.world.now
    bench.world.commit()
    assert bench.world.next_due() is None
