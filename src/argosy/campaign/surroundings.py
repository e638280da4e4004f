"""Draws what goes wrong in a scenario, its network, and how its machines queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from argosy.campaign.cells import GIB, DrawnCell
from argosy.campaign.dice import Dice
from argosy.campaign.jobs import MS, SECOND

#: Faults strike until then, so that what is left has time to settle.
LAST_FAULT: Final = 120 * SECOND
_DOWN: Final = (0, MS, 2 * SECOND, 20 * SECOND)


def draw_faults(dice: Dice, cell: DrawnCell, schedulers: Sequence[str]) -> list[dict[str, Any]]:
    machines = list(cell.capacities)
    faults: list[dict[str, Any]] = []
    for number in range(dice.one_of((0, 1, 2, 4, 6))):
        part = dice.part(f"fault {number}")
        at = part.time(0, 1, 500 * MS, SECOND, 10 * SECOND, 30 * SECOND, 61 * SECOND, LAST_FAULT)
        fault = _fault(part, at, machines, schedulers, cell)
        if fault is not None:
            faults.append(fault)
    agent = dice.part("agent fault")
    if agent.has("agent-faults", 0.3):
        faults.append(_agent_fault(agent, cell))
    return faults


def _agent_fault(dice: Dice, cell: DrawnCell) -> dict[str, Any]:
    """Engines that ask no agents do not notice."""
    table: dict[str, Any] = {"kind": dice.one_of(("agent-down", "agent-slow", "agent-stale"))}
    table["at"] = dice.time(0, SECOND, 10 * SECOND)
    table["lasts"] = dice.time(MS, 5 * SECOND, 30 * SECOND)
    if table["kind"] == "agent-slow":
        table["extra"] = dice.time(MS, SECOND, 3 * SECOND)
    if clusters := [cluster["name"] for cluster in cell.tables.get("clusters", [])]:
        table["cluster"] = dice.one_of(clusters)
    return table


def _fault(
    dice: Dice, at: str, machines: Sequence[str], schedulers: Sequence[str], cell: DrawnCell
) -> dict[str, Any] | None:
    machine, kind = dice.one_of(machines), dice.among(0, 6)
    table: dict[str, Any]
    if kind in (0, 1):
        table = {"kind": "machine-crash", "at": at, "machine": machine}
        back = {"down": dice.time(*_DOWN)} if dice.chance(0.7) else {}
        return table | back if dice.has("crashes", 1) else None
    if kind == 2:
        table = {"kind": "machine-drain", "at": at, "machine": machine}
        over = {"lasts": dice.time(*_DOWN)} if dice.chance(0.6) else {}
        return table | over if dice.has("drains", 1) else None
    if kind == 3:
        capacity = _resized(dice, cell.capacities[machine])
        table = {"kind": "machine-resize", "at": at, "machine": machine, "capacity": capacity}
        return table if dice.has("resizes", 1) else None
    if kind == 4:
        table = {"kind": "scheduler-crash", "at": at, "scheduler": dice.one_of(schedulers)}
        back = {"down": dice.time(*_DOWN)} if dice.chance(0.7) else {}
        return table | back if dice.has("scheduler-crashes", 1) else None
    if kind == 5:
        what = dice.one_of(("machines", "schedulers"))
        every, down = dice.time(SECOND, 5 * SECOND, 30 * SECOND), dice.time(*_DOWN)
        feature = "crashes" if what == "machines" else "scheduler-crashes"
        times = {"every": every, "down": down, "start": at, "end": "2min"}
        return {"kind": "random-crashes", "what": what} | times if dice.has(feature, 1) else None
    isolated = dice.some_of(schedulers)
    table = {"kind": "partition", "at": at, "lasts": dice.time(MS, 5 * SECOND, 30 * SECOND)}
    return table | {"isolated": isolated} if dice.has("partitions", 1) else None


def _resized(dice: Dice, capacity: dict[str, int]) -> dict[str, Any]:
    times = {name: dice.one_of((1, 2, 2, 4)) for name in capacity}
    table: dict[str, Any] = {name: amount // times[name] for name, amount in capacity.items()}
    if dice.chance(0.3):
        table = {name: amount * 2 for name, amount in capacity.items()}
    if dice.has("zero-capacities", 0.1):
        table["cpu"] = 0
    if table["memory"] % GIB == 0:
        table["memory"] = f"{table['memory'] // GIB}GiB"
    return table


def draw_network(dice: Dice, schedulers: Sequence[str]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    if dice.has("latency", 0.5):
        form = dice.among(0, 2)
        if form == 0:
            latency: dict[str, Any] = {"model": "constant", "delay": dice.time(0, 1, 50 * MS)}
        elif form == 1:
            latency = {"model": "uniform", "low": "0s", "high": dice.time(MS, 50 * MS, SECOND)}
        else:
            ends = (*schedulers, "cell", "machines")
            pairs = [f"{dice.one_of(schedulers)}>{dice.one_of(ends)}" for _ in range(2)]
            delays = {pair: dice.time(0, 10 * MS, SECOND) for pair in pairs}
            latency = {"model": "per-pair", "default": "1ms", "delays": delays}
        table["latency"] = latency
    if dice.has("message-faults", 0.3):
        table["loss"] = dice.one_of((0.0, 0.1, 0.5))
        table["duplication"] = dice.one_of((0.0, 0.1, 0.5))
        if dice.chance(0.5):
            table |= {"reordering": 0.3, "extra_delay": dice.time(MS, SECOND)}
    return table


def draw_machine_model(dice: Dice) -> dict[str, Any]:
    table: dict[str, Any] = {}
    if dice.has("queue-orders", 0.4):
        table["queue"] = dice.one_of(("fcfs", "shortest-first", "shortest-remaining"))
        table["slack"] = dice.one_of((0, 0, 1, 5))
    if dice.has("queue-limits", 0.2):
        table["limit"] = dice.one_of((1, 2, 5))
    if dice.has("start-delays", 0.2):
        table["start_delay"] = dice.time(1, MS, SECOND)
    if dice.has("queue-orders", 0.3):
        table["long_above"] = dice.time(MS, SECOND, 90 * SECOND)
    if dice.has("heartbeats", 0.3):
        table["heartbeat"] = dice.time(0, MS * 100, SECOND)
        table["heartbeat_counts_sent"] = dice.chance(0.5)
    if dice.has("stealing", 0.25):
        table["steal"] = {
            "attempts": dice.among(1, 10),
            "most": dice.one_of((1, 2, 10)),
            "after": dice.one_of((0.0, 0.5)),
        }
    return table
