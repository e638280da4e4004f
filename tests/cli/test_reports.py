"""`--html` of `argosy run` and `argosy compare`."""

from __future__ import annotations

import re
from pathlib import Path

from command_line import QUICKSTART, Call
from html_outline import outline


def test_run_and_compare_write_their_reports(argosy: Call, tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    result = argosy("run", QUICKSTART, "--no-save", "--html", str(page))
    assert result.code == 0
    assert f"wrote {page}" in result.err
    assert "Tasks on machines" in outline(page.read_text("utf-8"))
    page = tmp_path / "compare.html"
    engines = ("--engine", "omega", "--engine", "medea", "--engine", "kube")
    result = argosy(
        "compare", QUICKSTART, "--seeds", "2", "--jobs", "1", *engines, "--html", str(page)
    )
    assert result.code == 0
    text = page.read_text("utf-8")
    headings = outline(text)
    for title in ("By median JCT", "Not ranked", "How long jobs took", "Spread of JCT"):
        assert title in headings
    # An engine has one colour in every chart.
    colours: dict[str, set[str]] = {}
    for colour, engine in re.findall(r'--line:var\(--(c\d)\)"><title>(\S+)</title>', text):
        colours.setdefault(engine, set()).add(colour)
    assert set(colours) == {"omega", "medea", "kube"}
    assert all(len(each) == 1 for each in colours.values())
    assert len({next(iter(each)) for each in colours.values()}) == 3


def test_a_report_that_cannot_be_written_is_one_error(argosy: Call, tmp_path: Path) -> None:
    result = argosy("run", QUICKSTART, "--no-save", "--html", str(tmp_path / "no" / "x.html"))
    assert result.code == 2
    assert "--html" in result.err
