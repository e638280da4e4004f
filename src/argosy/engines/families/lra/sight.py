"""Which constraints each scheduler supports.

everything  Medea: all of it
kube        the Kubernetes of the paper: affinity and anti-affinity, no cardinality, no 'or'
kube_plus   J-Kube++: also cardinality
kube_modern today's Kubernetes: also upper bounds, hard only (a topology spread with maxSkew and
            minDomains)
nothing     YARN's schedulers for tasks
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from argosy.model.constraints import (
    AllOf,
    AllTags,
    Constraint,
    ConstraintRule,
    Expression,
    NotTags,
    PlacementConstraint,
    TagConstraint,
)
from argosy.model.constraints.meaning import negated

_Atom = Callable[[TagConstraint], TagConstraint | None]


def everything(constraint: Constraint) -> Constraint | None:
    return constraint


def nothing(constraint: Constraint) -> Constraint | None:
    return None


def kube(constraint: Constraint) -> Constraint | None:
    return _seen(constraint, _affinity)


def kube_plus(constraint: Constraint) -> Constraint | None:
    return _seen(constraint, lambda atom: atom)


def kube_modern(constraint: Constraint) -> Constraint | None:
    seen = _seen(constraint, _affinity)
    if seen is not None:
        return seen
    limited = _seen(constraint, _limit)
    return None if limited is None else msgspec.structs.replace(limited, hard=True)


def _affinity(atom: TagConstraint) -> TagConstraint | None:
    if atom.least >= 1 and atom.most is None:
        return TagConstraint(atom.tags, 1, None)
    return atom if (atom.least, atom.most) == (0, 0) else None


def _limit(atom: TagConstraint) -> TagConstraint | None:
    return atom if atom.least == 0 and atom.most is not None else None


def _seen(constraint: Constraint, atom: _Atom) -> Constraint | None:
    rule = _rule(constraint.rule, atom)
    return None if rule is None else msgspec.structs.replace(constraint, rule=rule)


def _rule(rule: ConstraintRule, atom: _Atom) -> ConstraintRule | None:
    match rule:
        case PlacementConstraint(subject, expression, group):
            inside = _expression(expression, atom)
            return None if inside is None else PlacementConstraint(subject, inside, group)
        case AllOf(parts):
            seen = [part for each in parts if (part := _rule(each, atom)) is not None]
            if len(seen) < 2:
                return seen[0] if seen else None
            return AllOf(tuple(seen))
    return None


def _expression(expression: Expression, atom: _Atom) -> Expression | None:
    match expression:
        case TagConstraint():
            return atom(expression)
        case NotTags(part):
            inside = negated(part)
            return None if inside is None else _expression(inside, atom)
        case AllTags(parts):
            found = [_expression(each, atom) for each in parts]
            seen = [each for each in found if each is not None]
            if len(seen) < 2:
                return seen[0] if seen else None
            return AllTags(tuple(seen))
    return None
