"""A mixed-integer program in sparse rows, and SCIP behind it.

SCIP comes inside OR-Tools (the extra `ilp`), which is imported when the first program is solved. The
program is minimised. A variable that is not free may define how its value follows from earlier
variables, so that a heuristic's answer can be completed into a full solution to start from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy._core import seconds_until
from argosy.model.budgets import Budget
from argosy.model.errors import MissingExtra

#: Search parameters for small programs, whose time goes into presolving and root heuristics.
_PARAMETERS: Final = """
presolving/maxrounds = 3
presolving/maxrestarts = 0
separating/maxroundsroot = 5
separating/maxrounds = 1
misc/usesymmetry = 0
randomization/randomseedshift = 0
timing/reading = FALSE
"""

#: A shorter time would mean no limit at all.
_SHORTEST: Final = 1e-3

Values = list[float]


class ProgramSolution(msgspec.Struct, frozen=True):
    """`values` is None if nothing was found; `bound` is a lower bound on the cost of any solution."""

    values: NDArray[np.float64] | None
    objective: float
    bound: float
    is_optimal: bool


class Program:
    """Variables are numbered in the order in which they are added."""

    def __init__(self) -> None:
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.cost: list[float] = []
        self.integral: list[bool] = []
        #: For variables that are not free: how the value follows from earlier ones.
        self.derived: list[tuple[int, Callable[[Values], float]]] = []
        self.rows: list[tuple[list[int], list[float], float, float]] = []
        #: Part of every solution's cost.
        self.constant = 0.0

    def add(
        self,
        upper: float,
        cost: float = 0.0,
        *,
        integral: bool = True,
        derived: Callable[[Values], float] | None = None,
    ) -> int:
        number = len(self.upper)
        self.lower.append(0.0)
        self.upper.append(upper)
        self.cost.append(cost)
        self.integral.append(integral)
        if derived is not None:
            self.derived.append((number, derived))
        return number

    def row(
        self,
        columns: Sequence[int],
        factors: Sequence[float],
        least: float = -np.inf,
        most: float = np.inf,
    ) -> None:
        if len(set(columns)) < len(columns):
            # A column may occur twice if a count is relied on twice; the solver needs each variable
            # once.
            merged: dict[int, float] = {}
            for column, factor in zip(columns, factors, strict=True):
                merged[column] = merged.get(column, 0.0) + factor
            columns, factors = list(merged), list(merged.values())
        self.rows.append((list(columns), list(factors), least, most))

    def forbid(self, columns: Sequence[int]) -> None:
        for column in columns:
            self.upper[column] = 0.0

    def charge(self, columns: Sequence[int], cost: float) -> None:
        for column in columns:
            self.cost[column] += cost

    def completed(self, start: dict[int, float]) -> NDArray[np.float64]:
        """The full solution that follows from the values of the free variables."""
        values: Values = [0.0] * len(self.upper)
        for number, value in start.items():
            values[number] = value
        for number, derived in self.derived:
            values[number] = derived(values)
        return np.array(values)

    def violates(self, values: NDArray[np.float64]) -> bool:
        """Whether a row or bound is violated by more than rounding."""
        if (values > np.array(self.upper) + 1e-6).any() or (values < -1e-6).any():
            return True
        for columns, factors, least, most in self.rows:
            total = sum(f * values[c] for c, f in zip(columns, factors, strict=True))
            slack = 1e-6 * max(1.0, abs(total))
            if total < least - slack or total > most + slack:
                return True
        return False

    def solve(
        self,
        start: NDArray[np.float64] | None = None,
        budget: Budget | None = None,
        *,
        until: float = 1.0,
        nodes: int | None = None,
        gap: float = 1e-9,
    ) -> ProgramSolution:
        """`nodes` bounds the search identically on every computer. SCIP only accepts a time limit: the
        time left until the given share of the budget is used, if the budget uses a clock."""
        core = _ortools()
        model = core.ModelBuilderHelper()
        model.add_var_array_with_bounds(
            np.array(self.lower), np.array(self.upper), np.array(self.integral, bool), ""
        )
        model.set_objective_coefficients(list(range(len(self.cost))), self.cost)
        model.set_maximize(False)
        variables = [core.Variable(model, number) for number in range(len(self.upper))]
        for columns, factors, least, most in self.rows:
            number = model.add_linear_constraint()
            model.set_constraint_lower_bound(number, least)
            model.set_constraint_upper_bound(number, most)
            model.add_terms_to_constraint(number, [variables[c] for c in columns], factors)
        if start is not None:
            for column, value in enumerate(start.tolist()):
                model.add_hint(column, value)
        solver = core.ModelSolverHelper("scip")
        seconds = np.inf if budget is None else seconds_until(budget, until)
        if np.isfinite(seconds):
            solver.set_time_limit_in_seconds(max(_SHORTEST, seconds))
        parameters = _PARAMETERS + f"limits/absgap = {gap}\n"
        if nodes is not None:
            parameters += f"limits/totalnodes = {nodes}\n"
        solver.set_solver_specific_parameters(parameters)
        solver.solve(model)
        if not solver.has_solution():
            infeasible = solver.status() == core.SolveStatus.INFEASIBLE
            return ProgramSolution(None, np.inf, np.inf if infeasible else -np.inf, infeasible)
        is_optimal = solver.status() == core.SolveStatus.OPTIMAL
        objective = solver.objective_value()
        bound = objective if is_optimal else solver.best_objective_bound()
        return ProgramSolution(
            np.array(solver.variable_values()),
            objective + self.constant,
            bound + self.constant,
            is_optimal,
        )


def _ortools() -> Any:
    try:
        from ortools.linear_solver.python import model_builder_helper
    except ImportError:
        raise MissingExtra("the integer program", "ilp", "choose another algorithm") from None
    return model_builder_helper


def has_solver() -> bool:
    """Whether OR-Tools is installed; it is not imported."""
    return find_spec("ortools") is not None
