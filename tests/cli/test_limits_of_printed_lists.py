"""The options that limit printed lists: bounds, defaults, and `--all` before any number."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from argosy.cli.output import engines_option, limit_options, output_option


@click.command()
@click.argument("name")
@limit_options("things", 7)
@click.option("--loud", is_flag=True)
def listed(name: str, *, most: int | None, loud: bool) -> None:
    """Lists."""
    click.echo(f"{name} {most} {loud}")


def run(command: Any, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, list(arguments))
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("a",), "a 7 False"),
        (("a", "--limit", "1"), "a 1 False"),
        (("a", "--limit", "100000"), "a 100000 False"),
        (("a", "--all"), "a None False"),
        (("a", "--all", "--limit", "3", "--loud"), "a None True"),
        (("a", "--limit", "3", "--loud"), "a 3 True"),
    ],
)
def test_a_command_gets_its_limit_or_none(arguments: tuple[str, ...], told: str) -> None:
    assert run(listed, *arguments) == (0, f"{told}\n")


@pytest.mark.parametrize("limit", ["0", "-1", "x", "1.5"])
def test_a_limit_is_a_positive_number(limit: str) -> None:
    code, output = run(listed, "a", "--limit", limit)
    assert code == 2
    assert "'--limit'" in output


def test_the_help_names_what_is_listed_and_how_many() -> None:
    _, output = run(listed, "--help")
    text = " ".join(output.split())
    assert "--limit N How many things at most. [default: 7; x>=1]" in text
    assert "--all All things, however many." in text
    assert "Lists." in text


@click.command()
@output_option
@engines_option
def shown(output: str, engines: tuple[str, ...]) -> None:
    click.echo(f"{output} {engines}")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "table ()"),
        (("-o", "json"), "json ()"),
        (("--output", "csv"), "csv ()"),
        (("--engine", "a", "--engine", "b:C"), "table ('a', 'b:C')"),
    ],
)
def test_results_are_tables_unless_asked_for_otherwise(
    arguments: tuple[str, ...], told: str
) -> None:
    assert run(shown, *arguments) == (0, f"{told}\n")
    assert run(shown, "-o", "xml")[0] == 2
