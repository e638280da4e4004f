"""Mistakes in documents and in the lines of files: one value changed, dropped, doubled or misspelt."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any, Final

from rich_jobs import Document, Stream

#: What stands where something else should. Whatever is too large is far beyond all bounds.
_TEXTS: Final = (
    "",
    "0s",
    "1us",
    "-1s",
    "5",
    "soon",
    "1h",
    "m0",
    "s0",
    "a b",
    "x/y",
    "\u00e9",
    "Omega",
)
_NUMBERS: Final = (0, -1, 1, 2, 1000, 1001, 2**53 + 1, 2**63)
_FRACTIONS: Final = (0.0, -0.5, 1.0, 1.5, 1e12)
_OTHERS: Final = (True, [], {}, ["x"], {"x": 1}, "text", 7, 0.5)


def broken_document(document: Document, stream: Stream) -> tuple[str, Document]:
    """What was done to it, and the document."""
    other = copy.deepcopy(document)
    places = list(_places(other, ""))
    name, inside, key = stream.pick(places)
    form = stream.below(10)
    value = inside[key]
    if form == 0:
        del inside[key]
        return f"without {name}", other
    if form == 1:
        if isinstance(inside, list):
            inside.insert(key, copy.deepcopy(value))
            return f"{name} twice", other
        inside[_misspelt(str(key), stream)] = inside.pop(key)
        return f"{name} misspelt", other
    if form == 2:
        inside[key] = copy.deepcopy(stream.pick(_OTHERS))
    elif form == 3:
        _, elsewhere, at = stream.pick(places)
        inside[key] = copy.deepcopy(elsewhere[at])
    else:
        inside[key] = _changed(value, stream)
    return f"{name} = {inside[key]!r}", other


def _places(value: Any, name: str) -> Iterator[tuple[str, Any, Any]]:
    """Every entry within a document: its name, and the table or list that holds it, with its key."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        inner = f"{name}.{key}".lstrip(".")
        yield inner, value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key], inner)


def _misspelt(word: str, stream: Stream) -> str:
    at = stream.below(len(word))
    return stream.pick((word[:at] + word[at + 1 :], word + "s", word[:at] + "q" + word[at:]))


def _changed(value: Any, stream: Stream) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return stream.pick((*_NUMBERS, value + 1, value - 1, str(value), value + 0.5))
        case float():
            return stream.pick((*_FRACTIONS, value / 2, int(value), str(value)))
        case str():
            spelt = _misspelt(value, stream) if value else "x"
            return stream.pick((*_TEXTS, spelt, spelt, spelt, value.upper(), value + " "))
        case list():
            return stream.pick(([], value + value, value[1:], [*value, "x"], [*value, 1]))
    return stream.pick(({}, [value], {**value, "x": 1}, "text"))


def broken_lines(text: str, stream: Stream) -> tuple[str, str]:
    """The text with a mistake in one of its lines."""
    lines = text.split("\n")
    at = stream.below(len(lines))
    line = lines[at]
    form = stream.below(9)
    separator = next((each for each in ("\t", ",", " ") if each in line), "=")
    fields = line.split(separator)
    field = stream.below(len(fields))
    middle = stream.below(len(line) + 1)
    if form == 0:
        del lines[at]
    elif form == 1:
        lines.insert(at, line)
    elif form == 2:
        lines.append(lines.pop(at))
    elif form == 3:
        lines[at] = separator.join(fields[:field] + fields[field + 1 :])
    elif form == 4:
        lines[at] = separator.join([*fields, stream.pick(("1", "", "x"))])
    elif form == 5:
        lines[at] = line[:middle]
    elif form == 6:
        lines[at] = (
            line[:middle] + stream.pick(('"', "\x07", "}", "-", "9", "\u00e9")) + line[middle:]
        )
    else:
        values = ("", "-1", "0", "1", "1.5", "x", "99999999999999999999", "nan", "600000000")
        fields[field] = stream.pick((*values, "1e300", " ", '"a"', "9007199254740993"))
        lines[at] = separator.join(fields)
    return f"line {at + 1}: {lines[at] if at < len(lines) else ''!r}", "\n".join(lines)


def broken_journal(lines: list[str], stream: Stream) -> tuple[str, list[str]]:
    """A journal with a mistake in one of its lines, which is not the first; or with lines that are gone,
    doubled or elsewhere."""
    broken = list(lines)
    at = stream.among(1, max(1, len(lines) - 1)) if len(lines) > 1 else 0
    form = stream.below(8)
    if form == 0:
        del broken[at : at + stream.pick((1, 1, 3))]
        return f"without line {at + 1}", broken
    if form == 1:
        broken.insert(at, broken[at])
        return f"line {at + 1} twice", broken
    if form == 2:
        other = stream.below(len(lines))
        broken[at], broken[other] = broken[other], broken[at]
        return f"lines {at + 1} and {other + 1} exchanged", broken
    if form == 3:
        broken[at] = broken[at][: stream.below(len(broken[at]))] + "\n"
        return f"line {at + 1} cut short", broken
    what, document = broken_document(json.loads(broken[at]), stream)
    broken[at] = json.dumps(document, separators=(",", ":")) + "\n"
    return f"line {at + 1}: {what}", broken
