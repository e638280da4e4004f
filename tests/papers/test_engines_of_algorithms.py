"""Which engine stands for each algorithm of the Medea paper, and with which settings."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.engines.registry import ENGINES
from argosy.host.scheduler import make_settings
from argosy.papers.medea.deployment import engine_of

MB = 2**20
SECONDS = 1_000_000
LONG: dict[str, Any] = {
    "t_job": 1_000,
    "t_task": 100,
    "attempts": 4,
    "long_running": ["lra"],
    "interval": 10 * SECONDS,
    "smallest": {"memory": 2_048 * MB},
}


@pytest.mark.parametrize(
    ("algorithm", "engine", "settings"),
    [
        ("yarn", "yarn", {"t_job": 1_000, "t_task": 100, "attempts": 1_000}),
        ("jkube", "jkube", LONG),
        ("jkube-plain", "jkube", {**LONG, "reading": "plain"}),
        ("jkube++", "jkube++", LONG),
        ("kube-modern", "kube-modern", LONG),
        ("medea", "medea", LONG),
        ("ilp", "medea", {**LONG, "algorithm": "ilp", "budget": 600 * SECONDS}),
        ("ilp-printed", "medea", {**LONG, "algorithm": "ilp-printed", "budget": 10 * SECONDS}),
        ("serial", "medea", {**LONG, "algorithm": "serial", "budget": 600 * SECONDS}),
    ],
)
def test_an_algorithm_is_an_engine_with_settings(
    algorithm: str, engine: str, settings: dict[str, Any]
) -> None:
    assert engine_of(algorithm) == (engine, settings)
    # The engine knows them all.
    make_settings(ENGINES[engine], settings)


def test_the_interval_is_the_given_one_where_there_is_one() -> None:
    assert engine_of("ilp", 3)[1]["interval"] == 3
    assert engine_of("jkube", 3)[1]["interval"] == 3
    assert "interval" not in engine_of("yarn", 3)[1]
