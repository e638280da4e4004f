"""Violations, fragmentation and balance in a run's summary, compared with their definitions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from argosy import cli
from argosy.engines.registry import ENGINES
from argosy.experiments.execute import execute
from argosy.measures.placement import Watch, operator_constraints
from argosy.model.constraints.meaning import Container, Meaning
from argosy.model.constraints.parts import of_job, tags_at
from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import ArgosyError
from argosy.model.jobs import index_of, job_of
from argosy.model.machines import CLUSTER_GROUP, Cluster, Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import (
    CellSpec,
    ConstantLatency,
    Federation,
    GroupSpec,
    Network,
    Scenario,
)
from argosy.report.metrics import METRICS
from argosy.testing.builders import SECOND, cell, job, scenario
from argosy.worlds.sim import SimulatedWorld

GIB = 2**30


def judged(world: SimulatedWorld) -> tuple[int, int, float]:
    """By the reference, over all that runs and all constraints of jobs with a task left."""
    spec = world.scenario
    tasks, machines, *_ = world.host.runtime.running_columns()
    _, _, _, done = world.host.board.job_columns()
    containers = []
    for task, machine in zip(tasks.tolist(), machines.tolist(), strict=True):
        mine = spec.jobs[job_of(task)].job
        tags = tags_at(mine, index_of(task))
        containers.append(Container(tags, spec.cell.machines[machine].name))
    live = [each for number, each in enumerate(spec.jobs[: len(done)]) if done[number] < 0]
    constraints = [*spec.cell.constraints]
    constraints += [c for each in live for c in of_job(each.id, each.job.constraints)]
    meaning = Meaning(spec.cell.machines)
    found = meaning.judge(constraints, containers)
    concerned = sum(
        any(meaning.extent(c.rule, each, containers) is not None for c in constraints)
        for each in containers
    )
    return concerned, found.containers, found.total


TEXTS = (
    "appID:self -> {appID:self, 2, inf} in rack",
    "w -> {w, 0, 0} in machine weight 2",
    "appID:self -> {w, 0, 1} in machine or appID:self -> spread {2, inf} over rack",
    "kind:service -> not {v, 1, inf} in rack",
    "v -> {containerID:j0/1 & w, 0, 0} in machine",
    "containerID:j1/0 -> {containerID:j2/2, 1, inf} in rack or w -> {containerID:j3/0, 0, 0} in rack",
)


@given(seed=st.integers(0, 10_000), engine=st.sampled_from(["medea", "omega", "sparrow", "jkube"]))
@settings(max_examples=20)
def test_violations_are_what_the_reference_finds_at_every_look(seed: int, engine: str) -> None:
    random = Random(seed)
    jobs = [
        job(
            f"j{i}",
            1 + random.below(4),
            kind="service" if random.below(2) else "batch",
            tags=("w",) if random.below(2) else ("v", "w"),
            constraints=tuple(parse_constraint(t) for t in TEXTS if random.below(3) == 0),
            submit=random.below(40),
            seconds=5 + random.below(60),
            cpu=500,
        )
        for i in range(8)
    ]
    spec = scenario(engine, jobs, replicas=1, horizon=80 * SECOND)
    operator = (parse_constraint("v -> {w, 0, 2} in rack weight 0.5"),)
    spec = Scenario(**{name: getattr(spec, name) for name in spec.__struct_fields__} | {
        "cell": CellSpec(machines=spec.cell.machines, groups=spec.cell.groups, constraints=operator)
    })  # fmt: skip
    world = SimulatedWorld(spec, ENGINES)
    watch = Watch(world)
    looks = []
    plain = watch._look
    world.watch(5 * SECOND, lambda now: (looks.append((watch.use(), judged(world))), plain(now))[1])
    world.run()
    looks.append((watch.use(), judged(world)))
    assert len(looks) > 5
    for use, (concerned, violating, extent) in looks:
        assert (use.concerned, use.violating) == (concerned, violating)
        assert use.extent == pytest.approx(extent)


def test_the_mean_is_over_time_and_the_end_is_the_end() -> None:
    """Two that want to be apart share the only machine for the last half of the run."""
    machine = Machine("m", Resources(4_000, 16 * GIB))
    apart = (parse_constraint("w -> {w, 0, 0} in machine"),)
    jobs = [
        job("a", tags=("w",), constraints=apart, seconds=None, memory=7 * GIB, kind="service"),
        job("b", tags=("w",), seconds=None, submit=30, memory=8 * GIB, kind="service"),
    ]
    spec = scenario(
        "omega", jobs, replicas=1, cell=CellSpec(machines=(machine,)), horizon=60 * SECOND
    )
    placement = execute(spec, None).placement
    assert placement.end.violating == placement.end.concerned == 2
    assert placement.end.extent == 2
    assert placement.mean.violating == pytest.approx(1, abs=0.1)
    assert placement.mean.concerned == pytest.approx(1.5, abs=0.1)
    # With 1 GiB and two cores left, nothing of 2 GiB fits.
    assert (placement.end.fragmented, placement.end.machines_used) == (1, 1)
    assert placement.mean.fragmented == pytest.approx(0.5, abs=0.05)
    assert placement.latency.count == 1
    assert METRICS["violations"].value(execute(spec, None)) == pytest.approx(2 / 3, abs=0.05)


def test_imbalance_is_the_coefficient_of_variation() -> None:
    jobs = [job("a", 1, cpu=4_000, memory=0, seconds=None, kind="service")]
    placement = execute(scenario("omega", jobs, replicas=1, horizon=10 * SECOND), None).placement
    shares = np.array([1.0] + [0.0] * 7)
    assert placement.end.imbalance["cpu"] == pytest.approx(shares.std() / shares.mean())
    assert placement.end.imbalance["memory"] == 0
    assert placement.end.machines == len(cell().machines) == 8


def test_what_a_machine_does_not_have_is_not_lacking_there() -> None:
    bare = CellSpec(machines=(Machine("m", Resources(4_000, 0)),))
    for cpu, fragmented in ((3_000, 0), (3_001, 1), (4_000, 0)):
        jobs = [job("a", cpu=cpu, memory=0, seconds=None, kind="service")]
        spec = scenario("omega", jobs, replicas=1, cell=bare, horizon=10 * SECOND)
        assert execute(spec, None).placement.end.fragmented == fragmented


def test_a_job_that_never_finds_a_place_has_no_latency() -> None:
    apart = (parse_constraint("w -> {w, 0, 0} in machine"),)
    jobs = [
        job("a", tags=("w",), constraints=apart, seconds=None, kind="service"),
        job("giant", cpu=64_000, tags=("w",), constraints=apart, seconds=None, kind="service"),
    ]
    spec = scenario("omega", jobs, replicas=1, horizon=10 * SECOND)
    latency = execute(spec, None).placement.latency
    assert latency.count == 1
    assert latency.p50 >= 0


def test_looking_changes_nothing_that_happens() -> None:
    jobs = [job(f"j{i}", 3, submit=i, constraints=(parse_constraint(TEXTS[0]),)) for i in range(9)]
    spec = scenario("omega", jobs, replicas=2)
    world = SimulatedWorld(spec, ENGINES)
    world.run()
    watched = SimulatedWorld(spec, ENGINES)
    watch = Watch(watched)
    watched.run()
    assert watch.placement().looks > 10
    assert watched.host.events == world.host.events
    for mine, other in zip(
        watched.host.runtime.task_columns(), world.host.runtime.task_columns(), strict=True
    ):
        assert (mine == other).all()


SMALL = """\
name = "s"
horizon = "1min"

