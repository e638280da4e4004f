"""Wait views against a slow twin, which keeps beliefs in dictionaries and reads every report anew."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.cell.waits import WaitView
from argosy.model.jobs import task_number
from argosy.model.random import Random

ENDED = 255
LAST_VERSION = 252


class Belief(msgspec.Struct, frozen=True):
    """Where a task is: odd versions are nowhere."""

    version: int = 0
    machine: int = -1
    work: int = 0
    shape: int = 0
    #: How often the machine had been emptied when the task was put there.
    epoch: int = 0

    @property
    def is_placed(self) -> bool:
        return self.version > 0 and self.version % 2 == 0


class PlacementReport(msgspec.Struct, frozen=True):
    due: int
    job: int
    index: int
    version: int
    machine: int
    estimate: int
    shape: int
    since: int
    begins: bool = True


class TwinJob:
    def __init__(self) -> None:
        self.beliefs: dict[int, Belief] = {}
        self.total = 0
        self.is_over = False

    def contents(self) -> frozenset[tuple[int, int, int]]:
        return frozenset(
            (index, belief.version, belief.machine if belief.is_placed else -1)
            for index, belief in self.beliefs.items()
            if belief.version
        )


class TwinView:
    def __init__(self, *, published: bool, plain: bool, lag: int, cost: int) -> None:
        self.published, self.plain, self.lag, self.cost = published, plain, lag, cost
        self.width = 0
        self.capacity: list[list[int]] = []
        self.open: list[bool] = []
        self.requests: dict[int, list[int]] = {}
        self.work: list[int] = []
        self.held: list[list[int]] = []
        self.epochs: list[int] = []
        self.blocked: set[int] = set()
        self.jobs: dict[int, TwinJob] = {}
        self.inbox: list[PlacementReport] = []
        self.free_at = 0
        self.times: list[tuple[int, int]] = []

    # What it is told.

    def learn(self, capacity: list[list[int]], is_open: list[bool]) -> None:
        self.widen(len(capacity[0]))
        self.capacity = [self.wide(row) for row in capacity]
        self.open = is_open
        for column in (self.work, self.epochs):
            column += [0] * (len(capacity) - len(column))
        self.held += [self.wide([]) for _ in range(len(capacity) - len(self.held))]

    def know_shape(self, shape: int, request: list[int]) -> None:
        if shape not in self.requests:
            self.widen(len(request))
            self.requests[shape] = self.wide(request)

    def widen(self, width: int) -> None:
        self.width = max(self.width, width)
        for rows in (self.capacity, list(self.requests.values()), self.held):
            for row in rows:
                row += [0] * (self.width - len(row))

    def wide(self, row: list[int]) -> list[int]:
        return row + [0] * (self.width - len(row))

    def job(self, number: int) -> TwinJob:
        return self.jobs.setdefault(number, TwinJob())

    def expect(self, number: int, total: int) -> None:
        if not self.published and not self.job(number).is_over:
            self.job(number).total = max(total, self.job(number).total)

    def post(self, report: PlacementReport) -> None:
        self.inbox.append(msgspec.structs.replace(report, due=report.due + self.lag))

    def settle(self, now: int) -> None:
        for report in sorted(self.inbox, key=lambda report: report.due):
            if report.due > now:
                break
            ends = max(self.free_at, report.due) + self.cost * report.begins
            if self.cost:
                if ends > now:
                    break
                self.free_at = ends
            self.inbox.remove(report)
            self.apply(report)

    def apply(self, report: PlacementReport) -> None:
        if report.machine >= len(self.capacity):
            return
        job, is_end = self.job(report.job), report.version == ENDED
        if is_end:
            self.blocked.discard(report.machine)
            belief = job.beliefs.get(report.index, Belief())
            if self.published or not (job.is_over or belief.version == ENDED):
                task = task_number(report.job, report.index)
                self.times.append((task, report.due - self.lag - report.since))
        if self.published:
            if report.shape in self.requests:
                by = self.work_of(report.shape, report.estimate, report.machine)
                self.push_back(report.machine, report.since, -by if is_end else by)
            return
        belief = job.beliefs.get(report.index, Belief())
        if self.is_news(job, belief, report.version, report.machine):
            self.enter(report.job, report.index, report.version, report.machine, report)

    def is_news(self, job: TwinJob, belief: Belief, version: int, machine: int) -> bool:
        if job.is_over:
            return False
        if version == belief.version and version % 2:
            return False
        return (version, machine) > (belief.version, belief.machine)

    def enter(
        self, number: int, index: int, version: int, machine: int, report: PlacementReport
    ) -> None:
        belief = Belief(version)
        if belief.is_placed:
            work = self.work_of(report.shape, report.estimate, machine)
            belief = Belief(version, machine, work, report.shape, self.epochs[machine])
        self.put(number, index, belief)

    def put(self, number: int, index: int, belief: Belief) -> None:
        job = self.job(number)
        self.count(job.beliefs.get(index, Belief()), -1)
        self.count(belief, 1)
        job.beliefs[index] = belief
        ended = sum(each.version == ENDED for each in job.beliefs.values())
        if belief.version == ENDED and job.total > 0 and ended == job.total:
            job.is_over = True

    def count(self, belief: Belief, sign: int) -> None:
        if not belief.is_placed or belief.machine >= len(self.capacity):
            return
        if belief.epoch != self.epochs[belief.machine]:
            return
        self.work[belief.machine] += sign * belief.work
        for d, amount in enumerate(self.requests[belief.shape]):
            self.held[belief.machine][d] += sign * amount

    def work_of(self, shape: int, estimate: int, machine: int) -> int:
        if self.plain:
            return estimate
        shares = (
            asked * (1.0 / has) if has else 0.0
            for asked, has in zip(self.requests[shape], self.capacity[machine], strict=True)
        )
        return int(estimate * max(shares))

    def push_back(self, machine: int, since: int, by: int) -> None:
        self.work[machine] = max(self.work[machine], since) + by

    # What it decides.

    def keys(
        self, shape: int, members: list[bool] | None, near: list[bool] | None, far: int
    ) -> dict[int, int]:
        """Of machines that could take a task of the shape."""
        asked, keys = self.requests[shape], {}
        for m, has in enumerate(self.capacity):
            if not self.open[m] or m in self.blocked or (members and not members[m]):
                continue
            if any(amount > most for amount, most in zip(asked, has, strict=True)):
                continue
            has_room = all(
                amount + held <= most
                for amount, held, most in zip(asked, self.held[m], has, strict=True)
            )
            waits = self.published or self.plain or not has_room
            keys[m] = (self.work[m] if waits else 0) + (far if near and not near[m] else 0)
        return keys

    def place(self, number: int, index: int, shape: int, machine: int, now: int, by: int) -> int:
        if self.published:
            self.push_back(machine, now, self.work_of(shape, by, machine))
            return 2
        before = self.job(number).beliefs.get(index, Belief())
        version = min((before.version | 1) + 1, LAST_VERSION)
        report = PlacementReport(0, number, index, version, machine, by, shape, now)
        self.enter(number, index, version, machine, report)
        return version

    def undo(self, number: int, index: int) -> int:
        if self.published:
            return 0
        job = self.job(number)
        belief = job.beliefs.get(index, Belief())
        if job.is_over:
            return ENDED
        if belief.is_placed:
            belief = Belief(belief.version + 1)
            self.put(number, index, belief)
        return belief.version

    def empty(self, machine: int) -> None:
        self.work[machine] = 0
        self.held[machine] = self.wide([])
        self.epochs[machine] += 1

    # Exchange.

    def told(self) -> list[int]:
        """Jobs that are not over, and of which something is known."""
        return sorted(
            number for number, job in self.jobs.items() if not job.is_over and job.contents()
        )

    def differing(self, other: TwinView) -> list[int]:
        """Jobs of the other's that differ here, then those of which it does not tell."""
        mine, theirs = set(self.told()), other.told()
        different = [
            number
            for number in theirs
            if number not in mine or self.job(number).contents() != other.job(number).contents()
        ]
        return different + sorted(mine - set(theirs))

    def join(self, other: TwinView, jobs: list[int]) -> None:
        for shape, request in other.requests.items():
            self.know_shape(shape, list(request))
        if other.published:
            for m in range(min(len(self.work), len(other.work))):
                self.work[m] = max(self.work[m], other.work[m])
        for number in jobs:
            if number not in other.jobs:
                continue
            theirs, mine = other.jobs[number], self.job(number)
            if theirs.is_over:
                for belief in mine.beliefs.values():
                    self.count(belief, -1)
                if not mine.is_over:
                    mine.beliefs = {index: Belief(ENDED) for index in range(theirs.total)}
                    mine.is_over, mine.total = True, theirs.total
                continue
            self.expect(number, theirs.total)
            for index, belief in sorted(theirs.beliefs.items()):
                before = mine.beliefs.get(index, Belief())
                if not self.is_news(mine, before, belief.version, belief.machine):
                    continue
                if not belief.is_placed:
                    self.put(number, index, belief)
                elif belief.machine < len(self.capacity):
                    epoch = self.epochs[belief.machine]
                    self.put(number, index, msgspec.structs.replace(belief, epoch=epoch))


