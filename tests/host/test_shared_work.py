"""Work that a job's workers share, by hand; and how the use of the cell is sampled."""

from __future__ import annotations

import numpy as np
import pytest
from runtime_bench import SLOTS, Bench, longs

from argosy._core import NEVER, RuntimeEvent, TaskState

SECOND = 1_000_000


class SharedBench(Bench):
    """A job whose workers, two to a machine, share the phases given as (activities, time of each)."""

    def __init__(self, workers: int, *phases: tuple[int, int]) -> None:
        super().__init__()
        self.workers = self.job(workers)
        activities, times = zip(*phases, strict=True)
        self.runtime.add_pool(0, longs(*activities), longs(*times))

    def begin(self) -> None:
        for at in range(0, len(self.workers), SLOTS):
            self.launch(self.workers[at : at + SLOTS], machine=at // SLOTS)

    def go(self) -> list[int]:
        """When each phase ends, until nothing is left to happen."""
        ends = []
        while (event := self.runtime.next(NEVER)) is not None:
            if event[0] == RuntimeEvent.PHASES:
                ends += [event[1]] * len(self.runtime.take_phases())
            elif event[0] == RuntimeEvent.FINISHED:
                self.finished = self.runtime.take_finished()[0].tolist()
        return ends

    def leave(self, worker: int, at: int) -> None:
        assert self.runtime.next(at) is None
        self.runtime.advance(at)
        task = int(self.workers[worker])
        assert self.runtime.stop_task(task, self.runtime.incarnation(task), TaskState.PENDING)


def test_each_phase_takes_as_long_as_its_work_among_those_who_can_work_at_once() -> None:
    bench = SharedBench(3, (7, 10), (2, 5))
    assert bench.runtime.pool_columns()[3].tolist() == [24 + 5]
    bench.begin()
    # 70 among three, rounded up; then two of them 5 each.
    assert bench.go() == [24, 29]
    _, began, ended, _ = bench.runtime.pool_columns()
    assert (began.tolist(), ended.tolist()) == ([0], [29])
    assert bench.board.is_over(0)


@pytest.mark.parametrize("step", [1, -1])
def test_workers_end_in_order_whoever_came_first(step: int) -> None:
    bench = SharedBench(8, (8, 10))
    for at in range(0, 8, SLOTS)[::step]:
        bench.launch(bench.workers[at : at + SLOTS][::step].copy(), machine=at // SLOTS)
    assert bench.go() == [10]
    assert bench.finished == bench.workers.tolist()


def test_a_worker_that_leaves_loses_the_activity_it_was_at() -> None:
    bench = SharedBench(2, (4, 10))
    bench.begin()
    bench.leave(1, at=13)
    # 26 of 40 were done; the 3 since its last activity are done again, by the other alone.
    assert bench.go() == [13 + 14 + 3]


def test_what_a_worker_did_in_an_earlier_phase_is_not_lost() -> None:
    bench = SharedBench(2, (2, 7), (4, 10))
    bench.begin()
    assert bench.runtime.next(7) == (RuntimeEvent.PHASES, 7, 0, 0)
    assert bench.runtime.take_phases() == [(0, 0, 7)]
    bench.leave(1, at=13)
    assert bench.go() == [13 + 28 + 6]


def test_if_some_workers_are_idle_one_of_those_leaves() -> None:
    bench = SharedBench(2, (1, 10))
    bench.begin()
    bench.leave(0, at=4)
    assert bench.go() == [10]


def test_no_more_is_done_again_than_the_phase_has() -> None:
    bench = SharedBench(1, (1, 10))
    bench.begin()
    bench.leave(0, at=4)
    bench.runtime.advance(20)
    bench.launch(bench.workers)
    assert bench.go() == [30]


@pytest.mark.parametrize("seconds", [10, 398, 399, 400, 1_000, 10_000])
def test_samples_are_evenly_spaced_and_never_many(seconds: int) -> None:
    bench = Bench()
    bench.launch(bench.job(), duration=3 * SECOND + 1)
    while bench.runtime.next(seconds * SECOND) is not None:
        bench.runtime.take_finished()
    bench.runtime.advance(seconds * SECOND)
    rows = bench.runtime.samples()
    times, used, running = rows[:, 0], rows[:, 1], rows[:, -1]
    [spacing] = set(np.diff(times).tolist())
    assert times[0] == 0
    assert spacing == SECOND * 2 ** int(np.log2(spacing // SECOND))
    assert times[-1] <= seconds * SECOND < times[-1] + spacing
    assert len(rows) < 400
    assert len(rows) > 199 or spacing == SECOND
    assert (used > 0).tolist() == (times <= 3 * SECOND).tolist() == (running > 0).tolist()
