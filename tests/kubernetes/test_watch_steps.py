"""A watch line by line, over streams of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any, cast

import msgspec
import pytest
from kube_cases import asynchronous

from argosy.kubernetes import failures as failed
from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.connection import Connection
from argosy.kubernetes.credentials import FixedCredentials, Login
from argosy.kubernetes.kinds import NODES, PODS
from argosy.kubernetes.meta import ServerStatus, StatusCause, StatusDetails
from argosy.kubernetes.requests import KubernetesCall, RequestSender
from argosy.kubernetes.watching import ObjectWatch, WatchSettings

CONNECTION = Connection("http://nowhere", FixedCredentials(Login()))
QUICK = WatchSettings(first_delay=1.0, longest_delay=4.0)
Chunks = list[bytes] | Exception
TOO_LARGE = ServerStatus(
    details=StatusDetails(causes=(StatusCause(reason="ResourceVersionTooLarge"),))
)
_real_sleep = asyncio.sleep


def line(type_: str, name: str = "", version: int | str = "", **more: Any) -> bytes:
    metadata = {"name": name, "resourceVersion": str(version), **more}
    return msgspec.json.encode({"type": type_, "object": {"metadata": metadata}}) + b"\n"


def end_of_initial(version: int) -> bytes:
    return line("BOOKMARK", version=version, annotations={"k8s.io/initial-events-end": "true"})


def error(code: int, **status: Any) -> bytes:
    return msgspec.json.encode({"type": "ERROR", "object": {"code": code, **status}}) + b"\n"


class Sender(RequestSender):
    """Each stream is a list of chunks, or an error; after the last one, nothing comes any more."""

    def __init__(self, *streams: Chunks) -> None:
        super().__init__(CONNECTION, random=Upper())
        self.streams = list(streams)
        self.calls: list[KubernetesCall] = []
        self.pages: list[bytes] = []
        self.restarted: list[tuple[str, str]] = []
        self.observer = cast(Any, self)

    def watch_restarted(self, resource: str, cause: str) -> None:
        self.restarted.append((resource, cause))

    async def send(self, call: KubernetesCall) -> bytes:
        self.calls.append(call)
        return self.pages.pop(0)

    @asynccontextmanager
    async def stream(self, call: KubernetesCall) -> AsyncIterator[Any]:
        self.calls.append(call)
        chunks = self.streams.pop(0) if self.streams else None
        if isinstance(chunks, Exception):
            raise chunks
        yield Content(chunks)


class Content:
    def __init__(self, chunks: list[bytes] | None) -> None:
        self.chunks = chunks

    async def iter_any(self) -> AsyncIterator[bytes]:
        if self.chunks is None:
            await asyncio.get_running_loop().create_future()
        for chunk in self.chunks or ():
            yield chunk


class Upper(Random):
    def uniform(self, low: float, high: float) -> float:
        return high


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)
        await _real_sleep(0)

    monkeypatch.setattr("argosy.kubernetes.watching.asyncio.sleep", sleep)
    return found


async def told(sender: Sender, until: int, **options: Any) -> tuple[ObjectWatch[Any], list[str]]:
    """The watch, and its changes, once so many requests were made."""
    client = KubernetesClient(CONNECTION, sender=sender)
    kind = options.pop("kind", PODS)
    watch = ObjectWatch(client, kind, settings=options.pop("settings", QUICK), **options)
    changes: list[str] = []
    async with watch:
        while len(sender.calls) < until:
            await _real_sleep(0)
        await _real_sleep(0)
        if watch._has_news.is_set():
            batch = await anext(watch)
            for each in batch.changes:
                there = each.new or each.old
                assert there is not None
                changes.append(f"{each.kind.value} {there.name}")
    return watch, changes


def test_lines_come_in_any_pieces(delays: list[float]) -> None:
    whole = line("ADDED", "a", 1) + b"\n" + line("ADDED", "b", 2) + end_of_initial(3)
    pieces = [whole[at : at + 7] for at in range(0, len(whole), 7)]

    @asynchronous
    async def go() -> None:
        for chunks in ([whole], pieces, [whole + b'{"type":"ADDED","obj']):
            watch, changes = await told(Sender(chunks), 2)
            assert changes == ["added a", "added b"]
            assert (watch.is_complete, watch.resource_version) == (True, "3")
            assert (watch.events, watch.bookmarks, watch.relists) == (2, 1, 0)

    go()


def test_a_watch_goes_on_from_the_last_version_that_it_knows(delays: list[float]) -> None:
    @asynchronous
    async def go() -> None:
        first = [line("ADDED", "a", 7), line("BOOKMARK", version=8), end_of_initial(9)]
        second = [line("MODIFIED", "a", 10), end_of_initial(11)]
        third = [line("DELETED", "a", 12)]
        sender = Sender(first, second, third)
        options = {"labels": "a=b", "fields": "c=d", "namespace": "s"}
        watch, changes = await told(sender, 4, **options)
        assert changes == ["added a", "changed a", "deleted a"]
        usual = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": "600",
            "labelSelector": "a=b",
            "fieldSelector": "c=d",
        }
        initial = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        assert [call.parameters for call in sender.calls] == [
            usual | initial,
            usual | {"resourceVersion": "9"},
            usual | {"resourceVersion": "11"},
            usual | {"resourceVersion": "12"},
        ]
        told_of = {(call.verb, call.path, call.resource) for call in sender.calls}
        assert told_of == {("watch", "/api/v1/namespaces/s/pods", "pods")}
        assert (watch.restarts, sender.restarted) == ({"ended": 3}, [("pods", "ended")] * 3)
        # News make the next delay a short one.
        assert delays == [1.0, 1.0, 1.0]

    go()


def test_versions_of_what_is_read_at_first_are_not_gone_on_from(delays: list[float]) -> None:
    @asynchronous
    async def go() -> None:
        cut = [line("ADDED", "a", 9), line("BOOKMARK", version=9)]
        again = [line("ADDED", "b", 4), end_of_initial(10)]
        sender = Sender(cut, again)
        watch, changes = await told(sender, 3)
        assert "resourceVersion" not in sender.calls[1].parameters
        assert changes == ["added a", "added b", "deleted a"]
        assert watch.resource_version == "10"
        assert delays == [1.0, 2.0], "nothing was known yet"
        assert watch.relists == 0

    go()


@pytest.mark.parametrize(
    ("trouble", "cause"),
    [
        ([error(410)], "gone"),
        (failed.ResourceVersionGone("r", "p"), "gone"),
        (failed.failure("r", 504, TOO_LARGE), "kubernetes-server"),
    ],
)
def test_versions_that_are_gone_or_lost_mean_to_read_all_again(
    delays: list[float], trouble: Chunks, cause: str
) -> None:
    @asynchronous
    async def go() -> None:
        first = [line("ADDED", "a", 1), line("ADDED", "b", 2), end_of_initial(9)]
        again = [line("ADDED", "b", 2), line("ADDED", "c", 3), end_of_initial(9)]
        sender = Sender(first, trouble, again)
        watch, changes = await told(sender, 4)
        assert changes == ["added a", "added b", "added c", "deleted a"]
        assert "resourceVersion" not in sender.calls[2].parameters
        assert (watch.relists, watch.restarts) == (1, {"ended": 2, cause: 1})

    go()


def test_other_errors_change_nothing_of_what_is_known(delays: list[float]) -> None:
    @asynchronous
    async def go() -> None:
        first = [line("ADDED", "a", 1), end_of_initial(9)]
        away = failed.KubernetesUnreachable("r", "p", may_have_happened=True)
        troubles: list[Chunks] = [
            away,
            TimeoutError(),
            [error(500)],
            failed.failure("r", 504, None),
        ]
        sender = Sender(first, *troubles)
        watch, changes = await told(sender, 6)
        assert changes == ["added a"]
        assert [call.parameters.get("resourceVersion") for call in sender.calls[1:]] == ["9"] * 5
        causes = ["ended", "kubernetes-unreachable", "stalled", *["kubernetes-server"] * 2]
        assert sender.restarted == [("pods", cause) for cause in causes]
        assert delays == [1.0, 2.0, 4.0, 4.0, 4.0]
        assert watch.relists == 0

    go()


@pytest.mark.parametrize(
    "kind",
    [failed.RequestForbidden, failed.NotAuthenticated, failed.ObjectNotFound],
)
def test_what_has_no_prospects_is_raised_before_all_was_read(
    delays: list[float], kind: type[failed.KubernetesError]
) -> None:
    @asynchronous
    async def go() -> None:
        sender = Sender(kind("r", "p"))
        async with ObjectWatch(KubernetesClient(CONNECTION, sender=sender), PODS) as watch:
            for _ in range(2):
                with pytest.raises(kind):
                    await anext(watch)
        sender = Sender([end_of_initial(1)], kind("r", "p"), [line("ADDED", "a", 2)])
        _, changes = await told(sender, 4)
        assert changes == ["added a"]

    go()


PAGE = b'{"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"a","resourceVersion":"1"}}]}'


def test_lists_are_read_where_nothing_is_streamed_at_first(delays: list[float]) -> None:
    @asynchronous
    async def go() -> None:
        invalid = failed.RequestInvalid("r", "p")
        sender = Sender(invalid, [line("ADDED", "b", 6)], invalid, [line("MODIFIED", "a", 8)])
        sender.pages = [PAGE, PAGE.replace(b'"5"', b'"7"')]
        options = {"labels": "x", "fields": "y", "namespace": "s"}
        watch, changes = await told(sender, 7, **options)
        assert [call.verb for call in sender.calls] == ["watch", "list", *["watch"] * 2, "list",
                                                        *["watch"] * 2]  # fmt: skip
        assert sender.calls[1].parameters == {
            "limit": "500",
            "labelSelector": "x",
            "fieldSelector": "y",
        }
        versions = [call.parameters.get("resourceVersion") for call in sender.calls]
        assert versions == [None, None, "5", "6", None, "7", "8"]
        assert changes == ["added a", "added b", "deleted b", "changed a"]
        assert watch.restarts == {"kubernetes-invalid": 2, "ended": 2}

    go()


def test_a_request_that_is_invalid_in_itself_is_raised(delays: list[float]) -> None:
    @asynchronous
    async def go() -> None:
        invalid = failed.RequestInvalid("r", "p")

        class Refusing(Sender):
            async def send(self, call: KubernetesCall) -> bytes:
                self.calls.append(call)
                raise invalid

        client = KubernetesClient(CONNECTION, sender=Refusing(invalid))
        async with ObjectWatch(client, PODS, settings=QUICK) as watch:
            with pytest.raises(failed.RequestInvalid):
                await anext(watch)

    go()


def test_the_same_version_is_no_change_and_another_uid_another_object(delays: list[float]) -> None:
    @asynchronous
    async def go() -> None:
        first = [line("ADDED", "a", 1, uid="x"), end_of_initial(1)]
        second = [
            line("MODIFIED", "a", 1, uid="x"),
            line("MODIFIED", "a", 2, uid="x"),
            line("ADDED", "a", 3, uid="y"),
            line("DELETED", "other", 4),
        ]
        watch, changes = await told(Sender(first, second), 3)
        assert changes == ["added a", "changed a", "deleted a", "added a"]
        assert (watch.events, watch.resource_version) == (5, "4")

    go()


def test_nonsense_is_an_error_and_what_has_a_name_is_left_out(delays: list[float]) -> None:
    odd = (
        b'{"type":"ADDED","object":{"metadata":{"name":"odd","namespace":"s",'
        b'"resourceVersion":"3"},"spec":7}}\n'
    )

    @asynchronous
    async def go() -> None:
        first = [line("ADDED", "a", 1), odd, end_of_initial(2)]
        second = [odd, b"nonsense\n", line("ADDED", "never", 9)]
        watch, changes = await told(Sender(first, second), 3)
        assert changes == ["added a"]
        assert list(watch.unreadable) == [("s", "odd")]
        assert "Expected `object`, got `int`" in watch.unreadable["s", "odd"]
        assert watch.resource_version == "3"
        assert watch.restarts == {"ended": 1, "kubernetes-strange-answer": 1}

    go()


@pytest.mark.parametrize(
    ("timeout", "asked"), [(300.0, "600"), (0.1, "1"), (1.0, "2"), (0.75, "1")]
)
def test_a_watch_asks_for_whole_seconds_and_never_for_none(
    delays: list[float], timeout: float, asked: str
) -> None:
    @asynchronous
    async def go() -> None:
        sender = Sender()
        settings = msgspec.structs.replace(QUICK, timeout=timeout)
        await told(sender, 1, settings=settings, kind=NODES)
        assert sender.calls[0].parameters["timeoutSeconds"] == asked

    go()


def test_without_selectors_a_watch_asks_for_none(delays: list[float]) -> None:
    @asynchronous
    async def go() -> None:
        sender = Sender([end_of_initial(3)])
        watch, changes = await told(sender, 2)
        assert changes == []
        assert watch.is_complete, "told even if there is nothing to tell"
        assert sender.calls[1].parameters == {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": "600",
            "resourceVersion": "3",
        }
        assert sender.calls[1].path == "/api/v1/pods"

    go()


def test_a_watch_knows_how_long_it_has_heard_nothing(
    delays: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("argosy.kubernetes.watching.loop_time", lambda: now[0])

    @asynchronous
    async def go() -> None:
        sender = Sender([end_of_initial(3)])
        client = KubernetesClient(CONNECTION, sender=sender)
        watch = ObjectWatch(client, PODS, settings=QUICK)
        now[0] += 5.0
        assert (watch.silence, watch.lag) == (5.0, 5.0)
        async with watch:
            while len(sender.calls) < 2:
                await _real_sleep(0)
            await _real_sleep(0)
            now[0] += 2.0
            # It was heard at 105, and is streamed since then.
            assert (watch.silence, watch.lag) == (2.0, 0.0)
        assert watch.lag == 0.0, "the end of the watch was at 107"

    go()


def test_usual_settings_of_watches() -> None:
    usual = WatchSettings()
    assert (usual.timeout, usual.grace, usual.page) == (300.0, 15.0, 500)
    assert (usual.first_delay, usual.longest_delay) == (0.1, 15.0)
