"""Faults of a scenario: crashes and restarts of machines and schedulers, at given or random times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argosy.model.events import MachineJoined, MachineLost
from argosy.model.scenario import MachineCrash, RandomCrashes, SchedulerCrash
from argosy.model.transactions import OPERATOR, RemoveMachine, ReviveMachine, Transaction

if TYPE_CHECKING:
    from argosy.worlds.sim.world import SimulatedWorld


class FaultPlan:
    """Turns the scenario's faults into events, and carries each out when it is due.

    A crash that hits what is down already does nothing; so does the restart that belongs to it.
    """

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        self._random = world.random.child("faults")

    def schedule(self) -> None:
        for fault in self._world.scenario.faults:
            match fault:
                case MachineCrash(at=at, machine=name, down=down):
                    number = self._world.view.machine_number(name)
                    self._world.post_fault(at, "machine", number, down)
                case SchedulerCrash(at=at, scheduler=name, down=down):
                    self._world.post_fault(at, "scheduler", name, down)
                case RandomCrashes(start=start):
                    self._post_next(fault, start)

    def strike(self, what: tuple[Any, ...], now: int) -> None:
        match what:
            case ("machine", int(machine), down):
                self._crash_machine(machine, down, now)
            case ("machine-back", int(machine)):
                self._revive_machine(machine, now)
            case ("scheduler", str(name), down):
                self._crash_scheduler(name, down, now)
            case ("scheduler-back", str(name), int(epoch)):
                scheduler = self._world.scheduler(name)
                if not scheduler.is_alive and scheduler.epoch == epoch:
                    self._write(now, "restarted", scheduler=name)
                    self._world.restart(scheduler, now)
            case ("failover", str(name), int(epoch)):
                scheduler = self._world.scheduler(name)
                if not scheduler.is_alive and scheduler.epoch == epoch:
                    self._world.hand_over(scheduler, now)
            case ("random", RandomCrashes() as fault):
                self._strike_at_random(fault, now)

    def _crash_machine(self, machine: int, down: int | None, now: int) -> None:
        if not self._world.view.is_up(machine):
            return
        self._write(now, "machine-lost", machine=machine)
        transaction = Transaction(OPERATOR, machines=(RemoveMachine(machine),))
        self._world.change_machines(transaction, MachineLost(machine), now)
        if down is not None:
            self._world.post_fault(now + down, "machine-back", machine)

    def _revive_machine(self, machine: int, now: int) -> None:
        self._write(now, "machine-back", machine=machine)
        transaction = Transaction(OPERATOR, machines=(ReviveMachine(machine),))
        self._world.change_machines(transaction, MachineJoined(machine), now)

    def _crash_scheduler(self, name: str, down: int | None, now: int) -> None:
        scheduler = self._world.scheduler(name)
        if not scheduler.is_alive:
            return
        self._write(now, "crashed", scheduler=name)
        scheduler.crash()
        self._world.post_fault(now + self._world.scenario.failover, "failover", name, scheduler.epoch)
        if down is not None:
            self._world.post_fault(now + down, "scheduler-back", name, scheduler.epoch)

    def _strike_at_random(self, fault: RandomCrashes, now: int) -> None:
        if fault.what == "machines":
            machine = self._random.below(self._world.view.machines)
            self._crash_machine(machine, fault.down, now)
        else:
            schedulers = self._world.schedulers
            victim = schedulers[self._random.below(len(schedulers))]
            self._crash_scheduler(victim.name, fault.down, now)
        self._post_next(fault, now)

    def _post_next(self, fault: RandomCrashes, after: int) -> None:
        at = after + int(self._random.exponential() * fault.every)
        if fault.end is None or at <= fault.end:
            self._world.post_fault(at, "random", fault)

    def _write(self, now: int, what: str, **fields: Any) -> None:
        if self._world.log:
            self._world.log.write(now, what, **fields)
