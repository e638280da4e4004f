"""Draws the fleet of a scenario: one engine, or several that share the cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from argosy.campaign.cells import DrawnCell
from argosy.campaign.dice import Dice, without_nothing
from argosy.campaign.jobs import KINDS
from argosy.campaign.settings import draw_settings
from argosy.engines.api import Engine

_SPLITS: Final = ("hash", "round-robin", "random")
#: Of all scenarios that may have one, the share with a mixed fleet.
MIXED: Final = 0.25


def draw_fleet(
    dice: Dice, first: str, engines: Mapping[str, type[Engine]], cell: DrawnCell
) -> list[dict[str, Any]]:
    """The fleet has the engine `first`; others of `engines` may join it."""
    names = [first]
    if dice.has("mixed", MIXED) and len(engines) > 1:
        names += [dice.one_of(list(engines)) for _ in range(dice.among(1, 2))]
    entries = [
        _entry(dice.part(f"entry {at}"), f"s{at}", name, engines[name], cell)
        for at, name in enumerate(names)
    ]
    if len(entries) > 1:
        # Who must be alone shares no kind of job with others.
        is_shared = not any(engines[name].capabilities.alone for name in names)
        _deal_kinds(dice.part("kinds"), entries, is_shared=is_shared)
    return entries


def scheduler_names(fleet: Sequence[Mapping[str, Any]]) -> list[str]:
    found = []
    for entry in fleet:
        count = entry.get("replicas", 1)
        found += [entry["name"]] if count == 1 else [f"{entry['name']}-{n}" for n in range(count)]
    return found


def kinds_taken(fleet: Sequence[Mapping[str, Any]]) -> list[str]:
    """The kinds of jobs that may be drawn for a fleet."""
    if any("takes" not in entry for entry in fleet):
        return list(KINDS)
    return list(dict.fromkeys(kind for entry in fleet for kind in entry["takes"]["kinds"]))


def _entry(
    dice: Dice, name: str, engine: str, kind: type[Engine], cell: DrawnCell
) -> dict[str, Any]:
    table: dict[str, Any] = {"name": name, "engine": engine}
    replicas = dice.among(2, 4)
    if dice.has("replicas", 0.4) and not kind.capabilities.alone:
        table["replicas"] = replicas
        table["split"] = dice.one_of(_SPLITS)
    settings = draw_settings(dice.part("settings"), kind, cell.groups)
    if settings:
        table["settings"] = settings
    if dice.has("limits", 0.12):
        table["limits"] = _limits(dice, cell)
    if dice.has("decision-times", 0.15):
        slow = {"model": "scaled", "factor": dice.one_of((0.1, 3.0, 10.0))}
        table["decision_time"] = dice.one_of((slow, {"model": "jittered", "low": 0.5, "high": 2.0}))
    if cell.places and dice.chance(0.5):
        table["place"] = dice.one_of(cell.places)
    return table


def _limits(dice: Dice, cell: DrawnCell) -> dict[str, Any]:
    share = dice.one_of((4, 2, 1))
    resources = {"cpu": max(1, cell.total("cpu") // share)} if dice.chance(0.6) else None
    return without_nothing(
        {
            "resources": resources,
            "jobs": dice.among(1, 4) if dice.chance(0.4) or resources is None else None,
            "precedence": dice.among(0, 8) if dice.chance(0.3) else None,
        }
    )


def _deal_kinds(dice: Dice, entries: list[dict[str, Any]], *, is_shared: bool) -> None:
    """Every kind has a taker."""
    taken: list[list[str]] = [[] for _ in entries]
    for kind in KINDS:
        takers = [dice.among(0, len(entries) - 1)]
        if is_shared and dice.chance(0.4):
            takers.append(dice.among(0, len(entries) - 1))
        for taker in dict.fromkeys(takers):
            taken[taker].append(kind)
    if not taken[0]:
        # The fleet was drawn for the sake of its first entry.
        other = next(at for at, kinds in enumerate(taken) if kinds)
        taken[0], taken[other] = taken[other], taken[0]
    for entry, kinds in zip(entries, taken, strict=True):
        if kinds:
            entry["takes"] = {"kinds": kinds}
    # An entry that takes nothing would take everything.
    entries[:] = [entry for entry in entries if "takes" in entry]
