"""Sets of machines: as bitmaps, which searches take, and as masks, which NumPy takes."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: One bit per machine in 64-bit words: machine m is bit m % 64 of word m // 64.
Bitmap: TypeAlias = NDArray[np.uint64]

_WORD = 64


def to_mask(bitmap: Bitmap, machines: int) -> NDArray[np.bool_]:
    """A boolean for each of the first `machines` machines; false for those beyond the bitmap."""
    bits = np.unpackbits(bitmap.view(np.uint8), count=machines, bitorder="little")
    # The bits are already zeros and ones, so the bytes can be read as booleans.
    return bits.view(np.bool_)


def to_bitmap(mask: NDArray[np.bool_]) -> Bitmap:
    """The machines for which `mask` is true."""
    padded = np.zeros(-(-len(mask) // _WORD) * _WORD, np.bool_)
    padded[: len(mask)] = mask
    return np.packbits(padded, bitorder="little").view(np.uint64)
