"""Firmament (Gog et al., OSDI 2016): its figures as experiments.

points      which runs each figure is made of, at each scale
workload    the simulated cluster and its drawn jobs
traces      jobs of the public Google trace
world       a replayed workload with measured decisions
solving     solvers alone: figures 3 and 7 to 13
replays     whole schedulers: figures 14 to 18
transfers   transfers over shared links
links       forty machines with shared links: figure 19
figures     charts
claims      the paper's claims, and what was measured
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.papers.firmament.claims import claims
from argosy.papers.firmament.figures import draw
from argosy.papers.firmament.points import FIGURES, PAPER, SCALES, plan, run_point
from argosy.papers.firmament.traces import traced
from argosy.papers.paper import Paper


def notes(figures: Sequence[str]) -> list[str]:
    told = []
    if {"14", "15", "16", "17", "18"} & {*figures}:
        told.append(
            "without --trace, the Google trace's jobs are rebuilt from what the papers say of them"
        )
    return told


FIRMAMENT: Final = Paper(
    name=PAPER,
    title="Firmament: fast, centralized cluster scheduling at scale",
    reference="Gog, Schwarzkopf, Gleave, Watson, Hand; OSDI 2016",
    scales=SCALES,
    figures=FIGURES,
    plan=plan,
    runner=run_point,
    draw=draw,
    claims=claims,
    notes=notes,
    traced=traced,
)
