"""Draws the jobs of a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from argosy.campaign.cells import DrawnCell
from argosy.campaign.dice import Dice, time_text, without_nothing

MS: Final = 1_000
SECOND: Final = 1_000_000
#: The kinds of jobs that are drawn.
KINDS: Final = ("batch", "service", "query")
#: The last burst of jobs begins by then. A job comes at most a second after its burst.
_LAST_BURST: Final = 60 * SECOND
_TAGS: Final = ("web", "db", "cache")
_PARTS: Final = (16, 8, 8, 4, 4, 2, 1)


def draw_jobs(dice: Dice, cell: DrawnCell, kinds: Sequence[str]) -> list[dict[str, Any]]:
    count = dice.one_of((1, 2, 4, 8, 12, 20))
    # Jobs that come together compete.
    bursts = [dice.among(0, _LAST_BURST // SECOND) * SECOND for _ in range(dice.among(1, 5))]
    return [_job(dice.part(f"job {n}"), f"j{n}", cell, kinds, bursts) for n in range(count)]


def draw_operator_constraints(dice: Dice, cell: DrawnCell) -> list[str] | None:
    if "cell" not in cell.tables or not dice.has("constraints", 0.1):
        return None
    return [f"{dice.one_of(_TAGS)} -> {{{dice.one_of(_TAGS)}, 0, 2}} in {dice.one_of(cell.groups)}"]


def _job(
    dice: Dice, name: str, cell: DrawnCell, kinds: Sequence[str], bursts: list[int]
) -> dict[str, Any]:
    kind = dice.one_of(kinds)
    table: dict[str, Any] = {
        "id": name,
        "kind": kind,
        "submit": time_text(dice.one_of(bursts) + dice.one_of((0, 0, 1, 500, 20 * MS, SECOND))),
    }
    if dice.has("precedence", 0.4):
        table["precedence"] = dice.among(-3, 10)
    if dice.has("gangs", 0.15):
        table["gang"] = True
    if dice.chance(0.2):
        table["owner"] = dice.one_of(("ann", "bob"))
    tags = dice.some_of(_TAGS, 0) if kind == "service" else []
    if dice.has("constraints", 0.3) and kind == "service":
        table["constraints"] = [_constraint(dice, tags, cell) for _ in range(dice.among(1, 2))]
    if dice.has("several-groups", 0.15):
        groups = [_group(dice, kind, tags, cell) for _ in range(dice.among(2, 3))]
        return table | {"groups": groups}
    if dice.has("phases", 0.1) and kind != "service":
        return table | _workers(dice, cell)
    return table | _group(dice, kind, tags, cell)


def _group(dice: Dice, kind: str, tags: list[str], cell: DrawnCell) -> dict[str, Any]:
    count = dice.one_of((1, 1, 2, 3, 5, 8, 30))
    table: dict[str, Any] = {"count": count, "request": _request(dice, cell)}
    if kind == "service" and dice.has("endless", 0.5):
        pass
    elif dice.has("zero-durations", 0.08):
        table["duration"] = "0s"
    elif dice.chance(0.2):
        table["durations"] = [time_text(_duration(dice)) for _ in range(count)]
    else:
        table["duration"] = time_text(_duration(dice))
    is_endless = "duration" not in table and "durations" not in table
    if dice.has("estimates", 0.3) and not is_endless:
        table["estimate"] = dice.time(0, 1, MS, SECOND, 30 * SECOND, 3_600 * SECOND)
    if tags:
        table["tags"] = tags
    if dice.has("attributes", 0.3):
        table["requires"] = _wish(dice, cell)
    if dice.has("attributes", 0.1):
        table["prefers"] = _wish(dice, cell)
    return without_nothing(table)


def _workers(dice: Dice, cell: DrawnCell) -> dict[str, Any]:
    phases = [
        {"activities": dice.among(1, 12), "duration": dice.time(1, MS, SECOND, 5 * SECOND)}
        for _ in range(dice.among(1, 3))
    ]
    table = {"count": dice.among(1, 4), "request": _request(dice, cell), "phases": phases}
    return table | ({"program": "sort"} if dice.chance(0.5) else {})


def _duration(dice: Dice) -> int:
    unit = dice.one_of((1, MS, SECOND, SECOND, SECOND, 10 * SECOND))
    return dice.among(1, 20) * unit


def _request(dice: Dice, cell: DrawnCell) -> dict[str, Any]:
    """A part of some machine, so that several resources are scarce at once."""
    if dice.has("zero-requests", 0.03):
        return {"cpu": 0}
    machine = dice.one_of(list(cell.capacities.values()))
    asked = {name: amount // dice.one_of(_PARTS) for name, amount in machine.items()}
    if dice.has("oversized", 0.06):
        name = dice.one_of(list(asked))
        asked[name] = 1 + max(have.get(name, 0) for have in cell.capacities.values())
    return {name: amount for name, amount in asked.items() if amount} or {"cpu": 1}


def _wish(dice: Dice, cell: DrawnCell) -> dict[str, str] | None:
    """Attributes that some machine has, each by itself: perhaps none has them all."""
    names = list(cell.attributes)
    if not names:
        return None
    chosen = [dice.one_of(names) for _ in range(dice.among(1, 2))]
    return {name: dice.one_of(cell.attributes[name]) for name in chosen}


def _constraint(dice: Dice, tags: list[str], cell: DrawnCell) -> str:
    subject, group = dice.one_of(tags or ["appID:self"]), dice.one_of(cell.groups)
    other = dice.one_of((*_TAGS, subject))
    form = dice.among(0, 4)
    # Hard ones bound from above alone: what ends elsewhere cannot break them.
    ending = dice.one_of(("", " hard", " weight 2.5"))
    if form == 0:
        return f"{subject} -> {{{subject}, 0, {dice.among(0, 2)}}} in {group}{ending}"
    if form == 1:
        return f"{subject} -> {{{other}, 0, 0}} in {group}{ending}"
    if form == 2:
        return f"{subject} -> {{{other}, 1, inf}} in {group}"
    if form == 3:
        return f"{subject} -> spread {{1, {dice.among(1, 3)}}} over {group}"
    return f"{subject} -> {{{other}, 0, 1}} in machine or {subject} -> {{{other}, 1, 4}} in {group}"
