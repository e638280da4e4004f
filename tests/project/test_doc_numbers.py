"""Numbers in the documentation that come from the code are those of the code.

Output that is shown below a command is compared in `test_docs.py`, the finding in the README in
`test_readme.py`. Numbers that somebody measured are listed here with the reason why no test repeats
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.cli.run import LARGEST_JOURNAL
from argosy.host.job_table import MOST_DEMANDS
from argosy.measures.measure import FASTER
from argosy.measures.placement import LOOKS, SMALLEST
from argosy.measures.statistics import CONFIDENCE
from argosy.model.machine_model import MachineModel
from argosy.model.scenario import ConstantLatency
from argosy.report.comparison import DEFAULT_THRESHOLD, NEARLY_ALL
from argosy.scenarios.loader import load
from argosy.workloads.cluster_specs import STEPS, ClusterSpec, cluster, cluster_names
from argosy.workloads.fanout import SHAPES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

#: Pages with tables of measurements, and why no test makes them again.
MEASURED = {
    "campaign.md": "10,000 scenarios; `bench/campaign.py`",
    "durability.md": "a server that is killed hundreds of times; `bench/kills.py`",
    "engines.md": "an hour of a large cluster in virtual time, five seeds; `bench/conflicts.py`",
    "flow.md": "processor time of one computer; `bench/flow.py`",
    "live.md": "times of one computer; `bench/live.py`",
    "papers.md": "minutes to hours, `argosy paper`; how many claims there are is tested with the papers",
    "speed.md": "times of one computer on one day; `make bench`",
}
#: Whole folders: papers take minutes to hours (`argosy paper`), decisions say what was known on their
#: day, and a control plane's times are those of one computer (`bench/kubernetes.py`).
MEASURED_FOLDERS = ("papers", "design", "kubernetes")
#: Pages whose tables of numbers are checked below.
CHECKED = ("workloads.md",)
#: A row with a cell that is a quantity with a unit, or with two that are numbers.
QUANTITIES = re.compile(
    r"^\|.*\| *\d[\d.,]* ?(?:s|ms|µs|x|%|min|times|[MG]i?B) *\|"
    r"|^\|.*\| *\d[\d,.]* *\|.*\| *\d[\d,.]* *\|",
    re.MULTILINE,
)


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "words", "number"),
    [
        ("cli.md", r"unless the journal is larger than (\d+) MB", LARGEST_JOURNAL / 1e6),
        ("cli.md", r"a network hop of ([\d.]+) ms", ConstantLatency().delay / 1e3),
        ("cli.md", r"with its (\d+) % confidence interval", 100 * CONFIDENCE),
        ("cli.md", r"the medians are at least (\d+) % apart", 100 * DEFAULT_THRESHOLD),
        ("cli.md", r"together with (\d+) % confidence", 100 * CONFIDENCE),
        ("cli.md", r"finish less than (\d+) % of the jobs", 100 * NEARLY_ALL),
        ("runs.md", r"The cell is sampled (\d+) times", LOOKS),
        ("runs.md", r"machines with less than (\d+) core", SMALLEST["cpu"] / 1e3),
        ("runs.md", r"core or (\d+) GiB left", SMALLEST["memory"] / 2**30),
        ("runs.md", r"the share `faster` by (\d+) % or more", 100 * (FASTER - 1)),
        ("runs.md", r"only the first ([\d,]+) that differ", MOST_DEMANDS),
        ("scenarios.md", r'"constant", delay = "([\d.]+)ms" }` is the', ConstantLatency().delay / 1e3),
        ("simulation.md", r"multiples of `heartbeat` \((\d+) s\)", MachineModel().heartbeat / 1e6),
        ("workloads.md", r"divided into (\d+) equally likely values", STEPS),
    ],
)  # fmt: skip
def test_limits_and_defaults_are_those_of_the_code(name: str, words: str, number: float) -> None:
    found = re.search(words, " ".join(page(name).split()))
    assert found is not None, words
    assert float(found[1].replace(",", "")) == pytest.approx(number)


def test_the_size_of_the_demo_is_that_of_the_scenario() -> None:
    found = re.search(r"([\d,]+) tasks in ([\d,]+) jobs, (\d+) minutes", page("speed.md"))
    assert found is not None
    tasks, jobs, minutes = (int(number.replace(",", "")) for number in found.groups())
    demo = load(ROOT / "scenarios" / "demo.toml")
    assert jobs == round(len(demo.jobs), -2)
    assert tasks == round(sum(made.job.tasks for made in demo.jobs), -4)
    assert minutes * 60_000_000 == demo.horizon


def rows(name: str, first: str) -> dict[str, list[str]]:
    """The cells of a table, by the first of each row; `first` is its first row's."""
    lines = page(name).splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith(f"| {first} |"))
    found = {}
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        head, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        found[head] = cells
    return found


def seconds(micros: float) -> str:
    return f"{micros / 1e6:g} s"


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("machines (4 cores, 16 GB)", lambda spec: f"{spec.machines.count:,}"),
        ("initial fill", lambda spec: f"{spec.fill.share:.0%}".replace("%", " %")),
        ("batch: interarrival", lambda spec: seconds(spec.kinds["batch"].interarrival)),
        ("batch: mean tasks", lambda spec: f"{spec.kinds['batch'].tasks.average:.1f}"),
        (
            "batch: mean duration",
            lambda spec: f"{spec.kinds['batch'].duration.average / 1e6:.0f} s",
        ),
        ("service: interarrival", lambda spec: seconds(spec.kinds["service"].interarrival)),
        ("service: mean tasks", lambda spec: f"{spec.kinds['service'].tasks.average:.1f}"),
        ("jobs in a week", lambda spec: f"{_jobs_in_a_week(spec):,}"),
    ],
)
def test_the_table_of_clusters_is_that_of_their_specifications(
    row: str, told: Callable[[ClusterSpec], str]
) -> None:
    specs = [cluster(name) for name in cluster_names()]
    assert rows("workloads.md", "what")[row] == [told(spec) for spec in specs]


def _jobs_in_a_week(spec: ClusterSpec) -> int:
    """To two digits."""
    expected = sum(7 * 86_400e6 / kind.interarrival for kind in spec.kinds.values())
    return int(float(f"{expected:.2g}"))


def test_the_gaps_between_jobs_are_those_of_the_traces() -> None:
    told = [
        f"{low / 1e6:.1f} to {high / 1e6:.1f} s" for low, high in (s.gaps for s in SHAPES.values())
    ]
    assert (
        rows("workloads.md", "tasks per job: median, 99th percentile, largest")["gap between jobs"]
        == told
    )


def test_tables_of_numbers_are_checked_or_known_to_be_measured() -> None:
    found = {
        path.relative_to(DOCS).as_posix()
        for path in DOCS.rglob("*.md")
        if QUANTITIES.search(path.read_text("utf-8"))
        and path.relative_to(DOCS).parts[0] not in MEASURED_FOLDERS
    }
    assert found == {*MEASURED, *CHECKED}


def test_what_measures_again_exists() -> None:
    source = Path(__file__).read_text("utf-8")
    named = set(re.findall(r"`(bench/\w+\.py)`", source))
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
