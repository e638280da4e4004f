"""The parts of tasks' lives, and how far the tasks of a job drift apart."""

from __future__ import annotations

import numpy as np
import pytest

from argosy.engines.murmuration import Murmuration
from argosy.experiments.execute import execute
from argosy.measures.timeline import task_times, timeline
from argosy.model.jobs import task_number
from argosy.model.scenario import ConstantLatency, Network
from argosy.testing.builders import SECOND, cell, job, scenario


def test_parts_add_up_to_the_whole() -> None:
    # One scheduler, a second per job and one per task; two machines of one such task each.
    jobs = [job("a", 2, cpu=4_000, seconds=10), job("b", 2, cpu=4_000, seconds=4)]
    spec = scenario(
        Murmuration.name,
        jobs,
        replicas=1,
        cell=cell(2),
        settings={"t_job": SECOND, "t_task": SECOND},
        network=Network(latency=ConstantLatency(delay=SECOND)),
    )
    times = execute(spec, None).timeline
    # a is decided on at once for 3 s and travels for one; b begins when a is over.
    assert (times.s.p50, times.s.largest) == (3 * SECOND, 3 * SECOND)
    assert (times.w2s.count, times.w2s.mean) == (4, 1.5 * SECOND)
    assert times.tst.largest == 6 * SECOND
    assert times.x.mean == 7 * SECOND
    # a waits for the hop alone, b for a as well: until 14 s.
    assert times.w2x.mean == (1 + 8) / 2 * SECOND
    assert times.tct.mean == times.tst.mean + times.w2x.mean + times.x.mean
    assert times.tail_tct.largest == 18 * SECOND


def test_the_spread_is_of_a_job_s_own_tasks() -> None:
    tasks = np.array([0, 1, task_number(1, 0)], np.int64)
    placed = np.array([10, 30, 500], np.int64)
    submit, first, thought = np.array([0, 400]), np.array([5, -1]), np.array([100, 0])
    times = task_times(tasks, placed, placed + 5, placed + 25, submit, first, thought)
    assert times.s.tolist() == [5, 25, 0]
    assert times.w2s.tolist() == [5, 5, 100]
    spread = timeline(times).spread
    assert spread["scheduled"].count == 2
    assert spread["scheduled"].largest == pytest.approx(10)
    assert spread["finished"].p50 == pytest.approx(5)


def test_no_part_is_negative_and_none_may_take_no_time() -> None:
    column = np.array([0], np.int64)
    times = task_times(column, column + 7, column + 7, column + 7, column, column + 9, column + 1)
    assert (times.s.tolist(), times.w2s.tolist()) == ([0], [7])
    at_once = timeline(task_times(*[column] * 7))
    assert (at_once.tail_tst.largest, at_once.tail_tct.largest) == (0, 0)


def test_without_task_timelines_there_is_nothing_to_say() -> None:
    empty = np.empty(0, np.int64)
    assert timeline(task_times(*[empty] * 7)).tct.count == 0
