"""What `why` says would help does help: each test makes the change and runs again."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec import structs

import argosy
from argosy.engines.registry import ENGINES
from argosy.model.constraints.text import parse_constraint
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, FleetEntry, Scenario, SchedulerLimits
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import GIB, SECOND, cell, job, scenario

ENGINE_NAMES = sorted(set(ENGINES) - {"ilp-all"})
PLACING = [
    name
    for name in ENGINE_NAMES
    if ENGINES[name].capabilities.transactions and not ENGINES[name].capabilities.queues
]
WITH_GANGS = [name for name in PLACING if ENGINES[name].capabilities.gang]
#: Engines that keep hard constraints of every kind.
KEEPING = [name for name in ENGINE_NAMES if ENGINES[name].capabilities.constraints]
FLOW = ("firmament", "quincy")
HAS_MACHINE = ("running", "finished")
HORIZON = 120 * SECOND
MORE = re.compile(r"(another|([\d,]+) more) machines? like (\S+?)(?:,|$)")


def machines(small: int = 2, large: int = 2) -> CellSpec:
    made = [Machine(f"small-{n}", Resources(4_000, 8 * GIB)) for n in range(small)]
    made += [
        Machine(f"gpu-{n}", Resources(8_000, 32 * GIB, {"gpu": 4}), {"accel": "a100"})
        for n in range(large)
    ]
    return CellSpec(machines=tuple(made))


def make(engine: str, jobs: list[SimulatedJob], **changes: Any) -> Scenario:
    fields = {"cell": machines(), "replicas": 1, "horizon": HORIZON, **changes}
    if engine in FLOW:
        # Otherwise they preempt what stands in the way.
        fields.setdefault("settings", {"reschedule": False})
    return scenario(engine, jobs, **fields)


def with_more_machines(spec: Scenario, remedy: str) -> Scenario:
    found = MORE.search(remedy)
    assert found, remedy
    count = int((found[2] or "1").replace(",", ""))
    like = next(each for each in spec.cell.machines if each.name == found[3])
    added = tuple(structs.replace(like, name=f"more-{n}") for n in range(count))
    more = structs.replace(spec.cell, machines=(*spec.cell.machines, *added))
    return structs.replace(spec, cell=more)


def changed(spec: Scenario, name: str, **changes: Any) -> Scenario:
    """With another request or other requirements of a job's only group, or other fields of the job."""

    def change(made: SimulatedJob) -> SimulatedJob:
        if made.id != name:
            return made
        (group,) = made.job.groups
        of_group = {key: value for key, value in changes.items() if hasattr(group, key)}
        of_job = {key: value for key, value in changes.items() if key not in of_group}
        groups = (structs.replace(group, **of_group),)
        return structs.replace(made, job=structs.replace(made.job, groups=groups, **of_job))

    return structs.replace(spec, jobs=tuple(map(change, spec.jobs)))


def remedy_of(spec: Scenario, task: str) -> str:
    why = argosy.run(spec).why(task)
    assert why.state not in HAS_MACHINE, why
    return why.remedy


def gets_machine(spec: Scenario, task: str) -> bool:
    return argosy.run(spec).why(task).state in HAS_MACHINE


HOG = {"cpu": 3_500, "seconds": 1_000}


