"""Reads files that people write; a file that cannot be read is an error with its place."""

from __future__ import annotations

import codecs
import re
import tomllib
from pathlib import Path
from typing import Any, Final

from argosy.model.errors import ArgosyError

_SYNTAX_LINE: Final = re.compile(r" \(at line (\d+), column (\d+)\)$")


def read_utf8(path: Path, form_error: type[ArgosyError], expected: str) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise form_error(
            f"cannot be read: {error.strerror}", file=str(path), expected=expected
        ) from error
    return decode_utf8(data, str(path), form_error, expected)


def decode_utf8(data: bytes, file: str, form_error: type[ArgosyError], expected: str) -> str:
    """The text in `data`, with the ends of its lines as "\\n" and without the mark that some editors
    begin a file with."""
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        column = error.start - (before.rfind(b"\n") + 1) + 1
        raise form_error(
            f"not UTF-8 at byte {column} of the line",
            file=file,
            line=before.count(b"\n") + 1,
            expected=f"{expected}, in UTF-8",
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_toml(
    text: str, file: str, form_error: type[ArgosyError], expected: str
) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _SYNTAX_LINE.search(message)
        raise form_error(
            f"not TOML: {_SYNTAX_LINE.sub('', message)}"
            + (f" at column {place[2]}" if place else ""),
            file=file,
            line=int(place[1]) if place else text.rstrip().count("\n") + 1,
            expected=expected,
        ) from error
    except ValueError:
        # Python limits the digits of a number, and reports no line.
        raise form_error("a number has too many digits", file=file, expected=expected) from None
