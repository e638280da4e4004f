"""Vela: readings of the paper that can be chosen by settings, and jobs beyond those of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from argosy.engines.vela import Vela
from argosy.engines.vela.processors import SharedProcessors
from argosy.host import TaskState
from argosy.host.records import AttemptRecord, PlacedRecord
from argosy.model.machines import Cluster
from argosy.model.scenario import (
    AgentModel,
    Federation,
    FleetEntry,
    MachineCrash,
    Places,
    Scenario,
)
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import SECOND, federated_cell, job, scenario
from argosy.testing.conformance import ConformanceRun

MS = 1_000
CLUSTERS = ("north", "south")
#: One way between the scheduler and a cluster, and between the clusters.
HOP, APART = 20 * MS, 40 * MS


def federated(jobs: Sequence[SimulatedJob], machines: int = 20, **fields: Any) -> Scenario:
    """Two clusters of machines with four cores; the scheduler is at a third place."""
    entry = FleetEntry(
        name="v", engine="vela", settings={"clusters": 1.0, **fields.pop("settings", {})}
    )
    return scenario(
        "vela",
        list(jobs),
        **{
            "cell": federated_cell(CLUSTERS, machines),
            "fleet": (entry,),
            "federation": Federation(
                clusters=tuple(Cluster(name, name) for name in CLUSTERS),
                places=Places(default=HOP, delays={"north<>south": APART}),
                schedulers={"v": "home"},
            ),
            "horizon": 600 * SECOND,
            **fields,
        },
    )


def run(jobs: Sequence[SimulatedJob], **fields: Any) -> ConformanceRun:
    done = ConformanceRun(Vela, federated(jobs, **fields))
    assert done.world.host.open_reservations == 0
    return done


def figures(done: ConformanceRun) -> dict[str, float]:
    return done.world.host.schedulers[0].figures()


def machines_of(done: ConformanceRun, name: str) -> list[int]:
    return [machine for record in done.of(PlacedRecord, name) for machine in record.machines]


def test_processors_are_shared_equally() -> None:
    shared, ends = SharedProcessors(2), dict[str, int]()

    def ending(name: str) -> Any:
        return lambda view, now: ends.update({name: now})

    def go_on_until(limit: int) -> None:
        while (at := shared.next_end()) is not None and at <= limit:
            for after in shared.ended(at):
                after(None, at)

    shared.begin(100, ending("a"), 0)
    shared.begin(100, ending("b"), 0)
    go_on_until(50)
    # Four on two processors: half as fast, until the short ones are done.
    shared.begin(10, ending("c"), 50)
    shared.begin(10, ending("d"), 50)
    go_on_until(1_000)
    assert ends == {"c": 70, "d": 70, "a": 110, "b": 110}
    assert shared.done == 220


def test_reading_samples_takes_longer_the_more_machines_they_have_and_the_fewer_processors() -> (
    None
):
    def placed_at(**settings: int | float) -> int:
        done = run([job("one", 1, seconds=None)], settings={"t_decision": MS, **settings})
        return done.of(PlacedRecord)[0].at

    usual = placed_at()
    assert usual == 2 * HOP + MS + HOP
    # 4 % of 20 machines is one per cluster; both answers are read at once.
    assert placed_at(t_read=10 * MS) == usual + 10 * MS
    assert placed_at(t_read=10 * MS, machines=0.1) == usual + 20 * MS
    assert placed_at(t_read=10 * MS, cores=1) == usual + 20 * MS
    assert placed_at(t_read=10 * MS, cores=2) == usual + 10 * MS


def test_answers_to_commits_are_computed_before_the_task_counts_as_placed() -> None:
    times = {
        work: figures(run([job("one", 1, seconds=None)], settings={"t_commit": work}))
        for work in (0, 7 * MS)
    }
    assert times[7 * MS]["mean commit ms"] - times[0]["mean commit ms"] == 7
    assert times[7 * MS]["computing s"] == 0.007


def test_samples_may_be_a_number_of_machines() -> None:
    for count in (3, 7):
        done = run([job("one", 1, seconds=None)], settings={"machine_count": count})
        assert figures(done)["machines drawn"] == 2 * count


def test_machines_asked_one_by_one_take_a_round_trip_for_every_so_many() -> None:
    agents = AgentModel(t_sample=100 * MS)
    one = [job("one", 1, seconds=None)]
    told = {
        probes: figures(run(one, settings={"asks": "machines", "machines": 0.5, "probes": probes}))
        for probes in (0, 20, 10, 5)
    }
    assert {probes: each["mean sampling ms"] for probes, each in told.items()} == {
        0: 40, 20: 40, 10: 80, 5: 160,
    }  # fmt: skip
    assert all(each["samples asked"] == 20 for each in told.values())
    # Agents are asked once each.
    delegated = figures(run(one, settings={"machines": 0.5}, agents=agents))
    assert delegated["samples asked"] == 2


def test_machines_asked_one_by_one_are_not_asked_again_for_others_with_room() -> None:
    """Half of the machines are full; agents go on until they have found enough."""
    filling = [job("fill", 20, cpu=4_000, seconds=None)]
    late = job("late", 1, cpu=4_000, submit=5, seconds=None)
    seen = {
        asks: figures(run([*filling, late], settings={"asks": asks, "machines": 0.2}))
        for asks in ("at-once", "machines")
    }
    drawn = {asks: each["machines drawn"] / each["attempts"] for asks, each in seen.items()}
    assert drawn["machines"] == 8
    assert drawn["at-once"] > 8


def test_a_rescheduled_task_joins_the_queue_at_its_end_or_at_its_beginning() -> None:
    """One sampler; the first job fits nowhere, and is tried three times."""
    jobs = [job("giant", 1, cpu=64_000, seconds=None)]
    jobs += [job(f"j{n}", 1, cpu=100, submit=0.001, seconds=None) for n in range(5)]
    order = {}
    for requeue in ("tail", "head"):
        settings = {"samplers": 1, "backoff": 0, "reschedules": 2, "requeue": requeue}
        attempts = run(jobs, settings=settings).of(AttemptRecord)
        order[requeue] = [at for at, record in enumerate(attempts) if record.job == "giant"]
    assert order == {"tail": [0, 6, 7], "head": [0, 1, 2]}


def test_batch_tasks_wait_for_room_instead_of_being_abandoned() -> None:
    full = [job("now", 40, cpu=4_000, seconds=200)]
    late = [
        job("batch", 4, cpu=4_000, submit=5, seconds=10),
        job("service", 1, cpu=4_000, submit=5, seconds=None),
    ]
    counts = {}
    for queue_batch in (False, True):
        settings = {"queue_batch": queue_batch, "reschedules": 2}
        done = run([*full, *late], settings=settings)
        counts[queue_batch] = (len(machines_of(done, "batch")), len(machines_of(done, "service")))
    assert counts == {False: (0, 0), True: (4, 0)}


def test_short_batch_jobs_are_sampled_first_and_leave_room_for_services() -> None:
    jobs = [
        job("long", 1, cpu=1_000, seconds=90, demands={"batch_share": "0.5"}),
        job("short", 1, cpu=1_000, seconds=5, demands={"batch_share": "0.5"}),
        job("crowd", 90, cpu=1_000, submit=1, seconds=50, demands={"batch_share": "0.5"}),
        job("web", 60, cpu=1_000, submit=5, seconds=None),
    ]
    settings = {
        "samplers": 1, "sort": "Batch", "filters": ["ResourcesFit", "BatchShare"],
        "checks": ["ResourcesFit", "BatchShare"],
        "machines": 1.0, "backoff": 0, "reschedules": 0,
    }  # fmt: skip
    done = run([job("first", 1, cpu=100, seconds=None), *jobs], settings=settings)
    assert [record.job for record in done.of(AttemptRecord)][1:3] == ["short", "long"]
    # Two of four cores, on 40 machines.
    crowd = np.bincount(machines_of(done, "crowd"), minlength=40)
    assert crowd.max() == 2
    assert crowd.sum() <= 80
    assert len(machines_of(done, "web")) == 60


def test_a_stateful_task_comes_back_to_its_volume() -> None:
    stateful = {"filters": ["ResourcesFit", "Volume"], "checks": ["ResourcesFit", "Volume"]}
    for scope, stays in (("machine", 1), ("cluster", 20)):
        demands = {"volume": "orders", "volume_scope": scope}
        db = job("db", 1, cpu=2_000, seconds=None, demands=demands)
        reader = job("reader", 8, cpu=100, submit=2, seconds=None, demands=demands)
        first = machines_of(run([db], settings=stateful), "db")[0]
        crash = MachineCrash(at=10 * SECOND, machine=_name(first), down=30 * SECOND)
        done = run([db, reader], settings=stateful, faults=(crash,))
        before, after = machines_of(done, "db")
        assert before == first
        if stays == 1:
            assert after == first
            assert set(machines_of(done, "reader")) == {first}
        else:
            assert after // 20 == first // 20
            assert {machine // 20 for machine in machines_of(done, "reader")} == {first // 20}
        (back,) = [record for record in done.of(PlacedRecord, "db") if record.at > 10 * SECOND]
        assert (back.at > 40 * SECOND) == (stays == 1)


def _name(machine: int) -> str:
    return f"{CLUSTERS[machine // 20]}/m{machine % 20}"


def test_two_tasks_cannot_create_the_same_volume_in_two_places() -> None:
    settings = {
        "filters": ["ResourcesFit", "Volume"], "checks": ["ResourcesFit", "Volume"],
        "backoff": 0, "reschedules": 50,
    }  # fmt: skip
    demands = {"volume": "shared"}
    done = run([job("pair", 2, cpu=100, seconds=None, demands=demands)], settings=settings)
    chosen = machines_of(done, "pair")
    assert len(chosen) == 2
    assert len(set(chosen)) == 1
    assert figures(done)["commits refused"] > 0


@pytest.mark.parametrize(("bound", "is_placed"), [("79", False), ("81", True)])
def test_a_job_may_be_bound_to_where_another_job_is(bound: str, is_placed: bool) -> None:
    """The clusters are 80 ms apart, there and back. The other job fills its own cluster."""
    filters = {"filters": ["ResourcesFit", "NetworkLatency"], "backoff": 0, "reschedules": 3}
    web = job("web", 20, cpu=4_000, seconds=None, demands={"near": "south", "latency": "10"})
    cache = job("cache", 1, submit=2, seconds=None, demands={"near_job": "web", "latency": bound})
    done = run([web, cache], settings=filters)
    assert {machine // 20 for machine in machines_of(done, "web")} == {1}
    assert len(machines_of(done, "cache")) == is_placed
    # Near a job that is nowhere, nothing is.
    early = job("early", 1, seconds=None, demands={"near_job": "nobody", "latency": "1000"})
    assert run([early], settings=filters).counts[TaskState.ABANDONED] == 1


def test_a_service_level_moves_a_job_to_its_users() -> None:
    for users, cluster in (("north", 0), ("south", 1)):
        demands = {"objective": "100", "users": users}
        web = job("web", 10, cpu=100, seconds=None, demands=demands)
        done = run([web], settings={"scores": {"ResourcesFit": 1, "ServiceLevel": 5}})
        assert {machine // 20 for machine in machines_of(done, "web")} == {cluster}


def test_shards_shorten_samples_without_more_conflicts() -> None:
    jobs = [job(f"j{n}", 1, cpu=2_000, submit=n / 50, seconds=None) for n in range(40)]
    told = {}
    for shards in (1, 5):
        agents = AgentModel(t_machine=5 * MS, shards=shards)
        done = run(jobs, settings={"machines": 0.5}, agents=agents)
        assert done.counts[TaskState.RUNNING] == 40
        told[shards] = figures(done)
    # A round is ten of 20 machines, or two of each shard's four: 50 or 10 ms, besides the network's 40.
    assert told[1]["mean sampling ms"] >= 40 + 50
    assert told[5]["mean sampling ms"] < 40 + 2 * 10
    assert told[5]["commits refused"] <= told[1]["commits refused"]
