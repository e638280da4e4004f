"""Who asks, told from a request alone: tokens, other sites, limits, and what is answered to whom."""

from __future__ import annotations

import asyncio
import json
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from argosy.model.errors import ArgosyError
from argosy.service import callers as callers_module
from argosy.service import doors, guard
from argosy.service.callers import Caller, Callers, TokenTable, operator, read_tokens
from argosy.service.doors import FullHouse
from argosy.service.guard import Guard, scoped
from argosy.service.problems import (
    Forbidden,
    InternalError,
    NotFound,
    PlainHttpError,
    RequestError,
    TooLarge,
    TooMany,
    TooSlow,
    Unauthorised,
    WrongMethod,
)
from argosy.service.routes import Reply

TOKEN = "-" * 16


def asking(**headers: str) -> Any:
    """A request, with what a guard looks at."""
    family = socket.AF_INET
    transport = SimpleNamespace(get_extra_info=lambda name: SimpleNamespace(family=family))
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return SimpleNamespace(
        path=named.pop("path", "/v1/jobs"),
        method="GET",
        host=named.pop("host", "localhost:7077"),
        headers=named,
        transport=transport,
    )


class TestGuards:
    def guard(self, callers: Callers | None = None) -> tuple[Guard, list[str]]:
        log: list[str] = []
        return Guard(callers or Callers(), lambda *ended: None, log.append), log

    @pytest.mark.parametrize(
        ("error", "kind", "says"),
        [
            (RequestError("own"), RequestError, "own"),
            (web.HTTPMethodNotAllowed("PUT", {"GET"}), WrongMethod, "PUT is not possible here"),
            (web.HTTPNotFound(), NotFound, "there is nothing at this path"),
            (web.HTTPExpectationFailed(reason="odd"), PlainHttpError, "odd"),
        ],
    )
    def test_every_error_becomes_one_of_ours(
        self, error: Exception, kind: type[Any], says: str
    ) -> None:
        made, log = self.guard()
        known = made._known(asking(), error)
        assert type(known) is kind
        assert says in known.problem
        assert log == []
        if kind is PlainHttpError:
            assert known.status == 417  # type: ignore[attr-defined]

    def test_an_unforeseen_error_is_internal_and_logged(self) -> None:
        made, log = self.guard()
        known = made._known(asking(), KeyError("secret"))
        assert isinstance(known, InternalError)
        assert (known.problem, known.hint) == (
            "an internal error: KeyError",
            "the server's log has the details",
        )
        assert log[0] == "GET /v1/jobs: an internal error"
        assert "secret" in log[1]

    @pytest.mark.parametrize(
        ("headers", "is_refused"),
        [
            ({}, False),
            ({"Sec_Fetch_Site": "none"}, False),
            ({"Sec_Fetch_Site": "same-origin"}, False),
            ({"Sec_Fetch_Site": "cross-site"}, True),
            ({"Sec_Fetch_Site": "same-site"}, True),
            ({"Origin": "http://localhost:7077"}, False),
            ({"Origin": "http://localhost:7078"}, True),
            ({"Origin": "http://["}, True),
            ({"Origin": "null"}, True),
            ({"host": "127.0.0.1:7077"}, False),
            ({"host": "[::1]:7077"}, False),
            ({"host": "example.org"}, True),
            ({"host": "10.0.0.1"}, True),
            ({"host": "["}, True),
            ({"path": "/livez", "host": "example.org", "Origin": "http://x"}, False),
        ],
    )
    def test_pages_of_other_sites_and_other_names_are_refused(
        self, headers: dict[str, str], is_refused: bool
    ) -> None:
        made, _ = self.guard()
        if is_refused:
            with pytest.raises(Forbidden):
                made._caller(asking(**headers))
        else:
            assert made._caller(asking(**headers)).name == "local"

    def test_with_tokens_everyone_needs_one_but_the_user_of_this_computer(self) -> None:
        made, _ = self.guard(Callers("o" * 16, (TokenTable(name="s", token="s" * 16),)))
        with pytest.raises(Unauthorised, match="missing token"):
            made._caller(asking())
        # Another name is fine: whoever has a token is who it says.
        request = asking(host="example.org", Authorization=f"Bearer {'s' * 16}")
        assert made._caller(request).name == "s"
        assert made._caller(asking(Authorization=f"bearer  {'o' * 16} ")).name == "operator"
        request.transport = SimpleNamespace(
            get_extra_info=lambda name: SimpleNamespace(family=socket.AF_UNIX)
        )
        assert made._caller(request).name == "local"
        request.transport = None
        assert made._caller(request).name == "s"

    @pytest.mark.parametrize(
        ("status", "retry", "logged"), [(429, "1", 0), (503, "1", 1), (401, None, 0)]
    )
    def test_answers_to_refusals_say_when_to_come_again(
        self, status: int, retry: str | None, logged: int
    ) -> None:
        made, log = self.guard()
        request = asking()
        request.writer = SimpleNamespace(output_size=0)
        request.can_read_body = False
        response = made._refused(request, PlainHttpError(status, "x"))
        assert response.status == status
        assert response.headers.get("Retry-After") == retry
        assert response.headers.get("WWW-Authenticate") == ("Bearer" if status == 401 else None)
        assert response.headers["Cache-Control"] == "no-store"
        assert len(log) == logged
        request.writer.output_size = 1
        request.transport = SimpleNamespace(abort=lambda: log.append("aborted"))
        with pytest.raises(asyncio.CancelledError):
            made._refused(request, PlainHttpError(status, "x"))
        assert log[-2:] == ["GET /v1/jobs: x", "aborted"]

    @pytest.mark.parametrize(
        ("error", "kind", "says"),
        [
            (TimeoutError(), TooSlow, "the document did not come in time; expected at most 30 s"),
            (
                web.HTTPRequestEntityTooLarge(1, 2),
                TooLarge,
                "the document is too large; expected at most 4,194,304 bytes",
            ),
            (
                web.RequestPayloadError("cut\n off"),
                RequestError,
                "the body cannot be read: cut off; "
                "expected as many bytes, encoded as the head says",
            ),
            (None, None, ""),
        ],
    )
    @pytest.mark.parametrize("is_here", [False, True])
    def test_a_body_that_does_not_come_whole_is_refused(
        self, error: Exception | None, kind: type[Any] | None, says: str, is_here: bool
    ) -> None:
        made, _ = self.guard()
        reads: list[str] = []

        async def read() -> bytes:
            reads.append("read")
            if error is not None:
                raise error
            return b""

        request = asking()
        request.read, request.can_read_body = read, True
        request.content = SimpleNamespace(is_eof=lambda: is_here)
        if kind is None:
            asyncio.run(made._take_body(request))
        else:
            with pytest.raises(kind) as caught:
                asyncio.run(made._take_body(request))
            assert str(caught.value) == says
        assert reads == ["read"]
        request.can_read_body = False
        asyncio.run(made._take_body(request))
        assert reads == ["read"]

    def test_a_handler_is_for_its_scope(self) -> None:
        async def handle(request: Any) -> Reply:
            return Reply("done")

        def ask(have: Any, need: Any) -> Any:
            table = TokenTable(name="a", token=TOKEN, scope=have)
            return asyncio.run(scoped(handle, need)({guard._CALLER: Caller(table)}))  # type: ignore[arg-type]

        order = ("sample", "commit", "operate")
        for at, have in enumerate(order):
            for needed, need in enumerate(order):
                if needed <= at:
                    assert ask(have, need).value == "done"
                else:
                    with pytest.raises(Forbidden) as caught:
                        ask(have, need)
                    assert caught.value.problem == f"the token of a is for the scope {have}"
                    assert caught.value.expected == f"a token for the scope {need}"


