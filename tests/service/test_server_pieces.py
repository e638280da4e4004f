"""Parts of servers on their own: who needs a token, certificates, what is remembered, and requests whose
clients have gone."""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from argosy.model.errors import CommandError
from argosy.service import agent, scheduling, server
from argosy.service.callers import Callers
from argosy.service.routes import Reply, Route
from argosy.service.server import Server, ServerOptions
from argosy.service.web_page import WebPage


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        (None, True),
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("example.org", False),
    ],
)
def test_a_server_that_others_can_reach_makes_a_token(
    tmp_path: Path, host: str | None, is_local: bool
) -> None:
    options = ServerOptions(directory=tmp_path / "made", host=host)
    token = server._token(options)
    assert (token is None) == is_local
    path = tmp_path / "made" / "token"
    assert path.exists() != is_local
    if token is not None:
        assert path.read_text() == f"{token}\n"
        assert len(token) == 43
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert server._token(options) == token


def test_a_token_file_counts_on_this_computer_too(tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = ServerOptions(directory=tmp_path / "made", host="127.0.0.1", token_file=path)
    with pytest.raises(CommandError, match=r"cannot read the token: .* No such file"):
        server._token(options)
    for text, says in (("123456789012345\n", "a token of 15 characters; expected at least 16"),):
        path.write_text(text)
        with pytest.raises(CommandError, match=says):
            server._token(options)
    path.write_text("1234567890123456\n")
    assert server._token(options) == "1234567890123456"
    path.write_bytes(b"\xff" * 20)
    with pytest.raises(CommandError, match="cannot read the token"):
        server._token(options)
    assert not (tmp_path / "made").exists()


def test_certificates_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    assert server._tls(ServerOptions(directory=tmp_path)) is None
    (tmp_path / "c").write_text("no certificate")
    for options in (
        ServerOptions(directory=tmp_path, certificate=tmp_path / "c"),
        ServerOptions(directory=tmp_path, certificate=tmp_path / "none"),
    ):
        with pytest.raises(CommandError, match="cannot use the certificate") as caught:
            server._tls(options)
        assert caught.value.file == str(options.certificate)


def scheduler(**fields: Any) -> scheduling.SchedulerOptions:
    known = {"name": "s", "engine": "vela", "settings": {}, "agents": (), "timeout": 1.0}
    options = {**known, "server": ServerOptions(directory=Path("nowhere")), **fields}
    return scheduling.SchedulerOptions(**options)


def test_a_scheduler_trusts_those_authorities_that_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def create(cafile: Path | None = None) -> Any:
        made.append(["authority", cafile])
        return SimpleNamespace(load_cert_chain=lambda path: made.append(["own", path]))

    monkeypatch.setattr(ssl, "create_default_context", create)
    assert scheduling._tls(scheduler()) is None
    assert made == []
    for fields in ({"ca": Path("a")}, {"certificate": Path("c")}):
        assert scheduling._tls(scheduler(**fields)) is not None
    assert made == [["authority", Path("a")], ["authority", None], ["own", Path("c")]]


def test_a_schedulers_certificate_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot use the certificate") as caught:
        scheduling._tls(scheduler(certificate=tmp_path / "none"))
    assert caught.value.file == str(tmp_path / "none")


@pytest.mark.parametrize(
    ("text", "name", "url"),
    [
        ("http://h:1", "", "http://h:1"),
        ("edge=http://h:1", "edge", "http://h:1"),
        ("unix:a=b", "", "unix:a=b"),
        ("http://h:1/?a=b", "", None),
    ],
)
def test_an_agent_may_have_a_name(text: str, name: str, url: str | None) -> None:
    if url is None:
        with pytest.raises(CommandError):
            scheduling.AgentAddress.parse(text)
    else:
        found = scheduling.AgentAddress.parse(text)
        assert (found.name, str(found.endpoint)) == (name, url)


def test_the_oldest_is_forgotten_and_what_is_remembered_again_is_young(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agent, "MOST_REMEMBERED", 3)
    known: OrderedDict[str, int] = OrderedDict()
    for value, name in enumerate("abcad"):
        agent._remember(known, name, value)
    assert list(known.items()) == [("c", 2), ("a", 3), ("d", 4)]


def test_a_request_ends_when_its_client_hangs_up() -> None:
    async def hang_up() -> list[int]:
        entered, left = asyncio.Event(), asyncio.Event()
        statuses: list[int] = []

        async def wait(request: web.Request) -> Reply:
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                left.set()
            return Reply()

        pieces = SimpleNamespace(
            _callers=Callers(None, ()),
            metrics=SimpleNamespace(request_ended=lambda m, status, s: statuses.append(status)),
            _log=statuses.append,
            routes=[Route("GET", "/wait", wait, "")],
            _page=WebPage(),
        )
        runner = Server._web_runner(pieces)  # type: ignore[arg-type]
        await runner.setup()
        listening = await asyncio.get_running_loop().create_server(runner.server, "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        writer.write(b"GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.wait_for(entered.wait(), 10)
        writer.transport.abort()
        try:
            await asyncio.wait_for(left.wait(), 5)
        finally:
            listening.close()
            await runner.cleanup()
        return statuses

    assert asyncio.run(hang_up()) == [499]
