"""Figures 11 to 14 of the Omega paper on a trace: small tables of the public one's form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argosy.cli.app import run
from argosy.model.errors import TraceError
from argosy.papers.experiment import Findings, PointResult, digest
from argosy.papers.omega import OMEGA
from argosy.papers.omega.world import run_point
from argosy.papers.recorded import TABLES


def write_trace(directory: Path, service: str = "9") -> None:
    """Two machines of which only one has what the service wants, which is of this priority; a batch job
    runs from the start."""
    at, later = 600_000_000, 700_000_000
    tables = {
        "machine_events": ["0,1,0,,0.5,0.5", "0,2,0,,0.5,0.5"],
        "machine_attributes": ["0,2,clock,9,0"],
        "task_constraints": [f"{later},8,0,3,clock,5"],
        "job_events": [
            "0,,7,0,kim,2,n,l",
            f"{later},,8,0,kim,2,n,l",
            f"{3 * later},,7,4,kim,2,n,l",
            f"{3 * later},,8,4,kim,2,n,l",
        ],
        "task_events": [
            "0,,7,0,,0,kim,2,0,0.25,0.25,0,",
            f"{at - 1},,7,0,,1,kim,2,0,0.25,0.25,0,",
            f"{later},,8,0,,0,kim,2,{service},0.25,0.25,0,",
            f"{later + 1},,8,0,,1,kim,2,{service},0.25,0.25,0,",
            f"{2 * later},,7,0,,4,kim,2,0,0.25,0.25,0,",
            f"{2 * later},,8,0,,4,kim,2,{service},0.25,0.25,0,",
        ],
    }
    for table, lines in tables.items():
        (directory / table).mkdir(parents=True)
        (directory / table / "part-00000-of-00001.csv").write_text("\n".join(lines) + "\n")


def test_figures_of_the_high_fidelity_simulator_run_on_a_trace(tmp_path: Path) -> None:
    write_trace(tmp_path)
    plain = OMEGA.plan("smoke", ["12"])[0]
    assert OMEGA.traced is not None
    point = OMEGA.traced(plain, tmp_path)
    assert digest(point) != digest(plain)
    result = run_point(point)
    assert result["service.jobs"] == 1
    assert result["service.unscheduled"] == 0
    assert "batch.jobs" not in result.values, "what runs at the start is the fill"
    [other] = OMEGA.plan("smoke", ["2"])[:1]
    assert OMEGA.traced(other, tmp_path) == other


def test_figures_on_a_trace_do_not_speak_of_synthetic_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_trace(tmp_path / "trace")
    monkeypatch.chdir(tmp_path)
    figures = [part for number in ("11", "12", "13", "14") for part in ("--figure", number)]
    options = ["--where", "placement=best-fit", "--trace", "trace", "--jobs", "1", "-o", "json"]
    code = run(["paper", "omega", "--smoke", *figures, *options])
    out, err = capsys.readouterr()
    assert code == 0, err
    claims = {claim["id"]: claim for claim in json.loads(out)}
    assert "on cluster C's public trace" in claims["omega-12b-a-retry-on-average"]["note"]
    assert "on cluster C's public trace" in claims["omega-11-service-busyness-stays-low"]["note"]
    assert "on cluster C's public trace" in claims["omega-13a-three-schedulers-best-fit"]["note"]
    assert not any("synthetic" in claim["note"] for claim in claims.values())
    drawn = Path("runs/paper-omega.html").read_text("utf-8")
    assert "Shared state on cluster C" in drawn
    assert "synthetic" not in drawn


def test_one_trace_is_not_compared_with_itself_nor_with_other_jobs(tmp_path: Path) -> None:
    """Cluster B's trace was never published, so points on B and on C are the same."""
    write_trace(tmp_path)
    assert OMEGA.traced is not None
    planned = [point for point in OMEGA.plan("smoke", ["12"]) if point.figure == "12"]
    points = {digest(OMEGA.traced(point, tmp_path)): point for point in planned}
    assert len(points) == len(planned) - 1
    light = [point for point in OMEGA.plan("smoke", ["12"]) if point.figure == "5c"]
    traced = [OMEGA.traced(point, tmp_path) for point in points.values()]
    results = {digest(point): run_point(point) for point in traced}
    results |= {digest(point): PointResult({"service.conflicts": 0.0}) for point in light}
    ids = {claim.id for claim in OMEGA.claims(Findings([*traced, *light], results), ["12"])}
    assert "omega-12b-a-retry-on-average" in ids
    assert not ids & {"omega-12-more-interference-than-C", "omega-12-simulators-agree"}


def test_a_trace_without_service_jobs_claims_nothing_of_their_scheduler(tmp_path: Path) -> None:
    write_trace(tmp_path, service="0")
    assert OMEGA.traced is not None
    figures = ["11", "12", "14"]
    traced = [
        OMEGA.traced(point, tmp_path)
        for point in OMEGA.plan("smoke", figures)
        if point.figure in figures
    ]
    found = Findings(traced, {digest(point): run_point(point) for point in traced})
    assert found.select("14")[0][1]["batch.jobs"] == 1
    assert OMEGA.claims(found, figures) == []
    assert [drawn.number for drawn in OMEGA.draw(found, figures)] == figures


def test_a_point_on_a_trace_is_another_one_if_a_file_is_another(tmp_path: Path) -> None:
    """Names and sizes tell: results of the trace that was there before are not reused."""
    files = [tmp_path / table / "part-0" for table in TABLES]
    for file in files:
        file.parent.mkdir()
        file.write_text("1,2\n")
    plain = OMEGA.plan("smoke", ["12"])[0]

    def found() -> str:
        assert OMEGA.traced is not None
        return digest(OMEGA.traced(plain, tmp_path))

    seen = [found()]
    assert found() == seen[0]
    for file in files:
        file.write_text("1,2\n3,4\n")
        seen.append(found())
    files[-1].rename(files[-1].with_name("part-1"))
    seen.append(found())
    assert len(set(seen)) == len(seen) == 5


def test_a_directory_without_a_trace_is_a_mistake(tmp_path: Path) -> None:
    assert OMEGA.traced is not None
    with pytest.raises(TraceError, match="no tables"):
        OMEGA.traced(OMEGA.plan("smoke", ["12"])[0], tmp_path)
