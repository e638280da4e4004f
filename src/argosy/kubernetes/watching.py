"""Watches: a store of all objects of a kind that is kept in step with the server.

A watch begins with the objects that there are (streamed, or as a list where the server does not stream),
goes on with every change, and survives what happens to long connections:

- The server ends every watch after a while, and drops those of slow readers: an end without an error.
  The watch goes on from the last version that it knows. A task of its own reads the socket, so that a
  busy scheduler is not a slow reader.
- Versions that are too old are gone (410): all objects are read again, and the difference to the store
  is reported, deletions included.
- Connections break or fall silent: it connects again, with jittered delays.

Bookmarks move the known version on while nothing changes, so that reading everything again is rare.

A field selector on `spec.nodeName` is refused: pods are indexed by it, and the server keeps only ten
events for such a watch before it drops it, instead of up to a thousand.
"""

from __future__ import annotations

import asyncio
import enum
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType, TracebackType
from typing import Final, Generic, Self

import msgspec

from argosy.kubernetes.client import KubernetesClient, strange
from argosy.kubernetes.failures import (
    KubernetesError,
    NotAuthenticated,
    ObjectNotFound,
    RequestForbidden,
    RequestInvalid,
    ResourceVersionGone,
    failure,
)
from argosy.kubernetes.kinds import ResourceKind
from argosy.kubernetes.meta import (
    AnyObject,
    BookmarkObject,
    ObjectKey,
    ServerStatus,
    WatchBookmark,
    WatchError,
    WatchEvent,
)
from argosy.kubernetes.pacing import JitteredBackoff, loop_time
from argosy.kubernetes.requests import KubernetesCall

#: The field selector of kube-scheduler: pods that have not ended.
UNFINISHED_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"
_END_OF_INITIAL: Final = "k8s.io/initial-events-end"
_TRIGGER = re.compile(r"(^|,)\s*spec\.nodeName\s*==?")


class ChangeKind(enum.Enum):
    ADDED = "added"
    CHANGED = "changed"
    DELETED = "deleted"


class ObjectChange(msgspec.Struct, Generic[AnyObject], frozen=True, gc=False):
    """`old` is None for an added object, `new` for a deleted one.

    An object that a selector does not select any more is deleted to its watch, without the state that
    made the difference. If the watch itself does not keep it any more (`keeps`), `final` is that state.
    """

    kind: ChangeKind
    old: AnyObject | None
    new: AnyObject | None
    final: AnyObject | None = None


class ChangeBatch(msgspec.Struct, Generic[AnyObject], frozen=True):
    """All changes since the last batch."""

    changes: list[ObjectChange[AnyObject]]
    #: Whether all objects have been read, so that the store is in step with the server.
    is_complete: bool


class WatchSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Times are in seconds."""

    #: For how long one request asks; the server ends it then. Drawn between this and twice as much.
    timeout: float = 300.0
    #: How much later than that the stream is given up as stalled.
    grace: float = 15.0
    #: Bounds of the delays between attempts.
    first_delay: float = 0.1
    longest_delay: float = 15.0
    #: Objects of a page, where the server does not stream the initial objects.
    page: int = 500


class _Line(msgspec.Struct):
    """What can be read of an event whose object cannot be."""

    type: str
    object: BookmarkObject


class ObjectWatch(Generic[AnyObject]):
    """Use it as an async context manager, and iterate over it for batches of changes:

        async with ObjectWatch(client, PODS, fields=UNFINISHED_PODS) as pods:
            async for batch in pods:
                ...

    It has no end of its own. It raises only what trying again would not help, and only before the store
    was complete for the first time: missing rights, an unknown kind, a wrong selector.

    Objects that `keeps` says no to are not in the store.
    """

    def __init__(
        self,
        client: KubernetesClient,
        kind: ResourceKind[AnyObject],
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        keeps: Callable[[AnyObject], bool] = lambda _: True,
        settings: WatchSettings | None = None,
    ) -> None:
        if kind.plural == "pods" and _TRIGGER.search(fields):
            raise ValueError(
                "the server drops watches of pods by spec.nodeName: select in the client"
            )
        self.kind = kind
        self._client = client
        self._namespace = namespace or ""
        self._selectors = {
            name: value
            for name, value in (("labelSelector", labels), ("fieldSelector", fields))
            if value
        }
        self._keeps = keeps
        self._settings = settings or WatchSettings()
        self._objects: dict[ObjectKey, AnyObject] = {}
        #: Keys met while everything is read (again); None at other times.
        self._met: set[ObjectKey] | None = None
        self._version = ""
        self._streams_initial = True
        self._pending: list[ObjectChange[AnyObject]] = []
        self._has_news = asyncio.Event()
        self._complete = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None
        self._heard = loop_time()
        self._backoff = JitteredBackoff(
            self._settings.first_delay, self._settings.longest_delay, client.sender.random
        )
        #: Since when nothing has been streamed; None while something is.
        self._cut_since: float | None = self._heard
        #: Causes of reconnecting, with their counts: ended, gone, stalled, or the code of an error.
        self.restarts: Counter[str] = Counter()
        #: How often everything was read again.
        self.relists = 0
        self.events = 0
        self.bookmarks = 0
        #: Objects that could not be decoded and are missing from the store, with the reason.
        self.unreadable: dict[ObjectKey, str] = {}

    @property
    def objects(self) -> Mapping[ObjectKey, AnyObject]:
        """The store. It may be ahead of the batches by what was read since the last one."""
        return MappingProxyType(self._objects)

    @property
    def resource_version(self) -> str:
        return self._version

    @property
    def is_complete(self) -> bool:
        return self._complete.is_set()

    @property
    def silence(self) -> float:
        """Seconds since the server was last heard of, bookmarks included."""
        return loop_time() - self._heard

    @property
    def lag(self) -> float:
        """For how many seconds changes may have been missed: 0 while there is a stream."""
        return 0.0 if self._cut_since is None else loop_time() - self._cut_since

    async def __aenter__(self) -> Self:
        self._reader = asyncio.create_task(self._read(), name=f"watch {self.kind.plural}")
        self._reader.add_done_callback(lambda _: self._has_news.set())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._reader is not None:
            self._reader.cancel()
            with suppress(asyncio.CancelledError, KubernetesError):
                await self._reader

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ChangeBatch[AnyObject]:
        if self._reader is None:
            raise RuntimeError("the watch is not open: use it as `async with`")
        await self._has_news.wait()
        if self._reader.done() and not self._pending:
            self._reader.result()
        self._has_news.clear()
        if self._reader.done():
            self._has_news.set()
        changes, self._pending = self._pending, []
        return ChangeBatch(changes, self.is_complete)

    async def _read(self) -> None:
        """Reads for ever."""
        while True:
            try:
                if not self._version and not self._streams_initial:
                    await self._list()
                await self._stream()
                cause = "ended"
            except ResourceVersionGone:
                self._version = ""
                cause = "gone"
            except TimeoutError:
                cause = "stalled"
            except RequestInvalid as error:
                if self._version or not self._streams_initial:
                    self._fail_early(error)
                    self._version = ""
                # The server may know the kind, but not how to stream what there is.
                self._streams_initial = False
                cause = error.code
            except KubernetesError as error:
                self._fail_early(error)
                if _is_ahead(error.status):
                    # The server has lost versions, as when it was restored from a backup.
                    self._version = ""
                cause = error.code
            self.restarts[cause] += 1
            self._client.sender.observer.watch_restarted(self.kind.plural, cause)
            await asyncio.sleep(self._backoff.next())

    def _fail_early(self, error: KubernetesError) -> None:
        hopeless = (RequestForbidden, RequestInvalid, NotAuthenticated, ObjectNotFound)
        if isinstance(error, hopeless) and not self.is_complete:
            raise error

    async def _list(self) -> None:
        self._begin_reading_all()
        version = ""
        pages = self._client.list_pages(
            self.kind,
            self._namespace or None,
            labels=self._selectors.get("labelSelector", ""),
            fields=self._selectors.get("fieldSelector", ""),
            page=self._settings.page,
        )
        async for page in pages:
            for each in page.items:
                self._put(each)
            version = page.metadata.resource_version
            self._is_heard()
        self._version = version
        self._end_reading_all()

    async def _stream(self) -> None:
        """One request: from the known version, or with all objects first. Returns when it ends."""
        settings = self._settings
        asked = int(settings.timeout * self._client.sender.random.uniform(1, 2)) or 1
        parameters = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(asked),
            **self._selectors,
        }
        if self._version:
            parameters["resourceVersion"] = self._version
        else:
            parameters["sendInitialEvents"] = "true"
            parameters["resourceVersionMatch"] = "NotOlderThan"
            self._begin_reading_all()
        call = KubernetesCall(
            verb="watch",
            method="GET",
            path=self.kind.path(self._namespace),
            resource=self.kind.plural,
            parameters=parameters,
        )
        async with self._client.sender.stream(call) as content:
            self._cut_since = None
            try:
                # The server should end the stream itself: if it does not, nobody is there.
                async with asyncio.timeout(asked + settings.grace):
                    unfinished = b""
                    async for chunk in content.iter_any():
                        *lines, unfinished = (unfinished + chunk).split(b"\n")
                        if lines:
                            self._take(call, lines)
            finally:
                self._cut_since = loop_time()

    def _take(self, call: KubernetesCall, lines: Iterable[bytes]) -> None:
        try:
            for line in lines:
                if line:
                    self._take_line(call, line)
        finally:
            self._is_heard()
            if self._pending:
                self._has_news.set()

    def _take_line(self, call: KubernetesCall, line: bytes) -> None:
        try:
            decoded = self.kind.decode_line(line)
        except msgspec.DecodeError as error:
            self._leave_out(call, line, error)
            return
        match decoded:
            case WatchEvent(type="DELETED", object=gone):
                self.events += 1
                self.unreadable.pop(gone.key, None)
                self._remove(gone.key)
                self._move_to(gone.metadata.resource_version)
            case WatchEvent(object=new):
                self.events += 1
                self._put(new)
                self._move_to(new.metadata.resource_version)
            case WatchBookmark(object=bookmark):
                self.bookmarks += 1
                if self._met is not None and _END_OF_INITIAL in bookmark.metadata.annotations:
                    self._version = bookmark.metadata.resource_version
                    self._end_reading_all()
                else:
                    self._move_to(bookmark.metadata.resource_version)
            case WatchError(object=status):
                raise failure(str(call), status.code, status)

    def _move_to(self, version: str) -> None:
        # While all objects are read their versions are in no order: to go on from one could miss some.
        if self._met is None:
            self._version = version
            self._backoff.reset()

    def _leave_out(self, call: KubernetesCall, line: bytes, error: msgspec.DecodeError) -> None:
        """One object that cannot be understood must not cost all others."""
        try:
            known = msgspec.json.decode(line, type=_Line)
        except msgspec.DecodeError:
            raise strange(call, error) from None
        metadata = known.object.metadata
        key = (metadata.namespace, metadata.name)
        if self._met is not None:
            self._met.add(key)
        if known.type == "DELETED":
            self.unreadable.pop(key, None)
        else:
            self.unreadable[key] = str(error)
        self._remove(key)
        self._move_to(metadata.resource_version)

    def _is_heard(self) -> None:
        self._heard = loop_time()

    def _begin_reading_all(self) -> None:
        self._met = set()
        self.relists += self.is_complete

    def _end_reading_all(self) -> None:
        assert self._met is not None
        gone = [key for key in self._objects if key not in self._met]
        for key in self.unreadable.keys() - self._met:
            del self.unreadable[key]
        self._met = None
        for key in gone:
            self._remove(key)
        self._complete.set()
        # Told even if there is nothing to tell: the store is complete.
        self._has_news.set()

    def _put(self, new: AnyObject) -> None:
        key = new.key
        if self._met is not None:
            self._met.add(key)
        if self.unreadable:
            self.unreadable.pop(key, None)
        old = self._objects.get(key)
        if old is not None and old.uid != new.uid:
            # Deleted and made again under the same name while the watch was cut.
            self._remove(key)
            old = None
        if not self._keeps(new):
            self._remove(key, new)
            return
        self._objects[key] = new
        if old is None:
            self._pending.append(ObjectChange(ChangeKind.ADDED, None, new))
        elif old.metadata.resource_version != new.metadata.resource_version:
            self._pending.append(ObjectChange(ChangeKind.CHANGED, old, new))

    def _remove(self, key: ObjectKey, final: AnyObject | None = None) -> None:
        old = self._objects.pop(key, None)
        if old is not None:
            self._pending.append(ObjectChange(ChangeKind.DELETED, old, None, final))


def _is_ahead(status: ServerStatus) -> bool:
    details = status.details
    return details is not None and any(
        each.reason == "ResourceVersionTooLarge" for each in details.causes
    )
