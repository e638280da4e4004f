"""The page of a live cluster: files that a browser runs, which ask the API for all that they show.

Anybody who can connect gets the files, because nothing about the cluster is in them; what the API tells
needs a token as ever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from http import HTTPStatus
from importlib.resources import files
from typing import Final, NamedTuple

from aiohttp import web

from argosy.service.backend import etag, is_seen

_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
#: The page runs nothing but its own files, and no text of a cluster can become part of them.
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # A browser asks each time whether its copy is the newest: a server may be replaced by a newer one.
    "Cache-Control": "no-cache",
}


class PageFile(NamedTuple):
    body: bytes
    media_type: str
    etag: str


class WebPage:
    """The files, read once."""

    def __init__(self) -> None:
        self._files = dict(_read())

    @property
    def paths(self) -> Iterable[str]:
        return self._files.keys()

    async def file(self, request: web.Request) -> web.Response:
        found = self._files[request.path]
        headers = {**_HEADERS, "ETag": found.etag}
        if is_seen(request.headers.get("If-None-Match"), found.etag):
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        return web.Response(body=found.body, headers={**headers, "Content-Type": found.media_type})


def _read() -> Iterable[tuple[str, PageFile]]:
    for file in files("argosy.service").joinpath("web").iterdir():
        ending = file.name.rpartition(".")[2]
        if ending in _TYPES:
            body = file.read_bytes()
            tag = etag(hashlib.sha256(body).hexdigest()[:16])
            path = "/" if file.name == "index.html" else f"/page/{file.name}"
            yield path, PageFile(body, _TYPES[ending], tag)
