"""Many small requests to one agent: HTTP/1.1 over connections that are kept, and no more than is needed.

An agent is asked thousands of times a second, so every request is one write and, as a rule, one read.
Answers must have a length. A request that was sent and not answered raises `AgentUnreached`; whether it
was carried out is unknown then.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from typing import Final, NamedTuple

from argosy.api.sockets import short_path
from argosy.client.endpoints import Endpoint
from argosy.model.errors import ArgosyError

#: Connections to one agent; further requests wait.
MOST_CONNECTIONS: Final = 64
_LARGEST_HEAD: Final = 1 << 16
_LARGEST_BODY: Final = 1 << 26


class AgentUnreached(ArgosyError):
    """An agent cannot be reached, does not answer in time, or breaks off."""

    code = "agent-unreached"


class AgentReply(NamedTuple):
    status: int
    body: bytes


class AgentConnection(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[AgentReply] | None = None
        self._buffer = bytearray()
        #: The end of the answer in the buffer, once its head is there.
        self._head = -1
        self._end = -1
        self._status = 0
        self._is_last = False

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._fail("the connection broke off")

    def _fail(self, problem: str) -> None:
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_exception(AgentUnreached(problem))

    def send(self, data: bytes) -> asyncio.Future[AgentReply]:
        assert self._transport is not None
        self._buffer.clear()
        self._head = self._end = -1
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(data)
        return self._answer

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._head < 0:
            self._read_head()
        if 0 <= self._end <= len(self._buffer) and self._answer is not None:
            answer, self._answer = self._answer, None
            body = bytes(self._buffer[self._head : self._end])
            if self._is_last:
                self.close()
            if not answer.done():
                answer.set_result(AgentReply(self._status, body))

    def _read_head(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _LARGEST_HEAD:
                self._give_up("the head of the answer has no end")
            return
        first, *lines = bytes(self._buffer[:end]).split(b"\r\n")
        parts = first.split(b" ", 2)
        if len(parts) < 2 or not parts[0].startswith(b"HTTP/1.") or not parts[1].isdigit():
            self._give_up("the answer is not HTTP")
            return
        self._status = int(parts[1])
        length = 0 if self._status == 204 else -1
        self._is_last = False
        for line in lines:
            name, _, value = line.partition(b":")
            match name.strip().lower():
                case b"content-length" if value.strip().isdigit():
                    length = int(value)
                case b"connection":
                    self._is_last = value.strip().lower() == b"close"
        if not 0 <= length <= _LARGEST_BODY:
            self._give_up("the answer has no length")
            return
        self._head, self._end = end + 4, end + 4 + length

    def _give_up(self, problem: str) -> None:
        self._fail(problem)
        self.close()


class AgentLink:
    """The connections to one agent. `timeout` is in seconds, for each request."""

    def __init__(
        self,
        endpoint: Endpoint,
        token: str = "",
        *,
        timeout: float = 5.0,
        tls: ssl.SSLContext | None = None,
        most: int = MOST_CONNECTIONS,
    ) -> None:
        self.endpoint = endpoint
        self.token = token
        self.tls = tls
        self._timeout = timeout
        self._free: deque[AgentConnection] = deque()
        self._turns = asyncio.Semaphore(most)
        authorization = f"Authorization: Bearer {token}\r\n" if token else ""
        self._head = f"Host: {endpoint.authority}\r\n{authorization}".encode()
        self._is_closed = False

    async def ask(self, method: str, path: str, body: bytes = b"", *, key: str = "") -> AgentReply:
        """`key` is the idempotency key."""
        head = f"{method} {path} HTTP/1.1\r\n".encode() + self._head
        if key:
            head += b"Idempotency-Key: %b\r\n" % key.encode()
        if body:
            head += b"Content-Type: application/json\r\n"
        data = b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body)
        async with self._turns:
            try:
                async with asyncio.timeout(self._timeout):
                    return await self._exchange(data)
            except TimeoutError:
                raise AgentUnreached(
                    f"{self.endpoint} did not answer",
                    expected=f"an answer within {self._timeout:g} s",
                ) from None
            except (OSError, ssl.SSLError) as error:
                raise AgentUnreached(f"{self.endpoint}: {error}") from None

    async def _exchange(self, data: bytes) -> AgentReply:
        """Requests may be repeated: samples change nothing, and commits have keys. So if a connection
        that was kept turns out to be closed, a new one is made."""
        connection = self._kept()
        if connection is not None:
            try:
                return await self._send(connection, data)
            except AgentUnreached:
                pass
        return await self._send(await self._connect(), data)

    async def _send(self, connection: AgentConnection, data: bytes) -> AgentReply:
        try:
            reply = await connection.send(data)
        except BaseException:
            # Whatever comes on it later would be taken for another answer.
            connection.close()
            raise
        if connection.is_open and not self._is_closed:
            self._free.append(connection)
        else:
            connection.close()
        return reply

    def _kept(self) -> AgentConnection | None:
        while self._free:
            connection = self._free.pop()
            if connection.is_open:
                return connection
        return None

    async def _connect(self) -> AgentConnection:
        loop, endpoint = asyncio.get_running_loop(), self.endpoint
        if endpoint.socket:
            with short_path(endpoint.socket) as path:
                _, connection = await loop.create_unix_connection(AgentConnection, path)
            return connection
        context = self.tls
        if endpoint.is_secure and context is None:
            context = ssl.create_default_context()
        _, connection = await loop.create_connection(
            AgentConnection,
            endpoint.host,
            endpoint.port,
            ssl=context if endpoint.is_secure else None,
        )
        return connection

    def close(self) -> None:
        self._is_closed = True
        while self._free:
            self._free.pop().close()
