"""Spreads the tasks of one job over failure domains, which may nest and overlap."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy.cell import Bitmap, View
from argosy.cell.bitmaps import to_bitmap, to_mask
from argosy.model.random import Random


def over_domains(
    groups: str | tuple[str, ...], count: int, view: View, random: Random
) -> Iterator[tuple[Bitmap, int]]:
    """Sets of machines in random order, each with the most tasks that it should get. None without
    groups."""
    named = (groups,) if isinstance(groups, str) else groups
    if len(named) > 1:
        yield from _over_overlapping(named, count, view, random)
        return
    for group in filter(None, named):
        sets = list(view.sets_in(group))
        part = -(-count // len(sets)) if sets else 0
        while sets:
            yield view.members(group, sets.pop(random.below(len(sets)))), part


def _over_overlapping(
    groups: tuple[str, ...], count: int, view: View, random: Random
) -> Iterator[tuple[Bitmap, int]]:
    """Machines in the same sets are of one kind: they fail together. Each task goes to the kind that
    shares the fewest sets with the tasks before it: O(count x kinds)."""
    members = [
        to_mask(view.members(group, name), view.machines)
        for group in groups
        for name in view.sets_in(group)
    ]
    if not members:
        return
    kinds, kind_of = np.unique(np.stack(members, axis=1), axis=0, return_inverse=True)
    shared = kinds.astype(np.int64) @ kinds.T.astype(np.int64)
    # Of equally good kinds, the one that shares least with all others, then the one with the fewest
    # tasks, then any.
    order = np.lexsort(([random.bits() for _ in kinds],))
    among_all = shared.sum(axis=1)
    load = np.zeros(len(kinds), np.int64)
    parts = np.zeros(len(kinds), np.int64)
    for _ in range(count):
        kind = order[np.lexsort((parts[order], among_all[order], load[order]))[0]]
        parts[kind] += 1
        load += shared[kind]
    for kind in order.tolist():
        if parts[kind]:
            yield to_bitmap(kind_of.reshape(-1) == kind), int(parts[kind])
