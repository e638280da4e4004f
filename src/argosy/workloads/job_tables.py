"""Jobs as tables: `[[workload.jobs]]` of a scenario, and each line of a trace.

A job has either `groups`, or the keys of its only group together with its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from argosy.model.constraints import NAME, RESERVED, Constraint
from argosy.model.constraints.text import format_constraint
from argosy.model.errors import ModelError, excerpt
from argosy.model.jobs import BATCH, GRACE, OUTPUT_LIMIT, Execution, Job, TaskGroup
from argosy.model.resources import Resources
from argosy.model.truth import (
    GroupTruth,
    SimulatedJob,
    check_phase,
    group_with_truth,
    simulated_job,
    told_by_default,
    workers_with_truth,
)
from argosy.model.units import Time
from argosy.workloads.tables import CommandLine, Converter, TablePath, misfit


class PhaseTable(msgspec.Struct, frozen=True, kw_only=True):
    """Activities of a job's workers, each taking `duration`."""

    activities: int
    duration: Time

    def __post_init__(self) -> None:
        check_phase(self.activities, self.duration)


class GroupKeys(msgspec.Struct, frozen=True, kw_only=True):
    """What every group of identical tasks has, simulated or live."""

    request: Resources
    count: int = 1
    estimate: Time | None = None
    tags: tuple[str, ...] = ()
    requires: dict[str, str] = {}
    prefers: dict[str, str] = {}
    demands: dict[str, str] = {}
    retries: int = 0
    backoff: Time = 0
    command: CommandLine | None = None
    environment: dict[str, str] = {}
    working_directory: str = ""
    stdin: str = ""
    image: str = ""
    timeout: Time = 0
    grace: Time = GRACE
    #: In bytes.
    output_limit: int = OUTPUT_LIMIT

    def __post_init__(self) -> None:
        check_labels(self.tags, self.requires)
        check_labels((), self.prefers)
        check_labels((), self.demands, "demands")

    def group_fields(self) -> dict[str, Any]:
        return {
            "tags": self.tags,
            "requires": self.requires,
            "prefers": self.prefers,
            "demands": self.demands,
            "retries": self.retries,
            "backoff": self.backoff,
            "execution": self.execution(),
        }

    def execution(self) -> Execution | None:
        """None if no key says what to execute."""
        given = (self.environment, self.working_directory, self.stdin, self.image)
        if self.command is None and not any(given):
            return None
        return Execution(
            command=self.command or (),
            environment=self.environment,
            working_directory=self.working_directory,
            stdin=self.stdin,
            image=self.image,
            timeout=self.timeout,
            grace=self.grace,
            output_limit=self.output_limit,
        )


class TaskGroupTable(GroupKeys, frozen=True, kw_only=True):
    """Identical tasks. `duration` is one for all, `durations` one per task; with `phases`, tasks are
    workers that share them."""

    duration: Time | None = None
    durations: tuple[Time, ...] | None = None
    phases: tuple[PhaseTable, ...] = ()

    def __post_init__(self) -> None:
        _check_running_times(self)
        super().__post_init__()


class JobKeys(GroupKeys, frozen=True, kw_only=True):
    """What every job has, and its only group unless it has several."""

    request: Resources = Resources()
    kind: str = BATCH
    precedence: int = 0
    gang: bool = False
    owner: str = ""
    program: str = ""
    name: str = ""
    constraints: tuple[Constraint, ...] = ()

    def job_fields(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "precedence": self.precedence,
            "gang": self.gang,
            "owner": self.owner,
            "constraints": self.constraints,
            "program": self.program,
            "name": self.name,
        }


class JobFields(JobKeys, frozen=True, kw_only=True):
    """A job, and its only group unless `groups` is given."""

    id: str
    submit: Time = 0
    duration: Time | None = None
    durations: tuple[Time, ...] | None = None
    phases: tuple[PhaseTable, ...] = ()
    groups: tuple[TaskGroupTable, ...] | None = None

    def __post_init__(self) -> None:
        _check_running_times(self)
        super().__post_init__()

    def job(self, groups: Iterable[tuple[TaskGroup, GroupTruth]]) -> SimulatedJob:
        return simulated_job(self.id, *groups, submit=self.submit, **self.job_fields())


def _check_running_times(table: TaskGroupTable | JobFields) -> None:
    if table.phases and (table.duration is not None or table.durations is not None):
        raise ModelError(
            "both phases and a running time", field="phases", expected="one of them or neither"
        )
    if table.duration is not None and table.durations is not None:
        raise ModelError(
            "both duration and durations", field="durations", expected="one of them or neither"
        )
    if table.durations is not None and len(table.durations) != table.count:
        raise ModelError(
            f"{len(table.durations)} durations for {table.count} tasks",
            field="durations",
            expected="one per task, or `duration` for all",
        )


