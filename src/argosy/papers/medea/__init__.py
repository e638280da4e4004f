"""Medea (Garefalakis et al., EuroSys 2018): its figures as experiments.

points      which runs each figure is made of, at each scale
world       one run, and what is measured there
figures     what is drawn
statements  what the paper says, and whether it holds
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.papers.medea.figures import draw
from argosy.papers.medea.points import FIGURES, PAPER, SCALES, plan
from argosy.papers.medea.statements import claims
from argosy.papers.medea.world import run_point
from argosy.papers.paper import Paper


def notes(figures: Sequence[str]) -> list[str]:
    return [
        "figure 7 is not run: it needs a model of how HBase and TensorFlow perform under collocation",
        "figure 11c is not run: task latency beside applications on a Google-like trace",
        "memory is the only resource, and but in figure 9b the limit on workers is per application: with"
        " the limit over all applications and 8 cores a machine, the paper's 90 % cannot be reached",
    ]


MEDEA: Final = Paper(
    name=PAPER,
    title="Medea: scheduling of long running applications in shared production clusters",
    reference="Garefalakis, Karanasos, Pietzuch, Suresh and Rao, EuroSys 2018",
    scales=SCALES,
    figures=FIGURES,
    plan=plan,
    runner=run_point,
    draw=draw,
    claims=claims,
    notes=notes,
)
