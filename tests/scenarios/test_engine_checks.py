"""Settings that do not fit the cell or the jobs are found when the scenario is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_scenario import line

from argosy.engines.registry import find_engines
from argosy.experiments.execute import execute
from argosy.model.errors import ArgosyError, ScenarioError, SettingError
from argosy.model.scenario import FleetEntry
from argosy.scenarios.engine_checks import require_fitting
from argosy.scenarios.loader import load
from argosy.testing.builders import cell, job, scenario

SCENARIO = """\
name = "checked"
horizon = "30s"

[[cell.machines]]
name = "m"
count = 4
capacity = { cpu = 4000, memory = "16GiB"CAPACITY }
JOINS
[cell.groups]
rack = { size = 2 }
domain = { sets = ["d1", "d2"] }

[[workload.jobs]]
id = "web"
kind = "service"
count = 2
request = { cpu = 500 }
tags = ["web"]
JOB

[[fleet]]
name = "s"
engine = "ENGINE"

[fleet.settings]
SETTINGS
"""


def written(
    tmp_path: Path,
    engine: str,
    settings: str,
    job: str = "",
    capacity: str = "",
    joins: str = "",
) -> Path:
    path = tmp_path / "scenario.toml"
    text = SCENARIO.replace("ENGINE", engine).replace("SETTINGS", settings)
    text = text.replace("JOB", job).replace("CAPACITY", capacity).replace("JOINS", joins)
    path.write_text(text)
    return path


def mistake(path: Path) -> ArgosyError:
    with pytest.raises(ArgosyError) as caught:
        load(path)
    return caught.value


@pytest.mark.parametrize("engine", ["firmament", "quincy"])
def test_network_awareness_without_bandwidth_is_found(tmp_path: Path, engine: str) -> None:
    path = written(tmp_path, engine, 'policy = "network-aware"')
    error = mistake(path)
    assert isinstance(error, SettingError)
    assert error.file == str(path)
    assert error.line == line(path.read_text(), "network-aware")
    assert error.field == "fleet[0].settings.policy"
    assert "'bandwidth', which no machine has" in str(error)
    assert "add bandwidth to the capacity of machines" in str(error)


def test_network_awareness_with_bandwidth_runs(tmp_path: Path) -> None:
    settings = 'policy = "network-aware"'
    capacity = ", bandwidth = 1000"
    execute(load(written(tmp_path, "firmament", settings, capacity=capacity)), None)
    other = settings + '\nbandwidth = "cpu"'
    execute(load(written(tmp_path, "firmament", other)), None)


@pytest.mark.parametrize(
    "constraint",
    [
        "web -> spread {1, 2} over rack",
        "web -> ({web, 0, 0} or {cache, 1, inf}) in rack",
        "web -> {web, 0, 0} in domain",
    ],
)
@pytest.mark.parametrize("owner", ["job", "operator", "cell"])
def test_a_constraint_without_a_printed_form_is_found(
    tmp_path: Path, constraint: str, owner: str
) -> None:
    """Machines are in both domains, whose sets overlap."""
    settings, joins, own = 'algorithm = "ilp-printed"', 'joins = { domain = ["d1", "d2"] }', ""
    if owner == "job":
        own = f'constraints = ["{constraint}"]'
    elif owner == "operator":
        settings += f'\noperator = ["{constraint}"]'
    else:
        joins += f'\n[cell]\nconstraints = ["{constraint}"]'
    path = written(tmp_path, "medea", settings, own, joins=joins)
    if owner == "cell":
        # In TOML a table that was opened by [[cell.machines]] is written first.
        text = path.read_text().replace(f'[cell]\nconstraints = ["{constraint}"]', "")
        path.write_text(
            text.replace(
                "[[cell.machines]]", f'[cell]\nconstraints = ["{constraint}"]\n\n[[cell.machines]]'
            )
        )
    error = mistake(path)
    assert error.field == "fleet[0].settings.algorithm"
    whose = "of job web" if owner == "job" else "the operator's"
    assert whose in str(error)
    assert "has no printed form" in str(error)
    assert "choose the algorithm ilp" in str(error)


def test_an_application_too_large_for_the_printed_program_is_found(tmp_path: Path) -> None:
    path = written(tmp_path, "medea", 'algorithm = "ilp-printed"')
    path.write_text(path.read_text().replace("count = 2", "count = 20000"))
    error = mistake(path)
    assert "job web on 4 machines has 80,000 places; expected at most 50,000" in str(error)


@pytest.mark.parametrize("engine", ["medea", "jkube", "jkube++", "kube-modern", "ilp-all"])
@pytest.mark.parametrize(
    ("constraint", "problem"),
    [
        ("web -> {web, 0, 0} in rak", "there is no node group 'rak'; did you mean 'rack'?"),
        ("web -> spread {9, 12} over rack", "spread over 9 sets, but rack has 2"),
        ("web -> ({web, 0, 1} and {web, 3, inf}) in rack", "the expression can never hold"),
    ],
)
def test_an_operators_constraint_that_nothing_can_keep_is_found(
    tmp_path: Path, engine: str, constraint: str, problem: str
) -> None:
    settings = f'operator = ["web -> {{web, 0, 5}} in rack", "{constraint}"]'
    error = mistake(written(tmp_path, engine, settings))
    assert error.field == "fleet[0].settings.operator[1]"
    assert problem in str(error)


def test_a_constraint_of_the_cell_that_nothing_can_keep_is_found(tmp_path: Path) -> None:
    path = written(tmp_path, "medea", "")
    top = '[cell]\nconstraints = ["web -> spread {9, 12} over rack"]\n\n[[cell.machines]]'
    path.write_text(path.read_text().replace("[[cell.machines]]", top))
    error = mistake(path)
    assert isinstance(error, ScenarioError)
    assert error.field == "cell.constraints[0]"
    assert "spread over 9 sets, but rack has 2" in str(error)


def test_an_unknown_group_to_relax_within_is_found(tmp_path: Path) -> None:
    error = mistake(written(tmp_path, "medea", 'conflict = "relax"\nrelax_within = "rak"'))
    assert error.field == "fleet[0].settings.relax_within"
    assert "did you mean 'rack'?" in str(error)


def test_a_scenario_built_in_python_is_checked_before_it_runs() -> None:
    spec = scenario("firmament", [job("a")], replicas=1, settings={"policy": "network-aware"})
    with pytest.raises(SettingError) as caught:
        execute(spec, None)
    assert caught.value.field == "fleet[0].settings.policy"


def test_only_settings_that_are_in_use_are_checked() -> None:
    entry = FleetEntry(name="s", engine="firmament", settings={"bandwidth": "links"})
    spec = scenario("firmament", [job("a")], cell=cell(2), fleet=(entry,))
    require_fitting(spec, find_engines(spec.engine_names()))
