"""Which changes of a job's tasks are refused, with which words, and to which group a task belongs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from argosy.host.job_control import JobControl, _group
from argosy.model.errors import ModelError
from argosy.model.jobs import Job, TaskGroup
from argosy.model.resources import Resources
from argosy.testing.builders import shared_job

ONE, OTHER = Resources(1_000, 1), Resources(2_000, 1)


def job(*groups: tuple[int, Resources], **fields: object) -> Job:
    made = tuple(TaskGroup(count=count, request=request) for count, request in groups)
    return Job(id="j", groups=made, **fields)  # type: ignore[arg-type]


TWO_GROUPS = job((2, ONE), (3, OTHER))
SHARED = replace(shared_job("j", 2, (8,), (5.0,)).job, id="j")
FOLLOWED = ("job j changes a group that others follow", "groups")
COUNTS = "another count in the last group, or new groups after it"


def check(before: Job, after: Job) -> None:
    JobControl._check_scaled(None, before, after)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (job((2, ONE)), job((5, ONE))),
        (job((2, ONE)), job((1, ONE))),
        (job((2, ONE)), job((2, ONE))),
        (TWO_GROUPS, job((2, ONE), (9, OTHER))),
        (TWO_GROUPS, job((2, ONE), (1, OTHER))),
        # New groups may ask for whatever they like, as long as the last one stays.
        (TWO_GROUPS, job((2, ONE), (3, OTHER), (7, Resources(5, 5)))),
        (job((2, ONE)), job((2, ONE), (1, OTHER), (4, ONE))),
    ],
)
def test_the_last_group_may_change_its_count_or_be_followed(before: Job, after: Job) -> None:
    check(before, after)


@pytest.mark.parametrize(
    ("before", "after", "problem", "field", "expected", "hint"),
    [
        (job((2, ONE)), replace(job((2, ONE)), id="k"), "job j becomes k", "id", "j", None),
        *(
            (
                before,
                after,
                "job j shares work among its workers",
                "groups",
                None,
                "its scheduler adds and releases workers",
            )
            for before, after in (
                (SHARED, SHARED),
                (SHARED, job((5, ONE))),
                (job((2, ONE)), SHARED),
            )
        ),
        (TWO_GROUPS, job((3, ONE), (3, OTHER)), *FOLLOWED, COUNTS, None),
        (TWO_GROUPS, job((2, OTHER), (3, OTHER)), *FOLLOWED, COUNTS, None),
        (TWO_GROUPS, job((2, ONE)), *FOLLOWED, COUNTS, None),
        (TWO_GROUPS, job((3, OTHER), (2, ONE)), *FOLLOWED, COUNTS, None),
        (
            job((2, ONE)),
            job((2, OTHER)),
            "job j asks for something else",
            "request",
            "the same request",
            None,
        ),
        (
            TWO_GROUPS,
            job((2, ONE), (3, ONE), (1, OTHER)),
            "job j asks for something else",
            "request",
            "the same request",
            None,
        ),
        *(
            (
                TWO_GROUPS,
                job((2, ONE), (count, OTHER), (1, ONE)),
                "job j changes a group that others follow",
                "count",
                "new groups, or another count in the last one",
                None,
            )
            for count in (2, 4)
        ),
    ],
)
def test_other_changes_are_refused_and_say_what_would_do(
    before: Job, after: Job, problem: str, field: str, expected: str | None, hint: str | None
) -> None:
    with pytest.raises(ModelError) as caught:
        check(before, after)
    error = caught.value
    assert problem in str(error)
    assert (error.field, error.expected, error.hint) == (field, expected, hint)


def test_a_task_belongs_to_the_group_in_whose_range_it_is() -> None:
    found = job((2, ONE), (3, OTHER), (1, ONE))
    first, second, third = found.groups
    groups = [_group(found, index) for index in range(7)]
    assert groups == [first, first, second, second, second, third, None]
    assert [_group(SHARED, index) for index in range(3)] == [SHARED.groups[0]] * 2 + [None]
