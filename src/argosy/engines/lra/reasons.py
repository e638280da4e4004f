"""Explanations: what a placement breaks, and why an application has none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.engines.lra.memory import Memory
from argosy.engines.lra.relaxing import Asked, remedy
from argosy.model.constraint_parts import APP
from argosy.model.constraint_text import format_constraint
from argosy.model.constraints import Constraint
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.solvers.placement import Answer, Kind, Ledger, Problem
from argosy.solvers.placement.violations import Judge

#: Sentences about broken constraints in one explanation.
_MOST = 3


def violated(
    ledger: Ledger, constraints: Sequence[Constraint], problem: Problem, answer: Answer
) -> Explanation:
    """How the answer was found, and which of the constraints it breaks by how much for whom."""
    rule = answer.algorithm
    if answer.status != "heuristic":
        rule += f", {answer.status}"
    if answer.gap > 1e-7 and np.isfinite(answer.bound):
        rule += f", at most {answer.gap:.3g} below the best"
    remedy = ""
    if answer.worth.violation > answer.worth.violation_before + 1e-9:
        remedy = "; ".join(_sentences(ledger, constraints, problem, answer))
    return Explanation(looked_at=problem.cluster.machines, rule=rule, remedy=remedy)


def _sentences(
    ledger: Ledger, constraints: Sequence[Constraint], problem: Problem, answer: Answer
) -> list[str]:
    spots = list(zip(answer.kinds.tolist(), answer.machines.tolist(), strict=True))
    for kind, machine in spots:
        ledger.start(problem.kinds[kind].tags, machine)
    new = {kind.tags for kind in problem.kinds}
    whom: dict[int, Counter[str]] = {}
    extents: Counter[int] = Counter()
    for broken in Judge(ledger).broken(constraints):
        if broken.tags in new:
            whom.setdefault(broken.constraint, Counter())[_application(broken.tags)] += broken.count
            extents[broken.constraint] += broken.count * broken.extent  # type: ignore[assignment]
    for kind, machine in spots:
        ledger.stop(problem.kinds[kind].tags, machine)
    worst = sorted(extents, key=lambda number: -constraints[number].weight * extents[number])
    found = [
        f"'{format_constraint(constraints[number])}' is broken for {_containers(whom[number])},"
        f" by {extents[number]:.3g} in all"
        for number in worst[:_MOST]
    ]
    if len(worst) > _MOST:
        found.append(f"and {len(worst) - _MOST} more")
    return found


def _application(tags: frozenset[str]) -> str:
    return next((tag.removeprefix(APP) for tag in sorted(tags) if tag.startswith(APP)), "")


def _containers(whom: Counter[str]) -> str:
    """How many containers of which applications, most first."""
    parts = []
    for name, count in whom.most_common(_MOST):
        containers = "1 container" if count == 1 else f"{count} containers"
        parts.append(f"{containers} of {name}" if name else containers)
    if len(whom) > _MOST:
        parts.append(f"those of {len(whom) - _MOST} more")
    return " and ".join(parts)


def unplaced(
    memory: Memory,
    number: int,
    kinds: Sequence[Kind],
    free: NDArray[np.int64],
    view: View,
    smallest: Sequence[int],
) -> Explanation:
    """Why an application found no place on its own, and what would give it one: room, or which of the
    hard constraints to relax."""
    fits = [np.all(free >= kind.request, axis=1) for kind in kinds]
    for kind, where in zip(kinds, fits, strict=True):
        if kind.allowed is not None:
            where &= kind.allowed
    tightest = int(np.argmin([where.sum() for where in fits]))
    ruled_out, miss = _lacks(kinds[tightest], free, fits[tightest], view)
    asked = Asked(memory.ledger, kinds, free, view.capacity(), smallest)
    return Explanation(
        looked_at=view.machines,
        feasible=int(fits[tightest].sum()),
        ruled_out=ruled_out,
        nearest_miss=miss if not fits[tightest].any() else None,
        remedy=remedy(asked, memory.manager, number, view.applications()),
    )


def _lacks(
    kind: Kind, free: NDArray[np.int64], fits: NDArray[np.bool_], view: View
) -> tuple[dict[str, int], Refusal | None]:
    """Machines without room by the first dimension they lack, and the one that lacks least."""
    ruled_out: dict[str, int] = {}
    lacking = np.maximum(0, kind.request - free)
    open_ = ~fits
    if kind.allowed is not None:
        filtered = int((~kind.allowed).sum())
        if filtered:
            ruled_out["filtered"] = filtered
        open_ &= kind.allowed
    for d, name in enumerate(view.dimensions):
        first = open_ & (lacking[:, d] > 0)
        if first.any():
            ruled_out[name] = int(first.sum())
        open_ &= ~first
    share = (lacking / np.maximum(1, kind.request)).max(axis=1)
    if kind.allowed is not None:
        share = np.where(kind.allowed, share, np.inf)
    nearest = int(np.argmin(share))
    if not np.isfinite(share[nearest]):
        return ruled_out, None
    d = int(np.argmax(lacking[nearest] / np.maximum(1, kind.request)))
    amount = int(lacking[nearest, d])
    return ruled_out, Refusal(
        Why.NO_ROOM, machine=nearest, dimension=view.dimensions[d], lacking=amount
    )
