"""Every engine forgets what is cancelled, places what is added, and tries again what may be."""

import heapq
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from argosy.agents.cache import CellFacts, NodesCache
from argosy.agents.sampling import Sampler
from argosy.engines.api import Context, Deliberates, DeliberatesInPlace, Engine, wait_view_for
from argosy.engines.families.lra.plans import BatchQuestion
from argosy.engines.medea import Medea
from argosy.engines.mesos import Mesos
from argosy.engines.omega import Omega
from argosy.engines.registry import ENGINES
from argosy.engines.shared.withdrawal import added, claims_left, failed
from argosy.host.runtime import build_cell
from argosy.host.scheduler import make_settings
from argosy.host.setup import HostSetup
from argosy.model.budgets import UNTIMED
from argosy.model.effects import (
    AskQueues,
    Commit,
    Deliberate,
    Effect,
    Enqueue,
    Probe,
    Sample,
    Think,
    WakeMe,
)
from argosy.model.events import (
    Committed,
    Decision,
    DecisionDue,
    Deliberated,
    Event,
    JobCancelled,
    JobChanged,
    JobSubmitted,
    MachineJoined,
    QueuesReported,
    SampleReturned,
    Started,
    TaskFailed,
    TaskFinished,
    TimedDecision,
    TimerFired,
)
from argosy.model.jobs import Job, index_of, job_of
from argosy.model.machines import Cluster, Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.tasks import task_numbers
from argosy.model.transactions import OPERATOR, AddMachine, Claims, TaskArray, Transaction
from argosy.model.truth import group_with_truth, simulated_job
from argosy.testing.builders import GIB, SECOND, cell, job, scenario

#: What distinguishes the ways in which tasks wait: in queues, for an answer, for room, in a batch.
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "service": {"kind": "service", "seconds": None},
    "gang": {"gang": True},
    "long": {"seconds": 1_000},
}
EVERY_ENGINE = pytest.mark.parametrize("engine", ENGINES.values(), ids=lambda engine: engine.name)
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


