"""The live part of the Vela paper: agents and a scheduler in processes of their own."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from argosy.cli.app import app
from argosy.model.errors import CommandError
from argosy.papers.experiment import ExperimentPoint, Findings, PointResult, digest, run_points
from argosy.papers.vela import VELA
from argosy.papers.vela.live import farthest, measure, paper_agents
from argosy.papers.vela.points import plan
from argosy.papers.vela.processes import AgentPlan, started

#: Seconds. Far more than a process takes to stop.
PATIENCE = 60.0
TWO = (
    AgentPlan(name="near", mix="cloud", machines=50, delay=30),
    AgentPlan(name="far", mix="edge", machines=50, delay=60),
)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_jobs_are_placed_over_two_agents_as_late_as_these_answer(scratch: Path) -> None:
    found = measure(TWO, count=20, rate=100)
    assert found["placed"] == found["running at agents"] == 20
    assert found["reservations left"] == found["machines too full"] == 0
    # One of the two is asked, and then committed to: twice 30 ms, or twice 60.
    assert found["mean sampling ms"] >= 30
    assert found["mean commit ms"] >= 30
    assert found["mean end to end without queue ms"] >= 60
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, CommandError("of the measurement")])
def test_no_process_outlives_an_interrupted_measurement(
    error: BaseException | type[BaseException], scratch: Path
) -> None:
    pids: list[int] = []

    def interrupted() -> None:
        with started(TWO[:1]) as live:
            pids.extend(process.pid for process in (*live.agents, live.scheduler))
            assert all(is_alive(pid) for pid in pids)
            raise error

    with pytest.raises((KeyboardInterrupt, CommandError)):
        interrupted()
    assert len(pids) == 2
    assert not any(is_alive(pid) for pid in pids)
    assert list(scratch.iterdir()) == []


def test_no_process_outlives_a_measurement_that_is_killed(tmp_path: Path) -> None:
    script = (
        "import signal\n"
        "from argosy.papers.vela.processes import AgentPlan, started\n"
        "with started([AgentPlan(name='near', mix='edge', machines=5)]) as live:\n"
        "    print(live.agents[0].pid, live.scheduler.pid, flush=True)\n"
        "    signal.pause()\n"
    )
    measuring = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    with measuring:
        assert measuring.stdout is not None
        watched = [os.pidfd_open(int(pid)) for pid in measuring.stdout.readline().split()]
        measuring.kill()
    assert len(watched) == 2
    for process in watched:
        # Readable once it has ended.
        assert select.select([process], [], [], PATIENCE)[0], "it goes on"
        os.close(process)


def test_a_scheduler_that_does_not_start_is_reported_in_its_own_words(scratch: Path) -> None:
    complaint = r"argosy scheduler did not start.*candidates"
    with (
        pytest.raises(CommandError, match=complaint),
        started(TWO[:1], "--set", "candidates=0"),
    ):
        raise AssertionError("it started")
    assert list(scratch.iterdir()) == []


def test_the_agents_are_those_of_the_paper() -> None:
    plans = paper_agents(2_000)
    assert [each.mix for each in plans] == ["cloud"] * 3 + ["edge"] * 7
    assert {each.name: each.delay for each in plans}["edge-iowa"] == 114
    mean, deviation = farthest(plans)
    # Of 252 choices of five, 196 have one of the two in Oregon.
    assert mean == pytest.approx((196 * 146 + 35 * 114 + 15 * 98 + 6 * 36) / 252)
    assert 0 < deviation < 25


def test_real_processes_are_measured_only_on_request_and_alone() -> None:
    assert VELA.on_request == ("live",)
    points = plan("quick", ["live", "losses"])
    alone = [point for point in points if VELA.alone(point)]
    assert [point.parameters["how"] for point in alone] == ["processes"] * 2


@pytest.mark.parametrize(("given", "is_live"), [((), False), (("--figure", "live"), True)])
def test_the_command_starts_processes_only_if_told_to(
    given: tuple[str, ...], is_live: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    planned: list[ExperimentPoint] = []

    def run(points: list[ExperimentPoint], *_: object, **__: object) -> dict[str, PointResult]:
        planned.extend(points)
        return {}

    monkeypatch.setattr("argosy.papers.experiment.run_points", run)
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["paper", "vela", "--smoke", *given]).exit_code == 0
    assert planned
    assert any(VELA.alone(point) for point in planned) is is_live


def in_which_process(point: ExperimentPoint) -> PointResult:
    return PointResult({"pid": os.getpid()})


def test_points_that_run_alone_run_last_and_in_the_calling_process() -> None:
    points = [
        ExperimentPoint(paper="none", figure="1", parameters={"n": n}, seed=1, scale="tiny")
        for n in range(3)
    ]
    found = run_points(
        points, in_which_process, None, processes=2, alone=lambda point: point is points[0]
    )
    own = [found[digest(point)]["pid"] == os.getpid() for point in points]
    assert own == [True, False, False]
    assert list(found)[-1] == digest(points[0])


GOOD = {
    "jobs": 100.0, "placed": 100.0, "running at agents": 100.0, "conflicting": 0.0,
    "farthest ms": 136.0, "farthest error ms": 2.0, "mean sampling ms": 140.0,
    "mean commit ms": 60.0, "mean end to end without queue ms": 200.0, "throughput": 93.0,
    "reservations left": 0.0, "machines too full": 0.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "broken"),
    [
        ("throughput", 93.0, None),
        ("running at agents", 101.0, "placed"),
        ("conflicting", 0.01, "conflicts"),
        ("mean sampling ms", 129.0, "sampling"),
        ("mean sampling ms", 162.0, "sampling"),
        ("throughput", 92.0, "throughput"),
        ("reservations left", 1.0, "sound"),
        ("machines too full", 1.0, "sound"),
    ],
)
def test_each_live_claim_can_fail(name: str, value: float, broken: str | None) -> None:
    point = ExperimentPoint(
        paper="vela", figure="live", parameters={"how": "processes", "rate": 94}, seed=1,
        scale="quick",
    )  # fmt: skip
    found = Findings([point], {digest(point): PointResult({**GOOD, name: value})})
    failed = [claim.id for claim in VELA.claims(found, ["live"]) if not claim.holds]
    assert failed == ([f"vela-live-{broken}-94"] if broken else [])
    assert VELA.draw(found, ["live"])[0].panels
