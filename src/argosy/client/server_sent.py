"""Reads a stream of server-sent events, in pieces as they arrive."""

from __future__ import annotations

from typing import Final

import msgspec

from argosy.api.values import ClusterEvent

_EVENT: Final = msgspec.json.Decoder(ClusterEvent)


class StreamedEvent(msgspec.Struct, frozen=True):
    """Something that happened in the cluster. A later stream resumes after `id`."""

    id: str
    event: ClusterEvent


class EventParser:
    """Follows the HTML standard's rules for event streams, as far as servers of Argosy use them."""

    def __init__(self) -> None:
        #: The id of the last event that was seen whole.
        self.last: str | None = None
        self._id: str | None = None
        self._rest = b""
        self._data: list[str] = []

    def restart(self) -> None:
        """A new stream begins: half an event is forgotten; it will be sent again."""
        self._rest = b""
        self._id = self.last
        self._data = []

    def feed(self, piece: bytes) -> list[StreamedEvent]:
        """The events that this piece completes."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        found = []
        for line in lines:
            event = self._line(line.rstrip(b"\r").decode("utf-8", "replace"))
            if event is not None:
                found.append(event)
        return found

    def _line(self, line: str) -> StreamedEvent | None:
        if not line:
            return self._complete()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "id":
            self._id = value
        elif field == "data":
            self._data.append(value)
        return None

    def _complete(self) -> StreamedEvent | None:
        self.last = self._id
        data, self._data = "\n".join(self._data), []
        if not data:
            return None
        try:
            return StreamedEvent(self.last or "", _EVENT.decode(data))
        except msgspec.MsgspecError:
            # A newer server may tell of things that this client does not know.
            return None
