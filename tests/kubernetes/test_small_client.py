"""The client and watches against an API server in memory."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import msgspec
import pytest
from kube_cases import asynchronous
from kube_schedulers import pod_document
from small_api_server import SmallApiServer

from argosy.kubernetes import failures as failed
from argosy.kubernetes.client import KubernetesClient, PatchForm
from argosy.kubernetes.credentials import reason_of
from argosy.kubernetes.kinds import NODES, PODS, WORKLOADS
from argosy.kubernetes.meta import ServerStatus, WatchBookmark, WatchError, WatchEvent
from argosy.kubernetes.pacing import RequestLimiter
from argosy.kubernetes.requests import RequestSettings
from argosy.kubernetes.watching import ChangeKind, ObjectWatch, WatchSettings

SOON = RequestSettings(first_delay=0.001, longest_delay=0.002, patience=0.02)


def client_of(api: SmallApiServer, **options: Any) -> KubernetesClient:
    return KubernetesClient(api.connection, SOON, random=Random(1), **options)


@asynchronous
async def test_requests_say_what_they_mean_and_no_more() -> None:
    async with SmallApiServer() as api, client_of(api) as client:
        made = await client.create(PODS, pod_document("a"), field_manager="me")
        assert (made.name, made.namespace) == ("a", "default")
        assert api.queries.pop() == {"fieldManager": "me"}
        await client.create(
            PODS, {**pod_document("b"), "metadata": {"name": "b", "namespace": "s"}}
        )
        assert api.queries.pop() == {}
        assert {each.key for each in (await client.list_all(PODS)).items} == {
            ("default", "a"),
            ("s", "b"),
        }
        assert [each.name for each in (await client.list_all(PODS, "s")).items] == ["b"]
        a = await client.get(PODS, "a")
        await client.bind("default", "a", "n", uid=a.uid, annotations={"k": "v"}, labels={"l": "m"})
        assert api.written[-1][2] == {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": "a",
                "namespace": "default",
                "uid": a.uid,
                "annotations": {"k": "v"},
                "labels": {"l": "m"},
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
        }
        bound = await client.get(PODS, "a")
        assert (bound.spec.node_name, bound.metadata.annotations) == ("n", {"k": "v"})
        for force in (True, False):
            await client.patch(
                PODS, "a", {"x": 1}, form=PatchForm.APPLY, field_manager="me", force=force
            )
            assert api.queries[-1] == {"fieldManager": "me", "force": str(force).lower()}
            assert api.written[-1][2] == {"apiVersion": "v1", "kind": "Pod", "x": 1}
        await client.patch(PODS, "a", {"x": 2})
        assert (api.written[-1][2], api.queries[-1]) == ({"x": 2}, {})
        await client.evict("default", "a", uid=a.uid, grace_seconds=0)
        options = {"preconditions": {"uid": a.uid}, "gracePeriodSeconds": 0}
        assert api.written[-1][2]["deleteOptions"] == options
        b = await client.get(PODS, "b", "s")
        await client.delete(
            PODS, "b", "s", uid=b.uid, resource_version="9", grace_seconds=0, propagation="Orphan"
        )
        assert api.written[-1] == (
            "DELETE",
            "/api/v1/namespaces/s/pods/b",
            {
                "preconditions": {"uid": b.uid, "resourceVersion": "9"},
                "gracePeriodSeconds": 0,
                "propagationPolicy": "Orphan",
            },
        )
        api.put(NODES, {"metadata": {"name": "n"}})
        await client.delete(NODES, "n")
        assert api.written[-1] == ("DELETE", "/api/v1/nodes/n", {})
        assert api.nodes_of_pods == {}


@asynchronous
async def test_long_lists_are_read_in_pages() -> None:
    async with SmallApiServer() as api, client_of(api) as client:
        for number in range(5):
            api.put(PODS, pod_document(f"p{number}"))
        sizes = [len(page.items) async for page in client.list_pages(PODS, page=2)]
        assert sizes == [2, 2, 1]
        whole = await client.list_all(PODS, page=2)
        assert [each.name for each in whole.items] == [f"p{number}" for number in range(5)]
        assert whole.metadata.resource_version == "5"


@asynchronous
async def test_what_a_server_serves_is_asked_of_it() -> None:
    async with SmallApiServer() as api, client_of(api) as client:
        assert await client.has_api("scheduling.k8s.io", "v1alpha2", "podgroups")
        assert not await client.serves(WORKLOADS)
        api.faults.append(lambda method, path: (404, "NotFound"))
        assert not await client.has_api("scheduling.k8s.io", "v1alpha2", "podgroups")
        with pytest.raises(failed.ObjectNotFound):
            await client.version()


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", failed.RequestInvalid),
        (401, "Unauthorized", failed.NotAuthenticated),
        (403, "Forbidden", failed.RequestForbidden),
        (404, "NotFound", failed.ObjectNotFound),
        (409, "Conflict", failed.ObjectConflict),
        (409, "AlreadyExists", failed.ObjectExists),
        (410, "Gone", failed.ResourceVersionGone),
        (418, "Teapot", failed.StrangeAnswer),
        (422, "Invalid", failed.RequestInvalid),
        (429, "TooManyRequests", failed.RequestThrottled),
        (500, "InternalError", failed.ServerFailed),
        (503, "Unavailable", failed.RequestThrottled),
    ],
)
@asynchronous
async def test_each_status_has_its_error(code: int, reason: str, kind: type[Exception]) -> None:
    asked: list[str] = []

    def refuse(method: str, path: str) -> tuple[int, str]:
        asked.append(path)
        return code, reason

    async with SmallApiServer() as api, client_of(api) as client:
        api.faults.append(refuse)
        with pytest.raises(failed.KubernetesError) as caught:
            await client.get(PODS, "a")
        assert type(caught.value) is kind
        assert caught.value.reason == reason
        assert str(caught.value).startswith("GET /api/v1/namespaces/default/pods/a: ")
        # Credentials may have expired; anything else is not asked again unless the server says so.
        assert len(asked) == (2 if code == 401 else 1)


@asynchronous
async def test_a_server_that_is_away_is_asked_again_for_a_while() -> None:
    repeats: list[tuple[str, str]] = []

    class Observer:
        def answered(self, verb: str, resource: str, code: int, seconds: float) -> None:
            assert code == 0

        def repeated(self, verb: str, resource: str, delay: float) -> None:
            repeats.append((verb, resource))

        def watch_restarted(self, resource: str, cause: str) -> None:
            raise AssertionError

    async with SmallApiServer() as api:
        connection = api.connection
    async with KubernetesClient(connection, SOON, observer=Observer(), random=Random(1)) as client:
        with pytest.raises(failed.KubernetesUnreachable, match="no connection to") as caught:
            await client.get(PODS, "a")
        assert not caught.value.may_have_happened
        assert set(repeats) == {("get", "pods")}
        # What was never sent may be sent again, whatever it is.
        repeats.clear()
        with pytest.raises(failed.KubernetesUnreachable):
            await client.delete(PODS, "a")
        assert set(repeats) == {("delete", "pods")}


# Watches.

PROMPT = WatchSettings(first_delay=0.001, longest_delay=0.002)


async def changes(watch: ObjectWatch[Any]) -> list[tuple[ChangeKind, str]]:
    batch = await anext(watch)
    return [(each.kind, (each.new or each.old).name) for each in batch.changes]


@asynchronous
async def test_every_change_counts_as_an_event() -> None:
    async with SmallApiServer() as api, client_of(api) as client:
        api.put(PODS, pod_document("a"))
        async with ObjectWatch(client, PODS, settings=PROMPT) as watch:
            await changes(watch)
            for name in ("b", "c"):
                api.put(PODS, pod_document(name))
                await changes(watch)
            assert watch.events == 3
            for name, events in (("a", 4), ("b", 5)):
                api.remove(PODS, name)
                await changes(watch)
                assert watch.events == events


@asynchronous
async def test_a_watch_goes_on_from_where_it_was_cut() -> None:
    async with SmallApiServer() as api, client_of(api) as client:
        api.put(PODS, pod_document("a"))
        async with ObjectWatch(client, PODS, labels="x", settings=PROMPT) as watch:
            assert not watch.is_complete
            assert await changes(watch) == [(ChangeKind.ADDED, "a")]
            assert watch.is_complete
            assert watch.lag == 0.0
            api.say(PODS, b"")
            while len(api.watched) < 2:
                await asyncio.sleep(0.001)
            api.put(PODS, pod_document("b"))
            assert await changes(watch) == [(ChangeKind.ADDED, "b")]
            assert watch.restarts == {"ended": 1}
            assert (watch.relists, watch.bookmarks, watch.events) == (0, 1, 2)
            first, second = api.watched
            assert first["sendInitialEvents"] == "true"
            assert "resourceVersion" not in first
            assert second["resourceVersion"] == "1"
            assert "sendInitialEvents" not in second
            assert first["labelSelector"] == second["labelSelector"] == "x"
            assert 300 <= int(first["timeoutSeconds"]) <= 600


@asynchronous
async def test_what_happened_while_a_watch_knew_nothing_is_found_out_by_reading_all() -> None:
    async with SmallApiServer() as api, client_of(api) as client:
        for name in ("kept", "gone", "again", "changed"):
            api.put(PODS, pod_document(name))
        async with ObjectWatch(client, PODS, settings=PROMPT) as watch:
            assert len(await changes(watch)) == 4
            store = api._stores[PODS.path()]
            del store["default", "gone"]
            store["default", "again"] = {**store["default", "again"]}
            store["default", "again"]["metadata"] = {
                "name": "again",
                "namespace": "default",
                "uid": "another",
                "resourceVersion": "90",
            }
            store["default", "changed"]["metadata"]["resourceVersion"] = "91"
            status = {"kind": "Status", "code": 410, "reason": "Expired"}
            api.say(PODS, msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n")
            seen: list[tuple[ChangeKind, str]] = []
            while len(seen) < 4:
                seen += await changes(watch)
            assert sorted(seen, key=str) == [
                (ChangeKind.ADDED, "again"),
                (ChangeKind.CHANGED, "changed"),
                (ChangeKind.DELETED, "again"),
                (ChangeKind.DELETED, "gone"),
            ]
            assert watch.relists == 1
            assert watch.restarts == {"gone": 1}
            assert {name for _, name in watch.objects} == {"kept", "again", "changed"}


@pytest.mark.parametrize("by_lists", [False, True])
@asynchronous
async def test_what_goes_between_two_attempts_to_read_all_is_not_kept(by_lists: bool) -> None:
    """The second attempt counts alone: what only the first one met is gone."""
    async with SmallApiServer() as api, client_of(api) as client:
        for name in ("going", "staying"):
            api.put(PODS, pod_document(name))
        store = api._stores[PODS.path()]

        def fault(method: str, path: str) -> tuple[int, str] | None:
            if by_lists and "sendInitialEvents" in path:
                return 422, "Invalid"
            # The second page, once: by then the first one was met.
            if "continue=1" in path and ("default", "going") in store:
                del store["default", "going"]
                return 410, "Expired"
            return None

        api.faults.append(fault)
        settings = msgspec.structs.replace(PROMPT, page=1)
        watch = ObjectWatch(client, PODS, settings=settings)
        if not by_lists:
            # As when the stream is cut before its bookmark.
            watch._begin_reading_all()
            watch._put(PODS.decode(msgspec.json.encode(store.pop(("default", "going")))))
        async with watch:
            seen: list[tuple[ChangeKind, str]] = []
            while not watch.is_complete:
                seen += await changes(watch)
            assert seen == [
                (ChangeKind.ADDED, "going"),
                (ChangeKind.ADDED, "staying"),
                (ChangeKind.DELETED, "going"),
            ]
            assert [name for _, name in watch.objects] == ["staying"]


@asynchronous
async def test_a_server_that_cannot_stream_what_there_is_is_asked_for_lists() -> None:
    async with SmallApiServer() as api, client_of(api) as client:
        for number in range(3):
            api.put(PODS, pod_document(f"p{number}"))
        api.faults.append(
            lambda method, path: (422, "Invalid") if "sendInitialEvents" in path else None
        )
        settings = msgspec.structs.replace(PROMPT, page=2)
        async with ObjectWatch(client, PODS, settings=settings) as watch:
            seen: list[tuple[ChangeKind, str]] = []
            while len(seen) < 3:
                seen += await changes(watch)
            assert seen == [(ChangeKind.ADDED, f"p{number}") for number in range(3)]
            assert watch.resource_version == "3"
            while not api.watched:
                await asyncio.sleep(0.001)
            api.remove(PODS, "p1")
            assert await changes(watch) == [(ChangeKind.DELETED, "p1")]
            assert watch.restarts == {"kubernetes-invalid": 1}


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (403, "Forbidden", failed.RequestForbidden),
        (404, "NotFound", failed.ObjectNotFound),
        (401, "Unauthorized", failed.NotAuthenticated),
    ],
)
@asynchronous
async def test_a_watch_that_has_no_prospects_says_so(
    code: int, reason: str, kind: type[Exception]
) -> None:
    async with SmallApiServer() as api, client_of(api) as client:
        api.faults.append(lambda method, path: (code, reason))
        async with ObjectWatch(client, PODS, settings=PROMPT) as watch:
            with pytest.raises(kind):
                await anext(watch)


@asynchronous
async def test_a_watch_that_was_complete_outlives_every_error() -> None:
    async with SmallApiServer() as api, client_of(api) as client:
        api.put(PODS, pod_document("a"))
        async with ObjectWatch(client, PODS, settings=PROMPT) as watch:
            await anext(watch)
            errors = iter([(403, "Forbidden"), (500, "InternalError"), (404, "NotFound")])
            api.faults.append(lambda method, path: next(errors, None))
            api.say(PODS, b"")
            while len(api.watched) < 2:
                await asyncio.sleep(0.001)
            api.put(PODS, pod_document("b"))
            assert await changes(watch) == [(ChangeKind.ADDED, "b")]
            assert watch.restarts == {
                "ended": 1,
                "kubernetes-forbidden": 1,
                "kubernetes-server": 1,
                "kubernetes-not-found": 1,
            }


@asynchronous
async def test_an_object_that_cannot_be_read_costs_no_other() -> None:
    async with SmallApiServer() as api, client_of(api) as client:
        api.put(PODS, pod_document("a"))
        async with ObjectWatch(client, PODS, settings=PROMPT) as watch:
            await anext(watch)
            metadata = {"name": "a", "namespace": "default", "resourceVersion": "7"}
            odd = {"metadata": metadata, "spec": "odd"}
            line = msgspec.json.encode({"type": "MODIFIED", "object": odd}) + b"\n"
            api.say(PODS, line)
            assert await changes(watch) == [(ChangeKind.DELETED, "a")]
            assert list(watch.unreadable) == [("default", "a")]
            assert watch.resource_version == "7"
            api.put(PODS, pod_document("a"))
            assert await changes(watch) == [(ChangeKind.ADDED, "a")]
            assert watch.unreadable == {}
            api.say(PODS, line + line.replace(b"MODIFIED", b"DELETED"))
            assert await changes(watch) == [(ChangeKind.DELETED, "a")]
            assert watch.unreadable == {}


@asynchronous
async def test_a_watch_that_keeps_some_objects_tells_how_others_left() -> None:
    async with SmallApiServer() as api, client_of(api) as client:
        api.put(PODS, pod_document("a"))
        watching = ObjectWatch(
            client, PODS, keeps=lambda pod: not pod.spec.node_name, settings=PROMPT
        )
        with pytest.raises(RuntimeError, match="not open"):
            await anext(watching)
        async with watching as watch:
            await anext(watch)
            api.put(PODS, pod_document("a", nodeName="n"))
            [change] = (await anext(watch)).changes
            assert (change.kind, change.new) == (ChangeKind.DELETED, None)
            assert change.final is not None
            assert change.final.spec.node_name == "n"
            assert dict(watch.objects) == {}


@pytest.mark.parametrize("fields", ["spec.nodeName=n", "a=b, spec.nodeName==n"])
@asynchronous
async def test_selectors_for_which_the_server_drops_watches_are_refused(fields: str) -> None:
    async with SmallApiServer() as api, client_of(api) as client:
        with pytest.raises(ValueError, match="select in the client"):
            ObjectWatch(client, PODS, fields=fields)
        ObjectWatch(client, NODES, fields=fields)
        ObjectWatch(client, PODS, fields="spec.nodeName!=n")


@asynchronous
async def test_selectors_reach_the_server() -> None:
    async with SmallApiServer() as api, client_of(api) as client:
        for name, labels in (("a", {"x": "y"}), ("b", {})):
            document = pod_document(name)
            document["metadata"]["labels"] = labels
            api.put(PODS, document)
        asked: list[str] = []
        api.faults.append(lambda method, path: asked.append(path))
        found = await client.list_all(PODS, labels="x=y", fields="status.phase!=Failed")
        assert [each.name for each in found.items] == ["a"]
        [path] = asked
        assert path.startswith("/api/v1/pods?limit=500&")
        assert "fieldSelector=status.phase!%3DFailed" in path
        await client.list_all(PODS, page=7)
        assert asked[-1] == "/api/v1/pods?limit=7"


def test_a_failure_says_what_the_server_said_or_its_code() -> None:
    said = ServerStatus(message="no", reason="Forbidden", code=403)
    assert str(failed.failure("GET /x", 403, said)) == "GET /x: no"
    silent = failed.failure("GET /x", 502, None)
    assert str(silent) == "GET /x: the server answered 502"
    assert type(silent) is failed.ServerFailed
    assert str(failed.failure("GET /x", 404, ServerStatus())) == "GET /x: the server answered 404"
    assert type(failed.failure("GET /x", 499, None)) is failed.StrangeAnswer


@pytest.mark.parametrize("line", ["ADDED", "BOOKMARK", "ERROR"])
def test_lines_of_a_watch_are_read_whatever_the_order_of_their_fields(line: str) -> None:
    status = {"kind": "Status", "code": 410}
    about = status if line == "ERROR" else {"metadata": {"name": "a", "resourceVersion": "3"}}
    usual = msgspec.json.encode({"type": line, "object": about})
    odd = msgspec.json.encode({"object": about, "type": line})
    assert PODS.decode_line(usual) == PODS.decode_line(odd)
    kind = {"ADDED": WatchEvent, "BOOKMARK": WatchBookmark, "ERROR": WatchError}[line]
    assert isinstance(PODS.decode_line(usual), kind)


@asynchronous
async def test_a_limit_is_halved_once_for_all_that_was_under_way_and_widened_step_by_step() -> None:
    limiter = RequestLimiter(8)
    for _ in range(6):
        await limiter.enter()
    widths = []
    for is_throttled in (True, True, True, False, False, False, False, True):
        (limiter.throttled if is_throttled else limiter.answered)()
        widths.append(limiter.width)
    # Four; five of the six that were under way say nothing new; then it is halved again.
    assert widths == [4, 4, 4, 4, 4, 4, 4, 2]
    for _ in range(40):
        limiter.answered()
    assert limiter.width == 8
    assert limiter.under_way == 6
    for _ in range(4):
        limiter.throttled()
        for _ in range(6):
            limiter.answered()
    assert limiter.width >= 1


@asynchronous
async def test_a_turn_that_came_too_late_is_given_to_the_next() -> None:
    limiter = RequestLimiter(1)
    await limiter.enter()
    first, second = (asyncio.create_task(limiter.enter()) for _ in range(2))
    await asyncio.sleep(0)
    # It is its turn at the moment at which it is cancelled.
    limiter.leave()
    first.cancel()
    await asyncio.wait({first, second})
    assert first.cancelled()
    assert limiter.under_way == 1
    # One that was never its turn gives nothing away.
    third = asyncio.create_task(limiter.enter())
    await asyncio.sleep(0)
    third.cancel()
    await asyncio.wait({third})
    assert limiter.under_way == 1
    limiter.leave()
    assert limiter.under_way == 0


def test_reasons_of_the_operating_system_are_told_without_the_path() -> None:
    assert reason_of(FileNotFoundError(2, "No such file", "/x")) == "no such file"
    assert reason_of(OSError("odd")) == "odd"
    assert reason_of(ValueError("Odd")) == "Odd"
    assert reason_of(UnicodeDecodeError("utf-8", b"x", 0, 1, "bad")) == "not a text in UTF-8"


@pytest.mark.parametrize("turns", range(5))
@asynchronous
async def test_a_watch_that_begins_while_the_server_closes_ends_as_well(turns: int) -> None:
    async with SmallApiServer() as api:
        host, _, port = api.connection.server.removeprefix("http://").partition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        for _ in range(5):
            # The server accepts the connection.
            await asyncio.sleep(0)
        writer.write(b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        for _ in range(turns):
            await asyncio.sleep(0)
    writer.close()
