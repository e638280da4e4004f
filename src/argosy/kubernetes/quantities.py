"""Kubernetes' quantities ("500m", "1.5Gi", "2e3") as exact integers, and back.

A quantity has at most nine decimals; what is finer is rounded away from zero when it is read, as
Kubernetes does, so that somebody who asks for very little gets something. Turning a quantity into whole
or milli-units rounds away from zero as well. Both saturate at 2^63 - 1, the largest quantity that
Kubernetes reads exactly.
"""

from __future__ import annotations

import enum
import re
from functools import lru_cache
from typing import Final

from argosy.model.errors import LONGEST_ECHO, ArgosyError

LARGEST: Final = 2**63 - 1
NANOS: Final = 10**9
NANOS_OF_MILLI: Final = 10**6
#: Exponents beyond this saturate anyway, and a text of ten characters must not cost a gigabyte.
_LARGEST_EXPONENT: Final = 60

_SPELLING = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)([A-Za-z]*)([+-]?\d+)?", re.ASCII)
_DECIMAL: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class QuantityError(ArgosyError):
    code = "quantity"


class QuantityFormat(enum.Enum):
    """How a quantity is spelled: 12M, 12Mi or 12e6."""

    DECIMAL = "decimal"
    BINARY = "binary"
    EXPONENT = "exponent"


def nanos(text: str) -> int:
    """The quantity in units of 10^-9, exactly."""
    return _parse(text)[0]


# Many containers ask for the same few amounts: the cache makes the scan of a text rare.
@lru_cache(maxsize=16384)
def whole_units(text: str) -> int:
    """Kubernetes' `Value()`: bytes of memory, number of pods or devices."""
    return _rounded(nanos(text), NANOS)


@lru_cache(maxsize=16384)
def milli_units(text: str) -> int:
    """Kubernetes' `MilliValue()`: thousandths of a CPU."""
    return _rounded(nanos(text), NANOS_OF_MILLI)


def amount(resource: str, text: str) -> int:
    """What the scheduler counts of a resource: thousandths of `cpu`, whole units of anything else."""
    return milli_units(text) if resource == "cpu" else whole_units(text)


def quantity(resource: str, count: int) -> str:
    """The canonical spelling of what `amount` counts."""
    match resource:
        case "cpu":
            return spelled(count * NANOS_OF_MILLI, QuantityFormat.DECIMAL)
        case "memory" | "ephemeral-storage" | "storage":
            return spelled(count * NANOS, QuantityFormat.BINARY)
    if resource.startswith("hugepages-"):
        return spelled(count * NANOS, QuantityFormat.BINARY)
    return spelled(count * NANOS, QuantityFormat.DECIMAL)


def canonical(text: str) -> str:
    """The quantity as Kubernetes spells it: no fraction, and the largest suffix that needs none."""
    return spelled(*_parse(text))


def spelled(value: int, format: QuantityFormat) -> str:
    """The canonical spelling of so many nanos."""
    if value == 0:
        return "0"
    if format is QuantityFormat.BINARY and value % NANOS == 0 and abs(value) >= 1024 * NANOS:
        count, steps = value // NANOS, 0
        while count % 1024 == 0 and steps < len(_BINARY):
            count, steps = count // 1024, steps + 1
        return f"{count}{('', *_BINARY)[steps]}"
    exponent = -9
    while value % 1000 == 0 and (exponent < 18 or format is QuantityFormat.EXPONENT):
        value, exponent = value // 1000, exponent + 3
    if format is QuantityFormat.EXPONENT:
        return f"{value}e{exponent}" if exponent else str(value)
    return f"{value}{next(suffix for suffix, power in _DECIMAL.items() if power == exponent)}"


def _parse(text: str) -> tuple[int, QuantityFormat]:
    match = _SPELLING.fullmatch(text)
    if match is None:
        raise _unreadable(text)
    sign, number, suffix, exponent = match.groups()
    whole, _, fraction = number.partition(".")
    digits = int(whole + fraction)
    if exponent is not None:
        if suffix not in ("e", "E"):
            raise _unreadable(text)
        power = max(-_LARGEST_EXPONENT, min(_LARGEST_EXPONENT, int(exponent)))
        value, format = _scaled(digits, power - len(fraction)), QuantityFormat.EXPONENT
    elif suffix in _DECIMAL:
        value, format = _scaled(digits, _DECIMAL[suffix] - len(fraction)), QuantityFormat.DECIMAL
    elif suffix in _BINARY:
        value = min(_scaled(digits << _BINARY[suffix], -len(fraction)), LARGEST * NANOS)
        # Less than one is spelled with n, u or m.
        format = QuantityFormat.BINARY if value == 0 or value >= NANOS else QuantityFormat.DECIMAL
    else:
        raise _unreadable(text)
    return (-value if sign == "-" else value), format


def _scaled(digits: int, power: int) -> int:
    """digits * 10^power in nanos, rounded up."""
    factor: int = 10 ** abs(power + 9)
    return digits * factor if power >= -9 else -(-digits // factor)


def _rounded(value: int, unit: int) -> int:
    count = min(-(-abs(value) // unit), LARGEST)
    return count if value >= 0 else -count


def _unreadable(text: str) -> QuantityError:
    shown = text if len(text) <= LONGEST_ECHO else text[:LONGEST_ECHO] + "..."
    return QuantityError(
        f"'{shown}' is not a quantity", expected="a number such as 500m, 1.5Gi or 2e3"
    )
