"""Which machines an integer program has to consider.

`undominated` leaves out machines without losing the optimum. Machines are *alike* if every constraint
sees the same there: the same node sets, the same counts on the machine itself, the same kinds allowed,
and both or neither fragmented (and empty, and of one capacity, where the objective asks). Of two that
are alike, the one with more room in every dimension can replace the other: whatever is placed on the
smaller one fits the larger, violates nothing more and fragments nothing more. An answer with T
containers uses at most T machines, so a machine that T others can replace is never needed.

`chosen` limits what is left to a number of machines, keeping those of known answers and then those with
the most room for clean placements, set by set. The optimum may be lost; the caller reports the gap to a
bound that holds for all machines.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from argosy._core import Placer
from argosy.model.transactions import MachineArray
from argosy.solvers.placement.answer import Objective, PlacementAnswer
from argosy.solvers.placement.problem import PlacementProblem


def undominated(problem: PlacementProblem, objective: Objective) -> MachineArray:
    cluster = problem.cluster
    there = usable(problem)
    classes = _classes(problem, objective, there)
    most = problem.containers
    keep = np.zeros(len(there), bool)
    order = np.argsort(classes, kind="stable")
    edges = np.flatnonzero(np.diff(classes[order])) + 1
    for members in np.split(order, edges):
        if len(members) <= most:
            keep[members] = True
            continue
        free = cluster.free[there[members]]
        vectors, inverse, counts = np.unique(free, axis=0, return_inverse=True, return_counts=True)
        inverse = inverse.reshape(-1)
        larger = (vectors[None, :, :] >= vectors[:, None, :]).all(axis=2)
        ahead = larger @ counts - counts
        # Among equals, earlier machines replace later ones.
        for number, before in enumerate(ahead.tolist()):
            if before < most:
                keep[members[np.flatnonzero(inverse == number)[: most - before]]] = True
    for kind in problem.kinds:
        if kind.origin >= 0:
            keep[there == kind.origin] = True
    return there[keep]


def usable(problem: PlacementProblem) -> MachineArray:
    """Machines on which some kind fits."""
    fits = np.zeros(problem.cluster.machines, bool)
    for kind, mine in zip(problem.kinds, problem.fitting(), strict=True):
        fits |= mine
        if kind.origin >= 0:
            fits[kind.origin] = True
    return np.flatnonzero(fits).astype(np.int32)


def _classes(
    problem: PlacementProblem, objective: Objective, there: MachineArray
) -> NDArray[np.int64]:
    """A class number per usable machine, equal for machines that are alike."""
    cluster = problem.cluster
    columns: list[NDArray[np.int64]] = [
        np.all(cluster.free >= problem.smallest, axis=1)[there].astype(np.int64)
    ]
    columns += [k.allowed[there].astype(np.int64) for k in problem.kinds if k.allowed is not None]
    named = {item.family for item in problem.items} | {each.family for each in problem.spreads}
    named |= {counter.family for counter in problem.counters}
    for choice in problem.choices:
        named |= {t.family for ways in choice.alternatives for way in ways for t in way}
    for number in sorted(named - {0}):
        family = problem.families[number]
        if family.overlaps:
            joined = [
                tuple(family.sets_of[family.first_set[n] : family.first_set[n + 1]].tolist())
                for n in there.tolist()
            ]
            known: dict[tuple[int, ...], int] = {}
            columns.append(np.array([known.setdefault(sets, len(known)) for sets in joined]))
        else:
            columns.append(family.set_of[there].astype(np.int64))
    for item in problem.items:
        if item.family == 0:
            counts = (item.gamma, item.both, item.other)
            columns += [array[there].astype(np.int64) for array in counts]
    for counter in problem.counters:
        if counter.family == 0:
            columns.append(counter.count[there].astype(np.int64))
    for choice in problem.choices:
        for ways, here in zip(choice.alternatives, choice.here, strict=True):
            if ways and here.any():
                columns.append(here[there].astype(np.int64))
    if objective.used or objective.load:
        columns.append(np.all(cluster.free == cluster.capacity, axis=1)[there].astype(np.int64))
    if objective.load:
        columns += list(cluster.capacity[there].T)
    return _numbered(columns, len(there))


def _numbered(columns: Sequence[NDArray[np.int64]], rows: int) -> NDArray[np.int64]:
    """Gives equal rows equal numbers."""
    numbers = np.zeros(rows, np.int64)
    for column in columns:
        if not len(column) or (column == column[0]).all():
            continue
        _, own = np.unique(column, return_inverse=True)
        _, numbers = np.unique(numbers * (own.max() + 1) + own, return_inverse=True)
    return numbers


def chosen(
    problem: PlacementProblem,
    pool: MachineArray,
    answers: Sequence[PlacementAnswer],
    limit: int,
    placer: Placer,
) -> MachineArray:
    """About `limit` machines of the pool at most, including those used in the answers."""
    picked = set(np.concatenate([np.empty(0, np.int32), *(a.machines for a in answers)]).tolist())
    picked |= {kind.origin for kind in problem.kinds if kind.origin >= 0}
    clean = np.zeros(problem.cluster.machines, np.int64)
    seen: set[tuple[int, ...]] = set()
    for number, kind in enumerate(problem.kinds):
        key = (*kind.request.tolist(), kind.count)
        if key in seen:
            continue
        seen.add(key)
        fits, _, is_clean = placer.look(number)
        clean += kind.count * (fits & is_clean).astype(np.int64)
    room = problem.cluster.free / np.maximum(1, problem.cluster.capacity)
    rank = clean + room.min(axis=1)
    number = max((item.family for item in problem.items if item.least > 0), default=0)
    number = number or max((item.family for item in problem.items), default=0)
    family = problem.families[number]
    if number == 0 or family.overlaps:
        best = pool[np.argsort(-rank[pool], kind="stable")]
        for machine in best.tolist():
            if len(picked) >= limit:
                break
            picked.add(machine)
        return np.array(sorted(picked), np.int32)
    sets = family.set_of
    worth = np.bincount(sets[pool], rank[pool], family.sets + 1)
    used = set(sets[sorted(picked)].tolist()) if picked else set()
    order = sorted(range(family.sets + 1), key=lambda s: (s not in used, -worth[s]))
    each = max(8, limit // max(4, len(used)))
    for one in order:
        if len(picked) >= limit:
            break
        mine = pool[sets[pool] == one]
        for machine in mine[np.argsort(-rank[mine], kind="stable")][:each].tolist():
            if len(picked) >= limit:
                break
            picked.add(machine)
    return np.array(sorted(picked), np.int32)
