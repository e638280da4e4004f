"""The connections to agents: answers of any form and cut, and what becomes of requests without one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from kube_cases import asynchronous

from argosy.client.agent_connection import (
    AgentConnection,
    AgentLink,
    AgentReply,
    AgentUnreached,
)
from argosy.client.endpoints import Endpoint


class Wire(asyncio.Transport):
    """Writes down what is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self._is_closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent.append(bytes(data))

    def is_closing(self) -> bool:
        return self._is_closing

    def abort(self) -> None:
        self._is_closing = True


def connected() -> tuple[AgentConnection, Wire]:
    connection, wire = AgentConnection(), Wire()
    assert not connection.is_open
    connection.connection_made(wire)
    assert connection.is_open
    return connection, wire


def problem_of(answer: asyncio.Future[AgentReply]) -> str:
    error = answer.exception()
    assert isinstance(error, AgentUnreached)
    return str(error)


ANSWER = b"HTTP/1.1 201 Created\r\nServer: x\r\ncontent-length:  5 \r\n\r\nhello"


@asynchronous
async def test_an_answer_may_be_cut_anywhere() -> None:
    connection, wire = connected()
    for cut in range(1, len(ANSWER)):
        answer = connection.send(b"ask %d" % cut)
        connection.data_received(ANSWER[:cut])
        assert not answer.done()
        connection.data_received(ANSWER[cut:])
        assert answer.result() == AgentReply(201, b"hello")
    assert wire.sent[:2] == [b"ask 1", b"ask 2"]
    assert connection.is_open


@asynchronous
async def test_what_comes_beyond_an_answer_is_not_part_of_the_next() -> None:
    connection, _ = connected()
    first = connection.send(b"")
    connection.data_received(ANSWER + b"rest")
    connection.data_received(b"more")
    second = connection.send(b"")
    connection.data_received(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
    assert first.result() == AgentReply(201, b"hello")
    assert second.result() == AgentReply(404, b"")


@pytest.mark.parametrize(
    ("head", "status", "stays"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: Close", 200, False),
        (b"HTTP/1.0 200 OK\r\nCONNECTION:close", 200, False),
        (b"HTTP/1.1 200\r\nConnection: keep-alive", 200, True),
    ],
)
@asynchronous
async def test_an_agent_says_whether_the_connection_is_kept(
    head: bytes, status: int, stays: bool
) -> None:
    connection, _ = connected()
    answer = connection.send(b"")
    connection.data_received(head + b"\r\nContent-Length: 0\r\n\r\n")
    assert answer.result() == AgentReply(status, b"")
    assert connection.is_open is stays
    if stays:
        # What one answer has said does not hold for the next.
        connection.send(b"")
        connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        assert connection.is_open


@asynchronous
async def test_an_answer_without_content_needs_no_length() -> None:
    connection, _ = connected()
    answer = connection.send(b"")
    connection.data_received(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert answer.result() == AgentReply(204, b"")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"HTTP/2 200 OK\r\nContent-Length: 0\r\n\r\n", "the answer is not HTTP"),
        (b"HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n", "the answer is not HTTP"),
        (b"HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "the answer is not HTTP"),
        (b"\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "the answer is not HTTP"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "the answer has no length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "the answer has no length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 67108865\r\n\r\n", "the answer has no length"),
        (b"x" * 65_537, "the head of the answer has no end"),
    ],
)
@asynchronous
async def test_what_is_no_answer_ends_the_connection(data: bytes, problem: str) -> None:
    connection, _ = connected()
    answer = connection.send(b"")
    connection.data_received(data)
    assert problem_of(answer) == problem
    assert not connection.is_open


@pytest.mark.parametrize(
    "data", [b"HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n", b"x" * 65_536]
)
@asynchronous
async def test_large_answers_are_waited_for(data: bytes) -> None:
    connection, _ = connected()
    answer = connection.send(b"")
    connection.data_received(data)
    assert not answer.done()
    assert connection.is_open


@asynchronous
async def test_a_connection_that_breaks_off_fails_the_request_that_waits() -> None:
    connection, _ = connected()
    answer = connection.send(b"")
    connection.data_received(ANSWER[:-1])
    connection.connection_lost(None)
    assert problem_of(answer) == "the connection broke off"
    assert not connection.is_open
    connection.close()


@asynchronous
async def test_nobody_hears_of_a_request_that_was_given_up() -> None:
    connection, _ = connected()
    connection.send(b"").cancel()
    connection.data_received(ANSWER)
    connection.send(b"").cancel()
    connection.connection_lost(None)


