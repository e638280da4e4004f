"""How a connection checks its server and shows its own certificate."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import msgspec
import pytest

from argosy.kubernetes.connection import Connection, TlsSettings
from argosy.kubernetes.credentials import (
    ClientCertificate,
    ConnectionSettingsError,
    FixedCredentials,
    Login,
    Secret,
)

CERTIFICATE = ClientCertificate(b"chain", Secret("key"))


def connection(server: str = "https://h", **tls: Any) -> Connection:
    return Connection(server, FixedCredentials(Login()), tls=TlsSettings(**tls))


class Context:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.loaded: list[tuple[bytes, bytes, str]] = []
        self.paths: list[str] = []

    def load_cert_chain(self, chain: str, key: str, password: str) -> None:
        self.paths += [chain, key]
        self.loaded.append((Path(chain).read_bytes(), Path(key).read_bytes(), password))
        if self.error is not None:
            raise self.error


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Context:
    made = Context()
    monkeypatch.setattr(Connection, "_verifying_context", lambda self: made)
    return made


def test_a_certificate_is_shown_where_there_is_one(context: Context) -> None:
    assert connection().ssl_context(None) is context  # type: ignore[comparison-overlap]
    assert context.loaded == []
    assert connection().ssl_context(CERTIFICATE) is context  # type: ignore[comparison-overlap]
    # Without a password OpenSSL would ask for one.
    assert context.loaded == [(b"chain", b"key", "")]
    assert not any(Path(each).exists() for each in context.paths), "nothing is left of the key"
    assert connection("http://h").ssl_context(CERTIFICATE) is None
    assert len(context.loaded) == 1


@pytest.mark.parametrize("error", [ssl.SSLError("odd"), ValueError("odd")])
def test_a_certificate_that_cannot_be_used_is_told_by_its_place(
    context: Context, error: Exception
) -> None:
    context.error = error
    said = (
        "the client certificate and its key do not belong together or are broken; expected PEM, and"
        " a key without a password"
    )
    for place, expected in (
        (("/config", "users[u].user.client-certificate"), "/config: users[u].user.client-certificate: "),
        (("", ""), ""),
    ):  # fmt: skip
        with pytest.raises(ConnectionSettingsError) as caught:
            connection(certificate_place=place).ssl_context(CERTIFICATE)
        assert str(caught.value) == expected + said
        assert caught.value.file == (place[0] or None)
    context.error = OSError("something else")
    with pytest.raises(OSError, match="something else"):
        connection().ssl_context(CERTIFICATE)


@pytest.mark.parametrize("authority", [b"\xff", b"no certificate"])
def test_an_authority_that_is_broken_is_told_by_its_place(authority: bytes) -> None:
    for place, expected in ((("/config", "a"), "/config: a: "), (("", ""), "")):
        with pytest.raises(ConnectionSettingsError) as caught:
            connection(authority=authority, authority_place=place).ssl_context(None)
        said = "the certificate authority is broken; expected PEM"
        assert str(caught.value) == expected + said


def test_a_server_is_checked_unless_somebody_says_otherwise() -> None:
    made = connection().ssl_context(None)
    assert made is not None
    assert (made.check_hostname, made.verify_mode) == (True, ssl.CERT_REQUIRED)
    assert made.verify_flags & ssl.VERIFY_X509_PARTIAL_CHAIN
    assert not made.verify_flags & ssl.VERIFY_X509_STRICT
    assert made.get_ca_certs() == ssl.create_default_context().get_ca_certs()
    made = connection(is_insecure=True).ssl_context(None)
    assert made is not None
    assert (made.check_hostname, made.verify_mode) == (False, ssl.CERT_NONE)


def test_only_the_authority_that_is_given_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []
    create = ssl.create_default_context

    def recorded(cadata: str | None) -> ssl.SSLContext:
        asked.append(cadata)
        return create()

    monkeypatch.setattr("argosy.kubernetes.connection.ssl.create_default_context", recorded)
    connection(authority=b"PEM").ssl_context(None)
    connection().ssl_context(None)
    assert asked == ["PEM", None]
    assert msgspec.structs.asdict(TlsSettings()) == {
        "authority": None,
        "server_name": None,
        "is_insecure": False,
        "authority_place": ("", ""),
        "certificate_place": ("", ""),
    }
