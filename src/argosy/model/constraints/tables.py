"""Constraints as tables of TOML, YAML or JSON.

    {subject = "storm", tags = "hb & mem", min = 1, group = "rack", weight = 2, hard = true}
    {subject = "web", any = [{tags = "cache", min = 1}, {not = {tags = "db", min = 1}}], group = "rack"}
    {subject = "spark", spread = {min = 3, max = 5}, group = "rack"}
    {any_of = [{subject = ...}, {all_of = [{...}, {...}]}], weight = 0.5}

`min` is 0 and `max` unbounded unless given; tags are text joined with ``&`` or a list. Wherever a table
may stand, the text form may stand too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeVar

from argosy.model.constraints import (
    AllOf,
    AllTags,
    AnyOf,
    AnyTags,
    Constraint,
    ConstraintRule,
    Expression,
    NotTags,
    PlacementConstraint,
    SpreadConstraint,
    TagConstraint,
)
from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import ModelError, did_you_mean
from argosy.model.units import shown

_LEAF: Final = ("subject", "group", "tags", "min", "max", "all", "any", "not", "spread")
_DEEPEST: Final = 100

_Made = TypeVar("_Made")


def read_constraint(value: object) -> Constraint:
    """The constraint in a table or text; an error gives the path of the mistake as its field."""
    if isinstance(value, str):
        return parse_constraint(value)
    if not isinstance(value, Mapping):
        _refuse(
            f"{shown(value)} is not a constraint",
            "",
            'a table, or text such as "hb -> {hb, 0, 0} in machine"',
        )
    table = dict(value)
    weight, hard = table.pop("weight", 1.0), table.pop("hard", False)
    if type(weight) not in (int, float):
        _refuse(f"{shown(weight)} is not a weight", "weight", "a number")
    if type(hard) is not bool:
        _refuse(f"{shown(hard)} does not fit", "hard", "true or false")
    rule = _rule(table, "", 0)
    try:
        return Constraint(rule, float(weight), hard)
    except ModelError as error:
        raise error.located(field="weight") from None


def _refuse(problem: str, place: str, expected: str, hint: str | None = None) -> NoReturn:
    raise ModelError(problem, field=place or None, expected=expected, hint=hint)


def _inside(place: str, step: str) -> str:
    return f"{place}.{step}" if place else step


def _rule(value: object, place: str, depth: int) -> ConstraintRule:
    if isinstance(value, str):
        constraint = parse_constraint(value)
        if constraint != Constraint(constraint.rule):
            _refuse("a weight inside a compound constraint", place, "it beside all_of or any_of")
        return constraint.rule
    table = _table(value, place, depth)
    rules: tuple[tuple[str, Callable[..., ConstraintRule]], ...] = (
        ("all_of", AllOf),
        ("any_of", AnyOf),
    )
    for key, join in rules:
        if key in table:
            _only(table, (key,), place)
            at = _inside(place, key)
            parts = [
                _rule(part, f"{at}[{index}]", depth + 1)
                for index, part in enumerate(_list(table[key], at))
            ]
            return _made(at, join, tuple(parts))
    _only(table, (*_LEAF, "all_of", "any_of", *(("weight", "hard") if not place else ())), place)
    subject = _tags(table, "subject", place)
    group = table.get("group")
    if not isinstance(group, str):
        _refuse(
            "no group" if group is None else f"{shown(group)} is not a group",
            _inside(place, "group"),
            'a node group such as "machine" or "rack"',
        )
    if "spread" in table:
        at = _inside(place, "spread")
        _only(table, ("subject", "group", "spread"), place)
        bounds = _table(table["spread"], at, depth + 1)
        _only(bounds, ("min", "max"), at)
        return _made(at, SpreadConstraint, subject, *_bounds(bounds, at), group)
    expression = {key: table[key] for key in table if key not in ("subject", "group")}
    return _made(place, PlacementConstraint, subject, _expression(expression, place, depth), group)


def _expression(value: object, place: str, depth: int) -> Expression:
    table = _table(value, place, depth)
    joins: tuple[tuple[str, Callable[..., Expression]], ...] = (("all", AllTags), ("any", AnyTags))
    for key, join in joins:
        if key in table:
            _only(table, (key,), place)
            at = _inside(place, key)
            parts = [
                _expression(part, f"{at}[{index}]", depth + 1)
                for index, part in enumerate(_list(table[key], at))
            ]
            return _made(at, join, tuple(parts))
    if "not" in table:
        _only(table, ("not",), place)
        return NotTags(_expression(table["not"], _inside(place, "not"), depth + 1))
    _only(table, ("tags", "min", "max"), place)
    return _made(place, TagConstraint, _tags(table, "tags", place), *_bounds(table, place))


def _table(value: object, place: str, depth: int) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        _refuse(f"{shown(value)} is not a table", place, "a table")
    if depth > _DEEPEST:
        _refuse("too deep", place, f"at most {_DEEPEST} levels of nesting")
    return value


def _list(value: object, place: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        _refuse(f"{shown(value)} is not an array", place, "an array of at least two tables")
    return list(value)


def _only(table: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for key in table:
        if key not in known:
            _refuse(
                f"unknown key {shown(key)}",
                _inside(place, str(key)),
                "one of " + ", ".join(known),
                did_you_mean(str(key), known),
            )


def _tags(table: Mapping[str, Any], key: str, place: str) -> tuple[str, ...]:
    at = _inside(place, key)
    if key not in table:
        _refuse(f"missing key {key!r}", place, f'{key} = "tag" or "tag & tag"')
    value = table[key]
    if isinstance(value, str):
        return tuple(tag.strip() for tag in value.split("&"))
    if isinstance(value, list | tuple) and all(isinstance(tag, str) for tag in value):
        return tuple(value)
    _refuse(f"{shown(value)} is no tags", at, 'text such as "hb & mem", or an array of tags')


def _bounds(table: Mapping[str, Any], place: str) -> tuple[int, int | None]:
    least, most = table.get("min", 0), table.get("max", "inf")
    if type(least) is not int:
        _refuse(f"{shown(least)} does not fit", _inside(place, "min"), "a whole number")
    if most == "inf" or most == float("inf"):
        return least, None
    if type(most) is not int:
        _refuse(f"{shown(most)} does not fit", _inside(place, "max"), 'a whole number or "inf"')
    return least, most


def _made(place: str, make: Callable[..., _Made], *parts: object) -> _Made:
    try:
        return make(*parts)
    except ModelError as error:
        raise error.located(field=place or None) from None


def write_constraint(constraint: Constraint) -> dict[str, Any]:
    """The table form, without defaults; `read_constraint` reads it back."""
    table = _rule_table(constraint.rule)
    if constraint.weight != 1:
        table["weight"] = constraint.weight
    return table | ({"hard": True} if constraint.hard else {})


def _rule_table(rule: ConstraintRule) -> dict[str, Any]:
    match rule:
        case AllOf(parts):
            return {"all_of": [_rule_table(part) for part in parts]}
        case AnyOf(parts):
            return {"any_of": [_rule_table(part) for part in parts]}
        case SpreadConstraint(subject, least, most, group):
            bounds = _bounds_table(least, most)
            return {"subject": " & ".join(subject), "spread": bounds, "group": group}
        case PlacementConstraint(subject, expression, group):
            inside = _expression_table(expression)
            return {"subject": " & ".join(subject), **inside, "group": group}


def _expression_table(expression: Expression) -> dict[str, Any]:
    match expression:
        case TagConstraint(tags, least, most):
            return {"tags": " & ".join(tags), **_bounds_table(least, most)}
        case AllTags(parts):
            return {"all": [_expression_table(part) for part in parts]}
        case AnyTags(parts):
            return {"any": [_expression_table(part) for part in parts]}
        case NotTags(part):
            return {"not": _expression_table(part)}


def _bounds_table(least: int, most: int | None) -> dict[str, int]:
    table = {"min": least} if least else {}
    return table if most is None else {**table, "max": most}
