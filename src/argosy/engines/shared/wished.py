"""Machines that tasks would rather run on, the most wished for first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from argosy.cell import Bitmap, View
from argosy.cell.bitmaps import to_bitmap, to_mask
from argosy.cell.cell import TRUE

#: Sets of machines that are tried one after the other; the rest is tried together.
MOST_TIERS: Final = 16


def wished_tiers(
    wishes: Mapping[str, int], requires: Mapping[str, str], count: int, view: View
) -> Iterator[tuple[Bitmap, int]]:
    """Of the machines that meet the requirements, those with the greatest sum of weights first, for
    `Draft.place`; each set may take all of `count` tasks. Those with the least sum are left out, because
    they are tried at the end anyway."""
    if not wishes:
        return
    sums = np.zeros(view.machines, np.int64)
    for attribute, weight in wishes.items():
        sums[to_mask(view.where({attribute: TRUE}), view.machines)] += weight
    is_open = to_mask(view.where(requires), view.machines) if requires else None
    levels = np.unique(sums if is_open is None else sums[is_open])
    for level in levels[:0:-1][:MOST_TIERS].tolist():
        yield to_bitmap(sums == level), count
