"""Points of Omega's experiments that somebody changed."""

from __future__ import annotations

import pytest

from argosy.model.errors import UnknownName
from argosy.papers.experiment import ExperimentPoint
from argosy.papers.omega.world import run_point


def test_machines_are_alike_or_mixed_and_nothing_else() -> None:
    parameters = {"machines": "5", "cell": 0.1, "hours": 0.25}
    point = ExperimentPoint(
        paper="omega", figure="13", parameters=parameters, seed=1, scale="smoke"
    )
    with pytest.raises(
        UnknownName, match="unknown value of machines: '5'; expected one of alike, mixed"
    ):
        run_point(point)
