"""Client certificates and proxies, in front of a real API server."""

from __future__ import annotations

import asyncio
import base64
import shutil
import ssl
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
import yaml
from kube_cases import Plane, asynchronous

from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.connection import Connection, TlsSettings
from argosy.kubernetes.credentials import (
    ClientCertificate,
    ConnectionSettingsError,
    FixedCredentials,
    Login,
    Secret,
)
from argosy.kubernetes.failures import KubernetesUnreachable
from argosy.kubernetes.kinds import NODES
from argosy.kubernetes.kubeconfig import load_connection
from argosy.kubernetes.requests import RequestSettings


def openssl(directory: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and a certificate of an administrator signed by it."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    directory = tmp_path_factory.mktemp("certificates")
    new = ("req", "-newkey", "rsa:2048", "-nodes")
    openssl(directory, *new, "-x509", "-subj=/CN=authority", "-keyout=ca.key", "-out=ca.crt")
    openssl(directory, *new, "-subj=/O=system:masters/CN=jane", "-keyout=jane.key", "-out=jane.csr")
    signed = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out", "jane.crt")
    openssl(directory, "x509", "-req", "-in", "jane.csr", *signed)
    return directory


def data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def test_a_client_certificate_is_a_login(
    start_control_plane: Callable[..., Plane], certificates: Path, tmp_path: Path
) -> None:
    plane = start_control_plane(
        kwok=False, apiserver_flags=(f"--client-ca-file={certificates / 'ca.crt'}",)
    )
    config = yaml.safe_load(plane.kubeconfig.read_text())
    key, certificate = certificates / "jane.key", certificates / "jane.crt"
    (user,) = config["users"]

    @asynchronous
    async def use(file: Path) -> None:
        async with KubernetesClient(load_connection(file)) as client:
            assert (await client.list_all(NODES)).items == ()

    for part in (
        {"client-certificate-data": data(certificate), "client-key-data": data(key)},
        {"client-certificate": str(certificate), "client-key": str(key)},
    ):
        user["user"] = part
        file = tmp_path / "config"
        file.write_text(yaml.safe_dump(config))
        use(file)


def test_a_key_that_does_not_fit_is_named_without_being_shown(
    control_plane: Plane, certificates: Path
) -> None:
    connection = load_connection(control_plane.kubeconfig)
    certificate = (certificates / "jane.crt").read_bytes()
    for key in ((certificates / "ca.key").read_text(), "swordfish"):
        with pytest.raises(ConnectionSettingsError, match="do not belong together") as caught:
            connection.ssl_context(ClientCertificate(certificate, Secret(key)))
        assert key not in str(caught.value)
        assert "client-certificate" in str(caught.value)
    broken = msgspec.structs.replace(
        connection, tls=msgspec.structs.replace(connection.tls, authority=b"swordfish")
    )
    with pytest.raises(ConnectionSettingsError, match="the certificate authority is broken"):
        broken.ssl_context(None)


def test_certificates_are_judged_as_by_clients_in_go(monkeypatch: pytest.MonkeyPatch) -> None:
    def strict(**given: Any) -> ssl.SSLContext:
        context = make_default(**given)
        # As in newer versions of Python.
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    make_default = ssl.create_default_context
    monkeypatch.setattr(ssl, "create_default_context", strict)
    connection = Connection(server="https://localhost", credentials=FixedCredentials(Login()))
    context = connection.ssl_context(None)
    assert context is not None
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.verify_flags & ssl.VERIFY_X509_PARTIAL_CHAIN
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)
    careless = msgspec.structs.replace(connection, tls=TlsSettings(is_insecure=True))
    context = careless.ssl_context(None)
    assert context is not None
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_NONE)
    plain = msgspec.structs.replace(connection, server="http://localhost")
    assert plain.ssl_context(None) is None


class TunnelProxy:
    """A proxy that connects through (CONNECT), or refuses to."""

    def __init__(self, status: int = 200) -> None:
        self._status = status
        self.asked: list[str] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, target, _ = head.split(" ", 2)
        self.asked.append(f"{method} {target}")
        writer.write(f"HTTP/1.1 {self._status} x\r\n\r\n".encode())
        if self._status == 200:
            host, port = target.rsplit(":", 1)
            with suppress(ConnectionError):
                inward, outward = await asyncio.open_connection(host, int(port))
                await asyncio.gather(self._pump(reader, outward), self._pump(inward, writer))
        writer.close()

    @staticmethod
    async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while piece := await source.read(65536):
                target.write(piece)
                await target.drain()
        target.close()


def through(plane: Plane, proxy: TunnelProxy) -> Any:
    connection = load_connection(plane.kubeconfig)
    return msgspec.structs.replace(connection, proxy=f"http://127.0.0.1:{proxy.port}")


@asynchronous
async def test_a_proxy_is_asked_to_connect_through(control_plane: Plane) -> None:
    async with TunnelProxy() as proxy:
        connection = through(control_plane, proxy)
        async with KubernetesClient(connection) as client:
            assert (await client.version()).major == "1"
        assert proxy.asked == [f"CONNECT {connection.server.removeprefix('https://')}"]


@asynchronous
async def test_a_proxy_that_refuses_or_is_away_is_named(control_plane: Plane) -> None:
    settings = RequestSettings(patience=0.0)
    async with (
        TunnelProxy(status=403) as proxy,
        KubernetesClient(through(control_plane, proxy), settings) as client,
    ):
        with pytest.raises(KubernetesUnreachable, match="the proxy answered 403") as caught:
            await client.bind("default", "a", "n1")
        assert not caught.value.may_have_happened
    async with KubernetesClient(through(control_plane, proxy), settings) as client:
        with pytest.raises(KubernetesUnreachable, match="no connection to the proxy"):
            await client.version()
