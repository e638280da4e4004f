"""What must hold when a run is over: every job has ended or waits for a reason."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from argosy.campaign.recount import CampaignRule, CountedMachine, CountedTask, Recount, Where
from argosy.model.jobs import job_of
from argosy.model.units import format_duration

#: How long a task may wait before somebody must have said why: longer than any decision, retry or
#: interval that is drawn, several of them in a row included.
PATIENCE: Final = 4 * 60_000_000
#: Settings that keep a scheduler from some machines.
_SHARES: Final = ("begin", "end", "share", "long_share", "slots", "frameworks")


class JobsAreSubmitted(CampaignRule):
    def ended(self, at: int) -> None:
        for made in self.recount.scenario.jobs:
            if made.submit < at and made.id not in self.recount.submitted:
                told = f"{made.id} was due at {format_duration(made.submit)}"
                self.recount.complain("submissions", "missing", told)


class TasksEnd(CampaignRule):
    """Nothing runs longer than the scenario says; machines that report late have some time for it."""

    def ended(self, at: int) -> None:
        grace = 0 if self.recount.is_exact else PATIENCE
        for task, held in self.recount.own_tasks():
            wanted = self.recount.running_time(task)
            if held.where is not Where.RUNNING or wanted is None:
                continue
            if held.began + wanted + grace < at:
                told = (
                    f"{self.recount.name(task)} has run since {format_duration(held.began)} and"
                    f" takes {format_duration(wanted)}, but still runs at {format_duration(at)}"
                )
                self.recount.complain("running-time", "still running", told)


class WaitingIsExplained(CampaignRule):
    """By a scheduler or by the cell's refusal, since the task came to wait. A scheduler that has just
    begun, or that is down, cannot have said anything."""

    def ended(self, at: int) -> None:
        for task, held in self.recount.own_tasks():
            if held.is_explained:
                continue
            if held.where is Where.ABANDONED:
                told = f"{self.recount.name(task)} was abandoned, and nobody says why"
                self.recount.complain("unexplained", "abandoned", told)
            elif held.where is Where.PENDING and self._is_due(task, held, at):
                told = (
                    f"{self.recount.name(task)} has waited since {format_duration(held.since)},"
                    f" and at {format_duration(at)} nobody has said why"
                )
                self.recount.complain("unexplained", "waiting", told)

    def _is_due(self, task: int, held: CountedTask, at: int) -> bool:
        return has_waited(self.recount, held, at) and has_scheduler(self.recount, task)


class NoTaskIsForgotten(CampaignRule):
    """A job whose scheduler may use every machine does not wait while there is an idle one for each of
    its tasks. Some engines place all of a job or nothing, so its tasks are judged together."""

    def ended(self, at: int) -> None:
        idle = [
            machine
            for machine in self.recount.machines
            if is_idle(machine, at) and machine.draining_since is None
        ]
        if not idle or self._is_crowded():
            return
        waiting: defaultdict[int, list[int]] = defaultdict(list)
        for task, held in self.recount.own_tasks():
            if held.where is Where.PENDING:
                waiting[job_of(task)].append(task)
        for tasks in waiting.values():
            held = self.recount.tasks[tasks[0]]
            machines = [
                machine
                for machine in idle
                if all(fits(self.recount, task, machine) for task in tasks)
            ]
            have_waited = all(
                has_waited(self.recount, self.recount.tasks[task], at) for task in tasks
            )
            if self._waits_behind(held):
                continue
            if have_waited and len(machines) >= len(tasks) and self._may_use_all(tasks[0]):
                told = (
                    f"{self.recount.name(tasks[0])} has waited since {format_duration(held.since)},"
                    f" and {machines[0].name}, which could run it, has been idle since"
                    f" {format_duration(machines[0].changed_at)}"
                )
                self.recount.complain("forgotten", "", told)

    def _waits_behind(self, held: CountedTask) -> bool:
        """Whether it was told that another task goes first, and that one still waits."""
        first = self.recount.tasks.get(held.behind)
        return first is not None and first.where is Where.PENDING

    def _is_crowded(self) -> bool:
        """Whether something is queued that may be meant for idle machines."""
        return any(held.where is Where.QUEUED for held in self.recount.tasks.values())

    def _may_use_all(self, task: int) -> bool:
        """Limits, gangs, constraints and partitions are good reasons to wait."""
        job = self.recount.jobs[job_of(task)]
        takers = [
            entry
            for name, entry in self.recount.entries.items()
            if self.recount.is_alive[name]
            and (job.kind in entry.takes.kinds or not entry.takes.kinds)
        ]
        is_limited = any(entry.limits != type(entry.limits)() for entry in takers)
        has_constraints = bool(self.recount.scenario.cell.constraints) or any(
            made.job.constraints for made in self.recount.scenario.jobs
        )
        # Their shares are not all machines, by default or because they were set.
        is_partitioned = any(
            set(_SHARES) & set(self.recount.engines[name].settings_type.__struct_fields__)
            for name in self.recount.entries
        )
        return bool(takers) and not (is_limited or is_partitioned or has_constraints or job.gang)


class QueuesMove(CampaignRule):
    """The head of a queue starts as soon as it fits: nothing is queued at an idle machine that could run
    it. A task with probes at several machines may be left to a busy one, so all of them must be idle."""

    def ended(self, at: int) -> None:
        for task, held in self.recount.own_tasks():
            if held.where is not Where.QUEUED or not has_waited(self.recount, held, at):
                continue
            machines = [self.recount.machines[number] for number in held.queued_at]
            if all(
                is_idle(machine, at) and fits(self.recount, task, machine) for machine in machines
            ):
                told = (
                    f"{self.recount.name(task)} has been queued at {machines[0].name} since"
                    f" {format_duration(held.since)}, which has been idle since"
                    f" {format_duration(machines[0].changed_at)}"
                )
                kind = "probe" if held.is_probed else "queue"
                self.recount.complain("stuck-queue", kind, told)


def has_waited(recount: Recount, held: CountedTask, at: int) -> bool:
    """Long enough, with the same schedulers."""
    return at - max(held.since, recount.fleet_changed_at) >= PATIENCE


def has_scheduler(recount: Recount, task: int) -> bool:
    """Whether somebody is there to place it."""
    job = recount.jobs[job_of(task)]
    return any(
        recount.is_alive[name] and (job.kind in entry.takes.kinds or not entry.takes.kinds)
        for name, entry in recount.entries.items()
    )


def is_idle(machine: CountedMachine, at: int) -> bool:
    """For so long that everybody knows."""
    return machine.is_up and not machine.held and at - machine.changed_at >= PATIENCE


def fits(recount: Recount, task: int, machine: CountedMachine) -> bool:
    return all(
        amount <= machine.capacity.get(name, 0) for name, amount in recount.request(task).items()
    ) and all(
        machine.attribute(key) == value for key, value in recount.group(task).requires.items()
    )


RULES_AT_THE_END: Final[tuple[type[CampaignRule], ...]] = (
    JobsAreSubmitted,
    TasksEnd,
    WaitingIsExplained,
    NoTaskIsForgotten,
    QueuesMove,
)
