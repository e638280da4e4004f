"""Placement is a setting of each engine that claims: among it, spreading over failure domains."""

from __future__ import annotations

from collections import Counter

import pytest

from argosy.engines.registry import ENGINES
from argosy.host.records import PlacedRecord
from argosy.testing.builders import cell, job, scenario
from argosy.testing.conformance import ConformanceRun


@pytest.mark.parametrize("placement", ["first-fit", "best-fit", "worst-fit"])
@pytest.mark.parametrize("engine", ["omega", "monolithic", "partitioned", "mesos", "mapreduce"])
def test_tasks_are_dealt_out_over_failure_domains(engine: str, placement: str) -> None:
    """Eight machines in two racks; best fit alone would fill one machine after the other."""
    for group, each in (("rack", [4, 4]), ("machine", [1] * 8)):
        settings = {"spread": group, "placement": placement}
        spec = scenario(engine, [job("web", 8, cpu=100)], replicas=1, settings=settings)
        (placed,) = ConformanceRun(ENGINES[engine], spec).of(PlacedRecord)
        size = 4 if group == "rack" else 1
        counts = Counter(machine // size for machine in placed.machines)
        assert sorted(counts.values()) == each


@pytest.mark.parametrize("engine", ["omega", "monolithic", "partitioned", "mesos", "mapreduce"])
def test_a_job_that_cannot_be_spread_is_placed_all_the_same(engine: str) -> None:
    jobs = [job("first", 1, cpu=4_000, seconds=60), job("web", 7, cpu=4_000, submit=1)]
    spec = scenario(engine, jobs, replicas=1, settings={"spread": "rack"}, cell=cell(8))
    ConformanceRun(ENGINES[engine], spec).require_all_finished()
