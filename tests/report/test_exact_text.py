"""Numbers, tables, axes and sentences to the letter, at the bounds where they change."""

from __future__ import annotations

import math
from typing import Any

import pytest

from argosy.model.answers import WhyAnswer
from argosy.papers.charts import Axis
from argosy.report.answers import sentences
from argosy.report.figures import Span
from argosy.report.tables import Column, Table, Unit, csv_text, format_share, plain


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 %"),
        (0.00123, "0.12 %"),
        (0.00994, "0.99 %"),
        (0.01, "1 %"),
        (0.1234, "12.3 %"),
        (0.9994, "99.9 %"),
        (0.9995, "100 %"),
        (1, "100 %"),
        (12.3456, "1235 %"),
    ],
)
def test_shares_have_as_many_digits_as_they_need(value: float, text: str) -> None:
    assert format_share(value) == text


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        (Unit.TEXT, "a", "a"),
        (Unit.COUNT, 1234, "1,234"),
        (Unit.COUNT, 0.6, "1"),
        (Unit.TIME, 1_500_000, "1.5 s"),
        (Unit.NUMBER, 999, "999"),
        (Unit.NUMBER, -1000, "-1,000"),
        (Unit.NUMBER, 12.345, "12.3"),
        (Unit.NUMBER, None, ""),
    ],
)
def test_cells_are_written_in_their_unit(unit: Unit, value: Any, text: str) -> None:
    assert Column("x", "X", unit).text(value) == text


TABLE = Table(
    (Column("n", "name"), Column("c", "count", Unit.COUNT), Column("why", "why it is so")),
    (("short", 1, "because of a reason that is long"), ("x" * 20, 12_345, None)),
)


def test_texts_are_left_and_numbers_right_and_gaps_are_even() -> None:
    assert TABLE.lines() == [
        "name                   count  why it is so",
        "short                      1  because of a reason that is long",
        "xxxxxxxxxxxxxxxxxxxx  12,345",
    ]


@pytest.mark.parametrize("width", [62, 61, 50, 40, 30])
def test_the_widest_text_is_cut_to_fit_but_none_below_twelve(width: int) -> None:
    lines = TABLE.lines(width)
    least = 12 + 2 + 6 + 2 + 12
    assert max(map(len, lines)) == max(width, least) if width < 62 else 62
    assert any("…" in line for line in lines) == (width < 62)
    assert lines[2].split()[1] == "12,345"


def test_what_is_wrapped_loses_nothing() -> None:
    lines = TABLE.wrapped(50)
    assert lines == [
        "name                   count  why it is so",
        "short                      1  because of a reason",
        "                              that is long",
        "xxxxxxxxxxxxxxxxxxxx  12,345",
    ]
    # Never narrower than twelve characters.
    assert max(len(line) for line in TABLE.wrapped(10)) <= 30 + 12
    assert TABLE.wrapped() == TABLE.lines()
    empty = Table(TABLE.columns, ())
    assert empty.wrapped(20) == empty.lines(20)


def test_rows_are_the_same_in_every_form() -> None:
    assert TABLE.records()[1] == {"n": "x" * 20, "c": 12_345, "why": None}
    assert TABLE.csv() == (
        "n,c,why\nshort,1,because of a reason that is long\n" + "x" * 20 + ",12345,\n"
    )
    fewer = TABLE.without(["c"])
    assert [column.name for column in fewer.columns] == ["n", "why"]
    assert fewer.rows[0] == ("short", "because of a reason that is long")
    assert csv_text([{"a": 1}], ["a", "b"]) == "a,b\n1,\n"
    assert plain("5 µs ± 1 …█ é") == "5 us +/- 1 ~# ?"


@pytest.mark.parametrize(
    ("reason", "verbs", "rest"),
    [
        ("down", ("is", "are"), "down"),
        ("full", ("has", "have"), "nothing free"),
        ("offered", ("is", "are"), "on offer to others or held for gangs"),
        ("declined", ("was", "were"), "declined by its framework"),
        ("not wanted", ("does", "do"), "not pass its framework's filters"),
        ("queue full", ("has", "have"), "a full queue"),
        ("unanswered", ("is", "are"), "in clusters whose agents did not answer"),
        ("by zones", ("is", "are"), "excluded by zones"),
        ("memory", ("lacks", "lack"), "memory"),
    ],
)
def test_machines_that_are_ruled_out_are_counted_by_reason(
    reason: str, verbs: tuple[str, str], rest: str
) -> None:
    for count, verb in enumerate(verbs, 1):
        out = {reason: count}
        answer = WhyAnswer(task="t", state="pending", sentence="It waits.", ruled_out=out)
        assert sentences(answer) == ["It waits.", f"Ruled out: {count} {verb} {rest}."]


def test_an_answer_ends_with_what_would_help() -> None:
    answer = WhyAnswer(
        task="t",
        state="pending",
        sentence="It waits.",
        ruled_out={"cpu": 1_200, "gpu": 3, "disk": 3},
        violated=("a rule is broken!", ""),
        remedy=" add a machine? ",
    )
    assert sentences(answer) == [
        "It waits.",
        "Ruled out: 1,200 lack cpu, 3 lack disk, 3 lack gpu.",
        "A rule is broken!",
        "What would help:  add a machine?",
    ]
    detailed = WhyAnswer(
        task="t", state="pending", sentence="It waits.", details=("So.",), ruled_out={"cpu": 1}
    )
    assert sentences(detailed) == ["It waits.", "So."]


def axis(**options: Any) -> Axis:
    return Axis(label="x", **options)


@pytest.mark.parametrize(
    ("options", "values", "low", "high"),
    [
        ({}, [1, 3], 0.9, 3.1),
        ({}, [2, 2], 1.95, 2.05),
        ({}, [], -0.05, 1.05),
        ({}, [1, 3, math.inf, math.nan], 0.9, 3.1),
        ({"low": 0}, [1, 3], 0, 3.15),
        ({"low": 2}, [1, 3], 1, 3.1),
        ({"low": 0, "high": 5}, [1, 3], 0, 5),
        ({"low": 0, "high": 2}, [1, 3], 0, 3.15),
        ({"logarithmic": True}, [1, 100, 0, -4], 1 / 1.15, 115),
        ({"logarithmic": True, "low": 2}, [30], 1, 100),
        ({"logarithmic": True, "low": 10}, [10], 1, 100),
    ],
)
def test_axes_span_the_data_with_some_room(
    options: dict[str, Any], values: list[float], low: float, high: float
) -> None:
    span = Span(axis(**options), values, 10, 110)
    assert (span.low, span.high) == (pytest.approx(low), pytest.approx(high))
    assert span(span.low) == 10
    assert span(span.high) == 110
    assert span(span.low - 1) == 10
    assert span(span.high * 2) == 110
    middle = math.sqrt(span.low * span.high) if span.is_logarithmic else (span.low + span.high) / 2
    assert span(middle) == pytest.approx(60)
    ticks = span.ticks()
    assert ticks == sorted(ticks)
    assert len(ticks) >= 2
    assert all(span.low * 0.999 <= tick <= span.high * 1.001 for tick in ticks if span.low > 0)
    assert bool(span.fine()) == span.is_logarithmic
