"""What all Kubernetes objects share: metadata, references, conditions, lists, watch events, statuses."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Generic, TypeAlias, TypeVar

import msgspec

#: RFC 3339 with six decimals; `micro_time` makes one.
MicroTime: TypeAlias = str


class Served(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    """A value in the JSON of the Kubernetes API."""


class OwnerReference(Served, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Served, frozen=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class KubernetesObject(Served, frozen=True):
    """What every object has. `api_version` and `kind` are empty on items of a list."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def key(self) -> ObjectKey:
        return (self.metadata.namespace, self.metadata.name)


#: Namespace (empty for objects of the cluster) and name.
ObjectKey: TypeAlias = tuple[str, str]


class ObjectReference(Served, frozen=True):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class ObjectCondition(Served, frozen=True):
    """A condition in the status of a pod, node, pod group or disruption budget."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None
    last_heartbeat_time: datetime | None = None
    last_probe_time: datetime | None = None


def micro_time(instant: datetime) -> MicroTime:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class StatusCause(Served, frozen=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Served, frozen=True):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class ServerStatus(Served, frozen=True):
    """Kubernetes' `Status`: the answer to a request that returns no object, or that failed."""

    api_version: str = ""
    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


class ListMeta(Served, frozen=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


AnyObject = TypeVar("AnyObject", bound=KubernetesObject)


class ObjectList(Served, Generic[AnyObject], frozen=True):
    metadata: ListMeta = ListMeta()
    items: tuple[AnyObject, ...] = ()


class WatchEvent(Served, Generic[AnyObject], frozen=True):
    """A line of a watch. `type` is ADDED, MODIFIED or DELETED; BOOKMARK and ERROR have other objects."""

    type: str
    object: AnyObject


class BookmarkObject(Served, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class WatchBookmark(Served, frozen=True):
    type: str
    object: BookmarkObject


class WatchError(Served, frozen=True):
    type: str
    object: ServerStatus
