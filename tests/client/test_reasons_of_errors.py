"""Why a server could not be reached, whatever the error says of itself, and when to come again."""

from __future__ import annotations

import pytest

from argosy.client.calls import ServerReply
from argosy.client.endpoints import Endpoint
from argosy.client.flows import _retry_after
from argosy.client.unreachable import broken_off, no_connection

HERE = Endpoint(host="h", port=9)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(5, "broken"), "broken"),
        (OSError("odd"), "odd"),
        (OSError(), "OSError"),
        (EOFError(), "EOFError"),
        (RuntimeError("why"), "why"),
    ],
)
def test_an_error_is_told_by_its_reason_or_its_text_or_its_name(
    error: Exception, reason: str
) -> None:
    assert no_connection(HERE, error).problem == f"http://h:9 cannot be reached: {reason}"
    assert broken_off(HERE, error).problem == f"http://h:9 broke off: {reason}"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0.0),
        ({"retry-after": ""}, 0.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "-7"}, 0.0),
        ({"retry-after": "1.5"}, 0.0),
        ({"retry-after": "\u0663"}, 0.0),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, 0.0),
    ],
)
def test_only_whole_seconds_say_when_to_come_again(headers: dict[str, str], seconds: float) -> None:
    assert _retry_after(ServerReply(503, headers)) == seconds


def test_endpoints_are_shown_as_they_are_given() -> None:
    socket = Endpoint(socket="/run/a.sock")
    assert (str(socket), socket.authority) == ("unix:/run/a.sock", "localhost")
    assert str(Endpoint(host="::1", port=1, is_secure=True)) == "https://[::1]:1"
    assert str(HERE) == "http://h:9"
