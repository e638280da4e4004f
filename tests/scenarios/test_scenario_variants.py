"""Scenarios made from scenarios, their digests, and those that come along."""

import re
from pathlib import Path

import msgspec
import pytest
from small_scenario import SMALL

from argosy.engines.registry import find_published
from argosy.model.machines import Cluster
from argosy.model.scenario import (
    ConstantLatency,
    Federation,
    FleetEntry,
    Network,
    PairLatency,
    Partition,
    Scenario,
    SchedulerCrash,
    SchedulerLimits,
    Takes,
)
from argosy.scenarios.loader import as_published, load, scenario_digest, with_engine

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def fleet_of(*entries, **more):
    return Scenario(
        name="x",
        seed=1,
        cell=None,
        jobs=(),
        fleet=tuple(FleetEntry(name=n, engine=e, replicas=r) for n, e, r in entries),
        **more,
    )


def test_another_engine_takes_over_a_single_entry_in_place():
    entry = FleetEntry(name="s", engine="omega", replicas=3, settings={"x": 1}, split="random")
    changed = with_engine(
        msgspec.structs.replace(fleet_of(("s", "omega", 3)), fleet=(entry,)), "kube"
    )
    assert changed.fleet == (FleetEntry(name="s", engine="kube", replicas=3, split="random"),)


def test_another_engine_gets_as_many_schedulers_as_there_were():
    scenario = fleet_of(
        ("one", "omega", 1),
        ("two", "kube", 2),
        faults=(
            SchedulerCrash(at=1, scheduler="two-0"),
            Partition(at=1, lasts=2, isolated=("one",)),
        ),
    )
    changed = with_engine(scenario, "spread")
    assert changed.fleet == (FleetEntry(name="scheduler", engine="spread", replicas=3),)
    assert changed.faults == (
        SchedulerCrash(at=1, scheduler="scheduler-1"),
        Partition(at=1, lasts=2, isolated=("scheduler-0",)),
    )


def test_an_entry_keeps_what_it_takes_and_its_limits_under_another_engine():
    entry = FleetEntry(
        name="s",
        engine="omega",
        replicas=3,
        takes=Takes(kinds=("a",)),
        limits=SchedulerLimits(jobs=3),
        split="random",
    )
    before = msgspec.structs.replace(fleet_of(), fleet=(entry,))
    changed = with_engine(before, "monolithic")
    assert changed.fleet == (msgspec.structs.replace(entry, engine="monolithic", replicas=1),)


@pytest.mark.parametrize(
    ("engine", "names"),
    [
        ("kube", ("scheduler-0", "scheduler-1", "scheduler-2")),
        # It means to be alone.
        ("monolithic", ("scheduler",) * 3),
    ],
)
def test_schedulers_are_known_by_their_position_wherever_they_are_named(engine, names):
    one, two, three = names
    delays = {"one>cell": 1, "cell>two-1": 2, "two-0>two-1": 3}
    before = fleet_of(
        ("one", "omega", 1),
        ("two", "kube", 2),
        network=Network(latency=PairLatency(default=9, delays=delays)),
        faults=(
            SchedulerCrash(at=1, scheduler="two-1"),
            Partition(at=1, lasts=2, isolated=("two-1", "one", "two-0")),
        ),
        federation=Federation(
            clusters=(Cluster("c", "rome"),),
            places=None,
            schedulers={"one": "rome", "two-1": "oslo"},
        ),
    )
    first, second = before.fleet
    fleet = (
        msgspec.structs.replace(first, split="random"),
        msgspec.structs.replace(second, settings={"x": 1}),
    )
    changed = with_engine(msgspec.structs.replace(before, fleet=fleet), engine)
    assert changed.fleet == (
        FleetEntry(
            name="scheduler",
            engine=engine,
            replicas=len(set(names)),
            split="random",
            settings={"x": 1} if engine == "kube" else {},
        ),
    )
    assert changed.network.latency == PairLatency(
        default=9, delays={f"{one}>cell": 1, f"cell>{three}": 2, f"{two}>{three}": 3}
    )
    assert changed.faults == (
        SchedulerCrash(at=1, scheduler=three),
        Partition(at=1, lasts=2, isolated=tuple(dict.fromkeys((three, one, two)))),
    )
    # If several become one, it is at the place of the first.
    assert changed.federation.schedulers == {three: "oslo", one: "rome"}


