"""Line numbers of keys in a TOML file: errors need them, and `tomllib` does not give them.

Scans text that `tomllib` has accepted, so it need not check anything: it follows headers, keys,
strings, arrays and inline tables just far enough to count lines.
"""

from __future__ import annotations

import re
import tomllib
from typing import Final

from argosy.workloads.tables import TablePath

_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE: Final = re.compile(r"[ \t]*")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
#: TOML's four kinds of strings, longest opening first; a multi-line one may end in up to five quotes.
_STRING: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")'
    r"|'''.*?'{3,5}(?!')"
    r'|"(?:[^"\\]|\\.)*"'
    r"|'[^']*'",
    re.DOTALL,
)
#: Numbers, dates and booleans.
_SCALAR: Final = re.compile(r"[^,\]}#\r\n]+")


def find_places(text: str) -> dict[TablePath, int]:
    """The line of every key, table and array element in valid TOML, counted from 1."""
    return _Scanner(text).scan()


def line_of(places: dict[TablePath, int], path: TablePath) -> int | None:
    """The line of `path`, or of the nearest enclosing table if it is missing."""
    while path:
        if path in places:
            return places[path]
        path = path[:-1]
    return None


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        #: The last newline passed, so that each is counted once.
        self.counted = 0
        self.line = 1
        self.places: dict[TablePath, int] = {}
        #: The number of elements so far in each array of tables.
        self.arrays: dict[TablePath, int] = {}

    def scan(self) -> dict[TablePath, int]:
        table: TablePath = ()
        while True:
            self._skip(_BLANK)
            if self.at >= len(self.text):
                return self.places
            table = self._header() if self.text[self.at] == "[" else self._pair(table)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        assert match is not None, f"unforeseen TOML at line {self._line()}"
        self.at = match.end()
        return match[0]

    def _line(self) -> int:
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        return self.line

    def _header(self) -> TablePath:
        is_array = self.text.startswith("[[", self.at)
        line = self._line()
        self.at += 2 if is_array else 1
        keys = self._keys()
        self.at += 2 if is_array else 1
        table: TablePath = ()
        for depth, key in enumerate(keys, 1):
            table = (*table, key)
            self.places.setdefault(table, line)
            if is_array and depth == len(keys):
                self.arrays[table] = self.arrays.get(table, 0) + 1
            if table in self.arrays:
                table = (*table, self.arrays[table] - 1)
        # A table may first be named by the header of a table inside it.
        self.places[table] = line
        return table

    def _keys(self) -> list[str]:
        """Reads a dotted key and the space around it."""
        keys = []
        while True:
            self._skip(_SPACE)
            if self.text[self.at] in "\"'":
                # The only way to read every escape as `tomllib` does.
                keys.append(str(tomllib.loads(f"key = {self._skip(_STRING)}")["key"]))
            else:
                keys.append(self._skip(_BARE))
            self._skip(_SPACE)
            if self.text[self.at] != ".":
                return keys
            self.at += 1

    def _pair(self, table: TablePath) -> TablePath:
        """Reads one `key = value` of `table`; returns `table`."""
        line = self._line()
        path = table
        for key in self._keys():
            path = (*path, key)
            self.places.setdefault(path, line)
        self.at += 1
        self._skip(_SPACE)
        self._value(path)
        return table

    def _value(self, path: TablePath) -> None:
        opening = self.text[self.at]
        if opening == "[":
            self._array(path)
        elif opening == "{":
            self._inline_table(path)
        elif opening in "\"'":
            self._skip(_STRING)
        else:
            self._skip(_SCALAR)

    def _array(self, path: TablePath) -> None:
        self.at += 1
        index = 0
        while True:
            self._skip(_BLANK)
            if self.text[self.at] == "]":
                break
            if self.text[self.at] == ",":
                self.at += 1
                continue
            element = (*path, index)
            self.places[element] = self._line()
            self._value(element)
            index += 1
        self.at += 1

    def _inline_table(self, path: TablePath) -> None:
        self.at += 1
        while True:
            self._skip(_BLANK)
            if self.text[self.at] == "}":
                break
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self._pair(path)
        self.at += 1
