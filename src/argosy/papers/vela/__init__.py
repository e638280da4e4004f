"""Vela (Pusztai et al., 2023): two of its experiments in simulation.

points     which runs each figure is made of, at each scale
world      the clusters of Table II, the distances, and how a point is run
tuning     figure 4: how many jobs fail, by the shares of clusters and machines sampled
conflicts  figure 9: conflicts with and without MultiBind, by the rate of arrivals
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.papers.paper import Makers, Paper, claimed_by, drawn_by
from argosy.papers.vela.conflicts import claims_9, draw_9
from argosy.papers.vela.points import FIGURES, PAPER, SCALES, plan
from argosy.papers.vela.tuning import claims_4, draw_4
from argosy.papers.vela.world import run_point

_MAKERS: Final[Makers] = {"4": (draw_4, claims_4), "9": (draw_9, claims_9)}


def notes(figures: Sequence[str]) -> list[str]:
    return [
        "figures 5 to 8 and Table III are not run yet",
        "the paper gives neither arrival rates nor network distances for figure 4, nor the time that"
        " agents take: docs/papers/vela.md has the values used",
    ]


VELA: Final = Paper(
    name=PAPER,
    title="Vela: a 3-phase distributed scheduler for the edge-cloud continuum",
    reference="Pusztai, Nastic, Raith, Dustdar, Vij and Xiong, 2023",
    scales=SCALES,
    figures=FIGURES,
    plan=plan,
    runner=run_point,
    draw=drawn_by(_MAKERS),
    claims=claimed_by(_MAKERS),
    notes=notes,
)
