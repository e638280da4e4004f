"""Shapes that cannot be, and shapes that are one."""

from __future__ import annotations

import pytest
from test_draft import cell_of

from argosy.model.errors import ModelError
from argosy.model.resources import Resources

ONE = Resources(1, 1)


@pytest.mark.parametrize("precedence", [-32_769, 32_768, 10**12])
def test_a_precedence_out_of_range_is_named_with_the_range(precedence: int) -> None:
    with pytest.raises(ModelError, match="precedence must be from -32768 to 32767"):
        cell_of(4).shape(ONE, (), precedence)


def test_shapes_differ_in_requests_tags_and_precedences_and_in_nothing_else() -> None:
    cell = cell_of(4)
    shapes = [
        cell.shape(ONE),
        cell.shape(Resources(1, 2)),
        cell.shape(Resources(2, 1)),
        cell.shape(ONE, ("a",)),
        cell.shape(ONE, ("a", "b")),
        cell.shape(ONE, (), 1),
        cell.shape(ONE, (), -32_768),
        cell.shape(ONE, (), 32_767),
    ]
    assert len(set(shapes)) == len(shapes)
    assert cell.shape(ONE, ("b", "a")) == shapes[4]
    assert cell.shape(ONE, ("a",)) == shapes[3]
    assert cell.shape(ONE, (), 1) == shapes[5]
    assert cell.shape(ONE) == shapes[0]
