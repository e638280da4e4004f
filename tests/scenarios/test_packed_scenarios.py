"""Scenarios of so many jobs that they are packed: equal in everything to those that are not."""

import io
import tracemalloc
from functools import partial
from pathlib import Path

import msgspec
import pytest

from argosy.engines.registry import ENGINES
from argosy.experiments.execute import execute, execute_in_memory
from argosy.model.errors import ArgosyError
from argosy.model.packed_jobs import PackedJobs, packed
from argosy.model.scenario import Scenario
from argosy.scenarios import loader
from argosy.scenarios.ignored_demands import ignored_demands
from argosy.scenarios.loader import load, scenario_digest, with_engine
from argosy.scenarios.scenario_json import write_scenario
from argosy.scenarios.unmeetable_demands import unmeetable_demands
from argosy.workloads.trace import write_trace

DRAWN = """
name = "drawn"
horizon = "1h"

[[cell.machines]]
name = "m"
count = 20
capacity = { cpu = 16000, memory = "64GiB" }

[workload.synthetic]
span = "10min"
utilisation = 0.5

[workload.synthetic.kinds.service]
share = 0.2
standing = 0.5
precedence = 10
tasks = { shape = "uniform", low = 1, high = 4 }
requests = [{ request = { cpu = 1000, memory = "4GiB" } }]
constraints = ["appID:self -> {appID:self, 0, 1} in machine"]

[workload.synthetic.kinds.batch]
share = 0.8
gang = 0.3
arrivals = { process = "bursty", factor = 6, burst = "10s", every = "1min" }
tasks = { shape = "uniform", low = 1, high = 9 }
duration = { shape = "lognormal", median = "20s", sigma = 1.0 }
variation = 0.3
requests = [
  { weight = 4, request = { cpu = 500, memory = "1GiB" } },
  { weight = 1, request = { cpu = 2000, memory = "6GiB" } },
]

[[fleet]]
name = "s"
engine = "omega"
replicas = 2
"""

SHORT = """
name = "short"

[[cell.machines]]
name = "m"
count = 20
capacity = { cpu = 16000, memory = "64GiB" }

[workload.synthetic]
span = "SPAN"
utilisation = 0.2

[workload.synthetic.kinds.batch]
tasks = { shape = "uniform", low = 1, high = 4 }
duration = { shape = "uniform", low = "2s", high = "8s" }
requests = [{ request = { cpu = 500, memory = "64MiB" } }]

[[fleet]]
name = "s"
engine = "omega"
settings = { t_job = "1ms" }

[output]
log = "none"
tasks = false
"""


def read(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch | None = None) -> Scenario:
    """The scenario, packed if there is a way to change how much is not."""
    path = folder / "scenario.toml"
    path.write_text(text)
    if monkeypatch is None:
        return load(path)
    with monkeypatch.context() as patched:
        patched.setattr(loader, "packed", partial(packed, most=0))
        return load(path)


def test_a_packed_scenario_is_the_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = read(tmp_path, DRAWN), read(tmp_path, DRAWN, monkeypatch)
    assert isinstance(small.jobs, tuple)
    assert isinstance(large.jobs, PackedJobs)
    assert len(small.jobs) > 300
    assert large == small
    assert scenario_digest(large) == scenario_digest(small)
    for each in (small, large, msgspec.structs.replace(small, jobs=())):
        written = io.BytesIO()
        assert write_scenario(each, written) == scenario_digest(each)
        whole = msgspec.structs.replace(each, jobs=tuple(each.jobs))
        assert written.getvalue() == msgspec.json.encode(whole)
        assert msgspec.json.decode(written.getvalue(), type=Scenario) == each


def test_a_packed_scenario_runs_byte_for_byte_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = (
        execute_in_memory(read(tmp_path, DRAWN, patched)) for patched in (None, monkeypatch)
    )
    assert large.summary() == small.summary()
    assert large.read_journal().data == small.read_journal().data


@pytest.mark.parametrize("engine", ["omega", "sparrow", "medea", "firmament"])
def test_notes_about_packed_jobs_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    text = DRAWN.replace("cpu = 2000", "cpu = 20000")
    small, large = read(tmp_path, text), read(tmp_path, text, monkeypatch)
    told = ignored_demands(with_engine(small, engine), ENGINES)
    assert ignored_demands(with_engine(large, engine), ENGINES) == told
    unmet = list(unmeetable_demands(small))
    assert unmet
    assert list(unmeetable_demands(large)) == unmet


@pytest.mark.parametrize(
    "mistake",
    [
        ('horizon = "1h"', ""),
        ('engine = "omega"', 'engine = "omega"\ntakes = { kinds = ["service"] }'),
        ("utilisation = 0.5", "utilisation = 1e-9\n[workload.trace]\npath = 'none'"),
        ('burst = "10s", every = "1min"', 'burst = "1us", every = "1us"'),
        ("low = 1, high = 9", "low = 20000000, high = 30000000"),
    ],
)
def test_mistakes_are_told_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: tuple[str, str]
) -> None:
    told = []
    for patched in (None, monkeypatch):
        with pytest.raises(ArgosyError) as caught:
            read(tmp_path, DRAWN.replace(*mistake), patched)
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert str(tmp_path) in told[0]


def test_a_trace_is_packed_as_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = read(tmp_path, DRAWN)
    write_trace(tmp_path / "jobs.jsonl", drawn.jobs)
    begin, end = DRAWN.index("[workload.synthetic]"), DRAWN.index("[[fleet]]")
    text = f'{DRAWN[:begin]}[workload.trace]\npath = "jobs.jsonl"\n{DRAWN[end:]}'
    large = read(tmp_path, text, monkeypatch)
    assert isinstance(large.jobs, PackedJobs)
    assert large.jobs == drawn.jobs
    with (tmp_path / "jobs.jsonl").open("a") as trace:
        trace.write('{"id": "batch-000", "submit": "1h", "request": {"cpu": 1}}\n')
    with pytest.raises(ArgosyError, match=f"jobs.jsonl:{len(drawn.jobs) + 1}: id: job"):
        read(tmp_path, text, monkeypatch)


def test_loading_and_running_keep_no_jobs_as_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a run takes grows by a few columns a job, in which no job is a Python object."""
    peaks, counts = [], []
    # The first run also imports what it needs.
    for span in ("10s", "100s", "400s"):
        tracemalloc.start()
        scenario = read(tmp_path, SHORT.replace("SPAN", span), monkeypatch)
        execute(scenario, tmp_path / f"run-{span}")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        counts.append(len(scenario.jobs))
    assert counts[2] - counts[1] > 1_000
    assert (peaks[2] - peaks[1]) / (counts[2] - counts[1]) < 250
