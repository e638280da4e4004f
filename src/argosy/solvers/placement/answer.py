"""The answer of an algorithm, and its value.

The objective is equation 1 of the Medea paper with its errors corrected: the share of applications
placed by importance, minus the violation added, minus the machines that become fragmented,

    w1 placed / apps  -  w2 violation / concerned  -  w3 fragmented / containers

where w1 has an addition that lets no soft constraint deny a place (extents have no upper bound), and
optionally less the load of the machines that containers go to, the machines that were empty, and the
containers that move. An application's importance is 1, and more if there are others of lower precedence.
`concerned` is the weight of all pairs of a tag constraint and a new container that it concerns; so each
part is about 0 to 1, whatever the size of the cell. (The paper divides by the number of machines, which
makes its third part vanish in large cells.)
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy._core import Placer
from argosy.solvers.placement.problem import PlacementProblem


class Objective(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The weights of the objective's parts."""

    placed: float = 1.0
    #: Extra value of placing all applications, so that no soft constraint prevents a placement. With 0,
    #: the weights alone decide, and an application with too large violations is not placed.
    first: float = 100.0
    violation: float = 0.5
    fragmented: float = 0.25
    #: Cost per container: the share of its machine already in use, including earlier containers of the
    #: batch.
    load: float = 0.0
    #: Cost per machine that was empty.
    used: float = 0.0
    #: Cost per running container that moves.
    moved: float = 0.1

    @property
    def whole(self) -> float:
        """The value of placing all applications."""
        return self.placed + self.first


AnswerStatus = Literal["optimal", "feasible", "heuristic"]


class Worth(msgspec.Struct, frozen=True):
    """The parts of an answer's value, and whether the answer is allowed at all."""

    value: float
    placed: int
    #: Weight times extent, afterwards and before.
    violation: float
    violation_before: float
    fragmented: int
    is_allowed: bool


class PlacementAnswer(msgspec.Struct, frozen=True):
    """Placed containers, one row each, and what is known about the quality of the answer."""

    kinds: NDArray[np.int32]
    machines: NDArray[np.int32]
    worth: Worth
    algorithm: str
    status: AnswerStatus = "heuristic"
    #: Upper bound on the value of any answer.
    bound: float = float("inf")
    #: Number of machines that the integer program chose from, if it was solved.
    candidates: int = 0

    @property
    def gap(self) -> float:
        return max(0.0, self.bound - self.worth.value)

    def machines_of(self, kind: int) -> NDArray[np.int32]:
        found: NDArray[np.int32] = self.machines[self.kinds == kind]
        return found


def dominant(amounts: NDArray[np.int64], capacity: NDArray[np.int64]) -> NDArray[np.float64]:
    """The largest share of any dimension, per machine."""
    shares = amounts / np.maximum(1, capacity)
    return np.asarray(shares.max(axis=1), np.float64)


def mean_share(problem: PlacementProblem) -> float:
    """The mean dominant share of a new container on a machine."""
    if not problem.containers or not problem.cluster.machines:
        return 0.0
    typical = np.maximum(1, problem.cluster.capacity.mean(axis=0))
    total = sum(kind.count * float((kind.request / typical).max()) for kind in problem.kinds)
    return total / problem.containers


def appraise(
    problem: PlacementProblem,
    objective: Objective,
    kinds: NDArray[np.int32],
    machines: NDArray[np.int32],
    placer: Placer | None = None,
) -> Worth:
    """The value of putting a container of ``kinds[i]`` on ``machines[i]``, for all i."""
    native = placer or problem.placer()
    before, after, fragmented, fits, breaks = native.judge(kinds, machines)
    have = np.bincount(kinds, minlength=len(problem.kinds))
    whole = np.ones(problem.apps, bool)
    some = np.zeros(problem.apps, bool)
    moved = 0
    for number, kind in enumerate(problem.kinds):
        whole[kind.app] &= have[number] == kind.count
        some[kind.app] |= have[number] > 0
        if kind.origin >= 0:
            moved += int((machines[kinds == number] != kind.origin).sum())
    placed = int(whole.sum())
    containers = max(1, problem.containers)
    value = (
        objective.whole * float(np.dot(whole, problem.importance)) / max(1, problem.apps)
        - objective.violation * (after - before) / max(problem.concerned, 1e-12)
        - objective.fragmented * fragmented / containers
        - objective.moved * moved / containers
    )
    cluster = problem.cluster
    if objective.used:
        is_empty = (cluster.free == cluster.capacity).all(axis=1)
        value -= objective.used * int(is_empty[np.unique(machines)].sum()) / containers
    if objective.load:
        taken, count = np.unique(machines, return_counts=True)
        share = dominant((cluster.capacity - cluster.free)[taken], cluster.capacity[taken])
        load = count * share + mean_share(problem) * count * (count - 1) / 2
        value -= objective.load * float(load.sum()) / containers
    return Worth(
        float(value),
        placed,
        after,
        before,
        fragmented,
        bool(fits and not breaks and (whole | ~some).all()),
    )
