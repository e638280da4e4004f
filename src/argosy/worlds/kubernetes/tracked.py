"""What is known of a pod, what a cluster needs of the live world, and what it orders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from argosy.kubernetes.objects import Pod
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import Job
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.worlds.kubernetes.rulebook import PodNeeds


class PodWorld(Protocol):
    """What a cluster needs of the live world."""

    def submit_all(self, jobs: Iterable[Job]) -> None: ...
    def adopt(
        self,
        jobs: Sequence[tuple[Job, str]],
        by: str,
        instead_of: Sequence[tuple[str, int]] = (),
        replaced: Sequence[tuple[str, int]] = (),
    ) -> list[Refusal | None]: ...
    def cancel(self, name: str, indices: Sequence[int] | None = None) -> int: ...
    def is_over(self, name: str) -> bool: ...
    def settle(self) -> None: ...
    def job_seq(self, name: str) -> int | None: ...
    def finish(self, number: int, status: int, reason: str) -> None: ...
    def gone(self, number: int) -> None: ...
    def refuse_try(self, number: int, why: Why) -> None: ...
    def mark(self, attribute: str, group: str, sets: Sequence[str], is_given: bool) -> None: ...
    def has_machine(self, name: str) -> bool: ...
    def add_machine(self, machine: Machine) -> None: ...
    def remove_machine(self, name: str) -> None: ...
    def fit_machine(self, name: str, capacity: Resources) -> None: ...
    def relabel_machine(self, machine: Machine) -> None: ...
    def free_on(self, machine: str) -> Resources: ...
    def queued(self) -> Mapping[str, Sequence[tuple[str, int]]]: ...


class PodState(Enum):
    """Where a pod is on its way.

    outside   not to be scheduled here: gated, or another scheduler's
    waiting   submitted, without a node
    claimed   a scheduler has chosen a node
    held      chosen, but what has to leave the node first is still there
    binding   Kubernetes is asked
    bound     on its node
    leaving   told to leave its node
    """

    OUTSIDE = "outside"
    WAITING = "waiting"
    CLAIMED = "claimed"
    HELD = "held"
    BINDING = "binding"
    BOUND = "bound"
    LEAVING = "leaving"


#: Why claims are pushed off without their schedulers being told.
UNTOLD: Final = (Why.PREEMPTED, Why.MACHINE_GONE, Why.NO_ROOM)
PLACED: Final = (PodState.BOUND, PodState.BINDING)
#: Kubernetes was asked to bind it, whatever has become of that.
SENT: Final = (*PLACED, PodState.LEAVING)
UNDECIDED: Final = (PodState.OUTSIDE, PodState.WAITING)


class PodShape(msgspec.Struct):
    """What pods that are alike need; `pods` counts them."""

    key: bytes
    needs: PodNeeds
    request: Resources
    pods: int = 0


class TrackedPod(msgspec.Struct):
    pod: Pod
    shape: PodShape
    state: PodState = PodState.OUTSIDE
    #: Its job in the world, and which of its tasks it is; empty if it has none.
    job: str = ""
    index: int = 0
    #: Where it is, or is going.
    node: str = ""
    #: The node that it is being bound to, if that is gone.
    sent_to: str = ""
    #: The number of its try.
    number: int | None = None
    #: Why it is not scheduled at all, for its status.
    obstacle: str = ""
    #: What its job requires, and how often in a row it was refused all the same.
    required: dict[str, str] = {}
    refusals: int = 0
    #: Whether its request takes up room on its node.
    takes_room: bool = False
    #: Whether a budget has kept it from being evicted lately: it makes room for nobody.
    is_protected: bool = False
    #: What its binding tells of the decision.
    annotations: dict[str, str] = {}
    #: The group with which it is scheduled, if it belongs to one.
    gang: PodGang | None = None

    @property
    def needs(self) -> PodNeeds:
        return self.shape.needs

    @property
    def request(self) -> Resources:
        return self.shape.request

    @property
    def uid(self) -> str:
        return self.pod.uid


class PodGroupName(msgspec.Struct, frozen=True):
    """`api` is the API group whose PodGroups say how large the group is; empty if labels do."""

    api: str
    namespace: str
    name: str


class PodGang:
    """Pods that belong to a group. Those that are placed `together` have one job; none of them is bound
    before all can be."""

    def __init__(self, name: PodGroupName) -> None:
        self.name = name
        self.members: dict[str, TrackedPod] = {}
        #: Members that wait outside for others, though nothing else stands in their way.
        self.able: dict[str, TrackedPod] = {}
        self.together: dict[str, TrackedPod] = {}
        self.job = ""
        #: Those of `together` whose nodes have room.
        self.ready: set[str] = set()
        #: Pods that have ended well: they count, though they are gone.
        self.succeeded = 0
        #: For how many looks it rests, and how often in a row it had to.
        self.rest = 0
        self.failures = 0

    def is_placing(self, tracked: TrackedPod) -> bool:
        """Whether others are to be bound together with the pod."""
        return tracked.uid in self.together


class BindOrder(msgspec.Struct, frozen=True):
    """`annotations` are given to the pod."""

    pod: Pod
    node: str
    annotations: dict[str, str] = {}


class EvictOrder(msgspec.Struct, frozen=True):
    pod: Pod
    why: Why


class NominateOrder(msgspec.Struct, frozen=True):
    """The pod goes to that node as soon as others have left it."""

    pod: Pod
    node: str


class CreateOrder(msgspec.Struct, frozen=True):
    """A pod for a job that was committed from elsewhere."""

    job: str
    document: dict[str, Any]


ClusterOrder: TypeAlias = BindOrder | EvictOrder | NominateOrder | CreateOrder
