"""Vela (Pusztai et al., 2023): its experiments in simulation, and what it asserts without measuring.

points          which runs each figure is made of, at each scale
world           the clusters of Table II, the distances, and the paper's scheduler
trials          how each kind of point is run
tuning          figure 4: how many jobs fail, by the shares of clusters and machines sampled
infrastructure  figures 5 to 8: times by the number of machines
conflicts       figure 9: conflicts with and without MultiBind, by the rate of arrivals
workload        table III: queueing, decisions and throughput, by the rate of arrivals
comparisons     several instances, losses, other ways to sample, and schedulers that read everything
processes       agents and a scheduler as processes of their own
live            the same clusters in such processes, run only if asked for
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.papers.paper import Makers, Paper, claimed_by, drawn_by
from argosy.papers.vela import comparisons as compared
from argosy.papers.vela.conflicts import claims_9, draw_9
from argosy.papers.vela.infrastructure import claims_5, claims_alone, draw_5, draw_alone
from argosy.papers.vela.live import claims_live, draw_live
from argosy.papers.vela.points import (
    BASELINE,
    FIGURES,
    INSTANCES,
    LIVE,
    LOSSES,
    PAPER,
    SAMPLING,
    SCALES,
    TABLE_3,
    plan,
    runs_alone,
)
from argosy.papers.vela.trials import run_point
from argosy.papers.vela.tuning import claims_4, draw_4
from argosy.papers.vela.workload import claims_table_3, draw_table_3

_MAKERS: Final[Makers] = {
    "4": (draw_4, claims_4),
    "5": (draw_5, claims_5),
    **{figure: (draw_alone(figure), claims_alone(figure)) for figure in ("6", "7", "8")},
    "9": (draw_9, claims_9),
    TABLE_3: (draw_table_3, claims_table_3),
    INSTANCES: (compared.draw_instances, compared.claims_instances),
    LOSSES: (compared.draw_losses, compared.claims_losses),
    SAMPLING: (compared.draw_sampling, compared.claims_sampling),
    BASELINE: (compared.draw_baseline, compared.claims_baseline),
    LIVE: (draw_live, claims_live),
}


def notes(figures: Sequence[str]) -> list[str]:
    told = [
        "the paper gives neither network distances, nor the time that agents and its scheduler compute,"
        " nor arrival rates for figures 4 to 8: docs/papers/vela.md has the values used",
    ]
    if LIVE in figures:
        told.append("live: other load on this computer makes its times longer")
    else:
        told.append("everything is simulated; --figure live starts agents as processes")
    return told


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
    on_request=(LIVE,),
    alone=runs_alone,
)
