"""Where the input of tasks is stored, estimated as in the paper: its size from the running time,
its places from a hash of the task's number. The same tasks have their data in the same places under
every engine.

Replicas of a block are placed as in HDFS: one anywhere, the second in any rack, the others in the
second's rack. The blocks of a task on one machine add up.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.engines.families.flow.settings import DataSettings
from argosy.model.transactions import TaskArray
from argosy.model.units import MICROS_PER_SECOND
from argosy.solvers.flow.arrays import Numbers

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)


def scramble(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A fixed pseudo-random function of 64 bits (the finaliser of SplitMix64)."""
    mixed = values + _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))


class StoredInput(msgspec.Struct, frozen=True):
    """The input of tasks: its total size, and how much of it is where, in rows sorted by task."""

    bytes: Numbers
    blocks: Numbers
    #: Blocks of a task's input on a machine; replicas on one machine count once.
    machine_tasks: Numbers
    machines: Numbers
    machine_blocks: Numbers
    #: The same per rack.
    rack_tasks: Numbers
    racks: Numbers
    rack_blocks: Numbers


class LocalData:
    def __init__(self, settings: DataSettings, racks: Numbers) -> None:
        self._settings = settings
        self._racks = racks
        #: Machines sorted by rack, and the position of each rack's first machine.
        self._by_rack = np.argsort(racks, kind="stable")
        self._sizes = np.bincount(racks)
        self._starts = np.cumsum(self._sizes) - self._sizes

    def of(self, tasks: TaskArray, expected: int | Numbers) -> StoredInput:
        """The input of tasks with this expected running time, in microseconds; one value for all or one
        each."""
        settings, count = self._settings, len(tasks)
        keys = tasks.astype(np.uint64) * np.uint64(2) + np.uint64(settings.seed)
        # The sum of twelve uniform numbers is close enough to a normal one, and identical on every
        # platform.
        even = self._draws(keys, 1, 12).astype(np.float64) / 2.0**64
        normal = even.sum(axis=1) - 6.0
        seconds = np.asarray(expected) / MICROS_PER_SECOND
        size = settings.rate * seconds * np.exp(settings.spread * normal)
        size = np.minimum(size, float(settings.block * settings.most_blocks)).astype(np.int64)
        # Whole MiB, because exponentials may differ in the last digit between platforms.
        size = np.maximum(1, size >> 20) << 20
        blocks = np.maximum(1, -(-size // settings.block))
        task = np.repeat(np.arange(count), blocks)
        ordinal = np.arange(len(task)) - np.repeat(np.cumsum(blocks) - blocks, blocks)
        block_keys = keys[task] + (ordinal.astype(np.uint64) << np.uint64(40))
        places = self._places(self._draws(block_keys, 2, settings.replicas))
        rows = np.repeat(np.arange(len(task)), places.shape[1])
        machine_tasks, machines, machine_blocks = _counted(task, rows, places.ravel())
        rack_tasks, racks, rack_blocks = _counted(task, rows, self._racks[places.ravel()])
        return StoredInput(
            size,
            blocks,
            machine_tasks,
            machines,
            machine_blocks,
            rack_tasks,
            racks,
            rack_blocks,
        )

    def _draws(self, keys: NDArray[np.uint64], purpose: int, count: int) -> NDArray[np.uint64]:
        salts = scramble(np.arange(count, dtype=np.uint64) + np.uint64(purpose << 32))
        return scramble(scramble(keys)[:, None] ^ salts[None, :])

    def _places(self, draws: NDArray[np.uint64]) -> Numbers:
        """The machines of each block's replicas."""
        machines = (draws % np.uint64(len(self._racks))).astype(np.int64)
        for replica in range(2, machines.shape[1]):
            rack = self._racks[machines[:, 1]]
            offset = (draws[:, replica] % self._sizes[rack].astype(np.uint64)).astype(np.int64)
            machines[:, replica] = self._by_rack[self._starts[rack] + offset]
        return machines


def _counted(task: Numbers, rows: Numbers, places: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The number of blocks of each task at each place; replicas of a block at one place count once."""
    span = int(places.max(initial=0)) + 1
    once = np.unique(rows * span + places)
    pairs, blocks = np.unique(task[once // span] * span + once % span, return_counts=True)
    return pairs // span, pairs % span, blocks.astype(np.int64)
