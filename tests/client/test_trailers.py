"""What follows the chunks of a body is not part of the next answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from test_connections import Peer

NEXT = b"HTTP/1.1 404 None\r\nContent-Length: 2\r\n\r\nno"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    made = Peer(tmp_path)
    yield made
    made.connection.close()
    made.socket.close()


@pytest.mark.parametrize(
    ("rest", "body"),
    [
        (b"0\r\n\r\n", b""),
        (b"2\r\nab\r\n0\r\n\r\n", b"ab"),
        (b"2\r\nab\r\n0\r\nA: b\r\n\r\n", b"ab"),
        (b"2\r\nab\r\n0\r\nA: b\r\nC: d\r\nE: f\r\n\r\n", b"ab"),
        (b"2 ; x=y\r\nab\r\n00;z\r\nA: b\r\nC: d\r\n\r\n", b"ab"),
        (b"0a\r\n0123456789\r\nB\r\nabcdefghijk\r\n0\r\n\r\n", b"0123456789abcdefghijk"),
    ],
)
def test_the_next_answer_begins_after_all_trailers(peer: Peer, rest: bytes, body: bytes) -> None:
    response = peer.answer(CHUNKED + rest + NEXT)
    assert (response.read(), response.read_some(), response.will_close) == (body, b"", False)
    following = peer.answer(b"")
    assert (following.status, following.read()) == (404, b"no")


def test_chunks_are_read_as_they_come_and_not_across(peer: Peer) -> None:
    response = peer.answer(CHUNKED + b"3\r\nabc\r\n2\r\nde\r\n0\r\nA: b\r\nC: d\r\n\r\n" + NEXT)
    assert [response.read_some(2) for _ in range(5)] == [b"ab", b"c", b"de", b"", b""]
    assert peer.answer(b"").read() == b"no"
