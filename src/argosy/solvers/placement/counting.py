"""What a tag constraint in one node set adds to the integer program.

Let g be the count there:

* Nothing new is counted: g is a constant, and so is the cost of each subject. No row.
* The subjects are what is counted (the usual limit or gathering of one kind of container): the cost is
  a function of one number t, the new containers. If it is convex, as for limits, it is made of steps
  with rising slopes and needs no integer variable; otherwise one binary variable a value chooses t. No
  big M in either case.
* Otherwise thresholds: a binary variable says that g has reached a number, and each step of the extent
  costs as many as there are subjects, unless the variable allows it not to. This needs the largest
  possible number of subjects in the set as a big M, which is small: what fits there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np

from argosy.model.constraints.meaning import distance
from argosy.solvers.placement.derived_values import beyond, equals, pays, reaches
from argosy.solvers.placement.program import Program


class Subjects(msgspec.Struct, frozen=True):
    """New and running subjects of a tag constraint in one set. With `own`, each subject is itself
    counted, so it sees one less."""

    own: bool
    columns: list[int]
    most: int
    running: int


class _Costs(msgspec.Struct, frozen=True):
    """The cost of each number of containers; as rising slopes beyond `free`, if possible."""

    costs: list[float | None]
    limit: int | None
    free: int
    slopes: list[float] | None


def _costs(
    base: int,
    most_new: int,
    running: int,
    bounds: tuple[int, int | None],
    weight: float,
    hard: bool,
) -> _Costs:
    """The costs of new containers that are both subjects and counted, in addition to `base` counted
    ones."""
    before = distance(base - 1, *bounds) if running else 0.0
    costs: list[float | None] = []
    for t in range(most_new + 1):
        extent = distance(base + t - 1, *bounds)
        is_fine = (t == 0 or extent == 0) and (not running or extent <= before + 1e-9)
        fresh = weight * ((running + t) * extent - running * before)
        costs.append(None if hard and not is_fine else fresh)
    known = [cost for cost in costs if cost is not None]
    if costs[: len(known)] != known:
        return _Costs(costs, None, 0, None)
    limit = len(known) - 1 if len(known) < len(costs) else None
    slopes = np.diff(known)
    if not slopes.any():
        return _Costs(costs, limit, 0, [])
    if (np.diff(slopes) < -1e-12).any():
        return _Costs(costs, limit, 0, None)
    free = int(np.argmax(slopes != 0)) if slopes[0] >= 0 else 0
    return _Costs(costs, limit, free, slopes[free:].tolist())


class Counted:
    """Adds the costs of tag constraints in single sets to a program."""

    def __init__(self, program: Program, deepest: int | None = None) -> None:
        self.program = program
        self.deepest = deepest
        self._known: dict[tuple[object, ...], _Costs] = {}

    def add(
        self,
        gamma: list[int],
        base: int,
        most_new: int,
        classes: list[Subjects],
        bounds: tuple[int, int | None],
        weight: float,
        hard: bool,
    ) -> None:
        """Adds one tag constraint in one set, where `base` and the columns of `gamma` are counted."""
        if not gamma:
            for each in classes:
                extent = distance(base - each.own, *bounds)
                if extent > 0 and hard:
                    self.program.forbid(each.columns)
                else:
                    self.program.charge(each.columns, weight * extent)
            return
        if len(classes) == 1 and classes[0].own and classes[0].columns == gamma:
            self._alike(gamma, base, most_new, classes[0].running, bounds, weight, hard)
            return
        if hard:
            # Running subjects may not get further from their bounds; reducing their shortfall has
            # value.
            for each in classes:
                if each.running:
                    before = distance(base - each.own, *bounds)
                    room = most_new
                    while distance(base + room - each.own, *bounds) > before + 1e-9:
                        room -= 1
                    if room < most_new:
                        self.program.row(gamma, [1.0] * len(gamma), most=room)
            running = [Subjects(each.own, [], 0, each.running) for each in classes if each.running]
            if running:
                self.add(gamma, base, most_new, running, bounds, weight, False)
            classes = [Subjects(each.own, each.columns, each.most, 0) for each in classes]
            classes = [each for each in classes if each.columns]
        least, most = bounds
        if least:
            self._shortfall(gamma, base, most_new, classes, least, weight, hard)
        if most is not None:
            self._excess(gamma, base, most_new, classes, most, weight, hard)

    def _alike(
        self,
        columns: list[int],
        base: int,
        most_new: int,
        running: int,
        bounds: tuple[int, int | None],
        weight: float,
        hard: bool,
    ) -> None:
        """The subjects are what is counted, so the cost depends only on the number of new ones."""
        key = (base, most_new, running, bounds, weight, hard)
        costs = self._known.get(key)
        if costs is None:
            costs = self._known[key] = _costs(*key)
        self._choose(columns, costs)

    def _choose(self, columns: list[int], costs: _Costs) -> None:
        """The sum of the columns determines the cost; None is not allowed."""
        if costs.limit is not None:
            self.program.row(columns, [1.0] * len(columns), most=costs.limit)
        if costs.slopes is not None:
            slopes = costs.slopes
            if self.deepest is not None and len(slopes) > self.deepest and slopes[0] > 0:
                slopes = slopes[: self.deepest]
                most = costs.free + self.deepest
                self.program.row(columns, [1.0] * len(columns), most=most)
            if slopes:
                self.steps(columns, costs.free, slopes)
            return
        picked = []
        for value, cost in enumerate(costs.costs):
            number = self.program.add(
                0.0 if cost is None else 1.0, cost or 0.0, derived=equals(columns, value)
            )
            picked.append(number)
        self.program.row(picked, [1.0] * len(picked), 1, 1)
        values = [float(value) for value in range(len(picked))]
        self.program.row([*columns, *picked], [-1.0] * len(columns) + values, 0, 0)

    def _reached(
        self, gamma: list[int], base: int, most_new: int, levels: range
    ) -> dict[int, int | bool]:
        """Per level, a variable that may be 1 only if the count reaches it, or a constant if this is
        known."""
        found: dict[int, int | bool] = {}
        fresh = []
        for level in levels:
            if level <= base or level > base + most_new:
                found[level] = level <= base
            else:
                found[level] = self.program.add(1, derived=reaches(gamma, level - base))
                fresh.append((level, found[level]))
        if fresh:
            # The first level needs everything missing up to it, each later one needs one more.
            first = fresh[0][0] - base
            factors = [float(first)] + [1.0] * (len(fresh) - 1)
            columns = [number for _, number in fresh]
            self.program.row(
                [*gamma, *columns], [1.0] * len(gamma) + [-f for f in factors], least=0
            )
            for (_, a), (_, b) in pairwise(fresh):
                self.program.row([a, b], [1.0, -1.0], least=0)
        return found

    def _shortfall(
        self,
        gamma: list[int],
        base: int,
        most_new: int,
        classes: list[Subjects],
        least: int,
        weight: float,
        hard: bool,
    ) -> None:
        for each in classes:
            levels = range(least if hard else 1, least + 1)
            reached = self._reached(
                gamma, base, most_new, range(levels[0] + each.own, levels[-1] + 1 + each.own)
            )
            for level in levels:
                allow = reached[level + each.own]
                if allow is True:
                    continue
                if hard:
                    if allow is False:
                        self.program.forbid(each.columns)
                    else:
                        factors = [1.0] * len(each.columns) + [-float(each.most)]
                        self.program.row([*each.columns, allow], factors, most=0)
                elif allow is False:
                    self.program.charge(each.columns, weight / least)
                else:
                    self._unless(each, allow, weight / least)

    def _unless(self, each: Subjects, allow: int, cost: float) -> None:
        """Every subject costs `cost` unless the variable `allow` is 1."""
        if not each.columns:
            self.program.charge([allow], -cost * each.running)
            return
        bound = float(each.most + each.running)
        paid = self.program.add(
            bound, cost, integral=False, derived=pays(each.columns, each.running, allow, False)
        )
        factors = [-1.0] * len(each.columns) + [bound, 1.0]
        self.program.row([*each.columns, allow, paid], factors, least=each.running)

    def _excess(
        self,
        gamma: list[int],
        base: int,
        most_new: int,
        classes: list[Subjects],
        most: int,
        weight: float,
        hard: bool,
    ) -> None:
        scale = max(1, most)
        for each in classes:
            over = max(0, base - each.own - most)
            if hard:
                self._never_over(gamma, base, most_new, each, most)
                continue
            self.program.charge(each.columns, weight * over / scale)
            # Levels of the count at each of which subjects pay one more step.
            first = max(most + each.own, base) + 1
            levels = list(range(first, base + most_new + 1))
            if not levels:
                continue
            passed_all = [
                self.program.add(1, derived=reaches(gamma, level - base)) for level in levels
            ]
            factors = [1.0] * len(gamma) + [-1.0] * len(passed_all)
            self.program.row([*gamma, *passed_all], factors, most=first - 1 - base)
            for a, b in pairwise(passed_all):
                self.program.row([a, b], [1.0, -1.0], least=0)
            for passed in passed_all:
                self._if(each, passed, weight / scale)

    def _never_over(
        self, gamma: list[int], base: int, most_new: int, each: Subjects, most: int
    ) -> None:
        """New subjects may not see more than `most`."""
        room = most + each.own - base
        if not each.columns or room >= most_new:
            return
        if room < 0:
            self.program.forbid(each.columns)
            return
        passed = self.program.add(1, derived=reaches(gamma, room + 1))
        factors = [1.0] * len(gamma) + [-float(most_new - room)]
        self.program.row([*gamma, passed], factors, most=room)
        factors = [1.0] * len(each.columns) + [float(each.most)]
        self.program.row([*each.columns, passed], factors, most=each.most)

    def _if(self, each: Subjects, passed: int, cost: float) -> None:
        """Every subject costs `cost` if the variable `passed` is 1."""
        if not each.columns:
            self.program.charge([passed], cost * each.running)
            return
        bound = float(each.most + each.running)
        paid = self.program.add(
            bound, cost, integral=False, derived=pays(each.columns, each.running, passed, True)
        )
        factors = [-1.0] * len(each.columns) + [-bound, 1.0]
        self.program.row([*each.columns, passed, paid], factors, least=each.running - bound)

    def steps(self, columns: list[int], free: int, costs: Sequence[float]) -> None:
        """Each unit of the columns' sum beyond `free` costs the next step; steps must not decrease."""
        added = []
        for index, cost in enumerate(costs):
            derived = beyond(columns, free + index)
            added.append(self.program.add(1, cost, integral=False, derived=derived))
        factors = [1.0] * len(columns) + [-1.0] * len(added)
        # A step with negative cost may be used only if the sum reaches it.
        least = free if any(cost < 0 for cost in costs) else -np.inf
        self.program.row([*columns, *added], factors, least, free)
