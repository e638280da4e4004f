"""Engines from outside the package: the example, and how Argosy finds what is installed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from argosy.engines import registry
from argosy.engines.api import Engine
from argosy.model.errors import EngineFault, UnknownEngine
from argosy.testing import conformance

EXAMPLE = Path(__file__).parents[2] / "examples" / "01_an_engine_of_your_own"


def roomiest() -> type[Engine]:
    spec = importlib.util.spec_from_file_location("roomiest", EXAMPLE / "roomiest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    engine: type[Engine] = module.Roomiest
    return engine


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory on the path that holds the example as an installer would leave it."""
    (tmp_path / "roomiest.py").write_text((EXAMPLE / "roomiest.py").read_text())
    info = tmp_path / "roomiest-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: roomiest\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[argosy.engines]\nroomiest = roomiest:Roomiest\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("roomiest", None)


@pytest.mark.parametrize("check", conformance.CHECKS, ids=lambda check: check.__name__)
def test_the_example_engine_conforms(check: Callable[[type[Engine]], None]) -> None:
    check(roomiest())


def test_an_installed_engine_is_found_by_its_entry_point(installed: Path) -> None:
    assert "roomiest" not in registry.ENGINES
    assert registry.find_engine("roomiest").name == "roomiest"


def test_the_examples_entry_point_is_the_one_it_declares(installed: Path) -> None:
    declared = (EXAMPLE / "pyproject.toml").read_text()
    assert (
        f'[project.entry-points."{registry.ENTRY_POINTS}"]\nroomiest = "roomiest:Roomiest"'
        in declared
    )


def test_an_engine_may_not_take_a_name_that_is_taken(installed: Path) -> None:
    source = (installed / "roomiest.py").read_text().replace('name = "roomiest"', 'name = "omega"')
    (installed / "roomiest.py").write_text(source)
    with pytest.raises(EngineFault, match="'omega', which is taken"):
        registry.all_engines()


def test_what_is_not_an_engine_is_refused_by_name(installed: Path) -> None:
    (installed / "roomiest.py").write_text("class Roomiest:\n    name = 'roomiest'\n")
    with pytest.raises(EngineFault, match="roomiest:Roomiest has no 'summary'"):
        registry.all_engines()


def test_an_engine_that_cannot_be_imported_is_refused_by_name(installed: Path) -> None:
    (installed / "roomiest.py").write_text("import no_such_module\n")
    with pytest.raises(EngineFault, match=r"roomiest:Roomiest cannot be imported.*no_such_module"):
        registry.all_engines()


def test_an_unknown_engine_gets_a_suggestion() -> None:
    with pytest.raises(UnknownEngine, match="did you mean 'omega'"):
        registry.find_engine("omgea")