def _group(table: TaskGroupTable | JobFields) -> tuple[TaskGroup, GroupTruth]:
    fields = table.group_fields()
    if table.phases:
        activities = tuple(phase.activities for phase in table.phases)
        durations = tuple(phase.duration for phase in table.phases)
        return workers_with_truth(
            table.count, table.request, activities, durations, table.estimate, **fields
        )
    durations = table.durations or ()
    if table.duration is not None:
        durations = (table.duration,)
    return group_with_truth(table.count, table.request, durations, table.estimate, **fields)


def read_job(converter: Converter, table: Any, path: TablePath = ()) -> SimulatedJob:
    """The job described by a table; raises `Misfit`."""
    if isinstance(table, dict) and ("groups" in table or "id" in table):
        check_group_keys(converter, table, TaskGroupTable, path)
    read: JobFields = converter.convert(table, JobFields, path)
    groups = []
    tables: Sequence[TaskGroupTable | JobFields] = (read,) if read.groups is None else read.groups
    for index, group in enumerate(tables):
        try:
            groups.append(_group(group))
        except ModelError as error:
            place = path if read.groups is None else (*path, "groups", index)
            raise misfit(error, place) from None
    try:
        return read.job(groups)
    except ModelError as error:
        raise misfit(error, path) from None


def check_group_keys(
    converter: Converter, table: Mapping[str, Any], group: type[GroupKeys], path: TablePath
) -> None:
    """The keys of a group are in the job's table or in `groups`, not in both or neither."""
    if "groups" in table:
        for key in msgspec.structs.fields(group):
            if key.name in table:
                converter.refuse(
                    f"both {key.name!r} and groups", (*path, key.name), f"{key.name} in each group"
                )
    elif "request" not in table:
        converter.refuse(
            "missing key 'request'", path, 'request = {cpu = 500, memory = "2GiB"}, or groups'
        )


def check_labels(tags: Iterable[str], requires: Mapping[str, str], field: str = "requires") -> None:
    """Tags must be valid in constraints, and everything must be printable."""
    for tag in tags:
        if tag in RESERVED or NAME.fullmatch(tag) is None:
            raise ModelError(
                f"tag {excerpt(tag)} is not valid in constraints",
                field="tags",
                expected="letters, digits and _ . : / -, starting with a letter, digit or _, and"
                " not a keyword",
            )
    for text in (*requires, *requires.values()):
        if not text.isprintable():
            raise ModelError(
                f"attribute {excerpt(text)}", field=field, expected="printable characters"
            )


def job_table(made: SimulatedJob) -> dict[str, Any]:
    """The table that reads back as this job: times in microseconds, defaults left out."""
    job = made.job
    table = {"id": job.id, "submit": made.submit, **job_entries(job)}
    groups = list(map(_group_table, job.groups, made.truth))
    return table | (groups[0] if len(groups) == 1 else {"groups": groups})


def job_entries(job: Job) -> dict[str, Any]:
    """The keys of the job itself, except its id."""
    table: dict[str, Any] = {"kind": job.kind}
    if job.name:
        table["name"] = job.name
    if job.precedence:
        table["precedence"] = job.precedence
    if job.gang:
        table["gang"] = True
    if job.owner:
        table["owner"] = job.owner
    if job.program:
        table["program"] = job.program
    if job.constraints:
        table["constraints"] = [format_constraint(constraint) for constraint in job.constraints]
    return table


def _group_table(group: TaskGroup, truth: GroupTruth) -> dict[str, Any]:
    table = size_entries(group)
    # The duration of a single task may be written either way; the shorter is used.
    if len(truth.durations) == 1:
        table["duration"] = truth.durations[0]
    elif truth.durations:
        table["durations"] = list(truth.durations)
    if truth.phases:
        table["phases"] = [
            {"activities": activities, "duration": duration}
            for activities, duration in zip(group.activities, truth.phases, strict=True)
        ]
    # A live job may have none; tables cannot say so, and readers take the mean duration.
    if group.estimate is not None and group.estimate != told_by_default(group, truth):
        table["estimate"] = group.estimate
    return table | group_entries(group)


def size_entries(group: TaskGroup) -> dict[str, Any]:
    return {
        "count": group.count,
        "request": {name: amount for name, amount in group.request.items() if amount},
    }


def group_entries(group: TaskGroup) -> dict[str, Any]:
    """The keys of a group, except those about its size and running time."""
    table: dict[str, Any] = {}
    if group.tags:
        table["tags"] = list(group.tags)
    if group.requires:
        table["requires"] = group.requires
    if group.prefers:
        table["prefers"] = group.prefers
    if group.demands:
        table["demands"] = group.demands
    if group.retries:
        table["retries"] = group.retries
    if group.backoff:
        table["backoff"] = group.backoff
    if group.execution is not None:
        table |= _execution_table(group.execution)
    return table


def _execution_table(execution: Execution) -> dict[str, Any]:
    table = {name: getattr(execution, name) for name in execution.__struct_fields__}
    usual = {"grace": GRACE, "output_limit": OUTPUT_LIMIT}
    return {name: value for name, value in table.items() if value != usual.get(name, type(value)())}
