"""What pods and manifests say that is wrong, each with its place and words, and what is right."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from argosy.model.constraints.kubernetes_manifests import from_manifests
from argosy.model.constraints.kubernetes_reader import from_kubernetes
from argosy.model.constraints.text import format_constraint
from argosy.model.errors import ArgosyError, Untranslatable
from argosy.model.resources import Resources

ONE = Resources(1, 1)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NAMES = "letters, digits and any of _ . : / - that is not a word such as 'and'"


def said(error: ArgosyError) -> tuple[str | None, str, str | None, str | None]:
    return error.field, error.problem, error.expected, error.hint


KINDS_WITH_PODS = (
    "one of Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController, Job, CronJob, "
    "PodTemplate, Pod"
)


class TestKubernetes:
    def spread(self, **fields: Any) -> dict[str, Any]:
        return {
            "labels": {"w": "true"},
            "topologySpreadConstraints": [
                {
                    "maxSkew": 2,
                    "minDomains": 1_000_000,
                    "topologyKey": "rack",
                    "labelSelector": {"matchLabels": {"a": "true"}},
                    **fields,
                }
            ],
        }

    @pytest.mark.parametrize(
        ("fields", "inside", "problem", "expected"),
        [
            (
                {"whenUnsatisfiable": "ScheduleAnyway"},
                ".whenUnsatisfiable",
                "a soft skew has no counterpart",
                "DoNotSchedule",
            ),
            (
                {"whenUnsatisfiable": "Never"},
                ".whenUnsatisfiable",
                "'Never' does not fit",
                "DoNotSchedule or ScheduleAnyway",
            ),
            (
                {"minDomains": 999_999},
                "",
                "a skew against the emptiest domain has no counterpart",
                "minDomains of 1,000,000 or more, which makes maxSkew a limit",
            ),
            (
                {"minDomains": None},
                "",
                "a skew against the emptiest domain has no counterpart",
                "minDomains of 1,000,000 or more, which makes maxSkew a limit",
            ),
            (
                {"maxSkew": 0},
                ".maxSkew",
                "0 does not fit",
                "a whole number from 1 to 2,147,483,647",
            ),
            (
                {"maxSkew": 2**31},
                ".maxSkew",
                "2147483648 does not fit",
                "a whole number from 1 to 2,147,483,647",
            ),
            ({"maxSkew": None}, "", "maxSkew is missing", "a whole number"),
            ({"labelSelector": None}, "", "a selector of all pods", "labelSelector.matchLabels"),
            (
                {"topologyKey": None},
                "",
                "topologyKey is missing",
                "a topology key such as kubernetes.io/hostname",
            ),
            (
                {"topologyKey": "in"},
                ".topologyKey",
                "'in' as a tag or group of a constraint",
                NAMES,
            ),
            (
                {"matchLabelKeys": ["v"]},
                ".matchLabelKeys",
                "matchLabelKeys has no counterpart",
                None,
            ),
            (
                {"namespaceSelector": {}},
                ".namespaceSelector",
                "namespaceSelector has no counterpart",
                None,
            ),
            (
                {"labelSelector": {"matchLabels": {"a:b": "c"}}},
                ".labelSelector.matchLabels.a:b",
                "label 'a:b'",
                "a key without a colon",
            ),
            (
                {"labelSelector": {"matchLabels": {"a": ""}}},
                ".labelSelector.matchLabels.a",
                "label 'a' without a value",
                "a value",
            ),
            (
                {"labelSelector": {"matchLabels": {"a": "b c"}}},
                ".labelSelector.matchLabels.a",
                "'a:b c' as a tag or group of a constraint",
                NAMES,
            ),
            (
                {
                    "labelSelector": {
                        "matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "c"]}]
                    }
                },
                ".labelSelector.matchExpressions[0]",
                "operator 'In' with 2 values",
                "In with one value: tags are joined by 'and'",
            ),
            (
                {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
                ".labelSelector.matchExpressions[0]",
                "operator 'Exists' with 0 values",
                "In with one value: tags are joined by 'and'",
            ),
            (
                {
                    "labelSelector": {
                        "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]
                    }
                },
                ".labelSelector.matchExpressions[0]",
                "operator 'NotIn' with 1 values",
                "In with one value: tags are joined by 'and'",
            ),
            (
                {"labelSelector": {"matchExpressions": [{"operator": "In"}]}},
                ".labelSelector.matchExpressions[0]",
                "key is missing",
                "the key of a label",
            ),
        ],
    )
    def test_each_mistake_of_a_spread(
        self, fields: dict[str, Any], inside: str, problem: str, expected: str | None
    ) -> None:
        with pytest.raises(Untranslatable) as caught:
            from_kubernetes(self.spread(**fields))
        place = f"topologySpreadConstraints[0]{inside}"
        assert said(caught.value) == (place, problem, expected, None)

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({}, "{a, 0, 2} in rack"),
            ({"maxSkew": 1, "minDomains": 2**31 - 1}, "{a, 0, 1} in rack"),
            ({"labelSelector": {"matchLabels": {"w": "true"}}}, "{w, 0, 1} in rack"),
            (
                {"labelSelector": {"matchLabels": {"w": "true", "a": "b"}}},
                "{w & a:b, 0, 2} in rack",
            ),
            ({"topologyKey": "kubernetes.io/hostname"}, "{a, 0, 2} in machine"),
            ({"topologyKey": "topology.kubernetes.io/region"}, "{a, 0, 2} in region"),
            (
                {
                    "whenUnsatisfiable": "DoNotSchedule",
                    "nodeAffinityPolicy": "Ignore",
                    "nodeTaintsPolicy": "Honor",
                    "matchLabelKeys": [],
                },
                "{a, 0, 2} in rack",
            ),
        ],
    )
    def test_a_spread_against_empty_domains_is_a_limit(
        self, fields: dict[str, Any], expected: str
    ) -> None:
        [constraint] = from_kubernetes(self.spread(**fields))
        assert format_constraint(constraint) == f"w -> {expected} hard"

    @pytest.mark.parametrize(
        ("nodes", "inside", "problem", "expected"),
        [
            ({REQUIRED: {}}, f".{REQUIRED}", "nodeSelectorTerms is missing", "a list of terms"),
            (
                {REQUIRED: {"nodeSelectorTerms": []}},
                f".{REQUIRED}.nodeSelectorTerms",
                "no terms",
                "at least one",
            ),
            (
                {REQUIRED: {"nodeSelectorTerms": [{}]}},
                f".{REQUIRED}.nodeSelectorTerms[0]",
                "a term without matchExpressions",
                "at least one of them",
            ),
            (
                {REQUIRED: {"nodeSelectorTerms": [{"matchFields": []}]}},
                f".{REQUIRED}.nodeSelectorTerms[0].matchFields",
                "matchFields has no counterpart",
                None,
            ),
            (
                {PREFERRED: [{"preference": {}}]},
                f".{PREFERRED}[0]",
                "weight is missing",
                "a whole number from 1 to 100",
            ),
            (
                {PREFERRED: [{"weight": 101, "preference": {}}]},
                f".{PREFERRED}[0].weight",
                "101 does not fit",
                "a whole number from 1 to 100",
            ),
            ({PREFERRED: [{"weight": 1}]}, f".{PREFERRED}[0]", "preference is missing", "a term"),
            (
                {
                    PREFERRED: [
                        {
                            "weight": 1,
                            "preference": {
                                "matchExpressions": [
                                    {"key": "a", "operator": "Gt", "values": ["1"]}
                                ]
                            },
                        }
                    ]
                },
                f".{PREFERRED}[0].preference.matchExpressions[0]",
                "operator 'Gt' on 'a'",
                "In or NotIn",
            ),
            (
                {
                    PREFERRED: [
                        {
                            "weight": 1,
                            "preference": {"matchExpressions": [{"key": "a", "operator": "In"}]},
                        }
                    ]
                },
                f".{PREFERRED}[0].preference.matchExpressions[0]",
                "operator In without values",
                "at least one value",
            ),
        ],
    )
    def test_each_mistake_about_nodes(
        self, nodes: dict[str, Any], inside: str, problem: str, expected: str | None
    ) -> None:
        with pytest.raises(Untranslatable) as caught:
            from_kubernetes({"labels": {"w": "true"}, "affinity": {"nodeAffinity": nodes}})
        assert said(caught.value) == (f"affinity.nodeAffinity{inside}", problem, expected, None)

    def test_wishes_about_nodes_have_their_weights(self) -> None:
        def wish(weight: int, operator: str, *values: str) -> dict[str, Any]:
            term = {"key": "disk", "operator": operator, "values": list(values)}
            return {"weight": weight, "preference": {"matchExpressions": [term]}}

        nodes = {PREFERRED: [wish(100, "In", "a", "b"), wish(1, "NotIn", "a", "b")]}
        found = from_kubernetes({"labels": {"w": "true"}, "affinity": {"nodeAffinity": nodes}})
        assert [format_constraint(each) for each in found] == [
            "w -> {disk:a, 1, inf} or {disk:b, 1, inf} in machine",
            "w -> {disk:a, 0, 0} and {disk:b, 0, 0} in machine weight 0.01",
        ]

    def test_parts_come_selectors_first_and_limits_last(self) -> None:
        pods = {REQUIRED: [{"labelSelector": {"matchLabels": {"a": "true"}}, "topologyKey": "r"}]}
        nodes = {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}
            ]
        }
        spec = {
            **self.spread(),
            "labels": {"z": "true", "app": "b", "w": "true"},
            "affinity": {
                "nodeAffinity": {REQUIRED: nodes},
                "podAntiAffinity": pods,
                "podAffinity": pods,
            },
            "nodeSelector": {"disk": "ssd"},
        }
        assert [format_constraint(each) for each in from_kubernetes(spec)] == [
            "app:b & w & z -> {disk:ssd, 1, inf} in machine hard",
            "app:b & w & z -> {a, 1, inf} in r hard",
            "app:b & w & z -> {a, 0, 0} in r hard",
            "app:b & w & z -> {k:v, 1, inf} in machine hard",
            "app:b & w & z -> {a, 0, 2} in rack hard",
        ]
        assert from_kubernetes({"labels": {"w": "true"}, "nodeSelector": {}}) == ()

    @pytest.mark.parametrize(
        ("spec", "hint"),
        [
            ({}, None),
            ({"labels": {}}, None),
            ({"metadata": {}}, "a manifest needs its kind, such as Pod"),
            ({"spec": {}}, "a manifest needs its kind, such as Pod"),
        ],
    )
    def test_a_pod_has_labels(self, spec: dict[str, Any], hint: str | None) -> None:
        with pytest.raises(Untranslatable) as caught:
            from_kubernetes(spec)
        assert said(caught.value) == (
            "labels",
            "a pod without labels",
            'labels such as web: "true"',
            hint,
        )


class TestManifests:
    APART: ClassVar = {
        "podAntiAffinity": {
            REQUIRED: [{"labelSelector": {"matchLabels": {"a": "true"}}, "topologyKey": "rack"}]
        }
    }

    def pod(self, kind: str = "Pod", **spec: Any) -> dict[str, Any]:
        metadata = {"name": "p", "labels": {"w": "true"}}
        return {"kind": kind, "metadata": metadata, "spec": {"affinity": self.APART, **spec}}

    def texts(self, *documents: Any) -> list[str]:
        return [format_constraint(each) for each in from_manifests(list(documents))]

    def test_lists_of_every_kind_are_opened(self) -> None:
        other = self.pod(nodeSelector={"disk": "ssd"})
        inner = {"kind": "PodList", "items": [other]}
        assert self.texts({"kind": "List", "items": [None, self.pod(), inner]}) == [
            "w -> {a, 0, 0} in rack hard",
            "w -> {disk:ssd, 1, inf} in machine hard",
        ]

    def test_a_template_and_a_controller_have_pods(self) -> None:
        pod = self.pod()
        template = {"metadata": pod["metadata"], "spec": pod["spec"]}
        for document in (
            {"kind": "PodTemplate", "template": template},
            {"kind": "ReplicationController", "spec": {"template": template}},
            {"labels": {"w": "true"}, "affinity": self.APART},
        ):
            assert self.texts(document) == ["w -> {a, 0, 0} in rack hard"]

    def test_pods_without_rules_need_no_labels(self) -> None:
        assert self.texts({"kind": "Pod"}) == []
        assert self.texts({"kind": "Pod", "metadata": None, "spec": {"affinity": {}}}) == []

    @pytest.mark.parametrize(
        ("document", "field", "problem", "expected"),
        [
            ({"kind": "Service"}, None, "no manifest with pods", KINDS_WITH_PODS),
            ({"kind": "List", "items": []}, None, "no manifest with pods", KINDS_WITH_PODS),
            (
                {"kind": "CronJob", "metadata": {"name": "c"}, "spec": {"jobTemplate": 5}},
                None,
                "CronJob c has no spec.jobTemplate.spec.template",
                "a template of pods",
            ),
            ({"kind": "Pod", "metadata": "p"}, None, "Pod ", "metadata and spec that are maps"),
            (
                {"kind": "Pod", "metadata": {"name": "p"}, "spec": [1]},
                None,
                "Pod p",
                "metadata and spec that are maps",
            ),
            (
                {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeSelector": {"a": "b"}}},
                "Pod p: metadata.labels",
                "a pod without labels",
                'labels such as web: "true"',
            ),
            (
                {
                    "kind": "Pod",
                    "metadata": {"name": "p", "labels": {"w": 5}},
                    "spec": {"nodeSelector": {"a": "b"}},
                },
                "Pod p: metadata.labels.w",
                "5 does not fit",
                'text, such as "true" in quotes',
            ),
            (
                {
                    "kind": "Pod",
                    "metadata": {"name": "p", "labels": {"w": "true"}},
                    "spec": {"nodeSelector": ["a"]},
                },
                "Pod p: spec.nodeSelector",
                "a list does not fit",
                "labels of nodes",
            ),
        ],
    )
    def test_each_mistake_has_its_place(
        self, document: Any, field: str | None, problem: str, expected: str
    ) -> None:
        with pytest.raises(Untranslatable) as caught:
            from_manifests([document])
        assert said(caught.value)[:3] == (field, problem, expected)
