"""Scenarios made from scenarios, their digests, and those that come along."""

import re
from pathlib import Path

import msgspec
import pytest
from small_scenario import SMALL

from argosy.model.scenario import FleetEntry, Partition, Scenario, SchedulerCrash
from argosy.scenarios.loader import load, scenario_digest, with_engine

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
