"""Distances on the Earth, with nothing but additions, multiplications, divisions and square roots, which
are the same on every computer; sines of the C library are not.

Places are points of the unit sphere, and distances are lengths of chords through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Point: TypeAlias = tuple[float, float, float]

#: In kilometres.
EARTH_RADIUS: Final = 6_371.0
_PI: Final = 3.141592653589793


def sine(angle: float) -> float:
    """For angles from -pi to pi, by its series: the error is below 1e-9."""
    total, term = 0.0, angle
    for n in range(1, 16):
        total += term
        term = -term * angle * angle / ((2 * n) * (2 * n + 1))
    return total


def _cosine(angle: float) -> float:
    other = _PI / 2 - abs(angle)
    return sine(other)


@lru_cache(100_000)
def position(text: str) -> Point | None:
    """The place written as "latitude,longitude" in degrees; None if it cannot be read."""
    one, _, other = text.partition(",")
    try:
        latitude, longitude = float(one), float(other)
    except ValueError:
        return None
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        return None
    phi, theta = latitude * _PI / 180, longitude * _PI / 180
    flat = _cosine(phi)
    return flat * _cosine(theta), flat * sine(theta), sine(phi)


def chord_of(kilometres: float) -> float:
    """The chord of a distance along the surface; any chord is within half the way around."""
    half = kilometres / EARTH_RADIUS / 2
    return 2.0 if half >= _PI / 2 else 2 * sine(half)


def chords(place: Point, locations: Sequence[str]) -> NDArray[np.float64]:
    """The chord from `place` to each location; infinite where a location cannot be read."""
    found = np.full(len(locations), np.inf)
    for row, text in enumerate(locations):
        if (point := position(text)) is not None:
            x, y, z = (a - b for a, b in zip(place, point, strict=True))
            found[row] = sqrt(x * x + y * y + z * z)
    return found
