"""Constraints from Kubernetes' affinities and topology spread constraints.

`kubernetes` says which of them have a counterpart. Everything else is an error with the path of the
field: a value of another type than Kubernetes expects, a field that is unknown, or one that constraints
cannot say. As in Kubernetes, null stands for a field that is not there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NoReturn

from argosy.model.constraints import (
    NAME,
    RESERVED,
    AllTags,
    AnyTags,
    Constraint,
    Expression,
    PlacementConstraint,
    TagConstraint,
)
from argosy.model.constraints.kubernetes import HEAVIEST_TERM, MANY_DOMAINS, TOPOLOGIES, tag_of
from argosy.model.errors import Untranslatable, did_you_mean, excerpt
from argosy.model.machines import MACHINE_GROUP
from argosy.model.units import shown

_GROUPS: Final = {key: group for group, key in TOPOLOGIES.items()}
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
#: The largest of Kubernetes' own integers.
_LARGEST: Final = 2**31 - 1
_LABELS: Final = 'labels such as web: "true"'
_UNSAYABLE: Final = ("namespaces", "namespaceSelector", "matchLabelKeys", "mismatchLabelKeys")


class SpecPart:
    """A value in a pod's specification, and its path."""

    def __init__(self, value: object, path: str) -> None:
        self.value = value
        self.path = path

    def refuse(
        self, problem: str, expected: str | None = None, hint: str | None = None
    ) -> NoReturn:
        raise Untranslatable(problem, field=self.path or None, expected=expected, hint=hint)

    def _misfit(self, expected: str) -> NoReturn:
        match self.value:
            case Mapping():
                what = "a map"
            case list():
                what = "a list"
            case bool() | None:
                what = {True: "true", False: "false", None: "null"}[self.value]
            case _:
                what = shown(self.value)
        self.refuse(f"{what} does not fit", expected)

    def fields(
        self, known: Collection[str] | None = None, expected: str = "a map"
    ) -> dict[str, SpecPart]:
        """The parts of a map, without those that are null; a field that is not among the known is an
        error."""
        if not isinstance(self.value, Mapping):
            self._misfit(expected)
        parts = {}
        for key, value in self.value.items():
            if not isinstance(key, str):
                self.refuse(f"the key {shown(key)} is not text", "text, in quotes if need be")
            if known is not None and key not in known:
                hint = did_you_mean(key, known)
                self.refuse(f"unknown field {excerpt(key)}", "one of " + ", ".join(known), hint)
            if value is not None:
                parts[key] = SpecPart(value, f"{self.path}.{key}" if self.path else key)
        return parts

    def need(self, parts: Mapping[str, SpecPart], key: str, expected: str) -> SpecPart:
        """One of the fields of this part, which must be there."""
        if key not in parts:
            self.refuse(f"{key} is missing", expected)
        return parts[key]

    def items(self) -> list[SpecPart]:
        if not isinstance(self.value, list):
            self._misfit("a list")
        return [SpecPart(value, f"{self.path}[{at}]") for at, value in enumerate(self.value)]

    def text(self, expected: str) -> str:
        if not isinstance(self.value, str):
            self._misfit(expected)
        return self.value

    def whole(self, most: int) -> int:
        if type(self.value) is not int or not 1 <= self.value <= most:
            self._misfit(f"a whole number from 1 to {most:,}")
        assert isinstance(self.value, int)
        return self.value

    def name(self, name: str) -> str:
        """`name`, which this part gives a tag or a node group."""
        if name in RESERVED or NAME.fullmatch(name) is None:
            self.refuse(
                f"{excerpt(name)} as a tag or group of a constraint",
                "letters, digits and any of _ . : / - that is not a word such as 'and'",
            )
        return name

    def tag(self, key: str) -> str:
        """This part as the value of a label."""
        value = self.text('text, such as "true" in quotes')
        if ":" in key:
            self.refuse(f"label {excerpt(key)}", "a key without a colon")
        if not value:
            self.refuse(f"label {excerpt(key)} without a value", "a value")
        return self.name(tag_of(key, value))


