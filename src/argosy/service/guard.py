"""Who may ask, and how much: tokens, other sites, sizes and slow clients."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
import traceback
from collections.abc import Callable, Container
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

import msgspec
from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Handler

from argosy.model.errors import ArgosyError, excerpt
from argosy.service import problems
from argosy.service.callers import Caller, Callers, TokenScope
from argosy.service.problems import (
    Forbidden,
    InternalError,
    NotFound,
    PlainHttpError,
    RequestError,
    TooLarge,
    TooSlow,
    WrongMethod,
    encode_problem,
    status_of,
)
from argosy.service.routes import JSON, LARGEST_BODY, PROBES, Reply
from argosy.service.routes import Handler as RouteHandler

#: Seconds that a client may take to send a request's head, and its document.
HEAD_TIMEOUT: Final = 15.0
BODY_TIMEOUT: Final = 30.0
#: What an answer counts as that nobody was there for.
CLIENT_GONE: Final = 499
_ENCODE: Final = msgspec.json.Encoder().encode
_ALWAYS: Final = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
_CALLER: Final = web.RequestKey("caller", Caller)
_DESCRIPTION: Final = "/v1/openapi.json describes what there is"


class Guard:
    """`callers` need no token if only this computer can connect. `ended` hears of every answer."""

    def __init__(
        self,
        callers: Callers,
        ended: Callable[[str, int, float], None],
        log: Callable[[str], None],
        public: Container[str] = PROBES,
    ) -> None:
        """Anybody may ask for the paths in `public`."""
        self._callers = callers
        self._public = public
        self._ended = ended
        self._log = log

    @property
    def middleware(self) -> Callable[[web.Request, Handler], object]:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            began = time.monotonic()
            status = CLIENT_GONE
            try:
                response = await self._answer(request, handler)
                status = response.status
                return response
            finally:
                self._ended(request.method, status, time.monotonic() - began)

        return guard

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            request[_CALLER] = caller = self._caller(request)
            with caller.request():
                await self._take_body(request)
                found: object = await handler(request)
        except (ConnectionError, TimeoutError):
            # The client has gone, or does not read: what is buffered for it is dropped.
            raise _hung_up(request) from None
        except Exception as error:
            return self._refused(request, self._known(request, error))
        if isinstance(found, web.StreamResponse):
            return found
        assert isinstance(found, Reply)
        headers = {**_ALWAYS, **found.headers}
        if found.value is None:
            return web.Response(status=found.status, headers=headers)
        return web.Response(
            status=found.status, headers=headers, body=_ENCODE(found.value), content_type=JSON
        )

    def _known(self, request: web.Request, error: Exception) -> ArgosyError:
        match error:
            case ArgosyError():
                return error
            case web.HTTPMethodNotAllowed():
                return WrongMethod(error.method, error.allowed_methods)
            case web.HTTPNotFound():
                return NotFound("there is nothing at this path", hint=_DESCRIPTION)
            case web.HTTPException():
                return PlainHttpError(error.status, error.reason)
        self._log(f"{request.method} {request.path}: an internal error")
        self._log("".join(traceback.format_exception(error)).rstrip())
        return InternalError(
            f"an internal error: {type(error).__name__}",
            hint="the server's log has the details",
        )

    def _refused(self, request: web.Request, error: ArgosyError) -> web.Response:
        if request.writer.output_size > 0:
            # An answer that has begun can only be cut off.
            self._log(f"{request.method} {request.path}: {error}")
            raise _hung_up(request)
        status = status_of(error)
        headers = dict(_ALWAYS)
        if status in (429, 503):
            headers["Retry-After"] = str(problems.RETRY_AFTER)
        if status == 503:
            self._log(f"{request.method} {request.path}: {error}")
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if isinstance(error, WrongMethod):
            headers["Allow"] = ",".join(error.allowed)
        response = web.Response(
            status=status,
            headers=headers,
            body=encode_problem(error),
            content_type=problems.MEDIA_TYPE,
        )
        if request.can_read_body and not request.content.at_eof():
            # What is left of the document is not waited for.
            response.force_close()
        return response

    def _caller(self, request: web.Request) -> Caller:
        """Who asks, if it may."""
        if request.path in self._public:
            return self._callers.local
        self._check_site(request)
        if _is_private(request):
            return self._callers.local
        if not self._callers.need_token:
            self._check_host(request)
            return self._callers.local
        return self._callers.of(request.headers.get("Authorization", ""))

    def _check_site(self, request: web.Request) -> None:
        """No page of another site may use the browser of somebody who can connect."""
        site = request.headers.get("Sec-Fetch-Site", "none")
        origin = request.headers.get("Origin")
        if site in ("cross-site", "same-site") or (
            origin is not None and _place(origin) != request.host
        ):
            raise Forbidden(
                f"a request from {excerpt(origin) if origin else 'another site'}",
                expected="requests of programs, or of pages of this server",
            )

    def _check_host(self, request: web.Request) -> None:
        """A name that another site's owner makes point here is not ours."""
        name = _host_name(request.host)
        if name != "localhost" and not _is_loopback(name):
            raise Forbidden(
                f"a request for {excerpt(request.host)}",
                field="Host",
                expected="localhost or a loopback address",
            )

    async def _take_body(self, request: web.Request) -> None:
        """All of it is here before anything is done."""
        if not request.can_read_body:
            return
        try:
            if request.content.is_eof():
                # It came with the head; nobody has to be waited for.
                await request.read()
                return
            async with asyncio.timeout(BODY_TIMEOUT):
                await request.read()
        except TimeoutError:
            raise TooSlow(
                "the document did not come in time", expected=f"at most {BODY_TIMEOUT:g} s"
            ) from None
        except web.HTTPRequestEntityTooLarge:
            raise TooLarge(
                "the document is too large", expected=f"at most {LARGEST_BODY:,} bytes"
            ) from None
        except (web.RequestPayloadError, HttpProcessingError) as error:
            raise RequestError(
                f"the body cannot be read: {' '.join(str(error).split())}",
                expected="as many bytes, encoded as the head says",
            ) from None


def caller_of(request: web.Request) -> Caller:
    return request[_CALLER]


def scoped(handler: RouteHandler, scope: TokenScope) -> RouteHandler:
    """The handler, for callers whose token is for the scope."""

    async def checked(request: web.Request) -> Reply | web.StreamResponse:
        caller_of(request).require(scope)
        return await handler(request)

    return checked


def _hung_up(request: web.Request) -> asyncio.CancelledError:
    """The connection is closed, and what was to be sent is forgotten."""
    if request.transport is not None:
        request.transport.abort()
    return asyncio.CancelledError()


def _place(origin: str) -> str | None:
    """Host and port; none if there are none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_private(request: web.Request) -> bool:
    """Whether it came over the socket in the server's directory, which only its user can reach."""
    transport = request.transport
    known = None if transport is None else transport.get_extra_info("socket")
    return known is not None and known.family == socket.AF_UNIX


@lru_cache(1_000)
def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
