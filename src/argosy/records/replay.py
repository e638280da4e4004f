"""Replays a journal: the same inputs must lead to the same decisions, byte for byte.

Engines are pure, so a host that gets the same inputs in the same order decides the same. After each
input, the bytes that the replaying host writes must be the next bytes of the journal. So only inputs are
decoded. The journal of a run in progress may end between an input and its consequences.

Long decisions made in the background are inputs too, except that one made in place is made again and
compared, because it left more behind than its answer. Those made at once are made again, with the same
result unless a clock ended a budget, then or now; such a run cannot be replayed.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.engines.api import Engine
from argosy.host import JournalReader, records
from argosy.host.host import Host
from argosy.host.journal import Journal
from argosy.host.protocols import DirectLinks
from argosy.host.remote_desks import RemoteCommit, RemoteSample
from argosy.host.reports import REPORT_EVENTS
from argosy.host.scheduler import Scheduler
from argosy.model.effects import Commit, Sample
from argosy.model.errors import ArgosyError, ReplayDiverged, RunDirectoryError
from argosy.model.events import Decision
from argosy.model.explanations import Why
from argosy.model.scenario import Measured
from argosy.model.tasks import task_numbers
from argosy.model.transactions import MachineArray, TaskArray
from argosy.model.wire import from_plain
from argosy.records.journal_file import JournalFile, is_unknown
from argosy.worlds.clocks import ClockBudgets
from argosy.worlds.sim.network import SimulatedNetwork

_INPUTS: Final = msgspec.json.Decoder(records.Input)
_MEASURED: Final = msgspec.json.Decoder(records.MeasuredRecord)
#: How much of a line is shown.
_LONGEST: Final = 400


class ReplaySummary(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a run was replayed."""

    inputs: int
    lines: int
    #: Virtual time of the last input, in microseconds.
    ended_at: int


class ToldMachines:
    """Machines that do nothing: the ends of tasks come from the journal."""

    acts = False

    def start(
        self, tasks: TaskArray, machines: MachineArray, incarnations: NDArray[np.int64]
    ) -> None: ...

    def stop(
        self, tasks: TaskArray, machines: MachineArray, incarnations: NDArray[np.int64], why: Why
    ) -> None: ...


class ToldAnswers:
    """Nothing is deliberated on until the journal has the answer: see `Host.answer`."""

    def start(self, run: Callable[[], Decision], done: Callable[[Decision], None]) -> None: ...


class ToldAgents:
    """Nobody is asked: the answers of agents come from the journal."""

    def sample(self, scheduler: str, effect: Sample) -> None: ...

    def commit(self, scheduler: str, effect: Commit) -> None: ...


class _HeldJournal(Journal):
    """Keeps everything written in the buffer until it has been compared."""

    def flush(self) -> None: ...


class ReplayedHost(Host):
    """Decision times are taken from the journal."""

    def measured(self, scheduler: Scheduler, factor: float) -> int:
        return self.recorded_times[scheduler.name].popleft()

    recorded_times: defaultdict[str, deque[int]]


