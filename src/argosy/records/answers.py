"""Answers about one task: its story, and why it is where it is.

Both are read from the journal, also during the run; nothing is simulated again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

from msgspec import structs

from argosy.engines.api import Capabilities
from argosy.engines.registry import ENGINES
from argosy.host.records import (
    AbandonedRecord,
    EnqueuedRecord,
    ExplainedRecord,
    FailedRecord,
    PlacedRecord,
    ProbedRecord,
    RefusedRecord,
    RestoredRecord,
    StartedRecord,
)
from argosy.model.answers import StoryLine, WhyAnswer
from argosy.model.constraints import Constraint
from argosy.model.constraints.tables import read_constraint
from argosy.model.errors import RunDirectoryError
from argosy.model.explanations import Explanation, Why
from argosy.model.feasibility import Feasibility, UnmeetableDemand
from argosy.model.jobs import task_name, task_number
from argosy.model.units import format_count
from argosy.model.wording import listed_names
from argosy.records.choices import decision_text, probes_text, taken_text
from argosy.records.journal_checks import contradiction
from argosy.records.occupancy import Occupancy
from argosy.records.reasons import exclusions, price_text, reason_of
from argosy.records.record import RunRecord
from argosy.records.shortages import Shortage, shortage
from argosy.records.state import RunState
from argosy.records.story import StoryTeller
from argosy.records.task_history import Decisive, TaskHistory
from argosy.records.waiting import loss_text, wait_text

#: Reading who holds what takes a second for about this many bytes of a journal; beyond ten times that,
#: answers do without it.
_LARGEST: Final = 200_000_000
_PLACES: Final = {
    "finished": "ran on",
    "running": "runs on",
    "queued": "waits in the queue of",
    "failed": "failed on",
    "cancelled": "was cancelled; its last machine is",
    "pending": "had a place on",
}


class TaskAnswers:
    """Without `whole`, the journal may lack lines about other jobs, so answers do not mention these."""

    def __init__(self, run: RunRecord, task: str, *, whole: bool = True) -> None:
        self._run = run
        self._history = TaskHistory(run, task)
        self._is_whole = whole and len(run.journal.data) <= _LARGEST
        self.task = self._history.task

    def story(self) -> list[StoryLine]:
        """The task's history, line by line; attempts that changed nothing are counted, not repeated."""
        with self._consistent():
            return StoryTeller(self._history).story()

    def why(self, later: str = "") -> WhyAnswer:
        """`later` is the state of the task by now, if that is known from elsewhere."""
        with self._consistent():
            return self._with_failure(self._why(later or self._history.state()))

    @property
    def is_decided(self) -> bool:
        """Whether the journal holds a decision about the task."""
        return self._history.decisive is not None

    @contextmanager
    def _consistent(self) -> Iterator[None]:
        """Only the lines about the task are read, so mistakes in them are noticed only when used."""
        try:
            yield
        except (LookupError, ValueError, OverflowError) as error:
            raise contradiction(self._run.journal) from error

    def _why(self, state: str) -> WhyAnswer:
        decisive = self._history.decisive
        match decisive:
            case None:
                return self._undecided(state)
            case StartedRecord():
                return self._why_started(decisive, state)
            case ProbedRecord():
                return self._why_probed(decisive, state)
            case PlacedRecord() | EnqueuedRecord():
                machine = self._history.machine(decisive.indices, decisive.machines)
                return self._why_here(decisive, machine, state)
        return self._why_not(decisive, state)

    def _with_failure(self, answer: WhyAnswer) -> WhyAnswer:
        """Of a task that failed for good, how it failed comes first."""
        failures = [fact for fact in self._history.facts if isinstance(fact, FailedRecord)]
        if answer.state != "failed" or not failures:
            return answer
        last = failures[-1]
        how = last.reason or f"exit status {last.exit_status}"
        often = "" if len(failures) == 1 else f" {len(failures)} times, the last time"
        where = answer.sentence.replace(f"{self.task} {_PLACES['failed']}", "It ran on")
        return structs.replace(answer, sentence=f"{self.task} failed{often}: {how}. {where}")

    def _undecided(self, state: str) -> WhyAnswer:
        when = "when the run ended" if self._run.is_finished else "so far"
        for fact in self._history.facts:
            if isinstance(fact, RestoredRecord) and state != "pending":
                where = self._history.restored_as(fact)
                sentence = f"{self.task} was {where} before the last restart."
                return WhyAnswer(task=self.task, state=state, sentence=sentence)
        if state != "pending":
            sentence = f"{self.task} is {state}; the journal does not say where it ran."
            return WhyAnswer(task=self.task, state=state, sentence=sentence)
        return WhyAnswer(
            task=self.task,
            state=state,
            sentence=f"{self.task} was submitted, but no scheduler has decided on it yet.",
            remedy=f"more time, or more schedulers: no attempt had begun {when}",
        )

    def _why_probed(self, probed: ProbedRecord, state: str) -> WhyAnswer:
        machines = list(dict.fromkeys(map(self._history.name, probed.machines)))
        sentence = f"{self.task} goes to the first machine at which a probe of its job is ready."
        sent = f"{probed.scheduler} sent {format_count(len(probed.machines), 'probe')}"
        details = (f"{sent}, to {listed_names(machines)}.",)
        return WhyAnswer(task=self.task, state=state, sentence=sentence, details=details)

    def _why_started(self, started: StartedRecord, state: str) -> WhyAnswer:
        """For a task that left a machine's queue: who put it there, and whether it stayed there."""
        history = self._history
        task = task_number(history.number, history.index)
        machine = history.name(started.machines[started.tasks.index(task)])
        before = history.facts[: history.facts.index(started)]
        brought = (EnqueuedRecord, ProbedRecord)
        sent = next((fact for fact in reversed(before) if isinstance(fact, brought)), None)
        match sent:
            case EnqueuedRecord():
                return self._why_here(sent, machine, state)
            case ProbedRecord(machines=probed, scheduler=scheduler):
                how = probes_text(scheduler, list(map(history.name, probed)), machine)
            case _:
                how = "it was in the queue there"
        return WhyAnswer(
            task=self.task,
            state=state,
            sentence=f"{self.task} {_PLACES[state]} {machine}: {how}.",
            details=self._about_wait(),
            violated=self._violated(),
            placed_on=machine,
        )

    def _why_here(
        self, record: PlacedRecord | EnqueuedRecord, machine: str, state: str
    ) -> WhyAnswer:
        """`machine` may have taken the task from the queue that it was sent to."""
        history = self._history
        own = record.explanation
        explanation = own or self._told_before(record.at) or Explanation()
        sent_to = history.machine(record.indices, record.machines)
        stolen = taken_text(sent_to, machine)
        second = "" if explanation.second is None else history.name(explanation.second)
        # An explanation is shared by tasks placed together; its numbers are of the first.
        is_first = own is None or record.indices[0] == history.index
        first = "" if is_first else task_name(history.job, record.indices[0])
        dimensions = self._run.journal.dimensions()
        decided = decision_text(explanation, dimensions, record.scheduler, sent_to, second, first)
        if second == sent_to:
            second = ""
        has_second = bool(second) or explanation.second is None
        return WhyAnswer(
            task=self.task,
            state=state,
            sentence=f"{self.task} {_PLACES[state]} {machine}{stolen}: {decided}.",
            details=(*self._queue_there(machine, state), *self._about_wait()),
            looked_at=explanation.looked_at,
            feasible=explanation.feasible,
            ruled_out={}
            if explanation.rule == "first fit"
            else exclusions(explanation.ruled_out, history),
            placed_on=machine,
            rule=explanation.rule,
            score=explanation.score if is_first else None,
            measure=explanation.measure,
            violated=self._violated() or explanation.violated,
            second=second if is_first else "",
            second_score=explanation.second_score if has_second and is_first else None,
        )

    def _queue_there(self, machine: str, state: str) -> tuple[str, ...]:
        """What a queued task waits for."""
        cell = self._cell_at(self._run.reached) if state == "queued" else None
        running = cell.on(machine) if cell is not None else []
        return (f"{machine} runs {listed_names(running)}.",) if running else ()

    def _about_wait(self) -> tuple[str, ...]:
        told = (loss_text(self._history), wait_text(self._history))
        return tuple(each for each in told if each)

    def _told_before(self, at: int) -> Explanation | None:
        """The scheduler's explanation of the placement, if it was given separately just before."""
        told = [
            fact.explanation
            for fact in self._history.facts
            if isinstance(fact, ExplainedRecord) and fact.at <= at
        ]
        return told[-1] if told and told[-1].is_choice else None

    def _why_not(self, record: Decisive, state: str) -> WhyAnswer:
        """What makes it impossible, or else what is in the way, or else the record's own reason; for an
        abandoned task, also that of the last attempt."""
        history = self._history
        given_up = ""
        if isinstance(record, AbandonedRecord):
            earlier = [x for x in history.facts if isinstance(x, RefusedRecord | ExplainedRecord)]
            if earlier and record.explanation.refused is not None:
                given_up = record.explanation.refused.sentence() + "; at last, "
            record = earlier[-1] if earlier else record
        match record:
            case RefusedRecord():
                refusal = history.refusal(record)
                explanation = Explanation(refused=refusal, remedy=refusal.remedy())
            case (
                ExplainedRecord(explanation=explanation) | AbandonedRecord(explanation=explanation)
            ):
                pass
            case _:
                text = StoryTeller(history).text(record)
                return WhyAnswer(
                    task=self.task,
                    state=state,
                    sentence=f"{self.task} has no machine: {text}, and no scheduler "
                    "has decided on it again.",
                )
        miss = explanation.nearest_miss
        answer = WhyAnswer(
            task=self.task,
            state=state,
            sentence=f"{self.task} has no machine: {given_up}{reason_of(explanation, history)}.",
            looked_at=explanation.looked_at,
            feasible=explanation.feasible,
            ruled_out=exclusions(explanation.ruled_out, history),
            nearest_miss="" if miss is None else miss.sentence(history.name(miss.machine)),
            remedy=explanation.remedy,
            price=explanation.price,
        )
        can = self._capabilities(getattr(record, "scheduler", ""))
        if (demand := self._never(can)) is not None:
            sentence = f"{self.task} cannot run: {demand}."
            details = (
                (f"{given_up[0].upper()}{given_up.partition(';')[0][1:]}.",) if given_up else ()
            )
            return structs.replace(
                answer,
                sentence=sentence,
                details=details,
                remedy=demand.remedy,
                ruled_out={},
                nearest_miss="",
            )
        heeds_gangs = can is None or can.gang
        if (lack := self._shortage(explanation, record.at, heeds_gangs)) is not None:
            return self._with_shortage(answer, lack, given_up)
        return answer

    def _with_shortage(self, answer: WhyAnswer, lack: Shortage, given_up: str) -> WhyAnswer:
        details, remedy = lack.details, lack.remedy
        if answer.price is not None:
            priced = price_text(answer.price, self._history)
            details = (*details, f"{priced[0].upper()}{priced[1:]}.")
            remedy = ", or ".join(filter(None, (answer.remedy, remedy)))
        return structs.replace(
            answer,
            sentence=f"{self.task} has no machine: {given_up}{lack.cause}.",
            details=details,
            remedy=remedy,
            nearest_miss=lack.nearest_miss or answer.nearest_miss,
        )

    def _capabilities(self, scheduler: str) -> Capabilities | None:
        """Of the engine of a scheduler, or of a part of it, which is named after a colon; None if it is
        not known here."""
        name = scheduler.partition(":")[0]
        for entry in self._run.journal.header().setup.fleet:
            if name in entry.scheduler_names():
                engine = ENGINES.get(entry.engine)
                return None if engine is None else engine.capabilities
        return None

    def _never(self, can: Capabilities | None) -> UnmeetableDemand | None:
        """What makes it impossible, unless the engine ignores it."""
        history = self._history
        if history.group is None:
            return None
        setup = self._run.journal.header().setup
        machines = self._run.journal.largest_machines()
        if machines is None:
            return None
        job = history.spec
        mine = job.groups.index(history.group)
        if setup.is_overruled:
            # Another system marks the machines that tasks may use, and what a journal has of one job
            # need not say which: only what is impossible on any machine is certain.
            anywhere = tuple(structs.replace(group, requires={}) for group in job.groups)
            job = structs.replace(job, groups=anywhere)
        for demand in Feasibility(machines, setup.cell.constraints, setup.cell.device_resource).of(
            job
        ):
            if demand.code == "gang" and can is not None and not can.gang:
                continue
            if demand.code == "apart" and can is not None and not can.constraints:
                continue
            if job.gang or demand.group in (-1, mine):
                return demand
        return None

    def _shortage(self, explanation: Explanation, at: int, heeds_gangs: bool) -> Shortage | None:
        """A lack of room, if that is the reason that the scheduler gave."""
        refused = explanation.refused
        if explanation.forbidden or "queue full" in explanation.ruled_out:
            return None
        if refused is not None and refused.why not in (Why.TOGETHER, Why.NO_ROOM, Why.ATTEMPTS):
            return None
        job, group = self._history.spec, self._history.group
        found = None
        # What is true by now tells more than what was when its scheduler last said something.
        for when in (self._run.reached, at):
            cell = self._cell_at(when)
            if cell is None or group is None:
                return None
            by = _scheduler_of(self._history)
            found = shortage(job, group, cell, by, is_gang=job.gang and heeds_gangs)
            if found is None or found.remedy:
                return found
        # There is room, and a scheduler that saw it has a reason of its own.
        saw_none = explanation.looked_at and not explanation.feasible
        return found if saw_none and explanation.price is None else None

    def _violated(self) -> tuple[str, ...]:
        """The constraints that the task violates where it runs, or did before it ended."""
        history = self._history
        setup = self._run.journal.header().setup
        operator = dict.fromkeys(setup.cell.constraints)
        for entry in setup.fleet:
            operator.update(dict.fromkeys(_own_constraints(entry.settings)))
        if not history.spec.constraints and not operator:
            return ()
        ended = history.last_end()
        cell = self._cell_at(self._run.reached if ended is None else ended - 1)
        if cell is None:
            return ()
        task = task_number(history.number, history.index)
        return tuple(cell.broken(task, tuple(operator)))

    def _cell_at(self, at: int) -> Occupancy | None:
        state = self._state
        return None if state is None else Occupancy(state, at)

    @cached_property
    def _state(self) -> RunState | None:
        if not self._is_whole:
            return None
        try:
            return self._run.state
        except RunDirectoryError:
            return None


def _scheduler_of(history: TaskHistory) -> str:
    return str(getattr(history.decisive, "scheduler", "its scheduler"))


def _own_constraints(settings: Mapping[str, Any]) -> Iterator[Constraint]:
    """The operator's constraints in the settings of a fleet entry."""
    for each in settings.get("operator", ()):
        yield each if isinstance(each, Constraint) else read_constraint(each)
