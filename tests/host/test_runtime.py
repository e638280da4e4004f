"""The native runtime on its own: reported ends, a clock set from outside, and a replayed journal."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from runtime_bench import MACHINES, OTHER, SLOTS, SOME, Bench, ints, longs

from argosy._core import (
    NEVER,
    LineBuffer,
    QueueOrder,
    QueueRules,
    Random,
    RuntimeEvent,
    TaskState,
)
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import job_of, task_number


def test_a_task_without_a_duration_runs_until_its_end_is_told() -> None:
    bench = Bench()
    (task,) = bench.job()
    bench.launch(longs(task))
    assert bench.runtime.next(NEVER) is None
    bench.runtime.advance(40)
    assert bench.end(task)
    assert bench.state(task) is TaskState.FINISHED
    assert bench.runtime.next(NEVER) == (RuntimeEvent.FINISHED, 40, 0, 0)
    assert bench.runtime.take_finished()[0].tolist() == [task]
    assert bench.runtime.task_columns()[4].tolist() == [40]
    assert bench.cell.claims == 0


def test_a_report_about_another_attempt_changes_nothing() -> None:
    bench = Bench()
    (task,) = bench.job()
    assert bench.runtime.incarnation(int(task)) == 0
    bench.launch(longs(task))
    first = bench.runtime.incarnation(int(task))
    assert bench.runtime.stop_task(int(task), first, TaskState.PENDING)
    bench.launch(longs(task), machine=1)
    assert bench.runtime.incarnation(int(task)) > first
    assert not bench.runtime.end_task(int(task), first)
    assert not bench.runtime.stop_task(int(task), first, TaskState.FAILED)
    assert bench.state(task) is TaskState.RUNNING
    assert bench.end(task)
    assert not bench.end(task)


@pytest.mark.parametrize("state", [TaskState.PENDING, TaskState.FAILED, TaskState.CANCELLED])
def test_a_try_that_stops_frees_its_room_and_only_a_cancelled_one_counts_as_an_end(
    state: TaskState,
) -> None:
    bench = Bench()
    tasks = bench.job(SLOTS)
    (waiting,) = bench.job()
    bench.launch(tasks)
    bench.enqueue(longs(waiting))
    assert bench.runtime.next(NEVER) is None
    assert bench.state(waiting) is TaskState.QUEUED
    task = int(tasks[0])
    assert bench.runtime.stop_task(task, bench.runtime.incarnation(task), state)
    assert bench.state(task) is state
    assert bench.state(waiting) is TaskState.RUNNING
    if state is TaskState.CANCELLED:
        assert bench.runtime.next(NEVER) == (RuntimeEvent.FINISHED, 0, 0, 0)
        assert bench.runtime.take_finished()[0].tolist() == [task]
    assert bench.runtime.next(NEVER) is None
    assert bench.board.counts()[state] == 1
    assert bench.cell.audit() == []


def test_a_stopped_task_is_not_said_to_run_or_to_have_finished() -> None:
    bench = Bench()
    (task,) = bench.job()
    bench.launch(longs(task))
    for state in (TaskState.RUNNING, TaskState.FINISHED, TaskState.QUEUED, TaskState.ABANDONED):
        with pytest.raises(ValueError, match="pending, failed or cancelled"):
            bench.runtime.stop_task(int(task), bench.runtime.incarnation(int(task)), state)


def test_a_known_end_that_was_forestalled_does_no_harm() -> None:
    bench = Bench()
    tasks = bench.job(SLOTS)
    bench.launch(tasks, duration=10)
    assert bench.end(tasks[0])
    bench.launch(bench.job(), machine=0, duration=100)
    seen = []
    while (item := bench.runtime.next(NEVER)) is not None:
        seen.append((item[1], bench.runtime.take_finished()[0].tolist()))
    assert seen == [(0, [tasks[0]]), (10, [tasks[1]]), (100, [task_number(1, 0)])]


def test_places_of_lost_runs_are_used_again() -> None:
    bench = Bench()
    tasks = bench.job(SLOTS)
    for _ in range(200):
        bench.launch(tasks)
        bench.release(tasks)
        bench.runtime.set_pending(tasks)
    bench.launch(tasks)
    assert bench.runtime.running_columns()[0].tolist() == tasks.tolist()
    assert all(bench.end(task) for task in tasks)
    assert bench.board.open_tasks == 0


def test_a_task_is_cancelled_wherever_it_waits() -> None:
    bench = Bench(QueueRules(order=QueueOrder.SHORTEST_FIRST))
    pending, queued, under_way, in_hand = bench.job(4)
    others = bench.job(SLOTS + 1)
    bench.launch(others[:SLOTS])
    bench.enqueue(longs(others[SLOTS], queued))
    assert bench.runtime.next(NEVER) is None
    bench.runtime.deal(bench.runtime.now, bench.terms(int(in_hand)), ints(0), longs(in_hand))
    assert bench.runtime.next(NEVER) is None
    bench.enqueue(longs(under_way))
    for task in (pending, queued, under_way, in_hand):
        assert bench.runtime.cancel_task(int(task))
        assert bench.state(task) is TaskState.CANCELLED
    assert bench.runtime.next(NEVER) == (RuntimeEvent.FINISHED, 0, 0, 0)
    assert set(bench.runtime.take_finished()[0].tolist()) == {queued, under_way}
    assert bench.runtime.next(NEVER) is None
    assert not bench.runtime.cancel_task(int(others[0]))
    lengths, _ = bench.runtime.queue_state()
    assert lengths.tolist() == [2, 0, 0, 0, 0]  # one task, and the probe of the empty hand
    assert bench.end(others[0])
    assert bench.state(others[SLOTS]) is TaskState.RUNNING
    assert all(bench.end(task) for task in others[1:])
    assert [bench.board.is_over(job) for job in (0, 1)] == [True, True]
    assert bench.board.cancelled_by_job().tolist() == [4, 0]
    assert bench.board.take_done().tolist() == [1], "a job with cancelled tasks is over, not done"


def test_every_start_is_reported_in_order() -> None:
    bench = Bench()
    bench.runtime.tell_starts(True)
    launched, queued, bound = (bench.job()[0] for _ in range(3))
    bench.launch(longs(launched), machine=1)
    bench.enqueue(longs(queued), machine=2)
    bench.runtime.probe(0, bench.terms(int(bound)), ints(3))
    assert bench.runtime.next(NEVER) == (RuntimeEvent.PROBES, 0, 0, 0)
    ((probe, *_),) = bench.runtime.take_ready()
    bench.know(longs(bound), [-1], [5])
    assert bench.runtime.bind(probe, int(bound))
    tasks, machines, incarnations, estimates = bench.runtime.take_starts()
    assert tasks.tolist() == [launched, queued, bound]
    assert machines.tolist() == [1, 2, 3]
    assert incarnations.tolist() == [bench.runtime.incarnation(int(task)) for task in tasks]
    assert estimates.tolist() == [7, 7, 5]
    assert len(bench.runtime.take_starts()[0]) == 0


def test_shared_work_may_be_told() -> None:
    bench = Bench()
    (task,) = bench.job()
    extra = longs(task + 1)
    assert bench.board.first_misplaced(extra, 0, False, True) == 0
    with pytest.raises(ValueError, match="not told"):
        bench.runtime.end_phase(0, 0, 9)
    bench.runtime.share_work(0)
    assert bench.board.first_misplaced(extra, 0, False, True) == -1
    bench.launch(longs(task, task + 1))
    bench.runtime.advance(5)
    bench.runtime.end_phase(0, 0, 9)
    assert bench.runtime.next(NEVER) == (RuntimeEvent.PHASES, 5, 0, 0)
    assert bench.runtime.take_phases() == [(0, 0, 9)]
    assert all(bench.end(worker) for worker in (task, task + 1))
    assert bench.board.is_over(0)
    assert bench.cell.claims == 0


def test_a_clock_that_is_set_from_outside_never_goes_back() -> None:
    bench = Bench()
    runtime = bench.runtime
    assert runtime.next_at == NEVER
    runtime.push(100, SOME, 1, 2)
    assert runtime.next_at == 100
    assert runtime.next(99) is None
    assert runtime.now == 0
    runtime.advance(130)
    assert runtime.next(130) == (SOME, 130, 1, 2), "late, at the time it is by then"
    runtime.push(0, SOME, 0, 3)
    assert runtime.next_at == runtime.now == 130
    assert runtime.next(130) == (SOME, 130, 0, 3)
    assert runtime.next(130) is None


def test_what_comes_next_anyway_keeps_its_turn() -> None:
    runtime = Bench().runtime
    runtime.push(0, SOME, 0, 1)
    runtime.push(0, OTHER, 0, 2, at_once=False)
    runtime.push(0, SOME, 0, 3)
    runtime.push(5, SOME, 0, 4)
    order = []
    while (item := runtime.next(NEVER)) is not None:
        order.append(item[3])
    assert order == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="16 to 255"):
        runtime.push(0, 15, 0, 0)
    with pytest.raises(ValueError, match="16 to 255"):
        runtime.push(0, 256, 0, 0)


def test_a_line_buffer_gives_its_text_away() -> None:
    buffer = LineBuffer()
    buffer.append(b'{"at":0}')
    buffer.append(b"x")
    assert len(buffer) == 11
    assert buffer.take() == b'{"at":0}\nx\n'
    assert len(buffer) == 0


def test_reasons_are_the_cores_own_and_still_plain_numbers_in_json() -> None:
    assert [why.value for why in Why] == list(range(26))
    assert Why.NO_ROOM.name.lower() == "no_room"
    line = msgspec.json.encode(Refusal(Why.QUEUE_FULL))
    assert line == b'{"why":18}'
    assert msgspec.json.decode(line, type=Refusal).why is Why.QUEUE_FULL


class Actor:
    """Acts at random at each event, and keeps all it receives: the same for the same events."""

    def __init__(self, seed: int, rules: QueueRules, *, replayed: bool) -> None:
        self.bench = Bench(rules, replayed=replayed)
        self.runtime, self.board = self.bench.runtime, self.bench.board
        self.runtime.tell_starts(True)
        self.runtime.set_round_trip(4)
        self.lines = LineBuffer()
        self.runtime.record_into(self.lines)
        self.replayed = replayed
        self.random = Random(seed)
        self.heard: list[Any] = []
        self.left = 60
        for i in range(6):
            self.runtime.push(10 * i, SOME + i % 2, i, 0, at_once=i % 3 > 0)

    def tasks_in(self, state: TaskState) -> NDArray[np.int64]:
        found = [self.board.tasks_in(job, state) for job in range(self.board.jobs)]
        return np.concatenate([longs(), *found])

    def some(self, tasks: NDArray[np.int64], most: int = 3) -> NDArray[np.int64]:
        first = self.random.below(max(1, len(tasks)))
        return np.ascontiguousarray(tasks[first : first + 1 + self.random.below(most)])

    def duration(self) -> int:
        drawn = self.random.below(40)
        return -1 if self.replayed else drawn

    def handle(self, event: tuple[int, int, int, int]) -> None:
        self.heard.append(event)
        match event[0]:
            case RuntimeEvent.FINISHED:
                self.hear(self.runtime.take_finished())
            case RuntimeEvent.LOST:
                self.hear(self.runtime.take_lost())
                self.hear(self.runtime.take_refused())
            case RuntimeEvent.PHASES:
                self.heard.append(self.runtime.take_phases())
            case RuntimeEvent.PROBES:
                self.answer_probes()
            case _:
                self.act()
        self.hear(self.runtime.take_starts())

    def hear(self, columns: tuple[NDArray[Any], ...]) -> None:
        self.heard.append([column.tolist() for column in columns])

    def answer_probes(self) -> None:
        ready = self.runtime.take_ready()
        self.heard.append(ready)
        for probe, job, _, _ in ready:
            if not self.runtime.is_held(probe):
                continue
            pending = self.board.tasks_in(job, TaskState.PENDING)
            if len(pending) and self.random.below(3):
                self.bench.know(pending[:1], [self.duration()], [9])
                self.heard.append(self.runtime.bind(probe, int(pending[0])))
            else:
                self.runtime.cancel(probe)

    def act(self) -> None:
        actions = (
            self.submit,
            self.submit,
            self.launch,
            self.launch_alike,
            self.enqueue,
            self.enqueue,
            self.probe,
            self.deal,
            self.evict,
            self.stop,
            self.cancel,
            self.crash,
        )
        actions[self.random.below(len(actions))]()
        for _ in range(self.random.below(3)):
            if self.left > 0:
                self.left -= 1
                at = self.runtime.now + self.random.below(3) * self.random.below(12)
                self.runtime.push(at, SOME, 0, self.left, at_once=self.random.below(3) > 0)

    def submit(self) -> None:
        job = job_of(int(self.bench.job(1 + self.random.below(5))[0]))
        if self.random.below(4):
            return
        work = longs(3, 2), longs(self.random.below(9), 10)
        if self.replayed:
            self.runtime.share_work(job)
        else:
            self.runtime.add_pool(job, *work)

    def placed(self) -> NDArray[np.int64]:
        pending = self.some(self.tasks_in(TaskState.PENDING))
        return self.bench.claim(pending, self.random.below(MACHINES))

    def launch(self) -> None:
        tasks = self.placed()
        self.bench.know(tasks, [self.duration() for _ in tasks], [11] * len(tasks))
        self.runtime.launch(tasks)

    def launch_alike(self) -> None:
        tasks = self.placed()
        duration = self.duration()
        self.bench.know(tasks, [duration] * len(tasks), [12] * len(tasks))
        if len(jobs := {job_of(task) for task in tasks.tolist()}) == 1:
            self.runtime.set_groups(*jobs, [(5, self.bench.shape, 12)])
            self.runtime.set_times(*jobs, [duration])
        self.runtime.launch(tasks)

    def enqueue(self) -> None:
        tasks = self.some(self.tasks_in(TaskState.PENDING), 5)
        machines = ints(*(self.random.below(MACHINES) for _ in tasks))
        durations = [self.duration() for _ in tasks]
        self.bench.know(tasks, durations, [1 + self.random.below(30) for _ in tasks])
        at = self.runtime.now + self.random.below(3)
        spacing = self.random.below(3)
        self.runtime.enqueue(at, self.bench.scheduler, tasks, machines, spacing=spacing)

    def machines(self, count: int) -> NDArray[np.int32]:
        return ints(*(self.random.below(MACHINES) for _ in range(count)))

    def probe(self) -> None:
        pending = self.tasks_in(TaskState.PENDING)
        if len(pending):
            at = self.runtime.now + self.random.below(3)
            self.runtime.probe(at, self.bench.terms(int(pending[0])), self.machines(2))

    def deal(self) -> None:
        pending = self.tasks_in(TaskState.PENDING)
        if not len(pending):
            return
        tasks = self.board.tasks_in(job_of(int(pending[0])), TaskState.PENDING)
        self.bench.know(tasks, [self.duration() for _ in tasks], [7] * len(tasks))
        sticky, cancel = self.random.below(2) == 0, self.random.below(2) == 0
        at = self.runtime.now + self.random.below(3)
        terms = self.bench.terms(int(tasks[0]))
        machines = self.machines(len(tasks) + 1)
        self.runtime.deal(at, terms, machines, tasks, sticky, cancel)

    def evict(self) -> None:
        tasks = self.some(self.tasks_in(TaskState.RUNNING))
        machines = sorted({self.bench.cell.claim(int(task))[0] for task in tasks})
        self.bench.release(tasks)
        self.runtime.set_pending(tasks)
        for machine in machines:
            self.runtime.pump(machine)

    def stop(self) -> None:
        for task in self.some(self.tasks_in(TaskState.RUNNING)).tolist():
            states = (TaskState.PENDING, TaskState.FAILED, TaskState.CANCELLED)
            state = states[self.random.below(3)]
            incarnation = self.runtime.incarnation(task)
            self.heard.append(self.runtime.stop_task(task, incarnation, state))

    def cancel(self) -> None:
        state = (TaskState.PENDING, TaskState.QUEUED)[self.random.below(2)]
        for task in self.some(self.tasks_in(state), 2).tolist():
            self.heard.append(self.runtime.cancel_task(task))

    def crash(self) -> None:
        machine = self.random.below(MACHINES)
        cell = self.bench.cell
        if not cell.is_up(machine):
            cell.begin()
            cell.revive(machine)
            return
        held = [task for task in cell.claims_on(machine).tolist() if self.runtime.is_hold(task)]
        tasks = [task for task in cell.claims_on(machine).tolist() if task not in held]
        cell.begin()
        cell.remove_machine(machine)
        self.heard.append(self.runtime.lose_queue(machine).tolist())
        self.runtime.set_pending(longs(*tasks))
        self.runtime.pump(machine)

    def outcome(self) -> dict[str, Any]:
        cell, runtime, board = self.bench.cell, self.runtime, self.board
        assert cell.audit() == []
        claims = [cell.claims_on(machine).tolist() for machine in range(MACHINES)]
        columns = {
            "jobs": board.job_columns(),
            "tasks": runtime.task_columns(),
            "running": runtime.running_columns(),
            "queues": runtime.queue_state(),
            "used": runtime.integrals(),
        }
        return {
            "heard": self.heard,
            "now": runtime.now,
            "stolen": runtime.stolen,
            "counts": board.counts().tolist(),
            "states": [self.tasks_in(state).tolist() for state in TaskState],
            "done": board.take_done().tolist(),
            "claims": [[(task, cell.claim(task)) for task in tasks] for tasks in claims],
            "samples": runtime.samples().tolist(),
            **{name: [part.tolist() for part in parts] for name, parts in columns.items()},
        }


def recorded(seed: int, rules: QueueRules) -> tuple[bytes, dict[str, Any]]:
    actor = Actor(seed, rules, replayed=False)
    while (event := actor.runtime.next(NEVER)) is not None:
        actor.handle(event)
    return actor.lines.take(), actor.outcome()


def replayed(
    seed: int, rules: QueueRules, journal: bytes, end: int
) -> tuple[bytes, dict[str, Any]]:
    actor = Actor(seed, rules, replayed=True)
    runtime = actor.runtime
    for text in journal.splitlines(keepends=True):
        line = json.loads(text)
        match line["what"]:
            case "due":
                event = runtime.due(line["ticket"], line["at"])
                if event is not None:
                    actor.handle(event)
            case "ended":
                runtime.end_tasks(longs(*line["tasks"]), line["at"])
            case "phase-ended":
                runtime.advance(line["at"])
                runtime.end_phase(line["job"], line["phase"], line["duration"])
            case "report":
                actor.lines.append(text.rstrip(b"\n"))
                actor.handle((RuntimeEvent[line["kind"].upper()], line["at"], 0, 0))
    runtime.advance(end)
    return actor.lines.take(), actor.outcome()


RULES = st.builds(
    QueueRules,
    order=st.sampled_from(list(QueueOrder)),
    slack=st.integers(0, 3),
    limit=st.sampled_from([0, 0, 2]),
    start_delay=st.integers(0, 2),
    long_above=st.sampled_from([0, 15]),
    steal_attempts=st.integers(0, 2),
    steal_limit=st.integers(1, 2),
    steal_seed=st.integers(0, 9),
)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), RULES)
def test_a_run_is_replayed_from_its_journal_to_the_last_notice(
    seed: int, rules: QueueRules
) -> None:
    journal, outcome = recorded(seed, rules)
    again, replay = replayed(seed, rules, journal, outcome["now"])
    assert replay == outcome
    assert again == journal


def test_the_journal_says_what_was_taken_from_the_world() -> None:
    bench, lines = Bench(), LineBuffer()
    bench.runtime.record_into(lines)
    tasks = bench.job(2)
    bench.launch(tasks, duration=3)
    bench.runtime.push(0, SOME, 0, 0)
    bench.runtime.push(9, SOME, 0, 0)
    while bench.runtime.next(NEVER) is not None:
        bench.runtime.take_finished()
    bench.runtime.record_into(None)
    bench.runtime.push(9, SOME, 0, 0)
    assert bench.runtime.next(NEVER) is not None
    assert lines.take().splitlines() == [
        b'{"what":"due","at":0,"ticket":1}',
        b'{"what":"ended","at":3,"tasks":[0]}',
        b'{"what":"ended","at":3,"tasks":[1]}',
        b'{"what":"report","at":3,"kind":"finished"}',
        b'{"what":"due","at":9,"ticket":2}',
    ]


def test_the_journal_says_for_when_a_late_timer_was_set() -> None:
    bench, lines = Bench(), LineBuffer()
    bench.runtime.record_into(lines)
    bench.runtime.push(100, SOME, 0, 0)
    bench.runtime.advance(130)
    assert bench.runtime.next(130) is not None
    assert lines.take() == b'{"what":"due","at":130,"ticket":1,"planned":100}\n'


def test_much_that_happens_on_its_own_does_not_pile_up_unwritten() -> None:
    bench, lines = Bench(), LineBuffer()
    bench.runtime.record_into(lines)
    bench.enqueue(bench.job(5_000), duration=1)
    sizes = []
    while (item := bench.runtime.next(NEVER)) is not None:
        if item[0] == RuntimeEvent.FULL:
            sizes.append(len(lines.take()))
        else:
            bench.runtime.take_finished()
    assert len(sizes) > 5
    assert all(1 << 16 < size < (1 << 16) + 200 for size in sizes)


def test_a_replay_refuses_what_its_journal_cannot_mean() -> None:
    bench = Bench(replayed=True)
    (task,) = bench.job()
    with pytest.raises(ValueError, match="ticket"):
        bench.runtime.due(1, 0)
    with pytest.raises(ValueError, match="does not run"):
        bench.runtime.end_tasks(longs(task), 0)
    with pytest.raises(ValueError, match="told"):
        bench.runtime.add_pool(0, longs(1), longs(1))
    with pytest.raises(ValueError, match="only a replay"):
        Bench().runtime.due(1, 0)
