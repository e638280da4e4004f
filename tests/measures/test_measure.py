"""The numbers of a summary, on columns small enough to count by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.experiments.execute import execute
from argosy.host.busy_time import DAY, BusyTime
from argosy.measures.from_journal import sample_times
from argosy.measures.measure import (
    breakdown,
    by_label,
    coded,
    daily,
    fleet_label,
    since,
    speed_up,
    speed_ups,
)
from argosy.measures.timeline import task_times, timeline
from argosy.model.jobs import task_number
from argosy.model.scenario import ConstantLatency, FleetEntry, MachineCrash, Network, Takes
from argosy.records.summary import Daily, Distribution
from argosy.testing.builders import SECOND, cell, job, scenario


def column(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def of(*values: float) -> Distribution:
    """The distribution of a few values, by the textbook."""
    ordered = sorted(values)

    def quantile(share: float) -> float:
        at = share * (len(ordered) - 1)
        below = int(at)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (at - below) * (ordered[above] - ordered[below])

    mean = sum(ordered) / len(ordered)
    return Distribution(
        count=len(ordered),
        mean=pytest.approx(mean),
        p50=pytest.approx(quantile(0.5)),
        p90=pytest.approx(quantile(0.9)),
        p99=pytest.approx(quantile(0.99)),
        largest=pytest.approx(ordered[-1]),
    )


def test_every_part_of_a_timeline_is_counted_by_hand() -> None:
    # Job 0 is submitted at 0 and first tried at 2; 5 is spent on it. Job 1 is never thought about.
    # Job 2 had its first attempt at 0, and more time spent than there was until it was placed.
    tasks = column(0, 1, task_number(1, 0), task_number(2, 0))
    placed, started, finished = column(10, 14, 30, 3), column(11, 20, 37, 3), column(21, 50, 40, 9)
    submit, first, thought = column(0, 25, 0), column(2, -1, 0), column(5, 9, 100)
    times = task_times(tasks, placed, started, finished, submit, first, thought)
    assert times.s.tolist() == [5, 5, 0, 3]
    assert times.w2s.tolist() == [5, 9, 5, 0]
    assert times.w2x.tolist() == [1, 6, 7, 0]
    assert times.x.tolist() == [10, 30, 3, 6]
    line = timeline(times)
    assert (line.w2s, line.s) == (of(5, 9, 5, 0), of(5, 5, 0, 3))
    assert (line.w2x, line.x) == (of(1, 6, 7, 0), of(10, 30, 3, 6))
    assert (line.tst, line.tct) == (of(10, 14, 5, 3), of(21, 50, 15, 9))
    assert (line.mean_tst, line.mean_tct) == (of(12, 5, 3), of(35.5, 15, 9))
    assert (line.tail_tst, line.tail_tct) == (of(14, 5, 3), of(50, 15, 9))
    assert line.spread == {
        "scheduled": of(2, 0, 0),
        "started": of(4.5, 0, 0),
        "finished": of(14.5, 0, 0),
    }


def test_milestones_count_for_jobs_that_reached_them() -> None:
    submit = column(0, 5, 7, 9)
    assert since(column(0, 15, -1, 10), submit).tolist() == [0, 10, 1]
    kinds = by_label(
        ["batch", "service", "batch", "service"],
        np.array([False, False, False, True]),
        submit,
        column(3, 6, 7, -1),
        column(4, 9, -1, -1),
        column(0, 15, -1, -1),
        column(0, 0, 2, 1),
    )
    assert list(kinds) == ["batch", "service"]
    batch, service = kinds["batch"], kinds["service"]
    assert (batch.jobs, batch.jobs_finished, batch.jobs_abandoned) == (2, 1, 1)
    assert (batch.wait_time, batch.placement_latency, batch.jct) == (of(3, 0), of(4), of(0))
    assert (service.jobs, service.jobs_finished, service.jobs_abandoned) == (2, 1, 1)
    assert (batch.jobs_endless, service.jobs_endless) == (0, 1)
    assert (service.wait_time, service.placement_latency, service.jct) == (of(1), of(4), of(10))


def test_the_parts_of_a_completion_time_are_those_of_finished_jobs() -> None:
    parts = breakdown(column(0, 2, 0), column(0, -1, 9), column(4, 8, 99), column(0, 20, -1))
    assert parts == {"waiting": 3, "placing": 2, "running": 4}
    assert breakdown(column(0), column(3), column(4), column(-1)) == {}
    many = 200_000
    last = [np.full(many, at, np.int64) for at in (0, 0, 2, 3)]
    last[1][-1] = last[2][-1] = last[3][-1] = many
    assert breakdown(*last) == {
        "waiting": 1.0,
        "placing": (2 * many - 2) / many,
        "running": (many - 1) / many,
    }


def test_a_job_is_faster_from_five_per_cent_on() -> None:
    found = speed_up(np.array([1.0, 1.05, 2.0, 1.04, 4.0]))
    assert found is not None
    assert (found.jobs, found.faster, found.p50, found.largest) == (5, 0.6, 1.05, 4.0)
    assert (found.p80, found.p90) == (pytest.approx(2.4), pytest.approx(3.2))
    assert len(found.quantiles) == 101
    assert (found.quantiles[0], found.quantiles[50], found.quantiles[100]) == (1.0, 1.05, 4.0)
    assert speed_up(np.array([])) is None


def test_days_have_a_median_and_a_median_deviation_from_it() -> None:
    assert daily([0.5, 0.1, 0.4, 0.8]) == Daily(0.45, pytest.approx(0.2), [0.5, 0.1, 0.4, 0.8])


@pytest.mark.parametrize(
    ("seconds", "count", "spacing"),
    [(0, 1, 0), (1, 2, 1), (398, 399, 1), (399, 200, 2), (796, 399, 2), (798, 200, 4)],
)
def test_samples_are_as_close_as_399_of_them_allow(seconds: int, count: int, spacing: int) -> None:
    times = sample_times(seconds * SECOND).tolist()
    assert (len(times), times[-1]) == (count, (count - 1) * spacing * SECOND)


decisions = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 50), st.integers(0, 30)), max_size=8
)


@given(decisions, st.integers(0, 50), st.integers(0, 60), st.booleans())
def test_busy_time_is_what_passed_hour_by_hour(
    made: list[tuple[int, int, int]], early: int, late: int, crashes: bool
) -> None:
    """Decisions one after the other, in hours, looked at during the last one or after it."""
    hour, lane, now = DAY // 24, BusyTime(), 0
    busy: set[int] = set()
    for pause, duration, before in made:
        spent = min(before, pause)
        now += pause
        lane.think(now * hour, duration * hour, spent * hour)
        busy |= set(range(now - spent, now + duration))
        now += duration
    early = min(early, made[-1][1]) if made else 0
    now += -early if early else late
    busy = {each for each in busy if each < now}
    if crashes:
        lane.stop(now * hour)
    assert lane.total(now * hour) == len(busy) * hour
    days = lane.by_day(now * hour)
    assert len(days) == max(1, -(-now // 24))
    for day, share in enumerate(days):
        first, last = day * 24, min(now, day * 24 + 24)
        expected = sum(first <= each < last for each in busy)
        assert share == pytest.approx(expected / max(1, last - first))
    if crashes:
        assert lane.total(10**15) == len(busy) * hour


def test_conflicts_are_counted_on_the_days_they_fall_on() -> None:
    """Two schedulers decide on the only machine: who is slower loses, on the second day."""
    jobs = [
        job("first", 1, cpu=3_000, seconds=60, kind="slow"),
        *(
            job(f"{kind}{n}", 1, cpu=3_000, seconds=60, submit=90_000 + 1_000 * n, kind=kind)
            for kind in ("slow", "quick")
            for n in range(2)
        ),
    ]
    fleet = tuple(
        FleetEntry(name=kind, engine="omega", takes=Takes(kinds=(kind,)), settings={"t_job": t_job})
        for kind, t_job in (("slow", 2 * SECOND), ("quick", SECOND))
    )
    summary = execute(scenario("omega", jobs, fleet=fleet, cell=cell(1)), None)
    slow, quick = summary.schedulers
    assert (slow.conflicts, quick.conflicts) == (2, 0)
    assert slow.daily_conflicts == Daily(0.5, 0.5, [0.0, 1.0])
    assert quick.daily_conflicts == Daily(0.0, 0.0, [0.0, 0.0])
    assert slow.refused == {"no_room": 2}
    assert summary.conflict_fraction == 2 / 5


def test_a_series_samples_shares_and_counts_every_second() -> None:
    jobs = [job("a", 2, cpu=4_000, seconds=3), job("b", 1, cpu=4_000, seconds=2, submit=1)]
    crash = MachineCrash(at=3_500_000, machine="m1")
    settings = {"t_job": 0, "t_task": 0, "backoff": SECOND}
    spec = scenario("omega", jobs, cell=cell(2), replicas=1, settings=settings, faults=(crash,))
    series = execute(spec, None).series
    assert series["at"][:4] == [0, SECOND, 2 * SECOND, 3 * SECOND]
    assert series["running"][1:4] == [2, 2, 2]
    assert series["pending"][1:4] == [0, 1, 1]
    assert series["cpu"][1:4] == [1.0, 1.0, 1.0]
    assert series["memory"][1] == pytest.approx(2 / 32)
    # One of the machines is gone: the other is full.
    assert series["cpu"][5] == 1.0
    assert set(series["queued"]) == {0}


def test_a_speed_up_is_time_asked_for_time_taken_of_work_that_is_done() -> None:
    columns = (
        column(0, 2, 3, 4),
        column(10, 20, 0, 7),
        column(11, 24, -1, 7),
        column(3, 2, 9, 5),
    )
    host = SimpleNamespace(
        runtime=SimpleNamespace(pool_columns=lambda: columns),
        jobs=SimpleNamespace(kinds=["a", "a", "b", "a", "b"]),
    )
    world: Any = SimpleNamespace(host=host)
    # What took no time is neither faster nor slower.
    assert speed_ups(world).tolist() == [3.0, 0.5, 1.0]
    assert speed_ups(world, "b").tolist() == [0.5, 1.0]
    assert speed_ups(world, "c").tolist() == []


def test_a_run_in_which_nothing_happens_has_numbers_too() -> None:
    summary = execute(scenario("omega", []), None)
    assert summary.ended_at == 0
    assert [each.busyness for each in summary.schedulers] == [0.0, 0.0]
    assert [each.daily_conflicts for each in summary.schedulers] == [Daily(0.0, 0.0, [0.0])] * 2
    assert summary.utilisation == {"cpu": 0.0, "memory": 0.0}
    assert (summary.conflict_fraction, summary.speed_up, summary.breakdown) == (0, None, {})
    assert (summary.kinds, summary.owners) == ({}, {})


def test_a_fleet_is_its_engines_in_order_with_how_many_there_are() -> None:
    entries = (("a", "omega", 2), ("b", "sparrow", 1), ("c", "omega", 3))
    fleet = tuple(
        FleetEntry(name=name, engine=engine, replicas=count) for name, engine, count in entries
    )
    assert fleet_label(scenario("omega", [], fleet=fleet)) == "omega x5 + sparrow"


def test_labels_have_numbers_in_the_order_in_which_they_come() -> None:
    codes, rows = coded(["b", "a", "b", "c"])
    assert (dict(codes), rows.tolist()) == ({"b": 0, "a": 1, "c": 2}, [0, 1, 0, 2])


def test_a_gang_that_did_not_start_as_a_whole_is_split() -> None:
    gangs = {
        # Together; one after the other, because there is no room; and not at all.
        "whole": job("whole", 2, cpu=1_000, seconds=5, gang=True),
        "split": job("split", 3, cpu=3_000, seconds=5, gang=True),
        "never": job("never", 1, cpu=64_000, seconds=5, gang=True),
    }
    for names, expected in (
        (("whole",), (1, 0)),
        (("split",), (1, 1)),
        (("whole", "split", "never"), (2, 1)),
        ((), (0, 0)),
    ):
        jobs = [gangs[name] for name in names] + [job("plain", 2)]
        spec = scenario("sparrow", jobs, cell=cell(2), replicas=1, horizon=60 * SECOND)
        counts = execute(spec, None).counts
        assert (counts.gangs, counts.gangs_split) == expected
    # Those that start do so together, and the third never does.
    spec = scenario("sparrow", [gangs["split"]], cell=cell(2), replicas=1, horizon=SECOND)
    counts = execute(spec, None).counts
    assert (counts.tasks_running, counts.gangs, counts.gangs_split) == (2, 1, 1)


@pytest.mark.parametrize(("horizon", "gangs"), [(5, 0), (6, 1)])
def test_a_gang_whose_start_lies_beyond_the_horizon_has_not_run(horizon: int, gangs: int) -> None:
    # A probe, its question and the answer, each of which takes two seconds.
    spec = scenario(
        "sparrow",
        [job("late", 2, cpu=1_000, seconds=5, gang=True)],
        cell=cell(2),
        replicas=1,
        horizon=horizon * SECOND,
        network=Network(latency=ConstantLatency(delay=2 * SECOND)),
    )
    counts = execute(spec, None).counts
    assert (counts.gangs, counts.gangs_split) == (gangs, 0)
