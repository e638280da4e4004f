"""Small checks and changes of scenarios, case by case."""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from small_scenario import Patient

from argosy.engines.api import Capabilities, NeededExtra, Settings
from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import CommandError, ScenarioError
from argosy.model.resources import Resources
from argosy.model.scenario import FleetEntry, MachineResize, SchedulerLimits, Takes
from argosy.scenarios import missing_extras
from argosy.scenarios.changed_values import ChangedValue, parse_values, with_values
from argosy.scenarios.engine_checks import check_engines, facts_of, is_checking
from argosy.scenarios.ignored_demands import ignored_demands
from argosy.scenarios.kubernetes_tables import SHORTEST_HORIZON, default_horizon
from argosy.scenarios.loader import load
from argosy.scenarios.toml_text import to_toml
from argosy.scenarios.unmeetable_demands import _largest
from argosy.scenarios.variants import as_published
from argosy.scenarios.yaml_files import parse_yaml
from argosy.testing.builders import SECOND, job, scenario
from argosy.workloads import clusters
from argosy.workloads.tables import Misfit

DOCUMENT: dict[str, Any] = {
    "horizon": "1h",
    "fleet": [{"name": "a", "engine": "omega"}, {}, "plain", {"id": "b"}],
    "list": [1, 2],
    "cell": {"machines": {"count": 3}},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("horizon", lambda d: d["horizon"]),
        ("new", lambda d: d["new"]),
        ("cell.machines.count", lambda d: d["cell"]["machines"]["count"]),
        ("cell.machines.new", lambda d: d["cell"]["machines"]["new"]),
        ("fleet.0.engine", lambda d: d["fleet"][0]["engine"]),
        ("fleet.a.engine", lambda d: d["fleet"][0]["engine"]),
        ("fleet.b.replicas", lambda d: d["fleet"][3]["replicas"]),
        ("fleet.2", lambda d: d["fleet"][2]),
    ],
)
def test_a_value_is_replaced_where_it_stands(path: str, found: Any) -> None:
    document = copy.deepcopy(DOCUMENT)
    changed = with_values(document, [ChangedValue(tuple(path.split(".")), "other")])
    assert found(changed) == "other"
    # Nothing else has changed.
    kept = copy.deepcopy(DOCUMENT)
    *places, last = path.replace("fleet.a", "fleet.0").replace("fleet.b", "fleet.3").split(".")
    inside: Any = kept
    for place in places:
        inside = inside[int(place)] if isinstance(inside, list) else inside[place]
    inside[int(last) if isinstance(inside, list) else last] = "other"
    assert changed == kept


@pytest.mark.parametrize(
    ("path", "missing", "where", "expected"),
    [
        ("call.machines", "call", (), "one of cell, fleet, horizon, list"),
        ("cell.machine.count", "cell.machine", ("cell",), "one of machines"),
        ("list.2", "list.2", ("list",), "a number below 2"),
        ("fleet.4.x", "fleet.4", ("fleet",), "a, b, or a number below 4"),
        ("fleet.c.x", "fleet.c", ("fleet",), "a, b, or a number below 4"),
        (f"list.{'9' * 5_000}", f"list.{'9' * 5_000}", ("list",), "a number below 2"),
        ("horizon.x", "horizon.x", ("horizon",), "nothing below a value"),
    ],
)
def test_a_place_that_is_not_there_is_named_with_those_that_are(
    path: str, missing: str, where: tuple[str, ...], expected: str
) -> None:
    with pytest.raises(Misfit) as caught:
        with_values(copy.deepcopy(DOCUMENT), [ChangedValue(tuple(path.split(".")), 1)])
    assert caught.value.error.problem == f"there is no {missing}"
    assert caught.value.error.expected == expected
    assert caught.value.path == where


def test_variations_are_values_as_in_toml_or_plain_text() -> None:
    changes = parse_values(' a.b = 1, 2.5 ,true,10min,"1"')
    assert [each.value for each in changes] == [1, 2.5, True, "10min", "1"]
    assert {each.path for each in changes} == {("a", "b")}
    assert changes[0].name == "a.b"
    for wrong in ("a", "a=", "=1", "a..b=1", ".a=1", "a= "):
        with pytest.raises(CommandError, match="--vary"):
            parse_values(wrong)


def test_commas_within_arrays_tables_and_quotes_do_not_separate_variations() -> None:
    changes = parse_values('a=[1, 2],[[3,4],5],{b = 1, c = 2},"x, y",z')
    assert [each.value for each in changes] == [
        [1, 2],
        [[3, 4], 5],
        {"b": 1, "c": 2},
        "x, y",
        "z",
    ]


def test_a_bracket_that_is_never_closed_is_plain_text() -> None:
    assert [each.value for each in parse_values("a=1,[2,3")] == [1, "[2,3"]


