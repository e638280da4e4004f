"""Small checks and changes of scenarios, case by case."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from argosy.engines.api import Capabilities, NeededExtra, Settings
from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import CommandError, ScenarioError
from argosy.model.resources import Resources
from argosy.model.scenario import FleetEntry, MachineResize, SchedulerLimits, Takes
from argosy.scenarios import missing_extras
from argosy.scenarios.changed_values import ChangedValue, parse_values, with_values
from argosy.scenarios.ignored_demands import ignored_demands
from argosy.scenarios.unmeetable_demands import _largest
from argosy.scenarios.variants import as_published
from argosy.testing.builders import job, scenario
from argosy.workloads.tables import Misfit

DOCUMENT: dict[str, Any] = {
    "horizon": "1h",
    "fleet": [{"name": "a", "engine": "omega"}, {"id": "b"}, "plain"],
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
        ("fleet.b.replicas", lambda d: d["fleet"][1]["replicas"]),
        ("fleet.2", lambda d: d["fleet"][2]),
    ],
)
def test_a_value_is_replaced_where_it_stands(path: str, found: Any) -> None:
    document = copy.deepcopy(DOCUMENT)
    changed = with_values(document, [ChangedValue(tuple(path.split(".")), "other")])
    assert found(changed) == "other"
    # Nothing else has changed.
    kept = copy.deepcopy(DOCUMENT)
    *places, last = path.replace("fleet.a", "fleet.0").replace("fleet.b", "fleet.1").split(".")
    inside: Any = kept
    for place in places:
        inside = inside[int(place)] if isinstance(inside, list) else inside[place]
    inside[int(last) if isinstance(inside, list) else last] = "other"
    assert changed == kept


@pytest.mark.parametrize(
    ("path", "missing", "where", "expected"),
    [
        ("call.machines", "call", (), "one of cell, fleet, horizon"),
        ("cell.machine.count", "cell.machine", ("cell",), "one of machines"),
        ("fleet.3.x", "fleet.3", ("fleet",), "a number below 3, or the name of an element"),
        ("fleet.c.x", "fleet.c", ("fleet",), "a number below 3, or the name of an element"),
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
