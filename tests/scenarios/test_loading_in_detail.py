"""Loading a scenario, a live cluster's file, or a fleet alone: what each takes, and what each leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_scenario import ALSO, SMALL

from argosy.engines.registry import find_published
from argosy.model.errors import ArgosyError, ScenarioError, SettingError, UnknownName
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, Takes
from argosy.scenarios.changed_values import ChangedValue
from argosy.scenarios.loader import _in_order, _total, load, load_cluster, read_fleet
from argosy.testing.builders import cell, job
from argosy.workloads.tables import Misfit

LIVE = SMALL.replace('"patient"', '"omega"')
SIMULATED = """\
[network]
loss = 0.5
[[faults]]
kind = "machine-crash"
at = "1s"
machine = "m-0"
[output]
log = "none"
[agents]
t_sample = "1s"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "scenario.toml"


def test_a_live_cluster_has_nothing_of_the_simulation(file: Path) -> None:
    file.write_text("seed = 7\nfailover = '9s'\n" + LIVE + SIMULATED)
    simulated, live = load(file), load_cluster(file)
    assert simulated.horizon is not None
    assert simulated.faults
    assert live.horizon is None
    assert (live.jobs, live.faults, live.agents) == ((), (), None)
    assert live.network.loss == 0
    assert live.output.log != "none"
    assert live.failover == 1_000_000
    assert (live.seed, live.cell, live.fleet) == (7, simulated.cell, simulated.fleet)
    assert not live.as_published
    # What is wrong with the rest does not matter.
    file.write_text(LIVE.replace('horizon = "1h"', "horizon = -3") + "[network]\nlost = 1\n")
    assert load_cluster(file).fleet == live.fleet


def test_a_live_cluster_has_no_devices(file: Path) -> None:
    text = LIVE.replace("cpu = 8000", "cpu = 8000, gpu = 1000")
    file.write_text(text.replace("[[cell", '[cell]\ndevices = "gpu"\n[[cell', 1))
    assert load(file).cell.device_resource == "gpu"
    with pytest.raises(ScenarioError, match="gpu consists of devices") as caught:
        load_cluster(file)
    assert caught.value.field == "cell.devices"


FLEET: list[dict[str, Any]] = [
    {"name": "a", "engine": "omega", "takes": {"kinds": ["x"]}, "settings": {"t_job": "2ms"}},
    {"name": "b", "engine": "sparrow", "replicas": 2},
]


def test_a_fleet_is_read_for_a_cell_and_the_jobs_that_are_there() -> None:
    first, second = read_fleet(FLEET, cell(2))
    assert (first.takes, first.settings) == (Takes(kinds=("x",)), {"t_job": 2_000})
    assert second.scheduler_names() == ("b-0", "b-1")
    jobs = [job("j", kind="y").job]
    assert len(read_fleet(FLEET, cell(2), jobs)) == 2
    with pytest.raises(Misfit) as caught:
        read_fleet(FLEET[:1], cell(2), jobs)
    assert caught.value.error.problem == "no scheduler takes jobs of kind 'y', such as j"
    assert len(read_fleet(FLEET[:1], cell(2), [job("j", kind="x").job])) == 1


@pytest.mark.parametrize(
    ("tables", "path"),
    [
        ([], ("fleet",)),
        ([*FLEET, FLEET[1]], ("fleet", 2, "name")),
        ([FLEET[1], {**FLEET[0], "takes": {"kinds": []}}], ("fleet", 1, "takes", "kinds")),
        ([FLEET[0], {"name": "c"}], ("fleet", 1)),
        ([FLEET[0], {"name": "c", "engine": "omgea"}], ("fleet", 1, "engine")),
        (
            [FLEET[0], {"name": "c", "engine": "omega", "settings": {"t_jbo": 1}}],
            ("fleet", 1, "settings", "t_jbo"),
        ),
        (
            [FLEET[0], {"name": "c", "engine": "monolithic", "replicas": 2}],
            ("fleet", 1, "replicas"),
        ),
        (
            [{**FLEET[1], "limits": {"resources": {"gpu": 1}}}],
            ("fleet", 0, "limits", "resources", "gpu"),
        ),
    ],
)
def test_mistakes_in_a_fleet_have_their_places(
    tables: list[dict[str, Any]], path: tuple[Any, ...]
) -> None:
    with pytest.raises(Misfit) as caught:
        read_fleet(tables, cell(2))
    assert caught.value.path == path