[cell]
constraints = ["w -> {w, 0, 0} in machine"]

[[cell.machines]]
name = "m"
capacity = { cpu = 8000 }

[[workload.jobs]]
id = "a"
count = 3
tags = ["w"]
request = { cpu = 500 }

[[fleet]]
name = "o"
engine = "omega"
"""


def test_a_summary_shows_them_as_text_json_and_csv(tmp_path: Path, monkeypatch, capsys) -> None:
    """The operator's constraints alone, under an engine that sees none."""
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(SMALL)
    shown = {}
    for form in ("table", "json", "csv"):
        with pytest.raises(SystemExit) as stop:
            cli.main(["run", "s.toml", "--no-save", "-o", form])
        assert stop.value.code == 0
        shown[form] = capsys.readouterr().out
    assert "violating containers" in shown["table"]
    assert json.loads(shown["json"])["placement"]["end"]["violating"] == 3
    assert "violating_at_end" in shown["csv"].splitlines()[0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("w -> {w, 0, 0} in hall", "unknown node group 'hall'"),
        ("appID:self -> {w, 0, 0} in machine", "appID:self in a constraint of the cell"),
        ("w -> {w, 2, 1} in machine", "1"),
    ],
)
def test_a_mistake_in_the_operators_constraints_has_its_line(text, problem, refused) -> None:
    small = SMALL.replace("w -> {w, 0, 0} in machine", text)
    error = refused(small, ArgosyError)
    assert problem in str(error)
    assert error.line == 5


