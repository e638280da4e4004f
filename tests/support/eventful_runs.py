"""Runs drawn scenarios while users act, and tells everything that came of it as text."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Final

from drawn_clusters import GIB, HORIZON, MS, SECOND, dice_of, draw_job, draw_scenario
from msgspec import structs
from told_values import told

from argosy.campaign.dice import Dice
from argosy.engines.families.flow.scheduler import FlowScheduler
from argosy.engines.registry import ENGINES
from argosy.host.host import Host
from argosy.host.journal import Journal
from argosy.model.errors import ArgosyError
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import Scenario
from argosy.model.tasks import task_numbers
from argosy.model.transactions import AddMachine
from argosy.model.truth import SimulatedJob
from argosy.testing.scripted_world import ScriptedWorld
from argosy.testing.wired import wired
from argosy.worlds.sim import SimulatedWorld

World = SimulatedWorld | ScriptedWorld
_MOMENTS: Final = (300 * MS, SECOND, 1_500 * MS, 2 * SECOND, 3 * SECOND, 5 * SECOND, 7 * SECOND)


class Users:
    """What users and operators do, drawn from the dice; refusals are kept."""

    def __init__(self, dice: Dice, world: World, scenario: Scenario) -> None:
        self._dice, self._world, self._scenario = dice, world, scenario
        self.refused: list[str] = []

    def plan(self) -> None:
        actions: tuple[Callable[[Dice], Any], ...] = (
            self._cancel_some,
            self._cancel_all,
            self._resize,
            self._resize,
            self._mark,
            self._observe,
            self._add_machine,
            self._place,
        )
        for number in range(self._dice.one_of((0, 3, 6, 9))):
            part = self._dice.part(f"action {number}")
            action = part.one_of(actions)
            self._world.inject(part.one_of(_MOMENTS), lambda a=action, p=part: self._act(a, p))

    def _act(self, action: Callable[[Dice], Any], dice: Dice) -> None:
        try:
            result = action(dice)
        except ArgosyError as error:
            self.refused.append(f"{self.host.runtime.now} {action.__name__}: {told(error)}")
            return
        if result is not None:
            self.refused.append(f"{self.host.runtime.now} {action.__name__}: {told(result)}")

    @property
    def host(self) -> Host:
        return self._world.host

    def _number(self, dice: Dice) -> int:
        return dice.among(0, len(self.host.jobs))

    def _cancel_some(self, dice: Dice) -> Any:
        number = self._number(dice)
        indices = [index for index in range(6) if dice.chance(0.4)]
        return self.host.cancel(number, task_numbers(number, indices))

    def _cancel_all(self, dice: Dice) -> Any:
        return self.host.cancel(self._number(dice))

    def _resize(self, dice: Dice) -> None:
        number = self._number(dice)
        if number >= len(self.host.jobs) or self.host.board.is_over(number):
            number = 0
        if number >= len(self.host.jobs) or self.host.board.is_over(number):
            return
        before = self.host.jobs.job(number)
        made = next((m for m in self._scenario.jobs if m.job.id == before.id), None)
        count = max(1, before.groups[-1].count + dice.one_of((-3, -1, 0, 1, 2, 5)))
        group = structs.replace(before.groups[-1], count=count)
        job = structs.replace(before, groups=(*before.groups[:-1], group))
        if made is not None:
            truth = tuple(structs.replace(t, durations=t.durations[:1]) for t in made.truth)
            self._world.tell_times(number, SimulatedJob(job, 0, truth))
        self.host.scale(number, job)

    def _mark(self, dice: Dice) -> None:
        groups = self.host.view.groups
        group = dice.one_of(groups) if groups and dice.chance(0.9) else "nowhere"
        sets = self.host.view.sets_in(group) if group in groups else ("x",)
        chosen = dice.some_of(list(sets)[:4])
        attribute = dice.one_of(("hot", "cold"))
        self.host.mark(attribute, group, chosen, is_given=dice.chance(0.7))

    def _observe(self, dice: Dice) -> None:
        machines = [n for n in range(self.host.view.machines) if dice.chance(0.5)]
        used = [dice.one_of((0, 500, 9_000)) for _ in machines]
        self.host.membership.observe(dice.one_of(("cpu", "memory", "bandwidth")), machines, used)

    def _add_machine(self, dice: Dice) -> None:
        joins: dict[str, tuple[str, ...]] = {"rack": (dice.one_of(("r0", "r9")),)}
        if "cluster" in self.host.view.groups:
            joins["cluster"] = (self.host.view.sets_in("cluster")[0],)
        # The network of a flow scheduler is made for the resources that there were.
        is_known = "bandwidth" in self.host.view.dimensions
        engines = self._scenario.engine_names()
        may_be_new = not any(issubclass(ENGINES[name], FlowScheduler) for name in engines)
        has_bandwidth = dice.chance(0.5) and (is_known or may_be_new)
        extras = {"bandwidth": 1_000} if has_bandwidth else {}
        name = f"new{dice.among(0, 3)}"
        capacity = Resources(dice.one_of((2_000, 8_000)), 8 * GIB, extras)
        self.host.change_machine(AddMachine(Machine(name, capacity, {"arch": "x86"}, joins)))

    def _place(self, dice: Dice) -> Any:
        name = f"extra{dice.among(0, 2)}"
        groups = ["machine", *self.host.view.groups]
        made = draw_job(dice, name, groups, self._scenario.cell, count=1)
        job = structs.replace(
            made.job, constraints=() if dice.chance(0.8) else made.job.constraints
        )
        machine = dice.among(0, self.host.view.machines - 1)
        commit = dice.one_of(("Bind", "Bind", "Bind", "Nothing"))
        made = structs.replace(made, job=job)
        if job.activities:
            return None
        number = len(self.host.jobs)
        if isinstance(self._world, ScriptedWorld):
            # Its machines are asked to start the task at once.
            self._world.tell_times(number, made)
            return self.host.place(job, machine, "elsewhere", commit)
        refusal = self.host.place(job, machine, "elsewhere", commit)
        if len(self.host.jobs) > number:
            self._world.tell_times(number, made)
        return refusal


def keep_failing(world: ScriptedWorld) -> None:
    """The tasks that run first of all fail again and again, some more often than their jobs allow."""

    def fail() -> None:
        for task in sorted(world.machines.running)[:3]:
            incarnation = world.machines.running.pop(task)
            world.host.fail_task(task, incarnation, 3, "no luck")

    for moment in range(200 * MS, HORIZON, 200 * MS):
        world.inject(moment, fail)


def run_text(engine: str, number: int, *, fails: bool = False) -> str:
    """The journal of a run, and how it ended. If it `fails`, tasks do so."""
    scenario, refused = draw_scenario(engine, number)
    dice = dice_of("run", engine, number)
    kind = SimulatedWorld if dice.chance(0.55) else ScriptedWorld
    if fails:
        kind = ScriptedWorld
    over_wire = dice.chance(0.15)
    stream = io.BytesIO()
    engines = {name: ENGINES[name] for name in scenario.engine_names()}
    if over_wire:
        engines = {name: wired(found) for name, found in engines.items()}
    lines = [*refused]
    journal = Journal(stream)
    try:
        world = kind(scenario, engines, journal)
        users = Users(dice.part("users"), world, scenario)
        if kind is ScriptedWorld or dice.chance(0.5):
            users.plan()
        if fails and isinstance(world, ScriptedWorld):
            keep_failing(world)
        world.run()
    except ArgosyError as error:
        lines.append(told(error))
    except Exception as error:
        lines.append(told(error))
        cause = error.__cause__
        if cause is not None:
            lines.append(told(cause))
    else:
        lines += users.refused
        lines += state_of(world.host)
    journal.flush()
    _, _, records = stream.getvalue().decode("utf-8").partition("\n")
    return "\n".join([*lines, records])


def state_of(host: Host) -> list[str]:
    """All that can be read of the cell and of the board."""
    view, board = host.view, host.board
    lines = [
        told(host.cell.audit()),
        told(host.cell.usage()),
        told(view.used_total()),
        told(view.capacity_total()),
        told(view.free()),
        told(view.capacity()),
        told(view.versions()),
        told(view.sequences()),
        told(view.takes_claims()),
        told(view.attributes),
        told(view.groups),
        told(board.counts()),
        told(board.job_columns()),
        told(host.runtime.now),
        told(host.runtime.integrals()),
        told(host.events),
    ]
    for machine in range(view.machines):
        sets = [view.sets_of(machine, group) for group in view.groups]
        flags = view.is_up(machine), view.is_draining(machine)
        lines.append(told([view.machine_name(machine), sets, flags, host.cell.tasks_on(machine)]))
    for scheduler in host.schedulers:
        held = view.held_by(scheduler.name), view.highest_precedence(scheduler.name)
        lines.append(told([scheduler.name, held, scheduler.jobs, scheduler.handled]))
    lines += [told([number, host.jobs.name(number)]) for number in range(len(host.jobs))]
    return lines


assert max(_MOMENTS) < HORIZON
