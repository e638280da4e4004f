"""Points that are measured with a clock: what is put together of the measurements that are given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from argosy.engines.families.flow.tasks import PENDING, RUNNING
from argosy.model.jobs import task_number
from argosy.model.tasks import TaskArray
from argosy.papers.experiment import DONE, ExperimentPoint, Parameter
from argosy.papers.firmament import replays, solving
from argosy.papers.firmament import world as firmament_world
from argosy.papers.firmament.workload import Load, ReplayedWorkload
from argosy.papers.firmament.world import FirstPlacements, MeasuredReplay
from argosy.papers.medea import latency as medea_latency
from argosy.papers.medea import tasks as medea_tasks
from argosy.papers.medea.trial import MB
from argosy.testing.builders import job

SECOND = 1_000_000


def point(
    paper: str, figure: str, scale: str = "smoke", **parameters: Parameter
) -> ExperimentPoint:
    return ExperimentPoint(paper=paper, figure=figure, parameters=parameters, seed=1, scale=scale)


class Cell:
    """Stands for a cell that is filled by cycles: each takes a second per container it is given."""

    def __init__(self, machines: int, sets: int, algorithm: str, seed: int) -> None:
        self.given = (machines, sets, algorithm, seed)
        self.cycles: list[list[tuple[int, int, int]]] = []
        self.free = np.zeros((machines, 1), np.int64)
        self.spent = 0.0
        self.limits: Any = None
        Cell.last = self

    last: Any = None
    step = 0.5

    @property
    def used(self) -> float:
        return self.step * len(self.cycles)

    def submit(self, roles: Any, texts: Any, app: int) -> list[Any]:
        from argosy.solvers.placement import ContainerKind

        return [
            ContainerKind(app, frozenset(role.split()), np.array([memory]), count)
            for role, memory, count in roles
        ]

    def place(self, kinds: Any) -> None:
        self.cycles.append([(kind.app, int(kind.request[0]) // MB, kind.count) for kind in kinds])
        self.spent += len(kinds)


@pytest.mark.parametrize(
    ("design", "share", "containers", "taken"),
    [
        # Two instances of 13 containers and 23 GB, and for each share as many tasks of 1 GB.
        ("medea", 0.2, 26, 180),
        ("medea", 0.8, 26, 10),
        ("medea", 0.1, 26, 410),
        ("ilp-all", 0.2, 26 + 180, 0),
        ("ilp-all", 0.8, 26 + 10, 0),
    ],
)
def test_one_scheduler_takes_all_containers_and_two_share_them(
    design: str, share: float, containers: int, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    took: list[int] = []
    monkeypatch.setattr(medea_latency, "PlacementTrial", Cell)
    monkeypatch.setattr(medea_latency, "_take", lambda cell, tasks: took.append(tasks))
    result = medea_latency.designs(point("medea", "11b", "quick", design=design, share=share))
    cell = Cell.last
    assert cell.given == (256, 9, "ilp-solved", 1)
    assert (cell.limits.machines, cell.limits.places, cell.limits.nodes) == (256, 10**9, 500)
    # Half of the cell is full after one cycle, and all of it after two.
    assert [len(each) for each in cell.cycles] == [containers] * 2
    assert took == ([taken] * 2 if taken else [])
    assert all(count == 1 for each in cell.cycles for _, _, count in each)
    assert {app for app, _, _ in cell.cycles[0][:26]} == {0, 1}
    tasks = cell.cycles[0][26:]
    assert {memory for _, memory, _ in tasks} <= {1}
    # Tasks come in jobs of ten.
    assert sorted({app for app, _, _ in tasks}) == list(range(2, 2 + len(tasks) // 10))
    assert result.values == {
        "milliseconds": 500.0 * containers, "median": 500.0 * containers, DONE: 1.0,
    }  # fmt: skip
    assert result.series == {"cycles": [500.0 * containers] * 2}


def test_a_cell_that_takes_no_more_is_done_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stuck(Cell):
        @property
        def used(self) -> float:
            return min(0.45, 0.45 * len(self.cycles))

    monkeypatch.setattr(medea_latency, "PlacementTrial", Stuck)
    monkeypatch.setattr(medea_latency, "_take", lambda cell, tasks: None)
    result = medea_latency.designs(point("medea", "11b", design="medea", share=0.2))
    assert Cell.last.given == (25, 2, "ilp-solved", 1)
    assert len(Cell.last.cycles) == 2
    assert result[DONE] == pytest.approx(0.5)


@pytest.mark.parametrize("engine", ["yarn", "medea"])
def test_tasks_wait_until_the_last_of_their_job_is_placed(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of tasks, those that came from the beginning at 30 s on; of applications, those that came."""
    rows = [
        # Kind, tasks, submitted and placed in seconds.
        ("batch", 9, 0, 1),
        ("batch", 3, 30, 31),
        ("batch", 1, 40, 44),
        ("batch", 4, 50, -1),
        ("lra", 13, 35, 39),
        ("lra", 13, 36, -1),
    ]
    submit, placed = (np.array([row[at] * SECOND for row in rows]) for at in (2, 3))
    placed[placed < 0] = -1
    made: list[Any] = []

    board = SimpleNamespace(job_columns=lambda: (submit, submit, placed, placed))
    counts = SimpleNamespace(counts=[row[1] for row in rows])
    ran = SimpleNamespace(
        kinds=[row[0] for row in rows],
        host=SimpleNamespace(board=board, jobs=counts),
        run=lambda: made.append("run"),
    )

    def world(load: Load, name: str, jobs: Any) -> Any:
        made.append((load, name, [each.id for each in jobs]))
        return ran

    monkeypatch.setattr(medea_tasks, "_world", world)
    monkeypatch.setattr(medea_tasks, "found", lambda load: iter([job("there")]))
    arriving = [job("x", 100, submit=31), job("y", 160, submit=89)]
    monkeypatch.setattr(medea_tasks, "arriving", lambda load: iter(arriving))
    result = medea_tasks.beside_applications(point("medea", "11c", engine=engine))
    (load, name, ids), _ = made
    assert name == engine
    assert load == Load(machines=40, utilisation=0.6, speed_up=200.0, seconds=60.0)
    # A tenth of 260 tasks: two instances of 13 containers.
    lras = ["lra-0", "lra-1"] if engine == "medea" else []
    assert sorted(ids) == sorted(["there", "x", "y", *lras])
    assert ids[0] == "there"
    waits = [1_000.0] * 3 + [4_000.0]
    assert [result[f"p{share}"] for share in (5, 25, 50, 75, 99)] == pytest.approx(
        [float(np.percentile(waits, share)) for share in (5, 25, 50, 75, 99)]
    )
    assert result["applications"] == 1
    assert result["containers"] == 13 / 8
    assert result[DONE] == 0.5
    assert len(result.series["waits"]) == 99
    placed[4] = -1
    assert medea_tasks.beside_applications(point("medea", "11c", engine=engine))[DONE] == 0.0


