"""Connections that ended while nobody used them, and lines that are just as long as they may be."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from kube_cases import asynchronous
from test_agent_connection import ScriptedAgent, well

from argosy.client.agent_connection import AgentLink
from argosy.client.connections import BrokenResponse, HttpConnection, HttpResponse
from argosy.client.endpoints import Endpoint


@asynchronous
async def test_a_connection_that_ended_meanwhile_is_not_used_again(tmp_path: Path) -> None:
    agent = ScriptedAgent(tmp_path, well)

    async def talk() -> None:
        link = AgentLink(agent.endpoint)
        await asyncio.gather(link.ask("GET", "/a"), link.ask("GET", "/b"))
        kept = list(link._free)
        # The one that was used last goes first.
        agent._ends[1].close()
        while kept[1].is_open:
            await asyncio.sleep(0)
        assert (await link.ask("GET", "/c")).body == b"1.2"
        agent._ends[0].close()
        while kept[0].is_open:
            await asyncio.sleep(0)
        assert (await link.ask("GET", "/d")).body == b"3.1"
        link.close()

    async with asyncio.timeout(20):
        await agent.run(talk)
    assert [(number, text.split()[1]) for number, text in agent.heard] == [
        (1, b"/a"),
        (2, b"/b"),
        (1, b"/c"),
        (3, b"/d"),
    ]


class Pieces:
    """A socket from which these come."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    def recv(self, most: int) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""


def reading(*pieces: bytes) -> Any:
    connection = HttpConnection(Endpoint("h", 1), 1.0)
    connection._socket = Pieces(*pieces)  # type: ignore[assignment]
    return connection


@pytest.mark.parametrize(
    ("pieces", "taken", "rest"),
    [
        ((b"abcd", b"\r\nxy"), b"abcd", b"xy"),
        ((b"abc\r", b"\nxy"), b"abc", b"xy"),
        ((b"\r\n\r\n",), b"", b"\r\n"),
        # It has come in one piece: it is there anyway.
        ((b"abcdefgh\r\n",), b"abcdefgh", b""),
    ],
)
def test_a_line_may_be_as_long_as_it_may_be(
    pieces: tuple[bytes, ...], taken: bytes, rest: bytes
) -> None:
    connection = reading(*pieces)
    assert connection.take_until(b"\r\n", 4) == taken
    assert connection.take(9) == rest
    assert connection.take(9) == b""


@pytest.mark.parametrize(
    ("pieces", "problem"),
    [
        ((b"abcde", b"\r\n"), "the response is malformed"),
        ((b"abcd",), "the connection was closed too early"),
        ((), "the connection was closed too early"),
    ],
)
def test_a_line_that_is_too_long_or_has_no_end_is_broken(
    pieces: tuple[bytes, ...], problem: str
) -> None:
    with pytest.raises(BrokenResponse, match=problem):
        reading(*pieces).take_until(b"\r\n", 4)


@pytest.mark.parametrize(
    "line", ["Content-Length : 1", " Content-Length: 1", "Content-Length", ": 1", "a\t: b"]
)
def test_a_header_is_a_name_and_a_value(line: str) -> None:
    with pytest.raises(BrokenResponse, match="the response is malformed"):
        HttpResponse(reading(), f"HTTP/1.1 200 OK\r\n{line}".encode())


@pytest.mark.parametrize("status", [204, 304])
@pytest.mark.parametrize(
    "line", ["Transfer-Encoding: chunked", "Content-Length: 5", "Content-Length: five", "X: y"]
)
def test_an_answer_that_has_no_body_has_none_whatever_its_headers_say(
    status: int, line: str
) -> None:
    response = HttpResponse(reading(b"next"), f"HTTP/1.1 {status} X\r\n{line}".encode())
    assert (response.status, response.read(), response.will_close) == (status, b"", False)
    assert response._connection._socket.pieces == [b"next"]  # type: ignore[union-attr]
