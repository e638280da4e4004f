"""Whole pages of a small run and of a small comparison, element by element; drawings as digests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import msgspec
import pytest
from golden_log import require_golden

from argosy.experiments.execute import execute_in_memory
from argosy.model.scenario import Scenario
from argosy.report.compare_report import compare_page
from argosy.report.comparison import compare
from argosy.report.markdown import compare_markdown, run_markdown
from argosy.report.metrics import find_metric
from argosy.report.notable_jobs import count_unfinished, notable_jobs, notable_sections
from argosy.report.over_time import time_unit
from argosy.report.overall import overall
from argosy.report.run_report import run_page
from argosy.scenarios.ignored_demands import IgnoredDemand
from argosy.testing.builders import SECOND, cell, job, scenario
from argosy.version import __version__

#: How parts of drawings begin.
DRAWN = (
    "<rect",
    "<path",
    "<text",
    "<line",
    "<circle",
    "<polyline",
    "<title",
    "<g",
    "</g",
    "</rect",
)


def small(engine: str, seed: int = 1) -> Scenario:
    jobs = [
        job("web", 3, seconds=None, kind="service"),
        job("etl", 20, cpu=2_000, seconds=5),
        job("late", 2, seconds=3, submit=4, owner="ann"),
        job("long", 1, seconds=100, submit=5),
        job("giant", cpu=64_000),
    ]
    settings = {"t_job": 1_000, "t_task": 0} if engine == "omega" else {}
    spec = scenario(engine, jobs, cell=cell(4), replicas=1, horizon=60 * SECOND, settings=settings)
    return msgspec.structs.replace(spec, seed=seed)


def elements(page: str) -> Iterator[str]:
    body = page.partition("</style>")[2].replace(__version__, "VERSION")
    for drawn, group in groupby(
        body.replace("><", ">\n<").splitlines(), lambda element: element.startswith(DRAWN)
    ):
        found = list(group)
        if drawn:
            digest = hashlib.sha256("\n".join(found).encode()).hexdigest()[:12]
            yield f"{len(found)} parts of a drawing, {digest}"
        else:
            yield from filter(None, found)


def test_pages_of_runs_and_comparisons_are_pinned(request: pytest.FixtureRequest) -> None:
    run = execute_in_memory(small("omega"))
    lines = ["== run", *elements(run_page(run, run.summary(), ["a <note>"], "argosy run x"))]
    text = run_markdown(run, run.summary(), ["a *note*"], "argosy run x")
    lines += ["== run in markdown", text.replace(__version__, "VERSION")]
    runs = {
        engine: [execute_in_memory(small(engine, seed)) for seed in (1, 2)]
        for engine in ("omega", "sparrow")
    }
    summaries = {engine: [each.summary() for each in found] for engine, found in runs.items()}
    ignored = {"sparrow": [IgnoredDemand("sparrow", "gangs", "1 job asks for one")]}
    rankings = [
        compare(
            summaries, find_metric(name), ignored if name == "jct" else {}, failures={"x": "no"}
        )
        for name in ("jct", "wait")
    ]
    together = overall(rankings)
    first = {engine: found[0] for engine, found in runs.items()}
    page = compare_page(rankings, first, ["a <note>"], "argosy compare x", together)
    lines += ["== comparison", *elements(page)]
    text = compare_markdown(rankings, ["a *note*"], "argosy compare x", together)
    lines += ["== comparison in markdown", text.replace(__version__, "VERSION")]
    update = request.config.getoption("--update-golden")
    require_golden("pinned_pages", "\n".join(lines), update=update, folder=Path(__file__).parent)


@pytest.mark.parametrize(
    ("longest", "scale", "unit"),
    [
        (0, 1, "seconds"),
        (180, 1, "seconds"),
        (180.1, 60, "minutes"),
        (7_200, 60, "minutes"),
        (7_200.1, 3_600, "hours"),
    ],
)
def test_the_unit_of_an_axis_follows_its_length(longest: float, scale: float, unit: str) -> None:
    assert time_unit(longest) == (scale, unit)


def test_a_job_is_unfinished_once_however_many_of_its_tasks_are() -> None:
    jobs = [
        job("service", 1, seconds=None),
        job("mixed", 6, seconds=1_000, submit=2),
        *(job(f"giant-{number}", cpu=64_000, submit=3) for number in range(6)),
    ]
    spec = scenario("omega", jobs, cell=cell(1), replicas=1, horizon=60 * SECOND)
    run = execute_in_memory(spec)
    assert count_unfinished(run) == 7
    found = notable_jobs(run)
    assert [each.job for each in found] == ["mixed", *(f"giant-{at}" for at in range(4))]
    until = run.state.until
    assert [each.took for each in found[:2]] == [until - 2 * SECOND, until - 3 * SECOND]
    # What waits says more than what runs.
    assert found[0].reason.startswith("mixed/3")
    [section] = notable_sections(run, None)
    assert section[0] == "unfinished jobs"
    assert section[-1] == "2 more jobs: argosy why JOB says why"
    assert [each.job for each in notable_jobs(run, unfinished=1)] == ["mixed"]


def test_what_still_runs_at_the_end_says_so() -> None:
    spec = scenario("omega", [job("long", 2, seconds=1_000)], replicas=1, horizon=60 * SECOND)
    [found] = notable_jobs(execute_in_memory(spec))
    assert (found.state, found.reason) == ("unfinished", "long/0 still runs.")
