"""What types of containers say about their contents, and which types are times."""

from __future__ import annotations

from typing import Annotated, Any, Optional

import pytest
from msgspec import Meta

from argosy.model.units import Micros
from argosy.scenarios.scenario_tables import _inside, _is_time

LIMITED = Meta(max_length=3)


@pytest.mark.parametrize(
    ("kind", "inside"),
    [
        (int, ()),
        (Any, ()),
        (tuple[int, ...], (int, ...)),
        (dict[str, int], (str, int)),
        (tuple[int, ...] | None, (int, ...)),
        (None | tuple[int, ...], (int, ...)),
        (Optional[dict[str, int]], (str, int)),  # noqa: UP045
        # Which of them it is cannot be told.
        (tuple[int, ...] | str, ()),
        (tuple[int, ...] | dict[str, int] | None, ()),
        (Annotated[tuple[int, ...], LIMITED], (int, ...)),
        (Annotated[tuple[int, ...] | None, LIMITED], (int, ...)),
        (Annotated[dict[str, int], LIMITED] | None, (str, int)),
        (Annotated[tuple[int, ...] | str, LIMITED], ()),
        (tuple[Micros | None, ...], (Micros | None, ...)),
    ],
    ids=str,
)
def test_contents_are_found_if_there_is_one_kind_of_them(
    kind: Any, inside: tuple[Any, ...]
) -> None:
    assert _inside(kind) == inside


@pytest.mark.parametrize(
    ("kind", "is_time"),
    [
        (Micros, True),
        (Micros | None, True),
        (Annotated[Micros, LIMITED], True),
        (Annotated[Micros | None, LIMITED], True),
        (int | Micros, True),
        (int, False),
        (int | None, False),
        (Annotated[int, LIMITED], False),
        (tuple[Micros, ...], False),
        (str, False),
    ],
    ids=str,
)
def test_times_are_told_from_other_numbers(kind: Any, is_time: bool) -> None:
    assert _is_time(kind) is is_time
