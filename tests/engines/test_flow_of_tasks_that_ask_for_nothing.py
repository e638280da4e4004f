"""Any number of tasks that ask for nothing fits on a machine: that must not cost work."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.engines.registry import ENGINES
from argosy.solvers.flow.network import FlowNetwork
from argosy.testing.builders import SECOND, job, scenario
from argosy.worlds.sim import SimulatedWorld


@pytest.mark.parametrize("engine", ["firmament", "quincy"])
def test_room_without_end_takes_no_more_work_than_the_tasks_there_are(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans = []
    solve = FlowNetwork.solve

    def counted(network: FlowNetwork, *arguments: Any, **named: Any) -> Any:
        solution = solve(network, *arguments, **named)
        scans.append(solution.scans)
        return solution

    monkeypatch.setattr(FlowNetwork, "solve", counted)
    jobs = [
        job("some", 60, cpu=1_000, seconds=5),
        job("nothing", 30, cpu=0, memory=0, seconds=5, precedence=8, submit=1),
        job("more", 60, cpu=500, seconds=20, precedence=4, submit=2),
    ]
    world = SimulatedWorld(scenario(engine, jobs, replicas=1, horizon=60 * SECOND), ENGINES)
    world.run()
    assert world.runtime.open_tasks == 0
    assert max(scans) < 20_000
