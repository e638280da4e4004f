"""Drawn scenarios with a mistake in each, in the document or in a file that it reads. The whole error,
or what is read all the same, is kept as digests. See `pinned_digests` for how to compare."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from broken_documents import broken_document, broken_lines
from pinned_commands import Folder
from pinned_digests import require_digests
from rich_jobs import Document, Files, Stream
from rich_scenarios import rich_scenario
from rich_workloads import WORKLOADS

from argosy.campaign.draw import ScenarioSource
from argosy.engines.registry import survey
from argosy.model.errors import ArgosyError
from argosy.scenarios.constraint_files import lint_file
from argosy.scenarios.loader import load, load_cluster
from argosy.scenarios.scenario_json import write_scenario
from argosy.scenarios.toml_text import to_toml

PINNED: Final = Path(__file__).parent / "pinned"
SEED: Final = 7
#: Mistakes in each document, and outcomes that make one digest.
MISTAKES: Final = 24
TOGETHER: Final = 8


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


def read_as(path: Path) -> str:
    """The scenario, or the whole error."""
    try:
        scenario = load(path)
        stream = io.BytesIO()
        digest = write_scenario(scenario, stream)
        return f"{digest} {stream.getvalue().decode('utf-8', 'backslashreplace')}"
    except ArgosyError as error:
        return f"{type(error).__name__} {error.code}: {error}"


def together(folder: Folder, told: list[str]) -> Iterator[tuple[str, str]]:
    for first in range(0, len(told), TOGETHER):
        text = "\n\n".join(told[first : first + TOGETHER])
        yield f"mistakes from {first}", folder.steady(text)


def mistakes_in_document(
    folder: Folder, document: Document, stream: Stream
) -> Iterator[tuple[str, str]]:
    told = []
    for at in range(MISTAKES):
        what, broken = broken_document(document, stream)
        folder.write({"broken.toml": to_toml(broken)})
        path = Path("broken.toml")
        told.append(f"{what}\n{read_as(path)}")
        if at % 8 == 0:
            told[-1] += f"\nas a cluster: {read_cluster(path)}\nlint: {linted(path)}"
    yield from together(folder, told)


def read_cluster(path: Path) -> str:
    try:
        scenario = load_cluster(path)
        return f"{scenario.cell} {scenario.fleet} {scenario.federation}"
    except ArgosyError as error:
        return str(error)


def linted(path: Path) -> str:
    try:
        found = lint_file(path)
        return f"{found.errors} {found.mistakes} {found.findings} {list(map(str, found.demands))}"
    except ArgosyError as error:
        return str(error)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_scenarios_of_each_workload_with_mistakes(
    folder: Folder, workload: str, pytestconfig: pytest.Config
) -> None:
    outcomes = {}
    step, first = len(WORKLOADS), list(WORKLOADS).index(workload)
    for number in range(first, first + 4 * step, step):
        rich = rich_scenario(SEED, number)
        folder.remove("trace", "cluster.json", "cluster.yaml")
        folder.write(rich.files)
        stream = Stream(f"mistakes {number}")
        for what, text in mistakes_in_document(folder, rich.document, stream):
            outcomes[f"{number}: {what}"] = text
        folder.write({"sound.toml": to_toml(rich.document)})
        outcomes[f"{number}: sound"] = folder.steady(read_as(Path("sound.toml")))
        if rich.files:
            told = list(mistakes_in_files(folder, rich.files, stream))
            for what, text in together(folder, told):
                outcomes[f"{number}: in files: {what}"] = text
    require_digests(PINNED / f"mistakes_{workload}.txt", outcomes, pytestconfig)


def mistakes_in_files(folder: Folder, files: Files, stream: Stream) -> Iterator[str]:
    names = list(files)
    for at in range(3 * MISTAKES):
        name = stream.pick(names)
        sound = files[name]
        packed = isinstance(sound, bytes)
        text = gzip.decompress(sound).decode() if isinstance(sound, bytes) else sound
        what, broken = broken_lines(text, stream)
        data: str | bytes = gzip.compress(broken.encode(), mtime=0) if packed else broken
        if at % 12 == 11:
            what = "cut short" if packed else "as bytes"
            data = data[:-9] if packed else text.encode() + b"\xff\n"
        folder.write({name: data})
        yield f"{name}: {what}\n{read_as(Path('sound.toml'))}"
        folder.write({name: sound})


@pytest.mark.parametrize("first", [0, 10, 20])
def test_drawn_scenarios_with_mistakes(
    folder: Folder, first: int, pytestconfig: pytest.Config
) -> None:
    engines, _ = survey()
    source = ScenarioSource(SEED, engines)
    outcomes = {}
    for number in range(first, first + 10):
        scenario = source.draw(number)
        stream = Stream(f"mistakes in drawn {number}")
        name = f"{number} {'+'.join(scenario.engines)}"
        for what, text in mistakes_in_document(folder, scenario.document, stream):
            outcomes[f"{name}: {what}"] = text
    require_digests(PINNED / f"mistakes_drawn_{first}.txt", outcomes, pytestconfig)
