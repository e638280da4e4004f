"""Drawn pods, nodes, volumes, budgets and groups in clusters that engines schedule: all that the world
is told, all orders and all messages are as before. Of each run a digest is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drawn_pod_cluster import DrawnPodCluster
from pinned_digests import require_digests

PINNED = Path(__file__).parent / "pinned"
FLEETS: dict[str, list[dict[str, Any]]] = {
    "placing": [{"name": "first", "engine": "omega", "settings": {"preempt": True}}],
    "moving": [
        {
            "name": "first",
            "engine": "firmament",
            "settings": {
                "reschedule": True,
                "policy": "load-spreading",
                "migration": 1,
                "moves_per_minute": 600,
            },
        }
    ],
    "constrained": [{"name": "first", "engine": "kube-modern"}],
    "queueing": [{"name": "first", "engine": "yaq-d"}],
    "mixed": [
        {"name": "first", "engine": "kube", "takes": {"kinds": ["service", "special"]}},
        {"name": "second", "engine": "hawk", "takes": {"kinds": ["batch"]}},
    ],
    "offering": [{"name": "first", "engine": "mesos"}],
}
RUNS, STEPS = 12, 45


@pytest.mark.parametrize("fleet", FLEETS)
def test_drawn_pods_fare_as_before(fleet: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    outcomes = {}
    for seed in range(RUNS):
        commits = fleet == "placing" and seed % 2 == 0
        name = f"{fleet}-{seed}"
        number = seed + 1_000 * list(FLEETS).index(fleet)
        cluster = DrawnPodCluster(
            number,
            FLEETS[fleet],
            tmp_path / name,
            commits=commits,
            is_crowded=seed >= 4,
            is_grouped=seed >= 8,
        )
        outcomes[name] = cluster.run(STEPS)
    require_digests(PINNED / f"clusters-{fleet}.txt", outcomes, pytestconfig)
