"""Argosy's own job trace: JSON lines, one job a line, in order of submission.

The fields are those of `[[workload.jobs]]`; times are whole microseconds or text with a unit.
Reading streams: memory holds one job and the ids seen so far.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from argosy.model.errors import TraceError
from argosy.model.jobs import Job
from argosy.model.units import LARGEST
from argosy.workloads.job_tables import job_table, read_job
from argosy.workloads.tables import Converter, Misfit, path_text

_CONVERTER: Final = Converter(TraceError, bare_micros=True)


def read_trace(path: Path, *, speedup: float = 1.0) -> Iterator[Job]:
    """The jobs of a trace, checked one by one. `speedup` 2 submits them twice as fast."""
    seen: set[str] = set()
    latest = 0
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                job = _read_line(path, number, line)
                if job.id in seen:
                    raise TraceError(
                        f"job {job.id!r} again",
                        file=str(path),
                        line=number,
                        field="id",
                        expected="each id once",
                    )
                if job.submit < latest:
                    raise TraceError(
                        f"submitted at {job.submit} µs, after a job of {latest} µs",
                        file=str(path),
                        line=number,
                        field="submit",
                        expected="jobs in order of submission",
                        hint="sort the lines by submit",
                    )
                seen.add(job.id)
                latest = job.submit
                yield job if speedup == 1 else _sooner(job, speedup)
    except OSError as error:
        raise TraceError(
            f"cannot be read: {error.strerror}", file=str(path), expected="a trace of JSON lines"
        ) from error


def _read_line(path: Path, number: int, line: bytes) -> Job:
    try:
        return read_job(_CONVERTER, msgspec.json.decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(
            f"not JSON: {error}", file=str(path), line=number, expected="one JSON object a line"
        ) from None
    except Misfit as misfit:
        cause = misfit.error
        raise TraceError(
            cause.problem,
            file=str(path),
            line=number,
            field=path_text(misfit.path) or None,
            expected=cause.expected,
            hint=cause.hint,
        ) from cause


def _sooner(job: Job, speedup: float) -> Job:
    return msgspec.structs.replace(job, submit=min(int(job.submit / speedup), LARGEST))


def write_trace(path: Path, jobs: Iterable[Job]) -> int:
    """Write `jobs` in the order given and return how many; the file appears whole or not at all."""
    encoder = msgspec.json.Encoder()
    partial = path.with_name(f".{path.name}.partial")
    count = 0
    try:
        with partial.open("wb") as lines:
            for count, job in enumerate(jobs, 1):  # noqa: B007 - the count outlives the loop
                lines.write(encoder.encode(job_table(job)) + b"\n")
            lines.flush()
            os.fsync(lines.fileno())
        partial.replace(path)
    except OSError as error:
        raise TraceError(f"cannot be written: {error.strerror}", file=str(path)) from error
    finally:
        partial.unlink(missing_ok=True)
    return count
