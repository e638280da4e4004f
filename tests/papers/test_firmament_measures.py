"""What is measured in the Firmament paper's experiments, on runs and jobs that are given."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from argosy.model.jobs import BATCH, SERVICE
from argosy.model.random import Random
from argosy.model.truth import group_with_truth, simulated_job
from argosy.papers.experiment import DONE, ExperimentPoint, Parameter, PointResult
from argosy.papers.firmament import links, replays, solving, traces, workload
from argosy.papers.firmament.links import LINK, LinkWorld
from argosy.papers.firmament.replays import settings_of
from argosy.papers.firmament.transfers import Transfers
from argosy.papers.firmament.workload import SLOT, Load
from argosy.papers.firmament.world import MeasuredReplay, PlacementRecorder
from argosy.solvers.flow.quincy import QuincyShape

SECOND = 1_000_000


def point(figure: str, seed: int = 1, **parameters: Parameter) -> ExperimentPoint:
    return ExperimentPoint(
        paper="firmament", figure=figure, parameters=parameters, seed=seed, scale="smoke"
    )


def replayed(spent: list[tuple[float, float]], latencies: tuple[float, ...] = ()) -> MeasuredReplay:
    nothing: Any = None
    found = np.array(latencies, np.float64)
    return MeasuredReplay(found, found, 0, 0, spent, 0.0, nothing)


def test_rounds_are_those_that_began_within_a_time() -> None:
    done = replayed([(0.0, 1.0), (5.0, 3.0), (10.0, 8.0)])
    assert done.rounds == 3
    assert done.mean_round(0, 10) == 2.0
    assert done.mean_round(0, 10.1) == 4.0
    assert done.mean_round(5, 6) == 3.0
    assert done.mean_round(1, 5) == 0.0
    assert done.last_slow_round(5, 2.9) == 18.0
    assert done.last_slow_round(5, 3.0) == 18.0
    assert done.last_slow_round(5, 8.0) == 5
    assert done.last_slow_round(11, 0.0) == 11
    assert done.round_percentile(50) == 3.0
    assert replayed([]).round_percentile(50) == 0.0


def test_percentiles_of_latencies() -> None:
    done = replayed([], (4.0, 1.0, 2.0))
    assert [done.percentile(share) for share in (0, 50, 100)] == [1.0, 2.0, 4.0]
    assert replayed([]).percentile(99) == 0.0


def test_recovery_is_from_the_end_of_an_overload_to_that_of_the_last_slow_round() -> None:
    """Slow: over five times as long as those before."""
    spent = [(0.0, 1.0), (5.0, 3.0), (10.0, 20.0), (30.0, 10.0), (40.0, 10.1), (60.0, 9.0)]
    assert replays._coping(replayed(spent), 10.0, 30.0) == {
        "calm": 2.0,
        "surge": 20.0,
        "recovery": pytest.approx(50.1 - 30),
    }
    assert replays._coping(replayed(spent), 10.0, 45.0)["recovery"] == 0.0


def test_a_task_is_placed_first_where_it_was_placed_first() -> None:
    nothing: Any = None
    recorder = PlacementRecorder(nothing, nothing)
    for now, tasks, machines in ((5, [3, 1], [30, 10]), (7, [1, 2], [11, 20]), (9, [3], [31])):
        recorder.placed(now, np.array(tasks), np.array(machines), "s", None)
    first = recorder.first()
    assert first.tasks.tolist() == [1, 2, 3]
    assert first.times.tolist() == [5, 7, 5]
    assert first.machines.tolist() == [10, 20, 30]
    assert PlacementRecorder(nothing, nothing).first().tasks.tolist() == []


@pytest.mark.parametrize(
    ("scheduler", "engine", "more"),
    [
        ("firmament", "firmament", {}),
        ("race", "firmament", {"algorithm": "race"}),
        ("relaxation", "firmament", {"algorithm": "relaxation", "warm": False}),
        ("cost-scaling", "quincy", {}),
    ],
)
@pytest.mark.parametrize(("threshold", "most"), [(0.14, 10), (0.1, 10), (0.02, 64)])
def test_settings_of_schedulers_and_of_preferences(
    scheduler: str, engine: str, more: dict[str, Any], threshold: float, most: int
) -> None:
    assert settings_of(point("15", scheduler=scheduler, threshold=threshold)) == (
        engine,
        {
            "policy": "quincy",
            "data": {
                "rate": 2**20, "most_blocks": 8, "threshold": threshold, "most_preferences": most,
            },
            "explain_arcs": 0,
            "migration": 50,
            "services": 100_000,
            "retry": 10_000_000,
            **more,
        },
    )  # fmt: skip
    assert settings_of(point("14", scheduler=scheduler))[1]["data"]["threshold"] == 0.14


def test_loads_of_points_and_what_is_usual() -> None:
    assert replays.load_of(point("14", 5, machines=7, seconds=3.0)) == Load(
        machines=7, utilisation=0.9, speed_up=1.0, seconds=3.0, surge=0.0, services=0.02, seed=5
    )
    told = point("16", machines=7, seconds=3.0, utilisation=0.97, speed_up=10.0, surge=0.08)
    assert replays.load_of(told) == Load(
        machines=7, utilisation=0.97, speed_up=10.0, seconds=3.0, surge=0.08, services=0.02
    )


def test_a_trace_has_a_time_of_overload_only_where_a_surge_was_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []

    def recorded(directory: Any, load: Load) -> workload.ReplayedWorkload:
        asked.append((str(directory), load.surge))
        return workload.ReplayedWorkload(load=load, jobs=[], overload=(1.0, 2.0))

    monkeypatch.setattr(replays, "recorded", recorded)
    told = {"machines": 7, "seconds": 4.0, "trace": "there"}
    assert replays.workload_of(point("16", **told, surge=0.1)).overload == (1.0, 2.0)
    assert replays.workload_of(point("14", **told)).overload is None
    assert asked == [("there", 0.0)] * 2
    drawn = replays.workload_of(point("16", machines=7, seconds=4.0, surge=0.1))
    assert drawn.overload == (1.0, 2.0)
    assert replays.workload_of(point("14", machines=7, seconds=4.0)).overload is None


@pytest.mark.parametrize(
    ("machines", "slots", "total", "each"),
    [(4, 12.0, 48, [12] * 4), (4, 1.5, 6, [1, 2, 1, 2]), (3, 0.5, 1, [0, 1, 0])],
)
def test_machines_have_as_many_slots_as_the_mean_says(
    machines: int, slots: float, total: int, each: list[int]
) -> None:
    load = Load(machines=machines, slots=slots)
    assert load.total_slots == total
    assert [load.machine_slots(number) for number in range(machines)] == each
    cell = workload.cluster(load)
    assert [machine.capacity.cpu for machine in cell.machines] == [1_000 * n for n in each]
    assert [machine.capacity.memory for machine in cell.machines] == [4 * 2**30 * n for n in each]


def test_jobs_are_at_most_a_hundredth_of_the_cluster() -> None:
    assert Load(machines=1).largest_job == 2
    assert Load(machines=100).largest_job == 12
    assert Load(machines=12_500).largest_job == 1_500
    assert Load(machines=10**6).largest_job == 20_000
    assert Load(machines=100, utilisation=0.97).live == 1_164


def test_machines_are_in_racks_of_48() -> None:
    cell = workload.cluster(Load(machines=100))
    racks = [machine.joins["rack"][0] for machine in cell.machines]
    assert (racks[0], racks[47], racks[48], racks[96], racks[99]) == (
        "rack-0", "rack-0", "rack-1", "rack-2", "rack-2",
    )  # fmt: skip
    assert cell.groups[0].sets == ("rack-0", "rack-1", "rack-2")


def test_what_is_there_has_as_many_tasks_as_run_and_half_of_its_jobs_do_not_end() -> None:
    load = Load(machines=500, speed_up=10.0, seed=4)
    jobs = list(workload.found(load))
    assert sum(job.tasks for job in jobs) == 5_400
    services = [job for job in jobs if job.job.kind == SERVICE]
    assert len(services) / len(jobs) == pytest.approx(0.5, abs=0.06)
    for job in jobs:
        (group,), (truth,) = job.groups, job.truth
        assert (job.submit, group.request, 1 <= group.count <= 60) == (0, SLOT, True)
        if job.job.kind == SERVICE:
            assert (truth.durations, group.estimate) == ((), None)
        else:
            (left,) = truth.durations
            assert group.estimate is not None
            assert 0 <= left - 30 * SECOND <= group.estimate
    # Longer tasks are seen in proportion: a log-normal distribution's median times e to sigma².
    lengths = [job.groups[0].estimate / SECOND for job in jobs if job.job.kind == BATCH]
    assert math.log(np.median(lengths) * 10 / 420) == pytest.approx(workload.SIGMA**2, abs=0.5)
    remains = [
        (job.truth[0].durations[0] / SECOND - 30) / (job.groups[0].estimate / SECOND)
        for job in jobs
        if job.job.kind == BATCH
    ]
    assert np.mean(remains) == pytest.approx(0.5, abs=0.05)


def test_a_share_of_the_arriving_jobs_are_services() -> None:
    load = Load(machines=500, speed_up=50.0, seconds=60.0, services=0.25)
    early, *jobs = workload.arriving(load)
    assert (early.id, early.submit, early.tasks) == ("early", 25 * SECOND, 1)
    assert early.truth[0].durations == (SECOND,)
    assert [job.id for job in jobs[:2]] == ["job-0", "job-1"]
    services = [job for job in jobs if job.job.kind == SERVICE]
    assert len(services) / len(jobs) == pytest.approx(0.25, abs=0.05)
    assert all(job.truth[0].durations == () for job in services)
    assert not any(job.job.kind == SERVICE for job in workload.arriving(Load(machines=50)))
    assert max(job.submit for job in jobs) <= 90 * SECOND
    plain = list(workload.arriving(Load(machines=500, speed_up=50.0, seconds=60.0)))
    # Kinds have a stream of their own.
    assert [job.submit for job in plain] == [job.submit for job in (early, *jobs)]


def test_a_surge_is_of_jobs_as_large_as_they_can_be() -> None:
    jobs = workload._surge(Load(machines=100, seconds=8.0, surge=0.03))
    assert [(job.id, job.tasks) for job in jobs] == [
        ("surge-0", 12), ("surge-1", 12), ("surge-2", 12),
    ]  # fmt: skip
    assert workload._surge(Load(machines=100, surge=0.02))[-1].tasks == 12
    assert workload._surge(Load(machines=100, surge=0.025))[-1].tasks == 6
    assert workload._surge(Load(machines=100)) == []


def slots_job(name: str, count: int, submit: int, *durations: int) -> Any:
    return simulated_job(name, group_with_truth(count, SLOT, durations), submit=submit)


def test_slots_are_wanted_from_submission_to_the_end_of_each_task() -> None:
    jobs = [slots_job("a", 2, 10, 5, 8), slots_job("b", 1, 12), slots_job("c", 1, 15, 3)]
    times, wanted = traces._demand(jobs)
    assert times.tolist()[:-1] == [10, 10, 12, 15, 15, 18, 18]
    assert times[-1] == np.iinfo(np.int64).max
    assert wanted.tolist() == [1, 2, 3, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # In seconds after the beginning at 30: from when on how many are wanted.
        ([(5, 3), (8, 2), (10, 4), (20, 2), (30, 0)], (10.0, 20.0)),
        ([(5, 3), (8, 2), (10, 4), (13, 2), (30, 0)], (5.0, 8.0)),
        ([(5, 3), (6, 4), (9, 3), (12, 2)], (5.0, 12.0)),
        ([(5, 2), (30, 0)], None),
        # There is nothing before it to compare with.
        ([(-3, 3), (8, 0)], None),
        ([(0, 3), (8, 0)], None),
        ([(35, 3), (90, 0)], (35.0, 40.0)),
        ([(45, 3), (90, 0)], None),
    ],
)
def test_the_longest_overload_is_within_the_time_of_the_replay(
    changes: list[tuple[int, int]], expected: tuple[float, float] | None
) -> None:
    """Of two slots, for 40 s."""
    times = np.array([(30 + at) * SECOND for at, _ in changes])
    wanted = np.array([count for _, count in changes])
    assert traces._overload(times, wanted, 2, 70 * SECOND) == expected


def test_jobs_of_a_trace_take_slots_and_run_faster() -> None:
    ending = simulated_job(
        "a",
        group_with_truth(2, SLOT, (40, 20)),
        group_with_truth(1, SLOT, ()),
        submit=100,
        kind=SERVICE,
    )
    first, endless = traces._in_slots(ending, 10.0)
    begin = 30 * SECOND
    assert (first.id, first.submit, first.job.kind) == ("a", begin + 10, SERVICE)
    assert first.truth[0].durations == (4, 2)
    assert (endless.id, endless.tasks, endless.submit) == ("a-endless", 1, begin + 10)
    assert endless.truth[0].durations == ()
    there = simulated_job("b", group_with_truth(3, SLOT, (40, 20, 3)), kind=BATCH)
    (only,) = traces._in_slots(there, 10.0)
    # It has what is left of it from the beginning on, and is placed before.
    assert only.submit == 0
    assert only.truth[0].durations == (begin + 4, begin + 2, begin + 1)
    assert only.groups[0].estimate == 7 // 3


def test_a_link_s_room_is_shared_among_its_streams_only() -> None:
    """The first machine reads from the second, which sends to the third as well."""
    shared = Transfers([100, 100, 30], [100, 100, 100], 1e9, Random(1))
    for task, (machine, sender) in enumerate(((0, 1), (2, 1), (0, 2))):
        shared.begin(task, machine, 1_000.0, 0)
        shared.under_way[task].sender = sender
    assert shared.next_end() is not None
    assert [stream.rate for stream in shared.under_way.values()] == [50.0, 30.0, 50.0]
    alone = Transfers([100, 50], None, 1e9, Random(1))
    alone.begin(0, 1, 100.0, 0)
    alone.begin(1, 1, 50.0, 0)
    assert alone.next_end() == 2 * SECOND + 1
    assert alone.end_blocks(2 * SECOND + 1) == [(1, 1)]
    # What is left has the link for itself.
    assert alone.next_end() == pytest.approx(3 * SECOND + 1, abs=2)
    assert alone.received == pytest.approx([0.0, 100.0], abs=0.001)


@pytest.mark.parametrize(("receives", "rates"), [(100, [70.0, 30.0]), (60, [60.0, 30.0])])
def test_what_one_stream_leaves_of_a_link_is_for_others_as_far_as_theirs_go(
    receives: int, rates: list[float]
) -> None:
    shared = Transfers([receives, 100, 30], [100, 100, 100], 1e9, Random(1))
    for task, machine in enumerate((0, 2)):
        shared.begin(task, machine, 1_000.0, 0)
        shared.under_way[task].sender = 1
    assert shared.next_end() is not None
    assert [stream.rate for stream in shared.under_way.values()] == rates


def test_the_replica_is_read_whose_link_has_most_left_for_it() -> None:
    def senders(outgoing: list[int]) -> list[int]:
        links = Transfers([100] * 3, outgoing, 1e9, Random(1), replicas=40)
        for task in range(4):
            links.begin(task, 0, 10.0, 0)
        return [stream.sender for stream in links.under_way.values()]

    assert senders([900, 100, 250]) == [2, 2, 1, 2]
    assert sorted(senders([900, 100, 100])) == [1, 1, 2, 2]


def test_there_are_no_streams_without_blocks_nor_ends_in_the_past() -> None:
    links = Transfers([100] * 2, [100] * 2, 100.0, Random(1), streams=3)
    links.begin(0, 0, 150.0, 0)
    assert [stream.block for stream in links.under_way.values()] == [100.0, 50.0]
    links.begin(1, 0, 0.0, 0)
    assert len(links.under_way) == 2
    assert links.next_end() == SECOND + 1
    # Whoever looks later sees an end that is due.
    links.advance(3 * SECOND)
    assert links.next_end() == 3 * SECOND + 1


def test_a_transfer_ends_once_its_streams_have_ended() -> None:
    links_in = Transfers([100] * 2, [100] * 2, 100.0, Random(1), streams=3)
    links_in.begin(5, 0, 250.0, 0)
    assert [stream.block for stream in links_in.under_way.values()] == [100.0, 100.0, 50.0]
    assert links_in._sending == [0, 3]
    ended = list[tuple[int, int]]()
    while (at := links_in.next_end()) is not None:
        ended += links_in.end_blocks(at)
    assert ended == [(5, 0)]
    assert links_in._sending == [0, 0]
    assert links_in.under_way == {}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            {"scheduler": "kube", "background": "no", "links": "receivers"},
            ("kube", {}, 0.3, None, 2),
        ),
        ({"scheduler": "kube", "background": "no", "links": "both"}, ("kube", {}, 0.3, {}, 2)),
        (
            {"scheduler": "idle", "background": "yes", "links": "receivers"},
            ("spread", links.BACKGROUND, 0.3, None, 2),
        ),
        (
            {"scheduler": "firmament", "background": "yes", "links": "both"},
            ("firmament", links.BACKGROUND, 0.3, links.SENT, 2),
        ),
    ],
)
def test_worlds_of_links_are_made_as_points_say(
    told: dict[str, Parameter], expected: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    class Stand:
        responses = (4.0, 2.0, 3.0, 1.0, 5.0)

        def __init__(self, scheduler: str, traffic: Any, seed: int, wanted: float, **more: Any):
            made.append((scheduler, traffic, wanted, more["sent"], more["streams"]))

        def run(self, load: float, jobs: int) -> None:
            made.append((load, jobs))

        def alone(self) -> list[float]:
            return [8.0] * 10

    monkeypatch.setattr(links, "LinkWorld", Stand)
    result = links.run_links(point("19", **told, wanted=0.3, streams=2, load=0.6, jobs=2))
    assert made == [expected, (0.6, 2)]
    if told["scheduler"] == "idle":
        assert result["p50"] == result["p99"] == 8.0
        assert result[DONE] == 1.0
    else:
        assert (result["p50"], result["p80"]) == (3.0, pytest.approx(4.2))
        assert result[DONE] == 0.5
    assert len(result.series["response"]) == 100
    assert result.series["response"][49] == result["p50"]


def test_other_traffic_is_that_of_the_paper() -> None:
    """Seven machines receive 8 Gbit/s and seven 1 Gbit/s; fourteen send 4 Gbit/s, and three the rest."""
    assert sorted(links.BACKGROUND.values()) == [125_000_000] * 7 + [1_000_000_000] * 7
    assert not links.BACKGROUND.keys() & links.SENT.keys()
    assert sum(links.SENT.values()) == pytest.approx(sum(links.BACKGROUND.values()), abs=3)
    assert max(links.SENT) < links.MACHINES


@pytest.mark.parametrize(
    ("scheduler", "wants", "reserved"),
    [
        ("firmament", 0.5, LINK // 4),
        ("firmament-observed", 0.5, 0),
        ("spread", 0, 0),
        ("sparrow", 0, 0),
    ],
)
def test_only_firmament_asks_for_bandwidth_and_knows_of_what_is_reserved(
    scheduler: str, wants: float, reserved: int
) -> None:
    world = LinkWorld(scheduler, {3: LINK // 4}, 1, 0.5)
    assert world._wants == wants * LINK
    free = world.cell.free()[:, world.cell.dimensions.index("bandwidth")]
    assert (free[3], free[4]) == (LINK - reserved, LINK)
    assert len(free) == 40
    assert world.cell.free()[4].tolist()[:2] == [12_000, 60 * 2**30]


def test_jobs_of_five_tasks_come_as_often_as_links_can_carry_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = LinkWorld("spread", {}, 1)
    pushed: list[Any] = []
    monkeypatch.setattr(world, "_push", lambda at, what: pushed.append((at, what)))
    world.run(load=0.5, jobs=400)
    jobs = [(at, what) for at, what in pushed if hasattr(what, "groups")]
    assert len(jobs) == 400
    assert len(pushed) == 401
    # 5 tasks of 4.25 s on average, on half of 40 links.
    assert jobs[-1][0] / SECOND / 400 == pytest.approx(5 * 4.25 / 20, rel=0.12)
    group = jobs[0][1].groups[0]
    assert (group.count, group.request.cpu, group.request.memory) == (5, 1_000, 4 * 2**30)
    assert (dict(group.request.extras), group.estimate) == ({}, 4_250_000)
    sizes = np.array(world.alone())
    assert len(sizes) == 2_000
    assert 3.5 <= sizes.min() < 3.55
    assert 4.95 < sizes.max() <= 5.0


def test_networks_are_as_points_say(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def quincy(shape: QuincyShape, seed: int) -> Any:
        asked.append((shape, seed))
        raise KeyboardInterrupt

    monkeypatch.setattr(solving, "quincy", quincy)
    for told in ({"machines": 7}, {"machines": 8, "utilisation": 0.97, "running": 0.5}):
        with pytest.raises(KeyboardInterrupt):
            solving.network_of(point("7", 3, **told))
    assert asked == [
        (QuincyShape(7, utilisation=0.5, running=0.9), 3),
        (QuincyShape(8, utilisation=0.97, running=0.5), 3),
    ]


def test_a_spread_of_times_is_over_networks_of_following_seeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def scratch(asked: ExperimentPoint) -> PointResult:
        done = 0.0 if asked.seed == 6 else 1.0
        return PointResult({"seconds": float(asked.seed), DONE: done})

    monkeypatch.setattr(solving, "scratch", scratch)
    result = solving.spread_of_scratch(point("3", 5, networks=5))
    assert result.values == {
        "p1": pytest.approx(5.04), "p25": 6.0, "seconds": 7.0, "p75": 8.0,
        "p99": pytest.approx(8.96), "largest": 9.0, DONE: 0.0,
    }  # fmt: skip
    assert solving.spread_of_scratch(point("3", 7, networks=2))[DONE] == 1.0


@pytest.mark.parametrize(("seconds", "times"), [(0.05, 6), (0.1, 6), (0.11, 1)])
def test_a_short_solve_is_repeated(
    seconds: float, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, solved = [0.0], list[int]()

    def process_time() -> float:
        return clock[0]

    def solve() -> Any:
        solved.append(1)
        clock[0] += seconds if len(solved) == 1 else 0.01 * len(solved)
        return SimpleNamespace(is_optimal=True)

    monkeypatch.setattr(solving.time, "process_time", process_time)
    took, _ = solving._repeated(solve)
    assert len(solved) == times
    assert took == pytest.approx(0.04 if times == 6 else seconds)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, (True, True, True, True)),
        ({"prioritised": "no"}, (False, False, True, True)),
        ({"prioritised": "as published"}, (True, False, True, True)),
        ({"refined": "no"}, (True, True, False, True)),
        ({"start": "as published"}, (True, True, True, False)),
    ],
)
def test_heuristics_are_switched_off_one_by_one(
    told: dict[str, Parameter], expected: tuple[bool, ...]
) -> None:
    chosen = solving._heuristics(point("12", **told))
    assert (
        chosen.arc_prioritisation, chosen.depth_first, chosen.price_refine, chosen.fresh_prices
    ) == expected  # fmt: skip
    assert chosen.alpha == solving.Heuristics().alpha
    assert solving._heuristics(point("f", alpha=9)).alpha == 9


def test_load_is_spread_over_machines_by_what_they_hold() -> None:
    made = solving.SpreadExperiment(3, np.array([0, 1, 12]), 4)
    solution = made.network.solve("relaxation", warm=False)
    assert solution.is_optimal
    # The first of the machines takes two, the others as they get more expensive: 0, 10, 10 and 20.
    assert solution.cost == 40
    made.add(30)
    # There is room for 23; others stay where they are for 10,000 each.
    assert made.network.solve("relaxation", warm=False).is_optimal
    cost = sum(10 * n for n in range(12)) + sum(10 * n for n in range(1, 12)) + 11 * 10_000
    assert made.network.solve("cost-scaling", warm=False).cost == cost


@pytest.mark.parametrize(("tasks", "changed"), [(250, 2), (260, 3), (3, 1)])
@pytest.mark.parametrize("drained", [True, False])
def test_a_hundredth_of_the_tasks_go_and_as_many_come(
    tasks: int, changed: int, drained: bool
) -> None:
    made = solving.SpreadExperiment(40, np.zeros(40, np.int64), tasks)
    gone: list[tuple[Any, bool]] = []
    added: list[int] = []
    network: Any = SimpleNamespace(
        all_vertices=made.network.all_vertices,
        remove_vertices=lambda which, drain: gone.append((which, drain)),
    )
    policy: Any = SimpleNamespace(network=network, first_task=made.first_task, add=added.append)
    solving._churn(policy, np.random.default_rng(1), drained)
    ((which, drain),) = gone
    assert len({*which.tolist()}) == len(which) == changed
    assert min(which) >= made.first_task
    assert (drain, added) == (drained, [changed])


@pytest.mark.parametrize(
    ("told", "warm", "cold"),
    [
        ({"algorithm": "cost-scaling"}, 5, 5),
        ({"algorithm": "cost-scaling", "changes": 2}, 2, 2),
        ({"algorithm": "cost-scaling", "changes": 2, "scratch": "no", "drained": "yes"}, 2, 0),
        (
            {"algorithm": "cost-scaling", "first": "relaxation", "changes": 2, "handed": "flow"},
            2,
            0,
        ),
    ],
)
@pytest.mark.parametrize("policy", ["quincy", "load-spreading"])
def test_solves_after_changes_and_from_scratch_are_counted(
    policy: str, told: dict[str, Parameter], warm: int, cold: int
) -> None:
    result = solving.incremental(point("11", policy=policy, machines=8, utilisation=0.5, **told))
    assert len(result.series["warm"]) == warm
    assert len(result.series["cold"]) == cold
    assert ("cold" in result.values) is bool(cold)
    assert result.series["within"] == sorted(result.series["warm"])
    assert result.series["share"] == [100 * (n + 1) / warm for n in range(warm)]
    assert result["warm"] == pytest.approx(float(np.median(result.series["warm"])))
