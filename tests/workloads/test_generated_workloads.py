"""Workloads as they are generated and written, with options that no scenario has: kept as digests. See
`pinned_digests` for how to compare before and after a change."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Final

import pytest
from pinned_commands import Folder, plain
from pinned_digests import require_digests
from rich_jobs import Stream
from rich_scenarios import rich_scenario

from argosy.model.errors import ArgosyError
from argosy.model.random import Random
from argosy.model.truth import SimulatedJob
from argosy.scenarios.loader import load
from argosy.scenarios.scenario_tables import cluster_tables
from argosy.scenarios.toml_text import to_toml
from argosy.workloads import clusters, fanout, google2011, google2019, mapreduce
from argosy.workloads.google_jobs import Notes
from argosy.workloads.job_tables import job_table
from argosy.workloads.live_jobs import live_job_table
from argosy.workloads.trace import read_trace, write_trace

PINNED: Final = Path(__file__).parent / "pinned"
SECOND: Final = 1_000_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


def drawn(jobs: Iterable[SimulatedJob], most: int = 40) -> str:
    try:
        return plain([(job.job, job.submit, job.truth) for job in islice(jobs, most)])
    except ArgosyError as error:
        return f"{error.code}: {error}"


def test_clusters_and_fan_out(pytestconfig: pytest.Config) -> None:
    outcomes = {}
    for number in range(60):
        stream = Stream(f"generated {number}")
        spec = clusters.cluster(stream.pick(("A", "B", "C", "D", "lightweight")))
        span = stream.pick((20, 300, 4000)) * SECOND
        varied = stream.has(0.4) and spec.name in "BC"
        scale, burstiness = stream.pick((0.003, 0.02)), stream.pick((1.0, 1.0, 3.5))
        rate = stream.pick((1.0, 30.0, {"batch": 5.0}, {"service": 50.0, "batch": 0.0}, {"x": 1.0}))
        make = stream.pick((clusters.jobs, clusters.jobs, mapreduce.jobs))
        seed = stream.below(1000)
        try:
            arriving = drawn(
                make(
                    spec,
                    span,
                    Random(seed),
                    rate=rate,
                    scale=scale,
                    varied=varied,
                    burstiness=burstiness,
                )
            )
        except ArgosyError as error:
            arriving = f"{error.code}: {error}"
        turnover = stream.pick((None, 60 * SECOND))
        standing = clusters.fill(
            spec, Random(seed), scale=scale, turnover=turnover, span=span, varied=varied
        )
        shape = fanout.shape(stream.pick(("yahoo", "cloudera")))
        jobs = list(fanout.generate(shape, 9, Random(seed), scale=0.02, speedup=10))
        pattern = stream.pick(("A", "B", "C", "D"))
        parts = [
            arriving,
            drawn(standing, 12),
            plain(clusters.machines(spec, 0.001, varied=varied)),
            plain([(kind, each.busyness(rate=2.0)) for kind, each in spec.kinds.items()]),
            drawn(fanout.by_pattern(jobs, pattern, Random(seed))),
            drawn(fanout.one_by_one(jobs, pattern, Random(seed)), 20),
        ]
        outcomes[str(number)] = "\n".join(parts)
    require_digests(PINNED / "generated.txt", outcomes, pytestconfig)


def test_workloads_written_as_tables_and_traces(
    folder: Folder, pytestconfig: pytest.Config
) -> None:
    outcomes = {}
    for number in range(60):
        rich = rich_scenario(91, number)
        folder.remove("trace", "cluster.json", "cluster.yaml", "written.jsonl")
        folder.write({"rich.toml": to_toml(rich.document)} | rich.files)
        try:
            scenario = load(Path("rich.toml"))
        except ArgosyError as error:
            outcomes[str(number)] = f"{error.code}: {error}"
            continue
        some = list(islice(scenario.jobs, 30))
        count = write_trace(Path("written.jsonl"), some)
        parts = [
            str(count),
            Path("written.jsonl").read_text("utf-8"),
            drawn(read_trace(Path("written.jsonl"), speedup=3.0)),
            plain([job_table(job) for job in some]),
            plain([live_job_table(job.job) for job in some]),
            to_toml(cluster_tables(scenario.cell, scenario.cell.machines[:5], scenario.fleet)),
        ]
        outcomes[str(number)] = "\n".join(parts)
    require_digests(PINNED / "written.txt", outcomes, pytestconfig)


def test_traces_of_google_read_in_order(folder: Folder, pytestconfig: pytest.Config) -> None:
    outcomes = {}
    for number in range(4, 344):
        rich = rich_scenario(19, number)
        if not rich.workload.startswith("google"):
            continue
        folder.remove("trace")
        folder.write(rich.files)
        reader = google2011 if rich.workload == "google2011" else google2019
        stream = Stream(f"google {number}")
        start, span = stream.pick((0, 600, 604)) * SECOND, stream.pick((None, 5, 30))
        notes = Notes()
        jobs = reader.jobs(
            Path("trace"),
            start=start,
            span=span and span * SECOND,
            notes=notes,
            in_order=stream.has(0.7),
        )
        told = [drawn(jobs), plain(notes), plain(notes.sentences())]
        try:
            told.append(plain(reader.machines(Path("trace"), at=start, most=2, notes=notes)))
        except ArgosyError as error:
            told.append(str(error))
        outcomes[f"{number} {rich.workload}"] = folder.steady("\n".join(told))
    require_digests(PINNED / "google.txt", outcomes, pytestconfig)
