"""What changes between a decision and its effect is nobody's fault."""

from __future__ import annotations

import pytest

from argosy.engines.registry import ENGINES
from argosy.host import TaskState
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import ConstantLatency, Network
from argosy.model.transactions import AddMachine
from argosy.testing.builders import GIB, SECOND, job, scenario
from argosy.testing.conformance import SIMULATED, World

MS = 1_000


@pytest.mark.parametrize("engine", ENGINES)
def test_tasks_that_were_removed_before_their_placement_arrives_are_left_out(engine: str) -> None:
    """The job is made smaller at several moments of its scheduler's first decision."""
    for moment in (20, 60, 90, 130, 170, 210, 260):

        def shrink(world: World) -> None:
            world.host.scale(0, job("web", 1, seconds=1).job)

        spec = scenario(
            engine,
            [job("web", 4, seconds=1)],
            replicas=1,
            network=Network(latency=ConstantLatency(delay=50 * MS)),
            horizon=40 * SECOND,
        )
        run = SIMULATED(
            ENGINES[engine],
            spec,
            script=lambda world, at=moment: world.inject(at * MS, lambda: shrink(world)),  # type: ignore[misc]
        )
        counts = dict(zip(TaskState.__members__, run.counts, strict=True))
        assert counts["FINISHED"] + counts["CANCELLED"] == 4
        assert counts["FINISHED"] >= 1


@pytest.mark.parametrize("extras", [{}, {"bandwidth": 1_000}])
def test_a_machine_may_join_while_room_is_reserved_for_an_application(
    extras: dict[str, int],
) -> None:
    """Tasks are placed beside an application that is still being decided on."""

    def join(world: World) -> None:
        capacity = Resources(4_000, 16 * GIB, extras)
        world.host.change_machine(AddMachine(Machine("new", capacity)))

    web = job("web", 2, seconds=None, kind="service")
    spec = scenario(
        "medea",
        [web, job("late", 3, seconds=1, submit=1.3)],
        settings={
            "conflict": "reserve",
            "interval": SECOND,
            "t_lra": SECOND,
            "algorithm": "serial",
        },
        replicas=1,
        horizon=20 * SECOND,
    )
    run = SIMULATED(
        ENGINES["medea"],
        spec,
        script=lambda world: world.inject(1_200 * MS, lambda: join(world)),
    )
    counts = dict(zip(TaskState.__members__, run.counts, strict=True))
    assert (counts["FINISHED"], counts["RUNNING"]) == (3, 2)