@pytest.mark.parametrize("engine", PLACING)
class TestRoom:
    def test_one_more_machine_of_the_named_kind(self, engine: str) -> None:
        hogs = job("hog", 2, request=Resources(1_000, GIB, {"gpu": 3}), seconds=1_000)
        late = job("late", 1, request=Resources(500, GIB, {"gpu": 2}), submit=5)
        spec = make(engine, [hogs, late])
        remedy = remedy_of(spec, "late/0")
        assert gets_machine(with_more_machines(spec, remedy), "late/0")

    def test_as_many_machines_as_all_waiting_tasks_need(self, engine: str) -> None:
        spec = make(
            engine, [job("hog", 8, **HOG), job("late", 9, cpu=3_000, submit=5, seconds=500)]
        )
        for task in ("late/0", "late/8"):
            remedy = remedy_of(spec, task)
            assert gets_machine(with_more_machines(spec, remedy), task)

    def test_asking_for_so_much_less(self, engine: str) -> None:
        hogs = job("hog", 2, request=Resources(1_000, GIB, {"gpu": 3}), seconds=1_000)
        late = job("late", 1, request=Resources(500, GIB, {"gpu": 2}), submit=5)
        spec = make(engine, [hogs, late])
        less = re.search(r"or (\d+) gpu less", remedy_of(spec, "late/0"))
        assert less
        request = Resources(500, GIB, {"gpu": 2 - int(less[1])})
        assert gets_machine(changed(spec, "late", request=request), "late/0")

    def test_dropping_a_requirement(self, engine: str) -> None:
        hogs = job("hog", 2, cpu=8_000, memory=GIB, seconds=1_000)
        late = job("late", 2, submit=5, requires={"accel": "a100"}, seconds=500)
        spec = make(engine, [hogs, late])
        remedy = remedy_of(spec, "late/1")
        assert "no requirement of accel=a100: elsewhere there is room for" in remedy
        assert gets_machine(changed(spec, "late", requires={}), "late/1")
        assert gets_machine(with_more_machines(spec, remedy), "late/1")

    def test_a_requirement_is_not_dropped_where_that_would_not_be_enough(self, engine: str) -> None:
        hogs = job("hog", 2, cpu=8_000, memory=GIB, seconds=1_000)
        late = job("late", 9, cpu=4_000, submit=5, requires={"accel": "a100"}, seconds=500)
        remedy = remedy_of(make(engine, [hogs, late]), "late/1")
        assert "enough for all 9 tasks that wait" in remedy
        assert "no requirement" not in remedy


@pytest.mark.parametrize("engine", [name for name in WITH_GANGS if name != "mesos"])
def test_room_for_a_whole_gang(engine: str) -> None:
    hogs = job("hog", 1, request=Resources(1_000, GIB, {"gpu": 4}), seconds=1_000)
    crew = job(
        "crew", 2, request=Resources(1_000, GIB, {"gpu": 4}), submit=5, gang=True, seconds=500
    )
    spec = make(engine, [hogs, crew])
    remedy = remedy_of(spec, "crew/0")
    more = with_more_machines(spec, remedy)
    assert all(gets_machine(more, f"crew/{index}") for index in range(2))


@pytest.mark.parametrize("engine", ENGINE_NAMES)
class TestNever:
    def test_a_giant_that_asks_for_so_much_less(self, engine: str) -> None:
        spec = make(engine, [job("giant", 1, cpu=9_000)])
        less = re.search(r"ask for (\d+) cores? less", remedy_of(spec, "giant/0"))
        assert less
        smaller = changed(spec, "giant", request=Resources(9_000 - 1_000 * int(less[1]), GIB))
        assert gets_machine(smaller, "giant/0")

    def test_a_machine_as_large_as_it_says(self, engine: str) -> None:
        spec = make(engine, [job("giant", 1, cpu=9_000)])
        large = re.search(r"add a machine with (\d+) cores", remedy_of(spec, "giant/0"))
        assert large
        added = Machine("large", Resources(1_000 * int(large[1]), 8 * GIB))
        more = structs.replace(spec.cell, machines=(*spec.cell.machines, added))
        assert gets_machine(structs.replace(spec, cell=more), "giant/0")


@pytest.mark.parametrize("engine", WITH_GANGS)
def test_a_gang_of_so_many_tasks_fewer(engine: str) -> None:
    request = Resources(1_000, GIB, {"gpu": 4})
    spec = make(engine, [job("crew", 5, request=request, gang=True)])
    fewer = re.search(r"(\d+) tasks fewer, or machines for \1 more", remedy_of(spec, "crew/0"))
    assert fewer
    smaller = make(engine, [job("crew", 5 - int(fewer[1]), request=request, gang=True)])
    assert gets_machine(smaller, "crew/0")
    larger = make(engine, list(spec.jobs), cell=machines(large=2 + int(fewer[1])))
    assert gets_machine(larger, "crew/4")


