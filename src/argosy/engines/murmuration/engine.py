from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from argosy.cell import Rule, View
from argosy.cell.bitmaps import to_mask
from argosy.cell.waits import WaitRules
from argosy.engines.api import Capabilities, Context, Finishes, PaperPreset, Settings
from argosy.engines.murmuration.estimates import Learner
from argosy.engines.murmuration.peers import Peers
from argosy.engines.murmuration.settings import MurmurationSettings
from argosy.engines.shared.withdrawal import WaitingTasks, Withdrawal, added, failed, update
from argosy.model.effects import Effect, Enqueue, Explain, Pace, Send, Think, WakeMe
from argosy.model.events import (
    DecisionDue,
    Event,
    JobCancelled,
    JobChanged,
    JobSubmitted,
    MachineChanged,
    MachineJoined,
    MachineLost,
    MessageReceived,
    Started,
    TaskFailed,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import SHORTEST_WAIT, Explanation, Why
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machine_model import MachineModel
from argosy.model.messages import WaitUpdate, WaitUpdates
from argosy.model.transactions import MachineArray, TaskArray

_RETRY = "retry"
_TELL = "tell"


class RankedTasks(NamedTuple):
    """Tasks of one job to be placed; they sort by rank, then by arrival."""

    rank: int
    arrival: int
    job: Job
    number: int
    tasks: TaskArray
    #: Whether they are the job's first and last to be decided on.
    is_new: bool = True
    is_last: bool = True


class Murmuration:
    name: ClassVar[str] = "murmuration"
    summary: ClassVar[str] = (
        "Gossiped expected waits: one attempt per task, queues at the machines."
    )
    settings_type: ClassVar[type[Settings]] = MurmurationSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        queues=True, gossip=True, finishes=Finishes.WAITS, machine_events=True
    )

    published: ClassVar[Mapping[str, PaperPreset]] = {
        "murmuration-fcfs": PaperPreset(
            {"as_published": True, "order": "fcfs"}, MachineModel(start_delay=1_000), 10
        ),
        "murmuration-srjf": PaperPreset(
            {"as_published": True, "order": "shortest-job"},
            MachineModel(queue="shortest-remaining", slack=5, start_delay=1_000),
            10,
        ),
        # What the paper's text names, where the authors' simulator has the shortest remaining job.
        "murmuration-sjf-stf": PaperPreset(
            {"as_published": True, "order": "shortest-job"},
            MachineModel(queue="shortest-first", start_delay=1_000),
            10,
        ),
    }

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, MurmurationSettings)
        assert context.waits is not None
        self._settings = settings
        self._context = context
        self._view = context.waits
        self._peers = Peers(settings, context, self._view)
        self._learner: Learner | None = None
        if settings.estimates == "learnt":
            self._learner = Learner(settings.quantile)
            self._view.record_times()
        self._queue: list[RankedTasks] = []
        self._arrivals = 0
        #: The total work of all jobs so far.
        self._pushed = 0
        #: Tasks without a machine: none is large enough, or all queues are full.
        self._stuck: list[WaitingTasks] = []
        self._will_retry = False
        self._deciding: RankedTasks | None = None
        #: When the last decision ends, if reading takes time.
        self._busy_until = 0
        #: In the published form: placements of the current decision, told when it ends.
        self._gossip: list[WaitUpdate] = []
        #: Placements of which the peers have not been told yet, and whether they will be at a set time.
        self._untold: list[WaitUpdate] = []
        self._will_tell = False
        #: The request of each shape that the view has been given.
        self._requests: dict[int, tuple[int, ...]] = {}
        #: Numbers by which the view knows sets of requirements and preferences.
        self._sets: dict[tuple[tuple[tuple[str, str], ...], ...], KnownSet] = {}
        self._last_set = 0

    @classmethod
    def wait_rules(cls, settings: Settings) -> WaitRules:
        assert isinstance(settings, MurmurationSettings)
        return WaitRules(
            settings.as_published,
            settings.update_delay,
            plain=settings.expected_wait == "sum",
            cost=settings.t_update,
        )

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        if self._view.machines < view.machines:
            self._learn_machines(view)
        match event:
            case JobSubmitted(job, number, tasks):
                self._push(job, number, tasks)
                return [*self._peers.keep_comparing(now), *self._begin(view, now)]
            case DecisionDue():
                return self._decide(view, now)
            case TasksLost(job, number, tasks, machines, why):
                effects = self._take_off(job, tasks, machines, why, view, now)
                self._push(job, number, tasks)
                return [*effects, *self._begin(view, now)]
            case MessageReceived(sender, payload):
                return [*self._peers.hear(sender, payload, now), *self._begin(view, now)]
            case MachineLost(machine):
                self._view.empty(machine)
                self._learn_machines(view)
            case MachineJoined() | MachineChanged():
                self._learn_machines(view)
                return self._retry_stuck(view, now)
            case Started(again=True):
                return self._peers.ask(now)
            case TimerFired(name) if name == _RETRY:
                return self._retry_after_reading(view, now)
            case TimerFired(name) if name == _TELL:
                self._will_tell = False
                return self._tell_all()
            case TimerFired(name):
                return [*self._peers.fire(name, now), *self._begin(view, now)]
            case JobCancelled() | JobChanged():
                self._withdraw(event)
                more = added(event)
                return () if more is None else self.handle(more, view, now)
            case TaskFailed():
                return self.handle(failed(event, view), view, now)
        return ()

    def _withdraw(self, event: Withdrawal) -> None:
        """Ranks do not change: the remaining tasks of a job would change them little."""
        self._stuck = [work for work in (update(w, event) for w in self._stuck) if len(work[2])]
        queue = (self._updated(work, event) for work in self._queue)
        self._queue = [work for work in queue if len(work.tasks)]
        heapq.heapify(self._queue)
        if self._deciding is not None:
            self._deciding = self._updated(self._deciding, event)

    @staticmethod
    def _updated(work: RankedTasks, event: Withdrawal) -> RankedTasks:
        job, number, tasks = update((work.job, work.number, work.tasks), event)
        return work._replace(job=job, number=number, tasks=tasks)

    def _learn_machines(self, view: View) -> None:
        self._view.learn(view.capacity().reshape(-1), view.takes_claims())
        self._sets.clear()

    def _push(self, job: Job, number: int, tasks: TaskArray) -> None:
        rank = 0
        if self._settings.order == "shortest-job":
            rank = sum(self._estimate(job, number, group) * group.count for group in job.groups)
            if self._settings.slack:
                # A job that arrives more than slack x w of work after a job of work w ranks behind it,
                # however short it is.
                self._pushed, rank = self._pushed + rank, self._pushed + self._settings.slack * rank
        self._arrivals += 1
        heapq.heappush(self._queue, RankedTasks(rank, self._arrivals, job, number, tasks))

    def _estimate(self, job: Job, number: int, group: TaskGroup) -> int:
        known = group.estimate
        if self._learner is not None and not (group.endless or group.activities):
            self._learner.learn(*self._view.take_times())
            known = self._learner.estimate(job, number)
        return self._settings.unknown_estimate if known is None else known

    def figures(self) -> dict[str, float]:
        """The quality of learnt estimates, including everything reported so far, due or not."""
        return {} if self._learner is None else self._learner.figures(*self._view.times_to_come())

    def _begin(self, view: View, now: int) -> Sequence[Effect]:
        """Decides on the next job, unless one is being decided or peers have not yet sent their
        views."""
        if self._deciding is not None or not self._queue or self._peers.is_asking:
            return ()
        work = heapq.heappop(self._queue)
        settings = self._settings
        if settings.decide == "task":
            work = self._leave_all_but_one(work)
        self._deciding = work
        duration = (settings.t_job if work.is_new else 0) + settings.t_task * len(work.tasks)
        if settings.t_update:
            self._view.settle(now)
            self._busy_until = now + duration
            self._view.occupy(self._busy_until)
        think = Think(duration, work.number, work.number)
        if not settings.as_published:
            return (think,)
        return [think, *self._place_all(work, view, now)]

    def _leave_all_but_one(self, work: RankedTasks) -> RankedTasks:
        """The first task; the others keep their place in the queue."""
        if len(work.tasks) > 1:
            rest = work._replace(tasks=work.tasks[1:], is_new=False)
            heapq.heappush(self._queue, rest)
        return work._replace(tasks=work.tasks[:1], is_last=len(work.tasks) == 1)

    def _decide(self, view: View, now: int) -> Sequence[Effect]:
        work = self._deciding
        assert work is not None
        self._deciding = None
        if self._settings.as_published:
            updates, self._gossip = self._gossip, []
            effects = [effect for update in updates for effect in self._tell(update, work, now)]
        else:
            effects = self._place_all(work, view, now)
        return [*effects, *self._begin(view, now)]

    def _place_all(self, work: RankedTasks, view: View, now: int) -> list[Effect]:
        """One attempt: every task goes to the machine with the smallest expected wait."""
        effects: list[Effect] = []
        for group, tasks in work.job.tasks_by_group(work.tasks):
            self._place(work, group, tasks, view, now, effects)
        return effects

    def _place(
        self,
        work: RankedTasks,
        group: TaskGroup,
        tasks: TaskArray,
        view: View,
        now: int,
        effects: list[Effect],
    ) -> None:
        shape = view.shape(group.request, group.tags, work.job.precedence)
        if shape not in self._requests:
            if view.unknown_resource(shape) is not None:
                effects.extend(self._get_stuck(work, group, tasks, shape, view, now))
                return
            self._shape(work.job, group, view)
        estimate, total = self._estimate(work.job, work.number, group), work.job.tasks
        machines, versions, feasible, score, second, second_score = self._view.choose(
            tasks,
            total,
            shape,
            estimate,
            now,
            self._context.random,
            *self._eligible(group, view),
        )
        placed = tasks[: len(machines)]
        if len(placed):
            explanation = None
            if self._context.keeps_explanations:
                explanation = Explanation(
                    looked_at=self._view.machines,
                    feasible=feasible,
                    rule=SHORTEST_WAIT,
                    measure="wait",
                    score=score,
                    second=second if second >= 0 else None,
                    second_score=second_score if second >= 0 else None,
                )
            effects.append(self._enqueue(placed, machines, estimate, explanation, work.is_new))
            if self._context.peers:
                update = WaitUpdate(
                    placed,
                    versions,
                    machines,
                    estimate,
                    shape,
                    self._requests[shape],
                    total,
                    now,
                    self._settings.gossip == "task",
                )
                if self._settings.as_published:
                    self._gossip.append(update)
                else:
                    effects.extend(self._tell(update, work, now))
        if len(placed) < len(tasks):
            left = tasks[len(placed) :]
            effects.extend(self._get_stuck(work, group, left, shape, view, now))

    def _tell(self, update: WaitUpdate, work: RankedTasks, now: int) -> Sequence[Effect]:
        """Tells the peers about placements: at once, with the rest of the job, or with others."""
        settings = self._settings
        is_whole = settings.decide == "job" and settings.gossip == "job"
        if is_whole or settings.gossip == "task":
            return (Send(self._context.peers, update),)
        self._untold.append(update)
        if settings.gossip == "job":
            return self._tell_all() if work.is_last else ()
        count = sum(len(each.tasks) for each in self._untold)
        if settings.batch_size and count >= settings.batch_size:
            return self._tell_all()
        if self._will_tell:
            return ()
        self._will_tell = True
        return (WakeMe(now + settings.batch_time, _TELL),)

    def _tell_all(self) -> Sequence[Effect]:
        if not self._untold:
            return ()
        updates, self._untold = tuple(self._untold), []
        return (Send(self._context.peers, WaitUpdates(updates)),)

    def _enqueue(
        self,
        tasks: TaskArray,
        machines: MachineArray,
        estimate: int,
        explanation: Explanation | None,
        is_new: bool,
    ) -> Enqueue:
        settings = self._settings
        told = None if self._learner is None else estimate
        if not settings.as_published:
            return Enqueue(tasks, machines, explanation, estimate=told)
        first = (settings.t_job if is_new else 0) + settings.t_task
        pace = Pace(first, settings.t_task)
        return Enqueue(tasks, machines, explanation, pace, told)

    def _shape(self, job: Job, group: TaskGroup, view: View) -> int:
        shape = view.shape(group.request, group.tags, job.precedence)
        if shape not in self._requests:
            request = self._requests[shape] = view.shape_request(shape)
            self._view.know_shape(shape, np.array(request, np.int64))
        return shape

    def _eligible(
        self, group: TaskGroup, view: View
    ) -> tuple[int, NDArray[np.uint8] | None, NDArray[np.uint8] | None, int]:
        """A number for the group's requirements and preferences, the machines that satisfy each, and
        the penalty for other machines. Number 0: no requirements or preferences."""
        locality = self._settings.locality if group.prefers else 0
        if not group.requires and not locality:
            return 0, None, None, 0
        wanted = (
            tuple(sorted(group.requires.items())),
            tuple(sorted(group.prefers.items())) if locality else (),
        )
        found, labels = self._sets.get(wanted), view.labels_version
        if found is None or found.labels != labels:
            members = _members(group.requires, view) if group.requires else None
            near = _members(group.prefers, view) if locality else None
            if found is not None and found.has(members, near):
                found.labels = labels
            else:
                # The wait view never sees two sets under one number.
                self._last_set += 1
                found = self._sets[wanted] = KnownSet(self._last_set, members, near, labels)
        return found.number, found.members, found.near, locality

    def _get_stuck(
        self,
        work: RankedTasks,
        group: TaskGroup,
        tasks: TaskArray,
        shape: int,
        view: View,
        now: int,
    ) -> Sequence[Effect]:
        self._stuck.append((work.job, work.number, tasks))
        within = view.where(group.requires) if group.requires else None
        seen = view.find(
            shape, 1, Rule.SMALLEST_KEY, self._context.random, within=within, needs_room=False,
            keys=self._view.work(),
        )  # fmt: skip
        effects: list[Effect] = [Explain(tasks, seen.explanation())]
        if len(seen.machines) and not self._will_retry:
            self._will_retry = True
            effects.append(WakeMe(now + self._settings.retry, _RETRY))
        return effects

    def _retry_after_reading(self, view: View, now: int) -> Sequence[Effect]:
        """An attempt ends the reading of a message. Another attempt before one has been read would be
        in vain as well, and so would all that follow."""
        has_read_at = self._busy_until + self._settings.t_update
        if self._settings.t_update and self._view.waiting and now < has_read_at:
            return (WakeMe(has_read_at, _RETRY),)
        self._will_retry = False
        return self._retry_stuck(view, now)

    def _retry_stuck(self, view: View, now: int) -> Sequence[Effect]:
        for job, number, tasks in self._stuck:
            self._push(job, number, tasks)
        self._stuck.clear()
        return self._begin(view, now)

    def _take_off(
        self,
        job: Job,
        tasks: TaskArray,
        machines: MachineArray,
        why: Why,
        view: View,
        now: int,
    ) -> list[Effect]:
        """Removes lost tasks from the view and tells the peers, who do not learn of it otherwise. A
        machine whose queue was full is not used until something has ended there."""
        self._view.settle(now)
        if why is Why.QUEUE_FULL:
            for machine in set(machines.tolist()):
                self._view.block(machine)
        effects: list[Effect] = []
        if self._settings.as_published:
            return effects
        for group, mine in job.tasks_by_group(tasks):
            versions = self._view.undo(mine)
            if self._context.peers:
                nowhere = np.full(len(mine), -1, np.int32)
                shape = self._shape(job, group, view)
                request = self._requests[shape]
                update = WaitUpdate(mine, versions, nowhere, 0, shape, request, job.tasks, now)
                effects.append(Send(self._context.peers, update))
        return effects


class KnownSet:
    """Machines that have what tasks require, and those near what they prefer, as of some labels."""

    __slots__ = ("labels", "members", "near", "number")

    def __init__(
        self,
        number: int,
        members: NDArray[np.uint8] | None,
        near: NDArray[np.uint8] | None,
        labels: int,
    ) -> None:
        self.number = number
        self.members = members
        self.near = near
        self.labels = labels

    def has(self, members: NDArray[np.uint8] | None, near: NDArray[np.uint8] | None) -> bool:
        return _are_same(self.members, members) and _are_same(self.near, near)


def _are_same(one: NDArray[np.uint8] | None, other: NDArray[np.uint8] | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def _members(attributes: Mapping[str, str], view: View) -> NDArray[np.uint8]:
    return to_mask(view.where(attributes), view.machines).view(np.uint8)
