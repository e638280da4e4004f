"""The objects of an API server in memory: every answer, and what watches are told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from argosy.kubernetes.kinds import NODES, PODS
from argosy.testing.api_objects import ApiChange, ApiObjects, path_of_kind, refusal

PATH = "/api/v1/namespaces/default/pods"


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "spec": {}}


def server(*names: str) -> ApiObjects:
    objects = ApiObjects()
    for name in names:
        objects.put(PODS, pod(name))
    return objects


def told(objects: ApiObjects) -> list[ApiChange]:
    changes: list[ApiChange] = []
    objects.listeners.append(changes.append)
    return changes


class TestReading:
    def test_lists_come_in_pages(self) -> None:
        objects = server(*"abcde")

        def page(**query: str) -> tuple[list[str], str]:
            answer = objects.answer("GET", "/api/v1/pods", {"limit": "2", **query}, None)
            assert answer.code == 200
            names = [each["metadata"]["name"] for each in answer.document["items"]]
            assert answer.document["metadata"]["resourceVersion"] == "5"
            return names, answer.document["metadata"]["continue"]

        assert page() == (["a", "b"], "2")
        assert page(**{"continue": "2"}) == (["c", "d"], "4")
        assert page(**{"continue": "4"}) == (["e"], "")
        assert page(limit="5")[1] == page(limit="6")[1] == ""
        assert page(limit="4") == (["a", "b", "c", "d"], "4")

    def test_lists_are_of_a_namespace_and_of_labels(self) -> None:
        objects = server()
        objects.put(PODS, pod("a", labels={"app": "w", "tier": "x"}))
        objects.put(PODS, pod("b", namespace="other", labels={"app": "w"}))
        objects.put(PODS, pod("c", namespace="other"))

        def names(path: str, **query: str) -> list[str]:
            answer = objects.answer("GET", path, {"limit": "9", **query}, None)
            return [each["metadata"]["name"] for each in answer.document["items"]]

        assert names("/api/v1/pods") == ["a", "b", "c"]
        assert names("/api/v1/namespaces/other/pods") == ["b", "c"]
        assert names("/api/v1/pods", labelSelector="app=w") == ["a", "b"]
        assert names("/api/v1/pods", labelSelector="tier=y") == []
        assert names("/api/v1/nodes") == []

    def test_one_object_is_there_or_not(self) -> None:
        objects = server("a")
        found = objects.answer("GET", f"{PATH}/a", {}, None)
        assert (found.code, found.document) == (200, objects.document(PODS, "a"))
        for path in (f"{PATH}/b", "/api/v1/namespaces/other/pods/a", "/elsewhere"):
            missing = objects.answer("GET", path, {}, None)
            assert (missing.code, missing.document["reason"]) == (404, "NotFound")
        kinds = objects.answer("GET", "/apis/scheduling.k8s.io/v1", {}, None)
        assert kinds.document == {"resources": [{"name": "podgroups"}]}
        assert objects.written == objects.queries == []

    def test_nodes_are_in_no_namespace(self) -> None:
        objects = ApiObjects()
        objects.put(NODES, {"metadata": {"name": "n"}, "spec": {}})
        [node] = objects.documents(NODES)
        assert "namespace" not in node["metadata"]
        assert objects.document(NODES, "n") is node
        assert objects.answer("GET", "/api/v1/nodes/n", {}, None).code == 200

    def test_paths_of_all_objects_of_a_kind(self) -> None:
        for path, of_kind in (
            (f"{PATH}/a/binding", "/api/v1/pods"),
            ("/api/v1/nodes/n", "/api/v1/nodes"),
            ("/apis/g/v1/namespaces/x/leases/y", "/apis/g/v1/leases"),
            ("/api/v1/namespaces/x", "/api/v1/namespaces"),
            ("/healthz", "/healthz"),
        ):
            assert path_of_kind(path) == of_kind


class TestMaking:
    def test_an_object_keeps_its_identity_through_its_versions(self) -> None:
        objects = ApiObjects()
        changes = told(objects)
        first = objects.put(PODS, pod("a", labels={"x": "1"}))
        again = objects.put(PODS, pod("a"))
        assert (first.metadata.uid, again.metadata.uid) == ("pods-1", "pods-1")
        assert first.metadata.creation_timestamp == again.metadata.creation_timestamp
        assert [each.type for each in changes] == ["ADDED", "MODIFIED"]
        assert [each.version for each in changes] == [1, 2]
        assert [each.document["metadata"]["resourceVersion"] for each in changes] == ["1", "2"]
        assert changes[0].document["metadata"]["namespace"] == "default"
        assert changes[0].document["metadata"]["creationTimestamp"] == "2026-01-01T00:00:01Z"
        objects.remove(PODS, "a")
        assert (changes[2].type, changes[2].version) == ("DELETED", 3)
        assert changes[2].document["metadata"]["resourceVersion"] == "3"
        assert objects.documents(PODS) == []
        assert objects.put(PODS, pod("a")).metadata.uid == "pods-4"

    def test_what_was_given_is_not_what_is_kept(self) -> None:
        objects, given = ApiObjects(), pod("a", labels={"x": "1"})
        objects.put(PODS, given)
        given["metadata"]["labels"]["x"] = "2"
        found = objects.document(PODS, "a")
        assert found is not None
        assert found["metadata"]["labels"] == {"x": "1"}
        assert "uid" not in given["metadata"]

    def test_a_second_object_of_a_name_is_refused(self) -> None:
        objects = server("a")
        made = objects.answer("POST", PATH, {"q": "1"}, pod("b"))
        assert (made.code, made.document["metadata"]["namespace"]) == (201, "default")
        again = objects.answer("POST", PATH, {}, pod("a"))
        assert (again.code, again.document["reason"]) == (409, "AlreadyExists")
        assert objects.answer("POST", PATH.replace("default", "x"), {}, pod("a")).code == 201
        assert [(method, path) for method, path, _ in objects.written] == [
            ("POST", PATH),
            ("POST", PATH),
            ("POST", PATH.replace("default", "x")),
        ]
        assert objects.queries == [{"q": "1"}, {}, {}]

    def test_what_is_applied_by_force_is_made_if_need_be(self) -> None:
        objects = ApiObjects()
        applied = objects.answer("PATCH", f"{PATH}/a", {"force": "true"}, pod("a"))
        assert applied.code == 201
        again = objects.answer("PATCH", f"{PATH}/a", {"force": "true"}, {"spec": {"x": 1}})
        assert (again.code, again.document["spec"]) == (200, {"x": 1})
        assert objects.answer("PATCH", f"{PATH}/b", {}, pod("b")).code == 404

    def test_what_is_posted_is_not_changed(self) -> None:
        objects, given = ApiObjects(), pod("a")
        assert objects.answer("POST", PATH.replace("default", "x"), {}, given).code == 201
        assert given == pod("a")
        assert objects.written == [("POST", PATH.replace("default", "x"), pod("a"))]

    def test_objects_are_made_at_seconds_of_one_minute(self) -> None:
        objects = server(*(f"p{number}" for number in range(61)))
        stamps = [each["metadata"]["creationTimestamp"] for each in objects.documents(PODS)]
        assert stamps[58:] == [f"2026-01-01T00:00:{at:02}Z" for at in (59, 0, 1)]


class TestChanging:
    @pytest.mark.parametrize(
        ("metadata", "code"),
        [
            ({}, 200),
            ({"uid": "pods-1"}, 200),
            ({"uid": "pods-2"}, 409),
            ({"resourceVersion": "1"}, 200),
            ({"resourceVersion": "0"}, 409),
        ],
    )
    def test_who_speaks_of_another_version_is_refused(
        self, metadata: dict[str, str], code: int
    ) -> None:
        objects = server("a")
        answer = objects.answer("PATCH", f"{PATH}/a", {}, {"metadata": metadata, "x": 1})
        found = objects.document(PODS, "a")
        assert found is not None
        assert (answer.code, "x" in found) == (code, code == 200)

    def test_a_pod_is_bound_once(self) -> None:
        objects = server("a")
        binding = {
            "metadata": {"annotations": {"by": "me"}},
            "target": {"name": "n1"},
        }
        assert objects.answer("POST", f"{PATH}/a/binding", {}, binding).code == 200
        found = objects.document(PODS, "a")
        assert found is not None
        assert (found["spec"], found["metadata"]["annotations"]) == (
            {"nodeName": "n1"},
            {"by": "me"},
        )
        other = {**binding, "target": {"name": "n2"}}
        assert objects.answer("POST", f"{PATH}/a/binding", {}, other).code == 409
        leaving = ApiObjects()
        leaving.put(PODS, pod("b", deletionTimestamp="2026-01-01T00:00:00Z"))
        assert leaving.answer("POST", f"{PATH}/b/binding", {}, binding).code == 409

    def test_changes_that_were_told_stay_as_they_were(self) -> None:
        objects = ApiObjects()
        changes = told(objects)
        objects.put(PODS, pod("a", annotations={"old": "1"}))
        bare = {"metadata": {}, "target": {"name": "n1"}}
        named = {"metadata": {"annotations": {"by": "me"}}, "target": {"name": "n2"}}
        assert objects.answer("POST", f"{PATH}/a/binding", {}, bare).code == 200
        patch = {"metadata": {"labels": {"x": "1"}}, "spec": {"nodeName": ""}}
        assert objects.answer("PATCH", f"{PATH}/a", {}, patch).code == 200
        assert objects.answer("POST", f"{PATH}/a/binding", {}, named).code == 200
        gone = objects.answer("DELETE", f"{PATH}/a", {}, None)
        assert (gone.code, gone.document["metadata"]["resourceVersion"]) == (200, "4")
        seen = [
            (
                change.type,
                change.document["metadata"]["resourceVersion"],
                change.document["spec"].get("nodeName"),
                change.document["metadata"]["annotations"],
            )
            for change in changes
        ]
        assert seen == [
            ("ADDED", "1", None, {"old": "1"}),
            ("MODIFIED", "2", "n1", {"old": "1"}),
            ("MODIFIED", "3", "", {"old": "1"}),
            ("MODIFIED", "4", "n2", {"old": "1", "by": "me"}),
            ("DELETED", "5", "n2", {"old": "1", "by": "me"}),
        ]
        assert "labels" not in changes[1].document["metadata"]

    def test_objects_in_no_namespace_are_removed_by_name_alone(self) -> None:
        objects = server("n")
        objects.put(NODES, {"metadata": {"name": "n"}, "spec": {}})
        objects.put(PODS, pod("n", namespace="other"))
        objects.remove(NODES, "n")
        assert (objects.document(NODES, "n"), len(objects.documents(PODS))) == (None, 2)
        objects.remove(PODS, "n", "other")
        [left] = objects.documents(PODS)
        assert left["metadata"]["namespace"] == "default"

    def test_a_listener_may_leave_while_it_is_told(self) -> None:
        objects, seen = ApiObjects(), list[str]()

        def once(change: ApiChange) -> None:
            seen.append("once")
            objects.listeners.remove(once)

        objects.listeners += [once, lambda change: seen.append(change.type)]
        objects.put(PODS, pod("a"))
        objects.put(PODS, pod("a"))
        assert seen == ["once", "ADDED", "MODIFIED"]

    def test_patches_set_what_is_empty_and_begin_lists_of_conditions(self) -> None:
        objects = ApiObjects()
        objects.put(PODS, pod("a", labels={"x": "1", "y": "2"}))
        ready = {"type": "Ready", "status": "False"}
        patch = {
            "metadata": {"labels": {"x": "", "y": None}},
            "spec": {"count": 0, "on": False, "list": []},
            "status": {"conditions": [ready]},
        }
        found = objects.answer("PATCH", f"{PATH}/a/status", {}, patch).document
        assert found["metadata"]["labels"] == {"x": ""}
        assert (found["spec"], found["status"]) == (patch["spec"], {"conditions": [ready]})
        other = {"type": "Scheduled", "status": "True"}
        patch = {"status": {"conditions": [other]}}
        found = objects.answer("PATCH", f"{PATH}/a/status", {}, patch).document
        assert found["status"] == {"conditions": [ready, other]}

    @pytest.mark.parametrize(
        ("options", "protected", "code", "is_gone"),
        [
            ({}, False, 200, True),
            ({"deleteOptions": {"preconditions": {"uid": "pods-1"}}}, False, 200, True),
            ({"deleteOptions": {"preconditions": {"uid": "x"}}}, False, 409, False),
            ({}, True, 429, False),
        ],
    )
    def test_a_pod_is_evicted_unless_somebody_protects_it(
        self, options: dict[str, Any], protected: bool, code: int, is_gone: bool
    ) -> None:
        objects = server("a")
        if protected:
            objects.protected.add("a")
        answer = objects.answer("POST", f"{PATH}/a/eviction", {}, options)
        assert (answer.code, objects.document(PODS, "a") is None) == (code, is_gone)
        if protected:
            assert answer.document["details"] == {"causes": [{"reason": "DisruptionBudget"}]}

    def test_a_patch_merges_and_nulls_remove(self) -> None:
        objects = ApiObjects()
        document = pod("a", labels={"x": "1", "y": "2"})
        document["status"] = {
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "PodScheduled", "status": "False"},
            ]
        }
        objects.put(PODS, document)
        patch = {
            "metadata": {"labels": {"x": None, "z": "3"}},
            "status": {"conditions": [{"type": "PodScheduled", "status": "True"}], "phase": "P"},
        }
        answer = objects.answer("PATCH", f"{PATH}/a/status", {}, patch)
        assert answer.code == 200
        assert answer.document["metadata"]["labels"] == {"y": "2", "z": "3"}
        assert answer.document["status"] == {
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "PodScheduled", "status": "True"},
            ],
            "phase": "P",
        }

    def test_an_object_is_replaced_or_deleted(self) -> None:
        objects = server("a")
        other = {"metadata": {"name": "a", "namespace": "default"}, "spec": {"x": 1}}
        replaced = objects.answer("PUT", f"{PATH}/a", {}, other)
        assert (replaced.code, replaced.document["spec"]) == (200, {"x": 1})
        assert replaced.document["metadata"]["uid"] == "pods-1"
        assert objects.answer("DELETE", f"{PATH}/a", {}, None).code == 200
        assert objects.documents(PODS) == []
        assert objects.answer("DELETE", f"{PATH}/a", {}, None).code == 404


class TestWatching:
    def opening(self, objects: ApiObjects, **query: str) -> list[dict[str, Any]]:
        return [msgspec.json.decode(line) for line in objects.opening("/api/v1/pods", query)]

    def test_a_watch_begins_with_all_there_is_and_a_bookmark(self) -> None:
        objects = server("a", "b")
        objects.put(NODES, {"metadata": {"name": "n"}, "spec": {}})
        *added, bookmark = self.opening(objects)
        assert [(each["type"], each["object"]["metadata"]["name"]) for each in added] == [
            ("ADDED", "a"),
            ("ADDED", "b"),
        ]
        assert bookmark == {
            "type": "BOOKMARK",
            "object": {
                "metadata": {
                    "resourceVersion": "3",
                    "annotations": {"k8s.io/initial-events-end": "true"},
                }
            },
        }

    def test_a_watch_goes_on_after_its_version_unless_that_is_forgotten(self) -> None:
        objects = server("a", "b")
        objects.put(NODES, {"metadata": {"name": "n"}, "spec": {}})
        objects.remove(PODS, "a")

        def since(version: int) -> list[tuple[str, Any]]:
            lines = self.opening(objects, resourceVersion=str(version))
            return [
                (each["type"], each["object"].get("metadata", {}).get("name")) for each in lines
            ]

        assert since(1) == [("ADDED", "b"), ("DELETED", "a")]
        assert since(4) == []
        objects.forget_changes()
        objects.put(PODS, pod("c"))
        assert since(4) == [("ADDED", "c")]
        [(kind, _)] = since(3)
        assert kind == "ERROR"
        [expired] = self.opening(objects, resourceVersion="3")
        assert (expired["object"]["code"], expired["object"]["reason"]) == (410, "Expired")

    def test_a_refusal_says_what_and_why(self) -> None:
        assert refusal(409, "Conflict").document == {
            "kind": "Status",
            "code": 409,
            "reason": "Conflict",
            "message": "Conflict here",
            "details": {},
        }
