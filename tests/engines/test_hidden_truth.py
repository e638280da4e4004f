"""The check that engines see no true duration notices one."""

from typing import Any

import numpy as np
import pytest
from msgspec import structs

from argosy.engines.api import Context, Engine
from argosy.engines.registry import ENGINES
from argosy.host.runtime import build_cell
from argosy.host.scheduler import make_settings
from argosy.host.setup import HostSetup
from argosy.model.events import JobSubmitted, MessageReceived, PhaseFinished
from argosy.model.random import Random
from argosy.model.scenario import Scenario
from argosy.testing.builders import cell, job, scenario
from argosy.testing.conformance import (
    SIMULATED,
    ConformanceRun,
    nothing_depends_on_how_long_tasks_really_run,
)
from argosy.testing.hidden_truth import reachable, watched

MADE = job("a", 2, seconds=1.234567, estimate=5)


class Slotted:
    __slots__ = ("inside",)

    def __init__(self, inside: object) -> None:
        self.inside = inside


@pytest.mark.parametrize(
    "value",
    [
        7,
        np.array([[1, 7]]),
        (1, [{"a": {7}}]),
        {7: 1},
        Slotted(Slotted([7])),
        PhaseFinished(0, 1, 7),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_number_is_found_wherever_it_hides(value: Any) -> None:
    assert any(isinstance(found, int) and found == 7 for found in reachable(value))


@pytest.mark.parametrize("payload", [MADE, MADE.truth, [1_234_567], np.array([1_234_567])], ids=str)
def test_a_truth_that_reaches_an_engine_is_noticed(payload: Any) -> None:
    leaks: list[str] = []
    omega = ENGINES["omega"]
    engine = watched(omega, {1_234_567}, leaks)(
        make_settings(omega, {}), Context("s", (), Random(1))
    )
    view = build_cell(HostSetup.of(scenario("omega", [], cell=cell(2)))).view()
    engine.handle(JobSubmitted(MADE.job, 0, np.arange(2)), view, 0)
    engine.handle(PhaseFinished(0, 0, 1_234_567), view, 0)
    assert not leaks
    engine.handle(MessageReceived("other", payload), view, 0)
    assert leaks


def told_the_truth(engine: type[Engine], spec: Scenario, **options: Any) -> ConformanceRun:
    """Estimates are the real running times."""
    jobs = []
    for made in spec.jobs:
        groups = tuple(
            structs.replace(group, estimate=truth.durations[0] if truth.durations else None)
            for group, truth in zip(made.job.groups, made.truth, strict=True)
        )
        jobs.append(structs.replace(made, job=structs.replace(made.job, groups=groups)))
    return SIMULATED(engine, structs.replace(spec, jobs=tuple(jobs)), **options)


def test_runs_of_which_one_shows_a_running_time_are_not_the_same() -> None:
    nothing_depends_on_how_long_tasks_really_run(ENGINES["omega"])
    with pytest.raises(AssertionError, match="a real running time shows"):
        nothing_depends_on_how_long_tasks_really_run(ENGINES["omega"], told_the_truth)


def test_a_truth_in_the_context_is_noticed() -> None:
    leaks: list[str] = []
    omega = ENGINES["omega"]
    context: Any = Context("s", (), Random(1), budgets=MADE)  # type: ignore[arg-type]
    watched(omega, {1_234_567}, leaks)(make_settings(omega, {}), context)
    assert leaks
