"""Requests of a control plane's administrator, without any other library: enough to set the scene."""

from __future__ import annotations

import contextlib
import http.client
import select
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from argosy.kubernetes.control_plane.failures import ControlPlaneError
from argosy.kubernetes.control_plane.programs import HOST

#: Requests that are under way at once when many are made. More do not help: the server is the limit.
_PARALLEL: Final = 8
_T = TypeVar("_T")


class RequestRefused(ControlPlaneError):
    """The API server answered with a status of 400 or above."""

    code = "control-plane-request"

    def __init__(self, request: str, status: int, reason: str, message: str) -> None:
        super().__init__(f"{request}: {status} {reason}: {message}")
        self.status = status
        self.reason = reason


class AdminApi:
    """Safe for use by several threads. Connections are kept until the API server is restarted."""

    def __init__(self, port: int, token: str, authority: Path, timeout: float) -> None:
        self._port = port
        self._token = token
        self._authority = authority
        self._timeout = timeout
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None
        self._idle: list[http.client.HTTPSConnection] = []
        #: Counts the lives of the server: a connection to an earlier one is not used again.
        self._life = 0

    def request(
        self,
        method: str,
        path: str,
        document: object = None,
        *,
        content_type: str = "application/json",
    ) -> Any:
        """The decoded answer. A patch needs its own content type."""
        body = None if document is None else msgspec.json.encode(document)
        with self._connection() as connection:
            connection.request(method, path, body, self._headers(content_type))
            response = connection.getresponse()
            data = response.read()
        if response.status >= 400:
            raise _refusal(f"{method} {path}", response.status, data)
        is_json = "json" in response.headers.get("Content-Type", "")
        return msgspec.json.decode(data) if is_json else data.decode()

    def watch(self, path: str, query: str = "") -> Iterator[dict[str, Any]]:
        """Events of everything under `path`: those that are there, then changes. Ends with the server's
        patience, which is that of this object."""
        asked = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        asked += f"&allowWatchBookmarks=true&timeoutSeconds={max(1, int(self._timeout))}&{query}"
        connection = self._connect()
        try:
            connection.request("GET", f"{path}?{asked}", headers=self._headers())
            response = connection.getresponse()
            if response.status >= 400:
                raise _refusal(f"GET {path}", response.status, response.read())
            for line in response:
                yield msgspec.json.decode(line)
        finally:
            connection.close()

    def for_each(self, action: Callable[[_T], object], items: Sequence[_T]) -> None:
        """Several at once; the first error is raised when all have been tried."""
        with ThreadPoolExecutor(min(_PARALLEL, len(items)) or 1) as pool:
            for done in [pool.submit(action, item) for item in items]:
                done.result()

    def forget_connections(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
            self._life += 1
        for connection in idle:
            connection.close()

    @contextlib.contextmanager
    def _connection(self) -> Iterator[http.client.HTTPSConnection]:
        with self._lock:
            life = self._life
            connection = self._take_idle()
        connection = connection or self._connect()
        try:
            yield connection
        except BaseException as error:
            connection.close()
            if isinstance(error, OSError | http.client.HTTPException):
                raise ControlPlaneError(f"the API server does not answer: {error}") from error
            raise
        with self._lock:
            if life == self._life:
                self._idle.append(connection)
                return
        connection.close()

    def _take_idle(self) -> http.client.HTTPSConnection | None:
        """One that the server has not given up after some minutes without a request."""
        while self._idle:
            connection = self._idle.pop()
            # Nothing is expected on it, so there is something to read only if it has come to its end.
            if not select.select([connection.sock], [], [], 0)[0]:
                return connection
            connection.close()
        return None

    def _connect(self) -> http.client.HTTPSConnection:
        if self._context is None:
            self._context = ssl.create_default_context(cafile=self._authority)
        return http.client.HTTPSConnection(
            HOST, self._port, timeout=self._timeout, context=self._context
        )

    def _headers(self, content_type: str = "application/json") -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}", "Content-Type": content_type}


class StatusMessage(msgspec.Struct, frozen=True):
    """What is shown of a `Status` of the API server."""

    message: str = ""
    reason: str = ""


def _refusal(request: str, status: int, data: bytes) -> RequestRefused:
    try:
        told = msgspec.json.decode(data, type=StatusMessage)
    except msgspec.DecodeError:
        told = StatusMessage(data.decode(errors="replace").strip())
    return RequestRefused(request, status, told.reason, told.message)


class HealthProbe:
    """Asks a program on loopback whether it is ready."""

    #: The programs sign their certificates themselves, and the port is held for them.
    _context: Final = ssl.create_default_context()
    _context.check_hostname = False
    _context.verify_mode = ssl.CERT_NONE

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        self._is_secure = parts.scheme == "https"
        self._port = parts.port
        self._path = parts.path
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def status(self, timeout: float = 5.0) -> int:
        """The status of the answer; 0 if there is none."""
        connection = (
            http.client.HTTPSConnection(HOST, self._port, timeout=timeout, context=self._context)
            if self._is_secure
            else http.client.HTTPConnection(HOST, self._port, timeout=timeout)
        )
        try:
            connection.request("GET", self._path, headers=self._headers)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()
