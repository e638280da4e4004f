"""Omega (Schwarzkopf et al., EuroSys 2013): its figures as experiments.

points      which runs each figure is made of, at each scale
world       one run, and what is measured there
traces      figures 11 to 14 on the public trace
reading     what the modules of figures share
workload, schemes, two_level, load, planes, interference, conflicts, mapreduce
            figures, and what the paper says of them
variants    whether conclusions hold with other arrivals and another fill
guarantees  what the paper leaves for later: starvation, fairness, and fewer conflicts
"""

from __future__ import annotations

from typing import Final

from argosy.papers.omega import (
    conflicts,
    guarantees,
    interference,
    load,
    mapreduce,
    planes,
    schemes,
    two_level,
    variants,
    workload,
)
from argosy.papers.omega.points import FIGURES, PAPER, SCALES, plan
from argosy.papers.omega.traces import traced
from argosy.papers.omega.world import USUAL, run_point
from argosy.papers.paper import Makers, Paper, claimed_by, drawn_by

_MAKERS: Final[Makers] = {
    "2": (workload.draw_2, workload.claims_2),
    "3": (workload.draw_3, workload.claims_3),
    "4": (workload.draw_4, workload.claims_4),
    "5": (schemes.draw_5, schemes.claims_5),
    "6": (schemes.draw_6, schemes.claims_6),
    "7": (two_level.draw_7, two_level.claims_7),
    "8": (load.draw_8, load.claims_8),
    "9": (load.draw_9, load.claims_9),
    "10": (planes.draw_10, planes.claims_10),
    "11": (planes.draw_11, planes.claims_11),
    "12": (interference.draw_12, interference.claims_12),
    "13": (interference.draw_13, interference.claims_13),
    "14": (conflicts.draw_14, conflicts.claims_14),
    "15": (mapreduce.draw_15, mapreduce.claims_15),
    "16": (mapreduce.draw_16, mapreduce.claims_16),
    "guarantees": (guarantees.draw_guarantees, guarantees.claims_guarantees),
    "variants": (variants.draw_variants, variants.claims_variants),
}

OMEGA: Final = Paper(
    name=PAPER,
    title="Omega: flexible, scalable schedulers for large compute clusters",
    reference="Schwarzkopf, Konwinski, Abd-El-Malek, Wilkes; EuroSys 2013",
    scales=SCALES,
    figures=FIGURES,
    plan=plan,
    runner=run_point,
    draw=drawn_by(_MAKERS),
    claims=claimed_by(_MAKERS),
    usual=USUAL,
    traced=traced,
)