def test_an_engine_that_is_alone_has_one_scheduler() -> None:
    (entry,) = read_fleet([{"name": "m", "engine": "monolithic", "replicas": 1}], cell(2))
    assert entry.replicas == 1
    with pytest.raises(Misfit) as caught:
        read_fleet([{"name": "m", "engine": "monolithic", "replicas": 2}], cell(2))
    error = caught.value.error
    assert error.problem == "2 replicas of monolithic"
    assert error.expected == "one: several would be another architecture"
    assert error.hint == "leave replicas out"


def test_settings_are_kept_in_the_order_and_number_in_which_they_are_given(file: Path) -> None:
    file.write_text(SMALL + 'settings = { tries = 4, patience = "2ms" }\n')
    (entry,) = load(file, also=ALSO).fleet
    assert list(entry.settings.items()) == [("tries", 4), ("patience", 2_000)]
    file.write_text(SMALL + "settings = { tries = 0 }\n")
    with pytest.raises(SettingError) as caught:
        load(file, also=ALSO)
    assert caught.value.field == "fleet[0].settings.tries"


WORKLOADS = {
    "synthetic": '[workload.synthetic]\nduration = "1s"\n',
    "trace": '[workload.trace]\npath = "x"\n',
    "eagle": '[workload.eagle]\npath = "x"\n',
    "fanout": '[workload.fanout]\nname = "yahoo"\njobs = 1\n',
    "kubernetes": '[workload.kubernetes]\npath = "x.json"\n',
}


def test_a_workload_is_exactly_one(file: Path) -> None:
    none = SMALL.replace('[[workload.jobs]]\nid = "a"\n', "[workload]\n#").replace(
        'request = { cpu = 500 }\nduration = "10s"\n', ""
    )
    file.write_text(none)
    with pytest.raises(ScenarioError) as caught:
        load(file, also=ALSO)
    names = "synthetic, trace, jobs, eagle, fanout, cluster, google2011, google2019, alibaba2023"
    assert caught.value.problem == "no jobs"
    assert caught.value.expected == f"exactly one of {names}, kubernetes"
    assert caught.value.field == "workload"
    file.write_text(SMALL + WORKLOADS["eagle"])
    with pytest.raises(ScenarioError) as caught:
        load(file, also=ALSO)
    assert caught.value.problem == "both jobs and eagle"
    assert caught.value.field == "workload.eagle"


def test_jobs_that_come_at_once_keep_their_order() -> None:
    jobs = [job(name, submit=at) for name, at in (("c", 1), ("b", 0), ("a", 1), ("d", 0))]
    assert [each.id for each in _in_order(jobs)] == ["b", "d", "c", "a"]


def test_the_total_of_a_cell_may_be_more_than_one_machine_could_have() -> None:
    machines = (
        Machine("a", Resources(2**52, 1, {"gpu": 5})),
        Machine("b", Resources(2**52, 2)),
        Machine("c", Resources(2**52, 0, {"gpu": 7, "tpu": 1})),
    )
    assert _total(CellSpec(machines=machines)) == {
        "cpu": 3 * 2**52, "memory": 3, "gpu": 12, "tpu": 1,
    }  # fmt: skip


def test_values_are_changed_before_anything_is_read(file: Path) -> None:
    file.write_text(SMALL)
    changes = [
        ChangedValue(("cell", "machines", "m", "count"), 2),
        ChangedValue(("workload", "jobs", "a", "request", "cpu"), 700),
        ChangedValue(("seed",), 4),
    ]
    made = load(file, also=ALSO, changes=changes)
    assert (len(made.cell.machines), made.seed) == (2, 4)
    assert made.jobs[0].groups[0].request.cpu == 700
    assert load(file, also=ALSO, changes=changes, seed=5).seed == 5
    with pytest.raises(ArgosyError) as caught:
        load(file, also=ALSO, changes=[ChangedValue(("cell", "machine", "count"), 2)])
    assert (caught.value.file, caught.value.field) == (str(file), "cell")


