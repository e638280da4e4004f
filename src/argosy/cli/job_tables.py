"""Jobs and tasks of a live cluster as rows of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from argosy.cli.live import elapsed, local_time
from argosy.report.tables import Column, Unit

if TYPE_CHECKING:
    from argosy.api.values import JobSummary, TaskSummary
    from argosy.report.tables import Value

JOB_COLUMNS: Final = (
    Column("id", "job"),
    Column("name", "name"),
    Column("kind", "kind"),
    Column("owner", "owner"),
    Column("state", "state"),
    Column("done", "done", Unit.COUNT),
    Column("running", "running", Unit.COUNT),
    Column("waiting", "waiting", Unit.COUNT),
    Column("tasks", "tasks", Unit.COUNT),
    Column("precedence", "precedence", Unit.COUNT),
    Column("scheduler", "scheduler"),
    Column("submitted", "submitted"),
    Column("took", "took", Unit.TIME),
    Column("exit_code", "exit", Unit.COUNT),
)
TASK_COLUMNS: Final = (
    Column("task", "task"),
    Column("state", "state"),
    Column("machine", "machine"),
    Column("for", "for", Unit.TIME),
    Column("try", "try", Unit.COUNT),
    Column("failures", "failures", Unit.COUNT),
    Column("reason", "reason"),
)


def job_row(job: JobSummary) -> tuple[Value, ...]:
    counts = job.tasks
    return (
        job.id,
        job.name,
        job.kind,
        job.owner,
        job.state,
        counts.finished + counts.failed + counts.cancelled + counts.abandoned,
        counts.running,
        counts.pending + counts.queued,
        counts.total,
        job.precedence or None,
        job.scheduler,
        local_time(job.submitted),
        elapsed(job.submitted, job.ended),
        job.exit_code,
    )


def task_row(task: TaskSummary) -> tuple[Value, ...]:
    return (
        f"{task.job}/{task.index}",
        task.state,
        task.machine,
        elapsed(task.started, task.ended),
        task.try_number,
        task.failures or None,
        task.reason,
    )
