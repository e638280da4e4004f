"""What each method of the client sends, to the letter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from kube_cases import asynchronous

from argosy.kubernetes.client import KubernetesClient, PatchForm
from argosy.kubernetes.connection import Connection
from argosy.kubernetes.credentials import FixedCredentials, Login
from argosy.kubernetes.failures import KubernetesError, ObjectNotFound, StrangeAnswer
from argosy.kubernetes.kinds import LEASES, NODES, PODS
from argosy.kubernetes.meta import ObjectMeta
from argosy.kubernetes.objects import Lease, LeaseSpec, Node, Pod
from argosy.kubernetes.requests import KubernetesCall, RequestSender

CONNECTION = Connection("http://nowhere", FixedCredentials(Login()), namespace="home")
POD = b'{"metadata":{"name":"p"}}'
Told = dict[str, Any]


class Sender(RequestSender):
    """Answers one after the other as it is told."""

    def __init__(self, *answers: bytes | KubernetesError) -> None:
        super().__init__(CONNECTION)
        self.answers = list(answers)
        self.calls: list[Told] = []

    async def send(self, call: KubernetesCall) -> bytes:
        body = None if call.body is None else msgspec.json.decode(call.body)
        told = {
            "call": f"{call.verb} {call.method} {call.path}",
            "resource": call.resource,
            "parameters": dict(call.parameters),
            "body": body,
            "content": call.content_type,
        }
        usual = {"resource": "pods", "parameters": {}, "content": "application/json", "body": None}
        self.calls.append({name: each for name, each in told.items() if each != usual.get(name)})
        answer = self.answers.pop(0)
        if isinstance(answer, KubernetesError):
            raise answer
        return answer


PATH = "/api/v1/namespaces/home/pods"
OTHER = "/api/v1/namespaces/s/pods"
LEASE = Lease(metadata=ObjectMeta(name="l", namespace="s"), spec=LeaseSpec(lease_transitions=1))
LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces"
BINDING = {
    "apiVersion": "v1",
    "kind": "Binding",
    "metadata": {"name": "p", "namespace": "s"},
    "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
}
EVICTION = {
    "apiVersion": "policy/v1",
    "kind": "Eviction",
    "metadata": {"name": "p", "namespace": "s"},
    "deleteOptions": {},
}
CALLS: list[tuple[Callable[[KubernetesClient], Awaitable[Any]], Told]] = [
    (lambda to: to.get(PODS, "p"), {"call": f"get GET {PATH}/p"}),
    (lambda to: to.get(PODS, "p", "s"), {"call": f"get GET {OTHER}/p"}),
    (
        lambda to: to.get(NODES, "p", "s"),
        {"call": "get GET /api/v1/nodes/p", "resource": "nodes"},
    ),
    (
        lambda to: to.create(PODS, Pod(metadata=ObjectMeta(name="p", namespace="s"))),
        {"call": f"create POST {OTHER}", "body": {"metadata": {"name": "p", "namespace": "s"}}},
    ),
    (
        lambda to: to.create(PODS, {"metadata": {"name": "p"}}, field_manager="me"),
        {
            "call": f"create POST {PATH}",
            "parameters": {"fieldManager": "me"},
            "body": {"metadata": {"name": "p"}},
        },
    ),
    (
        lambda to: to.create(PODS, {"metadata": {"namespace": "s"}}, "t"),
        {
            "call": "create POST /api/v1/namespaces/t/pods",
            "body": {"metadata": {"namespace": "s"}},
        },
    ),
    (lambda to: to.create(PODS, {}), {"call": f"create POST {PATH}", "body": {}}),
    (
        lambda to: to.create(NODES, Node(metadata=ObjectMeta(name="n"))),
        {
            "call": "create POST /api/v1/nodes",
            "resource": "nodes",
            "body": {"metadata": {"name": "n"}},
        },
    ),
    (
        lambda to: to.replace(LEASES, LEASE),
        {
            "call": f"update PUT {LEASE_PATH}/s/leases/l",
            "resource": "leases",
            "body": {
                "metadata": {"name": "l", "namespace": "s"},
                "spec": {"leaseTransitions": 1},
            },
        },
    ),
    (
        lambda to: to.replace(PODS, {"metadata": {"name": "p"}}, subresource="status"),
        {"call": f"update PUT {PATH}/p/status", "body": {"metadata": {"name": "p"}}},
    ),
    (
        lambda to: to.replace(PODS, {"metadata": {"name": "p"}}, "s"),
        {"call": f"update PUT {OTHER}/p", "body": {"metadata": {"name": "p"}}},
    ),
    (
        lambda to: to.patch(PODS, "p", {"a": None}),
        {
            "call": f"patch PATCH {PATH}/p",
            "body": {"a": None},
            "content": "application/merge-patch+json",
        },
    ),
    (
        lambda to: to.patch(PODS, "p", [{"op": "remove"}], "s", form=PatchForm.JSON),
        {
            "call": f"patch PATCH {OTHER}/p",
            "body": [{"op": "remove"}],
            "content": "application/json-patch+json",
        },
    ),
    (
        lambda to: to.patch(PODS, "p", {}, form=PatchForm.STRATEGIC, subresource="status"),
        {
            "call": f"patch PATCH {PATH}/p/status",
            "body": {},
            "content": "application/strategic-merge-patch+json",
        },
    ),
    (
        lambda to: to.patch(PODS, "p", {"kind": "Own"}, form=PatchForm.APPLY, field_manager="me"),
        {
            "call": f"patch PATCH {PATH}/p",
            "parameters": {"fieldManager": "me", "force": "false"},
            "body": {"apiVersion": "v1", "kind": "Own"},
            "content": "application/apply-patch+yaml",
        },
    ),
    (
        lambda to: to.patch(LEASES, "l", LEASE, "s", form=PatchForm.APPLY, force=True),
        {
            "call": f"patch PATCH {LEASE_PATH}/s/leases/l",
            "resource": "leases",
            "parameters": {"force": "true"},
            "body": {
                "metadata": {"name": "l", "namespace": "s"},
                "spec": {"leaseTransitions": 1},
            },
            "content": "application/apply-patch+yaml",
        },
    ),
    (
        lambda to: to.patch(PODS, "p", {}, field_manager="me", force=True),
        {
            "call": f"patch PATCH {PATH}/p",
            "parameters": {"fieldManager": "me"},
            "body": {},
            "content": "application/merge-patch+json",
        },
    ),
    (lambda to: to.delete(PODS, "p"), {"call": f"delete DELETE {PATH}/p", "body": {}}),
    (
        lambda to: to.delete(PODS, "p", "s", uid="u"),
        {"call": f"delete DELETE {OTHER}/p", "body": {"preconditions": {"uid": "u"}}},
    ),
    (
        lambda to: to.delete(PODS, "p", resource_version="7", grace_seconds=0),
        {
            "call": f"delete DELETE {PATH}/p",
            "body": {"preconditions": {"resourceVersion": "7"}, "gracePeriodSeconds": 0},
        },
    ),
    (
        lambda to: to.delete(PODS, "p", propagation="Foreground"),
        {"call": f"delete DELETE {PATH}/p", "body": {"propagationPolicy": "Foreground"}},
    ),
    (
        lambda to: to.bind("s", "p", "n"),
        {"call": f"bind POST {OTHER}/p/binding", "body": BINDING},
    ),
    (
        lambda to: to.bind("s", "p", "n", uid="u", resource_version="7", annotations={"a": "1"}),
        {
            "call": f"bind POST {OTHER}/p/binding",
            "body": BINDING
            | {
                "metadata": {
                    "name": "p",
                    "namespace": "s",
                    "uid": "u",
                    "resourceVersion": "7",
                    "annotations": {"a": "1"},
                }
            },
        },
    ),
    (
        lambda to: to.bind("s", "p", "n", annotations={}, labels={"l": "2"}),
        {
            "call": f"bind POST {OTHER}/p/binding",
            "body": BINDING
            | {"metadata": {"name": "p", "namespace": "s", "labels": {"l": "2"}}},
        },
    ),
    (
        lambda to: to.evict("s", "p"),
        {"call": f"evict POST {OTHER}/p/eviction", "body": EVICTION},
    ),
    (
        lambda to: to.evict("s", "p", uid="u"),
        {
            "call": f"evict POST {OTHER}/p/eviction",
            "body": EVICTION | {"deleteOptions": {"preconditions": {"uid": "u"}}},
        },
    ),
    (
        lambda to: to.evict("s", "p", grace_seconds=0),
        {
            "call": f"evict POST {OTHER}/p/eviction",
            "body": EVICTION | {"deleteOptions": {"gracePeriodSeconds": 0}},
        },
    ),
    (lambda to: to.version(), {"call": "get GET /version", "resource": ""}),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "expected"), CALLS)
@asynchronous
async def test_a_request_is_this_call(
    ask: Callable[[KubernetesClient], Awaitable[Any]], expected: Told
) -> None:
    sender = Sender(POD)
    await ask(KubernetesClient(CONNECTION, sender=sender))
    assert sender.calls == [expected]


@asynchronous
async def test_what_is_not_what_was_asked_for_is_a_strange_answer() -> None:
    for ask in (
        lambda to: to.get(PODS, "p"),
        lambda to: to.version(),
        lambda to: to.list_all(PODS),
        lambda to: to.serves(PODS),
        lambda to: to.create(PODS, {}),
        lambda to: to.patch(PODS, "p", {}),
    ):
        sender = Sender(b"<html>")
        with pytest.raises(StrangeAnswer) as caught:
            await ask(KubernetesClient(CONNECTION, sender=sender))
        _, method, path = sender.calls[0]["call"].split()
        assert str(caught.value).startswith(f"{method} {path}: cannot read the answer: ")


@asynchronous
async def test_pages_go_on_where_the_last_one_ended_until_one_has_no_successor() -> None:
    pages = [
        b'{"metadata":{"resourceVersion":"7","continue":"x"},"items":[{"metadata":{"name":"a"}}]}',
        b'{"metadata":{"resourceVersion":"8","continue":"y"},"items":[]}',
        b'{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"b"}}]}',
    ]
    sender = Sender(*pages)
    client = KubernetesClient(CONNECTION, sender=sender)
    found = await client.list_all(PODS, labels="a=b", fields="c=d", page=1)
    assert [each.name for each in found.items] == ["a", "b"]
    assert found.metadata.resource_version == "9"
    usual = {"limit": "1", "labelSelector": "a=b", "fieldSelector": "c=d"}
    parameters = [usual, usual | {"continue": "x"}, usual | {"continue": "y"}]
    assert sender.calls == [
        {"call": "list GET /api/v1/pods", "parameters": each} for each in parameters
    ]
    sender.answers = [b"{}"]
    assert (await client.list_all(PODS, "s")).items == ()
    assert sender.calls[-1] == {"call": f"list GET {OTHER}", "parameters": {"limit": "500"}}


@asynchronous
async def test_a_server_serves_what_it_lists() -> None:
    listed = b'{"resources":[{"name":"pods/status"},{"name":"pods"}]}'
    sender = Sender(listed, listed, b'{"resources":[{"name":"pods/status"}]}', b"{}")
    client = KubernetesClient(CONNECTION, sender=sender)
    found = [await client.serves(kind) for kind in (PODS, LEASES, PODS, PODS)]
    assert found == [True, False, False, False]
    assert [each["call"] for each in sender.calls[:2]] == [
        "get GET /api/v1",
        "get GET /apis/coordination.k8s.io/v1",
    ]
    sender.answers = [ObjectNotFound("x", "y"), KubernetesError("x", "y")]
    assert not await client.has_api("a", "v1", "b")
    with pytest.raises(KubernetesError):
        await client.has_api("a", "v1", "b")
