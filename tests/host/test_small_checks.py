"""Checks of effects by value, and small tables of the host: tries, jobs, mail and where tasks are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from serial_attempts import tasks_of

from argosy.host import effect_checks as checks
from argosy.host import standstill
from argosy.host.deliberation import _checked
from argosy.host.job_control import _group
from argosy.host.job_table import JobTable
from argosy.host.mail import Mail
from argosy.host.remote_desks import RemoteDesks, RemoteSample
from argosy.host.standstill import StandstillGuard
from argosy.host.tries import Tries
from argosy.host.whereabouts import JobWhereabouts
from argosy.model.effects import (
    AskQueues,
    Commit,
    EarlierTime,
    Enqueue,
    Pace,
    Probe,
    Sample,
    SamplingPipeline,
    Send,
    WakeMe,
)
from argosy.model.errors import EngineFault
from argosy.model.events import Committed, TasksLost, TimerFired
from argosy.model.explanations import Why
from argosy.model.jobs import Job, TaskGroup, task_number
from argosy.model.messages import Note, WaitUpdate
from argosy.model.resources import Resources
from argosy.model.transactions import Claims, Outcome, Transaction
from argosy.testing.builders import job

WHO: Any = SimpleNamespace(label="s (omega)", name="s")
NONE = np.zeros(0, np.int64)
ROOM = Resources(1, 1)


def claims(count: int) -> Claims:
    rows = np.zeros(count, np.int32)
    return Claims(tasks_of(0, *range(count)), rows, rows, rows.astype(np.uint32))


def refused(check: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(EngineFault) as caught:
        check(WHO, *arguments, **options)
    return f"{caught.value.problem}; {caught.value.expected}"


class TestEffects:
    def test_times_are_not_negative(self) -> None:
        for earlier in (EarlierTime(0, 0), EarlierTime(5, 3)):
            checks.check_earlier(WHO, WakeMe(0, ""), earlier)
        malformed = "s (omega) returned a malformed WakeMe: earlier.{} is -1; zero or more"
        for given, field in ((EarlierTime(-1, 0), "total"), (EarlierTime(0, -1), "on_job")):
            assert refused(checks.check_earlier, WakeMe(0, ""), given) == malformed.format(field)

    def test_what_is_enqueued(self) -> None:
        plain = Enqueue(NONE, NONE.astype(np.int32))
        checks.check_enqueue(WHO, plain, Pace(0, 0))
        checks.check_enqueue(WHO, structs.replace(plain, estimate=0), Pace(1, 1))
        late = structs.replace(plain, estimate=-2)
        assert "Enqueue: estimate is -2; zero" in refused(checks.check_enqueue, late, Pace())
        assert "pace.first is -1" in refused(checks.check_enqueue, plain, Pace(-1, 0))
        assert "pace.every is -3" in refused(checks.check_enqueue, plain, Pace(0, -3))

    def test_what_is_probed_and_sampled(self) -> None:
        probe = Probe(0, NONE.astype(np.int32), ROOM)
        checks.check_probe(WHO, probe)
        wrong = structs.replace(probe, estimate=-1)
        assert "Probe: estimate is -1" in refused(checks.check_probe, wrong)
        checks.check_sample(WHO, Sample(ROOM, 0, 1))
        assert "count is -1" in refused(checks.check_sample, Sample(ROOM, -1, 1))
        for fields, says in (
            ({"rounds": -1}, "pipeline.rounds is -1; zero or more"),
            ({"limit": -1}, "pipeline.limit is -1; zero or more"),
            ({"share": -0.1}, "pipeline.share is -0.1; a share from 0 to 1"),
            ({"share": 1.1}, "pipeline.share is 1.1; a share from 0 to 1"),
        ):
            pipeline = SamplingPipeline(**fields)  # type: ignore[arg-type]
            assert says in refused(checks.check_sample, Sample(ROOM, 1, 1, pipeline=pipeline))
        for share in (0.0, 1.0):
            checks.check_sample(WHO, Sample(ROOM, 1, 1, pipeline=SamplingPipeline(share=share)))

    def test_a_pipeline_is_for_a_single_claim(self) -> None:
        single = Commit(1, Transaction("s", claims(1)))
        checks.check_pipeline(WHO, single, has_agent=True)
        expected = "a single claim, and nothing else"
        for transaction, problem in (
            (Transaction("s", claims(2)), "a pipeline for 2 claims"),
            (Transaction("s"), "a pipeline for 0 claims"),
            (Transaction("s", claims(1), releases=tasks_of(0, 1)), "releases or moves"),
            (Transaction("s", claims(1), move=True), "releases or moves"),
        ):
            told = refused(checks.check_pipeline, Commit(1, transaction), has_agent=True)
            assert told == f"s (omega) returned a malformed Commit: {problem}; {expected}"
        told = refused(checks.check_pipeline, single, has_agent=False)
        assert told.endswith("a pipeline without a cluster; the name of a cluster")

    def test_questions_are_about_machines_that_there_are(self) -> None:
        for machines in (None, [0, 3]):
            until = None if machines is None else np.array(machines, np.int32)
            checks.check_questions(WHO, AskQueues(1, until_room=until), 4)
        for machine in (-1, 4):
            until = np.array([0, machine], np.int32)
            told = refused(checks.check_questions, AskQueues(1, until_room=until), 4)
            assert f"until_room names machine {machine}; one of the 4 machines" in told
        wrong: Any = "short"
        assert "which is 'short'" in refused(checks.check_questions, AskQueues(1, which=wrong), 4)

    def test_messages_can_be_read_back(self) -> None:
        deep: Any = {"a": [1, 2.5, {"b": None}], "c": True}
        checks.check_message(WHO, Send(("p",), Note("n", deep)))
        for data, says in (
            ({"a": [(1,)]}, "payload.data has an tuple; a JSON value"),
            ({"a": {1: 2}}, "payload.data has a key of type int; a JSON value"),
            ([np.int64(1)], "payload.data has an int64; a JSON value"),
        ):
            wrong: Any = data
            assert says in refused(checks.check_message, Send(("p",), Note("n", wrong)))
        told = refused(checks.check_message, Send(("p",), 5))  # type: ignore[arg-type]
        assert "payload is an int; a message of argosy.engine" in told


class TestTries:
    def bench(self) -> tuple[Tries, list[Any], list[Any]]:
        """Tries, what machines were told, and starts that the runtime has for them."""
        told: list[Any] = []
        starts: list[Any] = []

        def record(what: str) -> Any:
            def call(*columns: Any) -> None:
                rows = [c.tolist() if hasattr(c, "tolist") else c for c in columns]
                told.append((what, *rows))

            return call

        class Runtime:
            def tell_starts(self, acts: bool) -> None:
                told.append(("acts", acts))

            @property
            def has_starts(self) -> bool:
                return bool(starts)

            def take_starts(self) -> Any:
                rows, starts[:] = list(starts), []
                columns = zip(*rows, strict=True)
                kinds = (np.int64, np.int32, np.int64, np.int64)
                return [np.array(c, k) for c, k in zip(columns, kinds, strict=True)]

        machines: Any = SimpleNamespace(acts=True, start=record("start"), stop=record("stop"))
        runtime: Any = Runtime()
        return Tries(runtime, machines), told, starts

    def test_a_task_that_moved_is_stopped_where_it_was(self) -> None:
        tries, told, starts = self.bench()
        tries.pass_on_starts()
        starts += [(1, 10, 100, 0), (2, 20, 200, 0)]
        tries.pass_on_starts()
        starts += [(2, 21, 201, 0)]
        tries.pass_on_starts()
        assert told == [
            ("acts", True),
            ("start", [1, 2], [10, 20], [100, 200]),
            ("stop", [2], [20], [200], Why.MOVED),
            ("start", [2], [21], [201]),
        ]

    def test_only_the_current_try_ends(self) -> None:
        tries, told, starts = self.bench()
        starts += [(1, 10, 100, 0), (2, 20, 200, 0)]
        tries.adopt_starts()
        assert told == [("acts", True)]
        assert [tries.end(1, 99), tries.end(3, 100), tries.end(1, 100)] == [False, False, True]
        assert not tries.end(1, 100)
        tries.stop(np.array([1, 2, 3], np.int64), Why.CANCELLED)
        tries.stop(np.array([2], np.int64), Why.CANCELLED)
        assert told[1:] == [("stop", [2], [20], [200], Why.CANCELLED)]


def test_jobs_are_known_until_they_are_forgotten() -> None:
    table = JobTable()
    table.add(job("a", 2, owner="ann").job)
    table.add(job("b", 3, seconds=None, kind="service", gang=True).job)
    assert (len(table), [*table.names], [*table.counts]) == (2, ["a", "b"], [2, 3])
    assert ([*table.kinds], [*table.owners]) == (["batch", "service"], ["ann", ""])
    assert ([*table.is_endless], table.gangs) == ([False, True], [1])
    table.replace(0, job("a", 5, seconds=None).job)
    assert ([*table.counts], [*table.is_endless]) == ([5, 3], [True, True])
    assert table.job(0).tasks == 5
    table.forget([0])
    assert (table.is_done(0), table.is_done(1), table.name(0)) == (True, False, "a")


def test_machines_of_a_job_are_those_that_its_tasks_hold() -> None:
    jobs = JobTable()
    jobs.add(job("a", 3).job)
    held = {task_number(0, 0): 4, task_number(0, 2): 0, task_number(1, 0): 7}
    host: Any = SimpleNamespace(jobs=jobs, cell=SimpleNamespace(machine_of=held.get))
    where = JobWhereabouts(host)
    assert where.machines_of("a") == [4, 0]
    assert where.machines_of("b") == []
    jobs.add(job("b", 1).job)
    assert where.machines_of("b") == [7]
    jobs.forget([0])
    assert where.machines_of("a") == []


class TestStandstill:
    def test_answers_are_told_with_their_reasons(self) -> None:
        made = job("a").job
        lost = TasksLost(made, 0, tasks_of(0, 0), np.zeros(1, np.int32), Why.QUEUE_FULL)
        enqueue = Enqueue(NONE, NONE.astype(np.int32))
        assert (
            standstill._describe(lost, [enqueue, enqueue]) == "TasksLost (queue full) with Enqueue"
        )
        assert standstill._describe(TimerFired("x"), []) == "TimerFired with nothing"
        outcome = Outcome(
            accepted=np.array([True, False, False]),
            whys=np.array([0, int(Why.STALE), int(Why.NO_ROOM)], np.uint8),
            details=np.zeros(3, np.int8),
            amounts=np.zeros(3, np.int64),
            evicted=NONE,
            evicted_from=NONE.astype(np.int32),
            unreleased=(),
            dimensions=(),
            all_accepted=False,
            machines=np.zeros(3, np.int32),
        )
        effects = [WakeMe(0, ""), enqueue]
        told = standstill._describe(Committed(1, outcome), effects)
        assert told == "Committed (no room, stale) with WakeMe and Enqueue"

    @pytest.mark.parametrize(("tasks", "allowed"), [(0, 10_100), (10, 40_300), (2_000, 3_050_100)])
    def test_more_tasks_allow_more_events(self, tasks: int, allowed: int) -> None:
        host: Any = SimpleNamespace(
            runtime=SimpleNamespace(open_tasks=tasks),
            view=SimpleNamespace(machines=3),
            schedulers=[1, 2],
        )
        assert StandstillGuard(host)._allowed() == allowed

    def test_progress_is_any_number_that_grows(self) -> None:
        counts = [5, 1, 1, 0, 0, 0, 0]
        host: Any = SimpleNamespace(
            board=SimpleNamespace(counts=lambda: np.array(counts)),
            jobs=[1],
            view=SimpleNamespace(machines=2),
            runtime=SimpleNamespace(open_tasks=7),
            schedulers=[1],
        )
        guard = StandstillGuard(host)
        who: Any = SimpleNamespace(index=0, handled=50, next_look=0, label="s (omega)")
        guard.look(who, TimerFired("x"), [], 9)
        assert who.next_look == 50 + 10_000 + 21_000 + 200
        for _ in range(99):
            guard.look(who, TimerFired("x"), [], 9)
        counts[:2] = [4, 2]
        guard.look(who, TimerFired("x"), [], 9)
        for _ in range(98):
            guard.look(who, TimerFired("x"), [], 9)
        guard.look(who, TimerFired("x"), [WakeMe(9, "")], 9)
        with pytest.raises(EngineFault) as caught:
            guard.look(who, TimerFired("x"), [], 9)
        assert "s (omega) makes no progress at 9 µs" in caught.value.problem
        often = "it kept answering TimerFired with nothing and TimerFired with WakeMe"
        assert caught.value.problem.endswith(often)


class TestMail:
    def update(self, *, per_task: bool) -> WaitUpdate:
        count = 3
        return WaitUpdate(
            tasks=tasks_of(0, 0, 1, 2),
            versions=np.zeros(count, np.uint8),
            machines=np.array([5, 6, 7], np.int32),
            estimate=10,
            shape=0,
            request=(1, 1),
            total=30,
            since=0,
            is_per_task=per_task,
        )

    def bench(self, hop: int) -> tuple[Mail, Any, list[Any]]:
        fed: list[Any] = []
        peers = {name: SimpleNamespace(name=name, index=at) for at, name in enumerate("pq")}

        def gossip(owners: list[int], at: int, news: Any) -> None:
            fed.append((owners, at))

        links = SimpleNamespace(
            plain_hop=hop, counts={"sent": 0}, deliveries=lambda source, target, now: (4, 9)
        )
        host: Any = SimpleNamespace(
            runtime=SimpleNamespace(gossip=gossip),
            links=links,
            decisions=SimpleNamespace(has_details=False),
            scheduler=peers.get,
        )
        return Mail(host), links, fed

    @pytest.mark.parametrize(("per_task", "messages"), [(False, 2), (True, 6)])
    def test_gossip_over_a_plain_network_is_fed_at_once(
        self, per_task: bool, messages: int
    ) -> None:
        mail, links, fed = self.bench(hop=7)
        sender: Any = SimpleNamespace(name="s", messages_sent=1, placements_told=4, label="s")
        mail.send(sender, Send(("p", "q"), self.update(per_task=per_task)), 100)
        assert fed == [([0, 1], 107)]
        assert (sender.messages_sent, links.counts["sent"]) == (1 + messages, messages)
        assert sender.placements_told == 4 + 2 * 3

    @pytest.mark.parametrize(("per_task", "parts"), [(False, 1), (True, 3)])
    def test_over_another_network_every_message_has_its_fate(
        self, per_task: bool, parts: int
    ) -> None:
        mail, links, fed = self.bench(hop=-1)
        sender: Any = SimpleNamespace(name="s", messages_sent=0, placements_told=0, label="s")
        mail.send(sender, Send(("q", "p"), self.update(per_task=per_task)), 100)
        assert fed == [([owner], at) for owner in (1, 0) for _ in range(parts) for at in (104, 109)]
        assert links.counts["sent"] == 0

    def test_nobody_of_that_name_is_a_fault(self) -> None:
        mail, _, _ = self.bench(hop=0)
        sender: Any = SimpleNamespace(name="s", messages_sent=0, placements_told=0, label="s")
        with pytest.raises(EngineFault, match="s sends to 'x', which is not a scheduler"):
            mail.send(sender, Send(("x",), self.update(per_task=False)), 0)


def test_a_deliberation_that_fails_or_decides_on_something_else_names_its_scheduler() -> None:
    scheduler: Any = SimpleNamespace(name="s0", label="s0 (medea)")
    engine: Any = SimpleNamespace(decision_type=int)
    assert _checked(scheduler, engine, lambda: 3, 7) == 3

    def fails() -> Any:
        raise KeyError("x")

    with pytest.raises(EngineFault, match=r"s0 \(medea\) failed to deliberate at 7 µs"):
        _checked(scheduler, engine, fails, 7)
    with pytest.raises(EngineFault, match=r"s0 \(medea\) decided on str; expected int"):
        _checked(scheduler, engine, lambda: "three", 7)  # type: ignore[arg-type,return-value]


def test_a_task_belongs_to_the_group_that_its_index_is_in() -> None:
    first, second = TaskGroup(2, Resources(1, 1)), TaskGroup(1, Resources(2, 2), retries=3)
    made = Job("a", (first, second))
    assert [_group(made, index) for index in range(4)] == [first, first, second, None]


@pytest.mark.parametrize(("crashes", "heard"), [(0, [7]), (1, [])])
def test_an_agents_answer_is_for_the_scheduler_as_it_was_when_it_asked(
    crashes: int, heard: list[int]
) -> None:
    posted: list[int] = []
    host: Any = SimpleNamespace(
        setup=SimpleNamespace(clusters=()),
        runtime=SimpleNamespace(now=5),
        decisions=SimpleNamespace(input=lambda record: None),
        view=SimpleNamespace(versions=lambda machines: machines.astype(np.uint32)),
        post=lambda now, scheduler, event: posted.append(event.token),
    )
    agents: Any = SimpleNamespace(sample=lambda scheduler, effect: None)
    effects: Any = None
    scheduler: Any = SimpleNamespace(name="s", epoch=0)
    desks = RemoteDesks(effects, host, agents)
    desks.sample(scheduler, Sample(ROOM, 1, 7, cluster="north"), 0)
    scheduler.epoch += crashes
    # What is answered twice is heard once.
    for _ in range(2):
        desks.sampled(scheduler, 7, RemoteSample(machines=[0], drawn=1))
    assert posted == heard
