"""The example plug-in, installed as a package would be: found by its entry point and used by Vela."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from argosy.agents import registry
from argosy.agents.api import Filter, Score
from argosy.engines.registry import ENGINES
from argosy.host.records import PlacedRecord
from argosy.model.errors import SettingError
from argosy.testing.builders import SECOND, cell, job, scenario
from argosy.testing.conformance import ConformanceRun

EXAMPLE = Path(__file__).parents[2] / "examples" / "05_a_plugin_of_your_own"


def install(directory: Path, text: str, entry: str) -> None:
    (directory / "greenest.py").write_text(text)
    info = directory / "greenest-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greenest\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(f"[{registry.ENTRY_POINTS}]\n{entry}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("greenest", None)
    yield tmp_path
    sys.modules.pop("greenest", None)


def test_the_entry_point_tested_here_is_the_one_that_the_example_declares() -> None:
    declared = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())
    points = declared["project"]["entry-points"]
    assert points == {registry.ENTRY_POINTS: {"Greenest": "greenest:Greenest"}}


def test_an_installed_plug_in_filters_and_scores(site: Path) -> None:
    install(site, (EXAMPLE / "greenest.py").read_text(), "Greenest = greenest:Greenest")
    assert isinstance(registry.make("Greenest", Filter), Score)
    plain = cell(4)
    grams = ("900", "150", "", "30")
    machines = tuple(
        structs.replace(machine, attributes={"carbon": text} if text else {})
        for machine, text in zip(plain.machines, grams, strict=True)
    )
    spec = scenario(
        "vela",
        [
            job("any", 1, seconds=None),
            job("green", 6, cpu=2_000, submit=1, seconds=None, demands={"carbon": "200"}),
        ],
        cell=structs.replace(plain, machines=machines),
        settings={
            "machines": 1.0,
            "filters": ["ResourcesFit", "Greenest"],
            "scores": {"Greenest": 2},
        },
        horizon=5 * SECOND,
    )
    run = ConformanceRun(ENGINES["vela"], spec)
    assert [record.machines for record in run.of(PlacedRecord, "any")] == [[3]]
    green = [machine for record in run.of(PlacedRecord, "green") for machine in record.machines]
    assert set(green) == {1, 3}
    # Room for one on the machine that runs the other job, and for two on the next.
    assert len(green) == 3


@pytest.mark.parametrize(
    ("text", "entry", "says"),
    [
        ("raise RuntimeError('broken')", "Greenest = greenest:Greenest", "cannot be imported"),
        ("class Greenest: name = 'other'", "Greenest = greenest:Greenest", "no plug-in of that"),
        ("class Greenest: name = 'Greenest'", "Greenest = greenest:Greenest", "is no filter"),
    ],
)
def test_a_broken_plug_in_is_an_error_that_names_it(
    site: Path, text: str, entry: str, says: str
) -> None:
    install(site, text, entry)
    with pytest.raises(SettingError, match=rf"'Greenest'.*{says}"):
        registry.make("Greenest", Filter)
