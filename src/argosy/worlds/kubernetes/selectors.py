"""Label selectors and node selectors, as Kubernetes reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from argosy.kubernetes.objects import (
    LabelSelector,
    Node,
    NodeSelector,
    NodeSelectorTerm,
    SelectorRequirement,
)

#: Labels such as `1_000` are no numbers, although Python would read them.
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_SMALLEST: Final = -(2**63)
_LARGEST: Final = 2**63 - 1


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """No selector selects nothing; an empty one selects everything."""
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        holds(requirement, labels) for requirement in selector.match_expressions
    )


def holds(requirement: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
    return False


def _compares(requirement: SelectorRequirement, value: str | None) -> bool:
    number = as_integer(value or "")
    bound = as_integer(requirement.values[0]) if len(requirement.values) == 1 else None
    if number is None or bound is None:
        return False
    return number > bound if requirement.operator == "Gt" else number < bound


def as_integer(text: str) -> int | None:
    """A number of 64 bits; none if it is not one."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and _SMALLEST <= number <= _LARGEST else None


def selects_node(selector: NodeSelector | None, node: Node) -> bool:
    """Whether one of its terms matches; no selector matches every node."""
    return selector is None or any(
        term_matches(term, node) for term in selector.node_selector_terms
    )


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """All requirements hold; a term without any matches no node."""
    if not (term.match_expressions or term.match_fields):
        return False
    fields = {"metadata.name": node.name}
    return all(holds(each, node.metadata.labels) for each in term.match_expressions) and all(
        holds(each, fields) for each in term.match_fields
    )


def described(selector: LabelSelector | None) -> str:
    """The selector as `kubectl get --selector` takes it."""
    if selector is None:
        return "of no kind"
    parts = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    parts += [described_requirement(each) for each in selector.match_expressions]
    return ",".join(parts) or "of any kind"


def described_requirement(requirement: SelectorRequirement) -> str:
    key, values = requirement.key, ",".join(requirement.values)
    match requirement.operator:
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
        case "Gt":
            return f"{key}>{values}"
        case _:
            return f"{key}<{values}"
