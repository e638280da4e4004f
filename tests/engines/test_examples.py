"""The example engine, found both ways: by its entry point and as a class by its module."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from outside import EXAMPLE, Install

from argosy.engines import plugins, registry
from argosy.engines.api import Engine
from argosy.scenarios.loader import load
from argosy.testing import conformance

SCENARIO = Path(__file__).parents[2] / "scenarios" / "quickstart.toml"
pytestmark = pytest.mark.usefixtures("fresh_modules")
#: The most a newcomer should have to write, including imports.
MOST_LINES = 60


@pytest.mark.parametrize("check", conformance.CHECKS, ids=lambda check: check.__name__)
def test_the_example_engine_conforms(
    check: Callable[[type[Engine]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLE)
    check(registry.find_engine("roomiest:Roomiest"))


def test_the_example_is_short_and_imports_only_the_documented_interface() -> None:
    lines = (EXAMPLE / "roomiest.py").read_text().splitlines()
    assert len(lines) < MOST_LINES
    imports = [line for line in lines if line.startswith(("import", "from"))]
    assert imports == ["import numpy as np", "from argosy import engine"]


def test_an_installed_engine_is_found_by_its_entry_point(install: Install) -> None:
    install((EXAMPLE / "roomiest.py").read_text())
    assert "roomiest" not in registry.ENGINES
    assert registry.find_engine("roomiest").name == "roomiest"
    assert "roomiest" in registry.all_engines()


def test_the_entry_point_tested_here_is_the_one_that_the_example_declares() -> None:
    declared = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())
    entry_points = declared["project"]["entry-points"]
    assert entry_points == {plugins.ENTRY_POINTS: {"roomiest": "roomiest:Roomiest"}}


@pytest.mark.parametrize("engine", ["roomiest", "roomiest:Roomiest"])
def test_a_scenario_may_name_the_engine_either_way(
    engine: str, install: Install, tmp_path: Path
) -> None:
    install((EXAMPLE / "roomiest.py").read_text())
    text = SCENARIO.read_text().replace('engine = "omega"', f'engine = "{engine}"')
    (tmp_path / "scenario.toml").write_text(text)
    loaded = load(tmp_path / "scenario.toml")
    assert {entry.engine for entry in loaded.fleet} == {engine}
