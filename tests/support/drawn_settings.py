"""Draws settings of engines from everything that they can be, also what is hardly drawn elsewhere:
settings inside settings, weights and capacities of queues, constraints, plug-ins of agents."""

from __future__ import annotations

from typing import Annotated, Any, Final, get_args, get_origin

import msgspec

from argosy.campaign.dice import Dice
from argosy.campaign.settings import values_of
from argosy.engines.api import Engine
from argosy.model.constraints.text import parse_constraint
from argosy.model.machines import GROUP_NAME
from argosy.model.units import Micros

SECOND: Final = 1_000_000
BUDGET: Final = 600 * SECOND
_INTEGERS: Final = (0, 1, 2, 3, 5, 10, 64)
_TIMES: Final = (0, 1, 1_000, 20_000, 100_000, 500_000, SECOND, 3 * SECOND)
#: Pauses that would let millions of attempts be made.
_PAUSES: Final = ("retry", "backoff", "retry_after", "refuse", "rest", "interval", "t_idle")
_KINDS: Final = ("batch", "service", "query")


def draw_settings(
    dice: Dice, engine: type[Engine], groups: list[str], *, plain: bool
) -> dict[str, Any]:
    drawn: dict[str, Any] = {}
    for field in msgspec.structs.fields(engine.settings_type):
        part = dice.part(field.name)
        name = field.encode_name
        if name == "budget":
            drawn[name] = BUDGET
            continue
        is_drawn = part.chance(0.4) and not plain
        if name in _PAUSES and field.default_factory is msgspec.NODEFAULT and not plain:
            # Pauses of the scale of the runs.
            is_drawn = part.chance(0.8)
        if not is_drawn:
            continue
        special = _special(part, engine.name, name, groups)
        if special is not None:
            drawn[name] = special
            continue
        options = _options(part, field.type, field.default, groups, name)
        if options:
            drawn[name] = part.one_of(options)
    return drawn


def _special(dice: Dice, engine: str, name: str, groups: list[str]) -> Any:
    """Values of settings whose types do not say what they can be."""
    shares = (0.5, 1.0, 2.0)
    match name:
        case "queues":
            return {owner: dice.one_of(shares) for owner in dice.some_of(("ann", "bob", "x"))}
        case "capacities":
            return {
                owner: {"guaranteed": dice.one_of((0.2, 0.4)), "most": dice.one_of((0.5, 1.0))}
                for owner in dice.some_of(("ann", "bob"))
            }
        case "paths":
            return {
                kind: {"t_job": dice.one_of((0, 1_000, 700_000)), "t_task": 100}
                for kind in dice.some_of(_KINDS)
            }
        case "frameworks":
            return {
                kind: {
                    "t_job": dice.one_of((0, 50_000)),
                    "only": {"arch": "x86"} if dice.chance(0.3) else {},
                    "avoid": {"disk": "hdd"} if dice.chance(0.3) else {},
                    "refuse": dice.one_of((None, 300_000, SECOND)),
                }
                for kind in dice.some_of(_KINDS)
            }
        case "operators":
            return dice.some_of(("ann", "bob"))
        case "operator":
            group = dice.one_of(groups)
            text = dice.one_of(
                ("web -> {db, 0, 1}", "cache -> {cache, 0, 2}", "db -> {web, 1, inf}")
            )
            return (parse_constraint(f"{text} in {group}{dice.one_of(('', ' hard'))}"),)
        case "long_running":
            return dice.one_of((("service",), ("*",), ("service", "query"), ("batch",), ()))
        case "smallest":
            return {"cpu": dice.one_of((0, 1, 3_000)), "memory": 2**30}
        case "looks":
            return dice.one_of((1, 2, 3, 10))
        case "least_cores":
            return dice.one_of((0, 1, 4))
        case "most_arcs":
            return dice.one_of((1_000, 4_000_000))
        case "sort":
            return dice.one_of(("Priority", "Arrival", "Batch", "Batch", "ArrivalSort"))
        case "strategy":
            return dice.one_of(("Random", "RoundRobin", "Learned"))
        case "filters" | "decision_filters":
            every = ("ResourcesFit", "GeoLocation", "BatteryLevel", "NetworkLatency", "Volume")
            return tuple(dice.some_of((*every, "BatchShare"), 0))
        case "scores" | "decision_scores":
            every = (
                "ResourcesFit",
                "GeoLocation",
                "BatteryLevel",
                "ServiceLevel",
                "NetworkLatency",
            )
            return {name: dice.one_of((0.5, 1.0, 3.0)) for name in dice.some_of(every, 0)}
        case "checks":
            return tuple(dice.some_of(("ResourcesFit", "BatteryLevel", "Volume", "BatchShare"), 0))
    return None


def _options(dice: Dice, kind: Any, default: Any, groups: list[str], name: str) -> list[Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    metas = [meta for meta in arguments if isinstance(meta, msgspec.Meta)]
    if kind is Micros or Micros in arguments:
        times = [*_TIMES, *([default // 2, default] if isinstance(default, int) else [])]
        if name in _PAUSES:
            times = [100_000, 300_000, 500_000, SECOND, 3 * SECOND]
        return [each for each in times if _fits(each, metas)]
    if origin is Annotated:
        if GROUP_NAME in arguments:
            single = ["", *groups]
            several = [] if get_origin(arguments[0]) is None else [tuple(groups[:2])]
            return [*single, *several]
        if examples := [each for meta in metas for each in meta.examples or ()]:
            return examples
        inside = _options(dice, arguments[0], default, groups, name)
        return [each for each in inside if _fits(each, metas)]
    if kind is int:
        return list(_INTEGERS)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [_struct(dice, kind, groups)]
    return values_of(kind, default, groups)


def _struct(dice: Dice, kind: type[msgspec.Struct], groups: list[str]) -> dict[str, Any]:
    drawn = {}
    for field in msgspec.structs.fields(kind):
        part = dice.part(field.name)
        options = _options(part, field.type, field.default, groups, field.name)
        if field.name == "rate":
            options = [0, 2**20, 100 * 2**20]
        if field.name == "block":
            # Smaller ones would make millions of them.
            options = [2**20, 64 * 2**20, 256 * 2**20]
        if options and part.chance(0.6):
            drawn[field.encode_name] = part.one_of(options)
    return drawn


def _fits(value: Any, metas: list[msgspec.Meta]) -> bool:
    return all(
        (meta.ge is None or value >= meta.ge)
        and (meta.gt is None or value > meta.gt)
        and (meta.le is None or value <= meta.le)
        and (meta.lt is None or value < meta.lt)
        for meta in metas
    )