def test_a_named_form_overrules_settings_and_others_give_way_to_them():
    form = find_published("murmuration")[1]
    key, value = next(iter(form.settings.items()))
    other = "other" if isinstance(value, str) else value + 1
    entry = FleetEntry(name="s", engine="murmuration", settings={key: other})
    scenario = msgspec.structs.replace(fleet_of(), fleet=(entry,))
    assert as_published(scenario).fleet[0].settings == {**form.settings, key: other}
    assert as_published(scenario, "murmuration").fleet[0].settings == form.settings
    assert as_published(scenario).machines == form.machines


def test_the_form_is_the_one_that_is_named_or_the_first_that_agrees_with_the_settings():
    cloudera = find_published("hawk-cloudera")[1].settings
    entry = FleetEntry(name="s", engine="hawk", settings={"cutoff": cloudera["cutoff"]})
    agreeing = msgspec.structs.replace(fleet_of(("s", "hawk", 1)), fleet=(entry,))
    plain = fleet_of(("s", "hawk", 1), network=Network(latency=ConstantLatency(delay=7)))
    assert as_published(agreeing).fleet[0].settings == cloudera
    assert as_published(plain).fleet[0].settings == find_published("hawk")[1].settings
    assert as_published(plain, "hawk-cloudera").fleet[0].settings == cloudera
    assert as_published(plain).network.latency == ConstantLatency(delay=500)
    # Of a scenario as published, the engine may be a form too.
    made = with_engine(as_published(plain), "hawk-cloudera")
    assert (made.fleet[0].engine, made.fleet[0].settings) == ("hawk", cloudera)
    assert made.as_published


def test_the_same_engine_keeps_its_settings():
    entry = FleetEntry(name="s", engine="omega", settings={"x": 1})
    scenario = msgspec.structs.replace(fleet_of(), fleet=(entry,))
    assert with_engine(scenario, "omega") == scenario


def test_equal_scenarios_have_equal_digests_and_others_have_others(read):
    assert scenario_digest(read(SMALL)) == scenario_digest(read("# x\n" + SMALL))
    assert scenario_digest(read(SMALL)) != scenario_digest(read(SMALL, seed=2))


def test_a_scenario_survives_json(read):
    scenario = read(SMALL.replace('id = "a"', 'id = "a"\nconstraints = ["a -> {a, 0, 0} in rack"]'))
    assert msgspec.json.decode(msgspec.json.encode(scenario), type=Scenario) == scenario


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_scenario_that_comes_along_loads_under_every_engine(path):
    scenario = load(path)
    assert scenario.name == path.stem
    assert len(with_engine(scenario, "murmuration").fleet) == 1


def test_an_engine_that_means_to_be_alone_gets_one_scheduler():
    scenario = load(SCENARIOS / "faults.toml")
    alone = with_engine(scenario, "monolithic")
    assert alone.fleet[0].scheduler_names() == ("scheduler",)
    crashed = [fault.scheduler for fault in alone.faults if isinstance(fault, SchedulerCrash)]
    assert crashed == ["scheduler"]


def test_the_demo_is_of_the_size_it_promises():
    scenario = load(SCENARIOS / "demo.toml")
    assert len(scenario.cell.machines) == 1000
    assert 10_000 <= len(scenario.jobs) <= 15_000
    assert 100_000 <= sum(job.tasks for job in scenario.jobs) <= 200_000


def test_the_scenario_of_the_documentation_loads(tmp_path):
    page = (SCENARIOS.parent / "docs" / "scenarios.md").read_text()
    blocks = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "tour.toml").write_text("\n".join(blocks))
    assert load(tmp_path / "tour.toml").fleet[0].settings["t_job"] == 100_000


@pytest.mark.parametrize("block", [0, 1])
def test_the_jobs_of_the_documentation_load(read, block):
    page = (SCENARIOS.parent / "docs" / "scenarios.md").read_text()
    blocks = re.findall(r"```text\n(\[\[workload.*?)```", page, re.DOTALL)
    assert len(read(SMALL + blocks[block]).jobs) == 2
