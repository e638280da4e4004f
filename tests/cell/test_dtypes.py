"""What is said of an array that the core does not take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.cell.cell import Cell
from argosy.cell.dtypes import misfit
from argosy.model.errors import ModelError

TABLE = np.zeros((2, 3), np.int64)


@pytest.mark.parametrize(
    ("given", "kind", "axes", "wrong", "expected"),
    [
        ([1], np.int32, 1, "machines is a list", "an array of int32"),
        (np.zeros(1, np.int64), np.int32, 1, "machines holds int64", "an array of int32"),
        (np.zeros((1, 1), np.int32), np.int32, 1, "machines has 2 axes", "an array of int32"),
        (np.zeros(1, np.int64), np.int64, 2, "machines has 1 axes", "a table of int64, row by row"),
        (
            TABLE.T,
            np.int64,
            2,
            "machines is not laid out row by row",
            "a table of int64, row by row",
        ),
    ],
)
def test_the_first_column_that_does_not_fit_is_named(
    given: Any, kind: type[np.generic], axes: int, wrong: str, expected: str
) -> None:
    fitting = ("tasks", np.zeros(1, np.int64), np.int64, 1)
    absent = ("versions", None, np.int64, 1)
    error = misfit([fitting, absent, ("machines", given, kind, axes)], TypeError("no"))
    assert (error.problem, error.expected) == (wrong, expected)


@pytest.mark.parametrize("column", [np.arange(6, dtype=np.int64)[::2], TABLE])
def test_columns_that_fit_leave_the_core_s_own_words(column: Any) -> None:
    fits = ("machines", column, np.int64, column.ndim)
    assert misfit([fits], TypeError("overloads\nand more")).problem == "overloads"


@pytest.mark.parametrize("ask", ["versions", "sequences"])
def test_a_view_says_which_of_its_arguments_does_not_fit(ask: str) -> None:
    view = Cell(("cpu", "memory")).view()
    with pytest.raises(ModelError, match="machines holds int64"):
        getattr(view, ask)(np.zeros(1, np.int64))
