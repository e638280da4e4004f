"""The client: typed objects in and out of an API server."""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Mapping
from random import Random
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

import msgspec

from argosy.kubernetes.connection import Connection
from argosy.kubernetes.failures import ObjectNotFound, StrangeAnswer
from argosy.kubernetes.kinds import PODS, ResourceKind
from argosy.kubernetes.meta import AnyObject, KubernetesObject, ObjectList, Served
from argosy.kubernetes.requests import (
    KubernetesCall,
    RequestObserver,
    RequestSender,
    RequestSettings,
)

#: An object, or its JSON as a mapping where it has fields that the typed subset lacks.
ObjectBody: TypeAlias = KubernetesObject | Mapping[str, Any]


AnyAnswer = TypeVar("AnyAnswer", bound=Served)


class PatchForm(enum.Enum):
    """What a patch means."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"
    JSON = "application/json-patch+json"


class ServerVersion(Served, frozen=True):
    major: str = ""
    minor: str = ""
    git_version: str = ""


class _ServedResource(Served, frozen=True):
    name: str = ""


class _ServedResources(Served, frozen=True):
    resources: tuple[_ServedResource, ...] = ()


class KubernetesClient:
    """Requests to one API server. Use it as an async context manager.

    Errors are those of `failures`. Where `namespace` is left out, lists are of all namespaces; other
    requests are for the object's own namespace or that of the connection.
    """

    def __init__(
        self,
        connection: Connection,
        settings: RequestSettings | None = None,
        *,
        observer: RequestObserver | None = None,
        random: Random | None = None,
        sender: RequestSender | None = None,
    ) -> None:
        self.connection = connection
        #: For requests that have no method here.
        self.sender = sender or RequestSender(
            connection, settings, observer=observer, random=random
        )

    async def __aenter__(self) -> Self:
        await self.sender.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.sender.close()

    async def get(
        self, kind: ResourceKind[AnyObject], name: str, namespace: str | None = None
    ) -> AnyObject:
        call = KubernetesCall(
            verb="get", method="GET", path=self._path(kind, name, namespace), resource=kind.plural
        )
        return self._object(kind, call, await self.sender.send(call))

    async def list_all(
        self,
        kind: ResourceKind[AnyObject],
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        page: int = 500,
    ) -> ObjectList[AnyObject]:
        """All objects as of one version, which is in the list's metadata; `labels` and `fields` are
        selectors."""
        items: list[AnyObject] = []
        metadata = ObjectList[AnyObject]().metadata
        pages = self.list_pages(kind, namespace, labels=labels, fields=fields, page=page)
        async for each in pages:
            items.extend(each.items)
            metadata = each.metadata
        return ObjectList(metadata=metadata, items=tuple(items))

    async def list_pages(
        self,
        kind: ResourceKind[AnyObject],
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        page: int = 500,
    ) -> AsyncIterator[ObjectList[AnyObject]]:
        """All objects as of one version, in lists of at most `page`. Fails with `ResourceVersionGone` if
        reading takes longer than the server keeps versions, usually five minutes."""
        continued = ""
        while True:
            given = {
                "limit": str(page),
                "labelSelector": labels,
                "fieldSelector": fields,
                "continue": continued,
            }
            call = KubernetesCall(
                verb="list",
                method="GET",
                path=kind.path(namespace or ""),
                resource=kind.plural,
                parameters={name: value for name, value in given.items() if value},
            )
            body = await self.sender.send(call)
            try:
                objects = kind.decode_list(body)
            except msgspec.DecodeError as error:
                raise strange(call, error) from None
            yield objects
            continued = objects.metadata.continue_
            if not continued:
                return

    async def create(
        self,
        kind: ResourceKind[AnyObject],
        body: ObjectBody,
        namespace: str | None = None,
        *,
        field_manager: str = "",
    ) -> AnyObject:
        call = KubernetesCall(
            verb="create",
            method="POST",
            path=kind.path(self._namespace(kind, namespace, body)),
            resource=kind.plural,
            parameters={"fieldManager": field_manager} if field_manager else {},
            body=msgspec.json.encode(body),
        )
        return self._object(kind, call, await self.sender.send(call))

    async def replace(
        self,
        kind: ResourceKind[AnyObject],
        body: ObjectBody,
        namespace: str | None = None,
        *,
        subresource: str = "",
    ) -> AnyObject:
        """Writes the whole object. Fails with `ObjectConflict` if its `resource_version` is not the
        newest. Fields that the typed subset lacks would be lost: give a mapping for kinds with such."""
        call = KubernetesCall(
            verb="update",
            method="PUT",
            path=kind.path(self._namespace(kind, namespace, body), _name(body), subresource),
            resource=kind.plural,
            body=msgspec.json.encode(body),
        )
        return self._object(kind, call, await self.sender.send(call))

    async def patch(
        self,
        kind: ResourceKind[AnyObject],
        name: str,
        patch: Mapping[str, Any] | list[Any] | Served,
        namespace: str | None = None,
        *,
        form: PatchForm = PatchForm.MERGE,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
    ) -> AnyObject:
        """Changes part of an object. A `metadata.resourceVersion` in the patch is a precondition.
        `PatchForm.APPLY` needs a field manager; `force` takes fields over from other managers."""
        parameters = {"fieldManager": field_manager} if field_manager else {}
        if form is PatchForm.APPLY:
            parameters["force"] = "true" if force else "false"
            if isinstance(patch, Mapping):
                patch = {"apiVersion": kind.api_version, "kind": kind.name, **patch}
        call = KubernetesCall(
            verb="patch",
            method="PATCH",
            path=self._path(kind, name, namespace, subresource),
            resource=kind.plural,
            parameters=parameters,
            body=msgspec.json.encode(patch),
            content_type=form.value,
        )
        return self._object(kind, call, await self.sender.send(call))

    async def delete(
        self,
        kind: ResourceKind[AnyObject],
        name: str,
        namespace: str | None = None,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
        propagation: str = "",
    ) -> None:
        """`uid` and `resource_version` are preconditions."""
        options: dict[str, Any] = {}
        if preconditions := _preconditions(uid, resource_version):
            options["preconditions"] = preconditions
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if propagation:
            options["propagationPolicy"] = propagation
        await self.sender.send(
            KubernetesCall(
                verb="delete",
                method="DELETE",
                path=self._path(kind, name, namespace),
                resource=kind.plural,
                body=msgspec.json.encode(options),
            )
        )

    async def bind(
        self,
        namespace: str,
        name: str,
        node: str,
        *,
        uid: str = "",
        resource_version: str = "",
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Assigns a pod to a node. `uid` and `resource_version` are preconditions; annotations and
        labels are added to the pod in the same step.

        Fails with `ObjectConflict` if the pod is another one, has changed, is gated or bound already,
        and with `ObjectNotFound` if it is gone. The server checks neither the node nor its room. After
        `KubernetesUnreachable` with `may_have_happened` only the pod itself tells whether it is bound.
        """
        metadata: dict[str, Any] = {"name": name, "namespace": namespace}
        metadata |= _preconditions(uid, resource_version)
        if annotations:
            metadata["annotations"] = annotations
        if labels:
            metadata["labels"] = labels
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self.sender.send(
            KubernetesCall(
                verb="bind",
                method="POST",
                path=PODS.path(namespace, name, "binding"),
                resource="pods",
                body=msgspec.json.encode(body),
            )
        )

    async def evict(
        self, namespace: str, name: str, *, uid: str = "", grace_seconds: int | None = None
    ) -> None:
        """Deletes a pod unless a disruption budget forbids it: then it fails with `EvictionRefused`."""
        options: dict[str, Any] = {}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": options,
        }
        await self.sender.send(
            KubernetesCall(
                verb="evict",
                method="POST",
                path=PODS.path(namespace, name, "eviction"),
                resource="pods",
                body=msgspec.json.encode(body),
            )
        )

    async def version(self) -> ServerVersion:
        call = KubernetesCall(verb="get", method="GET", path="/version")
        return _decoded(call, await self.sender.send(call), ServerVersion)

    async def has_api(self, group: str, version: str, resource: str) -> bool:
        """Whether the server serves a resource, such as `podgroups`."""
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        call = KubernetesCall(verb="get", method="GET", path=path)
        try:
            body = await self.sender.send(call)
        except ObjectNotFound:
            return False
        served = _decoded(call, body, _ServedResources)
        return any(each.name == resource for each in served.resources)

    async def serves(self, kind: ResourceKind[Any]) -> bool:
        return await self.has_api(kind.group, kind.version, kind.plural)

    def _path(
        self, kind: ResourceKind[Any], name: str, namespace: str | None, subresource: str = ""
    ) -> str:
        return kind.path(self._namespace(kind, namespace), name, subresource)

    def _namespace(
        self, kind: ResourceKind[Any], namespace: str | None, body: ObjectBody | None = None
    ) -> str:
        if not kind.namespaced:
            return ""
        if namespace:
            return namespace
        own = ""
        match body:
            case KubernetesObject():
                own = body.metadata.namespace
            case Mapping():
                own = body.get("metadata", {}).get("namespace", "")
        return own or self.connection.namespace

    @staticmethod
    def _object(kind: ResourceKind[AnyObject], call: KubernetesCall, body: bytes) -> AnyObject:
        try:
            return kind.decode(body)
        except msgspec.DecodeError as error:
            raise strange(call, error) from None


def _decoded(call: KubernetesCall, body: bytes, kind: type[AnyAnswer]) -> AnyAnswer:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise strange(call, error) from None


def strange(call: KubernetesCall, error: msgspec.DecodeError) -> StrangeAnswer:
    return StrangeAnswer(str(call), f"cannot read the answer: {error}")


def _name(body: ObjectBody) -> str:
    return body.name if isinstance(body, KubernetesObject) else str(body["metadata"]["name"])


def _preconditions(uid: str, resource_version: str) -> dict[str, str]:
    given = {"uid": uid, "resourceVersion": resource_version}
    return {name: value for name, value in given.items() if value}
