"""Stops a run that stands still: schedulers go on handling events, but time does not pass and nothing
changes.

An engine that tries again at once what was refused, or two that answer each other's messages without
delay, would otherwise keep a world at one instant for ever. The host counts the events that each
scheduler handles. Progress since the last look is any of these: time has passed; a job was submitted; a
machine joined; a task is over; more tasks have a machine, or a place in a queue, than before. A task
that was placed and came back is no progress; nor is a refused claim, a timer or a message.

Without progress, a scheduler may handle

    10,000 + 3,000 x min(open tasks, 1,000) + 20 x (open tasks + machines + schedulers)

events. The second term leaves room for engines that give up on a task after a thousand attempts at one
instant (`omega` without decision time and back-off); the third for instants at which every task, machine
and scheduler concerns every scheduler. A look costs a few microseconds per that many events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from argosy.host.scheduler import Scheduler
from argosy.model.effects import Effect
from argosy.model.errors import EngineFault
from argosy.model.events import Committed, Event, TasksLost
from argosy.model.explanations import Why
from argosy.model.units import format_duration

if TYPE_CHECKING:
    from argosy.host.host import Host

#: So many answers of a scheduler that stands still are looked at, for the message.
_OBSERVED: Final = 100
#: The most frequent of them are told.
_TOLD: Final = 2


class ProgressMark(NamedTuple):
    """How far a world has come. Of two marks, one is ahead if any of its numbers is larger."""

    now: int
    jobs: int
    machines: int
    tasks_over: int
    tasks_not_pending: int


class StandstillGuard:
    def __init__(self, host: Host) -> None:
        self._host = host
        #: By scheduler: the mark at its last look, and what it answered since without progress.
        self._marks: dict[int, ProgressMark] = {}
        self._answers: dict[int, Counter[str]] = {}

    def look(self, scheduler: Scheduler, event: Event, effects: Sequence[Effect], now: int) -> None:
        """The scheduler has handled as many events as it may without progress."""
        index, mark = scheduler.index, self._mark(now)
        last = self._marks.get(index)
        if last is None or any(here > before for here, before in zip(mark, last, strict=True)):
            self._marks[index] = mark
            self._answers.pop(index, None)
            scheduler.next_look = scheduler.handled + self._allowed()
            return
        answers = self._answers.setdefault(index, Counter())
        answers[_describe(event, effects)] += 1
        if answers.total() < _OBSERVED:
            return
        often = " and ".join(what for what, _ in answers.most_common(_TOLD))
        raise EngineFault(
            f"{scheduler.label} makes no progress at {format_duration(now)}: it goes on handling events "
            f"at this instant, and no task is placed or over; it kept answering {often}",
            hint="an engine that cannot place a task waits (`WakeMe`) before it tries again",
        )

    def _mark(self, now: int) -> ProgressMark:
        host = self._host
        _, queued, running, *over = host.board.counts().tolist()
        ended = sum(over)
        return ProgressMark(
            now, len(host.jobs), host.view.machines, ended, queued + running + ended
        )

    def _allowed(self) -> int:
        host = self._host
        tasks = host.runtime.open_tasks
        parties = tasks + host.view.machines + len(host.schedulers)
        return 10_000 + 3_000 * min(tasks, 1_000) + 20 * parties


def _describe(event: Event, effects: Sequence[Effect]) -> str:
    """``TasksLost (queue full) with Enqueue``."""
    heard = type(event).__name__
    whys: list[Why] = []
    if isinstance(event, TasksLost):
        whys = [event.why]
    elif isinstance(event, Committed) and not event.outcome.all_accepted:
        whys = [Why(why) for why in event.outcome.whys[~event.outcome.accepted].tolist()]
    if whys:
        heard += f" ({', '.join(sorted({why.name.lower().replace('_', ' ') for why in whys}))})"
    names = dict.fromkeys(type(effect).__name__ for effect in effects)
    return f"{heard} with {' and '.join(names) if names else 'nothing'}"
