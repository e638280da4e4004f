"""Resources that consist of devices, such as GPUs.

A device has 1000 units. A request below that is a share, which has to fit on one device; any other takes
whole devices that nobody else uses, rounded up. `core/cell/devices.hpp` is the same for the cell itself;
this is for those who look at a run afterwards.
"""

from __future__ import annotations

from typing import Final

from argosy.model.resources import Resources

DEVICE_SIZE: Final = 1000
MOST_DEVICES: Final = 16
DEVICES_EXPECTED: Final = f"a multiple of {DEVICE_SIZE}, up to {MOST_DEVICES * DEVICE_SIZE}"


def not_devices(capacity: Resources, resource: str) -> str | None:
    """What is wrong with a machine's capacity if the resource consists of devices."""
    amount = capacity.extras.get(resource, 0)
    if amount % DEVICE_SIZE == 0 and amount <= MOST_DEVICES * DEVICE_SIZE:
        return None
    return f"{resource} = {amount}"


def place_of(amount: int) -> str:
    """Where a request has to fit, as words after the amount."""
    return "on one device" if amount < DEVICE_SIZE else "in whole devices"


def empty_slots(capacity: int, amount: int) -> int:
    """How many requests of this amount, which is not 0, fit on a machine with this capacity if it is
    empty."""
    return MachineDevices(capacity).slots(amount)


class MachineDevices:
    """The devices of one machine, and what is free on each."""

    def __init__(self, capacity: int) -> None:
        self.free = [DEVICE_SIZE] * (capacity // DEVICE_SIZE)
        self._held: dict[int, tuple[list[int], int]] = {}

    def hold(self, task: int, amount: int) -> None:
        """Gives the task its devices: for a share the one on which the least is left. Without room,
        which happens only if the order of events is not known exactly, those with most."""
        if not amount or not self.free:
            return
        numbers = range(len(self.free))
        if amount < DEVICE_SIZE:
            fitting = [each for each in numbers if self.free[each] >= amount]
            chosen = [min(fitting, key=self.free.__getitem__)] if fitting else []
            count, taken = 1, amount
        else:
            count, taken = -(-amount // DEVICE_SIZE), DEVICE_SIZE
            chosen = [each for each in numbers if self.free[each] == DEVICE_SIZE][:count]
        if len(chosen) < count:
            chosen = sorted(numbers, key=lambda each: -self.free[each])[:count]
        for each in chosen:
            self.free[each] -= taken
        self._held[task] = chosen, taken

    def release(self, task: int) -> None:
        chosen, taken = self._held.pop(task, ([], 0))
        for each in chosen:
            self.free[each] += taken

    def slots(self, amount: int) -> int:
        """How many requests of this amount, which is not 0, fit at once."""
        if amount < DEVICE_SIZE:
            return sum(max(0, free) // amount for free in self.free)
        return self.free.count(DEVICE_SIZE) // -(-amount // DEVICE_SIZE)

    def usable(self) -> int:
        """The largest request that fits."""
        whole = self.free.count(DEVICE_SIZE)
        return whole * DEVICE_SIZE if whole else max([0, *self.free])
