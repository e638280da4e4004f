"""`--strict`: what to do with a scenario whose demands can never be met."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from argosy.model.units import format_count

if TYPE_CHECKING:
    from argosy.model.scenario import Scenario

strict_option = click.option(
    "--strict", is_flag=True, help="Refuse a scenario that asks for what can never be met."
)
#: More notes would bury the results.
_MOST: Final = 5


def unmet_notes(scenario: Scenario, file: Path, strict: bool, *, changed: str = "") -> list[str]:
    """One note per demand that can never be met; with `strict`, the first is an error.

    `changed` says what is different from the file.
    """
    from argosy.scenarios.unmeetable_demands import refuse_unmeetable, unmeetable_demands

    demands = unmeetable_demands(scenario)
    if strict:
        refuse_unmeetable([*demands], f"{file} with {changed}" if changed else str(file))
    notes = [f"can never be met: {demand}" for demand in islice(demands, _MOST)]
    if others := sum(1 for _ in demands):
        more = format_count(others, "more demand")
        where = "" if changed else f": argosy constraints lint {file}"
        notes.append(f"{more} can never be met{where}")
    return notes
