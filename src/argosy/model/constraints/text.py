"""The text form of constraints: ``storm -> {hb & mem, 1, inf} in rack weight 2``.

    constraint   rule ["weight" number] ["hard"]
    rule         both {"or" both}
    both         one {"and" one}
    one          placement | spread | "(" rule ")"
    placement    tags "->" expression "in" group
    spread       tags "->" "spread" "{" least "," (most | "inf") "}" "over" group
    expression   conjunction {"or" conjunction}
    conjunction  negation {"and" negation}
    negation     "not" negation | atom
    atom         "{" tags "," least "," (most | "inf") "}" | "(" expression ")"
    tags         tag {"&" tag}

`format_constraint` writes the fewest parentheses that keep the structure, so that parsing what was
written gives back an equal value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NoReturn, TypeVar

import msgspec

from argosy.model.constraints import (
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
    NotTags,
    PlacementConstraint,
    SpreadConstraint,
    TagConstraint,
)
from argosy.model.errors import ConstraintSyntaxError, excerpt
from argosy.model.units import LARGEST

_TOKEN: Final = re.compile(rf"\s*(?P<token>->|[{{}}(),&]|{NAME.pattern}|$)")
_COUNT: Final = re.compile(r"[0-9]+")
_WEIGHT: Final = re.compile(r"[0-9]+(\.[0-9]+)?(e-?[0-9]+)?")
#: Limit on nested parentheses and negations, because the parser recurses for each.
_DEEPEST: Final = 100

_Part = TypeVar("_Part")


class _Token(msgspec.Struct, frozen=True):
    #: Empty at the end of the text.
    text: str
    column: int

    @property
    def is_name(self) -> bool:
        return self.text not in RESERVED and NAME.fullmatch(self.text) is not None

    @property
    def shown(self) -> str:
        return excerpt(self.text) if self.text else "the end"


def parse_constraint(text: str) -> Constraint:
    """Parses `text`; a `ConstraintSyntaxError` gives the column."""
    return _Parser(text).constraint()


class _Parser:
    """Recursive descent with one token of lookahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._split()
        self.at = 0
        self.depth = 0

    def _split(self) -> list[_Token]:
        tokens: list[_Token] = []
        end = 0
        while not tokens or tokens[-1].text:
            match = _TOKEN.match(self.text, end)
            if match is None:
                column = end + len(self.text[end:]) - len(self.text[end:].lstrip())
                self._fail(
                    f"unknown character {self.text[column]!r}",
                    column,
                    "a tag, a keyword or one of -> { } ( ) , &",
                )
            tokens.append(_Token(match["token"], match.start("token")))
            end = match.end()
        return tokens

    def _fail(self, problem: str, column: int, expected: str) -> NoReturn:
        raise ConstraintSyntaxError(problem, text=self.text, column=column, expected=expected)

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def _take(self) -> _Token:
        token = self.next
        self.at += 1
        return token

    def _accept(self, text: str) -> bool:
        if self.next.text == text:
            self.at += 1
            return True
        return False

    def _refuse(self, expected: str) -> NoReturn:
        self._fail(f"unexpected {self.next.shown}", self.next.column, expected)

    def _expect(self, text: str, expected: str) -> None:
        if not self._accept(text):
            self._refuse(expected)

    def constraint(self) -> Constraint:
        rule = self._rule()
        weight, hard = 1.0, False
        endings = "'and', 'or', 'weight', 'hard' or the end"
        if self._accept("weight"):
            weight = self._weight()
            endings = "'hard' or the end"
        if self._accept("hard"):
            hard = True
            endings = "the end"
        if self.next.text:
            self._refuse(endings)
        return Constraint(rule, weight, hard)

    def _joined(
        self, word: str, part: Callable[[], _Part], join: Callable[[tuple[_Part, ...]], _Part]
    ) -> _Part:
        parts = [part()]
        while self._accept(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else join(tuple(parts))

    def _nested(self, inside: Callable[[], _Part]) -> _Part:
        if self.depth >= _DEEPEST:
            self._fail("too deep", self.next.column, f"at most {_DEEPEST} levels of nesting")
        self.depth += 1
        part = inside()
        self.depth -= 1
        return part

    def _rule(self) -> ConstraintRule:
        return self._joined("or", self._both, AnyOf)

    def _both(self) -> ConstraintRule:
        return self._joined("and", self._one, AllOf)

    def _one(self) -> ConstraintRule:
        if self._accept("("):
            rule = self._nested(self._rule)
            self._expect(")", "'and', 'or' or ')'")
            return rule
        if not self.next.is_name:
            self._refuse("a subject tag or '('")
        subject = self._tags()
        self._expect("->", "'&' or '->'")
        if self._accept("spread"):
            self._expect("{", "'{'")
            least, most = self._bounds()
            self._expect("over", "'over'")
            return SpreadConstraint(subject, least, most, self._group())
        expression = self._expression()
        self._expect("in", "'and', 'or' or 'in'")
        return PlacementConstraint(subject, expression, self._group())

    def _group(self) -> str:
        if not self.next.is_name:
            self._refuse("a node group such as machine or rack")
        return self._take().text

    def _expression(self) -> Expression:
        return self._joined("or", self._conjunction, AnyTags)

    def _conjunction(self) -> Expression:
        return self._joined("and", self._negation, AllTags)

    def _negation(self) -> Expression:
        if self._accept("not"):
            return NotTags(self._nested(self._negation))
        if self._accept("("):
            expression = self._nested(self._expression)
            self._expect(")", "'and', 'or' or ')'")
            return expression
        self._expect(
            "{", "'{', '(', 'not' or 'spread'" if self._may_spread() else "'{', '(' or 'not'"
        )
        tags = self._tags()
        self._expect(",", "'&' or ','")
        return TagConstraint(tags, *self._bounds())

    def _may_spread(self) -> bool:
        return self.tokens[self.at - 1].text == "->"

    def _bounds(self) -> tuple[int, int | None]:
        """Parses two counts and the closing brace."""
        least = self._count("the least count, a whole number")
        self._expect(",", "','")
        column = self.next.column
        most = (
            None
            if self._accept("inf")
            else self._count("the largest count, a whole number or 'inf'")
        )
        if most is not None and most < least:
            self._fail(f"largest count {most}", column, f"at least {least}, the least count")
        self._expect("}", "'}'")
        return least, most

    def _tags(self) -> tuple[str, ...]:
        tags: list[str] = []
        while not tags or self._accept("&"):
            if not self.next.is_name:
                self._refuse("a tag")
            tags.append(self._take().text)
        return tuple(tags)

    def _count(self, expected: str) -> int:
        if _COUNT.fullmatch(self.next.text) is None or len(self.next.text) > 16:
            self._refuse(expected)
        if int(self.next.text) > LARGEST:
            self._refuse("at most 2^53")
        return int(self._take().text)

    def _weight(self) -> float:
        token = self.next
        if _WEIGHT.fullmatch(token.text) is None or not 0 < float(token.text) <= HEAVIEST:
            self._refuse("a weight above 0 and at most 1e9")
        return float(self._take().text)


def format_constraint(constraint: Constraint) -> str:
    """The text form of `constraint`; `parse_constraint` reads it back."""
    text = _format_rule(constraint.rule)
    if constraint.weight != 1:
        text += f" weight {repr(constraint.weight).removesuffix('.0')}"
    return text + " hard" if constraint.hard else text


def _format_rule(rule: ConstraintRule) -> str:
    match rule:
        case PlacementConstraint(subject, expression, group):
            return f"{' & '.join(subject)} -> {_format_expression(expression)} in {group}"
        case SpreadConstraint(subject, least, most, group):
            bounds = f"{{{least}, {'inf' if most is None else most}}}"
            return f"{' & '.join(subject)} -> spread {bounds} over {group}"
        case AllOf(parts):
            return " and ".join(
                f"({_format_rule(part)})" if isinstance(part, AllOf | AnyOf) else _format_rule(part)
                for part in parts
            )
        case AnyOf(parts):
            return " or ".join(
                f"({_format_rule(part)})" if isinstance(part, AnyOf) else _format_rule(part)
                for part in parts
            )


def _format_expression(expression: Expression) -> str:
    match expression:
        case TagConstraint(tags, least, most):
            return f"{{{' & '.join(tags)}, {least}, {'inf' if most is None else most}}}"
        case NotTags(part):
            return "not " + _enclosed(part, AllTags | AnyTags)
        case AllTags(parts):
            return " and ".join(_enclosed(part, AllTags | AnyTags) for part in parts)
        case AnyTags(parts):
            return " or ".join(_enclosed(part, AnyTags) for part in parts)


def _enclosed(part: Expression, needing: object) -> str:
    text = _format_expression(part)
    return f"({text})" if isinstance(part, needing) else text  # type: ignore[arg-type]
