"""Whose token counts, and which names stand for this computer."""

from __future__ import annotations

import pytest

from argosy.service.callers import Callers, TokenTable
from argosy.service.guard import _host_name, _is_loopback, _place
from argosy.service.problems import RequestError

FIRST, SECOND = "first-" * 4, "second-" * 4


def table(name: str, token: str) -> TokenTable:
    return TokenTable(name=name, token=token)


@pytest.mark.parametrize(
    ("token", "tables", "needed"),
    [
        (None, (), False),
        (FIRST, (), True),
        (None, (table("a", SECOND),), True),
        (FIRST, (table("a", SECOND),), True),
    ],
)
def test_a_token_is_needed_if_there_is_any(
    token: str | None, tables: tuple[TokenTable, ...], needed: bool
) -> None:
    callers = Callers(token, tables)
    assert callers.need_token is needed
    assert (callers.local.name, callers.local.table.scope) == ("local", "operate")


def test_the_operators_token_is_the_operators_even_if_somebody_has_the_same() -> None:
    callers = Callers(FIRST, (table("a", FIRST), table("b", SECOND)))
    found = callers.of(f"Bearer {FIRST}")
    assert (found.name, found.table.scope) == ("operator", "operate")
    assert callers.of(f"bearer  {SECOND} ").name == "b"
    # The same caller each time, with what is left of its limits.
    assert callers.of(f"Bearer {SECOND}") is callers.of(f"BEARER {SECOND}")


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("", "missing token"),
        ("Bearer", "missing token"),
        ("Bearer wrong", "wrong token"),
        (f"Basic {FIRST}", "wrong token"),
        (FIRST, "missing token"),
    ],
)
def test_a_header_without_a_known_token_is_refused(header: str, problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        Callers(FIRST).of(header)


@pytest.mark.parametrize(
    ("name", "is_loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.8.7", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("0.0.0.0", False),
        ("::", False),
        ("fe80::1", False),
        ("localhost", False),
        ("evil.localhost", False),
        ("127.0.0.1.evil.org", False),
        ("", False),
    ],
)
def test_only_addresses_of_this_computer_are_loopback(name: str, is_loopback: bool) -> None:
    assert _is_loopback(name) is is_loopback
    assert _is_loopback(name) is is_loopback


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost:7464", "localhost"),
        ("LOCALHOST", "localhost"),
        ("[::1]:7464", "::1"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1", ""),
        ("", ""),
    ],
)
def test_the_name_of_a_host_is_without_its_port(host: str, name: str) -> None:
    assert _host_name(host) == name


@pytest.mark.parametrize(
    ("origin", "place"),
    [
        ("http://h:1", "h:1"),
        ("https://h", "h"),
        ("http://h:1/path", "h:1"),
        ("null", ""),
        ("http://[::1", None),
    ],
)
def test_an_origin_is_at_a_host_and_a_port(origin: str, place: str | None) -> None:
    assert _place(origin) == place
