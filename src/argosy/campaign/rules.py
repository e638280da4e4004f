"""What must hold at every moment of a run, judged from the recount alone."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from argosy.campaign.recount import CampaignRule, CountedMachine, Recount, Start, Where, total
from argosy.engines.api import Engine, supports_constraint, supports_some_constraints
from argosy.model.constraints import Constraint
from argosy.model.constraints.meaning import Container, Meaning
from argosy.model.constraints.parts import container_tag, container_tags, of_job
from argosy.model.jobs import index_of, job_of, task_number
from argosy.model.units import format_amount, format_duration

#: Engines that claim under a name of their own for each kind of job, each with the scheduler's limits.
CLAIM_BY_KIND: Final = frozenset({"mesos"})
#: By then, everybody has heard that a machine is draining.
HEARD: Final = 60_000_000


class NothingIsOversubscribed(CampaignRule):
    def settled(self, at: int, starts: list[Start]) -> None:
        for machine in self.recount.machines:
            if machine.changed_at == at:
                self._check(machine, at)

    def _check(self, machine: CountedMachine, at: int) -> None:
        if not machine.is_up and machine.held:
            tasks = ", ".join(map(self.recount.name, sorted(machine.held)))
            told = f"{machine.name} is gone at {format_duration(at)} and still runs {tasks}"
            self.recount.complain("oversubscribed", "gone", told)
        for resource, used in self.recount.used(machine).items():
            has = machine.capacity.get(resource, 0)
            if used > has and any(
                self.recount.request(task).get(resource) for task in machine.held
            ):
                told = (
                    f"{machine.name} has {format_amount(resource, has)} at {format_duration(at)},"
                    f" but its tasks hold {format_amount(resource, used)}"
                )
                self.recount.complain("oversubscribed", "capacity", told)


class RequirementsAreMet(CampaignRule):
    def settled(self, at: int, starts: list[Start]) -> None:
        for start in starts:
            machine = self.recount.machines[start.machine]
            for key, value in self.recount.group(start.task).requires.items():
                if machine.attribute(key) != value:
                    self._complain(start, machine, key, value)

    def _complain(self, start: Start, machine: CountedMachine, key: str, value: str) -> None:
        task = self.recount.tasks[start.task]
        if start.is_move:
            how = "moved"
        elif start.is_claim:
            how = "claimed"
        else:
            how = "queued" if start.machine in task.queued_at else "stolen"
        has = machine.attribute(key) or "none"
        told = (
            f"{self.recount.name(start.task)} requires {key} = {value} and runs on {machine.name},"
            f" which has {has}, at {format_duration(start.at)}; it was {how}"
        )
        self.recount.complain("requires", how, told)


class GangsStartTogether(CampaignRule):
    """Of engines that know gangs: the first tasks that get a machine are all of them."""

    def __init__(self, recount: Recount) -> None:
        super().__init__(recount)
        self._seen: set[str] = set()

    def settled(self, at: int, starts: list[Start]) -> None:
        by_job: defaultdict[int, list[Start]] = defaultdict(list)
        for start in starts:
            if self.recount.jobs[job_of(start.task)].gang:
                by_job[job_of(start.task)].append(start)
        for number, together in by_job.items():
            job, engine = self.recount.jobs[number], self.recount.engines[together[0].scheduler]
            if job.id in self._seen:
                continue
            self._seen.add(job.id)
            placed = {index_of(start.task) for start in together}
            if engine.capabilities.gang and not placed.issuperset(range(job.tasks)):
                told = (
                    f"gang {job.id} has {job.tasks} tasks, of which {len(placed)} were placed"
                    f" at {format_duration(at)} without the others"
                )
                self.recount.complain("gang", "", told)


class MachinesAreThere(CampaignRule):
    """Nothing starts on machines that are gone, and nothing new on those that are draining."""

    def settled(self, at: int, starts: list[Start]) -> None:
        for start in starts:
            machine = self.recount.machines[start.machine]
            what = ""
            if not machine.is_up:
                what = "gone"
            elif machine.draining_since is not None and machine.draining_since < at:
                what = self._why_new(start, machine.draining_since)
            if what:
                told = (
                    f"{self.recount.name(start.task)} was placed on {machine.name} at"
                    f" {format_duration(at)}, which is {what}"
                )
                self.recount.complain("machine-state", what, told)

    def _why_new(self, start: Start, since: int) -> str:
        """Draining machines still run what is queued there."""
        task = self.recount.tasks[start.task]
        engine = self.recount.engines[start.scheduler]
        if start.is_claim:
            # A probe that was queued there before is answered with a claim.
            return "" if engine.capabilities.queues else "draining"
        if start.machine not in task.queued_at:
            return "draining, and stole it"
        if task.queued_since > since + HEARD:
            return "draining, and it was sent there long afterwards"
        return ""


class LimitsAreKept(CampaignRule):
    """Of engines that claim and do not queue: limits are for claims."""

    def settled(self, at: int, starts: list[Start]) -> None:
        for name in dict.fromkeys(start.scheduler for start in starts if start.is_claim):
            engine = self.recount.engines[name]
            if engine.capabilities.transactions and not engine.capabilities.queues:
                parts = self._parts(name, engine)
                for part in parts.values():
                    self._check(name, part, at)

    def _parts(self, name: str, engine: type[Engine]) -> dict[str, list[int]]:
        parts: defaultdict[str, list[int]] = defaultdict(list)
        for task in self.recount.holdings[name]:
            kind = self.recount.jobs[job_of(task)].kind
            parts[kind if engine.name in CLAIM_BY_KIND else ""].append(task)
        return parts

    def _check(self, name: str, tasks: list[int], at: int) -> None:
        limits = self.recount.entries[name].limits
        if limits.resources is not None:
            used = total(map(self.recount.request, tasks))
            for resource, limit in limits.resources.items():
                if limit and used.get(resource, 0) > limit:
                    held, most = (format_amount(resource, x) for x in (used[resource], limit))
                    told = f"{name} holds {held} at {format_duration(at)}, and may hold {most}"
                    self.recount.complain("limits", "resources", told)
        jobs = {job_of(task) for task in tasks}
        if limits.jobs is not None and len(jobs) > limits.jobs:
            told = (
                f"{name} has {len(jobs)} jobs at {format_duration(at)}, and may have {limits.jobs}"
            )
            self.recount.complain("limits", "jobs", told)
        for number in sorted(jobs):
            job = self.recount.jobs[number]
            if limits.precedence is not None and job.precedence > limits.precedence:
                told = (
                    f"{name} placed {job.id} of precedence {job.precedence}, and may claim with"
                    f" {limits.precedence} at most"
                )
                self.recount.complain("limits", "precedence", told)


class HardConstraintsAreKept(CampaignRule):
    """Where one scheduler, of an engine that follows constraints, places everything: no placement makes
    hard constraints of running applications more broken than they were. Judged by the reference."""

    def __init__(self, recount: Recount) -> None:
        super().__init__(recount)
        engines = list(recount.engines.values())
        self._is_judged = len(engines) == 1 and supports_some_constraints(engines[0])
        self._engine = engines[0]
        self._meaning = Meaning(recount.scenario.cell.machines)
        self._operator = recount.scenario.cell.constraints
        jobs = recount.scenario.jobs
        self._has_hard = any(
            each.hard
            for constraints in (self._operator, *(made.job.constraints for made in jobs))
            for each in constraints
        )

    def settled(self, at: int, starts: list[Start]) -> None:
        if not (starts and self._is_judged and self._has_hard):
            return
        active = self._active()
        new = {start.task for start in starts}
        moved = {start.task for start in starts if start.is_move}
        running = [task for task, held in self.recount.tasks.items() if held.where is Where.RUNNING]
        before = [task for task in running if task not in new or task in moved]
        for constraint in active:
            was, now = (self._extent(constraint, tasks) for tasks in (before, running))
            if now > was and not moved:
                names = ", ".join(sorted(self.recount.name(task) for task in new))
                told = f"{constraint} is broken by placing {names} at {format_duration(at)}"
                self.recount.complain("hard-constraint", "", told)

    def _active(self) -> list[Constraint]:
        """Hard ones of the operator, and of applications that are not over."""
        found = [
            each for each in self._operator if each.hard and supports_constraint(self._engine, each)
        ]
        for number, job in enumerate(self.recount.jobs):
            states = (
                self.recount.tasks[task_number(number, index)].where for index in range(job.tasks)
            )
            if job.constraints and any(
                state in (Where.PENDING, Where.QUEUED, Where.RUNNING) for state in states
            ):
                hard = (each for each in of_job(job.id, job.constraints) if each.hard)
                found += [each for each in hard if supports_constraint(self._engine, each)]
        return found

    def _extent(self, constraint: Constraint, tasks: list[int]) -> float:
        containers = [
            Container(
                self._tags(task),
                self.recount.machines[self.recount.tasks[task].machine].name,
            )
            for task in tasks
        ]
        return self._meaning.judge([constraint], containers).total

    def _tags(self, task: int) -> frozenset[str]:
        job = self.recount.jobs[job_of(task)]
        shared = container_tags(job, self.recount.group(task))
        return frozenset({*shared, container_tag(job.id, index_of(task))})


RULES: Final[tuple[type[CampaignRule], ...]] = (
    NothingIsOversubscribed,
    RequirementsAreMet,
    GangsStartTogether,
    MachinesAreThere,
    LimitsAreKept,
    HardConstraintsAreKept,
)
