"""Messages between schedulers, and gossip into their wait views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from argosy._core import PlacementNews
from argosy.host import effect_checks as checks
from argosy.host import records
from argosy.host.scheduler import Scheduler
from argosy.model.effects import Send
from argosy.model.errors import EngineFault
from argosy.model.events import MessageReceived
from argosy.model.messages import WaitUpdate, WaitUpdates

if TYPE_CHECKING:
    from argosy.host.host import Host


class Mail:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._runtime = host.runtime
        self._links = host.links
        self._decisions = host.decisions
        #: Schedulers by the tuple of their names in a message.
        self._receivers: dict[tuple[str, ...], list[Scheduler]] = {}

    def send(self, scheduler: Scheduler, effect: Send, now: int) -> None:
        if isinstance(effect.payload, WaitUpdate):
            update = effect.payload
            self._gossip(scheduler, effect.peers, (update,), update.messages, now)
            return
        if isinstance(effect.payload, WaitUpdates):
            self._gossip(scheduler, effect.peers, effect.payload.updates, 1, now)
            return
        checks.check_message(scheduler, effect)
        event = MessageReceived(scheduler.name, effect.payload)
        for name in effect.peers:
            peer = self._receiver(scheduler, name)
            scheduler.messages_sent += 1
            if self._decisions.has_details:
                message = type(effect.payload).__name__
                self._decisions.detail(records.SentRecord(now, scheduler.name, name, message))
            self._host.deliver(scheduler.name, peer, event, now)

    def _gossip(
        self,
        scheduler: Scheduler,
        peers: tuple[str, ...],
        updates: tuple[WaitUpdate, ...],
        each: int,
        now: int,
    ) -> None:
        """Feeds updates directly into the peers' wait views, where they take effect on arrival: `each`
        messages to each peer, the updates of one message together."""
        messages = len(peers) * each
        scheduler.messages_sent += messages
        scheduler.placements_told += len(peers) * sum(len(update.tasks) for update in updates)
        names = tuple(peers)
        receivers = self._receivers.get(names)
        if receivers is None:
            receivers = [self._receiver(scheduler, name) for name in names]
            self._receivers[names] = receivers
        if self._decisions.has_details:
            for name in peers:
                record = records.SentRecord(now, scheduler.name, name, WaitUpdate.__name__)
                for _ in range(each):
                    self._decisions.detail(record)
        hop = self._links.plain_hop
        if hop >= 0:
            self._links.counts["sent"] += messages
            owners = [peer.index for peer in receivers]
            for number, update in enumerate(updates):
                self._runtime.gossip(owners, now + hop, _news(update, begins=number == 0))
            return
        parts = _messages(updates)
        for peer in receivers:
            for news in parts:
                for delay in self._links.deliveries(scheduler.name, peer.name, now):
                    for part in news:
                        self._runtime.gossip([peer.index], now + delay, part)

    def _receiver(self, scheduler: Scheduler, name: str) -> Scheduler:
        peer = self._host.scheduler(name)
        if peer is None:
            raise EngineFault(f"{scheduler.name} sends to {name!r}, which is not a scheduler")
        return peer


def _messages(updates: tuple[WaitUpdate, ...]) -> list[list[PlacementNews]]:
    """The contents of each message."""
    if len(updates) == 1 and updates[0].is_per_task:
        rows = range(len(updates[0].tasks))
        return [[_news(updates[0], slice(row, row + 1))] for row in rows]
    return [[_news(update, begins=number == 0) for number, update in enumerate(updates)]]


def _news(update: WaitUpdate, part: slice = slice(None), *, begins: bool = True) -> PlacementNews:
    """`begins`: whether a message begins with it."""
    return PlacementNews(
        update.tasks[part],
        update.versions[part],
        update.machines[part],
        update.estimate,
        update.shape,
        update.total,
        update.since,
        update.is_per_task,
        begins,
    )
