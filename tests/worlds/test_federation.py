"""Several clusters in one world: agents that answer for their machines, distances, ranked candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import pytest
from msgspec import structs
from scripted_engine import Script, Scripted, scripted

from argosy.cell import View
from argosy.engines.api import Capabilities, Context
from argosy.engines.registry import ENGINES
from argosy.host import TaskState
from argosy.host.records import PlacedRecord, RefusedRecord
from argosy.host.setup import HostSetup
from argosy.measures.placement import Watch
from argosy.model.effects import Commit, Effect, Sample, Send
from argosy.model.errors import EngineFault
from argosy.model.events import (
    Committed,
    Event,
    JobSubmitted,
    MessageReceived,
    SampleReturned,
)
from argosy.model.explanations import Why
from argosy.model.machines import Cluster
from argosy.model.messages import Note
from argosy.model.resources import Resources
from argosy.model.scenario import (
    ConstantLatency,
    Federation,
    FleetEntry,
    Network,
    Places,
    Scenario,
    Takes,
    UniformLatency,
)
from argosy.model.transactions import Claims, Transaction
from argosy.model.truth import SimulatedJob
from argosy.records.journal_file import JournalFile
from argosy.records.observed import observed_scenario
from argosy.records.state import RunState
from argosy.testing import conformance
from argosy.testing.builders import GIB, SECOND, federated_cell, job, scenario
from argosy.worlds.sim import SimulatedWorld
from argosy.worlds.sim.network import SimulatedNetwork

R = TypeVar("R", bound=Event)
MS = 1_000
#: Machines 0 and 1 are in the north, 2 and 3 in the south, 4 and 5 in the east, which is at the place
#: of the north.
PLACES = {"north": "oslo", "south": "rome", "east": "oslo"}
DISTANCES = Places(default=40 * MS, within=1 * MS, delays={"rome<>oslo": 25 * MS})
#: What the scripted engine of these tests can do.
CLAIMS = Capabilities(transactions=True)


def federated(
    engine: str,
    jobs: list[SimulatedJob],
    *,
    schedulers: dict[str, str] | None = None,
    places: Places | None = DISTANCES,
    **fields: Any,
) -> Scenario:
    """One scheduler in Oslo for jobs of kind `o`, one in Rome for kind `r`, and one for kind `n` that is
    nowhere."""
    where = {"o": "oslo", "r": "rome"} if schedulers is None else schedulers
    fleet = tuple(
        FleetEntry(name=name, engine=engine, takes=Takes(kinds=(name,))) for name in ("o", "r", "n")
    )
    clusters = tuple(Cluster(name, place) for name, place in PLACES.items())
    return scenario(
        engine,
        jobs,
        **{
            "cell": federated_cell(PLACES, 2),
            "fleet": fleet,
            "federation": Federation(clusters=clusters, places=places, schedulers=where),
            "network": Network(latency=ConstantLatency(delay=7 * MS)),
            **fields,
        },
    )


def claims_of(
    view: View, event: JobSubmitted, machine: int, others: Sequence[int] | None = None
) -> Claims:
    group, count = event.job.groups[0], len(event.tasks)
    machines = np.full(count, machine, np.int32)
    shape = view.shape(group.request, group.tags, event.job.precedence)
    ranked = None if others is None else np.tile(np.array(others, np.int32), (count, 1))
    return Claims(
        event.tasks,
        machines,
        np.full(count, shape, np.int32),
        view.versions(machines),
        alternatives=ranked,
    )


def committing(cluster: str, machine: int, others: Sequence[int] | None = None) -> Script:
    """Claims one machine, with others as alternatives, for every job."""

    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if not isinstance(event, JobSubmitted):
            return ()
        claims = claims_of(view, event, machine, others)
        return [Commit(0, Transaction(engine.context.name, claims), cluster=cluster)]

    return script


def sampling(cluster: str, **terms: Any) -> Script:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if isinstance(event, JobSubmitted):
            asked = {"request": Resources(1_000, GIB), "count": 6, "token": 3, **terms}
            return [Sample(cluster=cluster, **asked)]
        return ()

    return script


def heard_by(script: Script, jobs: list[SimulatedJob], kind: type[R], **fields: Any) -> list[Any]:
    """The events of one kind that schedulers got: when, and what."""
    engine = scripted(script, CLAIMS)
    fields.setdefault("horizon", 10 * SECOND)
    SimulatedWorld(federated("scripted", jobs, **fields), {"scripted": engine}).run()
    return [(now, event) for now, _, event in engine.heard if isinstance(event, kind)]


@pytest.mark.parametrize(
    ("kind", "cluster", "trip"),
    [
        ("o", "north", 2 * MS),
        ("o", "east", 2 * MS),
        ("o", "south", 50 * MS),
        ("r", "north", 50 * MS),
        ("r", "south", 2 * MS),
        # The whole federation is as far as its farthest cluster.
        ("o", "", 50 * MS),
        # Those who are nowhere have the ordinary latency.
        ("n", "south", 14 * MS),
        ("n", "", 14 * MS),
    ],
)
@pytest.mark.parametrize("ask", ["commit", "sample"])
def test_an_agent_is_as_far_as_its_place(kind: str, cluster: str, trip: int, ask: str) -> None:
    machine = {"": 0, "north": 0, "south": 2, "east": 4}[cluster]
    script = committing(cluster, machine) if ask == "commit" else sampling(cluster)
    answer = Committed if ask == "commit" else SampleReturned
    answers: list[Any] = heard_by(script, [job("a", 1, kind=kind, submit=1)], answer)
    assert [now for now, _ in answers] == [SECOND + trip]


def test_places_that_no_pair_names_have_the_default_distance() -> None:
    where = {"o": "paris"}
    answers = heard_by(sampling("north"), [job("a", 1, kind="o")], SampleReturned, schedulers=where)
    assert [now for now, _ in answers] == [80 * MS]


def test_without_distances_all_hops_take_the_latency() -> None:
    for cluster in ("", "north", "south"):
        jobs = [job("a", 1, kind="o")]
        answers = heard_by(sampling(cluster), jobs, SampleReturned, places=None)
        assert [now for now, _ in answers] == [14 * MS]


def test_messages_between_schedulers_take_as_long_as_between_their_places() -> None:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if isinstance(event, JobSubmitted):
            others = tuple(name for name in "orn" if name != engine.context.name)
            return [Send(others, Note("hello"))]
        return ()

    got = heard_by(script, [job("a", 1, kind="o")], MessageReceived)
    assert [now for now, _ in got] == [7 * MS, 25 * MS]


def test_distances_are_without_chance_and_draw_nothing() -> None:
    spec = federated("omega", [], network=Network(latency=UniformLatency(low=1, high=9 * MS)))
    network, other = (SimulatedNetwork.of(HostSetup.of(spec)) for _ in range(2))
    assert {network.hop("o", "cell:south") for _ in range(20)} == {25 * MS}
    drawn = [network.hop("n", "cell:south") for _ in range(20)]
    assert len(set(drawn)) > 10
    assert drawn == [other.hop("n", "cell") for _ in range(20)]


def test_no_hop_is_plain_between_places_and_a_round_trip_is_an_average() -> None:
    network = SimulatedNetwork.of(HostSetup.of(federated("omega", [])))
    assert network.plain_hop == -1
    # Of o, r and n to the three clusters.
    trips = [2, 50, 2, 50, 2, 50, 14, 14, 14]
    assert network.round_trip == sum(trips) * MS // len(trips)


def test_a_sample_has_machines_of_its_cluster_alone() -> None:
    for cluster, machines in (("north", {0, 1}), ("south", {2, 3}), ("", set(range(6)))):
        answers = heard_by(sampling(cluster), [job("a", 1, kind="o")], SampleReturned)
        ((_, event),) = answers
        assert set(event.machines.tolist()) == machines
        assert (event.token, event.cluster) == (3, cluster)


def test_a_sample_of_a_cluster_has_the_attributes_required() -> None:
    answers = heard_by(
        sampling("north", requires={"disk": "ssd"}), [job("a", 1, kind="o")], SampleReturned
    )
    assert [event.machines.tolist() for _, event in answers] == [[]]


def test_what_one_agent_is_asked_does_not_change_what_another_answers() -> None:
    def script(before: int) -> Script:
        def ask(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
            if not isinstance(event, JobSubmitted):
                return ()
            many = [Sample(Resources(1_000, GIB), 1, token=0, cluster="north")] * before
            few = [Sample(Resources(1_000, GIB), 1, token=1, cluster="south")] * 20
            return [*many, *few]

        return ask

    def of_the_south(before: int) -> list[int]:
        cell = federated_cell(PLACES, 30)
        answers = heard_by(script(before), [job("a", 1, kind="o")], SampleReturned, cell=cell)
        return [int(event.machines[0]) for _, event in answers if event.token == 1]

    assert of_the_south(0) == of_the_south(5)
    assert len(set(of_the_south(0))) > 5


def test_engines_get_the_clusters_and_their_own_place() -> None:
    told: dict[str, Context] = {}

    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        told[engine.context.name] = engine.context
        return ()

    heard_by(script, [job("a", 1, kind="o")], JobSubmitted)
    assert {name: context.place for name, context in told.items()} == {
        "o": "oslo",
        "r": "rome",
        "n": "",
    }
    assert told["n"].clusters == tuple(Cluster(name, place) for name, place in PLACES.items())


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (committing("nroth", 0), r"no cluster 'nroth'.*one of north, south, east.*'north'"),
        (sampling("nroth"), r"no cluster 'nroth'.*one of north, south, east.*'north'"),
        (committing("north", 2), r"'north' a claim of machine 'south/m0', which is in south"),
        (committing("north", 0, [1, -1, 4]), r"machine 'east/m0', which is in east"),
        (committing("north", 99), "machine"),
    ],
)
def test_an_engine_that_mistakes_one_cluster_for_another_is_named(
    script: Script, says: str
) -> None:
    with pytest.raises(Exception, match=says) as caught:
        heard_by(script, [job("a", 1, kind="o")], Committed)
    if says != "machine":
        assert isinstance(caught.value, EngineFault)
        assert str(caught.value).startswith("o ")


def test_in_a_cell_on_its_own_no_cluster_has_a_name() -> None:
    engine = scripted(committing("north", 0), CLAIMS)
    with pytest.raises(EngineFault, match=r"no cluster 'north'.*the one cluster"):
        SimulatedWorld(scenario("scripted", [job("a", 1)]), {"scripted": engine}).run()


def test_a_table_of_alternatives_is_not_blamed_for_what_else_is_wrong() -> None:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if not isinstance(event, JobSubmitted):
            return ()
        claims = claims_of(view, event, 0, [1])
        assert claims.alternatives is not None
        if event.job.id == "flat":
            claims = structs.replace(claims, alternatives=claims.alternatives[0])
        else:
            claims = structs.replace(claims, shapes=claims.shapes.astype(np.int64))
        return [Commit(0, Transaction(engine.context.name, claims))]

    with pytest.raises(EngineFault, match=r"claims\.shapes is an array of int64"):
        heard_by(script, [job("wide", 1, kind="o")], Committed)
    with pytest.raises(EngineFault, match=r"claims\.alternatives has 1 dimension; expected two"):
        heard_by(script, [job("flat", 1, kind="o")], Committed)


def race(
    others: Sequence[int],
    *,
    near: int = 1,
    script: conformance.Script | None = None,
    horizon: int = SECOND // 2,
) -> tuple[conformance.ConformanceRun, list[Committed]]:
    """A scheduler in Rome claims machine 0 in the north for each of the two tasks of `far`, and `others`
    in its place; while that is on its way, one in Oslo claims it for each of `near` jobs. Every task
    needs a whole machine."""

    def ranked(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if engine.context.name == "r":
            return committing("north", 0, others)(engine, event, view, now)
        number = int(event.job.id[-1]) if isinstance(event, JobSubmitted) else 0
        return committing("north", number)(engine, event, view, now)

    engine = scripted(ranked, CLAIMS)
    jobs = [
        job("far", 2, cpu=4_000, kind="r", seconds=1),
        *(job(f"near{i}", 1, cpu=4_000, kind="o", submit=0.01, seconds=1) for i in range(near)),
    ]
    spec = federated("scripted", jobs, horizon=horizon)
    run = conformance.ConformanceRun(engine, spec, script=script)
    answers = [(name, event) for _, name, event in engine.heard if isinstance(event, Committed)]
    # The replay gets the same again.
    assert len(answers) == 2 * (1 + near)
    return run, [event for name, event in answers if name == "r"]


def test_a_claim_whose_first_choice_was_taken_lands_on_the_next() -> None:
    run, answers = race([1])
    placed = {record.job: record for record in run.of(PlacedRecord)}
    assert (placed["near0"].at, placed["near0"].machines) == (11 * MS, [0])
    assert (placed["far"].at, placed["far"].indices, placed["far"].machines) == (25 * MS, [0], [1])
    (refused,) = run.of(RefusedRecord)
    assert (refused.job, refused.indices, refused.whys) == ("far", [1], [int(Why.NO_ROOM)])
    assert answers[0].outcome.accepted.tolist() == [True, False]
    assert answers[0].outcome.machines.tolist() == [1, refused.machines[0]]
    # Where it runs is where the cell has it.
    cell = run.world.host.cell
    assert cell.machine_of(run.tasks_of(run.number("far"))[0]) == 1


def test_a_task_runs_and_ends_where_it_landed() -> None:
    run, _ = race([1], horizon=3 * SECOND)
    assert run.counts[TaskState.FINISHED] == 2
    run.require_nothing_claimed()
    machines = run.world.host.runtime.task_columns()[1]
    assert sorted(machines.tolist()) == [0, 1]


def test_a_claim_all_of_whose_candidates_are_taken_is_refused_with_a_machine() -> None:
    run, answers = race([1, -1], near=2)
    (refused,) = run.of(RefusedRecord)
    assert refused.indices == [0, 1]
    assert set(refused.machines) <= {0, 1}
    assert not answers[0].outcome.accepted.any()
    assert answers[0].outcome.has_conflict


def test_ranked_claims_of_tasks_that_were_cancelled_on_the_way_leave_the_others_theirs() -> None:
    def cancel(world: conformance.World) -> None:
        def act() -> None:
            world.host.cancel(0, np.array([0], np.int64))

        world.inject(15 * MS, act)

    run, answers = race([1], script=cancel)
    (refused,) = run.of(RefusedRecord)
    assert (refused.indices, refused.machines, refused.whys) == ([0], [0], [int(Why.CANCELLED)])
    (placed,) = run.of(PlacedRecord, "far")
    assert (placed.indices, placed.machines) == ([1], [1])
    assert answers[0].outcome.machines.tolist() == [0, 1]


def test_ranked_claims_of_the_whole_federation_may_name_machines_of_several_clusters() -> None:
    answers = heard_by(
        committing("", 0, [2, 4]), [job("a", 3, cpu=4_000, kind="o")], Committed, horizon=SECOND
    )
    ((_, event),) = answers
    assert event.outcome.machines.tolist() == [0, 2, 4]


def test_the_journal_says_where_everybody_is_and_nothing_where_there_is_one_cluster() -> None:
    spec = federated("omega", [job("a", 1, kind="o")])
    run = conformance.ConformanceRun(ENGINES["omega"], spec)
    assert JournalFile(run.log).header().setup.federation == spec.federation
    plain = conformance.ConformanceRun(ENGINES["omega"], scenario("omega", [job("a", 1)]))
    assert b"federation" not in plain.log


def test_a_summary_says_how_full_each_cluster_is() -> None:
    engine = scripted(committing("north", 0), CLAIMS)
    jobs = [job("a", 1, cpu=4_000, kind="o", seconds=None)]
    world = SimulatedWorld(federated("scripted", jobs, horizon=10 * SECOND), {"scripted": engine})
    watch = Watch(world)
    world.run()
    placement = watch.placement()
    assert {name: use["cpu"] for name, use in placement.end.clusters.items()} == {
        "north": 0.5,
        "south": 0.0,
        "east": 0.0,
    }
    assert placement.mean.clusters["north"]["cpu"] == pytest.approx(0.5, rel=0.05)


def test_what_was_recorded_of_a_federation_is_one_again() -> None:
    spec = federated("omega", [job("a", 1, kind="o"), job("b", 1, kind="r")])
    run = conformance.ConformanceRun(ENGINES["omega"], spec)
    until = run.world.host.runtime.now
    observed = observed_scenario(RunState.of(JournalFile(run.log), until=until))
    assert observed.federation == spec.federation


@pytest.mark.parametrize("engine", ["omega", "murmuration", "sparrow", "firmament", "medea"])
def test_engines_that_know_nothing_of_clusters_replay_on_a_federation(engine: str) -> None:
    fleet = (FleetEntry(name="o", engine=engine), FleetEntry(name="r", engine=engine))
    spec = federated(engine, conformance.workload(12), fleet=fleet)
    conformance.ConformanceRun(ENGINES[engine], spec).require_all_finished()