class TestConstraints:
    ALONE = "web -> {web, 0, 0} in machine hard"

    def web(self, count: int, **changes: Any) -> SimulatedJob:
        fields: dict[str, Any] = {
            "kind": "service",
            "tags": ("web",),
            "seconds": None,
            "constraints": (parse_constraint(self.ALONE),),
            **changes,
        }
        return job("web", count, **fields)

    @pytest.mark.parametrize("engine", KEEPING)
    def test_tasks_that_are_too_many_to_be_apart(self, engine: str) -> None:
        spec = make(engine, [self.web(6)])
        run = argosy.run(spec)
        why = next(
            (w for w in map(run.why, (f"web/{n}" for n in range(6))) if w.state == "pending"), None
        )
        assert why is not None
        fewer = re.search(r"(\d+) tasks? fewer", why.remedy)
        assert fewer
        smaller = make(engine, [self.web(6 - int(fewer[1]))])
        assert all(gets_machine(smaller, f"web/{n}") for n in range(6 - int(fewer[1])))
        soft = parse_constraint(self.ALONE.removesuffix(" hard"))
        softer = changed(spec, "web", constraints=(soft,))
        assert all(gets_machine(softer, f"web/{n}") for n in range(6))

    @pytest.mark.parametrize("engine", KEEPING)
    def test_relaxing_the_constraint_that_is_named(self, engine: str) -> None:
        apart = parse_constraint("web -> {db, 0, 0} in machine hard")
        dbs = job(
            "db",
            4,
            tags=("db",),
            kind="service",
            seconds=None,
            constraints=(parse_constraint("db -> {db, 0, 0} in machine hard"),),
        )
        spec = make(engine, [dbs, self.web(2, constraints=(apart,), submit=30)])
        run = argosy.run(spec)
        why = run.why("web/0")
        assert why.state == "pending"
        assert "'web -> {db, 0, 0} in machine hard' cannot be kept" in why.sentence
        assert why.remedy == "relax the hard constraint 'web -> {db, 0, 0} in machine hard'"
        soft = structs.replace(apart, hard=False)
        assert gets_machine(changed(spec, "web", constraints=(soft,)), "web/0")


@pytest.mark.parametrize("engine", FLOW)
@pytest.mark.parametrize("policy", ["multi-dimensional", "load-spreading", "quincy"])
def test_so_much_more_precedence(engine: str, policy: str) -> None:
    settings = {} if engine == "quincy" else {"policy": policy}
    hogs, late = job("hog", 8, **HOG), job("late", 1, cpu=3_000, submit=5, seconds=500)
    spec = make(engine, [hogs, late], settings=settings)
    why = argosy.run(spec).why("late/0")
    assert why.state == "pending"
    wanted = re.search(r"([\d,]+) more precedence", why.remedy)
    if wanted is None:
        assert "precedence" not in why.remedy
        return
    more = changed(spec, "late", precedence=int(wanted[1].replace(",", "")))
    assert gets_machine(more, "late/0")


def test_a_higher_limit() -> None:
    entry = FleetEntry(
        name="s",
        engine="omega",
        settings={"t_job": 1_000},
        limits=SchedulerLimits(resources=Resources(500, 0)),
    )
    spec = scenario("omega", [job("a", 1)], cell=cell(2), fleet=(entry,), horizon=HORIZON)
    why = argosy.run(spec).why("a/0")
    assert "the scheduler's limit would be exceeded by 0.5 cores" in why.sentence
    assert why.remedy.startswith("raise the scheduler's limit")
    limits = SchedulerLimits(resources=Resources(1_000, GIB))
    higher = structs.replace(spec, fleet=(structs.replace(entry, limits=limits),))
    assert gets_machine(higher, "a/0")
