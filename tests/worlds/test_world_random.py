"""Random workloads with random faults: nothing is lost, and nothing is oversubscribed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.engines.registry import ENGINES
from argosy.model.resources import Resources
from argosy.model.scenario import (
    Fault,
    MachineCrash,
    MachineDrain,
    MachineResize,
    Network,
    Partition,
    RandomCrashes,
    SchedulerCrash,
    UniformLatency,
)
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import GIB, SECOND, job, scenario
from argosy.testing.conformance import ConformanceRun

moments = st.integers(0, 20 * SECOND)
spans = st.integers(1, 10 * SECOND)
names = st.sampled_from(["s-0", "s-1", "s-2"])

faults: st.SearchStrategy[Fault] = st.one_of(
    st.builds(MachineCrash, at=moments, machine=st.sampled_from(["m0", "m3", "m7"]), down=spans),
    st.builds(MachineDrain, at=moments, machine=st.sampled_from(["m1", "m2"]), lasts=spans),
    st.builds(
        MachineResize,
        at=moments,
        machine=st.sampled_from(["m1", "m4"]),
        capacity=st.builds(Resources, st.sampled_from([0, 2_000, 8_000]), st.just(16 * GIB)),
    ),
    st.builds(SchedulerCrash, at=moments, scheduler=names, down=spans),
    st.builds(Partition, at=moments, lasts=spans, isolated=st.lists(names, max_size=2).map(tuple)),
    st.builds(
        RandomCrashes,
        what=st.sampled_from(["machines", "schedulers"]),
        every=st.integers(SECOND, 10 * SECOND),
        down=spans,
        end=st.just(20 * SECOND),
    ),
)
networks = st.builds(
    Network,
    latency=st.just(UniformLatency(low=0, high=20_000)),
    loss=st.floats(0, 0.5),
    duplication=st.floats(0, 0.5),
    reordering=st.floats(0, 0.5),
    extra_delay=st.integers(0, SECOND),
)


@st.composite
def workloads(draw: st.DrawFn) -> list[SimulatedJob]:
    count = draw(st.integers(1, 12))
    return [
        job(
            f"j{i}",
            draw(st.integers(1, 10)),
            cpu=draw(st.sampled_from([250, 1_000, 4_000])),
            memory=draw(st.integers(0, 16)) * GIB,
            seconds=draw(st.integers(0, 8)),
            submit=draw(st.integers(0, 15)),
            precedence=draw(st.integers(-1, 1)),
            gang=draw(st.booleans()),
        )
        for i in range(count)
    ]


#: A partition may lose all machines that are large enough; then no engine can help.
WHOLE_CELL = [engine for engine in ENGINES.values() if engine.name != "partitioned"]


@pytest.mark.parametrize("engine", WHOLE_CELL, ids=lambda engine: engine.name)
@settings(max_examples=300)
@given(jobs=workloads(), chosen=st.lists(faults, max_size=3), network=networks, data=st.data())
def test_every_task_finishes_once_the_faults_are_over(
    engine: type,
    jobs: list[SimulatedJob],
    chosen: list[Fault],
    network: Network,
    data: st.DataObject,
) -> None:
    options = {}
    if engine.name == "omega":
        options = data.draw(
            st.fixed_dictionaries(
                {
                    "placement": st.sampled_from(["first-fit", "best-fit", "worst-fit"]),
                    "transaction": st.sampled_from(["incremental", "atomic"]),
                    "detection": st.sampled_from(["fine", "coarse"]),
                    "preempt": st.booleans(),
                }
            )
        )
    # A job that does not fit into the empty cell can never be placed all or nothing.
    is_atomic = options.get("transaction") == "atomic" or engine.name == "ilp-all"
    if is_atomic or (engine.capabilities.gang and any(j.job.gang for j in jobs)):
        jobs = [j for j in jobs if j.tasks * j.groups[0].request.cpu <= 8_000]
        jobs = [j for j in jobs if j.tasks * j.groups[0].request.memory <= 32 * GIB]
    spec = scenario(
        engine.name, jobs, replicas=3, faults=tuple(chosen), network=network, settings=options
    )
    ConformanceRun(engine, spec).require_all_finished()
