"""Which tasks are known to find no room until some is freed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from argosy.cell import View
from argosy.engines.kube.queues import TaskKind
from argosy.model.explanations import Explanation

#: Explanations are at most this old.
_LATELY: Final = 1_000_000


class Lack:
    """Why a search found no room and when, and the last change of the cell that made no difference."""

    __slots__ = ("at", "change", "explanation")

    def __init__(self, explanation: Explanation, change: int, at: int) -> None:
        self.explanation = explanation
        self.change = change
        self.at = at

    def is_recent(self, now: int) -> bool:
        return now - self.at <= _LATELY


class Room:
    """Remembers which tasks found no room, for as long as they would find none on any machine that has
    changed since.

    If everything in use belongs to this scheduler, room can only appear when its own tasks end or
    machines change, and it is told about both. If others hold something, it is not told, and must look
    at each attempt.
    """

    def __init__(self, *, preempts: bool) -> None:
        self._preempts = preempts
        #: Resources held by this scheduler's running tasks, per dimension.
        self._used: list[int] = []
        #: What a task of each shape takes, by dimension. A task that was placed asks for nothing that
        #: the cell gets to know only later.
        self._takes: dict[int, list[tuple[int, int]]] = {}
        #: Tasks that want a machine, by kind; kinds that found none.
        self._wanting: Counter[TaskKind] = Counter()
        self._lacking: dict[TaskKind, Lack] = {}

    def wanted(self, kind: TaskKind, count: int) -> None:
        left = self._wanting[kind] + count
        if left:
            self._wanting[kind] = left
        else:
            self._wanting.pop(kind, None)

    def taken(self, kind: TaskKind, view: View) -> None:
        self.wanted(kind, -1)
        self._book(kind.shape, 1, view)

    def given_back(self, shapes: Sequence[int], view: View) -> None:
        for shape in shapes:
            self._book(shape, -1, view)
        for kind in [*self._lacking]:
            self.look_again(kind, view)

    def changed(self) -> None:
        """There may be more room: forgets everything."""
        self._lacking.clear()

    def is_own(self, view: View) -> bool:
        """Whether everything in use belongs to this scheduler."""
        used = [*view.used_total().values()]
        return used == self._used + [0] * (len(used) - len(self._used))

    def found_none(self, kind: TaskKind, explanation: Explanation, view: View, now: int) -> None:
        self._lacking[kind] = Lack(explanation, view.last_change, now)

    def why_none_before(self, kind: TaskKind) -> Explanation:
        """Why a task of this kind, which found no room, has found none until the last look."""
        return self._lacking[kind].explanation

    def look_again(self, kind: TaskKind, view: View) -> Lack | None:
        """What the kind still lacks on the machines that have changed since the last look. None if a
        task of the kind may find room."""
        lack = self._lacking.get(kind)
        if lack is None:
            return None
        if lack.change == view.last_change > 0:
            return lack
        fits = view.fits_since(
            lack.change,
            kind.shape,
            within=view.where(kind.requires) if kind.requires else None,
            preempt_below=kind.precedence if self._preempts and kind.preempts else None,
        )
        if fits:
            del self._lacking[kind]
            return None
        lack.change = view.last_change
        return lack

    @property
    def is_lacked_by_all(self) -> bool:
        """Whether tasks of every kind that wants a machine found none."""
        wanting, lacking = self._wanting, self._lacking
        return len(wanting) <= len(lacking) and wanting.keys() <= lacking.keys()

    def is_short(self, view: View) -> bool:
        """Whether no waiting task can find a machine until this scheduler is told of a change."""
        return (
            self.is_lacked_by_all
            and self.is_own(view)
            # Others may have left since the last look.
            and all(self.look_again(kind, view) is not None for kind in self._wanting)
        )

    def _book(self, shape: int, sign: int, view: View) -> None:
        takes = self._takes.get(shape)
        if takes is None:
            request = view.shape_request(shape)
            self._used += [0] * (len(request) - len(self._used))
            takes = self._takes[shape] = [(d, amount) for d, amount in enumerate(request) if amount]
        for dimension, amount in takes:
            self._used[dimension] += sign * amount
