"""One request and its answer: the connection, repetition, throttling and errors."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from random import Random, SystemRandom
from typing import Any, Final, Protocol
from urllib.parse import urlsplit
from weakref import WeakSet

import msgspec

from argosy.kubernetes.connection import Connection
from argosy.kubernetes.credentials import ClientCertificate
from argosy.kubernetes.failures import (
    KubernetesError,
    KubernetesUnreachable,
    KubernetesUntrusted,
    failure,
    is_budget,
)
from argosy.kubernetes.meta import ServerStatus
from argosy.kubernetes.pacing import JitteredBackoff, RequestLimiter, loop_time
from argosy.model.errors import MissingExtra
from argosy.version import __version__

try:
    import aiohttp
except ModuleNotFoundError:
    raise MissingExtra("Kubernetes", "kubernetes") from None

JSON: Final = "application/json"
_STATUS = msgspec.json.Decoder(ServerStatus)
#: Nothing was sent: whatever was asked can be asked again.
_NOT_SENT: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
#: Turns of the loop in which connections come to their end.
_LAST_TURNS: Final = 50


class RequestSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How requests are made. Times are in seconds."""

    #: How many requests, watches apart, may be under way.
    concurrent: int = 64
    #: How long one attempt may take.
    timeout: float = 30.0
    #: How long a request is repeated while there is no connection or the server throttles.
    patience: float = 30.0
    #: Bounds of the delays between attempts.
    first_delay: float = 0.1
    longest_delay: float = 10.0


