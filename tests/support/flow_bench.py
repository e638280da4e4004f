"""A flow scheduler's graph without a world, for tests."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from argosy.engines.families.flow.gangs import decide, gang_numbers
from argosy.engines.families.flow.graph import Graph
from argosy.engines.families.flow.tasks import PENDING, RUNNING
from argosy.engines.firmament import FirmamentSettings
from argosy.host.runtime import build_cell
from argosy.host.setup import HostSetup
from argosy.model.jobs import Job
from argosy.model.scenario import CellSpec
from argosy.model.tasks import first_tasks, jobs_of, task_numbers
from argosy.model.transactions import Claims, Transaction
from argosy.model.truth import SimulatedJob
from argosy.solvers.flow.checker import faults
from argosy.testing.builders import cell, scenario

DATA = {"rate": 64 * 2**20, "block": 2**28, "spread": 0.5}


class Bench:
    """A graph without a world: jobs go in, rounds are carried out as the flow wants them."""

    def __init__(self, spec: CellSpec | None = None, **options: Any) -> None:
        built = scenario("firmament", [], cell=spec or cell())
        self.cell = build_cell(HostSetup.of(built))
        self.view = self.cell.view()
        self.settings = msgspec.convert(options, FirmamentSettings)
        self.graph = Graph(self.settings, self.view)
        self.jobs = 0
        self.now = 0

    def add(self, submitted: SimulatedJob) -> int:
        number, self.jobs = self.jobs, self.jobs + 1
        tasks = first_tasks(number, submitted.tasks)
        self.graph.add([(submitted.job, number, tasks)], self.view, self.now)
        return number

    def grow(self, larger: Job, number: int, by: int) -> None:
        """The job is known to have `by` more tasks than before."""
        tasks = task_numbers(number, np.arange(larger.tasks - by, larger.tasks))
        self.graph.add([(larger, number, tasks)], self.view, self.now)

    def solve(self) -> int:
        self.graph.observe(self.view)
        self.graph.refresh(self.now)
        solution = self.graph.solve()
        assert solution.cost is not None
        network = self.graph.network
        assert faults(network.problem(), network.segment_flows(), network.prices()) == []
        return solution.cost

    def round(self) -> int:
        """One round on a cell that takes everything; returns the cost of the flow."""
        cost = self.solve()
        graph = self.graph
        plan = decide(graph).plan
        tasks = graph.tasks
        where = plan.machines.astype(np.int32)
        claims = Claims(
            tasks["number"][plan.rows],
            where,
            tasks["shape"][plan.rows].astype(np.int32),
            self.view.versions(where),
            gang_numbers(graph, plan),
        )
        out = tasks["number"][np.concatenate([plan.leaving, plan.early])]
        outcome = self.cell.commit(Transaction("s", claims, releases=out, move=True))
        assert outcome.all_accepted
        graph.stop(
            np.concatenate([plan.leaving, plan.rows[tasks["state"][plan.rows] == RUNNING]]), 0
        )
        graph.start(plan.rows, plan.machines, plan.costs, self.now)
        return cost

    def finish(self, tasks: list[int]) -> None:
        ended = np.array(tasks, np.int64)
        self.cell.commit(Transaction("s", releases=ended))
        self.graph.finish(ended)

    def where(self, number: int) -> list[int]:
        rows = np.flatnonzero(jobs_of(self.graph.tasks["number"]) == number)
        machines: list[int] = self.graph.tasks["machine"][rows].tolist()
        return machines

    def waiting(self, number: int) -> set[int]:
        """Tasks of a job that wait."""
        mine = jobs_of(self.graph.tasks["number"]) == number
        return {*self.graph.tasks["number"][mine & (self.graph.tasks["state"] == PENDING)].tolist()}

    def running(self) -> list[int]:
        rows = self.graph.tasks["state"] == RUNNING
        numbers: list[int] = self.graph.tasks["number"][rows].tolist()
        return numbers
