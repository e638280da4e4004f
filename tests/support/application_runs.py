"""Applications with placement constraints, run by one engine."""

from __future__ import annotations

from typing import Any

from argosy.engines.registry import ENGINES
from argosy.host.records import PlacedRecord
from argosy.model.constraints.text import parse_constraint
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import SECOND, job, scenario
from argosy.testing.conformance import ConformanceRun


def service(name: str, tasks: int, *constraints: str, **fields: Any) -> SimulatedJob:
    fields.setdefault("seconds", None)
    fields.setdefault("tags", ("w",))
    texts = tuple(map(parse_constraint, constraints))
    return job(name, tasks, constraints=texts, **{"kind": "service", **fields})


def run(
    engine: str, jobs: list[SimulatedJob], settings: dict[str, Any] | None = None, **fields: Any
) -> ConformanceRun:
    fields.setdefault("horizon", 120 * SECOND)
    spec = scenario(engine, jobs, replicas=1, settings=settings or {}, **fields)
    return ConformanceRun(ENGINES[engine], spec)


def where(trial: ConformanceRun, name: str) -> list[int]:
    """The machines of a job's tasks, in the order of the tasks; moved ones where they are now."""
    found: dict[int, int] = {}
    for line in trial.of(PlacedRecord, name):
        found.update(zip(line.indices, line.machines, strict=True))
    return [found[index] for index in sorted(found)]