class ViewAndTwin:
    """A view and its twin."""

    def __init__(self, **rules: Any) -> None:
        self.view, self.twin = WaitView(**rules), TwinView(**rules)
        self.view.record_times()

    def compare(self) -> None:
        view, twin = self.view, self.twin
        assert view.work().tolist() == twin.work
        assert view.held().tolist() == twin.held
        assert view.blocked == len(twin.blocked)
        assert view.waiting == len(twin.inbox)
        assert view.digests()[0].tolist() == twin.told()

    def take_times(self) -> None:
        times = [column.tolist() for column in self.view.take_times()]
        assert list(zip(*times, strict=True)) == self.twin.times
        self.twin.times = []


def tasks_in(job: int) -> int:
    return 1 + job % 4


class WaitStory:
    """Two views of the same cluster, and their twins, through the same random events."""

    def __init__(self, seed: int, **rules: Any) -> None:
        self.random = Random(seed).child("waits")
        self.both = [ViewAndTwin(**rules), ViewAndTwin(**rules)]
        self.now = 0
        self.width = 1 + self.below(2)
        self.capacity: list[list[int]] = []
        self.grow(3)
        for each in self.both:
            self.learn(each)
        self.requests = [[1 + self.below(6) for _ in range(self.width)] for _ in range(3)]
        #: Each digest stands for one content, and the other way round.
        self.contents: dict[int, Any] = {}
        self.digests: dict[Any, int] = {}

    def below(self, n: int) -> int:
        return self.random.below(n)

    def grow(self, machines: int) -> None:
        if self.below(8) == 0 and self.width < 4:
            self.width += 1
            for row in self.capacity:
                row.append(self.below(9))
        for _ in range(machines):
            self.capacity.append([self.below(9) for _ in range(self.width)])

    def learn(self, both: ViewAndTwin) -> None:
        is_open = [self.below(6) > 0 for _ in self.capacity]
        capacity = [list(row) for row in self.capacity]
        both.view.learn(np.array(capacity, np.int64).ravel(), np.array(is_open, np.uint8))
        both.twin.learn(capacity, is_open)

    def know(self, both: ViewAndTwin, shape: int) -> None:
        request = self.requests[shape]
        both.view.know_shape(shape, np.array(request, np.int64))
        both.twin.know_shape(shape, list(request))

    def choose(self, both: ViewAndTwin) -> None:
        shape, number, estimate = self.below(3), self.below(6), self.below(200)
        self.know(both, shape)
        both.twin.settle(self.now)
        job, total = both.twin.job(number), tasks_in(number)
        versions = [job.beliefs.get(i, Belief()).version for i in range(total)]
        indices = [
            i
            for i, version in enumerate(versions)
            if not job.is_over and (version == 0 or version % 2) and version != ENDED
        ]
        # Sets with the same number have the same machines; they are drawn from the number.
        number_of_set, far = self.below(12), self.below(2) * self.below(3) * 50
        size = len(both.twin.capacity)
        members = [m % 3 != number_of_set % 3 for m in range(size)] if number_of_set > 3 else None
        near = [m % 2 == number_of_set % 2 for m in range(size)] if number_of_set % 4 else None
        tasks = np.array([task_number(number, i) for i in indices], np.int64)
        machines, versions, feasible, score, second, second_score = both.view.choose(
            tasks,
            total,
            shape,
            estimate,
            self.now,
            Random(self.below(99)),
            number_of_set,
            members and np.array(members, np.uint8),
            near and np.array(near, np.uint8),
            far,
        )
        if indices:
            both.twin.expect(number, total)
        for at, index in enumerate(indices):
            keys = both.twin.keys(shape, members, near, far)
            if not keys:
                assert len(machines) == at
                break
            least = min(keys.values())
            machine = int(machines[at])
            assert keys[machine] == least
            if at == 0:
                assert (feasible, score) == (len(keys), least)
                others = {m: key for m, key in keys.items() if m != machine}
                expected = min(others.items(), key=lambda item: (item[1], item[0]), default=(-1, 0))
                assert (second, second_score) == expected
            version = both.twin.place(number, index, shape, machine, self.now, estimate)
            assert versions[at] == version

    def post(self) -> None:
        """A message to one of them or both; a report may be about a machine that is not known yet."""
        due, since = self.now + self.below(40), self.now - self.below(30)
        number, shape, estimate = self.below(6), self.below(3), self.below(200)
        indices = [self.below(tasks_in(number)) for _ in range(1 + self.below(3))]
        machines = [self.below(len(self.capacity) + 1) for _ in indices]
        hearers = [each for each in self.both if self.below(3)]
        if self.below(2):
            versions = [2 + self.below(4) for _ in indices]
            per_task, knows_total = self.below(2) == 0, self.below(2) == 0
            for both in hearers:
                self.know(both, shape)
                if knows_total:
                    both.view.expect(number, tasks_in(number))
                    both.twin.expect(number, tasks_in(number))
                both.view.post_placed(
                    due,
                    self.now,
                    np.array([task_number(number, i) for i in indices], np.int64),
                    np.array(versions, np.uint8),
                    np.array(machines, np.int32),
                    estimate,
                    shape,
                    since,
                    per_task,
                )
                for at, index in enumerate(indices):
                    where = number, index, versions[at], machines[at]
                    begins = at == 0 or per_task
                    both.twin.post(PlacementReport(due, *where, estimate, shape, since, begins))
            return
        for both in hearers:
            both.view.post_ended(
                due,
                self.now,
                np.array([task_number(number, i) for i in indices], np.int64),
                np.array(machines, np.int32),
                np.full(len(indices), estimate, np.int64),
                np.full(len(indices), shape, np.int32),
                np.full(len(indices), since, np.int64),
            )
            for index, machine in zip(indices, machines, strict=True):
                both.twin.post(
                    PlacementReport(due, number, index, ENDED, machine, estimate, shape, since)
                )

    def exchange(self) -> None:
        first = self.below(2)
        mine, theirs = self.both[first], self.both[1 - first]
        found = mine.view.differing(*theirs.view.digests()).tolist()
        if not mine.twin.published:
            assert found == mine.twin.differing(theirs.twin)
        jobs = found if self.below(2) else list(range(7))
        mine.view.join(theirs.view.state(np.array(jobs, np.int64)))
        mine.twin.join(theirs.twin, jobs)

    def step(self) -> None:
        both = self.both[self.below(2)]
        machine = self.below(len(both.twin.capacity))
        match self.below(24):
            case 0:
                self.grow(self.below(3))
                self.learn(both)
            case 1:
                both.view.empty(machine)
                both.twin.empty(machine)
            case 2:
                both.view.block(machine)
                both.twin.blocked.add(machine)
            case 3:
                until = self.now + self.below(40)
                both.view.occupy(until)
                both.twin.free_at = max(both.twin.free_at, until)
            case 4 | 5:
                number, index = self.below(6), self.below(4)
                version = both.view.undo(np.array([task_number(number, index)], np.int64))
                assert version.tolist() == [both.twin.undo(number, index)]
            case 6 | 7:
                self.exchange()
            case 8 | 9 | 10:
                both.view.settle(self.now)
                both.twin.settle(self.now)
            case 11:
                both.take_times()
            case 12 | 13 | 14 | 15 | 16:
                self.choose(both)
            case _:
                self.post()
        self.now += self.below(20)

    def compare(self) -> None:
        for both in self.both:
            both.compare()
            jobs = both.twin.jobs
            told = zip(both.twin.told(), both.view.digests()[1].tolist(), strict=True)
            known = [(digest, frozenset({(n, jobs[n].contents())})) for n, digest in told]
            whole = frozenset((n, job.contents()) for n, job in jobs.items() if job.contents())
            for digest, contents in (*known, (both.view.digest, whole)):
                assert self.contents.setdefault(digest, contents) == contents
                assert self.digests.setdefault(contents, digest) == digest


@pytest.mark.parametrize("reading", ["clean", "plain", "published"])
@settings(max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from([0, 15]), st.sampled_from([0, 7]))
def test_a_wait_view_agrees_with_its_slow_twin(
    reading: str, seed: int, lag: int, cost: int
) -> None:
    story = WaitStory(
        seed, published=reading == "published", plain=reading == "plain", lag=lag, cost=cost
    )
    for _ in range(60):
        story.step()
        story.compare()
