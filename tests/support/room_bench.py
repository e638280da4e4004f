"""Rooms, placements and admission of a flow scheduler beside their slow twins, for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from roster_bench import POOLS, RosterAndTwin, longs
from twin_admission import TwinAdmission
from twin_placements import ClassFlow, PoolFlow, TwinPlacements
from twin_rooms import Standing, TwinRooms, is_within
from twin_roster import PENDING, RUNNING, TwinClass, TwinPool

from argosy.solvers.flow import Rooms

NO_ARC = -1
Plan = tuple[list[tuple[int, int, int]], list[int], list[int], bool]


class RoomsAndTwin(RosterAndTwin):
    """Machines that others use as well; own tasks start only where they fit."""

    def __init__(self, seed: int) -> None:
        self.links: dict[int, list[tuple[int, int, int]]] = {}
        self.aggregators = 2 * (seed % 2)
        super().__init__(seed)
        self.slots = (0, 0, 1, 2)[self.below(4)]
        self.rooms, self.twin_rooms = (
            Rooms(self.roster, self.slots),
            TwinRooms(self.twin, self.slots),
        )
        shape = self.machines, self.dimensions
        self.capacity = self.random.integers(0, 9, shape)
        self.foreign = np.zeros(shape, np.int64)
        self.usable = np.ones(self.machines, np.bool_)
        self.allowed = self.random.random((POOLS, self.machines)) < 0.8
        matrix = POOLS, self.machines
        self.arcs = np.full(matrix, NO_ARC, np.int32)
        self.tables = tuple(np.zeros(matrix, np.int64) for _ in range(3))
        self.sink_arcs = self.network.add_arcs(self.vertices, self.sink, 0, 0)
        self.sink_terms = tuple(np.zeros(self.machines, np.int64) for _ in range(3))
        #: The aggregator that leads to each machine, of whatever pool; -1: the pool itself.
        self.above = self.random.integers(-1, self.aggregators, self.machines)
        self.base, self.steps = (
            self.random.integers(1, 60, matrix),
            self.random.integers(0, 3, matrix),
        )
        #: What all steps have in common, which is told in fewer numbers.
        self.alike = ("nothing", "pool", "machine", "all")[seed % 4]
        if self.alike in ("pool", "all"):
            self.steps[:] = self.steps[:, :1]
        if self.alike in ("machine", "all"):
            self.steps[:] = self.steps[:1]
        #: The pools of the last look, and whether the next has to tell of all machines.
        self.seen_pools: list[TwinPool] = []
        self.is_new = True

    def free(self) -> NDArray[np.int64]:
        return np.maximum(0, self.capacity - self.foreign - self.twin.own())

    def open_pool(self, number: int) -> None:
        if number in self.twin.pools:
            self.arcs[number] = NO_ARC
            for table in self.tables:
                table[number] = 0
        super().open_pool(number)
        if not self.aggregators:
            self.links[number] = []
            return
        made = self.network.add_vertices([0] * self.aggregators)
        vertices = [*made.tolist(), self.pool_vertices[number][0]]
        self.pool_vertices[number] += made.tolist()
        froms, tos = longs([-1, 0, -1]), longs([1, 1, 0])
        arcs = self.network.add_arcs(np.array(vertices)[froms], made[tos], 9, [7, 0, 2])
        self.roster.add_aggregators(number, made, froms, tos, arcs)
        self.links[number] = list(zip(froms.tolist(), tos.tolist(), arcs.tolist(), strict=True))

    def add_machine(self) -> None:
        """It is as large as the first."""
        super().add_machine()
        self.sink_arcs = np.append(
            self.sink_arcs, self.network.add_arcs(self.vertices[-1:], self.sink, 0, 0)
        )
        for name in ("capacity", "foreign"):
            rows = getattr(self, name)
            setattr(self, name, np.append(rows, rows[:1], axis=0))
        self.usable, self.above = np.append(self.usable, True), np.append(self.above, self.above[0])
        self.sink_terms = tuple(np.append(terms, 0) for terms in self.sink_terms)
        self.arcs = np.pad(self.arcs, ((0, 0), (0, 1)), constant_values=NO_ARC)
        self.tables = tuple(np.pad(table, ((0, 0), (0, 1))) for table in self.tables)
        for name in ("allowed", "base", "steps"):
            table = getattr(self, name)
            setattr(self, name, np.append(table, table[:, :1], axis=1))
        self.is_new = True
        self.twin_rooms.bars.append([])

    def widen(self) -> None:
        super().widen()
        amounts = self.random.integers(0, 9, (self.machines, 1))
        self.capacity = np.append(self.capacity, amounts, axis=1)
        self.foreign = np.pad(self.foreign, ((0, 0), (0, 1)))
        self.forget()

    def prefer(self, of: TwinClass) -> None:
        if not self.aggregators or self.below(2):
            super().prefer(of)
            return
        aggregator, cost = self.below(self.aggregators), self.below(30)
        vertex = int(self.roster.classes("vertex")[of.number])
        head = self.pool_vertices[of.pool][1 + aggregator]
        self.towards[of.number][aggregator] = self.network.add_arc(vertex, head, 1, cost)

    def start_some(self) -> None:
        for number in self.some(self.numbers(PENDING), 4):
            task = self.twin.task(number)
            assert task is not None
            machine = self.below(self.machines)
            if is_within(self.twin.request(task), self.free()[machine].tolist()):
                self.start([number], [machine], [self.below(50)])

    def disturb(self) -> None:
        """Others come and go, machines drain, and labels change."""
        machine = self.below(self.machines)
        match self.below(4):
            case 0 | 1:
                room = self.capacity - self.twin.own()
                self.foreign[machine] = [
                    self.below(max(0, int(most)) + 1) for most in room[machine]
                ]
            case 2:
                self.usable[machine] = not self.usable[machine]
            case _:
                self.allowed[self.below(POOLS), machine] ^= True
                self.forget()

    def forget(self) -> None:
        self.rooms.forget()
        self.twin_rooms.unbar()
        self.is_new = True

    def unbar(self) -> None:
        self.rooms.unbar()
        self.twin_rooms.unbar()

    def step(self) -> None:
        if self.below(3):
            super().step()
            return
        actions = [self.disturb, self.disturb, self.unbar, self.forget]
        actions[self.below(len(actions))]()

    # Rooms.

    def look(self) -> None:
        """Rooms, and the arcs that have them, are what a recount says; only what changed is told."""
        self.sync()
        now = Standing(self.free(), self.usable, self.allowed)
        told = self.rooms.look(now.free, now.usable, now.allowed)
        pools, machines, changed = (column.tolist() for column in told)
        not_as_before = self.twin_rooms.changed(now)
        plenty = self.twin_rooms.plenty
        rooms, through = self.twin_rooms.count(now)
        living = self.twin_rooms.pools(PENDING, RUNNING)
        assert pools == [pool.number for pool in living]
        counted = self.rooms.counted()
        is_all = self.is_new or plenty != self.twin_rooms.plenty or not living
        is_all = is_all or [id(pool) for pool in living] != [id(pool) for pool in self.seen_pools]
        assert changed == (list(range(self.machines)) if is_all else sorted(not_as_before))
        assert counted.tolist() == rooms[:, machines].tolist()
        self.seen_pools, self.is_new = living, not living
        self.look_for_room(now)
        if not living:
            return
        self.set_arcs(changed)
        self.compare_arcs(pools, rooms, through)

    def look_for_room(self, now: Standing) -> None:
        asked = self.some(range(self.machines + 1), 3)
        free = np.append(now.free, now.free[:1], axis=0)[asked]
        found = self.roster.has_room(np.array(asked, np.int32), free, self.allowed)
        assert found == self.twin_rooms.has_room(asked, now)

    def set_arcs(self, changed: list[int]) -> None:
        pools = [pool.number for pool in self.seen_pools]
        costs = self.base[np.ix_(pools, changed)] + longs(self.twin.own_tasks())[changed]
        steps: NDArray[np.int64] | int
        match self.alike:
            case "pool":
                steps = self.steps[pools, :1]
            case "machine":
                steps = self.steps[0, changed]
            case "all":
                steps = int(self.steps[0, 0])
            case _:
                steps = self.steps[np.ix_(pools, changed)]
        self.rooms.set_pool_arcs(costs, steps, self.above, self.arcs, *self.tables)
        self.rooms.set_sink_arcs(0, 0, self.sink_arcs, *self.sink_terms)
        for machine in changed:
            self.price_runs(machine)

    def price_runs(self, machine: int) -> None:
        """The last to come costs least: it is as if it had just been placed."""
        later: dict[int, int] = {}
        own = self.twin.own_tasks()[machine]
        for run in reversed([run for run in self.twin.runs if run.machine == machine]):
            pool = run.of.pool
            step = int(self.steps[pool, machine])
            later[pool] = later.get(pool, 0) + step * run.tasks
            through = int(self.base[pool, machine]) + own - sum(later.values())
            run.onward, run.step = (0, 0) if run.is_direct else (through, step)

    def compare_arcs(
        self, pools: list[int], rooms: NDArray[np.int64], through: NDArray[np.int64]
    ) -> None:
        network = self.network
        for number, row in zip(pools, rooms, strict=True):
            there = np.flatnonzero(self.arcs[number] != NO_ARC)
            assert not row[self.arcs[number] == NO_ARC].any()
            arcs = self.arcs[number][there]
            assert network.capacities(arcs).tolist() == row[there].tolist()
            used = there[row[there] > 0]
            arcs = self.arcs[number][used]
            costs = self.base[number, used] + longs(self.twin.own_tasks())[used]
            assert network.costs(arcs).tolist() == costs.tolist()
            assert network._core.steps(arcs).tolist() == self.steps[number, used].tolist()
        assert network.capacities(self.sink_arcs).tolist() == through.tolist()
        self.compare_runs()

    # Placements.

    def round(self) -> None:
        """One round: what the flow wants, as far as it is admitted, is done."""
        self.look()
        if not self.seen_pools:
            return
        self.network.balance(self.sink)
        assert self.network.solve().is_optimal
        rows, machines, costs, leaving = self.roster.extract()
        number = self.roster.tasks("number")
        wanted = list(zip(number[rows].tolist(), machines.tolist(), costs.tolist(), strict=True))
        twin = TwinPlacements(self.twin, self.class_flow, self.pool_flow)
        assert wanted == twin.placed
        assert number[leaving].tolist() == twin.leaving
        placed, preempted, _, _ = self.admit(wanted, twin.leaving, (1_000, 1_000, 2)[self.below(3)])
        self.stop([*preempted, *(task for task, _, _ in placed)])
        if placed:
            self.start(*zip(*placed, strict=True))

    def class_flow(self, of: TwinClass) -> ClassFlow:
        flow, column = self.network.flow, self.roster.classes
        runs = [run for run in self.twin.runs if run.of is of]
        runs.sort(key=lambda run: self.roster.run_of(of.number, run.machine))
        arc_of = {run.machine: self.run_arc(of, run.machine) for run in runs}
        direct = self.direct[of.number].items()
        towards = self.towards[of.number].items()
        return ClassFlow(
            flow(int(column("wait_arc")[of.number])),
            {machine: flow(arc) for machine, arc in arc_of.items()},
            [(m, int(self.network.costs([arc])[0])) for m, arc in direct if flow(arc)],
            [(to, flow(arc), int(self.network.costs([arc])[0])) for to, arc in towards],
            flow(int(column("pool_arc")[of.number])),
        )

    def run_arc(self, of: TwinClass, machine: int) -> int:
        return int(self.roster.runs("arc")[self.roster.run_of(of.number, machine)])

    def pool_flow(self, number: int) -> PoolFlow:
        sent: dict[int, list[int]] = {v: [] for v in range(-1, self.aggregators)}
        for machine, arc in enumerate(self.arcs[number].tolist()):
            if arc != NO_ARC:
                sent[int(self.above[machine])] += [machine] * self.network.flow(arc)
        links = [(a, b, self.network.flow(arc)) for a, b, arc in self.links[number]]
        return PoolFlow(sent, links)

    # Admission.

    def admit_anything(self) -> None:
        """Placements that no flow would ask for are admitted as the twin admits them."""
        numbers = self.some(self.numbers(PENDING, RUNNING), 10)
        if not self.reschedules:
            numbers = [n for n in numbers if n in self.numbers(PENDING)]
        wanted, leaving = [], []
        for number in numbers:
            task = self.twin.task(number)
            assert task is not None
            to = self.below(self.machines) if self.below(2) else self.below(2)
            if task.state == RUNNING and (to == task.machine or self.below(2)):
                leaving.append(number)
            else:
                wanted.append((number, to, self.below(50)))
        self.admit(wanted, leaving, (0, 1, 2, 3, 1_000, 1_000)[self.below(6)])

    def admit(
        self, wanted: Sequence[tuple[int, int, int]], leaving: Sequence[int], moves: int
    ) -> Plan:
        columns = list(zip(*wanted, strict=True)) if wanted else [(), (), ()]
        free = self.free()
        rows, machines, costs, out, early, is_cut = self.roster.admit(
            self.rooms,
            self.rows(columns[0]),
            longs(columns[1]),
            longs(columns[2]),
            self.rows(leaving),
            free,
            self.usable,
            moves,
        )
        twin = TwinAdmission(
            self.twin,
            free.tolist(),
            self.usable.tolist(),
            moves,
            lambda number: int(self.rows([number])[0]),
        )
        twin.run(wanted, leaving)
        number = self.roster.tasks("number")
        placed = zip(number[rows].tolist(), machines.tolist(), costs.tolist(), strict=True)
        plan = list(placed), number[out].tolist(), number[early].tolist(), is_cut
        assert plan == (twin.placed, twin.preempted, twin.early, twin.is_cut)
        for pool, machine, precedence in twin.refused:
            self.twin_rooms.bar(pool, machine, precedence)
        return plan
