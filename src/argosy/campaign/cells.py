"""Draws the cell, or clusters, of a scenario."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from argosy.campaign.dice import Dice, time_text

GIB: Final = 2**30
_CPUS: Final = (1_000, 2_000, 4_000, 4_000, 8_000, 16_000, 3_333)
_MEMORIES: Final = (1, 4, 8, 16, 16, 64)
_ATTRIBUTES: Final = {"arch": ("x86", "arm"), "disk": ("ssd", "hdd"), "pool": ("a", "b", "c")}
_EXTRAS: Final = ("gpu", "bandwidth")
_PLACES: Final = ("north", "south", "east")


class DrawnCell(msgspec.Struct):
    """What other parts of the scenario have to know of the cell."""

    #: `cell` or `clusters` of the document.
    tables: dict[str, Any]
    #: Capacities of machines, by their full names.
    capacities: dict[str, dict[str, int]]
    #: Values of attributes that some machine has.
    attributes: dict[str, list[str]]
    #: Node groups that constraints and settings may name.
    groups: list[str]
    #: Where clusters are.
    places: list[str]

    def total(self, resource: str) -> int:
        return sum(capacity.get(resource, 0) for capacity in self.capacities.values())


def draw_cell(dice: Dice) -> DrawnCell:
    drawn = DrawnCell({}, {}, {}, ["machine"], [])
    if dice.has("clusters", 0.15):
        clusters: list[dict[str, Any]] = [
            {"name": name, **({"place": dice.one_of(_PLACES)} if dice.chance(0.5) else {})}
            | _machines_and_groups(dice.part(name), drawn, f"{name}/")
            for name in ("blue", "green", "red")[: dice.among(2, 3)]
        ]
        drawn.tables = {"clusters": clusters}
        drawn.places = list(dict.fromkeys(c.get("place", c["name"]) for c in clusters))
        drawn.groups.append("cluster")
    else:
        drawn.tables = {"cell": _machines_and_groups(dice.part("cell"), drawn, "")}
    drawn.groups = list(dict.fromkeys(drawn.groups))
    return drawn


def draw_places(dice: Dice, cell: DrawnCell) -> dict[str, Any] | None:
    """Distances between the places of clusters."""
    if not cell.places or dice.chance(0.3):
        return None
    pairs = [(a, b) for i, a in enumerate(cell.places) for b in cell.places[i + 1 :]]
    delays = {f"{a}<>{b}": dice.time(1_000, 30_000, 200_000) for a, b in dice.some_of(pairs, 0)}
    table = {"default": dice.time(1_000, 40_000), "within": time_text(dice.one_of((0, 500, 2_000)))}
    return table | ({"delays": delays} if delays else {})


def _machines_and_groups(dice: Dice, drawn: DrawnCell, prefix: str) -> dict[str, Any]:
    extras = [name for name in _EXTRAS if dice.has("extras", 0.3)]
    has_attributes = dice.has("attributes", 0.7)
    zones = ["z0", "z1"] if dice.has("groups", 0.3) else []
    machines = []
    for number in range(dice.among(1, 4)):
        table = _machine_type(dice, f"t{number}", extras, has_attributes=has_attributes)
        if zones:
            table["joins"] = {"zone": dice.some_of(zones, 0)}
        machines.append(table)
    groups: dict[str, Any] = {}
    if dice.has("groups", 0.7):
        groups["rack"] = {"size": dice.among(1, 4)}
    if zones:
        groups["zone"] = {"sets": zones}
    for table in machines:
        for name in _names(table):
            drawn.capacities[prefix + name] = amounts(table["capacity"])
        for key, value in table.get("attributes", {}).items():
            known = drawn.attributes.setdefault(key, [])
            if value not in known:
                known.append(value)
    drawn.groups += groups
    return {"machines": machines, **({"groups": groups} if groups else {})}


def _machine_type(
    dice: Dice, name: str, extras: list[str], *, has_attributes: bool
) -> dict[str, Any]:
    capacity: dict[str, Any] = {
        "cpu": dice.one_of(_CPUS),
        "memory": f"{dice.one_of(_MEMORIES)}GiB",
    }
    for extra in extras:
        if dice.chance(0.6):
            capacity[extra] = dice.among(1, 8)
    for resource in capacity:
        if dice.has("zero-capacities", 0.03):
            capacity[resource] = 0
    table: dict[str, Any] = {"name": name, "count": dice.among(1, 4), "capacity": capacity}
    if has_attributes:
        found = {key: dice.one_of(options) for key, options in _ATTRIBUTES.items()}
        kept = {key: value for key, value in found.items() if dice.chance(0.6)}
        if kept:
            table["attributes"] = kept
    return table


def _names(table: dict[str, Any]) -> list[str]:
    name, count = table["name"], table["count"]
    return [name] if count == 1 else [f"{name}-{index}" for index in range(count)]


def amounts(table: dict[str, Any]) -> dict[str, int]:
    """A resource vector that was drawn, in base units."""
    found = dict(table)
    if isinstance(found.get("memory"), str):
        found["memory"] = int(found["memory"].removesuffix("GiB")) * GIB
    return found
