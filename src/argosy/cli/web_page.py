"""The page of a live cluster, for people at a terminal."""

from __future__ import annotations

import os

from argosy.cli.output import note


def tell_page(url: str) -> None:
    note(f"argosy: the page is at {url}/")


def open_page(url: str) -> None:
    """In a browser if there is a display; otherwise the address has to do."""
    tell_page(url)
    # Without a display, a browser of the terminal would take it over.
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        note("argosy: there is no display to open it on")
        return
    import webbrowser

    if not webbrowser.open(f"{url}/"):
        note("argosy: no browser was found to open it with")
