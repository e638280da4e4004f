"""The recount of a journal ends where the world that wrote it ended."""

from __future__ import annotations

import pytest

from argosy.campaign.recount import CampaignRule, Recount, Start, Where
from argosy.engines.registry import ENGINES
from argosy.model.machine_model import MachineModel
from argosy.model.resources import Resources
from argosy.model.scenario import (
    MachineCrash,
    MachineDrain,
    MachineResize,
    Scenario,
    SchedulerCrash,
)
from argosy.model.tasks import task_numbers
from argosy.records.journal_file import JournalFile
from argosy.testing import conformance
from argosy.testing.builders import GIB, SECOND, job, scenario

WORLDS = {"simulated": conformance.SIMULATED, "scripted": conformance.SCRIPTED}


class Watching(CampaignRule):
    """Keeps the starts, and when it was asked."""

    def __init__(self, recount: Recount) -> None:
        super().__init__(recount)
        self.starts: list[Start] = []
        self.asked: list[int] = []
        self.over: list[int] = []

    def settled(self, at: int, starts: list[Start]) -> None:
        self.asked.append(at)
        self.starts += starts

    def ended(self, at: int) -> None:
        self.over.append(at)


def disturbed(engine: str) -> Scenario:
    """Ends in the middle, while tasks are in every state."""
    jobs = [
        *conformance.workload(40, spacing=0.1),
        job("victim", 8, seconds=30, submit=0.5),
        job("long", 6, cpu=2_000, seconds=40, submit=0.6),
        job("giant", 2, cpu=64_000, submit=1),
        job("web", 2, seconds=None, kind="service", submit=2),
    ]
    is_alone = ENGINES[engine].capabilities.alone
    return scenario(
        engine,
        jobs,
        replicas=1 if is_alone else 3,
        machines=MachineModel(limit=4),
        horizon=9 * SECOND,
        faults=(
            MachineCrash(at=2 * SECOND, machine="m2", down=3 * SECOND),
            MachineCrash(at=3 * SECOND, machine="m6"),
            MachineDrain(at=SECOND, machine="m1"),
            MachineDrain(at=SECOND, machine="m3", lasts=3 * SECOND),
            MachineResize(at=4 * SECOND, machine="m0", capacity=Resources(1_500, 4 * GIB)),
            SchedulerCrash(at=5 * SECOND, scheduler="s" if is_alone else "s-1", down=SECOND),
            *([] if is_alone else [SchedulerCrash(at=6 * SECOND, scheduler="s-2")]),
        ),
    )


def cancel(world: conformance.World) -> None:
    def one() -> None:
        number = world.host.jobs.names.index("victim")
        world.host.cancel(number, task_numbers(number, [1, 2]))

    world.inject(3 * SECOND, one)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(
    "engine", ["omega", "sparrow", "murmuration", "yaq-d", "kube", "firmament", "mesos"]
)
def test_a_recount_ends_where_the_world_ended(engine: str, world: str) -> None:
    spec = disturbed(engine)
    trial = WORLDS[world](ENGINES[engine], spec, script=cancel)
    host = trial.world.host
    recount = Recount(spec, ENGINES)
    watching = Watching(recount)
    recount.read(JournalFile(trial.log).records(), [watching])
    recount.finish(spec.horizon or 0, [watching])

    steps = {found.kind for check, found in recount.findings.items() if check != "running-time"}
    assert steps == set()
    states = {task: host.board.state(task).name for task, _ in recount.own_tasks()}
    assert {task: held.where.name for task, held in recount.own_tasks()} == states
    assert {"RUNNING", "FINISHED", "PENDING", "CANCELLED"} <= set(states.values())
    tasks, machines, *_ = host.runtime.running_columns()
    running = dict(zip(tasks.tolist(), machines.tolist(), strict=True))
    counted = {task: held for task, held in recount.tasks.items() if held.where is Where.RUNNING}
    assert {task: held.machine for task, held in counted.items()} == running

    for number, machine in enumerate(recount.machines):
        assert machine.held == {task for task, where in running.items() if where == number}
        assert (machine.is_up, machine.draining_since) == {
            "m1": (True, SECOND),
            "m6": (False, None),
        }.get(machine.name, (True, None))
        expected = (1_500, 4 * GIB) if machine.name == "m0" else (4_000, 16 * GIB)
        assert (machine.capacity["cpu"], machine.capacity["memory"]) == expected
        used = {name: amount for name, amount in recount.used(machine).items() if amount}
        shown = {"cpu": 0, "memory": 0, **used}
        capacity, free = host.cell.view().capacity()[number], host.cell.view().free()[number]
        assert not machine.is_up or [shown["cpu"], shown["memory"]] == (capacity - free).tolist()
    assert {name: alive for name, alive in recount.is_alive.items() if not alive} == (
        {} if len(recount.entries) == 1 else {"s-2": False}
    )
    assert recount.fleet_changed_at == 6 * SECOND
    assert set().union(*recount.holdings.values()) == set(counted)

    assert watching.asked == sorted(watching.asked)
    assert watching.over == [spec.horizon]
    claims = {start.is_claim for start in watching.starts}
    able = ENGINES[engine].capabilities
    assert claims == ({True} if able.transactions else set()) | ({False} if able.queues else set())
