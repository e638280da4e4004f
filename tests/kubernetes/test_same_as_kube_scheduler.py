"""kube-scheduler and Argosy, side by side on one control plane: each pod of a table of scenarios may go
to the same nodes, except where the documentation says why not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pod_scenarios import SCENARIOS
from pod_scenarios.documentation import BEGIN, END, table
from pod_scenarios.running import ScenarioResult, ScenarioRun, difference
from pod_scenarios.table import PodScenario
from pod_scheduler import scheduling

from argosy.kubernetes.control_plane import ControlPlane, KubeTools

PAGE = Path(__file__).parents[2] / "docs" / "kubernetes" / "same-and-different.md"
#: Seconds within which a control plane has to be ready.
PATIENCE = 120.0

Results = dict[bool, dict[int, ScenarioResult]]


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest, kube_tools: KubeTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Results]:
    """What became of the scenarios that are tested, by whether Argosy was the scheduler."""
    directory = tmp_path_factory.mktemp("scenarios")
    tested = {
        item.callspec.params["number"]
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.path == Path(__file__)
        and hasattr(item, "callspec")
    }
    scenarios = {number: SCENARIOS[number] for number in sorted(tested)}
    # Nobody heartbeats: without kwok, nodes stay ready.
    with ControlPlane.start(
        directory / "plane", tools=kube_tools, scheduler=True, kwok=False, timeout=PATIENCE
    ) as plane:
        run = ScenarioRun(plane, scenarios)
        run.prepare()
        theirs = run.results("default-scheduler", is_argosy=False)
        with scheduling(plane, directory / "argosy.log", "--engine", "kube"):
            ours = run.results("argosy", is_argosy=True)
        yield {False: theirs, True: ours}


def described(scenario: PodScenario) -> str:
    return f"{scenario.topic}: {scenario.name}"


scenarios = pytest.mark.parametrize(
    "number", range(len(SCENARIOS)), ids=[described(each) for each in SCENARIOS]
)


@scenarios
def test_kube_scheduler_does_what_the_table_says(number: int, results: Results) -> None:
    assert not difference(SCENARIOS[number], results[False][number], is_argosy=False)


@scenarios
def test_argosy_does_what_the_table_says(number: int, results: Results) -> None:
    assert not difference(SCENARIOS[number], results[True][number], is_argosy=True)


def test_no_scenario_is_there_twice() -> None:
    assert len(set(map(described, SCENARIOS))) == len(SCENARIOS)


def test_every_difference_is_explained() -> None:
    for scenario in SCENARIOS:
        differs = scenario.expected(is_argosy=True) != scenario.expected(is_argosy=False)
        assert differs == bool(scenario.why), described(scenario)


def test_the_documentation_has_the_table(pytestconfig: pytest.Config) -> None:
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    current = before + table(SCENARIOS) + after
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(current)
    assert text == current
