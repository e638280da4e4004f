"""Transfers over links that are shared: each machine has one link in and one out, full duplex.

A transfer reads its bytes in blocks, each from another machine if links out are modelled: one block
after another, or several at once in as many streams. Rates of streams are max-min fair: all grow
together until a link is full, whose streams then keep theirs. With links in alone this is an equal share
of the link. Traffic of a higher class has its part of a link beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from argosy.model.random import Random
from argosy.model.units import MICROS_PER_SECOND


class _Transfer:
    __slots__ = ("left", "machine", "streams", "task")

    def __init__(self, task: int, machine: int, size: float) -> None:
        self.task = task
        self.machine = machine
        #: Bytes that no stream has begun with.
        self.left = size
        #: How many streams read.
        self.streams = 0


class _BlockStream:
    __slots__ = ("block", "rate", "sender", "transfer")

    def __init__(self, transfer: _Transfer) -> None:
        self.transfer = transfer
        #: Bytes that are left of the present block.
        self.block = 0.0
        self.sender = -1
        self.rate = 0.0


class Transfers:
    """`incoming` and `outgoing` are bytes a second of each machine's link. Without `outgoing`, only the
    receiver's link limits a transfer, and its bytes are one block."""

    def __init__(
        self,
        incoming: Sequence[int],
        outgoing: Sequence[int] | None,
        block: float,
        random: Random,
        streams: int = 1,
        replicas: int = 1,
    ) -> None:
        """A block has so many `replicas`, of which the one is read whose link has most left for it."""
        self._incoming = incoming
        self._outgoing = outgoing
        self._block = block
        self._random = random
        self._most_streams = streams
        self._replicas = replicas
        #: How many streams each machine sends.
        self._sending = [0] * len(incoming)
        self._updated = 0
        self._is_shared_out = True
        self._begun = 0
        #: Streams by number, in the order in which they began.
        self.under_way: dict[int, _BlockStream] = {}
        #: Bytes that each machine has received.
        self.received = [0.0] * len(incoming)

    def begin(self, task: int, machine: int, size: float, now: int) -> None:
        self.advance(now)
        transfer = _Transfer(task, machine, size)
        while transfer.left > 0 and transfer.streams < self._most_streams:
            stream = self.under_way[self._begun] = _BlockStream(transfer)
            self._begun += 1
            transfer.streams += 1
            self._next_block(stream)

    def _next_block(self, stream: _BlockStream) -> None:
        self._is_shared_out = False
        transfer = stream.transfer
        stream.block = transfer.left
        if self._outgoing is not None:
            stream.block = min(self._block, transfer.left)
            self._choose_sender(stream, self._outgoing)
        transfer.left -= stream.block

    def _choose_sender(self, stream: _BlockStream, outgoing: Sequence[int]) -> None:
        machine = stream.transfer.machine
        others = [self._random.below(len(outgoing) - 1) for _ in range(self._replicas)]
        holders = [other + (other >= machine) for other in others]
        stream.sender = max(holders, key=lambda each: outgoing[each] / (1 + self._sending[each]))
        self._sending[stream.sender] += 1

    def advance(self, now: int) -> None:
        """Lets all transfers go on until now."""
        seconds = (now - self._updated) / MICROS_PER_SECOND
        self._updated = now
        if seconds:
            for stream in self.under_way.values():
                moved = seconds * stream.rate
                stream.block -= moved
                self.received[stream.transfer.machine] += moved

    def next_end(self) -> int | None:
        """When the next block ends."""
        self._share_out()
        ends = [max(0.0, stream.block) / stream.rate for stream in self.under_way.values()]
        return self._updated + int(min(ends) * MICROS_PER_SECOND) + 1 if ends else None

    def end_blocks(self, now: int) -> list[tuple[int, int]]:
        """Goes on with the next blocks of streams whose block has ended. Returns the task and machine of
        transfers that are over."""
        self.advance(now)
        over = []
        for number, stream in [*self.under_way.items()]:
            if stream.block > 0:
                continue
            transfer = stream.transfer
            if stream.sender >= 0:
                self._sending[stream.sender] -= 1
            if transfer.left > 0:
                self._next_block(stream)
                continue
            del self.under_way[number]
            self._is_shared_out = False
            transfer.streams -= 1
            if not transfer.streams:
                over.append((transfer.task, transfer.machine))
        return over

    def _share_out(self) -> None:
        """Fills links in order of what they have left for each of their streams."""
        if self._is_shared_out:
            return
        self._is_shared_out = True
        links: dict[int, set[int]] = {}
        for number, stream in self.under_way.items():
            for link in self._links_of(stream):
                links.setdefault(link, set()).add(number)
        room = {link: self._bandwidth(link) for link in links}
        shares = [(room[link] / len(numbers), link) for link, numbers in links.items()]
        heapify(shares)
        while shares:
            known, full = heappop(shares)
            numbers = links[full]
            if not numbers:
                continue
            each = room[full] / len(numbers)
            if each > known:
                # Streams that another link limits have left more for each of the others.
                heappush(shares, (each, full))
                continue
            for number in sorted(numbers):
                stream = self.under_way[number]
                stream.rate = each
                for link in self._links_of(stream):
                    if link != full:
                        links[link].discard(number)
                        room[link] -= each

    def _links_of(self, stream: _BlockStream) -> tuple[int, ...]:
        """Its link in, and its link out, which is numbered after all links in."""
        machine = stream.transfer.machine
        if self._outgoing is None:
            return (machine,)
        return machine, len(self._incoming) + stream.sender

    def _bandwidth(self, link: int) -> float:
        count = len(self._incoming)
        if link < count:
            return float(self._incoming[link])
        assert self._outgoing is not None
        return float(self._outgoing[link - count])
