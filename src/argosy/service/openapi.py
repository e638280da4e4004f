"""The OpenAPI 3.1 description, made from the table of routes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from argosy.api.values import ClusterEvent, ProblemDocument
from argosy.model.constraints import Constraint
from argosy.model.resources import Resources
from argosy.model.units import Micros
from argosy.service import problems
from argosy.service.routes import JSON, Route, TableSchema, Text
from argosy.version import __version__
from argosy.workloads.tables import CommandLine

_REF: Final = "#/components/schemas/{name}"
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
#: Problems that every route may answer with.
_ALWAYS: Final = (400, 401, 403, 413, 415, 429, 503)
_MEANINGS: Final = {
    304: "Nothing has changed.",
    400: "The request cannot be read.",
    401: "The token is missing or wrong.",
    403: "The request comes from another site, or the token is for less.",
    404: "There is no such thing.",
    408: "The client was too slow.",
    409: "It contradicts what there is.",
    412: "It has changed meanwhile.",
    413: "The document is too large.",
    415: "Not JSON.",
    422: "The document cannot be accepted as it is.",
    429: "The caller's limits are reached.",
    503: "Nothing is accepted for now.",
}


def describe(routes: Sequence[Route]) -> dict[str, Any]:
    kinds: list[Any] = [ProblemDocument, ClusterEvent]
    for route in routes:
        kinds += [kind for kind in (route.body, route.result) if isinstance(kind, type)]
    _, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if isinstance(route.body, TableSchema):
            components[route.body.name] = _of_struct(route.body.kind, components)
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Argosy",
            "version": __version__,
            "description": "A live cluster: jobs, machines, schedulers, and why things are as they are.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Needed unless the server listens on this computer only.",
                }
            },
        },
        "security": [{}, {"token": []}],
    }


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": f"{route.handler.__name__}_{route.path.split('/')[-1].strip('{}')}",
        "summary": route.summary,
        "responses": _responses(route),
    }
    parameters = [*_path_parameters(route), *_query_parameters(route), *_header_parameters(route)]
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        name = route.body.name if isinstance(route.body, TableSchema) else route.body.__name__
        operation["requestBody"] = {
            "required": not route.body_is_optional,
            "content": {JSON: {"schema": {"$ref": _REF.format(name=name)}}},
        }
    return operation


def _path_parameters(route: Route) -> Iterable[dict[str, Any]]:
    for name in _PARAMETER.findall(route.path):
        schema = {"type": "integer", "minimum": 0} if name == "index" else {"type": "string"}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(route: Route) -> Iterable[dict[str, Any]]:
    if route.query is None:
        return
    schema = msgspec.json.schema(route.query)
    properties = schema["$defs"][route.query.__name__]["properties"]
    for name, known in properties.items():
        yield {"name": name, "in": "query", "schema": _without_null(known)}


def _without_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Absent parameters are left out, not null."""
    options = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
    kept = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    if "enum" in kept:
        kept["enum"] = [each for each in kept["enum"] if each is not None]
    return {**kept, **options[0]} if len(options) == 1 else dict(kept)


def _header_parameters(route: Route) -> Iterable[dict[str, Any]]:
    for name, text in route.headers.items():
        yield {"name": name, "in": "header", "description": text, "schema": {"type": "string"}}


def _responses(route: Route) -> dict[str, Any]:
    described: dict[str, Any] = {str(int(route.status)): _success(route)}
    if "Idempotency-Key" in route.headers:
        described["200"] = {**_success(route), "description": "It was asked for before."}
    if "If-None-Match" in route.headers:
        described["304"] = {"description": _MEANINGS[304]}
    if route.path in ("/v1/health", "/readyz"):
        described["503"] = {**_success(route), "description": "The server does not work."}
    for status in sorted({*_ALWAYS, *route.problems, *((408,) if route.body else ())}):
        described.setdefault(
            str(status),
            {
                "description": _MEANINGS[status],
                "content": {
                    problems.MEDIA_TYPE: {"schema": {"$ref": _REF.format(name="ProblemDocument")}}
                },
            },
        )
    return described


def _success(route: Route) -> dict[str, Any]:
    described = _content(route)
    if route.answers_with:
        described["headers"] = {
            name: {"description": text, "schema": {"type": "string"}}
            for name, text in route.answers_with.items()
        }
    return described


def _content(route: Route) -> dict[str, Any]:
    match route.result:
        case None:
            return {"description": "Done."}
        case Text(media_type, description):
            return {
                "description": description,
                "content": {media_type: {"schema": {"type": "string"}}},
            }
    return {
        "description": "Done.",
        "content": {JSON: {"schema": {"$ref": _REF.format(name=route.result.__name__)}}},
    }


def _of_struct(kind: type[msgspec.Struct], components: dict[str, Any]) -> dict[str, Any]:
    """The schema of a table of a scenario file, whose values may have units."""
    hints = get_type_hints(kind, include_extras=True)
    properties, required = {}, []
    for field in msgspec.structs.fields(kind):
        properties[field.encode_name] = _of(hints[field.name], components)
        if field.required:
            required.append(field.encode_name)
    schema: dict[str, Any] = {
        "type": "object",
        "title": kind.__name__,
        "properties": properties,
        "additionalProperties": False,
    }
    return {**schema, "required": required} if required else schema


def _of(kind: Any, components: dict[str, Any]) -> dict[str, Any]:
    origin, inside = get_origin(kind), get_args(kind)
    if kind == CommandLine:
        words = {"type": "array", "items": {"type": "string"}}
        return {"anyOf": [{"type": "string", "minLength": 1}, words]}
    if origin is Annotated:
        if Micros in kind.__metadata__:
            return {
                "anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0}],
                "description": "A duration with its unit, or whole microseconds.",
            }
        bounds = msgspec.json.schema(kind)
        return {**_of(inside[0], components), **bounds}
    if kind is Resources:
        return {
            "type": "object",
            "additionalProperties": {"type": ["number", "string"]},
            "description": "Amounts by name: cpu, memory, and others.",
        }
    if kind is Constraint:
        return {"type": ["string", "object"], "description": "A placement constraint."}
    if origin in (Union, UnionType):
        options = [_of(each, components) for each in inside if each is not NoneType]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if origin is tuple:
        return {"type": "array", "items": _of(inside[0], components)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of(inside[1], components)}
    if origin is Literal:
        return {"enum": list(inside)}
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind.__name__ not in components:
            components[kind.__name__] = {}
            components[kind.__name__] = _of_struct(kind, components)
        return {"$ref": _REF.format(name=kind.__name__)}
    return {"type": {str: "string", int: "integer", float: "number", bool: "boolean"}[kind]}
