"""What constraints mean: the reference checker against cases worked out by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.model.constraints.meaning import Container, Meaning, distance
from argosy.model.constraints.parts import container_tags, of_job, tags_at, with_name
from argosy.model.constraints.text import format_constraint, parse_constraint
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.resources import Resources

ROOM = Resources(1000)
#: Two racks of two; the zones overlap in the machine c.
MACHINES = [
    Machine("a", ROOM, {"gpu": "true"}, {"rack": ("r1",), "zone": ("east",)}),
    Machine("b", ROOM, {"disk": "ssd"}, {"rack": ("r1",), "zone": ("east",)}),
    Machine("c", ROOM, {}, {"rack": ("r2",), "zone": ("east", "west")}),
    Machine("d", ROOM, {}, {"rack": ("r2",), "zone": ("west",)}),
]


def placed(text: str) -> list[Container]:
    """``hb,mem@a web@b``"""
    return [
        Container(frozenset(tags.split(",")), machine)
        for tags, machine in (word.split("@") for word in text.split())
    ]


def extents(constraint: str, containers: str) -> list[float | None]:
    meaning, where = Meaning(MACHINES), placed(containers)
    rule = parse_constraint(constraint).rule
    return [meaning.extent(rule, container, where) for container in where]


@pytest.mark.parametrize(
    ("constraint", "containers", "expected"),
    [
        # Affinity needs one container with both tags, in the same set.
        ("storm -> {hb & mem, 1, inf} in machine", "storm@a hb,mem@a", [0, None]),
        ("storm -> {hb & mem, 1, inf} in machine", "storm@a hb@a mem@a", [1, None, None]),
        ("storm -> {hb & mem, 1, inf} in rack", "storm@a hb,mem@b", [0, None]),
        # A container does not count itself.
        ("hb -> {hb, 0, 0} in machine", "hb@a", [0]),
        ("hb -> {hb, 0, 0} in machine", "hb@a hb@a", [1, 1]),
        ("hb -> {hb, 0, 1} in machine", "hb@a hb@a hb@a", [1, 1, 1]),
        ("hb -> {hb, 0, 2} in machine", "hb@a hb@a hb@a hb@a hb@a", [1, 1, 1, 1, 1]),
        ("hb -> {hb, 0, 2} in rack", "hb@a hb@a hb@b hb@b", [0.5, 0.5, 0.5, 0.5]),
        # Nine and one are nearer to one rack than five and five.
        ("w -> {w, 3, inf} in rack", "w@a w@a w@b w@c", [1 / 3, 1 / 3, 1 / 3, 1]),
        ("w -> {w, 3, inf} in rack", "w@a w@a w@c w@c", [2 / 3] * 4),
        # Expressions: both in one set, the nearer of two, and negation moved inwards.
        ("s -> {x, 1, inf} and {y, 1, inf} in rack", "s@a x@a y@c", [1, None, None]),
        ("s -> {x, 1, inf} or {y, 4, inf} in rack", "s@a y@a", [0.75, None]),
        ("s -> not {x, 1, inf} in rack", "s@a x@b", [1, None]),
        ("s -> not {x, 1, 2} in rack", "s@a x@b", [2 / 3, None]),
        ("s -> not ({x, 1, inf} or {y, 1, inf}) in rack", "s@a x@b y@b", [2, None, None]),
        ("s -> not not {x, 1, inf} in rack", "s@a x@b", [0, None]),
        ("s -> not {x, 0, inf} in rack", "s@a", [1]),
        # A machine in several sets of a group keeps what one of them allows.
        ("s -> {x, 0, 0} in zone", "s@c x@a", [0, None]),
        ("s -> {x, 0, 0} in zone", "s@c x@a x@d", [1, None, None]),
        ("s -> {x, 0, 0} in zone", "s@a x@c", [1, None]),
        ("s -> {x, 0, 0} in hall", "s@a", [1]),
        # Static tags of machines count like a container that is always there.
        ("s -> {gpu, 1, inf} in machine", "s@a s@b", [0, 1]),
        ("s -> {disk:ssd, 0, 0} in rack", "s@a s@c", [1, 0]),
        # Compound: the parts that concern a container.
        ("s -> {x, 1, inf} in machine or s -> {x, 1, inf} in rack", "s@a x@b", [0, None]),
        ("s -> {x, 1, inf} in machine and s -> {y, 0, 0} in rack", "s@a y@b", [2, None]),
        ("s -> {y, 0, 0} in rack or y -> {s, 0, 0} in machine", "s@a y@b", [1, 0]),
        # Spread: how many sets hold a subject.
        ("s -> spread {2, inf} over rack", "s@a s@b", [0.5, 0.5]),
        ("s -> spread {2, inf} over rack", "s@a s@c", [0, 0]),
        ("s -> spread {0, 1} over rack", "s@a s@c", [1, 1]),
        ("s -> spread {2, 2} over zone", "s@c", [0]),
    ],
)
def test_the_extent_of_each_container_is_as_the_definition_says(constraint, containers, expected):
    assert extents(constraint, containers) == pytest.approx(expected)


def test_a_judgement_weighs_extents_and_counts_each_violating_container_once() -> None:
    constraints = [
        parse_constraint("s -> {x, 1, inf} in machine weight 2"),
        parse_constraint("s -> {x, 1, inf} in rack weight 4"),
    ]
    judged = Meaning(MACHINES).judge(constraints, placed("s@a s@c x@b"))
    assert judged.total == 2 + 2 + 4
    assert judged.containers == 2
    assert judged.concerned == 4


@given(st.integers(0, 9), st.integers(0, 9), st.none() | st.integers(0, 9))
@settings(derandomize=True, deadline=None)
def test_a_distance_is_zero_just_within_the_bounds(count, least, extra) -> None:
    most = None if extra is None else least + extra
    within = count >= least and (most is None or count <= most)
    assert (distance(count, least, most) == 0) == within


def test_containers_carry_the_tags_of_their_job() -> None:
    job = Job("a->b", (TaskGroup(1, ROOM, tags=("hb",)),), kind="service", owner="ann")
    tags = container_tags(job, job.groups[0])
    assert tags == ("appID:a__b", "containerID:a__b/0", "hb", "kind:service", "owner:ann")


def test_a_container_has_its_own_tag_only_where_it_is_named() -> None:
    job = Job("j", (TaskGroup(2, ROOM), TaskGroup(3, ROOM, tags=("w",))))
    shared = frozenset(container_tags(job, job.groups[1]))
    names = frozenset({"containerID:j/3", "containerID:other/2"})
    assert with_name(shared, 3, names) == shared | {"containerID:j/3"} == tags_at(job, 3)
    assert with_name(shared, 2, names) == with_name(shared, 3, frozenset()) == shared
    assert not any(tag.startswith("containerID:") for tag in shared)


def test_jobs_of_one_application_do_not_share_the_names_of_containers() -> None:
    pod = Job("pod", (TaskGroup(1, ROOM, tags=("appID:web",)),))
    tags = frozenset(container_tags(pod, pod.groups[0]))
    assert with_name(tags, 0, frozenset({"containerID:web/0"})) == tags


def test_a_jobs_constraints_may_say_self() -> None:
    own = of_job("j1", [parse_constraint("appID:self & w -> {appID:self, 0, 0} in rack")])
    assert [format_constraint(c) for c in own] == ["appID:j1 & w -> {appID:j1, 0, 0} in rack"]
