"""Queues of hundreds of entries, from which entries are taken at both ends and in the middle."""

from __future__ import annotations

import numpy as np
import pytest
from runtime_bench import Bench, ints

from argosy._core import QueueOrder, QueueRules, Random
from argosy.model.jobs import job_of

COUNT = 220
ESTIMATES = (1, 2, 3, 5, 8, 13, 40, 90)


class Entry:
    def __init__(self, task: int, estimate: int, slack: int) -> None:
        self.task, self.estimate, self.slack = task, estimate, slack


class Queue:
    """What the order of a queue means, read slowly; every task is the only one of its job."""

    def __init__(self, rules: QueueRules, slack: int, long_above: int, is_ordered: bool) -> None:
        self.rules, self.slack, self.long_above = rules, slack, long_above
        self.is_ordered = is_ordered
        self.entries: list[Entry] = []

    def add(self, task: int, estimate: int) -> None:
        self.entries.append(Entry(task, estimate, self.slack * estimate if self.slack else 2**62))

    def is_long(self, entry: Entry) -> bool:
        return 0 < self.long_above < entry.estimate

    def next(self) -> Entry:
        if not self.is_ordered or self.is_long(self.entries[0]):
            return self.entries[0]
        best, left = self.entries[0], 2**62
        for entry in self.entries:
            # What is short enough overtakes; where there are long ones, it may use up the slack.
            fits = entry.estimate <= left if self.long_above else entry.estimate < left
            if fits and entry.estimate < best.estimate:
                best = entry
            if not self.is_long(entry):
                left = min(left, entry.slack)
        return best

    def take(self) -> int:
        entry = self.next()
        at = self.entries.index(entry)
        if not self.is_long(entry):
            for before in self.entries[:at]:
                before.slack -= min(before.slack, entry.estimate)
        self.entries.remove(entry)
        return entry.task

    def cancel(self, task: int) -> None:
        self.entries = [entry for entry in self.entries if entry.task != task]


def go_on(bench: Bench) -> None:
    while bench.runtime.next(bench.runtime.now) is not None:
        bench.runtime.take_finished()


@pytest.mark.parametrize("long_above", [0, 10])
@pytest.mark.parametrize("slack", [0, 2, 30])
@pytest.mark.parametrize("order", list(QueueOrder))
def test_a_long_queue_starts_its_entries_in_order(
    order: QueueOrder, slack: int, long_above: int
) -> None:
    rules = QueueRules(order=order, slack=slack, long_above=long_above)
    bench, random = Bench(rules), Random(slack + long_above)
    bench.launch(bench.job(2))
    bench.runtime.tell_starts(True)
    # The shortest first without a slack is the same order whatever is long.
    is_heap = order is QueueOrder.SHORTEST_FIRST and not slack
    queue = Queue(rules, slack, 0 if is_heap else long_above, order is not QueueOrder.FCFS)
    waiting: list[int] = []

    def add(count: int) -> None:
        for _ in range(count):
            (task,) = bench.job()
            estimate = ESTIMATES[random.below(len(ESTIMATES))]
            bench.runtime.set_groups(job_of(int(task)), [(1, bench.shape, estimate)])
            bench.runtime.enqueue(bench.runtime.now, bench.scheduler, np.array([task]), ints(0))
            queue.add(int(task), estimate)
            waiting.append(int(task))
        go_on(bench)

    add(COUNT)
    running = [int(task) for task in bench.cell.claims_on(0)]
    bench.runtime.take_starts()
    for number in range(2 * COUNT):
        if number < COUNT // 2:
            add(1)
        if random.below(6) == 0 and len(waiting) > 2:
            gone = waiting.pop(random.below(len(waiting)))
            assert bench.runtime.cancel_task(gone)
            queue.cancel(gone)
        if not queue.entries:
            break
        expected = queue.take()
        assert bench.end(running.pop(0))
        go_on(bench)
        started = bench.runtime.take_starts()[0].tolist()
        assert started == [expected], number
        running += started
        waiting.remove(expected)
    assert not waiting
