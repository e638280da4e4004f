"""A cluster whose machines have all left, and a server that starts on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from argosy.engines.registry import ENGINES
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, FleetEntry
from argosy.worlds.local.processless import ProcesslessRunner
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.turn import LocalCluster
from argosy.worlds.local.world import LocalWorld

SECOND = 1_000_000


class NotedLaunches(ProcesslessRunner[str]):
    """Processes that never end."""

    def launch(self, number: int, job: Job, index: int, machine: Machine) -> None:
        self._running[number] = job.id

    def stop(self, number: int) -> None:
        raise AssertionError("nothing has to stop")

    def adopt(self, number: int) -> bool:
        return False

    def jobs(self) -> list[str]:
        return sorted(self._running.values())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(tmp_path, is_lasting=False)) as store:
        yield store


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_jobs_wait_until_there_is_a_machine(engine: str, store: LocalStore) -> None:
    time, processes = 0, NotedLaunches()
    cluster = LocalCluster(cell=CellSpec(machines=()), fleet=(FleetEntry(name="s", engine=engine),))
    world = LocalWorld(store, ENGINES, processes, lambda: time, cluster=cluster)
    for name, kind in (("a", "batch"), ("b", "service")):
        group = TaskGroup(count=1, request=Resources(500, 2**20), tags=("t",))
        world.submit(Job(id=name, groups=(group,), kind=kind))
    for _ in range(30):
        time += SECOND
        world.commit()
    assert processes.jobs() == []
    lines = b"".join(lines for (lines,) in store.rows("SELECT lines FROM turns"))
    assert b'"what":"explained"' in lines
    world.add_machine(Machine("m", Resources(4000, 2**30)))
    for _ in range(90):
        time += SECOND
        world.commit()
    assert processes.jobs() == ["a", "b"]


def test_a_scheduler_that_tries_again_without_a_pause_lets_time_pass(store: LocalStore) -> None:
    time, processes = 0, NotedLaunches()
    eager = FleetEntry(name="s", engine="kube", settings={"retry": 0, "t_task": 5_000})
    cluster = LocalCluster(cell=CellSpec(machines=()), fleet=(eager,))
    world = LocalWorld(store, ENGINES, processes, lambda: time, cluster=cluster)
    for name in ("a", "b"):
        group = TaskGroup(count=1, request=Resources(500, 2**20))
        world.submit(Job(id=name, groups=(group,), kind="batch"))
    for _ in range(10):
        world.commit()
        due = world.next_due()
        assert due is not None
        assert due == time + 5_000
        time = due
    world.add_machine(Machine("m", Resources(4000, 2**30)))
    world.commit()
    assert processes.jobs() == ["a", "b"]
