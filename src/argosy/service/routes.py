"""Routes: what can be asked, with which parameters, and what comes back.

The table of routes is the only description of the API: requests are read by it, and the OpenAPI document
is made from it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec
from aiohttp import web

from argosy.model.errors import ArgosyError, excerpt
from argosy.service.problems import RequestError, TooLarge, WrongMediaType
from argosy.workloads.tables import Misfit, path_text

JSON: Final = "application/json"
#: The largest document that is accepted, in bytes.
LARGEST_BODY: Final = 4 << 20

Document = TypeVar("Document")


class Reply(NamedTuple):
    """A document and how it is sent."""

    value: Any = None
    status: int = HTTPStatus.OK
    headers: Mapping[str, str] = {}


class Text(NamedTuple):
    """A schema that is not a document of the API's."""

    media_type: str
    description: str


class TableSchema(NamedTuple):
    """A document that is read like a table of a scenario file."""

    name: str
    kind: type[msgspec.Struct]


Handler: TypeAlias = Callable[[web.Request], Awaitable[Reply | web.StreamResponse]]


class Route(NamedTuple):
    method: str
    path: str
    handler: Handler
    summary: str
    #: Parameters after the question mark.
    query: type[msgspec.Struct] | None = None
    body: type[msgspec.Struct] | TableSchema | None = None
    #: Whether the body may be left out.
    body_is_optional: bool = False
    result: type[msgspec.Struct] | Text | None = None
    status: int = HTTPStatus.OK
    #: Headers that matter: name and meaning.
    headers: Mapping[str, str] = {}
    #: Problems besides those that every route has.
    problems: tuple[int, ...] = ()


def read_query(request: web.Request, kind: type[Document]) -> Document:
    """The parameters after the question mark; each may be given once."""
    values: dict[str, str] = {}
    for name, text in request.query.items():
        if name in values:
            raise RequestError(f"{name} is given twice", field=name, expected="one value")
        values[name] = text
    known = [field.encode_name for field in msgspec.structs.fields(kind)]  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            raise RequestError(
                f"unknown parameter {excerpt(name)}",
                expected="one of " + ", ".join(known) if known else "none",
            )
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        field = path.strip("`.")
        raise RequestError(f"{excerpt(values.get(field, ''))}: {problem}", field=field) from None


async def read_body(request: web.Request, *, is_optional: bool = False) -> Any:
    """The JSON document that came with the request, as plain values."""
    try:
        data = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise TooLarge(
            "the document is too large", expected=f"at most {LARGEST_BODY:,} bytes"
        ) from None
    # `can_read_body` is false for a body that has been read already.
    if not data and is_optional:
        return None
    if request.content_type != JSON:
        raise WrongMediaType(
            f"content type {excerpt(request.content_type)}", expected=JSON, field="Content-Type"
        )
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"not JSON: {error}", expected="one JSON document") from None


async def read_document(
    request: web.Request, kind: type[Document], *, is_optional: bool = False
) -> Document:
    """The request's document as a value of the API's."""
    plain = await read_body(request, is_optional=is_optional)
    if plain is None and is_optional:
        return kind()
    _check_keys(plain, kind)
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise UnfitDocument(problem, field=path.strip("`.") or None) from None


class UnfitDocument(ArgosyError):
    """A document that does not have the form it should have."""

    code = "document"


def _check_keys(plain: Any, kind: type[Any]) -> None:
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    if isinstance(plain, dict):
        for key in plain:
            if key not in known:
                raise UnfitDocument(
                    f"unknown key {excerpt(key)}", expected="one of " + ", ".join(known)
                )


def located(misfit: Misfit) -> ArgosyError:
    """The error of a table, with the path of the value it is about."""
    return misfit.error.located(field=path_text(misfit.path) or None)
