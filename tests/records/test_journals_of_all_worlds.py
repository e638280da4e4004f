"""Commands on journals of servers, of played Kubernetes clusters and of machines that fail: all that
they print is kept as digests. See `pinned_digests` for how to compare before and after a change."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from pinned_commands import Folder
from pinned_digests import require_digests
from rich_jobs import Stream

from argosy.campaign.draw import ScenarioSource
from argosy.campaign.worlds import find_world
from argosy.engines.registry import find_engines, survey
from argosy.records.journal_run import open_recording
from argosy.records.observed import observed_scenario
from argosy.scenarios.loader import load
from argosy.scenarios.scenario_tables import fleet_table
from argosy.scenarios.toml_text import to_toml

PINNED: Final = Path(__file__).parent / "pinned"
OUTPUTS: Final = ("table", "json", "csv")
SCENARIOS: Final = {"scripted": 12, "local": 7, "kubernetes": 2}
#: Bytes of the largest journal that many questions are asked about.
LARGEST: Final = 200_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARGOSY_DEBUG", raising=False)
    return Folder(tmp_path)


def asked_of(folder: Folder, journal: str, stream: Stream) -> str:
    text = (folder.path / journal).read_text("utf-8")
    words = [part.partition('"')[0] for part in text.split('"job":{"id":"')[1:]]
    tasks = [f"{word}/{at % 2}" for at, word in enumerate(dict.fromkeys(words))]
    form = stream.pick(OUTPUTS)
    calls: list[tuple[str, ...]] = [
        ("summary", journal, "-o", form),
        ("audit", "--run", journal, "-o", form),
        ("replay", journal),
    ]
    calls += [
        (what, task, "--run", journal, "-o", stream.pick(OUTPUTS))
        for task in tasks[:7]
        for what in ("why", "story")
    ]
    if stream.has(0.3):
        calls.append(("replay", journal, "--engine", "kube", "-o", form))
    return folder.calls(calls)


@pytest.mark.parametrize("world", SCENARIOS)
def test_what_commands_tell_of_journals(
    folder: Folder, world: str, pytestconfig: pytest.Config
) -> None:
    engines, _ = survey()
    known = find_world(world)
    source = ScenarioSource(77, engines, without=known.lacks)
    outcomes = {}
    for number in range(SCENARIOS[world]):
        drawn = source.draw(number)
        name = f"{number} {'+'.join(drawn.engines)}"
        folder.write({"drawn.toml": to_toml(drawn.document)})
        scenario = load(Path("drawn.toml"))
        recording = known.run(scenario, find_engines(scenario.engine_names()))
        for life, journal in enumerate(recording.journals[-2:]):
            if len(journal) > LARGEST:
                continue
            folder.write({f"life-{life}.jsonl": journal})
            state = open_recording(Path(f"life-{life}.jsonl")).state
            stream = Stream(f"questions {world} {number} {life}")
            outcomes[f"{name}, life {life}"] = asked_of(folder, f"life-{life}.jsonl", stream)
            outcomes[f"{name}, life {life}, observed"] = folder.steady(
                f"{observed_scenario(state)}\n{[fleet_table(e) for e in state.setup.fleet]}"
            )
    require_digests(PINNED / f"journals_{world}.txt", outcomes, pytestconfig)
