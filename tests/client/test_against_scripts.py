"""Both clients against a server that answers from a script: connections, streams, and what breaks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.client import AsyncClient, Client
from argosy.client.connections import HttpConnection
from argosy.client.endpoints import parse_endpoint
from argosy.model.errors import ServerError, ServerUnreachable

HEALTH = (
    b'{"status":"ok","version":"1","cluster":"c","started":"","open_jobs":0,'
    b'"running_tasks":0,"machines":0}'
)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nArgosy-Offset: 0\r\n\r\n"


def reply(body: bytes, status: int = 200, *lines: bytes) -> bytes:
    head = [b"HTTP/1.1 %d X" % status, b"Content-Length: %d" % len(body), *lines]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


class Script:
    """Answers each request with the next of its answers; one that is None hangs up instead."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        self.ends = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.heads.append(head)
                length = head.lower().partition("content-length: ")[2].partition("\r\n")[0]
                self.bodies.append(await reader.readexactly(int(length or 0)))
                answer = self.answers.pop(0)
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
                if answer.startswith(CHUNKED) and not answer.endswith(b"0\r\n\r\n"):
                    break
        self.ends += 1
        writer.close()

    def lines(self, at: int = 0) -> list[str]:
        return self.heads[at].strip().split("\r\n")

    @contextlib.asynccontextmanager
    async def at(self, path: Path | None) -> AsyncIterator[str]:
        if path is None:
            server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        else:
            server = await asyncio.start_unix_server(self.serve, str(path))
            url = f"unix:{path}"
        yield url
        server.close()


Ask = Callable[[Any], Any]


async def collected(found: Any) -> Any:
    if hasattr(found, "__aiter__"):
        return [item async for item in found]
    return await found


def asked(
    script: Script,
    ask: Ask,
    *,
    is_beside: bool,
    path: Path | None = None,
    **options: Any,
) -> Any:
    """What a client gets: the answer, or the error."""

    def blocking(url: str) -> Any:
        with Client(url, **options) as client:
            found = ask(client)
            return list(found) if hasattr(found, "__next__") else found

    async def run() -> Any:
        async with script.at(path) as url:
            try:
                if is_beside:
                    async with AsyncClient(url, **options) as client:
                        found = await collected(ask(client))
                        sessions = list(client._sessions.values())
                    assert all(session.closed for session in sessions)
                    assert client._sessions == {}
                else:
                    found = await asyncio.to_thread(blocking, url)
            except (ServerError, ServerUnreachable) as error:
                found = error
            # Closed connections are seen to be.
            while script.ends < script.connections:
                await asyncio.sleep(0)
            return found

    async def in_time() -> Any:
        async with asyncio.timeout(30):
            return await run()

    return asyncio.run(in_time())


