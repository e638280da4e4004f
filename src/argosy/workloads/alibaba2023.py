"""Alibaba's public GPU trace of 2023 (cluster-trace-gpu-v2023): machines and pods.

A trace is a directory with a list of nodes, ``openb_node_list_all_node.csv``, and lists of pods such as
``openb_pod_list_default.csv``, as published: CSV with a heading. Every pod is a job of one task. Times
are in seconds, GPUs in thousandths of a device.

A pod asks for whole GPUs or for a share of one; `Sharing` says what becomes of shares.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, TypeAlias

from argosy.model.errors import ArgosyError, TraceError, did_you_mean
from argosy.model.jobs import BATCH, SERVICE
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.model.units import LARGEST, MICROS_PER_SECOND
from argosy.workloads.google_conditions import YES
from argosy.workloads.google_jobs import Notes
from argosy.workloads.google_tables import Row, lines

#: ``devices``: a share is on one device, if the cell's GPUs are devices. ``pooled``: it takes that much
#: of its machine's GPUs, together. ``none``: it takes a whole GPU.
Sharing: TypeAlias = Literal["devices", "pooled", "none"]
GPU: Final = "gpu"

NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
#: `gpu_spec` and `qos` may be missing.
POD_COLUMNS: Final = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
#: Thousandths of one GPU.
WHOLE_GPU: Final = 1000
MODEL: Final = "gpu_model"
_MEBIBYTE: Final = 2**20
_EXPECTED: Final = "a list of Alibaba's GPU trace of 2023"
_BEST_EFFORT: Final = "BE"
_MOST_GPUS: Final = 1024


def machines(
    directory: Path, *, nodes: str = "all_node", pods: str = "default", most: int | None = None
) -> tuple[Machine, ...]:
    """The first `most` nodes. The model of their GPUs is an attribute, and so is each list of models
    that some pod allows, if theirs is on it."""
    specs = sorted({models for row in _pods(directory, pods) if len(models := _models(row)) > 1})
    found: list[Machine] = []
    names: set[str] = set()
    for row in _rows(directory, "node", nodes, NODE_COLUMNS):
        if len(found) == most:
            break
        if (name := _name(row, "sn")) in names:
            row.refuse("sn", f"{name} is listed twice", "every node once")
        names.add(name)
        gpus, model = _amount(row, "gpu", _MOST_GPUS), row.text("model")
        attributes = {MODEL: model} if model else {}
        attributes |= {_allowed(models): YES for models in specs if model in models}
        found.append(Machine(name, _resources(row, gpus * WHOLE_GPU), attributes))
    return tuple(found)


def jobs(
    directory: Path,
    *,
    pods: str = "default",
    start: int = 0,
    span: int | None = None,
    sharing: Sharing = "devices",
    notes: Notes | None = None,
) -> Iterator[SimulatedJob]:
    """Pods that run at `start` or are created within `span` of it, in order of creation, with times
    relative to `start`. `notes` counts what was read and what could not be expressed."""
    notes = Notes() if notes is None else notes
    found: list[SimulatedJob] = []
    for row in _pods(directory, pods):
        created, deleted = _time(row, "creation_time"), _time(row, "deletion_time")
        if deleted < created:
            row.refuse("deletion_time", "before the pod's creation", "a later time")
        if deleted < start or (span is not None and created >= start + span):
            continue
        if not row.text("scheduled_time"):
            notes.never_ran += 1
            continue
        scheduled = _time(row, "scheduled_time")
        if not created <= scheduled <= deleted:
            row.refuse(
                "scheduled_time",
                "not between the pod's creation and deletion",
                f"{created // MICROS_PER_SECOND} to {deleted // MICROS_PER_SECOND}",
            )
        duration = deleted - max(scheduled, start)
        found.append(_job(row, max(0, created - start), duration, sharing, notes))
    found.sort(key=lambda job: job.submit)
    notes.jobs += len(found)
    notes.tasks += len(found)
    yield from found


def _job(row: Row, submit: int, duration: int, sharing: Sharing, notes: Notes) -> SimulatedJob:
    request = _resources(row, _gpus(row, sharing, notes))
    models = _models(row)
    requires = {MODEL: models[0]} if len(models) == 1 else {_allowed(models): YES} if models else {}
    kind = BATCH if row.text("qos") == _BEST_EFFORT else SERVICE
    group = group_with_truth(1, request, (duration,), requires=requires)
    try:
        return simulated_job(_name(row, "name"), group, submit=submit, kind=kind)
    except ArgosyError as error:
        raise error.located(file=str(row.path), line=row.line) from None


def _gpus(row: Row, sharing: Sharing, notes: Notes) -> int:
    count, share = _amount(row, "num_gpu", _MOST_GPUS), _amount(row, "gpu_milli", WHOLE_GPU)
    if (count == 0) != (share == 0):
        row.refuse("gpu_milli", f"{share} of {count} GPUs", "both 0, or neither")
    if share in (0, WHOLE_GPU):
        return count * share
    if count > 1:
        row.refuse("gpu_milli", f"{share} of each of {count} GPUs", "1000 with several GPUs")
    if sharing == "none":
        return WHOLE_GPU
    if sharing == "pooled":
        notes.leave_out("a share of a GPU is a share of one device")
    return share


def _models(row: Row) -> tuple[str, ...]:
    """The models that the pod allows, sorted; empty: any."""
    return tuple(sorted({each.strip() for each in row.text("gpu_spec").split("|")} - {""}))


def _allowed(models: tuple[str, ...]) -> str:
    """The attribute of machines whose GPUs are of one of these models."""
    return f"{MODEL}={'|'.join(models)}"


def _resources(row: Row, gpus: int) -> Resources:
    cpu = _amount(row, "cpu_milli", LARGEST)
    memory = _amount(row, "memory_mib", LARGEST // _MEBIBYTE) * _MEBIBYTE
    return Resources(cpu, memory, {GPU: gpus} if gpus else {})


def _name(row: Row, column: str) -> str:
    name = row.text(column)
    if not name:
        row.refuse(column, "is missing", "a name")
    return name


def _amount(row: Row, column: str, most: int) -> int:
    amount = row.whole(column)
    if not 0 <= amount <= most:
        row.refuse(column, f"{amount} is out of range", f"0 to {most}")
    return amount


def _time(row: Row, column: str) -> int:
    return _amount(row, column, LARGEST // MICROS_PER_SECOND) * MICROS_PER_SECOND


def _pods(directory: Path, pods: str) -> Iterator[Row]:
    return _rows(directory, "pod", pods, POD_COLUMNS)


def _rows(directory: Path, what: str, which: str, columns: tuple[str, ...]) -> Iterator[Row]:
    path = directory / f"openb_{what}_list_{which}.csv"
    if not path.is_file():
        beside = sorted(each.name for each in directory.glob(f"openb_{what}_list_*.csv"))
        raise TraceError(
            f"no file {path.name}",
            file=str(directory),
            expected="one of " + ", ".join(beside) if beside else _EXPECTED,
            hint=did_you_mean(path.name, beside),
        )
    heading: list[str] = []
    for number, line in lines(path, _EXPECTED):
        values = _fields(path, number, line)
        if not heading:
            heading = values
            if missing := [column for column in columns if column not in heading]:
                raise TraceError(
                    f"no column {missing[0]}",
                    file=str(path),
                    line=number,
                    expected="a heading with " + ", ".join(columns),
                )
            continue
        if len(values) != len(heading):
            raise TraceError(
                f"{len(values)} fields",
                file=str(path),
                line=number,
                expected=f"{len(heading)}, as in the heading",
            )
        yield Row(path, number, dict(zip(heading, values, strict=True)))
    if not heading:
        raise TraceError("is empty", file=str(path), expected=_EXPECTED)


def _fields(path: Path, number: int, line: str) -> list[str]:
    try:
        return next(csv.reader([line]))
    except csv.Error as error:
        raise TraceError(
            f"not CSV: {error}", file=str(path), line=number, expected="a line of CSV"
        ) from None