class Driver:
    """An engine and a cell without a world: effects are carried out at once, and what was asked for is
    kept. With `is_crowded`, a rival takes all there is just before a commit arrives."""

    def __init__(self, engine: type[Engine], machines: int = 4, **settings: Any) -> None:
        self.cell = build_cell(HostSetup.of(scenario(engine.name, [], cell=cell(machines))))
        self.view = self.cell.view()
        if "budget" in engine.settings_type.__struct_fields__:
            settings["budget"] = 600 * SECOND
        made = make_settings(engine, settings)
        self.engine = engine(made, Context("s", (), Random(1), waits=wait_view_for(engine, made)))
        cache = NodesCache(Cluster("", ""), self.view, CellFacts(self.view), 0)
        self._sampler = Sampler(cache, self.view, Random(2))
        self.is_crowded = False
        self.now = 0
        self._due: list[tuple[int, int, Event]] = []
        self._count = 0
        #: By job and index: how often a machine was asked for.
        self.asked: dict[tuple[int, int], int] = {}
        self.where: dict[int, int] = {}
        self.tell(Started())

    def tell(self, event: Event) -> None:
        self._carry_out(self.engine.handle(event, self.view, self.now))

    def run(self, seconds: float = 200) -> None:
        end = self.now + int(seconds * SECOND)
        while self._due and self._due[0][0] <= end:
            self.now, _, event = heapq.heappop(self._due)
            if isinstance(event, QueuesReported):
                # Of the machines that there are by now.
                nothing = np.zeros(self.view.machines, np.int64)
                room = np.full(self.view.machines, 2**62, np.int64)
                event = QueuesReported(event.token, nothing, nothing.copy(), room)
            self.tell(event)
        self.now = end

    def tasks(self, number: int) -> list[int]:
        """Indices of the job's tasks that a machine was asked for."""
        return sorted(index for job, index in self.asked if job == number)

    def _post(self, at: int, event: Event) -> None:
        self._count += 1
        heapq.heappush(self._due, (at, self._count, event))

    def _ask(self, tasks: TaskArray) -> None:
        for task in tasks.tolist():
            key = (job_of(task), index_of(task))
            self.asked[key] = self.asked.get(key, 0) + 1

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Think(duration, token):
                    self._post(self.now + duration, DecisionDue(token))
                case WakeMe(at, name):
                    self._post(at, TimerFired(name))
                case AskQueues(token):
                    nothing = np.zeros(0, np.int64)
                    self._post(self.now + 1_000, QueuesReported(token, nothing, nothing, nothing))
                case Enqueue(tasks, machines):
                    self._ask(tasks)
                    self.where.update(zip(tasks.tolist(), machines.tolist(), strict=True))
                case Probe(_, machines, _, _, tasks) if tasks is not None:
                    self._ask(tasks)
                    self.where.update(dict.fromkeys(tasks.tolist(), int(machines[0])))
                case Commit(token, transaction):
                    self._commit(token, transaction)
                case Sample():
                    self._sample(effect)
                case Deliberate():
                    self._deliberate(effect)

    def _sample(self, asked: Sample) -> None:
        assert asked.pipeline is not None
        found = self._sampler.sample(asked, asked.pipeline, self.now, most=0, is_cut_off=False)
        answer = SampleReturned(
            asked.token,
            found.machines,
            found.free,
            found.versions,
            "",
            found.scores,
            found.drawn,
        )
        self._post(self.now + 1_000, answer)

    def _deliberate(self, effect: Deliberate) -> None:
        decision: Decision
        if isinstance(self.engine, DeliberatesInPlace):
            decision = self.engine.deliberate_in_place(effect.question)
        else:
            assert isinstance(self.engine, Deliberates)
            budget = UNTIMED.start(effect.limit)
            decision = self.engine.deliberate(effect.question, self.cell.snapshot(), budget)
        is_timed = isinstance(decision, TimedDecision)
        duration = decision.duration if is_timed else effect.duration
        self._post(self.now + duration, Deliberated(effect.token, decision))

    def _commit(self, token: int, transaction: Transaction) -> None:
        claims = transaction.claims
        if claims is not None:
            self._ask(claims.tasks)
        if self.is_crowded:
            self.crowd()
        outcome = self.cell.commit(transaction)
        if claims is not None:
            for task, machine, taken in zip(
                claims.tasks.tolist(), claims.machines.tolist(), outcome.accepted, strict=True
            ):
                if taken:
                    self.where[task] = machine
        self._post(self.now + 500, Committed(token, outcome))

    def crowd(self) -> None:
        shape = self.cell.shape(Resources(4_000, GIB), (), 30_000)
        for machine in range(self.view.machines):
            here = np.array([machine], np.int32)
            rival = np.array([(1 << 60) + machine], np.int64)
            shapes = np.array([shape], np.int32)
            self.cell.commit(
                Transaction(OPERATOR, Claims(rival, here, shapes, self.cell.versions(here)))
            )

    def give_room(self, cpu: int = 64_000) -> None:
        """A machine joins that has room for anything."""
        machine = Machine(f"big-{self.view.machines}", Resources(cpu, 64 * GIB))
        self.cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
        self.is_crowded = False
        if self.engine.capabilities.machine_events:
            self.tell(MachineJoined(self.view.machines - 1))

    def still_works(self) -> None:
        """Another job is placed as if nothing had been."""
        self.is_crowded = False
        self.give_room()
        self.tell(submitted(job("other", 2).job, 9))
        self.run(1_000)
        assert self.tasks(9) == [0, 1]


def numbers(number: int, *indices: int) -> TaskArray:
    return task_numbers(number, indices)


def submitted(made: Job, number: int) -> JobSubmitted:
    return JobSubmitted(made, number, numbers(number, *range(made.tasks)))


def cancelled(made: Job, number: int) -> JobCancelled:
    return JobCancelled(made, number, numbers(number, *range(made.tasks)))


def test_a_change_submits_the_tasks_it_adds_and_nothing_if_it_adds_none() -> None:
    made = job("a", 3).job
    grown = added(JobChanged(made, 0, numbers(0, 2), numbers(0, 1)))
    assert grown is not None
    assert grown.tasks.tolist() == numbers(0, 2).tolist()
    assert added(JobChanged(made, 0, numbers(0), numbers(0))) is None
    assert added(JobChanged(made, 0, numbers(0), numbers(0, 1))) is None


