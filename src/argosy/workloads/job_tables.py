"""Jobs as tables: what `[[workload.jobs]]` of a scenario and each line of a trace hold.

A job has either `groups`, or the keys of its only group beside its own.
"""

from __future__ import annotations

from typing import Any

import msgspec

from argosy.model.constraint_text import format_constraint
from argosy.model.constraints import Constraint
from argosy.model.errors import ModelError
from argosy.model.jobs import BATCH, Job, TaskGroup
from argosy.model.resources import Resources
from argosy.model.units import Time
from argosy.workloads.tables import Converter, Misfit, Path


class GroupTable(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks that are alike. `duration` is one for all, `durations` one per task."""

    request: Resources
    count: int = 1
    duration: Time | None = None
    durations: tuple[Time, ...] | None = None
    estimate: Time | None = None
    tags: tuple[str, ...] = ()
    requires: dict[str, str] = {}

    def __post_init__(self) -> None:
        if self.duration is not None and self.durations is not None:
            raise ModelError("both duration and durations", expected="one of them or neither")
        if self.durations is not None and len(self.durations) != self.count:
            raise ModelError(
                f"{len(self.durations)} durations for {self.count} tasks",
                expected="one per task, or `duration` for all",
            )

    def group(self) -> TaskGroup:
        durations = self.durations or ()
        if self.duration is not None:
            durations = (self.duration,)
        return TaskGroup(
            self.count, self.request, durations, self.estimate, self.tags, self.requires
        )


class JobTable(GroupTable, frozen=True, kw_only=True):
    """A job, and its only group unless `groups` is given."""

    id: str
    request: Resources = Resources()
    submit: Time = 0
    kind: str = BATCH
    precedence: int = 0
    gang: bool = False
    owner: str = ""
    constraints: tuple[Constraint, ...] = ()
    groups: tuple[GroupTable, ...] | None = None

    def job(self) -> Job:
        groups = (self,) if self.groups is None else self.groups
        return Job(
            self.id,
            tuple(group.group() for group in groups),
            self.submit,
            self.kind,
            self.precedence,
            self.gang,
            self.owner,
            self.constraints,
        )


def read_job(converter: Converter, table: Any, path: Path = ()) -> Job:
    """The job a table describes, or `Misfit`."""
    if isinstance(table, dict) and "groups" in table:
        for key in msgspec.structs.fields(GroupTable):
            if key.name in table:
                converter.refuse(
                    f"both {key.name!r} and groups", (*path, key.name), f"{key.name} in each group"
                )
    elif isinstance(table, dict) and "id" in table and "request" not in table:
        converter.refuse(
            "missing key 'request'", path, 'request = {cpu = 500, memory = "2GiB"}, or groups'
        )
    read: JobTable = converter.convert(table, JobTable, path)
    try:
        return read.job()
    except ModelError as error:
        raise Misfit(error, path) from None


def job_table(job: Job) -> dict[str, Any]:
    """The table that gives `job` back: times in microseconds, default values left out."""
    table: dict[str, Any] = {"id": job.id, "submit": job.submit, "kind": job.kind}
    if job.precedence:
        table["precedence"] = job.precedence
    if job.gang:
        table["gang"] = True
    if job.owner:
        table["owner"] = job.owner
    if job.constraints:
        table["constraints"] = [format_constraint(constraint) for constraint in job.constraints]
    groups = [_group_table(group) for group in job.groups]
    return table | (groups[0] if len(groups) == 1 else {"groups": groups})


def _group_table(group: TaskGroup) -> dict[str, Any]:
    table: dict[str, Any] = {
        "count": group.count,
        "request": {name: amount for name, amount in group.request.items() if amount},
    }
    # One duration of one task may be written either way; the shorter is chosen.
    if len(group.durations) == 1:
        table["duration"] = group.durations[0]
    elif group.durations:
        table["durations"] = list(group.durations)
    if group.estimate is not None:
        table["estimate"] = group.estimate
    if group.tags:
        table["tags"] = list(group.tags)
    if group.requires:
        table["requires"] = group.requires
    return table
