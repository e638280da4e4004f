"""The integer program of the Medea paper (figure 5), corrected and formulated for scale.

Variables: x[g, n], the number of containers of kind g on machine n (identical containers share a
variable); S[i], whether application i is placed; f[n], whether machine n becomes fragmented. Equations
2 and 4 are one row per kind: the x of the kind sum to its count times S. Equations 3 and 5 are one row
per machine and dimension: ``used + smallest * (1 - f) <= free``.

A constraint adds, per node set, the cost of what its subjects see: `counting`. Constraints with
alternatives split their subjects by the alternative, and the set, each relies on: `splitting`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd

import numpy as np
from numpy.typing import NDArray

from argosy.solvers.placement.answer import Objective, dominant, mean_share
from argosy.solvers.placement.counting import Counted, Subjects
from argosy.solvers.placement.derived_values import exceeds, reaches
from argosy.solvers.placement.problem import Item, PlacementProblem, SpreadRows
from argosy.solvers.placement.program import Program
from argosy.solvers.placement.splitting import Split


class OutOfTime(Exception):
    """There is no time left to build the program."""


def _require_time(is_late: Callable[[], bool]) -> None:
    if is_late():
        raise OutOfTime


class Formulation:
    """The program over certain machines (`candidates`); all other machines are left as they are."""

    def __init__(
        self,
        problem: PlacementProblem,
        objective: Objective,
        candidates: NDArray[np.int32],
        deepest: int | None = None,
        is_late: Callable[[], bool] = lambda: False,
    ) -> None:
        """`deepest` is how far a limit on one kind of container may be exceeded in one set (None: as
        far as there is room). Raises `OutOfTime` once `is_late` returns true."""
        self.problem = problem
        self.objective = objective
        self.candidates = candidates
        self.program = Program()
        self.counted = Counted(self.program, deepest)
        self.fits = self._fits()
        #: The variable per kind and candidate; -1 where the kind cannot go.
        self.x = np.full(self.fits.shape, -1, np.int64)
        self._positions: dict[int, list[tuple[int, list[int]]]] = {}
        self._place()
        self._x: list[list[int]] = [list(map(int, row)) for row in self.x]
        self._room: list[list[int]] = self.fits.tolist()
        self._capacity()
        self._extras()
        unit = objective.violation / max(problem.concerned, 1e-12)
        for item in problem.items:
            self._item(item, unit * item.weight)
            _require_time(is_late)
        for spread in problem.spreads:
            self._spread(spread, unit * spread.weight)
        for choice in problem.choices:
            Split(self, choice, unit * choice.weight).add()
            _require_time(is_late)
        # Costs are those that the answer adds, so placing nothing costs nothing. Some variables count
        # what running containers cost already.
        self.program.constant = -float(np.dot(self.program.cost, self.program.completed({})))

    def _fits(self) -> NDArray[np.int64]:
        """Per kind and candidate, how many containers fit."""
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
            value = worth * problem.importance[app]
            placed = program.add(1, value, derived=reaches(first, count))
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
        """Capacity rows, in units that divide every request, so that all coefficients are small
        integers."""
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
                    1, cost, derived=exceeds(columns, [asked[k] for k in kinds], limits)
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
                used = program.add(1, objective.used / containers, derived=reaches(columns, 1))
                program.row([*columns, used], [1.0] * len(columns) + [-float(most)], most=0)
            if objective.load:
                steps = [objective.load * (shares[at] + rise * j) / containers for j in range(most)]
                self.counted.steps(columns, 0, steps)

    def sets(self, family: int) -> list[tuple[int, list[int]]]:
        """Each set that contains candidates, with their positions; -1 stands for candidates in no
        set."""
        known = self._positions.get(family)
        if known is None:
            if family == 0:
                known = [(machine, [at]) for at, machine in enumerate(self.candidates.tolist())]
            else:
                inside: dict[int, list[int]] = {}
                for at, machine in enumerate(self.candidates.tolist()):
                    for number in self.problem.families[family].sets_with(machine) or (-1,):
                        inside.setdefault(number, []).append(at)
                known = list(inside.items())
            self._positions[family] = known
        return known

    def columns_in(self, kinds: Sequence[int], where: Sequence[int]) -> tuple[list[int], int]:
        """The variables of some kinds on some candidates, and the largest possible sum."""
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
        for number, where in self.sets(item.family):
            if number < 0:
                columns, _ = self.columns_in(subjects, where)
                if item.hard and item.outside:
                    self.program.forbid(columns)
                else:
                    self.program.charge(columns, weight * item.outside)
                continue
            gamma, most_new = self.columns_in(counted, where)
            columns, most = (gamma, most_new) if both == counted else self.columns_in(both, where)
            others, most_others = self.columns_in(other, where)
            classes = [
                Subjects(True, columns, most, int(item.both[number])),
                Subjects(False, others, most_others, int(item.other[number])),
            ]
            classes = [each for each in classes if each.columns or each.running]
            if classes:
                bounds = (item.least, item.most)
                base = int(item.gamma[number])
                self.counted.add(gamma, base, most_new, classes, bounds, weight, item.hard)

    def in_use(
        self, family: int, match: NDArray[np.bool_], inside: NDArray[np.int32]
    ) -> tuple[list[int], int]:
        """Variables for currently empty sets that get a container, and the number of sets currently in
        use."""
        kinds = np.flatnonzero(match).tolist()
        found = []
        for number, where in self.sets(family):
            if number < 0 or inside[number] > 0:
                continue
            columns, most = self.columns_in(kinds, where)
            if not columns:
                continue
            used = self.program.add(1, derived=reaches(columns, 1))
            self.program.row([*columns, used], [1.0] * len(columns) + [-1.0], least=0)
            self.program.row([*columns, used], [1.0] * len(columns) + [-float(most)], most=0)
            found.append(used)
        return found, int((inside > 0).sum())

    def _spread(self, spread: SpreadRows, weight: float) -> None:
        match = spread.subject.astype(bool)
        used, before = self.in_use(spread.family, match, spread.inside)
        columns, most = self.columns_in(np.flatnonzero(match).tolist(), range(len(self.candidates)))
        subjects = Subjects(False, columns, most, spread.subjects)
        bounds = (spread.least, spread.most)
        self.counted.add(used, before, len(used), [subjects], bounds, weight, spread.hard)
