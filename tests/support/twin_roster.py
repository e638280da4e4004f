"""The slow twin of a flow scheduler's roster: what is known of tasks, and the network they should have.

Everything is a list or a dictionary that is searched, and whatever can be counted is counted anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from argosy.model.jobs import index_of, job_of, task_number

GONE, PENDING, RUNNING = range(3)
NOWHERE = -1
#: The most that a unit of flow may cost, and the capacity of an arc that is never full.
COST_LIMIT, PLENTY = 2**40, 2**31 - 1


class TwinClass(msgspec.Struct, eq=False):
    number: int
    job: int
    pool: int
    owner: int
    shape: int
    #: All that it was made of, in order, whether or not they are over.
    tasks: list[int]
    pool_cost: int
    wait_cost: int
    preemption: int
    is_parked: bool = False

    @property
    def is_single(self) -> bool:
        return len(self.tasks) == 1


class TwinTask(msgspec.Struct, eq=False):
    number: int
    state: int = GONE
    machine: int = NOWHERE
    of: TwinClass | None = None


class TwinJob(msgspec.Struct, eq=False):
    number: int
    precedence: int
    tasks: list[TwinTask]
    since: int = 0
    cost: int = 0

    @property
    def living(self) -> int:
        return sum(task.state != GONE for task in self.tasks)

    @property
    def waiting(self) -> int:
        return sum(task.state == PENDING for task in self.tasks)


class TwinPool(msgspec.Struct, eq=False):
    number: int
    request: list[int]
    is_choosy: bool
    preempts: bool
    #: Of all tasks that it ever had.
    precedences: list[int] = msgspec.field(default_factory=list)


class TwinRun(msgspec.Struct, eq=False):
    of: TwinClass
    machine: int
    cost: int
    is_direct: bool
    tasks: int = 0
    onward: int = 0
    step: int = 0


class TwinGroup(msgspec.Struct):
    """New tasks of a job that are alike to the flow."""

    job: int
    pool: int
    owner: int
    shape: int
    waiting: int
    tasks: list[int]
    costs: list[int]
    is_each: bool


class TwinRoster:
    def __init__(self, dimensions: int, machines: int, reschedules: bool, migration: int) -> None:
        self.dimensions, self.machines = dimensions, machines
        self.reschedules, self.migration = reschedules, migration
        self.jobs: dict[int, TwinJob] = {}
        self.pools: dict[int, TwinPool] = {}
        self.classes: list[TwinClass] = []
        #: Numbers of classes that are over, to be used again, and how many there ever were.
        self.free_numbers: list[int] = []
        self.most_classes = 0
        #: In the order in which they began.
        self.runs: list[TwinRun] = []
        #: Machines on which own tasks started or ended since the last look.
        self.touched: set[int] = set()

    # Reading.

    def task(self, number: int) -> TwinTask | None:
        job = self.jobs.get(job_of(number)) if number >= 0 else None
        return job.tasks[index_of(number)] if job and index_of(number) < len(job.tasks) else None

    def living(self) -> list[TwinTask]:
        return [task for job in self.jobs.values() for task in job.tasks if task.state != GONE]

    def members(self, of: TwinClass, *states: int) -> list[TwinTask]:
        """The tasks of a class in these states, in order."""
        tasks = (self.task(number) for number in of.tasks)
        return [t for t in tasks if t is not None and t.of is of and t.state in states]

    def request(self, task: TwinTask) -> list[int]:
        assert task.of is not None
        return self.pools[task.of.pool].request

    def precedence(self, task: TwinTask) -> int:
        return self.jobs[job_of(task.number)].precedence

    def on(self, machine: int) -> list[TwinTask]:
        return [t for t in self.living() if t.state == RUNNING and t.machine == machine]

    def own(self) -> np.ndarray:
        held = np.zeros((self.machines, self.dimensions), np.int64)
        for machine in range(self.machines):
            for task in self.on(machine):
                held[machine] += self.request(task)
        return held

    def own_tasks(self) -> list[int]:
        return [len(self.on(machine)) for machine in range(self.machines)]

    def of_pool(self, pool: int, *states: int) -> list[TwinTask]:
        return [t for t in self.living() if t.state in states and t.of and t.of.pool == pool]

    def units(self, of: TwinClass) -> int:
        waits = 0 if of.is_parked else len(self.members(of, PENDING))
        return waits + (len(self.members(of, RUNNING)) if self.reschedules else 0)

    def waiting_segments(self, of: TwinClass) -> list[tuple[int, int]]:
        """The arc of a class that stands for waiting: units, and the cost of each."""
        waits, runs = len(self.members(of, PENDING)), len(self.members(of, RUNNING))
        dearer = of.wait_cost + of.preemption
        if of.is_single:
            return [(1, dearer if runs else of.wait_cost)]
        parts = [(waits, of.wait_cost), (runs if self.reschedules else 0, dearer)]
        parts = [part for part in parts if part[0]] or [(0, of.wait_cost)]
        # Neighbours at the same cost are one.
        alike = len(parts) == 2 and not of.preemption
        return [(waits + runs, of.wait_cost)] if alike else parts

    def find_run(self, of: TwinClass, machine: int) -> TwinRun | None:
        found = [run for run in self.runs if run.of is of and run.machine == machine]
        return found[0] if found else None

    # Changing.

    def enter(self, numbers: Sequence[int], now: int) -> list[int]:
        """Those that are new, in order; running ones wait again."""
        fresh = set()
        for number in numbers:
            task = self.task(number)
            if task is None:
                continue
            if task.state == GONE:
                fresh.add(number)
            if task.state == RUNNING:
                self.stop([number], now)
        return sorted(fresh)

    def wait(self, task: TwinTask, now: int) -> None:
        job = self.jobs[job_of(task.number)]
        if job.waiting == 0:
            job.since = now
        task.state, task.machine = PENDING, NOWHERE

    def take_numbers(self, count: int) -> list[int]:
        """The numbers given back last, in the order in which they were, and then new ones."""
        again = min(count, len(self.free_numbers))
        split = len(self.free_numbers) - again
        numbers, self.free_numbers = self.free_numbers[split:], self.free_numbers[:split]
        fresh = range(self.most_classes, self.most_classes + count - again)
        self.most_classes += count - again
        return [*numbers, *fresh]

    def add_classes(self, groups: Sequence[TwinGroup], preemption: int, now: int) -> list[int]:
        parts: list[tuple[TwinGroup, list[int], int]] = []
        for group in groups:
            if group.is_each:
                parts += [(group, [t], c) for t, c in zip(group.tasks, group.costs, strict=True)]
            else:
                parts.append((group, group.tasks, group.costs[0]))
        numbers, class_of = self.take_numbers(len(parts)), []
        for number, (group, tasks, cost) in zip(numbers, parts, strict=True):
            made = TwinClass(
                number, group.job, group.pool, group.owner, group.shape, list(tasks),
                cost + self.migration, group.waiting + self.migration, preemption,
            )  # fmt: skip
            self.classes.append(made)
            self.pools[group.pool].precedences.append(self.jobs[group.job].precedence)
            for task in tasks:
                found = self.task(task)
                assert found is not None
                found.of = made
                self.wait(found, now)
                class_of.append(number)
        return class_of

    def start(self, rows: Sequence[tuple[int, int, int, bool]]) -> None:
        """Tasks, machines, costs, and whether an arc leads there directly."""
        begun = []
        for number, machine, cost, is_direct in rows:
            task = self.task(number)
            if task is None or task.state != PENDING:
                continue
            task.state, task.machine = RUNNING, machine
            self.touched.add(machine)
            assert task.of is not None
            begun.append((task.of, machine, cost, is_direct))
        if not self.reschedules:
            return
        begun.sort(key=lambda each: (each[0].number, each[1]))
        for of, machine, cost, is_direct in begun:
            run = self.find_run(of, machine)
            if run is None:
                run = TwinRun(of, machine, cost - self.migration, is_direct and of.is_single)
                self.runs.append(run)
            run.tasks += 1

    def leave(self, task: TwinTask) -> None:
        self.touched.add(task.machine)
        assert task.of is not None
        if self.reschedules:
            run = self.find_run(task.of, task.machine)
            assert run is not None
            run.tasks -= 1
        task.machine = NOWHERE

    def stop(self, numbers: Sequence[int], now: int) -> None:
        for number in numbers:
            task = self.task(number)
            if task is not None and task.state == RUNNING:
                self.leave(task)
                self.wait(task, now)

    def end(self, numbers: Sequence[int], state: int) -> list[int]:
        """Those in this state are over; the jobs that are over with them."""
        over, empty = [], []
        for number in numbers:
            task = self.task(number)
            if task is None or task.state != state:
                continue
            if state == RUNNING:
                self.leave(task)
            task.state = GONE
            assert task.of is not None
            if not self.members(task.of, PENDING, RUNNING):
                empty.append(task.of)
            if self.jobs[job_of(number)].living == 0:
                over.append(job_of(number))
        if empty:
            self.forget_runs()
        for of in sorted(empty, key=lambda each: each.number):
            self.classes.remove(of)
            self.free_numbers.append(of.number)
        for job in over:
            del self.jobs[job]
        return sorted(over)

    def forget_runs(self) -> None:
        self.runs = [run for run in self.runs if run.tasks]

    def park(self, jobs: Sequence[int], is_parked: bool) -> None:
        for of in self.classes:
            if of.job in jobs:
                of.is_parked = is_parked

    def age(self, now: int, price: int) -> None:
        for job in self.jobs.values():
            seconds = (now - job.since) // 1_000_000
            job.cost = min(COST_LIMIT, price * seconds) if job.waiting else 0

    def grow(self, number: int, tasks: int) -> None:
        job = self.jobs[number]
        more = range(len(job.tasks), tasks)
        job.tasks.extend(TwinTask(task_number(number, index)) for index in more)
