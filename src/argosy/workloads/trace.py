"""Argosy's own job trace: JSON lines, one job per line, in order of submission.

The fields are those of `[[workload.jobs]]`; times are whole microseconds or text with a unit.
Traces are streamed: memory holds one job, and some 16 bytes for each id seen so far.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from argosy.model.errors import TraceError, excerpt
from argosy.model.truth import SimulatedJob
from argosy.model.units import LARGEST
from argosy.workloads.job_tables import job_table, read_job
from argosy.workloads.seen_names import SeenNames
from argosy.workloads.tables import Converter, Misfit, path_text

_CONVERTER: Final = Converter(TraceError, bare_micros=True)


#: Raises `Misfit` for a job that does not fit the cell; the last argument says whether it has `groups`.
JobCheck: TypeAlias = Callable[[SimulatedJob, bool], None]


def read_trace(
    path: Path, *, speedup: float = 1.0, check: JobCheck | None = None
) -> Iterator[SimulatedJob]:
    """The jobs of a trace, checked one by one. With `speedup` 2, they are submitted twice as fast."""
    seen = SeenNames()
    latest = 0
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                job = _read_line(path, number, line, check)
                if not seen.add(job.id) and _is_in(path, job.id, before=number):
                    raise TraceError(
                        f"job {job.id!r} again",
                        file=str(path),
                        line=number,
                        field="id",
                        expected="each id once",
                    )
                if job.submit < latest:
                    raise TraceError(
                        f"submitted at {job.submit} µs, but follows a job of {latest} µs",
                        file=str(path),
                        line=number,
                        field="submit",
                        expected="jobs in order of submission",
                        hint="sort the lines by submit",
                    )
                latest = job.submit
                yield job if speedup == 1 else _sooner(job, speedup)
    except OSError as error:
        raise TraceError(
            f"cannot be read: {error.strerror}", file=str(path), expected="a trace of JSON lines"
        ) from error


def _read_line(path: Path, number: int, line: bytes, check: JobCheck | None) -> SimulatedJob:
    try:
        table = _decode(line)
        job = read_job(_CONVERTER, table)
        if check is not None:
            check(job, "groups" in table)
        return job
    except _NotJson as error:
        raise TraceError(
            str(error), file=str(path), line=number, expected="one JSON object per line"
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


def _is_in(path: Path, name: str, *, before: int) -> bool:
    """Whether a line before that number, of which all are known to be right, is of the job."""
    with path.open("rb") as lines:
        return any(
            _decode(line)["id"] == name for line in islice(lines, before - 1) if line.strip()
        )


class _NotJson(Exception):
    pass


def _decode(line: bytes) -> Any:
    try:
        text = line.rstrip().decode()
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise _NotJson(f"not JSON: {error.msg} at column {error.colno}") from None
    except UnicodeDecodeError as error:
        raise _NotJson(f"not UTF-8 at byte {error.start + 1} of the line") from None
    except RecursionError:
        raise _NotJson("nested too deeply") from None
    except ValueError as error:
        # Python limits the digits of a number.
        raise _NotJson(f"not JSON: {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are unique; of two equal keys, one would be lost."""
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for index, key in enumerate(keys) if key in keys[:index])
        raise _NotJson(f"key {excerpt(twice)} twice in one object")
    return table


def _no_constant(name: str) -> Any:
    raise _NotJson(f"not JSON: {name} is not a number")


def _sooner(job: SimulatedJob, speedup: float) -> SimulatedJob:
    return msgspec.structs.replace(job, submit=min(int(job.submit / speedup), LARGEST))


def write_trace(path: Path, jobs: Iterable[SimulatedJob]) -> int:
    """Writes `jobs` in the given order and returns their number; the file is written whole or not at
    all."""
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
