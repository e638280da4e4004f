"""Cluster agents at work: sampling and commit pipelines, their time, their locks and their faults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scripted_engine import Script, Scripted, scripted

from argosy.cell import View
from argosy.engines.api import Capabilities
from argosy.model.effects import Commit, CommitPipeline, Effect, Sample, SamplingPipeline
from argosy.model.errors import EngineFault
from argosy.model.events import Committed, Event, JobSubmitted, SampleReturned
from argosy.model.explanations import Why
from argosy.model.machines import Cluster
from argosy.model.resources import Resources
from argosy.model.scenario import (
    AgentDown,
    AgentModel,
    AgentSlow,
    AgentStale,
    ConstantLatency,
    Federation,
    FleetEntry,
    MachineDrain,
    Network,
    Scenario,
    SchedulerCrash,
)
from argosy.model.transactions import Claims, Transaction
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import GIB, SECOND, federated_cell, job, scenario
from argosy.testing.conformance import ConformanceRun
from argosy.worlds.sim import SimulatedWorld

MS = 1_000
#: One way.
HOP = 5 * MS
WHOLE = Resources(4_000, GIB)
DEFAULT = CommitPipeline()


def in_north(jobs: list[SimulatedJob], machines: int = 10, **fields: Any) -> Scenario:
    """Machines of the north, numbered from 0, and as many in the south; all have four cores."""
    names = ("north", "south")
    return scenario(
        "scripted",
        jobs,
        **{
            "cell": federated_cell(names, machines),
            "fleet": (FleetEntry(name="s", engine="scripted"),),
            "federation": Federation(clusters=tuple(Cluster(name, name) for name in names)),
            "network": Network(latency=ConstantLatency(delay=HOP)),
            "horizon": 20 * SECOND,
            **fields,
        },
    )


def heard(script: Script, spec: Scenario) -> list[tuple[int, Event]]:
    """What the scheduler heard, of a run that replays and leaves no reservation behind."""
    engine = scripted(script, Capabilities(transactions=True))
    run = ConformanceRun(engine, spec)
    assert run.world.host.open_reservations == 0
    # The replay hears the same again.
    events = [(now, event) for now, _, event in engine.heard]
    return events[: len(events) // 2]


def samples(script: Script, **fields: Any) -> list[tuple[int, SampleReturned]]:
    jobs = fields.pop("jobs", [job("a", 1)])
    events = heard(script, in_north(jobs, **fields))
    return [(now, event) for now, event in events if isinstance(event, SampleReturned)]


def asking(*pipelines: SamplingPipeline, **terms: Any) -> Script:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if not isinstance(event, JobSubmitted):
            return ()
        asked = {"request": Resources(1_000, GIB), "count": 3, "cluster": "north", **terms}
        return [Sample(token=i, pipeline=each, **asked) for i, each in enumerate(pipelines)]

    return script


def commit(
    engine: Scripted,
    view: View,
    event: JobSubmitted,
    machines: Sequence[int],
    pipeline: CommitPipeline | None = DEFAULT,
) -> Commit:
    group = event.job.groups[0]
    chosen = np.array(machines[:1], np.int32)
    claims = Claims(
        event.tasks[:1],
        chosen,
        np.array([view.shape(group.request, group.tags, event.job.precedence)], np.int32),
        view.versions(chosen),
        alternatives=np.array([machines[1:]], np.int32) if len(machines) > 1 else None,
    )
    cluster = view.sets_of(machines[0], "cluster")[0]
    transaction = Transaction(engine.context.name, claims)
    return Commit(event.number, transaction, cluster=cluster, pipeline=pipeline)


def committing(
    targets: dict[str, Sequence[int]], pipeline: CommitPipeline | None = DEFAULT
) -> Script:
    """Commits each job to its machines, in order."""

    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if isinstance(event, JobSubmitted):
            return [commit(engine, view, event, targets[event.job.id], pipeline)]
        return ()

    return script


def answers(
    targets: dict[str, Sequence[int]],
    pipeline: CommitPipeline | None = DEFAULT,
    **fields: Any,
) -> list[tuple[int, int, int, bool]]:
    """For each answer: when it came, for which job, the machine (-1: refused), and whether the agent was
    reached."""
    made = [job(name, 1, request=WHOLE, seconds=None) for name in targets]
    events = heard(committing(targets, pipeline), in_north(fields.pop("jobs", made), **fields))
    return [
        (
            now,
            event.token,
            int(event.outcome.machines[0]) if event.outcome.all_accepted else -1,
            event.reached,
        )
        for now, event in events
        if isinstance(event, Committed)
    ]


def test_a_sample_has_machines_of_its_cluster_with_scores() -> None:
    ((now, event),) = samples(asking(SamplingPipeline()))
    assert now == 2 * HOP
    assert len(set(event.machines.tolist())) == 3
    assert event.machines.max() < 10
    assert (event.scores.tolist(), event.drawn, event.reached) == ([[84]] * 3, 3, True)


def test_a_sample_may_be_a_share_of_the_cluster_rounded_up() -> None:
    for share, size in ((0.04, 1), (0.25, 3), (0.3, 3), (1.0, 10)):
        ((_, event),) = samples(asking(SamplingPipeline(share=share)))
        assert len(event.machines) == size


def test_drawing_ends_when_every_machine_was_seen() -> None:
    # 16 GiB each: none has more.
    large = Resources(1_000, 17 * GIB)
    ((_, event),) = samples(asking(SamplingPipeline(), request=large))
    assert (len(event.machines), event.drawn) == (0, 10)
    assert event.ruled_out == {"memory": 10}


def test_independent_rounds_end_after_their_number_and_count_a_machine_once() -> None:
    rounds = SamplingPipeline(rounds=4)
    ((_, event),) = samples(asking(rounds, request=Resources(1_000, 17 * GIB)))
    assert event.drawn == 12
    ((_, event),) = samples(asking(SamplingPipeline(rounds=5), count=9))
    assert len(event.machines) == len(set(event.machines.tolist()))


def test_an_agent_stops_drawing_when_its_time_is_up() -> None:
    model = AgentModel(t_sample=10 * MS, t_machine=2 * MS)
    hopeless = Resources(1_000, 17 * GIB)
    limited = asking(SamplingPipeline(limit=8 * MS), request=hopeless)
    ((now, event),) = samples(limited, agents=model)
    assert (event.drawn, now) == (4, 2 * HOP + 10 * MS + 4 * 2 * MS)
    ((now, event),) = samples(asking(SamplingPipeline(), request=hopeless), agents=model)
    assert (event.drawn, now) == (10, 2 * HOP + 10 * MS + 10 * 2 * MS)


def test_samples_wait_for_a_free_pipeline() -> None:
    script = asking(*[SamplingPipeline()] * 3)
    for samplers, last in ((0, 1), (1, 3), (2, 2)):
        model = AgentModel(t_sample=10 * MS, samplers=samplers)
        times = [now for now, _ in samples(script, agents=model)]
        assert times[-1] == 2 * HOP + last * 10 * MS


def test_machines_that_drain_or_lack_an_attribute_are_not_sampled() -> None:
    drain = MachineDrain(at=0, machine="north/m3")
    every = asking(SamplingPipeline(share=1.0))
    ((_, event),) = samples(every, faults=(drain,), jobs=[job("a", 1, submit=1)])
    assert (3 in event.machines, event.ruled_out) == (False, {"down": 1})
    ((_, event),) = samples(asking(SamplingPipeline(), requires={"disk": "ssd"}))
    assert (len(event.machines), event.ruled_out) == (0, {"filtered": 10})


def test_a_commit_takes_fetching_and_binding_and_its_machine_is_locked_meanwhile() -> None:
    model = AgentModel(t_fetch=10 * MS, t_bind=4 * MS)
    apart = answers({"a": [0], "b": [1]}, agents=model)
    assert [now for now, *_ in apart] == [2 * HOP + 14 * MS] * 2
    # The second waits for the first, and is refused after another look at the machine.
    assert answers({"a": [0], "b": [0]}, agents=model) == [
        (2 * HOP + 14 * MS, 0, 0, True),
        (2 * HOP + 24 * MS, 1, -1, True),
    ]


def test_commits_wait_for_a_free_pipeline() -> None:
    model = AgentModel(t_fetch=10 * MS, committers=1)
    times = [now for now, *_ in answers({"a": [0], "b": [1], "c": [2]}, agents=model)]
    assert times == [2 * HOP + each * 10 * MS for each in (1, 2, 3)]


def test_both_commit_where_both_fit() -> None:
    made = [job(name, 1, cpu=2_000, seconds=None) for name in "ab"]
    model = AgentModel(t_fetch=10 * MS)
    assert [at for _, _, at, _ in answers({"a": [0], "b": [0]}, agents=model, jobs=made)] == [0, 0]


def test_an_agent_goes_on_to_the_next_candidate_by_itself() -> None:
    model = AgentModel(t_fetch=10 * MS)
    found = answers({"a": [0], "b": [0, 5, 6]}, agents=model)
    assert found == [(2 * HOP + 10 * MS, 0, 0, True), (2 * HOP + 30 * MS, 1, 5, True)]


def test_the_first_to_arrive_wins_unless_all_reservations_count() -> None:
    """With Algorithm 2 as printed, each finds the reservations of those behind it; the last finds
    none."""
    model, literal = AgentModel(t_fetch=10 * MS), CommitPipeline(reservations="all")
    machines = {"a": [0], "b": [0]}
    assert [at for _, _, at, _ in answers(machines, agents=model)] == [0, -1]
    assert [at for _, _, at, _ in answers(machines, literal, agents=model)] == [-1, 0]
    three = {"a": [0], "b": [0], "c": [0]}
    assert [at for _, _, at, _ in answers(three, literal, agents=model)] == [-1, -1, 0]


def test_what_is_reserved_is_not_sampled_though_the_commit_is_not_done() -> None:
    """And the sample does not wait for the lock."""

    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if not isinstance(event, JobSubmitted):
            return ()
        if event.job.id == "a":
            return [commit(engine, view, event, [4])]
        return asking(SamplingPipeline(share=1.0))(engine, event, view, now)

    jobs = [job("a", 1, request=WHOLE, seconds=None), job("b", 1, submit=0.01, seconds=None)]
    model = AgentModel(t_fetch=SECOND)
    ((now, event),) = samples(script, jobs=jobs, agents=model)
    assert now == 10 * MS + 2 * HOP
    assert sorted(event.machines.tolist()) == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def two_looks(model: AgentModel, *faults: AgentStale, end: float = 0.5) -> list[list[int]]:
    """Samples of the whole north before and after tasks come and go, not through its agent."""

    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if not isinstance(event, JobSubmitted):
            return ()
        if event.job.id.startswith("look"):
            return asking(SamplingPipeline(share=1.0), request=WHOLE)(engine, event, view, now)
        return [commit(engine, view, event, [4], None)]

    jobs = [
        job("look-0", 1, submit=0, seconds=None),
        job("a", 1, request=WHOLE, submit=0.2, seconds=end),
        job("look-1", 1, submit=0.4, seconds=None),
        job("look-2", 1, submit=2, seconds=None),
    ]
    found = samples(script, jobs=jobs, agents=model, faults=faults, machines=6)
    return [sorted(event.machines.tolist()) for _, event in found]


def test_an_agent_with_an_old_picture_offers_what_is_taken_and_hides_what_is_free() -> None:
    every, less = [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 5]
    assert two_looks(AgentModel()) == [every, less, every]
    assert two_looks(AgentModel(refresh=SECOND)) == [every, every, every]
    # Read anew before the third look, when the task still runs.
    assert two_looks(AgentModel(refresh=SECOND), end=9) == [every, every, less]


def test_an_agent_that_hears_nothing_of_its_machines_keeps_its_picture() -> None:
    every = [0, 1, 2, 3, 4, 5]
    stale = AgentStale(at=0, cluster="north")
    assert two_looks(AgentModel(), stale, end=9) == [every] * 3
    other = AgentStale(at=0, cluster="south")
    assert two_looks(AgentModel(), other, end=9)[2] == [0, 1, 2, 3, 5]


def test_an_agent_that_is_down_answers_nothing_and_commits_nothing() -> None:
    down = AgentDown(at=0, cluster="north", lasts=SECOND)
    ((now, event),) = samples(asking(SamplingPipeline()), faults=(down,))
    assert (now, len(event.machines), event.reached) == (2 * HOP, 0, False)
    assert answers({"a": [0], "b": [12]}, faults=(down,)) == [
        (2 * HOP, 0, -1, False),
        (2 * HOP, 1, 12, True),
    ]
    late = [job("a", 1, request=WHOLE, seconds=None, submit=1)]
    assert answers({"a": [0]}, faults=(down,), jobs=late) == [(SECOND + 2 * HOP, 0, 0, True)]


def test_what_an_agent_was_working_on_when_it_went_down_is_undone() -> None:
    down = AgentDown(at=10 * MS, cluster="north")
    model = AgentModel(t_fetch=20 * MS, t_sample=20 * MS)
    assert answers({"a": [0], "b": [0]}, agents=model, faults=(down,)) == [
        (2 * HOP + 20 * MS, 0, -1, False),
        (2 * HOP + 40 * MS, 1, -1, False),
    ]
    ((_, event),) = samples(asking(SamplingPipeline()), agents=model, faults=(down,))
    assert not event.reached


def test_a_slow_agent_takes_longer_for_everything() -> None:
    slow = AgentSlow(at=0, cluster="north", extra=50 * MS, lasts=SECOND)
    ((now, _),) = samples(asking(SamplingPipeline()), faults=(slow,))
    assert now == 2 * HOP + 50 * MS
    assert answers({"a": [0]}, faults=(slow,)) == [(2 * HOP + 50 * MS, 0, 0, True)]


def test_a_scheduler_that_crashes_loses_its_reservations() -> None:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if isinstance(event, JobSubmitted) and now < 10 * MS:
            return [commit(engine, view, event, [0])]
        return ()

    spec = in_north(
        [job(name, 1, request=WHOLE, seconds=None) for name in "ab"],
        agents=AgentModel(t_fetch=100 * MS),
        faults=(SchedulerCrash(at=50 * MS, scheduler="s", down=SECOND),),
    )
    events = heard(script, spec)
    assert not [event for _, event in events if isinstance(event, Committed)]
    engine = scripted(script, Capabilities(transactions=True))
    world = SimulatedWorld(spec, {"scripted": engine})
    world.run()
    assert world.host.cell.claims() == 0, "nobody has asked for it any more"


def test_a_commit_is_not_answered_to_a_scheduler_that_has_come_back_since() -> None:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if isinstance(event, JobSubmitted) and now < 10 * MS:
            return [commit(engine, view, event, [0])]
        return ()

    spec = in_north(
        [job("a", 1, seconds=None)],
        agents=AgentModel(t_fetch=20 * MS, t_bind=100 * MS),
        faults=(SchedulerCrash(at=50 * MS, scheduler="s", down=20 * MS),),
        network=Network(latency=ConstantLatency(delay=0)),
    )
    engine = scripted(script, Capabilities(transactions=True))
    world = SimulatedWorld(spec, {"scripted": engine})
    world.run()
    # It was bound before the crash, so its task runs on.
    assert world.host.cell.claims() == 1
    assert [type(event).__name__ for _, _, event in engine.heard] == [
        "Started",
        "JobSubmitted",
        "Started",
    ]
    assert world.host.open_reservations == 0


def test_a_task_cancelled_while_it_is_committed_is_refused() -> None:
    engine = scripted(committing({"a": [0], "b": [0]}), Capabilities(transactions=True))
    jobs = [job("a", 1, seconds=None), job("b", 1, seconds=None, submit=0.1)]
    spec = in_north(jobs, agents=AgentModel(t_fetch=100 * MS))
    world = SimulatedWorld(spec, {"scripted": engine})
    world.inject(50 * MS, lambda: world.host.cancel(0) and None)
    world.run()
    told = [event.outcome for _, _, event in engine.heard if isinstance(event, Committed)]
    assert [Why(int(outcome.whys[0])) for outcome in told] == [Why.CANCELLED, Why.NONE]
    assert world.host.open_reservations == 0


def test_pipelines_are_of_one_agent_and_for_one_claim() -> None:
    def two(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if not isinstance(event, JobSubmitted):
            return ()
        group = event.job.groups[0]
        machines = np.zeros(2, np.int32)
        shapes = np.full(2, view.shape(group.request), np.int32)
        claims = Claims(event.tasks, machines, shapes, view.versions(machines))
        transaction = Transaction(engine.context.name, claims)
        return [Commit(0, transaction, cluster="north", pipeline=CommitPipeline())]

    with pytest.raises(EngineFault, match="a pipeline for 2 claims; expected a single claim"):
        heard(two, in_north([job("a", 2)]))
    with pytest.raises(EngineFault, match="a pipeline without a cluster"):
        heard(asking(SamplingPipeline(), cluster=""), in_north([job("a", 1)]))
    with pytest.raises(EngineFault, match=r"pipeline\.share is 1\.5"):
        heard(asking(SamplingPipeline(share=1.5)), in_north([job("a", 1)]))


def test_shards_of_an_agent_draw_a_sample_together_in_a_part_of_the_time() -> None:
    for shards, drawn_by_each in ((1, 10), (2, 5), (5, 2)):
        model = AgentModel(t_sample=10 * MS, t_machine=2 * MS, shards=shards)
        ((now, event),) = samples(asking(SamplingPipeline(share=1.0)), agents=model)
        assert sorted(event.machines.tolist()) == list(range(10))
        assert event.drawn == 10
        assert now == 2 * HOP + 10 * MS + drawn_by_each * 2 * MS
    # A number of machines is divided as well, and what is ruled out is added up.
    ((_, event),) = samples(asking(SamplingPipeline(), count=4), agents=AgentModel(shards=2))
    assert sorted(machine % 2 for machine in event.machines.tolist()) == [0, 0, 1, 1]
    hopeless = asking(SamplingPipeline(), request=Resources(1_000, 17 * GIB))
    ((_, event),) = samples(hopeless, agents=AgentModel(shards=3))
    assert (event.drawn, event.ruled_out) == (10, {"memory": 10})


def test_shards_have_their_own_turns_and_locks() -> None:
    one_at_a_time = {"committers": 1, "t_fetch": 10 * MS}
    for shards, last in ((1, 3), (2, 2), (3, 1)):
        model = AgentModel(**one_at_a_time, shards=shards)
        found = answers({"a": [0], "b": [1], "c": [2]}, agents=model)
        assert [machine for _, _, machine, _ in found] == [0, 1, 2]
        assert found[-1][0] == 2 * HOP + last * 10 * MS


def test_a_commit_goes_on_to_candidates_of_another_shard() -> None:
    model = AgentModel(committers=1, t_fetch=10 * MS, shards=2)
    found = answers({"a": [0], "b": [0, 1, 2], "c": [1]}, agents=model)
    # The second is refused where the first is, and reserves its next machine only after the third.
    assert sorted(machine for _, _, machine, _ in found) == [0, 1, 2]
    assert {job: machine for _, job, machine, _ in found} == {0: 0, 1: 2, 2: 1}


def test_samples_may_be_cut_and_repetitions_kept() -> None:
    # Every round of nine among ten machines repeats some of them.
    kept = SamplingPipeline(rounds=2, repeats="keep", filters=())
    ((_, event),) = samples(asking(kept, count=9, request=Resources(1_000, GIB)))
    assert len(event.machines) == 9
    small = MachineDrain(at=0, machine="north/m3")
    every = SamplingPipeline(rounds=2, repeats="keep")
    ((_, event),) = samples(asking(every, count=10), faults=(small,), jobs=[job("a", 1, submit=1)])
    assert len(event.machines) == 18
    assert len(set(event.machines.tolist())) == 9
    cut = SamplingPipeline(rounds=2, repeats="keep", overshoot="cut")
    ((_, event),) = samples(asking(cut, count=10), faults=(small,), jobs=[job("a", 1, submit=1)])
    assert len(event.machines) == 10


def test_a_volume_is_where_the_first_task_that_asked_for_it_was_committed() -> None:
    demands = {"volume": "shared"}
    made = [
        job(name, 1, request=Resources(1_000, GIB), seconds=None, submit=at, demands=demands)
        for at, name in enumerate(("first", "elsewhere", "beside"))
    ]
    pipeline = CommitPipeline(checks=("ResourcesFit", "Volume"))
    found = answers({"first": [3], "elsewhere": [4], "beside": [3]}, pipeline, jobs=made)
    assert [machine for _, _, machine, _ in found] == [3, -1, 3]
