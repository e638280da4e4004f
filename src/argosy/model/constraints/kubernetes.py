"""Constraints as Kubernetes' affinities and topology spread constraints; `kubernetes_reader` reads them.

A tag ``key:value`` is the label ``key=value``, any other tag ``t`` the label ``t=true``; static machine
tags are labels of nodes in the same way. A node group is a topology key.

    {c, 1, inf} in G            podAffinity
    {c, 0, 0} in G              podAntiAffinity
    {c, 0, n} in G, hard        topologySpreadConstraints with maxSkew n (n + 1 where the pod itself
                                carries c) and minDomains beyond any number of domains
    {static, 1, inf} in machine nodeAffinity with In; (0, 0) with NotIn
    weight                      the weight of a preferred term, 1 to 100, relative to the heaviest

What Kubernetes cannot say: at least two of anything; `or` except between node labels; soft limits above
0; spreads over a number of domains; groups in which a machine is in several sets; it checks a pod's
constraints once, when it is placed. What constraints cannot say: a skew against the emptiest domain,
operators Gt and Lt, namespaces and matchLabelKeys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NoReturn

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
from argosy.model.constraints.meaning import negated
from argosy.model.constraints.text import format_constraint
from argosy.model.errors import Untranslatable
from argosy.model.machines import MACHINE_GROUP

HOSTNAME: Final = "kubernetes.io/hostname"
TOPOLOGIES: Final = {
    MACHINE_GROUP: HOSTNAME,
    "zone": "topology.kubernetes.io/zone",
    "region": "topology.kubernetes.io/region",
}
#: The weight of a preferred term is 1 to this.
HEAVIEST_TERM: Final = 100
#: More domains than any cluster has: the emptiest domain then counts as empty.
MANY_DOMAINS: Final = 1_000_000
_TERMS: Final = ("required", "preferred")


def label(tag: str) -> tuple[str, str]:
    key, _, value = tag.partition(":")
    return (key, value) if value else (tag, "true")


def tag_of(key: str, value: str) -> str:
    return key if value == "true" else f"{key}:{value}"


def _labels(tags: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for tag in tags:
        key, value = label(tag)
        if found.setdefault(key, value) != value:
            raise Untranslatable(
                f"tags {tag_of(key, found[key])} and {tag}", expected="one value for each label"
            )
    return found


def _selector(constraint: Constraint, tags: Sequence[str]) -> dict[str, Any]:
    try:
        return {"matchLabels": _labels(tags)}
    except Untranslatable:
        _refuse(constraint, "a pod has one value of each label")


def to_kubernetes(
    constraints: Sequence[Constraint], tags: Collection[str], static: Collection[str] = ()
) -> dict[str, Any]:
    """Labels, affinity and topologySpreadConstraints of a pod with `tags`. Constraints that do not
    concern such a pod are left out. `static` are the tags that nodes have as labels."""
    writer = _Writer(frozenset(tags), frozenset(static))
    concerned = [constraint for constraint in constraints if writer.concerns(constraint.rule)]
    heaviest = max((constraint.weight for constraint in concerned), default=1.0)
    for constraint in concerned:
        weight = max(1, round(HEAVIEST_TERM * constraint.weight / heaviest))
        writer.write(constraint, weight)
    return writer.spec()


class _Writer:
    def __init__(self, tags: frozenset[str], static: frozenset[str]) -> None:
        self.tags = tags
        self.static = static
        self.pods: dict[str, dict[str, list[Any]]] = {}
        #: Required alternatives, each a list of expressions that must all hold.
        self.nodes: list[list[dict[str, Any]]] | None = None
        self.preferred_nodes: list[Any] = []
        self.spreads: list[Any] = []

    def concerns(self, rule: ConstraintRule) -> bool:
        match rule:
            case AllOf(parts) | AnyOf(parts):
                return any(map(self.concerns, parts))
        return self.tags.issuperset(rule.subject)

    def spec(self) -> dict[str, Any]:
        affinity: dict[str, Any] = {}
        node: dict[str, Any] = {}
        if self.nodes is not None:
            terms = [{"matchExpressions": term} for term in self.nodes]
            node["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        if self.preferred_nodes:
            node["preferredDuringSchedulingIgnoredDuringExecution"] = self.preferred_nodes
        if node:
            affinity["nodeAffinity"] = node
        for kind, terms_of in sorted(self.pods.items()):
            affinity[kind] = {
                f"{when}DuringSchedulingIgnoredDuringExecution": terms_of[when]
                for when in _TERMS
                if when in terms_of
            }
        spec: dict[str, Any] = {"labels": _labels(sorted(self.tags))}
        if affinity:
            spec["affinity"] = affinity
        if self.spreads:
            spec["topologySpreadConstraints"] = self.spreads
        return spec

    def write(self, constraint: Constraint, weight: int) -> None:
        for leaf in self._leaves(constraint, constraint.rule):
            if isinstance(leaf, SpreadConstraint):
                _refuse(constraint, "Kubernetes does not count the domains that pods are in")
            self._expression(constraint, leaf, leaf.expression, weight)

    def _leaves(
        self, constraint: Constraint, rule: ConstraintRule
    ) -> Iterator[PlacementConstraint | SpreadConstraint]:
        match rule:
            case AllOf(parts) | AnyOf(parts):
                mine = [part for part in parts if self.concerns(part)]
                if isinstance(rule, AnyOf) and len(mine) > 1:
                    _refuse(constraint, "Kubernetes has no 'or' between constraints")
                for part in mine:
                    yield from self._leaves(constraint, part)
            case PlacementConstraint() | SpreadConstraint():
                if self.tags.issuperset(rule.subject):
                    yield rule

    def _expression(
        self,
        constraint: Constraint,
        leaf: PlacementConstraint,
        expression: Expression,
        weight: int,
    ) -> None:
        match expression:
            case AllTags(parts):
                for part in parts:
                    self._expression(constraint, leaf, part, weight)
            case NotTags(part):
                inside = negated(part)
                if inside is None:
                    _refuse(constraint, "it can never hold")
                self._expression(constraint, leaf, inside, weight)
            case AnyTags(parts):
                terms = [self._node_term(constraint, leaf, part) for part in parts]
                self._require_nodes(constraint, terms, weight)
            case TagConstraint():
                if self.static.issuperset(expression.tags):
                    term = self._node_term(constraint, leaf, expression)
                    self._require_nodes(constraint, [term], weight)
                else:
                    self._pods(constraint, leaf, expression, weight)

    def _node_term(
        self, constraint: Constraint, leaf: PlacementConstraint, part: Expression
    ) -> list[dict[str, Any]]:
        if not isinstance(part, TagConstraint) or not self.static.issuperset(part.tags):
            _refuse(constraint, "Kubernetes has 'or' between node labels only")
        if leaf.group != MACHINE_GROUP:
            _refuse(constraint, "Kubernetes asks for labels of the node itself", "in machine")
        if (part.least, part.most) == (1, None):
            operator = "In"
        elif part.most == 0 and len(part.tags) == 1:
            operator = "NotIn"
        else:
            _refuse(constraint, "a node has a label or has it not", "{tag, 1, inf} or {tag, 0, 0}")
        return [
            {"key": key, "operator": operator, "values": [value]}
            for key, value in map(label, part.tags)
        ]

    def _require_nodes(
        self, constraint: Constraint, terms: list[list[dict[str, Any]]], weight: int
    ) -> None:
        if not constraint.hard:
            if len(terms) > 1:
                _refuse(constraint, "a preferred node affinity has one term")
            preference = {"matchExpressions": terms[0]}
            self.preferred_nodes.append({"weight": weight, "preference": preference})
        elif self.nodes is None:
            self.nodes = terms
        else:
            self.nodes = [[*mine, *more] for mine in self.nodes for more in terms]

    def _pods(
        self,
        constraint: Constraint,
        leaf: PlacementConstraint,
        atom: TagConstraint,
        weight: int,
    ) -> None:
        topology = TOPOLOGIES.get(leaf.group, leaf.group)
        term = {"labelSelector": _selector(constraint, atom.tags), "topologyKey": topology}
        if atom.least >= 2:
            _refuse(constraint, "Kubernetes cannot ask for two or more pods")
        if atom.least == 1 and atom.most is not None:
            _refuse(constraint, "Kubernetes cannot bound a count from both sides")
        if atom.least == 1 or atom.most == 0:
            kind = "podAffinity" if atom.least else "podAntiAffinity"
            terms = self.pods.setdefault(kind, {})
            if constraint.hard:
                terms.setdefault("required", []).append(term)
            else:
                preferred = {"weight": weight, "podAffinityTerm": term}
                terms.setdefault("preferred", []).append(preferred)
        elif atom.most is not None:
            if not constraint.hard:
                _refuse(constraint, "Kubernetes' soft spreads bound no count", "say `hard`")
            own = self.tags.issuperset(atom.tags)
            self.spreads.append(
                {
                    "maxSkew": atom.most + own,
                    "minDomains": MANY_DOMAINS,
                    "topologyKey": topology,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": _selector(constraint, atom.tags),
                }
            )


def _refuse(constraint: Constraint, problem: str, hint: str | None = None) -> NoReturn:
    raise Untranslatable(f"'{format_constraint(constraint)}': {problem}", hint=hint)
