"""Jobs for a live cluster: the keys of `[[workload.jobs]]`, less what only a simulation can know.

A live task ends when its process does, so there are no durations; `estimate` tells schedulers what to
expect. Tasks with `endless` are services: they run until stopped, and start again if they die. A job of
kind "service" is endless unless it has an estimate or says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from argosy.model.errors import JobError, ModelError
from argosy.model.jobs import SERVICE, Job, TaskGroup
from argosy.workloads.job_tables import (
    GroupKeys,
    JobKeys,
    check_group_keys,
    group_entries,
    job_entries,
    size_entries,
)
from argosy.workloads.tables import Converter, TablePath, misfit

#: Job files: times have a unit.
IN_FILES: Final = Converter(JobError)
#: Documents of programs: times may also be whole microseconds.
IN_DOCUMENTS: Final = Converter(JobError, bare_micros=True)

#: Keys of simulated jobs, and what to write instead.
_SIMULATED: Final = {
    "duration": "estimate",
    "durations": "estimate",
    "phases": "estimate",
    "submit": "",
}


class LiveGroupTable(GroupKeys, frozen=True, kw_only=True):
    endless: bool | None = None


class LiveJobTable(JobKeys, frozen=True, kw_only=True):
    """A job, and its only group unless `groups` is given."""

    id: str | None = None
    endless: bool | None = None
    groups: tuple[LiveGroupTable, ...] | None = None


def read_live_job(
    table: Any, *, default_id: str, converter: Converter = IN_DOCUMENTS, path: TablePath = ()
) -> Job:
    """The job described by a table at `path`; raises `Misfit`."""
    if isinstance(table, Mapping):
        _refuse_simulated(converter, table, path)
        check_group_keys(converter, table, LiveGroupTable, path)
    read: LiveJobTable = converter.convert(table, LiveJobTable, path)
    groups = []
    tables: Sequence[LiveGroupTable | LiveJobTable] = (
        (read,) if read.groups is None else read.groups
    )
    for index, group in enumerate(tables):
        place = path if read.groups is None else (*path, "groups", index)
        if not group.command:
            converter.refuse("nothing to execute", place, 'command = "sort -u data.txt"')
        if group.image:
            problem = "container images cannot be run on this computer"
            converter.refuse(problem, (*place, "image"), "a command")
        try:
            groups.append(_group(group, read.kind))
        except ModelError as error:
            raise misfit(error, place) from None
    try:
        chosen = default_id if read.id is None else read.id
        return Job(chosen, tuple(groups), **read.job_fields())
    except ModelError as error:
        raise misfit(error, path) from None


def _group(table: LiveGroupTable | LiveJobTable, kind: str) -> TaskGroup:
    endless = table.endless
    if endless is None:
        endless = kind == SERVICE and table.estimate is None
    return TaskGroup(
        table.count, table.request, table.estimate, endless=endless, **table.group_fields()
    )


def _refuse_simulated(converter: Converter, table: Mapping[str, Any], path: TablePath) -> None:
    groups = table.get("groups")
    inside: list[tuple[Any, TablePath]] = [(table, path)]
    if isinstance(groups, list | tuple):
        inside += [(group, (*path, "groups", index)) for index, group in enumerate(groups)]
    for each, place in inside:
        for key, instead in _SIMULATED.items() if isinstance(each, Mapping) else ():
            if key in each:
                what = "a live task ends when its process does" if instead else "it starts now"
                converter.refuse(
                    f"{key} is only for simulated jobs: {what}",
                    (*place, key),
                    f"{instead} for what schedulers may expect, or nothing"
                    if instead
                    else "nothing",
                )


def live_job_table(job: Job) -> dict[str, Any]:
    """The table that reads back as this job: times in microseconds, defaults left out."""
    table = {"id": job.id, **job_entries(job)}
    groups = [_group_table(group, job.kind) for group in job.groups]
    return table | (groups[0] if len(groups) == 1 else {"groups": groups})


def _group_table(group: TaskGroup, kind: str) -> dict[str, Any]:
    table = size_entries(group)
    if group.estimate is not None:
        table["estimate"] = group.estimate
    if group.endless != (kind == SERVICE and group.estimate is None):
        table["endless"] = group.endless
    return table | group_entries(group)
