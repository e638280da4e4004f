"""Tasks that lose their machines, questions about queues, and jobs that nobody takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from host_bench import Bench, web
from msgspec import structs

from argosy.host.job_table import JobTable
from argosy.host.membership import Membership
from argosy.host.room_watch import RoomWatch
from argosy.model.effects import AskQueues
from argosy.model.errors import ScenarioError, UnknownName
from argosy.model.events import JobSubmitted, Started, TasksLost, UsageObserved
from argosy.model.explanations import Why
from argosy.model.jobs import task_number
from argosy.model.machine_model import MachineModel
from argosy.model.scenario import Takes
from argosy.model.transactions import Outcome
from argosy.testing.builders import SECOND, job, shared_job


class Losing:
    """A membership whose host only remembers; jobs with even numbers belong to the first scheduler."""

    def __init__(
        self,
        *jobs: Any,
        alive: str = "tt",
        given_up: str = "ff",
        malleable: bool = False,
        is_overruled: bool = False,
        holds: tuple[int, ...] = (),
    ) -> None:
        self.did: list[Any] = []
        do = self.did.append
        table = JobTable()
        for made in jobs:
            table.add(made.job)
        fleet = [
            SimpleNamespace(
                name=f"s{at}",
                is_alive=alive[at] == "t",
                is_given_up=given_up[at] == "t",
                capabilities=SimpleNamespace(malleable=malleable, observations=at == 0),
            )
            for at in range(2)
        ]
        self.host: Any = SimpleNamespace(
            jobs=table,
            schedulers=fleet,
            board=SimpleNamespace(owner=lambda number: number % 2),
            runtime=SimpleNamespace(
                now=9,
                is_hold=lambda task: task in holds,
                set_pending=lambda tasks: do(("pending", tasks.tolist())),
                pump=lambda machine: do(("pump", machine)),
            ),
            links=SimpleNamespace(reliable_delay=lambda one, other, now: 30),
            decisions=SimpleNamespace(
                lost=lambda now, number, tasks, machines, why: do(
                    ("recorded", now, number, tasks.tolist(), machines.tolist(), why)
                ),
                input=lambda record: do(type(record).__name__),
            ),
            setup=SimpleNamespace(is_overruled=is_overruled),
            stop=lambda tasks, why: do(("stop", tasks.tolist(), why)),
            inherit=lambda number, now: do(("inherit", number, now)),
            post=lambda at, who, event: do((at, who.name, event)),
        )
        self.membership = Membership(self.host)

    def lose(self, *tasks: int, why: Why = Why.MACHINE_GONE, **options: bool) -> list[Any]:
        self.did.clear()
        machines = np.arange(len(tasks), dtype=np.int32) + 50
        self.membership.lose(np.array(tasks, np.int64), machines, why, 9, **options)
        return [each for each in self.did if each[0] != "recorded"]

    def told(self, *tasks: int, **options: Any) -> list[tuple[int, str, int, list[int], list[int]]]:
        found = []
        for at, who, event in self.lose(*tasks, **options):
            assert isinstance(event, TasksLost)
            assert event.job is self.host.jobs.job(event.number)
            found.append((at, who, event.number, event.tasks.tolist(), event.machines.tolist()))
        return found


class TestLosing:
    def test_each_owner_hears_of_its_own_tasks_a_hop_later(self) -> None:
        bench = Losing(job("a", 3), job("b", 3))
        own, other = task_number(0, 1), task_number(1, 2)
        assert bench.told(other, own, task_number(1, 0)) == [
            (39, "s0", 0, [own], [51]),
            (39, "s1", 1, [other, task_number(1, 0)], [50, 52]),
        ]
        assert [each for each in bench.did if each[0] == "recorded"] == [
            ("recorded", 9, 0, [own], [51], Why.MACHINE_GONE),
            ("recorded", 9, 1, [other, task_number(1, 0)], [50, 52], Why.MACHINE_GONE),
        ]

    def test_preemptions_are_counted_apart(self) -> None:
        bench = Losing(job("a", 3))
        bench.lose(0, 1, why=Why.PREEMPTED)
        bench.lose(0, why=Why.NO_ROOM)
        bench.lose(1, why=Why.MACHINE_GONE, is_told=False)
        bench.lose()
        assert (bench.membership.preemptions, bench.membership.losses) == (2, 2)

    def test_whoever_is_down_hears_nothing_until_it_is_given_up(self) -> None:
        assert Losing(job("a"), alive="ft").lose(0) == []
        assert Losing(job("a"), alive="ft", given_up="tf").lose(0) == [("inherit", 0, 9)]

    def test_nobody_hears_of_what_is_decided_elsewhere_or_over(self) -> None:
        bench = Losing(job("a"))
        assert bench.lose(0, is_told=False) == []
        assert bench.did == [("recorded", 9, 0, [0], [50], Why.MACHINE_GONE)]
        bench.host.jobs.forget([0])
        assert bench.lose(0) == []

    def test_extra_workers_are_placed_again_by_malleable_schedulers_alone(self) -> None:
        shared = shared_job("a", 2, (8,), (1,))
        assert Losing(shared, malleable=True).told(1, 5) == [(39, "s0", 0, [1, 5], [50, 51])]
        assert Losing(shared).told(1, 5) == [(39, "s0", 0, [1], [50])]
        assert Losing(shared).lose(5) == []
        down = Losing(shared, malleable=True, alive="ft", given_up="tf")
        assert down.lose(1, 5) == [("inherit", 0, 9)]
        assert down.lose(5) == []

    @pytest.mark.parametrize("is_overruled", [False, True])
    def test_what_is_evicted_is_pending_and_slots_are_released(self, is_overruled: bool) -> None:
        bench = Losing(job("a", 3), holds=(2**40,), is_overruled=is_overruled)
        outcome: Any = SimpleNamespace(
            evicted=np.array([1, 2**40, 2], np.int64),
            evicted_from=np.array([7, 8, 7], np.int32),
        )
        bench.membership.evict(outcome, Why.PREEMPTED, 9)
        told = [each for each in bench.did if each[0] == 39]
        assert bench.did[:2] == [("stop", [1, 2], Why.PREEMPTED), ("pending", [1, 2])]
        assert sorted(each for each in bench.did if each[0] == "pump") == [("pump", 7), ("pump", 8)]
        assert ("recorded", 9, 0, [1, 2], [7, 7], Why.PREEMPTED) in bench.did
        assert [(who, event.tasks.tolist()) for _, who, event in told] == (
            [] if is_overruled else [("s0", [1, 2])]
        )
        assert bench.membership.preemptions == 2

    def test_nothing_evicted_is_nothing_done(self) -> None:
        bench = Losing()
        empty: Any = SimpleNamespace(evicted=np.zeros(0, np.int64), evicted_from=None)
        outcome: Outcome = empty
        bench.membership.evict(outcome, Why.PREEMPTED, 9)
        assert bench.did == []

    def test_observations_are_recorded_and_told_to_those_who_take_them(self) -> None:
        for alive, heard in (("tt", ["s0"]), ("ft", [])):
            bench = Losing(alive=alive)
            bench.membership.observe("disk", [2, 1], [30, 40])
            assert bench.did[0] == "ObservedRecord"
            assert [who for _, who, _ in bench.did[1:]] == heard
            for at, _, event in bench.did[1:]:
                assert isinstance(event, UsageObserved)
                assert (at, event.resource) == (39, "disk")
                assert (event.machines.tolist(), event.used.tolist()) == ([2, 1], [30, 40])


class TestQuestions:
    """Who asks for the length of queues is answered from the last report, or by the machines."""

    def watch(self, model: MachineModel) -> tuple[RoomWatch, list[Any], Any]:
        did: list[Any] = []
        state = (np.array([4, 5]), np.array([40, 50]))

        def queue_state(long: bool, as_of_beat: bool = False) -> Any:
            did.append(("state", long, as_of_beat))
            return state

        runtime = SimpleNamespace(
            beat_every=lambda period, counts_sent: did.append(("beat", period, counts_sent)),
            queue_state=queue_state,
            queue_room=lambda: np.array([0, 3]),
            await_room=lambda machines: did.append(("await", machines.tolist())),
        )
        host: Any = SimpleNamespace(
            runtime=runtime,
            links=SimpleNamespace(reliable_delay=lambda one, other, now: 30),
            setup=SimpleNamespace(machines=model),
            view=SimpleNamespace(machines=2),
            post=lambda at, who, event: did.append((at, event)),
            request=lambda at, who, action, what: did.append(("request", at)),
        )
        who: Any = SimpleNamespace(name="s", label="s (x)", epoch=0)
        return RoomWatch(host), did, who

    @pytest.mark.parametrize(
        ("heartbeat", "counts_sent", "which", "expected"),
        [
            (0, False, "all", [("state", False, False)]),
            (7, False, "long", [("beat", 7, False), ("state", True, True)]),
            (7, True, "all", [("beat", 7, True), ("state", False, True)]),
        ],
    )
    def test_the_last_report_is_known_at_once(
        self, heartbeat: int, counts_sent: bool, which: Any, expected: list[Any]
    ) -> None:
        model = MachineModel(heartbeat=heartbeat, heartbeat_counts_sent=counts_sent, limit=3)
        watch, did, who = self.watch(model)
        watch.ask(who, AskQueues(6, latest=True, which=which), 9)
        *steps, (at, report) = did
        assert steps == expected
        assert (at, report.token) == (9, 6)
        assert (report.lengths.tolist(), report.waits.tolist()) == ([4, 5], [40, 50])
        assert report.room.tolist() == [0, 3]

    def test_machines_answer_a_round_trip_later(self) -> None:
        watch, did, who = self.watch(MachineModel())
        effect = AskQueues(6, which="long")
        watch.ask(who, effect, 9)
        assert did == [("request", 39)]
        did.clear()
        watch._arrive(who, effect, 39)
        (state, (at, report)) = did
        assert (state, at, report.token) == (("state", True, False), 69, 6)
        # Without a limit, there is room without end.
        assert (report.room > 2**60).all()

    @pytest.mark.parametrize(("machine", "is_answered"), [(0, False), (1, True)])
    def test_who_asks_for_room_is_answered_where_there_is_some(
        self, machine: int, is_answered: bool
    ) -> None:
        watch, did, who = self.watch(MachineModel(limit=3))
        effect = AskQueues(6, until_room=np.array([machine], np.int32))
        watch._arrive(who, effect, 9)
        assert [each[0] for each in did] == (["state", 39] if is_answered else ["await"])
        assert len(watch._questions) == (not is_answered)


class TestJobsNobodyTakes:
    def test_a_job_of_a_kind_that_nobody_takes_is_refused(self) -> None:
        bench = Bench(lambda *_: (), takes=Takes(kinds=("service",)))
        for refuse in (
            lambda: bench.host.submit(web(1)),
            lambda: bench.host.place(web(1), 0, "far", "Bind"),
        ):
            with pytest.raises(ScenarioError) as caught:
                refuse()
            assert caught.value.problem == "no scheduler takes jobs of kind 'batch'"
            assert caught.value.hint == "add the kind to a fleet entry's `takes`"
        assert len(bench.host.jobs) == 0
        with pytest.raises(ScenarioError) as caught:
            bench.host.place(web(2), 0, "far", "Bind")
        assert caught.value.problem == "job web cannot be placed as a whole"
        assert caught.value.expected == "one task, and no placement constraints"

    def test_a_scheduler_that_there_is_not_is_named_with_the_others(self) -> None:
        bench = Bench("omega", replicas=2)
        assert bench.host.named("s-1") is bench.host.schedulers[1]
        assert bench.host.scheduler("s-2") is None
        with pytest.raises(UnknownName, match="unknown scheduler 's-2'; expected one of s-0, s-1"):
            bench.host.named("s-2")


class TestTakeover:
    def bench(self) -> tuple[Bench, Any, Any]:
        """Two schedulers that place nothing, and a job of the first."""
        bench = Bench(lambda *_: (), replicas=2)
        first, second = bench.host.schedulers
        names = (f"j{at}" for at in range(99))
        while first.jobs == 0:
            bench.host.submit(structs.replace(web(2), id=next(names)))
        bench.go(1)
        bench.heard.clear()
        return bench, first, second

    def handed(self, bench: Bench, who: str) -> list[tuple[int, list[int]]]:
        return [
            (at // SECOND, (event.tasks & 0xFF).tolist())
            for at, name, event in bench.heard
            if isinstance(event, JobSubmitted) and name == who
        ]

    def test_a_peer_takes_over_after_the_fail_over_time(self) -> None:
        bench, first, second = self.bench()
        own, before = first.jobs, second.jobs
        bench.host.crash(first)
        bench.go(1.9)
        assert (first.is_alive, first.is_given_up) == (False, False)
        assert self.handed(bench, second.name) == []
        bench.go(3)
        assert first.is_given_up
        assert self.handed(bench, second.name) == [(2, [0, 1])] * own
        assert second.jobs == before + own
        bench.replay()

    def test_who_comes_back_in_time_gets_its_own_jobs_again(self) -> None:
        bench, first, second = self.bench()
        bench.host.crash(first)
        bench.go(1.5)
        bench.host.restart(first)
        bench.go(9)
        assert not first.is_given_up
        assert self.handed(bench, first.name) == [(1, [0, 1])] * first.jobs
        assert self.handed(bench, second.name) == []
        assert [event for _, _, event in bench.heard if isinstance(event, Started)] == [
            Started(again=True)
        ]
        bench.replay()

    def test_who_comes_back_takes_over_from_those_that_were_given_up(self) -> None:
        bench, first, second = self.bench()
        total = first.jobs + second.jobs
        bench.host.crash(first)
        bench.host.crash(second)
        bench.go(5)
        assert (first.is_given_up, second.is_given_up) == (True, True)
        bench.heard.clear()
        bench.host.restart(second)
        bench.go(6)
        assert len(self.handed(bench, second.name)) == total
        assert {bench.host.board.owner(number) for number in range(len(bench.host.jobs))} == {
            second.index
        }
        bench.replay()
