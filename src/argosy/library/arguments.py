"""Checks of arguments whose mistakes would otherwise surface deep inside as a `TypeError`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from argosy.model.errors import LONGEST_ECHO, CommandError

PathLike: TypeAlias = str | os.PathLike[str]
Progress: TypeAlias = Callable[[float], None]
#: As in scenario files.
LARGEST_SEED: Final = 2**63 - 1


def unusable(what: str, value: object, expected: str, hint: str | None = None) -> CommandError:
    """The error for an argument of the wrong type or out of range."""
    shown = value.__qualname__ if isinstance(value, type) else repr(value)
    if len(shown) > LONGEST_ECHO:
        shown = f"{shown[:LONGEST_ECHO]}..."
    return CommandError(f"{what} {shown}", expected=expected, hint=hint)


def is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike)


def check_path(what: str, value: object) -> None:
    if not is_path(value):
        raise unusable(what, value, "a path")


def check_text(what: str, value: object, expected: str) -> None:
    if not isinstance(value, str):
        raise unusable(what, value, expected)


def check_seed(seed: Any) -> None:
    if not is_whole(seed) or not 0 <= seed <= LARGEST_SEED:
        raise unusable("seed", seed, "a whole number from 0 to 2^63 - 1")


def check_processes(processes: Any) -> None:
    if not is_whole(processes) or processes < 1:
        raise unusable("processes", processes, "a whole number of at least 1")


def check_progress(progress: object) -> None:
    if progress is not None and not callable(progress):
        raise unusable("progress", progress, "a function of the share done, or None")


def is_whole(value: object) -> bool:
    """Whether it is an integer; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)
