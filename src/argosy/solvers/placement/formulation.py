"""The integer program of the Medea paper (figure 5), mended and formulated for scale.

Variables: x[g, n], how many containers of kind g are on machine n (identical containers are not told
apart); S[i], whether application i is placed; f[n], whether machine n becomes fragmented. Equations 2
and 4 are one row a kind: the x of the kind sum to its count times S. Equations 3 and 5 are one row a
machine and dimension: ``used + smallest * (1 - f) <= free``.

A constraint adds, per node set, the cost of what its subjects see. Let g be the count there:

* Nothing new is counted: g is a constant, and so is the cost of each subject. No row.
* The subjects are what is counted (the usual limit or gathering of one kind of container): the cost is
  a function of one number t, the new containers. If it is convex, as for limits, it is made of steps
  with rising slopes and needs no integer variable; otherwise one binary variable a value chooses t. No
  big M in either case.
* Otherwise thresholds: a binary variable says that g has reached a number, and each step of the extent
  costs as many as there are subjects, unless the variable allows it not to. This needs the largest
  possible number of subjects in the set as a big M, which is small: what fits there.

Constraints with alternatives split their subjects by the alternative, and the set, each relies on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from math import gcd
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.model.constraint_meaning import distance
from argosy.solvers.placement.answer import Objective, dominant, mean_share
from argosy.solvers.placement.cluster import Family
from argosy.solvers.placement.problem import Choice, ChoiceTerm, Item, Problem, Spread
from argosy.solvers.placement.program import Program, Values

#: A term of an alternative and the set it is to be kept in (-1: there is none), for each of its terms.
Option: TypeAlias = tuple[tuple[ChoiceTerm, int], ...]
Follows: TypeAlias = Callable[[Values], float]


class Subjects(msgspec.Struct, frozen=True):
    """New and running subjects of a tag constraint in one set. With `own`, each is counted itself and
    so sees one less."""

    own: bool
    columns: list[int]
    most: int
    running: int


class _Costs(msgspec.Struct, frozen=True):
    """What each number of containers costs: as rising slopes beyond `free`, if there are such."""

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
    """Of new containers that are subjects and counted alike, beside `base` counted ones."""
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


class Formulation:
    """The program over some machines (`candidates`), all of which others are left as they are."""

    def __init__(
        self,
        problem: Problem,
        objective: Objective,
        candidates: NDArray[np.int32],
        deepest: int | None = None,
    ) -> None:
        """`deepest` is how far a limit on one kind of container may be exceeded in one set; none: as
        far as there is room."""
        self.problem = problem
        self.deepest = deepest
        self.objective = objective
        self.candidates = candidates
        self.program = Program()
        self.fits = self._fits()
        #: Per kind and candidate, the variable; -1 where the kind cannot be.
        self.x = np.full(self.fits.shape, -1, np.int64)
        self._positions: dict[int, list[tuple[int, list[int]]]] = {}
        self._alike_costs: dict[tuple[object, ...], _Costs] = {}
        self._place()
        self._x: list[list[int]] = [list(map(int, row)) for row in self.x]
        self._room: list[list[int]] = self.fits.tolist()
        self._capacity()
        self._extras()
        unit = objective.violation / max(problem.concerned, 1e-12)
        for item in problem.items:
            self._item(item, unit * item.weight)
        for spread in problem.spreads:
            self._spread(spread, unit * spread.weight)
        for choice in problem.choices:
            self._choice(choice, unit * choice.weight)

    def _fits(self) -> NDArray[np.int64]:
        """Per kind and candidate, how many there is room for."""
        free = self.problem.cluster.free[self.candidates]
        rows = []
        for kind in self.problem.kinds:
            asked = np.maximum(1, kind.request)
            room = np.where(kind.request > 0, free // asked, kind.count).min(axis=1)
            room = np.clip(room, 0, kind.count)
            if kind.allowed is not None:
                room = np.where(kind.allowed[self.candidates], room, 0)
            rows.append(room)
        return np.array(rows, np.int64).reshape(len(self.problem.kinds), len(self.candidates))

    def _place(self) -> None:
        problem, program = self.problem, self.program
        share = self.objective.moved / max(1, problem.containers)
        for number, kind in enumerate(problem.kinds):
            for at in np.flatnonzero(self.fits[number]).tolist():
                moves = kind.origin >= 0 and int(self.candidates[at]) != kind.origin
                self.x[number, at] = program.add(
                    float(self.fits[number, at]), share if moves else 0.0
                )
        worth = -self.objective.whole / max(1, problem.apps)
        self.whole = []
        for app in range(problem.apps):
            mine = [n for n, kind in enumerate(problem.kinds) if kind.app == app]
            if not mine:
                self.whole.append(-1)
                continue
            first = self._columns(mine[0])
            count = problem.kinds[mine[0]].count
            placed = program.add(1, worth, follows=_reaches(first, count))
            if any(problem.kinds[n].origin >= 0 for n in mine):
                program.lower[placed] = 1.0
            self.whole.append(placed)
            for n in mine:
                columns = self._columns(n)
                factors = [1.0] * len(columns) + [-float(problem.kinds[n].count)]
                program.row([*columns, placed], factors, 0, 0)

    def _columns(self, kind: int) -> list[int]:
        found: list[int] = self.x[kind][self.x[kind] >= 0].tolist()
        return found

    def _capacity(self) -> None:
        """In units that divide every request, so that all factors are small whole numbers."""
        problem, program = self.problem, self.program
        requests = np.array([kind.request for kind in problem.kinds], np.int64)
        free = problem.cluster.free[self.candidates]
        whole = np.all(free >= problem.smallest, axis=1)
        cost = self.objective.fragmented / max(1, problem.containers)
        units = [gcd(*(int(r) for r in requests[:, d])) or 1 for d in range(free.shape[1])]
        steps = (requests // np.array(units)).tolist()
        asked: list[list[int]] = requests.tolist()
        smallest: list[int] = problem.smallest.tolist()
        rows: list[list[int]] = free.tolist()
        for at, room in enumerate(rows):
            kinds = [k for k in range(len(asked)) if self._x[k][at] >= 0]
            if not kinds:
                continue
            columns = [self._x[k][at] for k in kinds]
            largest = [
                sum(asked[k][d] * self._room[k][at] for k in kinds) for d in range(len(room))
            ]
            may_fragment = cost > 0 and bool(whole[at])
            may_fragment &= any(r - m < s for r, m, s in zip(room, largest, smallest, strict=True))
            flag = -1
            if may_fragment:
                limits = [r - s for r, s in zip(room, smallest, strict=True)]
                flag = program.add(
                    1, cost, follows=_exceeds(columns, [asked[k] for k in kinds], limits)
                )
            for d, unit in enumerate(units):
                if largest[d] + (smallest[d] if may_fragment else 0) <= room[d]:
                    continue
                factors = [float(steps[k][d]) for k in kinds]
                most = room[d] // unit
                if not may_fragment:
                    program.row(columns, factors, most=most)
                else:
                    left = (room[d] - smallest[d]) // unit
                    program.row([*columns, flag], [*factors, float(left - most)], most=left)

    def _extras(self) -> None:
        objective, cluster, program = self.objective, self.problem.cluster, self.program
        if not objective.load and not objective.used:
            return
        containers = max(1, self.problem.containers)
        free, capacity = cluster.free[self.candidates], cluster.capacity[self.candidates]
        shares = dominant(capacity - free, capacity)
        rise = mean_share(self.problem)
        is_empty = np.all(free == capacity, axis=1)
        for at in range(len(self.candidates)):
            columns = self.x[:, at][self.x[:, at] >= 0].tolist()
            most = int(self.fits[:, at].sum())
            if not columns:
                continue
            if objective.used and is_empty[at]:
                used = program.add(1, objective.used / containers, follows=_reaches(columns, 1))
                program.row([*columns, used], [1.0] * len(columns) + [-float(most)], most=0)
            if objective.load:
                steps = [objective.load * (shares[at] + rise * j) / containers for j in range(most)]
                self._steps(columns, 0, steps)

    def _steps(self, columns: list[int], free: int, costs: Sequence[float]) -> None:
        """What is beyond `free` of the columns' sum costs the steps in order; costs must not fall."""
        added = []
        for index, cost in enumerate(costs):
            follows = _beyond(columns, free + index)
            added.append(self.program.add(1, cost, integral=False, follows=follows))
        factors = [1.0] * len(columns) + [-1.0] * len(added)
        # A step that pays may be taken only if it is there.
        least = free if any(cost < 0 for cost in costs) else -np.inf
        self.program.row([*columns, *added], factors, least, free)

    def _sets(self, family: int) -> list[tuple[int, list[int]]]:
        """Each set with candidates in it, and where they stand; -1 for those in no set."""
        known = self._positions.get(family)
        if known is None:
            if family == 0:
                known = [(machine, [at]) for at, machine in enumerate(self.candidates.tolist())]
            else:
                inside: dict[int, list[int]] = {}
                for at, machine in enumerate(self.candidates.tolist()):
                    for number in _sets_of(self.problem.families[family], machine) or (-1,):
                        inside.setdefault(number, []).append(at)
                known = list(inside.items())
            self._positions[family] = known
        return known

    def _in(self, kinds: Sequence[int], where: Sequence[int]) -> tuple[list[int], int]:
        """The variables of some kinds on some candidates, and the most they can sum to."""
        columns = []
        total = 0
        for kind in kinds:
            row, rooms, most = self._x[kind], self._room[kind], 0
            for at in where:
                if row[at] >= 0:
                    columns.append(row[at])
                    most += rooms[at]
            total += min(most, self.problem.kinds[kind].count)
        return columns, total

    def _item(self, item: Item, weight: float) -> None:
        subject, match = item.subject.astype(bool), item.match.astype(bool)
        subjects = np.flatnonzero(subject).tolist()
        both = np.flatnonzero(subject & match).tolist()
        other = np.flatnonzero(subject & ~match).tolist()
        counted = np.flatnonzero(match).tolist()
        for number, where in self._sets(item.family):
            if number < 0:
                columns, _ = self._in(subjects, where)
                if item.hard and item.outside:
                    self.program.forbid(columns)
                else:
                    self.program.charge(columns, weight * item.outside)
                continue
            gamma, most_new = self._in(counted, where)
            columns, most = (gamma, most_new) if both == counted else self._in(both, where)
            others, most_others = self._in(other, where)
            classes = [
                Subjects(True, columns, most, int(item.both[number])),
                Subjects(False, others, most_others, int(item.other[number])),
            ]
            classes = [each for each in classes if each.columns or each.running]
            if classes:
                bounds = (item.least, item.most)
                base = int(item.gamma[number])
                self._cell(gamma, base, most_new, classes, bounds, weight, item.hard)

    def _cell(
        self,
        gamma: list[int],
        base: int,
        most_new: int,
        classes: list[Subjects],
        bounds: tuple[int, int | None],
        weight: float,
        hard: bool,
    ) -> None:
        """One tag constraint in one set: `base` and the columns of `gamma` are counted there."""
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
            # Running subjects may not be further off than before; what they lack is worth mending.
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
                self._cell(gamma, base, most_new, running, bounds, weight, False)
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
        """The subjects are what is counted: the cost depends on how many new ones there are."""
        key = (base, most_new, running, bounds, weight, hard)
        costs = self._alike_costs.get(key)
        if costs is None:
            costs = self._alike_costs[key] = _costs(*key)
        self._choose(columns, costs)

    def _choose(self, columns: list[int], costs: _Costs) -> None:
        """The columns' sum costs what stands at its place; none is not allowed."""
        if costs.limit is not None:
            self.program.row(columns, [1.0] * len(columns), most=costs.limit)
        if costs.slopes is not None:
            slopes = costs.slopes
            if self.deepest is not None and len(slopes) > self.deepest and slopes[0] > 0:
                slopes = slopes[: self.deepest]
                most = costs.free + self.deepest
                self.program.row(columns, [1.0] * len(columns), most=most)
            if slopes:
                self._steps(columns, costs.free, slopes)
            return
        picked = []
        for value, cost in enumerate(costs.costs):
            number = self.program.add(
                0.0 if cost is None else 1.0, cost or 0.0, follows=_equals(columns, value)
            )
            picked.append(number)
        self.program.row(picked, [1.0] * len(picked), 1, 1)
        values = [float(value) for value in range(len(picked))]
        self.program.row([*columns, *picked], [-1.0] * len(columns) + values, 0, 0)

    def _reached(
        self, gamma: list[int], base: int, most_new: int, levels: range
    ) -> dict[int, int | bool]:
        """Per level, a variable that may be 1 only if the count reaches it, or what is known."""
        found: dict[int, int | bool] = {}
        fresh = []
        for level in levels:
            if level <= base or level > base + most_new:
                found[level] = level <= base
            else:
                found[level] = self.program.add(1, follows=_reaches(gamma, level - base))
                fresh.append((level, found[level]))
        if fresh:
            # The first of them needs all that is missing up to it, each later one more.
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
            bound, cost, integral=False, follows=_paid(each.columns, each.running, allow, False)
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
            # Levels of the count that make each subject pay one step more.
            first = max(most + each.own, base) + 1
            levels = list(range(first, base + most_new + 1))
            if not levels:
                continue
            passed_all = [
                self.program.add(1, follows=_reaches(gamma, level - base)) for level in levels
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
        passed = self.program.add(1, follows=_reaches(gamma, room + 1))
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
            bound, cost, integral=False, follows=_paid(each.columns, each.running, passed, True)
        )
        factors = [-1.0] * len(each.columns) + [-bound, 1.0]
        self.program.row([*each.columns, passed, paid], factors, least=each.running - bound)

    def _in_use(
        self, family: int, match: NDArray[np.bool_], inside: NDArray[np.int32]
    ) -> tuple[list[int], int]:
        """Variables that say that a set which is empty now gets a container, and sets in use now."""
        kinds = np.flatnonzero(match).tolist()
        found = []
        for number, where in self._sets(family):
            if number < 0 or inside[number] > 0:
                continue
            columns, most = self._in(kinds, where)
            if not columns:
                continue
            used = self.program.add(1, follows=_reaches(columns, 1))
            self.program.row([*columns, used], [1.0] * len(columns) + [-1.0], least=0)
            self.program.row([*columns, used], [1.0] * len(columns) + [-float(most)], most=0)
            found.append(used)
        return found, int((inside > 0).sum())

    def _spread(self, spread: Spread, weight: float) -> None:
        match = spread.subject.astype(bool)
        used, before = self._in_use(spread.family, match, spread.inside)
        columns, most = self._in(np.flatnonzero(match).tolist(), range(len(self.candidates)))
        subjects = Subjects(False, columns, most, spread.subjects)
        bounds = (spread.least, spread.most)
        self._cell(used, before, len(used), [subjects], bounds, weight, spread.hard)

    def _choice(self, choice: Choice, weight: float) -> None:
        _Split(self, choice, weight).add()


