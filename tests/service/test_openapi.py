"""The OpenAPI description: whole, in itself consistent, and what the server really does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from live_bench import LiveBench, job

from argosy.model.errors import EngineFault, error_tree
from argosy.service.live import Unavailable
from argosy.service.problems import RequestError
from argosy.service.routes import UnfitDocument
from argosy.worlds.local.store import StoreError

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
METHODS = {"get", "post", "put", "patch", "delete"}


@pytest.fixture(scope="module")
def described(live: LiveBench) -> dict[str, Any]:
    document: dict[str, Any] = live.read("/v1/openapi.json")
    return document


def operations(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in described["paths"].items():
        assert set(methods) <= METHODS
        for method, operation in methods.items():
            yield path, method, operation


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def test_every_route_of_the_server_is_described_and_nothing_else(
    live: LiveBench, described: dict[str, Any]
) -> None:
    routes = {(route.path, route.method.lower()) for route in live.server.routes}
    known = {(path, method) for path, method, _ in operations(described)}
    assert routes - known == {("/v1/openapi.json", "get")}
    assert known <= routes


def test_the_description_has_the_form_of_openapi(described: dict[str, Any]) -> None:
    assert described["openapi"] == "3.1.0"
    assert {"title", "version", "description", "license"} <= set(described["info"])
    seen = set()
    for path, method, operation in operations(described):
        assert operation["operationId"] not in seen
        seen.add(operation["operationId"])
        assert operation["summary"].endswith(".")
        named = re.findall(r"\{(\w+)\}", path)
        parameters = operation.get("parameters", [])
        in_path = [each["name"] for each in parameters if each["in"] == "path"]
        assert in_path == named
        assert all(each["required"] for each in parameters if each["in"] == "path")
        assert len({(each["in"], each["name"]) for each in parameters}) == len(parameters)
        assert all("schema" in each for each in parameters)
        assert ("requestBody" in operation) <= (method in ("post", "put", "patch"))
        for status, answer in operation["responses"].items():
            assert re.fullmatch(r"[2345]\d\d", status)
            assert answer["description"]


def test_references_lead_somewhere_and_schemas_are_schemas(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]
    prefix = "#/components/schemas/"
    found = set(references(described))
    assert found
    assert {each.removeprefix(prefix) for each in found} <= set(schemas)
    for schema in schemas.values():
        jsonschema_rs.meta.validate(schema)


def test_answers_say_their_versions_and_places(described: dict[str, Any]) -> None:
    paths = described["paths"]
    assert set(paths["/v1/jobs"]["post"]["responses"]["201"]["headers"]) == {"ETag", "Location"}
    assert set(paths["/v1/jobs/{job}"]["get"]["responses"]["200"]["headers"]) == {"ETag"}
    logs = paths["/v1/jobs/{job}/tasks/{index}/logs"]["get"]
    assert set(logs["responses"]["200"]["headers"]) == {"Argosy-Offset", "Argosy-Try"}
    assert [each["name"] for each in logs["parameters"] if each["in"] == "query"] == [
        "stream",
        "try",
        "offset",
        "tail",
        "follow",
    ]


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("/v1/jobs", "JobPage"),
        ("/v1/jobs/a", "JobDetails"),
        ("/v1/jobs/a/tasks", "TaskPage"),
        ("/v1/jobs/a/tasks/0", "TaskDetails"),
        ("/v1/jobs/a/tasks/0/why", "WhyDocument"),
        ("/v1/jobs/a/tasks/0/story", "StoryDocument"),
        ("/v1/machines", "MachinePage"),
        ("/v1/machines/m0", "MachineInfo"),
        ("/v1/fleet", "FleetInfo"),
        ("/v1/health", "Health"),
        ("/v1/summary", "ClusterSummary"),
        ("/v1/jobs/nobody", "ProblemDocument"),
    ],
)
def test_answers_are_what_is_described(
    live: LiveBench, described: dict[str, Any], path: str, schema: str
) -> None:
    if live.get("/v1/jobs/a").status == 404:
        live.over(live.submit(job(id="a", count=2)))
    whole = {
        "$ref": f"#/components/schemas/{schema}",
        "components": described["components"],
    }
    jsonschema_rs.validator_for(whole).validate(live.get(path).document)


def test_the_documentation_lists_every_route_and_its_purpose(live: LiveBench) -> None:
    listed = re.findall(r"^\| `([A-Z]+ /\S+)` \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    routes = [(f"{route.method} {route.path}", route.summary) for route in live.server.routes]
    assert sorted(listed) == sorted(routes)


def test_the_documentation_lists_every_metric(live: LiveBench) -> None:
    named = set(re.findall(r"^\| `(argosy_\w+)` \|", PAGE.read_text("utf-8"), re.MULTILINE))
    served = re.findall(r"^# TYPE (\S+)", live.get("/metrics").body.decode(), re.MULTILINE)
    assert named == set(served)


def test_the_documentation_lists_the_errors_of_requests() -> None:
    rows = re.findall(r"^\| (\d+) \| (`.*?) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    listed = {
        (int(status), code) for status, codes in rows for code in re.findall("`(.+?)`", codes)
    }
    errors = [kind for kind in error_tree() if issubclass(kind, RequestError)]
    assert {(int(kind.status), kind.code) for kind in errors} <= listed
    assert (422, UnfitDocument.code) in listed
    assert {(503, kind.code) for kind in (Unavailable, StoreError, EngineFault)} <= listed
