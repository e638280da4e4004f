"""Vela: sampling, decision, MultiBind and rescheduling, alone and over a federation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from argosy.cell import View
from argosy.engines.api import Context
from argosy.engines.registry import ENGINES
from argosy.engines.vela import Vela, VelaSettings
from argosy.engines.vela.shares import SampleShares
from argosy.experiments.execute import execute_in_memory
from argosy.host import TaskState
from argosy.host.records import AbandonedRecord, AttemptRecord, PlacedRecord, RefusedRecord
from argosy.model.effects import Commit, Effect, Sample
from argosy.model.events import Event, SampleReturned
from argosy.model.explanations import Why
from argosy.model.machines import Cluster
from argosy.model.resources import Resources
from argosy.model.scenario import (
    AgentDown,
    AgentFault,
    AgentModel,
    AgentSlow,
    AgentStale,
    Federation,
    FleetEntry,
    Places,
    Scenario,
    Takes,
)
from argosy.model.truth import SimulatedJob
from argosy.records.answers import TaskAnswers
from argosy.testing.builders import GIB, SECOND, federated_cell, job, scenario
from argosy.testing.conformance import ConformanceRun
from argosy.worlds.sim import SimulatedWorld

MS = 1_000
CLUSTERS = ("a", "b", "c", "d")
#: Between any scheduler and any cluster, one way.
HOP = 20 * MS


def federated(
    jobs: Sequence[SimulatedJob], machines: int = 25, replicas: int = 1, **fields: Any
) -> Scenario:
    """Four clusters of machines with four cores; schedulers are at a fifth place."""
    entry = FleetEntry(
        name="v", engine="vela", settings=fields.pop("settings", {}), replicas=replicas
    )
    return scenario(
        "vela",
        list(jobs),
        **{
            "cell": federated_cell(CLUSTERS, machines),
            "fleet": (entry,),
            "federation": Federation(
                clusters=tuple(Cluster(name, name) for name in CLUSTERS),
                places=Places(default=HOP),
                schedulers=dict.fromkeys(entry.scheduler_names(), "home"),
            ),
            "horizon": 600 * SECOND,
            **fields,
        },
    )


def run(jobs: Sequence[SimulatedJob], **fields: Any) -> ConformanceRun:
    """A run that replays, and after which no room is reserved."""
    done = ConformanceRun(Vela, federated(jobs, **fields))
    assert done.world.host.open_reservations == 0
    return done


def figures(done: ConformanceRun) -> dict[str, float]:
    total: dict[str, float] = {}
    for scheduler in done.world.host.schedulers:
        for name, value in scheduler.figures().items():
            total[name] = total.get(name, 0) + value
    return total


def many(count: int, rate: float = 100, cpu: int = 4_000, **fields: Any) -> list[SimulatedJob]:
    fields.setdefault("seconds", None)
    return [job(f"j{i}", 1, cpu=cpu, submit=i / rate, **fields) for i in range(count)]


def effects_of(
    jobs: Sequence[SimulatedJob], **fields: Any
) -> tuple[list[tuple[int, Effect]], SimulatedWorld]:
    """All that a scheduler asked for, and when."""
    asked: list[tuple[int, Effect]] = []

    class Watched(Vela):
        def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
            effects = super().handle(event, view, now)
            asked.extend((now, effect) for effect in effects)
            return effects

    world = SimulatedWorld(federated(jobs, **fields), {"vela": Watched})
    world.run()
    return asked, world


def test_a_share_of_the_clusters_is_asked_for_a_share_of_their_machines() -> None:
    for share, count in ((0.5, 2), (0.6, 3), (0.01, 1), (1.0, 4)):
        asked, _ = effects_of(many(30, cpu=100), settings={"clusters": share, "machines": 0.2})
        samples = [effect for _, effect in asked if isinstance(effect, Sample)]
        assert len(samples) == 30 * count
        first = [sample.cluster for sample in samples[:count]]
        assert len(set(first)) == count
        assert {sample.cluster for sample in samples} == set(CLUSTERS)
        assert {sample.pipeline.share for sample in samples if sample.pipeline} == {0.2}


def test_a_task_takes_two_round_trips_and_a_decision() -> None:
    done = run([job("one", 1, seconds=None)], settings={"t_sampling": MS, "t_decision": 3 * MS})
    (placed,) = done.of(PlacedRecord)
    assert placed.at == MS + 2 * HOP + 3 * MS + HOP
    told = figures(done)
    assert told["mean sampling ms"] == 41
    assert told["mean commit ms"] == 40
    assert told["mean end to end ms"] == 84


def test_agents_asked_in_turn_take_a_round_trip_each() -> None:
    at_once, in_turn = (
        run([job("one", 1, seconds=None)], settings={"clusters": 1.0, "asks": asks})
        for asks in ("at-once", "in-turn")
    )
    gap = in_turn.of(PlacedRecord)[0].at - at_once.of(PlacedRecord)[0].at
    assert gap == 3 * 2 * HOP


def test_the_highest_score_wins_or_the_lowest() -> None:
    """One of the machines is a little loaded; nothing else distinguishes them."""
    small = job("small", 1, cpu=100, seconds=None)
    other = job("other", 1, cpu=100, submit=1, seconds=None)
    together: dict[str, bool] = {}
    for prefer in ("highest", "lowest"):
        settings = {"prefer": prefer, "clusters": 1.0, "machines": 1.0}
        placed = run([small, other], settings=settings).of(PlacedRecord)
        together[prefer] = placed[0].machines == placed[1].machines
        assert placed[1].explanation is not None
        assert placed[1].explanation.rule == f"{prefer} score"
    assert together == {"highest": False, "lowest": True}


def test_as_many_tasks_are_sampled_at_once_as_there_are_samplers() -> None:
    settings = {"samplers": 2, "t_decision": 0}
    done = run([job("many", 6, cpu=100, seconds=None)], settings=settings)
    assert [record.at for record in done.of(AttemptRecord)] == [
        each * 2 * HOP for each in (0, 0, 1, 1, 2, 2)
    ]


def test_as_many_tasks_are_decided_on_and_committed_at_once_as_there_are_workers() -> None:
    job_of_four = [job("many", 4, cpu=100, seconds=None)]
    settings = {"deciders": 1, "t_decision": 10 * MS}
    times = [record.at for record in run(job_of_four, settings=settings).of(PlacedRecord)]
    assert times == [3 * HOP + each * 10 * MS for each in (1, 2, 3, 4)]
    settings = {"committers": 1, "t_decision": 0}
    times = [record.at for record in run(job_of_four, settings=settings).of(PlacedRecord)]
    assert times == [3 * HOP + each * 2 * HOP for each in range(4)]


def test_tasks_of_higher_precedence_are_sampled_first() -> None:
    jobs = [job(f"j{i}", 1, cpu=100, precedence=i % 3, seconds=None) for i in range(6)]
    for sort, order in (("Priority", "j2 j5 j1 j4 j3"), ("Arrival", "j1 j2 j3 j4 j5")):
        done = run(jobs, settings={"samplers": 1, "sort": sort})
        # The first found the sampler free.
        assert [record.job for record in done.of(AttemptRecord)] == ["j0", *order.split()]


def test_multibind_saves_tasks_from_being_rescheduled() -> None:
    """All tasks look at one small cluster at once, and most want the machine that another one gets."""
    crowd = [job("crowd", 18, cpu=2_000, seconds=None)]
    told = {}
    for m in (1, 3):
        settings = {"candidates": m, "clusters": 1.0, "machines": 1.0, "backoff": 0}
        done = run(crowd, machines=3, settings=settings)
        assert done.counts[TaskState.RUNNING] == 18
        told[m] = figures(done)
    assert told[1]["placed by a later candidate"] == 0
    assert told[3]["placed by a later candidate"] > 0
    assert told[3]["conflicts"] < told[1]["conflicts"]
    assert told[3]["rescheduled"] == told[3]["conflicts"] + told[3]["no machine found"]


def test_candidates_of_one_cluster_that_follow_each_other_travel_together() -> None:
    settings = {"candidates": 3, "clusters": 0.25, "machines": 1.0}
    asked, _ = effects_of([job("one", 1, seconds=None)], settings=settings)
    (commit,) = [effect for _, effect in asked if isinstance(effect, Commit)]
    claims = commit.transaction.claims
    assert claims is not None
    assert claims.alternatives is not None
    tried = [int(claims.machines[0]), *claims.alternatives[0].tolist()]
    assert len(set(tried)) == 3
    first = CLUSTERS.index(commit.cluster) * 25
    assert all(first <= machine < first + 25 for machine in tried)


def test_after_ten_reschedulings_a_task_fails_and_why_says_so() -> None:
    giant = [job("giant", 1, cpu=64_000), job("web", 1, seconds=None)]
    done = run(giant, settings={"backoff": 0})
    (given_up,) = done.of(AbandonedRecord)
    assert len(done.of(AttemptRecord, "giant")) == 11
    assert given_up.explanation.refused is not None
    assert given_up.explanation.refused.why is Why.ATTEMPTS
    spec = federated(giant, settings={"backoff": 0})
    answer = TaskAnswers(execute_in_memory(spec), "giant").why()
    assert answer.sentence.startswith("giant/0 cannot run: giant has tasks that ask for 64 cores")
    assert answer.details == ("Given up after 11 attempts.",)
    assert answer.looked_at == 50


def test_a_task_without_room_waits_longer_each_time() -> None:
    jobs = [*many(100, rate=1_000), job("late", 1, cpu=4_000, submit=60)]
    done = run(jobs, settings={"clusters": 1.0}, horizon=1_000 * SECOND)
    attempts = [record.at for record in done.of(AttemptRecord, "late")]
    gaps = np.diff(attempts)
    assert len(attempts) == 11
    mean = SECOND * np.minimum(2.0 ** np.arange(10), 64)
    assert (gaps >= 0.5 * mean).all()
    assert (gaps <= 1.5 * mean + 2 * HOP).all()


def test_a_federation_is_filled_to_the_last_machine() -> None:
    """Half of the machines are too small, as in the paper's first experiment."""
    cell = federated_cell(CLUSTERS, 50)
    machines = tuple(
        structs.replace(machine, capacity=Resources(2_000 if i % 2 else 4_000, 4 * GIB))
        for i, machine in enumerate(cell.machines)
    )
    settings = {"clusters": 0.5, "machines": 0.04, "backoff": 0}
    spec = {"cell": structs.replace(cell, machines=machines), "settings": settings}
    done = run(many(100, rate=25), **spec)
    assert done.counts[TaskState.RUNNING] == 100
    assert figures(done)["abandoned"] == 0


