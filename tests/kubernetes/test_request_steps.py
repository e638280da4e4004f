"""When requests are repeated, and what they look like, with answers of the test's own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec
import pytest
from aiohttp import web
from kube_cases import asynchronous

from argosy import __version__
from argosy.kubernetes import failures as failed
from argosy.kubernetes.connection import Connection
from argosy.kubernetes.credentials import Login, Secret
from argosy.kubernetes.requests import (
    KubernetesCall,
    RequestAttempt,
    RequestSender,
    RequestSettings,
    _watched_socket,
    status_in,
)

GET = KubernetesCall(verb="get", method="GET", path="/x", resource="pods")
POST = KubernetesCall(verb="create", method="POST", path="/x", resource="pods", body=b"{}")
BUDGET = (
    b'{"kind":"Status","reason":"TooManyRequests","message":"m",'
    b'"details":{"causes":[{"reason":"DisruptionBudget"}]}}'
)
_real_sleep = asyncio.sleep


class Logins:
    """Another token each time the last one was refused."""

    def __init__(self) -> None:
        self.refusals = 0

    async def login(self) -> Login:
        return Login(Secret(f"Bearer {self.refusals}"))

    def refused(self) -> None:
        self.refusals += 1


class Observer:
    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def answered(self, verb: str, resource: str, code: int, seconds: float) -> None:
        assert 0 <= seconds < 60
        self.told.append((verb, resource, code))

    def repeated(self, verb: str, resource: str, delay: float) -> None:
        self.told.append((verb, resource, f"in {delay:g} s"))

    def watch_restarted(self, resource: str, cause: str) -> None:
        raise AssertionError


class Upper(Random):
    """Draws the longest delay that there may be."""

    def uniform(self, low: float, high: float) -> float:
        return high


def unreachable(may_have_happened: bool) -> failed.KubernetesError:
    return failed.KubernetesUnreachable("r", "away", may_have_happened=may_have_happened)


class Scripted(RequestSender):
    def __init__(self, *answers: RequestAttempt | Exception, **settings: Any) -> None:
        self.logins, self.observer_ = Logins(), Observer()
        usual = {"first_delay": 1.0, "longest_delay": 3.0, "patience": 10.0}
        super().__init__(
            Connection("http://h", self.logins),
            RequestSettings(**{**usual, **settings}),
            observer=self.observer_,
            random=Upper(),
        )
        self.answers = list(answers)
        self.widths: list[int] = []

    async def exchange(self, call: KubernetesCall) -> RequestAttempt:
        assert self.limiter.under_way == 1
        self.widths.append(self.limiter.width)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def answer(code: int, body: bytes = b"", retry_after: float | None = None) -> RequestAttempt:
    return RequestAttempt(code, body, retry_after)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sleeping takes no time but the test's own."""
    now = [50.0]

    async def sleep(seconds: float) -> None:
        now[0] += seconds
        await _real_sleep(0)

    monkeypatch.setattr("argosy.kubernetes.requests.loop_time", lambda: now[0])
    monkeypatch.setattr("argosy.kubernetes.requests.asyncio.sleep", sleep)


def repeats(sender: Scripted) -> list[object]:
    return [each[2] for each in sender.observer_.told]


@pytest.mark.parametrize("code", [200, 201, 299])
@asynchronous
async def test_the_body_of_a_good_answer_is_the_result(code: int) -> None:
    sender = Scripted(answer(code, b"body", 5.0))
    assert await sender.send(POST) == b"body"
    assert repeats(sender) == []


@pytest.mark.parametrize("code", [300, 304, 404, 429, 500, 503])
@asynchronous
async def test_another_answer_is_an_error_unless_the_server_asks_for_patience(code: int) -> None:
    body = b'{"kind":"Status","message":"m"}'
    sender = Scripted(answer(code, body))
    with pytest.raises(failed.KubernetesError) as caught:
        await sender.send(GET)
    assert str(caught.value) == "GET /x: m"
    assert type(caught.value) is type(failed.failure("GET /x", code, None))
    assert sender.answers == repeats(sender) == []


