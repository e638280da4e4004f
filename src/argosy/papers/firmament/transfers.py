"""Transfers over links that are shared: each machine has one link in and one out, full duplex.

A transfer reads its bytes in blocks, each from another machine if links out are modelled. Rates are
max-min fair: all grow together until a link is full, whose transfers then keep theirs. With links in
alone this is an equal share of the link. Traffic of a higher class has its part of a link beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence

from argosy.model.random import Random
from argosy.model.units import MICROS_PER_SECOND


class _Transfer:
    __slots__ = ("block", "left", "machine", "rate", "sender")

    def __init__(self, machine: int, size: float) -> None:
        self.machine = machine
        #: Bytes in all, and of the present block.
        self.left = size
        self.block = size
        self.sender = -1
        self.rate = 0.0


class Transfers:
    """`incoming` and `outgoing` are bytes a second of each machine's link. Without `outgoing`, only the
    receiver's link limits a transfer."""

    def __init__(
        self, incoming: Sequence[int], outgoing: Sequence[int] | None, block: float, random: Random
    ) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._block = block
        self._random = random
        self._updated = 0
        self._is_shared_out = True
        #: By task, in the order in which they began.
        self.under_way: dict[int, _Transfer] = {}
        #: Bytes that each machine has received.
        self.received = [0.0] * len(incoming)

    def begin(self, task: int, machine: int, size: float, now: int) -> None:
        self.advance(now)
        transfer = self.under_way[task] = _Transfer(machine, size)
        self._next_block(transfer)

    def _next_block(self, transfer: _Transfer) -> None:
        self._is_shared_out = False
        if self._outgoing is None:
            return
        transfer.block = min(self._block, transfer.left)
        other = self._random.below(len(self._outgoing) - 1)
        transfer.sender = other + (other >= transfer.machine)

    def advance(self, now: int) -> None:
        """Lets all transfers go on until now."""
        seconds = (now - self._updated) / MICROS_PER_SECOND
        self._updated = now
        if seconds:
            for transfer in self.under_way.values():
                moved = seconds * transfer.rate
                transfer.left -= moved
                transfer.block -= moved
                self.received[transfer.machine] += moved

    def next_end(self) -> int | None:
        """When the next block ends."""
        self._share_out()
        ends = [max(0.0, transfer.block) / transfer.rate for transfer in self.under_way.values()]
        return self._updated + int(min(ends) * MICROS_PER_SECOND) + 1 if ends else None

    def end_blocks(self, now: int) -> list[tuple[int, int]]:
        """Goes on with the next blocks of transfers whose block has ended. Returns the task and machine
        of those that are over."""
        self.advance(now)
        over = []
        for task, transfer in [*self.under_way.items()]:
            if transfer.block > 0:
                continue
            if transfer.left > 0:
                self._next_block(transfer)
            else:
                del self.under_way[task]
                self._is_shared_out = False
                over.append((task, transfer.machine))
        return over

    def _share_out(self) -> None:
        """Fills links in order of what they have left for each of their transfers."""
        if self._is_shared_out:
            return
        self._is_shared_out = True
        links: dict[int, set[int]] = {}
        for task, transfer in self.under_way.items():
            for link in self._links_of(transfer):
                links.setdefault(link, set()).add(task)
        room = {link: self._bandwidth(link) for link in links}
        while links:
            full = min(links, key=lambda link: (room[link] / len(links[link]), link))
            each = room[full] / len(links[full])
            for task in sorted(links[full]):
                transfer = self.under_way[task]
                transfer.rate = each
                for link in self._links_of(transfer):
                    if link != full:
                        links[link].discard(task)
                        room[link] -= each
            del links[full]
            links = {link: tasks for link, tasks in links.items() if tasks}

    def _links_of(self, transfer: _Transfer) -> tuple[int, ...]:
        """Its link in, and its link out, which is numbered after all links in."""
        if self._outgoing is None:
            return (transfer.machine,)
        return transfer.machine, len(self._incoming) + transfer.sender

    def _bandwidth(self, link: int) -> float:
        count = len(self._incoming)
        if link < count:
            return float(self._incoming[link])
        assert self._outgoing is not None
        return float(self._outgoing[link - count])
