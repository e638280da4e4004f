"""Running containers and active constraints, read from the cell.

Tagged containers are read again from machines whose version has changed, and constraints from the cell's
list of applications. So a scheduler knows as much after a crash as before, and several schedulers know
what the others placed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from argosy.cell import View
from argosy.engines.families.lra.cluster import make_ledger
from argosy.engines.families.lra.manager import ConstraintManager, Sight
from argosy.model.constraints import Constraint
from argosy.model.constraints.parts import with_name
from argosy.model.errors import ModelError
from argosy.model.jobs import index_of
from argosy.model.transactions import Claims
from argosy.solvers.placement import PlacementAnswer, PlacementProblem, PlacementState
from argosy.solvers.placement.demands import Tags


class Memory:
    """The state of the cell at the last `refresh`."""

    def __init__(
        self,
        view: View,
        name: str,
        operator: tuple[Constraint, ...] = (),
        sight: Sight | None = None,
        operators: tuple[str, ...] = (),
    ) -> None:
        """`name` is the scheduler that uses this memory; `operators` are owners who count as
        operator."""
        self._name = name
        self.machines = view.machines
        self._labels = view.labels_version
        self.ledger: PlacementState = make_ledger(view)
        self.manager = ConstraintManager(self.ledger, operator, sight, operators)
        #: Why an application's constraints are not active.
        self._refused: dict[int, ModelError] = {}
        self._applications = -1
        self._versions = np.full(self.machines, -1, np.int64)
        #: Tagged containers on each machine: task, shape, and whether this scheduler placed it.
        self._on: dict[int, list[tuple[int, int, bool]]] = {}
        self._tags: dict[int, Tags] = {}
        #: The tags of single containers that constraints name; other containers share theirs.
        self.names: frozenset[str] = frozenset()
        self.refresh(view)

    def is_outgrown(self, view: View) -> bool:
        """Whether machines joined or were relabelled, so that memory must be rebuilt."""
        return self.machines != view.machines or self._labels != view.labels_version

    def refresh(self, view: View) -> None:
        self.refresh_constraints(view)
        versions = view.versions()
        changed = np.flatnonzero(versions != self._versions).astype(np.int32)
        if len(changed):
            self._versions = versions.astype(np.int64)
            self._read_containers(changed.tolist(), view)

    def refresh_constraints(self, view: View) -> None:
        if self._applications != view.applications_version:
            self._applications = view.applications_version
            self._read_constraints(view)
        if self.names != self.manager.names:
            self._rename(self.manager.names)

    def refused(self, number: int) -> ModelError | None:
        """What is wrong with an application's constraints, if anything."""
        return self._refused.get(number)

    def tags(self, task: int, shape: int, view: View) -> Tags:
        known = self._tags.get(shape)
        if known is None:
            known = self._tags[shape] = frozenset(view.shape_tags(shape))
        return with_name(known, index_of(task), self.names) if self.names else known

    def is_running(self, task: int, machine: int) -> bool:
        return any(task == other for other, _, _ in self._on.get(machine, ()))

    def own_containers(self) -> Iterator[tuple[int, int, int]]:
        """Task, machine and shape of each tagged container that this scheduler placed, ordered by
        machine."""
        for machine in sorted(self._on):
            for task, shape, is_own in self._on[machine]:
                if is_own:
                    yield task, machine, shape

    @contextmanager
    def running(self, problem: PlacementProblem, answer: PlacementAnswer) -> Iterator[None]:
        """Temporarily assumes that the answer is in place: new containers run, and moving ones have
        moved."""
        rows = list(zip(answer.kinds.tolist(), answer.machines.tolist(), strict=True))
        for kind, machine in rows:
            self.ledger.start(problem.kinds[kind].tags, machine)
        for each in problem.kinds:
            if each.origin >= 0:
                self.ledger.stop(each.tags, each.origin)
        try:
            yield
        finally:
            for each in problem.kinds:
                if each.origin >= 0:
                    self.ledger.start(each.tags, each.origin)
            for kind, machine in rows:
                self.ledger.stop(problem.kinds[kind].tags, machine)

    @contextmanager
    def assumed(self, claims: Claims | None, view: View) -> Iterator[None]:
        """Temporarily assumes that claims under way have been accepted."""
        rows: list[tuple[Tags, int]] = []
        if claims is not None:
            tasks, shapes = claims.tasks.tolist(), claims.shapes.tolist()
            tags = [self.tags(*row, view) for row in zip(tasks, shapes, strict=True)]
            rows = list(zip(tags, claims.machines.tolist(), strict=True))
        for tags_of_row, machine in rows:
            self.ledger.start(tags_of_row, machine)
        try:
            yield
        finally:
            for tags_of_row, machine in rows:
                self.ledger.stop(tags_of_row, machine)

    def _read_constraints(self, view: View) -> None:
        applications = view.applications()
        for number in self.manager.numbers():
            if number not in applications:
                self.manager.withdraw(number)
        self._refused = {n: e for n, e in self._refused.items() if n in applications}
        for number, job in applications.items():
            if number in self._refused:
                continue
            try:
                self.manager.submit(number, job)
            except ModelError as error:
                self._refused[number] = error

    def _rename(self, names: frozenset[str]) -> None:
        """Other containers are named from now on."""
        before, self.names = self.names, names
        for machine, containers in self._on.items():
            for task, shape, _ in containers:
                shared = self._tags[shape]
                was = with_name(shared, index_of(task), before)
                now = with_name(shared, index_of(task), names)
                if was != now:
                    self.ledger.stop(was, machine)
                    self.ledger.start(now, machine)

    def _read_containers(self, machines: list[int], view: View) -> None:
        changes: Counter[tuple[int, Tags]] = Counter()
        for machine in machines:
            for task, shape, _ in self._on.pop(machine, ()):
                changes[machine, self.tags(task, shape, view)] -= 1
        columns = view.tagged_on(np.array(machines, np.int32), self._name)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for task, machine, shape, is_own in rows:
            self._on.setdefault(machine, []).append((task, shape, is_own))
            changes[machine, self.tags(task, shape, view)] += 1
        for (machine, tags), count in changes.items():
            if count:
                self.ledger.start(tags, machine, count)
