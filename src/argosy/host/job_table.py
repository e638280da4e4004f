"""Every submitted job by number.

Jobs that are not finished are kept whole. Of a finished one, only what reports need remains: its id, and
21 bytes in columns.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias, overload

from argosy.model.jobs import Job

Pairs: TypeAlias = tuple[tuple[str, int], ...]
#: Demands are kept once each, and no more than this many: requests that hardly ever repeat would
#: otherwise take more room than everything else about finished jobs.
MOST_DEMANDS: Final = 4_096
#: How many new jobs enter the columns at once.
_TOGETHER: Final = 256
#: The code of every demand beyond these.
OTHER_DEMAND: Final = MOST_DEMANDS


class TextColumn(Sequence[str]):
    """Texts of which most differ, one after the other in one buffer."""

    def __init__(self) -> None:
        self.text = bytearray()
        #: Where each text ends: up to 4 GiB, the ids of hundreds of millions of jobs.
        self.ends = array("I")

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


class GroupDemand(NamedTuple):
    """What each task of a group asks of its machine."""

    cpu: int
    memory: int
    extras: Pairs
    requires: tuple[tuple[str, str], ...]


class JobDemand(NamedTuple):
    """What decides where a job's tasks can go and when."""

    groups: tuple[GroupDemand, ...]
    #: Tasks that start together; 0 if it is no gang.
    together: int
    is_constrained: bool


class DemandCodes(dict[JobDemand, int]):
    """A number for each of the first distinct demands."""

    def __missing__(self, demand: JobDemand) -> int:
        if len(self) == MOST_DEMANDS:
            return OTHER_DEMAND
        code = self[demand] = len(self)
        return code


class PlainCodes(dict[tuple[int, int], int]):
    """The codes of jobs that ask for nothing but cpu and memory, the same for all tasks: looked up
    without a call, because this happens once per job."""

    def __init__(self, codes: DemandCodes) -> None:
        super().__init__()
        self._codes = codes

    def __missing__(self, request: tuple[int, int]) -> int:
        group = GroupDemand(*request, extras=(), requires=())
        code = self._codes[JobDemand((group,), together=0, is_constrained=False)]
        if code != OTHER_DEMAND:
            self[request] = code
        return code


class JobTable:
    """Jobs by number. For finished jobs, keeps only the columns that reports need. New jobs enter these
    many at once, or when one is read: that takes a third of what it takes one by one."""

    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        self._count = 0
        #: The last jobs, which are not in the columns yet.
        self._new: list[Job] = []
        self._names = TextColumn()
        self._kinds = LabelColumn()
        self._owners = LabelColumn()
        self._counts = array("i")
        self._is_endless = bytearray()
        self._precedences = array("h")
        self._demands = array("H")
        self._demand_codes = DemandCodes()
        self._plain_codes = PlainCodes(self._demand_codes)
        self._gangs: list[int] = []

    def __len__(self) -> int:
        return self._count

    def add(self, job: Job) -> None:
        self._jobs[self._count] = job
        self._count += 1
        self._new.append(job)
        if len(self._new) == _TOGETHER:
            self._enter()

    def _enter(self) -> None:
        """Enters new jobs into the columns."""
        new, self._new = self._new, []
        first, names, plain = len(self._counts), self._names, self._plain_codes
        end = len(names.text)
        for number, job in enumerate(new, first):
            text, group = job.id.encode(), job.groups[0]
            names.text += text
            end += len(text)
            names.ends.append(end)
            request, is_mixed = group.request, len(job.groups) > 1
            self._counts.append(job.tasks if is_mixed else group.count)
            self._is_endless.append(_runs_until_stopped(job) if is_mixed else group.endless)
            if is_mixed or job.gang or job.constraints or group.requires or request.extras:
                self._demands.append(self._demand_codes[demand_of(job)])
                if job.gang:
                    self._gangs.append(number)
            else:
                self._demands.append(plain[request.cpu, request.memory])
        kinds, owners = self._kinds, self._owners
        kinds.rows.extend([kinds.codes[job.kind] for job in new])
        owners.rows.extend([owners.codes[job.owner] for job in new])
        self._precedences.extend([job.precedence for job in new])

    @property
    def names(self) -> TextColumn:
        """By job number: its id."""
        if self._new:
            self._enter()
        return self._names

    @property
    def kinds(self) -> LabelColumn:
        """By job number."""
        if self._new:
            self._enter()
        return self._kinds

    @property
    def owners(self) -> LabelColumn:
        """By job number."""
        if self._new:
            self._enter()
        return self._owners

    @property
    def counts(self) -> array[int]:
        """By job number: how many tasks it has."""
        if self._new:
            self._enter()
        return self._counts

    @property
    def is_endless(self) -> bytearray:
        """By job number: whether it has tasks that run until stopped."""
        if self._new:
            self._enter()
        return self._is_endless

    @property
    def precedences(self) -> array[int]:
        """By job number."""
        if self._new:
            self._enter()
        return self._precedences

    @property
    def demands(self) -> array[int]:
        """By job number: the code of its demand as submitted, of `demand_codes`."""
        if self._new:
            self._enter()
        return self._demands

    @property
    def demand_codes(self) -> DemandCodes:
        if self._new:
            self._enter()
        return self._demand_codes

    @property
    def gangs(self) -> list[int]:
        """The numbers of gangs."""
        if self._new:
            self._enter()
        return self._gangs

    def replace(self, number: int, job: Job) -> None:
        """Replaces the specification of a job that is not finished."""
        self.counts[number] = job.tasks
        self.is_endless[number] = _runs_until_stopped(job)
        self._jobs[number] = job

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


def demand_of(job: Job) -> JobDemand:
    groups = tuple(
        [
            GroupDemand(
                group.request.cpu,
                group.request.memory,
                tuple(sorted(group.request.extras.items())) if group.request.extras else (),
                tuple(sorted(group.requires.items())) if group.requires else (),
            )
            for group in job.groups
        ]
    )
    return JobDemand(groups, job.tasks if job.gang else 0, bool(job.constraints))
