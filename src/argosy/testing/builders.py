"""Small cells, jobs and scenarios for tests, with defaults for everything a test does not specify."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from argosy.engines.registry import ENGINES
from argosy.model.machines import CLUSTER_GROUP, Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, FleetEntry, GroupSpec, Scenario
from argosy.model.truth import (
    SimulatedJob,
    group_with_truth,
    simulated_job,
    workers_with_truth,
)

GIB = 2**30
SECOND = 1_000_000
_GROUP_FIELDS = (
    "estimate", "tags", "requires", "prefers", "demands", "retries", "backoff", "execution"
)  # fmt: skip


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


def federated_cell(clusters: Iterable[str], count: int = 2, **kwargs: int) -> CellSpec:
    """Clusters of `count` machines each: ``<cluster>/m0`` and so on."""
    names = tuple(clusters)
    built = tuple(
        Machine(
            f"{name}/{machine.name}",
            machine.capacity,
            joins={CLUSTER_GROUP: (name,), "rack": (f"{name}/{machine.joins['rack'][0]}",)},
        )
        for name in names
        for machine in machines(count, **kwargs)
    )
    racks = tuple(dict.fromkeys(machine.joins["rack"][0] for machine in built))
    groups = {CLUSTER_GROUP: names, "rack": racks}
    return CellSpec(
        machines=built,
        groups=tuple(GroupSpec(name=name, sets=sets) for name, sets in groups.items()),
    )


def job(
    name: str,
    tasks: int = 1,
    *,
    cpu: int = 1_000,
    memory: int = GIB,
    seconds: float | None = 10,
    submit: float = 0,
    **fields: Any,
) -> SimulatedJob:
    """`fields` are other fields of the job, or of its only group."""
    durations = () if seconds is None else (int(seconds * SECOND),)
    of_group = {name: fields.pop(name) for name in _GROUP_FIELDS if name in fields}
    request = fields.pop("request", Resources(cpu, memory))
    group = group_with_truth(tasks, request, durations, **of_group)
    return simulated_job(name, group, submit=int(submit * SECOND), **fields)


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
) -> SimulatedJob:
    """A job of workers with activities in phases; durations are in seconds."""
    durations = tuple(int(each * SECOND) for each in seconds)
    estimate = fields.pop("estimate", None)
    group = workers_with_truth(workers, Resources(cpu, memory), activities, durations, estimate)
    return simulated_job(name, group, submit=int(submit * SECOND), **fields)


def scenario(
    engine: str, jobs: list[SimulatedJob], *, replicas: int = 2, **fields: Any
) -> Scenario:
    """A scenario with one fleet entry of `engine`, audited."""
    settings = fields.pop("settings", {})
    known = ENGINES.get(engine)
    if known is not None and "budget" in known.settings_type.__struct_fields__:
        # A time limit that is never reached, so that results do not depend on the computer.
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
