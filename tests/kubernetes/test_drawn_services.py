"""Schedulers of drawn clusters, with growing jobs, metrics, shadows, recordings and plans: what they
write, log and report is as before. Of each run a digest is kept."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from drawn_pod_service import run_service
from pinned_digests import require_digests

from argosy.model.errors import ArgosyError
from argosy.model.jobs import Job, TaskGroup
from argosy.model.resources import Resources
from argosy.service.kubernetes.agent_terms import PodTerms
from argosy.service.kubernetes.overseer import PodOverseer

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
    for seed in range(16):
        fleet = FLEETS[seed % 4]
        folder = tmp_path / str(seed)
        outcomes[f"service-{seed}"] = run_service(
            seed, fleet, folder, monkeypatch, lambda service: service.run(60)
        )
    require_digests(PINNED / "services.txt", outcomes, pytestconfig)


def agent_terms(seed: int) -> str:
    dice = Random(f"terms {seed}")
    overseer = PodOverseer("argosy", serves_commits=True)
    overseer.is_leading = dice.random() < 0.8
    overseer.pods.required = {"node rules": "true"} if dice.random() < 0.7 else {}
    terms, lines = PodTerms(overseer), []
    for _ in range(8):
        extras = dice.choice(({}, {"gpu": 1}, {"pods": 3}))
        request = Resources(dice.randrange(3_000), 2**20, extras)
        demands = dice.choice(({"image": "i"}, {"image": ""}, {}))
        requires = dice.choice(({}, {"disk": "ssd"}, {"node rules": "false"}))
        group = TaskGroup(count=1, request=request, requires=requires, demands=demands)
        job = Job(id="job", groups=(group,))
        lines.append(f"{terms.request(request)!r} {terms.requires(requires)}")
        try:
            lines.append(repr(terms.job(job)))
        except ArgosyError as error:
            fields = (error.field, error.expected, error.hint)
            lines.append(f"{type(error).__name__} {error} {fields}")
    return "\n".join(lines)


def test_terms_of_agents_are_as_before(pytestconfig: pytest.Config) -> None:
    outcomes = {f"terms-{seed}": agent_terms(seed) for seed in range(20)}
    require_digests(PINNED / "terms.txt", outcomes, pytestconfig)


def test_drawn_clusters_are_shadowed_recorded_and_planned_as_before(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = {}
    for seed in range(10):
        fleet = [
            FLEETS[seed % 4][0],
            {**FLEETS[(seed + 1) % 4][0], "name": "second"},
        ]
        folder = tmp_path / str(seed)
        outcomes[f"shadow-{seed}"] = run_service(
            seed, fleet, folder, monkeypatch, lambda service: service.shadow(40)
        )
    require_digests(PINNED / "shadows.txt", outcomes, pytestconfig)