@pytest.fixture(params=[False, True], ids=["Client", "AsyncClient"])
def is_beside(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.mark.parametrize("has_socket", [False, True])
def test_a_server_is_reached_over_the_network_and_over_a_socket(
    tmp_path: Path, is_beside: bool, has_socket: bool
) -> None:
    script = Script(reply(HEALTH))
    path = tmp_path / "s" if has_socket else None
    health = asked(script, lambda client: client.health(), is_beside=is_beside, path=path)
    assert (health.status, health.cluster) == ("ok", "c")
    lines = script.lines()
    assert lines[0] == "GET /v1/health HTTP/1.1"
    hosts = [line for line in lines if line.startswith("Host: ")]
    assert hosts == ["Host: localhost"] if has_socket else hosts[0].startswith("Host: 127.0.0.1:")
    assert not any(line.startswith("Authorization") for line in lines)
    assert script.connections == 1


def test_a_token_and_a_document_are_sent(is_beside: bool) -> None:
    script = Script(reply(b"", 202))
    asked(
        script,
        lambda client: client.shutdown(stop_tasks=True),
        is_beside=is_beside,
        token="t" * 16,
    )
    assert "Authorization: Bearer tttttttttttttttt" in script.lines()
    assert script.bodies == [b'{"stop_tasks":true}']


def test_a_problem_is_told(is_beside: bool) -> None:
    problem = b'{"type":"","title":"","status":404,"detail":"unknown job","code":"not-found"}'
    error = asked(Script(reply(problem, 404)), lambda client: client.job("a"), is_beside=is_beside)
    assert isinstance(error, ServerError)
    assert (error.problem, error.status) == ("unknown job", 404)


def test_a_redirection_is_not_followed(is_beside: bool) -> None:
    script = Script(reply(b"", 302, b"Location: http://127.0.0.1:1/"))
    error = asked(script, lambda client: client.summary(), is_beside=is_beside)
    assert isinstance(error, ServerError)
    assert len(script.heads) == 1


def test_a_stream_is_given_as_it_comes(is_beside: bool) -> None:
    stream = CHUNKED + b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
    pieces = asked(
        Script(stream), lambda client: client.recording(), is_beside=is_beside, timeout=20.0
    )
    assert b"".join(pieces) == b"onetwo"


def test_a_stream_that_is_refused_says_why(is_beside: bool) -> None:
    problem = b'{"type":"","title":"","status":404,"detail":"no life","code":"not-found"}'
    error = asked(
        Script(reply(problem, 404)), lambda client: client.journal(9), is_beside=is_beside
    )
    assert isinstance(error, ServerError)
    assert error.problem == "no life"


def test_a_stream_that_breaks_off_is_an_error(is_beside: bool) -> None:
    script = Script(CHUNKED + b"3\r\none\r\n")
    error = asked(script, lambda client: client.recording(), is_beside=is_beside)
    assert isinstance(error, ServerUnreachable)
    assert "broke off" in error.problem


def test_a_server_that_hangs_up_is_asked_again_if_that_is_harmless(is_beside: bool) -> None:
    script = Script(None, reply(HEALTH))
    health = asked(script, lambda client: client.health(), is_beside=is_beside)
    assert health.status == "ok"
    assert script.connections >= 2
    once = Script(None)
    error = asked(once, lambda client: client.remove_machine("m"), is_beside=is_beside)
    assert isinstance(error, ServerUnreachable)
    assert len(once.heads) == 1


def test_questions_share_a_connection_and_changes_that_cannot_be_repeated_do_not(
    is_beside: bool,
) -> None:
    answers = [reply(HEALTH), reply(HEALTH), reply(b"", 204), reply(HEALTH)]
    script = Script(*answers)

    def ask(client: Any) -> Any:
        if not is_beside:
            client.health(), client.health(), client.remove_machine("m")
            return client.health()

        async def beside() -> Any:
            await client.health()
            await client.health()
            await client.remove_machine("m")
            return await client.health()

        return beside()

    assert asked(script, ask, is_beside=is_beside).status == "ok"
    assert [line.split()[0] for line in script.heads] == ["GET", "GET", "DELETE", "GET"]
    assert script.connections == 2
    if is_beside:
        # The server need not keep it either.
        closing = ["connection: close" in head.lower() for head in script.heads]
        assert closing == [False, False, True, False]


def test_a_server_that_does_not_answer_in_time_is_told(is_beside: bool) -> None:
    script = Script(b"")
    error = asked(
        script, lambda client: client.health(), is_beside=is_beside, timeout=0.05, patience=0
    )
    assert isinstance(error, ServerUnreachable)
    assert error.problem.endswith(" does not answer in time")
    assert error.hint == "it may be overloaded"


def test_nobody_there_is_told_at_once(is_beside: bool, tmp_path: Path) -> None:
    url = f"unix:{tmp_path / 'none'}"

    async def beside() -> None:
        async with AsyncClient(url) as client:
            await client.health()

    ask: Any = (lambda: asyncio.run(beside())) if is_beside else Client(url).health
    with pytest.raises(ServerUnreachable, match="no server answers at"):
        ask()


def test_a_connection_that_is_closed_is_closed_once() -> None:
    connection = HttpConnection(parse_endpoint("http://127.0.0.1:1", "url"), 1.0)
    connection.close()
    with pytest.raises(OSError, match="refused"):
        connection.connect()
    connection.close()
    assert connection._socket is None