def test_claims_of_tasks_that_are_still_wanted_stay_as_they_are() -> None:
    made, tasks = job("a", 3).job, numbers(0, 0, 1, 2)
    columns = np.array([7, 8, 9], np.int32)
    claims = Claims(tasks, columns, columns + 10, columns + 20, np.array([1, 2, 3], np.int64))
    kept = claims_left(claims, JobChanged(made, 0, numbers(0), numbers(0, 1)))
    assert kept is not None
    assert kept.tasks.tolist() == numbers(0, 0, 2).tolist()
    assert (kept.machines.tolist(), kept.shapes.tolist()) == ([7, 9], [17, 19])
    assert kept.versions.tolist() == [27, 29]
    assert kept.gangs is not None
    assert kept.gangs.tolist() == [1, 3]
    assert claims_left(claims, JobChanged(made, 0, numbers(0, 3), numbers(0))) is claims
    assert claims_left(claims, cancelled(made, 0)) is None
    assert claims_left(None, cancelled(made, 0)) is None


def test_a_failed_task_that_is_not_tried_again_has_finished_with_its_groups_estimate() -> None:
    groups = [
        group_with_truth(1, Resources(cpu, GIB), (SECOND,), estimate=estimate)
        for cpu, estimate in ((500, 3 * SECOND), (900, None))
    ]
    made = simulated_job("a", *groups, precedence=4).job
    tasks, where = numbers(0, 0, 1), np.array([5, 6], np.int32)
    view = Driver(Mesos).view
    event = TaskFailed(made, 0, tasks, where, np.ones(2, np.int64), 1, "no such file", again=False)
    ended = failed(event, view)
    assert isinstance(ended, TaskFinished)
    assert (ended.tasks.tolist(), ended.machines.tolist()) == (tasks.tolist(), [5, 6])
    assert ended.estimates.tolist() == [group.estimate or 0 for group in made.groups]
    assert ended.shapes.tolist() == [view.shape(g.request, (), 4) for g in made.groups]


def resized(made: Job, count: int) -> Job:
    group = msgspec.structs.replace(made.groups[0], count=count)
    return msgspec.structs.replace(made, groups=(group,))


def of(kind: str, tasks: int = 4, **fields: Any) -> Job:
    return job("a", tasks, **{**KINDS[kind], **fields}).job


@EVERY_ENGINE
@EVERY_KIND
def test_a_job_that_is_cancelled_at_once_is_never_placed(engine: type[Engine], kind: str) -> None:
    driver, made = Driver(engine), of(kind)
    driver.tell(submitted(made, 0))
    before = dict(driver.asked)
    driver.tell(cancelled(made, 0))
    driver.run()
    assert driver.asked == before
    driver.still_works()
    assert driver.tasks(0) == sorted(index for _, index in before)


@EVERY_ENGINE
@EVERY_KIND
@pytest.mark.parametrize("seconds", [0.05, 0.3, 25])
def test_a_job_that_finds_no_room_is_forgotten_when_it_is_cancelled(
    engine: type[Engine], kind: str, seconds: float
) -> None:
    driver, made = Driver(engine), of(kind, cpu=10_000)
    driver.tell(submitted(made, 0))
    driver.run(seconds)
    assert driver.tasks(0) == []
    driver.tell(cancelled(made, 0))
    driver.give_room()
    driver.run()
    driver.still_works()
    assert driver.tasks(0) == []


@EVERY_ENGINE
@EVERY_KIND
def test_claims_that_are_refused_after_the_job_was_cancelled_are_not_made_again(
    engine: type[Engine], kind: str
) -> None:
    driver, made = Driver(engine), of(kind, cpu=3_000)
    driver.is_crowded = True
    driver.tell(submitted(made, 0))
    for _ in range(60_000):
        if driver.asked:
            break
        driver.run(0.000_5)
    before = dict(driver.asked)
    driver.tell(cancelled(made, 0))
    driver.give_room()
    driver.run()
    driver.still_works()
    assert {key: count for key, count in driver.asked.items() if key[0] == 0} == before