@pytest.mark.parametrize(("seed", "is_allowed"), [(0, True), (2**63 - 1, True), (-1, False)])
def test_a_seed_fits_in_63_bits(file: Path, seed: int, is_allowed: bool) -> None:
    file.write_text(SMALL)
    if is_allowed:
        assert load(file, also=ALSO, seed=seed).seed == seed
        return
    with pytest.raises(ScenarioError) as caught:
        load(file, also=ALSO, seed=seed)
    assert caught.value.field == "seed"
    assert caught.value.expected == "a whole number from 0 to 2^63 - 1"


def test_a_scenario_may_ask_for_the_published_form(file: Path) -> None:
    text = SMALL.replace('"patient"', '"sparrow"')
    file.write_text(text)
    assert not load(file).as_published
    assert load(file, published=True).as_published
    assert load(file, published=True).machines == load(file).machines
    file.write_text("as_published = true\n" + text)
    made = load(file)
    form = find_published("sparrow")[1]
    assert made.as_published
    assert made.fleet[0].replicas == form.schedulers
    assert made.machines == form.machines
    file.write_text("as_published = true\n" + LIVE + '[[fleet]]\nname = "t"\nengine = "omega"\n')
    with pytest.raises(ScenarioError) as caught:
        load(file)
    assert caught.value.field == "as_published"
    assert caught.value.line == 1


def test_the_same_job_twice_and_a_job_of_another_cell(file: Path) -> None:
    again = '[[workload.jobs]]\nid = "a"\nrequest = {}\nduration = "1s"\n'
    file.write_text(SMALL + again)
    with pytest.raises(ScenarioError) as caught:
        load(file, also=ALSO)
    assert caught.value.problem == "job 'a' again"
    assert caught.value.field == "workload.jobs[1].id"
    file.write_text(SMALL + again.replace('"a"', '"b"').replace("{}", "{ gpu = 1 }"))
    with pytest.raises(UnknownName) as unknown:
        load(file, also=ALSO)
    assert unknown.value.field == "workload.jobs[1].request.gpu"
    groups = '[[workload.jobs]]\nid = "b"\ngroups = [{ request = {}, duration = "1s" }, '
    file.write_text(SMALL + groups + '{ request = { gpu = 1 }, duration = "1s" }]\n')
    with pytest.raises(UnknownName) as unknown:
        load(file, also=ALSO)
    assert unknown.value.field == "workload.jobs[1].groups[1].request.gpu"


HEAD = 'name = "brought"\n[[fleet]]\nname = "s"\nengine = "omega"\n'
OWN = '[[cell.machines]]\nname = "own"\ncapacity = { cpu = 1, gpu = 1000 }\n'


def test_a_workload_brings_machines_and_devices_unless_the_cell_has_its_own(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def bring(scenario: Path, name: str, *more: Any) -> tuple[Machine, ...]:
        asked.append(name)
        return (Machine("brought", Resources(1_000, 0, {"gpu": 2_000})),)

    monkeypatch.setattr("argosy.scenarios.loader.bring_machines", bring)
    monkeypatch.setattr("argosy.scenarios.loader.bring_jobs", lambda *given: iter([job("j")]))
    for sharing, devices in (("devices", "gpu"), ("pooled", None)):
        workload = f'[workload.alibaba2023]\npath = "t"\nsharing = "{sharing}"\n'
        file.write_text(HEAD + workload)
        brought = load(file).cell
        assert [machine.name for machine in brought.machines] == ["brought"]
        assert brought.device_resource == devices
    assert asked == ["alibaba2023"] * 2
    devices_by_name = '[workload.alibaba2023]\npath = "t"\n'
    file.write_text(HEAD + '[cell]\ndevices = "gpu"\n' + OWN + devices_by_name)
    own = load(file).cell
    assert [machine.name for machine in own.machines] == ["own"]
    assert own.device_resource == "gpu"
    file.write_text(HEAD + OWN + devices_by_name)
    with pytest.raises(ScenarioError) as caught:
        load(file)
    assert caught.value.field == "workload.alibaba2023.sharing"
    assert len(asked) == 2
