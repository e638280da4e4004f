"""The Medea paper's heuristics in their plainest reading, for comparison with Argosy's own.

Section 5.3 orders containers and leaves open how each finds its machine. Here a machine is *allowed*
for a container if, given what is already there,

- no upper bound is exceeded, of its own constraints or of those that count it;
- its own lower bounds are met, as far as what they count exists anywhere yet.

There is no lookahead, and lower bounds of containers already placed (a master that waits for its
gateway) attract nothing. Tag popularity and node candidates take the emptiest allowed machine, because
figure 10b shows them as balanced as J-Kube; serial, the only one less balanced there, takes the first.
If no machine is allowed, all machines with room are.

`jkube-plain` is J-Kube in the same reading: one container at a time in the given order, by its own
affinities alone. Kubernetes itself, like `jkube`, also weighs those of containers already placed.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.model.errors import ModelError
from argosy.solvers.placement.answer import Objective, PlacementAnswer, appraise
from argosy.solvers.placement.heuristics import popularity_order
from argosy.solvers.placement.problem import Item, PlacementProblem


class Reading(msgspec.Struct, frozen=True):
    by_popularity: bool = False
    by_candidates: bool = False
    #: Whether the emptiest allowed machine is taken, rather than the first.
    emptiest: bool = True


READINGS: Final = {
    "tag-popularity-plain": Reading(by_popularity=True),
    "node-candidates-plain": Reading(by_candidates=True),
    "serial-plain": Reading(emptiest=False),
    "jkube-plain": Reading(),
}


class _Counts:
    """An item with its current counts."""

    def __init__(self, item: Item, set_of: NDArray[np.int32]) -> None:
        self.item = item
        self.set_of = set_of
        self.gamma, self.both, self.other = item.gamma.copy(), item.both.copy(), item.other.copy()

    def allows(self, kind: int) -> NDArray[np.bool_]:
        """Per set, whether one more container of the kind breaks nothing there."""
        item, gamma = self.item, self.gamma
        allowed = np.ones(len(gamma), np.bool_)
        if item.subject[kind]:
            allowed &= gamma >= min(item.least, int(gamma.sum()))
            if item.most is not None:
                allowed &= gamma <= item.most
        if item.match[kind] and item.most is not None:
            allowed &= (self.both == 0) | (gamma <= item.most)
            allowed &= (self.other == 0) | (gamma + 1 <= item.most)
        return allowed

    def put(self, kind: int, machine: int, sign: int = 1) -> None:
        at = self.set_of[machine]
        is_subject, is_counted = bool(self.item.subject[kind]), bool(self.item.match[kind])
        self.gamma[at] += sign * is_counted
        self.both[at] += sign * (is_subject and is_counted)
        self.other[at] += sign * (is_subject and not is_counted)


def read_plainly(
    problem: PlacementProblem, name: str, objective: Objective | None = None
) -> PlacementAnswer:
    """The answer of one of `READINGS`; applications that do not fit completely, or would break a hard
    constraint, are left out. Running containers that may move stay where they are."""
    if problem.choices or problem.spreads:
        raise ModelError(
            "a constraint with alternatives or a spread has no plain reading",
            hint="choose the algorithm without '-plain'",
        )
    how, aim = READINGS[name], objective or Objective()
    items = [_Counts(item, problem.families[item.family].set_of) for item in problem.items]
    free, capacity = problem.cluster.free.copy(), problem.cluster.capacity
    left = [kind.count for kind in problem.kinds]
    order = popularity_order(problem) if how.by_popularity else list(range(len(left)))
    tiers = problem.tiers
    order.sort(key=tiers.__getitem__)
    placed: list[tuple[int, int]] = []

    def allowed(kind: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        room = np.asarray((free >= problem.kinds[kind].request).all(axis=1), np.bool_)
        if (only := problem.kinds[kind].allowed) is not None:
            room &= only
        clean = room.copy()
        for each in items:
            if each.item.subject[kind] or each.item.match[kind]:
                there = each.allows(kind)[each.set_of]
                clean &= there
                if each.item.hard:
                    room &= there
        return clean, room

    def put(kind: int, machine: int, sign: int = 1) -> None:
        for each in items:
            each.put(kind, machine, sign)
        free[machine] -= sign * problem.kinds[kind].request

    for kind, each in enumerate(problem.kinds):
        if each.origin >= 0:
            put(kind, each.origin)
            placed.append((kind, each.origin))
            left[kind] = 0
    while any(left):
        waiting = [kind for kind in order if left[kind]]
        waiting = [kind for kind in waiting if tiers[kind] == tiers[waiting[0]]]
        seen = {kind: allowed(kind) for kind in (waiting if how.by_candidates else waiting[:1])}
        kind = min(seen, key=lambda each: int(seen[each][0].sum()))
        clean, room = seen[kind]
        among = np.flatnonzero(clean if clean.any() else room)
        if not len(among):
            app = problem.kinds[kind].app
            for row in placed:
                if problem.kinds[row[0]].app == app:
                    put(*row, sign=-1)
            placed = [row for row in placed if problem.kinds[row[0]].app != app]
            left = [
                0 if problem.kinds[each].app == app else count for each, count in enumerate(left)
            ]
            continue
        share = (free[among] / np.maximum(1, capacity[among])).min(axis=1)
        machine = int(among[np.argmax(share)] if how.emptiest else among[0])
        put(kind, machine)
        placed.append((kind, machine))
        left[kind] -= 1
    return _allowed_part(problem, aim, placed, name)


def _allowed_part(
    problem: PlacementProblem, aim: Objective, placed: list[tuple[int, int]], name: str
) -> PlacementAnswer:
    """All applications, or those in order that together keep hard constraints."""
    answer = _answer(problem, aim, placed, name)
    if answer.worth.is_allowed:
        return answer
    kept: list[tuple[int, int]] = []
    for app in dict.fromkeys(problem.kinds[kind].app for kind, _ in placed):
        more = kept + [row for row in placed if problem.kinds[row[0]].app == app]
        if _answer(problem, aim, more, name).worth.is_allowed:
            kept = more
    return _answer(problem, aim, kept, name)


def _answer(
    problem: PlacementProblem, aim: Objective, placed: list[tuple[int, int]], name: str
) -> PlacementAnswer:
    kinds = np.array([kind for kind, _ in placed], np.int32)
    machines = np.array([machine for _, machine in placed], np.int32)
    return PlacementAnswer(kinds, machines, appraise(problem, aim, kinds, machines), name)
