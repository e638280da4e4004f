"""What Medea's two schedulers do when applications and tasks want the same room."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.engines.registry import ENGINES
from argosy.host.records import LostRecord, PlacedRecord, RefusedRecord
from argosy.model.explanations import Why
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import SECOND, cell, job, scenario
from argosy.testing.conformance import ConformanceRun

#: Engines that place tasks at once, beside the applications.
BESIDE = ["medea", "jkube", "jkube++", "kube-modern", "yarn"]
EVERYONE = [*BESIDE, "ilp-all"]


def service(name: str, **fields: Any) -> SimulatedJob:
    return job(name, kind="service", seconds=None, **fields)


def run(
    engine: str, jobs: list[SimulatedJob], settings: dict[str, Any], **fields: Any
) -> ConformanceRun:
    fields.setdefault("horizon", 60 * SECOND)
    spec = scenario(engine, jobs, replicas=1, settings=settings, **fields)
    return ConformanceRun(ENGINES[engine], spec)


@pytest.mark.parametrize("engine", BESIDE)
def test_an_application_never_kills_another_of_its_batch(engine: str) -> None:
    """A task takes half of the room for which two applications are under decision."""
    jobs = [
        service("low"),
        service("high", submit=1, precedence=1),
        job("task", submit=10.01, seconds=20, precedence=9),
    ]
    settings = {"conflict": "kill", "t_lra": 1_000_000, "t_job": 10_000}
    trial = run(engine, jobs, settings, cell=cell(1, cpu=2_000))
    assert trial.of(LostRecord) == []
    first = trial.of(PlacedRecord, "high")[0].at
    # The one of higher precedence is served first; the other waits until the task has ended.
    assert first < 15 * SECOND
    assert [Why(why) for why in trial.of(RefusedRecord, "low")[0].whys] == [Why.NO_ROOM]
    assert trial.of(PlacedRecord, "low")[0].at > 30 * SECOND
