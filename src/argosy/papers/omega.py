"""Omega (Schwarzkopf et al., EuroSys 2013): its figures as experiments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.papers.omega_claims import claims
from argosy.papers.omega_figures import draw
from argosy.papers.omega_points import ABSENT, FIGURES, NEEDS, PAPER, SCALES, is_installed, plan
from argosy.papers.omega_world import run_point
from argosy.papers.paper import Paper


def notes(figures: Sequence[str]) -> list[str]:
    """What is not there of the figures wanted; of all of them, if all are wanted."""
    missing = [
        f"figure {figure}: engine {NEEDS[figure]!r} is not installed"
        for figure in figures
        if not is_installed(figure)
    ]
    if tuple(figures) == FIGURES:
        missing += [f"figure {figure}: {why}" for figure, why in ABSENT.items()]
    return missing


OMEGA: Final = Paper(
    name=PAPER,
    title="Omega: flexible, scalable schedulers for large compute clusters",
    reference="Schwarzkopf, Konwinski, Abd-El-Malek, Wilkes; EuroSys 2013",
    scales=SCALES,
    figures=FIGURES,
    plan=plan,
    runner=run_point,
    draw=draw,
    claims=claims,
    notes=notes,
)
