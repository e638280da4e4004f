"""The points of the Medea paper's figures, at each scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.papers.experiment import ExperimentPoint, Parameter
from argosy.papers.medea.applications import STORM
from argosy.papers.medea.resilience import SAID
from argosy.papers.medea.violations import BETWEEN, SMALL
from argosy.papers.paper import Scale

PAPER: Final = "medea"
FIGURES: Final = (
    *("2a", "2b", "2c", "2d", "7", "8"),
    *("9a", "9b", "9c", "9d", "10", "11a", "11b", "11c"),
)
#: Figures drawn from another figure's points.
DRAWN_FROM: Final = {"10": "9a"}

SCALES: Final = {
    "smoke": Scale(name="smoke", about="a tenth of the cell: only to see that it works"),
    "quick": Scale(name="quick", about="the paper's cells; one seed, fewer steps in figure 11"),
    "full": Scale(name="full", about="the paper's cells and steps, three seeds"),
}

HEURISTICS: Final = ("node-candidates", "tag-popularity", "serial")
PLAIN: Final = tuple(f"{name}-plain" for name in HEURISTICS)
FIRST_FIT: Final = tuple(f"{name}-first-fit" for name in HEURISTICS)
#: The paper's algorithms, with its heuristics in the plainest reading.
PAPERS_OWN: Final = ("ilp", *PLAIN, "jkube", "jkube++")
#: For comparison: a heuristic that scores violations, first-fit heuristics, other readings of
#: Kubernetes, and one that ignores constraints.
BESIDE: Final = ("node-candidates", *FIRST_FIT, "jkube-plain", "kube-modern", "yarn")
ALGORITHMS: Final = PAPERS_OWN + BESIDE
SYSTEMS: Final = ("ilp", "jkube", "jkube++", "yarn")
#: What grows with the number of applications per interval in figure 9c: how many come in 10 s, or the
#: interval.
LONGER: Final = ("queue", "interval")


def plan(scale: str, figures: Sequence[str]) -> list[ExperimentPoint]:
    names = dict.fromkeys(DRAWN_FROM.get(figure, figure) for figure in figures)
    seeds = 3 if scale == "full" else 1
    return [
        ExperimentPoint(paper=PAPER, figure=name, parameters=case, seed=seed, scale=scale)
        for name in names
        for case in _cases(scale, name)
        for seed in range(1, seeds + 1)
    ]


def _cases(scale: str, figure: str) -> list[dict[str, Parameter]]:
    is_smoke = scale == "smoke"
    few: tuple[str, ...] = ("ilp", "jkube") if is_smoke else ALGORITHMS
    chosen: tuple[str, ...]
    match figure:
        case "2a":
            return [{"wanted": wanted} for wanted in STORM]
        case "2b":
            return [{"wanted": wanted} for wanted in ("none", "anti-affinity")]
        case "2c" | "2d":
            limits = (1, 2, 5, 10) if figure == "2c" else (1, 2, 4, 8, 16, 32)
            return [{"limit": limit, "load": load} for load in (0.05, 0.7) for limit in limits]
        case "7":
            return [{"algorithm": name} for name in SYSTEMS]
        case "8":
            return [{"algorithm": n, "said": s} for s in SAID for n in ("ilp", "jkube", "yarn")]
        case "9a":
            small = () if is_smoke else tuple(SMALL)
            return [{"algorithm": name} for name in (*few, *small)]
        case "9b":
            shares = (0.3,) if is_smoke else (0.1, 0.3, 0.5, 0.6)
            return [{"algorithm": name, "tasks": share} for name in few for share in shares]
        case "9c":
            periods = (1, 4) if is_smoke else (1, 2, 4, 8)
            chosen = few if is_smoke else ("ilp", "node-candidates-plain", "jkube", "jkube++")
            return [
                {"algorithm": name, "period": period, "longer": longer}
                for longer in LONGER
                for name in (chosen if longer == "queue" else chosen[:2])
                for period in periods
            ]
        case "9d":
            apps = (2,) if is_smoke else (1, 2, 4, 6, 8, 10)
            return [
                {"algorithm": name, "complexity": size, "between": between}
                for between in BETWEEN
                for name in (few if is_smoke or between == "affinity" else PAPERS_OWN)
                for size in apps
            ]
        case "11a":
            sizes = {"smoke": (50,), "quick": (50, 500, 5_000), "full": (50, 500, 1_000, 5_000)}
            chosen = ("ilp", "ilp-solved", *HEURISTICS, "jkube")
            return [{"algorithm": n, "machines": m} for m in sizes[scale] for n in chosen]
        case "11b":
            parts = (0.2,) if is_smoke else (0.2, 0.4)
            parts = (0.1, *parts, 0.6, 0.8) if scale == "full" else parts
            return [{"design": d, "share": s} for s in parts for d in ("medea", "ilp-all")]
        case "11c":
            return [{"engine": engine} for engine in ("yarn", "medea")]
    raise AssertionError(figure)
