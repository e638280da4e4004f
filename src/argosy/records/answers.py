"""Answers about one task: its story, and why it is where it is.

Both are read from the journal, also during the run; nothing is simulated again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TypeAlias

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
from argosy.model.answers import StoryLine, WhyAnswer
from argosy.model.errors import CommandError, UnknownName
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.jobs import index_of, job_of, task_name, task_number
from argosy.model.prices import Price
from argosy.model.units import format_count, format_duration
from argosy.records.journal_checks import contradiction
from argosy.records.journal_file import Fact, JournalFile
from argosy.records.record import RunRecord

#: Records that determine where the task is, or why it has no machine; the last one counts.
Decisive: TypeAlias = (
    PlacedRecord
    | EnqueuedRecord
    | ProbedRecord
    | StartedRecord
    | RefusedRecord
    | ExplainedRecord
    | LostRecord
    | ReleasedRecord
    | AbandonedRecord
)
#: Records that name the task's job and the indices of the tasks concerned.
_OfTasks: TypeAlias = (
    PlacedRecord
    | EnqueuedRecord
    | ProbedRecord
    | RefusedRecord
    | ExplainedRecord
    | LostRecord
    | ReleasedRecord
    | AbandonedRecord
    | ResubmittedRecord
    | RetriedRecord
)


class TaskAnswers:
    def __init__(self, run: RunRecord, task: str) -> None:
        self._run = run
        self._journal = run.journal
        self._job, self._number, self._index = _resolve(self._journal, task)
        self.task = task_name(self._job, self._index)
        self._machines = self._journal.machine_names()
        self._dimensions = self._journal.dimensions()
        self._facts = list(self._concerning())

    def story(self) -> list[StoryLine]:
        """The task's history, line by line; attempts that changed nothing are counted, not repeated."""
        with self._consistent():
            return self._story()

    def why(self, later: str = "") -> WhyAnswer:
        """`later` is the state of the task by now, if that is known from elsewhere."""
        with self._consistent():
            return self._with_failure(self._why(later or self._state()))

    @property
    def is_decided(self) -> bool:
        """Whether the journal holds a decision about the task."""
        return any(isinstance(fact, Decisive) for fact in self._facts)

    @contextmanager
    def _consistent(self) -> Iterator[None]:
        """Only the lines about the task are read, so mistakes in them are noticed only when used."""
        try:
            yield
        except (LookupError, ValueError, OverflowError) as error:
            raise contradiction(self._journal) from error

    def _story(self) -> list[StoryLine]:
        told = [pair for fact in self._facts for pair in self._tell(fact)]
        # Lines from a saved timeline are at the end.
        return _fold(sorted(told, key=lambda pair: pair[0].at))

    def _why(self, state: str) -> WhyAnswer:
        decisive = next((x for x in reversed(self._facts) if isinstance(x, Decisive)), None)
        match decisive:
            case None:
                return self._undecided(state)
            case StartedRecord():
                return self._why_started(decisive, state)
            case ProbedRecord():
                sentence = "goes to the first machine at which one of its probes is ready."
                return WhyAnswer(task=self.task, state=state, sentence=f"{self.task} {sentence}")
            case PlacedRecord() | EnqueuedRecord():
                machine = self._machine(decisive.indices, decisive.machines)
                return self._why_here(decisive, machine, state)
        return self._why_not(decisive, state)

    def _with_failure(self, answer: WhyAnswer) -> WhyAnswer:
        """Of a task that failed for good, how it failed comes first."""
        failures = [fact for fact in self._facts if isinstance(fact, FailedRecord)]
        if answer.state != "failed" or not failures:
            return answer
        last = failures[-1]
        how = last.reason or f"exit status {last.exit_status}"
        often = "" if len(failures) == 1 else f" {len(failures)} times, the last time"
        where = answer.sentence.replace(f"{self.task} {_PLACES['failed']}", "It ran on")
        return structs.replace(answer, sentence=f"{self.task} failed{often}: {how}. {where}")

    def _state(self) -> str:
        state, count = "pending", 0
        for fact in self._facts:
            match fact:
                case SubmittedRecord(job=job) | ScaledRecord(job=job):
                    was_removed, count = count <= self._index, job.tasks
                    if self._index >= count and state not in _OVER:
                        state = "cancelled"
                    elif self._index < count and was_removed and state == "cancelled":
                        state = "pending"
                case _:
                    if isinstance(fact, RestoredRecord):
                        count = fact.job.tasks
                    state = _state_after(fact, self._index) or state
        return state

    def _undecided(self, state: str) -> WhyAnswer:
        when = "when the run ended" if self._run.is_finished else "so far"
        for fact in self._facts:
            if isinstance(fact, RestoredRecord) and state != "pending":
                where = self._restored_as(fact)
                sentence = f"{self.task} was {where} before the last restart."
                return WhyAnswer(task=self.task, state=state, sentence=sentence)
        return WhyAnswer(
            task=self.task,
            state=state,
            sentence=f"{self.task} was submitted, but no scheduler has decided on it yet.",
            remedy=f"more time, or more schedulers: no attempt had begun {when}",
        )

    def _concerning(self) -> Iterator[Fact]:
        """The records about the task, in order."""
        index, task = self._index, task_number(self._number, self._index)
        prober, was_probed = "", False
        for fact in self._journal.about(self._job, self._number, index):
            match fact:
                case (
                    SubmittedRecord(number=number)
                    | RestoredRecord(number=number)
                    | ScaledRecord(number=number)
                ):
                    concerns = number == self._number
                case AttemptRecord(job=job):
                    concerns = job == self._job
                case StartedRecord(tasks=tasks) | EndedRecord(tasks=tasks):
                    concerns = task in tasks
                    prober = "" if concerns else prober
                case ConfirmedRecord(tasks=tasks) | ForgottenRecord(tasks=tasks):
                    concerns = task in tasks
                case FailedRecord(task=failed):
                    concerns = failed == task
                case CancelledRecord(number=number, indices=indices):
                    concerns = number == self._number and index in indices
                case CrashedRecord(scheduler=scheduler):
                    # The scheduler's probes are void.
                    concerns = scheduler == prober
                case _ if isinstance(fact, _OfTasks):
                    concerns = fact.job == self._job and index in fact.indices
                    if concerns:
                        was_probed = isinstance(fact, ProbedRecord)
                        prober = fact.scheduler if isinstance(fact, ProbedRecord) else prober
                case _:
                    concerns = False
            if concerns:
                yield fact
        if not self._journal.has_ends:
            yield from self._kept(task, was_probed)

    def _kept(self, task: int, was_probed: bool) -> Iterator[Fact]:
        """Start and end from a saved timeline, if the journal contains only decisions."""
        if not self._run.is_finished:
            return
        rows = self._run.kept_tasks()
        for row in (rows["task"] == task).nonzero()[0].tolist():
            started, finished = int(rows["started"][row]), int(rows["finished"][row])
            if was_probed or started > int(rows["placed"][row]):
                yield StartedRecord(started, [task], [int(rows["machine"][row])])
            if finished >= 0:
                yield EndedRecord(finished, [task])

    def _restored_as(self, record: RestoredRecord) -> str:
        state = record.state.of(self._index)
        if state == "running":
            where = record.state.machines[record.state.running.index(self._index)]
            return f"running on {self._name(where)}"
        return state

    def _machine(self, indices: list[int], machines: list[int]) -> str:
        return self._name(machines[indices.index(self._index)])

    def _name(self, machine: int) -> str:
        return self._machines[machine] if 0 <= machine < len(self._machines) else str(machine)

    def _refusal(self, record: RefusedRecord) -> Refusal:
        row = record.indices.index(self._index)
        detail = record.details[row]
        return Refusal(
            why=Why(record.whys[row]),
            machine=record.machines[row],
            dimension=self._dimensions[detail] if 0 <= detail < len(self._dimensions) else "",
            lacking=record.amounts[row],
        )

    def _tell(self, fact: Fact) -> Iterator[tuple[StoryLine, Fact]]:
        """The lines for one record: a placed task also starts at once."""
        what, detail = type(fact).__struct_config__.tag, plain(fact)
        assert isinstance(what, str)
        detail = {name: value for name, value in detail.items() if name not in ("at", "what")}
        match fact:
            case EndedRecord(at):
                ran = format_duration(at - self._last_start(at))
                yield StoryLine(at, "finished", f"finished after running for {ran}"), fact
            case StartedRecord(at, tasks, machines, after):
                task = task_number(self._number, self._index)
                name = self._name(machines[tasks.index(task)])
                queued = self._queued(at + after)
                yield StoryLine(at + after, what, f"starts on {name}{queued}"), fact
            case PlacedRecord(at, _, indices, machines):
                yield StoryLine(at, what, self._text(fact), detail), fact
                name = self._machine(indices, machines)
                yield StoryLine(at, "started", f"starts on {name}"), fact
            case _:
                yield StoryLine(fact.at, what, self._text(fact), detail), fact

    def _last_start(self, otherwise: int) -> int:
        """A task ends once, after its last start."""
        started = otherwise
        for fact in self._facts:
            match fact:
                case PlacedRecord(begun):
                    started = begun
                case StartedRecord(begun, after=after):
                    started = begun + after
        return started

    def _queued(self, started: int) -> str:
        """How long the task waited since it left its scheduler."""
        waits = 0
        for fact in self._facts:
            match fact:
                case EnqueuedRecord(at, indices=indices, first=first, every=every):
                    waits = started - (at + first + indices.index(self._index) * every)
                case ProbedRecord(at):
                    waits = started - at
            if fact.at > started:
                break
        return f" after {format_duration(waits)} on the way and in its queue" if waits else ""

    def _text(self, fact: Fact) -> str:
        match fact:
            case SubmittedRecord(job=job, scheduler=scheduler):
                return f"submitted with {format_count(job.tasks, 'task')}, goes to {scheduler}"
            case RestoredRecord(job=job, scheduler=scheduler):
                where = self._restored_as(fact)
                return f"taken over after a restart: {where}; its job belongs to {scheduler}"
            case ResubmittedRecord(scheduler=scheduler):
                return f"given to {scheduler} again"
            case AttemptRecord(scheduler=scheduler, takes=takes):
                # Where decision times are not modelled, nothing is known of them.
                how_long = f", which takes {format_duration(takes)}" if takes else ""
                return f"{scheduler} starts to decide{how_long}"
            case PlacedRecord(_, _, indices, machines, scheduler, assumed=assumed):
                condition = ", if it is confirmed" if assumed else ""
                return f"placed on {self._machine(indices, machines)} by {scheduler}{condition}"
            case ConfirmedRecord():
                return "confirmed"
            case ForgottenRecord():
                return "not confirmed"
            case EnqueuedRecord(_, _, indices, machines, scheduler):
                return f"sent to the queue of {self._machine(indices, machines)} by {scheduler}"
            case ProbedRecord(machines=machines, scheduler=scheduler):
                probes = format_count(len(machines), "probe")
                return f"{probes} for its job's tasks sent by {scheduler}"
            case RefusedRecord(indices=indices, machines=machines):
                where = self._machine(indices, machines)
                return f"refused: {self._refusal(fact).sentence(where)}"
            case LostRecord(_, _, indices, machines, why):
                return f"lost {self._machine(indices, machines)}: {why.replace('_', ' ')}"
            case ReleasedRecord(scheduler=scheduler):
                return f"released by {scheduler}"
            case ExplainedRecord(explanation=explanation):
                return f"waits: {self._reason(explanation)}"
            case AbandonedRecord(explanation=explanation):
                return f"abandoned: {self._reason(explanation)}"
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

    def _reason(self, explanation: Explanation) -> str:
        refused = explanation.refused
        if refused is not None and refused.why is Why.BEHIND and refused.task >= 0:
            return f"{self._task_name(refused.task)} goes first, and has no machine yet"
        if refused is not None:
            return refused.sentence(self._name(refused.machine))
        if explanation.price is not None:
            return self._priced(explanation.price)
        if not explanation.looked_at:
            given = explanation.ruled_out or explanation.nearest_miss
            room = "no machine can take it" if given else "its scheduler gave no reason"
        elif explanation.looked_at == 1 and not explanation.feasible:
            room = "the only machine cannot take it"
        elif explanation.feasible and explanation.feasible >= explanation.looked_at:
            room = f"each of {explanation.looked_at} machines has room, but not all may be used"
        elif explanation.feasible:
            room = f"only {explanation.feasible} of {explanation.looked_at} machines have room"
        else:
            room = f"none of {explanation.looked_at} machines can take it"
        miss = explanation.nearest_miss
        if miss is None:
            return room
        return f"{room}; the nearest is {miss.sentence(self._name(miss.machine) + ', which')}"

    def _why_started(self, started: StartedRecord, state: str) -> WhyAnswer:
        """For a task that left a machine's queue: who put it there, and whether it stayed there."""
        task = task_number(self._number, self._index)
        machine = self._name(started.machines[started.tasks.index(task)])
        before = self._facts[: self._facts.index(started)]
        brought = (EnqueuedRecord, ProbedRecord)
        sent = next((fact for fact in reversed(before) if isinstance(fact, brought)), None)
        match sent:
            case EnqueuedRecord():
                return self._why_here(sent, machine, state)
            case ProbedRecord(machines=probed, scheduler=scheduler):
                probes = format_count(len(probed), "probe")
                if machine in map(self._name, probed):
                    ready = "and the one there was ready first"
                else:
                    ready = f"and {machine} took one from another machine's queue"
                how = f"{scheduler} sent {probes} for tasks of its job, {ready}"
            case _:
                how = "it was in the queue there"
        return WhyAnswer(
            task=self.task,
            state=state,
            sentence=f"{self.task} {_PLACES[state]} {machine}: {how}.",
            placed_on=machine,
        )

    def _why_here(
        self, record: PlacedRecord | EnqueuedRecord, machine: str, state: str
    ) -> WhyAnswer:
        """`machine` may have taken the task from the queue that it was sent to."""
        explanation = record.explanation or self._told_before(record.at) or Explanation()
        sent_to = self._machine(record.indices, record.machines)
        stolen = "" if sent_to == machine else f", which took it from the queue of {sent_to}"
        second = "" if explanation.second is None else self._name(explanation.second)
        if second == machine:
            # The explanation is shared by tasks placed together: another of them took the best machine.
            second = ""
        return WhyAnswer(
            task=self.task,
            state=state,
            sentence=f"{self.task} {_PLACES[state]} {machine}{stolen}: {_choice(explanation)}.",
            looked_at=explanation.looked_at,
            feasible=explanation.feasible,
            ruled_out=explanation.ruled_out,
            placed_on=machine,
            rule=explanation.rule,
            score=explanation.score,
            violated=explanation.violated,
            second=second,
            second_score=explanation.second_score if second or explanation.second is None else None,
        )

    def _told_before(self, at: int) -> Explanation | None:
        """The scheduler's explanation of the placement, if it was given separately just before."""
        told = [
            fact.explanation
            for fact in self._facts
            if isinstance(fact, ExplainedRecord) and fact.at <= at
        ]
        return told[-1] if told and told[-1].rule and told[-1].score is not None else None

    def _priced(self, price: Price) -> str:
        """The price of a place in words."""
        where = f", on {self._name(price.machine)}," if price.machine >= 0 else ""
        text = f"waiting costs it {price.waiting:,}, and the cheapest place{where} {price.place:,}"
        if price.holder >= 0:
            text += f": {self._task_name(price.holder)} holds it"
        if price.loser >= 0 and price.loser != price.holder:
            text += f", and {self._task_name(price.loser)} would end up without a machine"
        return text

    @cached_property
    def _jobs(self) -> list[str]:
        return self._journal.job_names()

    def _task_name(self, task: int) -> str:
        number = job_of(task)
        jobs = self._jobs
        return task_name(jobs[number] if number < len(jobs) else str(number), index_of(task))

    def _why_not(self, record: Decisive, state: str) -> WhyAnswer:
        """The record's own reason; for an abandoned task, also that of the last attempt."""
        given_up = ""
        if isinstance(record, AbandonedRecord):
            earlier = [x for x in self._facts if isinstance(x, RefusedRecord | ExplainedRecord)]
            if earlier and record.explanation.refused is not None:
                given_up = record.explanation.refused.sentence() + "; at last, "
            record = earlier[-1] if earlier else record
        match record:
            case RefusedRecord():
                refusal = self._refusal(record)
                explanation = Explanation(refused=refusal, remedy=refusal.remedy())
            case (
                ExplainedRecord(explanation=explanation) | AbandonedRecord(explanation=explanation)
            ):
                pass
            case _:
                return WhyAnswer(
                    task=self.task,
                    state=state,
                    sentence=f"{self.task} has no machine: {self._text(record)}, and no scheduler "
                    "has decided on it again.",
                )
        miss = explanation.nearest_miss
        return WhyAnswer(
            task=self.task,
            state=state,
            sentence=f"{self.task} has no machine: {given_up}{self._reason(explanation)}.",
            looked_at=explanation.looked_at,
            feasible=explanation.feasible,
            ruled_out=explanation.ruled_out,
            nearest_miss="" if miss is None else miss.sentence(self._name(miss.machine)),
            remedy=explanation.remedy,
            price=explanation.price,
        )


