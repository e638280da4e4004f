"""The placement of a batch of applications, and the claims for it.

A `BatchQuestion` and a `BatchDecision` are plain values, and the decision is turned into claims only
afterwards; so it may be made in the background, on a snapshot of the cell.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from argosy.cell import View, to_mask
from argosy.engines.families.lra.memory import Memory
from argosy.engines.families.lra.reasons import violated
from argosy.engines.families.lra.settings import LraSettings
from argosy.model.budgets import Budget
from argosy.model.constraints.parts import container_tags, with_name
from argosy.model.effects import Question
from argosy.model.events import Decision
from argosy.model.explanations import Explanation
from argosy.model.jobs import Job, TaskGroup, index_of, task_number
from argosy.model.random import Random
from argosy.model.transactions import Claims, TaskArray
from argosy.solvers.placement import ContainerKind, PlacementAnswer, PlacementProblem, place
from argosy.solvers.placement.violations import Judge


class Application:
    """An LRA waiting for all of its containers, or for those it lost."""

    __slots__ = ("attempts", "delays", "job", "number", "tasks")

    def __init__(self, job: Job, number: int, tasks: TaskArray) -> None:
        self.job = job
        self.number = number
        self.tasks = tasks
        self.attempts = 0
        #: Intervals for which it gave way to others.
        self.delays = 0


class AskedKind(msgspec.Struct, frozen=True):
    """The containers of one group of an application that have the same tags."""

    #: The application's position in the batch.
    application: int
    tags: tuple[str, ...]
    shape: int
    count: int
    #: Attributes that their machines must have.
    requires: dict[str, str]
    precedence: int = 0


class GroupRequirement(msgspec.Struct, frozen=True):
    """Attributes that the machines of a group of tasks must have."""

    #: The group's tasks, the last one excluded.
    begin: int
    end: int
    requires: dict[str, str]


class BatchQuestion(Question, frozen=True):
    """Asks where the containers of all applications in a batch go."""

    applications: int
    kinds: tuple[AskedKind, ...]
    #: Seed of the decision's own random stream.
    seed: int = 0
    #: Running containers that may move, if they break a constraint: all of groups whose requirements
    #: are known.
    movable: tuple[GroupRequirement, ...] = ()


class Spot(msgspec.Struct, frozen=True):
    """A machine and its version when it was chosen."""

    machine: int
    version: int


class ContainerMove(msgspec.Struct, frozen=True):
    """A running container to be moved."""

    task: int
    shape: int
    to: Spot


class BatchDecision(Decision, frozen=True):
    #: Per application: whether it is placed.
    placed: tuple[bool, ...]
    #: Per kind in the question: where its containers go; empty if its application is not placed.
    spots: tuple[tuple[Spot, ...], ...]
    moves: tuple[ContainerMove, ...]
    explanation: Explanation
    #: Whether the answer is proven optimal, how far it may be from the optimum, and how many machines
    #: the integer program chose from.
    is_optimal: bool
    gap: float | None
    candidates: int


class AskedBatch(msgspec.Struct, frozen=True):
    """A batch being decided; its applications may lose tasks in the meantime."""

    applications: list[Application]
    #: The tasks of each kind at the time of asking.
    tasks: list[TaskArray]
    question: BatchQuestion


class BatchPlan(msgspec.Struct, frozen=True):
    """A decision about a batch, until it is committed."""

    applications: tuple[Application, ...]
    question: BatchQuestion
    decision: BatchDecision
    claims: Claims | None
    #: Resources that the claims take, per machine and dimension.
    taken: NDArray[np.int64] | None = None


class _Rows:
    """Claims under construction; the rows of a gang are adjacent."""

    def __init__(self) -> None:
        self.tasks: list[TaskArray] = []
        self.spots: list[Spot] = []
        self.shapes: list[int] = []
        self.gangs: list[int] = []

    def add(self, tasks: TaskArray, spots: Sequence[Spot], shape: int, gang: int) -> None:
        self.tasks.append(tasks)
        self.spots += spots
        self.shapes += [shape] * len(spots)
        self.gangs += [gang] * len(spots)

    @property
    def machines(self) -> NDArray[np.int32]:
        return np.array([spot.machine for spot in self.spots], np.int32)

    def claims(self) -> Claims | None:
        if not self.tasks:
            return None
        return Claims(
            np.concatenate(self.tasks),
            self.machines,
            np.array(self.shapes, np.int32),
            np.array([spot.version for spot in self.spots], np.uint32),
            np.array(self.gangs, np.int32),
        )

    def taken(self, view: View) -> NDArray[np.int64]:
        taken = np.zeros_like(view.capacity())
        for machine, shape in zip(self.machines.tolist(), self.shapes, strict=True):
            taken[machine] += np.array(view.shape_request(shape), np.int64)
        return taken


#: An algorithm, with no state kept between problems.
PlacementAlgorithm = Callable[[PlacementProblem, Random, Budget], PlacementAnswer]


class Planner:
    """Makes plans for batches. It has no state, so `decide` may run in the background."""

    def __init__(self, settings: LraSettings, algorithm: PlacementAlgorithm, name: str) -> None:
        """`name` is the scheduler that claims."""
        self._settings = settings
        self._name = name
        self._algorithm = algorithm
        self.objective = settings.objective

    def tags(self, job: Job, group: TaskGroup) -> Sequence[str]:
        return container_tags(job, group)

    def shape(self, job: Job, group: TaskGroup, view: View) -> int:
        precedence = job.precedence
        if self._settings.conflict == "kill" and self._settings.is_lra(job):
            # A claim pushes out lower ones only, and an application goes before tasks of its own rank.
            precedence += precedence < view.highest_precedence(self._name)
        return view.shape(group.request, self.tags(job, group), precedence)

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

    def ask(
        self,
        batch: Sequence[Application],
        view: View,
        names: frozenset[str],
        seed: int = 0,
        running: Mapping[int, Job] | None = None,
    ) -> BatchQuestion:
        """The kinds of each application, in order; `names` are the containers that constraints name.
        Containers of the jobs in `running`, by number, may move."""
        kinds = [
            AskedKind(
                index,
                tags,
                self.shape(application.job, group, view),
                len(tasks),
                dict(group.requires),
                application.job.precedence,
            )
            for index, application in enumerate(batch)
            for group, tags, tasks in kinds_of(application, names)
        ]
        movable = self._movable(running or {}, view)
        return BatchQuestion(len(batch), tuple(kinds), seed, tuple(movable))

    def _movable(self, running: Mapping[int, Job], view: View) -> Iterator[GroupRequirement]:
        if not self._settings.migrate:
            return
        for number, job in {**view.applications(), **running}.items():
            if not self._settings.is_lra(job):
                continue
            for start, group in zip(job.group_starts(), job.groups, strict=True):
                begin = task_number(number, start)
                yield GroupRequirement(begin, begin + group.count, dict(group.requires))

    def kinds(self, question: BatchQuestion, view: View) -> list[ContainerKind]:
        return [
            ContainerKind(
                asked.application,
                frozenset(asked.tags),
                np.array(view.shape_request(asked.shape), np.int64),
                asked.count,
                _allowed(asked, view),
                precedence=asked.precedence,
            )
            for asked in question.kinds
        ]

    def decide(
        self,
        question: BatchQuestion,
        memory: Memory,
        view: View,
        random: Random,
        budget: Budget,
        under_way: Claims | None = None,
    ) -> BatchDecision:
        """Places all applications of the batch together, with running containers that may move. Claims
        that are under way count as made."""
        if under_way is not None:
            with memory.assumed(under_way, view):
                return self._decide(question, memory, view, random, budget, under_way)
        return self._decide(question, memory, view, random, budget, None)

    def _decide(
        self,
        question: BatchQuestion,
        memory: Memory,
        view: View,
        random: Random,
        budget: Budget,
        under_way: Claims | None,
    ) -> BatchDecision:
        if not view.machines:
            return _nothing(question)
        free = self.room(view)
        if under_way is not None:
            for machine, shape in zip(
                under_way.machines.tolist(), under_way.shapes.tolist(), strict=True
            ):
                free[machine] -= np.array(view.shape_request(shape), np.int64)
            np.maximum(free, 0, out=free)
        kinds = self.kinds(question, view)
        movers = self._movers(question, memory, view)
        lowest = min((asked.precedence for asked in question.kinds), default=0)
        for number, (task, machine, shape, requires) in enumerate(movers):
            request = np.array(view.shape_request(shape), np.int64)
            free[machine] += request
            tags = memory.tags(task, shape, view)
            memory.ledger.stop(tags, machine)
            app = question.applications + number
            allowed = None
            if requires:
                allowed = to_mask(view.where(requires), view.machines)
                # A machine that was relabelled keeps what runs there.
                allowed[machine] = True
            kinds.append(ContainerKind(app, tags, request, 1, allowed, machine, lowest))
        problem = self.problem(kinds, free, memory, view)
        answer = self._algorithm(problem, random, budget)
        for task, machine, shape, _ in movers:
            memory.ledger.start(memory.tags(task, shape, view), machine)
        if any(not len(answer.machines_of(at)) for at in range(len(question.kinds), len(kinds))):
            # One that the answer has no place for stays, which the answer did not reckon with.
            stay = structs.replace(question, movable=())
            return self._decide(stay, memory, view, random, budget, under_way)
        moves = []
        for number, (task, machine, shape, _) in enumerate(movers, len(question.kinds)):
            where = answer.machines_of(number)
            if where.tolist() not in ([], [machine]):
                moves.append(ContainerMove(task, shape, _spots(where, view)[0]))
        explanation = violated(memory, problem, answer)
        return _decision(question, answer, view, explanation, moves)

    def plan(
        self,
        batch: Sequence[Application],
        tasks: Sequence[TaskArray],
        question: BatchQuestion,
        decision: BatchDecision,
        view: View,
    ) -> BatchPlan:
        """The claims of a decision: one gang per application and per moving container. `tasks` are
        those in the question, by kind; some may have been withdrawn since."""
        rows = _Rows()
        columns = list(zip(question.kinds, tasks, decision.spots, strict=True))
        if self._settings.conflict == "kill":
            # A transaction does not preempt its own claims, so those of the highest precedence go first.
            columns.sort(key=lambda column: -batch[column[0].application].job.precedence)
        for asked, mine, spots in columns:
            is_wanted = np.isin(mine, batch[asked.application].tasks)
            if decision.placed[asked.application] and is_wanted.any():
                kept = [spots[row] for row in np.flatnonzero(is_wanted).tolist()]
                rows.add(mine[is_wanted], kept, asked.shape, asked.application)
        for number, move in enumerate(decision.moves, len(batch)):
            rows.add(np.array([move.task], np.int64), [move.to], move.shape, number)
        return BatchPlan(
            tuple(batch),
            question,
            decision,
            rows.claims(),
            rows.taken(view) if self._settings.conflict == "reserve" else None,
        )

    def relaxed(
        self,
        plan: BatchPlan,
        left: Sequence[Application],
        random: Random,
        memory: Memory,
        view: View,
    ) -> BatchPlan:
        """Places each kind of container again, anywhere within the node sets chosen before."""
        family = memory.ledger.families.get(self._settings.relax_within)
        planned: dict[tuple[int, frozenset[str]], NDArray[np.int32]] = {}
        for asked, spots in zip(plan.question.kinds, plan.decision.spots, strict=True):
            key = (plan.applications[asked.application].number, frozenset(asked.tags))
            planned[key] = np.array([spot.machine for spot in spots], np.int32)
        kinds = []
        question = self.ask(left, view, memory.names)
        for kind in self.kinds(question, view):
            machines = planned.get((left[kind.app].number, kind.tags), np.empty(0, np.int32))
            allowed = np.ones(view.machines, bool)
            if family is not None and not family.overlaps:
                allowed = np.isin(family.set_of, family.set_of[machines])
            if kind.allowed is not None:
                allowed &= kind.allowed
            kinds.append(structs.replace(kind, allowed=allowed))
        problem = self.problem(kinds, self.room(view), memory, view)
        answer = place(problem, "tag-popularity", random, self._settings.objective)
        explanation = Explanation(rule="relaxed after a conflict")
        decision = _decision(question, answer, view, explanation)
        tasks = tasks_by_kind(left, memory.names)
        return self.plan(left, tasks, question, decision, view)

    def _movers(
        self, question: BatchQuestion, memory: Memory, view: View
    ) -> list[tuple[int, int, int, dict[str, str]]]:
        """Own containers of applications that break something, at most as many as may be moved: task,
        machine, shape and requirements."""
        if not question.movable:
            return []
        groups = sorted(question.movable, key=lambda group: group.begin)
        begins = [group.begin for group in groups]
        broken = Judge(memory.ledger).broken(memory.manager.everything())
        spots = {(each.tags, each.machine) for each in broken}
        found: list[tuple[int, int, int, dict[str, str]]] = []
        for task, machine, shape in memory.own_containers():
            tags = memory.tags(task, shape, view)
            if (tags, machine) not in spots:
                continue
            group = groups[bisect_right(begins, task) - 1]
            if group.begin <= task < group.end:
                found.append((task, machine, shape, group.requires))
            if len(found) == self._settings.migrate:
                break
        return found


def kinds_of(
    application: Application, names: frozenset[str]
) -> Iterator[tuple[TaskGroup, tuple[str, ...], TaskArray]]:
    """The application's containers by group and tags: those of a group are one kind, and each that is
    among `names` is another."""
    job = application.job
    for group, tasks in job.tasks_by_group(application.tasks):
        shared = container_tags(job, group)
        if not names:
            yield group, shared, tasks
            continue
        kinds: dict[tuple[str, ...], list[int]] = {}
        for row, task in enumerate(tasks.tolist()):
            own = with_name(frozenset(shared), index_of(task), names)
            kinds.setdefault(tuple(sorted(own)), []).append(row)
        for tags, rows in kinds.items():
            yield group, tags, tasks[rows]


def tasks_by_kind(batch: Sequence[Application], names: frozenset[str]) -> list[TaskArray]:
    """The tasks of each kind in the question from `Planner.ask`."""
    return [tasks for each in batch for _, _, tasks in kinds_of(each, names)]


def _decision(
    question: BatchQuestion,
    answer: PlacementAnswer,
    view: View,
    explanation: Explanation,
    moves: Sequence[ContainerMove] = (),
) -> BatchDecision:
    placed = [True] * question.applications
    found = [answer.machines_of(number) for number in range(len(question.kinds))]
    for asked, machines in zip(question.kinds, found, strict=True):
        placed[asked.application] &= len(machines) == asked.count
    return BatchDecision(
        tuple(placed),
        tuple(_spots(machines, view) for machines in found),
        tuple(moves),
        explanation,
        answer.status == "optimal",
        answer.gap if np.isfinite(answer.gap) else None,
        answer.candidates,
    )


def _nothing(question: BatchQuestion) -> BatchDecision:
    """There is no machine."""
    spots: tuple[tuple[Spot, ...], ...] = ((),) * len(question.kinds)
    placed = (False,) * question.applications
    return BatchDecision(placed, spots, (), Explanation(), True, None, 0)


def _spots(machines: NDArray[np.int32], view: View) -> tuple[Spot, ...]:
    return tuple(map(Spot, machines.tolist(), view.versions(machines).tolist()))


def _allowed(asked: AskedKind, view: View) -> NDArray[np.bool_] | None:
    """The machines with the required attributes; None means all."""
    if view.unknown_resource(asked.shape) is not None:
        return np.zeros(view.machines, np.bool_)
    allowed = to_mask(view.where(asked.requires), view.machines) if asked.requires else None
    if not any(view.shape_request(asked.shape)):
        # A task that asks for nothing fits even where nothing is free: down or draining machines.
        takes = view.takes_claims().astype(np.bool_)
        allowed = takes if allowed is None else allowed & takes
    return allowed
