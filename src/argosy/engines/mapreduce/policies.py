"""How many workers a job may have, and for how many more there is room: by policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from argosy.model.jobs import MOST_TASKS


def most_workers(policy: str, times: float, useful: int, asked: int) -> int:
    """How many workers the policy allows a job that asked for so many, regardless of room."""
    return min(useful, int(times * asked)) if policy == "relative-job-size" else useful


def shared_room(
    policy: str,
    cap: float,
    request: Iterable[tuple[str, int]],
    used: Mapping[str, int],
    capacity: Mapping[str, int],
    sharing: int,
    taken: int = 0,
) -> int:
    """How many workers there is room for beside `taken` others, if so many jobs share it."""
    share = cap if policy == "global-cap" else 1.0
    fits = [
        (int(share * capacity.get(name, 0)) - used.get(name, 0)) // amount
        for name, amount in request
        if amount
    ]
    return max(0, min(fits, default=MOST_TASKS) - taken) // sharing
