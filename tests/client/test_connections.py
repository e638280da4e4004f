"""The client's HTTP: responses of every framing, and those that are none."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.client.connections import BrokenResponse, HttpConnection, HttpResponse
from argosy.client.endpoints import Endpoint

PATIENCE = 30.0


class Peer:
    """The other end of a connection: sends what it is told to."""

    def __init__(self, directory: Path) -> None:
        path = directory / "peer"
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
            listening.listen()
            self.connection = HttpConnection(Endpoint(socket=str(path)), PATIENCE)
            self.connection.connect()
            self.socket, _ = listening.accept()
        self.socket.settimeout(PATIENCE)

    def answer(self, data: bytes, *, ends: bool = False) -> HttpResponse:
        self.socket.sendall(data)
        if ends:
            self.socket.shutdown(socket.SHUT_WR)
        return self.connection.request("GET", "/", None, {"Host": "here"})


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    made = Peer(tmp_path)
    yield made
    made.connection.close()
    made.socket.close()


def test_a_request_is_what_a_server_expects(peer: Peer) -> None:
    peer.socket.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    peer.connection.request("POST", "/v1/jobs?a=b", b"{}", {"Host": "here", "X": "y"})
    assert peer.socket.recv(1 << 16) == (
        b"POST /v1/jobs?a=b HTTP/1.1\r\nAccept-Encoding: identity\r\nHost: here\r\nX: y\r\n"
        b"Content-Length: 2\r\n\r\n{}"
    )


FRAMINGS = {
    "a length": (b"Content-Length: 11\r\n\r\nhello world", False),
    "chunks": (
        b"Transfer-Encoding: chunked\r\n\r\n6\r\nhello \r\n5;a=b\r\nworld\r\n0\r\n\r\n",
        False,
    ),
    "trailers": (b"Transfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\nA: b\r\n\r\n", False),
    "the end": (b"\r\nhello world", True),
}


class InPieces:
    """A socket that gives a byte at a time."""

    def __init__(self, whole: socket.socket) -> None:
        self._whole = whole

    def recv(self, most: int) -> bytes:
        return self._whole.recv(min(most, 1))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)


@pytest.mark.parametrize("case", FRAMINGS)
def test_a_response_is_read_in_whatever_pieces_it_comes(peer: Peer, case: str) -> None:
    rest, ends = FRAMINGS[case]
    peer.connection._socket = InPieces(peer.connection._socket)  # type: ignore[arg-type, assignment]
    response = peer.answer(b"HTTP/1.1 200 OK\r\nX-One: 1\r\n" + rest, ends=ends)
    assert (response.status, response.headers["x-one"]) == (200, "1")
    assert response.read() == b"hello world"


@pytest.mark.parametrize("case", FRAMINGS)
def test_a_body_is_read_however_its_length_is_told(peer: Peer, case: str) -> None:
    rest, ends = FRAMINGS[case]
    response = peer.answer(b"HTTP/1.1 200 OK\r\nX-One: 1\r\nx-one: 2\r\n" + rest, ends=ends)
    assert response.status == 200
    assert response.headers["x-one"] == "1, 2"
    assert response.read() == b"hello world"
    assert response.read() == b""
    assert response.will_close is ends


@pytest.mark.parametrize("case", FRAMINGS)
def test_a_body_may_come_byte_by_byte(peer: Peer, case: str) -> None:
    rest, ends = FRAMINGS[case]
    data = b"HTTP/1.1 200 OK\r\nServer: x\r\n" + rest

    def dribble() -> None:
        for index in range(len(data)):
            peer.socket.sendall(data[index : index + 1])
        if ends:
            peer.socket.shutdown(socket.SHUT_WR)

    thread = threading.Thread(target=dribble)
    thread.start()
    response = peer.connection.request("GET", "/", None, {})
    assert response.read() == b"hello world"
    thread.join()


def test_a_connection_serves_one_request_after_the_other(peer: Peer) -> None:
    for status, body in ((200, b"one"), (404, b"two")):
        head = b"HTTP/1.1 %d Text\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
        response = peer.answer(head + body)
        assert (response.status, response.read(), response.will_close) == (status, body, False)


@pytest.mark.parametrize("status", [204, 304])
def test_some_answers_have_no_body_whatever_they_say(peer: Peer, status: int) -> None:
    response = peer.answer(b"HTTP/1.1 %d None\r\nContent-Length: 5\r\n\r\n" % status)
    assert response.read() == b""


def test_what_comes_before_the_answer_is_passed_over(peer: Peer) -> None:
    data = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"
    assert peer.answer(data).status == 201


@pytest.mark.parametrize(
    "head", [b"HTTP/1.0 200 OK\r\n", b"HTTP/1.1 200 OK\r\nConnection: Close\r\n"]
)
def test_a_server_that_closes_is_not_asked_again(peer: Peer, head: bytes) -> None:
    assert peer.answer(head + b"Content-Length: 0\r\n\r\n").will_close


def test_a_stream_is_read_as_it_comes_and_waited_for(peer: Peer) -> None:
    response = peer.answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
    assert response.read_some() == b"one"
    peer.connection.set_timeout(0.001)
    with pytest.raises(TimeoutError):
        response.read_some()
    peer.socket.sendall(b"3\r\ntw")
    assert response.read_some() == b"tw"
    peer.socket.sendall(b"o\r\n0\r\n")
    assert response.read_some() == b"o"
    with pytest.raises(TimeoutError):
        response.read_some()
    peer.socket.sendall(b"\r\n")
    assert response.read_some() == b""


def test_without_a_length_a_body_ends_with_the_connection_and_not_with_a_packet(peer: Peer) -> None:
    response = peer.answer(b"HTTP/1.1 200 OK\r\n\r\n")
    for piece in (b"one", b"two", b"e"):
        peer.socket.sendall(piece)
        assert response.read_some(4) == piece
    peer.socket.sendall(b"a whole")
    assert (response.read_some(4), response.read_some(4)) == (b"a wh", b"ole")
    peer.socket.shutdown(socket.SHUT_WR)
    assert (response.read_some(), response.read_some()) == (b"", b"")


BROKEN = {
    "nothing": b"",
    "another protocol": b"SSH-2.0-OpenSSH\r\n\r\n",
    "no status": b"HTTP/1.1 soon\r\n\r\n",
    "a head without end": b"HTTP/1.1 200 OK\r\nA: " + b"b" * 100_000,
    "a head cut short": b"HTTP/1.1 200 OK\r\nA: b\r\n",
    "a header without a name": b"HTTP/1.1 200 OK\r\n: b\r\n\r\n",
    "a folded header": b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a body cut short": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
    "a chunk cut short": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello",
    "chunks without end": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
    "a chunk of no size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\na\r\n",
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_no_whole_response_is_an_error(peer: Peer, case: str) -> None:
    with pytest.raises(BrokenResponse):
        peer.answer(BROKEN[case], ends=True).read()


def test_a_line_break_cannot_become_a_header(peer: Peer) -> None:
    with pytest.raises(ValueError, match="line break"):
        peer.connection.request("GET", "/", None, {"A": "b\r\nC: d"})


def test_commands_start_without_mail_and_tls() -> None:
    wanted = "import argosy.client.synchronous, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", wanted], capture_output=True, text=True, check=True
    )
    assert {"ssl", "email", "http.client", "rich", "asyncio"}.isdisjoint(done.stdout.split())
