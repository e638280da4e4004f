"""Which tasks are known to find no room until some is freed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from argosy.cell import View
from argosy.engines.kube.queues import TaskKind
from argosy.model.explanations import Explanation


class Room:
    """Remembers which tasks found no room, for as long as that cannot have changed.

    If everything in use belongs to this scheduler, room can only appear when its own tasks end or
    machines change, and it is told about both. If others hold something, it cannot know, and must
    search each time.
    """

    def __init__(self) -> None:
        #: Resources held by this scheduler's running tasks, per dimension.
        self._used: list[int] = []
        #: Tasks that want a machine, by kind; kinds that found none, with the explanation.
        self._wanting: Counter[TaskKind] = Counter()
        self._lacking: dict[TaskKind, Explanation] = {}

    def wanted(self, kind: TaskKind, count: int) -> None:
        self._wanting[kind] += count
        if not self._wanting[kind]:
            del self._wanting[kind]

    def taken(self, kind: TaskKind, view: View) -> None:
        self.wanted(kind, -1)
        self._book(kind.shape, 1, view)

    def given_back(self, shapes: Sequence[int], view: View) -> None:
        for shape in shapes:
            self._book(shape, -1, view)
        self.changed()

    def changed(self) -> None:
        """There may be more room: forgets everything."""
        self._lacking.clear()

    def is_own(self, view: View) -> bool:
        """Whether everything in use belongs to this scheduler."""
        used = [*view.used_total().values()]
        return used == self._used + [0] * (len(used) - len(self._used))

    def found_none(self, kind: TaskKind, explanation: Explanation) -> None:
        self._lacking[kind] = explanation

    def why_none(self, kind: TaskKind) -> Explanation | None:
        return self._lacking.get(kind)

    def is_short(self) -> bool:
        """Whether no waiting task can find a machine."""
        return self._wanting.keys() <= self._lacking.keys()

    def _book(self, shape: int, sign: int, view: View) -> None:
        request = view.shape_request(shape)
        if len(self._used) < len(request):
            self._used += [0] * (len(request) - len(self._used))
        for dimension, amount in enumerate(request):
            self._used[dimension] += sign * amount