def test_why_tells_what_a_placement_breaks_and_for_whom(
    tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(SMALL.replace('"omega"', '"medea"').replace("[[workload", WITH))
    with pytest.raises(SystemExit) as stop:
        cli.main(["run", "s.toml"])
    assert stop.value.code == 0
    capsys.readouterr()
    with pytest.raises(SystemExit):
        cli.main(["why", "s/0"])
    told = " ".join(capsys.readouterr().out.split())
    assert "decided by tag-popularity for the whole job, proven best." in told
    assert "'w -> {w, 0, 0} in machine' is broken there: a/0 to a/2 and s/1 are in m too." in told
    # Three tasks that run already and saw two others each see four now, as the two new ones do.
    journal = next(Path().glob("**/journal.jsonl")).read_text()
    assert (
        "'w -> {w, 0, 0} in machine' is broken for 3 containers of a and 2 containers of s,"
        " by 14 in all" in journal
    )
    assert "relax the hard constraint 'v -> {v, 0, 0} in machine hard'" in journal
    with pytest.raises(SystemExit):
        cli.main(["why", "never/0"])
    told = " ".join(capsys.readouterr().out.split())
    assert "'v -> {v, 0, 0} in machine hard' allows 1 task per machine" in told
    assert "1 task fewer, another machine, or a constraint that is not hard." in told


WITH = """[[workload.jobs]]
id = "s"
kind = "service"
count = 2
tags = ["w"]
request = { cpu = 500 }

[[workload.jobs]]
id = "never"
kind = "service"
count = 2
tags = ["v"]
request = { cpu = 500 }
constraints = ["v -> {v, 0, 0} in machine hard"]
submit = "15s"

[[workload"""


def test_a_machine_that_is_full_is_not_fragmented() -> None:
    machine = Machine("m", Resources(4_000, 16 * GIB))
    whole = job("a", cpu=4_000, memory=16 * GIB, seconds=None, kind="service")
    spec = scenario(
        "omega", [whole], replicas=1, cell=CellSpec(machines=(machine,)), horizon=60 * SECOND
    )
    end = execute(spec, None).placement.end
    assert (end.machines_used, end.fragmented) == (1, 0)


def test_samples_count_for_the_time_before_them() -> None:
    """x stays on one of two machines of a; y, which fills the other, is seen at 16 to 22 s."""
    machines = tuple(
        Machine(f"m{n}", Resources(4_000, 16 * GIB), joins={CLUSTER_GROUP: (cluster,)})
        for n, cluster in enumerate("aab")
    )
    groups = (GroupSpec(name=CLUSTER_GROUP, sets=("a", "b")),)
    jobs = [
        job("x", 1, cpu=3_500, memory=4 * GIB, seconds=None),
        job("y", 1, cpu=4_000, memory=0, seconds=8, submit=16),
    ]
    spec = scenario(
        "omega",
        jobs,
        replicas=1,
        cell=CellSpec(machines=machines, groups=groups),
        horizon=64 * SECOND,
        settings={"t_job": 0, "t_task": 0},
        network=Network(latency=ConstantLatency(delay=0)),
        federation=Federation(clusters=(Cluster("a", ""), Cluster("b", ""))),
    )
    summary = execute(spec, None)
    placement, mean, end = summary.placement, summary.placement.mean, summary.placement.end
    # Every 2 s up to 22 s, and at the end.
    assert placement.looks == 12
    assert (end.machines, end.machines_used, end.fragmented) == (3, 1, 1)
    assert (mean.machines, mean.machines_used, mean.fragmented) == (3, 72 / 64, 72 / 64)
    alone, both = np.array([0.875, 0, 0]), np.array([0.875, 1, 0])
    variation = [float(shares.std() / shares.mean()) for shares in (alone, both)]
    assert end.imbalance == pytest.approx({"cpu": variation[0], "memory": 2**0.5})
    assert mean.imbalance == pytest.approx(
        {"cpu": (56 * variation[0] + 8 * variation[1]) / 64, "memory": 2**0.5}
    )
    nothing = {"cpu": 0.0, "memory": 0.0}
    assert end.clusters == {"a": {"cpu": 0.4375, "memory": 0.125}, "b": nothing}
    assert mean.clusters == {
        "a": pytest.approx({"cpu": (56 * 0.4375 + 8 * 0.9375) / 64, "memory": 0.125}),
        "b": nothing,
    }
    assert summary.utilisation == pytest.approx(
        {"cpu": (3.5 * 64 + 4 * 8) / 12 / 64, "memory": 1 / 12}
    )


def test_of_what_a_cluster_does_not_have_nothing_is_used() -> None:
    sizes = {"a": Resources(4_000, 16 * GIB), "b": Resources(4_000, 0)}
    machines = tuple(
        Machine(name, size, joins={CLUSTER_GROUP: (name,)}) for name, size in sizes.items()
    )
    spec = scenario(
        "omega",
        [job("x", 2, cpu=2_000, memory=0, seconds=None)],
        replicas=1,
        cell=CellSpec(machines=machines, groups=(GroupSpec(name=CLUSTER_GROUP, sets=("a", "b")),)),
        horizon=10 * SECOND,
        federation=Federation(clusters=(Cluster("a", ""), Cluster("b", ""))),
    )
    clusters = execute(spec, None).placement.end.clusters
    assert clusters["b"]["memory"] == 0.0
    assert sum(shares["cpu"] for shares in clusters.values()) == 1.0


@pytest.mark.parametrize(("seconds", "looks"), [(63, 63), (64, 64), (65, 65), (66, 65), (129, 97)])
def test_samples_become_rarer_after_the_last_submission(seconds: int, looks: int) -> None:
    """Without a horizon, at 1, 2 and so on up to 64 s, then every 2 s up to 128 s, then every 4 s."""
    jobs = [job("a", seconds=seconds), job("b", submit=32, seconds=1)]
    network = Network(latency=ConstantLatency(delay=0))
    settings = {"t_job": 0, "t_task": 0}
    spec = scenario("omega", jobs, replicas=1, settings=settings, network=network)
    assert execute(spec, None).placement.looks == looks


def test_the_operators_constraints_come_from_the_cell_and_from_schedulers() -> None:
    one, two = (parse_constraint(f"w -> {{w, 0, {most}}} in machine") for most in (1, 2))
    spec = scenario("medea", [], replicas=2, settings={"operator": [one, two]})
    spec = replace(spec, cell=replace(spec.cell, constraints=(two,)))
    assert operator_constraints(SimulatedWorld(spec, ENGINES)) == (two, one)


@pytest.mark.parametrize(
    ("cpu", "memory", "fragmented"),
    [
        (1_000, 2 * GIB, 0),
        (999, 2 * GIB, 1),
        (1_000, 2 * GIB - 1, 1),
        (0, 0, 0),
        (1, 0, 1),
        (0, 1, 1),
    ],
)
def test_a_machine_is_fragmented_if_a_core_and_two_gibibytes_do_not_fit(
    cpu: int, memory: int, fragmented: int
) -> None:
    machine = Machine("m", Resources(4_000, 16 * GIB))
    jobs = [job("a", cpu=4_000 - cpu, memory=16 * GIB - memory, seconds=None)]
    spec = scenario(
        "omega", jobs, replicas=1, cell=CellSpec(machines=(machine,)), horizon=10 * SECOND
    )
    assert execute(spec, None).placement.end.fragmented == fragmented