class Preempting(Settings, frozen=True):
    preempt: bool = True


def engine(settings: type[Settings] = Settings, **capabilities: Any) -> Any:
    usual = {"transactions": True, "gang": True, "preemption": True, "constraints": True}
    return SimpleNamespace(
        name="e",
        capabilities=Capabilities(**{**usual, **capabilities}),
        settings_type=settings,
    )


def demands(engine: Any, *jobs: Any, **entry: Any) -> list[tuple[str, str]]:
    spec = scenario("omega", list(jobs))
    fleet = (FleetEntry(name="s", engine="e", **entry),)
    spec = msgspec.structs.replace(spec, fleet=fleet)
    return [(each.what, each.asked) for each in ignored_demands(spec, {"e": engine})]


GANG = job("g", 2, gang=True)
HIGH, LOW = job("h", 1, precedence=5), job("l", 1, precedence=4)
CONSTRAINT = parse_constraint("c -> {c, 0, 0} in machine")
APART = job("c", 1, constraints=(CONSTRAINT,))


@pytest.mark.parametrize(
    ("can", "jobs", "entry", "found"),
    [
        ({}, (GANG, HIGH, LOW, APART), {}, []),
        ({"gang": False}, (LOW,), {}, []),
        ({"gang": False}, (GANG,), {}, [("gangs", "1 job asks for one")]),
        (
            {"gang": False},
            (GANG, job("k", 2, gang=True)),
            {},
            [("gangs", "2 jobs ask for one")],
        ),
        ({"gang": False}, (GANG,), {"takes": Takes(kinds=("other",))}, []),
        (
            {"constraints": False},
            (APART, LOW),
            {},
            [("placement constraints", "1 job has some")],
        ),
        ({"preemption": False}, (HIGH,), {}, []),
        (
            {"preemption": False},
            (HIGH, LOW),
            {},
            [("priorities", "1 job has a higher precedence than others")],
        ),
        (
            {"preemption": False},
            (HIGH, job("i", 1, precedence=9), LOW),
            {},
            [("priorities", "2 jobs have a higher precedence than others")],
        ),
        ({"transactions": False}, (LOW,), {}, []),
        (
            {"transactions": False},
            (LOW,),
            {"limits": SchedulerLimits(jobs=3)},
            [("the limits of s", "it makes no transactions")],
        ),
        ({}, (LOW,), {"limits": SchedulerLimits(jobs=3)}, []),
    ],
)
def test_each_demand_that_an_engine_ignores_is_told_once(
    can: dict[str, Any], jobs: tuple[Any, ...], entry: dict[str, Any], found: list[Any]
) -> None:
    assert demands(engine(**can), *jobs, **entry) == found


@pytest.mark.parametrize("is_on", [True, False])
def test_an_engine_whose_preemption_is_off_ignores_priorities(is_on: bool) -> None:
    found = demands(engine(Preempting), HIGH, LOW, settings={"preempt": is_on})
    assert bool(found) != is_on


def test_a_machine_counts_with_the_most_it_ever_has() -> None:
    spec = scenario("omega", [])
    first = spec.cell.machines[0]
    faults = (
        MachineResize(at=1, machine=first.name, capacity=Resources(9_000, 1)),
        MachineResize(at=2, machine=first.name, capacity=Resources(1, 1 << 50)),
    )
    largest, *others = _largest(msgspec.structs.replace(spec, faults=faults))
    assert largest.capacity == Resources(9_000, 1 << 50)
    assert tuple(others) == spec.cell.machines[1:]


def test_the_first_engine_that_lacks_a_package_is_named() -> None:
    class Needy:
        name = "needy"
        settings_type = Preempting

        @classmethod
        def lack(cls, settings: Any) -> NeededExtra | None:
            return NeededExtra("solver", "take preempt = false") if settings.preempt else None

    entries = [
        FleetEntry(name="a", engine="plain"),
        FleetEntry(name="b", engine="needy", settings={"preempt": False}),
    ]
    known: Any = {"plain": SimpleNamespace(settings_type=Settings), "needy": Needy}
    spec = scenario("omega", [])
    assert (
        missing_extras.missing(msgspec.structs.replace(spec, fleet=tuple(entries)), known) is None
    )
    entries.append(FleetEntry(name="c", engine="needy"))
    lack = missing_extras.missing(msgspec.structs.replace(spec, fleet=tuple(entries)), known)
    assert lack is not None
    assert "needy" in str(lack)
    assert "solver" in f"{lack} {lack.hint}"


