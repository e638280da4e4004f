"""Who may ask, and how much: tokens, other sites, sizes and slow clients."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import socket
import time
import traceback
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from argosy.model.errors import ArgosyError, excerpt
from argosy.service import problems
from argosy.service.problems import (
    Forbidden,
    PlainHttpError,
    TooSlow,
    Unauthorised,
    encode_problem,
    status_of,
)
from argosy.service.routes import JSON, Reply

#: Seconds that a client may take to send a request's head, and its document.
HEAD_TIMEOUT: Final = 15.0
BODY_TIMEOUT: Final = 30.0
#: Connections at once.
MOST_CONNECTIONS: Final = 500
_ENCODE: Final = msgspec.json.Encoder().encode
_ALWAYS: Final = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


class Guard:
    """`token` is none if only this computer can connect. `connections` counts those that are open;
    `ended` hears of every answer."""

    def __init__(
        self,
        token: str | None,
        connections: Callable[[], int],
        ended: Callable[[str, int, float], None],
        log: Callable[[str], None],
    ) -> None:
        self._token = token
        self._connections = connections
        self._ended = ended
        self._log = log

    @property
    def middleware(self) -> Callable[[web.Request, Handler], object]:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            began = time.monotonic()
            status = 500
            try:
                response = await self._answer(request, handler)
                status = response.status
                return response
            finally:
                self._ended(request.method, status, time.monotonic() - began)

        return guard

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self._check(request)
            await self._take_body(request)
            found: object = await handler(request)
        except web.HTTPException as error:
            return self._refused(request, PlainHttpError(error.status, _sentence(error)))
        except ArgosyError as error:
            return self._refused(request, error)
        except (ConnectionError, TimeoutError):
            # The client has gone, or does not read.
            raise asyncio.CancelledError from None
        except Exception as error:
            self._log(f"{request.method} {request.path}: {traceback.format_exc().rstrip()}")
            what = f"{type(error).__name__}: {error}; this is a bug in Argosy"
            return self._refused(request, PlainHttpError(500, what))
        if isinstance(found, web.StreamResponse):
            return found
        assert isinstance(found, Reply)
        headers = {**_ALWAYS, **found.headers}
        if found.value is None:
            return web.Response(status=found.status, headers=headers)
        return web.Response(
            status=found.status, headers=headers, body=_ENCODE(found.value), content_type=JSON
        )

    def _refused(self, request: web.Request, error: ArgosyError) -> web.Response:
        status = status_of(error)
        headers = dict(_ALWAYS)
        if status == 503:
            headers["Retry-After"] = str(problems.RETRY_AFTER)
            self._log(f"{request.method} {request.path}: {error}")
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
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

    def _check(self, request: web.Request) -> None:
        if self._connections() > MOST_CONNECTIONS:
            raise PlainHttpError(503, "too many connections")
        self._check_site(request)
        if _is_private(request):
            return
        if self._token is None:
            self._check_host(request)
            return
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        is_right = hmac.compare_digest(given.strip().encode(), self._token.encode())
        if scheme.lower() != "bearer" or not is_right:
            raise Unauthorised(
                "the token is wrong" if given else "a token is needed",
                field="Authorization",
                expected="Bearer and the server's token",
                hint="it is in the file `token` of the server's directory",
            )

    def _check_site(self, request: web.Request) -> None:
        """No page of another site may use the browser of somebody who can connect."""
        site = request.headers.get("Sec-Fetch-Site", "none")
        origin = request.headers.get("Origin")
        if site in ("cross-site", "same-site") or (
            origin is not None and urlsplit(origin).netloc != request.host
        ):
            raise Forbidden(f"a request from {origin or 'another site'}", expected="none")

    def _check_host(self, request: web.Request) -> None:
        """A name that another site's owner makes point here is not ours."""
        name = urlsplit(f"//{request.host}").hostname or ""
        if name != "localhost" and not _is_loopback(name):
            raise Forbidden(
                f"a request for {excerpt(name)}", field="Host", expected="the name of this computer"
            )

    async def _take_body(self, request: web.Request) -> None:
        """All of it is here before anything is done."""
        if not request.can_read_body:
            return
        try:
            async with asyncio.timeout(BODY_TIMEOUT):
                await request.read()
        except TimeoutError:
            raise TooSlow(
                "the document did not come in time", expected=f"{BODY_TIMEOUT:g} s at most"
            ) from None


def _sentence(error: web.HTTPException) -> str:
    if error.status == 404:
        return "there is nothing at this path"
    if isinstance(error, web.HTTPMethodNotAllowed):
        return f"{error.method} is not possible here; expected " + ", ".join(
            sorted(error.allowed_methods)
        )
    if error.status == 413:
        return "the document is too large"
    return error.reason


def _is_private(request: web.Request) -> bool:
    """Whether it came over the socket in the server's directory, which only its user can reach."""
    transport = request.transport
    known = None if transport is None else transport.get_extra_info("socket")
    return known is not None and known.family == socket.AF_UNIX


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
