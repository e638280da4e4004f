"""Running times of tasks, as the runtime is told them."""

from argosy._core import Cell, QueueRules, TaskRuntime
from argosy.model.resources import Resources
from argosy.model.truth import group_with_truth, simulated_job
from argosy.worlds.sim.ground_truth import running_times

ROOM = Resources(100, 100)


def test_added_tasks_run_as_long_as_the_last_one_that_is_known() -> None:
    first, last = group_with_truth(1, ROOM, (9,)), group_with_truth(3, ROOM, (1, 2, 3))
    endless = group_with_truth(2, ROOM)
    for groups, known in (
        ((first,), [9]),
        ((last,), [1, 2, 3]),
        ((first, last), [9, 1, 2, 3]),
        ((last, first), [1, 2, 3, 9]),
        ((endless, first), [-1, -1, 9]),
        ((endless,), [-1]),
    ):
        runtime = TaskRuntime(cell := Cell(1, 0), QueueRules())
        runtime.add_job(0, 0, [(6, cell.shape([1], [], 0), 5)])
        runtime.set_times(0, running_times(simulated_job("a", *groups)))
        times = [runtime.facts(task)[2] for task in range(6)]
        assert times == known + known[-1:] * (6 - len(known))
