"""Errors as problem documents (RFC 9457), with the text that a command would print."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

import msgspec

from argosy.api.agent_values import RefusedCommit
from argosy.api.values import ProblemDocument
from argosy.model.errors import ArgosyError, EngineFault
from argosy.model.explanations import Refusal
from argosy.service.live import Unavailable
from argosy.worlds.local.store import StoreError

MEDIA_TYPE: Final = "application/problem+json"
#: Seconds after which a client may ask again.
RETRY_AFTER: Final = 1


class RequestError(ArgosyError):
    """The request itself is wrong, apart from what its document says."""

    code = "request"
    status: int = HTTPStatus.BAD_REQUEST


class NotFound(RequestError):
    code = "not-found"
    status = HTTPStatus.NOT_FOUND


class Conflict(RequestError):
    """It contradicts what there is."""

    code = "conflict"
    status = HTTPStatus.CONFLICT


class CommitConflict(RequestError):
    """No machine that was named takes the job. `refused` says why the last one does not."""

    code = "commit-conflict"
    status = HTTPStatus.CONFLICT

    def __init__(self, refusal: Refusal, machine: str) -> None:
        self.refused = RefusedCommit(
            why=refusal.why.name.lower(),
            machine=machine,
            resource=refusal.dimension,
            lacking=refusal.lacking,
        )
        super().__init__(refusal.sentence(machine), hint=refusal.remedy() or None)


class TooMany(RequestError):
    """The caller's limits are reached."""

    code = "too-many"
    status = HTTPStatus.TOO_MANY_REQUESTS


class VersionChanged(RequestError):
    """What was to be changed has changed meanwhile."""

    code = "version-changed"
    status = HTTPStatus.PRECONDITION_FAILED


class Unauthorised(RequestError):
    code = "unauthorised"
    status = HTTPStatus.UNAUTHORIZED


class Forbidden(RequestError):
    code = "forbidden"
    status = HTTPStatus.FORBIDDEN


class TooLarge(RequestError):
    code = "too-large"
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class WrongMediaType(RequestError):
    code = "media-type"
    status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE


class TooSlow(RequestError):
    code = "too-slow"
    status = HTTPStatus.REQUEST_TIMEOUT


class WrongMethod(RequestError):
    """`allowed` are those that the path has."""

    code = "method"
    status = HTTPStatus.METHOD_NOT_ALLOWED

    def __init__(self, method: str, allowed: Iterable[str]) -> None:
        self.allowed = sorted(allowed)
        super().__init__(
            f"{method} is not possible here", expected="one of " + ", ".join(self.allowed)
        )


class InternalError(RequestError):
    """A mistake of the server's own."""

    code = "internal"
    status = HTTPStatus.INTERNAL_SERVER_ERROR


class PlainHttpError(RequestError):
    """What the HTTP library refuses by itself."""

    code = "http"

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


def status_of(error: ArgosyError) -> int:
    match error:
        case RequestError():
            return int(error.status)
        case Unavailable() | StoreError() | EngineFault():
            return HTTPStatus.SERVICE_UNAVAILABLE
    return HTTPStatus.UNPROCESSABLE_ENTITY


def problem_of(error: ArgosyError) -> ProblemDocument:
    status = status_of(error)
    return ProblemDocument(
        type=f"urn:argosy:problem:{error.code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=str(error),
        code=error.code,
        field=error.field or "",
        expected=error.expected or "",
        hint=error.hint or "",
        refused=error.refused if isinstance(error, CommitConflict) else None,
    )


def encode_problem(error: ArgosyError) -> bytes:
    return msgspec.json.encode(problem_of(error))
