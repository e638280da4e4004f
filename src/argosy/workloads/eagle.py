"""Job traces of the Hawk and Eagle simulators, which Murmuration uses too.

One job per line, in order of submission: submit time, number of tasks, estimated (mean) task
duration, and the duration of every task, in seconds, separated by spaces. A CSV without durations,
with the heading `job_id,submit_s,num_tasks,mean_task_s`, is also accepted: durations are then drawn
from the distribution of the public slices of the Yahoo trace (variance = 2 x mean, in seconds; none
negative), and scaled so that each job's mean is exact.

The simulators divide submit times by a speed-up; durations stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Final

from argosy.model.errors import ArgosyError, ModelError, TraceError, excerpt
from argosy.model.jobs import BATCH, MOST_TASKS
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.model.units import LARGEST, MICROS_PER_SECOND
from argosy.workloads.synthetic import Estimates

HEADING: Final = "job_id,submit_s,num_tasks,mean_task_s"
#: A task's request: one slot, because the simulators' workers have one each.
SLOT: Final = Resources(cpu=1000)
_FIELDS: Final = ("submit", "tasks", "mean")


def read(
    path: Path,
    random: Random,
    *,
    speedup: float = 1.0,
    most: int | None = None,
    request: Resources = SLOT,
    estimates: Estimates | None = None,
    kind: str = BATCH,
) -> Iterator[SimulatedJob]:
    """The first `most` jobs of a trace, submitted `speedup` times as fast. Schedulers are given the
    mean in the file as the estimate, times a factor drawn from `estimates`."""
    draws = Draws(random.child("durations"), random.child("estimates"), estimates)
    latest = -1
    try:
        with path.open(encoding="ascii") as lines:
            first = lines.readline()
            has_heading = first.strip().replace(" ", "") == HEADING
            split = _split_row if has_heading else str.split
            read_so_far, number = 0, 1
            line = lines.readline() if has_heading else first
            number += has_heading
            while line and (most is None or read_so_far < most):
                if line.strip():
                    read_so_far += 1
                    job = _job(path, number, split(line), has_heading, draws, request, kind)
                    if job.submit < latest:
                        raise _error(
                            path, number, "submit", "before the job above", "jobs in order"
                        )
                    latest = job.submit
                    yield job if speedup == 1 else _sooner(job, speedup)
                line, number = lines.readline(), number + 1
    except OSError as error:
        raise TraceError(
            f"cannot be read: {error.strerror}", file=str(path), expected="a job trace"
        ) from error
    except UnicodeDecodeError:
        raise TraceError("not plain text", file=str(path), expected="a job trace") from None


def _split_row(line: str) -> list[str]:
    return [field.strip() for field in line.split(",")]


class Draws:
    """What a trace leaves open: durations, if it has none, and the error of estimates."""

    def __init__(self, durations: Random, factors: Random, estimates: Estimates | None) -> None:
        self._durations = durations
        self._factors = factors
        self._estimates = estimates

    def durations(self, mean: int, count: int) -> tuple[int, ...]:
        """Normal with a variance of 2 x mean, in seconds, without negatives, and with exactly this mean
        except for rounding."""
        seconds = mean / MICROS_PER_SECOND
        spread = (2 * seconds) ** 0.5
        drawn = [self._positive(seconds, spread) for _ in range(count)]
        total = 0.0
        # Not `sum`, which rounds floats differently between versions of Python.
        for duration in drawn:
            total += duration
        scale = mean * count / total
        return tuple(min(max(1, int(duration * scale + 0.5)), LARGEST) for duration in drawn)

    def _positive(self, mean: float, spread: float) -> float:
        while True:
            duration = mean + spread * self._durations.normal()
            if duration > 0:
                return duration

    def estimate(self, mean: int) -> int:
        if self._estimates is None:
            return mean
        low, high = self._estimates.low, self._estimates.high
        factor = low + (high - low) * self._factors.uniform()
        return min(max(1, int(mean * factor)), LARGEST)


def _job(
    path: Path,
    number: int,
    fields: list[str],
    has_heading: bool,
    draws: Draws,
    request: Resources,
    kind: str,
) -> SimulatedJob:
    name = fields.pop(0) if has_heading and fields else f"job-{number}"
    if len(fields) < len(_FIELDS):
        raise _error(path, number, None, f"{len(fields)} fields", "submit, tasks, mean, ...")
    submit = _micros(path, number, "submit", fields[0], least=0)
    # Python itself refuses to read very long numbers.
    is_number = fields[1].isdecimal() and len(fields[1]) < 20
    count = int(fields[1]) if is_number else 0
    if not 1 <= count <= MOST_TASKS:
        raise _error(path, number, "tasks", excerpt(fields[1]), f"1 to {MOST_TASKS:,} tasks")
    mean = _micros(path, number, "mean", fields[2], least=1)
    if has_heading:
        if len(fields) != len(_FIELDS):
            raise _error(path, number, None, f"{len(fields) + 1} fields", HEADING)
        durations = draws.durations(mean, count)
    else:
        if len(fields) != count + len(_FIELDS):
            raise _error(
                path,
                number,
                "durations",
                f"{len(fields) - len(_FIELDS)} durations for {count} tasks",
                "one for each task",
            )
        durations = tuple(
            _micros(path, number, "durations", text, least=1) for text in fields[len(_FIELDS) :]
        )
    try:
        group = group_with_truth(count, request, durations, draws.estimate(mean))
        return simulated_job(name, group, submit=submit, kind=kind)
    except ModelError as error:
        raise error.located(file=str(path), line=number) from None


def _micros(path: Path, number: int, field: str, text: str, *, least: int) -> int:
    """Seconds as whole microseconds; at least `least`, even if rounding gives zero."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    micros = seconds * MICROS_PER_SECOND
    if not isfinite(seconds) or not 0 <= micros <= LARGEST:
        raise _error(path, number, field, excerpt(text), "a time in seconds, 0 or more")
    return max(least, int(micros + 0.5))


def _error(path: Path, number: int, field: str | None, problem: str, expected: str) -> ArgosyError:
    return TraceError(problem, file=str(path), line=number, field=field, expected=expected)


def _sooner(job: SimulatedJob, speedup: float) -> SimulatedJob:
    return SimulatedJob(job.job, min(int(job.submit / speedup), LARGEST), job.truth)
