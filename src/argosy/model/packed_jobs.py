"""Workloads that are too large to be kept as objects: compressed, and unpacked a few jobs at a time.

A job is about a kilobyte of Python objects, but resembles its neighbours: packed, it takes a few dozen
bytes. `packed` reads jobs once, from whatever draws or reads them. A small workload becomes a plain
tuple, which is faster; a large one becomes `PackedJobs`, which can be read any number of times, counted,
compared and sent to another process, and never has more than one block of its jobs as objects.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, overload

import msgspec

from argosy.model.job_census import JobCensus
from argosy.model.truth import SimulatedJob

#: Workloads of at most this weight are kept as they are, in some 20 MB.
MOST_KEPT: Final = 400_000
#: What a job weighs beside its durations, each of which weighs 1.
_JOB_WEIGHT: Final = 20
#: Jobs that are packed, and unpacked, together.
BLOCK: Final = 256
#: The fastest: neighbours are so alike that more effort gains little.
_LEVEL: Final = 1
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[SimulatedJob]).decode


class PackedJobs(Sequence[SimulatedJob]):
    """Jobs in order of submission. Equal to any sequence of equal jobs."""

    def __init__(self, jobs: Iterable[SimulatedJob]) -> None:
        self.census = JobCensus()
        #: All but the last have `BLOCK` jobs.
        self._blocks: list[bytes] = []
        self._count = 0
        block: list[SimulatedJob] = []
        for made in jobs:
            self.census.take(made)
            block.append(made)
            if len(block) == BLOCK:
                self._pack(block)
                block = []
        if block:
            self._pack(block)

    def _pack(self, block: list[SimulatedJob]) -> None:
        self._blocks.append(zlib.compress(_encode(block), _LEVEL))
        self._count += len(block)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[SimulatedJob]:
        for block in self._blocks:
            yield from _unpacked(block)

    @overload
    def __getitem__(self, at: int) -> SimulatedJob: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[SimulatedJob, ...]: ...
    def __getitem__(self, at: int | slice) -> SimulatedJob | tuple[SimulatedJob, ...]:
        if isinstance(at, slice):
            return tuple([self[each] for each in range(*at.indices(self._count))])
        block, inside = divmod(range(self._count)[at], BLOCK)
        return _unpacked(self._blocks[block])[inside]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        if len(self) != len(other):
            return False
        return self is other or all(mine == its for mine, its in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return f"<{self._count:,} packed jobs>"


def _unpacked(block: bytes) -> list[SimulatedJob]:
    return _decode(zlib.decompress(block))


def packed(jobs: Iterable[SimulatedJob], most: int = MOST_KEPT) -> Sequence[SimulatedJob]:
    """The jobs, packed if they weigh more than `most`."""
    coming = iter(jobs)
    kept: list[SimulatedJob] = []
    weight = 0
    for made in coming:
        kept.append(made)
        weight += _JOB_WEIGHT + sum([len(truth.durations) for truth in made.truth])
        if weight > most:
            return PackedJobs(chain(_emptied(kept), coming))
    return tuple(kept)


def _emptied(jobs: list[Any]) -> Iterator[Any]:
    """The jobs one by one, none of them kept."""
    jobs.reverse()
    while jobs:
        yield jobs.pop()


def census_of(jobs: Sequence[SimulatedJob]) -> JobCensus:
    """Packed jobs were counted when they were packed."""
    return jobs.census if isinstance(jobs, PackedJobs) else JobCensus(jobs)
