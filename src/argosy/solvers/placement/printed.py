"""The integer program as the Medea paper prints it (figure 5), to compare with.

Equations 1 to 8, container by container, correcting only those signs without which they make no sense:
(1) subtracts violations and (7) is `<= 0`. Everything else is as printed: the big M is inside the sum
over a set's machines, so constraints over sets of several machines bind nothing; running containers are
not counted; one slack is shared by all containers and sets of a constraint; fragmentation is divided by
all machines. Where (8) would divide by zero or infinity, the slack counts fully or not at all.

It is for small cells only: machines times containers binary variables, and a row for every subject and
set. Applications beyond `MOST_PLACES` variables are not placed. Constraints with alternatives, spreads
and overlapping sets have no printed form.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np

from argosy.model.budgets import Budget
from argosy.model.constraints import Constraint
from argosy.model.errors import ModelError
from argosy.solvers.placement.answer import Objective, PlacementAnswer, appraise
from argosy.solvers.placement.forms import without_choice
from argosy.solvers.placement.problem import Item, PlacementProblem
from argosy.solvers.placement.program import Program

MOST_PLACES: Final = 50_000


def has_printed_form(constraint: Constraint, overlapping: Collection[str]) -> bool:
    """`overlapping` are the groups in which some machine is in several sets."""
    try:
        terms = without_choice(constraint, overlapping)
    except ModelError:
        # It has too many alternatives.
        return False
    return terms is not None and not any(term.is_spread for _, term in terms)


def solve_printed(
    problem: PlacementProblem,
    objective: Objective | None = None,
    budget: Budget | None = None,
) -> PlacementAnswer:
    """The choice of the printed program, evaluated like any other answer."""
    if problem.choices or problem.spreads:
        raise ModelError(
            "a constraint with alternatives or a spread has no printed form",
            hint="choose the algorithm ilp",
        )
    if problem.apps and not _first_apps(problem):
        raise ModelError(
            f"{problem.containers} containers on {problem.cluster.machines} machines as printed",
            expected=f"at most {MOST_PLACES:,} binary variables for an application",
            hint="choose the algorithm ilp",
        )
    aim = objective or Objective()
    printed = _Printed(problem, aim)
    solution = printed.program.solve(budget=budget)
    kinds: list[int] = []
    machines: list[int] = []
    if solution.values is not None:
        for (container, machine), column in printed.x.items():
            if solution.values[column] > 0.5:
                kinds.append(printed.kind_of[container])
                machines.append(machine)
    where = np.array(machines, np.int32)
    worth = appraise(problem, aim, np.array(kinds, np.int32), where)
    return PlacementAnswer(np.array(kinds, np.int32), where, worth, "ilp-printed")


class _Printed:
    def __init__(self, problem: PlacementProblem, aim: Objective) -> None:
        self.problem = problem
        self.program = Program()
        apps = _first_apps(problem)
        self.kind_of = [
            number
            for number, kind in enumerate(problem.kinds)
            for _ in range(kind.count if kind.app < apps else 0)
        ]
        self.x: dict[tuple[int, int], int] = {}
        machines = range(problem.cluster.machines)
        for container in range(len(self.kind_of)):
            kind = problem.kinds[self.kind_of[container]]
            for machine in machines:
                allowed = kind.allowed is None or bool(kind.allowed[machine])
                self.x[container, machine] = self.program.add(float(allowed))
        self._place(aim)
        self._capacity(aim)
        share = aim.violation / max(1, len(problem.items))
        for item in problem.items:
            self._constraint(item, share * item.weight)

    def _place(self, aim: Objective) -> None:
        """Equations 2 and 4."""
        problem, program = self.problem, self.program
        machines = range(problem.cluster.machines)
        for container in range(len(self.kind_of)):
            columns = [self.x[container, machine] for machine in machines]
            program.row(columns, [1.0] * len(columns), most=1)
        for app in range(problem.apps):
            mine = [c for c, kind in enumerate(self.kind_of) if problem.kinds[kind].app == app]
            if not mine:
                continue
            placed = program.add(1, -aim.whole * problem.importance[app] / problem.apps)
            columns = [self.x[c, machine] for c in mine for machine in machines]
            program.row([*columns, placed], [1.0] * len(columns) + [-float(len(mine))], 0, 0)

    def _capacity(self, aim: Objective) -> None:
        """Equations 3 and 5, in fractions of the largest machine."""
        problem, program = self.problem, self.program
        scale = np.maximum(1, problem.cluster.capacity.max(axis=0)).astype(float)
        free = problem.cluster.free / scale
        smallest = problem.smallest / scale
        requests = [problem.kinds[kind].request / scale for kind in self.kind_of]
        for machine in range(len(free)):
            whole = program.add(1, -aim.fragmented / len(free))
            columns = [self.x[container, machine] for container in range(len(self.kind_of))]
            for d in range(free.shape[1]):
                factors = [float(request[d]) for request in requests]
                room = float(free[machine, d])
                program.row(columns, factors, most=room)
                # used - B (1 - z) <= free - smallest, with B just large enough.
                large = room + float(smallest[d])
                program.row([*columns, whole], [*factors, large], most=room - smallest[d] + large)

    def _constraint(self, item: Item, cost: float) -> None:
        """Equations 6 to 8."""
        problem, program = self.problem, self.program
        large = float(len(self.kind_of))
        counted = [c for c, kind in enumerate(self.kind_of) if item.match[kind]]
        subjects = [c for c, kind in enumerate(self.kind_of) if item.subject[kind]]
        if not subjects:
            return
        lacking = program.add(large, cost / max(1, item.least)) if item.least else -1
        over = -1
        if item.most is not None:
            over = program.add(large, cost / max(1, item.most))
        family = problem.families[item.family]
        for subject in subjects:
            for number in range(family.sets):
                members = np.flatnonzero(family.set_of == number).tolist()
                others = [self.x[c, n] for n in members for c in counted if c != subject]
                own = [self.x[subject, n] for n in members]
                total = large * len(members)
                if lacking >= 0:
                    # sum over n of (others + D (1 - own)) - c_min + slack >= 0
                    factors = [1.0] * len(others) + [-large] * len(own) + [1.0]
                    program.row([*others, *own, lacking], factors, least=item.least - total)
                if item.most is not None:
                    # sum over n of (others - D (1 - own)) - c_max - slack <= 0
                    factors = [1.0] * len(others) + [large] * len(own) + [-1.0]
                    program.row([*others, *own, over], factors, most=item.most + total)


def _first_apps(problem: PlacementProblem) -> int:
    """How many of the applications, from the first on, there are variables for."""
    containers = [0] * problem.apps
    for kind in problem.kinds:
        containers[kind.app] += kind.count
    places = 0
    for app, count in enumerate(containers):
        places += count * problem.cluster.machines
        if places > MOST_PLACES:
            return app
    return problem.apps
