"""Numbers that values accept: the smallest and the largest, and nothing beyond them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from argosy.model.errors import (
    LONGEST_ECHO,
    ArgosyError,
    ModelError,
    UnknownName,
    did_you_mean,
    excerpt,
)
from argosy.model.jobs import (
    LONGEST_BACKOFF,
    MOST_RETRIES,
    MOST_TASKS,
    Execution,
    Job,
    TaskGroup,
    task_number,
)
from argosy.model.resources import Resources, dimensions_of
from argosy.model.truth import (
    GroupTruth,
    SimulatedJob,
    check_phase,
    group_with_truth,
    running_time,
    simulated_job,
    told_by_default,
    workers_with_truth,
)

ONE = Resources(1, 1)
LARGEST = 2**53


def group(**fields: Any) -> TaskGroup:
    return TaskGroup(**{"count": 1, "request": ONE, **fields})


def job(**fields: Any) -> Job:
    return Job(**{"id": "a", "groups": (group(),), **fields})


@pytest.mark.parametrize(
    ("make", "lowest", "highest"),
    [
        (lambda n: Resources(cpu=n), 0, LARGEST),
        (lambda n: Resources(memory=n), 0, LARGEST),
        (lambda n: Resources(extras={"gpu": n}), 0, LARGEST),
        (lambda n: group(count=n), 1, MOST_TASKS),
        (lambda n: group(estimate=n), 0, LARGEST),
        (lambda n: group(activities=(1, n)), 1, MOST_TASKS),
        (lambda n: group(retries=n), 0, MOST_RETRIES),
        (lambda n: job(precedence=n), -32_768, 32_767),
        (lambda n: GroupTruth(durations=(0, n)), 0, LARGEST),
        (lambda n: SimulatedJob(job(), n, (GroupTruth(),)), 0, LARGEST),
        (lambda n: check_phase(n, 0), 1, MOST_TASKS),
        (lambda n: check_phase(1, n), 0, LARGEST),
        (lambda n: check_phase(MOST_TASKS, n), 0, 2**38),
        (lambda n: Execution(("true",), output_limit=n), 1, None),
    ],
)
def test_a_number_may_be_as_small_and_as_large_as_it_says(
    make: Callable[[int], object], lowest: int, highest: int | None
) -> None:
    make(lowest)
    with pytest.raises(ModelError):
        make(lowest - 1)
    if highest is not None:
        make(highest)
        with pytest.raises(ModelError):
            make(highest + 1)


def test_bounds_are_those_that_are_documented() -> None:
    assert (MOST_TASKS, MOST_RETRIES, LONGEST_BACKOFF) == (16_777_216, 1_000_000, 300_000_000)
    default = Execution(("true",))
    assert (default.grace, default.output_limit, default.timeout) == (10_000_000, 67_108_864, 0)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "nothing to execute"),
        ({"command": ("",)}, "a command without a name"),
        ({"command": ("a\0",)}, "a null character in the command"),
        ({"command": ("a",), "environment": {"": "x"}}, "environment variable ''"),
        ({"command": ("a",), "environment": {"A=B": "x"}}, "environment variable 'A=B'"),
        ({"command": ("a",), "environment": {"A\0": "x"}}, "a null character in the environment"),
        ({"command": ("a",), "environment": {"A": "\0"}}, "a null character in the environment"),
        ({"command": ("a",), "working_directory": "\0"}, "in the working directory"),
        ({"image": "a\0"}, "a null character in the image"),
    ],
)
def test_what_cannot_be_executed_says_why(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        Execution(**fields)


def test_an_image_or_a_command_is_enough_to_execute() -> None:
    assert Execution(image="i").command == ()
    assert Execution(("a", ""), {"A": "=", "B": ""}).image == ""


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: group(endless=True, estimate=0), "endless tasks with an estimate"),
        (lambda: group(endless=True, activities=(1,)), "endless tasks with activities"),
        (lambda: job(groups=()), "job a has no tasks"),
        (
            lambda: job(groups=(group(), group(activities=(1,)))),
            "job a has phases and several groups",
        ),
        (lambda: job(owner="a\n"), r"owner 'a\\n'"),
        (lambda: job(kind="\t"), "kind"),
        (lambda: job(program="\t"), "program"),
        (lambda: job(name="\t"), "name"),
        (lambda: job(id="a/b"), "job id 'a/b'"),
        (lambda: job(id="a b"), "job id 'a b'"),
        (lambda: job(id=""), "job id ''"),
        (lambda: GroupTruth((1,), (1,)), "both phases and durations"),
        (lambda: SimulatedJob(job(), 0, ()), "1 groups and running times for 0"),
        (
            lambda: SimulatedJob(job(groups=(group(count=3),)), 0, (GroupTruth((1, 2)),)),
            "2 durations for 3 tasks",
        ),
        (
            lambda: SimulatedJob(job(groups=(group(endless=True),)), 0, (GroupTruth((1,)),)),
            "durations of tasks that run until stopped",
        ),
        (
            lambda: SimulatedJob(
                job(groups=(group(activities=(1, 2)),)), 0, (GroupTruth(phases=(1,)),)
            ),
            "1 phase durations for 2 phases",
        ),
        (
            lambda: dimensions_of([Resources(extras={f"r{n}": 1}) for n in range(7)]),
            "9 resource dimensions",
        ),
        (lambda: Resources(extras={"gpu": 1}).vector(("cpu", "memory")), "no resource 'gpu'"),
    ],
)
def test_values_that_contradict_themselves_say_so(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        make()


def test_vectors_follow_the_order_of_the_dimensions() -> None:
    asked = Resources(1, 2, {"gpu": 3, "disk": 0})
    assert asked.vector(("memory", "gpu", "cpu")) == (2, 3, 1)
    assert asked.within(("gpu", "tape")) == (3, 0)
    assert Resources(1, 2).vector(("cpu", "memory", "gpu")) == (1, 2, 0)
    assert Resources(1, 2).vector(("memory", "cpu")) == (2, 1)
    assert dimensions_of([Resources(extras={"z": 0}), Resources(extras={"a": 1})]) == (
        "cpu",
        "memory",
        "a",
        "z",
    )
    eight = dimensions_of([Resources(extras={f"r{n}": 1}) for n in range(6)])
    assert len(eight) == 8


def test_tasks_belong_to_the_group_their_index_falls_in() -> None:
    groups = tuple(group(count=count) for count in (2, 3, 1))
    made = job(groups=groups)
    assert (made.tasks, made.group_starts()) == (6, [0, 2, 5])
    tasks = np.array([task_number(4, index) for index in (5, 1, 2, 0)], np.int64)
    found = [
        (each.count, [task & 0xFF for task in mine.tolist()])
        for each, mine in made.tasks_by_group(tasks)
    ]
    assert found == [(2, [1, 0]), (3, [2]), (1, [5])]
    assert list(job().tasks_by_group(tasks[:0])) == []
    assert [len(mine) for _, mine in job().tasks_by_group(tasks)] == [4]
    own = made.is_own(np.array([task_number(4, 5), task_number(4, 6)], np.int64))
    assert own.tolist() == [True, False]


def test_running_times_are_told_by_workers_and_phases() -> None:
    # 7 activities of 10 by 3 workers: 70 / 3, rounded up; 2 of 5 by the 2 that have one each.
    assert running_time((7, 2), (10, 5), 3) == 24 + 5
    assert running_time((2**24,), (2**38,), 1) == LARGEST
    workers, truth = workers_with_truth(3, ONE, (7, 2), (10, 5))
    assert (workers.estimate, truth.phases, workers.activities) == (29, (10, 5), (7, 2))
    assert told_by_default(workers, truth) == 29
    assert workers_with_truth(3, ONE, (7,), (10,), 4)[0].estimate == 4


def test_the_estimate_is_the_mean_unless_one_is_given() -> None:
    one, truth = group_with_truth(2, ONE, (3, 6))
    assert (one.estimate, one.endless, truth.mean()) == (4, False, 4)
    assert (truth.duration(0), truth.duration(1)) == (3, 6)
    assert told_by_default(one, truth) == 4
    guessed, _ = group_with_truth(2, ONE, (3,), estimate=0)
    assert (guessed.estimate, guessed.endless) == (0, False)
    endless, until_stopped = group_with_truth(2, ONE)
    assert (endless.estimate, endless.endless) == (None, True)
    assert (until_stopped.mean(), until_stopped.duration(1)) == (None, None)
    assert GroupTruth((7,)).duration(5) == 7
    secret, _ = group_with_truth(1, ONE, (), estimate=9)
    assert not secret.endless
    assert simulated_job("a", (secret, GroupTruth())).is_endless
    assert not simulated_job("a", group_with_truth(1, ONE, (1,))).is_endless
    mixed = simulated_job("a", group_with_truth(1, ONE, (1,)), (secret, GroupTruth()))
    assert (mixed.is_endless, mixed.tasks, mixed.submit) == (True, 2, 0)


class TestErrors:
    def test_a_message_has_its_place_its_expectation_and_its_hint(self) -> None:
        error = ArgosyError("bad", file="f", line=3, field="x", expected="good", hint="try")
        assert str(error) == "f:3: x: bad; expected good; try"
        assert str(ArgosyError("bad", line=0)) == "line 0: bad"
        assert str(ArgosyError("bad", field="x")) == "x: bad"
        assert str(ArgosyError("bad", file="f", field="x")) == "f: x: bad"
        assert str(ArgosyError("bad")) == "bad"

    def test_a_place_is_filled_in_where_it_is_missing(self) -> None:
        error = ArgosyError("bad", line=0).located(file="f", line=3, field="x")
        assert str(error) == "f:0: x: bad"
        assert str(error.located(file="g", line=4, field="y")) == "f:0: x: bad"
        assert str(ArgosyError("bad").located(line=4)) == "line 4: bad"

    def test_an_unknown_name_lists_the_known_ones_and_the_nearest(self) -> None:
        error = UnknownName("pet", "dgo", ["dog", "cat"], file="f")
        assert str(error) == ("f: unknown pet 'dgo'; expected one of cat, dog; did you mean 'dog'?")
        assert str(UnknownName("pet", "x", [])) == "unknown pet 'x'"
        assert did_you_mean("xyz", ["dog"]) is None

    def test_a_long_text_is_quoted_around_the_mistake(self) -> None:
        text = "".join(chr(ord("a") + n % 26) for n in range(2 * LONGEST_ECHO))
        assert excerpt(text[:LONGEST_ECHO]) == repr(text[:LONGEST_ECHO])
        assert excerpt(text) == repr(text[:60]) + "..."
        assert excerpt(text, 30) == repr(text[:60]) + "..."
        assert excerpt(text, 31) == "..." + repr(text[1:61]) + "..."
        assert excerpt(text, 119) == "..." + repr(text[60:])
