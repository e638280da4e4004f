"""Placement constraints: the values (`constraint`), their text and table forms, what they mean, and the
languages of other systems (`kubernetes`, `yarn`)."""

from argosy.model.constraints.constraint import (
    HEAVIEST,
    NAME,
    RESERVED,
    AllOf,
    AllTags,
    AnyOf,
    AnyTags,
    Constraint,
    ConstraintRule,
    Expression,
    Leaf,
    NotTags,
    PlacementConstraint,
    SpreadConstraint,
    TagConstraint,
)

__all__ = [
    "HEAVIEST",
    "NAME",
    "RESERVED",
    "AllOf",
    "AllTags",
    "AnyOf",
    "AnyTags",
    "Constraint",
    "ConstraintRule",
    "Expression",
    "Leaf",
    "NotTags",
    "PlacementConstraint",
    "SpreadConstraint",
    "TagConstraint",
]
