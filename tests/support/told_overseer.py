"""An overseer of pods whose world writes down what it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from argosy.service.kubernetes.overseer import PodOverseer
from argosy.worlds.local.overruled import OverruledWorld

_QUIET: Final = frozenset({"job_seq", "has_machine", "is_over", "settle"})
_TOLD: Final = frozenset(
    {
        "submit_all",
        "adopt",
        "cancel",
        "finish",
        "gone",
        "refuse_try",
        "mark",
        "add_machine",
        "remove_machine",
        "fit_machine",
        "relabel_machine",
        "free_on",
        *_QUIET,
    }
)


def plain(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted", enc_hook=str).decode()


class TellingWorld:
    """Writes down what a world is told by its pods."""

    def __init__(self, world: OverruledWorld, tell: Callable[[str], None]) -> None:
        self._world = world
        self._tell = tell

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._world, name)
        if name not in _TOLD:
            return method

        def told(*given: Any, **named: Any) -> Any:
            if name == "submit_all":
                given = (list(given[0]),)
            if name == "mark":
                given = (given[0], given[1], sorted(given[2]), given[3])
            answer = method(*given, **named)
            if name not in _QUIET:
                self._tell(f"{name} {plain([*given, *named.values()])} -> {plain(answer)}")
            return answer

        return told


class ToldOverseer(PodOverseer):
    tell: Callable[[str], None]

    def _current(self) -> Any:
        return TellingWorld(super()._current(), self.tell)
