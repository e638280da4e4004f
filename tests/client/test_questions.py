"""What each method of the clients asks a server for, and what they do with connections."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from argosy.api.agent_values import CommitOrder, ReservationRequest, SampleRequest
from argosy.api.values import MachinePatch
from argosy.client import AsyncClient, Client, synchronous
from argosy.client.agent_connection import AgentConnection, AgentLink, AgentReply, AgentUnreached
from argosy.client.endpoints import parse_endpoint
from argosy.client.flows import Lost, OpenStream, SendCall
from argosy.client.unreachable import broken_off, no_connection
from argosy.model.errors import ServerUnreachable

ENDPOINT = parse_endpoint("http://127.0.0.1:9", "url")
#: Method, its arguments, and the request: what it is of, and its document.
QUESTIONS: list[tuple[str, tuple[Any, ...], dict[str, Any], str, Any]] = [
    ("submit", ({"id": "a"},), {"key": "k"}, "POST /v1/jobs", {"id": "a"}),
    ("jobs", (), {}, "GET /v1/jobs?limit=1000", None),
    (
        "jobs",
        (),
        {"state": "running", "kind": "k", "owner": "o", "is_open": False, "limit": 5},
        "GET /v1/jobs?state=running&kind=k&owner=o&open=false&limit=5",
        None,
    ),
    ("job", ("a/b",), {}, "GET /v1/jobs/a%2Fb", None),
    ("watch", ("a",), {}, "GET /v1/events?job=a", None),
    ("scale", ("a", 3), {"version": 4}, "PATCH /v1/jobs/a", {"tasks": 3}),
    ("cancel", ("a",), {}, "POST /v1/jobs/a/cancel", {}),
    ("cancel", ("a", [1, 2]), {"version": 5}, "POST /v1/jobs/a/cancel", {"tasks": [1, 2]}),
    ("plan", ([{"id": "a"}],), {}, "POST /v1/plan", {"jobs": [{"id": "a"}]}),
    ("tasks", ("a",), {"state": "failed"}, "GET /v1/jobs/a/tasks?state=failed&limit=1000", None),
    ("open_tasks", (), {"state": "queued", "limit": 7}, "GET /v1/tasks?state=queued&limit=7", None),
    ("task", ("a", 3), {}, "GET /v1/jobs/a/tasks/3", None),
    ("why", ("a", 3), {}, "GET /v1/jobs/a/tasks/3/why", None),
    ("story", ("a", 3), {}, "GET /v1/jobs/a/tasks/3/story", None),
    ("logs", ("a", 3), {}, "GET /v1/jobs/a/tasks/3/logs?stream=stdout", None),
    (
        "logs",
        ("a", 3),
        {"stream": "stderr", "try_number": 2, "offset": 8, "tail": 9},
        "GET /v1/jobs/a/tasks/3/logs?stream=stderr&try=2&offset=8&tail=9",
        None,
    ),
    ("follow_logs", ("a", 3), {"stream": "stderr"}, "GET /v1/jobs/a/tasks/3", None),
    ("machines", (), {}, "GET /v1/machines?limit=1000", None),
    ("machine", ("m",), {}, "GET /v1/machines/m", None),
    ("add_machine", ({"name": "m"},), {}, "POST /v1/machines", {"name": "m"}),
    (
        "change_machine",
        ("m", MachinePatch(capacity={"cpu": 1})),
        {},
        "PATCH /v1/machines/m",
        {"capacity": {"cpu": 1}},
    ),
    ("drain", ("m",), {}, "PATCH /v1/machines/m", {"draining": True}),
    ("drain", ("m",), {"undo": True}, "PATCH /v1/machines/m", {"draining": False}),
    ("remove_machine", ("m",), {}, "DELETE /v1/machines/m", None),
    ("fleet", (), {}, "GET /v1/fleet", None),
    ("set_fleet", ([{"name": "f"}],), {"version": 6}, "PUT /v1/fleet", {"fleet": [{"name": "f"}]}),
    ("events", (), {"job_id": "a", "after": "7"}, "GET /v1/events?job=a&after=7", None),
    ("recording", (), {}, "GET /v1/recording", None),
    ("journal", (3,), {}, "GET /v1/journal?life=3", None),
    ("journal", (), {}, "GET /v1/journal", None),
    ("jobs", (), {"match": "x y"}, "GET /v1/jobs?match=x%20y&limit=1000", None),
    ("jobs", (), {"limit": 5_000}, "GET /v1/jobs?limit=1000", None),
    ("open_tasks", (), {"machine": "m"}, "GET /v1/tasks?machine=m&limit=1000", None),
    ("summary", (), {}, "GET /v1/summary", None),
    ("place", (), {}, "GET /v1/place", None),
    (
        "sample",
        (SampleRequest(request={"cpu": 1}),),
        {},
        "POST /v1/sample",
        {"request": {"cpu": 1}},
    ),
    (
        "commit",
        (CommitOrder(job={"id": "a"}, machines=("m",)),),
        {"key": "k"},
        "POST /v1/commits",
        {"job": {"id": "a"}, "machines": ["m"]},
    ),
    ("commits", (), {}, "GET /v1/commits", None),
    ("commit_info", ("a/b",), {}, "GET /v1/commits/a%2Fb", None),
    ("release", ("a/b",), {}, "DELETE /v1/commits/a%2Fb", None),
    (
        "reserve",
        (ReservationRequest(machine="m", request={"cpu": 1}, lease=5),),
        {},
        "POST /v1/reservations",
        {"machine": "m", "request": {"cpu": 1}, "lease": 5},
    ),
    ("reservations", (), {}, "GET /v1/reservations", None),
    ("unreserve", ("r1",), {}, "DELETE /v1/reservations/r1", None),
    ("health", (), {}, "GET /v1/health", None),
    ("shutdown", (), {"stop_tasks": True}, "POST /v1/shutdown", {"stop_tasks": True}),
    ("shutdown", (), {}, "POST /v1/shutdown", {"stop_tasks": False}),
]


def first_call(flow: Any) -> Any:
    step = next(flow)
    assert isinstance(step, (SendCall, OpenStream))
    flow.close()
    return step.call


def asked(call: Any) -> tuple[str, Any]:
    return f"{call.method} {call.target}", None if call.body is None else json.loads(call.body)


class Stop(Exception):
    """Whatever a flow would give is of no interest."""


@pytest.mark.parametrize(("method", "given", "named", "request_", "document"), QUESTIONS)
def test_both_clients_ask_for_the_same(
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    given: tuple[Any, ...],
    named: dict[str, Any],
    request_: str,
    document: Any,
) -> None:
    seen: list[Any] = []

    def drive(self: Any, flow: Any) -> Iterator[Any]:
        seen.append(first_call(flow))
        raise Stop

    async def drive_beside(self: Any, flow: Any) -> Any:
        seen.append(first_call(flow))
        raise Stop
        yield

    monkeypatch.setattr(Client, "_drive", drive)
    monkeypatch.setattr(AsyncClient, "_drive", drive_beside)
    with pytest.raises(Stop):
        list(getattr(Client("http://h:1"), method)(*given, **named))

    async def ask() -> None:
        answer = getattr(AsyncClient("http://h:1"), method)(*given, **named)
        if hasattr(answer, "__aiter__"):
            async for _ in answer:
                pass
        else:
            await answer

    with pytest.raises(Stop):
        asyncio.run(ask())
    assert [asked(call) for call in seen] == [(request_, document)] * 2
    first, second = seen
    assert first.headers == second.headers
    assert first.is_repeatable == second.is_repeatable
    conditions = {"If-Match": f'"{named["version"]}"'} if "version" in named else {}
    keys = {"Idempotency-Key": named["key"]} if "key" in named else {}
    kinds = {"Content-Type": "application/json"} if document is not None else {}
    streams = {"Accept": "text/event-stream"} if "/events" in request_ else {}
    assert first.headers == {**kinds, **keys, **conditions, **streams}
    changing = ("add_machine", "remove_machine", "reserve", "unreserve")
    unsafe = method in changing or "version" in named
    assert first.is_repeatable is not unsafe
    assert first.also == (503 if method == "health" else 0)


@pytest.mark.parametrize(
    ("method", "given"), [("submit", {}), ("commit", CommitOrder(job={}, machines=("m",)))]
)
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_what_is_submitted_without_a_key_gets_a_new_one_each_time(
    monkeypatch: pytest.MonkeyPatch, kind: Any, method: str, given: Any
) -> None:
    keys: list[str] = []

    def one(self: Any, call: Any) -> None:
        keys.append(call.headers["Idempotency-Key"])
        raise Stop

    def ask() -> None:
        asyncio.run(getattr(kind("http://h:1"), method)(given))

    monkeypatch.setattr(kind, "_one", one)
    for _ in range(2):
        with pytest.raises(Stop):
            ask()
    assert len(set(keys)) == 2
    assert all(len(key) == 32 for key in keys)


def test_waiting_has_the_time_that_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def watch(self: Any, job_id: str, *, timeout: float | None) -> Iterator[str]:
        given.append((job_id, timeout))
        yield from ("first", "last")

    async def watch_beside(self: Any, job_id: str, *, timeout: float | None) -> Any:
        for each in watch(self, job_id, timeout=timeout):
            yield each

    monkeypatch.setattr(Client, "watch", watch)
    monkeypatch.setattr(AsyncClient, "watch", watch_beside)
    assert Client("http://h:1").wait("a", timeout=3.0) == "last"
    assert asyncio.run(AsyncClient("http://h:1").wait("a", timeout=3.0)) == "last"
    assert given == [("a", 3.0)] * 2


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_client_waits_half_a_minute_for_an_answer_and_asks_again_for_ten_seconds(
    kind: Any,
) -> None:
    usual = kind("http://h:1")
    assert (usual._timeout, usual._patience.seconds) == (30.0, 10.0)
    other = kind("http://h:1", timeout=2.0, patience=0.5)
    assert (other._timeout, other._patience.seconds) == (2.0, 0.5)
    assert str(other.endpoint) == "http://h:1"


class FakeConnection:
    """Answers one request after the other from a list."""

    made: list[FakeConnection]
    answers: list[Any]

    def __init__(self, endpoint: Any, timeout: float) -> None:
        self.timeout = timeout
        self.is_open = False
        self.sent: list[tuple[str, dict[str, str]]] = []
        self.made.append(self)

    def connect(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False

    def request(self, method: str, target: str, body: Any, headers: dict[str, str]) -> Any:
        self.sent.append((f"{method} {target}", headers))
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        closes = answer == "close"
        document = b'{"status":"ok","version":"1","cluster":"c","started":"","open_jobs":0,'
        document += b'"running_tasks":0,"machines":0}'
        made: Any = type("Response", (), {})()
        made.status, made.headers, made.will_close = 200, {}, closes
        made.read = lambda: document
        return made


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> type[FakeConnection]:
    FakeConnection.made, FakeConnection.answers = [], []
    monkeypatch.setattr(synchronous, "HttpConnection", FakeConnection)
    monkeypatch.delenv("ARGOSY_TOKEN", raising=False)
    return FakeConnection


class TestConnections:
    def test_one_that_is_kept_is_used_again(self, connections: type[FakeConnection]) -> None:
        connections.answers = ["keep"] * 3
        with Client("http://h:1", token="t" * 16, timeout=4) as client:
            for _ in range(3):
                client.health()
            assert len(connections.made) == 1
            assert connections.made[0].is_open
        assert not connections.made[0].is_open
        assert connections.made[0].timeout == 4
        target, headers = connections.made[0].sent[0]
        assert target == "GET /v1/health"
        assert headers == {"Host": "h:1", "Authorization": "Bearer tttttttttttttttt"}

    def test_one_that_the_server_closes_is_not_kept(
        self, connections: type[FakeConnection]
    ) -> None:
        connections.answers = ["close", "keep"]
        client = Client("http://h:1")
        client.health()
        client.health()
        assert [each.is_open for each in connections.made] == [False, True]
        assert "Authorization" not in connections.made[0].sent[0][1]

    def test_one_that_turns_out_to_be_closed_is_replaced_at_once(
        self, connections: type[FakeConnection]
    ) -> None:
        connections.answers = ["keep", ConnectionResetError(), "keep"]
        client = Client("http://h:1", patience=0)
        client.health()
        assert client.health().status == "ok"
        assert [each.is_open for each in connections.made] == [False, True]

    def test_what_must_not_be_repeated_gets_a_new_one(
        self, connections: type[FakeConnection]
    ) -> None:
        connections.answers = ["keep", ConnectionResetError()]
        client = Client("http://h:1")
        client.health()
        with pytest.raises(ServerUnreachable, match="broke off"):
            client.remove_machine("m")
        assert [len(each.sent) for each in connections.made] == [1, 1]

    def test_at_most_four_are_kept(self, connections: type[FakeConnection]) -> None:
        client = Client("http://h:1")
        for _ in range(6):
            made = FakeConnection(None, 1)
            made.connect()
            connections.answers = ["keep"]
            call: Any = first_call(client_flow())
            client._exchange_on(made, call)  # type: ignore[arg-type]
        assert [each.is_open for each in connections.made] == [True] * 4 + [False] * 2

    def test_an_interrupt_closes_the_connection(self, connections: type[FakeConnection]) -> None:
        connections.answers = [KeyboardInterrupt()]
        with pytest.raises(KeyboardInterrupt):
            Client("http://h:1").health()
        assert not connections.made[0].is_open


def client_flow() -> Any:
    from argosy.client import calls, flows

    return flows.one(calls.health(), flows.Patience(0))


class TestUnreachable:
    @pytest.mark.parametrize(
        ("error", "says", "hint"),
        [
            (FileNotFoundError(2, "x"), "no server answers at http://127.0.0.1:9", "argosy up"),
            (ConnectionRefusedError(), "no server answers at http://127.0.0.1:9", "argosy up"),
            (PermissionError(13, "denied"), "cannot be reached: denied", "another user"),
            (socket.gaierror(-2, "unknown name"), "cannot be reached: unknown name", "host's name"),
            (OSError(5, "broken"), "cannot be reached: broken", "argosy up"),
            (ValueError(), "cannot be reached: ValueError", "argosy up"),
        ],
    )
    def test_nothing_could_be_sent(self, error: Exception, says: str, hint: str) -> None:
        told = no_connection(ENDPOINT, error)
        assert says in told.problem
        assert hint in (told.hint or "")

    def test_a_certificate_is_not_trusted(self) -> None:
        error = ssl.SSLCertVerificationError()
        error.verify_message = "self-signed"
        told = no_connection(parse_endpoint("https://h:1", "url"), error)
        assert told.problem == "the certificate of https://h:1 is not trusted: self-signed"
        assert "SSL_CERT_FILE" in (told.hint or "")

    @pytest.mark.parametrize(
        ("error", "says", "hint"),
        [
            (TimeoutError(), "http://127.0.0.1:9 does not answer in time", "it may be overloaded"),
            (OSError(32, "pipe"), "http://127.0.0.1:9 broke off: pipe", "it may have been stopped"),
            (EOFError("x"), "http://127.0.0.1:9 broke off: x", "it may have been stopped"),
        ],
    )
    def test_the_server_was_lost(self, error: Exception, says: str, hint: str) -> None:
        told = broken_off(ENDPOINT, error)
        assert (told.problem, told.hint) == (says, hint)
        assert Lost(told, is_sent=True).is_sent


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_gone = False

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return self.is_gone

    def abort(self) -> None:
        self.is_gone = True


class TestAgentConnections:
    def answered(self, *pieces: bytes) -> tuple[Any, Transport, AgentConnection]:
        """The reply or the error, after these pieces have come."""

        async def exchange() -> tuple[Any, Transport, AgentConnection]:
            transport, connection = Transport(), AgentConnection()
            connection.connection_made(transport)
            future = connection.send(b"question")
            assert transport.written == [b"question"]
            for piece in pieces:
                connection.data_received(piece)
            if not future.done():
                return None, transport, connection
            return future.exception() or future.result(), transport, connection

        return asyncio.run(exchange())

    @pytest.mark.parametrize("cut", [1, 5, 40, 1_000])
    def test_an_answer_is_read_however_it_is_cut(self, cut: int) -> None:
        data = b"HTTP/1.1 201 Created\r\nX: y\r\ncontent-LENGTH:  4 \r\n\r\nbody"
        pieces = [data[at : at + cut] for at in range(0, len(data), cut)]
        reply, transport, connection = self.answered(*pieces)
        assert reply == AgentReply(201, b"body")
        assert connection.is_open
        assert not transport.is_gone

    def test_an_answer_without_a_body(self) -> None:
        assert self.answered(b"HTTP/1.1 204 No\r\n\r\n")[0] == AgentReply(204, b"")
        assert self.answered(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")[0] == AgentReply(
            200, b""
        )
        assert self.answered(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx")[0] is None

    def test_a_server_that_closes_is_left(self) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: Close\r\n\r\nx"
        reply, transport, connection = self.answered(head)
        assert reply == AgentReply(200, b"x")
        assert transport.is_gone
        assert not connection.is_open

    @pytest.mark.parametrize(
        ("data", "says"),
        [
            (b"SSH-2.0\r\n\r\n", "not HTTP"),
            (b"HTTP/1.1 abc\r\n\r\n", "not HTTP"),
            (b"HTTP/2 200\r\n\r\n", "not HTTP"),
            (b"HTTP/1.1 200 OK\r\n\r\n", "no length"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "no length"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 67108865\r\n\r\n", "no length"),
            (b"x" * 65_537, "has no end"),
        ],
    )
    def test_nonsense_ends_the_connection(self, data: bytes, says: str) -> None:
        error, transport, _ = self.answered(data)
        assert isinstance(error, AgentUnreached)
        assert says in str(error)
        assert transport.is_gone

    def test_a_broken_connection_is_an_error(self) -> None:
        async def exchange() -> BaseException | None:
            connection = AgentConnection()
            connection.connection_made(Transport())
            future = connection.send(b"q")
            connection.connection_lost(None)
            assert not connection.is_open
            return future.exception()

        assert "broke off" in str(asyncio.run(exchange()))

    def test_a_second_question_forgets_the_first_answer(self) -> None:
        async def exchange() -> list[AgentReply]:
            connection = AgentConnection()
            connection.connection_made(Transport())
            found = []
            for text in (b"one", b"three"):
                future = connection.send(b"q")
                head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text)
                connection.data_received(head + text + b"rest")
                found.append(await future)
            return found

        assert asyncio.run(exchange()) == [AgentReply(200, b"one"), AgentReply(200, b"three")]

    def test_a_link_says_who_asks_and_keeps_its_connections(self) -> None:
        heard: list[bytes] = []

        served: list[asyncio.Future[Any]] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            served.append(asyncio.current_task())  # type: ignore[arg-type]
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while len(heard) != 2 or len(served) > 1:
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0])
                    heard.append(head + await reader.readexactly(length))
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                    await writer.drain()
            writer.close()

        async def talk() -> list[AgentReply]:
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            link = AgentLink(parse_endpoint(f"http://127.0.0.1:{port}", "url"), "secret")
            found = [
                await link.ask("POST", "/v1/x", b"{}", key="k"),
                await link.ask("GET", "/v1/y"),
                # The server has closed the connection that was kept.
                await link.ask("GET", "/v1/z"),
            ]
            link.close()
            server.close()
            await asyncio.gather(*served)
            return found

        assert asyncio.run(talk()) == [AgentReply(200, b"ok")] * 3
        first, second, third = (text.decode() for text in heard)
        host = first.partition("Host: ")[2].partition("\r\n")[0]
        assert first == (
            f"POST /v1/x HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer secret\r\n"
            "Idempotency-Key: k\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
        )
        assert second == (
            f"GET /v1/y HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer secret\r\n"
            "Content-Length: 0\r\n\r\n"
        )
        assert third.startswith("GET /v1/z ")

    def test_an_agent_that_does_not_answer_in_time_is_named(self) -> None:
        async def talk() -> str:
            writers: list[asyncio.StreamWriter] = []
            server = await asyncio.start_server(lambda _, w: writers.append(w), "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            link = AgentLink(parse_endpoint(f"http://127.0.0.1:{port}", "url"), timeout=0.02)
            with pytest.raises(AgentUnreached) as caught:
                await link.ask("GET", "/")
            server.close()
            for writer in writers:
                writer.close()
                await writer.wait_closed()
            assert not link._free
            return str(caught.value)

        assert asyncio.run(talk()).endswith("did not answer; expected an answer within 0.02 s")

    @pytest.mark.parametrize("is_closed", [False, True])
    def test_only_open_connections_of_an_open_link_are_kept(self, is_closed: bool) -> None:
        async def talk() -> tuple[list[Any], list[bool]]:
            link = AgentLink(ENDPOINT)
            made = []
            for is_gone in (False, True):
                transport, connection = Transport(), AgentConnection()
                connection.connection_made(transport)
                asked = asyncio.ensure_future(link._send(connection, b"q"))
                await asyncio.sleep(0)
                if is_closed:
                    link.close()
                transport.is_gone = is_gone
                connection.data_received(b"HTTP/1.1 204 No\r\n\r\n")
                await asked
                made.append((connection, transport))
            kept = [made[0][0]] if not is_closed else []
            assert list(link._free) == kept
            # The last that was used comes first; those that were closed meanwhile are passed over.
            first = link._kept()
            assert first is (kept[0] if kept else None)
            if first is not None:
                link._free.append(first)
                made[0][1].is_gone = True
                assert link._kept() is None
            return kept, [transport.is_gone for _, transport in made]

        assert asyncio.run(talk())[1] == [True, True]

    def test_requests_beyond_the_limit_wait_for_their_turn(self) -> None:
        async def talk() -> list[int]:
            link, asked = AgentLink(ENDPOINT, most=2), 0
            seen: list[int] = []
            going = asyncio.Event()

            async def exchange(data: bytes) -> AgentReply:
                nonlocal asked
                asked += 1
                seen.append(asked)
                await going.wait()
                asked -= 1
                return AgentReply(200, b"")

            link._exchange = exchange  # type: ignore[method-assign]
            tasks = [asyncio.ensure_future(link.ask("GET", "/")) for _ in range(5)]
            for _ in range(5):
                await asyncio.sleep(0)
            going.set()
            await asyncio.gather(*tasks)
            return seen

        assert max(asyncio.run(talk())) == 2

    @pytest.mark.parametrize("error", [ConnectionRefusedError("refused"), ssl.SSLError("bad")])
    def test_an_agent_that_cannot_be_reached_is_named(self, error: Exception) -> None:
        async def talk() -> str:
            link = AgentLink(ENDPOINT)

            async def connect() -> AgentConnection:
                raise error

            link._connect = connect  # type: ignore[method-assign]
            with pytest.raises(AgentUnreached) as caught:
                await link.ask("GET", "/")
            return caught.value.problem

        assert asyncio.run(talk()) == f"http://127.0.0.1:9: {error}"
