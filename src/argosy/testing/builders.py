"""Small cells, jobs and scenarios for tests, with only what a test cares about spelled out."""

from __future__ import annotations

from typing import Any

from argosy.engines.registry import ENGINES
from argosy.model.jobs import Job, Phase, TaskGroup
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, FleetEntry, GroupSpec, Scenario

GIB = 2**30
SECOND = 1_000_000


def machines(
    count: int, cpu: int = 4_000, memory: int = 16 * GIB, per_rack: int = 4
) -> tuple[Machine, ...]:
    return tuple(
        Machine(f"m{i}", Resources(cpu, memory), joins={"rack": (f"r{i // per_rack}",)})
        for i in range(count)
    )


def cell(count: int = 8, **kwargs: int) -> CellSpec:
    built = machines(count, **kwargs)
    racks = tuple(dict.fromkeys(machine.joins["rack"][0] for machine in built))
    return CellSpec(machines=built, groups=(GroupSpec(name="rack", sets=racks),))


def job(
    name: str,
    tasks: int = 1,
    *,
    cpu: int = 1_000,
    memory: int = GIB,
    seconds: float | None = 10,
    submit: float = 0,
    **fields: Any,
) -> Job:
    durations = () if seconds is None else (int(seconds * SECOND),)
    group = TaskGroup(tasks, Resources(cpu, memory), durations, tags=fields.pop("tags", ()))
    return Job(name, (group,), submit=int(submit * SECOND), **fields)


def shared_job(
    name: str,
    workers: int,
    activities: tuple[int, ...],
    seconds: tuple[float, ...],
    *,
    cpu: int = 500,
    memory: int = GIB,
    submit: float = 0,
    **fields: Any,
) -> Job:
    """Workers that do some activities of some seconds each, phase by phase."""
    phases = tuple(
        Phase(count, int(each * SECOND)) for count, each in zip(activities, seconds, strict=True)
    )
    group = TaskGroup(workers, Resources(cpu, memory), phases=phases)
    return Job(name, (group,), submit=int(submit * SECOND), **fields)


def scenario(engine: str, jobs: list[Job], *, replicas: int = 2, **fields: Any) -> Scenario:
    """One fleet entry of `engine`, with the audit on."""
    settings = fields.pop("settings", {})
    known = ENGINES.get(engine)
    if known is not None and "budget" in known.settings_type.__struct_fields__:
        # A stop by the clock that never strikes: what happens must not depend on the computer.
        settings = {"budget": 600 * SECOND, **settings}
    return Scenario(
        **{
            "name": "test",
            "seed": 1,
            "cell": cell(),
            "jobs": tuple(sorted(jobs, key=lambda submitted: submitted.submit)),
            "fleet": (FleetEntry(name="s", engine=engine, settings=settings, replicas=replicas),),
            "audit": True,
            **fields,
        }
    )
