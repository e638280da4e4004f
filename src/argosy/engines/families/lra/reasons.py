"""Explanations: what a placement breaks, and why an application has none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.engines.families.lra.memory import Memory
from argosy.engines.families.lra.relaxing import Asked, concerns, remedy
from argosy.model.constraints import Constraint
from argosy.model.constraints.parts import APP
from argosy.model.constraints.text import format_constraint
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.solvers.placement import ContainerKind, PlacementAnswer, PlacementProblem
from argosy.solvers.placement.violations import Broken, Judge

#: Limits: broken constraints per explanation, applications per sentence.
_MOST: Final = 3
_EXACT: Final = 1e-7


def violated(memory: Memory, problem: PlacementProblem, answer: PlacementAnswer) -> Explanation:
    """How the answer was found, and which constraints it violates, by how much and for which
    containers."""
    rule = f"{answer.algorithm} for the whole job"
    if answer.status == "optimal":
        rule += ", proven best"
    elif answer.gap > _EXACT and np.isfinite(answer.bound):
        rule += f", at most {answer.gap:.3g} below the best"
    worth = answer.worth
    is_worse = worth.violation > worth.violation_before + _EXACT
    broken = _broken(memory, problem, answer) if is_worse else ()
    return Explanation(looked_at=problem.cluster.machines, rule=rule, violated=tuple(broken))


def _broken(memory: Memory, problem: PlacementProblem, answer: PlacementAnswer) -> list[str]:
    """Violations that the answer adds, for old and new containers, worst first."""
    constraints = [c for c in memory.manager.everything() if concerns(c, problem.kinds)]
    before = Counter(
        {
            (b.constraint, b.tags, b.machine): b.count * b.extent
            for b in _judged(memory, constraints)
        }
    )
    whom: dict[int, Counter[str]] = {}
    extents: dict[int, float] = {}
    with memory.running(problem, answer):
        for broken in _judged(memory, constraints):
            number = broken.constraint
            extent = broken.count * broken.extent - before[number, broken.tags, broken.machine]
            if extent > _EXACT:
                name = _application(broken.tags)
                whom.setdefault(number, Counter())[name] += broken.count
                extents[number] = extents.get(number, 0.0) + extent
    worst = sorted(extents, key=lambda number: -constraints[number].weight * extents[number])
    found = [
        f"'{format_constraint(constraints[number])}' is broken for {_containers(whom[number])},"
        f" by {extents[number]:.3g} in all"
        for number in worst[:_MOST]
    ]
    more = len(worst) - _MOST
    if more > 0:
        found.append(f"{more} more constraint{'s are' if more > 1 else ' is'} broken")
    return found


def _judged(memory: Memory, constraints: Sequence[Constraint]) -> list[Broken]:
    return list(Judge(memory.ledger).broken(constraints))


def _application(tags: frozenset[str]) -> str:
    return next((tag.removeprefix(APP) for tag in sorted(tags) if tag.startswith(APP)), "")


def _containers(whom: Counter[str]) -> str:
    """Number of containers per application, largest first."""
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
    kinds: Sequence[ContainerKind],
    free: NDArray[np.int64],
    view: View,
    smallest: Sequence[int],
) -> Explanation:
    """Why an application found no place on its own, and what would give it one: more room, or relaxing
    certain hard constraints."""
    if not view.machines:
        return Explanation(remedy="add a machine")
    fits = [np.all(free >= kind.request, axis=1) for kind in kinds]
    for kind, where in zip(kinds, fits, strict=True):
        if kind.allowed is not None:
            where &= kind.allowed
    tightest = int(np.argmin([where.sum() for where in fits]))
    ruled_out, miss = _lacks(kinds[tightest], free, fits[tightest], view)
    asked = Asked(memory.ledger, kinds, free, view.capacity(), smallest)
    advice, forbidden = remedy(asked, memory.manager, number, view.applications())
    return Explanation(
        looked_at=view.machines,
        feasible=int(fits[tightest].sum()),
        ruled_out=ruled_out,
        nearest_miss=miss if not fits[tightest].any() else None,
        remedy=advice,
        forbidden=forbidden,
    )


def _lacks(
    kind: ContainerKind, free: NDArray[np.int64], fits: NDArray[np.bool_], view: View
) -> tuple[dict[str, int], Refusal | None]:
    """The number of machines without room by the first dimension they lack, and the machine that lacks
    least."""
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