@pytest.mark.parametrize("code", [429, 500, 503])
@asynchronous
async def test_a_request_is_repeated_when_the_server_says_when(code: int) -> None:
    sender = Scripted(answer(code, b"", 2.0), answer(code, b"", 0.0), answer(200, b"yes"))
    assert await sender.send(POST) == b"yes"
    # Not before the server wants it, nor sooner than usual.
    assert repeats(sender) == ["in 3 s", "in 2 s"]


@asynchronous
async def test_what_a_budget_forbids_is_not_asked_again() -> None:
    sender = Scripted(answer(429, BUDGET, 1.0), answer(200))
    with pytest.raises(failed.EvictionRefused):
        await sender.send(POST)
    assert repeats(sender) == []


@asynchronous
async def test_patience_ends_before_a_delay_that_would_outlast_it() -> None:
    sender = Scripted(*[answer(429, b"", 3.0)] * 9)
    with pytest.raises(failed.RequestThrottled):
        await sender.send(GET)
    assert repeats(sender) == ["in 4 s", "in 4 s"]
    sender = Scripted(*[answer(429, b"", 4.0)] * 9)
    with pytest.raises(failed.RequestThrottled):
        await sender.send(GET)
    assert repeats(sender) == ["in 5 s", "in 5 s"], "the last delay ends with it"


@asynchronous
async def test_without_a_connection_delays_double_up_to_the_longest() -> None:
    sender = Scripted(*[unreachable(False)] * 4, answer(200))
    await sender.send(POST)
    assert repeats(sender) == ["in 1 s", "in 2 s", "in 3 s", "in 3 s"]
    sender = Scripted(*[unreachable(False)] * 5)
    with pytest.raises(failed.KubernetesUnreachable, match="away"):
        await sender.send(POST)
    assert len(repeats(sender)) == 4


@asynchronous
async def test_only_what_changes_nothing_is_repeated_if_it_may_have_happened() -> None:
    sender = Scripted(unreachable(True), answer(200, b"yes"))
    assert await sender.send(GET) == b"yes"
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        sender = Scripted(unreachable(True))
        with pytest.raises(failed.KubernetesUnreachable):
            await sender.send(msgspec.structs.replace(POST, method=method))
        assert repeats(sender) == []


@asynchronous
async def test_a_server_that_is_not_trusted_is_not_asked_again() -> None:
    sender = Scripted(failed.KubernetesUntrusted("r", "p", may_have_happened=False))
    with pytest.raises(failed.KubernetesUntrusted):
        await sender.send(GET)
    assert repeats(sender) == []


@asynchronous
async def test_credentials_are_got_anew_once() -> None:
    sender = Scripted(answer(401), answer(200, b"yes"))
    assert await sender.send(POST) == b"yes"
    assert sender.logins.refusals == 1
    sender = Scripted(answer(401), answer(401))
    with pytest.raises(failed.NotAuthenticated):
        await sender.send(POST)
    assert sender.logins.refusals == 1
    assert repeats(sender) == []


@pytest.mark.parametrize(
    ("code", "retry_after", "width"),
    [(429, 0.0, 2), (503, 0.0, 2), (500, 0.0, 4), (429, None, 4), (503, None, 4), (200, None, 4)],
)
@asynchronous
async def test_fewer_requests_are_under_way_when_the_server_throttles(
    code: int, retry_after: float | None, width: int
) -> None:
    sender = Scripted(answer(code, b"", retry_after), answer(200), concurrent=4)
    try:
        await sender.send(GET)
    except failed.KubernetesError:
        assert retry_after is None
    assert sender.limiter.width == width
    assert sender.limiter.under_way == 0


