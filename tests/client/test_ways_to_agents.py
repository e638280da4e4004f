"""How a link to an agent connects, and what it sends: sockets, hosts, encryption, keys and tokens."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest

from argosy.client import agent_connection
from argosy.client.agent_connection import AgentConnection, AgentLink, AgentReply
from argosy.client.endpoints import Endpoint

OWN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
PLAIN, SECURE = Endpoint("h", 7), Endpoint("h", 443, is_secure=True)


@pytest.mark.parametrize(
    ("endpoint", "tls", "told"),
    [
        (PLAIN, None, ("tcp", "h", 7, None)),
        # Settings for encryption encrypt nothing by themselves.
        (PLAIN, OWN, ("tcp", "h", 7, None)),
        (SECURE, None, ("tcp", "h", 443, "usual")),
        (SECURE, OWN, ("tcp", "h", 443, OWN)),
        (Endpoint(socket="/run/a.sock"), None, ("unix", "/run/a.sock")),
        (Endpoint(socket="/run/a.sock", is_secure=True), OWN, ("unix", "/run/a.sock")),
    ],
)
def test_connections_are_encrypted_if_the_endpoint_is_secure(
    endpoint: Endpoint, tls: Any, told: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, ...]] = []

    async def work() -> AgentConnection:
        loop = asyncio.get_running_loop()

        async def tcp(make: Any, host: str, port: int, *, ssl: Any) -> tuple[None, Any]:
            asked.append(("tcp", host, port, ssl))
            return None, make()

        async def unix(make: Any, path: str) -> tuple[None, Any]:
            asked.append(("unix", path))
            return None, make()

        monkeypatch.setattr(loop, "create_connection", tcp)
        monkeypatch.setattr(loop, "create_unix_connection", unix)
        return await AgentLink(endpoint, tls=tls)._connect()

    monkeypatch.setattr(agent_connection.ssl, "create_default_context", lambda: "usual")
    assert isinstance(asyncio.run(work()), AgentConnection)
    assert asked == [told]


class Kept(AgentConnection):
    """Answers at once, and notes what was asked."""

    def __init__(self, asked: list[bytes], *, stays: bool = True) -> None:
        super().__init__()
        self._asked, self._stays = asked, stays
        self.closed = 0

    @property
    def is_open(self) -> bool:
        return self._stays and not self.closed

    def send(self, data: bytes) -> asyncio.Future[AgentReply]:
        self._asked.append(data)
        answer = asyncio.get_running_loop().create_future()
        answer.set_result(AgentReply(200, b""))
        return answer

    def close(self) -> None:
        self.closed += 1


HOST = b"Host: h:7\r\n"
JSON = b"Content-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("token", "key", "body", "between"),
    [
        ("", "", b"", HOST + b"Content-Length: 0\r\n"),
        ("", "", b"{}", HOST + JSON + b"Content-Length: 2\r\n"),
        ("", "k", b"", HOST + b"Idempotency-Key: k\r\nContent-Length: 0\r\n"),
        (
            "t",
            "k",
            b"{} ",
            HOST + b"Authorization: Bearer t\r\nIdempotency-Key: k\r\n" + JSON
            + b"Content-Length: 3\r\n",
        ),
    ],
)  # fmt: skip
def test_a_request_has_the_headers_that_it_needs_and_no_others(
    token: str, key: str, body: bytes, between: bytes
) -> None:
    asked: list[bytes] = []

    async def work() -> None:
        link = AgentLink(PLAIN, token)
        link._free.append(Kept(asked))
        assert (await link.ask("PUT", "/v1/x", body, key=key)).status == 200

    asyncio.run(work())
    assert asked == [b"PUT /v1/x HTTP/1.1\r\n" + between + b"\r\n" + body]


def test_the_connection_that_was_used_last_is_used_first_and_closed_ones_are_left_out() -> None:
    asked: dict[str, list[bytes]] = {"old": [], "new": [], "closed": []}

    async def work() -> None:
        link = AgentLink(PLAIN)
        link._free.extend([Kept(asked["old"]), Kept(asked["new"])])
        link._free.append(Kept(asked["closed"], stays=False))
        await link.ask("GET", "/")
        await link.ask("GET", "/")
        assert len(link._free) == 2

    asyncio.run(work())
    assert {name: len(sent) for name, sent in asked.items()} == {"old": 0, "new": 2, "closed": 0}


def test_an_ended_link_keeps_no_connection() -> None:
    async def work() -> None:
        link = AgentLink(PLAIN)
        kept, used = Kept([]), Kept([])
        link._free.append(kept)
        link.close()
        assert (kept.closed, len(link._free)) == (1, 0)
        await link._send(used, b"")
        assert (used.closed, len(link._free)) == (1, 0)

    asyncio.run(work())
