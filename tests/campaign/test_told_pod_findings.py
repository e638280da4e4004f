"""The whole story of what is held against a Kubernetes scheduler: pods, nodes, times and amounts."""

from __future__ import annotations

from typing import Any

import pytest
from test_pod_rules import LONG, NEWS, SPEC, bound, known, node, pod, pod_group

from argosy.campaign.pod_rules import PodJudge, _amount, _request
from argosy.campaign.recordings import ApiRecord, PodRecording
from argosy.campaign.recount import Recount
from argosy.campaign.waiting import PATIENCE
from argosy.engines.registry import ENGINES
from argosy.testing.builders import SECOND


def told(
    *records: ApiRecord, heard: tuple[Any, ...] = (), ended_at: int = LONG
) -> dict[tuple[str, str], str]:
    recount = Recount(SPEC, ENGINES)
    ordered = tuple(sorted(records, key=lambda each: each.at))
    PodJudge(PodRecording(records=ordered, known=heard), recount, ended_at).judge()
    return {(each.check, each.kind): each.detail for each in recount.findings.values()}


WHERE = "p was bound to n at 2 s, which "


@pytest.mark.parametrize(
    ("records", "key", "story"),
    [
        (bound(2 * SECOND), ("machine-state", "node gone"), f"{WHERE}is gone"),
        (
            [node(0), *bound(2 * SECOND, nodeSelector={"disk": "ssd"})],
            ("requires", "selector"),
            f"{WHERE}it does not select",
        ),
        (
            [node(0, taints=[{"key": "k", "value": "v"}]), *bound(2 * SECOND)],
            ("requires", "taint"),
            f"{WHERE}it does not tolerate",
        ),
        (
            [
                node(0, has={"cpu": "2500m"}),
                *bound(SECOND, "q", requests=[{"cpu": "1000m"}]),
                *bound(2 * SECOND, requests=[{"cpu": "1000m"}, {"cpu": "600m"}]),
            ],
            ("oversubscribed", "node"),
            "n has 2500 of cpu and holds 2600 since p was bound to it at 2 s",
        ),
        (
            [node(0), node(0, "m"), *bound(SECOND), pod(2 * SECOND, "p", "m")],
            ("task-steps", "bound again"),
            "p was on n and is on m",
        ),
        (
            [node(0), *bound(SECOND), pod(2 * SECOND, "p")],
            ("task-steps", "bound again"),
            "p was on n and is on no node",
        ),
        (
            [
                pod_group("g", 3),
                node(0),
                *bound(3 * SECOND, "a", group="g"),
                *bound(2 * SECOND, "b", group="g"),
                pod(0, "c", group="g"),
            ],
            ("gang", "pods"),
            "group g needs 3 pods at once, of which 2 were bound from 2 s on",
        ),
    ],
)
def test_bindings(records: list[ApiRecord], key: tuple[str, str], story: str) -> None:
    assert told(*records)[key] == story


def test_what_a_scheduler_knows_of_pods() -> None:
    there, waits = [node(0), *bound(SECOND)], pod(0)
    uid = "x/p"
    assert told(*there) == {
        ("processes", "pod unknown"): "p is there, and its scheduler does not know it"
    }
    assert told(*there, heard=(known(uid, "m"),)) == {
        ("processes", "pod elsewhere"): "p is on n, and to its scheduler on m"
    }
    assert told(*there, heard=(known(uid),)) == {
        ("processes", "pod elsewhere"): "p is on n, and to its scheduler on none"
    }
    assert told(*there, heard=(known(uid, "n", is_bound=False),)) == {
        ("processes", "pod elsewhere"): "p is on n, and to its scheduler on n"
    }
    assert told(*there, heard=(known(uid, "n"),)) == {}
    assert told(waits, heard=(known(uid, job=""),)) == {
        ("forgotten", "pod"): "p waits, and its scheduler does nothing about it"
    }
    for reason in ({"job": "j"}, {"job": "", "obstacle": "gated"}):
        assert told(waits, heard=(known(uid, **reason),)) == {}
    gone = pod(SECOND, is_gone=True)
    assert told(waits, gone, heard=(known(uid),)) == {
        ("processes", "pod gone"): "p is gone, and its scheduler does not know it"
    }


@pytest.mark.parametrize(("ended_at", "is_due"), [(PATIENCE + 4, False), (PATIENCE + 5, True)])
def test_silence_counts_from_when_the_pod_was_made(ended_at: int, is_due: bool) -> None:
    waits = pod(5, conditions=["Ready"])
    found = told(waits, heard=(known("x/p"),), ended_at=ended_at)
    story = {("unexplained", "pod"): "p has waited since 5 µs: no condition"}
    assert found == (story if is_due else {})


def test_amounts_are_read_as_they_are_written() -> None:
    assert (_amount("250m"), _amount("7")) == (250, 7)
    document = pod(
        0, requests=[{"cpu": "250m", "memory": "5"}, {"cpu": "50m", "gpu": "1"}]
    ).document
    assert _request(document) == {"cpu": 300, "memory": 5, "gpu": 1, "pods": 1}
    assert NEWS > PATIENCE // 4


def test_each_pod_is_asked_whoever_comes_before_it() -> None:
    silent = {"conditions": ["Ready"]}
    early = [node(0), *bound(SECOND, "on", **silent), pod(0, "over", phase="Failed", **silent)]
    late = [pod(LONG - SECOND, "young", **silent), pod(0, "told"), pod(0, "waits", **silent)]
    heard = tuple(
        known(f"x/{name}", place)
        for name, place in (("on", "n"), ("young", ""), ("told", ""), ("waits", ""))
    )
    assert told(*early, *late, heard=heard) == {
        ("unexplained", "pod"): "waits has waited since 0 µs: no condition"
    }
