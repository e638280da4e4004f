"""Points on the public Google trace of 2011 instead of drawn jobs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from msgspec import structs

from argosy.model.errors import TraceError
from argosy.papers.experiment import ExperimentPoint

TABLES: Final = ("machine_events", "job_events", "task_events")


def on_google_trace(
    point: ExperimentPoint, directory: Path, figures: tuple[str, ...]
) -> ExperimentPoint:
    """The point on the trace in `directory`; those of other figures are as they were. The names and
    sizes of the trace's files become part of the point."""
    if point.figure not in figures:
        return point
    missing = [table for table in TABLES if not any((directory / table).glob("part-*"))]
    if missing:
        raise TraceError(
            f"no tables of a trace: {', '.join(missing)} not found",
            file=str(directory),
            expected=f"a directory with {', '.join(TABLES)} of clusterdata-2011-2",
        )
    files = sorted(path for path in directory.glob("*/part-*") if path.is_file())
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(directory)} {path.stat().st_size}\n".encode())
    told = {**point.parameters, "trace": str(directory), "digest": digest.hexdigest()[:16]}
    return structs.replace(point, parameters=told)
