"""What a command wrote, read from the segments in the directory of its try.

A segment STREAM.OFFSET begins at that position of the stream, so positions stay valid while old
segments are dropped: a reader that follows a stream asks again from where the last part ended.
"""

from __future__ import annotations

import itertools
import os

import msgspec


class OutputPart(msgspec.Struct, frozen=True, gc=False):
    #: Position of the first byte of `data`. Later than asked for if what was there is dropped or lost.
    start: int
    data: bytes

    @property
    def end(self) -> int:
        return self.start + len(self.data)


def segment_starts(directory: str, stream: str) -> list[int]:
    """Where the segments of a stream begin, in order."""
    prefix = f"{stream}."
    try:
        found = os.listdir(directory)
    except FileNotFoundError:
        # Its supervisor has not made it yet.
        return []
    names = (name.removeprefix(prefix) for name in found if name.startswith(prefix))
    return sorted(int(name) for name in names if name.isdigit())


def read_output(directory: str, stream: str, start: int = 0, limit: int = 1 << 20) -> OutputPart:
    """At most `limit` bytes of `stdout`, `stderr` or `output`, from a position on.

    Stops at a gap, which only a full disk leaves, so that `start` is right for all of the bytes.
    """
    position = start
    parts: list[bytes] = []
    taken = 0
    starts = segment_starts(directory, stream)
    for begin, following in itertools.zip_longest(starts, starts[1:]):
        if (following is not None and following <= start) or taken >= limit:
            continue
        if not parts:
            position = max(start, begin)
        elif begin != position + taken:
            break
        try:
            with open(f"{directory}/{stream}.{begin}", "rb") as file:
                file.seek(max(start - begin, 0))
                data = file.read(limit - taken)
        except FileNotFoundError:
            # Dropped meanwhile.
            if parts:
                break
            continue
        if data:
            parts.append(data)
            taken += len(data)
    return OutputPart(position if parts else start, b"".join(parts))
