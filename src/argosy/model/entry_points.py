"""Classes that other packages offer by entry point."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from argosy.model.errors import SettingError


def installed(group: str, name: str, what: str) -> tuple[Any, str] | None:
    """What the entry point of this name stands for, and where it is; None if there is none. `what` is
    what users call it."""
    entries = [entry for entry in metadata.entry_points(group=group) if entry.name == name]
    if not entries:
        return None
    value = entries[0].value
    if len({entry.value for entry in entries}) > 1:
        raise SettingError(
            f"{what} {name!r} is declared by several packages: "
            + ", ".join(entry.value for entry in entries),
            expected="one of them",
        )
    try:
        return entries[0].load(), value
    # A module that calls `sys.exit` must not end the command.
    except (Exception, SystemExit) as error:
        raise SettingError(f"{what} {name!r}: {value} cannot be imported: {error}") from error
