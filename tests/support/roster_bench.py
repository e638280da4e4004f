"""A flow scheduler's roster and its slow twin, driven through the same random calls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from twin_roster import (
    GONE,
    NOWHERE,
    PENDING,
    PLENTY,
    RUNNING,
    TwinClass,
    TwinGroup,
    TwinJob,
    TwinPool,
    TwinRoster,
    TwinTask,
)

from argosy.model.jobs import task_number
from argosy.solvers.flow import FlowNetwork

JOBS, OWNERS, POOLS = 6, 2, 4
SECOND = 1_000_000


def longs(values: Sequence[int]) -> NDArray[np.int64]:
    return np.array(values, np.int64)


class RosterAndTwin:
    def __init__(self, seed: int, *, machines: int = 4) -> None:
        self.random = np.random.default_rng(seed)
        self.dimensions = 1 + self.below(2)
        self.machines = machines
        self.reschedules, self.migration = bool(self.below(2)), self.below(3)
        self.network = FlowNetwork()
        self.sink = self.network.add_vertex()
        self.vertices = self.network.add_vertices([0] * machines)
        self.roster = self.network.roster(
            self.dimensions,
            reschedules=self.reschedules,
            migration=self.migration,
            drains=bool(self.below(2)),
        )
        self.roster.add_machines(self.vertices)
        for _ in range(OWNERS):
            self.roster.add_owner()
        self.twin = TwinRoster(self.dimensions, machines, self.reschedules, self.migration)
        self.now = 0
        #: Arcs of single tasks to machines and to aggregators, by the number of their class.
        self.direct: dict[int, dict[int, int]] = {}
        self.towards: dict[int, dict[int, int]] = {}
        self.requests = [self.request() for _ in range(1 + self.below(3))]
        #: The vertex of each pool, and those of its aggregators.
        self.pool_vertices: dict[int, list[int]] = {}
        for number in range(POOLS):
            self.open_pool(number)

    # Drawing.

    def below(self, bound: int) -> int:
        return int(self.random.integers(bound))

    def request(self) -> list[int]:
        return [self.below(4) for _ in range(self.dimensions)]

    def some(self, numbers: Sequence[int], most: int) -> list[int]:
        count = min(len(numbers), self.below(most + 1))
        return [int(n) for n in self.random.choice(longs(numbers), count, replace=False)]

    def numbers(self, *states: int) -> list[int]:
        return [task.number for task in self.twin.living() if task.state in states]

    def rows(self, numbers: Sequence[int]) -> NDArray[np.int64]:
        return self.roster.rows(longs(numbers))

    def any_tasks(self, most: int) -> list[int]:
        """Tasks of any state, and some that there are not."""
        known = [task.number for job in self.twin.jobs.values() for task in job.tasks]
        return self.some([*known, task_number(JOBS, 0), task_number(0, 99), -1], most)

    # What is done.

    def open_pool(self, number: int) -> None:
        request = self.requests[self.below(len(self.requests))]
        is_choosy, preempts = bool(self.below(2)), bool(self.below(3))
        vertex = self.network.add_vertex()
        self.pool_vertices[number] = [vertex]
        self.roster.open_pool(number, vertex, longs(request), is_choosy, preempts)
        self.twin.pools[number] = TwinPool(number, request, is_choosy, preempts)

    def submit(self) -> None:
        number = self.below(JOBS)
        if number not in self.twin.jobs:
            tasks, precedence = 1 + self.below(5), self.below(3)
            self.roster.add_job(number, tasks, self.sink, precedence)
            made = [TwinTask(task_number(number, index)) for index in range(tasks)]
            self.twin.jobs[number] = TwinJob(number, precedence, made)
        elif self.below(2):
            tasks = len(self.twin.jobs[number].tasks) + self.below(4) - 1
            if tasks > 0:
                self.roster.grow_job(number, tasks)
                self.twin.grow(number, tasks)
        self.enter(number)

    def enter(self, number: int) -> None:
        known = [task.number for task in self.twin.jobs[number].tasks]
        wanted = known if self.below(2) else self.some(known, len(known))
        wanted = [*wanted, *self.some(wanted, 1), *self.some([-1, known[-1] + 1], 1)]
        rows = self.roster.enter(longs(wanted), self.now)
        fresh = self.twin.enter(wanted, self.now)
        assert rows.tolist() == self.rows(fresh).tolist()
        groups: list[list[int]] = [[], []]
        for task in fresh:
            groups[self.below(2)].append(task)
        made = [self.group(number, tasks) for tasks in groups if tasks]
        if made:
            self.add_classes(made)

    def group(self, job: int, tasks: list[int]) -> TwinGroup:
        costs = [10 + self.below(20) for _ in tasks]
        terms = self.below(POOLS), job % OWNERS, self.below(9), 100 + self.below(200)
        return TwinGroup(job, *terms, tasks, costs, not self.below(3))

    def add_classes(self, groups: list[TwinGroup]) -> None:
        preemption = 50 * self.below(2)
        numbers = self.roster.add_classes(
            longs([group.job for group in groups]),
            longs([group.pool for group in groups]),
            longs([group.owner for group in groups]),
            longs([group.shape for group in groups]),
            longs([group.waiting for group in groups]),
            longs([len(group.tasks) for group in groups]),
            np.array([group.is_each for group in groups]),
            self.rows([task for group in groups for task in group.tasks]),
            longs([cost for group in groups for cost in group.costs]),
            preemption,
            self.now,
        )
        assert numbers.tolist() == self.twin.add_classes(groups, preemption, self.now)
        for number in set(numbers.tolist()):
            self.direct[number], self.towards[number] = {}, {}
            [of] = [each for each in self.twin.classes if each.number == number]
            if of.is_single and self.below(3) == 0:
                self.prefer(of)

    def prefer(self, of: TwinClass) -> None:
        machine, cost = self.below(self.machines), self.below(30)
        vertex = int(self.roster.classes("vertex")[of.number])
        arc = self.network.add_arc(vertex, int(self.vertices[machine]), 1, cost)
        self.direct[of.number][machine] = arc

    def start(self, numbers: Sequence[int], machines: Sequence[int], costs: Sequence[int]) -> None:
        rows = []
        for number, machine, cost in zip(numbers, machines, costs, strict=True):
            task = self.twin.task(number)
            assert task is not None
            assert task.of is not None
            rows.append((number, machine, cost, machine in self.direct[task.of.number]))
        self.roster.start(self.rows(numbers), longs(machines), longs(costs), self.now)
        self.twin.start(rows)

    def start_some(self) -> None:
        # Those that run already stay where they are.
        numbers = self.some(self.numbers(PENDING, RUNNING), 4)
        machines = [self.below(self.machines) for _ in numbers]
        self.start(numbers, machines, [self.below(50) for _ in numbers])

    def stop_some(self) -> None:
        self.stop(self.some(self.numbers(PENDING, RUNNING), 3))

    def stop(self, numbers: Sequence[int]) -> None:
        self.roster.stop(self.rows(numbers), self.now)
        self.twin.stop(numbers, self.now)

    def finish(self) -> None:
        numbers = self.any_tasks(3)
        assert self.roster.finish(longs(numbers)) == self.twin.end(numbers, RUNNING)

    def drop(self) -> None:
        numbers = self.any_tasks(3)
        assert self.roster.drop(longs(numbers)) == self.twin.end(numbers, PENDING)

    def park(self) -> None:
        jobs, is_parked = self.some(range(JOBS), 3), bool(self.below(2))
        self.roster.park(longs(jobs), is_parked)
        self.twin.park(jobs, is_parked)

    def age(self) -> None:
        self.now += self.below(2_500_000)
        price = (0, 3, 1_000, 2**40)[self.below(4)]
        self.roster.age(self.now, price)
        self.twin.age(self.now, price)

    def add_machine(self) -> None:
        new = self.network.add_vertices([0])
        self.vertices = np.append(self.vertices, new)
        self.roster.add_machines(new)
        self.machines += 1
        self.twin.machines += 1

    def reopen(self) -> None:
        """A pool without tasks makes way for another one of its number."""
        number = self.below(POOLS)
        if self.twin.of_pool(number, PENDING, RUNNING):
            return
        self.network.remove_vertices(self.pool_vertices[number])
        self.roster.close_pool(number)
        self.open_pool(number)

    def widen(self) -> None:
        """A resource comes, of which some pools ask for something; some go to all machines now."""
        self.dimensions += 1
        self.requests = [[*request, self.below(4)] for request in self.requests]
        for pool in self.twin.pools.values():
            runs = bool(self.twin.of_pool(pool.number, RUNNING))
            pool.request = [*pool.request, 0 if runs else self.below(4)]
            pool.is_choosy = pool.is_choosy and bool(self.below(2))
        self.twin.dimensions = self.dimensions
        pools = [self.twin.pools[number] for number in range(POOLS)]
        requests = np.array([*(pool.request for pool in pools), [0] * self.dimensions], np.int64)
        self.roster.widen(requests, np.array([*(pool.is_choosy for pool in pools), False]))

    def sync(self) -> None:
        self.roster.sync()
        self.twin.forget_runs()
        self.compare_network()

    def step(self) -> None:
        actions = [self.submit, self.submit, self.start_some] * 2
        actions += [
            self.finish,
            self.stop_some,
            self.drop,
            self.park,
            self.age,
            self.sync,
            self.reopen,
        ]
        if self.machines < 8:
            actions.append(self.add_machine)
        if self.dimensions < 4:
            actions.append(self.widen)
        actions[self.below(len(actions))]()
        self.now += self.below(1_500_000)

    # What comes of it.

    def compare(self) -> None:
        roster, twin = self.roster, self.twin
        for job in range(JOBS):
            if job in twin.jobs:
                of = twin.jobs[job]
                assert roster.job(job)[2:] == (of.cost, of.living, of.waiting)
        assert roster.waiting_jobs == sum(job.waiting > 0 for job in twin.jobs.values())
        assert roster.own().tolist() == twin.own().tolist()
        assert roster.own_tasks().tolist() == twin.own_tasks()
        pools = range(POOLS)
        tasks = [len(twin.of_pool(pool, PENDING, RUNNING)) for pool in pools]
        assert roster.pool_tasks().tolist() == tasks
        where = [[t.machine for t in twin.of_pool(pool, RUNNING)] for pool in pools]
        counts = [[row.count(machine) for machine in range(self.machines)] for row in where]
        assert roster.running(longs(pools)).tolist() == counts
        owned = [[t for t in twin.living() if t.of and t.of.owner == o] for o in range(OWNERS)]
        assert roster.owner_tasks().tolist() == [len(tasks) for tasks in owned]
        nothing = [0] * self.dimensions
        asked = [sum((longs(twin.request(t)) for t in each), longs(nothing)) for each in owned]
        assert roster.demands().tolist() == [each.tolist() for each in asked]
        self.compare_tasks()
        self.compare_waiting()

    def compare_tasks(self) -> None:
        twin = self.twin
        known = [task for job in twin.jobs.values() for task in job.tasks]
        rows = self.rows([task.number for task in known])
        for name in ("number", "state", "machine"):
            column = self.roster.tasks(name)[rows].tolist()
            assert column == [getattr(task, name) for task in known], name
        living = [task for task in known if task.state != GONE]
        rows = self.rows([task.number for task in living])
        of = [task.of for task in living if task.of is not None]
        assert self.roster.tasks("task_class")[rows].tolist() == [each.number for each in of]
        numbers, shapes = self.roster.named(rows)
        assert numbers.tolist() == [task.number for task in living]
        assert shapes.tolist() == [each.shape for each in of]
        for each in twin.classes:
            seen = {name: int(self.roster.classes(name)[each.number]) for name in CLASS_COLUMNS}
            assert seen == {
                **{name: getattr(each, name) for name in CLASS_COLUMNS[:6]},
                "pending": len(twin.members(each, PENDING)),
                "running": len(twin.members(each, RUNNING)),
                "parked": each.is_parked,
            }
        unknown = longs([-1, task_number(JOBS, 0)])
        assert self.roster.rows(unknown).tolist() == [-1, -1]

    def compare_waiting(self) -> None:
        placed = self.some(self.numbers(PENDING, RUNNING), 3)
        classes, begins, rows = self.roster.waiting(self.rows(placed))
        expected = {
            of.number: [t.number for t in self.twin.members(of, PENDING) if t.number not in placed]
            for of in sorted(self.twin.classes, key=lambda each: each.number)
        }
        expected = {number: tasks for number, tasks in expected.items() if tasks}
        parts = np.split(rows, begins[1:]) if begins else []
        found = [self.roster.tasks("number")[part].tolist() for part in parts]
        assert dict(zip(classes, found, strict=True)) == expected
        assert classes == list(expected)

    def compare_network(self) -> None:
        network, twin = self.network, self.twin
        columns = {name: self.roster.classes(name) for name in ("vertex", "pool_arc", "wait_arc")}
        for of in twin.classes:
            vertex, pool_arc, wait_arc = (int(column[of.number]) for column in columns.values())
            assert network.supplies([vertex]).tolist() == [twin.units(of)]
            room = 1 if of.is_single else twin.units(of)
            terms = network.capacities([pool_arc])[0], network.costs([pool_arc])[0]
            assert terms == (room, of.pool_cost)
            _, units, costs = network._core.segments(np.array([wait_arc], np.int32))
            segments = list(zip(units.tolist(), costs.tolist(), strict=True))
            assert segments == twin.waiting_segments(of)
            job_vertex, job_arc, *_ = self.roster.job(of.job)
            assert network.heads([wait_arc, job_arc]).tolist() == [job_vertex, self.sink]
            assert network.capacities([job_arc])[0] == PLENTY
            assert network.costs([job_arc])[0] == twin.jobs[of.job].cost
        self.compare_runs()

    def compare_runs(self) -> None:
        network, twin = self.network, self.twin
        for run in twin.runs:
            row = self.roster.run_of(run.of.number, run.machine)
            arc = int(self.roster.runs("arc")[row])
            vertex = int(self.roster.classes("vertex")[run.of.number])
            assert network.tails([arc]).tolist() == [vertex]
            assert network.heads([arc]).tolist() == [self.vertices[run.machine]]
            assert network.capacities([arc])[0] == run.tasks == self.roster.runs("count")[row]
            assert network.costs([arc])[0] == run.cost + run.onward
            assert network._core.steps(np.array([arc], np.int32))[0] == (
                run.step if run.tasks > 1 else 0
            )
            assert self.roster.runs("is_direct")[row] == run.is_direct
        there = {(run.of.number, run.machine) for run in twin.runs}
        for of in twin.classes:
            for machine in range(self.machines):
                is_known = self.roster.run_of(of.number, machine) != NOWHERE
                assert is_known == ((of.number, machine) in there)


CLASS_COLUMNS = (
    "job", "pool", "owner", "pool_cost", "wait_cost", "preemption", "pending", "running", "parked",
)  # fmt: skip
