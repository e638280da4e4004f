"""Conditions on machines' attributes that are more than equality.

A job's `requires` has attributes and their values. So every condition of a trace is an attribute of its
own, named after the condition, which the machines that satisfy it have. A missing attribute counts as
the empty text, and as 0 where values are compared by size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

YES: Final = "yes"
_SIGNS: Final = {"EQUAL": "=", "NOT_EQUAL": "!=", "LESS_THAN": "<", "GREATER_THAN": ">"}


class Condition(NamedTuple):
    name: str
    relation: str
    value: str

    @property
    def attribute(self) -> str:
        return f"{self.name}{_SIGNS[self.relation]}{self.value}"

    def holds(self, attributes: Mapping[str, str]) -> bool:
        has = attributes.get(self.name, "")
        match self.relation:
            case "EQUAL":
                return has == self.value
            case "NOT_EQUAL":
                return has != self.value
            case "LESS_THAN":
                return _number(has) < _number(self.value)
        return _number(has) > _number(self.value)


def satisfied(conditions: Iterable[Condition], attributes: Mapping[str, str]) -> dict[str, str]:
    """The attributes for those conditions that hold."""
    return {each.attribute: YES for each in conditions if each.holds(attributes)}


def _number(text: str) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
