"""Sets of machines: as bitmaps, which searches take, and as masks, which NumPy takes."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: One bit a machine in words of 64: machine m is bit m % 64 of word m // 64.
Bitmap: TypeAlias = NDArray[np.uint64]

_WORD = 64


def to_mask(bitmap: Bitmap, machines: int) -> NDArray[np.bool_]:
    """A truth value for each of the first `machines` machines; those beyond the bitmap are not in it."""
    bits = np.unpackbits(bitmap.view(np.uint8), count=machines, bitorder="little")
    # The bits are zeros and ones already, so the bytes can be read as they are.
    return bits.view(np.bool_)


def to_bitmap(mask: NDArray[np.bool_]) -> Bitmap:
    """The machines for which `mask` is true."""
    padded = np.zeros(-(-len(mask) // _WORD) * _WORD, np.bool_)
    padded[: len(mask)] = mask
    return np.packbits(padded, bitorder="little").view(np.uint64)
