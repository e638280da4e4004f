"""Runs tries as supervised processes in directories of their own.

    tries/000/000012/   the try with number 12: specification, records and outputs

The files of a try say all there is to know about it, so that a server that starts again finds every try
by its number. Reports only make it quick: what they miss, `sweep` finds.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from argosy.model.jobs import Execution, Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.tasks import first_tasks
from argosy.worlds.local.isolation import CgroupParent, Isolation
from argosy.worlds.local.launcher import Launcher
from argosy.worlds.local.records import EndCause, StartFailure, TryEnd, TryOutcome
from argosy.worlds.local.reports import ReportSocket
from argosy.worlds.local.spec import CaptureLimits, ProcessLimits, SupervisorError, TrySpec
from argosy.worlds.local.supervised import SupervisedTry, TryState, TryStatus
from argosy.worlds.local.world import TryResult

#: Exit statuses of tries that have none of their own, as shells have them.
NOT_FOUND: Final = 127
NOT_EXECUTABLE: Final = 126
_SEGMENTS: Final = 4
_SHARD: Final = 1000


class ProcessRunner:
    """`ended` is called with the number of a try and how it ended; never from within `launch`."""

    def __init__(
        self,
        directory: Path,
        ended: Callable[[int, TryResult], None],
        *,
        environment: dict[str, str] | None = None,
        isolation: Isolation | None = None,
    ) -> None:
        self._directory = directory / "tries"
        self._directory.mkdir(mode=0o700, exist_ok=True)
        self._ended = ended
        #: What every try gets, besides what its job says.
        self._environment = {"PATH": os.defpath} if environment is None else environment
        #: The cgroup of all tries, if there can be one.
        self._cgroups = _cgroup_parent(directory, isolation)
        #: What limits tries really have.
        self.isolation = (
            Isolation(platform=sys.platform) if self._cgroups is None else self._cgroups.isolation
        )
        self.reports = ReportSocket(directory / "reports.sock")
        self._launcher = Launcher()
        #: Tries that are not known to be over.
        self._tries: dict[int, SupervisedTry] = {}
        #: Tries that could not even be launched, and how their ends read.
        self._stillborn: list[tuple[int, TryResult]] = []

    def close(self) -> None:
        """Processes go on."""
        self.reports.close()

    def directory_of(self, number: int) -> Path:
        return self._directory / f"{number // _SHARD:03d}" / f"{number:06d}"

    def launch(self, number: int, job: Job, index: int, machine: Machine) -> None:
        group = _group(job, index)
        directory = self.directory_of(number)
        try:
            directory.parent.mkdir(mode=0o700, exist_ok=True)
            directory.mkdir(mode=0o700)
            spec = self._spec(number, job, group, index, machine, directory)
            self._tries[number] = self._launcher.launch(directory, spec)
        except (OSError, SupervisorError) as error:
            self._stillborn.append((number, TryResult(NOT_EXECUTABLE, f"cannot start: {error}")))

    def _spec(
        self,
        number: int,
        job: Job,
        group: TaskGroup,
        index: int,
        machine: Machine,
        directory: Path,
    ) -> TrySpec:
        execution = group.execution
        if execution is None or not execution.command:
            raise SupervisorError("the job has no command", expected="a command")
        if execution.image:
            raise SupervisorError("container images cannot be run here", expected="a command")
        source = "/dev/null"
        if execution.stdin:
            source = str(directory / "stdin")
            Path(source).write_text(execution.stdin, encoding="utf-8")
        environment = {
            **self._environment,
            **execution.environment,
            "ARGOSY_JOB": job.id,
            "ARGOSY_TASK": str(index),
            "ARGOSY_TASKS": str(job.tasks),
            "ARGOSY_MACHINE": machine.name,
            "ARGOSY_TRY": str(number),
        }
        return TrySpec(
            name=str(number),
            command=execution.command,
            environment=environment,
            directory=execution.working_directory or str(Path.cwd()),
            input=source,
            capture=_capture(execution),
            limits=self._limits(group.request),
            timeout=execution.timeout,
            grace=execution.grace,
            reports=self.reports.path,
            cgroup="" if self._cgroups is None else f"{self._cgroups.path}/try-{number}",
        )

    def _limits(self, request: Resources) -> ProcessLimits:
        """A share of the processors as the request says, and no more memory."""
        if self._cgroups is None:
            return ProcessLimits(memory_bytes=request.memory)
        weight = min(max(1, request.cpu // 10), 10_000)
        return ProcessLimits(memory_bytes=request.memory, cpu_weight=weight)

    def stop(self, number: int) -> None:
        known = self._tries.get(number) or self._find(number)
        if known is not None:
            known.stop()

    def adopt(self, number: int) -> TryResult | bool:
        known = self._find(number)
        if known is None:
            return False
        status = known.status()
        if status.state in (TryState.LOST, TryState.WITHDRAWN):
            known.clear_leftovers()
            return False
        result = _result(status)
        if result is not None:
            return result
        self._tries[number] = known
        return True

    def _find(self, number: int) -> SupervisedTry | None:
        try:
            return SupervisedTry.adopt(self.directory_of(number))
        except SupervisorError:
            return None

    def is_running(self, number: int) -> bool:
        """Whether the try is not known to be over; it may have been told to stop."""
        return number in self._tries

    @property
    def is_idle(self) -> bool:
        """Whether no try is known to run, stopped ones included."""
        return not (self._tries or self._stillborn)

    @property
    def has_stillborn(self) -> bool:
        """Whether `hear` has something to pass on that no report will come for."""
        return bool(self._stillborn)

    def hear(self) -> None:
        """Passes on the ends that have been reported."""
        stillborn, self._stillborn = self._stillborn, []
        for number, result in stillborn:
            self._ended(number, result)
        self._look(int(report.name) for report in self.reports.pending() if report.name.isdecimal())

    def sweep(self) -> None:
        """Looks at every try, since reports may be lost."""
        self.hear()
        self._look(list(self._tries))
        # A supervisor reports the end before it exits.
        self._launcher.reap()

    def _look(self, numbers: Iterable[int]) -> None:
        over = []
        for number in numbers:
            known = self._tries.get(number)
            if known is None:
                continue
            status = known.status()
            if not status.state.is_over:
                continue
            del self._tries[number]
            over.append(known)
            known.clear_leftovers()
            result = _result(status) or TryResult(-signal.SIGKILL, status.sentence())
            self._ended(number, result)
        self._launcher.reap(over)


def _cgroup_parent(directory: Path, isolation: Isolation | None) -> CgroupParent | None:
    if isolation is None or not isolation.parent:
        return None
    name = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:12]
    try:
        return CgroupParent(f"argosy-{name}")
    except SupervisorError:
        return None


def _group(job: Job, index: int) -> TaskGroup:
    return next(group for group, _ in job.tasks_by_group(first_tasks(0, index + 1)[index:]))


def _capture(execution: Execution) -> CaptureLimits:
    return CaptureLimits(
        segment_bytes=max(1, execution.output_limit // _SEGMENTS), segments=_SEGMENTS
    )


def _result(status: TryStatus) -> TryResult | None:
    """How a try ended; none if it has not, or nobody knows."""
    end = status.end
    if end is None:
        return None
    return TryResult(_exit_status(end), "" if _is_well(end) else end.sentence())


def _is_well(end: TryEnd) -> bool:
    return end.outcome is TryOutcome.EXITED and end.code == 0 and end.cause is EndCause.NONE


def _exit_status(end: TryEnd) -> int:
    """The exit code, or minus the signal. A try that did not start has the code a shell would give; one
    whose time was up has failed, whatever code it ended with."""
    if end.outcome is TryOutcome.NOT_STARTED:
        return NOT_FOUND if end.failure is StartFailure.NOT_FOUND else NOT_EXECUTABLE
    status = end.code if end.outcome is TryOutcome.EXITED else -end.signal
    if status == 0 and end.cause is not EndCause.NONE:
        return -signal.SIGTERM
    return status
