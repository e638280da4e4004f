"""The native runtime through random sequences of calls: queues, probes, stealing, shared work, room and
reports, with all that can be read of it after each."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from drawn_clusters import dice_of
from pinned_digests import require_digests
from runtime_bench import MACHINES, Bench, ints, longs
from told_values import outcome, told

from argosy._core import (
    LineBuffer,
    PlacementNews,
    ProbeTerms,
    QueueOrder,
    QueueRules,
    TaskState,
    WaitView,
)
from argosy.campaign.dice import Dice
from argosy.model.jobs import job_of
from argosy.model.tasks import first_tasks

PINNED: Final = Path(__file__).parent / "pinned"
OVER: Final = (TaskState.FINISHED, TaskState.FAILED, TaskState.ABANDONED, TaskState.CANCELLED)


def rules(dice: Dice) -> QueueRules:
    return QueueRules(
        order=dice.one_of(tuple(QueueOrder)),
        slack=dice.one_of((0, 1, 3)),
        limit=dice.one_of((0, 0, 1, 3)),
        start_delay=dice.one_of((0, 0, 4)),
        long_above=dice.one_of((0, 10)),
        steal_attempts=dice.one_of((0, 0, 3)),
        steal_from=dice.one_of((0, 2)),
        steal_limit=dice.one_of((1, 2)),
        steal_seed=dice.among(0, 9),
    )


class DrawnRuntime:
    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.bench = Bench(rules(dice))
        self.runtime, self.board = self.bench.runtime, self.bench.board
        self.buffer = LineBuffer()
        self.runtime.record_into(self.buffer)
        self.runtime.tell_starts(dice.chance(0.5))
        self.runtime.beat_every(dice.one_of((0, 15)), dice.chance(0.5))
        self.runtime.set_round_trip(dice.one_of((0, 5)))
        self.runtime.set_hop(dice.one_of((-1, 0, 2)))
        if dice.chance(0.3):
            self.runtime.cut_off(0, 20, 60)
        if dice.chance(0.5):
            self.runtime.hear_own(0)
        self.view = WaitView()
        self.view.learn(np.full(MACHINES, 2, np.int64), np.ones(MACHINES, np.uint8))
        self.view.know_shape(self.bench.shape, longs(1))
        if dice.chance(0.5):
            self.runtime.listen(0, self.view)
        self.requirement = self.runtime.add_requirement([0])
        self.probes: list[int] = []

    def tasks(self, *states: TaskState) -> Any:
        found = [
            task
            for job in range(self.board.jobs)
            for state in states
            for task in self.board.tasks_in(job, state).tolist()
        ]
        first = self.dice.among(0, max(0, len(found) - 1))
        return longs(*found[first : first + self.dice.among(1, 3)])

    def machines(self, count: int) -> Any:
        return ints(*(self.dice.among(0, MACHINES - 1) for _ in range(count)))

    def step(self) -> Any:
        dice, runtime = self.dice, self.runtime
        at = runtime.now + dice.one_of((0, 1, 5))
        match dice.among(0, 15):
            case 0 | 1:
                count = dice.among(1, 4)
                estimate, time = dice.one_of((0, 7, 20)), dice.one_of((-1, 0, 6, 30))
                shape = self.bench.shape
                return runtime.add_plain_job(runtime.now, 0, count, shape, estimate, time)
            case 2:
                number = runtime.add_job(runtime.now, 0, [(2, self.bench.shape, 7)])
                runtime.share_work(number)
                runtime.add_pool(number, longs(dice.among(1, 5), 2), longs(9, dice.among(0, 9)))
                return number
            case 3 | 4 | 5:
                tasks = self.tasks(TaskState.PENDING)
                machines = self.machines(len(tasks))
                first = dice.one_of((0, 3))
                estimate = dice.one_of((None, 3, 50))
                return runtime.enqueue(
                    at, 0, tasks, machines, estimate, (), first, dice.one_of((0, 2))
                )
            case 6:
                if not self.board.jobs:
                    return None
                job = dice.among(0, self.board.jobs - 1)
                terms = ProbeTerms(
                    job, 0, self.bench.scheduler, self.bench.shape, dice.one_of((3, 40))
                )
                return runtime.probe(at, terms, self.machines(dice.among(1, 3)))
            case 7:
                tasks = self.tasks(TaskState.PENDING)
                if not len(tasks):
                    return None
                job = job_of(int(tasks[0]))
                own = np.intersect1d(tasks, first_tasks(job, self.board.tasks(job)))
                terms = ProbeTerms(job, 0, self.bench.scheduler, self.bench.shape, 8)
                sticky, cancel = dice.chance(0.5), dice.chance(0.5)
                return runtime.deal(at, terms, self.machines(len(own) * 2), own, sticky, cancel)
            case 8 | 9:
                ready = runtime.take_ready()
                answers = []
                for probe, job, *_ in ready:
                    pending = self.board.tasks_in(job, TaskState.PENDING).tolist()
                    if pending and dice.chance(0.8):
                        answers.append((probe, runtime.bind(probe, pending[0])))
                    else:
                        answers.append((probe, runtime.cancel(probe)))
                return ready, answers
            case 10:
                tasks = self.tasks(TaskState.RUNNING)
                ends = []
                for task in tasks.tolist():
                    incarnation = runtime.incarnation(task) + dice.one_of((0, 0, 1))
                    state = dice.one_of((TaskState.PENDING, *OVER[1:]))
                    if dice.chance(0.5):
                        ends.append(runtime.end_task(task, incarnation))
                    else:
                        ends.append(runtime.stop_task(task, incarnation, state))
                return ends
            case 11:
                return [runtime.cancel_task(task) for task in self.tasks(TaskState.QUEUED).tolist()]
            case 12:
                machine = dice.among(0, MACHINES - 1)
                if dice.chance(0.5):
                    return runtime.lose_queue(machine), runtime.lose_probes(machine)
                return runtime.pump(machine)
            case 13:
                return runtime.await_room(self.machines(dice.among(1, 3)))
            case 14:
                news = PlacementNews(
                    longs(5), np.zeros(1, np.uint8), ints(1), 9, self.bench.shape, 1, 0
                )
                return runtime.gossip([0], at, news)
            case _:
                if self.board.jobs:
                    return runtime.attempt(self.board.jobs - 1, dice.one_of((0, -1, 3)), 5)
                return None

    def go(self) -> list[str]:
        """Lets some time pass."""
        limit = self.runtime.now + self.dice.one_of((0, 3, 10, 25))
        lines = []
        for _ in range(30):
            # Reports that nobody takes come again.
            item = self.runtime.next(limit)
            if item is None:
                break
            lines.append(told(item))
            lines.append(self.notices())
        if not self.runtime.has_events or self.runtime.next_at > limit:
            self.runtime.advance(limit)
        return lines

    def state(self) -> str:
        runtime, board = self.runtime, self.board
        lines = [
            told([runtime.now, runtime.next_at, runtime.has_events, runtime.open_tasks]),
            told([runtime.queue_state(), runtime.queue_state(True), runtime.queue_room()]),
            told([runtime.queue_state(False, True), runtime.queued(), runtime.stolen]),
            told([runtime.task_columns(), runtime.running_columns(), runtime.pool_columns()]),
            told([runtime.integrals(), runtime.samples(), runtime.ends_told]),
            told([board.counts(), board.job_columns(), board.open_tasks, board.thought_by_job()]),
            told([board.abandoned_by_job(), board.cancelled_by_job()]),
            told([self.view.work(), self.view.held(), self.view.waiting]),
            told([self.bench.cell.used_total, self.bench.cell.claims]),
        ]
        for job in range(board.jobs):
            each = first_tasks(job, board.tasks(job))
            facts = [(board.state(t), runtime.facts(t), runtime.is_hold(t)) for t in each.tolist()]
            lines.append(told([facts, board.is_over(job), board.owner(job)]))
        return "\n".join(lines)

    def notices(self) -> str:
        runtime = self.runtime
        taken = [runtime.take_finished(), runtime.take_lost(), runtime.take_refused()]
        more = [runtime.take_phases(), runtime.take_roomy(), runtime.take_starts()]
        return told([taken, more, self.board.take_done(), self.buffer.take()])


@pytest.mark.parametrize("part", range(3))
def test_sequences_of_calls_are_pinned(part: int, request: pytest.FixtureRequest) -> None:
    outcomes = {}
    for number in range(24):
        drawn = DrawnRuntime(dice_of("runtime", part, number))
        lines = []
        for _ in range(24):
            lines.append(outcome(drawn.step))
            lines += drawn.go()
            lines.append(drawn.state())
            if drawn.dice.chance(0.3):
                lines.append(drawn.notices())
        outcomes[f"{part} {number}"] = "\n".join(lines)
    require_digests(PINNED / f"runtime_{part}.txt", outcomes, request.config)
