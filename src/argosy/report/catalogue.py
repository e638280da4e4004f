"""An engine's capabilities and settings as words."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import msgspec

from argosy.engines.api import Engine, NeedsExtra
from argosy.model.errors import MissingExtra
from argosy.model.units import Micros


class Setting(msgspec.Struct, frozen=True):
    name: str
    type: str
    #: As a plain value; also None if there is no default, which `is_required` distinguishes.
    default: Any
    #: As written in a scenario; "required" if there is no default.
    default_text: str
    is_required: bool
    doc: str


def capabilities(engine: type[Engine]) -> list[str]:
    """What the engine can do or needs, in the words of `Capabilities`."""
    words = []
    for name in engine.capabilities.__struct_fields__:
        value = getattr(engine.capabilities, name)
        if isinstance(value, Enum):
            if value.value != "none":
                words.append(f"{name}: {value.value}")
        elif value:
            words.append(name.replace("_", " "))
    return words


def lacking(engine: type[Engine]) -> str:
    """What the engine needs with its default settings but is not installed, as a sentence; empty if
    nothing."""
    kind: object = engine
    fields = msgspec.structs.fields(engine.settings_type)
    if not isinstance(kind, NeedsExtra) or any(field.required for field in fields):
        return ""
    lack = kind.lack(engine.settings_type())
    return "" if lack is None else str(MissingExtra(engine.name, lack.extra, lack.otherwise))


def settings(engine: type[Engine]) -> list[Setting]:
    """All settings; those inside a table by name (``frameworks.NAME.t_job``) follow the table."""
    return list(_settings(engine.settings_type, ""))


def _settings(kind: type[msgspec.Struct], prefix: str) -> Iterator[Setting]:
    comments = {}
    for base in reversed(kind.__mro__):
        comments.update(_comments(base))
    for field in msgspec.structs.fields(kind):
        name = prefix + field.encode_name
        yield Setting(
            name=name,
            type=_type(field.type),
            default=_default(field),
            default_text=_default_text(field),
            is_required=field.required,
            doc=_description(field.type) or comments.get(field.name, ""),
        )
        if (inner := _by_name(field.type)) is not None:
            yield from _settings(inner, f"{name}.NAME.")


def _by_name(annotation: Any) -> type[msgspec.Struct] | None:
    """The type of each entry in a table by name, if that is a table itself."""
    if get_origin(annotation) is not dict:
        return None
    inner = get_args(annotation)[1]
    return inner if isinstance(inner, type) and issubclass(inner, msgspec.Struct) else None


#: Largest first; a time is written in the first unit that divides it exactly.
_UNITS: Final = (
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
)


def _is_time(annotation: Any) -> bool:
    return annotation is Micros or Micros in get_args(annotation)


def _type(annotation: Any) -> str:
    if _is_time(annotation):
        return "time"
    if _by_name(annotation) is not None:
        return "tables by name"
    origin = get_origin(annotation)
    if origin is Annotated:
        inside, *metas = get_args(annotation)
        if examples := [
            each for meta in metas if isinstance(meta, msgspec.Meta) for each in meta.examples or ()
        ]:
            return " | ".join(f'"{each}"' for each in examples) + " | name"
        return _type(inside)
    if origin is Literal:
        return " | ".join(f'"{choice}"' for choice in get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " | ".join(f'"{member.value}"' for member in annotation)
    if annotation is type(None):
        return "none"
    if origin is None:
        return str(getattr(annotation, "__name__", annotation))
    inner = [_type(argument) for argument in get_args(annotation) if argument is not ...]
    name = getattr(origin, "__name__", "")
    return " | ".join(inner) if name in ("Union", "UnionType") else f"{name} of {', '.join(inner)}"


def _default(field: msgspec.structs.FieldInfo) -> Any:
    """A plain value; a time is text with a unit, as in scenarios."""
    value = field.default
    if value is msgspec.NODEFAULT:
        if field.default_factory is msgspec.NODEFAULT:
            return None
        value = field.default_factory()
    if value is None or not _is_time(field.type):
        return msgspec.to_builtins(value)
    if not value:
        return "0s"
    unit, size = next(unit for unit in _UNITS if value % unit[1] == 0)
    return f"{value // size}{unit}"


def _default_text(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value = _default(field)
    return "none" if value is None else msgspec.json.encode(value).decode()


def _description(annotation: Any) -> str:
    if get_origin(annotation) is not Annotated:
        return ""
    return next(
        (
            meta.description
            for meta in get_args(annotation)[1:]
            if isinstance(meta, msgspec.Meta) and meta.description
        ),
        "",
    )


_FIELD: Final = re.compile(r"^    ([A-Za-z_]\w*)\s*:")
_COMMENT: Final = re.compile(r"^    #:\s?(.*)$")


def _comments(settings_type: type) -> dict[str, str]:
    """The attribute comments (``#:``) above each field, so that settings are documented only once."""
    try:
        source = textwrap.dedent(inspect.getsource(settings_type))
    except (OSError, TypeError):
        return {}
    found: dict[str, str] = {}
    gathered: list[str] = []
    for line in source.splitlines():
        if comment := _COMMENT.match(line):
            gathered.append(comment[1].strip())
            continue
        if (field := _FIELD.match(line)) and gathered:
            found[field[1]] = " ".join(gathered)
        gathered = []
    return found
