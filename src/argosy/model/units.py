"""Units: integers inside, readable text at the edges.

State holds microseconds, milli-cores and bytes. Text such as ``"1.5h"``, ``"250m"`` or ``"64GiB"``
is turned into exact integers here and nowhere else; what is not a whole number is refused.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, Final, NewType, TypeAlias

from argosy.model.errors import UnitError

Micros = NewType("Micros", int)
MilliCpu = NewType("MilliCpu", int)
Bytes = NewType("Bytes", int)
#: Microseconds in a plain `int`; scenario and trace files write such a field as text with a unit.
Time: TypeAlias = Annotated[int, Micros]

MICROS_PER_SECOND: Final = 1_000_000
#: Quantities and times stay below this, so that sums of a million of them fit a signed 64-bit integer.
LARGEST: Final = 2**53

_DURATIONS: Final = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_SIZES: Final = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_NUMBER: Final = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def _whole(text: str, units: dict[str, int], what: str, example: str) -> int:
    match = _NUMBER.fullmatch(text)
    if match is None or match[2] not in units:
        raise UnitError(f"{text!r} is not {what}", expected=example)
    value = Fraction(match[1]) * units[match[2]]
    if value < 0:
        raise UnitError(f"{text!r} is negative", expected=f"zero or more, such as {example}")
    if value.denominator != 1:
        raise UnitError(f"{text!r} is not a whole number of the base unit", expected=example)
    return _bounded(int(value), what)


def _bounded(value: int, what: str) -> int:
    if value < 0:
        raise UnitError(f"{value} is negative", expected=f"{what} of zero or more")
    if value > LARGEST:
        raise UnitError(f"{value} is too large", expected=f"{what} of at most 2^53")
    return value


def _refuse_non_integer(value: object, what: str, example: str) -> None:
    if isinstance(value, float):
        raise UnitError(f"{value} is fractional", expected=f"{what}: {example}")
    if isinstance(value, bool) or not isinstance(value, int):
        raise UnitError(f"{value!r} is not {what}", expected=example)


def parse_duration(value: object) -> Micros:
    """``"90s"`` or ``"1.5h"``; a bare number has no unit and is refused."""
    example = 'a duration with a unit, such as "250ms", "90s", "10min", "2h" or "1d"'
    if not isinstance(value, str):
        raise UnitError(f"{value!r} has no unit", expected=example)
    return Micros(_whole(value, _DURATIONS, "a duration", example))


def parse_cpu(value: object) -> MilliCpu:
    """Milli-cores as an integer, or text: ``"250m"`` is 250 milli-cores, ``"4"`` is four cores."""
    example = 'whole milli-cores such as 1500, or text such as "1500m" or "1.5"'
    if isinstance(value, str):
        return MilliCpu(_whole(value, {"m": 1, "": 1000}, "an amount of cpu", example))
    _refuse_non_integer(value, "an amount of cpu", example)
    return MilliCpu(_bounded(int(value), "an amount of cpu"))  # type: ignore[call-overload]


def parse_bytes(value: object) -> Bytes:
    """Bytes as an integer, or text: ``"64GiB"``."""
    example = 'whole bytes such as 1048576, or text such as "512MiB" or "64GiB"'
    if isinstance(value, str):
        return Bytes(_whole(value, _SIZES, "an amount of memory", example))
    _refuse_non_integer(value, "an amount of memory", example)
    return Bytes(_bounded(int(value), "an amount of memory"))  # type: ignore[call-overload]


def parse_count(value: object, what: str = "an amount") -> int:
    """A plain whole number: the unit of named extras such as GPUs."""
    _refuse_non_integer(value, what, "a whole number")
    return _bounded(int(value), what)  # type: ignore[call-overload]


def format_duration(micros: float) -> str:
    """Three significant digits in the unit a person would choose."""
    for unit, size in (("d", 86_400e6), ("h", 3_600e6), ("min", 60e6), ("s", 1e6), ("ms", 1e3)):
        if abs(micros) >= size:
            return (
                f"{micros / size:.3g} {unit}"
                if abs(micros) < 100 * size
                else f"{micros / size:.0f} {unit}"
            )
    return f"{micros:.3g} µs"


def format_bytes(amount: float) -> str:
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if abs(amount) >= size:
            return f"{amount / size:.4g} {unit}"
    return f"{amount:.0f} B"


def format_amount(dimension: str, amount: int) -> str:
    """An amount of one resource dimension, for people."""
    if dimension == "cpu":
        return "1 core" if amount == 1000 else f"{amount / 1000:g} cores"
    if dimension == "memory":
        return format_bytes(amount)
    return f"{amount} {dimension}"
