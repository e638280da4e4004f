"""Which machines a program has to consider: as many of those that are alike as there are containers."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from argosy.solvers.placement import ContainerKind, PlacementCluster, problem_of
from argosy.solvers.placement.answer import Objective
from argosy.solvers.placement.candidates import undominated, usable


def kept(
    free: list[int], count: int, *, request: int = 1, origin: int = -1, capacity: int = 20
) -> list[int]:
    cluster = PlacementCluster(
        np.array([[each] for each in free], np.int64), np.full((len(free), 1), capacity, np.int64)
    )
    kind = ContainerKind(0, frozenset({"a"}), np.array([request], np.int64), count)
    problem = problem_of(cluster, [replace(kind, origin=origin) if origin >= 0 else kind])
    return undominated(problem, Objective()).tolist()


@pytest.mark.parametrize(
    ("free", "count", "machines"),
    [
        # As many as there are containers are all kept.
        ([4, 4], 2, [0, 1]),
        ([9, 4, 4], 3, [0, 1, 2]),
        # Of equals, the first.
        ([4, 4, 4], 2, [0, 1]),
        ([4, 4, 4, 4], 1, [0]),
        # Larger ones take the places of smaller ones.
        ([4, 4, 4, 8], 2, [0, 3]),
        ([4, 4, 8, 8], 2, [2, 3]),
        ([4, 6, 8, 5], 2, [1, 2]),
        ([4, 4, 8, 8, 8], 2, [2, 3]),
        ([4, 4, 4, 6, 8], 3, [0, 3, 4]),
        # Machines on which nothing fits are never needed.
        ([0, 4, 0, 4, 4], 2, [1, 3]),
        ([0, 0], 2, []),
    ],
)
def test_a_machine_that_enough_others_can_replace_is_left_out(
    free: list[int], count: int, machines: list[int]
) -> None:
    assert kept(free, count) == machines


@pytest.mark.parametrize("origin", [0, 1, 3])
def test_where_containers_are_is_kept(origin: int) -> None:
    assert kept([4, 5, 8, 0], 1, origin=origin) == sorted({origin, 2})


def test_in_several_dimensions_only_more_of_everything_is_better() -> None:
    free = np.array([[4, 1], [1, 4], [2, 2], [4, 4]], np.int64)
    cluster = PlacementCluster(free, np.full((4, 2), 9, np.int64))
    kind = ContainerKind(0, frozenset({"a"}), np.array([1, 1], np.int64), 1)
    assert undominated(problem_of(cluster, [kind]), Objective()).tolist() == [3]
    two = replace(kind, count=2)
    assert undominated(problem_of(cluster, [two]), Objective()).tolist() == [0, 1, 2, 3]
    assert usable(problem_of(cluster, [replace(kind, request=np.array([3, 1]))])).tolist() == [0, 3]
