"""The journal: inputs and decisions as JSON lines (see `records`), written as they happen.

Lines are buffered and written whole, so that the file can be read while it grows. `sync` writes all
lines so far to disk. The digest covers every byte written. The native runtime writes its own inputs
(events that are due, tasks that ended) into the same buffer, in order.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any, BinaryIO, ClassVar, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy._core import LineBuffer
from argosy.host import records
from argosy.host.job_table import JobTable
from argosy.host.setup import HostSetup
from argosy.model.effects import Pace
from argosy.model.explanations import Explanation, Why
from argosy.model.tasks import by_job, indices_of
from argosy.model.transactions import Claims, MachineArray, Outcome, TaskArray

_FLUSH_BYTES: Final = 1 << 16


class Journal:
    """Buffers lines into `stream`; without a stream it only keeps the digest."""

    #: Whether `after_event` does anything.
    is_timely: ClassVar[bool] = False

    def __init__(self, stream: BinaryIO | None = None, *, everything: bool = False) -> None:
        self.everything = everything
        #: Lines not yet written to the stream.
        self.buffer = LineBuffer()
        self._stream = stream
        self._digest = hashlib.blake2b(digest_size=16)
        self._encode = msgspec.json.Encoder().encode

    def begin(self, setup: HostSetup, *, deliberated_beside: bool = False) -> None:
        self.write(records.Header(records.VERSION, setup, deliberated_beside))

    def write(self, record: Any) -> None:
        buffer = self.buffer
        buffer.append(self._encode(record))
        if len(buffer) > _FLUSH_BYTES:
            self.flush()

    def after_event(self) -> None:
        """Called after every event if the journal is timely: it may write its lines for readers."""

    def add_to_digest(self, data: bytes) -> None:
        """Includes data kept outside the journal, such as task timelines, in the digest."""
        self.flush()
        self._digest.update(data)

    def flush(self) -> None:
        lines = self.buffer.take()
        self._digest.update(lines)
        if self._stream is not None:
            self._stream.write(lines)
            self._stream.flush()

    def sync(self) -> None:
        """Writes every line so far to disk."""
        self.flush()
        if self._stream is not None:
            os.fsync(self._stream.fileno())

    def digest(self) -> str:
        self.flush()
        return self._digest.hexdigest()


class DecisionWriter:
    """Writes decisions about tasks, one line per job. Does nothing without a journal."""

    def __init__(self, journal: Journal | None, jobs: JobTable) -> None:
        self.journal = journal
        #: Whether messages and timers are written: see `detail`.
        self.has_details = journal is not None and journal.everything
        self._jobs = jobs

    def input(self, record: records.Input) -> None:
        if self.journal:
            self.journal.write(record)

    def attempt(self, now: int, job: int, scheduler: str, takes: int, earlier: int) -> None:
        if self.journal:
            name = self._jobs.name(job)
            self.journal.write(records.AttemptRecord(now, name, scheduler, takes, earlier))

    def tasks(self, now: int, kind: type[Any], tasks: TaskArray, **fields: Any) -> None:
        """Writes a record of `kind` for each job among `tasks`."""
        if self.journal:
            for number, where in by_job(tasks):
                name = self._jobs.name(number)
                self.journal.write(
                    kind(at=now, job=name, indices=indices_of(tasks[where]).tolist(), **fields)
                )

    def placed(
        self,
        now: int,
        tasks: TaskArray,
        machines: MachineArray,
        scheduler: str,
        explanation: Explanation | None,
        *,
        assumed: bool = False,
    ) -> None:
        if self.journal:
            for number, where in by_job(tasks):
                name = self._jobs.name(number)
                indices, where_to = indices_of(tasks[where]).tolist(), machines[where].tolist()
                self.journal.write(
                    records.PlacedRecord(
                        now, name, indices, where_to, scheduler, explanation, assumed
                    )
                )

    def enqueued(
        self,
        now: int,
        tasks: TaskArray,
        machines: MachineArray,
        scheduler: str,
        explanation: Explanation | None,
        pace: Pace,
    ) -> None:
        """Tasks sent at a pace get one line for each run of consecutive tasks of a job."""
        if not self.journal:
            return
        for number, where in by_job(tasks):
            parts: list[slice | NDArray[np.intp]] = [where]
            if pace.every and not isinstance(where, slice):
                parts = [*np.split(where, np.flatnonzero(np.diff(where) != 1) + 1)]
            for part in parts:
                before = 0 if isinstance(part, slice) else int(part[0])
                self.journal.write(
                    records.EnqueuedRecord(
                        at=now,
                        job=self._jobs.name(number),
                        indices=indices_of(tasks[part]).tolist(),
                        machines=machines[part].tolist(),
                        scheduler=scheduler,
                        explanation=explanation,
                        first=pace.first + before * pace.every,
                        every=pace.every,
                    )
                )

    def lost(
        self, now: int, number: int, tasks: TaskArray, machines: MachineArray, why: Why
    ) -> None:
        if self.journal:
            name, indices = self._jobs.name(number), indices_of(tasks).tolist()
            self.journal.write(
                records.LostRecord(now, name, indices, machines.tolist(), why.name.lower())
            )

    def refused(
        self, now: int, claims: Claims, outcome: Outcome, rows: NDArray[np.intp], scheduler: str
    ) -> None:
        if self.journal:
            for number, where in by_job(claims.tasks[rows]):
                mine = rows[where]
                self.journal.write(
                    records.RefusedRecord(
                        at=now,
                        job=self._jobs.name(number),
                        indices=indices_of(claims.tasks[mine]).tolist(),
                        machines=outcome.machines[mine].tolist(),
                        scheduler=scheduler,
                        whys=outcome.whys[mine].tolist(),
                        details=outcome.details[mine].tolist(),
                        amounts=outcome.amounts[mine].tolist(),
                    )
                )

    def detail(self, record: records.SentRecord | records.TimerRecord) -> None:
        """Writes messages and timers, which only a journal of `everything` contains."""
        if self.journal and self.has_details:
            self.journal.write(record)
