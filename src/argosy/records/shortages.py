"""What is in the way of a task that waits: which machines could take it, what they lack, and who holds
it. Computed from everything that runs, so that it is true whatever the scheduler looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.model.devices import empty_slots, place_of
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.units import format_amount, format_count
from argosy.model.wording import format_request, format_requires, listed, listed_names
from argosy.records.occupancy import Occupancy

Mask = NDArray[np.bool_]


class Shortage(msgspec.Struct, frozen=True):
    """A lack of room. `cause` and `remedy` are without full stops, `details` are sentences."""

    cause: str
    details: tuple[str, ...]
    remedy: str
    nearest_miss: str = ""


def shortage(
    job: Job, group: TaskGroup, cell: Occupancy, scheduler: str, *, is_gang: bool
) -> Shortage | None:
    """None if no machine could ever take the task."""
    if is_gang:
        return _of_gang(job, cell, scheduler)
    asked, could, has_room = _fit(group, cell)
    if not could.any():
        return None
    if has_room.any():
        names = _names(cell, has_room)
        return _unused(f"{names} {'has' if has_room.sum() == 1 else 'have'}", scheduler)
    found = _Lack(cell, asked, could)
    count = int(could.sum())
    some = count < len(could) or count <= 4
    where = f" ({_names(cell, could)})" if some and count > 1 else ""
    cause = f"none of the {count:,} machines that could take it{where} has {found.wanted}"
    if count == 1:
        name = _names(cell, could)
        cause = f"{name}, the only machine that could take it, does not have {found.wanted}"
    return Shortage(cause, found.held(), found.remedy(group), found.miss())


def _unused(who: str, scheduler: str) -> Shortage:
    """There was room by then, which the scheduler could not or did not use."""
    why = "It may be held for other jobs, be on offer to them, or be outside the scheduler's share."
    return Shortage(f"{who} room for it, but {scheduler} did not use it", (why,), "")


def _of_gang(job: Job, cell: Occupancy, scheduler: str) -> Shortage | None:
    """Whether each group of a gang fits by itself; together they may still not."""
    for group in job.groups:
        asked, could, _ = _fit(group, cell)
        if not could.any() or not asked.any():
            continue
        room = cell.slots(np.flatnonzero(could), asked)
        if room >= group.count:
            continue
        lack = _Lack(cell, asked, could)
        on = f" on machines with {format_requires(group.requires)}" if group.requires else ""
        which = f"each ask for {format_request(group.request)}{on}"
        fit = f"only {room:,} of the {group.count:,} that {which} fit at once"
        if not room:
            fit = f"none of the {group.count:,} that {which} fits now"
        cause = f"it is one of a gang of {format_count(job.tasks, 'task')}, and {fit}"
        return Shortage(cause, lack.held(), lack.remedy(group))
    return _unused("there was", scheduler)


def _names(cell: Occupancy, mask: Mask) -> str:
    return listed_names(cell.machines[at].name for at in np.flatnonzero(mask).tolist())


def _slots(capacity: NDArray[np.int64], asked: NDArray[np.int64], devices: int | None) -> int:
    """How many tasks fit on a machine if it is empty."""
    wanted = asked > 0
    fits = int((capacity[wanted] // asked[wanted]).min())
    if devices is not None and asked[devices]:
        fits = min(fits, empty_slots(int(capacity[devices]), int(asked[devices])))
    return fits


def _fit(group: TaskGroup, cell: Occupancy) -> tuple[NDArray[np.int64], Mask, Mask]:
    """The request, the machines that could take a task if they were empty, and those that can now."""
    asked = np.array(group.request.within(cell.dimensions), np.int64)
    could = _having(group.requires, cell) & (cell.capacity >= asked).all(axis=1)
    return asked, could, could & (cell.free >= asked).all(axis=1)


def _having(requires: Mapping[str, str], cell: Occupancy) -> Mask:
    found = [_meets(requires, machine) for machine in cell.machines]
    mask: Mask = np.array(found, np.bool_) & cell.takes_claims
    return mask


def _meets(requires: Mapping[str, str], machine: Machine) -> bool:
    return all(machine.attributes.get(key) == value for key, value in requires.items())


class _Lack:
    """What machines that could take a task lack."""

    def __init__(self, cell: Occupancy, asked: NDArray[np.int64], could: Mask) -> None:
        self._cell = cell
        self._could = np.flatnonzero(could)
        self._asked = asked
        self._lacking = np.maximum(0, asked - cell.free[self._could])
        share = self._lacking / np.maximum(1, asked)
        at = int(np.argmin(share.max(axis=1)))
        self._nearest = int(self._could[at])
        # Of resources that are equally short, an extra one says more than cpu or memory.
        self._dimension = len(asked) - 1 - int(np.argmax(share[at][::-1]))
        self._amount = int(self._lacking[at, self._dimension])
        if not self._amount:
            # It has room for a part of a gang: what do the others lack?
            self._dimension = int(np.argmax((self._lacking > 0).sum(axis=0)))

    @property
    def wanted(self) -> str:
        """What some of the machines do not have free."""
        lacked = np.flatnonzero((self._lacking > 0).any(axis=0))
        names = self._cell.dimensions
        amounts = [format_amount(names[d], int(self._asked[d])) for d in lacked.tolist()]
        where = "" if self._cell.devices not in lacked else self._where(self._cell.devices)
        return f"{listed(amounts)} free{where}"

    def _where(self, dimension: int | None) -> str:
        if dimension is None or dimension != self._cell.devices:
            return ""
        return f" {place_of(int(self._asked[dimension]))}"

    def miss(self) -> str:
        if not self._amount:
            return ""
        lacks = format_amount(self._cell.dimensions[self._dimension], self._amount)
        lacks += self._where(self._dimension)
        return f"{self._cell.machines[self._nearest].name} lacks {lacks}"

    def held(self) -> tuple[str, ...]:
        """Who holds what is lacking most."""
        holders = self._cell.holders(self._could, self._dimension)
        if not holders:
            return ()
        by_job = Counter(each.rpartition("/")[0] for each in holders)
        who = listed([f"{format_count(n, 'task')} of {job}" for job, n in by_job.most_common()])
        if len(holders) <= 4 or len(by_job) == 1:
            who = listed_names(sorted(holders, key=_by_number))
        name = self._cell.dimensions[self._dimension]
        what = "The cores there are" if name == "cpu" else f"The {name} there is"
        nearest = f"; {self.miss()}" if len(self._could) > 1 and self._amount else ""
        return (f"{what} held by {who}{nearest}.",)

    def remedy(self, group: TaskGroup) -> str:
        """More machines, fewer demands: what would be enough for all that wait for such room."""
        like = self._cell.machines[self._nearest]
        waiting, machines = self._needed(like)
        more = f"another machine like {like.name}"
        if machines > 1:
            more = f"{machines:,} more machines like {like.name}"
        parts = [more if waiting <= 1 else f"{more}, enough for all {waiting:,} tasks that wait"]
        alone = waiting <= 1
        if alone and 0 < self._amount < int(self._asked[self._dimension]):
            name = self._cell.dimensions[self._dimension]
            parts.append(f"{format_amount(name, self._amount)} less")
        if relaxed := self._relaxed(group, waiting):
            parts.append(relaxed)
        return ", or ".join(parts)

    def _needed(self, like: Machine) -> tuple[int, int]:
        """How many tasks wait that such a machine could take, and how many machines take them all."""
        capacity = np.array(like.capacity.within(self._cell.dimensions), np.int64)
        tasks = machines = 0
        for job, pending in zip(self._cell.jobs, self._cell.pending.tolist(), strict=True):
            if not pending:
                continue
            for group in job.groups:
                asked = np.array(group.request.within(self._cell.dimensions), np.int64)
                if not asked.any() or not _meets(group.requires, like):
                    continue
                fits = _slots(capacity, asked, self._cell.devices)
                if fits:
                    count = min(pending, group.count)
                    tasks += count
                    machines += -(-count // fits)
        return tasks, max(1, machines)

    def _relaxed(self, group: TaskGroup, waiting: int) -> str:
        """What dropping the requirements would gain, if that were enough."""
        if not group.requires:
            return ""
        others = self._cell.takes_claims & ~_having(group.requires, self._cell)
        room = self._cell.slots(np.flatnonzero(others), self._asked)
        if room < max(1, waiting):
            return ""
        wanted = format_requires(group.requires)
        return f"no requirement of {wanted}: elsewhere there is room for {room:,}"


def _by_number(name: str) -> tuple[str, int]:
    job, _, index = name.rpartition("/")
    return job, int(index)
