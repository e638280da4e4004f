"""Weighted dominant resource fairness without an allocator.

Every participating scheduler announces its unmet demand in its transactions. From the cell, each knows
what all hold and want; it computes the shares that progressive filling would give, and keeps its own
claims within its own share. Nothing enforces this. A share applies only while others want what is left:
without rivals, a scheduler may take all it wants.

Progressive filling: all dominant shares grow together, each in proportion to its weight and its owner's
demand, until the owner has all it wants or a resource it needs is used up. With n schedulers
and d resources that takes at most n + d steps of O(n d).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import Job
from argosy.model.resources import Resources
from argosy.model.transactions import Claims, TaskArray, Wants

Amounts = NDArray[np.float64]

#: How long an announcement counts, so that a scheduler that has stopped is forgotten.
LEASE: Final = 300_000_000
#: Smaller differences between shares are ignored; any task's share of a cell is larger.
_NOTHING: Final = 1e-12


def fair_shares(room: Amounts, demands: Amounts, weights: Sequence[float]) -> Amounts:
    """The dominant share that each owner is entitled to. `room` and the rows of `demands` are fractions
    of the cell's capacity per resource; weights are positive."""
    wanted = demands.max(axis=1)
    along = demands / np.maximum(wanted, _NOTHING)[:, None]
    rates = np.array(weights, np.float64)
    shares, left = np.zeros(len(rates)), room.astype(np.float64)
    growing = wanted > _NOTHING
    while growing.any():
        use = (rates * growing) @ along
        needed = use > _NOTHING
        until_used = np.min(np.maximum(left[needed], 0) / use[needed])
        until_content = np.min((wanted - shares)[growing] / rates[growing])
        level = min(until_used, until_content)
        shares += np.where(growing, rates * level, 0.0)
        left -= use * level
        is_short = along[:, left <= _NOTHING].max(axis=1, initial=0.0) > _NOTHING
        growing &= (shares < wanted - _NOTHING) & ~is_short
    return shares


class FairShare:
    """One scheduler's demand, its last announcement, and its share."""

    def __init__(self, name: str, weight: float) -> None:
        self._name = name
        self._weight = weight
        self._dimensions: tuple[str, ...] = ()
        #: The total request of its pending tasks, per dimension.
        self._wanted = np.zeros(0, np.int64)
        self._said: Wants | None = None

    def want(self, job: Job, tasks: TaskArray, view: View) -> None:
        """Adds tasks to the demand. Tasks too large for any machine do not count: keeping room free for
        them would not help."""
        capacity = view.capacity()
        self._widen(view)
        for group, mine in job.tasks_by_group(tasks):
            if any(n and name not in view.dimensions for name, n in group.request.items()):
                continue
            request = np.array(group.request.within(view.dimensions), np.int64)
            if (capacity >= request).all(axis=1).any():
                self._wanted += request * len(mine)

    def forget(self, job: Job, tasks: TaskArray) -> None:
        for group, mine in job.tasks_by_group(tasks):
            self._take_off(np.array(group.request.within(self._dimensions), np.int64) * len(mine))

    def _widen(self, view: View) -> None:
        """Adds resources that are new since the last call; they come last."""
        if self._dimensions != view.dimensions:
            self._dimensions = view.dimensions
            self._wanted = _padded(self._wanted, len(view.dimensions))

    def got(self, claims: Claims, accepted: NDArray[np.bool_], view: View) -> None:
        self._widen(view)
        self._take_off(_asked(claims, accepted, view))

    def want_nothing(self) -> None:
        """Nothing is pending: resets the demand, which may have drifted."""
        self._wanted[:] = 0

    def _take_off(self, amounts: NDArray[np.int64]) -> None:
        self._wanted = np.maximum(self._wanted - amounts, 0)

    def to_say(self, now: int) -> Wants | None:
        """The announcement to make, or None: if demand is new, has changed by a tenth, or is about to
        expire."""
        said = np.array(self._said.amounts if self._said else (), np.int64)
        said = _padded(said, len(self._wanted))
        is_new = (np.abs(self._wanted - said) * 10 > np.maximum(self._wanted, said)).any()
        is_old = self._said is not None and said.any() and self._said.until < now + LEASE // 2
        if not is_new and not is_old:
            return None
        self._said = Wants(self._weight, tuple(self._wanted.tolist()), now + LEASE)
        return self._said

    def share(self, view: View, now: int) -> CurrentShare:
        """The share that the scheduler may hold, given the current cell."""
        self._widen(view)
        whole = np.maximum(_amounts(view.capacity_total()), 1.0)
        names, demands, weights = [self._name], [self._wanted / whole], [self._weight]
        for name, wants in view.wants().items():
            if name != self._name and wants.until >= now and any(wants.amounts):
                names.append(name)
                demands.append(np.array(wants.amounts, np.float64) / whole)
                weights.append(wants.weight)
        held = [_amounts(view.held_by(name)) / whole for name in names]
        if len(names) == 1:
            return CurrentShare(np.inf, held[0], whole)
        # Resources held by schedulers without demand are not shared out.
        room = 1.0 - _amounts(view.used_total()) / whole + np.sum(held, axis=0)
        totals = np.array(demands) + np.array(held)
        if (totals.sum(axis=0) <= room).all():
            return CurrentShare(np.inf, held[0], whole)
        mine = float(fair_shares(room, totals, weights)[0])
        is_enough = mine >= totals[0].max() - _NOTHING
        return CurrentShare(np.inf if is_enough else mine, held[0], whole)


class CurrentShare(msgspec.Struct, frozen=True):
    """The largest dominant share allowed (infinite: no bound); what is held, as fractions of the
    capacity; and the capacity."""

    most: float
    held: Amounts
    whole: Amounts

    @property
    def is_reached(self) -> bool:
        return float(self.held.max()) >= self.most - _NOTHING

    def refusal(self, request: Resources, view: View) -> Refusal:
        """Why a task is not claimed, with the amount by which it would exceed the share."""
        at = int(self.held.argmax())
        name, held, whole = view.dimensions[at], float(self.held[at]), float(self.whole[at])
        over = request.within(view.dimensions)[at] + round((held - self.most) * whole)
        return Refusal(Why.RESOURCE_LIMIT, dimension=name, lacking=over)

    def first(self, job: Job, tasks: TaskArray, view: View) -> int:
        """How many of `tasks`, from the first, may be claimed: up to and including the one that reaches
        the share."""
        if self.most == np.inf:
            return len(tasks)
        count, held = 0, self.held
        for group, mine in job.tasks_by_group(tasks):
            part = np.array(group.request.within(view.dimensions), np.float64) / self.whole
            before = (held + np.arange(len(mine))[:, None] * part).max(axis=1)
            count += int((before < self.most - _NOTHING).sum())
            held = held + len(mine) * part
        return count


def _amounts(by_dimension: Mapping[str, int]) -> Amounts:
    return np.array(list(by_dimension.values()), np.float64)


def _padded(amounts: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    return np.pad(amounts, (0, width - len(amounts)))


def _asked(claims: Claims, which: NDArray[np.bool_], view: View) -> NDArray[np.int64]:
    """The total request of some of the claims."""
    shapes, counts = np.unique(claims.shapes[which], return_counts=True)
    amounts = np.zeros(len(view.dimensions), np.int64)
    for shape, count in zip(shapes.tolist(), counts.tolist(), strict=True):
        amounts += np.array(view.shape_request(shape), np.int64) * count
    return amounts
