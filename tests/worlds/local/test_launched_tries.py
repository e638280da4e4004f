"""A try that is launched: its number, and what is written of it where."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from argosy.model.jobs import task_number
from argosy.worlds.local.turn import LiveTry, PlannedLaunch
from argosy.worlds.local.world import LocalWorld


def test_each_try_has_the_next_number_and_the_time_at_which_it_began() -> None:
    noted: list[tuple[Any, ...]] = []
    row = SimpleNamespace(seq=70, job="the job")
    machines = [SimpleNamespace(name=f"m{at}") for at in range(3)]
    world: Any = object.__new__(LocalWorld)
    world._try, world.tries, world._by_task = 12, {}, {}
    world._clock = lambda: 999
    world.projection = SimpleNamespace(
        by_number={4: row}, machines=machines, note_try=lambda *told: noted.append(told)
    )
    world._unsaved = SimpleNamespace(launches={}, tries=[])
    made = [
        LiveTry(task=task_number(4, index), incarnation=0, machine=machine, since=since)
        for index, machine, since in ((0, 2, 5), (3, 1, 8))
    ]
    for live in made:
        world._launch(live)
    first, second = made
    assert world._try == 14
    assert world.tries == {12: first, 13: second}
    assert world._by_task == {first.task: 12, second.task: 13}
    assert (first.seq, second.seq) == (70, 70)
    assert noted == [(row, 0, 12, 5), (row, 3, 13, 8)]
    assert world._unsaved.tries == [(12, 70, 0, "m2", 5), (13, 70, 3, "m1", 8)]
    assert world._unsaved.launches == {
        12: PlannedLaunch(70, "the job", 0, machines[2]),  # type: ignore[arg-type]
        13: PlannedLaunch(70, "the job", 3, machines[1]),  # type: ignore[arg-type]
    }
    assert world._forget_try(12) is first
    assert (world.tries, world._by_task) == ({13: second}, {second.task: 13})
