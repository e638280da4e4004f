"""Requests of a control plane's administrator, to a small server of the test's own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from argosy.kubernetes.control_plane import ControlPlaneError, RequestRefused
from argosy.kubernetes.control_plane.admin import AdminApi, HealthProbe

NOT_FOUND = {"kind": "Status", "reason": "NotFound", "message": 'nodes "n" not found'}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SmallServer

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        told = self.rfile.read(length).decode()
        headers = {name: self.headers[name] for name in ("Authorization", "Content-Type")}
        self.server.asked.append((self.command, self.path, told, headers))
        self.server.clients.append(self.client_address[1])
        status, kind, body = self.server.answers.pop(0)
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class SmallServer(ThreadingHTTPServer):
    """Answers as it is told, and keeps what it was asked, and from which ports."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, str, bytes]] = []
        self.asked: list[tuple[str, str, str, dict[str, str | None]]] = []
        self.clients: list[int] = []

    def will_answer(self, body: Any, status: int = 200, kind: str = "application/json") -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answers.append((status, kind, data))


class PlainApi(AdminApi):
    """Without TLS."""

    def _connect(self) -> HTTPSConnection:
        made = super()._connect()
        plain = HTTPConnection(made.host, made.port, timeout=cast(float, made.timeout))
        return cast(HTTPSConnection, plain)


@pytest.fixture
def server() -> Iterator[SmallServer]:
    with SmallServer() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def api(server: SmallServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlainApi]:
    context = "argosy.kubernetes.control_plane.admin.ssl.create_default_context"
    monkeypatch.setattr(context, lambda cafile: None)
    made = PlainApi(server.server_address[1], "secret", Path("/authority"), 20.0)
    yield made
    made.forget_connections()


def test_a_request_says_who_asks_and_what(api: PlainApi, server: SmallServer) -> None:
    server.will_answer({"major": "1"})
    assert api.request("GET", "/version") == {"major": "1"}
    server.will_answer({"made": True}, 201)
    assert api.request("POST", "/api/v1/nodes", {"a": [1]}) == {"made": True}
    server.will_answer({})
    patch = "application/merge-patch+json"
    assert api.request("PATCH", "/x", {}, content_type=patch) == {}
    who = {"Authorization": "Bearer secret"}
    assert server.asked == [
        ("GET", "/version", "", who | {"Content-Type": "application/json"}),
        ("POST", "/api/v1/nodes", '{"a":[1]}', who | {"Content-Type": "application/json"}),
        ("PATCH", "/x", "{}", who | {"Content-Type": patch}),
    ]


@pytest.mark.parametrize("kind", ["text/plain", ""])
def test_what_is_not_json_is_text(api: PlainApi, server: SmallServer, kind: str) -> None:
    server.will_answer(b"[+]ping ok", kind=kind)
    assert api.request("GET", "/readyz") == "[+]ping ok"


def test_a_refusal_says_what_the_server_says(api: PlainApi, server: SmallServer) -> None:
    server.will_answer(NOT_FOUND, 404)
    with pytest.raises(RequestRefused) as caught:
        api.request("GET", "/api/v1/nodes/n")
    assert str(caught.value) == 'GET /api/v1/nodes/n: 404 NotFound: nodes "n" not found'
    assert (caught.value.status, caught.value.reason) == (404, "NotFound")
    server.will_answer(b" \xffno such path\n", 400, "text/plain")
    with pytest.raises(RequestRefused) as caught:
        api.request("POST", "/nowhere", {})
    assert str(caught.value) == "POST /nowhere: 400 : \N{REPLACEMENT CHARACTER}no such path"
    assert len(set(server.clients)) == 1, "a refusal is an answer"


def test_a_connection_is_used_again_until_it_is_forgotten(
    api: PlainApi, server: SmallServer
) -> None:
    for _ in range(5):
        server.will_answer({})
    for _ in range(3):
        api.request("GET", "/x")
    api.forget_connections()
    for _ in range(2):
        api.request("GET", "/x")
    first, second = server.clients[0], server.clients[3]
    assert server.clients == [first] * 3 + [second] * 2
    assert first != second


