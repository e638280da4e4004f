"""Journals as files: read whole, or as far as a run that still goes on has written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from argosy.host.records import VERSION, Header, JournalRecord
from argosy.model.errors import RunDirectoryError

_T = TypeVar("_T")
#: Decoders of all records, and of the first line alone.
_RECORDS: Final = msgspec.json.Decoder(JournalRecord)
_HEADER: Final = msgspec.json.Decoder(Header)
_VERSION: Final = re.compile(rb'\{"what":"journal","version":(\d+)')


class JournalFile:
    """The lines of a journal that are complete: while it grows, the last may not be."""

    def __init__(self, data: bytes, name: str = "journal") -> None:
        self.name = name
        self.data = data[: data.rfind(b"\n") + 1]

    @staticmethod
    def read(path: Path) -> JournalFile:
        try:
            return JournalFile(path.read_bytes(), str(path))
        except OSError as error:
            raise RunDirectoryError(str(error.strerror), file=str(path)) from None

    def header(self) -> Header:
        """The first line, checked for a version that can be read."""
        line = self.data[: self.data.find(b"\n") + 1]
        version = _VERSION.match(line)
        if version is None:
            raise RunDirectoryError("not a journal", file=self.name, line=1)
        if int(version[1]) != VERSION:
            raise RunDirectoryError(
                f"a journal of version {int(version[1])}",
                file=self.name,
                line=1,
                expected=f"version {VERSION}",
                hint="read it with the version of Argosy that wrote it",
            )
        return self._decode(_HEADER, line, 1)

    def records(self) -> Iterator[JournalRecord]:
        """All records, the header first."""
        self.header()
        for number, line in enumerate(self.data.splitlines(), 1):
            yield self._decode(_RECORDS, line, number)

    def line_at(self, position: int) -> int:
        """The number of the line that begins at that byte."""
        return self.data.count(b"\n", 0, position) + 1

    def _decode(self, decoder: msgspec.json.Decoder[_T], line: bytes, number: int) -> _T:
        try:
            return decoder.decode(line)
        except msgspec.MsgspecError as error:
            raise RunDirectoryError(str(error), file=self.name, line=number) from None
