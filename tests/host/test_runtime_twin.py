"""The native runtime against its slow twin: what starts when and where, and all that is reported."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime_bench import ints, longs
from twin_runtime import TwinHand, TwinItem, TwinRules, TwinRuntime, notices

from argosy._core import Cell, ProbeTerms, QueueOrder, QueueRules, Random, TaskRuntime, TaskState
from argosy.model.tasks import first_tasks

CAPACITY = [2, 3, 1]
ATTRIBUTES = [0, 1, 1]
SIZES = (1, 2, 3)
ESTIMATES = (1, 3, 5, 8, 15, 16, 30)
OWNERS = (0, 1)
MACHINES = len(CAPACITY)


class RuntimeAndTwin:
    """A runtime and its twin, through the same random calls."""

    def __init__(self, seed: int, rules: TwinRules, beat: int, counts_sent: bool) -> None:
        self.random = Random(seed)
        self.cell = Cell(1, 0)
        attributes = [[attribute] for attribute in ATTRIBUTES]
        capacity = np.array(CAPACITY, np.int64).reshape(MACHINES, 1)
        self.cell.add_machines(capacity, [[] for _ in CAPACITY], attributes)
        self.scheduler = self.cell.add_scheduler()
        self.shapes = {size: self.cell.shape([size], [], 0) for size in SIZES}
        fields = {field: getattr(rules, field) for field in rules.__struct_fields__}
        self.runtime = TaskRuntime(self.cell, QueueRules(**fields), record_tasks=True)
        self.runtime.keep_loads()
        self.runtime.hear_all()
        self.runtime.tell_starts(True)
        self.runtime.beat_every(beat, counts_sent)
        self.runtime.set_round_trip(5)
        self.twin = TwinRuntime(rules, CAPACITY, ATTRIBUTES, 5, beat)
        self.twin.counts_sent = counts_sent
        for owner in OWNERS:
            for since in (20, 120):
                cut = owner, since + self.below(40), since + 20 + self.below(60)
                self.runtime.cut_off(*cut)
                self.twin.cuts.append(cut)
        self.requirements = [self.runtime.add_requirement([each]) for each in (0, 1)]
        self.jobs = 0

    def below(self, n: int) -> int:
        return self.random.below(n)

    def tasks_in(self, *states: TaskState) -> list[int]:
        return [task for task, state in self.twin.states.items() if state in states]

    def some(self, tasks: Sequence[int], most: int) -> list[int]:
        first = self.below(max(1, len(tasks)))
        return list(tasks[first : first + 1 + self.below(most)])

    def machines(self, count: int) -> list[int]:
        first = self.below(MACHINES)
        return [first if self.below(2) else self.below(MACHINES) for _ in range(count)]

    def estimate(self) -> int:
        return ESTIMATES[self.below(len(ESTIMATES))]

    # What is done.

    def submit(self) -> None:
        count, size, is_alike = 1 + self.below(8), SIZES[self.below(3)], self.below(2)
        estimates = [self.estimate() for _ in range(count)]
        times = [self.below(40) - 1 for _ in range(count)]
        if is_alike:
            estimates, times = [estimates[0]] * count, [times[0]] * count
        shape, now = self.shapes[size], self.runtime.now
        groups = [(count, shape, estimates[0])] if is_alike else [(1, shape, e) for e in estimates]
        job = self.runtime.add_job(now, OWNERS[self.below(2)], groups)
        self.runtime.set_times(job, times[:1] if is_alike else times)
        self.jobs = job + 1
        for at, task in enumerate(first_tasks(job, count).tolist()):
            self.twin.states[task] = TaskState.PENDING
            self.twin.facts[task] = job, size, estimates[at], times[at]

    def launch(self) -> None:
        tasks = self.some(self.tasks_in(TaskState.PENDING), 3)
        machine, claimed = self.below(MACHINES), []
        for task in tasks:
            shape = self.shapes[self.twin.facts[task][1]]
            refused, *_ = self.cell.commit(
                self.scheduler,
                longs(task),
                ints(machine),
                ints(shape),
                np.zeros(1, np.uint32),
                *[None] * 5,
                *[False] * 7,
            )
            is_free = machine not in self.twin.draining and self.twin.can_start(
                machine, self.twin.facts[task][1]
            )
            assert (refused is None) == is_free
            if is_free:
                claimed.append(task)
                self.twin.launch(task, machine)
        self.runtime.launch(longs(*claimed))

    def item(self, task: int, machine: int, at: int) -> TwinItem:
        job, size, estimate, _ = self.twin.facts[task]
        return TwinItem(task, -1, job, size, estimate, machine, at, self.runtime.now)

    def enqueue(self) -> None:
        tasks = self.some(self.tasks_in(TaskState.PENDING), 9)
        machines, batch = self.machines(len(tasks)), []
        at, first, spacing = self.runtime.now + self.below(4), self.below(3), self.below(4)
        estimate = self.estimate() if self.below(4) == 0 else None
        wanted = [self.below(2) for _ in tasks] if self.below(2) else []
        for row, (task, machine) in enumerate(zip(tasks, machines, strict=True)):
            after = first + row * spacing
            item = self.item(task, machine, at + after)
            item.placed += after
            item.estimate = item.estimate if estimate is None else estimate
            item.requirement = wanted[row] if wanted else -1
            batch.append(item)
        self.runtime.enqueue(
            at,
            self.scheduler,
            longs(*tasks),
            ints(*machines),
            estimate,
            [self.requirements[each] for each in wanted],
            first,
            spacing,
        )
        self.twin.enqueue(batch)

    def probe(self) -> None:
        self.ask(deals=False)

    def deal(self) -> None:
        self.ask(deals=True)

    def ask(self, *, deals: bool) -> None:
        pending = self.tasks_in(TaskState.PENDING)
        if not pending:
            return
        job, size, *_ = self.twin.facts[pending[self.below(len(pending))]]
        tasks = [task for task in pending if self.twin.facts[task][0] == job]
        owner, estimate = self.runtime.board.owner(job), self.estimate()
        at, wanted = self.runtime.now + self.below(4), self.below(3) - 1
        requirement = self.requirements[wanted] if wanted >= 0 else 0
        terms = ProbeTerms(job, owner, self.scheduler, self.shapes[size], estimate, requirement)
        item = TwinItem(-1, -1, job, size, estimate, -1, at, requirement=wanted)
        if not deals:
            machines = self.machines(2)
            self.runtime.probe(at, terms, ints(*machines))
            self.twin.probe(item, owner, machines)
            return
        machines, cancels = self.machines(len(tasks) + self.below(3)), self.below(2) == 0
        hand = TwinHand(list(tasks), len(machines), self.runtime.now)
        hand.cancelled_after = 2 if cancels else -1
        self.runtime.deal(at, terms, ints(*machines), longs(*tasks), False, cancels)
        self.twin.probe(item, owner, machines, hand)

    def evict(self) -> None:
        running = self.tasks_in(TaskState.RUNNING)
        machine = self.twin.runs[running[self.below(len(running))]].machine if running else 0
        tasks = [task for task in running if self.twin.runs[task].machine == machine][:2]
        self.cell.commit(self.scheduler, *[None] * 8, longs(*tasks), *[False] * 7)
        self.runtime.set_pending(longs(*tasks))
        for task in tasks:
            del self.twin.runs[task]
            self.twin.states[task] = TaskState.PENDING
        self.runtime.pump(machine)
        self.twin.pump(machine)

    def end(self) -> None:
        for task in self.some(self.tasks_in(TaskState.RUNNING), 2):
            if self.twin.states[task] is not TaskState.RUNNING:
                continue
            number = self.runtime.incarnation(task)
            if self.below(2):
                assert self.runtime.end_task(task, number)
                self.twin.finish(task)
                continue
            state = (TaskState.PENDING, TaskState.FAILED, TaskState.CANCELLED)[self.below(3)]
            assert self.runtime.stop_task(task, number, state)
            self.twin.stop(task, state)

    def cancel(self) -> None:
        waiting = self.tasks_in(TaskState.QUEUED) or self.tasks_in(TaskState.PENDING)
        for task in self.some(waiting, 1):
            assert self.runtime.cancel_task(task) == self.twin.cancel_task(task)

    def crash(self) -> None:
        machine, twin = self.below(MACHINES), self.twin
        self.cell.begin()
        if machine in twin.down:
            self.cell.revive(machine)
            twin.down.remove(machine)
            twin.draining.discard(machine)
            return
        tasks = [t for t in self.cell.claims_on(machine).tolist() if not self.runtime.is_hold(t)]
        assert sorted(tasks) == sorted(t for t, r in twin.runs.items() if r.machine == machine)
        self.cell.remove_machine(machine)
        twin.down.add(machine)
        for task in tasks:
            del twin.runs[task]
        twin.holds = {n: held for n, held in twin.holds.items() if held[0] != machine}
        assert self.runtime.lose_queue(machine).tolist() == twin.lose_queue(machine)
        self.runtime.set_pending(longs(*tasks))
        for task in tasks:
            twin.states[task] = TaskState.PENDING
        self.runtime.pump(machine)
        twin.pump(machine)

    def drain(self) -> None:
        machine, twin = self.below(MACHINES), self.twin
        if machine in twin.down:
            return
        self.cell.begin()
        self.cell.drain(machine, machine not in twin.draining)
        if machine in twin.draining:
            twin.draining.remove(machine)
            return
        twin.draining.add(machine)
        self.runtime.lose_probes(machine)
        twin.lose_probes(machine)

    def restart(self) -> None:
        owner = OWNERS[self.below(2)]
        self.runtime.cancel_all(owner)
        self.twin.cancel_all(owner)

    def watch(self) -> None:
        machines = self.machines(2)
        self.runtime.await_room(ints(*machines))
        self.twin.awaited |= set(machines)

    def step(self) -> None:
        actions = [self.submit, self.enqueue, self.enqueue, self.enqueue] * 3
        actions += [self.launch, self.probe, self.deal, self.end, self.cancel, self.watch] * 2
        actions += [self.evict, self.crash, self.drain, self.restart]
        actions[self.below(len(actions))]()

    # What comes of it.

    def pass_time(self, until: int) -> None:
        while (event := self.runtime.next(until)) is not None:
            assert event == self.twin.next(until)
            self.take()
        assert self.twin.next(until) is None
        assert self.runtime.now == self.twin.now
        self.runtime.advance(until)
        self.twin.advance(until)

    def take(self) -> None:
        runtime, twin = self.runtime, self.twin
        assert notices(runtime.take_finished()) == twin.finished
        lost, refused = notices(runtime.take_lost()), notices(runtime.take_refused())
        for rows, expected in ((lost, twin.lost), (refused, twin.refused)):
            # In what order probes of several hands went is not said.
            assert sorted(rows) == sorted((*row, -1) for row in expected)
        ready = runtime.take_ready()
        assert ready == twin.ready
        assert runtime.take_roomy().tolist() == twin.roomy
        for rows in (twin.finished, twin.lost, twin.refused, twin.ready, twin.roomy):
            rows.clear()
        self.take_starts()
        for number, job, *_ in ready:
            assert runtime.is_held(number) == (twin.probes[number].state == "held")
            if runtime.is_held(number):
                self.answer(number, job)
        self.take_starts()

    def take_starts(self) -> None:
        tasks, machines, numbers, estimates = (
            column.tolist() for column in self.runtime.take_starts()
        )
        assert list(zip(tasks, machines, estimates, strict=True)) == self.twin.starts
        for task, number in zip(tasks, numbers, strict=True):
            if tasks.count(task) == 1 and task in self.twin.runs:
                assert number == self.runtime.incarnation(task)
        self.twin.starts.clear()

    def answer(self, number: int, job: int) -> None:
        mine = [t for t in self.tasks_in(TaskState.PENDING) if self.twin.facts[t][0] == job]
        assert self.runtime.probe_owner(number) == self.twin.probes[number].owner
        if mine and self.below(3):
            assert self.runtime.bind(number, mine[0]) == self.twin.bind(number, mine[0])
        else:
            self.runtime.cancel(number)
            self.twin.cancel(number)

    def compare(self) -> None:
        runtime, twin = self.runtime, self.twin
        board = runtime.board
        assert {task: board.state(task) for task in twin.states} == twin.states
        counts = [sum(s is state for s in twin.states.values()) for state in TaskState]
        assert board.counts().tolist() == counts
        unfree = [CAPACITY[m] - twin.free(m) for m in range(MACHINES)]
        assert [sum(self.size(t) for t in self.claims(m)) for m in range(MACHINES)] == unfree
        assert runtime.queue_room().tolist() == [twin.room(m) for m in range(MACHINES)]
        queued = [column.tolist() for column in runtime.queued()]
        assert list(zip(*queued, strict=True)) == twin.queued()
        assert runtime.stolen == twin.stolen
        assert runtime.next_at == twin.next_at
        for only_long in (False, True):
            for as_of_beat in (False, True):
                loads = [twin.load(m, only_long, as_of_beat) for m in range(MACHINES)]
                lengths, waits = runtime.queue_state(only_long, as_of_beat)
                assert list(zip(lengths.tolist(), waits.tolist(), strict=True)) == loads

    def claims(self, machine: int) -> list[int]:
        tasks: list[int] = self.cell.claims_on(machine).tolist()
        return tasks

    def size(self, task: int) -> int:
        shape = self.cell.claim(task)[1]
        return next(size for size, number in self.shapes.items() if number == shape)


@st.composite
def queue_rules(draw: st.DrawFn) -> TwinRules:
    rules = TwinRules(
        order=draw(st.sampled_from(list(QueueOrder))),
        slack=draw(st.sampled_from([0, 1, 3])),
        limit=draw(st.sampled_from([0, 0, 1, 3])),
        start_delay=draw(st.sampled_from([0, 2])),
        long_above=draw(st.sampled_from([0, 15])),
    )
    if rules.is_unordered:
        # Whom thieves find at the end of such a queue is not said.
        return rules
    stealing = {
        "steal_attempts": draw(st.sampled_from([0, 2, 4])),
        "steal_from": draw(st.sampled_from([0, 0, 1, MACHINES])),
        "steal_limit": draw(st.sampled_from([1, 2, 9])),
        "steal_seed": draw(st.integers(0, 9)),
    }
    fields = {field: getattr(rules, field) for field in rules.__struct_fields__}
    return TwinRules(**{**fields, **stealing})


@settings(max_examples=120)
@given(st.integers(0, 2**32), queue_rules(), st.sampled_from([0, 10]), st.booleans())
def test_the_runtime_agrees_with_its_slow_twin(
    seed: int, rules: TwinRules, beat: int, counts_sent: bool
) -> None:
    both = RuntimeAndTwin(seed, rules, beat, counts_sent)
    for _ in range(50):
        both.step()
        both.take_starts()
        both.compare()
        both.pass_time(both.runtime.now + both.below(12))
        both.compare()
    columns = [column.tolist() for column in both.runtime.task_columns()]
    assert list(zip(*columns, strict=True)) == both.twin.rows
    running = [column.tolist() for column in both.runtime.running_columns()]
    assert sorted(zip(*running, strict=True)) == sorted(
        (run.task, run.machine, run.placed, run.started, -1) for run in both.twin.runs.values()
    )
    assert both.cell.audit() == []
