"""What a host keeps of jobs, and what becomes of queues when machines change."""

from __future__ import annotations

from argosy.engines.registry import ENGINES
from argosy.host import TaskState
from argosy.model.constraints.text import parse_constraint
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, MachineResize
from argosy.testing.builders import GIB, SECOND, job, machines, scenario
from argosy.worlds.sim import SimulatedWorld


def test_jobs_with_constraints_are_kept_for_measures_of_their_placement() -> None:
    apart = parse_constraint("web -> {web, 0, 0} in machine")
    jobs = [job("a"), job("b", 2, tags=("web",), constraints=(apart,), submit=1)]
    world = SimulatedWorld(scenario("medea", jobs, replicas=1, horizon=60 * SECOND), ENGINES)
    world.run()
    assert world.host.constrained == [1]


def test_tasks_queued_at_a_machine_that_shrinks_wait_for_another_decision() -> None:
    """They were queued for room that is no longer there."""
    smaller = MachineResize(at=2 * SECOND, machine="m0", capacity=Resources(2_000, 16 * GIB))
    spec = scenario(
        "murmuration",
        [job("a", 3, cpu=3_000, seconds=10)],
        replicas=1,
        horizon=60 * SECOND,
        cell=CellSpec(machines=tuple(machines(1))),
        faults=(smaller,),
    )
    world = SimulatedWorld(spec, ENGINES)
    world.run()
    counts = world.host.board.counts()
    assert counts[int(TaskState.QUEUED)] == 0
    assert counts[int(TaskState.PENDING)] == 3
