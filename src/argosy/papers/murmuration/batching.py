"""Sections 4.1 and 6.2.3: how placements are told, and what it costs to read about them.

The paper says that one message per job adds no significant delay, that messages may also be sent
periodically or once there are enough updates, and that messages which schedulers read in the background
may pile up. It shows no measurements of these; its figure 15 delays updates instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings, PointResult
from argosy.papers.murmuration.points import ORDERS, READING, SHARE
from argosy.papers.murmuration.reading import on_trace, one

_SWEEP: Final = "batching"
#: The design of the paper, whose claims name no order.
_SYSTEM: Final = ORDERS[0]


def _told(found: Findings, how: str, reading: float = 0.0) -> PointResult | None:
    return one(found, _SWEEP, told=how, reading=reading)


def _delayed(found: Findings, delay: float) -> PointResult | None:
    return one(found, "15", system=_SYSTEM, schedulers=SHARE, delay=delay)


def claims(found: Findings) -> Iterator[Claim]:
    by_task, by_job = _told(found, "task"), _told(found, "job")
    if by_task is None or by_job is None:
        return
    note = (
        f"{_SYSTEM}; {100 * SHARE:.0f} % as many schedulers as machines; {on_trace(found, _SWEEP)}"
    )
    yield _messages(by_task, note)
    ratio = by_job["jct"] / max(by_task["jct"], 1e-9)
    yield Claim(
        id="15-batched-by-job",
        figure="15",
        paper="one message per job instead of one per task does not add significant delay",
        here=f"median JCT {ratio:.3f} times that with a message per task",
        tolerance="at most 1.05 times",
        holds=ratio <= 1.05,
        note=note,
    )
    yield from _backlog(found, note)
    yield from _collected(found, by_job, note)


def _messages(by_task: PointResult, note: str) -> Claim:
    schedulers, jobs = by_task["schedulers"], by_task["jobs"]
    expected = by_task["tasks"] / jobs * (2 * schedulers - 1)
    sent = (by_task["messages"] + by_task["notices"]) / jobs
    return Claim(
        id="15-messages",
        figure="15",
        paper="f x (2 x S - 1) messages a job where updates are not batched: 285 for 15 tasks",
        here=f"{sent:,.1f} for {by_task['tasks'] / jobs:.2f} tasks a job and {schedulers:.0f} "
        "schedulers",
        tolerance=f"{expected:,.1f}, exactly",
        holds=abs(sent - expected) < 1e-6 * expected,
        note=note,
    )


def _backlog(found: Findings, note: str) -> Iterator[Claim]:
    by_task, by_job = _told(found, "task", READING), _told(found, "job", READING)
    if by_task is None or by_job is None:
        return
    ratio = by_task["jct"] / max(by_job["jct"], 1e-9)
    yield Claim(
        id="15-backlog",
        figure="15",
        paper="a message per task creates a large backlog, for which batching is the remedy",
        here=f"median JCT {ratio:.2f} times that with a message per job",
        tolerance="1.05 times or more",
        holds=ratio >= 1.05,
        setup=f"a message takes {1e3 * READING:g} ms to read, while the scheduler does not decide",
        note=note,
    )


def _collected(found: Findings, by_job: PointResult, note: str) -> Iterator[Claim]:
    """Messages that wait for others are late, so they should cost at most what a delay costs."""
    one_second, ten_seconds = _delayed(found, 1.0), _delayed(found, 10.0)
    if one_second is None or ten_seconds is None:
        return
    limits = {
        "1 s": one_second["jct"],
        "100 placements": max(one_second["jct"], ten_seconds["jct"]),
    }
    for how, most in limits.items():
        result = _told(found, how)
        if result is None:
            continue
        ratio, limit = result["jct"] / by_job["jct"], most / by_job["jct"]
        is_periodic = how == "1 s"
        yield Claim(
            id="15-periodic" if is_periodic else "15-minimum-count",
            figure="15",
            paper="messages sent "
            + ("periodically" if is_periodic else "upon a minimum number of updates")
            + " delay updates, and JCT increases with the delay",
            here=f"median JCT {ratio:.3f} times that with a message per job; with the delay "
            f"{limit:.3f} times",
            tolerance="0.98 times or more, and at most 1.02 times as much as with the delay",
            holds=0.98 <= ratio <= 1.02 * limit,
            setup="a message every 1 s, against a delay of 1 s"
            if is_periodic
            else "a message for 100 placements or after 10 s, against the worse of 1 s and 10 s",
            note=note,
        )