def test_a_job_after_one_that_was_cancelled_while_its_claims_were_under_way_asks_for_its_own() -> (
    None
):
    driver, first, then = Driver(Mesos), job("first").job, job("then", 4, cpu=2_000).job
    driver.tell(submitted(first, 0))
    while not driver.asked:
        driver.run(0.000_1)
    driver.tell(cancelled(first, 0))
    driver.run(1)
    driver.is_crowded = True
    driver.tell(submitted(then, 1))
    driver.run(1)
    assert driver.tasks(1) == [0, 1, 2, 3]
    driver.give_room()
    driver.run()
    # Nobody takes off the first one's claim here.
    assert driver.view.held_by("s:batch")["cpu"] == 1_000 + 4 * 2_000


@EVERY_ENGINE
@EVERY_KIND
@pytest.mark.parametrize("seconds", [0, 0.05, 60], ids=["at once", "meanwhile", "later"])
def test_tasks_that_are_added_are_placed(engine: type[Engine], kind: str, seconds: float) -> None:
    driver, made = Driver(engine), of(kind, 2)
    driver.tell(submitted(made, 0))
    driver.run(seconds)
    larger = resized(made, 5)
    nothing = numbers(0)
    driver.tell(JobChanged(larger, 0, numbers(0, 2, 3, 4), nothing))
    driver.run()
    assert driver.tasks(0) == [0, 1, 2, 3, 4]
    assert set(driver.asked.values()) == {1}
    driver.still_works()


@EVERY_ENGINE
@pytest.mark.parametrize("seconds", [0, 0.05, 60], ids=["at once", "meanwhile", "later"])
def test_a_group_that_is_added_is_placed_as_it_asks(engine: type[Engine], seconds: float) -> None:
    driver, made = Driver(engine, machines=2), of("plain", 2)
    driver.tell(submitted(made, 0))
    driver.run(seconds)
    large = msgspec.structs.replace(made.groups[0], request=Resources(10_000, GIB))
    larger = msgspec.structs.replace(made, groups=(*made.groups, large, *made.groups))
    driver.tell(JobChanged(larger, 0, numbers(0, 2, 3, 4, 5), numbers(0)))
    driver.run(50)
    # To one every job is an application, which is placed whole or not at all.
    assert engine.name == "ilp-all" or driver.tasks(0) == [0, 1, 4, 5]
    driver.give_room()
    driver.run(1_000)
    assert driver.tasks(0) == [0, 1, 2, 3, 4, 5]
    assert {driver.where[task] for task in numbers(0, 2, 3).tolist()} == {2}


@EVERY_ENGINE
@EVERY_KIND
@pytest.mark.parametrize("seconds", [0, 0.05, 25], ids=["at once", "meanwhile", "later"])
def test_waiting_tasks_that_are_removed_are_dropped(
    engine: type[Engine], kind: str, seconds: float
) -> None:
    driver, made = Driver(engine), of(kind, 4, cpu=10_000)
    driver.tell(submitted(made, 0))
    driver.run(seconds)
    driver.tell(JobChanged(resized(made, 2), 0, numbers(0), numbers(0, 2, 3)))
    driver.give_room()
    driver.run(1_000)
    assert driver.tasks(0) == [0, 1]
    driver.still_works()


def test_tasks_without_room_that_are_removed_during_the_decision_do_not_come_back() -> None:
    # Four machines with room for one task each.
    driver, made = Driver(Omega), job("a", 6, cpu=3_000).job
    driver.tell(submitted(made, 0))
    driver.tell(JobChanged(resized(made, 5), 0, numbers(0), numbers(0, 5)))
    driver.run(1)
    assert driver.tasks(0) == [0, 1, 2, 3]
    driver.give_room()
    driver.run(1_000)
    assert driver.tasks(0) == [0, 1, 2, 3, 4]


def test_tasks_that_are_added_while_their_application_is_decided_on_wait_with_it() -> None:
    intervals = {"interval": SECOND, "t_lra": SECOND, "algorithm": "tag-popularity"}
    driver, made = Driver(Medea, **intervals), of("service", 1, cpu=10_000)
    driver.tell(submitted(made, 0))
    driver.run(1.5)
    driver.tell(JobChanged(resized(made, 2), 0, numbers(0, 1), numbers(0)))
    driver.run(1)
    assert driver.tasks(0) == []
    driver.give_room()
    driver.run()
    assert driver.tasks(0) == [0, 1]


