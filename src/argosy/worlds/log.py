"""The decision log: JSON lines, one fact a line, in the order in which things happened.

The same seed gives the same bytes on every machine, so lines hold no wall-clock time, no path and no
floating-point number. The digest covers every byte written.
"""

from __future__ import annotations

import hashlib
from typing import Any, BinaryIO

import msgspec

_FLUSH_BYTES = 1 << 16


class DecisionLog:
    """Buffers lines into `stream`; without a stream it only keeps the digest."""

    def __init__(self, stream: BinaryIO | None = None, *, everything: bool = False) -> None:
        self.everything = everything
        self._stream = stream
        self._digest = hashlib.blake2b(digest_size=16)
        self._buffer = bytearray()
        self._encoder = msgspec.json.Encoder()

    def write(self, at: int, what: str, **fields: Any) -> None:
        buffer = self._buffer
        self._encoder.encode_into({"at": at, "what": what, **fields}, buffer, -1)
        buffer += b"\n"
        if len(buffer) > _FLUSH_BYTES:
            self.flush()

    def add_to_digest(self, data: bytes) -> None:
        """Facts kept outside the log, such as task timelines, that the digest should vouch for."""
        self.flush()
        self._digest.update(data)

    def flush(self) -> None:
        self._digest.update(self._buffer)
        if self._stream is not None:
            self._stream.write(self._buffer)
        self._buffer.clear()

    def digest(self) -> str:
        self.flush()
        return self._digest.hexdigest()
