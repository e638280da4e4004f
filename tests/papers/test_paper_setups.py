"""The worlds that points of papers are run in, as they are set up: nothing is run.

`setups_*.txt` has points at the quick scale, such that each value of each parameter is among them, and
of each what differs from the one before: schedulers, machines, network, faults, times and jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from golden_log import require_golden

from argosy.model.random import Random
from argosy.model.scenario import CellSpec, Scenario
from argosy.model.truth import SimulatedJob
from argosy.papers.experiment import ExperimentPoint
from argosy.papers.firmament import links, replays
from argosy.papers.medea import deployment, tasks
from argosy.papers.murmuration import world as murmuration_world
from argosy.papers.registry import PAPERS
from argosy.testing.builders import job, machines
from argosy.workloads import clusters, mapreduce
from argosy.workloads.cluster_specs import ClusterSpec
from argosy.worlds.sim import SimulatedWorld

HERE = Path(__file__).parent
#: Figures whose points are no worlds, but solvers or processes or descriptions.
APART = {
    "omega": {"2"},
    "medea": {"11a", "11b"},
    "vela": set[str](),
    "murmuration": set[str](),
    "firmament": {"3", "7", "8", "9", "10", "11", "12", "13", "footnote 3"},
}


class SetUp(Exception):
    """Raised instead of running a world."""


def brief(value: object) -> str:
    """A value without the fields that are as they usually are."""
    if isinstance(value, ClusterSpec):
        return value.name
    if isinstance(value, msgspec.Struct):
        return f"{type(value).__name__}({', '.join(fields_told(value))})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {brief(each)}" for key, each in value.items()) + "}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(brief, value))}]"
    if isinstance(value, Random):
        return f"random {value.uniform():.6f}"
    return str(value)


def fields_told(value: msgspec.Struct, *but: str) -> Iterator[str]:
    for field in msgspec.structs.fields(value):
        told = getattr(value, field.name)
        usual = (
            field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        )
        if field.name not in but and told != usual:
            yield f"{field.name} {brief(told)}"


def cell_told(cell: CellSpec) -> str:
    first, last = cell.machines[0], cell.machines[-1]
    cpu, memory = (
        sum(getattr(each.capacity, name) for each in cell.machines) for name in ("cpu", "memory")
    )
    groups = ", ".join(f"{group.name} of {len(group.sets)}" for group in cell.groups)
    return (
        f"cell: {len(cell.machines)} machines, {cpu} cpu, {memory} memory, groups {groups or 'none'}; "
        f"{brief(first)} to {brief(last)}"
    )


def jobs_told(jobs: Iterable[SimulatedJob]) -> Iterator[str]:
    told = [*jobs]
    if told:
        count = sum(each.tasks for each in told)
        moments = sum(place * each.submit for place, each in enumerate(told))
        lasts = sum(sum(truth.durations) for each in told for truth in each.truth)
        yield f"jobs: {len(told)} of {count} tasks, {moments} and {lasts} in all"
        yield f"first job: {brief(told[0])}"
    if len(told) > 1:
        yield f"last job: {brief(told[-1])}"


def scenario_told(scenario: Scenario) -> Iterator[str]:
    yield from (f"scheduler: {brief(entry)}" for entry in scenario.fleet)
    yield cell_told(scenario.cell)
    yield from fields_told(scenario, "cell", "jobs", "fleet")
    yield from jobs_told(scenario.jobs)


def covering(points: Iterable[ExperimentPoint]) -> Iterator[ExperimentPoint]:
    """Those that have a value of a parameter which none before them has."""
    seen = set[tuple[str, str, object]]()
    for point in points:
        has = {(point.figure, name, value) for name, value in point.parameters.items()}
        if point.seed == 1 and not has <= seen:
            seen |= has
            yield point


class Calls:
    """Calls of functions that stand for others, in words."""

    def __init__(self) -> None:
        self.lines = list[str]()

    def standing_for(self, name: str, result: Any) -> Callable[..., Any]:
        def call(*given: object, **named: object) -> Any:
            # The first argument of a method is what it is of.
            args = [brief(each) for each in given if not isinstance(each, links.LinkWorld)]
            args += [f"{key} {brief(value)}" for key, value in named.items()]
            self.lines.append(f"{name}: {', '.join(args)}")
            return result

        return call


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    calls = Calls()

    def set_up(
        self: SimulatedWorld,
        scenario: Scenario,
        engines: dict[str, Any],
        journal: object = None,
        jobs: Iterable[SimulatedJob] | None = None,
    ) -> None:
        calls.lines += scenario_told(scenario)
        calls.lines.append(f"engines: {', '.join(engines) if len(engines) < 6 else 'all'}")
        if not scenario.name.startswith("omega"):
            calls.lines += jobs_told([] if jobs is None else jobs)
        raise SetUp

    monkeypatch.setattr(SimulatedWorld, "__init__", set_up)
    two = machines(2)
    monkeypatch.setattr(clusters, "machines", calls.standing_for("machines", two))
    for where, name in ((clusters, "fill"), (clusters, "jobs"), (mapreduce, "jobs")):
        label = f"{where.__name__.rpartition('.')[2]}.{name}"
        monkeypatch.setattr(where, name, calls.standing_for(label, []))
    for name in ("_running", "_arriving"):
        monkeypatch.setattr(deployment, name, calls.standing_for(name, []))
    monkeypatch.setattr(tasks, "arriving", calls.standing_for("arriving", [job("task", 2_600)]))
    monkeypatch.setattr(tasks, "found", calls.standing_for("found", []))
    made = (job("a", 3, seconds=80_000), job("b", submit=30))
    monkeypatch.setattr(murmuration_world, "jobs_of", lambda point: made)
    monkeypatch.setattr(links.LinkWorld, "__init__", calls.standing_for("links", None))

    def run(self: object, *given: object) -> None:
        calls.lines.append(f"run: {brief(given)}")
        raise SetUp

    monkeypatch.setattr(links.LinkWorld, "run", run)
    drawn = replays.drawn

    def loaded(load: Any) -> Any:
        calls.lines.append(f"load: {brief(load)}")
        return msgspec.structs.replace(drawn(load), jobs=[])

    monkeypatch.setattr(replays, "drawn", loaded)
    return calls


@pytest.mark.parametrize("name", PAPERS)
def test_how_points_are_set_up_is_pinned(
    name: str, calls: Calls, request: pytest.FixtureRequest
) -> None:
    paper = PAPERS[name]
    lines, before = list[str](), set[str]()
    for point in covering(paper.plan("quick", paper.figures)):
        if point.figure in APART[name] or paper.alone(point):
            continue
        calls.lines.clear()
        with pytest.raises(SetUp):
            paper.runner(point)
        lines.append(str(point))
        lines += [f"    {line}" for line in calls.lines if line not in before]
        before = {*calls.lines}
    update = request.config.getoption("--update-golden")
    require_golden(f"setups_{name}", "\n".join(lines) + "\n", update=update, folder=HERE)
