"""What to say if a server cannot be reached."""

from __future__ import annotations

import socket
from typing import Final

from argosy.client.endpoints import Endpoint
from argosy.model.errors import ServerUnreachable

_START: Final = "start one with `argosy up`, or name another with --server or ARGOSY_URL"


def no_connection(endpoint: Endpoint, error: BaseException) -> ServerUnreachable:
    """Nothing could be sent."""
    if endpoint.is_secure:
        import ssl

        if isinstance(error, ssl.SSLCertVerificationError):
            return ServerUnreachable(
                f"the certificate of {endpoint} is not trusted: {error.verify_message}",
                hint="SSL_CERT_FILE names a file of certificates to trust",
            )
    hint = _START
    match error:
        case FileNotFoundError() | ConnectionRefusedError():
            return ServerUnreachable(f"no server answers at {endpoint}", hint=hint)
        case PermissionError():
            hint = "it belongs to another user"
        case socket.gaierror():
            hint = "check the host's name"
    return ServerUnreachable(f"{endpoint} cannot be reached: {_reason(error)}", hint=hint)


def broken_off(endpoint: Endpoint, error: BaseException) -> ServerUnreachable:
    """The server was reached, and then lost."""
    if isinstance(error, TimeoutError):
        return ServerUnreachable(f"{endpoint} does not answer in time", hint="it may be overloaded")
    return ServerUnreachable(
        f"{endpoint} broke off: {_reason(error)}", hint="it may have been stopped"
    )


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
