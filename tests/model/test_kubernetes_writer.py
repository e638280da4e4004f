"""What a pod has to say for Kubernetes to keep constraints, and what it cannot say."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.constraints.kubernetes import label, tag_of, to_kubernetes
from argosy.model.constraints.kubernetes_reader import from_kubernetes
from argosy.model.constraints.text import format_constraint, parse_constraint
from argosy.model.errors import Untranslatable

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"
STATIC = ("disk:ssd", "disk:nvme", "gpu", "arch:arm")


def spec(*texts: str, tags: tuple[str, ...] = ("w",)) -> dict[str, Any]:
    return to_kubernetes([parse_constraint(text) for text in texts], tags, STATIC)


def pods(group: str, **labels: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": labels}, "topologyKey": group}


def has(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def test_a_tag_is_a_label_and_back() -> None:
    for tag, pair in (
        ("web", ("web", "true")),
        ("app:web", ("app", "web")),
        ("a:b:c", ("a", "b:c")),
    ):
        assert label(tag) == pair
        assert tag_of(*pair) == tag
    assert tag_of("web", "false") == "web:false"


def test_a_pod_without_constraints_has_its_labels_in_order() -> None:
    assert spec(tags=("web", "app:x", "b")) == {"labels": {"app": "x", "b": "true", "web": "true"}}
    assert list(spec(tags=("web", "app:x", "b"))["labels"]) == ["app", "b", "web"]


def test_a_pod_has_one_value_of_each_label() -> None:
    with pytest.raises(Untranslatable) as caught:
        spec(tags=("w", "app:y", "b", "app:x"))
    assert caught.value.problem == "tags app:x and app:y"
    assert caught.value.expected == "one value for each label"
    # These are the same label.
    assert spec(tags=("web", "web:true")) == {"labels": {"web": "true"}}


def test_constraints_of_other_pods_are_left_out_and_their_weights_do_not_count() -> None:
    found = spec(
        "w -> {a, 1, inf} in rack weight 2",
        "w -> {b, 0, 0} in zone weight 0.5",
        "other -> {c, 1, inf} in rack weight 1000",
        "w & other -> {d, 1, inf} in rack hard",
    )
    assert found == {
        "labels": {"w": "true"},
        "affinity": {
            "podAffinity": {
                PREFERRED: [{"weight": 100, "podAffinityTerm": pods("rack", a="true")}]
            },
            "podAntiAffinity": {
                PREFERRED: [
                    {
                        "weight": 25,
                        "podAffinityTerm": pods("topology.kubernetes.io/zone", b="true"),
                    }
                ]
            },
        },
    }


def test_a_weight_is_relative_to_the_heaviest_and_at_least_one() -> None:
    found = spec(
        *(f"w -> {{a, 1, inf}} in rack weight {weight}" for weight in ("200", "1", "0.9", "101"))
    )
    terms = found["affinity"]["podAffinity"][PREFERRED]
    assert [term["weight"] for term in terms] == [100, 1, 1, 50]


def test_required_terms_come_before_preferred_ones_and_each_keeps_its_order() -> None:
    found = spec(
        "w -> {b, 0, 0} in machine",
        "w -> {a, 0, 0} in machine hard",
        "w -> {c & app:x, 1, inf} in region hard",
        "w -> {d, 0, 0} in machine hard",
    )
    region = "topology.kubernetes.io/region"
    assert found["affinity"] == {
        "podAffinity": {REQUIRED: [pods(region, c="true", app="x")]},
        "podAntiAffinity": {
            REQUIRED: [pods(HOST, a="true"), pods(HOST, d="true")],
            PREFERRED: [{"weight": 100, "podAffinityTerm": pods(HOST, b="true")}],
        },
    }
    assert list(found["affinity"]) == ["podAffinity", "podAntiAffinity"]
    assert list(found["affinity"]["podAntiAffinity"]) == [REQUIRED, PREFERRED]


def test_labels_of_nodes_are_wished_for_or_demanded() -> None:
    found = spec(
        "w -> {gpu, 1, inf} in machine weight 3",
        "w -> {arch:arm, 0, 0} in machine",
        "w -> {disk:ssd, 1, inf} or {disk:nvme & gpu, 1, inf} in machine hard",
        "w -> not {arch:arm, 1, inf} in machine hard",
    )
    no_arm = has("arch", "arm", operator="NotIn")
    assert found == {
        "labels": {"w": "true"},
        "affinity": {
            "nodeAffinity": {
                REQUIRED: {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [has("disk", "ssd"), no_arm]},
                        {
                            "matchExpressions": [
                                has("disk", "nvme"),
                                has("gpu", "true"),
                                no_arm,
                            ]
                        },
                    ]
                },
                PREFERRED: [
                    {"weight": 100, "preference": {"matchExpressions": [has("gpu", "true")]}},
                    {"weight": 33, "preference": {"matchExpressions": [no_arm]}},
                ],
            }
        },
    }


def test_two_alternatives_after_two_are_four() -> None:
    either = "w -> {disk:ssd, 1, inf} or {gpu, 1, inf} in machine hard"
    terms = spec(either, either)["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    ssd, gpu = has("disk", "ssd"), has("gpu", "true")
    assert [term["matchExpressions"] for term in terms] == [
        [ssd, ssd],
        [ssd, gpu],
        [gpu, ssd],
        [gpu, gpu],
    ]


@pytest.mark.parametrize(("tags", "skew"), [(("w", "a"), 4), (("w",), 3), (("w", "a", "b"), 4)])
def test_an_upper_bound_is_a_spread_over_domains(tags: tuple[str, ...], skew: int) -> None:
    found = spec("w -> {a, 0, 3} in zone hard", "w -> {z, 0, inf} in rack", tags=tags)
    assert found == {
        "labels": dict.fromkeys(sorted(tags), "true"),
        "topologySpreadConstraints": [
            {
                "maxSkew": skew,
                "minDomains": 1_000_000,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"a": "true"}},
            }
        ],
    }


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        (
            "w -> spread {1, 2} over rack",
            "Kubernetes does not count the domains that pods are in",
            None,
        ),
        (
            "w -> {a, 1, inf} in rack or w -> {b, 1, inf} in rack",
            "Kubernetes has no 'or' between constraints",
            None,
        ),
        ("w -> not {a, 0, inf} in rack", "it can never hold", None),
        (
            "w -> {gpu, 1, inf} or {a, 1, inf} in machine hard",
            "Kubernetes has 'or' between node labels only",
            None,
        ),
        (
            "w -> {gpu, 1, inf} or {gpu, 0, 0} and {arch:arm, 0, 0} in machine hard",
            "Kubernetes has 'or' between node labels only",
            None,
        ),
        (
            "w -> {gpu, 1, inf} in zone hard",
            "Kubernetes asks for labels of the node itself",
            "in machine",
        ),
        (
            "w -> {gpu, 1, 1} in machine hard",
            "a node has a label or has it not",
            "{tag, 1, inf} or {tag, 0, 0}",
        ),
        (
            "w -> {gpu, 1, inf} or {disk:ssd, 1, inf} in machine",
            "a preferred node affinity has one term",
            None,
        ),
        ("w -> {a, 2, inf} in rack", "Kubernetes cannot ask for two or more pods", None),
        ("w -> {a, 2, 9} in rack", "Kubernetes cannot ask for two or more pods", None),
        ("w -> {a, 1, 1} in rack", "Kubernetes cannot bound a count from both sides", None),
        ("w -> {a, 0, 1} in rack", "Kubernetes' soft spreads bound no count", "say `hard`"),
        ("w -> {app:x & app:y, 0, 0} in rack", "a pod has one value of each label", None),
        ("w -> {app:x & app:y, 0, 3} in rack hard", "a pod has one value of each label", None),
    ],
)
def test_what_cannot_be_said_is_refused_with_its_reason(
    text: str, problem: str, hint: str | None
) -> None:
    with pytest.raises(Untranslatable) as caught:
        spec(text)
    assert (caught.value.problem, caught.value.hint) == (f"'{text}': {problem}", hint)


def test_only_the_part_of_a_compound_that_concerns_the_pod_is_written() -> None:
    one, other = "w -> {a, 0, 0} in rack", "v -> {b, 1, inf} in rack"
    alone = {
        "podAntiAffinity": {PREFERRED: [{"weight": 100, "podAffinityTerm": pods("rack", a="true")}]}
    }
    for joined in (f"{one} or {other}", f"{one} and {other}", f"({one} and {other}) or {other}"):
        assert spec(joined)["affinity"] == alone
    assert spec(other) == {"labels": {"w": "true"}}


@pytest.mark.parametrize(
    "text",
    [
        "w -> {gpu, 1, inf} in machine weight 0.5",
        "w -> {disk:ssd & gpu, 1, inf} in machine hard",
        "w -> {a, 1, inf} in region weight 0.25",
        "w -> {w & a, 0, 3} in zone hard",
        "w -> {w, 0, 3} in rack hard",
    ],
)
def test_what_is_written_means_the_same_when_it_is_read(text: str) -> None:
    [back] = from_kubernetes(spec(text))
    again = parse_constraint(
        text.replace("disk:ssd & gpu, 1, inf}", "disk:ssd, 1, inf} and {gpu, 1, inf}")
    )
    assert (
        format_constraint(back).partition(" weight")[0]
        == format_constraint(again).partition(" weight")[0]
    )
