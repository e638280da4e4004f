"""What a campaign says of drawn runs, of journals with a mistake, and of engines that make one; and what
it makes of a scenario when it shrinks it. All is kept as digests: see `pinned_digests`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from broken_documents import broken_journal
from pinned_commands import Folder
from pinned_digests import require_digests
from rich_jobs import Stream

from argosy.campaign import campaign
from argosy.campaign.dice import FEATURES
from argosy.campaign.draw import ScenarioSource
from argosy.campaign.findings import Finding
from argosy.campaign.processes import TrialAnswer
from argosy.campaign.shrink import Shrinker
from argosy.campaign.trial import judge, run_trial
from argosy.campaign.worlds import WORLDS, find_world
from argosy.engines.registry import find_engines, survey
from argosy.model.errors import ArgosyError
from argosy.scenarios.loader import load
from argosy.scenarios.toml_text import to_toml

PINNED: Final = Path(__file__).parent / "pinned"
SEED: Final = 77
#: Bytes of the largest journal that is broken in several ways.
LARGEST: Final = 60_000
WAYS: Final = 7
SCENARIOS: Final = {"simulated": 24, "scripted": 14, "local": 6, "kubernetes": 2}
Document = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


def said(findings: list[Finding]) -> str:
    """Without the traces of errors, which have paths."""
    return "\n".join(
        f"{found.check} {found.kind}: {found.detail.partition(chr(10))[0]}" for found in findings
    )


def broken_in_ways(file: Path, name: str, stream: Stream) -> Iterator[str]:
    scenario = load(file)
    engines = find_engines(scenario.engine_names())
    world = find_world(name)
    recording = world.run(scenario, engines)
    exact = world.is_exact
    yield said(judge(scenario, engines, recording, is_exact=exact))
    *before, last = recording.journals
    if len(last) > LARGEST:
        return
    lines = last.decode().splitlines(keepends=True)
    for _ in range(WAYS):
        what, broken = broken_journal(lines, stream)
        changed = "".join(broken).encode()
        later = (*before[1:], changed) if before else ()
        first = before[0] if before else changed
        other = msgspec.structs.replace(recording, journal=first, later=later)
        try:
            text = said(judge(scenario, engines, other, is_exact=exact))
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        yield f"{what}: {text}"


@pytest.mark.parametrize("world", [*WORLDS, "kubernetes"])
def test_journals_with_mistakes_are_judged(
    folder: Folder, world: str, pytestconfig: pytest.Config
) -> None:
    engines, _ = survey()
    source = ScenarioSource(SEED, engines, without=find_world(world).lacks)
    outcomes = {}
    for number in range(SCENARIOS[world]):
        drawn = source.draw(number)
        folder.write({"drawn.toml": to_toml(drawn.document)})
        stream = Stream(f"journal {world} {number}")
        try:
            text = "\n".join(broken_in_ways(Path("drawn.toml"), world, stream))
        except ArgosyError as error:
            text = str(error)
        outcomes[f"{number} {'+'.join(drawn.engines)}"] = folder.steady(text)
    require_digests(PINNED / f"judged_{world}.txt", outcomes, pytestconfig)


class LaneHere:
    """Runs trials in this process, one after another."""

    def __init__(self, world: str, seconds: float) -> None:
        self._world = world

    def run(
        self, document: Document, *, repeats: bool = True, seconds: float | None = None
    ) -> TrialAnswer:
        file = Path("trial.toml")
        file.write_text(to_toml(document), "utf-8")
        try:
            result = run_trial(file, find_world(self._world))
            return TrialAnswer(result.findings, result.digest)
        except ArgosyError as error:
            error.file = None
            return TrialAnswer(refusal=str(error))
        finally:
            file.unlink()

    def close(self) -> None:
        """There is no process to end."""


CALLS: Final = (
    ("--runs", "6", "--engine", "omega", "--engine", "sparrow"),
    ("--runs", "3", "--seed", "9", "--first", "4", "--world", "scripted", "-o", "json"),
    ("--runs", "5", "--engine", "broken_engines:Faulty"),
    ("--runs", "6", "--engine", "broken_engines:Faulty", "--seed", "3", "-o", "json"),
    ("--runs", "6", "--engine", "broken_engines:Forgetful", "--seed", "2", "-o", "csv"),
    ("--runs", "4", "--engine", "broken_engines:Choosy", "--engine", "kube"),
    ("--runs", "3", "--engine", "omega", "--without", "gangs", "--without", "crashes"),
    ("--runs", "3", "--fleet", "given.toml", "-o", "csv"),
    ("--engine", "omega", "--without", "gagns"),
    ("--world", "simulatde", "--runs", "1"),
    ("--fleet", "given.toml", "--engine", "omega"),
    ("given.toml",),
    ("given.toml", "given.toml", "-o", "json"),
    ("given.toml", "--runs", "2"),
    ("broken.toml",),
    ("missing.toml",),
    ("faulty.toml", "-o", "json"),
)
GIVEN: Final[Document] = {
    "name": "given",
    "horizon": "2min",
    "cell": {"machines": [{"name": "m", "count": 3, "capacity": {"cpu": 1000}}]},
    "workload": {
        "jobs": [
            {"id": name, "count": 3, "gang": True, "duration": "5s", "request": {"cpu": 500}}
            for name in ("a", "b", "c")
        ]
    },
    "fleet": [{"name": "s", "engine": "omega", "replicas": 2}],
}


def test_campaigns_and_what_they_write(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setattr(campaign, "TrialLane", LaneHere)
    monkeypatch.setattr(campaign, "SHRINK_SECONDS", float("inf"))
    faulty = GIVEN | {"fleet": [{"name": "s", "engine": "broken_engines:Faulty"}]}
    folder.write(
        {
            "given.toml": to_toml(GIVEN),
            "faulty.toml": to_toml(faulty),
            "broken.toml": to_toml(GIVEN | {"horizon": "soon"}),
        }
    )
    outcomes = {}
    for number, words in enumerate(CALLS):
        out = ("--out", f"found-{number}", "--workers", "1")
        outcomes[f"{number}: {' '.join(words)}"] = folder.call("campaign", *words, *out)
    require_digests(PINNED / "campaigns.txt", outcomes, pytestconfig)


def is_whole(document: Document) -> bool:
    """Whether what reads the document finds what it cannot do without."""
    cells = document.get("clusters", [document.get("cell", {})])
    machines = [machine for cell in cells for machine in cell.get("machines", ())]
    jobs = document.get("workload", {}).get("jobs", ())
    fleet = document.get("fleet")
    if not fleet:
        return False
    named = all("name" in each for each in (*machines, *fleet, *document.get("clusters", ())))
    return named and all("id" in job for job in jobs) and all("machines" in cell for cell in cells)


def tasks_of(document: Document) -> int:
    jobs = document.get("workload", {}).get("jobs", ())
    return sum(group.get("count", 1) for job in jobs for group in job.get("groups", [job]))


REASONS: Final[dict[str, Callable[[Document], bool]]] = {
    "five tasks": lambda document: tasks_of(document) >= 5,
    "a gang": lambda document: '"gang": true' in json.dumps(document),
    "a fault": lambda document: bool(document.get("faults")),
    "a scheduler's crash": lambda document: "scheduler-crash" in json.dumps(document),
    "a partition": lambda document: '"isolated": ["' in json.dumps(document),
    "memory": lambda document: json.dumps(document).count('"memory"') >= 2,
    "a machine type and two schedulers": lambda document: (
        "fleet" in document and sum(e.get("replicas", 1) for e in document["fleet"]) >= 2
    ),
    "a long text": lambda document: len(json.dumps(document)) > 900,
    "an even text": lambda document: len(json.dumps(document)) % 2 == 0,
    "clusters": lambda document: len(document.get("clusters", ())) > 1,
    "a network": lambda document: "latency" in document.get("network", {}),
    "constraints": lambda document: "constraints" in json.dumps(document),
}


def shrunk(
    document: Document, fails: Callable[[Document], bool], most: int
) -> tuple[Shrinker, Document]:
    shrinker = Shrinker(document, lambda each: is_whole(each) and fails(each), most=most)
    return shrinker, shrinker.run()


@pytest.mark.parametrize("first", [0, 15])
def test_what_is_left_of_a_scenario_that_fails(first: int, pytestconfig: pytest.Config) -> None:
    engines, _ = survey()
    source = ScenarioSource(SEED, engines)
    outcomes = {}
    for number in range(first, first + 15):
        document = source.draw(number).document
        for name, fails in REASONS.items():
            if not fails(document):
                continue
            shrinker, found = shrunk(document, fails, most=60 if number % 3 else 300)
            outcomes[f"{number}: {name}"] = f"{shrinker.tries} tries\n{to_toml(found)}"
    require_digests(PINNED / f"shrunk_{first}.txt", outcomes, pytestconfig)


def test_scenarios_without_some_features(pytestconfig: pytest.Config) -> None:
    engines, _ = survey()
    outcomes = {}
    for number in range(120):
        stream = Stream(f"features {number}")
        without = (
            frozenset(each for each in FEATURES if stream.has(0.2)) if number % 2 else frozenset()
        )
        source = ScenarioSource(stream.below(10**6), engines, without=without)
        drawn = source.draw(stream.below(10_000))
        outcomes[str(number)] = f"{drawn.engines}\n{to_toml(drawn.document)}"
    require_digests(PINNED / "drawn.txt", outcomes, pytestconfig)
