"""The finding in the README is what its command prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import process

from argosy.engines.registry import ENGINES

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def compared() -> dict[str, dict[str, float | None]]:
    """What the command says of each engine; `ilp-all` needs an extra, and takes longest."""
    names = [name for name in ENGINES if name != "ilp-all"]
    engines = [word for name in names for word in ("--engine", name)]
    arguments = ("compare", "scenarios/quickstart.toml", "--seeds", "3", "-o", "json")
    done = process(*arguments, *engines, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    (ranking,) = json.loads(done.stdout)["comparisons"]
    return {each["engine"]: each for each in ranking["standings"]}


def test_the_readme_names_its_command() -> None:
    assert "$ argosy compare scenarios/quickstart.toml --seeds 3" in README


def test_the_number_of_engines_that_ignore_something(
    compared: dict[str, dict[str, float | None]],
) -> None:
    ignoring = sum(bool(each["ignores"]) for each in compared.values())
    found = re.search(r"(\d+) of (\d+) engines ignore one of these wishes", README)
    assert found
    assert (int(found[1]), int(found[2])) == (ignoring, len(ENGINES))


def test_what_is_said_of_kube_and_jkube(compared: dict[str, dict[str, float | None]]) -> None:
    split = re.search(r"`kube` did not start the four tasks together in (\d+) %", README)
    broken = re.search(r"`jkube` put (\d+) % of the tasks", README)
    assert split
    assert broken
    assert compared["kube"]["split_gangs"] == pytest.approx(int(split[1]) / 100)
    assert compared["jkube"]["violating"] == pytest.approx(int(broken[1]) / 100, abs=0.005)


def test_the_others_are_as_fast_by_the_median(
    compared: dict[str, dict[str, float | None]],
) -> None:
    def median(engine: str) -> float:
        estimate = compared[engine]["estimate"]
        assert isinstance(estimate, dict)
        return float(estimate["value"])

    for engine in ("omega", "kube"):
        assert median(engine) == pytest.approx(median("medea"), rel=0.02)
    assert compared["medea"]["split_gangs"] == compared["medea"]["violating"] == 0
