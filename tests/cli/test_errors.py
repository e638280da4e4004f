"""However a command ends: one line, and an exit code."""

from __future__ import annotations

import errno

import click
import pytest

from argosy.cli import app
from argosy.model.errors import ScenarioError


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (
            ScenarioError("no jobs", file="x.toml", line=3, expected="some", hint="add one"),
            2,
            "error[scenario]: x.toml:3: no jobs; expected some; add one",
        ),
        (click.UsageError("no such option"), 2, "error[usage]: no such option"),
        (
            FileNotFoundError(errno.ENOENT, "No such file or directory", "x"),
            2,
            "error[system]: x: No such file or directory",
        ),
        (OSError(errno.ENOSPC, "No space left"), 2, "error[system]: No space left"),
        (OSError("odd"), 2, "error[system]: odd"),
        (
            ValueError("odd"),
            1,
            "error[bug]: ValueError: odd; this is a bug in Argosy; argosy --debug shows where",
        ),
        (
            AssertionError(),
            1,
            "error[bug]: AssertionError; this is a bug in Argosy; argosy --debug shows where",
        ),
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 130, "interrupted"),
    ],
)
def test_an_error_is_one_line(
    error: BaseException,
    code: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> int:
        raise error

    monkeypatch.setattr(app, "_called", fail)
    assert app.run([]) == code
    assert capsys.readouterr() == ("", f"argosy: {line}\n")


@pytest.mark.parametrize("value", ["1", ""])
def test_a_bug_is_shown_with_its_place_to_those_who_ask(
    value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> int:
        raise ValueError("odd")

    monkeypatch.setattr(app, "_called", fail)
    monkeypatch.setenv("ARGOSY_DEBUG", value)
    assert app.run([]) == 1
    told = capsys.readouterr().err
    assert ("Traceback" in told) == bool(value)
    assert ("--debug shows where" in told) == (not value)
