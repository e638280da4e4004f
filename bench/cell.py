"""How fast the cell commits, searches and copies, against its targets. Run by hand:

python bench/cell.py
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from argosy.cell.cell import Cell
from argosy.cell.search import Rule
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.tasks import task_numbers
from argosy.model.transactions import OPERATOR, AddMachine, Claims, Transaction

MACHINES = 12_500
GIB = 2**30


def median_seconds(measure: Callable[[], float], runs: int) -> float:
    return statistics.median(measure() for _ in range(runs))


def cell_of(machines: int) -> Cell:
    """Machines of 16 to 64 cores."""
    cell = Cell(("cpu", "memory"))
    random = Random(1).child("machines")
    changes = []
    for number in range(machines):
        size = 1 + random.below(4)
        changes.append(AddMachine(Machine(f"m{number}", Resources(16_000 * size, 64 * GIB * size))))
    cell.commit(Transaction(OPERATOR, machines=tuple(changes)))
    return cell


def batches(shape: int, machines: int, tasks: int, batch: int) -> list[Transaction]:
    """Claims spread evenly over the machines in a scattered order."""
    where = (np.arange(tasks, dtype=np.int64) * 7_919 % machines).astype(np.int32)
    numbers = np.arange(tasks, dtype=np.int64)
    numbers = task_numbers(numbers // 50, numbers % 50)
    return [
        Transaction(
            "bench",
            Claims(
                numbers[at : at + batch],
                where[at : at + batch],
                np.full(len(numbers[at : at + batch]), shape, np.int32),
                np.zeros(len(numbers[at : at + batch]), np.uint32),
            ),
        )
        for at in range(0, tasks, batch)
    ]


def bench_commit(runs: int) -> None:
    tasks = 100_000

    def once() -> float:
        cell = cell_of(MACHINES)
        shape = cell.shape(Resources(1_000, 2 * GIB))
        transactions = batches(shape, MACHINES, tasks, 1_000)
        began = time.perf_counter()
        outcomes = [cell.commit(transaction) for transaction in transactions]
        took = time.perf_counter() - began
        assert all(outcome.all_accepted for outcome in outcomes)
        return took

    rate = tasks / median_seconds(once, runs)
    print(f"commit, batches of 1,000      {rate / 1e6:8.2f} million claims/s   target 2")


def filled(utilisation: float) -> tuple[Cell, int]:
    """A cell filled at random with tasks of many sizes; also a shape to search for."""
    cell = cell_of(MACHINES)
    random = Random(2).child("fill")
    task = 0
    capacity = cell.capacity_total()
    while cell.used_total()["cpu"] < utilisation * capacity["cpu"]:
        size = 1 + random.below(8)
        shape = cell.shape(Resources(500 * size, GIB * (1 + random.below(12))))
        found = cell.find(shape, 500, Rule.FIRST, random)
        numbers = np.arange(task, task + len(found), dtype=np.int64)
        shapes = np.full(len(found), shape, np.int32)
        cell.commit(Transaction("fill", Claims(numbers, found.machines, shapes, found.versions)))
        task += len(found)
    return cell, cell.shape(Resources(2_000, 8 * GIB))


def bench_search(runs: int) -> None:
    cell, shape = filled(0.8)
    random = Random(3).child("search")
    keys = np.array([random.below(1_000_000) for _ in range(MACHINES)], np.int64)
    searches, batch = 50, 100
    for rule in Rule:

        def once(rule: Rule = rule) -> float:
            began = time.perf_counter()
            for _ in range(searches):
                cell.find(shape, batch, rule, random, keys=keys, step=10)
            return time.perf_counter() - began

        found = cell.find(shape, batch, rule, random, keys=keys, step=10)
        assert found.is_complete
        rate = searches * batch / median_seconds(once, runs)
        label = f"search, {rule.title}, batches of {batch}"
        print(f"{label:38}{rate / 1e3:8.0f} thousand tasks/s   target 500")


def bench_snapshot(runs: int) -> None:
    cell, shape = filled(0.8)
    copies = 1_000

    def once() -> float:
        began = time.perf_counter()
        for _ in range(copies):
            cell.snapshot()
        return time.perf_counter() - began

    print(f"snapshot of 12,500 machines   {median_seconds(once, runs) / copies * 1e6:8.1f} µs")
    random = Random(4)

    def after() -> float:
        snapshot = cell.snapshot()
        found = snapshot.find(shape, 1, Rule.FIRST, random)
        task = np.array([(1 << 40) + random.below(1 << 40)], np.int64)
        claims = Claims(task, found.machines, np.array([shape], np.int32), found.versions)
        began = time.perf_counter()
        cell.commit(Transaction("bench", claims))
        return time.perf_counter() - began

    print(f"first commit after a snapshot {median_seconds(after, 20 * runs) * 1e6:8.1f} µs")


def resident_bytes() -> int:
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def bench_memory() -> None:
    machines, tasks = 100_000, 1_000_000
    cell = cell_of(machines)
    shape = cell.shape(Resources(1_000, 2 * GIB), ("web",))
    for transaction in batches(shape, machines, tasks, 10_000):
        cell.commit(transaction)
    assert cell.claims() == tasks
    print(
        "100,000 machines, 1,000,000 tasks "
        f"{resident_bytes() / 2**20:8.0f} MiB resident      target 1,024"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    bench_memory()
    bench_commit(runs)
    bench_search(runs)
    bench_snapshot(runs)


if __name__ == "__main__":
    main()