def from_kubernetes(spec: Mapping[str, Any]) -> tuple[Constraint, ...]:
    """The constraints of a pod with `labels`, `affinity` and `topologySpreadConstraints`: what
    `to_kubernetes` gives, or those parts of a pod's template."""
    whole = SpecPart(spec, "")
    parts = whole.fields(expected="a map with labels, affinity and topologySpreadConstraints")
    labels = parts.get("labels", SpecPart({}, "labels")).fields(expected=_LABELS)
    tags = tuple(sorted(value.tag(key) for key, value in labels.items()))
    if not tags:
        hint = None
        if "metadata" in parts or "spec" in parts:
            hint = "a manifest needs its kind, such as Pod"
        raise Untranslatable("a pod without labels", field="labels", expected=_LABELS, hint=hint)
    found: list[Constraint] = []
    if "nodeSelector" in parts:
        wanted = parts["nodeSelector"].fields(expected="labels of nodes")
        atoms = [TagConstraint((value.tag(key),), 1, None) for key, value in wanted.items()]
        if atoms:
            every = atoms[0] if len(atoms) == 1 else AllTags(tuple(atoms))
            found.append(Constraint(PlacementConstraint(tags, every, MACHINE_GROUP), hard=True))
    if "affinity" in parts:
        kinds = ("nodeAffinity", "podAffinity", "podAntiAffinity")
        affinity = parts["affinity"].fields(kinds)
        for kind, bounds in (("podAffinity", (1, None)), ("podAntiAffinity", (0, 0))):
            if kind in affinity:
                found.extend(_pod_constraints(tags, affinity[kind], bounds))
        if "nodeAffinity" in affinity:
            found.extend(_node_constraints(tags, affinity["nodeAffinity"]))
    if "topologySpreadConstraints" in parts:
        found.extend(_spread(tags, item) for item in parts["topologySpreadConstraints"].items())
    return tuple(found)


def _weighted(item: SpecPart, inside: str) -> tuple[SpecPart, float]:
    """A preferred term and its weight."""
    parts = item.fields(("weight", inside))
    weight = item.need(parts, "weight", f"a whole number from 1 to {HEAVIEST_TERM}")
    return item.need(parts, inside, "a term"), weight.whole(HEAVIEST_TERM) / HEAVIEST_TERM


def _pod_constraints(
    tags: tuple[str, ...], section: SpecPart, bounds: tuple[int, int | None]
) -> Iterator[Constraint]:
    parts = section.fields((_REQUIRED, _PREFERRED))
    if _REQUIRED in parts:
        for term in parts[_REQUIRED].items():
            yield Constraint(_pod_rule(tags, term, bounds), hard=True)
    if _PREFERRED in parts:
        for item in parts[_PREFERRED].items():
            term, weight = _weighted(item, "podAffinityTerm")
            yield Constraint(_pod_rule(tags, term, bounds), weight)


def _pod_rule(
    tags: tuple[str, ...], term: SpecPart, bounds: tuple[int, int | None]
) -> PlacementConstraint:
    parts = term.fields(("labelSelector", "topologyKey", *_UNSAYABLE))
    atom = TagConstraint(_selected(term, parts), *bounds)
    return PlacementConstraint(tags, atom, _group(term, parts))


def _group(term: SpecPart, parts: Mapping[str, SpecPart]) -> str:
    expected = "a topology key such as kubernetes.io/hostname"
    part = term.need(parts, "topologyKey", expected)
    key = part.text(expected)
    return _GROUPS.get(key) or part.name(key)


def _selected(term: SpecPart, parts: Mapping[str, SpecPart]) -> tuple[str, ...]:
    for key in _UNSAYABLE:
        if key in parts and parts[key].value != []:
            parts[key].refuse(f"{key} has no counterpart")
    tags: list[str] = []
    if "labelSelector" in parts:
        selector = parts["labelSelector"].fields(("matchLabels", "matchExpressions"))
        if "matchLabels" in selector:
            labels = selector["matchLabels"].fields(expected=_LABELS)
            tags.extend(value.tag(key) for key, value in labels.items())
        if "matchExpressions" in selector:
            for expression in selector["matchExpressions"].items():
                key, operator, values = _expression(expression)
                if operator != "In" or len(values) != 1:
                    expression.refuse(
                        f"operator {excerpt(operator)} with {len(values)} values",
                        "In with one value: tags are joined by 'and'",
                    )
                tags.append(values[0].tag(key))
    if not tags:
        term.refuse("a selector of all pods", "labelSelector.matchLabels")
    return tuple(tags)