def replayed(**fields: Any) -> Any:
    usual: dict[str, Any] = {
        "latencies": np.array([1.0, 2.0, 3.0]), "with_last": np.array([2.0, 3.0]),
        "arrived": 4, "placed": 3, "spent": [(0.0, 0.5), (1.0, 0.25)], "busy": 0.25,
        "world": None,
    }  # fmt: skip
    return MeasuredReplay(**{**usual, **fields})


@pytest.fixture
def replay(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What stands for a replay; the rest is what is measured of its graph and its tasks."""
    made: dict[str, Any] = {"done": replayed(), "overload": None, "asked": []}

    def drawn(load: Load) -> ReplayedWorkload:
        return ReplayedWorkload(load=load, jobs=[], overload=made["overload"])

    def run(load: Load, settings: Any, engine: str, workload: Any) -> Any:
        made["asked"].append((load, settings["data"]["threshold"], engine))
        return made["done"]

    graph = SimpleNamespace(network=SimpleNamespace(arcs=77))
    monkeypatch.setattr(replays, "drawn", drawn)
    monkeypatch.setattr(replays, "replay", run)
    monkeypatch.setattr(replays, "_graph", lambda world: graph)
    monkeypatch.setattr(replays, "_traffic", lambda world, data: (3_600, 900.0))
    monkeypatch.setattr(replays, "_waiting", lambda world: (5, 6))
    monkeypatch.setattr(replays, "_locality", lambda world, data: 0.5)
    return made


TOLD: dict[str, Parameter] = {"scheduler": "firmament", "machines": 9, "seconds": 10.0}


def test_a_replay_is_measured_by_its_latencies_rounds_and_traffic(replay: dict[str, Any]) -> None:
    result = replays.latency(point("firmament", "14", **TOLD))
    assert result.values == {
        "p25": 1.5, "p50": 2.0, "p75": 2.5, "p99": pytest.approx(2.98), "largest": 3.0,
        "with_last.p50": 2.5, "busy": 0.25, "round": 1.25, "placed": 0.75, "arcs": 77.0,
        "locality": 0.5, "read_an_hour": pytest.approx(3_600 * 360),
        "fetched_an_hour": pytest.approx(900 * 360), "machines": 9.0,
        "waiting.services": 5.0, "waiting.others": 6.0, DONE: 0.75,
    }  # fmt: skip
    assert list(result.series) == ["latency", "round", "share"]
    assert result.series["share"] == [float(share) for share in range(1, 101)]
    assert (result.series["latency"][49], result.series["latency"][99]) == (2.0, 3.0)
    assert result.series["round"][99] == 0.5
    ((load, threshold, engine),) = replay["asked"]
    assert (load.machines, threshold, engine) == (9, 0.14, "firmament")


def test_what_is_oversubscribed_is_not_to_be_placed_as_a_whole(replay: dict[str, Any]) -> None:
    full = replays.latency(point("firmament", "16", **TOLD, utilisation=1.0))
    assert DONE not in full.values
    replay["overload"] = (0.5, 1.5)
    surge = replays.latency(point("firmament", "16", **TOLD, utilisation=0.9, surge=0.1))
    assert DONE not in surge.values
    assert (surge["calm"], surge["surge"]) == (0.5, 0.25)
    assert surge["recovery"] == 0.0
    assert surge.series["at"] == [0.0, 1.0]
    assert surge.series["spent"] == [0.5, 0.25]


def test_a_replay_in_which_nothing_came_has_measures_of_nothing(replay: dict[str, Any]) -> None:
    replay["done"] = replayed(
        latencies=np.empty(0), with_last=np.empty(0), arrived=0, placed=0, spent=[], busy=0.0
    )
    result = replays.latency(point("firmament", "14", **TOLD))
    assert (result["with_last.p50"], result["round"], result["placed"]) == (0.0, 0.0, 0.0)
    assert set(result.series["latency"]) == {0.0}


def numbers(*pairs: tuple[int, int]) -> TaskArray:
    return np.array([task_number(of, index) for of, index in pairs], np.int64)


def test_waiting_tasks_are_counted_by_services_and_others(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = np.zeros(5, [("number", np.int64), ("state", np.int8)])
    tasks["number"] = numbers((0, 0), (1, 0), (1, 1), (2, 0), (2, 1))
    tasks["state"] = [PENDING, PENDING, PENDING, PENDING, RUNNING]
    monkeypatch.setattr(replays, "_graph", lambda world: SimpleNamespace(tasks=tasks))
    world: Any = SimpleNamespace(is_service=[False, True, False])
    assert replays._waiting(world) == (2, 2)


def test_locality_is_of_what_the_running_tasks_read(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = np.zeros(3, [("number", np.int64), ("state", np.int8), ("machine", np.int64)])
    tasks["number"] = numbers((0, 0), (1, 0), (2, 0))
    tasks["state"] = [RUNNING, PENDING, RUNNING]
    tasks["machine"] = [4, 5, 6]
    asked: list[Any] = []

    def read(world: Any, data: Any, which: TaskArray, machines: Any) -> tuple[int, float]:
        asked.append((which.tolist(), machines.tolist()))
        return asked_for.pop(0)

    asked_for = [(80, 20.0), (0, 0.0)]
    monkeypatch.setattr(replays, "_graph", lambda world: SimpleNamespace(tasks=tasks))
    monkeypatch.setattr(replays, "_input", read)
    nothing: Any = None
    assert replays._locality(nothing, {}) == 0.75
    assert replays._locality(nothing, {}) == 0.0
    assert asked[0] == (numbers((0, 0), (2, 0)).tolist(), [4, 6])


def test_the_first_choice_of_a_task_is_where_its_flow_goes() -> None:
    cluster: Any = SimpleNamespace(first_task=2)
    network: Any = SimpleNamespace(
        tails=lambda: np.array([2, 2, 3, 4, 0]),
        heads=lambda: np.array([0, 1, 1, 0, 1]),
        flows=lambda: np.array([0, 1, 1, 0, 3]),
    )
    assert solving._choices(cluster, network).tolist() == [1, 1, -1]


def test_input_is_of_batch_tasks_that_came_and_on_the_machine_that_they_run_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Job 0 was there before, job 1 is a service; tasks of jobs 2 and 3 have four and two blocks."""
    asked: list[Any] = []

    class Stored:
        def __init__(self, settings: Any, racks: Any) -> None:
            asked.append((settings.most_blocks, racks))

        def of(self, tasks: TaskArray, expected: Any) -> Any:
            asked.append((tasks.tolist(), expected.tolist()))
            return SimpleNamespace(
                bytes=np.array([400, 300]),
                blocks=np.array([4, 2]),
                machine_tasks=np.array([0, 0, 1, 1]),
                machines=np.array([7, 8, 7, 9]),
                machine_blocks=np.array([1, 3, 2, 1]),
            )

    monkeypatch.setattr(replays, "LocalData", Stored)
    monkeypatch.setattr(replays, "MachineVertices", lambda view: SimpleNamespace(racks="racks"))
    submit = np.array([0, 5, 5, 6])
    world: Any = SimpleNamespace(
        expected=[50, 0, 60, 70],
        host=SimpleNamespace(
            view=None, board=SimpleNamespace(job_columns=lambda: (submit, None, None, None))
        ),
    )
    tasks = numbers((0, 0), (1, 0), (2, 3), (3, 1))
    machines = np.array([7, 7, 8, 9])
    # Three of four blocks on machine 8, and one of two on machine 9.
    assert replays._input(world, {"most_blocks": 3}, tasks, machines) == (700, 700 - 300 - 150)
    assert asked == [(3, "racks"), (numbers((2, 3), (3, 1)).tolist(), [60, 70])]
    assert replays._input(world, {}, tasks[:2], machines[:2]) == (0, 0.0)


def test_a_replay_counts_what_comes_from_the_beginning_to_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It begins at 30 s, lasts for 10 s, and stops at 50 s; nobody placed two of the last job's."""
    submit = np.array([0, 30, 31, 36]) * SECOND
    placed = np.array([1, 34, -1, -1]) * SECOND
    placed[placed < 0] = -1
    first = FirstPlacements(
        numbers((0, 0), (0, 1), (1, 0), (1, 1), (2, 1)),
        np.array([1, 1, 32, 34, 40]) * SECOND,
        np.array([0, 0, 1, 2, 3]),
    )
    host = SimpleNamespace(
        board=SimpleNamespace(job_columns=lambda: (submit, None, placed, None)),
        jobs=SimpleNamespace(counts=[2, 2, 3, 1]),
        runtime=SimpleNamespace(now=50 * SECOND),
        decisions=SimpleNamespace(first=lambda: first),
        decided=[
            (29 * SECOND, 9 * SECOND),
            (30 * SECOND, 1 * SECOND),
            (39 * SECOND, 3 * SECOND),
            (40 * SECOND, 7 * SECOND),
        ],
    )
    made: list[Any] = []

    def measured_world(*given: Any) -> Any:
        made.append(given)
        return SimpleNamespace(host=host, run=lambda: made.append("run"))

    monkeypatch.setattr(firmament_world, "measured_world", measured_world)
    load = Load(machines=4, seconds=10.0)
    jobs = [job("a")]
    done = firmament_world.replay(
        Load(machines=9), {"x": 1}, "quincy", ReplayedWorkload(load=load, jobs=jobs)
    )
    (of, settings, engine, given, begin), ran = made
    assert (of, settings, engine, list(given), begin) == (
        load, {"x": 1}, "quincy", jobs, 30 * SECOND,
    )  # fmt: skip
    assert ran == "run"
    assert (done.arrived, done.placed) == (6, 3)
    # Those that have no place wait until the run stops.
    assert done.latencies.tolist() == [2.0, 4.0, 9.0, 19.0, 19.0, 14.0]
    assert done.with_last.tolist() == [4.0, 4.0, 19.0, 19.0, 19.0, 14.0]
    assert done.spent == [(0.0, 1.0), (9.0, 3.0)]
    assert done.busy == pytest.approx(0.4)
