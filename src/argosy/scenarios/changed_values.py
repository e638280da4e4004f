"""One value of a scenario file replaced, to run variations of it without writing files."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from argosy.model.errors import CommandError, ScenarioError, excerpt
from argosy.workloads.tables import Misfit, TablePath

_OPENING: Final = ("[", "{", '"', "'")


class ChangedValue(NamedTuple):
    """`path` is where the value stands in the file: keys, and numbers or names of array elements."""

    path: tuple[str, ...]
    value: Any

    @property
    def name(self) -> str:
        return ".".join(self.path)


def parse_values(text: str) -> list[ChangedValue]:
    """Variations like ``workload.synthetic.0.load=0.5,0.7,0.9``; values are written as in TOML, text may
    go without quotes."""
    name, equals, listed = text.partition("=")
    path = tuple(name.strip().split("."))
    if not equals or not all(path) or not listed.strip():
        raise CommandError(
            f"--vary {excerpt(text)}",
            expected="a place in the file and values, such as horizon=10min,20min",
        )
    return [ChangedValue(path, value) for value in _values(listed)]


def _values(listed: str) -> Iterator[Any]:
    """Values separated by commas, but not by those within arrays, tables and quotes."""
    text = ""
    for part in listed.split(","):
        text = f"{text},{part}" if text else part.strip()
        try:
            yield tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            if text.startswith(_OPENING):
                continue
            yield text
        text = ""
    if text:
        yield text.rstrip()


def with_values(document: dict[str, Any], changes: Sequence[ChangedValue]) -> dict[str, Any]:
    """The document with these values instead of its own. A key may be new, but not the table that it
    is in."""
    for change in changes:
        _change(document, change, ())
    return document


def _change(table: Any, change: ChangedValue, done: TablePath) -> None:
    key, *rest = change.path[len(done) :]
    if isinstance(table, list):
        place: Any = _element(table, key)
    else:
        place = key if isinstance(table, dict) and (key in table or not rest) else None
    if place is None:
        raise Misfit(
            ScenarioError(
                f"there is no {'.'.join(change.path[: len(done) + 1])}",
                expected=_choices(table),
                hint="--vary names a value as it stands in the file",
            ),
            done,
        )
    if rest:
        _change(table[place], change, (*done, key))
    else:
        table[place] = change.value


def _element(elements: list[Any], key: str) -> int | None:
    """An element by its number, or by its name or id."""
    if key.isdecimal() and len(key) < 16:
        return int(key) if int(key) < len(elements) else None
    names = _names(elements)
    return names.index(key) if key in names else None


def _names(elements: list[Any]) -> list[Any]:
    """The name or id of each element; None if it has neither."""
    return [
        each.get("name", each.get("id")) if isinstance(each, dict) else None for each in elements
    ]


def _choices(table: Any) -> str:
    if isinstance(table, dict):
        return "one of " + ", ".join(sorted(table))
    if isinstance(table, list):
        named = [name for name in _names(table) if isinstance(name, str)]
        return ", ".join([*named, f"or a number below {len(table)}"]).removeprefix("or ")
    return "nothing below a value"
