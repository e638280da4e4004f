"""Schedulers of drawn clusters, with growing jobs, metrics, shadows, recordings and plans: what they
write, log and report is as before. Of each run a digest is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drawn_pod_service import run_service
from pinned_digests import require_digests

PINNED = Path(__file__).parent / "pinned"
FLEETS: list[list[dict[str, Any]]] = [
    [{"name": "first", "engine": "omega", "settings": {"preempt": True}}],
    [{"name": "first", "engine": "kube"}],
    [{"name": "first", "engine": "firmament"}],
    [{"name": "first", "engine": "yaq-d"}],
]


def test_drawn_clusters_are_scheduled_as_before(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = {}
    for seed in range(12):
        fleet = FLEETS[seed % 4]
        folder = tmp_path / str(seed)
        outcomes[f"service-{seed}"] = run_service(
            seed, fleet, folder, monkeypatch, lambda service: service.run(60)
        )
    require_digests(PINNED / "services.txt", outcomes, pytestconfig)


def test_drawn_clusters_are_shadowed_recorded_and_planned_as_before(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = {}
    for seed in range(8):
        fleet = [
            FLEETS[seed % 4][0],
            {**FLEETS[(seed + 1) % 4][0], "name": "second"},
        ]
        folder = tmp_path / str(seed)
        outcomes[f"shadow-{seed}"] = run_service(
            seed, fleet, folder, monkeypatch, lambda service: service.shadow(40)
        )
    require_digests(PINNED / "shadows.txt", outcomes, pytestconfig)
