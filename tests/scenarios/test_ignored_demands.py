"""Demands of a scenario that engines ignore."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.engines.registry import ENGINES
from argosy.model.scenario import FleetEntry, Takes
from argosy.scenarios.ignored_demands import PRIORITIES, ignored_demands
from argosy.testing.builders import job, scenario

UNEQUAL = [job("plain"), job("urgent", precedence=3), job("other", precedence=3)]


@pytest.mark.parametrize(
    ("engine", "settings", "ignores"),
    [
        ("omega", {}, True),
        ("omega", {"preempt": True}, False),
        ("kube", {}, False),
        ("kube", {"preempt": False}, True),
        ("firmament", {}, False),
        ("firmament", {"reschedule": False}, True),
        ("murmuration", {}, True),
        ("medea", {}, False),
    ],
)
def test_engines_that_do_not_preempt_ignore_priorities(
    engine: str, settings: dict[str, Any], ignores: bool
) -> None:
    found = ignored_demands(scenario(engine, UNEQUAL, settings=settings), ENGINES)
    told = f"{engine} ignores priorities; 2 jobs have a higher precedence than others"
    assert [str(each) for each in found if each.what == PRIORITIES] == [told] * ignores


def test_equal_precedences_ask_for_nothing() -> None:
    equal = [job("a", precedence=3), job("b", precedence=3)]
    assert ignored_demands(scenario("omega", equal), ENGINES) == []


def test_schedulers_of_the_lowest_jobs_alone_ignore_nothing() -> None:
    fleet = tuple(
        FleetEntry(name=kind, engine=engine, takes=Takes(kinds=(kind,)))
        for kind, engine in (("batch", "omega"), ("service", "kube"))
    )
    jobs = [job("plain"), job("urgent", kind="service", precedence=3)]
    assert ignored_demands(scenario("omega", jobs, fleet=fleet), ENGINES) == []
    turned = [job("plain", precedence=3), job("urgent", kind="service")]
    (found,) = ignored_demands(scenario("omega", turned, fleet=fleet), ENGINES)
    assert found.engine == "omega"
    assert found.asked == "1 job has a higher precedence than others"
