"""Where the page is, and opening it."""

from __future__ import annotations

import webbrowser

import pytest

from argosy.cli.web_page import open_page, tell_page


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What browsers were asked to open, on a computer without a display."""
    addresses: list[str] = []

    def open_in_browser(url: str) -> bool:
        addresses.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", open_in_browser)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    return addresses


def test_the_address_is_told(opened: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    tell_page("http://h:1")
    assert capsys.readouterr().err == "argosy: the page is at http://h:1/\n"
    assert opened == []


@pytest.mark.parametrize("display", ["DISPLAY", "WAYLAND_DISPLAY"])
def test_a_browser_opens_it_if_there_is_a_display(
    opened: list[str],
    display: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(display, ":0")
    open_page("http://h:1")
    assert opened == ["http://h:1/"]
    assert capsys.readouterr().err == "argosy: the page is at http://h:1/\n"


def test_without_a_display_the_address_has_to_do(
    opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    open_page("http://h:1")
    assert opened == []
    assert capsys.readouterr().err.splitlines() == [
        "argosy: the page is at http://h:1/",
        "argosy: there is no display to open it on",
    ]


def test_without_a_browser_it_says_so(
    opened: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    open_page("http://h:1")
    assert capsys.readouterr().err.endswith("argosy: no browser was found to open it with\n")