def _resolve(journal: JournalFile, task: str) -> tuple[str, int, int]:
    """Parses ``job/index`` (or ``job`` for its first task): the job, its number and the index."""
    job, _, index_text = task.partition("/")
    found = journal.job(job)
    if found is None:
        names = journal.job_names()
        error = UnknownName("job", job, names)
        if len(names) > 20:
            # A list of all jobs would bury the message.
            error.expected = f"one of the {len(names)} jobs that were submitted"
        raise error
    count = journal.largest_count(found)
    is_number = index_text.isascii() and index_text.isdecimal()
    index = int(index_text) if is_number else 0 if task == job else count
    if index >= count:
        raise CommandError(f"unknown task {task!r}", expected=f"{job}/0 to {job}/{count - 1}")
    return job, found.number, index


#: States that removing a task does not change.
_OVER = ("finished", "failed", "abandoned")
_PLACES = {
    "finished": "ran on",
    "running": "runs on",
    "queued": "waits in the queue of",
    "failed": "failed on",
    "cancelled": "was cancelled; its last machine is",
    "pending": "had a place on",
}


def _choice(explanation: Explanation) -> str:
    """How the machine was chosen, as far as the scheduler explained it."""
    if not explanation.rule:
        return "its scheduler chose it"
    if explanation.rule == "first":
        return (
            "the first machine with room, from a random start; all tasks placed in this decision "
            f"together took {format_count(explanation.looked_at, 'check')}"
        )
    if explanation.rule == "cheapest flow":
        return "the flow of least cost over all tasks puts it there"
    if not explanation.feasible:
        machines = format_count(explanation.looked_at, "machine")
        return f"decided by {explanation.rule}, over {machines}"
    return (
        f"{explanation.rule} of the {explanation.feasible} that could take it, "
        f"of {explanation.looked_at} checked"
    )


def _state_after(fact: Fact, index: int) -> str | None:
    """The task's state after a record about it alone; None if the record does not change it."""
    match fact:
        case PlacedRecord() | StartedRecord():
            return "running"
        case EnqueuedRecord() | ProbedRecord():
            return "queued"
        case EndedRecord():
            return "finished"
        case RestoredRecord(state=state):
            return state.of(index)
        case AbandonedRecord():
            return "abandoned"
        case CancelledRecord():
            return "cancelled"
        case RetriedRecord(for_good=for_good):
            return "failed" if for_good else "pending"
        case (
            ResubmittedRecord() | LostRecord() | ReleasedRecord() | FailedRecord() | CrashedRecord()
        ):
            return "pending"
    return None


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
