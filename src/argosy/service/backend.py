"""What the routes of the API share: the live cluster, and readers of its database."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from argosy.api.values import HealthStatus
from argosy.engines.api import Engine
from argosy.service.dates import Calendar
from argosy.service.journals import Journals
from argosy.service.live import LiveCluster
from argosy.service.problems import NotFound, VersionChanged
from argosy.service.reading import StoreReader
from argosy.service.submissions import Submissions
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.turn import ServedRunner
from argosy.worlds.local.world import LocalWorld


class Backend:
    def __init__(
        self,
        cluster: LiveCluster,
        store: LocalStore,
        runner: ServedRunner,
        engines: Mapping[str, type[Engine]],
    ) -> None:
        self.cluster = cluster
        self.store = store
        self.runner = runner
        self.engines = engines
        self.reading = StoreReader(store)
        self.journals = Journals(store)
        self.submissions = Submissions()
        #: Each says what keeps the server from being in step with the world outside; empty if nothing.
        self.checks: list[Callable[[], str]] = []
        #: When this server started.
        self.started = self.calendar.date(cluster.world.now)

    @property
    def world(self) -> LocalWorld:
        return self.cluster.world

    def health(self) -> tuple[HealthStatus, str]:
        """Whether all is well, and what is not."""
        cluster = self.cluster
        if cluster.is_stopping:
            return "stopping", ""
        if cluster.trouble is not None:
            return "failing" if cluster.is_failing else "paused", str(cluster.trouble)
        detail = "; ".join(filter(None, (check() for check in self.checks)))
        return ("lagging" if detail else "ok"), detail

    @property
    def calendar(self) -> Calendar:
        return self.reading.calendar


def check_version(wanted: str | None, version: int | str, what: str) -> None:
    """`wanted` is the header If-Match: the version that the client has seen."""
    if wanted is None or wanted.strip() == "*":
        return
    if etag(version) not in [part.strip() for part in wanted.split(",")]:
        raise VersionChanged(
            f"{what} has changed: it has version {version}",
            field="If-Match",
            hint="read it again, and decide anew",
        )


def is_seen(seen: str | None, tag: str) -> bool:
    """`seen` is the header If-None-Match: what the client has. Whether a tag is weak does not matter
    there."""
    if seen is None:
        return False
    parts = [part.strip() for part in seen.split(",")]
    return "*" in parts or tag in [part.removeprefix("W/") for part in parts]


def etag(version: int | str) -> str:
    return f'"{version}"'


def index_in(text: str, job: str) -> int:
    """The index of a task in a path."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise NotFound(f"job {job} has no task {text}", expected="the index of a task")
    return int(text)
