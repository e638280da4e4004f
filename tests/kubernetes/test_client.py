"""The client against a real API server."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable

import msgspec
import pytest
from faulty_proxy import Fault, FaultyProxy
from kube_cases import Plane, asynchronous, pod

from argosy.kubernetes.client import KubernetesClient, PatchForm
from argosy.kubernetes.connection import TlsSettings
from argosy.kubernetes.credentials import Login, Secret, bearer
from argosy.kubernetes.failures import (
    EvictionRefused,
    KubernetesError,
    KubernetesUnreachable,
    KubernetesUntrusted,
    NotAuthenticated,
    ObjectConflict,
    ObjectExists,
    ObjectNotFound,
    RequestForbidden,
    RequestInvalid,
    RequestThrottled,
    ServerFailed,
    StrangeAnswer,
)
from argosy.kubernetes.kinds import (
    EVENTS,
    LEASES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    WORKLOADS,
    ResourceKind,
)
from argosy.kubernetes.kubeconfig import load_connection
from argosy.kubernetes.meta import KubernetesObject, ObjectMeta, ObjectReference
from argosy.kubernetes.objects import (
    GangPolicy,
    KubernetesEvent,
    Lease,
    LeaseSpec,
    PodGroup,
    PodGroupPolicy,
    PodGroupSpec,
    PodSchedulingGroup,
)
from argosy.kubernetes.requests import RequestSettings

#: Repeats for a short time, without noticeable delays.
BRIEF = RequestSettings(patience=5.0, first_delay=0.001, longest_delay=0.01)
HASTY = RequestSettings(patience=0.0, timeout=0.5)


class Attempts:
    """Counts what the client reports, and may act on it."""

    def __init__(self) -> None:
        self.codes: Counter[tuple[str, str, int]] = Counter()
        self.delays: list[float] = []
        self.waits = asyncio.Event()

    def answered(self, verb: str, resource: str, code: int, seconds: float) -> None:
        assert seconds >= 0
        self.codes[verb, resource, code] += 1

    def repeated(self, verb: str, resource: str, delay: float) -> None:
        self.delays.append(delay)
        self.waits.set()

    def watch_restarted(self, resource: str, cause: str) -> None:
        raise AssertionError("nothing is watched")


@asynchronous
async def test_objects_are_created_read_and_deleted(control_plane: Plane, namespace: str) -> None:
    async with KubernetesClient(load_connection(control_plane.kubeconfig)) as client:
        made = await client.create(PODS, pod("a", namespace, app="web"))
        assert made.uid
        assert (await client.get(PODS, "a", namespace)).metadata == made.metadata
        with pytest.raises(ObjectExists, match="already exists"):
            await client.create(PODS, pod("a", namespace))
        with pytest.raises(ObjectConflict):
            await client.delete(PODS, "a", namespace, uid="another", grace_seconds=0)
        await client.delete(PODS, "a", namespace, uid=made.uid, grace_seconds=0)
        with pytest.raises(ObjectNotFound) as caught:
            await client.get(PODS, "a", namespace)
        assert caught.value.reason == "NotFound"
        assert str(caught.value) == f'GET /api/v1/namespaces/{namespace}/pods/a: pods "a" not found'


@asynchronous
async def test_lists_are_read_page_by_page(control_plane: Plane, namespace: str) -> None:
    async with KubernetesClient(load_connection(control_plane.kubeconfig)) as client:
        for at in range(5):
            await client.create(PODS, pod(f"p{at}", namespace, parity=str(at % 2)))
        pages = [page async for page in client.list_pages(PODS, namespace, page=2)]
        assert [len(page.items) for page in pages] == [2, 2, 1]
        assert len({page.metadata.resource_version for page in pages}) == 1
        everything = await client.list_all(PODS, namespace, page=2)
        assert sorted(each.name for each in everything.items) == [f"p{at}" for at in range(5)]
        assert int(everything.metadata.resource_version) > 0
        odd = await client.list_all(PODS, namespace, labels="parity=1")
        assert [each.name for each in odd.items] == ["p1", "p3"]
        named = await client.list_all(PODS, namespace, fields="metadata.name=p4")
        assert [each.name for each in named.items] == ["p4"]
        assert {"p0", "p4"} <= {each.name for each in (await client.list_all(PODS)).items}


@asynchronous
async def test_a_bind_holds_only_for_the_pod_that_was_meant(
    control_plane: Plane, namespace: str
) -> None:
    async with KubernetesClient(load_connection(control_plane.kubeconfig)) as client:
        made = await client.create(PODS, pod("a", namespace))
        version = made.metadata.resource_version
        with pytest.raises(ObjectConflict, match="UID"):
            await client.bind(namespace, "a", "n1", uid="another")
        with pytest.raises(ObjectConflict):
            await client.bind(namespace, "a", "n1", uid=made.uid, resource_version="1")
        await client.bind(
            namespace,
            "a",
            "n1",
            uid=made.uid,
            resource_version=version,
            annotations={"why": "room"},
        )
        bound = await client.get(PODS, "a", namespace)
        assert bound.spec.node_name == "n1"
        assert bound.metadata.annotations == {"why": "room"}
        with pytest.raises(ObjectConflict, match="already assigned"):
            await client.bind(namespace, "a", "n2", uid=made.uid)
        with pytest.raises(ObjectNotFound):
            await client.bind(namespace, "b", "n1")


@asynchronous
async def test_patches_of_every_form(control_plane: Plane, namespace: str) -> None:
    async with KubernetesClient(load_connection(control_plane.kubeconfig)) as client:
        made = await client.create(PODS, pod("a", namespace, app="web"))
        change = {"metadata": {"labels": {"app": None, "tier": "front"}}}
        merged = await client.patch(PODS, "a", change, namespace)
        assert merged.metadata.labels == {"tier": "front"}
        stale = {
            "metadata": {"resourceVersion": made.metadata.resource_version, "labels": {"x": "y"}}
        }
        with pytest.raises(ObjectConflict):
            await client.patch(PODS, "a", stale, namespace)
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        for message in ("no room", "still none"):
            told = await client.patch(
                PODS,
                "a",
                {
                    "status": {
                        "nominatedNodeName": "n1",
                        "conditions": [{**condition, "message": message}],
                    }
                },
                namespace,
                form=PatchForm.STRATEGIC,
                subresource="status",
            )
        assert told.status.nominated_node_name == "n1"
        assert [each.message for each in told.status.conditions] == ["still none"]
        applied = await client.patch(
            PODS,
            "a",
            {"metadata": {"labels": {"tier": "back"}}},
            namespace,
            form=PatchForm.APPLY,
            field_manager="test",
            force=True,
        )
        assert applied.metadata.labels == {"tier": "back"}
        with pytest.raises(ObjectConflict, match="conflict"):
            await client.patch(
                PODS,
                "a",
                {"metadata": {"labels": {"tier": "x"}}},
                namespace,
                form=PatchForm.APPLY,
                field_manager="other",
            )
        steps = [{"op": "add", "path": "/metadata/labels/step", "value": "1"}]
        stepped = await client.patch(PODS, "a", steps, namespace, form=PatchForm.JSON)
        assert stepped.metadata.labels == {"tier": "back", "step": "1"}


@asynchronous
async def test_an_object_is_replaced_only_if_it_is_as_it_was_read(
    control_plane: Plane, namespace: str
) -> None:
    async with KubernetesClient(load_connection(control_plane.kubeconfig)) as client:
        lease = Lease(metadata=ObjectMeta(name="l", namespace=namespace), spec=LeaseSpec())
        first = await client.create(LEASES, lease)
        taken = msgspec.structs.replace(first, spec=LeaseSpec(holder_identity="me"))
        assert (await client.replace(LEASES, taken)).spec.holder_identity == "me"
        with pytest.raises(ObjectConflict, match="the object has been modified"):
            await client.replace(LEASES, taken)


@asynchronous
async def test_an_eviction_heeds_disruption_budgets(control_plane: Plane, namespace: str) -> None:
    attempts = Attempts()
    connection = load_connection(control_plane.kubeconfig)
    async with KubernetesClient(connection, observer=attempts) as client:
        made = await client.create(PODS, pod("a", namespace, app="web"))
        await client.bind(namespace, "a", "n1")
        budget = {
            "metadata": {"name": "web"},
            "spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": "web"}}},
        }
        kept = await client.create(POD_DISRUPTION_BUDGETS, budget, namespace)
        assert kept.spec.min_available == 0
        ready = {
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        }
        await client.patch(
            PODS, "a", ready, namespace, form=PatchForm.STRATEGIC, subresource="status"
        )
        # Without its controller the budget allows nothing.
        with pytest.raises(EvictionRefused, match="disruption budget"):
            await client.evict(namespace, "a", uid=made.uid)
        assert attempts.delays == [], "the client does not wait for a budget"
        allowed = {
            "status": {"observedGeneration": kept.metadata.generation, "disruptionsAllowed": 1}
        }
        await client.patch(POD_DISRUPTION_BUDGETS, "web", allowed, namespace, subresource="status")
        await client.evict(namespace, "a", uid=made.uid, grace_seconds=0)
        with pytest.raises(ObjectNotFound):
            await client.get(PODS, "a", namespace)


@asynchronous
async def test_what_the_server_is_and_serves(control_plane: Plane, namespace: str) -> None:
    async with KubernetesClient(load_connection(control_plane.kubeconfig)) as client:
        assert (await client.version()).major == "1"
        assert await client.serves(PODS)
        assert await client.has_api("policy", "v1", "poddisruptionbudgets")
        assert not await client.has_api("policy", "v1", "podgroups")
        assert not await client.has_api("nobody.invalid", "v1", "things")
        classes = await client.list_all(PRIORITY_CLASSES)
        assert {"system-node-critical"} <= {each.name for each in classes.items}


def test_pod_groups_are_read_where_they_are_served(
    start_control_plane: Callable[..., Plane],
) -> None:
    plane = start_control_plane(
        kwok=False,
        apiserver_flags=(
            "--feature-gates=GenericWorkload=true",
            "--runtime-config=scheduling.k8s.io/v1alpha2=true",
        ),
    )

    @asynchronous
    async def use() -> None:
        async with KubernetesClient(load_connection(plane.kubeconfig)) as client:
            assert await client.serves(POD_GROUPS)
            assert await client.serves(WORKLOADS)
            gang = PodGroup(
                metadata=ObjectMeta(name="gang"),
                spec=PodGroupSpec(scheduling_policy=PodGroupPolicy(gang=GangPolicy(min_count=3))),
            )
            await client.create(POD_GROUPS, gang)
            (served,) = (await client.list_all(POD_GROUPS)).items
            assert served.spec.scheduling_policy.gang == GangPolicy(min_count=3)
            one = pod("one", "default")
            group = PodSchedulingGroup(pod_group_name="gang")
            spec = msgspec.structs.replace(one.spec, scheduling_group=group)
            made = await client.create(PODS, msgspec.structs.replace(one, spec=spec))
            assert made.spec.scheduling_group == group
            workload = {
                "metadata": {"name": "training"},
                "spec": {
                    "podGroupTemplates": [
                        {"name": "workers", "schedulingPolicy": {"gang": {"minCount": 2}}},
                        {"name": "helpers", "schedulingPolicy": {"basic": {}}},
                    ]
                },
            }
            templates = (await client.create(WORKLOADS, workload)).spec.pod_group_templates
            assert [each.name for each in templates] == ["workers", "helpers"]
            assert templates[0].scheduling_policy == PodGroupPolicy(gang=GangPolicy(min_count=2))
            assert templates[1].scheduling_policy.basic is not None

    use()


@asynchronous
async def test_an_event_is_written(control_plane: Plane, namespace: str) -> None:
    async with KubernetesClient(load_connection(control_plane.kubeconfig)) as client:
        made = await client.create(PODS, pod("a", namespace))
        event = KubernetesEvent(
            metadata=ObjectMeta(name="a.1", namespace=namespace),
            event_time="2026-01-02T03:04:05.000006Z",
            reporting_controller="argosy",
            reporting_instance="argosy-0",
            action="Scheduling",
            reason="FailedScheduling",
            type="Warning",
            note="no room",
            regarding=ObjectReference(
                api_version="v1", kind="Pod", namespace=namespace, name="a", uid=made.uid
            ),
        )
        written = await client.create(EVENTS, event)
        assert (written.note, written.event_time) == ("no room", "2026-01-02T03:04:05.000006Z")


@asynchronous
async def test_refusals_have_the_servers_own_words(control_plane: Plane, namespace: str) -> None:
    connection = load_connection(control_plane.kubeconfig)
    async with KubernetesClient(connection) as client:
        with pytest.raises(RequestInvalid, match="is invalid"):
            await client.create(PODS, {"metadata": {"name": "A"}, "spec": {}}, namespace)
        with pytest.raises(ObjectNotFound):
            await client.list_all(ResourceKind(KubernetesObject, "things", group="nobody.invalid"))
    nobody = msgspec.structs.replace(connection, headers=(("Impersonate-User", "nobody"),))
    async with KubernetesClient(nobody) as client:
        with pytest.raises(RequestForbidden, match='User "nobody" cannot list resource "nodes"'):
            await client.list_all(NODES)


class ChangingToken:
    """The first token is wrong; after a refusal it is the right one."""

    def __init__(self, right: Login) -> None:
        self._right = right
        self.refusals = 0

    async def login(self) -> Login:
        return self._right if self.refusals else Login(bearer("wrong"))

    def refused(self) -> None:
        self.refusals += 1


@asynchronous
async def test_credentials_are_renewed_when_the_server_refuses_them(control_plane: Plane) -> None:
    connection = load_connection(control_plane.kubeconfig)
    credentials = ChangingToken(await connection.credentials.login())
    changing = msgspec.structs.replace(connection, credentials=credentials)
    async with KubernetesClient(changing) as client:
        await client.list_all(NODES)
        assert credentials.refusals == 1
    wrong = msgspec.structs.replace(
        connection, credentials=ChangingToken(Login(Secret("Bearer wrong as well")))
    )
    async with KubernetesClient(wrong) as client:
        with pytest.raises(NotAuthenticated, match="Unauthorized"):
            await client.list_all(NODES)


@asynchronous
async def test_a_server_with_another_certificate_is_not_asked(control_plane: Plane) -> None:
    connection = load_connection(control_plane.kubeconfig)
    strangers = [
        msgspec.structs.replace(connection, tls=TlsSettings()),
        msgspec.structs.replace(
            connection, tls=msgspec.structs.replace(connection.tls, server_name="other.invalid")
        ),
    ]
    for stranger in strangers:
        async with KubernetesClient(stranger) as client:
            with pytest.raises(KubernetesUntrusted, match="is not trusted"):
                await client.version()
    careless = msgspec.structs.replace(connection, tls=TlsSettings(is_insecure=True))
    async with KubernetesClient(careless) as client:
        assert (await client.version()).major == "1"


@asynchronous
async def test_throttled_requests_are_repeated_when_the_server_says(
    control_plane: Plane, namespace: str
) -> None:
    attempts = Attempts()
    async with FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy:
        proxy.inject(Fault(status=429, headers={"Retry-After": "1"}))
        proxy.inject(Fault(status=503, headers={"Retry-After": "0"}))
        async with KubernetesClient(proxy.connection, BRIEF, observer=attempts) as client:
            started = time.monotonic()
            made = await client.create(PODS, pod("a", namespace))
            assert time.monotonic() - started >= 1.0
            assert made.name == "a"
    assert attempts.codes == {
        ("create", "pods", 429): 1,
        ("create", "pods", 503): 1,
        ("create", "pods", 201): 1,
    }
    assert attempts.delays[0] >= 1.0


@asynchronous
async def test_a_server_that_goes_on_throttling_is_given_up(control_plane: Plane) -> None:
    async with FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy:
        proxy.inject(Fault(status=429, headers={"Retry-After": "60"}))
        proxy.inject(Fault(status=500))
        async with KubernetesClient(proxy.connection, BRIEF) as client:
            with pytest.raises(RequestThrottled, match="the server answered 429"):
                await client.version()
            with pytest.raises(ServerFailed, match="the server answered 500"):
                await client.version()
            assert (await client.version()).major == "1"


@asynchronous
async def test_what_reads_is_repeated_when_the_connection_breaks(control_plane: Plane) -> None:
    async with FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy:
        proxy.inject(Fault(breaks="before"), times=3)
        proxy.inject(Fault(breaks="after"), times=3)
        async with KubernetesClient(proxy.connection, BRIEF) as client:
            assert (await client.version()).major == "1"


@asynchronous
async def test_what_changes_something_is_not_sent_twice(
    control_plane: Plane, namespace: str
) -> None:
    async with FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy:
        async with KubernetesClient(proxy.connection, BRIEF) as client:
            await client.create(PODS, pod("a", namespace))
            proxy.inject(Fault(breaks="after"))
            with pytest.raises(KubernetesUnreachable, match="broke") as caught:
                await client.bind(namespace, "a", "n1")
            assert caught.value.may_have_happened
            assert (await client.get(PODS, "a", namespace)).spec.node_name == "n1"
        assert sum("binding" in each for each in proxy.seen) == 1


@asynchronous
async def test_anything_is_repeated_until_there_is_a_connection(
    control_plane: Plane, namespace: str
) -> None:
    attempts = Attempts()
    async with FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy:
        await proxy.go_away()
        async with KubernetesClient(proxy.connection, BRIEF, observer=attempts) as client:
            creating = asyncio.ensure_future(client.create(PODS, pod("a", namespace)))
            await attempts.waits.wait()
            await proxy.come_back()
            assert (await creating).name == "a"
    assert attempts.codes["create", "pods", 0] >= 1


@asynchronous
async def test_a_silent_server_is_not_waited_for_longer_than_asked(control_plane: Plane) -> None:
    async with FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy:
        proxy.inject(Fault(gate=asyncio.Event()))
        async with KubernetesClient(proxy.connection, HASTY) as client:
            with pytest.raises(KubernetesUnreachable, match=r"did not answer in 0\.5 s") as caught:
                await client.version()
            assert caught.value.may_have_happened
            assert (await client.version()).major == "1"


@asynchronous
async def test_no_more_requests_than_allowed_are_under_way(control_plane: Plane) -> None:
    settings = RequestSettings(concurrent=3)
    async with FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy:
        async with KubernetesClient(proxy.connection, settings) as client:
            await asyncio.gather(*(client.version() for _ in range(20)))
        assert proxy.most_under_way == 3
        assert len(proxy.seen) == 20


@asynchronous
async def test_an_answer_that_is_no_kubernetes(control_plane: Plane) -> None:
    async with FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy:
        for _ in range(2):
            proxy.inject(Fault(status=200, body=b"<html>hello</html>"))
        proxy.inject(Fault(status=302, headers={"Location": "http://127.0.0.1:1/"}))
        async with KubernetesClient(proxy.connection, HASTY) as client:
            with pytest.raises(StrangeAnswer, match="cannot read the answer"):
                await client.list_all(NODES)
            with pytest.raises(StrangeAnswer):
                await client.version()
            with pytest.raises(StrangeAnswer, match="the server answered 302"):
                await client.version()


def test_a_name_cannot_ask_for_something_else() -> None:
    assert PODS.path("a/b", "c?d", "binding") == "/api/v1/namespaces/a%2Fb/pods/c%3Fd/binding"


def test_every_error_is_one_line_with_a_code() -> None:
    def kinds(kind: type[KubernetesError]) -> list[type[KubernetesError]]:
        return [kind, *(each for below in kind.__subclasses__() for each in kinds(below))]

    codes = [each.code for each in kinds(KubernetesError)]
    assert len(codes) == len(set(codes)) >= 14
