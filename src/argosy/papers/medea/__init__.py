"""Medea (Garefalakis et al., EuroSys 2018): its figures as experiments.

points        which runs each figure is made of, at each scale
world         which function runs a point:
              applications (2, 7), resilience (8), violations (9, 10), latency (11a, b), tasks (11c)
deployment    engines deploy applications in the simulated world (2, 7 to 10)
trial         a solver alone, for its time (11a, b)
performance   a model of what placement is worth to applications
statements    figures, and what the paper says of them
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.papers.medea.points import FIGURES, PAPER, SCALES, plan
from argosy.papers.medea.statements import figure_2, figure_7, figure_8, figure_11, figures_9_10
from argosy.papers.medea.world import run_point
from argosy.papers.paper import Makers, Paper, claimed_by, drawn_by

_MAKERS: Final[Makers] = {
    "2a": (figure_2.draw_2a, figure_2.claims_2a),
    "2b": (figure_2.draw_2b, figure_2.claims_2b),
    "2c": (figure_2.draw_2c, figure_2.claims_2c),
    "2d": (figure_2.draw_2d, figure_2.claims_2d),
    "7": (figure_7.draw_7, figure_7.claims_7),
    "8": (figure_8.draw_8, figure_8.claims_8),
    "9a": (figures_9_10.draw_9a, figures_9_10.claims_9a),
    "9b": (figures_9_10.draw_9b, figures_9_10.claims_9b),
    "9c": (figures_9_10.draw_9c, figures_9_10.claims_9c),
    "9d": (figures_9_10.draw_9d, figures_9_10.claims_9d),
    "10": (figures_9_10.draw_10, figures_9_10.claims_10),
    "11a": (figure_11.draw_11a, figure_11.claims_11a),
    "11b": (figure_11.draw_11b, figure_11.claims_11b),
    "11c": (figure_11.draw_11c, figure_11.claims_11c),
}


def notes(figures: Sequence[str]) -> list[str]:
    said = [
        "memory is the only resource, and in figures 9a, 10 and 11 the limit on workers is per"
        " application: with the limit over all applications and 8 cores a machine, the paper's 90 %"
        " cannot be reached",
    ]
    if {"2a", "2b", "2c", "2d", "7"} & set(figures):
        said.append(
            "figures 2 and 7 take times from a model fitted to the paper's own numbers; claims that"
            " depend on it end in '-model'"
        )
    return said


MEDEA: Final = Paper(
    name=PAPER,
    title="Medea: scheduling of long running applications in shared production clusters",
    reference="Garefalakis, Karanasos, Pietzuch, Suresh and Rao, EuroSys 2018",
    scales=SCALES,
    figures=FIGURES,
    plan=plan,
    runner=run_point,
    draw=drawn_by(_MAKERS),
    claims=claimed_by(_MAKERS),
    notes=notes,
)
