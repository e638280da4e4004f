"""Pieces of the host by themselves: demands of jobs, turns, questions about room, and answers that come
too late."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from serial_attempts import cell_of, tasks_of
from test_remote_answers import Remote

from argosy.cell import Cell
from argosy.host.agents import Agents
from argosy.host.job_table import JobTable, demand_of
from argosy.host.remote_desks import RemoteCommit
from argosy.host.requirements import QueueRequirements
from argosy.host.room_watch import RoomWatch
from argosy.host.scheduler import Router
from argosy.model.constraints.text import parse_constraint
from argosy.model.effects import AskQueues
from argosy.model.errors import EngineFault
from argosy.model.jobs import Job
from argosy.model.machines import CLUSTER_GROUP, Cluster, Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Claims, Transaction
from argosy.testing.builders import GIB, job

APART = parse_constraint("w -> {w, 0, 0} in machine")


class TestDemands:
    def demands(self, *jobs: Job) -> list[int]:
        table = JobTable()
        for each in jobs:
            table.add(each)
        return table.demands.tolist()

    def test_the_order_of_requirements_and_extras_does_not_matter(self) -> None:
        fussy = [
            job("a", requires=dict(each)).job
            for each in ([("x", "1"), ("y", "2")], [("y", "2"), ("x", "1")])
        ]
        large = [
            job("b", request=Resources(1, 1, dict(each))).job
            for each in ([("gpu", 1), ("disk", 2)], [("disk", 2), ("gpu", 1)])
        ]
        assert self.demands(*fussy, *large) == [0, 0, 1, 1]

    def test_gangs_of_different_sizes_and_constrained_jobs_ask_for_something_else(self) -> None:
        jobs = [
            job("plain", 2).job,
            job("gang", 2, gang=True).job,
            job("larger", 3, gang=True).job,
            job("apart", 2, constraints=(APART,)).job,
        ]
        assert self.demands(*jobs) == [0, 1, 2, 3]
        assert [demand_of(each).together for each in jobs] == [0, 2, 3, 0]
        assert [demand_of(each).is_constrained for each in jobs] == [False, False, False, True]


def test_each_kind_of_job_goes_round_by_itself() -> None:
    def scheduler(name: str) -> Any:
        entry = SimpleNamespace(takes=SimpleNamespace(kinds=()), split="round-robin")
        return SimpleNamespace(name=name, entry=entry, is_alive=True)

    router = Router([scheduler("one"), scheduler("two")], Random(1))
    kinds = ["a", "b", "a", "a", "b"]
    routed = [router.route(job("j", kind=kind).job) for kind in kinds]
    assert [each.name for each in routed if each] == ["one", "one", "two", "one", "two"]


class TestRoomQuestions:
    def bench(self) -> Any:
        """What is posted, and what is sent to machines; the first of two queues has room."""
        cell = cell_of(4, 4)
        found = SimpleNamespace(posted=[], requested=[])
        runtime = SimpleNamespace(
            queue_room=lambda: np.array([1, 0]),
            queue_state=lambda is_long, as_of_beat=False: (np.zeros(2), np.zeros(2)),
            await_room=lambda machines: None,
            take_roomy=lambda: np.array([0]),
        )
        host: Any = SimpleNamespace(
            runtime=runtime,
            view=cell.view(),
            links=SimpleNamespace(reliable_delay=lambda *told: 3),
            setup=SimpleNamespace(machines=SimpleNamespace(limit=1, heartbeat=0)),
            post=lambda at, who, event: found.posted.append((at, event)),
            request=lambda at, who, action, effect: found.requested.append(effect),
        )
        found.watch = RoomWatch(host)
        return found

    def test_who_wants_room_waits_for_it_though_heartbeats_would_do_otherwise(self) -> None:
        found, who = self.bench(), SimpleNamespace(name="s", label="s", epoch=0)
        now = AskQueues(1, latest=True)
        found.watch.ask(who, now, 5)
        assert [(at, event.token) for at, event in found.posted] == [(5, 1)]
        waits = AskQueues(2, latest=True, until_room=np.array([1], np.int32))
        found.watch.ask(who, waits, 5)
        assert found.requested == [waits]
        found.watch._arrive(who, waits, 8)
        assert len(found.posted) == 1

    def test_everybody_gets_a_report_of_its_own(self) -> None:
        """Because schedulers count in it what they send."""
        found = self.bench()
        for token in (1, 2):
            who = SimpleNamespace(name=f"s{token}", label="s", epoch=0)
            effect = AskQueues(token, until_room=np.array([1], np.int32))
            found.watch._arrive(who, effect, 8)
        assert not found.posted
        found.watch._runtime.take_roomy = lambda: np.array([1])
        found.watch.pass_on(9)
        (_, first), (_, second) = found.posted
        first.room[0] -= 1
        assert second.room.tolist() == [1, 0]


def test_an_agents_answer_for_a_scheduler_that_crashed_meanwhile_claims_nothing() -> None:
    remote, who = Remote(), SimpleNamespace(name="s", epoch=0)
    effect = remote.commit()
    remote.desks._commits.clear()
    scheduler: Any = who
    remote.desks.commit(scheduler, effect, 0)
    who.epoch = 1
    assert not remote.desks.committed(scheduler, 7, RemoteCommit(machine=0))
    assert remote.cell.claims() == 0
    assert remote.posted == remote.concluded == remote.recorded == []


def test_what_no_machine_has_is_a_requirement_like_any_other() -> None:
    keys: list[tuple[int, ...]] = []

    def add(key: tuple[int, ...]) -> int:
        keys.append(key)
        return len(keys)

    jobs = JobTable()
    for disk in ("ssd", "tape"):
        jobs.add(job(disk, requires={"disk": disk}).job)
    runtime: Any = SimpleNamespace(add_requirement=add)
    known = QueueRequirements(runtime, cell_of(4, m0={"disk": "ssd"}).view(), jobs)
    assert known.of(np.concatenate([tasks_of(0, 0), tasks_of(1, 0)])) == [1, 2]
    assert keys == [(0,), (-1,)]


@pytest.mark.parametrize(("other", "is_refused"), [(-1, False), (1, False), (2, True)])
def test_the_alternatives_of_every_claim_are_machines_of_its_cluster(
    other: int, is_refused: bool
) -> None:
    cell = Cell(("cpu", "memory"), {CLUSTER_GROUP: ("north", "south")})
    for at, name in enumerate(("north", "north", "south")):
        machine = Machine(f"m{at}", Resources(4_000, GIB), {}, {CLUSTER_GROUP: (name,)})
        cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
    clusters = (Cluster("north", ""), Cluster("south", ""))
    agents, who = Agents(clusters, cell.view(), Random(1)), SimpleNamespace(name="s", label="s")
    rows = np.array([0, 0], np.int32)
    claims = Claims(
        tasks_of(0, 0, 1),
        rows,
        rows,
        cell.versions(rows),
        alternatives=np.array([[1], [other]], np.int32),
    )
    scheduler: Any = who
    if is_refused:
        with pytest.raises(EngineFault, match="which is in south"):
            agents.check_claims(scheduler, "north", claims)
    else:
        agents.check_claims(scheduler, "north", claims)
