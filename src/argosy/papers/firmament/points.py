"""The points of the Firmament paper's figures, at each scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

from argosy.papers.experiment import ExperimentPoint, Parameter, PointResult
from argosy.papers.firmament import links, replays, solving
from argosy.papers.paper import Scale

PAPER: Final = "firmament"
FIGURES: Final = (
    *("3", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19"),
    "footnote 3",
)
SCALES: Final = {
    "smoke": Scale(name="smoke", about="40 machines, a few points: only to see that it works"),
    "quick": Scale(
        name="quick",
        about="solvers on up to 1,250 machines and schedulers on 1,000 instead of 12,500; one seed",
    ),
    "full": Scale(name="full", about="the paper's 12,500 machines"),
}
Case = dict[str, Parameter]
_RUNNERS: Final = {
    "3": solving.spread_of_scratch,
    "7": solving.scratch,
    "8": solving.scratch,
    "9": solving.spreading,
    "10": solving.approximate,
    "11": solving.incremental,
    "12": solving.heuristic,
    "13": solving.incremental,
    "14": replays.latency,
    "15": replays.latency,
    "16": replays.latency,
    "17": replays.short_tasks,
    "18": replays.latency,
    "19": links.run_links,
    "footnote 3": solving.spread_of_scratch,
}


def run_point(point: ExperimentPoint) -> PointResult:
    return _RUNNERS[point.figure](point)


def plan(scale: str, figures: Sequence[str]) -> list[ExperimentPoint]:
    return [
        ExperimentPoint(paper=PAPER, figure=figure, parameters=case, seed=seed, scale=scale)
        for figure in figures
        for case in _cases(scale, figure)
        for seed in _seeds(scale, figure)
    ]


def _seeds(scale: str, figure: str) -> Sequence[int]:
    """Locality differs from seed to seed by more than between schedulers."""
    return (1, 2, 3, 4) if figure == "15" and scale == "quick" else (1,)


def _over(**lists: Sequence[Parameter]) -> Iterator[Case]:
    for values in product(*lists.values()):
        yield dict(zip(lists, values, strict=True))


def _pick(scale: str, smoke: Parameter, quick: Parameter, full: Parameter) -> Parameter:
    return {"smoke": smoke, "quick": quick, "full": full}[scale]


def _sizes(scale: str) -> Sequence[Parameter]:
    sizes: dict[str, Sequence[Parameter]] = {
        "smoke": [20, 40],
        "quick": [50, 150, 450, 1_250],
        "full": [50, 450, 1_250, 5_000, 12_500],
    }
    return sizes[scale]


def _cases(scale: str, figure: str) -> list[Case]:
    size = _pick(scale, 40, 450, 12_500)
    both = ("relaxation", "cost-scaling")
    networks = _pick(scale, 2, 11, 5)
    match figure:
        case "3":
            return list(
                _over(machines=_sizes(scale), algorithm=("cost-scaling",), networks=(networks,))
            )
        case "footnote 3":
            return list(
                _over(
                    machines=(size,),
                    utilisation=(0.9,),
                    algorithm=("cost-scaling",),
                    alpha=(2, 9, 16),
                    networks=(networks,),
                )
            )
        case "7":
            most = {"cycle-cancelling": 50, "shortest-paths": 1_250, solving.TEXTBOOK: 450}
            algorithms = (*both, "shortest-paths", solving.TEXTBOOK, "cycle-cancelling")
            cases = _over(machines=_sizes(scale), algorithm=algorithms)
            return [
                case
                for case in cases
                if int(case["machines"]) <= most.get(str(case["algorithm"]), 12_500)
            ]
        case "8":
            shares: list[Parameter] = (
                [0.9, 1.05] if scale == "smoke" else [0.9, 0.93, 0.97, 1.0, 1.05]
            )
            cases = _over(utilisation=shares, algorithm=both)
            return [
                {**case, "machines": size, "running": 0.9 / float(case["utilisation"])}
                for case in cases
            ]
        case "9":
            counts: list[Parameter] = [50, 200] if scale == "smoke" else [500, 1_000, 3_000, 5_000]
            return list(
                _over(machines=(_pick(scale, 40, 1_250, 12_500),), tasks=counts, algorithm=both)
            )
        case "10":
            return list(
                _over(machines=(_pick(scale, 40, 150, 1_250),), utilisation=(0.97,), algorithm=both)
            )
        case "11":
            scaling = _over(
                policy=("quincy", "load-spreading"),
                machines=(size,),
                utilisation=(0.9,),
                algorithm=("cost-scaling",),
            )
            relaxing = _over(
                policy=("quincy", "load-spreading"),
                machines=(_pick(scale, 40, 450, 1_250),),
                utilisation=(0.5, 0.97),
                algorithm=("relaxation",),
            )
            return [*scaling, *relaxing]
        case "12":
            fill: list[Parameter] = [0.97] if scale == "smoke" else [0.9, 0.93, 0.97, 1.0]
            relaxing = _over(
                machines=(size,),
                utilisation=fill,
                algorithm=("relaxation",),
                prioritised=("yes", "as published", "no"),
            )
            removing = [
                {
                    "machines": size,
                    "algorithm": "cost-scaling",
                    "scratch": "no",
                    "changes": _pick(scale, 3, 15, 5),
                    "utilisation": fill,
                    "start": start,
                    "drained": drained,
                    "case": f"{fill:.0%} in use, start {start}",
                }
                for fill, start in ((0.9, "fitted"), (0.9, "as published"), (0.5, "as published"))
                for drained in ("yes", "no")
            ]
            return [*relaxing, *removing]
        case "13":
            return list(
                _over(
                    machines=(size,),
                    utilisation=(0.9,),
                    first=("relaxation",),
                    algorithm=("cost-scaling",),
                    handed=("flow and prices", "flow"),
                    refined=("yes", "no"),
                )
            )
        case "17":
            return _short(scale)
        case "19":
            jobs = _pick(scale, 20, 400, 2_000)
            traffic: tuple[Case, ...] = (
                {"background": "no", "load": 0.6},
                {"background": "yes", "load": 0.64},
            )
            only: Case = {"links": "receivers", "streams": 1}
            links_both: list[Case] = [{"links": "both", "streams": n} for n in (1, links.STREAMS)]
            shares = [links.WANTED] if scale == "smoke" else [links.WANTED, 0.2, 0.3, 0.5, 1.0]
            receivers = [
                {**case, **only, "scheduler": name, "wanted": share, "jobs": jobs}
                for name in (*links.SETTINGS, links.IDLE)
                if name != links.OBSERVED
                for share in (shares if name == "firmament" else [links.WANTED])
                for case in traffic
            ]
            senders = [
                {**case, **both_ends, "scheduler": name, "wanted": links.WANTED, "jobs": jobs}
                for both_ends in links_both
                for name in (*links.SETTINGS, links.IDLE)
                for case in traffic
            ]
            return [*receivers, *senders]
    return _replayed(scale, figure)


def _replayed(scale: str, figure: str) -> list[Case]:
    machines = (_pick(scale, 40, 1_000, 12_500),)
    seconds = (_pick(scale, 5.0, 15.0, 120.0),)
    match figure:
        case "14":
            speed: Parameter = 1.0 if scale == "full" else 10.0
            names = ("firmament", "race", "cost-scaling")
            return list(
                _over(scheduler=names, machines=machines, seconds=seconds, speed_up=(speed,))
            )
        case "15":
            return list(
                _over(
                    scheduler=("firmament", "race", "cost-scaling"),
                    machines=machines,
                    seconds=seconds,
                    speed_up=(10.0,),
                    threshold=(0.14, 0.02),
                )
            )
        case "16":
            solvers = ("firmament", "race", "relaxation", "cost-scaling")
            over = _over(
                scheduler=solvers,
                machines=machines,
                seconds=seconds,
                speed_up=(10.0,),
                utilisation=(1.05,),
            )
            transient = _over(
                scheduler=solvers,
                machines=(_pick(scale, 40, 300, 12_500),),
                seconds=(_pick(scale, 4.0, 40.0, 480.0),),
                speed_up=(10.0,),
                utilisation=(0.97,),
                surge=(0.08,),
            )
            return [*over, *transient]
    speeds: list[Parameter] = [1.0, 50.0] if scale == "smoke" else [1.0, 50.0, 150.0, 300.0]
    short = (_pick(scale, 2.0, 5.0, 30.0),)
    alone = ("firmament", "race", "relaxation", "cost-scaling")
    return list(_over(scheduler=alone, machines=machines, seconds=short, speed_up=speeds))


def _short(scale: str) -> list[Case]:
    """Durations around the paper's breaking points, and a fifth of them."""
    tried: dict[int, list[float]] = {100: [20.0, 5.0, 2.0, 1.0], 1_000: [750.0, 375.0, 75.0]}
    if scale == "smoke":
        tried = {100: [20.0]}
    if scale == "full":
        tried[10_000] = [10_000.0, 5_000.0, 1_000.0]
    jobs = _pick(scale, 50, 400, 2_000)
    return [
        {"machines": machines, "slots": 1, "milliseconds": duration, "jobs": jobs}
        for machines, durations in tried.items()
        for duration in durations
    ]
