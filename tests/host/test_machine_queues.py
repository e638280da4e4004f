"""Queues, probes and loads of the native runtime, counted by hand on one machine."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from runtime_bench import MACHINES, SLOTS, Bench, ints, longs

from argosy._core import NEVER, ProbeTerms, QueueOrder, QueueRules, TaskState
from argosy.cell.waits import WaitView
from argosy.model.jobs import job_of


class QueueBench(Bench):
    """Machine 0 is full of two tasks with estimates of 7, and nothing else has happened."""

    def __init__(self, rules: QueueRules | None = None, full: int = SLOTS) -> None:
        super().__init__(rules)
        self.busy = self.job(SLOTS)
        self.launch(self.busy[:full])
        self.runtime.tell_starts(True)
        self.double = self.cell.shape([SLOTS], [], 0)
        #: What was reported.
        self.refused: list[int] = []
        self.roomy: list[int] = []
        self.ready: list[tuple[int, ...]] = []

    def send(self, *estimates: int, after: int = 0) -> NDArray[np.int64]:
        """Tasks with these estimates, to the queue of machine 0."""
        tasks = self.job(len(estimates))
        self.know(tasks, [-1] * len(tasks), estimates)
        machines = np.zeros(len(tasks), np.int32)
        self.runtime.enqueue(self.runtime.now + after, self.scheduler, tasks, machines)
        return tasks

    def send_double(self) -> int:
        """A task that needs the whole machine."""
        (task,) = self.job()
        self.runtime.set_groups(job_of(int(task)), [(1, self.double, 7)])
        self.runtime.enqueue(self.runtime.now, self.scheduler, longs(task), ints(0))
        return int(task)

    def go(self, until: int = NEVER) -> None:
        """All that happens until then."""
        while self.runtime.next(until) is not None:
            self.take()
        self.take()

    def take(self) -> None:
        self.runtime.take_finished()
        self.runtime.take_lost()
        self.refused += self.runtime.take_refused()[0].tolist()
        self.roomy += self.runtime.take_roomy().tolist()
        self.ready += self.runtime.take_ready()

    def starts(self) -> list[int]:
        tasks: list[int] = self.runtime.take_starts()[0].tolist()
        return tasks

    def load(self, **options: bool) -> tuple[int, int]:
        """Entries in the queue of machine 0, and its expected wait."""
        lengths, waits = self.runtime.queue_state(**options)
        return int(lengths[0]), int(waits[0])


def test_the_shortest_goes_first_also_after_one_in_the_middle_was_cancelled() -> None:
    estimates = [1, 5, 2, 8, 9, 3, 4]
    for cancelled in range(len(estimates)):
        bench = QueueBench(QueueRules(order=QueueOrder.SHORTEST_FIRST))
        tasks = bench.send(*estimates)
        bench.go()
        assert bench.runtime.cancel_task(int(tasks[cancelled]))
        running, started = bench.busy.tolist(), []
        while running:
            assert bench.end(running.pop(0))
            started += (now := bench.starts())
            running += now
        left = sorted(set(estimates) - {estimates[cancelled]})
        assert started == [tasks[estimates.index(estimate)] for estimate in left]


def test_the_expected_wait_is_what_is_queued_and_what_is_left_of_what_runs() -> None:
    bench = QueueBench()
    bench.send(5)
    bench.go()
    assert bench.load() == (1, 5 + 14)
    bench.runtime.advance(3)
    assert bench.load() == (1, 5 + 14 - 2 * 3)
    bench.runtime.advance(30)
    # Nothing is expected of tasks that have run longer than they should.
    assert bench.load() == (1, 5)


def test_every_start_takes_its_time() -> None:
    bench = QueueBench(QueueRules(start_delay=4))
    bench.send(5)
    bench.go()
    assert bench.load() == (1, 5 + 14 + 2 * 4)


@pytest.mark.parametrize("counts_sent", [False, True])
def test_tasks_on_their_way_count_once_where_they_count(counts_sent: bool) -> None:
    bench = QueueBench()
    bench.runtime.beat_every(0, counts_sent)
    (task,) = bench.send(5, after=2)
    assert bench.load() == (0, 14 + 5 * counts_sent)
    bench.go(1)
    assert bench.load() == (0, 14 + 5 * counts_sent)
    bench.go(2)
    assert bench.load() == (1, 5 + 14 - 2 * 2)
    assert bench.runtime.cancel_task(int(task))
    assert bench.load() == (0, 14 - 2 * 2)
    (under_way,) = bench.send(5, after=2)
    assert bench.runtime.cancel_task(int(under_way))
    assert bench.load() == (0, 14 - 2 * 2)
    bench.go(4)
    assert bench.load() == (0, 14 - 2 * bench.runtime.now)


def test_estimates_above_the_cut_are_long_wherever_they_are() -> None:
    bench = QueueBench(QueueRules(long_above=10), full=1)
    long, *_ = bench.send(11, 10, 12)
    bench.go()
    # 11 has started, in the free half; 10 is not long, and 12 waits.
    assert bench.starts() == [long]
    assert bench.load() == (2, 10 + 12 + 7 + 11)
    assert bench.load(only_long=True) == (1 + 1, 12 + 11)


def test_reports_are_as_of_the_last_heartbeat() -> None:
    bench = QueueBench()
    bench.runtime.beat_every(10, False)
    bench.go(3)
    bench.runtime.advance(3)
    bench.send(50)
    bench.go(9)
    bench.runtime.advance(9)
    assert bench.load() == (1, 50)
    assert bench.load(as_of_beat=True)[1] == 0
    bench.runtime.advance(10)
    assert bench.load(as_of_beat=True) == (1, 50)


class TestRoom:
    def test_a_queue_takes_as_many_as_its_limit(self) -> None:
        bench = QueueBench(QueueRules(limit=2))
        assert bench.runtime.queue_room().tolist() == [2] * 5
        tasks = bench.send(1, 1, 1)
        bench.go()
        assert bench.refused == [tasks[2]]
        assert bench.runtime.queue_room().tolist() == [0, 2, 2, 2, 2]
        assert QueueBench().runtime.queue_room().tolist() == [NEVER] * 5

    def test_what_could_start_but_for_those_who_wait_finds_the_queue_full(self) -> None:
        bench = QueueBench(QueueRules(limit=1), full=1)
        bench.send_double()
        (small,) = bench.send(1)
        bench.go()
        assert bench.refused == [small]

    def test_room_is_told_once_to_those_who_wait_for_it(self) -> None:
        bench = QueueBench(QueueRules(limit=1))
        (first,) = bench.send(1)
        bench.go()
        assert bench.end(bench.busy[0])
        bench.go()
        assert bench.roomy == [], "nobody waits for it"
        (second,) = bench.send(1)
        bench.go()
        bench.runtime.await_room(ints(0))
        assert bench.runtime.cancel_task(int(second))
        bench.go()
        assert bench.roomy == [0]
        (third,) = bench.send(1)
        bench.go()
        assert bench.runtime.cancel_task(int(third))
        bench.go()
        assert bench.roomy == [0]
        assert bench.state(first) is TaskState.RUNNING

    def test_a_cancelled_task_lets_those_behind_it_start(self) -> None:
        bench = QueueBench(full=1)
        double = bench.send_double()
        (small,) = bench.send(1)
        bench.go()
        assert bench.starts() == []
        assert bench.runtime.cancel_task(double)
        assert bench.starts() == [small]


class TestProbes:
    def dealt(self, bench: QueueBench) -> int:
        """A probe of machine 0 that needs all of it, with its task in hand."""
        (task,) = bench.job()
        terms = ProbeTerms(job_of(int(task)), 0, bench.scheduler, bench.double, 7)
        bench.runtime.deal(bench.runtime.now, terms, ints(0), longs(task))
        return int(task)

    def test_a_machine_that_drains_loses_probes_with_a_hand_and_goes_on(self) -> None:
        bench = QueueBench(QueueRules(limit=2), full=1)
        task = self.dealt(bench)
        (small,) = bench.send(1)
        bench.go()
        bench.runtime.await_room(ints(0))
        bench.cell.begin()
        bench.cell.drain(0, True)
        bench.runtime.lose_probes(0)
        assert bench.starts() == [small]
        assert bench.state(task) is TaskState.PENDING
        bench.go()
        assert bench.roomy == [0]

    def test_a_probe_without_a_hand_stays_at_a_machine_that_drains(self) -> None:
        bench = QueueBench()
        bench.runtime.probe(0, bench.terms(int(bench.busy[0])), ints(0))
        bench.go()
        bench.cell.begin()
        bench.cell.drain(0, True)
        bench.runtime.lose_probes(0)
        assert bench.end(bench.busy[0])
        bench.go()
        assert [probe for probe, *_ in bench.ready] == [0]

    def test_a_scheduler_that_stops_takes_its_own_probes_along(self) -> None:
        bench = QueueBench()
        job = job_of(int(bench.busy[0]))
        mine = ProbeTerms(job, 0, bench.scheduler, bench.shape, 7)
        theirs = ProbeTerms(job, 1, bench.scheduler, bench.shape, 7)
        for terms in (mine, theirs):
            bench.runtime.probe(0, terms, ints(0, 1))
        bench.go()
        assert [bench.runtime.is_held(n) for n in range(4)] == [False, True, False, True]
        bench.ready.clear()
        bench.runtime.cancel_all(0)
        assert [bench.runtime.is_held(n) for n in range(4)] == [False, False, False, True]
        # In the queue, only the other's are left.
        assert bench.end(bench.busy[0])
        bench.go()
        assert [owner for *_, owner in bench.ready] == [1]

    def test_a_slot_is_given_away_once(self) -> None:
        bench = QueueBench(full=0)
        bench.runtime.probe(0, bench.terms(int(bench.busy[0])), ints(0))
        bench.go()
        ((probe, *_),) = bench.ready
        assert bench.runtime.bind(probe, int(bench.busy[0]))
        with pytest.raises(ValueError, match="holds no slot"):
            bench.runtime.bind(probe, int(bench.busy[1]))


class TestHands:
    @pytest.mark.parametrize(
        ("gone", "sticky", "back"),
        [
            ((), False, []),
            ((1,), False, [1]),
            ((0, 1), False, [0, 1]),
            # A sticky probe may serve any number of tasks, but one there must be.
            ((1,), True, []),
            ((0, 1), True, [0, 1]),
        ],
    )
    def test_tasks_without_a_probe_come_back(
        self, gone: tuple[int, ...], sticky: bool, back: list[int]
    ) -> None:
        bench = QueueBench()
        tasks = bench.job(2)
        others = bench.job(SLOTS)
        bench.launch(others, 1)
        terms = bench.terms(int(tasks[0]))
        bench.cell.begin()
        for machine in gone:
            bench.cell.remove_machine(machine)
        bench.runtime.deal(0, terms, ints(0, 1), tasks, sticky)
        lost: list[int] = []
        while bench.runtime.next(NEVER) is not None:
            lost += bench.runtime.take_lost()[0].tolist()
        assert sorted(lost) == [int(tasks[at]) for at in back]
        states = [bench.state(task) for task in tasks]
        assert states == [
            TaskState.PENDING if at in back else TaskState.QUEUED for at in range(len(tasks))
        ]

    @pytest.mark.parametrize(("asks_at", "holds"), [(51, True), (52, False)])
    def test_a_probe_asks_in_vain_until_it_could_know_that_nothing_is_left(
        self, asks_at: int, holds: bool
    ) -> None:
        bench = QueueBench(full=1)
        others = bench.job(SLOTS)
        bench.launch(others, 1)
        bench.runtime.set_round_trip(4)
        # Whoever asks at 10 is answered at 54, as if it had asked at 50.
        bench.runtime.cut_off(0, 5, 50)
        bench.runtime.advance(10)
        (task,) = bench.job()
        bench.runtime.deal(10, bench.terms(int(task)), ints(0, 1), longs(task), False, True)
        bench.go(10)
        assert bench.state(task) is TaskState.RUNNING
        bench.runtime.advance(asks_at)
        assert bench.end(others[0])
        there = bench.cell.claims_on(1).tolist()
        assert [bench.runtime.is_hold(each) for each in there] == [False, True][: 1 + holds]
        bench.go()
        assert bench.cell.claims_on(1).tolist() == [others[1]]

    @pytest.mark.parametrize(("asks_at", "holds"), [(11, True), (12, False)])
    def test_a_hand_whose_last_task_was_cancelled_is_empty_from_then_on(
        self, asks_at: int, holds: bool
    ) -> None:
        bench = QueueBench()
        bench.runtime.set_round_trip(4)
        bench.runtime.advance(10)
        (task,) = bench.job()
        bench.runtime.deal(10, bench.terms(int(task)), ints(0), longs(task), False, True)
        bench.go(10)
        assert bench.runtime.cancel_task(int(task))
        bench.runtime.advance(asks_at)
        assert bench.end(bench.busy[0])
        there = bench.cell.claims_on(0).tolist()
        assert [bench.runtime.is_hold(each) for each in there] == [False, True][: 1 + holds]


@pytest.mark.parametrize(
    ("state", "told"),
    [(TaskState.PENDING, 0), (TaskState.FAILED, 1), (TaskState.CANCELLED, 1)],
)
def test_wait_views_hear_of_a_stopped_task_only_if_it_is_over(state: TaskState, told: int) -> None:
    bench, view = QueueBench(), WaitView()
    view.learn(np.full(MACHINES, SLOTS, np.int64), np.ones(MACHINES, np.uint8))
    bench.runtime.listen(0, view)
    bench.runtime.set_hop(5)
    task = int(bench.busy[0])
    assert bench.runtime.stop_task(task, bench.runtime.incarnation(task), state)
    assert view.waiting == told


class TestStealing:
    def idle(self, bench: QueueBench, running: int = 1) -> None:
        """One of so many tasks on machine 1 ends."""
        others = bench.job(running)
        bench.launch(others, 1)
        bench.starts()
        assert bench.end(others[0])
        bench.go()

    def a_bench(self, most: int = 100) -> QueueBench:
        return QueueBench(QueueRules(steal_attempts=50, steal_limit=most))

    @pytest.mark.parametrize(
        ("waiting", "most", "stolen", "started"),
        [
            (1, 100, 1, [0]),
            (2, 100, 1, [1]),
            (3, 100, 2, [1, 2]),
            (5, 100, 3, [2, 3]),
            (5, 1, 1, [2]),
        ],
    )
    def test_an_idle_machine_takes_the_later_half_of_a_queue(
        self, waiting: int, most: int, stolen: int, started: list[int]
    ) -> None:
        bench = self.a_bench(most)
        tasks = bench.send(*range(1, waiting + 1))
        bench.go()
        self.idle(bench)
        assert bench.runtime.stolen == stolen
        assert bench.starts() == [int(tasks[at]) for at in started]

    def test_a_machine_with_a_task_left_steals_nothing(self) -> None:
        bench = self.a_bench()
        bench.send(1, 2)
        bench.go()
        self.idle(bench, running=2)
        assert bench.runtime.stolen == 0
        assert bench.starts() == []

    def test_a_stolen_probe_binds_its_task_where_it_is_then(self) -> None:
        bench = self.a_bench()
        (task,) = bench.job()
        bench.runtime.probe(0, bench.terms(int(task)), ints(0))
        bench.go()
        assert bench.ready == []
        self.idle(bench)
        ((probe, _, machine, _),) = bench.ready
        assert machine == 1
        assert bench.runtime.bind(probe, int(task))
        assert bench.cell.claim(int(task))[0] == 1

    def test_a_machine_steals_nothing_that_it_is_too_small_for(self) -> None:
        bench = self.a_bench()
        bench.send_double()
        (small,) = bench.send(1)
        double = bench.send_double()
        bench.go()
        bench.cell.begin()
        for machine in range(1, MACHINES):
            bench.cell.resize(machine, [1])
        self.idle(bench)
        # Of the later two it takes the one that fits.
        assert (bench.runtime.stolen, bench.starts()) == (1, [small])
        assert bench.state(double) is TaskState.QUEUED

    @pytest.mark.parametrize(("runs_long", "stolen"), [(True, 2), (False, 0)])
    def test_short_tasks_are_stolen_from_behind_a_long_one_that_runs(
        self, runs_long: bool, stolen: int
    ) -> None:
        rules = QueueRules(long_above=10, steal_attempts=50, steal_limit=100)
        bench = QueueBench(rules, full=1)
        bench.send(11 if runs_long else 10)
        bench.send(1, 2)
        bench.go()
        self.idle(bench)
        assert bench.runtime.stolen == stolen
