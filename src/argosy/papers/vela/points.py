"""The points of the Vela paper's figures, at each scale, and of comparisons that it only describes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.papers.experiment import ExperimentPoint, Parameter
from argosy.papers.paper import Scale

PAPER: Final = "vela"
TABLE_3: Final = "table 3"
INSTANCES: Final = "instances"
LOSSES: Final = "losses"
SAMPLING: Final = "sampling"
BASELINE: Final = "baseline"
LIVE: Final = "live"
FIGURES: Final = (
    *("4", "5", "6", "7", "8", "9", TABLE_3),
    *(INSTANCES, LOSSES, SAMPLING, BASELINE, LIVE),
)
#: Figures that are drawn from the points of another.
DRAWN_FROM: Final = {"6": "5", "7": "5", "8": "5", TABLE_3: "9"}
SCALES: Final = {
    "smoke": Scale(
        name="smoke", about="a twentieth of the machines, jobs and arrivals; a few points"
    ),
    "quick": Scale(
        name="quick",
        about="a tenth of the machines, jobs and arrivals; figures 5 to 8 as in the paper, run once;"
        " live with the paper's clusters",
    ),
    "full": Scale(name="full", about="the paper's clusters, jobs and settings"),
}
#: Machines in each of the ten clusters; the paper has 2,000.
MACHINES: Final = {"smoke": 100, "quick": 200, "full": 2_000}

#: Figure 4: shares of clusters and of their machines in percent, and seeds per setting.
CLUSTERS: Final = {
    "smoke": (10, 50, 70),
    "quick": (10, 20, 30, 40, 50, 60, 70),
    "full": tuple(range(10, 101, 10)),
}
SAMPLED: Final = {"smoke": (4,), "quick": (4, 16), "full": (4, 8, 12, 16)}
#: The paper's own choice is between settings with 4 %.
SEEDS_4: Final = {"smoke": (1, 1), "quick": (3, 1), "full": (5, 1)}

#: Figures 5 to 8: machines in all clusters, jobs, and repetitions.
SIZES: Final = {
    "smoke": (1_000, 5_000, 10_000),
    "quick": (1_000, 5_000, 10_000, 15_000, 20_000),
    "full": (1_000, 5_000, 10_000, 15_000, 20_000),
}
JOBS: Final = {"smoke": 200, "quick": 1_000, "full": 1_000}
REPETITIONS: Final = {"smoke": 1, "quick": 1, "full": 3}

#: Figure 9 and table 3: requests per second at the paper's size.
RATES: Final = {
    "smoke": (54, 133),
    "quick": (15, 54, 94, 99, 133, 290),
    "full": (15, 54, 72, 94, 99, 133, 175, 212, 254, 290),
}
#: The rate with most conflicts is also run with other numbers of candidates.
PEAK: Final = 133
MORE_CANDIDATES: Final = {"smoke": (), "quick": (2, 5), "full": (2, 5)}
#: With jobs that end, so that clusters do not fill up.
RATES_WITH_ENDS: Final = {
    "smoke": (133,),
    "quick": (99, 133, 290),
    "full": (99, 133, 175, 212, 254, 290),
}
ENDS_AFTER: Final = 60
#: Ways to sample: while the clusters fill up, and in a burst.
ASKS: Final = (
    *("informed", "uninformed", "learned"),
    *("agents", "machines", "machines, 20 at once", "in turn"),
)
ORDERS: Final = ("highest", "lowest")
#: Agents in processes: machines of each, for how many seconds jobs come, and how many a second.
LIVE_MACHINES: Final = {"smoke": 100, "quick": 2_000, "full": 2_000}
LIVE_SECONDS: Final = {"smoke": 5, "quick": 20, "full": 180}
LIVE_RATES: Final = {"smoke": (10,), "quick": (10, 94), "full": (10, 94)}


def plan(scale: str, figures: Sequence[str]) -> list[ExperimentPoint]:
    drawn = dict.fromkeys(DRAWN_FROM.get(figure, figure) for figure in figures)
    return [
        ExperimentPoint(paper=PAPER, figure=figure, parameters=case, seed=seed, scale=scale)
        for figure in drawn
        for case, seeds in _cases(scale, figure)
        for seed in range(1, seeds + 1)
    ]


def runs_alone(point: ExperimentPoint) -> bool:
    """Whether it measures real time."""
    return point.figure == LIVE and point.parameters["how"] == "processes"


def _cases(scale: str, figure: str) -> list[tuple[dict[str, Parameter], int]]:
    """Parameters, and with how many seeds."""
    if figure == "4":
        chosen, others = SEEDS_4[scale]
        return [
            ({"clusters": clusters, "machines": machines}, chosen if machines == 4 else others)
            for clusters in CLUSTERS[scale]
            for machines in SAMPLED[scale]
        ]
    if figure == "5":
        return [
            ({"machines": size, "sample": sample}, REPETITIONS[scale])
            for sample in ("share", "number")
            for size in SIZES[scale]
        ]
    if figure == "9":
        return [(case, 1) for case in _workload(scale)]
    if figure == LIVE:
        return [
            ({"how": how, "rate": rate}, 1)
            for rate in LIVE_RATES[scale]
            for how in ("processes", "distances", "test bed")
        ]
    return [(case, 1) for case in _COMPARED[figure]]


def _workload(scale: str) -> list[dict[str, Parameter]]:
    cases: list[dict[str, Parameter]] = [
        {"rate": rate, "candidates": candidates, "prefer": prefer, "ends": 0}
        for prefer in ORDERS
        for rate in RATES[scale]
        for candidates in (1, 3, *(MORE_CANDIDATES[scale] if rate == PEAK else ()))
    ]
    cases += [
        {"rate": rate, "candidates": 3, "prefer": "highest", "ends": ENDS_AFTER}
        for rate in RATES_WITH_ENDS[scale]
    ]
    return cases


#: The same at every scale. `share`: what part of the paper's samplers and processors each instance has.
_COMPARED: Final[dict[str, list[dict[str, Parameter]]]] = {
    INSTANCES: [
        {"instances": count, "share": share, "rate": rate}
        for count, share, rate in (
            *((1, 1.0, 94), (2, 0.5, 94), (4, 0.25, 94)),
            *((1, 1.0, 290), (2, 1.0, 290), (4, 1.0, 290)),
        )
    ],
    LOSSES: [{"lost": lost} for lost in ("nothing", "agent", "instance")],
    SAMPLING: [{"asks": asks} for asks in ASKS],
    BASELINE: [
        {"engine": engine, "placement": placement, "instances": count, "rate": 94}
        for engine, placement, count in (
            ("vela", "highest", 1),
            *(("omega", "worst-fit", count) for count in (1, 8, 32)),
            ("omega", "first-fit", 8),
        )
    ],
}
