"""No engine breaks devices, whichever is chosen, and everything that fits is placed in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.engines.registry import ENGINES
from argosy.experiments.execute import execute_in_memory
from argosy.model.errors import ArgosyError, ScenarioError
from argosy.model.jobs import job_of
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec
from argosy.model.truth import SimulatedJob
from argosy.records.answers import TaskAnswers
from argosy.scenarios.loader import load, load_cluster
from argosy.scenarios.unmeetable_demands import unmeetable_demands
from argosy.testing.builders import job, scenario

SECOND = 1_000_000
#: Of one device, and of several.
AMOUNTS = (160, 230, 330, 460, 470, 500, 590, 650, 810, 1000, 1000, 2000)


def cell(*gpus: int) -> CellSpec:
    machines = tuple(
        Machine(f"m{at}", Resources(64_000, 2**40, {"gpu": each * 1000}))
        for at, each in enumerate(gpus)
    )
    return CellSpec(machines=machines, devices="gpu")


def on_gpus(name: str, gpu: int, tasks: int = 1, **fields: object) -> SimulatedJob:
    return job(name, tasks, request=Resources(100, 2**20, {"gpu": gpu}), **fields)


def fits(amounts: list[int], devices: list[int]) -> bool:
    """Whether the requests can be on the devices at once, found by trying everything."""
    if not amounts:
        return True
    first, *others = amounts
    if first >= 1000:
        whole = [at for at, free in enumerate(devices) if free == 1000][: first // 1000]
        left = [0 if at in whole else free for at, free in enumerate(devices)]
        return len(whole) == first // 1000 and fits(others, left)
    return any(
        free >= first and fits(others, [*devices[:at], free - first, *devices[at + 1 :]])
        for at, free in enumerate(devices)
    )


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("seed", [1, 2])
def test_no_engine_breaks_devices(engine: str, seed: int) -> None:
    random = Random(seed)
    gpus = (2, 1, 3)
    jobs = [
        on_gpus(
            f"j{number}",
            AMOUNTS[random.below(len(AMOUNTS))],
            1 + random.below(4),
            seconds=5 + random.below(60),
            submit=random.below(60),
        )
        for number in range(25)
    ]
    made = scenario(engine, jobs, cell=cell(*gpus), horizon=24 * 3600 * SECOND)
    run = execute_in_memory(made)
    assert run.summary().counts.jobs_finished == len(jobs)
    rows = run.kept_tasks()
    amounts = [
        made.jobs[job_of(int(task))].groups[0].request.extras["gpu"] for task in rows["task"]
    ]
    for moment in sorted({int(each) for each in rows["started"]}):
        is_running = (rows["started"] <= moment) & (moment < rows["finished"])
        for machine, count in enumerate(gpus):
            here = is_running & (rows["machine"] == machine)
            held = sorted((amounts[at] for at in here.nonzero()[0]), reverse=True)
            assert fits(held, [1000] * count), (moment, machine, held)


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_a_share_waits_for_one_device_though_the_sum_would_do(engine: str) -> None:
    jobs = [
        on_gpus("first", 600, 2, seconds=100),
        on_gpus("second", 800, seconds=10, submit=50),
    ]
    run = execute_in_memory(scenario(engine, jobs, replicas=1, cell=cell(2), horizon=3600 * SECOND))
    rows = run.kept_tasks()
    [second] = [at for at, task in enumerate(rows["task"]) if job_of(int(task)) == 1]
    others = [at for at in range(len(rows["task"])) if at != second]
    assert rows["started"][second] >= min(rows["finished"][at] for at in others)


def test_why_names_the_device_that_is_lacking() -> None:
    jobs = [
        on_gpus("first", 600, 2, seconds=None),
        on_gpus("second", 800, submit=50),
        on_gpus("third", 1000, submit=60),
    ]
    run = execute_in_memory(scenario("omega", jobs, replicas=1, cell=cell(2), horizon=200 * SECOND))
    share, whole = (str(TaskAnswers(run, task).why()) for task in ("second/0", "third/0"))
    assert "does not have 800 gpu free on one device" in share
    assert "m0 lacks 400 gpu on one device" in share
    assert "does not have 1000 gpu free in whole devices" in whole


def test_a_gang_that_no_devices_hold_is_found_before_the_run() -> None:
    gang = on_gpus("gang", 600, 3, gang=True)
    [found] = unmeetable_demands(scenario("omega", [gang], cell=cell(2)))
    assert (found.code, found.most) == ("gang", 2)


TEXT = """\
name = "devices"

[cell]
devices = "gpu"

[[cell.machines]]
name = "n"
capacity = { cpu = 8000, memory = "8GiB", gpu = 2000 }

[[workload.jobs]]
id = "j"
request = { cpu = 1000, gpu = 500 }
duration = "10s"

[[fleet]]
name = "s"
engine = "omega"
"""
RESIZE = """
[[faults]]
kind = "machine-resize"
machine = "n"
at = "5s"
capacity = { cpu = 8000, memory = "8GiB", gpu = 1500 }
"""


def test_a_scenario_names_the_resource_that_consists_of_devices(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(TEXT)
    assert load(path).cell.device_resource == "gpu"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT.replace('"gpu"', '"gpus"'), r"toml:4: cell\.devices: .*'gpus'.*did you mean 'gpu'"),
        (TEXT.replace('"gpu"', '"cpu"'), r"toml:4: cell\.devices: .*'cpu'"),
        (
            TEXT.replace("gpu = 2000", "gpu = 2"),
            r"toml:4: cell\.devices: n: gpu = 2; expected a multiple of 1000, up to 16000",
        ),
        (TEXT + RESIZE, r"faults\[0\]\.capacity\.gpu: gpu = 1500; expected a multiple of 1000"),
    ],
)
def test_devices_that_cannot_be_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    with pytest.raises(ArgosyError, match=message):
        load(path)


def test_a_live_cluster_has_no_devices(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(TEXT)
    with pytest.raises(ScenarioError, match=r"toml:4: cell\.devices: .*for simulations"):
        load_cluster(path)