def test_a_body_is_a_status_by_its_kind() -> None:
    found = status_in(BUDGET)
    assert found is not None
    assert (found.reason, found.message) == ("TooManyRequests", "m")
    assert status_in(b'{"kind":"Pod","message":"m"}') is None
    assert status_in(b"<html>") is None
    assert status_in(b"") is None


# Over a connection.


class Served:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.asked: list[dict[str, Any]] = []
        self.answer = web.Response()
        self.is_silent = False


@asynccontextmanager
async def serving() -> AsyncIterator[Served]:
    served = Served(Connection("", Logins(), headers=(("Impersonate-User", "jane"),)))

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        told = {name: request.headers.get(name) for name in HEADERS}
        told |= {"body": await request.read(), "path": request.path_qs, "method": request.method}
        served.asked.append({name: each for name, each in told.items() if each})
        if served.is_silent:
            await asyncio.Event().wait()
        made = served.answer
        return web.Response(status=made.status, body=made.body, headers=made.headers)

    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    server = f"http://{host}:{port}"
    served.connection = msgspec.structs.replace(served.connection, server=server)
    try:
        yield served
    finally:
        await runner.cleanup()


HEADERS = (
    "Accept", "Accept-Encoding", "Authorization", "Content-Type", "Cookie", "Impersonate-User",
    "User-Agent",
)  # fmt: skip
USUAL = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Authorization": "Bearer 0",
    "Impersonate-User": "jane",
    "User-Agent": f"argosy/{__version__}",
}


@asynccontextmanager
async def opened(served: Served, observer: Observer | None = None) -> AsyncIterator[RequestSender]:
    settings = RequestSettings(patience=0.0)
    sender = RequestSender(served.connection, settings, observer=observer)
    await sender.open()
    try:
        yield sender
    finally:
        await sender.close()


@asynchronous
async def test_a_request_has_these_headers_and_no_others() -> None:
    async with serving() as served, opened(served) as sender:
        served.answer = web.Response(headers={"Set-Cookie": "a=b"})
        await sender.send(msgspec.structs.replace(GET, parameters={"a": "b c"}))
        await sender.send(POST)
        patch = msgspec.structs.replace(POST, method="PATCH", content_type="application/own")
        await sender.send(patch)
        body = {"body": b"{}", "path": "/x"}
        assert served.asked == [
            {**USUAL, "method": "GET", "path": "/x?a=b+c"},
            {**USUAL, **body, "method": "POST", "Content-Type": "application/json"},
            {**USUAL, **body, "method": "PATCH", "Content-Type": "application/own"},
        ]


@asynchronous
async def test_a_redirection_is_not_followed() -> None:
    observer = Observer()
    async with serving() as served, opened(served, observer) as sender:
        served.answer = web.Response(status=302, headers={"Location": "/y"})
        with pytest.raises(failed.StrangeAnswer, match="GET /x: the server answered 302"):
            await sender.send(GET)
        assert len(served.asked) == 1
        with pytest.raises(failed.StrangeAnswer, match="GET /x: the server answered 302"):
            async with sender.stream(GET):
                raise AssertionError
    assert observer.told == [("get", "pods", 302)] * 2


@pytest.mark.parametrize(
    ("status", "given", "expected"),
    [
        (429, "7", 7.0), (503, "0", 0.0), (500, "2", 2.0), (429, "soon", None), (429, "-1", None),
        (429, "1.5", None), (429, "", None), (499, "7", None), (200, "7", None), (404, "7", None),
    ],
)  # fmt: skip
@asynchronous
async def test_whole_seconds_say_when_to_ask_again(
    status: int, given: str, expected: float | None
) -> None:
    async with serving() as served, opened(served) as sender:
        served.answer = web.Response(status=status, headers={"Retry-After": given})
        assert (await sender.exchange(GET)).retry_after == expected


