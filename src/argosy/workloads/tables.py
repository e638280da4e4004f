"""Converts plain tables (of TOML or JSON) to typed values; errors have their exact place.

`convert` follows the annotations of msgspec structs. Structure is walked here, so that an error
knows its path and an unknown key its neighbours; plain values are left to `msgspec.convert`. Some
annotations mean readable text: `Micros` a duration with its unit, `Resources` a table of amounts,
`Constraint` its text form or its table, `CommandLine` a list of words or one text.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NoReturn,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from argosy.model import units
from argosy.model.constraints import Constraint
from argosy.model.constraints.tables import read_constraint
from argosy.model.errors import ArgosyError, UnknownName, did_you_mean, excerpt
from argosy.model.resources import Resources
from argosy.model.units import Micros, shown

#: Keys and indices from the root of the document.
TablePath: TypeAlias = tuple[str | int, ...]

_SPLIT: Final = "split like a shell does"
#: The words of a command.
CommandLine: TypeAlias = Annotated[tuple[str, ...], _SPLIT]

_NAMES: Final[dict[object, str]] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
}


class Misfit(Exception):
    """`error`, and the path of the value (or of the table that lacks one) it is about."""

    def __init__(self, error: ArgosyError, path: TablePath) -> None:
        super().__init__(str(error))
        self.error = error
        self.path = path


def misfit(error: ArgosyError, path: TablePath) -> Misfit:
    """For a value at `path`; if the error names a field of it, the field becomes part of the path."""
    place = path if error.field is None else (*path, error.field)
    error.field = None
    return Misfit(error, place)


def path_text(path: TablePath) -> str:
    """``cell.machines[2].capacity.cpu``"""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


class Converter:
    """Structural errors are of class `form_error`; with `bare_micros`, times may also be whole
    microseconds."""

    def __init__(self, form_error: type[ArgosyError], *, bare_micros: bool = False) -> None:
        self.form_error = form_error
        self.bare_micros = bare_micros

    def convert(self, value: Any, kind: Any, path: TablePath = ()) -> Any:
        """`value` as `kind`; raises `Misfit`."""
        bare, described = kind, ""
        if get_origin(kind) is Annotated:
            metadata = kind.__metadata__
            if Micros in get_args(kind):
                return self._time(value, metadata, path)
            if _SPLIT in metadata:
                return self._command(value, path)
            described = next(
                (m.description for m in metadata if isinstance(m, msgspec.Meta) and m.description),
                "",
            )
            bare = get_args(kind)[0]
        origin, inside = get_origin(bare), get_args(bare)
        if kind in (Micros, Resources, Constraint):
            return self._text(value, kind, path)
        if _struct_of(kind) is not None:
            return self._struct(value, kind, path)
        if origin in (Union, UnionType):
            return self._union(value, inside, path)
        if origin is tuple:
            return self._items(value, inside[0], path)
        if origin is dict:
            if not isinstance(value, Mapping):
                self.refuse(f"{shown(value)} is not a table", path, "a table")
            return {key: self.convert(item, inside[1], (*path, key)) for key, item in value.items()}
        if origin is Literal:
            if value not in inside:
                raise Misfit(
                    self.form_error(
                        f"unknown value {shown(value)}",
                        expected="one of " + ", ".join(map(str, inside)),
                        hint=did_you_mean(str(value), map(str, inside)),
                    ),
                    path,
                )
            return value
        if kind is Any:
            return value
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            expected = described or _NAMES.get(kind) or expectation(str(error))
            self.refuse(f"{shown(value)} does not fit", path, expected)

    def _time(self, value: Any, metadata: tuple[Any, ...], path: TablePath) -> Any:
        time = self._text(value, Micros, path)
        for bounds in metadata:
            if isinstance(bounds, msgspec.Meta):
                if bounds.ge is not None and time < bounds.ge:
                    least = units.format_duration(bounds.ge)
                    self.refuse(f"{shown(value)} is too short", path, f"at least {least}")
                if bounds.le is not None and time > bounds.le:
                    most = units.format_duration(bounds.le)
                    self.refuse(f"{shown(value)} is too long", path, f"at most {most}")
        return time

    def _command(self, value: Any, path: TablePath) -> tuple[str, ...]:
        example = 'text such as "sort -u data.txt", or a list of words'
        if isinstance(value, str):
            try:
                return tuple(shlex.split(value))
            except ValueError:
                problem = f"{shown(value)}: a quotation mark is not closed"
                self.refuse(problem, path, "text that a shell could split, or a list of words")
        if not isinstance(value, list | tuple):
            self.refuse(f"{shown(value)} is not a command", path, example)
        return self._items(value, str, path)

    def refuse(
        self, problem: str, path: TablePath, expected: str, hint: str | None = None
    ) -> NoReturn:
        raise Misfit(self.form_error(problem, expected=expected, hint=hint), path)

    def _text(self, value: Any, kind: Any, path: TablePath) -> Any:
        try:
            if kind is Micros:
                if self.bare_micros and type(value) is int:
                    return units.parse_count(value, "a time in microseconds")
                return units.parse_duration(value)
            if kind is Resources:
                if not isinstance(value, Mapping):
                    example = 'a table such as {cpu = 500, memory = "2GiB"}'
                    self.refuse(f"{shown(value)} is not a resource vector", path, example)
                return Resources.parse(value)
            if not isinstance(value, str | Mapping):
                example = 'text such as "hb -> {hb, 0, 0} in machine"'
                self.refuse(f"{shown(value)} is not a constraint", path, example)
            return read_constraint(value)
        except ArgosyError as error:
            raise misfit(error, path) from None

    def _struct(self, value: Any, kind: Any, path: TablePath) -> Any:
        struct = _struct_of(kind)
        assert struct is not None
        if not isinstance(value, Mapping):
            self.refuse(f"{shown(value)} is not a table", path, "a table")
        fields, required = _plan(kind)
        tag = struct.__struct_config__.tag_field
        given: dict[str, Any] = {}
        for key, item in value.items():
            if key == tag:
                continue
            if key not in fields:
                raise Misfit(
                    self.form_error(
                        f"unknown key {excerpt(key)}",
                        expected="one of " + ", ".join(sorted(fields)),
                        hint=did_you_mean(key, fields),
                    ),
                    (*path, key),
                )
            given[key] = self.convert(item, fields[key], (*path, key))
        for key in required:
            if key not in given:
                self.refuse(f"missing key {key!r}", path, f"{key} = {_example(fields[key])}")
        try:
            return struct(**given)
        except ArgosyError as error:
            raise misfit(error, path) from None

    def _union(self, value: Any, members: tuple[Any, ...], path: TablePath) -> Any:
        """Optional values, one text or several, and structs distinguished by their tag; no other
        unions."""
        members = tuple(member for member in members if member is not NoneType)
        if len(members) == 1:
            return self.convert(value, members[0], path)
        if str in members:
            if not isinstance(value, str | list | tuple):
                self.refuse(f"{shown(value)} does not fit", path, "text, or an array of texts")
            return value if isinstance(value, str) else self._items(value, str, path)
        by_tag = {}
        for member in members:
            struct = _struct_of(member)
            assert struct is not None
            config = struct.__struct_config__
            by_tag[str(config.tag)], tag_field = member, str(config.tag_field)
        if not isinstance(value, Mapping):
            self.refuse(f"{shown(value)} is not a table", path, f'a table with {tag_field} = "..."')
        if tag_field not in value:
            self.refuse(
                f"missing key {tag_field!r}", path, f"{tag_field} = one of {', '.join(by_tag)}"
            )
        tag = value[tag_field]
        if not isinstance(tag, str):
            expected = f"one of {', '.join(sorted(by_tag))}"
            self.refuse(f"{shown(tag)} is not text", (*path, tag_field), expected)
        if tag not in by_tag:
            raise Misfit(
                _as(self.form_error, UnknownName(tag_field, tag, by_tag)), (*path, tag_field)
            )
        return self.convert(value, by_tag[value[tag_field]], path)

    def _items(self, value: Any, kind: Any, path: TablePath) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            self.refuse(f"{shown(value)} is not an array", path, "an array")
        return tuple(self.convert(item, kind, (*path, index)) for index, item in enumerate(value))


@cache
def _struct_of(kind: Any) -> type[msgspec.Struct] | None:
    bare = get_origin(kind) or kind
    return bare if isinstance(bare, type) and issubclass(bare, msgspec.Struct) else None


@cache
def _plan(kind: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The annotation of each field, with the parameters of a generic struct filled in, and the required
    fields."""
    struct = _struct_of(kind)
    assert struct is not None
    hints = get_type_hints(struct, include_extras=True)
    if struct is not kind:
        parameters = dict(zip(struct.__parameters__, get_args(kind), strict=True))  # type: ignore[attr-defined]
        hints = {
            name: parameters[hint] if isinstance(hint, TypeVar) else hint
            for name, hint in hints.items()
        }
    fields = msgspec.structs.fields(struct)
    return (
        {field.name: hints[field.name] for field in fields},
        tuple(field.name for field in fields if field.required),
    )


def _as(kind: type[ArgosyError], error: ArgosyError) -> ArgosyError:
    return kind(error.problem, expected=error.expected, hint=error.hint)


def expectation(message: str) -> str:
    """What `msgspec` expected, from "Expected `int` >= 1, got `str`", in the terms of the file."""
    text = message.removeprefix("Expected ").split(", got")[0]
    for kind, words in _NAMES.items():
        text = text.replace(f"`{getattr(kind, '__name__', '')}`", words)
    return text.replace("`", "").replace(">=", "of at least").replace("<=", "of at most")


def _example(kind: Any) -> str:
    base = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if kind is Micros or (get_origin(kind) is Annotated and Micros in kind.__metadata__):
        return '"10s"'
    if base is Resources:
        return '{cpu = 500, memory = "2GiB"}'
    return {str: '"..."', int: "1", float: "0.5", bool: "true"}.get(base, "...")
