"""The cluster's times as dates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Calendar:
    """`origin` is when the cluster was made, in microseconds since 1970."""

    def __init__(self, origin: int) -> None:
        self._origin = _EPOCH + timedelta(microseconds=origin)

    def date(self, at: int) -> str:
        """In RFC 3339, to the microsecond."""
        text = (self._origin + timedelta(microseconds=at)).isoformat(timespec="microseconds")
        return text.replace("+00:00", "Z")

    def known_date(self, at: int | None) -> str | None:
        return None if at is None else self.date(at)
