"""Checks of a workload against the cell it is to run in.

Each raises `Misfit` with the path in the scenario or trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from argosy.model.constraints import Constraint
from argosy.model.constraints.parts import leaves
from argosy.model.errors import ScenarioError, excerpt
from argosy.model.jobs import Job
from argosy.model.machines import MACHINE_GROUP
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec
from argosy.scenarios.checks import cell_dimensions, check_known
from argosy.workloads.synthetic import JobKind
from argosy.workloads.tables import Misfit, TablePath

#: Limit on what a run can hold.
MOST_TASKS_IN_ALL: Final = 50_000_000


class JobChecks:
    """Everything a job names must exist in the cell: resources, machine attributes, and the groups of
    its constraints."""

    def __init__(self, cell: CellSpec) -> None:
        self.dimensions = cell_dimensions(cell)
        self.groups = (MACHINE_GROUP, *(group.name for group in cell.groups))
        self.tasks = 0
        #: Every attribute of any machine, with all its values.
        self.attributes: dict[str, set[str]] = {}
        for machine in cell.machines:
            for key, value in machine.attributes.items():
                self.attributes.setdefault(key, set()).add(value)

    def job(self, job: Job, path: TablePath, *, has_groups: bool) -> None:
        """`path` is the job's path; with `has_groups`, its groups have their own tables."""
        for index, group in enumerate(job.groups):
            inside: TablePath = (*path, "groups", index) if has_groups else path
            self.request(group.request, (*inside, "request"))
            self.requires(group.requires, (*inside, "requires"))
        self._constraints(job.constraints, path)
        self.tasks += job.tasks
        if self.tasks > MOST_TASKS_IN_ALL:
            raise Misfit(
                ScenarioError(
                    f"more than {MOST_TASKS_IN_ALL:,} tasks in total", expected="fewer tasks"
                ),
                path if has_groups else (*path, "count"),
            )

    def kinds(self, kinds: Mapping[str, JobKind], path: TablePath) -> None:
        for name, kind in kinds.items():
            for index, choice in enumerate(kind.requests):
                self.request(choice.request, (*path, name, "requests", index, "request"))
            self.requires(kind.requires, (*path, name, "requires"))
            self._constraints(kind.constraints, (*path, name))

    def _constraints(self, constraints: Iterable[Constraint], path: TablePath) -> None:
        for index, constraint in enumerate(constraints):
            for name in sorted({leaf.group for leaf in leaves(constraint.rule)}):
                check_known("node group", name, self.groups, (*path, "constraints", index))

    def request(self, request: Resources, path: TablePath) -> None:
        for name, amount in request.items():
            if amount and name not in self.dimensions:
                check_known("resource", name, self.dimensions, (*path, name))

    def requires(self, requires: Mapping[str, str], path: TablePath) -> None:
        for key, value in requires.items():
            if key not in self.attributes:
                if not self.attributes:
                    raise Misfit(
                        ScenarioError(
                            f"no machine has attribute {excerpt(key)}, nor any other",
                            expected="attributes of some [[cell.machines]]",
                        ),
                        (*path, key),
                    )
                check_known("machine attribute", key, self.attributes, (*path, key))
            if value not in self.attributes[key]:
                check_known(f"value of {key}", value, self.attributes[key], (*path, key))
