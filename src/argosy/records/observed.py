"""Builds a scenario from a journal alone, to try other engines on it.

Jobs arrive, and machines and schedulers fail, when they did, and each task runs as long as it was
observed to run. A task that never ended is assumed to run for its estimate, or for the time it had
already run if that is longer. `left_out` says what the journal does not contain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from argosy.model.jobs import TaskGroup, index_of, job_of
from argosy.model.machines import Machine
from argosy.model.scenario import (
    ConstantLatency,
    Fault,
    MachineCrash,
    MachineDrain,
    MachineResize,
    Network,
    Output,
    Scenario,
    SchedulerCrash,
)
from argosy.model.transactions import (
    AddMachine,
    DrainMachine,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
)
from argosy.model.truth import GroupTruth, SimulatedJob
from argosy.records.state import RunState
from argosy.records.steps import Step

#: An engine that would never finish the recorded jobs is stopped after this many times the recorded
#: time.
PATIENCE: Final = 10
_UNKNOWN: Final = -1


def observed_scenario(state: RunState) -> Scenario:
    setup, observer = state.setup, _Observer(state)
    jobs = tuple(observer.jobs())
    faults = tuple(observer.faults())
    is_whole = not observer.left_out["unended"] and not observer.has_endless
    return Scenario(
        name=setup.name,
        seed=setup.seed,
        cell=structs.replace(setup.cell, machines=(*setup.cell.machines, *observer.joined)),
        jobs=jobs,
        fleet=setup.fleet,
        network=setup.network or Network(latency=ConstantLatency(delay=0)),
        machines=setup.machines,
        faults=(*faults, *setup.partitions),
        # If something was still open, every engine gets exactly the recorded time.
        horizon=state.until * PATIENCE if is_whole else state.until,
        failover=setup.failover,
        output=Output(log="none"),
        left_out=observer.sentences(),
        federation=setup.federation,
    )


class _Observer:
    def __init__(self, state: RunState) -> None:
        self._state = state
        #: How often something could not be expressed in a scenario, or had to be guessed.
        self.left_out: Counter[str] = Counter()
        self.has_endless = False
        #: Machines that joined later.
        self.joined: list[Machine] = []

    def jobs(self) -> Iterator[SimulatedJob]:
        steps = self._state.steps
        times = [np.full(count, _UNKNOWN, np.int64) for count in steps.task_counts]
        so_far = [np.zeros(count, np.int64) for count in steps.task_counts]
        for rows, into, ends in (
            (self._state.finished, times, self._state.finished.finished),
            (self._state.running, so_far, self._state.until),
        ):
            ran = np.maximum(ends - rows.started, 0)
            for task, time in zip(rows.tasks.tolist(), ran.tolist(), strict=True):
                into[job_of(task)][index_of(task)] = time
        self.left_out["cancelled"] = self._state.count(Step.CANCELLED)
        self.left_out["failed"] = self._state.count(Step.FAILED)
        for number, job in enumerate(steps.jobs):
            truth = []
            for start, group in zip(job.group_starts(), job.groups, strict=True):
                mine = slice(start, start + group.count)
                if group.activities:
                    truth.append(self._shared(group, steps.phases.get(number, {})))
                else:
                    truth.append(self._alone(group, times[number][mine], so_far[number][mine]))
            yield SimulatedJob(job, steps.submitted[number], tuple(truth))

    def _alone(
        self, group: TaskGroup, times: NDArray[np.int64], so_far: NDArray[np.int64]
    ) -> GroupTruth:
        if group.endless:
            self.has_endless = True
            return GroupTruth()
        unended = times == _UNKNOWN
        self.left_out["unended"] += int(unended.sum())
        truth = np.where(unended, np.maximum(so_far, group.estimate or 0), times)
        alike = bool((truth == truth[0]).all())
        return GroupTruth(tuple(truth[:1].tolist() if alike else truth.tolist()))

    def _shared(self, group: TaskGroup, took: Mapping[int, int]) -> GroupTruth:
        """For phases that did not end, activities take as long as the estimate implies."""
        phases = range(len(group.activities))
        if not all(phase in took for phase in phases):
            self.left_out["unended"] += group.count
        guess = (group.estimate or 0) * group.count // sum(group.activities)
        return GroupTruth(phases=tuple(took.get(phase, guess) for phase in phases))

    def faults(self) -> Iterator[Fault]:
        names = [machine.name for machine in self._state.setup.cell.machines]
        changes = self._state.steps.machine_changes
        for row, (at, change) in enumerate(changes):
            later = changes[row + 1 :]
            match change:
                case RemoveMachine(machine):
                    back = next((t for t, c in later if c == ReviveMachine(machine)), None)
                    down = None if back is None else back - at
                    yield MachineCrash(at=at, machine=names[machine], down=down)
                case DrainMachine(machine, True):
                    over = next((t for t, c in later if c == DrainMachine(machine, False)), None)
                    lasts = None if over is None else over - at
                    yield MachineDrain(at=at, machine=names[machine], lasts=lasts)
                case ResizeMachine(machine, capacity):
                    yield MachineResize(at=at, machine=names[machine], capacity=capacity)
                case RelabelMachine():
                    self.left_out["relabelled"] += 1
                case AddMachine(machine):
                    names.append(machine.name)
                    self.joined.append(machine)
                    self.left_out["joined"] += 1
                    # The machine is absent until it joins.
                    yield MachineCrash(at=0, machine=machine.name, down=at)
        crashes = self._state.steps.scheduler_changes
        for row, (at, name, is_back) in enumerate(crashes):
            if not is_back:
                later_on = crashes[row + 1 :]
                back = next((t for t, who, up in later_on if up and who == name), None)
                down = None if back is None else back - at
                yield SchedulerCrash(at=at, scheduler=name, down=down)

    def sentences(self) -> tuple[str, ...]:
        told = {
            "unended": (
                "1 task had not ended: its estimate is taken for its running time",
                "{:,} tasks had not ended: their estimates are taken for their running times",
            ),
            "joined": (
                "1 machine joined later: engines know of it from the beginning",
                "{:,} machines joined later: engines know of them from the beginning",
            ),
            "relabelled": (
                "1 machine was relabelled: here it keeps its labels",
                "{:,} times a machine was relabelled: here all keep their labels",
            ),
            "cancelled": (
                "1 task was cancelled: here it runs",
                "{:,} tasks were cancelled: here they run",
            ),
            "failed": (
                "1 try of a task failed: here each task runs once",
                "{:,} tries of tasks failed: here each task runs once",
            ),
        }
        return tuple(
            one if self.left_out[what] == 1 else many.format(self.left_out[what])
            for what, (one, many) in told.items()
            if self.left_out[what]
        )