def test_a_published_form_keeps_more_schedulers_only_if_it_is_not_named() -> None:
    alone = scenario("murmuration", [], replicas=1)
    several = scenario("murmuration", [], replicas=7)
    published = as_published(alone).fleet[0].replicas
    assert published > 1
    assert published != 7
    assert as_published(several).fleet[0].replicas == 7
    assert as_published(several, "murmuration").fleet[0].replicas == published
    made = as_published(several)
    assert made.as_published
    assert made.fleet[0].split == "random"
    two = msgspec.structs.replace(alone, fleet=(*alone.fleet, FleetEntry(name="t", engine="omega")))
    with pytest.raises(ScenarioError, match="2 fleet entries as published") as caught:
        as_published(two)
    assert caught.value.expected == "one, whose machines are those of its form"


@pytest.mark.parametrize("value", [True, False, 0, -3, 2.5, 1e300, "", "a", [], [True, [False]]])
def test_a_value_is_the_same_after_it_was_written(value: Any) -> None:
    document = {"top": value, "table": {"x": value, "inner": [{"y": value}, {}]}}
    assert tomllib.loads(to_toml(document)) == document


def test_a_recorded_cluster_ends_after_twice_the_time_that_its_jobs_need() -> None:
    assert default_horizon([]) is None
    ends, service = job("a", 1, seconds=400, submit=100), job("s", 1, seconds=None, submit=700)
    assert default_horizon([ends]) is None
    assert default_horizon([ends, service]) == max(2 * 700 * SECOND, 2 * SHORTEST_HORIZON)
    long = job("l", 2, seconds=50_000, submit=10)
    assert default_horizon([service, long]) == 2 * 50_010 * SECOND
    assert default_horizon([service]) == max(2 * 700 * SECOND, 2 * SHORTEST_HORIZON)
    assert default_horizon([job("s", 1, seconds=None)]) == 2 * SHORTEST_HORIZON


@pytest.mark.parametrize(
    ("text", "problem", "line", "expected"),
    [
        ("a: 1\n2: b\n", "key '2' is not text", 2, "quotation marks around it"),
        ("a: 1\n? [x]\n: b\n", "key a collection is not text", 2, "quotation marks around it"),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "key 'c' twice in one mapping", 4, "YAML here"),
        ("a: &x [*x]\n", "aliases that lead to themselves, or to too many values", 1, "YAML here"),
        ("a: [\n", "not YAML: expected the node content", 2, "YAML here"),
        ("a: 2026-02-31\n", "not readable as YAML: day is out of range", None, "YAML here"),
        ("[" * 5_000, "nested too deeply", None, "YAML here"),
    ],
)
def test_yaml_that_cannot_be_read_says_where(
    text: str, problem: str, line: int | None, expected: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_yaml(text, "file.yaml", ScenarioError, "YAML here")
    assert caught.value.problem.startswith(problem)
    assert (caught.value.line, caught.value.expected) == (line, expected)
    assert caught.value.file == "file.yaml"


def test_values_of_yaml_have_the_lines_of_their_keys() -> None:
    text = "a: &b\n  x: 1\nc:\n  <<: *b\n  y: [1,\n    2]\n---\nd: 3\n"
    documents, lines = parse_yaml(text, "f", ScenarioError, "")
    assert documents == [{"a": {"x": 1}, "c": {"x": 1, "y": [1, 2]}}, {"d": 3}]
    assert {path: line for path, line in lines.items() if len(path) > 1} == {
        (0, "a"): 1,
        (0, "a", "x"): 2,
        (0, "c"): 3,
        (0, "c", "y"): 5,
        (0, "c", "y", 0): 5,
        (0, "c", "y", 1): 6,
        (1, "d"): 8,
    }


def test_known_facts_are_not_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines are asked with the facts that are given."""
    made = scenario("checking", [job("a", 1)])
    seen: list[Any] = []

    class Checking:
        settings_type = Settings
        capabilities = Capabilities()

        @staticmethod
        def mismatch(settings: Any, facts: Any) -> None:
            seen.append(facts)

    engines: Any = {"checking": Checking}
    given = msgspec.structs.replace(facts_of(made), machines=99)
    check_engines(made, engines, given)
    check_engines(made, engines)
    assert [facts.machines for facts in seen] == [99, len(made.cell.machines)]
    assert is_checking(engines)
    assert not is_checking({"patient": Patient})


def test_a_cell_takes_the_machines_of_a_workload_only_if_it_has_none(tmp_path: Path) -> None:
    text = """\
name = "brought"
horizon = "1h"
[workload.cluster]
name = "B"
span = "1h"
scale = 0.01
fill = false
[[fleet]]
name = "s"
engine = "omega"
"""
    own = '[[cell.machines]]\nname = "m"\ncapacity = { cpu = 4000, memory = "8GiB" }\n'
    path = tmp_path / "s.toml"
    path.write_text(text)
    brought = load(path).cell.machines
    assert brought == clusters.machines(clusters.cluster("B"), 0.01)
    path.write_text(text + own)
    assert [machine.name for machine in load(path).cell.machines] == ["m"]
