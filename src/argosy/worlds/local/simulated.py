"""Tries that no process is started for: a task takes as long as its job estimates.

One without an estimate runs until it is stopped, and so does a service. Nothing is written, and nothing
outlives the server: one that starts again on the same directory starts its tasks again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from argosy.model.jobs import Job
from argosy.model.machines import Machine
from argosy.worlds.local.processless import ProcesslessRunner
from argosy.worlds.local.turn import TryResult


class DueCall(Protocol):
    def cancel(self) -> None: ...


class SimulatedRunner(ProcesslessRunner[DueCall | None]):
    """`later` calls something after so many seconds, and `ended` hears of ends. A try that ends by
    itself is kept with what ends it."""

    def __init__(
        self,
        later: Callable[[float, Callable[[], None]], DueCall],
        ended: Callable[[int, TryResult | None], None],
    ) -> None:
        super().__init__()
        self._later = later
        self._ended = ended

    def launch(self, number: int, job: Job, index: int, machine: Machine) -> None:
        group = job.group_at(index)
        self._running[number] = None
        if group.estimate is not None:
            self._running[number] = self._later(
                group.estimate / 1e6, lambda: self._end(number, TryResult(0))
            )

    def _end(self, number: int, result: TryResult) -> None:
        if self._running.pop(number, False) is not False:
            self._ended(number, result)

    def stop(self, number: int) -> None:
        due = self._running.get(number)
        if due is not None:
            due.cancel()
        self._running.setdefault(number, None)
        self._later(0.0, lambda: self._end(number, TryResult(-15, "stopped", was_stopped=True)))

    def adopt(self, number: int) -> TryResult | bool:
        return False

    def limits(self) -> str:
        return "simulated: no process is started, and a task takes as long as its job estimates"

    def close(self) -> None:
        for due in self._running.values():
            if due is not None:
                due.cancel()
