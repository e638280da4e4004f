"""What an annotation with placement constraints means, and what is said of one that means nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from test_pod_cluster import pod

from argosy.kubernetes.meta import OwnerReference
from argosy.kubernetes.objects import Pod
from argosy.model.constraints.text import format_constraint
from argosy.model.errors import ModelError
from argosy.model.jobs import Job, TaskGroup
from argosy.model.resources import Resources
from argosy.worlds.kubernetes.annotated_constraints import (
    CONSTRAINTS,
    AnnotatedConstraints,
    constraint_tags,
    read_annotation,
)

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
PLAIN = Job(id="j", groups=(TaskGroup(1, Resources(1, 1)), TaskGroup(1, Resources(2, 1))))


def annotated(text: str, *, owner: str = "", **labels: str) -> Pod:
    made = pod("p")
    owners = (OwnerReference(kind="Other", name="x"),)
    if owner:
        owners += (OwnerReference(kind="ReplicaSet", name=owner, controller=True),)
    metadata: Any = msgspec.structs.replace(
        made.metadata,
        annotations={CONSTRAINTS: text},
        labels=labels,
        owner_references=owners,
    )
    return msgspec.structs.replace(made, metadata=metadata)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a -> {b, 0, 0} in machine", "a & namespace:one -> {b, 0, 0} in machine"),
        ("a & b -> {c, 1, inf} in zone hard", f"a & b & namespace:one -> {{c, 1, inf}} in {ZONE} hard"),
        (
            f"a -> {{b, 1, 2}} in {REGION} weight 3",
            f"a & namespace:one -> {{b, 1, 2}} in {REGION} weight 3",
        ),
        (
            "a -> spread {1, 2} over region",
            f"a & namespace:one -> spread {{1, 2}} over {REGION}",
        ),
        (
            "a -> {b, 1, inf} in zone and c -> spread {0, 1} over machine",
            f"a & namespace:one -> {{b, 1, inf}} in {ZONE} and c & namespace:one -> spread {{0, 1}}"
            " over machine",
        ),
        (
            "a -> {b, 1, inf} in zone or c -> {d, 0, 1} in region",
            f"a & namespace:one -> {{b, 1, inf}} in {ZONE} or c & namespace:one -> {{d, 0, 1}} in"
            f" {REGION}",
        ),
        (
            "appID:self -> {appID:self, 0, 1} in machine",
            "appID:one/Pod/p & namespace:one -> {appID:one/Pod/p, 0, 1} in machine",
        ),
    ],
)  # fmt: skip
def test_a_line_is_about_pods_of_the_namespace(text: str, expected: str) -> None:
    [found] = read_annotation(annotated(text))
    assert format_constraint(found) == expected


def test_each_line_but_empty_ones_and_remarks_is_a_constraint() -> None:
    text = "\n  # what for\na -> {b, 0, 0} in machine\n\n  a -> {c, 0, 0} in machine  \n#"
    found = [format_constraint(each) for each in read_annotation(annotated(text))]
    assert found == [f"a & namespace:one -> {{{each}, 0, 0}} in machine" for each in "bc"]
    assert read_annotation(annotated("# nothing\n \n")) == ()
    assert read_annotation(pod("p")) == ()


def test_pods_of_one_controller_are_one_application() -> None:
    owned = annotated("appID:self -> {appID:self, 0, 0} in machine", owner="web", app="web")
    [found] = read_annotation(owned)
    tag = "appID:one/ReplicaSet/web"
    assert format_constraint(found) == f"{tag} & namespace:one -> {{{tag}, 0, 0}} in machine"
    assert constraint_tags(owned) == ("app:web", tag, "namespace:one")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a -> {b, 0, 0} in rack",
            "line 1: there is no node group 'rack'; expected one of machine, zone, region, "
            f"{ZONE}, {REGION}",
        ),
        (
            "# so\na -> spread {1, 1} over disk",
            "line 2: there is no node group 'disk'; expected one of machine, zone, region, "
            f"{ZONE}, {REGION}",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, expected: str) -> None:
    made = annotated(text)
    with pytest.raises(ModelError) as caught:
        read_annotation(made)
    assert str(caught.value) == expected
    told = AnnotatedConstraints().obstacle(made)
    assert told == f"its annotation {CONSTRAINTS} cannot be read: {expected}"


def test_an_engine_that_ignores_constraints_is_an_obstacle_to_those_that_have_some() -> None:
    ignoring = AnnotatedConstraints(ignoring=lambda each: "omega" if each.name == "p" else "")
    made = annotated("a -> {b, 0, 0} in machine")
    assert ignoring.obstacle(made) == (
        f"its annotation {CONSTRAINTS} asks for placement constraints, which omega ignores: name a"
        " scheduler that acts on them, such as medea, or remove the annotation"
    )
    assert ignoring.obstacle(annotated(" \n")) == ""
    assert ignoring.obstacle(pod("p")) == ""
    assert AnnotatedConstraints().obstacle(made) == ""


def test_a_job_has_the_tags_of_its_pod_where_a_scheduler_acts_on_them() -> None:
    made = annotated("a -> {b, 0, 0} in machine", app="web")
    assert AnnotatedConstraints().applied(PLAIN, made) is PLAIN
    acting = AnnotatedConstraints(matters=lambda: True)
    found = acting.applied(PLAIN, made)
    tags = ("app:web", "appID:one/Pod/p", "namespace:one")
    assert [group.tags for group in found.groups] == [tags, tags]
    assert [group.request.cpu for group in found.groups] == [1, 2]
    assert found.constraints == read_annotation(made)
    assert acting.applied(PLAIN, pod("p")).constraints == ()
    ignoring = AnnotatedConstraints(ignoring=lambda _: "omega", matters=lambda: True)
    assert ignoring.applied(PLAIN, made).constraints == ()
