"""Journal files, also of a run in progress.

`records` yields every record. `facts` skips, without decoding them, the lines that only a replay needs
(timers that came due, reports passed on), which are most of a journal. `about` decodes only the lines
about one task. All skip kinds of line that they do not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias, TypeVar, get_args

import msgspec

from argosy.host import records
from argosy.host.records import VERSION, Header, JournalRecord, RestoredRecord, SubmittedRecord
from argosy.model.errors import RunDirectoryError
from argosy.model.jobs import task_number
from argosy.model.machines import Machine
from argosy.model.resources import dimensions_of
from argosy.model.transactions import AddMachine, MachineChange, RelabelMachine, ResizeMachine

Fact: TypeAlias = (
    SubmittedRecord
    | RestoredRecord
    | records.EndedRecord
    | records.PhaseEndedRecord
    | records.FailedRecord
    | records.ConfirmedRecord
    | records.ForgottenRecord
    | records.MachineRecord
    | records.CrashedRecord
    | records.RestartedRecord
    | records.CancelledRecord
    | records.ScaledRecord
    | records.AttemptRecord
    | records.PlacedRecord
    | records.EnqueuedRecord
    | records.ProbedRecord
    | records.RefusedRecord
    | records.LostRecord
    | records.ReleasedRecord
    | records.ResubmittedRecord
    | records.ExplainedRecord
    | records.AbandonedRecord
    | records.StartedRecord
    | records.RetriedRecord
)

_T = TypeVar("_T")
#: Decoders for all records, for facts, and for the first line.
_RECORDS: Final = msgspec.json.Decoder(JournalRecord)
_FACTS: Final = msgspec.json.Decoder(Fact)
_HEADER: Final = msgspec.json.Decoder(Header)
_CHANGES: Final = msgspec.json.Decoder(records.MachineRecord)
_SUBMITTED: Final = msgspec.json.Decoder(SubmittedRecord | RestoredRecord)
_SCALED: Final = msgspec.json.Decoder(records.ScaledRecord)
_VERSION: Final = re.compile(rb'\{"what":"journal","version":(\d+)')
_AT: Final = re.compile(rb'\{"what":"[^"]*","at":(\d+)')


def _tags(records: object) -> set[str]:
    return {str(kind.__struct_config__.tag) for kind in get_args(records)}


def _lines_except(records: object) -> re.Pattern[bytes]:
    """Lines of any other kind, also of kinds that later versions may write."""
    tags = "|".join(sorted(_tags(records))).encode()
    return re.compile(rb'^\{"what":"(?!(?:%b)")[^"\n]*".*\n?' % tags, re.MULTILINE)


#: Lines that are not facts; lines that this version does not know.
_REST: Final = _lines_except(Fact)
_UNKNOWN: Final = _lines_except(JournalRecord)
_JOB: Final = re.compile(
    rb'^\{"what":"(?:submitted|restored)","at":\d+,"number":\d+,"job":\{"id":("(?:[^"\\]|\\.)*")',
    re.MULTILINE,
)
_MACHINE: Final = re.compile(
    rb'^\{"what":"machine",.*"(?:AddMachine|ResizeMachine)".*\n', re.MULTILINE
)
#: Lines that give tasks by number.
_BY_NUMBER: Final = tuple(
    b'{"what":"%b"' % kind for kind in (b"ended", b"started", b"failed", b"confirmed", b"forgotten")
)
_CHUNK: Final = 1 << 20


def is_unknown(line: bytes) -> bool:
    """Whether the line is of a kind that this version does not know."""
    return _UNKNOWN.match(line) is not None


class JournalFile:
    """The complete lines of a journal: while it grows, the last one may be incomplete."""

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
        """The first line; raises an error if its version cannot be read."""
        line = self.data[: self.data.find(b"\n") + 1]
        version = _VERSION.match(line)
        if version is None:
            raise RunDirectoryError(
                "not a journal",
                file=self.name,
                line=1,
                expected='{"what":"journal","version":...',
                hint="a run that has just started may not have written its first line yet"
                if not self.data
                else None,
            )
        if int(version[1]) != VERSION:
            raise RunDirectoryError(
                f"a journal of version {int(version[1])}",
                file=self.name,
                line=1,
                expected=f"version {VERSION}",
                hint="read it with the version of Argosy that wrote it",
            )
        return self._decode(_HEADER, line, 1)

    @property
    def has_ends(self) -> bool:
        """Whether it contains starts and ends of tasks; only a journal of decisions does not."""
        return self.header().setup.output.log != "decisions"

    def records(self) -> Iterator[JournalRecord]:
        """All records of known kinds, starting with the header."""
        self.header()
        for number, line in enumerate(self.data.splitlines(), 1):
            if not is_unknown(line):
                yield self._decode(_RECORDS, line, number)

    def facts(self) -> Iterator[Fact]:
        """What happened to jobs, tasks, machines and schedulers."""
        self.header()
        position = 0
        while position < len(self.data):
            end = self.data.find(b"\n", position + _CHUNK) + 1 or len(self.data)
            try:
                yield from _FACTS.decode_lines(_REST.sub(b"", self.data[position:end]))
            except msgspec.MsgspecError:
                self._find_fault(position, end)
                raise
            position = end

    def job(self, name: str) -> SubmittedRecord | RestoredRecord | None:
        """The record with which the job with this id begins."""
        position = self.data.find(b'"job":{"id":%b' % msgspec.json.encode(name))
        if position < 0:
            return None
        start, end = self.data.rfind(b"\n", 0, position) + 1, self.data.find(b"\n", position)
        begin: SubmittedRecord | RestoredRecord = self._decode(
            _SUBMITTED, self.data[start:end], self.line_at(start)
        )
        return begin

    def largest_count(self, submitted: SubmittedRecord | RestoredRecord) -> int:
        """The largest number of tasks that a job ever had."""
        counts = [submitted.job.tasks]
        for start, end in self._lines_with(b'{"what":"scaled"'):
            record = self._decode(_SCALED, self.data[start:end], None, start)
            if record.number == submitted.number:
                counts.append(record.job.tasks)
        return max(counts)

    def job_names(self) -> list[str]:
        """The ids of all submitted jobs, by number."""
        return [msgspec.json.decode(name, type=str) for name in _JOB.findall(self.data)]

    def machine_names(self) -> list[str]:
        """The names of all machines there ever were, by number."""
        names = [machine.name for machine in self.header().setup.cell.machines]
        for change in self._machine_changes():
            match change:
                case AddMachine(machine):
                    names.append(machine.name)
        return names

    def dimensions(self) -> tuple[str, ...]:
        """The resources of all machines there ever were, in the cell's order."""
        sizes = [machine.capacity for machine in self.header().setup.cell.machines]
        dimensions = dimensions_of(sizes)
        for change in self._machine_changes():
            dimensions = grown(dimensions, change)
        return dimensions

    def largest_machines(self) -> list[Machine] | None:
        """All machines there ever were, each with the most that it ever had of each resource; None if
        their attributes changed."""
        machines = list(self.header().setup.cell.machines)
        for start, end in self._lines_with(b'{"what":"machine"'):
            change = self._decode(_CHANGES, self.data[start:end], None, start).change
            match change:
                case AddMachine(machine):
                    machines.append(machine)
                case ResizeMachine(number, capacity):
                    machines[number] = machines[number].enlarged(capacity)
                case RelabelMachine():
                    return None
        return machines

    def _machine_changes(self) -> Iterator[MachineChange]:
        """Machine changes that may add something."""
        for found in _MACHINE.finditer(self.data):
            yield self._decode(_CHANGES, found[0], self.line_at(found.start())).change

    def about(self, job: str, number: int, index: int) -> Iterator[Fact]:
        """The facts that may concern one task, in order: those of its job, those that give its number,
        and scheduler crashes. It searches for these as text only, so it takes almost no time."""
        self.header()
        quoted, task = msgspec.json.encode(job), task_number(number, index)
        lines = {
            start: end
            for needle in (
                b'"job":%b' % quoted,
                b'"job":{"id":%b' % quoted,
                b'"number":%d,' % number,
                b'{"what":"crashed"',
            )
            for start, end in self._lines_with(needle)
        }
        # All forms in which the number can occur, in a list or alone.
        lines |= {
            start: end
            for form in (b"[%d,", b"[%d]", b",%d,", b",%d]", b":%d,")
            for start, end in self._lines_with(form % task)
            if self.data.startswith(_BY_NUMBER, start)
        }
        for start in sorted(lines):
            if not _REST.match(self.data, start):
                yield self._decode(_FACTS, self.data[start : lines[start]], None, start)

    def _lines_with(self, needle: bytes) -> Iterator[tuple[int, int]]:
        """The start and end of each line that contains this text."""
        position = self.data.find(needle)
        while position >= 0:
            end = self.data.find(b"\n", position)
            yield self.data.rfind(b"\n", 0, position) + 1, end
            position = self.data.find(needle, end)

    def reached(self) -> int:
        """The time of the last line."""
        start = self.data.rfind(b"\n", 0, -1) + 1
        found = _AT.match(self.data, start)
        return int(found[1]) if found else 0

    def line_at(self, position: int) -> int:
        """The number of the line that starts at this byte."""
        return self.data.count(b"\n", 0, position) + 1

    def _find_fault(self, position: int, end: int) -> None:
        """Raises an error with the number of the line that cannot be decoded."""
        first = self.line_at(position)
        for number, line in enumerate(self.data[position:end].splitlines(), first):
            if not is_unknown(line):
                self._decode(_RECORDS, line, number)

    def _decode(
        self, decoder: msgspec.json.Decoder[_T], line: bytes, number: int | None, start: int = 0
    ) -> _T:
        """Decodes the line with this number, or at this byte."""
        try:
            return decoder.decode(line)
        except msgspec.MsgspecError as error:
            at = self.line_at(start) if number is None else number
            raise RunDirectoryError(str(error), file=self.name, line=at) from None


def grown(dimensions: tuple[str, ...], change: MachineChange) -> tuple[str, ...]:
    """The dimensions after the change: a resource that no machine had before is added at the end."""
    match change:
        case AddMachine(machine):
            capacity = machine.capacity
        case ResizeMachine(capacity=capacity):
            pass
        case _:
            return dimensions
    return (*dimensions, *(name for name in capacity.extras if name not in dimensions))
