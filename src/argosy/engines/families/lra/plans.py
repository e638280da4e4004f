"""What is decided about a batch of applications, and the claims that follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from argosy.cell import View, to_mask
from argosy.engines.families.lra.memory import Memory
from argosy.engines.families.lra.reasons import violated
from argosy.engines.families.lra.settings import LraSettings
from argosy.model.constraints.parts import container_tags
from argosy.model.explanations import Explanation
from argosy.model.jobs import Job, TaskGroup
from argosy.model.random import Random
from argosy.model.transactions import Claims, TaskArray
from argosy.solvers.placement import ContainerKind, PlacementAnswer, PlacementProblem, place
from argosy.solvers.placement.violations import Judge


class Application:
    """An LRA that waits for its containers, or for some that it lost."""

    __slots__ = ("attempts", "job", "number", "tasks")

    def __init__(self, job: Job, number: int, tasks: TaskArray) -> None:
        self.job = job
        self.number = number
        self.tasks = tasks
        self.attempts = 0


class BatchPlan(msgspec.Struct, frozen=True):
    """A decision about a batch, until it is committed."""

    applications: tuple[Application, ...]
    #: Of each application, whether it is placed.
    placed: tuple[bool, ...]
    problem: PlacementProblem
    answer: PlacementAnswer
    claims: Claims | None
    explanation: Explanation
    #: What the claims take, per machine and dimension.
    taken: NDArray[np.int64] | None = None
    #: Whether running containers move along.
    moves: bool = False


class _Rows:
    """Claims in the making; neighbours share a gang."""

    def __init__(self) -> None:
        self.tasks: list[TaskArray] = []
        self.machines: list[NDArray[np.int32]] = []
        self.shapes: list[int] = []
        self.gangs: list[int] = []

    def add(self, tasks: TaskArray, machines: NDArray[np.int32], shape: int, gang: int) -> None:
        self.tasks.append(tasks)
        self.machines.append(machines)
        self.shapes.append(shape)
        self.gangs.append(gang)

    def claims(self, view: View) -> Claims | None:
        if not self.tasks:
            return None
        machines = np.concatenate(self.machines).astype(np.int32)
        lengths = [len(tasks) for tasks in self.tasks]
        return Claims(
            np.concatenate(self.tasks),
            machines,
            np.repeat(np.array(self.shapes, np.int32), lengths),
            view.versions(machines),
            np.repeat(np.array(self.gangs, np.int32), lengths),
        )

    def taken(self, view: View) -> NDArray[np.int64]:
        taken = np.zeros_like(view.capacity())
        for machines, shape in zip(self.machines, self.shapes, strict=True):
            np.add.at(taken, machines, np.array(view.shape_request(shape), np.int64))
        return taken


class Planner:
    """Makes plans for batches on the cell as it is."""

    def __init__(
        self, settings: LraSettings, decide: Callable[[PlacementProblem], PlacementAnswer]
    ) -> None:
        self._settings = settings
        self._decide = decide
        self.objective = settings.objective

    def tags(self, job: Job, group: TaskGroup) -> Sequence[str]:
        """Automatic tags are for those whom constraints may name: LRAs, and jobs with constraints."""
        if self._settings.is_lra(job) or job.constraints:
            return container_tags(job, group)
        return group.tags

    def shape(self, job: Job, group: TaskGroup, view: View) -> int:
        return view.shape(group.request, self.tags(job, group), job.precedence)

    def room(self, view: View) -> NDArray[np.int64]:
        free = view.free()
        free[view.takes_claims() == 0] = 0
        return free

    def smallest(self, view: View) -> tuple[int, ...]:
        known = dict(self._settings.smallest.items())
        return tuple(known.get(name, 0) for name in view.dimensions)

    def problem(
        self, kinds: Sequence[ContainerKind], free: NDArray[np.int64], memory: Memory, view: View
    ) -> PlacementProblem:
        return memory.ledger.problem(free, view.capacity(), kinds, self.smallest(view))

    def kinds(self, batch: Sequence[Application], view: View) -> list[ContainerKind]:
        """One for each group of each application, in order."""
        return [
            ContainerKind(
                index,
                frozenset(self.tags(application.job, group)),
                np.array(group.request.within(view.dimensions), np.int64),
                len(tasks),
                _allowed(group, view),
            )
            for index, application in enumerate(batch)
            for group, tasks in application.job.tasks_by_group(application.tasks)
        ]

    def plan(self, batch: Sequence[Application], memory: Memory, view: View) -> BatchPlan:
        """All applications of the batch placed together, with running containers that may move."""
        free = self.room(view)
        kinds = self.kinds(batch, view)
        movers = self._movers(memory, view)
        for number, (_, machine, shape) in enumerate(movers):
            request = np.array(view.shape_request(shape), np.int64)
            free[machine] += request
            tags = memory.tags(shape, view)
            memory.ledger.stop(tags, machine)
            kinds.append(ContainerKind(len(batch) + number, tags, request, 1, origin=machine))
        problem = self.problem(kinds, free, memory, view)
        answer = self._decide(problem)
        for _, machine, shape in movers:
            memory.ledger.start(memory.tags(shape, view), machine)
        placed = _wholly_placed(problem, answer, len(batch))
        rows = _Rows()
        used = self._claim(rows, batch, placed, answer, view)
        moved = 0
        for number, (task, machine, shape) in enumerate(movers, used):
            (to,) = answer.machines_of(number).tolist() or [machine]
            if to != machine:
                here = np.array([to], np.int32)
                rows.add(np.array([task], np.int64), here, shape, len(batch) + moved)
                moved += 1
        return BatchPlan(
            tuple(batch),
            tuple(placed),
            problem,
            answer,
            rows.claims(view),
            violated(memory, problem, answer),
            rows.taken(view) if self._settings.conflict == "reserve" else None,
            moved > 0,
        )

    def relaxed(
        self,
        plan: BatchPlan,
        left: Sequence[Application],
        random: Random,
        memory: Memory,
        view: View,
    ) -> BatchPlan:
        """Each kind of container again, anywhere in the sets in which it was to be."""
        family = memory.ledger.families.get(self._settings.relax_within)
        planned: dict[tuple[int, frozenset[str]], NDArray[np.int32]] = {}
        for old, kind in enumerate(plan.problem.kinds):
            if kind.app < len(plan.applications):
                key = (plan.applications[kind.app].number, kind.tags)
                planned[key] = plan.answer.machines_of(old)
        kinds = []
        for kind in self.kinds(left, view):
            machines = planned.get((left[kind.app].number, kind.tags), np.empty(0, np.int32))
            allowed = np.ones(view.machines, bool)
            if family is not None and not family.overlaps:
                allowed = np.isin(family.set_of, family.set_of[machines])
            if kind.allowed is not None:
                allowed &= kind.allowed
            kinds.append(structs.replace(kind, allowed=allowed))
        problem = self.problem(kinds, self.room(view), memory, view)
        answer = place(problem, "tag-popularity", random, self._settings.objective)
        placed = _wholly_placed(problem, answer, len(left))
        rows = _Rows()
        self._claim(rows, left, placed, answer, view)
        return BatchPlan(
            tuple(left),
            tuple(placed),
            problem,
            answer,
            rows.claims(view),
            Explanation(rule="relaxed after a conflict"),
        )

    def _claim(
        self,
        rows: _Rows,
        batch: Sequence[Application],
        placed: Sequence[bool],
        answer: PlacementAnswer,
        view: View,
    ) -> int:
        """Rows of the applications that are placed; how many kinds the batch has."""
        kind = 0
        for index, application in enumerate(batch):
            for group, tasks in application.job.tasks_by_group(application.tasks):
                if placed[index]:
                    shape = self.shape(application.job, group, view)
                    rows.add(tasks, answer.machines_of(kind), shape, index)
                kind += 1
        return kind

    def _movers(self, memory: Memory, view: View) -> list[tuple[int, int, int]]:
        """Own containers of applications that break something, at most as many as may be moved."""
        if not self._settings.migrate:
            return []
        broken = Judge(memory.ledger).broken(memory.manager.everything())
        spots = {(each.tags, each.machine) for each in broken}
        found = (
            (task, machine, shape)
            for task, machine, shape in memory.own_containers()
            if ((tags := memory.tags(shape, view)), machine) in spots
            and self._settings.are_of_lra(tags)
        )
        return list(islice(found, self._settings.migrate))


def _wholly_placed(
    problem: PlacementProblem, answer: PlacementAnswer, applications: int
) -> list[bool]:
    have = np.bincount(answer.kinds, minlength=len(problem.kinds))
    placed = [True] * applications
    for number, kind in enumerate(problem.kinds):
        if kind.app < applications:
            placed[kind.app] &= int(have[number]) == kind.count
    return placed


def _allowed(group: TaskGroup, view: View) -> NDArray[np.bool_] | None:
    """The machines that have what the group requires; None stands for all."""
    if any(n and name not in view.dimensions for name, n in group.request.items()):
        return np.zeros(view.machines, np.bool_)
    return to_mask(view.where(group.requires), view.machines) if group.requires else None