@EVERY_ENGINE
@EVERY_KIND
@pytest.mark.parametrize("again", [True, False])
def test_a_task_that_failed_is_placed_again_if_it_may_be(
    engine: type[Engine], kind: str, again: bool
) -> None:
    driver, made = Driver(engine), of(kind, 2)
    driver.tell(submitted(made, 0))
    driver.run()
    assert driver.tasks(0) == [0, 1]
    task = numbers(0, 1)
    if driver.cell.machine_of(int(task[0])) is not None:
        driver.cell.commit(Transaction(OPERATOR, releases=task))
    where = np.array([driver.where[int(task[0])]], np.int32)
    tries = np.ones(1, np.int64)
    driver.tell(TaskFailed(made, 0, task, where, tries, 1, "no such file", again=again))
    driver.run()
    assert driver.asked == {(0, 0): 1, (0, 1): 1 + again}
    driver.still_works()


@pytest.mark.parametrize("name", ["medea", "jkube"])
def test_an_interval_wakes_its_scheduler_once_and_only_for_applications_that_still_wait(
    name: str,
) -> None:
    driver, made = Driver(ENGINES[name]), of("service")

    def handled(event: Event, now: int = 0) -> list[Effect]:
        return list(driver.engine.handle(event, driver.view, now))

    (wake,) = handled(submitted(made, 0))
    assert isinstance(wake, WakeMe)
    assert wake.at == 10 * SECOND
    assert handled(submitted(made, 1), 9 * SECOND) == []
    assert handled(cancelled(made, 0)) == []
    first, *others = handled(TimerFired(wake.name), wake.at)
    assert isinstance(first, Deliberate | Think)
    assert (first.job, others) == (1, [])
    # One application of four containers.
    assert first.duration == 100_000 + 4 * 5_000
    driver = Driver(ENGINES[name])
    (wake,) = handled(submitted(made, 0))
    assert isinstance(wake, WakeMe)
    assert handled(cancelled(made, 0)) == []
    assert handled(TimerFired(wake.name), wake.at) == []


def test_containers_that_are_wanted_by_now_may_move() -> None:
    driver, made = Driver(ENGINES["medea"], migrate=3), of("service", 2)
    driver.tell(submitted(made, 0))
    driver.run(30)
    driver.tell(JobChanged(resized(made, 5), 0, numbers(0, 2, 3, 4), numbers(0)))
    driver.run(30)
    assert driver.tasks(0) == [0, 1, 2, 3, 4]
    driver.tell(JobChanged(resized(made, 4), 0, numbers(0), numbers(0, 4)))
    (wake,) = driver.engine.handle(submitted(made, 1), driver.view, driver.now)
    assert isinstance(wake, WakeMe)
    (asked,) = driver.engine.handle(TimerFired(wake.name), driver.view, wake.at)
    assert isinstance(asked, Deliberate)
    assert isinstance(asked.question, BatchQuestion)
    begin, *_, last = numbers(0, *range(5)).tolist()
    running = [group for group in asked.question.movable if group.begin == begin]
    assert [(group.begin, group.end) for group in running] == [(begin, last)]


@EVERY_ENGINE
def test_a_cancelled_job_whose_tasks_end_leaves_nothing_behind(engine: type[Engine]) -> None:
    driver, made = Driver(engine), of("service", 3)
    driver.tell(submitted(made, 0))
    driver.run()
    driver.tell(cancelled(made, 0))
    tasks = numbers(0, 0, 1, 2)
    if driver.cell.machine_of(int(tasks[0])) is not None:
        driver.cell.commit(Transaction(OPERATOR, releases=tasks))
    if driver.engine.capabilities.finishes.value != "none":
        where = np.array([driver.where[task] for task in tasks.tolist()], np.int32)
        shapes = np.full(3, driver.cell.shape(made.groups[0].request, (), 0), np.int32)
        driver.tell(TaskFinished(tasks, where, np.zeros(3, np.int64), shapes))
    driver.still_works()
    assert not any(
        0 in kept
        for name, kept in vars(driver.engine).items()
        if isinstance(kept, dict) and name in ("_open", "_jobs", "_by_job", "_pending")
    )
