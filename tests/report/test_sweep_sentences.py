"""Who is best where, as a sweep says it: changes, ties, failures, and values at which nobody is best."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from test_exact_reports import ranking

from argosy.report.comparison import Ranking
from argosy.report.metrics import find_metric
from argosy.report.sweeps import SweepResult, SweepRow, sweep_lines, sweep_table

JCT = find_metric("jct")
A_IS_BEST = ranking("jct", a=(1, 4e6), b=(2, 6e6))
B_IS_BEST = ranking("jct", a=(2, 9e6), b=(1, 3e6))
BOTH_ARE = ranking("jct", a=(1, 4e6), b=(1, 4e6))
NOBODY_IS = replace(ranking("jct", a=(None, None), b=(None, None)), failures={"c": "no core"})


def sweep(*rows: tuple[Any, Ranking]) -> SweepResult:
    return SweepResult(
        scenario="small",
        varied="load",
        metric="jct",
        rows=tuple(SweepRow(value, ranked) for value, ranked in rows),
    )


@pytest.mark.parametrize(
    ("values", "place"),
    [
        (("x", "y"), "between load = x and y"),
        ((1, 5), "at about load = 2"),
        ((0.0, 1.0), "at about load = 0.25"),
        ((1_000, "all"), "between load = 1,000 and all"),
        ((1_000_000, 5_000_000), "at about load = 2e+06"),
    ],
)
def test_a_change_is_placed_between_the_values_or_where_medians_cross(
    values: tuple[Any, Any], place: str
) -> None:
    found = sweep((values[0], A_IS_BEST), (values[1], B_IS_BEST))
    assert sweep_lines(found, JCT) == [
        f"The best engine by median JCT changes {place}, from a to b."
    ]


def test_every_change_has_its_line_with_all_leaders() -> None:
    c_ties = ranking("jct", a=(3, 9e6), b=(1, 3e6), c=(1, 3e6))
    found = sweep(("x", A_IS_BEST), ("y", c_ties), ("z", A_IS_BEST))
    assert sweep_lines(found, JCT) == [
        "The best engine by median JCT changes between load = x and y, from a to b, c.",
        "The best engine by median JCT changes between load = y and z, from b, c to a.",
    ]


def test_those_who_are_always_best_are_named_in_the_order_of_engines() -> None:
    tied = ranking("jct", z=(1, 4e6), a=(1, 4e6), m=(3, 6e6))
    assert sweep_lines(sweep((1, tied), (2, tied)), JCT) == [
        "Best by median JCT at every value: z, a."
    ]


def test_a_value_at_which_nobody_is_best_is_no_exception_and_its_failures_are_told() -> None:
    found = sweep((1, A_IS_BEST), (2_000, NOBODY_IS), (3, A_IS_BEST))
    assert found.changes() == []
    assert sweep_lines(found, JCT) == [
        "Best by median JCT at every value: a.",
        "c failed at 2,000: no core",
    ]
    assert sweep_table(found, JCT).rows[1] == ("2,000", None, None, None)


def test_a_change_over_a_value_at_which_nobody_is_best_is_told() -> None:
    [change] = sweep(("x", A_IS_BEST), ("y", NOBODY_IS), ("z", B_IS_BEST)).changes()
    assert (change.after, change.before, change.crossing) == ("x", "z", None)


def test_a_tie_on_the_way_is_no_change_and_nobody_is_always_best() -> None:
    found = sweep((1, A_IS_BEST), (2, BOTH_ARE), (3, B_IS_BEST))
    nobody = "No engine is best by median JCT at every value; from one to the next they tie."
    assert sweep_lines(found, JCT) == [nobody]
    assert sweep_lines(sweep((1, NOBODY_IS)), JCT) == [nobody, "c failed at 1: no core"]


def test_medians_that_are_equally_far_apart_do_not_cross() -> None:
    lower = ranking("jct", a=(1, 4e6), b=(2, 6e6))
    higher = ranking("jct", a=(2, 8e6), b=(1, 10e6))
    [change] = sweep((1, lower), (2, higher)).changes()
    assert change.crossing is None
