"""The engines in their published form against the authors' rules, written down a second time."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest

import published
from argosy.cell import View
from argosy.engines.eagle import Eagle
from argosy.engines.murmuration import Murmuration
from argosy.engines.registry import ENGINES, find_published
from argosy.engines.sparrow import Sparrow
from argosy.engines.yaq_d import YaqD
from argosy.host.journal import Journal
from argosy.host.records import EnqueuedRecord, SubmittedRecord
from argosy.model.effects import Effect, Probe
from argosy.model.events import Event
from argosy.model.machine_model import MachineModel
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import (
    CellSpec,
    ConstantLatency,
    FleetEntry,
    Network,
    Scenario,
)
from argosy.model.truth import group_with_truth, simulated_job
from argosy.records.journal_file import Fact, JournalFile
from argosy.worlds.sim import SimulatedWorld

SLOT = Resources(cpu=1000)


def rows(count: int, seed: int, gap: int = 20_000) -> list[published.JobRow]:
    """Jobs of 1 to 12 tasks of about a second; no two events fall together."""
    random = Random(seed)
    made, submit = [], 0
    for _ in range(count):
        submit += 1 + random.below(2 * gap)
        mean = 200_000 + random.below(2_000_000)
        durations = tuple(1 + mean // 2 + random.below(mean) for _ in range(1 + random.below(12)))
        made.append((submit, sum(durations) // len(durations), durations))
    return made


def run(
    engine: str,
    jobs: list[published.JobRow],
    machines: int,
    schedulers: int,
    model: MachineModel,
    seed: int,
    **settings: Any,
) -> tuple[list[int], list[dict[str, Any]]]:
    """Job completion times, and the decision log."""
    spec = Scenario(
        name="published",
        seed=seed,
        cell=CellSpec(machines=tuple(Machine(f"m{i}", SLOT) for i in range(machines))),
        jobs=tuple(
            simulated_job(
                f"{i}",
                group_with_truth(len(durations), SLOT, durations, estimate),
                submit=submit,
            )
            for i, (submit, estimate, durations) in enumerate(jobs)
        ),
        fleet=(
            FleetEntry(
                name="s", engine=engine, replicas=schedulers, split="random", settings=settings
            ),
        ),
        network=Network(latency=ConstantLatency(delay=published.HOP)),
        machines=model,
    )
    stream = io.BytesIO()
    log = Journal(stream)
    world = SimulatedWorld(spec, {**ENGINES, Recorded.name: Recorded}, log)
    world.run()
    log.flush()
    submit, _, _, done = world.host.board.job_columns()
    facts = list(JournalFile(stream.getvalue()).facts())
    return (done - submit).tolist(), facts


def murmuration(
    jobs: list[published.JobRow], machines: int, schedulers: int, srjf: bool, delay: int, seed: int
) -> tuple[list[int], list[dict[str, Any]]]:
    form = Murmuration.published["murmuration-srjf" if srjf else "murmuration-fcfs"]
    return run(
        "murmuration",
        jobs,
        machines,
        schedulers,
        form.machines,
        seed,
        **form.settings,
        update_delay=delay,
    )


class Replayed(published.Draws):
    """Chance falls as it did in a run, whose choices must all have been among the least busy."""

    def __init__(self, facts: list[Fact]) -> None:
        self.schedulers: dict[int, int] = {}
        self.machines: dict[tuple[int, int], int] = {}
        for fact in facts:
            match fact:
                case SubmittedRecord(job=job, scheduler=scheduler):
                    self.schedulers[int(job.id)] = int(scheduler.partition("-")[2] or 0)
                case EnqueuedRecord(_, name, indices, machines):
                    for index, machine in zip(indices, machines, strict=True):
                        self.machines[int(name), index] = machine

    def scheduler(self, job: int, schedulers: int) -> int:
        return self.schedulers[job]

    def machine(self, job: int, index: int, least_busy: Sequence[int]) -> int:
        chosen = self.machines[job, index]
        assert chosen in least_busy, f"task {job}/{index} went to {chosen}, not to {least_busy}"
        return chosen


@pytest.mark.parametrize("srjf", [False, True])
@pytest.mark.parametrize(("schedulers", "delay"), [(1, 0), (5, 0), (5, 300_000), (20, 2_000_000)])
def test_murmuration_does_as_published_to_the_microsecond(
    srjf: bool, schedulers: int, delay: int
) -> None:
    jobs = rows(250, 7, gap=15_000)
    times, facts = murmuration(jobs, 30, schedulers, srjf, delay, seed=1)
    again = published.murmuration(jobs, 30, schedulers, Replayed(facts), srjf=srjf, delay=delay)
    assert times == again


def test_chance_alone_does_not_move_the_medians_far() -> None:
    jobs = rows(300, 7, gap=15_000)
    seeds = range(6)
    mine = [np.median(murmuration(jobs, 40, 5, True, 0, seed)[0]) for seed in seeds]
    theirs = [
        np.median(published.murmuration(jobs, 40, 5, published.Draws(seed), srjf=True, delay=0))
        for seed in seeds
    ]
    assert np.mean(mine) == pytest.approx(np.mean(theirs), rel=0.05)


class Recorded(Sparrow):
    """Sparrow, whose probes are written down."""

    name: ClassVar[str] = "recorded"
    probes: ClassVar[dict[int, list[int]]] = {}

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        effects = super().handle(event, view, now)
        for effect in effects:
            if isinstance(effect, Probe):
                type(self).probes[effect.job] = effect.machines.tolist()
        return effects


class SameProbes(published.Probes):
    def __init__(self, drawn: dict[int, list[int]]) -> None:
        self.drawn = drawn

    def draw(self, job: int, machines: Sequence[int], count: int) -> list[int]:
        assert len(self.drawn[job]) == count
        return self.drawn[job]


@pytest.mark.parametrize("schedulers", [1, 4])
def test_sparrow_does_as_published_to_the_microsecond(schedulers: int) -> None:
    jobs = rows(250, 3, gap=15_000)
    Recorded.probes = {}
    form = Sparrow.published["sparrow"]
    settings = form.settings | {"least": 1}
    times, _ = run("recorded", jobs, 30, schedulers, form.machines, 1, **settings)
    assert times == published.sparrow(jobs, 30, SameProbes(Recorded.probes))


def test_cancelled_probes_cost_nothing() -> None:
    jobs = rows(250, 3, gap=15_000)
    vain, cancelled = (
        np.mean(run("sparrow", jobs, 30, 1, MachineModel(), 1, cancel=cancel, repeated=True)[0])
        for cancel in (False, True)
    )
    assert cancelled < vain


def test_yaq_d_has_the_published_medians() -> None:
    jobs = rows(300, 5, gap=15_000)
    form = YaqD.published["yaq-d"]
    settings = form.settings | {"share": 1.0}
    mine = [
        np.median(run("yaq-d", jobs, 40, 1, form.machines, seed, **settings)[0])
        for seed in range(5)
    ]
    theirs = [np.median(published.yaq_d(jobs, 40, 8_000, seed=seed)) for seed in range(5)]
    assert np.mean(mine) == pytest.approx(np.mean(theirs), rel=0.05)


@pytest.mark.parametrize("engine", ["yaq-c", "yaq-d", "hawk", "eagle"])
def test_the_last_machine_is_chosen_as_any_other(engine: str) -> None:
    """Long jobs, which all of these place, fill each machine of their share."""
    form = find_published(engine)[1]
    jobs = [(1_000 * i, 200_000_000, (200_000_000,) * 50) for i in range(2)]
    _, facts = run(engine, jobs, 50, 1, form.machines, 1, **form.settings)
    used = {m for x in facts if isinstance(x, EnqueuedRecord) for m in x.machines}
    assert used == set(range(1, 50))


def test_eagle_has_the_published_medians() -> None:
    jobs = rows(400, 5, gap=15_000)
    cutoff = 1_500_000
    form = Eagle.published["eagle"]
    model = msgspec.structs.replace(form.machines, long_above=cutoff)
    settings = form.settings | {"cutoff": cutoff, "long_share": 0.9}
    mine = [np.median(run("eagle", jobs, 40, 1, model, seed, **settings)[0]) for seed in range(6)]
    theirs = [np.median(published.eagle(jobs, 40, cutoff, 4, seed=seed)) for seed in range(6)]
    assert np.mean(mine) == pytest.approx(np.mean(theirs), rel=0.05)
