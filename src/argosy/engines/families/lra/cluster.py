"""Node groups, static tags and running containers, read from a view."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.cell.bitmaps import to_mask
from argosy.model.machines import static_tags
from argosy.solvers.placement import Family, PlacementState


def make_ledger(view: View) -> PlacementState:
    """An empty ledger of the view's machines."""
    machines = view.machines
    families = {}
    for group in view.groups:
        joins: list[list[int]] = [[] for _ in range(machines)]
        names = view.sets_in(group)
        for number, name in enumerate(names):
            for machine in np.flatnonzero(to_mask(view.members(group, name), machines)).tolist():
                joins[machine].append(number)
        families[group] = Family.of(group, joins, len(names))
    carried: dict[frozenset[str], NDArray[np.bool_]] = {}
    having: list[dict[str, str]] = [{} for _ in range(machines)]
    for key, value in view.attributes:
        for machine in np.flatnonzero(to_mask(view.where({key: value}), machines)).tolist():
            having[machine][key] = value
    for machine, attributes in enumerate(having):
        if attributes:
            tags = static_tags(attributes)
            carried.setdefault(tags, np.zeros(machines, bool))[machine] = True
    return PlacementState(machines, families, tuple(carried.items()))
