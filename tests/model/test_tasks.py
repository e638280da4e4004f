"""Task numbers by the array say the same as one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.model.jobs import MOST_JOBS, index_of, job_of, task_number
from argosy.model.tasks import by_job, first_tasks, indices_of, jobs_of, task_numbers

JOBS = st.integers(0, MOST_JOBS)
INDICES = st.integers(0, 2**32 - 1)


@given(st.lists(st.tuples(JOBS, INDICES)))
def test_arrays_are_taken_apart_and_put_together_like_single_numbers(
    parts: list[tuple[int, int]],
) -> None:
    tasks = np.array([task_number(*part) for part in parts], np.int64)
    assert jobs_of(tasks).tolist() == [job_of(task) for task in tasks.tolist()]
    assert indices_of(tasks).tolist() == [index_of(task) for task in tasks.tolist()]
    assert (task_numbers(jobs_of(tasks), indices_of(tasks)) == tasks).all()


def test_the_tasks_of_one_job_are_named_by_their_indices() -> None:
    assert task_numbers(3, [5, 1]).tolist() == [task_number(3, 5), task_number(3, 1)]
    assert first_tasks(3, 2).tolist() == [task_number(3, 0), task_number(3, 1)]
    assert task_numbers(3, []).dtype == first_tasks(3, 0).dtype == np.int64


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9))))
def test_every_task_is_found_with_its_job_in_its_order(parts: list[tuple[int, int]]) -> None:
    tasks = np.array([task_number(*part) for part in parts], np.int64)
    found = {number: tasks[where].tolist() for number, where in by_job(tasks)}
    assert list(found) == sorted({job for job, _ in parts})
    for number, mine in found.items():
        assert mine == [task_number(*part) for part in parts if part[0] == number]


def test_tasks_of_one_job_are_not_copied() -> None:
    tasks = first_tasks(7, 3)
    [(number, where)] = by_job(tasks)
    assert number == 7
    assert tasks[where].base is tasks


def test_numbers_that_no_job_can_have_are_refused() -> None:
    for job, count in ((-1, 1), (2**31, 1), (0, -1), (0, 2**32 + 1)):
        with pytest.raises(ValueError, match=r"job numbers|a job has"):
            first_tasks(job, count)
