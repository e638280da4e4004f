"""Values with two of something, of which the second is wrong; and jobs that are packed from a weight
on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from argosy.model.constraints import (
    AllTags,
    Constraint,
    PlacementConstraint,
    SpreadConstraint,
    TagConstraint,
)
from argosy.model.constraints.lint import Surroundings, lint
from argosy.model.constraints.tables import read_constraint, write_constraint
from argosy.model.constraints.text import parse_constraint
from argosy.model.constraints.yarn import from_yarn
from argosy.model.errors import (
    ArgosyError,
    MissingExtra,
    ModelError,
    UnitError,
    Untranslatable,
    did_you_mean,
)
from argosy.model.job_census import JobCensus
from argosy.model.jobs import MOST_TASKS, Execution, Job, TaskGroup
from argosy.model.packed_jobs import PackedJobs, census_of, packed
from argosy.model.resources import Resources
from argosy.model.tasks import indices_of, task_numbers
from argosy.model.truth import (
    GroupTruth,
    group_with_truth,
    simulated_job,
    workers_with_truth,
)
from argosy.model.units import LARGEST
from argosy.testing.builders import job

ONE = Resources(1)
PLAIN = TaskGroup(1, ONE, 5)
WORKERS = workers_with_truth(1, ONE, (1, 2), (3, 4))
ATOM = TagConstraint(("a",), 0, 1)


@pytest.mark.parametrize(
    ("make", "problem", "field"),
    [
        (
            lambda: Execution(("a",), {"A": "1", "B=": "2"}),
            "environment variable 'B='",
            "environment",
        ),
        (lambda: Execution(("a",), {"A": "1", "": "2"}), "environment variable ''", "environment"),
        (
            lambda: Execution(("a",), {"A": "1", "B": "\0"}),
            "a null character in the environment",
            "environment",
        ),
        (lambda: Execution(("a", "b", "\0")), "a null character in the command", "command"),
        (lambda: Execution(("a",), image="\0"), "a null character in the image", "image"),
        (lambda: Execution(("a",), output_limit=0), "an output limit of 0", "output_limit"),
        (
            lambda: Execution(("a",), output_limit=LARGEST + 1),
            f"an output limit of {LARGEST + 1}",
            "output_limit",
        ),
        (
            lambda: TaskGroup(1, ONE, activities=(1, MOST_TASKS + 1)),
            f"{MOST_TASKS + 1} activities in a phase",
            "activities",
        ),
        (
            lambda: TaskGroup(1, ONE, 5, activities=(1,), endless=True),
            "endless tasks with activities",
            "endless",
        ),
        (lambda: TaskGroup(1, ONE, 5, endless=True), "endless tasks with an estimate", "endless"),
        (
            lambda: Job("a", (PLAIN, WORKERS[0])),
            "job a has phases and several groups",
            "groups",
        ),
        (lambda: Job("a", (PLAIN,), kind="x\n"), "kind 'x\\n'", "kind"),
        (lambda: Job("a", (PLAIN,), kind="x\n", name="y\n"), "kind 'x\\n'", "kind"),
        (lambda: Job("a", (PLAIN,), kind="k", program="x\t"), "program 'x\\t'", "program"),
        (lambda: Job("a", (PLAIN,), owner="o", name="\x07"), "name '\\x07'", "name"),
        (
            lambda: Job("a", (PLAIN,), precedence=-32_769),
            "job a has precedence -32769",
            "precedence",
        ),
        (lambda: GroupTruth((1, -1)), "a duration of -1 µs", "durations"),
        (
            lambda: GroupTruth((1, LARGEST + 1)),
            f"a duration of {LARGEST + 1} µs",
            "durations",
        ),
        (
            lambda: simulated_job(
                "a",
                group_with_truth(2, ONE, (1, 2)),
                (TaskGroup(3, ONE, 5), GroupTruth((1, 2))),
            ),
            "2 durations for 3 tasks",
            "durations",
        ),
        (
            lambda: simulated_job(
                "a",
                group_with_truth(1, ONE, (1,)),
                (TaskGroup(1, ONE, endless=True), GroupTruth((4,))),
            ),
            "durations of tasks that run until stopped",
            "durations",
        ),
        (
            lambda: simulated_job("a", (TaskGroup(3, ONE, 5, activities=(2,)), GroupTruth((4,)))),
            "0 phase durations for 1 phases",
            "phases",
        ),
        (
            lambda: simulated_job("a", (WORKERS[0], GroupTruth(phases=(3, LARGEST + 1)))),
            f"2 activities of {LARGEST + 1} µs",
            "duration",
        ),
        (
            lambda: simulated_job("a", (WORKERS[0], GroupTruth(phases=(3, 4, 5)))),
            "3 phase durations for 2 phases",
            "phases",
        ),
        (lambda: Resources(1, 1, {"a": 1, "b": -1}), "b = -1", None),
        (lambda: Resources(1, LARGEST + 1), f"memory = {LARGEST + 1}", None),
        (
            lambda: Resources(1, 1, {"a": 0, "b": 2}).vector(("cpu", "memory", "c")),
            "the cell has no resource 'b'",
            None,
        ),
        (
            lambda: TagConstraint(("a", "not"), 0, 1),
            "'not' as a tag or group of a constraint",
            None,
        ),
        (lambda: TagConstraint(("a",), 2, 1), "at least 2 and at most 1 containers", None),
        (lambda: TagConstraint(("a",), -1, 1), "at least -1 containers", None),
        (
            lambda: PlacementConstraint(("a", "b c"), ATOM, "rack"),
            "'b c' as a tag or group of a constraint",
            None,
        ),
        (
            lambda: PlacementConstraint(("a",), ATOM, "in"),
            "'in' as a tag or group of a constraint",
            None,
        ),
        (
            lambda: SpreadConstraint(("a",), 1, 2, "->"),
            "'->' as a tag or group of a constraint",
            None,
        ),
        (
            lambda: SpreadConstraint(("a", ""), 1, 2, "rack"),
            "'' as a tag or group of a constraint",
            None,
        ),
        (
            lambda: SpreadConstraint(("a",), 3, 2, "rack"),
            "at least 3 and at most 2 node sets",
            None,
        ),
        (lambda: AllTags((ATOM,)), "1 parts joined", None),
        (
            lambda: Constraint(PlacementConstraint(("a",), ATOM, "rack"), 1e9 + 1),
            "a weight of 1000000001.0",
            None,
        ),
        (
            lambda: Constraint(PlacementConstraint(("a",), ATOM, "rack"), 0.0),
            "a weight of 0.0",
            None,
        ),
    ],
)
def test_the_second_of_two_is_checked_like_the_first(
    make: Callable[[], object], problem: str, field: str | None
) -> None:
    with pytest.raises(ModelError) as caught:
        make()
    assert (caught.value.problem, caught.value.field) == (problem, field)
    assert caught.value.expected


def test_what_is_just_within_bounds_is_fine() -> None:
    Execution(("a",), {"A": "", "B": "="}, output_limit=1)
    Execution(("a",), output_limit=LARGEST)
    TaskGroup(1, ONE, LARGEST, activities=(1, MOST_TASKS))
    simulated_job("a", (WORKERS[0], GroupTruth(phases=(0, LARGEST))), submit=LARGEST)
    simulated_job("a", (TaskGroup(2, ONE, 5), GroupTruth((0, LARGEST))))
    Job("a", (PLAIN,), precedence=-32_768)
    TagConstraint(("a", "b"), LARGEST, LARGEST)
    Constraint(PlacementConstraint(("a",), ATOM, "rack"), 1e9)


@pytest.mark.parametrize(
    ("table", "field", "hint"),
    [
        ({"cpu": 1, "memory": "1gib"}, "memory", "did you mean 'GiB'?"),
        ({"cpu": 0.5, "memory": 1}, "cpu", None),
        ({"cpu": 1, "memry": 0.5}, "memry", "did you mean 'memory'?"),
        ({"cpu": 1, "gpu": 0.5}, "gpu", "did you mean 'cpu'?"),
        ({"cpu": 1, "xyz": "2"}, "xyz", None),
    ],
)
def test_amounts_that_cannot_be_read_name_what_may_be_meant(
    table: dict[str, object], field: str, hint: str | None
) -> None:
    with pytest.raises(UnitError) as caught:
        Resources.parse(table)
    assert (caught.value.field, caught.value.hint) == (field, hint)


def test_names_are_suggested_if_they_are_near_and_only_the_nearest() -> None:
    assert did_you_mean("mashine", ["machine", "machines"]) == "did you mean 'machine'?"
    assert did_you_mean("abcde", ["abxyz"]) is None
    assert did_you_mean("a", []) is None
    assert str(MissingExtra("x", "yaml")) == (
        "x needs the extra 'yaml', which is not installed; pip install 'argosy[yaml]'"
    )
    assert ArgosyError("p", file="f", line=0).place == "f:0"


@pytest.mark.parametrize(
    ("indices", "found"),
    [
        ([], []),
        ([5], [(1, [5])]),
        ([4, 2], [(3, [4, 2])]),
        ([5, 0], [(2, [0]), (1, [5])]),
        ([1, 3, 5, 0], [(2, [1, 0]), (3, [3]), (1, [5])]),
    ],
)
def test_only_groups_that_have_some_of_the_tasks_are_told(
    indices: list[int], found: list[tuple[int, list[int]]]
) -> None:
    made = Job("a", tuple(TaskGroup(count, ONE, 5) for count in (2, 3, 1)))
    tasks = task_numbers(7, indices)
    assert [
        (group.count, indices_of(mine).tolist()) for group, mine in made.tasks_by_group(tasks)
    ] == found


@pytest.mark.parametrize(
    ("texts", "codes"),
    [
        # Who may see some of b does not ask for any.
        (("a -> {b, 0, 3} in machine", "b -> {a, 0, 0} in machine"), []),
        (("a -> {b, 1, 3} in machine", "b -> {a, 0, 0} in machine"), ["conflict"]),
        (("b -> {a, 0, 0} in machine", "a -> {b, 1, inf} in machine"), ["conflict"]),
        (("a -> {b, 0, 0} in machine", "a -> {b, 0, 1} in machine"), []),
        (("a -> {b, 2, inf} in machine", "a -> {b, 0, 1} in machine"), ["conflict"]),
        (("a -> {b, 2, inf} in machine", "a -> {b, 0, 2} in machine"), []),
    ],
)
def test_only_what_asks_for_something_can_conflict_with_a_limit(
    texts: tuple[str, ...], codes: list[str]
) -> None:
    assert [each.code for each in lint([parse_constraint(text) for text in texts])] == codes


def test_all_tags_of_a_constraint_are_in_its_table() -> None:
    for text, subject in (
        ("a & b -> spread {1, 2} over rack", "a & b"),
        ("a & b & c -> {d & e, 0, 2} in rack", "a & b & c"),
    ):
        constraint = parse_constraint(text)
        table = write_constraint(constraint)
        assert table["subject"] == subject
        assert read_constraint(table) == constraint


KNOWN = Surroundings(groups={"rack": 2}, containers=[(frozenset("a"), 2), (frozenset("b"), 1)])


@pytest.mark.parametrize(
    ("second", "found"),
    [
        ("a -> {b, 0, 2} in rack", []),
        (
            "a -> {b, 0, 2} in rak",
            [("error", "there is no node group 'rak'; did you mean 'rack'?")],
        ),
        (
            "a -> {b, 0, 2} and {b, 3, inf} in rack",
            [("error", "the expression can never hold")],
        ),
        ("a -> spread {2, inf} over rack", []),
        (
            "a -> spread {3, inf} over rack",
            [
                ("error", "spread over 3 sets, but rack has 2"),
                ("warning", "spread over 3 sets, but there are 2 such containers"),
            ],
        ),
        ("b -> {a, 0, 1} in rack", []),
        (
            "z -> {b, 0, 2} in rack",
            [("warning", "no container carries z"), ("warning", "nobody carries the tag 'z'")],
        ),
        ("a -> {b & y, 0, 2} in rack", [("warning", "nobody carries the tag 'y'")]),
    ],
)
def test_every_part_of_a_rule_is_looked_at(second: str, found: list[tuple[str, str]]) -> None:
    told = lint([parse_constraint(f"a -> {{b, 0, 1}} in rack and {second}")], KNOWN)
    assert [(each.severity, each.problem) for each in told] == found
    assert {each.constraint for each in told} <= {0}


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("zk=3,INN,NODE,zk:hb=5,IN,RACK,zk:sp=7,IN,NODE,hb", 6),
        ("zk=3,NOTIN,NODE,zk:hb=5,INN,RACK,zk:sp=7,IN,NODE,hb", 25),
        ("zk=3,NOTIN,NODE,zk:hb=5,IN,RACK,zk:sp=7,INN,NODE,hb", 41),
        ("zk=3,AND(INN,NODE,a:IN,NODE,b:IN,NODE,c)", 10),
        ("zk=3,AND(IN,NODE,a:INN,NODE,b:IN,NODE,c)", 20),
        ("zk=3,AND(IN,NODE,a:IN,NODE,b:INN,NODE,c)", 30),
        ("hb=1,IN,NODE,a:zk=3,OR(IN,NODE,a:AND(IN,NODE,b:INN,NODE,c:IN,NODE,d):IN,NODE,e)", 48),
    ],
)
def test_a_mistake_in_a_specification_for_yarn_has_its_column(text: str, column: int) -> None:
    with pytest.raises(Untranslatable) as caught:
        from_yarn(text)
    assert caught.value.problem == f"unknown kind 'INN' at column {column} of {text!r}"
    assert text[column - 1 :].startswith("INN")


class TestPacking:
    def test_jobs_are_packed_if_they_weigh_more_than_that(self) -> None:
        """A job weighs 20, and each of its durations 1."""
        two = [job("a"), simulated_job("b", group_with_truth(3, ONE, (1, 2, 3)))]
        assert isinstance(packed(two, most=44), tuple)
        assert isinstance(packed(two, most=43), PackedJobs)
        assert packed(iter(two), most=20) == packed(two) == tuple(two)
        assert isinstance(packed([], most=0), tuple)
        endless = job("c", seconds=None)
        assert isinstance(packed([endless], most=20), tuple)
        assert isinstance(packed([endless], most=19), PackedJobs)

    def test_packed_jobs_keep_the_count_that_was_made_of_them(self) -> None:
        jobs = PackedJobs(job(f"j{at}", kind="ab"[at % 2]) for at in range(1_200))
        assert census_of(jobs) is jobs.census
        assert isinstance(census_of([job("a")]), JobCensus)
        assert repr(jobs) == "<1,200 packed jobs>"

    def test_parts_of_packed_jobs_are_plain(self) -> None:
        all_of_them = tuple(job(f"j{at}") for at in range(520))
        jobs = PackedJobs(all_of_them)
        for part in (slice(254, 258), slice(None, None, -250), slice(-1, None), slice(700, 800)):
            assert jobs[part] == all_of_them[part]
        assert [jobs[at].id for at in (255, 256, 511, 512, -520)] == [
            "j255", "j256", "j511", "j512", "j0",
        ]  # fmt: skip
        for beyond in (520, -521):
            with pytest.raises(IndexError):
                jobs[beyond]
        assert jobs != all_of_them[:-1]
        assert jobs != {1}
