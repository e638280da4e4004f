"""Whatever stands in a pod's specification is translated, or refused with its place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.cli import main
from argosy.model.constraints.kubernetes import MANY_DOMAINS
from argosy.model.constraints.kubernetes_reader import from_kubernetes
from argosy.model.constraints.text import format_constraint
from argosy.model.errors import Untranslatable

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SELECTOR = {
    "matchLabels": {"cache": "true"},
    "matchExpressions": [{"key": "tier", "operator": "In", "values": ["front"]}],
}
NODES = {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["hdd"]}]}
POD: dict[str, Any] = {
    "labels": {"web": "true"},
    "affinity": {
        "podAffinity": {REQUIRED: [{"labelSelector": SELECTOR, "topologyKey": "rack"}]},
        "podAntiAffinity": {
            PREFERRED: [
                {
                    "weight": 50,
                    "podAffinityTerm": {"labelSelector": SELECTOR, "topologyKey": "rack"},
                }
            ]
        },
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [NODES]},
            PREFERRED: [{"weight": 100, "preference": NODES}],
        },
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 2,
            "minDomains": MANY_DOMAINS,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": SELECTOR,
        }
    ],
}
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    10**30,
    1 << 80_000,
    float("nan"),
    1.5,
    "",
    "x",
    "and",
    "a b",
    b"x",
    [],
    [None],
    ["x"],
    [[]],
    {},
    {"x": "y"},
    {1: 2},
    {None: None},
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each value inside."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def changed(path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    # Parts that stand in several places are changed in one only.
    spec = json.loads(json.dumps(POD))
    inside: Any = spec
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = odd
    return spec


def mistake(spec: Any) -> Untranslatable | None:
    try:
        for constraint in from_kubernetes(spec):
            format_constraint(constraint)
    except Untranslatable as error:
        return error
    return None


def test_the_whole_of_a_pod_is_translated() -> None:
    assert [format_constraint(each) for each in from_kubernetes(POD)] == [
        "web -> {cache & tier:front, 1, inf} in rack hard",
        "web -> {cache & tier:front, 0, 0} in rack weight 0.5",
        "web -> {disk:hdd, 0, 0} in machine hard",
        "web -> {disk:hdd, 0, 0} in machine",
        "web -> {cache & tier:front, 0, 2} in zone hard",
    ]


@pytest.mark.parametrize("path", list(places(POD)), ids=lambda path: ".".join(map(str, path)))
def test_an_odd_value_anywhere_is_translated_or_refused_with_its_place(path: Any) -> None:
    for odd in ODD:
        error = mistake(changed(path, odd))
        if error is not None and path:
            assert error.field is not None
            # The place is on the way to what is wrong, or inside it.
            assert error.field.split(".")[0].split("[")[0] == path[0]


@pytest.mark.parametrize("path", [path for path in places(POD) if path and path[-1] != "labels"])
def test_a_field_that_kubernetes_does_not_have_is_refused(path: Any) -> None:
    value: Any = POD
    for key in path:
        value = value[key]
    if not isinstance(value, dict) or path[-1] in ("matchLabels", "labels"):
        return
    with pytest.raises(Untranslatable, match="unknown field 'oddity'"):
        from_kubernetes(changed(path, {**value, "oddity": 1}))


@pytest.mark.parametrize(
    ("path", "odd", "message"),
    [
        (("labels",), ["web"], 'labels: a list does not fit; expected labels such as web: "true"'),
        (("labels", "web"), True, 'labels.web: true does not fit; expected text, such as "true"'),
        (("labels",), None, "labels: a pod without labels; expected labels such as"),
        (("affinity",), [1], "affinity: a list does not fit; expected a map"),
        (
            ("affinity", "podAffinity", REQUIRED, 0, "topologyKey"),
            None,
            f"affinity.podAffinity.{REQUIRED}[0]: topologyKey is missing; expected a topology key",
        ),
        (
            ("affinity", "podAntiAffinity", PREFERRED, 0, "weight"),
            None,
            f"affinity.podAntiAffinity.{PREFERRED}[0]: weight is missing; expected a whole number",
        ),
        (
            ("affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms"),
            ["gpu"],
            f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]: 'gpu' does not fit",
        ),
        (
            ("topologySpreadConstraints",),
            {"a": 1},
            "topologySpreadConstraints: a map does not fit; expected a list",
        ),
        (
            ("affinity",),
            {"podAfinity": {}},
            "affinity: unknown field 'podAfinity'; expected one of nodeAffinity, podAffinity,"
            " podAntiAffinity; did you mean 'podAffinity'?",
        ),
        (("nodeSelector",), ["a"], "nodeSelector: a list does not fit; expected labels of nodes"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_was_expected(
    path: Any, odd: Any, message: str
) -> None:
    with pytest.raises(Untranslatable) as caught:
        from_kubernetes(changed(path, odd))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"# nothing\n",
        b"5\n",
        b"- a\n",
        b"labels: {a: \xff}\n",
        b"labels: {a: \x00}\n",
        b"labels: &a {x: *a}\n",
        b"labels: {a: b}\ntopologySpreadConstraints: &a [*a]\n",
        b"labels: *nobody\n",
        b"labels: {a: 2020-01-01}\n",
        b"labels: {a: !!binary aGVsbG8=}\n",
        b"labels: !!python/object:os.system {}\n",
        b"labels: {? [a] : b}\n",
        b"labels: {a: 1" + b"0" * 5_000 + b"}\n",
        b"labels: {a: 0x" + b"f" * 5_000 + b"}\n",
        b"labels: " + b"[" * 3_000 + b"]" * 3_000 + b"\n",
        b"labels:\n\ta: b\n",
        b"labels: {a: b\n",
    ],
    ids=lambda content: repr(content[:24]),
)
def test_a_file_that_is_no_pod_is_one_error_that_names_it(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_bytes(content)
    with pytest.raises(SystemExit) as left:
        main(["constraints", "translate", str(pod), "--from", "kubernetes"])
    assert left.value.code == 2
    told = capsys.readouterr().err
    assert str(pod) in told
    assert told.count("\n") == 1
    assert "bug" not in told


def test_anchors_are_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text(
        "labels: &own {web: 'true'}\n"
        "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
        "[{labelSelector: {matchLabels: *own}, topologyKey: rack}]}}\n"
    )
    with pytest.raises(SystemExit) as left:
        main(["constraints", "translate", str(pod), "--from", "kubernetes"])
    assert left.value.code == 0
    assert capsys.readouterr().out == "web -> {web, 0, 0} in rack hard\n"
