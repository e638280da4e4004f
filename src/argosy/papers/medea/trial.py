"""A solver alone: applications are placed batch by batch, outside of any engine, to measure the time it
takes (figures 11a and 11b).

Violations count for all constraints, even if an algorithm does not support them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from argosy.engines.families.lra import sight
from argosy.model.constraints import Constraint
from argosy.model.constraints.parts import of_job
from argosy.model.constraints.text import parse_constraint
from argosy.model.random import Random
from argosy.papers.experiment import ExperimentPoint
from argosy.solvers.placement import (
    ContainerKind,
    Family,
    PlacementAnswer,
    PlacementProblem,
    PlacementState,
    place,
)
from argosy.solvers.placement.ilp import SolverLimits, solve
from argosy.solvers.placement.plain import READINGS, read_plainly
from argosy.solvers.placement.violations import Judge
from argosy.worlds.clocks import ClockBudget

MB: Final = 1024
SMALLEST: Final = 2 * MB
#: The solver is limited by its search tree, not by the clock, so results do not depend on the computer.
LIMITS: Final = SolverLimits(nodes=500)
_MOST_TIME: Final = 30_000_000
_SIGHTS: Final[dict[str, Callable[[Constraint], Constraint | None]]] = {
    "jkube": sight.kube,
    "jkube-plain": sight.kube,
    "jkube++": sight.kube_plus,
    "kube-modern": sight.kube_modern,
    "yarn": sight.nothing,
}
_RULES: Final = {"jkube": "kube", "jkube++": "kube", "kube-modern": "kube", "yarn": "heartbeat"}
#: An HBase instance: ten workers, and three others.
HBASE_ROLES: Final = (
    ("worker", 2 * MB, 10),
    ("master", MB, 1),
    ("gateway", MB, 1),
    ("standby", MB, 1),
)
_GATHERED: Final = (
    "appID:self & worker -> {appID:self & worker, 9, inf} in rack",
    "appID:self & master -> {appID:self & gateway, 1, inf} in machine",
    "appID:self & master -> {appID:self & standby, 0, 0} in machine",
)
#: At most two workers per machine: of one application, or of all, as in the paper. With the latter, at
#: most 28.75 % of the memory can be used.
HBASE: Final = (*_GATHERED, "appID:self & worker -> {appID:self & worker, 0, 1} in machine")
HBASE_AS_PRINTED: Final = (*_GATHERED, "appID:self & worker -> {worker, 0, 1} in machine")


class PlacementTrial:
    """Memory is the only resource: with 8 cores per machine, the paper's 90 % could not be reached."""

    def __init__(
        self,
        machines: int,
        sets: int,
        algorithm: str,
        seed: int,
        group: str = "rack",
        memory: int = 16 * MB,
    ) -> None:
        self.capacity = np.full((machines, 1), memory, np.int64)
        self.free = self.capacity.copy()
        joins = [[n * sets // machines] for n in range(machines)]
        self.ledger = PlacementState(machines, {group: Family.of(group, joins, sets)})
        self.see = _SIGHTS.get(algorithm, sight.everything)
        self.algorithm = algorithm
        self.random = Random(seed)
        self.applications = 0
        self.active: list[Constraint] = []
        self.containers = 0
        self.spent = 0.0
        self.limits = LIMITS

    @property
    def used(self) -> float:
        return 1 - float(self.free.sum() / self.capacity.sum())

    def submit(
        self, roles: Sequence[tuple[str, int, int]], texts: Sequence[str], app: int
    ) -> list[ContainerKind]:
        """Places an application of (tags, memory, count) with its constraints, the `app`-th of its
        batch."""
        name = f"a{self.applications}"
        self.applications += 1
        own = of_job(name, map(parse_constraint, texts))
        self.active += own
        for constraint in own:
            if (seen := self.see(constraint)) is not None:
                self.ledger.add(seen)
        return [
            ContainerKind(
                app, frozenset({f"appID:{name}", *role.split()}), np.array([memory]), count
            )
            for role, memory, count in roles
        ]

    def place(self, kinds: Sequence[ContainerKind]) -> tuple[PlacementProblem, PlacementAnswer]:
        began = time.process_time()
        problem = self.ledger.problem(self.free, self.capacity, kinds, (SMALLEST,))
        answer = self._decide(problem)
        self.spent += time.process_time() - began
        for kind, machine in zip(answer.kinds.tolist(), answer.machines.tolist(), strict=True):
            self.free[machine] -= problem.kinds[kind].request
            self.ledger.start(problem.kinds[kind].tags, machine)
        self.containers += len(answer.kinds)
        return problem, answer

    def _decide(self, problem: PlacementProblem) -> PlacementAnswer:
        if self.algorithm.startswith("ilp"):
            always = self.algorithm == "ilp-solved"
            budget = ClockBudget(_MOST_TIME)
            return solve(problem, self.random, limits=self.limits, budget=budget, always=always)
        if self.algorithm in READINGS:
            return read_plainly(problem, self.algorithm)
        return place(problem, _RULES.get(self.algorithm, self.algorithm), self.random)

    def batch(self, texts: Sequence[str] = HBASE) -> int:
        """Places two HBase-like applications; returns how many were placed."""
        kinds = [k for app in range(2) for k in self.submit(HBASE_ROLES, texts, app)]
        return self.place(kinds)[1].worth.placed

    def violating(self) -> tuple[float, float]:
        """The share of containers that violate something, and the mean extent per container."""
        broken = list(Judge(self.ledger).broken(self.active))
        who = {(each.tags, each.machine): each.count for each in broken}
        total = max(1, self.containers)
        return sum(who.values()) / total, sum(b.count * b.extent for b in broken) / total


def sized(point: ExperimentPoint, count: int) -> int:
    """A number of machines at the point's scale."""
    return count // 10 if point.scale == "smoke" else count
