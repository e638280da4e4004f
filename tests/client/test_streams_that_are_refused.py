"""Streams that a server refuses or never begins: both clients say so in their own words, in time."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from test_against_scripts import Script, asked, is_beside, reply

from argosy.model.errors import ServerUnreachable

__all__ = ["is_beside"]
PROBLEM = b'{"type":"","title":"","status":404,"detail":"no life","code":"not-found"}'
#: The first half of an answer.
HALF = reply(PROBLEM, 404)[: -len(PROBLEM) // 2]


class Breaking(Script):
    """Hangs up after every answer."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.write(self.answers.pop(0) or b"")
            await writer.drain()
        self.ends += 1
        writer.close()


STREAMS: list[Any] = [
    pytest.param(lambda client: client.journal(9), id="journal"),
    pytest.param(lambda client: client.recording(), id="recording"),
    pytest.param(lambda client: client.events(job_id="j"), id="events"),
    pytest.param(lambda client: client.watch("j"), id="watch"),
]


@pytest.mark.parametrize("ask", STREAMS)
def test_a_refusal_that_breaks_off_is_an_error_of_ours(is_beside: bool, ask: Any) -> None:
    script = Breaking(HALF)
    error = asked(script, ask, is_beside=is_beside, patience=0)
    assert isinstance(error, ServerUnreachable)
    assert " broke off: " in error.problem
    assert error.hint == "it may have been stopped"


@pytest.mark.parametrize("ask", STREAMS)
@pytest.mark.parametrize("begun", [b"", HALF])
def test_a_refusal_that_does_not_come_in_time_is_not_waited_for(
    is_beside: bool, ask: Any, begun: bytes
) -> None:
    error = asked(Script(begun), ask, is_beside=is_beside, patience=0, timeout=0.05)
    assert isinstance(error, ServerUnreachable)
    assert error.problem.endswith(" does not answer in time")
    assert error.hint == "it may be overloaded"


def test_a_refusal_that_broke_off_is_asked_for_again(is_beside: bool) -> None:
    script = Breaking(HALF, reply(PROBLEM, 404))
    error = asked(script, lambda client: client.journal(9), is_beside=is_beside)
    assert (error.problem, error.status) == ("no life", 404)
    assert [head.split()[1] for head in script.heads] == ["/v1/journal?life=9"] * 2
