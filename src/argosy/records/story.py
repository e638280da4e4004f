"""The story of one task, line by line, in the order in which things happened."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from argosy.host.records import (
    AbandonedRecord,
    AttemptRecord,
    CancelledRecord,
    ConfirmedRecord,
    CrashedRecord,
    EndedRecord,
    EnqueuedRecord,
    ExplainedRecord,
    FailedRecord,
    ForgottenRecord,
    LostRecord,
    PlacedRecord,
    ProbedRecord,
    RefusedRecord,
    ReleasedRecord,
    RestoredRecord,
    ResubmittedRecord,
    RetriedRecord,
    ScaledRecord,
    StartedRecord,
    SubmittedRecord,
    plain,
)
from argosy.model.answers import StoryLine
from argosy.model.jobs import task_number
from argosy.model.units import format_count, format_duration
from argosy.records.journal_file import Fact
from argosy.records.reasons import reason_of
from argosy.records.task_history import TaskHistory


class StoryTeller:
    def __init__(self, history: TaskHistory) -> None:
        self._history = history

    def story(self) -> list[StoryLine]:
        """Attempts that changed nothing are counted, not repeated."""
        told = [pair for fact in self._in_order() for pair in self._tell(fact)]
        return _fold(sorted(told, key=lambda pair: pair[0].at))

    def _in_order(self) -> Iterator[Fact]:
        """Without decisions on other tasks of the job while this one had a machine or was over. Facts
        from a saved timeline come at the end of a history."""
        has_machine = False
        for fact in sorted(self._history.facts, key=lambda fact: fact.at):
            match fact:
                case PlacedRecord() | EnqueuedRecord() | ProbedRecord() | StartedRecord():
                    has_machine = True
                case EndedRecord() | AbandonedRecord() | CancelledRecord():
                    has_machine = True
                case LostRecord() | ReleasedRecord() | ResubmittedRecord() | CrashedRecord():
                    has_machine = False
                case ScaledRecord() | RetriedRecord(for_good=False) | ForgottenRecord():
                    has_machine = False
                case AttemptRecord() if has_machine:
                    continue
                case ExplainedRecord(explanation=explanation) if explanation.is_choice:
                    continue
            yield fact

    def _tell(self, fact: Fact) -> Iterator[tuple[StoryLine, Fact]]:
        """The lines for one record: a placed task also starts at once."""
        what, detail = type(fact).__struct_config__.tag, plain(fact)
        assert isinstance(what, str)
        detail = {name: value for name, value in detail.items() if name not in ("at", "what")}
        match fact:
            case EndedRecord(at):
                ran = format_duration(at - self._history.last_start(at))
                yield StoryLine(at, "finished", f"finished after running for {ran}"), fact
            case StartedRecord(at, tasks, machines, after):
                task = task_number(self._history.number, self._history.index)
                name = self._history.name(machines[tasks.index(task)])
                queued = self._history.queued(at + after)
                yield StoryLine(at + after, what, f"starts on {name}{queued}"), fact
            case PlacedRecord(at, _, indices, machines):
                yield StoryLine(at, what, self.text(fact), detail), fact
                name = self._history.machine(indices, machines)
                yield StoryLine(at, "started", f"starts on {name}"), fact
            case _:
                yield StoryLine(fact.at, what, self.text(fact), detail), fact

    def text(self, fact: Fact) -> str:
        match fact:
            case SubmittedRecord(job=job, scheduler=scheduler):
                return f"submitted with {format_count(job.tasks, 'task')}, goes to {scheduler}"
            case RestoredRecord(job=job, scheduler=scheduler):
                where = self._history.restored_as(fact)
                return f"taken over after a restart: {where}; its job belongs to {scheduler}"
            case ResubmittedRecord(scheduler=scheduler):
                return f"given to {scheduler} again"
            case AttemptRecord(scheduler=scheduler, takes=takes):
                # Where decision times are not modelled, nothing is known of them.
                how_long = f", which takes {format_duration(takes)}" if takes else ""
                return f"{scheduler} starts to decide{how_long}"
            case PlacedRecord(_, _, indices, machines, scheduler, assumed=assumed):
                condition = ", if it is confirmed" if assumed else ""
                return f"placed on {self._history.machine(indices, machines)} by {scheduler}{condition}"
            case ConfirmedRecord():
                return "confirmed"
            case ForgottenRecord():
                return "not confirmed"
            case EnqueuedRecord(_, _, indices, machines, scheduler):
                return f"sent to the queue of {self._history.machine(indices, machines)} by {scheduler}"
            case ProbedRecord(machines=machines, scheduler=scheduler):
                probes = format_count(len(machines), "probe")
                return f"{probes} for its job's tasks sent by {scheduler}"
            case RefusedRecord(indices=indices, machines=machines):
                where = self._history.machine(indices, machines)
                return f"refused: {self._history.refusal(fact).sentence(where)}"
            case LostRecord(_, _, indices, machines, why):
                return f"lost {self._history.machine(indices, machines)}: {why.replace('_', ' ')}"
            case ReleasedRecord(scheduler=scheduler):
                return f"released by {scheduler}"
            case ExplainedRecord(explanation=explanation):
                return f"waits: {reason_of(explanation, self._history)}"
            case AbandonedRecord(explanation=explanation):
                return f"abandoned: {reason_of(explanation, self._history)}"
            case CrashedRecord(scheduler=scheduler):
                return f"{scheduler} stopped, and its probes with it"
            case FailedRecord(exit_status=status, reason=reason):
                return f"failed with exit status {status}" + (f": {reason}" if reason else "")
            case RetriedRecord(for_good=for_good):
                return "failed for good" if for_good else "may be placed again"
            case CancelledRecord():
                return "cancelled"
            case ScaledRecord(job=job):
                return f"its job has {format_count(job.tasks, 'task')} from now on"
        return ""


def _fold(lines: list[tuple[StoryLine, Fact]]) -> list[StoryLine]:
    """Merges lines equal to one of the three before them into one, with a count."""
    folded: list[tuple[StoryLine, tuple[object, ...]]] = []
    repeats: list[int] = []
    for line, fact in lines:
        gist = _gist(line, fact)
        recent = range(1, min(3, len(folded)) + 1)
        same = next((n for n in recent if folded[-n][1] == gist), None)
        if same is None:
            folded.append((line, gist))
            repeats.append(1)
        else:
            repeats[-same] += 1
    return [
        line if count == 1 else structs.replace(line, text=f"{line.text} ({count} times)")
        for (line, _), count in zip(folded, repeats, strict=True)
    ]


def _gist(line: StoryLine, fact: Fact) -> tuple[object, ...]:
    """What makes two lines equal to a reader; which machine refused and how long a decision took do not
    matter."""
    match fact:
        case AttemptRecord(scheduler=scheduler):
            return line.what, scheduler
        case RefusedRecord(whys=whys):
            return line.what, *sorted(set(whys))
        case ExplainedRecord(explanation=explanation):
            return line.what, *sorted(explanation.ruled_out)
    return line.what, line.at, line.text
