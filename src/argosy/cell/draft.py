"""A draft: placements of one decision that see each other before they are committed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from argosy.cell.bitmaps import Bitmap, to_bitmap
from argosy.cell.search import Found, Rule
from argosy.cell.view import View
from argosy.model.random import Random
from argosy.model.transactions import Claims, ShapeArray, TaskArray

_NO_TASKS: Final[TaskArray] = np.empty(0, np.int64)
_NO_TASKS.flags.writeable = False


@lru_cache(maxsize=4_096)
def shapes_alike(shape: int, count: int) -> ShapeArray:
    """The shapes of identical tasks. Most decisions are about such, so those of one length share
    them."""
    shapes = np.full(count, shape, np.int32)
    shapes.flags.writeable = False
    return shapes


def claims_of(tasks: TaskArray, shape: int, found: Found) -> Claims:
    """Claims for identical tasks, as many as machines were found."""
    return Claims(tasks, found.machines, shapes_alike(shape, len(tasks)), found.versions)


def room_without(claims: Claims, view: View) -> NDArray[np.int64]:
    """What the claims would take, as a correction to the room that the view shows."""
    taken = np.zeros((view.machines, len(view.dimensions)), np.int64)
    _subtract(taken, claims, view)
    return taken


def _subtract(room: NDArray[np.int64], claims: Claims, view: View) -> None:
    for shape in np.unique(claims.shapes).tolist():
        request = np.array(view.shape_request(shape), np.int64)
        np.subtract.at(room, claims.machines[claims.shapes == shape], request)


class Draft:
    """Collects claims over one view. Each `place` accounts for the room taken by earlier ones."""

    def __init__(
        self,
        view: View,
        adjust: NDArray[np.int64] | None = None,
        visits: NDArray[np.int64] | None = None,
    ) -> None:
        """With `visits`, machines are tried in the order of these numbers, over and over, whatever the
        rule, and each takes one task at a time."""
        self._view = view
        self._visits = visits
        #: Added to the room that the view shows, per machine and dimension.
        self._adjust = adjust
        self._parts: list[Claims] = []
        self._unplaced: list[TaskArray] = []
        self._is_apart = False
        #: Claims so far.
        self.count = 0

    def place(
        self,
        tasks: TaskArray,
        shape: int,
        rule: Rule,
        random: Random,
        *,
        requires: Mapping[str, str] | None = None,
        within: Bitmap | None = None,
        prefer: Iterable[tuple[Bitmap, int]] = (),
        preempt_below: int | None = None,
        apart: bool = False,
    ) -> tuple[Found, TaskArray]:
        """Chooses machines for `tasks`, all of one shape; returns the tasks that found none.

        Each pair in `prefer` is a set of machines to try first, and the most tasks it may take. With
        `preempt_below`, tasks that find no free room may use what claims of lower precedence hold, first
        where the fewest of them would have to go. With `apart`, each task gets a machine that no other
        task of the draft has.
        """
        self._is_apart = apart
        if requires:
            having = self._view.where(requires)
            within = having if within is None else within & having
        left = tasks
        for bitmap, most in prefer:
            if not len(left):
                break
            chosen = self._still(bitmap if within is None else bitmap & within)
            found = self._find(shape, min(most, len(left)), rule, random, chosen, self._taken())
            left = self._add(left, shape, found)
        if len(left) or not len(tasks):
            adjust = self._taken() if self._parts else self._adjust
            found = self._find(shape, len(left), rule, random, self._still(within), adjust)
            left = self._add(left, shape, found)
        if preempt_below is not None and len(left):
            found, left = self._preempt(
                left, shape, rule, random, self._still(within), preempt_below
            )
        self._unplaced.append(left)
        if requires:
            found = structs.replace(found, requires=dict(requires))
        return found, left

    def _preempt(
        self,
        tasks: TaskArray,
        shape: int,
        rule: Rule,
        random: Random,
        within: Bitmap | None,
        below: int,
    ) -> tuple[Found, TaskArray]:
        view, adjust = self._view, self._taken()
        if not view.may_evict(below):
            found = self._find(shape, len(tasks), rule, random, within, adjust)
        else:
            room = view.evictable(below)
            if adjust is not None:
                room += adjust
            # Each further task on a machine costs about as many victims as the first. Where the view
            # shows free room, this decision has taken it.
            victims = np.maximum(view.victims_for(shape, below), 1)
            found = view.find(
                shape,
                len(tasks),
                Rule.SMALLEST_KEY,
                random,
                within=within,
                keys=victims,
                step=victims,
                per_machine=self._per_machine,
                adjust=room,
            )
            found = structs.replace(found, preempts=True)
        return found, self._add(tasks, shape, found)

    def _find(
        self,
        shape: int,
        count: int,
        rule: Rule,
        random: Random,
        within: Bitmap | None,
        adjust: NDArray[np.int64] | None,
    ) -> Found:
        if self._visits is None:
            return self._view.find(
                shape,
                count,
                rule,
                random,
                within=within,
                per_machine=self._per_machine,
                adjust=adjust,
            )
        step = self._view.machines
        found = self._view.find(
            shape,
            count,
            Rule.SMALLEST_KEY,
            random,
            within=within,
            keys=self._visits,
            step=step,
            per_machine=self._per_machine,
            adjust=adjust,
        )
        np.add.at(self._visits, found.machines, step)
        return found

    @property
    def _per_machine(self) -> int:
        """The most tasks that one search may put on a machine; 0: any number."""
        return 1 if self._is_apart else 0

    def _still(self, within: Bitmap | None) -> Bitmap | None:
        """The machines that tasks may still go to, if they are to be apart."""
        if not self._is_apart or not self._parts:
            return within
        is_unused = np.ones(self._view.machines, np.bool_)
        for part in self._parts:
            is_unused[part.machines] = False
        unused = to_bitmap(is_unused)
        return unused if within is None else unused & within

    def _add(self, tasks: TaskArray, shape: int, found: Found) -> TaskArray:
        """Adds what was found for the first of `tasks`; returns the others."""
        count = len(found.machines)
        if not count:
            return tasks
        is_all = count == len(tasks)
        mine = tasks if is_all else tasks[:count]
        self._parts.append(claims_of(mine, shape, found))
        self.count += count
        return _NO_TASKS if is_all else tasks[count:]

    def _taken(self) -> NDArray[np.int64] | None:
        """The room taken by earlier placements, as a correction to the view."""
        if not self._parts:
            return self._adjust
        if self._adjust is None:
            taken = np.zeros((self._view.machines, len(self._view.dimensions)), np.int64)
        else:
            taken = self._adjust.copy()
        for part in self._parts:
            _subtract(taken, part, self._view)
        return taken

    def unplaced(self) -> TaskArray:
        """Tasks for which no machine was found."""
        if len(self._unplaced) == 1:
            return self._unplaced[0]
        return np.concatenate(self._unplaced) if self._unplaced else np.empty(0, np.int64)

    def claims(self) -> Claims:
        if not self._parts:
            empty = np.empty(0, np.int32)
            return Claims(np.empty(0, np.int64), empty, empty, np.empty(0, np.uint32))
        if len(self._parts) == 1:
            return self._parts[0]
        return Claims.joined(self._parts)