class _Split:
    """Subjects of a constraint with alternatives, by the option each relies on."""

    def __init__(self, whole: Formulation, choice: Choice, weight: float) -> None:
        self.whole = whole
        self.choice = choice
        self.weight = weight
        self.problem = whole.problem
        #: Per tag constraint and set, the variables of those who rely on it, their largest sum, and
        #: how many running containers rely on it for good.
        self.cells: dict[tuple[int, int, int, int, bool, bool], Subjects] = {}
        self.gamma: dict[tuple[int, int], tuple[list[int], int, int]] = {}

    def add(self) -> None:
        choice, problem, whole = self.choice, self.problem, self.whole
        for kind, ways in enumerate(choice.alternatives):
            if not ways:
                continue
            if kind < len(problem.kinds):
                for at in np.flatnonzero(whole.x[kind] >= 0).tolist():
                    most = int(whole.fits[kind, at])
                    options = self._options(ways, int(whole.candidates[at]))
                    self._rely(options, most, int(whole.x[kind, at]), choice.hard)
                continue
            groups: dict[tuple[Option, ...], int] = {}
            for machine in np.flatnonzero(choice.here[kind]).tolist():
                key = tuple(self._options(ways, machine))
                groups[key] = groups.get(key, 0) + int(choice.here[kind][machine])
            for grouped, count in groups.items():
                options = list(grouped)
                if self._may_change(options):
                    # That what is broken already does not get worse is checked on the answer.
                    is_kept = self._extent(options, [0.0] * len(whole.program.upper)) == 0
                    self._rely(options, count, None, choice.hard and is_kept)
        for (counter, number, least, most, own, hard), subjects in self.cells.items():
            gamma, base, most_new = self._counted(counter, number)
            bounds = (least, None if most < 0 else most)
            classes = [Subjects(own, subjects.columns, subjects.most, subjects.running)]
            whole._cell(gamma, base, most_new, classes, bounds, self.weight, hard)

    def _options(self, ways: Sequence[Sequence[ChoiceTerm]], machine: int) -> list[Option]:
        """Each a set for every term of an alternative; -1 where the machine is in none."""
        found: list[Option] = []
        for way in ways:
            sets: list[Sequence[int]] = []
            for term in way:
                inside = _sets_of(self.problem.families[term.family], machine)
                sets.append((0,) if term.is_spread else inside or (-1,))
            found.extend(tuple(zip(way, pick, strict=True)) for pick in product(*sets))
        return found

    def _may_change(self, options: Sequence[Option]) -> bool:
        counted = [
            self._counted(atom.counter, number)[0]
            for option in options
            for term, number in option
            if number >= 0
            for atom in term.atoms
        ]
        return any(counted)

    def _rely(
        self,
        options: list[Option],
        most: int,
        column: int | None,
        hard: bool,
    ) -> None:
        """Of `most` containers (as many as `column` says, or running ones) each relies on one."""
        program = self.whole.program
        # What is counted comes first: the parts' values follow from it.
        self._may_change(options)
        if len(options) == 1:
            columns = [] if column is None else [column]
            self._charge(options[0], columns, most, most if column is None else 0, hard)
            return
        parts = [
            program.add(float(most), follows=self._best(options, index, most, column))
            for index in range(len(options))
        ]
        factors = [1.0] * len(parts)
        if column is None:
            program.row(parts, factors, most, most)
        else:
            program.row([*parts, column], [*factors, -1.0], 0, 0)
        for option, part in zip(options, parts, strict=True):
            self._charge(option, [part], most, 0, hard)

    def _charge(
        self,
        option: Option,
        columns: list[int],
        most: int,
        running: int,
        hard: bool,
    ) -> None:
        program = self.whole.program
        for term, number in option:
            fixed = 1.0 if number < 0 else float(term.never)
            if fixed and hard:
                program.forbid(columns)
            elif fixed:
                program.charge(columns, self.weight * fixed)
            if number < 0:
                continue
            for atom in term.atoms:
                bound = -1 if atom.most is None else atom.most
                key = (atom.counter, number, atom.least, bound, atom.self, hard)
                known = self.cells.get(key) or Subjects(atom.self, [], 0, 0)
                self.cells[key] = Subjects(
                    atom.self,
                    [*known.columns, *columns],
                    known.most + (most if columns else 0),
                    known.running + running,
                )

    def _counted(self, counter: int, number: int) -> tuple[list[int], int, int]:
        """The variables that add to a count, what it is without them, and the most they add."""
        key = (counter, number)
        if key not in self.gamma:
            known = self.problem.counters[counter]
            match = known.match[: len(self.problem.kinds)].astype(bool)
            if known.is_spread:
                used, before = self.whole._in_use(known.family, match, known.count)
                self.gamma[key] = (used, before, len(used))
            else:
                where = dict(self.whole._sets(known.family)).get(number, [])
                columns, most = self.whole._in(np.flatnonzero(match).tolist(), where)
                self.gamma[key] = (columns, int(known.count[number]), most)
        return self.gamma[key]

    def _extent(self, options: Sequence[Option], values: Values) -> float:
        return min(self._costs(options, values))

    def _costs(self, options: Sequence[Option], values: Values) -> list[float]:
        costs = []
        for option in options:
            total = 0.0
            for term, number in option:
                if number < 0:
                    total += 1.0
                    continue
                total += term.never
                for atom in term.atoms:
                    columns, base, _ = self._counted(atom.counter, number)
                    count = base + round(sum(values[c] for c in columns if c < len(values)))
                    total += distance(count - atom.self, atom.least, atom.most)
            costs.append(total)
        return costs

    def _best(self, options: list[Option], index: int, most: int, column: int | None) -> Follows:
        def follows(values: Values) -> float:
            costs = self._costs(options, values)
            if costs.index(min(costs)) != index:
                return 0.0
            return float(most) if column is None else values[column]

        return follows


def _sets_of(family: Family, machine: int) -> tuple[int, ...]:
    first, last = int(family.first_set[machine]), int(family.first_set[machine + 1])
    return tuple(family.sets_of[first:last].tolist())


def _reaches(columns: list[int], level: int) -> Follows:
    return lambda values: float(sum(values[c] for c in columns) >= level - 1e-6)


def _equals(columns: list[int], value: int) -> Follows:
    return lambda values: float(round(sum(values[c] for c in columns)) == value)


def _beyond(columns: list[int], free: int) -> Follows:
    return lambda values: min(1.0, max(0.0, sum(values[c] for c in columns) - free))


def _paid(columns: list[int], running: int, flag: int, if_set: bool) -> Follows:
    def follows(values: Values) -> float:
        pays = (values[flag] > 0.5) == if_set
        return sum(values[c] for c in columns) + running if pays else 0.0

    return follows


def _exceeds(columns: list[int], requests: list[list[int]], limits: list[int]) -> Follows:
    def follows(values: Values) -> float:
        for d, limit in enumerate(limits):
            used = sum(values[c] * r[d] for c, r in zip(columns, requests, strict=True))
            if used > limit + 1e-6:
                return 1.0
        return 0.0

    return follows
