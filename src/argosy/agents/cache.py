"""What an agent, or a shard of it, knows of its machines.

Reading takes no lock and never waits for a commit: arrays are replaced or copied, never lent. If
`refresh` is 0, the cache is always up to date; otherwise it is read again from the cell when it is older
than that. Its own commits it knows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from argosy.agents.api import Nodes
from argosy.agents.facts import CellFacts
from argosy.cell import DrawnMachines, MachineDraw, View, to_mask
from argosy.model.machines import CLUSTER_GROUP, Cluster
from argosy.model.random import Random
from argosy.model.transactions import MachineArray, VersionArray


class Reservation:
    """Room kept for a commit that is under way. `number` grows with arrival."""

    __slots__ = ("amounts", "machine", "number")

    def __init__(self, number: int, machine: int, amounts: NDArray[np.int64]) -> None:
        self.number = number
        self.machine = machine
        self.amounts = amounts


class NodesCache:
    """The machines of one cluster as its agent knows them."""

    def __init__(
        self,
        cluster: Cluster,
        view: View,
        facts: CellFacts,
        refresh: int,
        changes: Callable[[], int] | None = None,
        shard: tuple[int, int] = (0, 1),
    ) -> None:
        """`changes` counts changes of machines: while it stays the same, so does which of them take
        claims. Of n shards, number i has the machines whose number is i modulo n."""
        self._cluster = cluster
        self._view = view
        self._facts = facts
        self._refresh = refresh
        self._shard, self._shards = shard
        #: What `_members` was computed for.
        self._state = (-1, -1)
        self._members: MachineArray = np.empty(0, np.int32)
        #: The picture of all machines of the cell when it was last read, if it may be old.
        self._free: NDArray[np.int64] | None = None
        self._takes: NDArray[np.bool_] = np.empty(0, np.bool_)
        self._changes = changes
        self._changes_seen = -1
        self._read_at = 0
        #: Room kept for commits under way, by machine, in order of arrival. No empty lists.
        self._reserved: dict[int, list[Reservation]] = {}
        #: The same as columns; None if out of date.
        self._rows: tuple[MachineArray, NDArray[np.int64]] | None = None
        #: The order of the last draw, and the machines it was made of.
        self._order: MachineDraw | None = None
        self._ordered: MachineArray | None = None

    @property
    def reservations(self) -> int:
        return sum(map(len, self._reserved.values()))

    def members(self) -> MachineArray:
        """The cluster's machines, whether up or not, in ascending order."""
        view = self._view
        state = view.machines, view.labels_version
        if state != self._state:
            self._state = state
            self._members = np.arange(view.machines, dtype=np.int32)
            if self._cluster.name:
                within = to_mask(view.members(CLUSTER_GROUP, self._cluster.name), view.machines)
                self._members = np.flatnonzero(within).astype(np.int32)
            if self._shards > 1:
                self._members = self._members[self._members % self._shards == self._shard]
        return self._members

    def sample(self, machines: MachineArray, now: int, *, is_cut_off: bool) -> Nodes:
        """What the agent believes of these machines; those that take no claims have no room. With
        `is_cut_off`, no news reach the cache."""
        if self._refresh or is_cut_off:
            free, takes = self._kept(now, is_cut_off=is_cut_off)
            # Machines that joined since are not known yet, nor is what came of new resources.
            known = machines < len(takes)
            rows = np.zeros((len(machines), len(self._view.dimensions)), np.int64)
            rows[known, : free.shape[1]] = free[machines[known]]
            is_open = np.zeros(len(machines), np.bool_)
            is_open[known] = takes[machines[known]]
        else:
            self._free = None
            rows = self._view.free(machines)
            is_open = self._open()[machines]
        self._subtract(machines, rows)
        rows[~is_open] = -1
        return self.nodes(machines, rows)

    def draw(
        self,
        request: Sequence[int],
        size: int,
        random: Random,
        *,
        most: int,
        rounds: int,
        is_cut: bool,
    ) -> DrawnMachines:
        """Machines with room, drawn at random from a cache that is up to date."""
        self._free = None
        members = self.members()
        if self._order is None or self._ordered is not members:
            self._order, self._ordered = MachineDraw(members), members
        return self._view.draw(
            self._order,
            request,
            size,
            random,
            most=most,
            rounds=rounds,
            is_cut=is_cut,
            reserved=self._reserved_rows(),
        )

    def is_live(self, *, is_cut_off: bool) -> bool:
        """Whether it is up to date now."""
        return not self._refresh and not is_cut_off

    def _reserved_rows(self) -> tuple[MachineArray, NDArray[np.int64]] | None:
        if not self._reserved:
            return None
        if self._rows is None or self._rows[1].shape[1] != len(self._view.dimensions):
            machines = sorted(self._reserved)
            rows = np.zeros((len(machines), len(self._view.dimensions)), np.int64)
            for row, machine in zip(rows, machines, strict=True):
                for reservation in self._reserved[machine]:
                    row[: len(reservation.amounts)] += reservation.amounts
            self._rows = np.array(machines, np.int32), rows
        return self._rows

    def _open(self) -> NDArray[np.bool_]:
        """Which machines of the cell take claims now."""
        seen = -1 if self._changes is None else self._changes()
        if seen < 0 or seen != self._changes_seen or len(self._takes) != self._view.machines:
            self._changes_seen = seen
            self._takes = self._view.takes_claims().view(np.bool_)
        return self._takes

    def _kept(self, now: int, *, is_cut_off: bool) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        free = self._free
        if free is None or (not is_cut_off and now - self._read_at >= self._refresh):
            free = self._free = self._view.free()
            self._takes = self._view.takes_claims().view(np.bool_)
            self._changes_seen = -1
            self._read_at = now
        return free, self._takes

    def _subtract(self, machines: MachineArray, rows: NDArray[np.int64]) -> None:
        if not self._reserved:
            return
        for row, machine in enumerate(machines.tolist()):
            for reservation in self._reserved.get(machine, ()):
                _take(rows[row], reservation)
        # Room that is promised twice must not look like a debt to a filter of a third.
        np.maximum(rows, 0, out=rows)

    def fresh(self, machine: int, before: int | None, own: Reservation | None) -> Nodes:
        """The machine as it is now, less what is reserved there by others; `before` leaves out
        reservations from that number on."""
        machines = np.array([machine], np.int32)
        rows = self._view.free(machines)
        for reservation in self._reserved.get(machine, ()):
            if reservation is not own and (before is None or reservation.number < before):
                _take(rows[0], reservation)
        return self.nodes(machines, rows)

    def nodes(self, machines: MachineArray, free: NDArray[np.int64]) -> Nodes:
        """Machines of the cluster with this much free."""
        view = self._view
        return Nodes(
            machines,
            view.capacity(machines),
            free,
            view.dimensions,
            self._facts,
            (self._cluster.place,),
        )

    def versions(self, machines: MachineArray) -> VersionArray:
        return self._view.versions(machines)

    def reserve(self, number: int, machine: int, amounts: NDArray[np.int64]) -> Reservation:
        made = Reservation(number, machine, amounts)
        self._reserved.setdefault(machine, []).append(made)
        self._rows = None
        return made

    def unreserve(self, reservation: Reservation) -> None:
        left = self._reserved[reservation.machine]
        left.remove(reservation)
        self._rows = None
        if not left:
            del self._reserved[reservation.machine]

    def commit(self, reservation: Reservation) -> None:
        """The room is taken for good."""
        self.unreserve(reservation)
        if self._free is not None and reservation.machine < len(self._free):
            width = min(self._free.shape[1], len(reservation.amounts))
            self._free[reservation.machine, :width] -= reservation.amounts[:width]


def _take(row: NDArray[np.int64], reservation: Reservation) -> None:
    """What was reserved before a resource came has none of it."""
    row[: len(reservation.amounts)] -= reservation.amounts