class ScriptedAgent:
    """Answers as it is told to: by the number of the connection and of the request on it."""

    def __init__(self, directory: Path, answer: Callable[[int, int], bytes | None]) -> None:
        self._path = str(directory / "agent")
        self._answer = answer
        self.heard: list[tuple[int, bytes]] = []
        #: Connections that clients have ended.
        self.ended: list[int] = []
        self._connections = 0
        self._ends: list[asyncio.StreamWriter] = []

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(socket=self._path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        number, asked = self._connections, 0
        self._ends.append(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.partition(b"Content-Length: ")[2].partition(b"\r")[0])
                self.heard.append((number, head + await reader.readexactly(length)))
                asked += 1
                answer = self._answer(number, asked)
                if answer is not None:
                    writer.write(answer)
                    if answer == b"":
                        writer.close()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.ended.append(number)

    async def run(self, talk: Callable[[], Awaitable[None]]) -> None:
        server = await asyncio.start_unix_server(self._serve, self._path)
        try:
            await talk()
        finally:
            server.close()
            for writer in self._ends:
                writer.close()


def well(number: int, asked: int) -> bytes:
    text = b"%d.%d" % (number, asked)
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text)


@asynchronous
async def test_requests_are_what_a_server_expects_and_share_a_connection(tmp_path: Path) -> None:
    agent = ScriptedAgent(tmp_path, well)

    async def talk() -> None:
        link = AgentLink(agent.endpoint, "secret")
        assert await link.ask("GET", "/v1/place") == AgentReply(200, b"1.1")
        assert await link.ask("POST", "/v1/c", b"{}", key="k1") == AgentReply(200, b"1.2")
        link.close()

    await agent.run(talk)
    known = b"Host: localhost\r\nAuthorization: Bearer secret\r\n"
    assert agent.heard == [
        (1, b"GET /v1/place HTTP/1.1\r\n" + known + b"Content-Length: 0\r\n\r\n"),
        (
            1,
            b"POST /v1/c HTTP/1.1\r\n" + known + b"Idempotency-Key: k1\r\n"
            b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        ),
    ]


@asynchronous
async def test_a_kept_connection_that_was_closed_is_replaced(tmp_path: Path) -> None:
    agent = ScriptedAgent(
        tmp_path, lambda number, asked: b"" if asked == 2 else well(number, asked)
    )

    async def talk() -> None:
        link = AgentLink(agent.endpoint)
        assert (await link.ask("GET", "/a")).body == b"1.1"
        assert (await link.ask("GET", "/b")).body == b"2.1"
        assert (await link.ask("GET", "/c")).body == b"3.1"
        link.close()

    await agent.run(talk)
    assert [(number, text.split()[1]) for number, text in agent.heard] == [
        (1, b"/a"),
        (1, b"/b"),
        (2, b"/b"),
        (2, b"/c"),
        (3, b"/c"),
    ]


@asynchronous
async def test_a_new_connection_that_breaks_off_is_not_replaced(tmp_path: Path) -> None:
    agent = ScriptedAgent(tmp_path, lambda number, asked: b"")

    async def talk() -> None:
        with pytest.raises(AgentUnreached, match="broke off"):
            await AgentLink(agent.endpoint).ask("GET", "/a")

    await agent.run(talk)
    assert len(agent.heard) == 1


@asynchronous
async def test_a_late_answer_is_not_taken_for_that_of_another_request(tmp_path: Path) -> None:
    agent = ScriptedAgent(
        tmp_path, lambda number, asked: None if number == 1 else well(number, asked)
    )

    async def talk() -> None:
        link = AgentLink(agent.endpoint)
        asking = asyncio.create_task(link.ask("GET", "/a"))
        while not agent.heard:
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert agent.ended == [1]
        assert (await link.ask("GET", "/b")).body == b"2.1"
        link.close()

    await agent.run(talk)


@asynchronous
async def test_an_agent_that_stays_silent_or_is_not_there_is_named(tmp_path: Path) -> None:
    agent = ScriptedAgent(tmp_path, lambda number, asked: None)
    expected = f"{agent.endpoint} did not answer; expected an answer within 0.01 s"
    with pytest.raises(AgentUnreached) as away:
        await AgentLink(agent.endpoint).ask("GET", "/a")
    assert str(away.value).startswith(f"{agent.endpoint}: ")

    async def talk() -> None:
        with pytest.raises(AgentUnreached) as silent:
            await AgentLink(agent.endpoint, timeout=0.01).ask("GET", "/a")
        assert str(silent.value) == expected

    await agent.run(talk)


@asynchronous
async def test_requests_beyond_the_limit_wait_and_none_is_kept_after_the_end(
    tmp_path: Path,
) -> None:
    agent = ScriptedAgent(tmp_path, well)

    async def talk() -> None:
        link = AgentLink(agent.endpoint, most=1)
        replies = await asyncio.gather(*(link.ask("GET", f"/{at}") for at in range(3)))
        assert [reply.body for reply in replies] == [b"1.1", b"1.2", b"1.3"]
        link.close()
        assert (await link.ask("GET", "/a")).body == b"2.1"
        assert (await link.ask("GET", "/b")).body == b"3.1"

    await agent.run(talk)
