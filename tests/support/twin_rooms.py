"""The slow twin of the rooms on machines: all are counted anew, from nothing kept but who is barred."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from twin_roster import PENDING, RUNNING, TwinPool, TwinRoster

Numbers = NDArray[np.int64]


class Standing(msgspec.Struct):
    """What is free by machine and dimension, who accepts tasks, and where each pool's may go."""

    free: Numbers
    usable: NDArray[np.bool_]
    allowed: NDArray[np.bool_]


class TwinRooms:
    def __init__(self, roster: TwinRoster, slots: int) -> None:
        self.roster, self.slots = roster, slots
        self.plenty = 64
        #: By machine, the pools and precedences that were not admitted.
        self.bars: list[list[tuple[TwinPool, int]]] = [[] for _ in range(roster.machines)]
        #: Machines at which bars came or went since the last look.
        self.barred: set[int] = set()
        self.before: Standing | None = None

    def bar(self, pool: int, machine: int, precedence: int) -> None:
        self.bars[machine].append((self.roster.pools[pool], precedence))
        self.barred.add(machine)

    def unbar(self) -> None:
        self.barred |= {machine for machine, bars in enumerate(self.bars) if bars}
        self.bars = [[] for _ in self.bars]

    def changed(self, now: Standing) -> set[int]:
        """Machines that are not what they were at the last look, where nobody is barred any more."""
        changed, self.roster.touched = self.roster.touched, set()
        for machine in range(self.roster.machines):
            if (
                self.before is None
                or machine >= len(self.before.usable)
                or self.before.usable[machine] != now.usable[machine]
                or self.before.free[machine].tolist() != now.free[machine].tolist()
            ):
                changed.add(machine)
        for machine in changed:
            self.bars[machine] = []
        self.before = Standing(now.free.copy(), now.usable.copy(), now.allowed.copy())
        changed, self.barred = changed | self.barred, set()
        return changed

    def pools(self, *states: int) -> list[TwinPool]:
        """Those with tasks in one of these states, in order of their numbers."""
        of = {task.of.pool for task in self.roster.living() if task.of and task.state in states}
        return [self.roster.pools[number] for number in sorted(of)]

    def count(self, now: Standing) -> tuple[Numbers, Numbers]:
        """How many tasks of each pool may go to each machine, and how many through each."""
        living = self.pools(PENDING, RUNNING)
        while self.plenty < len(self.roster.living()):
            self.plenty *= 2
        rooms = np.zeros((len(living), self.roster.machines), np.int64)
        through = np.zeros(self.roster.machines, np.int64)
        for machine in range(self.roster.machines):
            counted, all_ = self.at(now, machine, living)
            rooms[:, machine], through[machine] = counted, all_
        return rooms, through

    def at(self, now: Standing, machine: int, living: list[TwinPool]) -> tuple[list[int], int]:
        roster = self.roster
        if not living:
            return [], 0
        own = len(roster.on(machine))
        if all(pool.request == living[0].request for pool in living):
            counted, all_ = self.slots_at(now, machine, living)
        else:
            counted, all_ = self.exchanges_at(now, machine, living)
        most = self.plenty
        if self.slots:
            most = self.slots if roster.reschedules else max(0, self.slots - own)
            polite = max(0, self.slots - own)
            counted = [
                min(room, most if pool.preempts else polite)
                for room, pool in zip(counted, living, strict=True)
            ]
        is_open = [bool(now.usable[machine] and now.allowed[p.number, machine]) for p in living]
        counted = [min(n, most) if is_in else 0 for n, is_in in zip(counted, is_open, strict=True)]
        all_ = min(all_, most)
        return counted, max(all_, own) if roster.reschedules else all_

    def slots_at(
        self, now: Standing, machine: int, living: list[TwinPool]
    ) -> tuple[list[int], int]:
        """All ask for the same."""
        if not now.usable[machine]:
            return [0] * len(living), 0
        free, held = now.free[machine].tolist(), self.roster.own()[machine].tolist()
        alone = self.fitting(living[0].request, free)
        if not self.roster.reschedules:
            held = [0] * len(held)
        whole = self.fitting(living[0].request, [a + b for a, b in zip(free, held, strict=True)])
        return [whole if pool.preempts else alone for pool in living], whole

    def exchanges_at(
        self, now: Standing, machine: int, living: list[TwinPool]
    ) -> tuple[list[int], int]:
        free = now.free[machine].tolist()
        fits = [
            self.fitting(pool.request, free)
            if now.usable[machine] and now.allowed[pool.number, machine]
            else 0
            for pool in living
        ]
        waiting = self.pools(PENDING)
        # Where nobody waits, all count.
        asking = [n for n, pool in zip(fits, living, strict=True) if not waiting or pool in waiting]
        spare = max(asking)
        counted = fits
        if spare == 0:
            counted = [
                self.swaps(pool, machine) if pool in waiting and pool.preempts else 0
                for pool in living
            ]
        counted = [
            0 if self.is_barred(pool, machine) else room
            for room, pool in zip(counted, living, strict=True)
        ]
        own = len(self.roster.on(machine)) if self.roster.reschedules else 0
        return counted, min(self.plenty, spare + own)

    def is_barred(self, pool: TwinPool, machine: int) -> bool:
        barred = [precedence for each, precedence in self.bars[machine] if each is pool]
        return bool(barred) and max(barred) >= max(pool.precedences)

    def swaps(self, pool: TwinPool, machine: int) -> int:
        """Tasks on the machine that are as large, if one of them may make way or all are."""
        there = self.roster.on(machine)
        as_large = [task for task in there if is_within(pool.request, self.roster.request(task))]
        lowest = [min(self.roster.pools[t.of.pool].precedences) for t in as_large if t.of]
        may_help = pool.is_choosy or any(low < max(pool.precedences) for low in lowest)
        return len(as_large) if may_help or len(as_large) == len(there) else 0

    def has_room(self, machines: Sequence[int], now: Standing) -> bool:
        """Whether one of these machines has room for a task that waits, or is not known."""
        return any(
            machine >= self.roster.machines
            or (
                now.allowed[pool.number, machine]
                and is_within(pool.request, now.free[machine].tolist())
            )
            for pool in self.pools(PENDING)
            for machine in machines
        )

    def fitting(self, request: Sequence[int], free: Sequence[int]) -> int:
        counts = [have // ask for ask, have in zip(request, free, strict=True) if ask]
        return max(0, min([self.plenty, *counts]))


def is_within(small: Iterable[int], large: Iterable[int]) -> bool:
    return all(a <= b for a, b in zip(small, large, strict=True))
