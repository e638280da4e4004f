"""Running times of tasks that users add."""

import numpy as np

from argosy.model.resources import Resources
from argosy.model.truth import group_with_truth, simulated_job
from argosy.worlds.sim.ground_truth import GroundTruth

ROOM = Resources(100, 100)


def test_added_tasks_run_as_long_as_the_last_one_that_is_known() -> None:
    first, last = group_with_truth(1, ROOM, (9,)), group_with_truth(3, ROOM, (1, 2, 3))
    for groups, known in (
        ((last,), [1, 2, 3]),
        ((first, last), [9, 1, 2, 3]),
        ((last, first), [1, 2, 3, 9]),
    ):
        times = np.full(6, -99, np.int64)
        GroundTruth(simulated_job("a", *groups)).fill(np.arange(6), times)
        assert times.tolist() == known + known[-1:] * (6 - len(known))
