"""Parts of the host whose answers are known beforehand: journals, routes, changes and reports."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from host_bench import Bench
from serial_attempts import tasks_of

from argosy._core import RuntimeEvent
from argosy.engines.api import Finishes
from argosy.engines.registry import ENGINES
from argosy.host import TaskState, records
from argosy.host.busy_time import DAY
from argosy.host.effect_runner import EffectRunner
from argosy.host.job_control import JobControl
from argosy.host.job_state import JobState
from argosy.host.job_table import JobTable
from argosy.host.journal import Journal
from argosy.host.protocols import DirectLinks, agent_of
from argosy.host.reports import REPORT_EVENTS, Reports
from argosy.host.scheduler import Router, make_settings
from argosy.host.setup import HostSetup
from argosy.model.errors import ModelError, SettingError
from argosy.model.events import (
    Committed,
    JobSubmitted,
    MachineChanged,
    MachineJoined,
    MachineLost,
    PhaseFinished,
    ProbeReady,
    TaskFinished,
    TasksLost,
)
from argosy.model.explanations import Why
from argosy.model.jobs import Job, TaskGroup, task_number
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import (
    AgentDown,
    AgentModel,
    AgentSlow,
    MachineCrash,
    Output,
    Partition,
    Takes,
)
from argosy.model.tasks import jobs_of
from argosy.model.transactions import (
    AddMachine,
    DrainMachine,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
)
from argosy.testing.builders import GIB, cell, job, scenario

ROOM = Resources(500, GIB)
NOWHERE = np.zeros(0, np.int32)


class TestJournals:
    def test_the_digest_covers_every_line_and_what_is_kept_elsewhere(self) -> None:
        stream = io.BytesIO()
        journal = Journal(stream)
        journal.write({"a": 1})
        assert stream.getvalue() == b""
        assert journal.digest() == hashlib.blake2b(b'{"a":1}\n', digest_size=16).hexdigest()
        assert stream.getvalue() == b'{"a":1}\n'
        journal.write({"b": 2})
        journal.add_to_digest(b"more")
        journal.write({"c": 3})
        whole = b'{"a":1}\n{"b":2}\nmore{"c":3}\n'
        assert journal.digest() == hashlib.blake2b(whole, digest_size=16).hexdigest()
        assert stream.getvalue() == b'{"a":1}\n{"b":2}\n{"c":3}\n'
        alone = Journal()
        alone.write({"a": 1})
        alone.flush()
        assert alone.digest() == hashlib.blake2b(b'{"a":1}\n', digest_size=16).hexdigest()

    def test_many_lines_are_written_by_themselves(self) -> None:
        stream = io.BytesIO()
        journal = Journal(stream)
        # A line of 64 KiB with its quotes and its end is as much as is kept.
        journal.write("x" * (2**16 - 3))
        assert stream.getvalue() == b""
        journal.write("")
        assert len(stream.getvalue()) == 2**16 + 3

    def test_lines_are_on_the_disk_when_they_are_to_be(self, tmp_path: Path) -> None:
        with (tmp_path / "log").open("wb") as stream:
            journal = Journal(stream)
            journal.write(7)
            journal.sync()
            assert (tmp_path / "log").read_bytes() == b"7\n"
        Journal().sync()

    def test_the_first_line_says_what_the_host_was_built_from(self) -> None:
        stream = io.BytesIO()
        journal = Journal(stream)
        setup = HostSetup.of(scenario("omega", []))
        journal.begin(setup, deliberated_beside=True)
        journal.flush()
        assert b'"deliberated_beside":true' in stream.getvalue()
        assert (journal.everything, Journal(everything=True).everything) == (False, True)


def test_a_setup_has_of_a_scenario_what_decisions_depend_on() -> None:
    cut = Partition(at=1, lasts=2, isolated=("s-0",))
    agents = (AgentDown(at=3), AgentSlow(at=4, extra=5))
    faults = (MachineCrash(at=1, machine="m0"), agents[0], cut, agents[1])
    told = scenario(
        "omega",
        [job("a")],
        faults=faults,
        failover=77,
        agents=AgentModel(shards=3),
        output=Output(log="none"),
        audit=False,
    )
    setup = HostSetup.of(told)
    assert (setup.partitions, setup.agent_faults) == ((cut,), agents)
    same = ("name", "seed", "cell", "fleet", "machines", "network", "failover", "audit", "output")
    for field in (*same, "federation", "agents"):
        assert getattr(setup, field) == getattr(told, field), field
    assert (setup.began, setup.is_resumed, setup.has_remote_agents) == (0, False, False)
    assert (setup.is_overruled, setup.clusters) == (False, ())


def test_a_task_is_pending_unless_a_list_says_otherwise() -> None:
    state = JobState(
        submitted=0,
        running=(0, 5),
        machines=(7, 7),
        finished=(1,),
        failed=(2,),
        cancelled=(3,),
        abandoned=(4,),
    )
    assert [state.of(index) for index in range(7)] == [
        "running",
        "finished",
        "failed",
        "cancelled",
        "abandoned",
        "running",
        "pending",
    ]


def test_in_one_process_nothing_takes_time_and_everything_arrives_once() -> None:
    links = DirectLinks()
    assert (links.plain_hop, links.round_trip) == (0, 0)
    assert links.reliable_delay("a", "b", 9) == 0
    assert [links.deliveries("a", "b", 9) for _ in range(2)] == [(0,), (0,)]
    assert links.counts == {"sent": 2, "lost": 0, "duplicated": 0, "delayed": 0, "cut": 0}
    assert (agent_of(""), agent_of("north")) == ("cell", "cell:north")


class TestRoutes:
    def router(self, split: str, alive: str = "ttt", kinds: tuple[str, ...] = ()) -> Router:
        takes = Takes(kinds=kinds)
        fleet: Any = [
            SimpleNamespace(
                name=str(at), is_alive=each == "t", entry=SimpleNamespace(split=split, takes=takes)
            )
            for at, each in enumerate(alive)
        ]
        return Router(fleet, Random(5))

    def routes(self, router: Router, jobs: list[Job]) -> str:
        found = (router.route(each) for each in jobs)
        return "".join("-" if each is None else each.name for each in found)

    def test_a_hash_is_of_the_id_or_of_the_owner(self) -> None:
        jobs = [job(f"j{at % 4}", owner=f"o{at // 4}").job for at in range(12)]
        by_id = self.routes(self.router("hash"), jobs)
        by_owner = self.routes(self.router("owner"), jobs)
        assert by_id == by_id[:4] * 3
        assert by_owner == "".join(each * 4 for each in by_owner[::4])
        # CRC-32 of "j0" to "j3" and of "o0" to "o2", by three.
        assert (by_id[:4], by_owner[::4]) == ("1102", "021")
        assert set(self.routes(self.router("hash", "ftt"), jobs)) <= {"1", "2"}

    def test_a_random_scheduler_is_drawn_for_every_job(self) -> None:
        random = Random(5)
        drawn = "".join(str(random.below(3)) for _ in range(20))
        jobs = [job("same").job] * 20
        assert self.routes(self.router("random"), jobs) == drawn
        assert set(drawn) == {"0", "1", "2"}

    def test_who_takes_a_kind_alone_is_known_from_then_on(self) -> None:
        router = self.router("round-robin", "t", ("a",))
        assert router.only_takers == {}
        assert self.routes(router, [job("x", kind="a").job]) == "0"
        assert [*router.only_takers] == ["a"]
        assert self.routes(router, [job("x", kind="b").job]) == "-"
        assert [*router.only_takers] == ["a"]
        assert len(router.takers("a")) == 1
        assert router.takers("b") == []

    def test_a_setting_that_does_not_fit_names_its_engine(self) -> None:
        with pytest.raises(SettingError, match=r"^settings of omega: "):
            make_settings(ENGINES["omega"], {"t_job": "soon"})
        assert make_settings(ENGINES["omega"], {}) == ENGINES["omega"].settings_type()


def test_time_spent_in_several_lanes_is_added_up() -> None:
    [scheduler, _] = Bench("omega", replicas=2).host.schedulers
    assert scheduler.busy_by_day(2 * DAY) == [0.0, 0.0]
    scheduler.lanes["a"].think(0, 10)
    scheduler.lanes["b"].think(4, 10)
    assert scheduler.busy_time(8) == 8 + 4
    assert scheduler.busy_by_day(DAY) == [20 / DAY]
    scheduler.crash(8)
    assert scheduler.busy_time(100) == 8 + 4
    assert (scheduler.epoch, scheduler.crashes, scheduler.is_alive) == (1, 1, False)
    assert scheduler.waits is scheduler.in_place is None
    scheduler.is_given_up = True
    scheduler.start()
    assert (scheduler.is_alive, scheduler.is_given_up, scheduler.epoch) == (True, False, 1)


class TestScaling:
    SMALL = TaskGroup(2, ROOM)
    LARGE = TaskGroup(3, Resources(900, GIB))

    def web(self, *groups: TaskGroup, name: str = "web") -> Job:
        return Job(name, groups)

    def sized(self, group: TaskGroup, count: int) -> TaskGroup:
        return TaskGroup(count, group.request)

    def test_the_last_group_may_have_another_size_and_new_ones_may_follow(self) -> None:
        small, large = self.SMALL, self.LARGE
        check: Any = JobControl._check_scaled
        before = self.web(small, large)
        for after in (
            before,
            self.web(small, self.sized(large, 1)),
            self.web(small, self.sized(large, 9)),
            self.web(small, large, small),
        ):
            check(None, before, after)

    @pytest.mark.parametrize(
        ("after", "problem", "field", "expected"),
        [
            (lambda s: s.web(s.SMALL, s.LARGE, name="b"), "job web becomes b", "id", "web"),
            (
                lambda s: s.web(s.sized(s.SMALL, 3), s.LARGE),
                "job web changes a group that others follow",
                "groups",
                "another count in the last group, or new groups after it",
            ),
            (
                lambda s: s.web(s.SMALL),
                "job web changes a group that others follow",
                "groups",
                "another count in the last group, or new groups after it",
            ),
            (
                lambda s: s.web(s.SMALL, s.SMALL),
                "job web asks for something else",
                "request",
                "the same request",
            ),
            (
                lambda s: s.web(s.SMALL, s.sized(s.LARGE, 4), s.LARGE),
                "job web changes a group that others follow",
                "count",
                "new groups, or another count in the last one",
            ),
        ],
    )
    def test_nothing_else_may_change(
        self, after: Any, problem: str, field: str, expected: str
    ) -> None:
        check: Any = JobControl._check_scaled
        with pytest.raises(ModelError) as caught:
            check(None, self.web(self.SMALL, self.LARGE), after(self))
        error = caught.value
        assert (error.problem, error.field, error.expected) == (problem, field, expected)

    def test_workers_are_for_their_scheduler_to_add(self) -> None:
        check: Any = JobControl._check_scaled
        shared, plain = self.web(TaskGroup(2, ROOM, activities=(4,))), self.web(TaskGroup(2, ROOM))
        for before, after in ((shared, shared), (shared, plain), (plain, shared)):
            with pytest.raises(ModelError) as caught:
                check(None, before, after)
            assert caught.value.problem == "job web shares work among its workers"
            assert caught.value.hint == "its scheduler adds and releases workers"

    def test_only_jobs_that_are_not_over_are_changed(self) -> None:
        bench = Bench(lambda *_: ())
        number = bench.host.submit(self.web(self.SMALL))
        for wrong in (-1, number + 1):
            with pytest.raises(ModelError) as caught:
                bench.host.cancel(wrong)
            assert caught.value.problem == f"job {wrong}"
            assert caught.value.expected == "the number of a job that is not over"
        assert bench.host.cancel(number, tasks_of(number, 1, 7)).tolist() == [1]
        assert bench.host.cancel(number).tolist() == [0]


class TestMachines:
    def changed(self, *changes: Any, **before: Any) -> tuple[Bench, list[Any]]:
        """A host with one task on each of the first two machines, and what its scheduler then heard."""

        def script(engine: Any, event: Any, view: Any, now: int) -> Any:
            from scripted_engine import claim

            if isinstance(event, JobSubmitted):
                return [claim(view, event, event.number, engine.context.name)]
            return ()

        bench = Bench(script)
        for name in "ab":
            bench.host.submit(job(name, cpu=2_000, seconds=None).job)
        bench.go(1)
        bench.heard.clear()
        for change in changes:
            bench.host.change_machine(change)
        bench.go(2)
        return bench, [event for _, _, event in bench.heard]

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ((DrainMachine(1),), [MachineChanged(1)]),
            ((DrainMachine(1), DrainMachine(1, False)), [MachineChanged(1)] * 2),
            ((RelabelMachine(1, {"a": "b"}),), [MachineChanged(1)]),
            ((ResizeMachine(1, Resources(8_000, 64 * GIB)),), [MachineChanged(1)]),
            ((RemoveMachine(5),), [MachineLost(5)]),
            ((RemoveMachine(5), ReviveMachine(5)), [MachineLost(5), MachineJoined(5)]),
            ((AddMachine(Machine("new", ROOM)),), [MachineJoined(8)]),
        ],
    )
    def test_a_change_is_heard_as_what_it_is(
        self, changes: tuple[Any, ...], expected: list[Any]
    ) -> None:
        bench, heard = self.changed(*changes)
        assert heard == expected
        assert bench.host.membership.changes == len(changes)
        inputs = [r for r in bench.replay().records() if isinstance(r, records.MachineRecord)]
        assert [record.change for record in inputs] == list(changes)

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            (RemoveMachine(1), Why.MACHINE_GONE),
            (ResizeMachine(1, Resources(1_000, 64 * GIB)), Why.NO_ROOM),
        ],
    )
    def test_a_task_that_loses_its_machine_hears_why(self, change: Any, why: Why) -> None:
        bench, heard = self.changed(change)
        [lost] = [event for event in heard if isinstance(event, TasksLost)]
        assert (lost.number, lost.tasks.tolist(), lost.machines.tolist()) == (
            1,
            [task_number(1, 0)],
            [1],
        )
        assert lost.why is why
        assert (bench.host.membership.losses, bench.host.membership.preemptions) == (1, 0)
        assert bench.host.board.state(task_number(1, 0)) is TaskState.PENDING
        assert bench.host.board.state(task_number(0, 0)) is TaskState.RUNNING

    def test_a_change_that_is_refused_has_not_happened(self) -> None:
        bench, _ = self.changed()
        with pytest.raises(ModelError):
            bench.host.change_machine(AddMachine(Machine("m0", ROOM)))
        bench.go(3)
        assert bench.heard == []
        assert bench.host.membership.changes == 0
        bench.replay()


class TestReports:
    """What the runtime has to report is passed on to those concerned."""

    def bench(
        self, *finishes: Finishes, alive: str = "tt", malleable: bool = True, **runtime: Any
    ) -> tuple[Reports, list[Any]]:
        did: list[Any] = []
        fleet = [
            SimpleNamespace(
                name=f"s{at}",
                index=at,
                is_alive=each == "t",
                hears_all=kind is Finishes.ALL,
                capabilities=SimpleNamespace(finishes=kind, malleable=malleable),
                waits=None,
            )
            for at, (each, kind) in enumerate(zip(alive, finishes, strict=True))
        ]
        empty = (np.zeros(0, np.int64), NOWHERE)
        host: Any = SimpleNamespace(
            schedulers=fleet,
            runtime=SimpleNamespace(
                **{
                    "take_refused": lambda: empty,
                    "take_lost": lambda: empty,
                    "cancel": lambda probe: did.append(("cancel", probe)),
                    **runtime,
                }
            ),
            links=SimpleNamespace(
                plain_hop=0,
                reliable_delay=lambda one, other, now: 30,
            ),
            view=SimpleNamespace(is_up=lambda m: m != 3, is_draining=lambda m: m == 4),
            board=SimpleNamespace(owner=lambda number: number % 2),
            membership=SimpleNamespace(
                lose=lambda tasks, machines, why, now: did.append(
                    (why, tasks.tolist(), machines.tolist(), now)
                )
            ),
            post=lambda at, who, event: did.append((at, who.name, event)),
            tell_now=lambda who, event, now: did.append(("now", who.name, event)),
            deliver=lambda sender, who, event, now: did.append((sender, who.name, event)),
        )
        watch: Any = SimpleNamespace(pass_on=lambda now: did.append(("room", now)))
        return Reports(host, watch), did

    def test_every_kind_of_report_has_its_name(self) -> None:
        assert {name: RuntimeEvent(kind).name for name, kind in REPORT_EVENTS.items()} == {
            "finished": "FINISHED",
            "lost": "LOST",
            "probes": "PROBES",
            "phases": "PHASES",
            "room": "ROOM",
        }

    def test_what_is_no_report_is_left_to_others(self) -> None:
        reports, did = self.bench(Finishes.NONE, Finishes.NONE)
        assert not reports.pass_on(int(RuntimeEvent.CALL), 9)
        assert reports.pass_on(REPORT_EVENTS["room"], 9)
        assert did == [("room", 9)]

    def test_tasks_are_lost_for_the_reason_that_their_machine_gives(self) -> None:
        places = np.array([3, 5, 4, 3], np.int32)
        tasks = tasks_of(0, 1, 2, 3, 4)
        reports, did = self.bench(
            Finishes.NONE, Finishes.NONE, take_lost=lambda: (tasks, places), take_refused=lambda: (
                tasks_of(1, 9),
                np.array([5], np.int32),
            )
        )  # fmt: skip
        assert reports.pass_on(REPORT_EVENTS["lost"], 9)
        assert did == [
            (Why.QUEUE_FULL, tasks_of(1, 9).tolist(), [5], 9),
            (Why.MACHINE_GONE, [1, 4], [3, 3], 9),
            (Why.MACHINE_DRAINING, [3], [4], 9),
            (Why.NO_ROOM, [2], [5], 9),
        ]

    @pytest.mark.parametrize(
        ("alive", "malleable", "heard"),
        [("tt", True, ["s0", "s1"]), ("ft", True, ["s1"]), ("tt", False, [])],
    )
    def test_phases_are_told_to_malleable_owners(
        self, alive: str, malleable: bool, heard: list[str]
    ) -> None:
        reports, did = self.bench(
            Finishes.NONE,
            Finishes.NONE,
            alive=alive,
            malleable=malleable,
            take_phases=lambda: [(2, 0, 70), (3, 1, 80)],
        )
        assert reports.pass_on(REPORT_EVENTS["phases"], 9)
        told = [(9, "s0", PhaseFinished(2, 0, 70)), (9, "s1", PhaseFinished(3, 1, 80))]
        assert did == [each for each in told if each[1] in heard]

    def test_probes_are_ready_for_their_schedulers_a_hop_later(self) -> None:
        ready = [(11, 2, 5, 0), (12, 3, 6, 1), (13, 3, 7, 0)]
        reports, did = self.bench(
            Finishes.NONE,
            Finishes.NONE,
            alive="tf",
            take_ready=lambda: ready,
            is_held=lambda probe: probe != 13,
        )
        assert reports.pass_on(REPORT_EVENTS["probes"], 9)
        assert did == [(39, "s0", ProbeReady(11, 2, 5)), ("cancel", 12)]

    @pytest.mark.parametrize(
        ("finishes", "alive", "jobs", "expected"),
        [
            ((Finishes.OWN, Finishes.OWN), "tt", (0, 1, 2), [(9, "s0", [0, 2]), (9, "s1", [1])]),
            ((Finishes.OWN, Finishes.NONE), "tt", (0, 1, 2), [(9, "s0", [0, 2])]),
            ((Finishes.OWN, Finishes.OWN), "ft", (0, 1, 2), [(9, "s1", [1])]),
            ((Finishes.OWN, Finishes.OWN), "tt", (1,), [("now", "s1", [1])]),
            ((Finishes.OWN, Finishes.NONE), "tt", (1,), []),
            ((Finishes.OWN, Finishes.OWN), "tf", (1,), []),
            ((Finishes.NONE, Finishes.NONE), "tt", (0, 1), []),
            ((Finishes.ALL, Finishes.NONE), "tt", (0, 1), [("machines", "s0", [0, 1])]),
            ((Finishes.ALL, Finishes.ALL), "ft", (0, 1), [("machines", "s1", [0, 1])]),
        ],
    )
    def test_ends_are_told_to_their_owners_and_to_those_who_hear_all(
        self, finishes: Any, alive: str, jobs: tuple[int, ...], expected: list[Any]
    ) -> None:
        tasks = np.concatenate([tasks_of(number, 0) for number in jobs])
        count = len(jobs)
        columns = (
            tasks,
            np.arange(count, dtype=np.int32),
            np.arange(count) + 100,
            np.arange(count, dtype=np.int32) + 50,
            np.zeros(count, np.int64),
        )
        reports, did = self.bench(*finishes, alive=alive, take_finished=lambda: columns)
        assert reports.pass_on(REPORT_EVENTS["finished"], 9)
        told = []
        for how, who, event in did:
            assert isinstance(event, TaskFinished)
            rows = [jobs.index(number) for number in jobs_of(event.tasks).tolist()]
            assert event.machines.tolist() == rows
            assert event.estimates.tolist() == [100 + row for row in rows]
            assert event.shapes.tolist() == [50 + row for row in rows]
            told.append((how, who, jobs_of(event.tasks).tolist()))
        assert told == expected


class TestLateClaims:
    def runner(self, states: dict[int, TaskState], owner: int = 0) -> tuple[EffectRunner, Any]:
        jobs = JobTable()
        jobs.add(job("a", 3).job)
        runner = EffectRunner.__new__(EffectRunner)
        runner._jobs = jobs
        board = SimpleNamespace(
            owner=lambda number: owner,
            state=lambda task: states.get(task, TaskState.PENDING),
            tasks=lambda number: jobs.counts[number],
            first_misplaced=lambda tasks, index, may_run, extras: 0 if len(tasks) else -1,
        )
        runner._board = board  # type: ignore[assignment]
        return runner, SimpleNamespace(
            index=0, name="s", capabilities=SimpleNamespace(malleable=False)
        )

    @pytest.mark.parametrize(
        ("state", "moves", "why"),
        [
            (TaskState.CANCELLED, False, Why.CANCELLED),
            (TaskState.CANCELLED, True, Why.CANCELLED),
            (TaskState.FINISHED, True, Why.ENDED),
            (TaskState.FINISHED, False, Why.NONE),
            (TaskState.FAILED, True, Why.NONE),
            (TaskState.RUNNING, True, Why.NONE),
            (TaskState.PENDING, False, Why.NONE),
        ],
    )
    def test_why_a_claim_comes_too_late(self, state: TaskState, moves: bool, why: Why) -> None:
        runner, scheduler = self.runner({1: state})
        assert runner._why_over(scheduler, 1, moves=moves) is why
        # Of tasks of others, and of those that there are not, nothing is said.
        assert self.runner({1: state}, owner=1)[0]._why_over(scheduler, 1, moves=moves) is Why.NONE
        for task in (3, task_number(1, 0), -1):
            unknown, _ = self.runner(dict.fromkeys((3, task_number(1, 0), -1), state))
            assert unknown._why_over(scheduler, task, moves=moves) is Why.NONE

    def test_what_was_cancelled_on_the_way_is_left_out(self) -> None:
        runner, scheduler = self.runner({0: TaskState.CANCELLED, 2: TaskState.CANCELLED})
        runner._check_placeable = lambda *_, **__: None  # type: ignore[method-assign]
        wanted = runner._still_wanted(scheduler, tasks_of(0, 0, 1, 2))
        assert wanted is not None
        assert wanted.tolist() == [False, True, False]
        late = runner._late(scheduler, tasks_of(0, 0, 1, 2), moves=False)
        assert late is not None
        assert late.tolist() == [int(Why.CANCELLED), 0, int(Why.CANCELLED)]


def test_an_answer_says_by_default_that_its_agent_was_reached() -> None:
    assert Committed(1, None).reached  # type: ignore[arg-type]
    assert cell(2).machines[1].name == "m1"
