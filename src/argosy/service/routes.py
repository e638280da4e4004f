"""Routes: what can be asked, with which parameters, and what comes back.

The table of routes is the only description of the API: requests are read by it, and the OpenAPI document
is made from it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus
from typing import (
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from aiohttp import web

from argosy.model.errors import ArgosyError, did_you_mean, excerpt
from argosy.model.units import shown
from argosy.service.callers import TokenScope
from argosy.service.problems import RequestError, WrongMediaType
from argosy.workloads.tables import Misfit, expectation, path_text

JSON: Final = "application/json"
#: Paths that anybody may ask, as a kubelet does, with what they tell.
PROBES: Final = {
    "/livez": "Whether the server answers.",
    "/healthz": "Whether the server answers.",
    "/readyz": "Whether the server works. The status is 503 if it does not.",
}
#: The largest document that is accepted, in bytes.
LARGEST_BODY: Final = 4 << 20
#: Characters of an idempotency key.
LONGEST_KEY: Final = 200
_STEP: Final = re.compile(r"[^.\[\]`]+|\.\.\.")
_MISSING: Final = re.compile(r"Object missing required field `(\w+)`")

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


VERSIONED: Final = {"ETag": "The version, for If-Match and If-None-Match."}
PLACED: Final = {**VERSIONED, "Location": "The path of what was made."}

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
    #: Headers of the answer.
    answers_with: Mapping[str, str] = {}
    #: Problems besides those that every route has.
    problems: tuple[int, ...] = ()
    #: What a token must be for.
    scope: TokenScope = "operate"


def read_query(request: web.Request, kind: type[Document]) -> Document:
    """The parameters after the question mark; each may be given once."""
    values: dict[str, str] = {}
    for name, text in request.query.items():
        if name in values:
            raise RequestError("given twice", field=name, expected="one value")
        values[name] = text
    _check_names(values, kind, "parameter", RequestError)
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _explained(error, values, kind, RequestError) from None


def check_key(key: str) -> None:
    """The header Idempotency-Key."""
    if not (0 < len(key) <= LONGEST_KEY and key.isprintable()):
        raise RequestError(
            excerpt(key) if key else "missing",
            field="Idempotency-Key",
            expected=f"1 to {LONGEST_KEY} printable characters",
        )


async def read_body(request: web.Request, *, is_optional: bool = False) -> Any:
    """The JSON document that came with the request, as plain values."""
    data = await request.read()
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
    if isinstance(plain, dict):
        _check_names(plain, kind, "key", UnfitDocument)
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        raise _explained(error, plain, kind, UnfitDocument) from None


class UnfitDocument(ArgosyError):
    """A document that does not have the form it should have."""

    code = "document"


def _check_names(
    given: Iterable[str], kind: type[Any], what: str, error: type[ArgosyError]
) -> None:
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    for name in given:
        if name not in known:
            raise error(
                f"unknown {what} {excerpt(name)}",
                expected="one of " + ", ".join(known),
                hint=did_you_mean(name, known),
            )


def _explained(
    error: msgspec.ValidationError, plain: Any, kind: type[Any], form_error: type[ArgosyError]
) -> ArgosyError:
    """What does not fit, where, and what was expected, in the words that tables are refused with."""
    text = str(error).replace(" | null", "")
    message, _, place = text.partition(" - at `$")
    path = [int(step) if step.isdecimal() else step for step in _STEP.findall(place)]
    field = path_text(tuple(path)) or None
    if missing := _MISSING.match(message):
        return form_error(f"missing key {missing[1]!r}", field=field, expected=f"{missing[1]}: ...")
    value = plain
    for step in path:
        if step == "..." or not isinstance(value, list | dict):
            # It stands for the key of a mapping: whatever follows, nobody knows under which.
            break
        value = value[step]
    return form_error(
        f"{shown(value)} does not fit",
        field=field,
        expected=_choices(kind, path[0]) if "enum" in message and path else expectation(message),
    )


def _choices(kind: type[Any], name: str | int) -> str:
    hints = get_type_hints(kind)
    field = next(each for each in msgspec.structs.fields(kind) if each.encode_name == name)
    return "one of " + ", ".join(map(str, _literals(hints[field.name])))


def _literals(hint: Any) -> list[Any]:
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [value for each in get_args(hint) for value in _literals(each)]


def located(misfit: Misfit) -> ArgosyError:
    """The error of a table, with the path of the value it is about."""
    return misfit.error.located(field=path_text(misfit.path) or None)
