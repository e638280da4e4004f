"""Where each kind of object is served, and how its JSON becomes typed objects."""

from __future__ import annotations

from typing import Any, Final, Generic, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec

from argosy.kubernetes import objects
from argosy.kubernetes.meta import (
    AnyObject,
    ObjectList,
    WatchBookmark,
    WatchError,
    WatchEvent,
)

Decoded = TypeVar("Decoded")
#: A line of a watch.
WatchLine: TypeAlias = WatchEvent[AnyObject] | WatchBookmark | WatchError

_BOOKMARK = msgspec.json.Decoder(WatchBookmark)
_ERROR = msgspec.json.Decoder(WatchError)


class ResourceKind(Generic[AnyObject]):
    """A kind of objects and its decoders.

    The decoders expect no null where Kubernetes serves none for a valid object. JSON that they refuse is
    read once more, slowly, with its nulls removed: a null means the same as an absent field.
    """

    __slots__ = (
        "_decode_event",
        "_decode_list",
        "_decode_object",
        "group",
        "name",
        "namespaced",
        "plural",
        "type",
        "version",
    )

    def __init__(
        self,
        type_: type[AnyObject],
        plural: str,
        *,
        group: str = "",
        version: str = "v1",
        namespaced: bool = True,
        name: str | None = None,
    ) -> None:
        self.type = type_
        self.name = name or type_.__name__
        self.plural = plural
        self.group = group
        self.version = version
        self.namespaced = namespaced
        self._decode_object: msgspec.json.Decoder[AnyObject] = msgspec.json.Decoder(type_)
        self._decode_list: msgspec.json.Decoder[ObjectList[AnyObject]] = msgspec.json.Decoder(
            ObjectList[type_]  # type: ignore[valid-type]
        )
        self._decode_event: msgspec.json.Decoder[WatchEvent[AnyObject]] = msgspec.json.Decoder(
            WatchEvent[type_]  # type: ignore[valid-type]
        )

    def __repr__(self) -> str:
        return f"<{self.plural} of {self.api_version}>"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Of all objects, of those in a namespace, of one object, or of a part of one."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        # Quoted, because a slash in a name would be a request for something else.
        within = f"/namespaces/{quote(namespace, '')}" if namespace and self.namespaced else ""
        parts = [root + within, self.plural, quote(name, ""), subresource]
        return "/".join(part for part in parts if part)

    def decode(self, text: bytes) -> AnyObject:
        return _tolerant(self._decode_object, text)

    def decode_list(self, text: bytes) -> ObjectList[AnyObject]:
        return _tolerant(self._decode_list, text)

    def decode_line(self, line: bytes) -> WatchLine[AnyObject]:
        # The server writes the type first. If it ever does not, the generic way finds it out.
        if line.startswith(b'{"type":"BOOKMARK"'):
            return _tolerant(_BOOKMARK, line)
        if line.startswith(b'{"type":"ERROR"'):
            return _tolerant(_ERROR, line)
        try:
            event = self._decode_event.decode(line)
        except msgspec.ValidationError:
            return self._decode_unusual(line)
        if event.type in ("BOOKMARK", "ERROR"):
            return self._decode_unusual(line)
        return event

    def _decode_unusual(self, line: bytes) -> WatchLine[AnyObject]:
        value = without_nulls(msgspec.json.decode(line))
        match value.get("type") if isinstance(value, dict) else None:
            case "BOOKMARK":
                return msgspec.convert(value, WatchBookmark)
            case "ERROR":
                return msgspec.convert(value, WatchError)
        return msgspec.convert(value, self._decode_event.type)


def _tolerant(decoder: msgspec.json.Decoder[Decoded], text: bytes) -> Decoded:
    try:
        return decoder.decode(text)
    except msgspec.ValidationError:
        return msgspec.convert(without_nulls(msgspec.json.decode(text)), decoder.type)


def without_nulls(value: Any) -> Any:
    match value:
        case dict():
            return {key: without_nulls(each) for key, each in value.items() if each is not None}
        case list():
            return [without_nulls(each) for each in value if each is not None]
    return value


PODS: Final = ResourceKind(objects.Pod, "pods")
NODES: Final = ResourceKind(objects.Node, "nodes", namespaced=False)
NAMESPACES: Final = ResourceKind(objects.Namespace, "namespaces", namespaced=False)
PRIORITY_CLASSES: Final = ResourceKind(
    objects.PriorityClass, "priorityclasses", group="scheduling.k8s.io", namespaced=False
)
POD_DISRUPTION_BUDGETS: Final = ResourceKind(
    objects.PodDisruptionBudget, "poddisruptionbudgets", group="policy"
)
#: Served only where the GenericWorkload feature gate is on: ask `KubernetesClient.has_api`.
POD_GROUPS: Final = ResourceKind(
    objects.PodGroup, "podgroups", group="scheduling.k8s.io", version="v1alpha2"
)
#: Served only where the custom resource is defined.
COSCHEDULING_GROUPS: Final = ResourceKind(
    objects.CoschedulingGroup,
    "podgroups",
    group="scheduling.x-k8s.io",
    version="v1alpha1",
    name="PodGroup",
)
#: Served where pod groups are.
WORKLOADS: Final = ResourceKind(
    objects.Workload, "workloads", group="scheduling.k8s.io", version="v1alpha2"
)
PERSISTENT_VOLUMES: Final = ResourceKind(
    objects.PersistentVolume, "persistentvolumes", namespaced=False
)
PERSISTENT_VOLUME_CLAIMS: Final = ResourceKind(
    objects.PersistentVolumeClaim, "persistentvolumeclaims"
)
STORAGE_CLASSES: Final = ResourceKind(
    objects.StorageClass, "storageclasses", group="storage.k8s.io", namespaced=False
)
LEASES: Final = ResourceKind(objects.Lease, "leases", group="coordination.k8s.io")
EVENTS: Final = ResourceKind(objects.KubernetesEvent, "events", group="events.k8s.io", name="Event")
