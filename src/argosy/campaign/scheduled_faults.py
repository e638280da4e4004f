"""When the faults of a scenario strike, in worlds whose servers are killed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import (
    AgentDown,
    AgentFault,
    AgentSlow,
    AgentStale,
    MachineCrash,
    MachineDrain,
    MachineResize,
    Partition,
    RandomCrashes,
    Scenario,
    SchedulerCrash,
)


class FaultTarget(Protocol):
    """What faults strike."""

    def crash_machine(self, name: str, down: int | None) -> None: ...
    def drain_machine(self, name: str, draining: bool) -> None: ...
    def resize_machine(self, name: str, capacity: Resources) -> None: ...
    def kill_server(self, down: int | None) -> None: ...
    def disturb(self, fault: Partition | AgentFault) -> None:
        """Something is wrong with the network, or with who is asked over it."""


class ScheduledFaults:
    """`at` calls something at a time; `now` tells it."""

    def __init__(
        self,
        scenario: Scenario,
        target: FaultTarget,
        random: Random,
        at: Callable[[int, Callable[[], None]], None],
        now: Callable[[], int],
    ) -> None:
        self._faults = scenario.faults
        self._machines: Sequence[str] = [machine.name for machine in scenario.cell.machines]
        self._target = target
        self._random = random
        self._at = at
        self._now = now

    def begin(self) -> None:
        target = self._target
        for fault in self._faults:
            match fault:
                case MachineCrash(at=at, machine=name, down=down):
                    self._at(at, partial(target.crash_machine, name, down))
                case MachineDrain(at=at, machine=name, lasts=lasts):
                    self._at(at, partial(target.drain_machine, name, True))
                    if lasts is not None:
                        self._at(at + lasts, partial(target.drain_machine, name, False))
                case MachineResize(at=at, machine=name, capacity=capacity):
                    self._at(at, partial(target.resize_machine, name, capacity))
                case SchedulerCrash(at=at, down=down):
                    self._at(at, partial(target.kill_server, down))
                case RandomCrashes(start=start):
                    self._strike_later(fault, start)
                case Partition(at=at) | AgentDown(at=at) | AgentSlow(at=at) | AgentStale(at=at):
                    self._at(at, partial(target.disturb, fault))

    def _strike_later(self, fault: RandomCrashes, after: int) -> None:
        at = after + max(1, int(self._random.exponential() * fault.every))
        if fault.end is None or at <= fault.end:
            self._at(at, partial(self._strike, fault))

    def _strike(self, fault: RandomCrashes) -> None:
        if fault.what == "machines":
            name = self._machines[self._random.below(len(self._machines))]
            self._target.crash_machine(name, fault.down)
        else:
            self._target.kill_server(fault.down)
        self._strike_later(fault, self._now())
