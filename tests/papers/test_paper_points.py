"""Single points of papers at their smallest scale: everything that they measure, except real time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from golden_log import require_golden

from argosy.papers.experiment import ExperimentPoint, PointResult
from argosy.papers.registry import PAPERS

HERE = Path(__file__).parent
#: Of each paper: the figures whose points are run, and the parameter of which each value is.
CHOSEN: Final = {
    "omega": {
        "5": "scheme", "7": "scheme", "8": "", "9": "", "10": "scheme", "11": "", "12": "",
        "13": "placement", "14": "transaction", "15": "policy",
    },
    "medea": {
        "2a": "wanted", "2b": "", "2c": "load", "2d": "load", "7": "algorithm", "8": "said",
        "9a": "", "9b": "", "9c": "", "9d": "",
    },
    "murmuration": {
        "3": "system", "5": "", "10": "", "12": "system", "13": "", "14": "", "15": "told", "16": "",
    },
    "vela": {"6": "", "sampling": "", "baseline": "engine"},
    "firmament": {
        "3": "", "7": "", "8": "", "9": "", "10": "", "12": "", "19": "scheduler",
    },
}  # fmt: skip
#: Measured by a clock.
TIMED: Final = {"seconds", "warm", "cold", "within", "p1", "p25", "p75", "p99", "largest"}
#: A solver with a limit of real time.
LIMITED: Final = {"ilp"}


def points(paper: str) -> Iterator[ExperimentPoint]:
    """The last point of each value of the parameter; the last of all, if there is none."""
    for figure, varied in CHOSEN[paper].items():
        last: dict[object, ExperimentPoint] = {}
        for point in PAPERS[paper].plan("smoke", [figure]):
            if point.parameters.get("algorithm") not in LIMITED:
                last[point.parameters.get(varied, "")] = point
        yield from last.values()


def told(result: PointResult) -> Iterator[str]:
    for name, value in result.values.items():
        if name not in TIMED:
            yield f"{name} {value:.6g}"
    for name, values in result.series.items():
        if name not in TIMED:
            yield f"{name}: {len(values)} values, {sum(values):.6g} in all"


@pytest.mark.parametrize("name", CHOSEN)
def test_what_points_measure_is_pinned(name: str, request: pytest.FixtureRequest) -> None:
    lines = []
    for point in points(name):
        lines.append(str(point))
        lines.append("    " + "; ".join(told(PAPERS[name].runner(point))))
    update = request.config.getoption("--update-golden")
    require_golden(f"points_{name}", "\n".join(lines) + "\n", update=update, folder=HERE)
