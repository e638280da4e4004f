"""The Murmuration paper's experiments at the smallest scale: they run, and end in claims and figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from argosy.model.errors import TraceError
from argosy.model.scenario import ConstantLatency
from argosy.papers.experiment import ExperimentPoint, Findings, PointResult, digest, run_points
from argosy.papers.murmuration import MURMURATION
from argosy.papers.murmuration.jobs import FILES, jobs_of, machines_for, traced
from argosy.papers.murmuration.points import FIGURES, SIMULATED, SIZES
from argosy.papers.murmuration.world import _scenario, run_point
from argosy.workloads.eagle import HEADING

_NEEDED = ("2", "3", "4", "5", "9", "10", "11", "14", "16")


@pytest.fixture(scope="module")
def found() -> Findings:
    points = MURMURATION.plan("smoke", _NEEDED)
    return Findings(points, run_points(points, run_point, None))


def test_every_figure_has_points_and_none_is_there_twice() -> None:
    for scale in MURMURATION.scales:
        points = MURMURATION.plan(scale, FIGURES)
        assert len({digest(point) for point in points}) == len(points)
        for figure in FIGURES:
            assert MURMURATION.plan(scale, [figure])


def test_full_scale_is_the_paper_s() -> None:
    points = MURMURATION.plan("full", ["12"])
    assert {point.parameters["machines"] for point in points} == set(SIZES)
    assert {point.parameters["system"] for point in points} == set(SIMULATED)
    assert {point.parameters["jobs"] for point in points} == {10_000}


def test_points_end_in_claims_and_figures(found: Findings) -> None:
    claims = {claim.id for claim in MURMURATION.claims(found, _NEEDED)}
    assert claims == {
        "2-median",
        "2-peak",
        "3-average-is-scheduling",
        "3-tail-above-average",
        "3-tail-is-scheduling-kube-30s",
        "3-tail-is-scheduling-kube-1s",
        "3-tail-is-scheduling-kube-none",
        "4-added-together",
        "4-scheduling-spreads",
        "9-jct-A-kube-30s",
        "9-jct-A-kube-1s",
        "9-jct-A-kube-none",
        "9-jct-A-kube-1s-ready",
        "9-jct-A-kube-1s-costly",
        "9-jct-A-kube-30s-sum",
        "9-jct-99-A-kube-30s",
        "9-jct-99-A-kube-1s",
        "9-jct-99-A-kube-none",
        "9-tst-constant",
        "9-tst-5ms",
        "9-tct-overlap",
        "9-total-wait",
        "9-total-wait-99",
        "9-wait-variance",
        "10-jct-B-kube-30s",
        "10-jct-C-kube-30s",
        "10-jct-D-kube-30s",
        "10-tail-B",
        "10-tail-C",
        "10-tail-D",
        "5-sparrow-waits-at-machines",
        "5-tail-close-to-average",
        "11-throughput",
        "11-peak",
        "14-error-15",
        "14-error-50",
        "14-error-15-srjf",
        "14-error-50-srjf",
        "14-error-15-sjf-stf",
        "14-error-50-sjf-stf",
        "16-restarted",
        "16-restarted-srjf",
        "16-restarted-sjf-stf",
        "16-tail",
        "16-tail-srjf",
        "16-tail-sjf-stf",
    }
    for figure in MURMURATION.draw(found, _NEEDED):
        assert any(line.marks for panel in figure.panels for line in panel.lines)


def test_without_points_there_are_no_claims_and_empty_figures() -> None:
    nothing = Findings([], {})
    assert MURMURATION.claims(nothing, FIGURES) == []
    assert [figure.number for figure in MURMURATION.draw(nothing, FIGURES)] == list(FIGURES)


def test_claims_are_judged_by_their_tolerance() -> None:
    points = MURMURATION.plan("smoke", ["12", "15"])
    results = {}
    for point in points:
        slow = {"sparrow": 4000.0, "eagle": 4000.0, "yaq-d": 200.0, "yaq-d-8s": 900.0}
        slow["murmuration-sjf-stf"] = 400.0
        jct = slow.get(str(point.parameters["system"]), 40.0)
        jct *= 1 + float(point.parameters.get("delay", 0.0)) / 12
        told = {"tasks": 500.0, "schedulers": 10.0, "messages": 900.0, "notices": 5_000.0}
        told["bytes"] = 76_000.0
        told["jobs"] = 100.0
        # A message per task takes its time to read; one per job is no worse than one per task.
        jct *= (
            2.0 if point.parameters.get("told") == "task" and point.parameters["reading"] else 1.0
        )
        jct *= 1.2 if point.parameters.get("told") == "1 s" else 1.0
        told["utilisation"] = 0.4 if point.parameters["system"] == "murmuration-srjf" else 0.5
        # More schedulers are worse, except under FCFS.
        if point.parameters["system"] != "murmuration-fcfs":
            jct *= 1 + float(point.parameters.get("schedulers", 0.0)) / 10
        results[digest(point)] = PointResult({"jct": jct, **told})
    claims = {
        claim.id: claim.holds
        for claim in MURMURATION.claims(Findings(points, results), ["12", "15"])
    }
    assert claims == {
        "12-srjf-sparrow": True,
        "12-srjf-yaq-d": False,
        "12-srjf-eagle": True,
        "12-srjf-yaq-d-8s": False,
        "12-sjf-stf-sparrow": False,
        "12-sjf-stf-yaq-d": False,
        "12-sjf-stf-yaq-d-8s": False,
        "12-sjf-stf-eagle": False,
        "12-srjf-utilisation": True,
        "12-messages": True,
        "12-bytes": True,
        "15-more-schedulers": False,
        "15-more-schedulers-srjf": True,
        "15-more-schedulers-sjf-stf": True,
        "15-delay-1s-sjf-stf": True,
        "15-delay-10s-sjf-stf": True,
        "15-delay-1s": True,
        "15-delay-10s": True,
        "15-delay-1s-srjf": True,
        "15-delay-10s-srjf": True,
        "15-messages": False,
        "15-batched-by-job": True,
        "15-backlog": True,
        "15-periodic": False,
        "15-minimum-count": True,
    }


def test_messages_are_counted_one_by_one_where_they_are_not_batched() -> None:
    points = [
        point
        for point in MURMURATION.plan("smoke", ["15"])
        if point.figure == "batching" and point.parameters["told"] in ("task", "job")
    ]
    found = Findings(points, run_points(points, run_point, None))
    [claim] = [c for c in MURMURATION.claims(found, ["15"]) if c.id == "15-messages"]
    assert claim.holds, claim.here


def _pattern(system: str, **told: str | int) -> ExperimentPoint:
    parameters: dict[str, str | int | float] = {"pattern": "A", "pods": 3_000, "system": system}
    return ExperimentPoint(
        paper="murmuration", figure="A", parameters={**parameters, **told}, seed=1, scale="smoke"
    )


def test_the_cluster_is_as_large_as_its_work_wants() -> None:
    jobs = jobs_of(_pattern("kube-30s"))
    longer = tuple(
        structs.replace(
            job,
            truth=tuple(
                structs.replace(truth, durations=tuple(2 * time for time in truth.durations))
                for truth in job.truth
            ),
        )
        for job in jobs
    )
    assert sum(job.tasks for job in jobs) >= 3_000
    assert machines_for(longer, "A") == pytest.approx(2 * machines_for(jobs, "A"), abs=1)
    # A pattern with more tasks a second has more of them on the same machines.
    assert machines_for(jobs, "D") < machines_for(jobs, "A")


def _a_trace(directory: Path, jobs: int, seconds: int) -> Path:
    rows = [f"j{i},{7 * i},{4 + i % 3},{seconds}" for i in range(jobs)]
    for name in FILES.values():
        (directory / name).write_text("\n".join([HEADING, *rows]) + "\n")
    return directory


def test_points_run_on_a_trace_and_say_on_which(tmp_path: Path) -> None:
    _a_trace(tmp_path, 30, 20)
    plain = _pattern("kube-30s", pods=60)
    point = traced(plain, tmp_path)
    assert digest(point) != digest(plain)
    owners = dict.fromkeys(job.job.owner for job in jobs_of(point))
    names = [int(owner.removeprefix("j")) for owner in owners]
    assert names == [(names[0] + i) % 30 for i in range(len(names))], "from a random job on"
    _a_trace(tmp_path, 30, 21)
    assert digest(traced(plain, tmp_path)) != digest(point), "another trace under the same name"
    [simulated] = MURMURATION.plan("smoke", ["5"])
    assert [job.submit for job in jobs_of(traced(simulated, tmp_path))][:3] == [0, 7_000, 14_000]
    [flood] = MURMURATION.plan("smoke", ["11"])
    assert traced(flood, tmp_path) == flood


def test_a_trace_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(TraceError) as caught:
        traced(_pattern("kube-30s"), tmp_path)
    assert FILES["cloudera"] in str(caught.value.expected)


def test_only_jobs_that_come_once_the_cluster_is_full_count(tmp_path: Path) -> None:
    """60 jobs of 5 tasks come within a minute to one machine of 80 pods, and run for ten."""
    _a_trace(tmp_path, 60, 600)
    point = traced(_pattern("kube-1s", pods=300, machines=1), tmp_path)
    result = run_point(point)
    jobs = len({job.job.owner for job in jobs_of(point)})
    # Tasks come one by one, of one job after another.
    before = int(0.95 * 80) // 5
    assert jobs - before - 1 <= result["jobs"] <= jobs - before + 1
    assert result["full"] > 0.95
    assert result.series["tail_tst"][50] > 300


def test_messages_are_as_many_as_the_paper_counts() -> None:
    [point] = [
        point
        for point in MURMURATION.plan("smoke", ["12"])
        if point.parameters["system"] == "murmuration-srjf" and point.parameters["machines"] == 50
    ]
    result = run_point(point)
    assert result["messages"] == 100 * (10 - 1)
    assert result["notices"] == result["tasks"] * 10
    assert result["bytes"] == 8 * result["tasks"] * (10 - 1 + 10)


def test_fewer_messages_about_the_same_placements_have_as_many_bytes() -> None:
    by_task, by_job = (
        run_point(point)
        for point in MURMURATION.plan("smoke", ["15"])
        if point.parameters.get("told") in ("task", "job") and not point.parameters["reading"]
    )
    assert by_job["messages"] < by_task["messages"]
    assert by_job["bytes"] == by_task["bytes"] > 0
    [sparrow] = MURMURATION.plan("smoke", ["5"])
    assert run_point(sparrow)["bytes"] == 0


def test_waits_differ_among_a_job_s_tasks_if_some_have_to_wait(tmp_path: Path) -> None:
    """One machine of 80 pods gets 60 jobs of 5 tasks: those that come first do not wait."""
    _a_trace(tmp_path, 60, 600)
    told = {"pods": 300, "machines": 1}
    kube, plain = (
        run_point(traced(_pattern(system, **told), tmp_path))
        for system in ("kube-none", "murmuration")
    )
    assert kube["spread.wait"] > 0
    assert plain["spread.wait"] > 0


def test_messages_take_longer_where_a_scheduler_restarts() -> None:
    """5 ms instead of 0.5 ms, as the paper says of figure 16."""
    for figure, delay in (("14", 500), ("15", 500), ("16", 5_000)):
        for point in MURMURATION.plan("smoke", [figure]):
            assert _scenario(point, ()).network.latency == ConstantLatency(delay=delay)
