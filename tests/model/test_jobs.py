"""Jobs as people submit them, and the truth about them."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.model.errors import ModelError
from argosy.model.jobs import MOST_RETRIES, MOST_TASKS, Execution, Job, TaskGroup
from argosy.model.resources import Resources
from argosy.model.truth import (
    GroupTruth,
    SimulatedJob,
    group_with_truth,
    running_time,
    simulated_job,
    workers_with_truth,
)
from argosy.model.units import LARGEST

ONE = TaskGroup(1, Resources(1))
TWO = TaskGroup(2, Resources(1))


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: TaskGroup(0, Resources(1)), "count"),
        (lambda: TaskGroup(MOST_TASKS + 1, Resources(1)), "count"),
        (lambda: TaskGroup(1, Resources(1), -1), "estimate"),
        (lambda: TaskGroup(1, Resources(1), LARGEST + 1), "estimate"),
        (lambda: TaskGroup(1, Resources(1), activities=(3, 0)), "activities"),
        (lambda: TaskGroup(1, Resources(1), 5, endless=True), "endless"),
        (lambda: TaskGroup(1, Resources(1), activities=(3,), endless=True), "endless"),
        (lambda: TaskGroup(1, Resources(1), retries=-1), "retries"),
        (lambda: TaskGroup(1, Resources(1), retries=MOST_RETRIES + 1), "retries"),
        (lambda: Job("", (ONE,)), "id"),
        (lambda: Job("a/b", (ONE,)), "id"),
        (lambda: Job("a b", (ONE,)), "id"),
        (lambda: Job("a", (ONE,), owner="x\n"), "owner"),
        (lambda: Job("a", (ONE,), name="x\n"), "name"),
        (lambda: Job("a", ()), "groups"),
        (lambda: Job("a", (ONE,), precedence=40_000), "precedence"),
        (lambda: Execution(), "command"),
        (lambda: Execution(("",)), "command"),
        (lambda: Execution(("a", "b\0")), "command"),
        (lambda: Execution(("a",), {"A=": "x"}), "environment"),
        (lambda: Execution(("a",), {"A": "x\0"}), "environment"),
        (lambda: Execution(image="i", working_directory="\0"), "working_directory"),
        (lambda: GroupTruth((-1,)), "durations"),
        (lambda: GroupTruth((1,), (1,)), "phases"),
        (lambda: SimulatedJob(Job("a", (ONE,)), -1, (GroupTruth(),)), "submit"),
        (lambda: SimulatedJob(Job("a", (ONE, TWO)), 0, (GroupTruth(),)), "truth"),
        (lambda: simulated_job("a", (TWO, GroupTruth((1, 2, 3)))), "durations"),
        (lambda: simulated_job("a", (TWO, GroupTruth(phases=(1,)))), "phases"),
        (
            lambda: simulated_job(
                "a", (TaskGroup(1, Resources(1), endless=True), GroupTruth((1,)))
            ),
            "durations",
        ),
        (
            lambda: simulated_job(
                "a", workers_with_truth(1, Resources(1), (MOST_TASKS,), (2**40,))
            ),
            "duration",
        ),
    ],
)
def test_a_job_that_contradicts_itself_cannot_be_made(
    make: Callable[[], object], field: str
) -> None:
    with pytest.raises(ModelError) as caught:
        make()
    assert caught.value.expected
    assert caught.value.field == field


def test_a_group_has_one_duration_for_all_or_one_each_or_none() -> None:
    assert GroupTruth((7,)).duration(1) == 7
    assert GroupTruth((7, 8)).duration(1) == 8
    assert GroupTruth().duration(1) is None


def test_whoever_makes_a_workload_tells_the_estimate_or_else_the_mean() -> None:
    def told(*how: object) -> TaskGroup:
        return group_with_truth(2, Resources(1), *how)[0]  # type: ignore[arg-type]

    assert told((7, 10)).estimate == 8
    assert told((7, 10), 100).estimate == 100
    assert (told().estimate, told().endless) == (None, True)
    # Tasks that are said to end, and never do.
    assert (told((), 100).estimate, told((), 100).endless) == (100, False)


def test_workers_are_expected_to_take_as_long_as_all_phases_take_them() -> None:
    group, truth = workers_with_truth(4, Resources(1), (8, 2), (10, 5))
    assert (group.estimate, group.activities, truth.phases) == (25, (8, 2), (10, 5))
    assert workers_with_truth(4, Resources(1), (8, 2), (10, 5), 3)[0].estimate == 3
    assert running_time((3,), (10,), 2) == 15


def test_a_job_is_endless_if_some_of_its_tasks_never_end() -> None:
    ends, endless = group_with_truth(1, Resources(1), (1,)), group_with_truth(1, Resources(1))
    workers = workers_with_truth(1, Resources(1), (1,), (1,))
    assert not simulated_job("a", ends).is_endless
    assert not simulated_job("a", workers).is_endless
    assert simulated_job("a", ends, endless).is_endless


def test_a_job_numbers_its_tasks_through_its_groups() -> None:
    job = Job("a", (TaskGroup(3, Resources(1)), TaskGroup(2, Resources(2))))
    assert job.tasks == 5
    assert job.group_starts() == [0, 3]


@given(
    retries=st.integers(0, MOST_RETRIES),
    command=st.lists(st.text("ab -", min_size=1), min_size=1).map(tuple),
    environment=st.dictionaries(st.text("AB", min_size=1), st.text("x=")),
)
def test_a_job_survives_being_sent(
    retries: int, command: tuple[str, ...], environment: dict[str, str]
) -> None:
    execution = Execution(command, environment, "/tmp", "image:1", "input")
    group = TaskGroup(2, Resources(1), 5, ("t",), retries=retries, execution=execution)
    job = Job("a", (group,), name="nightly run")
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(job), type=Job) == job
    assert msgspec.json.decode(msgspec.json.encode(job), type=Job) == job


def test_tasks_are_counted_through_the_groups_in_order() -> None:
    groups = (
        TaskGroup(2, Resources(1, 1)),
        TaskGroup(1, Resources(2, 2)),
        TaskGroup(3, Resources(3, 3)),
    )
    job = Job("a", groups)
    assert [groups.index(job.group_at(index)) for index in range(6)] == [0, 0, 1, 2, 2, 2]
    with pytest.raises(IndexError, match="job a has no task 6"):
        job.group_at(6)
