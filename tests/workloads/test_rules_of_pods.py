"""Rules of pods as constraints of their jobs, and what is noted of those that have no counterpart."""

from __future__ import annotations

from typing import Any

import pytest
from test_pod_recordings import REQUIRED, node, only, pod, recorded
from test_pod_recordings import life as pod_life

from argosy.model.constraints.text import format_constraint
from argosy.workloads.pod_constraints import constraints_of

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEB = {"labels": {"app": "web"}}
EMPTIEST = "topologySpreadConstraints: a skew against the emptiest domain has no counterpart"


def term(value: str, **more: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": value}}, "topologyKey": "rack", **more}


def wish(value: str, weight: int) -> dict[str, Any]:
    return {"weight": weight, "podAffinityTerm": term(value)}


def spread(most: int, selector: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "maxSkew": most,
        "minDomains": 1_000_000,
        "topologyKey": "rack",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        **more,
    }


@pytest.mark.parametrize(
    ("spec", "expected", "noted"),
    [
        ({}, [], []),
        # Wishes for pods like itself are wishes anyway.
        (
            {"affinity": {"podAffinity": {PREFERRED: [wish("web", 50), wish("db", 25)]}}},
            [
                "{owner:one & app:web, 1, inf} in rack weight 0.5",
                "{owner:one & app:db, 1, inf} in rack weight 0.25",
            ],
            [],
        ),
        (
            {"affinity": {"podAntiAffinity": {PREFERRED: [wish("web", 100)]}}},
            ["{owner:one & app:web, 0, 0} in rack"],
            [],
        ),
        # One without a counterpart costs no other.
        (
            {
                "affinity": {
                    "podAffinity": {REQUIRED: [term("db", namespaces=["other"]), term("cache")]},
                    "podAntiAffinity": {REQUIRED: [term("web")]},
                }
            },
            [
                "{owner:one & app:cache, 1, inf} in rack hard",
                "{owner:one & app:web, 0, 0} in rack hard",
            ],
            ["podAffinity: namespaces has no counterpart"],
        ),
        # Nodes are nobody's.
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        PREFERRED: [
                            {
                                "weight": 10,
                                "preference": {
                                    "matchExpressions": [
                                        {"key": "disk", "operator": "In", "values": ["ssd"]}
                                    ]
                                },
                            }
                        ]
                    }
                }
            },
            ["{disk:ssd, 1, inf} in machine weight 0.1"],
            [],
        ),
        # The pod sees one less of those that it is one of.
        (
            {
                "topologySpreadConstraints": [
                    spread(3, {"matchLabels": {"app": "web"}}),
                    spread(3, {"matchLabels": {"app": "db"}}),
                    spread(3, {"matchLabels": {"app": "web", "tier": "front"}}),
                ]
            },
            [
                "{owner:one & app:web, 0, 2} in rack hard",
                "{owner:one & app:db, 0, 3} in rack hard",
                "{owner:one & app:web & tier:front, 0, 3} in rack hard",
            ],
            [],
        ),
        (
            {
                "topologySpreadConstraints": [
                    spread(1, {"matchLabels": {"app": "web"}}, minDomains=2),
                    spread(
                        2,
                        {
                            "matchExpressions": [
                                {"key": "app", "operator": "In", "values": ["db"]},
                            ]
                        },
                    ),
                ]
            },
            ["{owner:one & app:db, 0, 2} in rack hard"],
            [EMPTIEST],
        ),
    ],
)
def test_rules_have_counterparts_one_by_one(
    spec: dict[str, Any], expected: list[str], noted: list[str]
) -> None:
    notes: list[str] = []
    found = constraints_of(pod("a", WEB, **spec), notes.append)
    assert [format_constraint(each) for each in found] == [
        f"appID:self -> {each}" for each in expected
    ]
    assert notes == noted


def test_a_rule_that_stands_twice_is_one_and_is_noted_once_for_each_pod() -> None:
    twice = {"affinity": {"podAntiAffinity": {REQUIRED: [term("web"), term("web")]}}}
    lost = [spread(1, {"matchLabels": {"app": "web"}}, minDomains=2)] * 2
    made = pod("a", WEB, **twice, topologySpreadConstraints=lost)
    nodes = [node("n0", {"rack": "r0"})]
    found = recorded(nodes, pod_life(made, 10), pod_life(pod("b", WEB), 20))
    assert len(found.jobs[0].job.constraints) == 1
    assert found.left_out == (f"not carried over: {EMPTIEST} (1 pod)",)
    assert only(recorded(nodes, pod_life(pod("b", WEB), 20))).job.constraints == ()