@asynchronous
async def test_a_stream_is_told_like_any_answer_and_refuses_credentials_that_are_old() -> None:
    observer = Observer()
    async with serving() as served, opened(served, observer) as sender:
        served.answer = web.Response(body=b"line\n")
        async with sender.stream(GET) as content:
            assert await content.read() == b"line\n"
        credentials = served.connection.credentials
        assert isinstance(credentials, Logins)
        for status in (402, 401):
            served.answer = web.Response(status=status, body=b'{"kind":"Status","message":"m"}')
            with pytest.raises(failed.KubernetesError, match="GET /x: m"):
                async with sender.stream(GET):
                    raise AssertionError
        assert credentials.refusals == 1
    assert [each[2] for each in observer.told] == [200, 402, 401]


@asynchronous
async def test_a_client_that_is_not_open_says_so() -> None:
    async with serving() as served:
        sender = RequestSender(served.connection)
        with pytest.raises(RuntimeError, match="use it as `async with`"):
            await sender.send(GET)
        async with opened(served) as sender:
            pass
        with pytest.raises(RuntimeError, match="the client is not open"):
            await sender.send(GET)


@asynchronous
async def test_a_server_that_went_away_is_named_with_the_reason() -> None:
    async with serving() as served:
        pass
    observer = Observer()
    async with opened(served, observer) as sender:
        with pytest.raises(failed.KubernetesUnreachable) as caught:
            await sender.send(GET)
    server = served.connection.server
    assert str(caught.value).startswith(f"GET /x: no connection to {server}: Connect call failed")
    assert not caught.value.may_have_happened
    assert observer.told == [("get", "pods", 0)]


@asynchronous
async def test_an_answer_that_does_not_come_in_time_may_have_been_given() -> None:
    async with serving() as served:
        served.is_silent = True
        settings = RequestSettings(timeout=0.05, patience=0.0)
        sender = RequestSender(served.connection, settings)
        await sender.open()
        server = served.connection.server
        for ask in (sender.send(POST), sender.stream(POST).__aenter__()):
            with pytest.raises(failed.KubernetesUnreachable) as caught:
                await ask
            assert str(caught.value) == f"POST /x: {server} did not answer in 0.05 s"
            assert caught.value.may_have_happened
        await sender.close()


def test_a_connection_whose_other_end_is_gone_breaks_within_a_minute() -> None:
    made = _watched_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1)))
    with made:
        told = [
            made.getsockopt(socket.IPPROTO_TCP, option)
            for option in (
                socket.TCP_KEEPIDLE,
                socket.TCP_KEEPINTVL,
                socket.TCP_KEEPCNT,
                socket.TCP_USER_TIMEOUT,
            )
        ]
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert told == [30, 5, 3, 45_000]
    assert 30 + 3 * 5 == 45


@pytest.mark.parametrize(
    ("server", "compresses", "expected"),
    [
        ("https://example.org", True, True),
        ("https://example.org", False, False),
        ("https://10.0.0.1:6443", True, True),
        ("https://127.0.0.2:6443", True, False),
        ("https://[::1]:6443", True, False),
        ("https://localhost:6443", True, False),
        ("https://localhost.example.org", True, True),
    ],
)
def test_servers_elsewhere_are_asked_for_compressed_answers(
    server: str, compresses: bool, expected: bool
) -> None:
    sender = RequestSender(Connection(server, Logins(), compresses=compresses))
    assert sender._compresses() is expected


def test_the_name_in_a_certificate_matters_only_where_there_is_one() -> None:
    def name(server: str) -> str | None:
        made = Connection(server, Logins())
        tls = msgspec.structs.replace(made.tls, server_name="other")
        return RequestSender(msgspec.structs.replace(made, tls=tls))._server_name

    assert name("https://h") == "other"
    assert name("http://h") is None


def test_usual_settings() -> None:
    told = RequestSender(Connection("http://h", Logins())).settings
    assert (told.concurrent, told.timeout, told.patience) == (64, 30.0, 30.0)
    assert (told.first_delay, told.longest_delay) == (0.1, 10.0)
