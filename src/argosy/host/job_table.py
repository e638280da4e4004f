"""Every submitted job by number.

Jobs that are not finished are kept whole. Of a finished one, only what reports need remains: its id, and
25 bytes in columns.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from argosy.model.jobs import Job


class TextColumn(Sequence[str]):
    """Texts of which most differ, one after the other in one buffer."""

    def __init__(self) -> None:
        self.text = bytearray()
        #: Where each text ends.
        self.ends = array("q")

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        at = range(len(self))[at]
        begin = self.ends[at - 1] if at else 0
        return self.text[begin : self.ends[at]].decode()


class LabelCodes(dict[str, int]):
    """A number for each distinct label; a new label gets the next."""

    def __missing__(self, label: str) -> int:
        code = self[label] = len(self)
        return code


class LabelColumn(Sequence[str]):
    """Texts of which many are equal: a number for each, and every distinct text once."""

    def __init__(self) -> None:
        self.codes = LabelCodes()
        self.rows = array("i")

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        labels = [*self.codes]
        return (
            [labels[code] for code in self.rows[at]]
            if isinstance(at, slice)
            else labels[self.rows[at]]
        )

    def __iter__(self) -> Iterator[str]:
        return map([*self.codes].__getitem__, self.rows)


class JobTable:
    """Jobs by number. For finished jobs, keeps only the columns that reports need."""

    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        #: By job number: id, kind, owner and number of tasks.
        self.names = TextColumn()
        self.kinds = LabelColumn()
        self.owners = LabelColumn()
        self.counts = array("q")
        #: By job number: whether it has tasks that run until stopped.
        self.is_endless = bytearray()
        #: The numbers of gangs.
        self.gangs: list[int] = []

    def __len__(self) -> int:
        return len(self.counts)

    def add(self, job: Job) -> None:
        number = len(self.counts)
        self._jobs[number] = job
        if job.gang:
            self.gangs.append(number)
        # Without a call for each column, because this happens once per job.
        self.names.text += job.id.encode()
        self.names.ends.append(len(self.names.text))
        self.kinds.rows.append(self.kinds.codes[job.kind])
        self.owners.rows.append(self.owners.codes[job.owner])
        self.counts.append(job.tasks)
        self.is_endless.append(_runs_until_stopped(job))

    def replace(self, number: int, job: Job) -> None:
        """Replaces the specification of a job that is not finished."""
        self._jobs[number] = job
        self.counts[number] = job.tasks
        self.is_endless[number] = _runs_until_stopped(job)

    def forget(self, numbers: Iterable[int]) -> None:
        """Drops finished jobs, which are not looked up again."""
        for number in numbers:
            del self._jobs[number]

    def name(self, number: int) -> str:
        job = self._jobs.get(number)
        return self.names[number] if job is None else job.id

    def is_done(self, number: int) -> bool:
        return number not in self._jobs

    def job(self, number: int) -> Job:
        """A job that is not finished."""
        return self._jobs[number]


def _runs_until_stopped(job: Job) -> bool:
    return any(group.endless for group in job.groups)
