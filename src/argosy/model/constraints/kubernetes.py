"""Kubernetes' affinities and topology spread constraints, to and from constraints.

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

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

from argosy.model.constraints import (
    AllOf,
    AllTags,
    AnyOf,
    AnyTags,
    Constraint,
    Expression,
    NotTags,
    PlacementConstraint,
    Rule,
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
_GROUPS: Final = {key: group for group, key in TOPOLOGIES.items()}
#: More domains than any cluster has, so that the emptiest domain counts as empty.
MANY_DOMAINS: Final = 1_000_000
_HEAVIEST: Final = 100
_TERMS: Final = ("required", "preferred")


def label(tag: str) -> tuple[str, str]:
    key, _, value = tag.partition(":")
    return (key, value) if value else (tag, "true")


def tag_of(key: str, value: str) -> str:
    return key if value == "true" else f"{key}:{value}"


def _selector(tags: Sequence[str]) -> dict[str, Any]:
    return {"matchLabels": dict(map(label, tags))}


def to_kubernetes(
    constraints: Sequence[Constraint], tags: Collection[str], static: Collection[str] = ()
) -> dict[str, Any]:
    """Labels, affinity and topologySpreadConstraints of a pod with `tags`. Constraints that do not
    concern such a pod are left out. `static` are the tags that nodes have as labels."""
    writer = _Writer(frozenset(tags), frozenset(static))
    concerned = [constraint for constraint in constraints if writer.concerns(constraint.rule)]
    heaviest = max((constraint.weight for constraint in concerned), default=1.0)
    for constraint in concerned:
        weight = max(1, round(_HEAVIEST * constraint.weight / heaviest))
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

    def concerns(self, rule: Rule) -> bool:
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
        spec: dict[str, Any] = {"labels": dict(map(label, sorted(self.tags)))}
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
        self, constraint: Constraint, rule: Rule
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
        term = {"labelSelector": _selector(atom.tags), "topologyKey": topology}
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
                    "labelSelector": _selector(atom.tags),
                }
            )


def _refuse(constraint: Constraint, problem: str, hint: str | None = None) -> NoReturn:
    raise Untranslatable(f"'{format_constraint(constraint)}': {problem}", hint=hint)


def from_kubernetes(spec: Mapping[str, Any]) -> tuple[Constraint, ...]:
    """The constraints of a pod with `labels`, `affinity` and `topologySpreadConstraints`: the result of
    `to_kubernetes`, or those parts of a pod template."""
    tags = tuple(sorted(tag_of(key, value) for key, value in spec.get("labels", {}).items()))
    if not tags:
        raise Untranslatable("a pod without labels", expected="labels that become its tags")
    found: list[Constraint] = []
    affinity = spec.get("affinity", {})
    for kind, atom in (("podAffinity", (1, None)), ("podAntiAffinity", (0, 0))):
        for place, term, weight in _terms(affinity.get(kind, {}), kind):
            found.append(_pod_constraint(tags, term, atom, weight, place))
    found.extend(_node_constraints(tags, affinity.get("nodeAffinity", {})))
    for index, spread in enumerate(spec.get("topologySpreadConstraints", ())):
        found.append(_spread(tags, spread, f"topologySpreadConstraints[{index}]"))
    return tuple(found)


def _terms(section: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Any, float | None]]:
    """Each term with its path, and its weight if it is preferred."""
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    for index, term in enumerate(section.get(name, ())):
        yield f"{kind}.required[{index}]", term, None
    name = "preferredDuringSchedulingIgnoredDuringExecution"
    for index, item in enumerate(section.get(name, ())):
        yield f"{kind}.preferred[{index}]", item["podAffinityTerm"], item["weight"] / _HEAVIEST


def _selected(term: Mapping[str, Any], place: str) -> tuple[str, ...]:
    for key in ("namespaces", "namespaceSelector", "matchLabelKeys", "mismatchLabelKeys"):
        if key in term:
            raise Untranslatable(f"{key} has no counterpart", field=place)
    selector = term.get("labelSelector") or {}
    tags = [tag_of(key, value) for key, value in selector.get("matchLabels", {}).items()]
    for expression in selector.get("matchExpressions", ()):
        values = expression.get("values", ())
        if expression["operator"] != "In" or len(values) != 1:
            raise Untranslatable(
                f"operator {expression['operator']} with {len(values)} values",
                field=place,
                expected="In with one value: tags are joined by 'and'",
            )
        tags.append(tag_of(expression["key"], values[0]))
    if not tags:
        raise Untranslatable("a selector of all pods", field=place, expected="matchLabels")
    return tuple(tags)


def _group(key: str) -> str:
    return _GROUPS.get(key, key)


def _pod_constraint(
    tags: tuple[str, ...],
    term: Mapping[str, Any],
    bounds: tuple[int, int | None],
    weight: float | None,
    place: str,
) -> Constraint:
    atom = TagConstraint(_selected(term, place), *bounds)
    rule = PlacementConstraint(tags, atom, _group(term["topologyKey"]))
    return Constraint(rule, hard=True) if weight is None else Constraint(rule, weight)


def _node_constraints(tags: tuple[str, ...], section: Mapping[str, Any]) -> Iterator[Constraint]:
    required = section.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required:
        terms = [
            _node_expression(term, f"nodeAffinity.required[{index}]")
            for index, term in enumerate(required["nodeSelectorTerms"])
        ]
        whole = terms[0] if len(terms) == 1 else AnyTags(tuple(terms))
        yield Constraint(PlacementConstraint(tags, whole, MACHINE_GROUP), hard=True)
    preferred = section.get("preferredDuringSchedulingIgnoredDuringExecution", ())
    for index, item in enumerate(preferred):
        expression = _node_expression(item["preference"], f"nodeAffinity.preferred[{index}]")
        rule = PlacementConstraint(tags, expression, MACHINE_GROUP)
        yield Constraint(rule, item["weight"] / _HEAVIEST)


def _node_expression(term: Mapping[str, Any], place: str) -> Expression:
    if "matchFields" in term:
        raise Untranslatable("matchFields has no counterpart", field=place)
    parts: list[Expression] = []
    for expression in term.get("matchExpressions", ()):
        key, operator = expression["key"], expression["operator"]
        values = expression.get("values", ())
        tags = [(tag_of(key, value),) for value in values]
        if operator == "In":
            atoms = [TagConstraint(tag, 1, None) for tag in tags]
            parts.append(atoms[0] if len(atoms) == 1 else AnyTags(tuple(atoms)))
        elif operator == "NotIn":
            parts.extend(TagConstraint(tag, 0, 0) for tag in tags)
        else:
            raise Untranslatable(
                f"operator {operator} on {key}", field=place, expected="In or NotIn"
            )
    if not parts:
        raise Untranslatable("a term without matchExpressions", field=place)
    return parts[0] if len(parts) == 1 else AllTags(tuple(parts))


def _spread(tags: tuple[str, ...], spread: Mapping[str, Any], place: str) -> Constraint:
    if spread.get("whenUnsatisfiable", "DoNotSchedule") != "DoNotSchedule":
        raise Untranslatable("a soft skew has no counterpart", field=place)
    if spread.get("minDomains", 1) < MANY_DOMAINS:
        raise Untranslatable(
            "a skew against the emptiest domain has no counterpart",
            field=place,
            expected=f"minDomains of {MANY_DOMAINS:,} or more, which makes maxSkew a limit",
        )
    selected = _selected(spread, place)
    most = spread["maxSkew"] - frozenset(tags).issuperset(selected)
    atom = TagConstraint(selected, 0, most)
    return Constraint(PlacementConstraint(tags, atom, _group(spread["topologyKey"])), hard=True)
