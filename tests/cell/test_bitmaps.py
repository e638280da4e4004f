"""Bitmaps and masks say the same of every machine."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from argosy.cell import to_bitmap, to_mask


@given(st.lists(st.booleans(), max_size=200))
def test_a_mask_survives_the_way_through_a_bitmap(chosen: list[bool]) -> None:
    mask = np.array(chosen, np.bool_)
    bitmap = to_bitmap(mask)
    assert bitmap.dtype == np.uint64
    assert len(bitmap) == (len(mask) + 63) // 64
    assert to_mask(bitmap, len(mask)).tolist() == chosen


def test_a_machine_is_a_bit_of_its_word() -> None:
    mask = np.zeros(70, np.bool_)
    mask[[0, 65]] = True
    assert to_bitmap(mask).tolist() == [1, 2]


def test_machines_beyond_the_bitmap_are_not_in_it() -> None:
    assert to_mask(np.array([3], np.uint64), 66).tolist() == [True, True] + [False] * 64