def test_a_connection_from_before_a_restart_is_not_kept(api: PlainApi, server: SmallServer) -> None:
    server.will_answer({})
    with api._connection() as connection:
        connection.request("GET", "/x")
        connection.getresponse().read()
        api.forget_connections()
    assert api._idle == []
    assert connection.sock is None


def test_of_several_idle_connections_those_that_were_given_up_are_passed_over(
    api: PlainApi, server: SmallServer
) -> None:
    for _ in range(4):
        server.will_answer({})
    with api._connection() as one, api._connection() as other:
        for each in (one, other):
            each.request("GET", "/x")
            each.getresponse().read()
    assert api._idle == [other, one]
    one.sock.shutdown(2)
    api.request("GET", "/y")
    assert server.clients[2] == server.clients[1]
    assert one.sock is None
    assert api._idle == [other]


def test_a_server_that_is_away_is_one_kind_of_error(api: PlainApi, server: SmallServer) -> None:
    server.shutdown()
    server.server_close()
    with pytest.raises(ControlPlaneError, match=r"^the API server does not answer: .*refused"):
        api.request("GET", "/x")
    assert api._idle == []


def test_what_the_caller_does_wrong_is_no_fault_of_the_server(api: PlainApi) -> None:
    with pytest.raises(KeyError), api._connection():
        raise KeyError("mine")
    assert api._idle == []


def test_a_watch_ends_with_the_patience_of_the_api(api: PlainApi, server: SmallServer) -> None:
    events = [{"type": "ADDED", "object": {"n": n}} for n in range(3)]
    server.will_answer(b"".join(json.dumps(each).encode() + b"\n" for each in events))
    assert list(api.watch("/api/v1/nodes", "labelSelector=a")) == events
    path, _, query = server.asked[0][1].partition("?")
    assert (server.asked[0][0], path) == ("GET", "/api/v1/nodes")
    assert query.split("&") == [
        "watch=1",
        "sendInitialEvents=true",
        "resourceVersionMatch=NotOlderThan",
        "allowWatchBookmarks=true",
        "timeoutSeconds=20",
        "labelSelector=a",
    ]
    assert server.asked[0][3]["Authorization"] == "Bearer secret"
    api._timeout = 0.5
    server.will_answer(b"")
    assert list(api.watch("/x")) == []
    assert "timeoutSeconds=1&" in server.asked[1][1], "0 would be no end at all"


def test_a_watch_that_is_refused_says_so(api: PlainApi, server: SmallServer) -> None:
    server.will_answer(NOT_FOUND, 400)
    with pytest.raises(RequestRefused, match=r'^GET /nodes: 400 NotFound: nodes "n" not found$'):
        next(api.watch("/nodes"))


def test_all_are_tried_before_an_error_is_raised(api: PlainApi) -> None:
    done: list[int] = []

    def act(item: int) -> None:
        done.append(item)
        if item % 3 == 1:
            raise ControlPlaneError(f"not {item}")

    with pytest.raises(ControlPlaneError, match="not 1"):
        api.for_each(act, range(20))
    assert sorted(done) == list(range(20))
    api.for_each(act, [])


def test_the_certificate_of_the_server_is_checked_with_its_authority(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Path] = []
    context = "argosy.kubernetes.control_plane.admin.ssl.create_default_context"
    monkeypatch.setattr(context, lambda cafile: asked.append(cafile))
    api = AdminApi(4321, "secret", Path("/authority"), 7.0)
    made = api._connect()
    assert (made.host, made.port, made.timeout) == ("127.0.0.1", 4321, 7.0)
    assert asked == [Path("/authority")]


def test_a_probe_tells_the_status(server: SmallServer) -> None:
    url = f"http://127.0.0.1:{server.server_address[1]}/readyz"
    for status in (200, 500):
        server.will_answer(b"", status)
        assert HealthProbe(url, "secret").status() == status
    server.will_answer(b"", 204)
    assert HealthProbe(url).status() == 204
    told = [(each[1], each[3]["Authorization"]) for each in server.asked]
    assert told == [("/readyz", "Bearer secret")] * 2 + [("/readyz", None)]
    secure = url.replace("http", "https")
    assert HealthProbe(secure).status() == 0, "it speaks no TLS"
    server.shutdown()
    server.server_close()
    assert HealthProbe(url).status() == 0
