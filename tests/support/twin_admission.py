"""The slow twin of admission: which of the flow's placements are committed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from twin_rooms import is_within
from twin_roster import NOWHERE, RUNNING, TwinRoster, TwinTask

Amounts = list[int]


class Arrival(msgspec.Struct, eq=False):
    task: TwinTask
    machine: int
    cost: int
    is_in: bool = True

    @property
    def origin(self) -> int:
        return self.task.machine


class Site(msgspec.Struct, eq=False):
    """A machine that tasks come to or leave."""

    machine: int
    arriving: list[Arrival]
    departing: list[Arrival]
    leaving: list[TwinTask]
    left: Amounts
    evicted: list[TwinTask] = msgspec.field(default_factory=list)
    is_contested: bool = False
    is_sorted: bool = False
    has_refused: bool = False


class TwinAdmission:
    def __init__(
        self,
        roster: TwinRoster,
        free: Sequence[Amounts],
        usable: Sequence[bool],
        moves: int,
        row_of: Callable[[int], int],
    ) -> None:
        self.roster, self.free, self.usable = roster, free, usable
        self.allowance, self.row_of = moves, row_of
        self.is_cut = False
        #: Pools, machines and precedences that were not admitted.
        self.refused: list[tuple[int, int, int]] = []

    def run(self, wanted: Sequence[tuple[int, int, int]], leaving: Sequence[int]) -> None:
        """Tasks, machines and costs; and tasks that only lose their machine."""
        found = [Arrival(self.task(number), to, cost) for number, to, cost in wanted]
        self.arrivals = [arrival for arrival in found if self.usable[arrival.machine]]
        self.leaving = [self.task(number) for number in leaving]
        self.cut()
        self.sites = {machine: self.site(machine) for machine in self.machines()}
        self.short = [m for m, site in self.sites.items() if site.is_contested or lacks(site.left)]
        # Whoever stays makes another machine short.
        for machine in self.short:
            self.sort_out(self.sites[machine])
        for site in self.sites.values():
            if site.has_refused:
                self.stay(site)

    def task(self, number: int) -> TwinTask:
        task = self.roster.task(number)
        assert task is not None
        return task

    def cut(self) -> None:
        """The limit on moves is used by those that leave first, then by moves in order."""
        moving = [arrival for arrival in self.arrivals if arrival.origin != NOWHERE]
        if len(moving) + len(self.leaving) <= self.allowance:
            self.allowance -= len(moving) + len(self.leaving)
            return
        self.is_cut = True
        self.leaving = self.leaving[: self.allowance]
        kept = moving[: self.allowance - len(self.leaving)]
        self.arrivals = [a for a in self.arrivals if a in kept or a.origin == NOWHERE]
        self.allowance = 0

    def machines(self) -> list[int]:
        named = {task.machine for task in self.leaving}
        named |= {arrival.machine for arrival in self.arrivals}
        return sorted(named | {a.origin for a in self.arrivals if a.origin != NOWHERE})

    def site(self, machine: int) -> Site:
        arriving = [a for a in self.arrivals if a.machine == machine]
        departing = [a for a in self.arrivals if a.origin == machine]
        leaving = [task for task in self.leaving if task.machine == machine]
        left = list(self.free[machine])
        for task in (*leaving, *(a.task for a in departing)):
            left = plus(left, self.request(task))
        for arrival in arriving:
            left = minus(left, self.request(arrival.task))
        made = Site(machine, arriving, departing, leaving, left)
        made.is_contested = bool(leaving) and any(not self.preempts(a.task) for a in arriving)
        return made

    def request(self, task: TwinTask) -> Amounts:
        return self.roster.request(task)

    def preempts(self, task: TwinTask) -> bool:
        assert task.of is not None
        return self.roster.pools[task.of.pool].preempts

    def sort_out(self, site: Site) -> None:
        """Those of the highest precedence come first; nobody leaves but for somebody who comes."""
        if not site.is_contested and not lacks(site.left):
            return
        site.is_contested, site.is_sorted = False, True
        self.allowance += sum(task not in site.leaving for task in site.evicted)
        site.evicted = []
        site.left = list(self.free[site.machine])
        for arrival in site.departing:
            if arrival.is_in:
                site.left = plus(site.left, self.request(arrival.task))
        coming = [arrival for arrival in site.arriving if arrival.is_in]
        coming.sort(key=lambda each: -self.roster.precedence(each.task))
        for arrival in coming:
            if not self.let_in(site, arrival.task):
                self.refuse(site, arrival)

    def let_in(self, site: Site, task: TwinTask) -> bool:
        asked = self.request(task)
        if not is_within(asked, site.left) and not self.preempts(task):
            return False
        after, needed = site.left, list[TwinTask]()
        others = 0
        for victim in self.victims(site, self.roster.precedence(task)):
            is_other = victim not in site.leaving
            if is_within(asked, after) or (is_other and others == self.allowance):
                break
            after = plus(after, self.request(victim))
            needed.append(victim)
            others += is_other
        if not is_within(asked, after):
            return False
        site.evicted += needed
        self.allowance -= others
        site.left = minus(after, asked)
        return True

    def victims(self, site: Site, below: int) -> list[TwinTask]:
        """Those that the flow gave up; then others of lower precedence, of equals the youngest."""
        given_up = [task for task in site.leaving if task not in site.evicted]
        if not self.roster.reschedules:
            return given_up
        staying = [
            task
            for task in self.roster.living()
            if task.state == RUNNING
            and task.machine == site.machine
            and self.roster.precedence(task) < below
            and task not in [arrival.task for arrival in site.departing if arrival.is_in]
            and task not in (*site.evicted, *site.leaving)
        ]
        staying.sort(key=lambda t: (self.roster.precedence(t), -self.row_of(t.number)))
        return given_up + staying

    def refuse(self, site: Site, arrival: Arrival) -> None:
        arrival.is_in = False
        site.has_refused = True
        task = arrival.task
        assert task.of is not None
        self.refused.append((task.of.pool, site.machine, self.roster.precedence(task)))
        if arrival.origin == NOWHERE:
            return
        self.allowance += 1
        home = self.sites[arrival.origin]
        home.left = minus(home.left, self.request(task))
        if lacks(home.left):
            self.short.append(home.machine)

    def stay(self, site: Site) -> None:
        """A move that made room for those that were refused is not made, if its task still fits."""
        for arrival in site.departing:
            asked = self.request(arrival.task)
            if arrival.is_in and is_within(asked, site.left):
                arrival.is_in = False
                site.left = minus(site.left, asked)
                there = self.sites[arrival.machine]
                there.left = plus(there.left, asked)

    # What comes of it.

    @property
    def placed(self) -> list[tuple[int, int, int]]:
        return [(a.task.number, a.machine, a.cost) for a in self.arrivals if a.is_in]

    @property
    def preempted(self) -> list[int]:
        given_up = [t.number for t in self.leaving if not self.sites[t.machine].is_sorted]
        return given_up + [t.number for site in self.sites.values() for t in site.evicted]

    @property
    def early(self) -> list[int]:
        """Moving tasks from machines that have no room before they are gone, by row."""
        found: list[int] = []
        for site in self.sites.values():
            moving = [arrival.task for arrival in site.departing if arrival.is_in]
            before = site.left
            for task in moving:
                before = minus(before, self.request(task))
            if lacks(before):
                found += [task.number for task in moving]
        return sorted(found, key=self.row_of)


def plus(left: Amounts, amounts: Amounts) -> Amounts:
    return [a + b for a, b in zip(left, amounts, strict=True)]


def minus(left: Amounts, amounts: Amounts) -> Amounts:
    return [a - b for a, b in zip(left, amounts, strict=True)]


def lacks(left: Amounts) -> bool:
    return any(amount < 0 for amount in left)