class RequestObserver(Protocol):
    """Told of every attempt, for metrics."""

    def answered(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """`code` is 0 if there was no answer."""

    def repeated(self, verb: str, resource: str, delay: float) -> None: ...

    def watch_restarted(self, resource: str, cause: str) -> None: ...


class _Unobserved:
    def answered(self, verb: str, resource: str, code: int, seconds: float) -> None:
        pass

    def repeated(self, verb: str, resource: str, delay: float) -> None:
        pass

    def watch_restarted(self, resource: str, cause: str) -> None:
        pass


class KubernetesCall(msgspec.Struct, frozen=True, kw_only=True):
    """A request. `verb` is Kubernetes' word for it, `resource` a plural: both label metrics."""

    verb: str
    method: str
    path: str
    resource: str = ""
    parameters: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes | None = None
    content_type: str = JSON

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_repeatable(self) -> bool:
        """Whether carrying it out twice is the same as once."""
        return self.method == "GET"


class RequestAttempt(msgspec.Struct, frozen=True):
    code: int
    body: bytes
    retry_after: float | None


class RequestSender:
    """Sends requests over connections that are kept open. Who sends them by other ways replaces `open`,
    `close`, `exchange` and `stream`."""

    def __init__(
        self,
        connection: Connection,
        settings: RequestSettings | None = None,
        *,
        observer: RequestObserver | None = None,
        random: Random | None = None,
    ) -> None:
        self.connection = connection
        self.settings = settings or RequestSettings()
        self.observer: RequestObserver = observer or _Unobserved()
        self.random = random or SystemRandom()
        self.limiter = RequestLimiter(self.settings.concurrent)
        self._session: aiohttp.ClientSession | None = None
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._tls: tuple[ClientCertificate | None, Any] | None = None
        self._server_name = (
            connection.tls.server_name if connection.server.startswith("https://") else None
        )
        self._proxy = connection.proxy

    async def open(self) -> None:
        headers = [
            ("Accept", JSON),
            ("User-Agent", f"argosy/{__version__}"),
            ("Accept-Encoding", "gzip" if self._compresses() else "identity"),
            *self.connection.headers,
        ]
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=90, socket_factory=self._socket
            ),
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            auto_decompress=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=2**18,
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
            await self._end_connections()

    async def _end_connections(self) -> None:
        """Those of requests that were cancelled would wait for the server to say goodbye, perhaps longer
        than the loop lasts."""
        for _ in range(_LAST_TURNS):
            left = [each for each in self._sockets if each.fileno() >= 0]
            if not left:
                return
            for each in left:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            await asyncio.sleep(0)

    def _socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        made = _watched_socket(address)
        self._sockets.add(made)
        return made

    def _compresses(self) -> bool:
        """Compressing costs the server more than a loopback interface gains."""
        host = urlsplit(self.connection.server).hostname or ""
        try:
            is_near = ipaddress.ip_address(host).is_loopback
        except ValueError:
            is_near = host == "localhost"
        return self.connection.compresses and not is_near

    async def send(self, call: KubernetesCall) -> bytes:
        """The body of a good answer.

        What the server did not begin is asked again for a while: if no connection could be made, or the
        answer has a Retry-After. If the connection broke, only what changes nothing is asked again.
        """
        settings = self.settings
        backoff = JitteredBackoff(settings.first_delay, settings.longest_delay, self.random)
        give_up = loop_time() + settings.patience
        while True:
            problem: KubernetesError
            try:
                answer = await self._attempt(call)
            except KubernetesUnreachable as error:
                is_repeatable = call.is_repeatable or not error.may_have_happened
                if not is_repeatable or isinstance(error, KubernetesUntrusted):
                    raise
                problem, delay = error, backoff.next()
            else:
                if answer.code < 300:
                    return answer.body
                status = status_in(answer.body)
                problem = failure(str(call), answer.code, status)
                if answer.retry_after is None or is_budget(status):
                    raise problem
                delay = max(backoff.next(), backoff.spread(answer.retry_after))
            if loop_time() + delay > give_up:
                raise problem
            self.observer.repeated(call.verb, call.resource, delay)
            await asyncio.sleep(delay)

    async def _attempt(self, call: KubernetesCall) -> RequestAttempt:
        """One attempt; two if the server did not accept the first one's credentials."""
        for is_last in (False, True):
            async with self.limiter.turn():
                answer = await self.exchange(call)
                if answer.code in (429, 503) and answer.retry_after is not None:
                    self.limiter.throttled()
                else:
                    self.limiter.answered()
            if answer.code != 401 or is_last:
                break
            self.connection.credentials.refused()
        return answer

    async def exchange(self, call: KubernetesCall) -> RequestAttempt:
        """One request and its answer, whatever it says."""
        started = loop_time()
        code = 0
        try:
            async with self._in_time(call), await self._request(call) as response:
                body = await response.read()
                code = response.status
                return RequestAttempt(code, body, _retry_after(response))
        finally:
            self.observer.answered(call.verb, call.resource, code, loop_time() - started)

    @asynccontextmanager
    async def stream(self, call: KubernetesCall) -> AsyncIterator[aiohttp.StreamReader]:
        """The body of an answer that does not end soon. Not limited, not repeated, without a time-out
        once the answer has begun."""
        started = loop_time()
        code = 0
        try:
            async with self._in_time(call):
                response = await self._request(call)
                code = response.status
                if code == 401:
                    self.connection.credentials.refused()
                if code >= 300:
                    async with response:
                        raise failure(str(call), code, status_in(await response.read()))
        finally:
            self.observer.answered(call.verb, call.resource, code, loop_time() - started)
        connection = response.connection
        try:
            yield response.content
        except aiohttp.ClientError as error:
            raise self._unreachable(call, error) from None
        finally:
            if not response.content.at_eof() and connection is not None and connection.transport:
                # Closing it politely would wait for the server, which has no reason to answer.
                connection.transport.abort()
            response.close()

    @asynccontextmanager
    async def _in_time(self, call: KubernetesCall) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.settings.timeout):
                yield
        except TimeoutError:
            problem = f"{self.connection.server} did not answer in {self.settings.timeout:g} s"
            raise KubernetesUnreachable(str(call), problem, may_have_happened=True) from None
        except aiohttp.ClientError as error:
            raise self._unreachable(call, error) from None

    async def _request(self, call: KubernetesCall) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the client is not open: use it as `async with`")
        login = await self.connection.credentials.login()
        if self._tls is None or self._tls[0] != login.certificate:
            # False means no check at all to aiohttp, None its own defaults, which plain HTTP ignores.
            self._tls = (login.certificate, self.connection.ssl_context(login.certificate) or True)
        headers = {}
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        if login.authorization is not None:
            headers["Authorization"] = login.authorization.reveal()
        return await self._session.request(
            call.method,
            self.connection.server + call.path,
            params=call.parameters or None,
            data=call.body,
            headers=headers,
            ssl=self._tls[1],
            server_hostname=self._server_name,
            proxy=self._proxy,
            allow_redirects=False,
        )

    def _unreachable(
        self, call: KubernetesCall, error: aiohttp.ClientError
    ) -> KubernetesUnreachable:
        is_sent = not isinstance(error, _NOT_SENT)
        match error:
            case aiohttp.ClientConnectorCertificateError():
                problem = f"the certificate of {self.connection.server} is not trusted"
                return KubernetesUntrusted(str(call), problem, may_have_happened=False)
            case aiohttp.ClientProxyConnectionError():
                problem = "no connection to the proxy"
            case aiohttp.ClientConnectorError():
                problem = f"no connection to {self.connection.server}: {error.os_error.strerror}"
            case aiohttp.ClientHttpProxyError():
                problem = f"the proxy answered {error.status}"
                is_sent = False
            case _:
                problem = f"the connection to {self.connection.server} broke"
        return KubernetesUnreachable(str(call), problem, may_have_happened=is_sent)


def _watched_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket that breaks when nobody has been at the other end for 45 seconds, so that a watch does
    not wait for a server whose machine or network has gone."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 45_000)
    return made


def status_in(body: bytes) -> ServerStatus | None:
    try:
        status = _STATUS.decode(body)
    except msgspec.DecodeError:
        return None
    return status if status.kind == "Status" else None


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    """Kubernetes writes whole seconds, never a date."""
    if response.status != 429 and response.status < 500:
        return None
    given = response.headers.get("Retry-After", "")
    return float(given) if given.isdecimal() else None
