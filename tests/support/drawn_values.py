"""Values of a type, drawn: structs with all their fields, such as the summary of a run."""

from __future__ import annotations

import types
import typing
from typing import Any

import msgspec
from rich_jobs import Stream

_NAMES = ("batch", "service", "", "a|b", "<x>", "cpu", "memory", "omega x2")


def drawn_value(kind: Any, stream: Stream, depth: int = 0) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind)
        fields = msgspec.structs.fields(kind)
        return kind(
            **{each.name: drawn_value(hints[each.name], stream, depth + 1) for each in fields}
        )
    if origin in (types.UnionType, typing.Union):
        return drawn_value(stream.pick(arguments), stream, depth)
    if origin is dict:
        names = [name for name in _NAMES if stream.has(0.3)]
        return {name: drawn_value(arguments[1], stream, depth + 1) for name in names}
    if origin is list or (origin is tuple and arguments[-1] is Ellipsis):
        count = stream.pick((0, 1, 2, 4))
        made = [drawn_value(arguments[0], stream, depth + 1) for _ in range(count)]
        return made if origin is list else tuple(made)
    if origin is tuple:
        return tuple(drawn_value(each, stream, depth + 1) for each in arguments)
    return _leaf(kind, stream)


def _leaf(kind: Any, stream: Stream) -> Any:
    if kind is bool:
        return stream.has(0.5)
    if kind is int:
        return stream.pick((0, 1, 2, 7, 100, 1_234, stream.below(1000), 5_000_000))
    if kind is float:
        share = round(stream.below(10_001) / 10_000, 4)
        return stream.pick((0.0, share, share, 1.0, 1e6 * share, 3e9 * share, 0.0004, 12.5))
    if kind is str:
        return stream.pick(_NAMES)
    if kind is type(None):
        return None
    raise TypeError(kind)
