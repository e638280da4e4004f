"""What the flow of a roster's network means: who goes where, and who leaves. A slow reading of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
from twin_roster import PENDING, RUNNING, TwinClass, TwinRoster, TwinTask

#: A machine and the cost of the first arc of the way there.
Arrival = tuple[int, int]


class PoolFlow(msgspec.Struct):
    """What a pool sends: units to machines by vertex (-1: itself, then its aggregators), and units over
    its links, which lead from one vertex to another of a higher number."""

    sent: Mapping[int, Sequence[int]]
    links: Sequence[tuple[int, int, int]]


class ClassFlow(msgspec.Struct):
    """Units that leave a class: those that wait, those on runs by machine, directly to machines and to
    aggregators with what that costs, and through the pool."""

    waiting: int
    runs: Mapping[int, int]
    direct: Sequence[Arrival]
    to_aggregators: Sequence[tuple[int, int, int]]
    to_pool: int


class TwinPlacements:
    def __init__(
        self,
        roster: TwinRoster,
        flow_of: Callable[[TwinClass], ClassFlow],
        pool_flow: Callable[[int], PoolFlow],
    ) -> None:
        self.roster = roster
        self.placed: list[tuple[int, int, int]] = []
        self.leaving: list[int] = []
        classes = sorted(roster.classes, key=lambda each: each.number)
        self.flows = {of.number: flow_of(of) for of in classes}
        going = {of.number: self.going(of) for of in classes}
        active = [of for of in classes if going[of.number] or self.gets_machines(of)]
        arrivals = {of.number: list(self.flows[of.number].direct) for of in active}
        for pool in sorted({of.pool for of in active}):
            self.share_out([of for of in active if of.pool == pool], pool_flow(pool), arrivals)
        # A single task that gets a machine needs no more thought.
        plain = [
            of
            for of in active
            if of.is_single and len(arrivals[of.number]) == 1 and not going[of.number]
        ]
        for of in [*plain, *(of for of in active if of not in plain)]:
            self.place(of, going[of.number], arrivals[of.number])

    def going(self, of: TwinClass) -> list[TwinTask]:
        """Running tasks that the flow does not keep: of those on a machine, the last."""
        found: list[TwinTask] = []
        for machine, units in self.flows[of.number].runs.items():
            there = [t for t in self.roster.members(of, RUNNING) if t.machine == machine]
            found += there[units:]
        return found

    def gets_machines(self, of: TwinClass) -> bool:
        waits = 0 if of.is_parked else len(self.roster.members(of, PENDING))
        return self.flows[of.number].waiting < waits

    def share_out(
        self, classes: Sequence[TwinClass], flow: PoolFlow, arrivals: dict[int, list[Arrival]]
    ) -> None:
        """From the machines back: each aggregator gives what reached it to the classes that went to it
        themselves, then to who stands above."""
        reached = {vertex: list(machines) for vertex, machines in flow.sent.items()}
        for aggregator in sorted((v for v in reached if v >= 0), reverse=True):
            here = sorted(reached[aggregator])
            for of in classes:
                for to, units, cost in self.flows[of.number].to_aggregators:
                    if to == aggregator:
                        arrivals[of.number] += [(here.pop(0), cost) for _ in range(units)]
            for above, to, units in flow.links:
                if to == aggregator:
                    reached[above] += here[:units]
                    del here[:units]
        here = sorted(reached[-1])
        for of in classes:
            units = self.flows[of.number].to_pool
            arrivals[of.number] += [(here.pop(0), of.pool_cost) for _ in range(units)]

    def place(self, of: TwinClass, going: list[TwinTask], arrivals: list[Arrival]) -> None:
        left: list[Arrival] = []
        for machine, cost in arrivals:
            # Who would leave a machine and come back to it stays.
            same = [task for task in going if task.machine == machine]
            if same:
                going.remove(same[0])
            else:
                left.append((machine, cost))
        moving, going = going[: len(left)], going[len(left) :]
        self.leaving += [task.number for task in going]
        coming = [*moving, *self.roster.members(of, PENDING)]
        for task, (machine, cost) in zip(coming, left, strict=False):
            self.placed.append((task.number, machine, cost))
