"""Where the server is, and with which token it is spoken to.

Imports what reads URLs and files only when there are some: most commands are for a socket, and start
sooner.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from argosy.api.sockets import PORT, SOCKET
from argosy.model.errors import CommandError, excerpt

if TYPE_CHECKING:
    from pathlib import Path

_FORMS: Final = "http://HOST:PORT, https://HOST:PORT or unix:/PATH/TO/argosy.sock"


class Endpoint(msgspec.Struct, frozen=True):
    """A server's address: a Unix socket, or a host and a port."""

    host: str = "localhost"
    port: int = 0
    is_secure: bool = False
    #: The path of a Unix socket; empty: TCP.
    socket: str = ""

    def __str__(self) -> str:
        if self.socket:
            return f"unix:{self.socket}"
        return f"{'https' if self.is_secure else 'http'}://{self.authority}"

    @property
    def authority(self) -> str:
        """What goes into the header `Host`."""
        if self.socket:
            return self.host
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def state_directory(
    given: str | os.PathLike[str] | None = None, environ: Mapping[str, str] = os.environ
) -> Path:
    """The directory of the cluster on this computer."""
    from pathlib import Path

    return Path(_state_directory(given, environ))


def _state_directory(given: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> str:
    if given is not None:
        return os.fspath(given)
    if environ.get("ARGOSY_DIR"):
        return environ["ARGOSY_DIR"]
    base = environ.get("XDG_STATE_HOME", "")
    # The specification has relative paths ignored.
    root = base if base.startswith("/") else os.path.expanduser("~/.local/state")
    return os.path.join(root, "argosy")


def find_endpoint(
    server: str | None = None,
    directory: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Endpoint:
    """The server at this URL, or that of this directory; without either, what the environment says."""
    if server is not None and directory is not None:
        raise CommandError("both a server and a directory", expected="one of them or neither")
    if server is not None:
        return parse_endpoint(server, "the server's URL")
    if directory is None and environ.get("ARGOSY_URL"):
        return parse_endpoint(environ["ARGOSY_URL"], "ARGOSY_URL")
    return Endpoint(socket=os.path.join(_state_directory(directory, environ), SOCKET))


def parse_endpoint(text: str, what: str) -> Endpoint:
    scheme, _, rest = text.partition(":")
    if scheme == "unix":
        # Both unix:/path and unix:///path are common.
        path = rest[2:] if rest.startswith("//") else rest
        if path:
            return Endpoint(socket=path)
    elif scheme in ("http", "https"):
        from urllib.parse import urlsplit

        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        else:
            if parts.path.strip("/") or parts.query or parts.fragment or parts.username:
                host = None
        if host:
            usual = 443 if scheme == "https" else PORT
            return Endpoint(host, port if port is not None else usual, scheme == "https")
    raise CommandError(f"{what} is {excerpt(text)}", expected=_FORMS)


def find_token(
    token: str | None = None,
    file: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> str:
    """The token given, in the file, or in the environment; empty if there is none."""
    where = "the token"
    if token is None and file is not None:
        where = f"the token in {os.fspath(file)}"
        try:
            with open(file, encoding="utf-8") as opened:
                token = opened.read()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise CommandError(f"{where} cannot be read: {why}") from None
    if token is None:
        where, token = "ARGOSY_TOKEN", environ.get("ARGOSY_TOKEN", "")
    token = token.strip()
    if not (token.isascii() and token.isprintable()) or " " in token:
        # Never quoted: it is a secret.
        raise CommandError(f"{where} has characters that no token has", expected="one line of text")
    return token
