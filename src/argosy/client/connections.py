"""HTTP/1.1 as the client needs it: one request at a time on a connection, responses of any framing.

The standard library's `http.client` imports parsers of mail and TLS, which would be a quarter of the
time that a short command takes. TLS is imported for servers that want it.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Final

from argosy.api.sockets import short_path
from argosy.client.endpoints import Endpoint

_PIECE: Final = 65_536
#: Bytes of a response's head, and of a line between chunks, at most.
_LARGEST_HEAD: Final = 65_536
_LARGEST_LINE: Final = 4_096
_NO_BODY: Final = frozenset((204, 304))


class BrokenResponse(Exception):
    """What came is not a response, or not all of it."""


class HttpConnection:
    """A connection to a server. After any error it must be closed, and not used again."""

    def __init__(self, endpoint: Endpoint, timeout: float) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._socket: socket.socket | None = None
        self._buffer = bytearray()

    def connect(self) -> None:
        endpoint = self._endpoint
        if endpoint.socket:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(self._timeout)
            with short_path(endpoint.socket) as path:
                self._socket.connect(path)
            return
        self._socket = socket.create_connection((endpoint.host, endpoint.port), self._timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if endpoint.is_secure:
            import ssl

            context = ssl.create_default_context()
            self._socket = context.wrap_socket(self._socket, server_hostname=endpoint.host)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def set_timeout(self, seconds: float | None) -> None:
        assert self._socket is not None
        self._socket.settimeout(seconds)

    def request(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> HttpResponse:
        """Sends a request and reads the head of the response. The body of the one before must have been
        read."""
        assert self._socket is not None
        lines = [f"{method} {target} HTTP/1.1", "Accept-Encoding: identity"]
        lines += (f"{name}: {value}" for name, value in headers.items())
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join(lines)
        if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1:
            raise ValueError("a line break in a request's head")
        self._socket.sendall(head.encode("latin-1") + b"\r\n\r\n" + (body or b""))
        while True:
            response = HttpResponse(self, self.take_until(b"\r\n\r\n", _LARGEST_HEAD))
            # What comes before the answer proper is of no interest.
            if response.status >= 200:
                return response

    def take_until(self, mark: bytes, most: int) -> bytes:
        """What comes before the mark, which is dropped."""
        searched = 0
        while (end := self._buffer.find(mark, searched)) < 0:
            if len(self._buffer) > most:
                raise BrokenResponse("the response is malformed")
            searched = max(0, len(self._buffer) - len(mark) + 1)
            if not self.receive():
                raise BrokenResponse("the connection was closed too early")
        taken = bytes(self._buffer[:end])
        del self._buffer[: end + len(mark)]
        return taken

    def take(self, most: int) -> bytes:
        """At least one byte, unless the connection has ended."""
        if not self._buffer:
            self.receive()
        taken = bytes(self._buffer[:most])
        del self._buffer[:most]
        return taken

    def receive(self) -> bool:
        """Waits for more; false if there is no more to come."""
        assert self._socket is not None
        data = self._socket.recv(_PIECE)
        self._buffer += data
        return bool(data)


class HttpResponse:
    """A response whose body is still to be read: all of it, or as it comes."""

    def __init__(self, connection: HttpConnection, head: bytes) -> None:
        self._connection = connection
        first, *lines = head.decode("latin-1").split("\r\n")
        version, _, rest = first.partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
            raise BrokenResponse("the answer is not HTTP")
        self.status = int(rest[:3])
        #: By name, in lower case.
        self.headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise BrokenResponse("the response is malformed")
            name = name.lower()
            value = value.strip()
            known = self.headers.get(name)
            self.headers[name] = value if known is None else f"{known}, {value}"
        self._is_chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        #: Whether only trailers are left of the chunks.
        self._is_ending = False
        #: Bytes to come: of the body, or of the present chunk; none: until the connection ends.
        self._left = self._length()
        self._is_over = self._left == 0 and not self._is_chunked
        connection_header = self.headers.get("connection", "").lower()
        keeps = version != "HTTP/1.0" and "close" not in connection_header
        #: Whether the connection is of no use when the body has been read.
        self.will_close = not keeps or self._left is None

    def _length(self) -> int | None:
        if self.status in _NO_BODY:
            self._is_chunked = False
            return 0
        if self._is_chunked:
            return 0
        text = self.headers.get("content-length")
        if text is None:
            return None
        if not (text.isascii() and text.isdecimal()):
            raise BrokenResponse("the response is malformed")
        return int(text)

    def read(self) -> bytes:
        """The rest of the body."""
        pieces = bytearray()
        while piece := self.read_some():
            pieces += piece
        return bytes(pieces)

    def read_some(self, most: int = _PIECE) -> bytes:
        """What is there, or comes next; empty at the end. May be called again after a time-out."""
        if self._is_over:
            return b""
        if self._is_chunked and self._left == 0 and not self._begin_chunk():
            return b""
        piece = self._connection.take(most if self._left is None else min(most, self._left))
        if self._left is None:
            self._is_over = not piece
            return piece
        if not piece:
            raise BrokenResponse("the connection was closed too early")
        self._left -= len(piece)
        self._is_over = self._left == 0 and not self._is_chunked
        return piece

    def _begin_chunk(self) -> bool:
        """Reads the size of the next chunk; false if there is none. A time-out leaves all as it is."""
        take = self._connection.take_until
        while not self._is_ending:
            line = take(b"\r\n", _LARGEST_LINE)
            # The chunk before leaves an empty line.
            if line:
                self._left = _chunk_size(line.partition(b";")[0].strip())
                if self._left:
                    return True
                self._is_ending = True
        while take(b"\r\n", _LARGEST_LINE):
            # Trailers.
            continue
        self._is_over = True
        return False


def _chunk_size(digits: bytes) -> int:
    if not digits or digits.strip(b"0123456789abcdefABCDEF"):
        raise BrokenResponse("the response is malformed")
    return int(digits, 16)
