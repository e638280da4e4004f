"""The Firmament paper's experiments, as small as they get."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from argosy.engines.families.flow.graph import Graph
from argosy.model.errors import TraceError
from argosy.model.jobs import task_number
from argosy.model.random import Random
from argosy.model.truth import group_with_truth, simulated_job
from argosy.model.units import MICROS_PER_SECOND
from argosy.papers.claims import Claim
from argosy.papers.experiment import ExperimentPoint, Findings, PointResult, digest
from argosy.papers.firmament import FIRMAMENT, replays
from argosy.papers.firmament.claims import claims
from argosy.papers.firmament.figures import draw
from argosy.papers.firmament.links import LINK, MACHINES, OBSERVED, SETTINGS, TASKS, LinkWorld
from argosy.papers.firmament.points import FIGURES, SCALES, plan, run_point
from argosy.papers.firmament.traces import recorded
from argosy.papers.firmament.transfers import Transfers
from argosy.papers.firmament.workload import (
    BEGIN,
    RACK,
    READY,
    SLOT,
    Load,
    ReplayedWorkload,
    arriving,
    cluster,
    drawn,
    found,
)
from argosy.papers.firmament.world import MeasuredReplay, replay


def results(*figures: str) -> Findings:
    points = plan("smoke", figures)
    return Findings(points, {digest(point): run_point(point) for point in points})


def test_every_figure_has_points_at_every_scale() -> None:
    for scale in SCALES:
        for figure in FIGURES:
            points = plan(scale, [figure])
            assert points, f"figure {figure} at {scale}"
            assert len({digest(point) for point in points}) == len(points)


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_ends_in_claims(figure: str) -> None:
    run = results(figure)
    made = claims(run, [figure])
    assert made
    assert all(claim.figure == figure and claim.here for claim in made)
    for chart in draw(run, [figure]):
        assert any(line.marks for panel in chart.panels for line in panel.lines)  # type: ignore[union-attr]


def test_a_claim_that_fails_says_so() -> None:
    points = plan("smoke", ["14"])
    slow = {digest(point): PointResult({"p50": 5.0}) for point in points}
    made = claims(Findings(points, slow), ["14"])
    assert [claim.holds for claim in made] == [False, False, False]


def test_two_orders_of_magnitude_are_not_claimed_with_less_than_half_of_them() -> None:
    points = plan("smoke", ["7"])

    def claimed(factor: float) -> bool:
        made = {
            digest(point): PointResult(
                {"seconds": 1.0 if point.parameters["algorithm"] == "relaxation" else factor}
            )
            for point in points
        }
        found = claims(Findings(points, made), ["7"])
        return next(claim.holds for claim in found if claim.id == "7-relaxation")

    assert not claimed(49.0)
    assert claimed(51.0)


def test_a_solver_that_is_not_stopped_misplaces_nothing() -> None:
    for point in plan("smoke", ["10"]):
        result = run_point(point)
        assert result["whole"] == 0
        assert result["half"] > 0


def test_without_results_there_is_nothing_to_claim() -> None:
    assert FIRMAMENT.claims(Findings([], {}), FIGURES) == []
    assert len(FIRMAMENT.draw(Findings([], {}), FIGURES)) == len(FIGURES)


def test_the_workload_keeps_the_cluster_as_full_as_it_is() -> None:
    load = Load(machines=2_000, seconds=20_000.0)
    assert sum(job.tasks for job in found(load)) == load.live
    work = sum(job.tasks * job.truth[0].durations[0] for job in arriving(load))
    batch = sum(job.tasks for job in found(load) if job.truth[0].durations)
    # Little's law: what arrives a second times how long it stays is what is there.
    steady = work / MICROS_PER_SECOND / load.seconds
    assert 0.5 * batch < steady < 1.6 * batch


@pytest.mark.parametrize(("machines", "racks"), [(RACK, 1), (RACK + 1, 2), (2 * RACK, 2)])
def test_no_rack_of_the_cluster_is_empty(machines: int, racks: int) -> None:
    (group,) = cluster(Load(machines=machines)).groups
    assert group.sets == tuple(f"rack-{number}" for number in range(racks))


def test_the_workload_has_the_papers_durations() -> None:
    load = Load(machines=5_000, seconds=40_000.0)
    seconds = np.array([job.truth[0].durations[0] for job in arriving(load)]) / MICROS_PER_SECOND
    assert np.median(seconds) == pytest.approx(420, rel=0.1)
    assert np.percentile(seconds, 90) == pytest.approx(3_600, rel=0.15)
    assert np.percentile(seconds, 99) == pytest.approx(18_400, rel=0.4)
    early, *others = arriving(load)
    assert early.submit < BEGIN * MICROS_PER_SECOND
    assert all(job.submit >= BEGIN * MICROS_PER_SECOND for job in others)


def test_a_task_alone_reads_as_fast_as_its_link() -> None:
    world = LinkWorld("firmament", {}, seed=1)
    world.run(load=0.001, jobs=5)
    assert len(world.responses) == 5 * TASKS
    assert min(world.responses) > 3.4
    assert max(world.responses) < 5.1


@pytest.mark.parametrize("sent", [None, {1: LINK // 2}])
@pytest.mark.parametrize("scheduler", SETTINGS)
def test_links_carry_no_more_than_they_can(scheduler: str, sent: dict[int, int] | None) -> None:
    world = LinkWorld(scheduler, {0: LINK // 2}, seed=2, sent=sent)
    world.run(load=0.7, jobs=30)
    assert len(world.responses) == 30 * TASKS
    assert world.now / MICROS_PER_SECOND * MACHINES * LINK >= sum(world._sizes.values())
    assert not world.transfers.under_way


def test_transfers_share_the_links_of_their_receivers_and_of_their_senders() -> None:
    """Two machines read from a third, whose link out is half as fast, and one of them from a second,
    too; which of them do is drawn."""
    links = Transfers([100, 100, 100], [100, 100, 50], 1e9, Random(1))
    for task, (machine, sender) in enumerate(((0, 2), (1, 2), (1, 0))):
        links.begin(task, machine, 1_000.0, 0)
        links.under_way[task].sender = sender
    assert links.next_end() is not None
    # The third's link is the first to be full; what it does not fill is the other transfer's.
    assert [transfer.rate for transfer in links.under_way.values()] == [25.0, 25.0, 75.0]


def test_a_transfer_reads_its_blocks_from_other_machines() -> None:
    links = Transfers([100] * 3, [100] * 3, 100.0, Random(1))
    links.begin(7, 1, 250.0, 0)
    senders, over = [links.under_way[0].sender], list[tuple[int, int]]()
    while not over:
        at = links.next_end()
        assert at is not None
        over = links.end_blocks(at)
        senders += [transfer.sender for transfer in links.under_way.values()]
    assert over == [(7, 1)]
    assert len(senders) == 3
    assert 1 not in senders
    assert at == pytest.approx(2.5 * MICROS_PER_SECOND, abs=3)


def test_a_transfer_in_several_streams_is_over_with_the_last_of_its_blocks() -> None:
    """A block of 100 and one of 50 begin at once."""
    links = Transfers([100] * 3, [100] * 3, 100.0, Random(1), streams=2)
    links.begin(7, 1, 150.0, 0)
    for stream, sender in zip(links.under_way.values(), (0, 2), strict=True):
        stream.sender = sender
    first = links.next_end()
    assert first == pytest.approx(MICROS_PER_SECOND, abs=3)
    assert links.end_blocks(first) == []
    last = links.next_end()
    assert last == pytest.approx(1.5 * MICROS_PER_SECOND, abs=3)
    assert links.end_blocks(last) == [(7, 1)]
    assert links.received[1] == pytest.approx(150.0, abs=0.01)


def test_of_several_replicas_the_one_with_most_bandwidth_left_is_read() -> None:
    links = Transfers([100] * 3, [100, 100, 10], 1e9, Random(1), replicas=20)
    for task in range(4):
        links.begin(task, 1, 100.0, 0)
    assert [stream.sender for stream in links.under_way.values()] == [0] * 4


def test_traffic_that_nobody_reserved_is_avoided_if_it_is_measured() -> None:
    """Half of the links are nearly full; there is room for all tasks on the others."""
    busy = dict.fromkeys(range(20), LINK // 10 * 9)
    world = LinkWorld(OBSERVED, busy, seed=3)
    world.run(load=0.2, jobs=10)
    assert max(world.responses) < 10
    blind = LinkWorld("spread", busy, seed=3)
    blind.run(load=0.2, jobs=10)
    assert max(blind.responses) > 30


def test_a_surge_comes_after_a_quarter_of_the_time_and_is_gone_after_half() -> None:
    load = Load(machines=100, seconds=40.0, utilisation=0.97, surge=0.08)
    jobs = list(arriving(load))
    assert [job.submit for job in jobs] == sorted(job.submit for job in jobs)
    surge = [job for job in jobs if job.id.startswith("surge")]
    assert sum(job.tasks for job in surge) == round(0.08 * load.total_slots)
    (submit,) = {job.submit for job in surge}
    (duration,) = {job.truth[0].durations[0] for job in surge}
    assert submit == (BEGIN + 10) * MICROS_PER_SECOND
    assert duration == 10 * MICROS_PER_SECOND


def test_a_scheduler_has_recovered_after_its_last_slow_round() -> None:
    nothing: Any = None
    spent = [(0.0, 0.1), (1.0, 9.0), (12.0, 2.0), (15.0, 0.1)]
    done = MeasuredReplay(np.empty(0), np.empty(0), 0, 0, spent, 0.0, nothing)
    assert done.mean_round(0, 10) == pytest.approx(4.55)
    assert done.last_slow_round(10, 1.0) == 14.0
    assert done.last_slow_round(10, 3.0) == 10


def point(figure: str, **wanted: Any) -> ExperimentPoint:
    (chosen,) = (
        point
        for point in plan("smoke", [figure])
        if all(point.parameters[name] == value for name, value in wanted.items())
    )
    return chosen


def test_no_service_waits_where_services_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    full = point("16", scheduler="firmament", utilisation=1.05)
    monkeypatch.setattr(replays, "SERVICE_ARRIVALS", 0.5)
    result = run_point(full)
    assert result["waiting.services"] == 0 < result["waiting.others"]
    monkeypatch.setattr(replays, "SERVICES", 0)
    assert run_point(full)["waiting.services"] > 0


def test_each_task_counts_as_placed_when_it_is_and_not_with_the_last_of_its_job() -> None:
    """Four slots and a job of six tasks, of which four are placed at once."""
    load = Load(machines=4, slots=1.0, seconds=10.0)
    tasks = group_with_truth(6, SLOT, (3 * MICROS_PER_SECOND,))
    job = simulated_job("j", tasks, submit=int((BEGIN + 1) * MICROS_PER_SECOND))
    settings = {"policy": "load-spreading", "retry": 1_000_000}
    done = replay(load, settings, workload=ReplayedWorkload(load=load, jobs=[job]))
    assert done.arrived == done.placed == 6
    assert np.sort(done.latencies)[:4] == pytest.approx(0, abs=0.5)
    assert np.sort(done.latencies)[4:] == pytest.approx(3, abs=0.5)
    assert done.with_last == pytest.approx(3, abs=0.5)


def placed_at_first(scheduler: str) -> dict[int, int]:
    """Where each of the initial tasks is placed."""
    engine, settings = replays.settings_of(point("15", scheduler=scheduler, threshold=0.14))
    load = Load(machines=20, seconds=0.1)
    first = replay(load, settings, engine).world.host.decisions.first()
    early = first.times < READY * MICROS_PER_SECOND
    return dict(zip(first.tasks[early].tolist(), first.machines[early].tolist(), strict=True))


def test_all_schedulers_begin_with_the_same_placements() -> None:
    mine = placed_at_first("firmament")
    assert len(mine) == round(0.9 * 20 * 12)
    for scheduler in ("race", "cost-scaling"):
        assert placed_at_first(scheduler) == mine


@pytest.mark.parametrize(("scheduler", "algorithm", "warm"), [
    ("firmament", "auto", True), ("race", "race", True),
    ("relaxation", "relaxation", False), ("cost-scaling", "cost-scaling", False),
])  # fmt: skip
def test_each_scheduler_uses_its_own_solver_from_before_the_first_arrival_on(
    scheduler: str, algorithm: str, warm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[tuple[bool, str, bool]] = []
    solve = Graph.solve

    def seen(graph: Graph) -> Any:
        is_first = not any(graph.tasks["number"] == early_task)
        used.append((is_first, str(graph.settings.algorithm), graph.settings.warm))
        return solve(graph)

    load = Load(machines=4, seconds=2.0, speed_up=50.0)
    jobs = list(drawn(load).jobs)
    early_task = task_number([job.id for job in jobs].index("early"), 0)
    monkeypatch.setattr(Graph, "solve", seen)
    engine, settings = replays.settings_of(point("16", scheduler=scheduler, utilisation=1.05))
    replay(load, settings, engine, ReplayedWorkload(load=load, jobs=jobs))
    at = used.index((False, algorithm, warm))
    assert {each[1:] for each in used[:at]} == {("auto", True)}
    assert {each[1:] for each in used[at:]} == {(algorithm, warm)}


def test_a_solver_that_gave_up_is_not_faster_and_at_least_as_much_slower() -> None:
    points = plan("smoke", ["8"])

    def claimed(name: str, **gave_up: str) -> Claim:
        made = {}
        for each in points:
            is_relaxed = each.parameters["algorithm"] == "relaxation"
            is_high = float(each.parameters["utilisation"]) > 1
            done = float(each.parameters["algorithm"] != gave_up["algorithm"])
            seconds = 100.0 if is_relaxed and is_high else 1.0
            made[digest(each)] = PointResult({"seconds": seconds, "done": done})
        found = claims(Findings(points, made), ["8"])
        return next(claim for claim in found if claim.id == name)

    slower = claimed("8-crossing", algorithm="relaxation")
    assert slower.holds
    assert slower.here.startswith("at least 100x")
    faster = claimed("8-crossing", algorithm="cost-scaling")
    assert not faster.holds
    assert "only 0 % of the experiment was done" in faster.note
    assert not claimed("8-cost-scaling-flat", algorithm="cost-scaling").holds
    assert claimed("8-cost-scaling-flat", algorithm="relaxation").holds


def test_rounds_that_were_not_measured_are_not_fast() -> None:
    points = plan("smoke", ["16"])
    made = {
        digest(each): PointResult(
            {"surge": 0.0 if each.parameters["scheduler"] == "race" else 1.0, "round": 1.0}
        )
        for each in points
    }
    found = {claim.id: claim for claim in claims(Findings(points, made), ["16"])}
    assert not found["16-transient-relaxation"].holds


def test_a_scheduler_without_rounds_is_no_error() -> None:
    points = plan("smoke", ["16"])
    made = {
        digest(each): PointResult(
            {"surge": 0.0 if each.parameters["scheduler"] == "relaxation" else 1.0, "round": 1.0}
        )
        for each in points
    }
    found = {claim.id: claim for claim in claims(Findings(points, made), ["16"])}
    assert not found["16-transient-relaxation"].holds


def test_decisions_before_the_beginning_do_not_count_as_busy() -> None:
    """One job is there before, and one comes a second after the beginning."""
    load = Load(machines=4, slots=1.0, seconds=10.0)
    tasks = group_with_truth(1, SLOT, (3 * MICROS_PER_SECOND,))
    jobs = [
        simulated_job(name, tasks, submit=int(at * MICROS_PER_SECOND))
        for name, at in (("before", 0), ("after", BEGIN + 1))
    ]
    settings = {"policy": "load-spreading", "retry": 1_000_000}
    done = replay(load, settings, workload=ReplayedWorkload(load=load, jobs=jobs))
    begin = int(BEGIN * MICROS_PER_SECOND)
    assert min(at for at, _ in done.world.host.decided) < begin
    assert done.spent
    assert min(at for at, _ in done.spent) >= 1
    assert done.busy == pytest.approx(sum(took for _, took in done.spent) / load.seconds)


def trace(directory: Path, machines: int = 4) -> Path:
    """Two tasks of a service from the start, one of which is still there at the end; a batch job from
    the start; and batch jobs of one to four tasks, one every five seconds."""
    at, second = 600_000_000, 1_000_000
    jobs, tasks = [(0, "0,,1,0,kim,2,n,l")], list[tuple[int, str]]()

    def task(job: int, index: int, priority: int, begin: int, end: int | None) -> None:
        for time, event in ((begin, 0), (begin, 1), (end, 4)):
            if time is not None:
                row = f"{time},,{job},{index},,{event},kim,2,{priority},0.1,0.1,0,"
                tasks.append((time, row))

    task(1, 0, 9, 0, None)
    task(1, 1, 9, 0, at + 40 * second)
    for number in range(2, 20):
        begin = 0 if number == 2 else at + 5 * number * second
        end = at + (5 * number + 12) * second
        jobs += [(begin, f"{begin},,{number},0,kim,2,n,l"), (end, f"{end},,{number},4,kim,2,n,l")]
        for index in range(1 + number % 4):
            task(number, index, 0, begin, end)
    rows = {
        "machine_events": [f"0,{number},0,,0.5,0.5" for number in range(machines)],
        "job_events": [row for _, row in sorted(jobs, key=itemgetter(0))],
        "task_events": [row for _, row in sorted(tasks, key=itemgetter(0))],
    }
    for table, lines in rows.items():
        (directory / table).mkdir()
        (directory / table / "part-00000-of-00001.csv").write_text("\n".join(lines) + "\n")
    return directory


def test_figures_of_whole_schedulers_run_on_a_trace(tmp_path: Path) -> None:
    trace(tmp_path)
    assert FIRMAMENT.traced is not None
    for plain in plan("smoke", ["14", "15", "16", "18"]):
        if plain.parameters["scheduler"] == "firmament":
            on_it = FIRMAMENT.traced(plain, tmp_path)
            assert digest(on_it) != digest(plain)
            result = run_point(on_it)
            assert result["machines"] == 4
            assert plain.figure != "14" or result["placed"] == 1
    for plain in plan("smoke", ["17", "19"]):
        assert FIRMAMENT.traced(plain, tmp_path) == plain


def test_the_jobs_of_a_trace_take_slots_and_are_as_many_as_there_are_machines_for(
    tmp_path: Path,
) -> None:
    trace(tmp_path)
    load = Load(machines=4, seconds=100.0, utilisation=0.5)
    whole = recorded(tmp_path, load)
    jobs = {job.id: job for job in whole.jobs}
    assert [jobs["1"].tasks, jobs["1-endless"].tasks] == [1, 1]
    assert {jobs["1"].kind, jobs["1-endless"].kind} == {"service"}
    begin = int(BEGIN * MICROS_PER_SECOND)
    # From the start of the trace on, job 1 runs for 40 s and job 2 for 22 s.
    assert jobs["1"].truth[0].durations == (begin + 40 * MICROS_PER_SECOND,)
    assert jobs["2"].groups[0].estimate == 22 * MICROS_PER_SECOND
    assert jobs["3"].submit == begin + 15 * MICROS_PER_SECOND
    # Slots in use on average: 1 + 0.4 for the service, 3 x 22 s of job 2, and of the others 12 s.
    later = sum((1 + number % 4) * min(12, 100 - 5 * number) for number in range(3, 20))
    used = 1 + 0.4 + (3 * 22 + later) / 100
    assert whole.load.slots * 4 == pytest.approx(used / 0.5)
    assert all(job.groups[0].request == SLOT for job in jobs.values())
    fast = {job.id: job for job in recorded(tmp_path, structs.replace(load, speed_up=2.0)).jobs}
    assert fast["3"].submit - begin == (jobs["3"].submit - begin) // 2
    assert fast["3"].truth[0].durations == (6 * MICROS_PER_SECOND,) * 4
    half = recorded(tmp_path, structs.replace(load, machines=2))
    assert (half.load.machines, len(list(half.jobs)) < len(jobs)) == (2, True)


def test_a_trace_has_its_own_times_of_overload(tmp_path: Path) -> None:
    trace(tmp_path)
    load = Load(machines=4, seconds=100.0, utilisation=0.9)
    whole = recorded(tmp_path, load)
    assert whole.overload is not None
    begin, end = whole.overload
    assert 0 < begin < end <= 100
    assert recorded(tmp_path, structs.replace(load, utilisation=0.1)).overload is None


def test_a_directory_that_holds_no_trace_is_a_mistake(tmp_path: Path) -> None:
    assert FIRMAMENT.traced is not None
    (tmp_path / "machine_events").mkdir()
    (tmp_path / "machine_events" / "part-0").write_text("")
    chosen = plan("smoke", ["14"])[0]
    with pytest.raises(TraceError, match="job_events, task_events not found"):
        FIRMAMENT.traced(chosen, tmp_path)


def test_a_trace_in_which_nothing_runs_is_a_mistake(tmp_path: Path) -> None:
    trace(tmp_path)
    (tmp_path / "task_events" / "part-00000-of-00001.csv").write_text("")
    with pytest.raises(TraceError, match="nothing runs in the first 5 s"):
        recorded(tmp_path, Load(machines=4, seconds=5.0))


def test_tasks_in_isolation_are_no_slower_than_under_any_scheduler() -> None:
    points = plan("smoke", ["19"])
    found = {
        point.parameters["scheduler"]: run_point(point)["p90"]
        for point in points
        if point.parameters["background"] == "no" and point.parameters["links"] == "receivers"
    }
    assert found["idle"] == min(found.values()) < 5.0
