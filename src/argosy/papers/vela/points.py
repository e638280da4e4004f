"""The points of the Vela paper's figures, at each scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.papers.experiment import ExperimentPoint, Parameter
from argosy.papers.paper import Scale

PAPER: Final = "vela"
FIGURES: Final = ("4", "9")
SCALES: Final = {
    "smoke": Scale(name="smoke", about="a twentieth of the machines, jobs and arrivals"),
    "quick": Scale(name="quick", about="a tenth of the machines, jobs and arrivals; two seeds"),
    "full": Scale(name="full", about="the paper's clusters, jobs and settings; three seeds"),
}
#: Machines in each of the ten clusters; the paper has 2,000.
MACHINES: Final = {"smoke": 100, "quick": 200, "full": 2_000}
_SEEDS: Final = {"smoke": 1, "quick": 2, "full": 3}
#: In percent.
CLUSTERS: Final = {
    "smoke": (10, 50, 70),
    "quick": (10, 20, 30, 40, 50, 60, 70),
    "full": tuple(range(10, 101, 10)),
}
SAMPLED: Final = {"smoke": (4,), "quick": (4, 16), "full": (4, 8, 12, 16)}
#: Requests per second at the paper's size. Above 133 its clusters are full before the three minutes are
#: over.
RATES: Final = {"smoke": (54, 133), "quick": (15, 54, 94, 133), "full": (15, 54, 72, 94, 99, 133)}
CANDIDATES: Final = {"smoke": (1, 3), "quick": (1, 3), "full": (1, 2, 3, 5)}


def plan(scale: str, figures: Sequence[str]) -> list[ExperimentPoint]:
    return [
        ExperimentPoint(paper=PAPER, figure=name, parameters=case, seed=seed, scale=scale)
        for name in figures
        for case in _cases(scale, name)
        for seed in range(1, _SEEDS[scale] + 1)
    ]


def _cases(scale: str, figure: str) -> list[dict[str, Parameter]]:
    if figure == "4":
        return [
            {"clusters": clusters, "machines": machines}
            for clusters in CLUSTERS[scale]
            for machines in SAMPLED[scale]
        ]
    return [
        {"rate": rate, "candidates": candidates, "prefer": prefer}
        for prefer in ("highest", "lowest")
        for rate in RATES[scale]
        for candidates in CANDIDATES[scale]
    ]
