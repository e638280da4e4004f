"""Runs tries as supervised processes in directories of their own.

    tries/000/000012/   the try with number 12: specification, records and outputs

The files of a try say all there is to know about it, so that a server that starts again finds every try
by its number. Reports only make it quick: what they miss, `sweep` finds.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Final

from argosy.model.jobs import Execution, Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.worlds.local.isolation import CgroupParent, Isolation
from argosy.worlds.local.launcher import Launcher, LaunchHelper
from argosy.worlds.local.records import EndCause, StartFailure, TryEnd, TryOutcome
from argosy.worlds.local.reports import ReportSocket
from argosy.worlds.local.spec import CaptureLimits, ProcessLimits, SupervisorError, TrySpec
from argosy.worlds.local.supervised import SupervisedTry, TryState, TryStatus
from argosy.worlds.local.turn import TryResult

#: Exit statuses of tries that have none of their own, as shells have them.
NOT_FOUND: Final = 127
NOT_EXECUTABLE: Final = 126
#: Seconds after which a try is given up that no supervisor has claimed.
LONGEST_START: Final = 30.0
#: Seconds that launches of an earlier server may take to come to their end.
LONGEST_LAUNCH: Final = 10.0
#: Room on the disk, memory, processes and descriptors run out and come back.
_PASSING: Final = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
)
_SEGMENTS: Final = 4
_SHARD: Final = 1000


class ProcessRunner:
    """`ended` is called with the number of a try and how it ended, or none if nobody knows or it could
    not be launched for now; never from within `launch` and `stop`."""

    def __init__(
        self,
        directory: Path,
        ended: Callable[[int, TryResult | None], None],
        *,
        environment: dict[str, str] | None = None,
        isolation: Isolation | None = None,
    ) -> None:
        self._directory = directory.absolute() / "tries"
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
        self._lock = _lock_launches(directory / "launches.lock")
        self.reports = ReportSocket(directory / "reports.sock")
        self._helper = LaunchHelper(lock=self._lock.fileno())
        self._launcher = Launcher(helper=self._helper)
        #: Tries that no supervisor has claimed yet, and when they were launched.
        self._unclaimed: dict[int, float] = {}
        #: The directory that the last try was put in.
        self._shard = ""
        self._working_directory = os.getcwd()
        #: Tries that are not known to be over.
        self._tries: dict[int, SupervisedTry] = {}
        #: Tries that are over without a report to come, and how they ended.
        self._stillborn: list[tuple[int, TryResult | None]] = []

    @property
    def report_fd(self) -> int:
        """Readable when there is something to hear."""
        return self.reports.fileno()

    def limits(self) -> str:
        return self.isolation.sentence()

    def close(self) -> None:
        """Processes go on."""
        self.reports.close()
        self._helper.close()
        self._lock.close()

    def directory_of(self, number: int) -> str:
        return f"{self._shard_of(number)}/{number:06d}"

    def _shard_of(self, number: int) -> str:
        return f"{self._directory}/{number // _SHARD:03d}"

    def launch(self, number: int, job: Job, index: int, machine: Machine) -> None:
        group = job.group_at(index)
        directory, shard = self.directory_of(number), self._shard_of(number)
        try:
            if shard != self._shard:
                Path(shard).mkdir(mode=0o700, exist_ok=True)
                self._shard = shard
            spec = self._spec(number, job, group, index, machine, directory)
            if group.execution is not None and group.execution.stdin:
                os.mkdir(directory, mode=0o700)
                Path(spec.input).write_text(group.execution.stdin, encoding="utf-8")
                self._tries[number] = self._launcher.launch(directory, spec)
            else:
                self._tries[number] = self._launcher.launch_new(directory, spec)
            self._unclaimed[number] = time.monotonic()
        except (OSError, SupervisorError) as error:
            self._stillborn.append((number, _unlaunched(error)))

    def _spec(
        self,
        number: int,
        job: Job,
        group: TaskGroup,
        index: int,
        machine: Machine,
        directory: str,
    ) -> TrySpec:
        execution = group.execution
        if execution is None or not execution.command:
            raise SupervisorError("the job has no command", expected="a command")
        if execution.image:
            raise SupervisorError("container images cannot be run here", expected="a command")
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
            directory=execution.working_directory or self._working_directory,
            input=f"{directory}/stdin" if execution.stdin else "/dev/null",
            capture=_capture(execution),
            limits=self._limits(group.request),
            timeout=execution.timeout,
            grace=execution.grace,
            reports=self.reports.path,
            reports_start=False,
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
        if known is None:
            self._stillborn.append((number, None))
            return
        self._tries[number] = known
        known.stop()
        status = _status(known)
        if status.state.is_over:
            # Its report may have been for an earlier server.
            del self._tries[number]
            if status.state is TryState.LOST:
                _clear(known)
            self._stillborn.append((number, _result(status)))

    def adopt(self, number: int) -> TryResult | bool:
        known = self._find(number)
        if known is None:
            return False
        status = _status(known)
        if status.state in (TryState.LOST, TryState.WITHDRAWN):
            _clear(known)
            return False
        result = _result(status)
        if result is not None:
            return result
        self._tries[number] = known
        return True

    def discard_after(self, number: int) -> int:
        last = number
        for shard in self._directory.iterdir():
            if not shard.name.isdecimal() or int(shard.name) < number // _SHARD:
                continue
            for name in os.listdir(shard):
                if name.isdecimal() and int(name) > number:
                    last = max(last, int(name))
                    self.stop(int(name))
        return last

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
        for report in self.reports.pending():
            if not report.name.isdecimal():
                continue
            number = int(report.name)
            if report.state is TryState.ENDED:
                self._look((number,))
            elif report.state is TryState.WITHDRAWN and self._tries.pop(number, None) is not None:
                reason = OSError(report.error, os.strerror(report.error))
                self._ended(number, _unlaunched(reason))

    def sweep(self) -> None:
        """Looks at every try, since reports may be lost."""
        self.hear()
        self._look(list(self._tries))
        self._give_up_unclaimed()

    def _give_up_unclaimed(self) -> None:
        """A try whose supervisor never came is over: if it comes now, it does nothing."""
        now = time.monotonic()
        for number, since in list(self._unclaimed.items()):
            known = self._tries.get(number)
            if known is None or known.identity() is not None:
                del self._unclaimed[number]
            elif now - since > LONGEST_START:
                # If the disk has no room for that, it is tried again with the next sweep.
                is_withdrawn = known.withdraw()
                del self._unclaimed[number]
                if is_withdrawn:
                    del self._tries[number]
                    self._ended(number, TryResult(NOT_EXECUTABLE, "its supervisor did not start"))

    def _look(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            known = self._tries.get(number)
            if known is None:
                continue
            status = _status(known)
            if not status.state.is_over:
                continue
            del self._tries[number]
            if status.state is TryState.LOST:
                _clear(known)
            self._ended(number, _result(status))


def _lock_launches(path: Path) -> IO[bytes]:
    """Holds the lock of all launches. An earlier server's helper may still be about to start some: they
    are over when the lock can be had."""
    lock = open(path, "ab")  # noqa: SIM115
    deadline = time.monotonic() + LONGEST_LAUNCH
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() > deadline:
                lock.close()
                raise SupervisorError(
                    "tasks of an earlier server are still being started",
                    file=str(path),
                    hint="try again in a while",
                ) from None
            time.sleep(0.002)


def _cgroup_parent(directory: Path, isolation: Isolation | None) -> CgroupParent | None:
    if isolation is None or not isolation.parent:
        return None
    name = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:12]
    try:
        return CgroupParent(f"argosy-{name}")
    except SupervisorError:
        return None


def _status(known: SupervisedTry) -> TryStatus:
    """Of a try whose records are damaged, as a power cut may leave them, nothing is known."""
    try:
        return known.status()
    except SupervisorError:
        with contextlib.suppress(SupervisorError):
            known.kill()
        return TryStatus(state=TryState.LOST)


def _clear(known: SupervisedTry) -> None:
    with contextlib.suppress(SupervisorError):
        known.clear_leftovers()


def _unlaunched(error: OSError | SupervisorError) -> TryResult | None:
    """What became of a try that could not be launched: it failed, or may start later."""
    if _is_passing(error):
        return None
    text = error.strerror if isinstance(error, OSError) else str(error)
    return TryResult(NOT_EXECUTABLE, f"cannot start: {text}")


def _is_passing(error: OSError | SupervisorError) -> bool:
    """Whether the system lacks something that it may have again later."""
    reason = error if isinstance(error, OSError) else error.__cause__
    return isinstance(reason, OSError) and reason.errno in _PASSING


def _capture(execution: Execution) -> CaptureLimits:
    return CaptureLimits(
        segment_bytes=max(1, execution.output_limit // _SEGMENTS), segments=_SEGMENTS
    )


def _result(status: TryStatus) -> TryResult | None:
    """How a try ended; none if it has not, or nobody knows."""
    end = status.end
    if end is None:
        return None
    was_stopped = end.cause in (EndCause.STOP, EndCause.KILL)
    return TryResult(_exit_status(end), "" if _is_well(end) else end.sentence(), was_stopped)


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