def _expression(expression: SpecPart) -> tuple[str, str, list[SpecPart]]:
    """Key, operator and values."""
    parts = expression.fields(("key", "operator", "values"))
    key = expression.need(parts, "key", "the key of a label").text("the key of a label")
    operator = expression.need(parts, "operator", "In or NotIn").text("In or NotIn")
    return key, operator, parts["values"].items() if "values" in parts else []


def _node_constraints(tags: tuple[str, ...], section: SpecPart) -> Iterator[Constraint]:
    parts = section.fields((_REQUIRED, _PREFERRED))
    if _REQUIRED in parts:
        required = parts[_REQUIRED].fields(("nodeSelectorTerms",))
        terms = parts[_REQUIRED].need(required, "nodeSelectorTerms", "a list of terms")
        ways = [_node_expression(term) for term in terms.items()]
        if not ways:
            terms.refuse("no terms", "at least one")
        whole = ways[0] if len(ways) == 1 else AnyTags(tuple(ways))
        yield Constraint(PlacementConstraint(tags, whole, MACHINE_GROUP), hard=True)
    if _PREFERRED in parts:
        for item in parts[_PREFERRED].items():
            term, weight = _weighted(item, "preference")
            rule = PlacementConstraint(tags, _node_expression(term), MACHINE_GROUP)
            yield Constraint(rule, weight)


def _node_expression(term: SpecPart) -> Expression:
    parts = term.fields(("matchExpressions", "matchFields"))
    if "matchFields" in parts:
        parts["matchFields"].refuse("matchFields has no counterpart")
    found: list[Expression] = []
    for expression in parts["matchExpressions"].items() if "matchExpressions" in parts else ():
        key, operator, values = _expression(expression)
        if operator not in ("In", "NotIn"):
            expression.refuse(f"operator {excerpt(operator)} on {excerpt(key)}", "In or NotIn")
        if not values:
            expression.refuse(f"operator {operator} without values", "at least one value")
        bounds = (1, None) if operator == "In" else (0, 0)
        atoms = [TagConstraint((value.tag(key),), *bounds) for value in values]
        if operator == "In" and len(atoms) > 1:
            found.append(AnyTags(tuple(atoms)))
        else:
            found.extend(atoms)
    if not found:
        term.refuse("a term without matchExpressions", "at least one of them")
    return found[0] if len(found) == 1 else AllTags(tuple(found))


def _spread(tags: tuple[str, ...], spread: SpecPart) -> Constraint:
    # Against empty domains, it does not matter which domains count.
    policies = ("nodeAffinityPolicy", "nodeTaintsPolicy")
    own = ("maxSkew", "minDomains", "topologyKey", "whenUnsatisfiable", "labelSelector")
    parts = spread.fields((*own, *policies, *_UNSAYABLE))
    if "whenUnsatisfiable" in parts:
        choices = "DoNotSchedule or ScheduleAnyway"
        when = parts["whenUnsatisfiable"].text(choices)
        if when == "ScheduleAnyway":
            parts["whenUnsatisfiable"].refuse("a soft skew has no counterpart", "DoNotSchedule")
        if when != "DoNotSchedule":
            parts["whenUnsatisfiable"].refuse(f"{excerpt(when)} does not fit", choices)
    domains = parts["minDomains"].whole(_LARGEST) if "minDomains" in parts else 1
    if domains < MANY_DOMAINS:
        spread.refuse(
            "a skew against the emptiest domain has no counterpart",
            f"minDomains of {MANY_DOMAINS:,} or more, which makes maxSkew a limit",
        )
    selected = _selected(spread, parts)
    skew = spread.need(parts, "maxSkew", "a whole number").whole(_LARGEST)
    atom = TagConstraint(selected, 0, skew - frozenset(tags).issuperset(selected))
    return Constraint(PlacementConstraint(tags, atom, _group(spread, parts)), hard=True)
