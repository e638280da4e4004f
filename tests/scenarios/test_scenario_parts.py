"""What the loader is made of: facts about cells, demands, constraints in files, and variants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from argosy.engines.registry import find_published
from argosy.model.errors import ScenarioError
from argosy.model.feasibility import UnmeetableDemand
from argosy.model.machines import Cluster, Machine
from argosy.model.resources import Resources
from argosy.model.scenario import (
    ConstantLatency,
    Federation,
    FleetEntry,
    GroupSpec,
    MachineCrash,
    Network,
    PairLatency,
    Partition,
    Places,
    Scenario,
    SchedulerCrash,
    Takes,
)
from argosy.scenarios.constraint_files import _nested, lint_file, surroundings
from argosy.scenarios.engine_checks import facts_of
from argosy.scenarios.job_checks import JobChecks
from argosy.scenarios.unmeetable_demands import refuse_unmeetable, unmeetable_demands
from argosy.scenarios.variants import as_published, with_engine
from argosy.testing.builders import job, scenario
from argosy.workloads.tables import Misfit

MACHINES = (
    Machine("a", Resources(4_000), attributes={"x": "1"}, joins={"g": ("p",), "h": ("u",)}),
    Machine("b", Resources(4_000), attributes={"x": "1"}, joins={"g": ("q", "q")}),
    Machine("c", Resources(8_000, 0, {"gpu": 1}), joins={"g": ("p", "q"), "h": ("u", "v")}),
)


def with_machines(*jobs: Any, groups: tuple[GroupSpec, ...] = ()) -> Scenario:
    made = scenario("omega", list(jobs))
    cell = msgspec.structs.replace(made.cell, machines=MACHINES, groups=groups)
    return msgspec.structs.replace(made, cell=cell)


GROUPS = (GroupSpec(name="g", sets=("p", "q", "r")), GroupSpec(name="h", sets=("u", "v")))


def test_engines_are_told_the_facts_of_a_cell() -> None:
    facts = facts_of(with_machines(job("a"), job("b"), job("c"), groups=GROUPS))
    assert facts.dimensions == ("cpu", "memory", "gpu")
    assert facts.machines == 3
    assert facts.groups == {"machine": 3, "g": 3, "h": 2}
    assert facts.overlapping == {"g", "h"}
    assert [each.id for each in facts.jobs] == ["a", "b", "c"]
    assert (len(facts.jobs), facts.jobs[1].id) == (3, "b")
    assert [each.id for each in facts.jobs[1:]] == ["b", "c"]
    one = msgspec.structs.replace(
        with_machines(), cell=msgspec.structs.replace(with_machines().cell, machines=MACHINES[:2])
    )
    # The same set twice is one set.
    assert facts_of(one).overlapping == frozenset()


def test_constraints_are_checked_against_what_surrounds_them() -> None:
    made = with_machines(job("a", 2, tags=("t",)), job("b", 3, tags=("t",)), groups=GROUPS)
    found = surroundings(made, frozenset())
    assert found.groups == {"g": 3, "h": 2}
    assert sorted((sorted(tags), count) for tags, count in found.containers) == [
        (["appID:a", "kind:batch", "t"], 2),
        (["appID:b", "kind:batch", "t"], 3),
    ]
    assert len(found.machines) == 2
    assert found.overlapping == {"g", "h"}


@pytest.mark.parametrize(
    ("members", "nested"),
    [
        (
            {"rack": {"r0": {"a", "b"}, "r1": {"c"}}, "row": {"w": {"a", "b", "c"}}},
            {("rack", "row")},
        ),
        ({"x": {"1": {"a", "b"}}, "y": {"2": {"b", "c"}}}, set()),
        ({"x": {"1": {"a"}}, "y": {"2": {"b"}}}, {("x", "y"), ("y", "x")}),
        ({"x": {"1": {"a"}}, "y": {"2": {"a"}}}, {("x", "y"), ("y", "x")}),
        ({"x": {}, "y": {"2": {"a"}}}, {("x", "y"), ("y", "x")}),
        ({"x": {"1": {"a"}}}, set()),
    ],
)
def test_a_group_is_in_another_if_no_set_is_cut(
    members: dict[str, dict[str, set[str]]], nested: set[tuple[str, str]]
) -> None:
    assert set(_nested(members)) == nested


def test_lines_of_constraints_may_have_comments(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text(
        "# first\n\na -> {b, 0, 1} in rack  # why\n   \nnonsense\n  # c\nb -> {b, 0, 0} in rack\n"
    )
    found = lint_file(path)
    assert [(each.line, each.place) for each in found.constraints] == [(3, "line 3"), (7, "line 7")]
    assert [each.place for each in found.mistakes] == ["line 5"]
    assert found.errors == 1 + sum(each.severity == "error" for each in found.findings)
    (tmp_path / "l.yaml").write_text("- a -> {b, 0, 1} in rack\n- nonsense\n")
    listed = lint_file(tmp_path / "l.yaml")
    assert [each.place for each in listed.constraints] == ["constraints[0]"]
    assert [each.place for each in listed.mistakes] == ["constraints[1]"]
    (tmp_path / "l.toml").write_text('constraints = [\n "x",\n "a -> {b, 0, 1} in rack",\n]\n')
    lines = lint_file(tmp_path / "l.toml")
    assert [(each.line, each.place) for each in lines.constraints] == [(3, "line 3")]
    assert [each.place for each in lines.mistakes] == ["line 2"]


def demand(job: str, remedy: str = "more") -> UnmeetableDemand:
    fields = {field.name: "x" for field in msgspec.structs.fields(UnmeetableDemand)}
    made: Any = UnmeetableDemand(**fields)
    return msgspec.structs.replace(made, job=job, remedy=remedy)


def test_demands_that_can_never_be_met_are_listed_after_the_first() -> None:
    refuse_unmeetable([], "f")
    with pytest.raises(ScenarioError) as caught:
        refuse_unmeetable([demand("a", "less")], "f")
    assert caught.value.problem == f"can never be met: {demand('a', 'less')}"
    assert (caught.value.file, caught.value.hint) == ("f", "what would help: less")
    with pytest.raises(ScenarioError) as caught:
        refuse_unmeetable([demand("a"), demand("c"), demand("b"), demand("c")], "f")
    assert caught.value.problem.endswith("; nor can demands of c and b")


def test_demands_are_judged_with_devices_and_what_machines_have_later() -> None:
    large = job("large", cpu=9_000)
    made = with_machines(job("fits", cpu=8_000, memory=0), large)
    assert [each.job for each in unmeetable_demands(made)] == ["large"]


def test_what_jobs_name_is_in_the_cell() -> None:
    def told(made: Any, has_groups: bool = False) -> tuple[str, Any]:
        with pytest.raises(Misfit) as caught:
            JobChecks(with_machines(groups=GROUPS).cell).job(
                made.job, ("at",), has_groups=has_groups
            )
        return caught.value.error.problem, caught.value.path

    known = JobChecks(with_machines(groups=GROUPS).cell)
    assert known.attributes == {"x": {"1"}}
    assert known.groups == ("machine", "g", "h")
    assert known.dimensions == ("cpu", "memory", "gpu")
    known.job(
        job("a", requires={"x": "1"}, request=Resources(1, 0, {"tpu": 0})).job,
        ("at",),
        has_groups=False,
    )
    wanting = job("a", request=Resources(1, 0, {"tpu": 1}))
    assert told(wanting) == ("unknown resource 'tpu'", ("at", "request", "tpu"))
    assert told(wanting, True)[1] == ("at", "groups", 0, "request", "tpu")
    assert told(job("a", requires={"x": "2"}), True) == (
        "unknown value of x '2'", ("at", "groups", 0, "requires", "x"),
    )  # fmt: skip
    assert told(job("a", requires={"y": "1"})) == (
        "unknown machine attribute 'y'", ("at", "requires", "y"),
    )  # fmt: skip
    bare = JobChecks(scenario("omega", []).cell)
    with pytest.raises(Misfit) as caught:
        bare.job(job("a", requires={"y": "1"}).job, (), has_groups=False)
    assert caught.value.error.problem == "no machine has attribute 'y', nor any other"


def test_tasks_are_counted_over_all_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.scenarios.job_checks.MOST_TASKS_IN_ALL", 5)
    for has_groups, path in ((True, ("at",)), (False, ("at", "count"))):
        known = JobChecks(scenario("omega", []).cell)
        known.job(job("a", 2).job, ("at",), has_groups=has_groups)
        known.job(job("b", 3).job, ("at",), has_groups=has_groups)
        with pytest.raises(Misfit) as caught:
            known.job(job("c", 1).job, ("at",), has_groups=has_groups)
        assert caught.value.error.problem == "more than 5 tasks in total"
        assert caught.value.path == path


def fleet_of(*entries: FleetEntry, **fields: Any) -> Scenario:
    return msgspec.structs.replace(scenario("omega", []), fleet=entries, **fields)


def test_faults_distances_and_places_follow_schedulers_by_position() -> None:
    pairs = {"a>b-0": 1, "b-1>cell": 2, "machines>a": 3}
    made = fleet_of(
        FleetEntry(name="a", engine="omega", settings={"t_job": 7}, takes=Takes(kinds=("x",))),
        FleetEntry(name="b", engine="sparrow", replicas=2, split="random"),
        faults=(
            MachineCrash(at=1, machine="m0"),
            SchedulerCrash(at=1, scheduler="b-1"),
            Partition(at=1, lasts=1, isolated=("b-0", "a")),
        ),
        network=Network(loss=0.5, latency=PairLatency(default=9, delays=pairs)),
        federation=Federation(
            clusters=(Cluster("n", "n"),),
            schedulers={"a": "oslo", "b-0": "rome", "b-1": "bern"},
        ),
    )
    several = with_engine(made, "omega")
    (entry,) = several.fleet
    assert entry == FleetEntry(
        name="scheduler", engine="omega", settings={"t_job": 7}, replicas=3, split="hash"
    )
    assert several.faults == (
        MachineCrash(at=1, machine="m0"),
        SchedulerCrash(at=1, scheduler="scheduler-2"),
        Partition(at=1, lasts=1, isolated=("scheduler-1", "scheduler-0")),
    )
    assert several.network.loss == 0.5
    assert several.network.latency == PairLatency(
        default=9,
        delays={"scheduler-0>scheduler-1": 1, "scheduler-2>cell": 2, "machines>scheduler-0": 3},
    )
    assert several.federation is not None
    assert several.federation.schedulers == {
        "scheduler-0": "oslo", "scheduler-1": "rome", "scheduler-2": "bern",
    }  # fmt: skip
    alone = with_engine(made, "monolithic")
    assert alone.fleet[0].scheduler_names() == ("scheduler",)
    assert alone.fleet[0].settings == {}
    assert alone.faults[1:] == (
        SchedulerCrash(at=1, scheduler="scheduler"),
        Partition(at=1, lasts=1, isolated=("scheduler",)),
    )
    assert alone.federation is not None
    assert alone.federation.schedulers == {"scheduler": "oslo"}


def test_a_fleet_of_one_entry_keeps_what_is_not_the_engine_s() -> None:
    entry = FleetEntry(
        name="own", engine="sparrow", replicas=4, split="random", takes=Takes(kinds=("x",)),
        settings={"cancel": False},
    )  # fmt: skip
    (changed,) = with_engine(fleet_of(entry), "omega").fleet
    assert changed == msgspec.structs.replace(entry, engine="omega", settings={})
    (same,) = with_engine(fleet_of(entry), "sparrow").fleet
    assert same == entry
    (alone,) = with_engine(fleet_of(entry), "monolithic").fleet
    assert (alone.replicas, alone.name) == (1, "own")


def test_a_published_form_decides_on_settings_if_it_is_named() -> None:
    engine, form = find_published("murmuration-srjf")
    entry = FleetEntry(
        name="s", engine=engine, settings={"order": "fcfs", "update_delay": 3}, replicas=7
    )
    places = Places(default=1, delays={})
    made = fleet_of(
        entry,
        network=Network(loss=0.25, latency=ConstantLatency(delay=9)),
        federation=Federation(clusters=(Cluster("n", "n"),), places=places),
    )
    named = as_published(made, "murmuration-srjf")
    (changed,) = named.fleet
    assert changed.settings == {**entry.settings, **form.settings}
    assert (changed.replicas, changed.split) == (form.schedulers, form.split)
    assert named.machines == form.machines
    assert named.network == Network(loss=0.25, latency=ConstantLatency(delay=form.hop))
    assert named.as_published
    assert named.federation is not None
    assert named.federation.places is None
    own = as_published(made)
    # Its own settings say which form it is.
    first = find_published("murmuration-fcfs")[1]
    assert own.fleet[0].settings == {**first.settings, **entry.settings}
    assert own.fleet[0].replicas == 7
    assert own.machines == first.machines
    assert named.fleet[0].replicas == 10
    two = fleet_of(entry, msgspec.structs.replace(entry, name="t"))
    with pytest.raises(ScenarioError) as caught:
        as_published(two)
    assert caught.value.problem == "2 fleet entries as published"
