"""How a server says that it does not know a version yet."""

from __future__ import annotations

from argosy.kubernetes.meta import ServerStatus, StatusCause, StatusDetails
from argosy.kubernetes.watching import _is_ahead


def test_only_a_version_that_is_too_large_is_ahead_of_the_server() -> None:
    other, ahead = StatusCause(reason="Other"), StatusCause(reason="ResourceVersionTooLarge")
    for causes, expected in (
        ((), False),
        ((other,), False),
        ((ahead,), True),
        ((other, ahead), True),
    ):
        assert _is_ahead(ServerStatus(details=StatusDetails(causes=causes))) == expected
    assert not _is_ahead(ServerStatus())
