"""Faults of a scenario: machines and schedulers that crash and come back, at given or random times, and
machines that an operator drains, resizes or puts into other node sets, or on which others are busy."""

from __future__ import annotations

from typing import Any, Protocol

from argosy.host.host import Host
from argosy.host.scheduler import Scheduler
from argosy.model.resources import Resources
from argosy.model.scenario import (
    MachineCrash,
    MachineDrain,
    MachineRelabel,
    MachineResize,
    MachineUse,
    RandomCrashes,
    Scenario,
    SchedulerCrash,
)
from argosy.model.transactions import (
    DrainMachine,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
)


class FaultyWorld(Protocol):
    """A world in which faults can happen."""

    scenario: Scenario
    host: Host

    def post_fault(self, at: int, *what: Any) -> None:
        """Schedules `FaultPlan.strike(what)` for time `at`."""


class FaultPlan:
    """Turns the scenario's faults into events, and carries out each when it is due.

    A crash that hits what is down already does nothing, and no restart belongs to it: what is down comes
    back once, when the crash that struck it says so.
    """

    def __init__(self, world: FaultyWorld) -> None:
        self._world = world
        self._host = world.host
        self._random = world.host.random.child("faults")

    def schedule(self) -> None:
        for fault in self._world.scenario.faults:
            match fault:
                case MachineCrash(at=at, machine=name, down=down):
                    number = self._host.view.machine_number(name)
                    self._world.post_fault(at, "machine", number, down)
                case MachineDrain(at=at, machine=name, lasts=lasts):
                    number = self._host.view.machine_number(name)
                    self._world.post_fault(at, "drain", number, True)
                    if lasts is not None:
                        self._world.post_fault(at + lasts, "drain", number, False)
                case MachineResize(at=at, machine=name, capacity=capacity):
                    number = self._host.view.machine_number(name)
                    self._world.post_fault(at, "resize", number, capacity)
                case MachineRelabel(at=at, machine=name, attributes=attributes, joins=joins):
                    number = self._host.view.machine_number(name)
                    change = RelabelMachine(number, attributes, joins)
                    self._world.post_fault(at, "relabel", change)
                case MachineUse(at=at, machine=name, used=used):
                    number = self._host.view.machine_number(name)
                    self._world.post_fault(at, "use", number, used)
                case SchedulerCrash(at=at, scheduler=name, down=down):
                    self._world.post_fault(at, "scheduler", self._host.named(name), down)
                case RandomCrashes(start=start):
                    self._post_next(fault, start)

    def strike(self, what: tuple[Any, ...], now: int) -> None:
        match what:
            case ("machine", int(machine), down):
                self._crash_machine(machine, down, now)
            case ("machine-back", int(machine)):
                self._host.membership.change(ReviveMachine(machine))
            case ("drain", int(machine), bool(draining)):
                self._host.membership.change(DrainMachine(machine, draining))
            case ("resize", int(machine), Resources() as capacity):
                self._host.membership.change(ResizeMachine(machine, capacity))
            case ("relabel", RelabelMachine() as change):
                self._host.membership.change(change)
            case ("use", int(machine), dict(used)):
                for resource, amount in used.items():
                    self._host.membership.observe(resource, [machine], [amount])
            case ("scheduler", Scheduler() as scheduler, down):
                self._crash_scheduler(scheduler, down, now)
            case ("scheduler-back", Scheduler() as scheduler):
                self._host.restart(scheduler)
            case ("random", RandomCrashes() as fault):
                self._strike_at_random(fault, now)

    def _crash_machine(self, machine: int, down: int | None, now: int) -> None:
        if not self._host.view.is_up(machine):
            return
        self._host.membership.change(RemoveMachine(machine))
        if down is not None:
            self._world.post_fault(now + down, "machine-back", machine)

    def _crash_scheduler(self, scheduler: Scheduler, down: int | None, now: int) -> None:
        if not scheduler.is_alive:
            return
        self._host.crash(scheduler)
        if down is not None:
            self._world.post_fault(now + down, "scheduler-back", scheduler)

    def _strike_at_random(self, fault: RandomCrashes, now: int) -> None:
        if fault.what == "machines":
            machine = self._random.below(self._host.view.machines)
            self._crash_machine(machine, fault.down, now)
        else:
            schedulers = self._host.schedulers
            victim = schedulers[self._random.below(len(schedulers))]
            self._crash_scheduler(victim, fault.down, now)
        self._post_next(fault, now)

    def _post_next(self, fault: RandomCrashes, after: int) -> None:
        at = after + int(self._random.exponential() * fault.every)
        if fault.end is None or at <= fault.end:
            self._world.post_fault(at, "random", fault)
