"""The slow twin of the native task runtime: queues, probes and loads of machines with one resource.

Lists that are scanned, and no count that is kept. Sticky probes and shared work are left out.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import msgspec

from argosy._core import NEVER, QueueOrder, Random, RuntimeEvent, TaskState

EVERYTHING = 2**63


class TwinRules(msgspec.Struct, frozen=True):
    order: QueueOrder = QueueOrder.FCFS
    slack: int = 0
    limit: int = 0
    start_delay: int = 0
    long_above: int = 0
    steal_attempts: int = 0
    steal_from: int = 0
    steal_limit: int = 0
    steal_seed: int = 0

    @property
    def is_unordered(self) -> bool:
        """Whether only the first entry of a queue has a certain place."""
        return self.order is QueueOrder.SHORTEST_FIRST and not self.slack

    def is_long(self, estimate: int) -> bool:
        return 0 < self.long_above < estimate


class TwinItem(msgspec.Struct, eq=False):
    """What waits in a queue or is on its way there: a task, or a probe, whose task is -1."""

    task: int
    probe: int
    job: int
    size: int
    estimate: int
    machine: int
    at: int
    placed: int = 0
    requirement: int = -1
    #: What is left of the slack by which others may overtake it.
    slack: int = EVERYTHING


class TwinHand(msgspec.Struct, eq=False):
    tasks: list[int]
    probes: int
    sent: int
    cancelled_after: int = -1
    emptied: int = -1


class TwinProbe(msgspec.Struct, eq=False):
    job: int
    owner: int
    machine: int
    hand: TwinHand | None
    state: str = "queued"


class TwinRun(msgspec.Struct, eq=False):
    task: int
    machine: int
    size: int
    estimate: int
    placed: int
    took_slot: int
    started: int


class TwinRuntime:
    def __init__(
        self,
        rules: TwinRules,
        capacity: list[int],
        attributes: list[int],
        round_trip: int,
        beat: int,
    ) -> None:
        self.rules, self.round_trip, self.beat = rules, round_trip, beat
        self.counts_sent = False
        self.capacity, self.attributes = capacity, attributes
        self.down: set[int] = set()
        self.draining: set[int] = set()
        self.stealing = Random(rules.steal_seed)
        self.now = 0
        self.timers: list[tuple[int, int, Callable[[], None]]] = []
        self.pushed = 0
        self.states: dict[int, TaskState] = {}
        #: Of each task: its job, size, estimate and duration.
        self.facts: dict[int, tuple[int, int, int, int]] = {}
        self.under_way: list[list[TwinItem]] = []
        self.queues: list[list[TwinItem]] = [[] for _ in capacity]
        #: Before anything has come to any of them, nobody steals.
        self.has_queues = False
        self.runs: dict[int, TwinRun] = {}
        self.probes: list[TwinProbe] = []
        #: Room that probes hold, by probe: machine and size.
        self.holds: dict[int, tuple[int, int]] = {}
        self.cuts: list[tuple[int, int, int]] = []
        self.awaited: set[int] = set()
        self.stolen = 0
        self.at_beat = {(m, is_long): 0 for m in range(len(capacity)) for is_long in (True, False)}
        self.finished: list[tuple[int, ...]] = []
        self.lost: list[tuple[int, ...]] = []
        self.refused: list[tuple[int, ...]] = []
        self.ready: list[tuple[int, ...]] = []
        self.roomy: list[int] = []
        self.starts: list[tuple[int, int, int]] = []
        self.rows: list[tuple[int, ...]] = []

    # The clock.

    def push(self, at: int, action: Callable[[], None]) -> None:
        self.pushed += 1
        heapq.heappush(self.timers, (at, self.pushed, action))

    def advance(self, at: int) -> None:
        if self.beat and at // self.beat > self.now // self.beat:
            self.at_beat = {key: self.total(*key) for key in self.at_beat}
        self.now = max(self.now, at)

    def next(self, limit: int) -> tuple[int, int, int, int] | None:
        while True:
            is_due = bool(self.timers) and self.timers[0][0] <= limit
            if not (is_due and self.timers[0][0] <= self.now) and (kind := self.report()):
                return kind, self.now, 0, 0
            if not is_due:
                return None
            at, _, action = heapq.heappop(self.timers)
            self.advance(at)
            action()

    def report(self) -> RuntimeEvent | None:
        for rows, kind in (
            (self.finished, RuntimeEvent.FINISHED),
            (self.lost + self.refused, RuntimeEvent.LOST),
            (self.ready, RuntimeEvent.PROBES),
            (self.roomy, RuntimeEvent.ROOM),
        ):
            if rows:
                return kind
        return None

    @property
    def next_at(self) -> int:
        if self.report():
            return self.now
        return self.timers[0][0] if self.timers else NEVER

    # Machines.

    def free(self, machine: int) -> int:
        held = [run.size for run in self.runs.values() if run.machine == machine]
        held += [size for where, size in self.holds.values() if where == machine]
        return self.capacity[machine] - sum(held)

    def can_start(self, machine: int, size: int) -> bool:
        return machine not in self.down and size <= self.free(machine)

    def unstarted(self, job: int) -> int:
        waiting = (TaskState.PENDING, TaskState.QUEUED)
        mine = [task for task, (of, *_) in self.facts.items() if of == job]
        return sum(self.states[task] in waiting for task in mine)

    def run(self, task: int, machine: int, estimate: int, placed: int, delay: int) -> None:
        _, size, _, duration = self.facts[task]
        run = TwinRun(task, machine, size, estimate, placed, self.now, self.now + delay)
        self.runs[task], self.states[task] = run, TaskState.RUNNING
        self.starts.append((task, machine, estimate))
        if duration >= 0:

            def end() -> None:
                if self.runs.get(task) is run:
                    self.finish(task)

            self.push(run.started + duration, end)

    def launch(self, task: int, machine: int) -> None:
        self.run(task, machine, self.facts[task][2], self.now, 0)

    def finish(self, task: int) -> None:
        run = self.runs.pop(task)
        self.states[task] = TaskState.FINISHED
        self.rows.append((task, run.machine, run.placed, run.started, self.now))
        self.finished.append((task, run.machine, run.estimate, run.took_slot))
        self.pump(run.machine)

    def stop(self, task: int, state: TaskState) -> None:
        run = self.runs.pop(task)
        self.states[task] = state
        if state is TaskState.CANCELLED:
            self.finished.append((task, run.machine, run.estimate, run.took_slot))
        self.pump(run.machine)

    # Loads.

    def parts(
        self, machine: int, only_long: bool
    ) -> tuple[list[TwinItem], list[TwinRun], list[TwinItem]]:
        """What waits there, runs there and is on its way."""

        def counts(estimate: int) -> bool:
            return not only_long or self.rules.is_long(estimate)

        sent = [
            i for batch in self.under_way for i in batch if i.machine == machine and i.task >= 0
        ]
        return (
            [item for item in self.queues[machine] if counts(item.estimate)],
            [r for r in self.runs.values() if r.machine == machine and counts(r.estimate)],
            [item for item in sent if self.counts_sent and counts(item.estimate)],
        )

    def total(self, machine: int, only_long: bool) -> int:
        return sum(each.estimate for part in self.parts(machine, only_long) for each in part)

    def load(self, machine: int, only_long: bool, as_of_beat: bool) -> tuple[int, int]:
        queued, runs, _ = self.parts(machine, only_long)
        key = machine, only_long
        wait = self.at_beat[key] if as_of_beat else self.total(*key)
        passed = max(0, sum(self.now - run.took_slot for run in runs))
        wait -= min(passed, sum(run.estimate for run in runs))
        wait += len(runs) * self.rules.start_delay
        return len(queued) + (len(runs) if only_long else 0), max(0, wait)

    # Queues.

    def send(self, batch: list[TwinItem]) -> None:
        if batch:
            self.under_way.append(batch)
            self.push(max(batch[0].at, self.now), lambda: self.arrive(batch))

    def enqueue(self, batch: list[TwinItem]) -> None:
        for item in batch:
            self.states[item.task] = TaskState.QUEUED
        self.send(batch)

    def arrive(self, batch: list[TwinItem]) -> None:
        while batch:
            if batch[0].at > self.now:
                self.push(batch[0].at, lambda: self.arrive(batch))
                return
            self.land(batch.pop(0))

    def land(self, item: TwinItem) -> None:
        machine, queue = item.machine, self.queues[item.machine]
        has_hand = item.task < 0 and self.probes[item.probe].hand is not None
        is_late = machine in self.draining and (item.task >= 0 or has_hand)
        if machine in self.down or is_late or item.size > self.capacity[machine]:
            self.hand_back(item, self.lost)
            return
        self.has_queues = True
        has_room = item.size <= self.free(machine)
        if (queue or not has_room) and 0 < self.rules.limit <= len(queue):
            self.hand_back(item, self.refused)
            return
        self.wait(item)
        if has_room:
            self.pump(machine)

    def wait(self, item: TwinItem) -> None:
        item.slack = self.rules.slack * item.estimate if self.rules.slack else EVERYTHING
        self.queues[item.machine].append(item)

    def hand_back(self, item: TwinItem, out: list[tuple[int, ...]]) -> None:
        if item.task < 0:
            self.lose_probe(item.probe, out)
            return
        self.states[item.task] = TaskState.PENDING
        out.append((item.task, item.machine, item.estimate))

    def next_in(self, queue: list[TwinItem]) -> int:
        rules = self.rules
        if rules.order is QueueOrder.FCFS:
            return 0
        if rules.is_unordered:
            return min(range(len(queue)), key=lambda at: queue[at].estimate)
        if rules.is_long(queue[0].estimate):
            return 0
        best, least, slack = 0, EVERYTHING, EVERYTHING
        for at, item in enumerate(queue):
            is_long = rules.is_long(item.estimate)
            by_job = rules.order is QueueOrder.SHORTEST_REMAINING
            measure = item.estimate * (self.unstarted(item.job) if by_job else 1)
            # Where long tasks stand apart, a task may use up the slack.
            if measure < least and item.estimate < slack + (rules.long_above > 0):
                best, least = at, measure
                if is_long:
                    break
            if not is_long:
                slack = min(slack, item.slack)
        return best

    def charge(self, queue: list[TwinItem], at: int) -> None:
        if not self.rules.is_long(queue[at].estimate):
            for item in queue[:at]:
                item.slack -= min(item.slack, queue[at].estimate)

    def take(self, machine: int, at: int) -> TwinItem:
        self.charge(self.queues[machine], at)
        item = self.queues[machine].pop(at)
        self.note_room(machine)
        return item

    def room(self, machine: int) -> int:
        limit = self.rules.limit
        return max(0, limit - len(self.queues[machine])) if limit else NEVER

    def note_room(self, machine: int) -> None:
        if machine in self.awaited and self.room(machine):
            self.awaited.remove(machine)
            self.roomy.append(machine)

    def pump(self, machine: int) -> None:
        if not self.has_queues:
            return
        queue = self.queues[machine]
        while queue:
            at = self.next_in(queue)
            item = queue[at]
            if item.task >= 0:
                if not self.can_start(machine, item.size):
                    return
                self.take(machine, at)
                delay = self.rules.start_delay
                self.run(item.task, machine, item.estimate, item.placed, delay)
                continue
            probe = self.probes[item.probe]
            if probe.state != "queued":
                self.take(machine, at)
            elif probe.hand is not None:
                if not self.ask_hand(machine, at, probe.hand):
                    return
            elif self.can_start(machine, item.size):
                self.take(machine, at)
                probe.state = "held"
                self.holds[item.probe] = machine, item.size
                self.ready.append((item.probe, probe.job, machine, probe.owner))
            else:
                return
        if machine not in self.down and machine not in self.draining:
            self.steal(machine)

    def queued(self) -> list[tuple[int, int, int]]:
        """Job, task and machine of what waits, in order of starting."""
        rows = []
        for machine, queue in enumerate(self.queues):
            left = [msgspec.structs.replace(item) for item in queue]
            while left:
                at = self.next_in(left)
                self.charge(left, at)
                item = left.pop(at)
                rows.append((item.job, item.task, machine))
        return rows

    def lose_queue(self, machine: int) -> list[int]:
        tasks = []
        while self.queues[machine]:
            item = self.take(machine, self.next_in(self.queues[machine]))
            if item.task < 0:
                self.lose_probe(item.probe, self.lost)
            else:
                tasks.append(item.task)
                self.states[item.task] = TaskState.PENDING
        return tasks

    def cancel_task(self, task: int) -> bool:
        before = self.states[task]
        if before not in (TaskState.PENDING, TaskState.QUEUED):
            return False
        self.states[task] = TaskState.CANCELLED
        if before is TaskState.PENDING:
            return True
        for machine, queue in enumerate(self.queues):
            for item in queue:
                if item.task == task:
                    queue.remove(item)
                    self.finished.append((task, machine, item.estimate, self.now))
                    self.note_room(machine)
                    self.pump(machine)
                    return True
        for probe in self.probes:
            hand = probe.hand
            if hand and task in hand.tasks:
                hand.tasks.remove(task)
                if not hand.tasks:
                    hand.emptied = self.now
                return True
        [(batch, item)] = [(b, i) for b in self.under_way for i in b if i.task == task]
        batch.remove(item)
        self.finished.append((task, item.machine, item.estimate, self.now))
        return True

    # Probes.

    def probe(
        self, item: TwinItem, owner: int, machines: list[int], hand: TwinHand | None = None
    ) -> None:
        batch = []
        for machine in machines:
            number = len(self.probes)
            self.probes.append(TwinProbe(item.job, owner, machine, hand))
            batch.append(msgspec.structs.replace(item, probe=number, machine=machine))
        for task in hand.tasks if hand else ():
            self.states[task] = TaskState.QUEUED
        self.send(batch)

    def trip(self, owner: int) -> int:
        answered = self.now
        for leg in (self.round_trip // 2, self.round_trip - self.round_trip // 2):
            for mine, since, until in self.cuts:
                if mine == owner and since <= answered < until:
                    answered = until
            answered += leg
        return answered - self.now

    def ask_hand(self, machine: int, at: int, hand: TwinHand) -> bool:
        item = self.queues[machine][at]
        probe, trip = self.probes[item.probe], self.trip(self.probes[item.probe].owner)
        if not hand.tasks:
            over_at = hand.emptied + hand.cancelled_after
            is_known = hand.cancelled_after >= 0 and self.now >= over_at
            if not is_known and not self.can_start(machine, item.size):
                return False
            self.take(machine, at)
            probe.state = "over"
            if not is_known:
                self.holds[item.probe] = machine, item.size
                self.push(self.now + trip, lambda: self.release(item.probe))
            return True
        if not self.can_start(machine, item.size):
            return False
        task = hand.tasks.pop(0)
        if not hand.tasks:
            hand.emptied = self.now + trip - self.round_trip
        self.take(machine, at)
        probe.state = "over"
        hand.probes -= 1
        self.run(task, machine, item.estimate, hand.sent, trip)
        return True

    def release(self, number: int) -> bool:
        if number not in self.holds:
            return False
        machine, _ = self.holds.pop(number)
        self.pump(machine)
        return True

    def lose_probe(self, number: int, out: list[tuple[int, ...]]) -> None:
        probe = self.probes[number]
        was, probe.state = probe.state, "over"
        if was != "queued" or probe.hand is None:
            return
        probe.hand.probes -= 1
        while len(probe.hand.tasks) > probe.hand.probes:
            task = probe.hand.tasks.pop()
            self.states[task] = TaskState.PENDING
            out.append((task, probe.machine, 0))

    def lose_probes(self, machine: int) -> None:
        gone = [i for i in self.queues[machine] if i.task < 0 and self.probes[i.probe].hand]
        for item in gone:
            self.queues[machine].remove(item)
            self.lose_probe(item.probe, self.lost)
        if gone:
            self.note_room(machine)
            self.pump(machine)

    def bind(self, number: int, task: int) -> bool:
        probe = self.probes[number]
        probe.state = "over"
        if self.holds.pop(number, None) is None:
            return False
        self.launch(task, probe.machine)
        return True

    def cancel(self, number: int) -> None:
        self.probes[number].state = "over"
        self.release(number)

    def cancel_all(self, owner: int) -> None:
        mine = [(n, probe) for n, probe in enumerate(self.probes) if probe.owner == owner]
        held = [number for number, probe in mine if probe.state == "held"]
        for _, probe in mine:
            probe.state = "over"
            if probe.hand:
                for task in probe.hand.tasks:
                    self.states[task] = TaskState.PENDING
                probe.hand.tasks = []
        for number in held:
            self.release(number)

    # Stealing.

    def steal(self, thief: int) -> None:
        rules, machines = self.rules, len(self.capacity)
        if rules.steal_from >= machines or self.free(thief) != self.capacity[thief]:
            return
        for _ in range(rules.steal_attempts):
            victim = rules.steal_from + self.stealing.below(machines - rules.steal_from)
            if victim == thief:
                continue
            at, count = self.loot(victim)
            taken: list[TwinItem] = []
            for _ in range(min(count, rules.steal_limit)):
                if 0 < rules.limit <= len(taken):
                    break
                item = self.queues[victim][at]
                if item.size <= self.capacity[thief] and self.meets(thief, item.requirement):
                    taken.append(self.take(victim, at))
                else:
                    at += 1
            if not taken:
                continue
            self.stolen += len(taken)
            for item in taken:
                item.machine = thief
                if item.task < 0:
                    self.probes[item.probe].machine = thief
                self.wait(item)
            self.pump(thief)
            return

    def meets(self, machine: int, requirement: int) -> bool:
        return requirement < 0 or self.attributes[machine] == requirement

    def loot(self, victim: int) -> tuple[int, int]:
        """From where on how many may be stolen."""
        queue, is_long = self.queues[victim], self.rules.is_long
        if not self.rules.long_above:
            return len(queue) // 2, len(queue) - len(queue) // 2
        longs = [is_long(item.estimate) for item in queue]
        runs_long = any(is_long(r.estimate) for r in self.runs.values() if r.machine == victim)
        if not runs_long and True not in longs:
            return len(queue), 0
        at = 0 if runs_long else longs.index(True)
        while at < len(queue) and longs[at]:
            at += 1
        count = 0
        while at + count < len(queue) and not longs[at + count]:
            count += 1
        return at, count


def notices(columns: tuple[Any, ...]) -> list[tuple[int, ...]]:
    """Task, machine, estimate and time of start."""
    tasks, machines, estimates, _, started = (column.tolist() for column in columns)
    return list(zip(tasks, machines, estimates, started, strict=True))
