"""A world in which another system has the last word, with an overseer that follows a script."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace
from test_local_world import SECOND, ScriptedProcesses, sleeper

from argosy.engines.registry import ENGINES
from argosy.model.errors import ModelError, UnknownName
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import Job, index_of
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, FleetEntry, SchedulerLimits
from argosy.worlds.local.overruled import GONE, OverruledWorld
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.turn import LocalCluster, StartOrder, StopOrder

UNLIMITED = SchedulerLimits()


class ScriptedOverseer:
    def __init__(self, *more: FleetEntry) -> None:
        self.more, self.begun = more, 0
        self.seen: list[StartOrder | StopOrder] = []
        self.answer: Callable[[OverruledWorld, StartOrder | StopOrder], None] = lambda *_: None

    def fleet(self, entries: tuple[FleetEntry, ...]) -> tuple[FleetEntry, ...]:
        return (*entries, *self.more)

    def oversee(self, world: OverruledWorld, orders: Sequence[StartOrder | StopOrder]) -> None:
        for order in orders:
            self.seen.append(order)
            self.answer(world, order)

    def begin(self, world: OverruledWorld) -> None:
        self.begun += 1


class Bench:
    def __init__(
        self, directory: Path, engine: str = "omega", limits: SchedulerLimits = UNLIMITED
    ) -> None:
        self.time = 0
        more = FleetEntry(name="added", engine=engine, limits=limits)
        self.overseer, self.processes = ScriptedOverseer(more), ScriptedProcesses()
        self.store = LocalStore(directory, is_lasting=False)
        machines = tuple(Machine(f"m{n}", Resources(1_000, 2**30, {"gpu": n})) for n in range(3))
        self.world = OverruledWorld(
            self.store,
            ENGINES,
            self.processes,
            lambda: self.time,
            self.overseer,
            cluster=LocalCluster(
                cell=CellSpec(machines=machines),
                fleet=(FleetEntry(name="s", engine=engine, limits=limits),),
            ),
        )

    def go(self, seconds: float = 1) -> None:
        for _ in range(20):
            self.time += int(seconds * SECOND / 20)
            self.world.commit()

    def where(self) -> dict[str, str]:
        return {name: where for name, _, where in self.processes.running.values()}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.store.close()


def sized(name: str, cpu: int = 500, **extras: int) -> Job:
    job = sleeper(name)
    return replace(job, groups=(replace(job.groups[0], request=Resources(cpu, 2**20, extras)),))


class TestOversight:
    def test_the_fleet_is_the_overseers(self, bench: Bench) -> None:
        setup = bench.world.host.setup
        assert [entry.name for entry in setup.fleet] == ["s", "added"]
        assert setup.is_overruled
        assert bench.overseer.begun == 1
        bench.world.change_fleet((FleetEntry(name="t", engine="omega"),))
        assert [entry.name for entry in bench.world.host.setup.fleet] == ["t", "added"]
        assert [entry.name for entry in bench.world.cluster.fleet] == ["t"]
        assert bench.overseer.begun == 2

    def test_every_order_is_seen_once_before_it_is_carried_out(self, bench: Bench) -> None:
        launched: list[int] = []
        bench.overseer.answer = lambda *_: launched.append(len(bench.processes.launched))
        bench.world.submit_all([sized("a"), sized("b")])
        assert (bench.world.job_seq("a"), bench.world.job_seq("b")) == (1, 2)
        bench.go()
        assert [type(order) for order in bench.overseer.seen] == [StartOrder, StartOrder]
        assert launched == [0, 1]
        bench.world.cancel("a")
        bench.go()
        *_, last = bench.overseer.seen
        assert isinstance(last, StopOrder)
        assert (last.why, index_of(last.task)) == (Why.CANCELLED, 0)
        assert len(bench.overseer.seen) == 3

    def test_a_start_that_is_refused_goes_elsewhere(self, bench: Bench) -> None:
        refused: list[int] = []

        def refuse(world: OverruledWorld, order: StartOrder | StopOrder) -> None:
            if isinstance(order, StartOrder) and not refused:
                refused.append(order.machine)
                world.refuse(order.task, order.incarnation, Why.STALE)

        bench.overseer.answer = refuse
        bench.world.submit(sized("a"))
        bench.go(60)
        assert len(bench.processes.running) == 1
        assert bench.processes.launched == [2], "the first try was never launched"
        starts = [order for order in bench.overseer.seen if isinstance(order, StartOrder)]
        assert len(starts) == 2

    def test_a_try_may_be_refused_later_and_one_that_is_over_not_at_all(self, bench: Bench) -> None:
        bench.world.submit(sized("a"))
        bench.go()
        bench.world.refuse_try(99, Why.STALE)
        bench.world.refuse_try(1, Why.STALE)
        bench.go(60)
        assert bench.processes.stopped == [1]
        [number] = bench.processes.running or [2]
        assert number == 2

    def test_what_became_of_a_try_that_was_refused_is_that_it_was_lost(self, bench: Bench) -> None:
        bench.world.submit(sized("a"))
        bench.go()
        bench.world.refuse_try(1, Why.STALE)
        bench.go(60)
        assert bench.store.rows("SELECT try, exit_status, outcome FROM tries") == [
            (1, None, "lost"),
            (2, None, ""),
        ]

    def test_a_try_is_refused_for_the_reason_that_is_given(self, bench: Bench) -> None:
        bench.world.submit(sized("a"))
        bench.go()
        bench.world.refuse_try(1, Why.FILTERED)
        [stop] = [order for order in bench.overseer.seen if isinstance(order, StopOrder)]
        assert stop.why is Why.FILTERED

    def test_ends_are_told_apart(self, bench: Bench) -> None:
        bench.world.submit_all([sized("a"), sized("b"), sized("c")])
        bench.go()
        bench.world.finish(1, 0, "")
        bench.world.finish(2, 7, "broken")
        bench.go()
        states = dict(bench.store.rows("SELECT id, state FROM jobs"))
        assert sorted(states.values()) == ["failed", "finished", "running"]
        assert bench.store.rows("SELECT exit_status, outcome FROM tries ORDER BY try")[:2] == [
            (0, "exited"),
            (7, "broken"),
        ]
        assert (GONE.status, GONE.reason, GONE.was_stopped) == (-15, "gone", True)

    def test_explanations_are_given_once(self, bench: Bench) -> None:
        bench.world.submit(sized("giant", 5_000))
        bench.go()
        assert list(bench.world.take_explained()) == ["giant"]
        assert bench.world.take_explained() == {}

    def test_a_job_beyond_its_schedulers_limit_is_explained_by_the_limit(
        self, tmp_path: Path
    ) -> None:
        bench = Bench(tmp_path, limits=SchedulerLimits(resources=Resources(700, 2**40)))
        bench.world.submit_all([sized("a"), sized("b")])
        bench.go()
        explained = bench.world.take_explained()
        bench.store.close()
        limit = Refusal(Why.RESOURCE_LIMIT, dimension="cpu", lacking=300)
        assert {job: each.refused for job, each in explained.items()} == {"b": limit}


class TestAdoption:
    def test_what_runs_already_is_placed_where_it_is(self, bench: Bench) -> None:
        refusals = bench.world.adopt(
            [(sized("a", 700), "m1"), (sized("b", 700), "m1"), (sized("c", 700), "m2")], "kube"
        )
        assert [refusal and refusal.why for refusal in refusals] == [None, Why.NO_ROOM, None]
        bench.go()
        assert bench.where() == {"a": "m1", "c": "m2"}
        assert bench.world.job_seq("b") is None
        assert bench.world.claimed_machines() == {("a", 0): "m1", ("c", 0): "m2"}
        with pytest.raises(ModelError, match="there is a job a already"):
            bench.world.adopt([(sized("d"), "m0"), (sized("a"), "m0")], "kube")
        assert bench.world.job_seq("d") is None
        with pytest.raises(UnknownName, match="unknown machine 'm9'"):
            bench.world.adopt([(sized("e"), "m9")], "kube")

    def test_it_takes_the_place_of_what_it_replaces(self, bench: Bench) -> None:
        bench.world.adopt([(sized("a", 700), "m1")], "kube")
        bench.go()
        [refusal] = bench.world.adopt([(sized("b", 700), "m1")], "kube", replaced=[("a", 0)])
        assert refusal is None
        bench.go()
        states = dict(bench.store.rows("SELECT id, state FROM jobs"))
        assert states == {"a": "cancelled", "b": "running"}

    def test_what_was_about_to_start_there_gives_way(self, bench: Bench) -> None:
        bench.world.adopt([(sized("a", 700), "m1")], "kube")
        bench.go()
        gives_way = [("a", 0), ("unknown", 0)]
        [refusal] = bench.world.adopt([(sized("b", 700), "m1")], "kube", instead_of=gives_way)
        assert refusal is None
        bench.go(60)
        assert bench.where()["b"] == "m1"
        assert bench.where().get("a") != "m1"


class TestMachines:
    def test_machines_are_known_while_they_are_there(self, bench: Bench) -> None:
        world = bench.world
        assert [world.has_machine(name) for name in ("m0", "m9")] == [True, False]
        world.remove_machine("m0")
        assert not world.has_machine("m0")
        with pytest.raises(UnknownName, match="unknown machine 'm0'"):
            world.machine_number("m0")
        world.add_machine(Machine("m9", Resources(1, 1)))
        assert (world.has_machine("m9"), world.machine_number("m9")) == (True, 3)
        world.add_machine(Machine("m0", Resources(1, 1)))
        assert world.machine_number("m0") == 0

    def test_free_room_has_every_resource(self, bench: Bench) -> None:
        bench.world.adopt([(sized("a", 300, gpu=1), "m2")], "kube")
        assert bench.world.free_on("m2") == Resources(700, 2**30 - 2**20, {"gpu": 1})
        assert bench.world.free_on("m1") == Resources(1_000, 2**30, {"gpu": 1})

    def test_another_capacity_is_never_less_than_what_runs_there(self, bench: Bench) -> None:
        world = bench.world
        world.adopt([(sized("a", 300, gpu=2), "m2")], "kube")
        versions = [world.projection.machine_version]

        def fit(cpu: int, memory: int, **extras: int) -> Resources:
            world.fit_machine("m2", Resources(cpu, memory, extras))
            versions.append(world.projection.machine_version)
            return world.projection.machines[2].capacity

        assert fit(200, 2**19) == Resources(300, 2**20, {"gpu": 2})
        assert fit(200, 2**18) == Resources(300, 2**20, {"gpu": 2})
        assert fit(900, 2**21, gpu=5) == Resources(900, 2**21, {"gpu": 5})
        assert fit(900, 2**21, gpu=1) == Resources(900, 2**21, {"gpu": 2})
        # Nothing happens if it has that much already.
        assert [after - before for before, after in pairwise(versions)] == [1, 0, 1, 1]
        bench.go()
        assert bench.where() == {"a": "m2"}

    def test_labels_are_replaced(self, bench: Bench) -> None:
        machine = Machine("m1", Resources(1, 1), {"disk": "ssd"})
        bench.world.relabel_machine(machine)
        known = bench.world.projection.machines[1]
        assert (known.attributes, known.capacity.cpu) == ({"disk": "ssd"}, 1_000)

    def test_queues_name_jobs_and_tasks_in_order(self, tmp_path: Path) -> None:
        bench = Bench(tmp_path / "queues", "murmuration")
        bench.world.submit_all([sized(f"j{n}", 1_000) for n in range(8)])
        bench.go()
        queued = bench.world.queued()
        told = [entry for entries in queued.values() for entry in entries]
        assert sorted(name for name, _ in told) == sorted(
            f"j{n}" for n in range(8) if f"j{n}" not in bench.where()
        )
        assert {index for _, index in told} == {0}
        assert set(queued) <= {"m0", "m1", "m2"}
        bench.store.close()

    def test_a_mark_is_given_and_taken(self, bench: Bench) -> None:
        world = bench.world
        for is_given in (True, False):
            world.mark("open", "machine", ["m1"], is_given)
            assert bool(world.host.view.attribute_numbers({"open": "true"})) is True
            world.submit(
                replace(
                    sized(f"j{is_given}"),
                    groups=(replace(sized("x").groups[0], requires={"open": "true"}),),
                )
            )
            bench.go()
        assert bench.where() == {"jTrue": "m1"}

    def test_machines_are_numbered_anew_in_another_life(self, bench: Bench) -> None:
        world = bench.world
        assert world.machine_number("m1") == 1
        world.remove_machine("m0")
        world.change_fleet((FleetEntry(name="t", engine="omega"),))
        world.add_machine(Machine("m9", Resources(1, 1)))
        assert [world.machine_number(name) for name in ("m1", "m2", "m9")] == [0, 1, 2]
        assert not world.has_machine("m0")


def test_a_world_begins_no_earlier_than_it_is_told(bench: Bench) -> None:
    bench.go(10)
    later = OverruledWorld(
        bench.store,
        ENGINES,
        bench.processes,
        lambda: bench.time,
        bench.overseer,
        cluster=bench.world.cluster,
        began=3_600 * SECOND,
    )
    assert later.now == 3_600 * SECOND
