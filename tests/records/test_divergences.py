"""The error of a replay that decided otherwise: which line it names, and what it shows of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from argosy.records.replay import Replay

LINES = ["zero", "one one", "two", "three three", "four"]
DATA = "".join(f"{line}\n" for line in LINES).encode()


def diverged(written: str, *, skip: int = 1, data: bytes = DATA) -> tuple[Any, ...]:
    """After so many lines, these were written instead."""
    replay = object.__new__(Replay)
    replay._file = SimpleNamespace(  # type: ignore[assignment]
        data=data, name="j", line_at=lambda position: data.count(b"\n", 0, position) + 1
    )
    position = len("".join(f"{line}\n" for line in LINES[:skip]))
    error = replay._diverged(position, written.encode())
    assert error.file == "j"
    assert error.hint == "replay it with the version of Argosy, and of the engine, that wrote it"
    return error.line, error.problem.removeprefix("the replay decided otherwise: "), error.expected


@pytest.mark.parametrize(
    ("written", "line", "replayed", "recorded"),
    [
        ("other\n", 2, "other", "one one"),
        # Shorter than the line, as long, and longer than several.
        ("x\n", 2, "x", "one one"),
        ("one two\n", 2, "one two", "one one"),
        ("a line that is longer than three others together\n", 2, None, "one one"),
        ("one one\nx\n", 3, "x", "two"),
        ("one one\ntwo\nthree\nfour\n", 4, "three", "three three"),
        # All that was written is right, and more was recorded.
        ("one one\ntwo\n", 4, "nothing", "three three"),
        ("", 2, "nothing", "one one"),
        # More was written than recorded.
        ("one one\ntwo\nthree three\nfour\nfive\n", 6, "five", "the end of the journal"),
    ],
)
def test_the_first_line_that_differs_is_named(
    written: str, line: int, replayed: str | None, recorded: str
) -> None:
    told = written.rstrip("\n") if replayed is None else replayed
    assert diverged(written) == (line, told, recorded)


def test_the_first_line_of_all_may_differ() -> None:
    assert diverged("x\n", skip=0) == (1, "x", "zero")


def test_what_is_no_text_is_shown_all_the_same() -> None:
    assert diverged("x\n", skip=0, data=b"\xff\n")[2] == "\ufffd"