class Replay:
    """Replays a journal. `finished`: whether the run is, so that the journal must contain everything
    that the last input led to."""

    def __init__(
        self,
        journal: JournalFile,
        engines: Mapping[str, type[Engine]],
        *,
        finished: bool = True,
    ) -> None:
        self._file = journal
        self._is_finished = finished
        header = journal.header()
        setup = header.setup
        if setup.output.log == "decisions":
            raise RunDirectoryError(
                "this journal holds decisions without all inputs",
                file=journal.name,
                hint='run it with output.log = "replayable"',
            )
        links = DirectLinks() if setup.network is None else SimulatedNetwork.of(setup)
        self._journal = _HeldJournal(everything=setup.output.log == "everything")
        self.host = ReplayedHost(
            setup,
            engines,
            ToldMachines(),
            links,
            self._journal,
            replayed=True,
            budgets=ClockBudgets(),
            deliberator=ToldAnswers() if header.deliberated_beside else None,
            agents=ToldAgents() if setup.has_remote_agents else None,
        )
        is_measured = any(isinstance(entry.decision_time, Measured) for entry in setup.fleet)
        self.host.recorded_times = _measured(journal.data if is_measured else b"")
        self._runtime = self.host.runtime
        self._actions: dict[type[Any], Callable[[Any], None]] = {
            records.PhaseEndedRecord: self._phase_ended,
            records.ReportRecord: self._report,
            records.SubmittedRecord: self._submitted,
            records.RestoredRecord: self._restored,
            records.MachineRecord: self._machine,
            records.MarkedRecord: self._marked,
            records.ObservedRecord: self._observed,
            records.CrashedRecord: self._crashed,
            records.RestartedRecord: self._restarted,
            records.FailedRecord: self._failed,
            records.ConfirmedRecord: self._confirmed,
            records.ForgottenRecord: self._forgotten,
            records.CancelledRecord: self._cancelled,
            records.ScaledRecord: self._scaled,
            records.AnsweredRecord: self._answered,
            records.SampleAnswerRecord: self._sampled,
            records.CommitAnswerRecord: self._committed,
        }

    def run(self, progress: Callable[[float], None] | None = None) -> ReplaySummary:
        data, carry_out = self._file.data, self.host.carry_out
        self.host.start()
        reader = JournalReader(self._runtime, self._journal.buffer, data, self._is_finished)
        step, events = reader.step, 0
        while True:
            try:
                item = step()
                if isinstance(item, tuple):
                    carry_out(item)
                elif isinstance(item, bytes):
                    self._take(item, reader.position)
                else:
                    break
            except (ArgosyError, LookupError, ValueError) as error:
                if isinstance(error, ReplayDiverged):
                    raise
                raise ReplayDiverged(
                    f"the replay failed: {error}",
                    file=self._file.name,
                    line=self._file.line_at(reader.position),
                ) from error
            events += 1
            if progress is not None and not events & 0xFFF:
                progress(reader.position / len(data))
        if item is False:
            raise self._diverged(reader.position, self._journal.buffer.take())
        return ReplaySummary(
            inputs=reader.inputs, lines=data.count(b"\n"), ended_at=self._runtime.now
        )

    def _take(self, line: bytes, position: int) -> None:
        """Feeds an input to the host."""
        try:
            record = _INPUTS.decode(line)
        except msgspec.MsgspecError:
            if is_unknown(line):
                raise ReplayDiverged(
                    "the journal has a kind of line that this version of Argosy does not know",
                    file=self._file.name,
                    line=self._file.line_at(position),
                    hint="replay it with the version that wrote it",
                ) from None
            raise self._diverged(position, b"") from None
        if (action := self._actions.get(type(record))) is None:
            # Such lines are read by the reader, unless they say what never happens.
            raise self._diverged(position, b"")
        action(record)

    def _diverged(self, position: int, written: bytes) -> ReplayDiverged:
        """An error that names the first line that differs."""
        data = self._file.data
        for line in written.splitlines(keepends=True):
            if data[position : position + len(line)] != line:
                break
            position += len(line)
        else:
            line = b""
        recorded = data[position : data.find(b"\n", position)].decode(errors="replace")
        replayed = line.decode().rstrip("\n")
        pairs = enumerate(zip(recorded, replayed, strict=False))
        apart = next((at for at, (one, other) in pairs if one != other), 0)
        recorded, replayed = _shortened(recorded, apart), _shortened(replayed, apart)
        return ReplayDiverged(
            f"the replay decided otherwise: {replayed or 'nothing'}",
            file=self._file.name,
            line=self._file.line_at(position),
            expected=recorded or "the end of the journal",
            hint="replay it with the version of Argosy, and of the engine, that wrote it",
        )

    def _phase_ended(self, record: records.PhaseEndedRecord) -> None:
        self._runtime.advance(record.at)
        self._runtime.end_phase(record.job, record.phase, record.duration)

    def _report(self, record: records.ReportRecord) -> None:
        self._runtime.advance(record.at)
        self._journal.write(record)
        self.host.carry_out((REPORT_EVENTS[record.kind], record.at, 0, 0))

    def _submitted(self, record: records.SubmittedRecord) -> None:
        self._runtime.advance(record.at)
        if record.by:
            self.host.place(record.job, record.machine, record.by, record.commit)
        else:
            self.host.submit(record.job)

    def _restored(self, record: records.RestoredRecord) -> None:
        self._runtime.advance(record.at)
        self.host.restore(record.job, record.state)

    def _machine(self, record: records.MachineRecord) -> None:
        self._runtime.advance(record.at)
        self.host.membership.change(record.change)

    def _marked(self, record: records.MarkedRecord) -> None:
        self._runtime.advance(record.at)
        mark = self.host.membership.mark
        mark(record.attribute, record.group, record.sets, is_given=record.is_given)

    def _observed(self, record: records.ObservedRecord) -> None:
        self._runtime.advance(record.at)
        self.host.membership.observe(record.resource, record.machines, record.used)

    def _failed(self, record: records.FailedRecord) -> None:
        self._runtime.advance(record.at)
        self.host.fail_task(record.task, record.incarnation, record.exit_status, record.reason)

    def _confirmed(self, record: records.ConfirmedRecord) -> None:
        self._runtime.advance(record.at)
        self.host.confirm(*self._current(record.tasks))

    def _forgotten(self, record: records.ForgottenRecord) -> None:
        self._runtime.advance(record.at)
        self.host.forget(*self._current(record.tasks), Why[record.why.upper()])

    def _current(self, tasks: list[int]) -> tuple[TaskArray, NDArray[np.int64]]:
        """The tasks and their incarnations: only answers about current ones are recorded."""
        incarnations = [self._runtime.incarnation(task) for task in tasks]
        return np.array(tasks, np.int64), np.array(incarnations, np.int64)

    def _cancelled(self, record: records.CancelledRecord) -> None:
        self._runtime.advance(record.at)
        self.host.cancel(record.number, task_numbers(record.number, record.indices))

    def _scaled(self, record: records.ScaledRecord) -> None:
        self._runtime.advance(record.at)
        self.host.scale(record.number, record.job)

    def _answered(self, record: records.AnsweredRecord) -> None:
        self._runtime.advance(record.at)
        engine: object = self.host.named(record.scheduler).engine_type
        kind = getattr(engine, "decision_type", Decision)
        self.host.answer(record.scheduler, record.token, from_plain(record.decision, kind))

    def _sampled(self, record: records.SampleAnswerRecord) -> None:
        self._runtime.advance(record.at)
        answer = msgspec.convert(record, RemoteSample, from_attributes=True)
        self.host.sampled(record.scheduler, record.token, answer)

    def _committed(self, record: records.CommitAnswerRecord) -> None:
        self._runtime.advance(record.at)
        answer = msgspec.convert(record, RemoteCommit, from_attributes=True)
        self.host.committed(record.scheduler, record.token, answer)

    def _crashed(self, record: records.CrashedRecord) -> None:
        self._runtime.advance(record.at)
        self.host.crash(self.host.named(record.scheduler))

    def _restarted(self, record: records.RestartedRecord) -> None:
        self._runtime.advance(record.at)
        self.host.restart(self.host.named(record.scheduler))


def _shortened(line: str, around: int) -> str:
    """The beginning of a long line, and the part near position `around`."""
    if len(line) <= _LONGEST:
        return line
    begin, end = max(0, around - _LONGEST // 4), around + _LONGEST // 2
    head = line[:begin] if begin <= _LONGEST // 4 else f"{line[: _LONGEST // 4]}..."
    return head + line[begin:end] + ("..." if end < len(line) else "")


def _measured(data: bytes) -> defaultdict[str, deque[int]]:
    """Measured decision times by scheduler; they are needed before their lines are reached."""
    times: defaultdict[str, deque[int]] = defaultdict(deque)
    for match in re.finditer(rb'^\{"what":"measured".*$', data, re.MULTILINE):
        record = _MEASURED.decode(match[0])
        times[record.scheduler].append(record.duration)
    return times
