"""Murmuration (Vijayakumar, Madhavapeddy, Kalyvianaki; SoCC 2024): its figures as experiments.

points      which runs each figure is made of, at each scale
jobs        the jobs of a run: drawn, or of a trace
world       one run
measures    what is measured there
cluster     figures 2 to 4 and 9 to 11, of the cluster, and what the paper says of them
simulated   figures 5 and 12 to 16, of the simulations, likewise
batching    how placements are told (sections 4.1 and 6.2.3), beside figure 15
"""

from __future__ import annotations

from typing import Final

from argosy.papers.murmuration import cluster, simulated
from argosy.papers.murmuration.jobs import traced
from argosy.papers.murmuration.points import FIGURES, PAPER, SCALES, plan
from argosy.papers.murmuration.world import run_point
from argosy.papers.paper import Makers, Paper, claimed_by, drawn_by

_MAKERS: Final[Makers] = {
    "2": (cluster.draw_2, cluster.claims_2),
    "3": (cluster.draw_3, cluster.claims_3),
    "4": (cluster.draw_4, cluster.claims_4),
    "5": (simulated.draw_5, simulated.claims_5),
    "9": (cluster.draw_9, cluster.claims_9),
    "10": (cluster.draw_10, cluster.claims_10),
    "11": (cluster.draw_11, cluster.claims_11),
    "12": (simulated.draw_12, simulated.claims_12),
    "13": (simulated.draw_13, simulated.claims_13),
    "14": (simulated.draw_14, simulated.claims_14),
    "15": (simulated.draw_15, simulated.claims_15),
    "16": (simulated.draw_16, simulated.claims_16),
}

MURMURATION: Final = Paper(
    name=PAPER,
    title="Scheduling for reduced tail task latencies in highly utilized datacenters",
    reference="Vijayakumar, Madhavapeddy, Kalyvianaki; SoCC 2024",
    scales=SCALES,
    figures=FIGURES,
    plan=plan,
    runner=run_point,
    draw=drawn_by(_MAKERS),
    claims=claimed_by(_MAKERS),
    traced=traced,
)
