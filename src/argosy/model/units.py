"""Units: integers inside, readable text at the edges.

State holds microseconds, milli-cores and bytes. Text such as ``"1.5h"``, ``"250m"`` or ``"64GiB"``
is converted to exact integers only here; what is not a whole number is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Final, NewType, TypeAlias

from argosy.model.errors import LONGEST_ECHO, UnitError, excerpt

Micros = NewType("Micros", int)
MilliCpu = NewType("MilliCpu", int)
Bytes = NewType("Bytes", int)
#: Microseconds as a plain `int`; in scenario and trace files, text with a unit.
Time: TypeAlias = Annotated[int, Micros]

MICROS_PER_SECOND: Final = 1_000_000
#: Quantities and times are below this, so that sums of a million of them fit a signed 64-bit integer.
LARGEST: Final = 2**53
#: The longest amount accepted as text: far longer than any amount in range needs.
MOST_DIGITS: Final = 40

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
_NUMBER: Final = r"\s*(-?\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*"


class _Kind:
    """A kind of amount, as named in errors; `example` shows its notation."""

    __slots__ = ("example", "most", "name", "units")

    def __init__(self, name: str, example: str, most: str, units: Mapping[str, int]) -> None:
        self.name = name
        self.example = example
        self.most = most
        self.units = units


_DURATION: Final = _Kind(
    "a duration",
    'a duration with a unit, such as "250ms", "90s", "10min", "2h" or "1d"',
    "at most 2^53 microseconds, about 285 years",
    _DURATIONS,
)
_CPU: Final = _Kind(
    "an amount of cpu",
    'whole milli-cores such as 1500, or text such as "1500m" or "1.5"',
    "at most 2^53 milli-cores",
    {"m": 1, "": 1000},
)
_MEMORY: Final = _Kind(
    "an amount of memory",
    'whole bytes such as 1048576, or text such as "512MiB" or "64GiB"',
    "at most 2^53 bytes, which is 8192TiB",
    _SIZES,
)


def shown(value: object) -> str:
    """A value of a TOML or JSON file in that file's notation, shortened."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return excerpt(value)
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "an array"
    if isinstance(value, int) and value.bit_length() > 8 * LONGEST_ECHO:
        # Python itself refuses to write very long numbers.
        return f"a number of {value.bit_length():,} bits"
    # Dates and times of TOML.
    text = value.isoformat() if hasattr(value, "isoformat") else repr(value)
    return text if len(text) <= LONGEST_ECHO else f"{text[: LONGEST_ECHO - 3]}..."


@lru_cache(maxsize=4_096)
def _whole(text: str, kind: _Kind) -> int:
    match = re.fullmatch(_NUMBER, text)
    if match is None:
        raise UnitError(f"{shown(text)} is not {kind.name}", expected=kind.example)
    if match[2] not in kind.units:
        problem = f"{shown(text)} has an unknown unit {shown(match[2])}"
        if not match[2]:
            problem = f"{shown(text)} has no unit"
        known = ", ".join(unit for unit in kind.units if unit)
        raise UnitError(
            problem,
            expected=f"one of the units {known}; {kind.example}",
            hint=_unit_meant(match[2], kind.units),
        )
    if len(match[1]) > MOST_DIGITS:
        raise UnitError(f"{shown(text)} has {len(match[1])} digits", expected=kind.example)
    # Imported here because commands that read no amounts start sooner without it.
    from fractions import Fraction

    value = Fraction(match[1]) * kind.units[match[2]]
    if value < 0:
        raise UnitError(f"{shown(text)} is negative", expected=f"zero or more: {kind.example}")
    if value.denominator != 1:
        raise UnitError(
            f"{shown(text)} is not a whole number of the base unit", expected=kind.example
        )
    return _bounded(int(value), kind, shown(text))


def _unit_meant(unit: str, units: Mapping[str, int]) -> str | None:
    """Suggests only other capitalisations of the unit: TiB is close to EiB, but a million times
    smaller."""
    for known in units:
        if unit and known.lower() == unit.lower():
            return f"did you mean {known!r}?"
    return None


def _bounded(value: int, kind: _Kind, text: str = "") -> int:
    if value < 0:
        raise UnitError(
            f"{text or shown(value)} is negative", expected=f"{kind.name} of zero or more"
        )
    if value > LARGEST:
        raise UnitError(f"{text or shown(value)} is too large", expected=kind.most)
    return value


def _integer(value: object, kind: _Kind) -> int:
    if isinstance(value, float):
        raise UnitError(f"{value} is fractional", expected=kind.example)
    if isinstance(value, bool) or not isinstance(value, int):
        raise UnitError(f"{shown(value)} is not {kind.name}", expected=kind.example)
    return _bounded(value, kind)


def parse_duration(value: object) -> Micros:
    """``"90s"`` or ``"1.5h"``; a bare number is refused because it has no unit."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise UnitError(f"{shown(value)} has no unit", expected=_DURATION.example)
    if not isinstance(value, str):
        raise UnitError(f"{shown(value)} is not a duration", expected=_DURATION.example)
    return Micros(_whole(value, _DURATION))


def parse_cpu(value: object) -> MilliCpu:
    """Milli-cores as an integer, or text: ``"250m"`` is 250 milli-cores, ``"4"`` is four cores."""
    return MilliCpu(_whole(value, _CPU) if isinstance(value, str) else _integer(value, _CPU))


def parse_bytes(value: object) -> Bytes:
    """Bytes as an integer, or text: ``"64GiB"``."""
    return Bytes(_whole(value, _MEMORY) if isinstance(value, str) else _integer(value, _MEMORY))


def parse_count(value: object, what: str = "an amount") -> int:
    """A plain whole number, for named extras such as GPUs."""
    return _integer(value, _Kind(what, "a whole number", "at most 2^53", {}))


def format_duration(micros: float) -> str:
    """Three significant digits, in the unit a person would choose."""
    for unit, size in (("d", 86_400e6), ("h", 3_600e6), ("min", 60e6), ("s", 1e6), ("ms", 1e3)):
        if abs(micros) >= size:
            return (
                f"{micros / size:.3g} {unit}"
                if abs(micros) < 100 * size
                else f"{micros / size:.0f} {unit}"
            )
    return f"{micros:.3g} µs"


def format_count(count: int, noun: str) -> str:
    """``1 task`` or ``1,200 tasks``, for nouns whose plural ends in s."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def format_bytes(amount: float) -> str:
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if abs(amount) >= size:
            return f"{amount / size:.4g} {unit}"
    return f"{amount:.0f} B"


def format_amount(dimension: str, amount: int) -> str:
    """An amount of one resource dimension, as readable text."""
    if dimension == "cpu":
        return "1 core" if amount == 1000 else f"{amount / 1000:g} cores"
    if dimension == "memory":
        return format_bytes(amount)
    return f"{amount} {dimension}"
