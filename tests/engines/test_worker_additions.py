"""How many workers to add: held against trying every number that may be added."""

from __future__ import annotations

from collections import Counter

import pytest

from argosy.engines.mapreduce.prediction import best_addition, best_start, time_with
from argosy.model.random import Random

Phases = list[tuple[int, int]]


def numbers_tried(most: int) -> list[int]:
    """1, 2, 4 and so on, and the most."""
    return [*(2**power for power in range(20) if 2**power < most), *([most] if most > 0 else [])]


def time_needed(left: Phases, workers: int) -> int:
    """Phase after phase, each as fast as its activities and the workers allow."""
    return sum(work // min(workers, activities) for work, activities in left)


def earliest(ends: dict[int, int]) -> int:
    """The number with the earliest end; of equals, the smallest."""
    return min(ends, key=lambda added: (ends[added], added))


def drawn(random: Random) -> tuple[Phases, int, int]:
    left = [(random.below(5_000), 1 + random.below(40)) for _ in range(1 + random.below(3))]
    return left, 1 + random.below(6), random.below(30)


def kind_of(added: int, most: int) -> str:
    return "none" if added == 0 else "most" if added == most else "some"


def test_at_the_start_the_decision_takes_longer_and_nothing_happens_meanwhile() -> None:
    seen: Counter[str] = Counter()
    for seed in range(400):
        random = Random(seed)
        left, workers, most = drawn(random)
        t_task = random.below(300)
        ends = {0: time_needed(left, workers)}
        for added in numbers_tried(most):
            ends[added] = t_task * added + time_needed(left, workers + added)
        found = best_start(left, workers, most, t_task)
        assert found == earliest(ends), seed
        seen[kind_of(found, most)] += 1
    assert min(seen[each] for each in ("none", "some", "most")) > 20


def test_later_the_workers_that_are_there_go_on_during_the_decision() -> None:
    seen: Counter[str] = Counter()
    for seed in range(400):
        random = Random(seed)
        left, workers, most = drawn(random)
        t_job, t_task = random.below(300), random.below(100)
        ends = {0: time_needed(left, workers)}
        for added in numbers_tried(most):
            decision = t_job + t_task * added
            work, activities = left[0]
            done = min(work, decision * min(workers, activities))
            rest = [(work - done, activities), *left[1:]]
            ends[added] = decision + time_needed(rest, workers + added)
        found = best_addition(left, workers, most, t_job, t_task)
        assert found == earliest(ends), seed
        seen[kind_of(found, most)] += 1
    assert min(seen[each] for each in ("none", "some", "most")) > 20


@pytest.mark.parametrize(
    ("left", "workers", "expected"),
    [
        ([(100, 10)], 1, 100),
        ([(100, 10)], 4, 25),
        ([(100, 10)], 10, 10),
        ([(100, 10)], 11, 10),
        ([(100, 10), (90, 3)], 5, 20 + 30),
        ([(99, 10), (0, 3)], 10, 9),
        ([], 3, 0),
    ],
)
def test_a_phase_is_as_fast_as_its_workers_and_activities(
    left: Phases, workers: int, expected: int
) -> None:
    assert time_with(left, workers) == expected


@pytest.mark.parametrize("most", [0, -3])
def test_where_none_may_be_added_none_is(most: int) -> None:
    assert best_start([(1_000, 10)], 1, most, 0) == 0
    assert best_addition([(1_000, 10)], 1, most, 0, 0) == 0


def test_of_numbers_that_end_at_the_same_time_the_smallest_is_taken() -> None:
    # Four workers do all that there is to do at once.
    assert best_start([(1_000, 4)], 1, 9, 0) == 4
    assert best_addition([(1_000, 4)], 1, 9, 0, 0) == 4
    assert best_start([(1_000, 4)], 4, 9, 0) == 0
    assert best_addition([(1_000, 4)], 4, 9, 0, 0) == 0
