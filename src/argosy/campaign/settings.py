"""Draws settings of an engine from the types that it declares for them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import msgspec

from argosy.campaign.dice import Dice, time_text
from argosy.engines.api import Engine, NeedsExtra
from argosy.model.errors import SettingError
from argosy.model.machines import GROUP_NAME
from argosy.model.units import Micros
from argosy.workloads.tables import Converter, Misfit

#: A setting of this name is the real time that a solver may take, which no result may depend on.
BUDGET: Final = "budget"
ENOUGH: Final = "10min"
_CONVERTER: Final = Converter(SettingError)
#: Choices whose runs do not repeat, as the documentation of their engines says.
_UNREPEATABLE: Final = frozenset({"race", "warm-race"})
#: Times are drawn as parts and multiples of their defaults: a campaign looks for mistakes, and does not
#: wait for schedulers that were told to think for hours. Times that are 0 by default become short ones.
_FACTORS: Final = ((0, 1), (1, 10), (1, 3), (1, 2), (2, 1), (4, 1), (10, 1))
_SHORT_TIMES: Final = (1_000, 50_000, 1_000_000)
_INTEGERS: Final = (0, 1, 2, 3, 5, 10, 64, 1_000)
_FLOATS: Final = (0.0, 0.1, 0.25, 0.5, 0.9, 1.0, 2.0, 10.0)


def draw_settings(dice: Dice, engine: type[Engine], groups: Sequence[str]) -> dict[str, Any]:
    """Some settings of the engine; those of types that cannot be drawn keep their defaults."""
    drawn: dict[str, Any] = {}
    has_settings = dice.has("settings", 0.6)
    for field in msgspec.structs.fields(engine.settings_type):
        if field.encode_name == BUDGET:
            drawn[BUDGET] = ENOUGH
            continue
        options = values_of(field.type, field.default, groups)
        is_drawn = dice.chance(0.25) and has_settings
        # Drawn whether it is used or not, so that one setting does not change the next.
        position = dice.among(0, max(0, len(options) - 1))
        if options and (is_drawn or field.required):
            drawn[field.encode_name] = options[position]
    return drawn if _can_run(engine, drawn) else _only_budget(drawn)


def values_of(annotation: Any, default: Any, groups: Sequence[str]) -> list[Any]:
    """Values of the type, as a scenario file writes them; none where it is not known how."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Micros or Micros in arguments:
        metas = [meta for meta in arguments if isinstance(meta, msgspec.Meta)]
        return [time_text(each) for each in _times(default) if _is_within(each, metas)]
    if origin is Annotated:
        if GROUP_NAME in arguments:
            return ["", *groups]
        metas = [meta for meta in arguments[1:] if isinstance(meta, msgspec.Meta)]
        if examples := [each for meta in metas for each in meta.examples or ()]:
            return examples
        inside = values_of(arguments[0], default, groups)
        return [each for each in inside if _is_within(each, metas)]
    if annotation is bool:
        return [False, True]
    if annotation is int:
        return list(_INTEGERS)
    if annotation is float:
        return list(_FLOATS)
    if origin is Literal:
        return list(arguments)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [member.value for member in annotation if member.value not in _UNREPEATABLE]
    return []


def _times(default: Any) -> list[int]:
    if not isinstance(default, int) or not default:
        return list(_SHORT_TIMES)
    return [default * times // parts for times, parts in _FACTORS]


def _is_within(value: Any, metas: Sequence[msgspec.Meta]) -> bool:
    return all(
        (meta.ge is None or value >= meta.ge)
        and (meta.gt is None or value > meta.gt)
        and (meta.le is None or value <= meta.le)
        and (meta.lt is None or value < meta.lt)
        for meta in metas
    )


def _can_run(engine: type[Engine], drawn: dict[str, Any]) -> bool:
    """Whether these settings go together, and what they need is installed."""
    kind: object = engine
    try:
        settings = _CONVERTER.convert(drawn, engine.settings_type)
    except Misfit:
        return False
    return not isinstance(kind, NeedsExtra) or kind.lack(settings) is None


def _only_budget(drawn: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in drawn.items() if key == BUDGET}
