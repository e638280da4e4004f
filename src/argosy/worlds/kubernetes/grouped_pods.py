"""Pods that are scheduled together with others, all or none.

As many pods of a group as it has to have at once become one job with a task for each. When all of them
have nodes with room, all are bound, and from then on each is on its own. Whatever happens to one of them
before that undoes the choice of all, and the group is looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from argosy.kubernetes.objects import CoschedulingGroup, Pod, PodGroup
from argosy.worlds.kubernetes.gangs import (
    JOB_PREFIX,
    LONGEST_REST,
    PodGangs,
    group_of,
    in_order,
    job_of_gang,
    lack_of,
    name_of_group,
    placed_of,
    rule_of_group,
)
from argosy.worlds.kubernetes.placed_pods import PlacedPods
from argosy.worlds.kubernetes.pod_jobs import kind_of
from argosy.worlds.kubernetes.tracked import (
    PodGang,
    PodGroupName,
    PodState,
    PodWorld,
    TrackedPod,
)


class GroupedPods(PlacedPods):
    """`obstacle_to_groups` says why pods of a kind of job cannot be placed together; empty if they
    can."""

    def __init__(
        self,
        world: Callable[[], PodWorld],
        is_ours: Callable[[Pod], bool],
        route: Callable[[Pod], str] = kind_of,
        obstacle_to_groups: Callable[[str], str] = lambda kind: "",
    ) -> None:
        super().__init__(world, is_ours, route)
        self._obstacle_to_groups = obstacle_to_groups
        self._gangs = PodGangs()
        #: Groups to be looked at, groups that lost a node they had chosen, and groups that rest.
        self._unformed: dict[PodGang, None] = {}
        self._broken: dict[PodGang, None] = {}
        self._resting_gangs: dict[PodGang, None] = {}

    # What the API says.

    def set_groups(self, groups: Iterable[PodGroup | CoschedulingGroup]) -> None:
        """All PodGroups that there are."""
        before, self._gangs.rules = self._gangs.rules, {}
        for name in before:
            self._look_at(name)
        for group in groups:
            self.set_group(group)

    def set_group(self, group: PodGroup | CoschedulingGroup) -> None:
        name = name_of_group(group)
        self._gangs.rules[name] = rule_of_group(group)
        self._look_at(name)

    def remove_group(self, group: PodGroup | CoschedulingGroup) -> None:
        name = name_of_group(group)
        self._gangs.rules.pop(name, None)
        self._look_at(name)

    def _look_at(self, name: PodGroupName) -> None:
        gang = self._gangs.get(name)
        if gang is not None:
            self._unformed[gang] = None

    def flush(self) -> None:
        """Submits what is new: to be called after changes."""
        while self._unformed:
            gang = next(iter(self._unformed))
            del self._unformed[gang]
            self._form(gang)
        self._submit_fresh()

    @property
    def has_unformed(self) -> bool:
        """Whether `flush` has something to do."""
        return bool(self._unformed)

    # Who belongs together.

    def _join(self, tracked: TrackedPod) -> None:
        """The pod is in the group that it names now, if any."""
        name, gang = group_of(tracked.pod), tracked.gang
        if name == (None if gang is None else gang.name):
            return
        self._leave(tracked)
        if name is not None:
            self._unformed[self._gangs.join(tracked, name)] = None

    def _leave(self, tracked: TrackedPod) -> None:
        gang = tracked.gang
        if gang is None:
            return
        self._gangs.leave(tracked, gang)
        if gang.is_placing(tracked):
            self._break_up(gang, without=tracked)
        if gang.members:
            self._unformed[gang] = None
        else:
            for waiting in (self._unformed, self._broken, self._resting_gangs):
                waiting.pop(gang, None)

    def _await_others(self, tracked: TrackedPod, gang: PodGang) -> None:
        """Nothing but its group stands in the pod's way."""
        tracked.state = PodState.OUTSIDE
        gang.able[tracked.uid] = tracked
        self._unformed[gang] = None

    def _form(self, gang: PodGang) -> None:
        """Submits as many pods of the group as can be placed now; tells the others why they wait."""
        if gang.together or gang.rest:
            if gang.together:
                self._tell(gang.able.values(), _behind(gang, len(gang.together)))
            return
        rule = self._gangs.rule(gang)
        needed = rule.size - placed_of(gang)
        if needed > 1:
            self._recall(gang)
        able = in_order(gang.able.values())
        if not able:
            return
        obstacle = rule.obstacle or (self._obstacle(able) if rule.size > 1 else "")
        if not obstacle and len(able) < needed:
            obstacle = lack_of(gang, rule.size)
        if obstacle:
            self._tell(able, obstacle)
            return
        chosen = able if needed <= 1 else able[:needed]
        for tracked in chosen:
            del gang.able[tracked.uid]
            tracked.obstacle = ""
        self._tell(gang.able.values(), _behind(gang, needed))
        if needed > 1:
            self._submit_together(gang, chosen)
            return
        for tracked in chosen:
            self._submit(tracked)

    def _recall(self, gang: PodGang) -> None:
        """Pods that wait by themselves do not any more: the group has to be placed as a whole again."""
        for tracked in list(gang.members.values()):
            if tracked.state is PodState.WAITING:
                self._cancel(tracked)
                tracked.state = PodState.OUTSIDE
                gang.able[tracked.uid] = tracked

    def _obstacle(self, able: list[TrackedPod]) -> str:
        kinds = dict.fromkeys(self._route(each.pod) for each in able)
        if len(kinds) > 1:
            return (
                f"pods of its group go to different schedulers, by their kinds {', '.join(kinds)}"
            )
        return self._obstacle_to_groups(next(iter(kinds)))

    def _tell(self, pods: Iterable[TrackedPod], obstacle: str) -> None:
        for tracked in pods:
            tracked.obstacle = obstacle
            self.refused.append(tracked)

    def tell_groups(self) -> None:
        """To be called now and then: what pods were told last may have been too soon to be written."""
        for gang in self._gangs:
            self.refused.extend(gang.able.values())

    def _submit_together(self, gang: PodGang, chosen: list[TrackedPod]) -> None:
        name = self._new_name(f"{gang.name.namespace}.{JOB_PREFIX}{gang.name.name}")
        jobs = [(each, self._job(each, each.request)) for each in chosen]
        job, pods = job_of_gang(name, gang, jobs)
        gang.job = name
        gang.together = {each.uid: each for each in pods}
        self._index.give_tasks(pods, name)
        for tracked in pods:
            tracked.state = PodState.WAITING
        self._fresh.append(job)
        self._submit_fresh()
        if any(map(self._matters, pods)):
            self._world().settle()

    def _recover_gangs(self) -> None:
        """The world is another: what was chosen for groups is chosen anew."""
        self._broken.clear()
        for gang in self._gangs:
            self._unformed[gang] = None
            for tracked in list(gang.together.values()):
                self._undo_claim(tracked)
                self._index.take_job(tracked)
                self._index.take_try(tracked)
                self._await_others(tracked, gang)
            self._forget_choice(gang)

    # What becomes of them.

    def _bind_ready(self, tracked: TrackedPod) -> None:
        """There is room for the pod on its node: it is bound, unless it has to wait for others."""
        gang = tracked.gang
        if gang is None or not gang.is_placing(tracked):
            self._bind(tracked)
            return
        tracked.state = PodState.CLAIMED
        self._take_room(tracked)
        gang.ready.add(tracked.uid)
        if len(gang.ready) == len(gang.together):
            pods = list(gang.together.values())
            self._forget_choice(gang)
            gang.failures = 0
            self._unformed[gang] = None
            for each in pods:
                self._bind(each)

    def _release_held(self, node: str) -> None:
        self.second_looks.note([node])
        for uid in list(self._held.get(node, ())):
            tracked = self.pods[uid]
            if not self._room.fits(node, tracked.request):
                return
            del self._held[node][uid]
            self._bind_ready(tracked)

    def _forget_choice(self, gang: PodGang) -> None:
        gang.together, gang.job = {}, ""
        gang.ready.clear()

    def _break_up(self, gang: PodGang, without: TrackedPod | None = None) -> None:
        """Nothing that was chosen for the group holds any more. A pod that the others cannot count on
        any more is left out."""
        self._broken.pop(gang, None)
        pods, job = list(gang.together.values()), gang.job
        if not pods:
            return
        self._forget_choice(gang)
        self._submit_fresh()
        numbers, nodes = [], dict.fromkeys(each.node for each in pods if each.takes_room)
        for tracked in pods:
            self._undo_claim(tracked)
            self._index.take_job(tracked)
            numbers.append(self._index.take_try(tracked))
            if tracked is not without:
                self._await_others(tracked, gang)
        self._world().cancel(job)
        for number in numbers:
            if number is not None:
                self._world().gone(number)
        for node in nodes:
            self._release_held(node)

    def _rest(self, gang: PodGang, why: str) -> None:
        """The group is not looked at again at once."""
        self._break_up(gang)
        self._tell(gang.able.values(), why)
        gang.failures += 1
        gang.rest = min(2 ** (gang.failures - 1), LONGEST_REST)
        self._resting_gangs[gang] = None

    def _wake_gangs(self) -> None:
        for gang in list(self._resting_gangs):
            gang.rest -= 1
            if not gang.rest:
                del self._resting_gangs[gang]
                self._unformed[gang] = None

    def is_short(self, job: str) -> bool:
        """Whether some pods of a job that places pods together have nodes, and others not."""
        gang = self._gang_of(job)
        return gang is not None and 0 < _waiting(gang) < len(gang.together)

    def found_short(self, job: str) -> None:
        """To be called if a scheduler has said that a job waits of which `is_short` is true: those with
        nodes must not keep them, lest groups wait for each other for ever."""
        gang = self._gang_of(job)
        if gang is not None and self.is_short(job):
            size = len(gang.together)
            found = f"{size - _waiting(gang)} of {size} pods of group {gang.name.name} found nodes"
            self._rest(gang, f"{found}, and the others none that their rules allow")

    def _gang_of(self, job: str) -> PodGang | None:
        """The group whose pods the job is to place together."""
        first = next(self._index.all_of_job(job), None)
        gang = None if first is None else first.gang
        return gang if gang is not None and gang.job == job else None


def _behind(gang: PodGang, others: int) -> str:
    return f"{others} other pods of group {gang.name.name} come first"


def _waiting(gang: PodGang) -> int:
    return sum(each.state is PodState.WAITING for each in gang.together.values())
