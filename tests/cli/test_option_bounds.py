"""Bounds of every option and argument that is a number, and what is assumed without it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from command_line import Call

from argosy.cli.app import COMMANDS
from argosy.cli.kubectl import plugin
from argosy.service import server

SEED = 2**63 - 1
#: The least and the greatest number that is taken, and the default; None: none.
BOUNDS: dict[str, tuple[float, float | None, float | None]] = {
    "up --machines": (1, 1_000, None),
    "up --keep-jobs": (1, None, None),
    "agent --machines": (1, 100_000, None),
    "agent --keep-jobs": (1, None, None),
    "scheduler --timeout": (0.001, 3_600, 5.0),
    "scheduler --keep-jobs": (1, None, None),
    "kubernetes --lease-duration": (2, None, 15),
    "run --seed": (0, SEED, None),
    "compare --seeds": (1, None, None),
    "compare --seed": (0, SEED, None),
    "compare --threshold": (0, 1_000, 2.0),
    "compare --jobs": (1, None, None),
    "sweep --seeds": (1, 10_000, 3),
    "sweep --jobs": (1, None, None),
    "ps --limit": (1, None, 200),
    "jobs --limit": (1, None, 50),
    "logs --try": (1, None, None),
    "logs --tail": (0, None, None),
    "top --interval": (0.1, 60, 1.0),
    "scale tasks": (1, None, None),
    "record --life": (1, None, None),
    "down --timeout": (0, None, 60.0),
    "campaign --runs": (1, None, None),
    "campaign --seed": (0, SEED, 1),
    "campaign --first": (0, None, 0),
    "campaign --time-limit": (0.1, 86_400, 20.0),
    "campaign --workers": (1, 1_000, None),
    "paper --jobs": (1, 1_024, None),
    "flow gen --size": (2, 1_000_000, 100),
    "flow gen --seed": (0, None, 1),
    "flow gen --utilisation": (0.01, 10, None),
    "demo --seeds": (1, 100, 3),
    "kubectl ps --limit": (1, None, 200),
    "kubectl top --interval": (0.1, 60, 1.0),
}


def numbers(name: str, command: click.Command) -> Iterator[tuple[str, click.Parameter]]:
    for each in command.params:
        if isinstance(each.type, click.IntRange | click.FloatRange):
            yield f"{name} {each.opts[0]}", each
    if isinstance(command, click.Group):
        for part, below in command.commands.items():
            yield from numbers(f"{name} {part}", below)


def known() -> dict[str, click.Parameter]:
    commands = {name: importlib.import_module(f"argosy.cli.{name}").command for name in COMMANDS}
    every = [*commands.items(), ("kubectl", plugin)]
    return {name: each for command in every for name, each in numbers(*command)}


def test_these_are_all_numbers_with_bounds() -> None:
    assert set(known()) == set(BOUNDS)


@pytest.mark.parametrize("name", BOUNDS)
def test_a_number_is_taken_up_to_its_bounds(name: str) -> None:
    least, greatest, default = BOUNDS[name]
    option = known()[name]
    step = 1 if isinstance(option.type, click.IntRange) else 1e-6

    def taken(number: Any) -> Any:
        return option.type.convert(str(number), option, None)

    assert taken(least) == least
    assert taken(greatest or 2**70) == (greatest or 2**70)
    with pytest.raises(click.BadParameter, match="is not in the range"):
        taken(least - step)
    if greatest is not None:
        with pytest.raises(click.BadParameter, match="is not in the range"):
            taken(greatest + step)
    assert (option.default if isinstance(option.default, int | float) else None) == default


def test_the_environment_says_where_a_cluster_is(
    argosy: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[Any] = []

    def serve(options: Any, ready: Any, log: Any) -> bool:
        served.append(options.directory)
        return False

    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setenv("ARGOSY_DIR", "there")
    argosy("up")
    argosy("up", "--dir", "here")
    monkeypatch.delenv("ARGOSY_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    argosy("up")
    assert served == [Path("there"), Path("here"), Path("/state/argosy")]
