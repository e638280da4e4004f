"""Writes a scenario's document, the plain data that its TOML file holds, as TOML.

    tomllib.loads(to_toml(document)) == document

Tables of the top level and lists of tables get headings, as in `docs/scenarios.md`; what is further in
stands on one line, or in a list with an item a line. None is left out, as TOML has no such value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(document: Mapping[str, Any]) -> str:
    return "\n".join(_table(document, ())).strip("\n") + "\n"


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """What needs no heading comes first: below one, it would belong to that."""
    headed = {key: value for key, value in table.items() if _is_headed(value)}
    for key, value in table.items():
        if key not in headed and value is not None:
            yield f"{_key(key)} = {_value(value, is_nested=False)}"
    for key, value in headed.items():
        inside = (*path, key)
        name = ".".join(map(_key, inside))
        if isinstance(value, Mapping):
            # A table that only holds others needs no heading of its own.
            if not value or not all(map(_is_headed, value.values())):
                yield from ("", f"[{name}]")
            yield from _table(value, inside)
            continue
        for item in value:
            yield from ("", f"[[{name}]]")
            for field, held in item.items():
                if held is not None:
                    yield f"{_key(field)} = {_value(held, is_nested=False)}"


def _is_headed(value: object) -> bool:
    return isinstance(value, Mapping) or _is_list_of_tables(value)


def _is_list_of_tables(value: object) -> bool:
    if not isinstance(value, list | tuple) or not value:
        return False
    return all(isinstance(item, Mapping) for item in value)


def _value(value: Any, *, is_nested: bool) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return _quoted(value)
        case Mapping():
            fields = (
                f"{_key(key)} = {_value(inner, is_nested=True)}"
                for key, inner in value.items()
                if inner is not None
            )
            return f"{{ {', '.join(fields)} }}" if value else "{}"
        case Sequence():
            items = [_value(item, is_nested=True) for item in value]
            if _is_list_of_tables(value) and not is_nested:
                return "[\n" + "".join(f"  {item},\n" for item in items) + "]"
            return f"[{', '.join(items)}]"
    raise TypeError(f"TOML has no {type(value).__name__}")


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _quoted(key)


def _quoted(text: str) -> str:
    # JSON leaves the one control character alone that TOML does not.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
