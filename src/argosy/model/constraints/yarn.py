"""YARN's placement specification strings, to and from constraints.

    zk=3,NOTIN,NODE,zk:hbase=5,IN,RACK,zk:spark=7,CARDINALITY,NODE,hbase,1,3

Each part has a source tag with its number of containers and one constraint, which may be `AND(...:...)`
or `OR(...:...)`. Tags may have a namespace: `self/` (the default), `all/`, `app-id/ID/`, `app-tag/TAG/`.
YARN counts without the container itself, as constraints here do, and its constraints are hard.

What YARN cannot say: soft constraints and weights, conjunctions of tags other than an application's own,
node groups other than machine and rack, negation beyond NOTIN, spreads. What constraints cannot say:
`not-self/`, and a cardinality of several tags, which YARN adds up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NoReturn

import msgspec

from argosy.model.constraints import (
    AllOf,
    AllTags,
    AnyOf,
    AnyTags,
    Constraint,
    ConstraintRule,
    Expression,
    PlacementConstraint,
    TagConstraint,
)
from argosy.model.constraints.parts import APP, SELF
from argosy.model.constraints.text import format_constraint
from argosy.model.errors import Untranslatable
from argosy.model.machines import MACHINE_GROUP

_SCOPES: Final = {"NODE": MACHINE_GROUP, "RACK": "rack"}
_GROUPS: Final = {group: scope for scope, group in _SCOPES.items()}
#: Longer numbers are typing errors.
_COUNT: Final = "[0-9]{1,15}"
_SOURCE: Final = re.compile(rf"([A-Za-z0-9_.-]+)=({_COUNT}),")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]+")


class YarnPart(msgspec.Struct, frozen=True):
    """One part of a specification: a number of containers with a tag, and their constraint."""

    tag: str
    count: int
    constraint: Constraint


def from_yarn(text: str) -> tuple[YarnPart, ...]:
    """The parts of a placement specification. Each constraint is hard and about the application
    itself."""
    return tuple(_part(piece, start, text) for piece, start in _split(text, ":", 0))


def _fail(problem: str, text: str, column: int, expected: str | None = None) -> NoReturn:
    raise Untranslatable(f"{problem} at column {column + 1} of {text!r}", expected=expected)


def _split(text: str, separator: str, offset: int) -> Iterator[tuple[str, int]]:
    """The pieces between separators outside parentheses, each with its offset."""
    depth, start = 0, 0
    for at, character in enumerate(text):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if depth < 0:
                _fail("unexpected ')'", text, at)
        elif character == separator and depth == 0:
            yield text[start:at], offset + start
            start = at + 1
    if depth:
        _fail("missing ')'", text, len(text))
    yield text[start:], offset + start


def _part(piece: str, start: int, whole: str) -> YarnPart:
    match = _SOURCE.match(piece)
    if match is None:
        _fail("unexpected text", whole, start, "a source such as zk=3, and a constraint after it")
    subject = (SELF, match[1])
    rule = _rule(subject, piece[match.end() :], start + match.end(), whole)
    return YarnPart(match[1], int(match[2]), Constraint(rule, hard=True))


def _rule(subject: tuple[str, ...], text: str, start: int, whole: str) -> ConstraintRule:
    lead = text[:3].upper()
    for word, join in (("AND(", AllOf), ("OR(", AnyOf)):
        if text.upper().startswith(word):
            if not text.endswith(")"):
                _fail("unexpected text after ')'", whole, start + len(text) - 1)
            inside = text[len(word) : -1]
            parts = [
                _rule(subject, *piece, whole) for piece in _split(inside, ":", start + len(word))
            ]
            if len(parts) < 2:
                _fail(f"one part in {lead}", whole, start, "at least two, parted by ':'")
            both: ConstraintRule = join(tuple(parts))
            return both
    words = text.split(",")
    kind, scope = words[0].upper(), words[1].upper() if len(words) > 1 else ""
    if kind not in ("IN", "NOTIN", "CARDINALITY"):
        _fail(f"unknown kind {words[0]!r}", whole, start, "IN, NOTIN, CARDINALITY, AND or OR")
    if scope not in _SCOPES:
        _fail(f"unknown scope {scope!r}", whole, start + len(words[0]) + 1, "NODE or RACK")
    least, most = (1, None) if kind == "IN" else (0, 0)
    tags = words[2:]
    if kind == "CARDINALITY":
        if len(tags) < 3 or not all(re.fullmatch(_COUNT, bound) for bound in tags[-2:]):
            _fail("no bounds", whole, start + len(text), "tags, the least and the largest count")
        *tags, low, high = tags
        least, most = int(low), int(high)
        if len(tags) > 1:
            _fail("a cardinality of several tags", whole, start, "one tag: YARN adds them up")
    if not tags:
        _fail("no tags", whole, start + len(text), "at least one tag")
    atoms = [TagConstraint(_conjunction(tag, whole, start), least, most) for tag in tags]
    expression: Expression = atoms[0]
    if len(atoms) > 1:
        expression = AnyTags(tuple(atoms)) if kind == "IN" else AllTags(tuple(atoms))
    return PlacementConstraint(subject, expression, _SCOPES[scope])


def _conjunction(text: str, whole: str, start: int) -> tuple[str, ...]:
    *space, tag = text.strip().split("/")
    if _PLAIN.fullmatch(tag) is None:
        _fail(f"tag {tag!r}", whole, start, "letters, digits and _ . -")
    match space:
        case [] | ["self"]:
            return (SELF, tag)
        case ["all"]:
            return (tag,)
        case ["app-id", name]:
            return (APP + name, tag)
        case ["app-tag", name]:
            return (name, tag)
    _fail(f"namespace {'/'.join(space)!r}", whole, start, "self, all, app-id/ID or app-tag/TAG")


def to_yarn(constraints: Sequence[Constraint], counts: Mapping[str, int]) -> str:
    """The equivalent specification; `counts` is the number of containers per source tag. Raises
    `Untranslatable` if YARN cannot express it."""
    parts: dict[str, list[str]] = {}
    for constraint in constraints:
        if not constraint.hard:
            _refuse(constraint, "YARN's constraints are hard", "say `hard`, or leave it out")
        tag, text = _written(constraint, constraint.rule)
        parts.setdefault(tag, []).append(text)
    pieces = []
    for tag, texts in parts.items():
        if tag not in counts:
            raise Untranslatable(f"no number of containers with the tag {tag!r}")
        inside = texts[0] if len(texts) == 1 else f"AND({':'.join(texts)})"
        pieces.append(f"{tag}={counts[tag]},{inside}")
    return ":".join(pieces)


def _refuse(constraint: Constraint, problem: str, hint: str | None = None) -> NoReturn:
    raise Untranslatable(f"'{format_constraint(constraint)}': {problem}", hint=hint)


def _written(constraint: Constraint, rule: ConstraintRule) -> tuple[str, str]:
    match rule:
        case AllOf(parts) | AnyOf(parts):
            inside = [_written(constraint, part) for part in parts]
            if len({tag for tag, _ in inside}) > 1:
                _refuse(constraint, "YARN's compound constraints have one source tag")
            word = "AND" if isinstance(rule, AllOf) else "OR"
            return inside[0][0], f"{word}({':'.join(text for _, text in inside)})"
        case PlacementConstraint(subject, expression, group):
            if group not in _GROUPS:
                _refuse(constraint, f"YARN knows no node group {group!r}", "machine or rack")
            source = [tag for tag in subject if tag != SELF]
            if len(source) != 1 or len(subject) != 2 or _PLAIN.fullmatch(source[0]) is None:
                _refuse(constraint, "YARN's source is one plain tag of the own application")
            return source[0], _expression(constraint, expression, _GROUPS[group])
    _refuse(constraint, "YARN has no spread over node sets")


def _expression(constraint: Constraint, expression: Expression, scope: str) -> str:
    match expression:
        case TagConstraint(tags, least, most):
            tag = _spaced(constraint, tags)
            if (least, most) == (1, None):
                return f"IN,{scope},{tag}"
            if (least, most) == (0, 0):
                return f"NOTIN,{scope},{tag}"
            if most is None:
                _refuse(constraint, "YARN's cardinality has a largest count")
            return f"CARDINALITY,{scope},{tag},{least},{most}"
        case AllTags(parts) | AnyTags(parts):
            word = "AND" if isinstance(expression, AllTags) else "OR"
            inside = ":".join(_expression(constraint, part, scope) for part in parts)
            return f"{word}({inside})"
    _refuse(constraint, "YARN has no negation", "write what is meant with NOTIN")


def _spaced(constraint: Constraint, tags: tuple[str, ...]) -> str:
    apps = [tag for tag in tags if tag.startswith(APP)]
    others = [tag for tag in tags if not tag.startswith(APP)]
    if any(_PLAIN.fullmatch(tag) is None for tag in others):
        _refuse(constraint, "YARN's tags have no namespaces of their own")
    match apps, others:
        case [[], [tag]]:
            return f"all/{tag}"
        case [["appID:self"], [tag]]:
            return tag
        case [[app], [tag]]:
            return f"app-id/{app.removeprefix(APP)}/{tag}"
        case [[], [space, tag]]:
            return f"app-tag/{space}/{tag}"
    _refuse(constraint, "YARN counts one tag, of one application or of all")
