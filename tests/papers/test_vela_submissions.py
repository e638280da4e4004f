"""How jobs are submitted to processes of their own, and for how long their end is awaited."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from argosy.model.errors import CommandError
from argosy.papers.vela import live
from argosy.papers.vela.processes import AgentPlan

PLANS = [AgentPlan(name="a", mix="edge", machines=1, delay=5)]
MEASURED = (
    *("conflicts", "attempts", "agents not reached", "placing s"),
    *("mean queueing ms", "mean sampling ms", "mean commit ms", "mean end to end without queue ms"),
)


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.slept: list[float] = []
        monkeypatch.setattr(live.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(live.time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Scheduler:
    def __init__(self, *done: tuple[int, int]) -> None:
        """So many jobs are placed, and abandoned, whenever it is asked."""
        self.done = list(done)
        self.posted: list[tuple[str, dict[str, Any]]] = []
        self.asked = 0

    def metrics(self) -> dict[str, float]:
        self.asked += 1
        placed, abandoned = self.done.pop(0) if len(self.done) > 1 else self.done[0]
        return {**dict.fromkeys(MEASURED, 0.0), "placed": placed, "abandoned": abandoned}

    def post(self, path: str, document: dict[str, Any]) -> None:
        self.posted.append((path, document))


def measured(
    monkeypatch: pytest.MonkeyPatch, scheduler: Scheduler, count: int = 4, rate: float = 2.0
) -> tuple[dict[str, float], list[Any]]:
    given: list[Any] = []

    @contextmanager
    def started(plans: Any, *arguments: str) -> Iterator[Any]:
        given.extend((plans, arguments))
        yield SimpleNamespace(scheduler=scheduler)

    monkeypatch.setattr(live, "started", started)
    monkeypatch.setattr(live, "_left", lambda federation, plans: {"left": float(len(plans))})
    return live.measure(PLANS, count, rate), given


def test_jobs_are_submitted_at_their_rate_with_the_cores_of_the_mix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, scheduler = Clock(monkeypatch), Scheduler((4, 0))
    found, (plans, arguments) = measured(monkeypatch, scheduler)
    assert clock.slept == [0.0, 0.5, 0.5, 0.5]
    assert plans == PLANS
    assert arguments == (
        "--set", "clusters=0.5", "--set", "machines=0.04", "--set", "candidates=3",
        "--set", "backoff=0s", "--engine", "vela", "--timeout", "60",
    )  # fmt: skip
    posted = sorted(scheduler.posted, key=lambda each: each[1]["id"])
    assert posted == [
        (
            "/v1/jobs",
            {
                "id": f"j{number}",
                "command": "true",
                "request": {"cpu": str(cores), "memory": f"{cores}GiB"},
            },
        )
        for number, cores in enumerate((1, 2, 2, 4))
    ]
    assert (found["placed"], found["jobs"], found["left"]) == (4, 4, 1.0)
    assert scheduler.asked == 1


def test_the_end_is_when_every_job_is_placed_or_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    scheduler = Scheduler((0, 0), (3, 0), (2, 1), (3, 1), (4, 0))
    found, _ = measured(monkeypatch, scheduler)
    assert clock.slept[4:] == [0.25] * 3
    assert (found["placed"], found["abandoned"]) == (3, 1)


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, scheduler = Clock(monkeypatch), Scheduler((3, 0))
    found, _ = measured(monkeypatch, scheduler)
    assert found["placed"] == 3
    # For a minute and a half after the last job.
    assert sum(clock.slept[4:]) == pytest.approx(90.25)


def test_a_job_that_is_refused_ends_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(Scheduler):
        def post(self, path: str, document: dict[str, Any]) -> None:
            if document["id"] == "j2":
                raise CommandError("refused")
            super().post(path, document)

    Clock(monkeypatch)
    scheduler = Refusing((4, 0))
    with pytest.raises(CommandError, match="refused"):
        measured(monkeypatch, scheduler)
    assert scheduler.asked == 0
