"""Machines, tasks and demands in the words of a scenario file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from argosy.model.resources import Resources
from argosy.model.units import format_amount

_NUMBERED: Final = re.compile(r"(.*?)(\d+)")
#: Longer lists are cut, with a count of the rest.
_MOST: Final = 4


def listed(parts: Sequence[str], most: int = _MOST) -> str:
    """``a, b and c``; beyond `most` parts, ``a, b, c and 9 more``."""
    if len(parts) > most + 1:
        return f"{', '.join(parts[:most])} and {len(parts) - most:,} more"
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def listed_names(names: Iterable[str]) -> str:
    """Names of machines or tasks; numbered neighbours become a range: ``gpu-0 to gpu-3 and big``."""
    runs: list[tuple[str, str, int]] = []
    spans: list[tuple[str, str]] = []
    for name in names:
        found = _NUMBERED.fullmatch(name)
        stem, number = (found[1], int(found[2])) if found else (name, -1)
        if runs and found and runs[-1][0] == stem and runs[-1][2] == number - 1:
            runs[-1] = (stem, name, number)
            spans[-1] = (spans[-1][0], name)
        else:
            runs.append((stem, name, number))
            spans.append((name, name))
    parts: list[str] = []
    for first, last in spans:
        if first == last:
            parts.append(first)
        elif int(last[len(_stem(last)) :]) - int(first[len(_stem(first)) :]) == 1:
            parts += [first, last]
        else:
            parts.append(f"{first} to {last}")
    return listed(parts)


def _stem(name: str) -> str:
    found = _NUMBERED.fullmatch(name)
    return found[1] if found else name


def format_request(request: Resources) -> str:
    """``4 cores, 32 GiB and 8 gpu``; amounts of zero are left out."""
    return listed([format_amount(name, amount) for name, amount in request.items() if amount], 8)


def format_requires(requires: Mapping[str, str]) -> str:
    """``accel=a100 and disk=ssd``."""
    return listed([f"{key}={value}" for key, value in requires.items()], 8)
