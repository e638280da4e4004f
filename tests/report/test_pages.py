"""Reports of runs and comparisons as one HTML file."""

from __future__ import annotations

import re

import pytest
from html_outline import outline

from argosy.experiments.execute import execute_in_memory
from argosy.records.in_memory import RunInMemory
from argosy.report.notable_jobs import notable_jobs
from argosy.report.over_time import curves_of, machine_heat, shown_until
from argosy.report.run_report import run_page
from argosy.testing.builders import SECOND, cell, job, scenario


def small(engine: str = "omega") -> RunInMemory:
    jobs = [
        job("web", 3, seconds=None, kind="service"),
        job("etl", 20, cpu=2_000, seconds=5),
        job("giant", cpu=64_000),
    ]
    spec = scenario(engine, jobs, cell=cell(4), replicas=1, horizon=60 * SECOND)
    return execute_in_memory(spec)


class TestRun:
    def test_a_page_has_all_parts_and_needs_nothing_else(self) -> None:
        run = small()
        page = run_page(run, run.summary(), ["a <note>"], "argosy run x.toml")
        headings = outline(page)
        for title in (
            "At the end", "Times", "Slowest jobs", "Unfinished jobs", "How long jobs took",
            "Over time", "Tasks on machines", "How full machines are", "By kind of job", "Schedulers",
            "Placement", "How to reproduce",
        ):  # fmt: skip
            assert title in headings
        assert not re.search(r"https?://|<script|<link|<img|src=", page)
        assert "a &lt;note&gt;" in page
        assert "argosy run x.toml" in page

    def test_bars_stay_within_their_drawing(self) -> None:
        run = small()
        page = run_page(run, run.summary(), [], "")
        bars = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"[^>]*fill="var', page)
        assert len(bars) == 23
        assert all(float(x) >= 110 and float(x) + float(width) <= 889 for x, width in bars)

    def test_a_task_that_begins_when_another_ends_takes_its_place_in_the_row(self) -> None:
        jobs = [job("etl", 3, cpu=4_000, seconds=5)]
        run = execute_in_memory(
            scenario("murmuration", jobs, cell=cell(1), replicas=1, horizon=60 * SECOND)
        )
        page = run_page(run, run.summary(), [], "")
        bars = re.findall(r'<rect x="[\d.]+" (y="[\d.]+") width="[\d.]+"[^>]*fill="var', page)
        assert len(bars) == 3
        assert len(set(bars)) == 1

    def test_what_is_drawn_agrees_with_the_run(self) -> None:
        run = small()
        curves = curves_of(run)
        assert len(curves.jct["batch"]) == 1
        assert curves.jct["service"].size == 0
        assert curves.running.max() > 3
        # 4 machines of 4 cores; at the end only the three tasks of web run.
        assert curves.used["cpu"][-1] == pytest.approx(3 / 16)
        heat = machine_heat(run)
        assert heat.rows.shape[0] == 4
        assert 0 < heat.rows.max() <= 1.0 + 1e-9

    def test_time_in_which_nothing_changes_is_not_drawn(self) -> None:
        run = small()
        assert shown_until(run.state) < run.summary().ended_at == 60 * SECOND

    def test_slow_and_unfinished_jobs_have_reasons(self) -> None:
        slow, never = notable_jobs(small())
        assert (slow.job, slow.state) == ("etl", "slow")
        assert re.fullmatch(
            r"etl/\d+, the last to end, waited .* because none of 4 machines had 2 cores and 1 GiB "
            r"free.*; then ran for 5 s\.",
            slow.reason,
        )
        assert (never.job, never.state) == ("giant", "unfinished")
        assert never.reason.startswith("giant/0 cannot run")
