"""Whether claims keep hard constraints in the cell as it is when they are committed.

Between a decision and its commit, containers start and end and applications come with constraints of
their own. What would break a hard constraint by then is left out and decided again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.engines.families.lra.memory import Memory
from argosy.engines.families.lra.relaxing import concerns
from argosy.model.constraints.parts import conjuncts
from argosy.model.transactions import Claims
from argosy.solvers.placement import ContainerKind
from argosy.solvers.placement.demands import Tags
from argosy.solvers.placement.violations import Judge

_EXACT: Final = 1e-9


class HardConstraintCheck:
    """Judges claims against the memory's constraints and containers."""

    def __init__(
        self, memory: Memory, view: View, claims: Claims, origins: Mapping[int, int]
    ) -> None:
        """`origins` has the machines of running tasks that the claims move."""
        self._memory = memory
        self._machines = claims.machines
        tasks, shapes = claims.tasks.tolist(), claims.shapes.tolist()
        self._origins = [origins.get(task, -1) for task in tasks]
        rows = [
            (shape, memory.tags(task, shape, view))
            for task, shape in zip(tasks, shapes, strict=True)
        ]
        known = {kind: number for number, kind in enumerate(dict.fromkeys(rows))}
        self._kinds = np.array([known[row] for row in rows], np.int32)
        self._tags: list[Tags] = [tags for _, tags in known]
        kinds = [
            ContainerKind(number, tags, np.array(view.shape_request(shape), np.int64), len(claims))
            for number, (shape, tags) in enumerate(known)
        ]
        self._constraints = [
            part
            for constraint in memory.manager.everything()
            if constraint.hard and concerns(constraint, kinds)
            for part in conjuncts(constraint)
        ]
        problem = memory.ledger.problem(view.free(), view.capacity(), kinds)
        self._placer = problem.placer()

    def allowed(self, gangs: NDArray[np.int32]) -> NDArray[np.bool_]:
        """The claims that may be made; those of a gang all or none. If not all may, gangs are admitted
        one by one, in order, and again after others that they may need."""
        everything = np.ones(len(gangs), np.bool_)
        if not self._constraints or not self._breaks(everything):
            return everything
        admitted = np.zeros(len(gangs), np.bool_)
        left = list(dict.fromkeys(gangs.tolist()))
        while left:
            rest = []
            for gang in left:
                more = admitted | (gangs == gang)
                if self._breaks(more):
                    rest.append(gang)
                else:
                    admitted = more
            if len(rest) == len(left):
                break
            left = rest
        return admitted

    def _breaks(self, rows: NDArray[np.bool_]) -> bool:
        chosen = np.flatnonzero(rows).tolist()
        if any(self._origins[row] >= 0 for row in chosen):
            return self._moves_break(chosen)
        kinds = self._kinds[rows].astype(np.int32)
        return self._placer.judge(kinds, self._machines[rows])[-1]

    def _moves_break(self, rows: Sequence[int]) -> bool:
        """As for new containers, but moves may also harm those that they leave."""
        before = {
            (broken.constraint, broken.tags, broken.machine): broken.extent
            for broken in Judge(self._memory.ledger).broken(self._constraints)
        }
        come = {(self._tags[self._kinds[row]], int(self._machines[row])) for row in rows}
        with self._made(rows):
            for broken in Judge(self._memory.ledger).broken(self._constraints):
                key = (broken.constraint, broken.tags, broken.machine)
                is_new = (broken.tags, broken.machine) in come
                if broken.extent > (0.0 if is_new else before.get(key, 0.0)) + _EXACT:
                    return True
        return False

    @contextmanager
    def _made(self, rows: Sequence[int]) -> Iterator[None]:
        ledger = self._memory.ledger
        for row in rows:
            ledger.start(self._tags[self._kinds[row]], int(self._machines[row]))
            if self._origins[row] >= 0:
                ledger.stop(self._tags[self._kinds[row]], self._origins[row])
        try:
            yield
        finally:
            for row in rows:
                if self._origins[row] >= 0:
                    ledger.start(self._tags[self._kinds[row]], self._origins[row])
                ledger.stop(self._tags[self._kinds[row]], int(self._machines[row]))


def hard_rows(
    memory: Memory,
    view: View,
    claims: Claims,
    gangs: NDArray[np.int32],
    under_way: Claims | None = None,
) -> NDArray[np.bool_]:
    """The claims that keep hard constraints if they are made now, beside those that are under way."""
    if not memory.manager.has_hard:
        return np.ones(len(gangs), np.bool_)
    homes = {task: machine for task, machine, _ in memory.own_containers()}
    with memory.assumed(under_way, view):
        check = HardConstraintCheck(memory, view, claims, homes)
        return check.allowed(gangs)
