"""Outcomes that are too long to be kept as text: of each, only a digest is kept, so that nothing can
change unnoticed.

A folder has a file for each group of outcomes, with a line for each: its name and its digest. After an
intended change of behaviour, write the files again, and look at what changed, before and after:

    pytest tests/campaign/test_drawn_runs.py --golden-texts build/before
    pytest tests/campaign/test_drawn_runs.py --golden-texts build/after --update-golden
    diff -r build/before build/after
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

#: How many names are listed in a message.
SHOWN = 8
#: Digits of a fraction on which computers agree, whatever instructions they add numbers with.
DIGITS = 9
#: Where the project lies on this computer.
ROOT = str(Path(__file__).parents[2])
_FRACTION = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?", re.IGNORECASE)


def without_noise(text: str) -> str:
    """The text with fractions rounded to as many digits as can be relied on, and without the path of the
    project."""
    text = text.replace(ROOT, "argosy")
    return _FRACTION.sub(lambda found: f"{float(found[0]):.{DIGITS}g}", text)


def digest(text: str) -> str:
    data = without_noise(text).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=6).hexdigest()


def names_in(file: Path) -> list[str]:
    """The names of the outcomes that are kept."""
    return [*_read(file)]


def _read(file: Path) -> dict[str, str]:
    text = file.read_text("utf-8") if file.exists() else ""
    pairs = [line.partition("  ") for line in text.splitlines()]
    return {name: value for value, _, name in pairs}


def require_digests(
    file: Path, outcomes: Mapping[str, str], config: pytest.Config, *, again: str = ""
) -> None:
    """Compares the digests of texts with those in `file`, or writes them. Names of outcomes have no line
    breaks. `again` says how one of them is made by hand."""
    if folder := config.getoption("--golden-texts"):
        for name, text in outcomes.items():
            kept = Path(folder) / file.parent.name / file.stem / f"{name.replace('/', '_')}.txt"
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(text, "utf-8", "surrogatepass")
    found = {name: digest(text) for name, text in outcomes.items()}
    if config.getoption("--update-golden"):
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{value}  {name}\n" for name, value in found.items()]
        file.write_text("".join(lines), "utf-8")
        return
    expected = _read(file)
    other = [
        name for name in dict.fromkeys((*expected, *found)) if expected.get(name) != found.get(name)
    ]
    if other:
        more = f", and {len(other) - SHOWN} more" if len(other) > SHOWN else ""
        pytest.fail(
            f"{len(other)} of {len(found)} outcomes are otherwise than {file} says: "
            f"{', '.join(other[:SHOWN])}{more}. {again}\n"
            "To see how, run this test with --golden-texts DIRECTORY before and after the change "
            "and compare the two; if the change is meant, add --update-golden.",
            pytrace=False,
        )