class TestCallers:
    def test_an_allowance_grows_with_time_up_to_a_second(self) -> None:
        now = [100.0]
        caller = Caller(TokenTable(name="a", token=TOKEN, rate=2), lambda: now[0])

        def takes() -> int:
            count = 0
            while True:
                try:
                    with caller.request():
                        count += 1
                except TooMany:
                    return count

        assert takes() == 2
        now[0] += 0.49
        assert takes() == 0
        now[0] += 0.01
        assert takes() == 1
        now[0] += 10
        assert takes() == 2

    def test_without_limits_any_number_is_fine_and_ends_are_counted(self) -> None:
        free = operator("me")
        assert (free.name, free.table.scope) == ("me", "operate")
        for _ in range(100):
            with free.request():
                pass
        one = Caller(TokenTable(name="a", token=TOKEN, requests=1))
        for _ in range(3):
            with pytest.raises(KeyError), one.request():
                raise KeyError
        with one.request(), pytest.raises(TooMany) as caught:
            one.request().__enter__()
        assert caught.value.problem == "a has 1 requests under way"

    def test_tokens_expire_at_their_moment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        end = datetime(2030, 1, 1, tzinfo=UTC)
        known = Callers(None, (TokenTable(name="a", token=TOKEN, expires=end),))
        assert known.need_token
        assert not Callers().need_token

        def at(moment: datetime) -> None:
            clock = SimpleNamespace(now=lambda zone: moment)
            monkeypatch.setattr(callers_module, "datetime", clock)

        at(end - timedelta(microseconds=1))
        assert known.of(f"Bearer {TOKEN}").name == "a"
        at(end)
        with pytest.raises(Unauthorised, match="the token of a has expired"):
            known.of(f"Bearer {TOKEN}")
        for header, says in (("Bearer x", "wrong"), (f"Basic {TOKEN}", "wrong"), ("", "missing")):
            with pytest.raises(Unauthorised, match=f"{says} token"):
                known.of(header)

    def test_two_entries_with_one_token_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "t"
        entry = '[[tokens]]\nname = "{}"\ntoken = "1234567890123456"\n'
        path.write_text(entry.format("a") + entry.format("b"))
        with pytest.raises(ArgosyError, match="two entries have the same token"):
            read_tokens(path)
        path.write_text(entry.format("a"))
        assert [table.name for table in read_tokens(path)] == ["a"]


def test_a_full_house_says_so_in_http() -> None:
    sent: list[bytes] = []

    class Transport(asyncio.Transport):
        def write(self, data: Any) -> None:
            sent.append(bytes(data))

        def close(self) -> None:
            sent.append(b"closed")

    FullHouse().connection_made(Transport())
    head, _, body = sent[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "HTTP/1.1 503 Service Unavailable"
    assert f"Content-Length: {len(body)}" in lines
    assert "Retry-After: 1" in lines
    document = json.loads(body)
    assert (document["status"], document["detail"]) == (503, "too many connections")
    assert sent[1] == b"closed"
    assert doors.MOST_CONNECTIONS == 500
