"""Constraints with alternatives, or over sets that overlap, in the integer program.

Each container relies on one option: an alternative, with a set for each of its terms. Variables count
how many containers of a kind on a machine rely on each option; an option costs what its tag constraints
cost the containers that rely on it, so the cheapest is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from argosy.model.constraints.meaning import distance
from argosy.solvers.placement.counting import Counted, Subjects
from argosy.solvers.placement.derived_values import DerivedValue
from argosy.solvers.placement.problem import Choice, ChoiceTerm, PlacementProblem
from argosy.solvers.placement.program import Program, Values

#: An alternative: each of its terms, with the set in which it must hold (-1: none).
Option: TypeAlias = tuple[tuple[ChoiceTerm, int], ...]


class Whole(Protocol):
    """What a constraint needs of the formulation it is part of."""

    problem: PlacementProblem
    program: Program
    counted: Counted
    candidates: NDArray[np.int32]
    fits: NDArray[np.int64]
    x: NDArray[np.int64]

    def sets(self, family: int) -> list[tuple[int, list[int]]]: ...
    def columns_in(self, kinds: Sequence[int], where: Sequence[int]) -> tuple[list[int], int]: ...
    def in_use(
        self, family: int, match: NDArray[np.bool_], inside: NDArray[np.int32]
    ) -> tuple[list[int], int]: ...


class Split:
    """Subjects of a constraint with alternatives, by the option each relies on."""

    def __init__(self, whole: Whole, choice: Choice, weight: float) -> None:
        self.whole = whole
        self.choice = choice
        self.weight = weight
        self.problem = whole.problem
        #: Per tag constraint and set: the variables of the containers that rely on it, their largest
        #: sum, and the number of running containers that always rely on it.
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
                    before = min(self._costs(options, [0.0] * len(whole.program.upper)))
                    self._rely(options, count, None, choice.hard and before == 0)
                    if choice.hard and before > 0:
                        self._no_worse(options, before)
        for (counter, number, least, most, own, hard), subjects in self.cells.items():
            gamma, base, most_new = self._counted(counter, number)
            bounds = (least, None if most < 0 else most)
            classes = [Subjects(own, subjects.columns, subjects.most, subjects.running)]
            whole.counted.add(gamma, base, most_new, classes, bounds, self.weight, hard)

    def _options(self, ways: Sequence[Sequence[ChoiceTerm]], machine: int) -> list[Option]:
        """All options: a set for every term of an alternative; -1 if the machine is in none."""
        found: list[Option] = []
        for way in ways:
            sets: list[Sequence[int]] = []
            for term in way:
                inside = self.problem.families[term.family].sets_with(machine)
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
        """Each of `most` containers relies on one option; `column` is their number if they are new,
        None if they run."""
        program = self.whole.program
        # Counts are added first, because the values of the parts follow from them.
        self._may_change(options)
        if len(options) == 1:
            columns = [] if column is None else [column]
            self._charge(options[0], columns, most, most if column is None else 0, hard)
            return
        parts = [
            program.add(float(most), derived=self._best(options, index, most, column))
            for index in range(len(options))
        ]
        factors = [1.0] * len(parts)
        if column is None:
            program.row(parts, factors, most, most)
        else:
            program.row([*parts, column], [*factors, -1.0], 0, 0)
        for option, part in zip(options, parts, strict=True):
            self._charge(option, [part], most, 0, hard)

    def _no_worse(self, options: list[Option], before: float) -> None:
        """Containers that break the constraint already may not get further from it: some option costs
        no more than before. The cost of an option is convex in its counts, so it needs no integers."""
        program = self.whole.program
        chosen = []
        for index, option in enumerate(options):
            picked = program.add(1.0, derived=self._best(options, index, 1, None))
            chosen.append(picked)
            fixed, worst, parts = 0.0, 0.0, list[int]()
            for term, number in option:
                fixed += 1.0 if number < 0 else float(term.never)
                for atom in term.atoms if number >= 0 else ():
                    columns, base, most_new = self._counted(atom.counter, number)
                    count = base - atom.self
                    for limit, sign in ((atom.least, -1), (atom.most, 1)):
                        if limit is None:
                            continue
                        # At least sign x (count + sum of the columns - limit) / scale, and at least 0.
                        scale = max(1, limit)
                        largest = max(0, sign * (count - limit), sign * (count + most_new - limit))
                        beyond = program.add(
                            largest / scale,
                            integral=False,
                            derived=_distance_beyond(columns, count, limit, sign),
                        )
                        factors = [-sign / scale] * len(columns) + [1.0]
                        least = sign * (count - limit) / scale
                        program.row([*columns, beyond], factors, least=least)
                        parts.append(beyond)
                        worst += largest / scale
            slack = fixed + worst - before
            if slack > 0:
                factors = [1.0] * len(parts) + [slack]
                program.row([*parts, picked], factors, most=before - fixed + slack)
        program.row(chosen, [1.0] * len(chosen), 1, 1)

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
        """The variables that add to a count, its value without them, and the most they add."""
        key = (counter, number)
        if key not in self.gamma:
            known = self.problem.counters[counter]
            match = known.match[: len(self.problem.kinds)].astype(bool)
            if known.is_spread:
                used, before = self.whole.in_use(known.family, match, known.count)
                self.gamma[key] = (used, before, len(used))
            else:
                where = dict(self.whole.sets(known.family)).get(number, [])
                columns, most = self.whole.columns_in(np.flatnonzero(match).tolist(), where)
                self.gamma[key] = (columns, int(known.count[number]), most)
        return self.gamma[key]

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

    def _best(
        self, options: list[Option], index: int, most: int, column: int | None
    ) -> DerivedValue:
        def derived(values: Values) -> float:
            costs = self._costs(options, values)
            if costs.index(min(costs)) != index:
                return 0.0
            return float(most) if column is None else values[column]

        return derived


def _distance_beyond(columns: list[int], count: int, limit: int, sign: int) -> DerivedValue:
    def derived(values: Values) -> float:
        seen = count + sum(values[column] for column in columns)
        return max(0.0, sign * (seen - limit) / max(1, limit))

    return derived
