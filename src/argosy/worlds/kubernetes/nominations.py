"""Room that is promised to pods of other schedulers: those that wait with a `nominatedNodeName`.

Another scheduler has chosen the node, and perhaps made room there. A pod of lower or equal priority must
not take it. So the promise is a claim in the world, of the pod's priority, as soon as the node has room
for it; and until then whoever claims the node is told that the room is not his.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import msgspec

from argosy.kubernetes.objects import Pod
from argosy.model.jobs import Job, TaskGroup
from argosy.model.resources import Resources
from argosy.worlds.kubernetes.requests import pod_request
from argosy.worlds.kubernetes.room import NodeRoom
from argosy.worlds.kubernetes.tracked import PodWorld, TrackedPod

#: Who claims what is promised.
NOMINATED = "nominated"


class Nomination(msgspec.Struct):
    pod: Pod
    node: str
    request: Resources
    #: Its claim in the world; empty if there is none.
    job: str = ""
    #: Whether a try of that job has begun.
    is_tried: bool = False

    @property
    def tasks(self) -> tuple[tuple[str, int], ...]:
        """The task that keeps the room, by job and index, once it has begun."""
        return ((self.job, 0),) if self.is_tried else ()


class Nominations:
    """`kind` and `precedence_of` are those of the jobs for claims, and `knows_resources` says whether
    all that is asked for can be accounted for. `freed` hears of nodes on which a promise has ended."""

    def __init__(
        self,
        world: Callable[[], PodWorld],
        room: NodeRoom,
        kind: Callable[[Pod], str],
        precedence_of: Callable[[int], int],
        knows_resources: Callable[[Resources], bool],
        freed: Callable[[str], None],
    ) -> None:
        self._freed = freed
        self._knows_resources = knows_resources
        self._world = world
        self._room = room
        self._kind = kind
        self._precedence_of = precedence_of
        self._by_uid: dict[str, Nomination] = {}
        self._by_node: dict[str, dict[str, Nomination]] = defaultdict(dict)
        self._by_job: dict[str, Nomination] = {}
        self._made = 0
        #: Claims that were lost, whose jobs are still there.
        self._abandoned: list[str] = []

    def set_pod(self, pod: Pod) -> None:
        """A pod of another scheduler that has no node."""
        node, request = pod.status.nominated_node_name, pod_request(pod)
        known = self._by_uid.get(pod.uid)
        is_leaving = pod.metadata.deletion_timestamp is not None
        if known is not None:
            if (known.node, known.request) == (node, request) and not is_leaving:
                known.pod = pod
                return
            self.remove(pod.uid)
        if node and not is_leaving and self._knows_resources(request):
            made = self._by_uid[pod.uid] = Nomination(pod, node, request)
            self._by_node[node][pod.uid] = made
            self._claim(made)

    def of(self, uid: str) -> Nomination | None:
        return self._by_uid.get(uid)

    def remove(self, uid: str) -> None:
        """The pod is on a node, or gone."""
        known = self._by_uid.pop(uid, None)
        if known is None:
            return
        self._by_node[known.node].pop(uid, None)
        self.lose(known.job)
        self.follow_up()
        self._freed(known.node)
        self.look_at(known.node)

    def look_at(self, node: str) -> None:
        """There may be room on the node."""
        for each in list(self._by_node.get(node, {}).values()):
            if not each.job:
                self._claim(each)

    def begin_anew(self) -> None:
        """The world knows of no claims any more."""
        self._by_job.clear()
        self._abandoned = []
        for each in self._by_uid.values():
            each.job, each.is_tried = "", False
            self._claim(each)

    def launch(self, job: str) -> bool:
        """A try begins. False if it is for no promise."""
        known = self._by_job.get(job)
        if known is not None:
            known.is_tried = True
        return known is not None

    def lose(self, job: str) -> None:
        """The claim is gone: somebody of higher priority has taken the room, or nobody needs it."""
        known = self._by_job.pop(job, None)
        if known is not None:
            known.job, known.is_tried = "", False
            self._abandoned.append(job)

    def follow_up(self) -> None:
        """Nobody shall place anew what was lost."""
        abandoned, self._abandoned = self._abandoned, []
        for job in abandoned:
            self._world().cancel(job)

    def leaves_room(self, tracked: TrackedPod, node: str) -> bool:
        """Whether the pod leaves what was promised on the node, and is not claimed, to others of its
        priority or higher ones."""
        promised = [
            each
            for each in self._by_node.get(node, {}).values()
            if not each.job and _priority(each.pod) >= _priority(tracked.pod)
        ]
        if not promised:
            return True
        more: dict[str, int] = {}
        for each in promised:
            for name, amount in each.request.items():
                more[name] = more.get(name, 0) + amount
        return self._room.fits(node, tracked.request, more)

    def _claim(self, nomination: Nomination) -> None:
        world = self._world()
        if not world.has_machine(nomination.node):
            return
        if not self._room.fits(nomination.node, nomination.request):
            return
        pod = nomination.pod
        self._made += 1
        while (
            world.job_seq(name := f"{pod.namespace}.{pod.name}~{NOMINATED}{self._made}") is not None
        ):
            self._made += 1
        job = Job(
            id=name,
            groups=(TaskGroup(count=1, request=nomination.request, endless=True),),
            kind=self._kind(pod),
            precedence=self._precedence_of(_priority(pod)),
            owner=pod.namespace,
            name=f"{pod.namespace}/{pod.name}",
        )
        nomination.job = job.id
        self._by_job[job.id] = nomination
        [refusal] = world.adopt([(job, nomination.node)], NOMINATED)
        if refusal is not None:
            nomination.job = ""
            del self._by_job[job.id]


def _priority(pod: Pod) -> int:
    return pod.spec.priority or 0
