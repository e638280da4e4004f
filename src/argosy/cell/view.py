"""Views: everything that can be read of a cell. Engines get nothing else.

A view of the live cell copies nothing and sees every commit; a `Snapshot` is frozen. Both have the same
methods. The arrays they return are copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from argosy._core import Cell as NativeCell
from argosy._core import CellSnapshot, MachineDraw
from argosy.cell.bitmaps import Bitmap, to_bitmap
from argosy.cell.dtypes import misfit
from argosy.cell.names import Known, Names
from argosy.cell.search import Found, Rule, miss
from argosy.model.errors import ModelError, did_you_mean
from argosy.model.jobs import PRECEDENCE_RANGE, Job
from argosy.model.machines import MACHINE_GROUP
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import (
    MachineArray,
    ShapeArray,
    TaskArray,
    VersionArray,
    Wants,
)

if TYPE_CHECKING:
    from argosy._core.cell import FindAnswer

_MOST = 2**62
#: No claim is below this precedence.
_LOWEST = -(2**15)


class DrawnMachines(NamedTuple):
    """Machines with room, in the order drawn: their versions, what is free, and how well the request
    fits, from 0 to 100. Then how many were drawn, and how many of these were ruled out: for each
    dimension, and because they take no claims."""

    machines: MachineArray
    versions: VersionArray
    free: NDArray[np.int64]
    scores: NDArray[np.int64]
    drawn: int
    ruled_out: list[int]


class View:
    """Reads a cell. Machines are numbered from 0 to `machines` - 1, including removed ones."""

    def __init__(self, columns: NativeCell | CellSnapshot, names: Names) -> None:
        self._columns = columns
        self._names = names

    @property
    def _known(self) -> Known:
        return self._names.known

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The resources that machines have. In a live view, new ones may appear at the end."""
        return self._known.dimensions

    @property
    def machines(self) -> int:
        return self._columns.machines

    def machine_name(self, machine: int) -> str:
        if not 0 <= machine < self.machines:
            raise ModelError(f"there is no machine {machine}", expected=self._machine_range())
        return self._names.machines[machine]

    def machine_number(self, name: str) -> int:
        number = self._names.machine_numbers.get(name, -1)
        if not 0 <= number < self.machines:
            known = self._names.machines[: self.machines]
            raise ModelError(f"there is no machine {name!r}", hint=did_you_mean(name, known))
        return number

    def free(self, machines: MachineArray | None = None) -> NDArray[np.int64]:
        """Free resources, one row per machine (all, or those listed) and one column per dimension."""
        try:
            return self._columns.free(machines)
        except TypeError as error:
            raise misfit([("machines", machines, np.int32, 1)], error) from None

    def capacity(self, machines: MachineArray | None = None) -> NDArray[np.int64]:
        try:
            return self._columns.capacity(machines)
        except TypeError as error:
            raise misfit([("machines", machines, np.int32, 1)], error) from None

    def versions(self, machines: MachineArray | None = None) -> VersionArray:
        try:
            return self._columns.versions(machines)
        except TypeError as error:
            raise misfit([("machines", machines, np.int32, 1)], error) from None

    def sequences(self, machines: MachineArray | None = None) -> VersionArray:
        """How many transactions have claimed something on each machine, even if it was rolled back;
        unlike in versions, ends of tasks do not count."""
        try:
            return self._columns.sequences(machines)
        except TypeError as error:
            raise misfit([("machines", machines, np.int32, 1)], error) from None

    def draw(
        self,
        order: MachineDraw,
        request: Sequence[int],
        size: int,
        random: Random,
        *,
        most: int = 0,
        rounds: int = 0,
        is_cut: bool = False,
        reserved: tuple[MachineArray, NDArray[np.int64]] | None = None,
    ) -> DrawnMachines:
        """Draws machines from `order` in rounds of `size` until that many have room for `request`, all
        were drawn, or `most` machines or `rounds` are over (0: no limit). What is found beyond `size`
        stays, unless `is_cut`. `reserved` is taken: machines in ascending order, with a row each."""
        machines, amounts = (None, None) if reserved is None else reserved
        return DrawnMachines(
            *order.draw(
                self._columns, request, size, random, most, rounds, is_cut, machines, amounts
            )
        )

    def is_up(self, machine: int) -> bool:
        """Whether the machine is up; it may be draining."""
        return self._columns.is_up(machine)

    def is_draining(self, machine: int) -> bool:
        return self._columns.is_draining(machine)

    def takes_claims(self) -> NDArray[np.uint8]:
        """Per machine, 1 if it is up and not draining."""
        return self._columns.takes_claims()

    def used_total(self) -> dict[str, int]:
        """Resources held by claims, over all machines."""
        return dict(zip(self.dimensions, self._columns.used_total(), strict=True))

    def capacity_total(self) -> dict[str, int]:
        """Capacity of all machines that are up, including draining ones."""
        return dict(zip(self.dimensions, self._columns.capacity_total(), strict=True))

    def shape(self, request: Resources, tags: Sequence[str] = (), precedence: int = 0) -> int:
        """The number of a shape; equal arguments give the same number. A task may ask for a resource
        that no machine has; it fits nowhere until one has it."""
        if request.extras:
            return self._intern(request, tags, precedence)
        key = (request.cpu, request.memory, precedence, tuple(tags))
        shapes = self._names.shapes
        shape = shapes.get(key)
        if shape is None:
            shape = shapes[key] = self._intern(request, tags, precedence)
        return shape

    def _intern(self, request: Resources, tags: Sequence[str], precedence: int) -> int:
        vector, apart = self._names.amounts(request)
        numbers = [self._names.tag(tag) for tag in tags]
        try:
            return self._columns.shape(vector, numbers, precedence, apart)
        except ValueError as error:
            raise ModelError(str(error)) from None

    def shape_request(self, shape: int) -> tuple[int, ...]:
        """The request of a shape, in the order of `dimensions`."""
        return tuple(self._columns.shape_parts(shape)[0])

    def unknown_resource(self, shape: int) -> str | None:
        """The first resource in a shape's request that no machine has, or None."""
        resource = self._columns.shape_beyond(shape)[0]
        return None if resource < 0 else self._names.resource(resource)

    def shape_tags(self, shape: int) -> tuple[str, ...]:
        """The tags of a task of the shape."""
        return tuple(self._names.tags[number] for number in self._columns.shape_parts(shape)[1])

    def tagged_on(
        self, machines: MachineArray, scheduler: str
    ) -> tuple[TaskArray, MachineArray, ShapeArray, NDArray[np.bool_]]:
        """Tagged containers of all schedulers on some machines: task, machine, shape, and whether this
        scheduler placed it."""
        try:
            tasks, where, shapes, who = self._columns.tagged_claims_on(machines)
        except TypeError as error:
            raise misfit([("machines", machines, np.int32, 1)], error) from None
        return tasks, where, shapes, who == self._scheduler(scheduler)

    def applications(self) -> Mapping[int, Job]:
        """Jobs of all schedulers with placement constraints that are not over, by number."""
        return self._known.applications

    @property
    def applications_version(self) -> int:
        """Increases whenever such a job is added or removed."""
        return self._known.applications_version

    @property
    def labels_version(self) -> int:
        """Increases whenever attributes or node sets of an existing machine change: results derived
        from `where`, `members` or `sets_of` must be computed again."""
        return self._known.labels_version

    def tag_count(self, tag: str, machine: int) -> int:
        """Number of running containers on the machine with the tag."""
        return self._columns.tag_count(self._names.tag(tag), machine)

    def tag_count_in(self, tag: str, group: str, set_name: str) -> int:
        if group == MACHINE_GROUP:
            return self.tag_count(tag, self.machine_number(set_name))
        number = self._known.set_number(group, set_name)
        return self._columns.set_tag_count(self._names.tag(tag), number)

    @property
    def groups(self) -> tuple[str, ...]:
        """The node groups other than `machine`."""
        return tuple(self._known.groups)

    @property
    def attributes(self) -> tuple[tuple[str, str], ...]:
        """Every attribute that some machine has or had, with its value."""
        return self._names.attributes(self._known.attributes)

    def sets_of(self, machine: int, group: str) -> tuple[str, ...]:
        """The sets of the group that the machine is in."""
        name = self.machine_name(machine)
        if group == MACHINE_GROUP:
            return (name,)
        self._known.group(group)
        return self._names.sets_in(self._columns.sets_of(machine), group)

    def sets_in(self, group: str) -> tuple[str, ...]:
        """All sets of the group."""
        if group == MACHINE_GROUP:
            return tuple(self._names.machines[: self.machines])
        return tuple(self._known.group(group).sets)

    def between(self, first: int, last: int) -> Bitmap:
        """Machines numbered from `first` up to but not including `last`."""
        chosen = np.zeros(self.machines, np.bool_)
        chosen[first:last] = True
        return to_bitmap(chosen)

    def members(self, group: str, set_name: str) -> Bitmap:
        """The machines of one set of a node group, whether up or not."""
        if group == MACHINE_GROUP:
            number = self.machine_number(set_name)
            return self.between(number, number + 1)
        return self._columns.set_members(self._known.set_number(group, set_name))

    def where(self, attributes: Mapping[str, str]) -> Bitmap:
        """Machines that have all of the attributes, whether up or not."""
        numbers = self.attribute_numbers(attributes)
        if numbers is None:
            return np.zeros((self.machines + 63) // 64, np.uint64)
        return self._columns.with_attributes(numbers)

    def attribute_numbers(self, attributes: Mapping[str, str]) -> list[int] | None:
        """The cell's numbers for the attributes; none if there is one that no machine ever had."""
        numbers = []
        for key, value in attributes.items():
            number = self._names.known_attribute(key, value)
            if number is None:
                return None
            numbers.append(number)
        return numbers

    def where_tags(
        self, tag: str, group: str = MACHINE_GROUP, least: int = 0, most: int | None = None
    ) -> Bitmap:
        """Machines in at least one set of the group with `least` to `most` such containers."""
        number = self._names.tag(tag)
        bound = _MOST if most is None else most
        if group == MACHINE_GROUP:
            return self._columns.with_tag(number, least, bound)
        sets = self._known.group(group).numbers
        return self._columns.in_sets_with_tag(number, sets, least, bound)

    def find(
        self,
        shape: int,
        count: int,
        rule: Rule,
        random: Random,
        *,
        within: Bitmap | None = None,
        keys: NDArray[np.int64] | None = None,
        step: int | NDArray[np.int64] = 0,
        needs_room: bool = True,
        per_machine: int = 0,
        adjust: NDArray[np.int64] | None = None,
    ) -> Found:
        """Machines for `count` tasks of one shape that are up, not draining and have room.

        `within` restricts the search to a bitmap of machines. `keys` and `step` are for `SMALLEST_KEY`:
        each task placed on a machine adds `step` (one for all, or one per machine) to its key. Without
        `needs_room`, only a machine's capacity must suffice. At most `per_machine` tasks go to one
        machine (0: no limit). `adjust` is added to the free resources, per machine and dimension.
        """
        one, each = (step, None) if isinstance(step, int) else (0, step)
        try:
            answer = self._columns.find(
                shape, count, rule, random, within, keys, one, needs_room, per_machine, each, adjust
            )
        except TypeError as error:
            raise misfit(
                [
                    ("within", within, np.uint64, 1),
                    ("keys", keys, np.int64, 1),
                    ("step", each, np.int64, 1),
                    ("adjust", adjust, np.int64, 2),
                ],
                error,
            ) from None
        return self._found(shape, count, rule, answer)

    def find_plainly(
        self, shape: int, count: int, rule: Rule, random: Random
    ) -> tuple[MachineArray, VersionArray, Found | None]:
        """As `find` for tasks that may go anywhere, but only the machines and their versions: what was
        seen is told only if there are fewer than asked for."""
        answer = self._columns.find_plainly(shape, count, rule, random)
        if len(answer) == 2:
            return *answer, None
        found = self._found(shape, count, rule, answer)
        return found.machines, found.versions, found

    def _found(self, shape: int, count: int, rule: Rule, answer: FindAnswer) -> Found:
        machines, versions, looked_at, feasible, ruled_out, nearest, scores = answer
        known = self._known
        names = known.ruled_out
        if len(ruled_out) > len(names):
            names = (*names, self.unknown_resource(shape) or "")
        if nearest is None and scores is None:
            return Found(machines, versions, count, rule, looked_at, feasible, names, ruled_out)
        found = machines, versions, count, rule, looked_at, feasible, names, ruled_out
        near, could_fit = None, False
        if nearest is not None:
            machine, dimension, lacking, could_fit = nearest
            named = dimension < len(known.dimensions)
            near = miss(machine, known.dimensions[dimension] if named else names[-1], lacking)
        score, second, second_score = scores or (None, -1, None)
        if second < 0:
            return Found(*found, near, score, could_fit=could_fit)
        return Found(*found, near, score, second, second_score, could_fit)

    def held_by(self, scheduler: str) -> dict[str, int]:
        """Resources held by a scheduler's claims, by dimension."""
        number = self._scheduler(scheduler)
        if number < 0:
            return dict.fromkeys(self.dimensions, 0)
        return dict(zip(self.dimensions, self._columns.usage(number)[0], strict=True))

    def wants(self) -> Mapping[str, Wants]:
        """What schedulers last announced they still want to claim; some announcements may have
        expired."""
        return self._known.wants

    def highest_precedence(self, scheduler: str) -> int:
        """The highest precedence that the scheduler may claim with."""
        number = self._scheduler(scheduler)
        return PRECEDENCE_RANGE[1] if number < 0 else self._columns.most_precedence(number)

    def evictable(self, precedence: int) -> NDArray[np.int64]:
        """Resources held by claims below `precedence`, one row per machine and one column per
        dimension."""
        return self._columns.evictable(precedence)

    def victims_for(self, shape: int, precedence: int) -> NDArray[np.int64]:
        """Per machine, how many claims below `precedence` a task of the shape would preempt there; -1
        where even all of them leave no room."""
        return self._columns.victims_for(shape, precedence)

    def may_evict(self, precedence: int) -> bool:
        """Whether there may be claims below `precedence`; if not, `evictable` is nothing."""
        return self._columns.lowest_precedence < precedence

    @property
    def last_change(self) -> int:
        """The number of the last change, for `fits_since`."""
        columns = self._columns
        return columns.transaction if isinstance(columns, NativeCell) else 0

    def fits_since(
        self,
        change: int,
        shape: int,
        *,
        within: Bitmap | None = None,
        preempt_below: int | None = None,
    ) -> bool:
        """Whether a task of the shape fits on a machine that has changed since that change: if none
        had room then, none has otherwise. With `preempt_below`, what claims of lower precedence hold
        counts as room. A snapshot, which does not know what has changed, says yes."""
        columns = self._columns
        if not isinstance(columns, NativeCell):
            return True
        bound = _LOWEST if preempt_below is None else preempt_below
        return columns.fits_since(change, shape, bound, within)

    def _scheduler(self, name: str) -> int:
        """The scheduler's number; -1 if the cell does not know it."""
        return self._names.schedulers.get(name, -1)

    def _machine_range(self) -> str:
        return f"0 to {self.machines - 1}" if self.machines else "none yet: the cell is empty"


class Snapshot(View):
    """A view that no commit changes: the whole cell at one moment, including who holds what, with its
    dimensions, groups, sets and applications. It may be read in another thread while the cell changes,
    unless tags or shapes that are new to the cell are asked for there: these are numbered for
    everyone."""

    def __init__(self, columns: CellSnapshot, names: Names) -> None:
        super().__init__(columns, names)
        self._kept = names.share()
        self._schedulers = dict(names.schedulers)

    @property
    def _known(self) -> Known:
        return self._kept

    def _scheduler(self, name: str) -> int:
        return self._schedulers.get(name, -1)