def test_instances_are_independent_and_conflicts_are_real() -> None:
    done = run(many(90, rate=2_000), replicas=3, settings={"machines": 0.2, "clusters": 1.0})
    assert done.counts[TaskState.RUNNING] == 90
    assert {record.scheduler for record in done.of(PlacedRecord)} == {"v-0", "v-1", "v-2"}
    assert done.of(RefusedRecord)


def test_a_cell_of_its_own_is_one_cluster() -> None:
    done = ConformanceRun(Vela, scenario("vela", many(8, cpu=1_000, seconds=1)))
    done.require_all_finished()


def faulty(*faults: AgentFault, jobs: int = 40, **settings: Any) -> ConformanceRun:
    return run(
        many(jobs, cpu=1_000, rate=20), faults=faults, settings={"machines": 0.2, **settings}
    )


def test_losing_an_agent_costs_only_its_cluster() -> None:
    down = AgentDown(at=0, cluster="b")
    done = faulty(down, clusters=1.0)
    assert done.counts[TaskState.RUNNING] == 40
    used = {machine // 25 for record in done.of(PlacedRecord) for machine in record.machines}
    assert used == {0, 2, 3}
    assert figures(done)["agents not reached"] >= 40


def test_without_any_agent_tasks_wait_and_are_told_why() -> None:
    faults = [AgentDown(at=0, cluster=name, lasts=3 * SECOND) for name in CLUSTERS]
    done = faulty(*faults, jobs=3)
    assert done.counts[TaskState.RUNNING] == 3
    done.require_accounted_for()
    spec = federated(many(3), faults=tuple(faults), horizon=SECOND)
    answer = TaskAnswers(execute_in_memory(spec), "j0").why()
    assert answer.ruled_out == {"unanswered": 50}
    assert "bring back the agents that do not answer" in answer.remedy


def test_an_agent_that_goes_down_after_the_sample_is_passed_over() -> None:
    # All are sampled before; the commits to one of them come after.
    down = AgentDown(at=2 * HOP + MS, cluster="a")
    done = run(
        [job("many", 12, cpu=4_000, seconds=None)],
        machines=5,
        faults=(down,),
        settings={"clusters": 1.0, "machines": 1.0},
    )
    assert done.counts[TaskState.RUNNING] == 12
    used = {machine // 5 for record in done.of(PlacedRecord) for machine in record.machines}
    assert used == {1, 2, 3}
    assert figures(done)["agents not reached"] > 0


def test_a_slow_agent_is_not_waited_for_beyond_the_time_out() -> None:
    slow = AgentSlow(at=0, cluster="c", extra=2 * SECOND)
    patient, hasty = (faulty(slow, clusters=1.0, timeout=timeout) for timeout in (0, 100 * MS))
    assert figures(patient)["mean sampling ms"] == 2_040
    told = figures(hasty)
    assert told["mean sampling ms"] == 100
    assert told["samples overdue"] == 40
    assert hasty.counts[TaskState.RUNNING] == 40
    used = {machine // 25 for record in hasty.of(PlacedRecord) for machine in record.machines}
    assert used == {0, 1, 3}


def test_agents_that_know_only_their_own_commits_cause_conflicts_with_others() -> None:
    """Another engine fills the machines behind the agents' backs. Nothing is oversubscribed."""
    taken = job("taken", 80, cpu=4_000, kind="batch", seconds=None)
    wanted = [
        job(f"w{i}", 1, cpu=4_000, kind="service", submit=2 + i / 10, seconds=None)
        for i in range(10)
    ]
    # The first look is at an empty federation.
    early = job("early", 1, cpu=100, kind="service", seconds=None)
    told = {}
    for name, faults in (
        ("fresh", ()),
        ("stale", tuple(AgentStale(at=0, cluster=cluster) for cluster in CLUSTERS)),
    ):
        spec = federated([taken, early, *wanted], faults=faults)
        service, batch = Takes(kinds=("service",)), Takes(kinds=("batch",))
        settings = {"clusters": 1.0, "machines": 0.2, "reschedules": 100, "backoff": 100 * MS}
        fleet = (
            FleetEntry(name="v", engine="vela", settings=settings, takes=service),
            FleetEntry(name="o", engine="omega", settings={"t_task": 0}, takes=batch),
        )
        done = ConformanceRun(Vela, structs.replace(spec, fleet=fleet), (ENGINES["omega"],))
        assert done.world.host.open_reservations == 0
        told[name] = figures(done)
        assert told[name]["placed"] == 11
    assert told["fresh"]["commits refused"] == 0
    assert told["stale"]["commits refused"] > 10


def test_adaptation_widens_after_failures_and_narrows_after_successes() -> None:
    settings = VelaSettings(clusters=0.5, machines=0.04, most_machines=0.09, adapt=True)
    shares = SampleShares(settings)
    seen = []
    for _ in range(5):
        shares.found_none(waiting=0)
        seen.append((round(shares.clusters, 3), round(shares.machines, 3)))
    assert seen == [(0.75, 0.04), (1.0, 0.04), (1.0, 0.06), (1.0, 0.09), (1.0, 0.09)]
    for _ in range(400):
        shares.placed()
    assert (shares.clusters, shares.machines) == (0.5, 0.04)
    shares.found_none(waiting=81)
    assert shares.clusters == 0.5
    steady = SampleShares(structs.replace(settings, adapt=False))
    steady.found_none(waiting=0)
    assert steady.clusters == 0.5


def test_samples_that_are_larger_than_they_may_grow_do_not_shrink_after_a_failure() -> None:
    shares = SampleShares(VelaSettings(clusters=1.0, machines=0.2, most_machines=0.1, adapt=True))
    shares.found_none(waiting=0)
    assert shares.machines == 0.2


def test_adaptation_finds_the_last_room_in_fewer_attempts() -> None:
    told = {}
    for adapt in (False, True):
        settings = {"clusters": 0.25, "adapt": adapt, "backoff": 0, "reschedules": 200}
        done = run(many(100, rate=25), settings=settings)
        assert done.counts[TaskState.RUNNING] == 100
        told[adapt] = figures(done)
    assert told[True]["no machine found"] < 0.5 * told[False]["no machine found"]


def test_learned_sampling_wastes_fewer_machines_than_random_sampling() -> None:
    wasted = {}
    for strategy in ("Random", "Learned"):
        settings = {"strategy": strategy, "clusters": 1.0, "machines": 0.08}
        # Half of what is running ends in time for the second half.
        jobs = many(160, rate=20, seconds=4)
        told = figures(run(jobs, settings=settings))
        wasted[strategy] = told["machines drawn"] - told["machines eligible"]
    assert wasted["Learned"] < 0.8 * wasted["Random"]


def test_demands_are_passed_to_the_agents_and_to_the_scheduler() -> None:
    cell = federated_cell(CLUSTERS, 25)
    machines = tuple(
        structs.replace(machine, attributes={"battery": str(i % 25 * 4)})
        for i, machine in enumerate(cell.machines)
    )
    charged = structs.replace(cell, machines=machines)
    jobs = many(20, cpu=100, demands={"battery": "90"})
    done = run(jobs, cell=charged)
    used = {machine % 25 for record in done.of(PlacedRecord) for machine in record.machines}
    assert used <= {23, 24}
    # As a filter of the scheduler, it sees only what the agents happened to draw.
    settings = {"filters": ["ResourcesFit"], "decision_filters": ["BatteryLevel"], "machines": 0.5}
    done = run(jobs, cell=charged, settings=settings)
    used = {machine % 25 for record in done.of(PlacedRecord) for machine in record.machines}
    assert used <= {23, 24}


def test_weights_decide_between_scores() -> None:
    cell = federated_cell(CLUSTERS, 25)
    machines = tuple(
        structs.replace(machine, attributes={"battery": "100" if i == 7 else "10"})
        for i, machine in enumerate(cell.machines)
    )
    placed = []
    for weight in (0.0, 5.0):
        settings = {
            "clusters": 1.0,
            "machines": 1.0,
            "scores": {"ResourcesFit": 1.0, "BatteryLevel": weight},
        }
        done = run(
            many(3, rate=1, cpu=1_000),
            cell=structs.replace(cell, machines=machines),
            settings=settings,
        )
        placed.append([record.machines[0] for record in done.of(PlacedRecord)])
    assert placed[1] == [7, 7, 7]
    assert len(set(placed[0])) == 3


def test_sampling_has_its_own_time_at_agents() -> None:
    model = AgentModel(t_sample=10 * MS, t_machine=MS, t_fetch=5 * MS, t_bind=5 * MS)
    done = run([job("one", 1, seconds=None)], agents=model, settings={"machines": 0.2})
    told = figures(done)
    assert told["mean sampling ms"] == 40 + 10 + 5
    assert told["mean commit ms"] == 40 + 10


@pytest.mark.parametrize(
    ("settings", "field", "says"),
    [
        ({"filters": ["ResourceFit"]}, "filters", "no filter 'ResourceFit'"),
        ({"scores": {"Random": 1.0}}, "scores", "'Random' is no score"),
        ({"strategy": "Rnadom"}, "strategy", "no strategy 'Rnadom'"),
        ({"sort": "Bind"}, "sort", "'Bind' is no sort"),
    ],
)
def test_a_plug_in_that_does_not_exist_is_a_mistake_in_the_settings(
    settings: dict[str, Any], field: str, says: str
) -> None:
    from argosy.engines.api import RunFacts
    from argosy.host.scheduler import make_settings

    facts = RunFacts(("cpu",), 1, {}, frozenset(), (), ())
    found = Vela.mismatch(make_settings(Vela, settings), facts)
    assert found is not None
    assert found.place == (field,)
    assert says in found.problem
    assert Vela.mismatch(VelaSettings(), facts) is None


def test_an_answer_that_nobody_waits_for_is_ignored() -> None:
    spec = federated([])
    world = SimulatedWorld(spec, ENGINES)
    engine = Vela(VelaSettings(), Context("v", (), world.host.random))
    nothing = np.empty(0, np.int32)
    late = SampleReturned(99, nothing, np.empty((0, 2), np.int64), nothing.astype(np.uint32))
    assert list(engine.handle(late, world.host.view, 0)) == []
    assert engine.figures()["samples overdue"] == 1
