"""How to reach an API server: address, TLS, proxy and credentials; and those of a pod in the cluster."""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from argosy.kubernetes.credentials import (
    ClientCertificate,
    ConnectionSettingsError,
    Credentials,
    RotatedToken,
    reason_of,
)

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_USUAL_PORTS: Final = {"http": 80, "https": 443}


class TlsSettings(msgspec.Struct, frozen=True):
    #: PEM text; None for what the operating system trusts.
    authority: bytes | None = None
    #: The name that the server's certificate has, if it is not that of the address.
    server_name: str | None = None
    is_insecure: bool = False
    #: File and field of the configuration, for errors.
    authority_place: tuple[str, str] = ("", "")
    certificate_place: tuple[str, str] = ("", "")


class Connection(msgspec.Struct, frozen=True):
    """Settings of a connection."""

    server: str
    credentials: Credentials
    #: The namespace of requests that do not say one.
    namespace: str = "default"
    tls: TlsSettings = TlsSettings()
    proxy: str | None = None
    #: Whether to ask for compressed answers. Servers on this machine are never asked for them.
    compresses: bool = True
    #: Sent with every request, such as whom we impersonate.
    headers: tuple[tuple[str, str], ...] = ()
    #: The kubeconfig's context, or where else this is from.
    origin: str = ""

    def __repr__(self) -> str:
        return f"<connection to {self.server}{f' ({self.origin})' if self.origin else ''}>"

    def ssl_context(self, certificate: ClientCertificate | None) -> ssl.SSLContext | None:
        """None if the server is addressed without TLS."""
        if urlsplit(self.server).scheme != "https":
            return None
        context = self._verifying_context()
        if certificate is not None:
            file, field = self.tls.certificate_place
            key = certificate.key.reveal().encode()
            with _as_file(certificate.certificate) as chain_file, _as_file(key) as key_file:
                try:
                    # Without a password OpenSSL would ask at the terminal.
                    context.load_cert_chain(chain_file, key_file, password="")
                except (ssl.SSLError, ValueError):
                    raise ConnectionSettingsError(
                        "the client certificate and its key do not belong together or are broken",
                        file=file or None,
                        field=field or None,
                        expected="PEM, and a key without a password",
                    ) from None
        return context

    def _verifying_context(self) -> ssl.SSLContext:
        file, field = self.tls.authority_place
        try:
            authority = self.tls.authority
            context = ssl.create_default_context(
                cadata=authority.decode("ascii") if authority is not None else None
            )
        except (ssl.SSLError, ValueError):
            raise ConnectionSettingsError(
                "the certificate authority is broken",
                file=file or None,
                field=field or None,
                expected="PEM",
            ) from None
        # As Go has it: what is trusted may be an intermediate, and need not have all extensions.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self.tls.is_insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def connection_in_cluster(
    environment: Mapping[str, str] | None = None, account: Path = SERVICE_ACCOUNT
) -> Connection:
    """The connection of a pod with a service account. Its token is read again as it is replaced."""
    environment = os.environ if environment is None else environment
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ConnectionSettingsError(
            "not in a pod of a cluster",
            expected="KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT in the environment",
        )
    token = account / "token"
    if not token.exists():
        raise ConnectionSettingsError(
            "the pod has no service account token",
            file=str(token),
            hint="set automountServiceAccountToken to true",
        )
    namespace = account / "namespace"
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return Connection(
        server=server,
        credentials=RotatedToken(token),
        namespace=read_setting(namespace, "").decode().strip() if namespace.exists() else "default",
        tls=TlsSettings(
            authority=read_setting(account / "ca.crt", ""),
            authority_place=(str(account / "ca.crt"), ""),
        ),
        proxy=proxy_for(server, environment),
        origin="service account",
    )


def read_setting(path: Path, field: str, configuration: str = "") -> bytes:
    """The content of a file that a configuration names."""
    try:
        return path.read_bytes()
    except OSError as error:
        if configuration:
            problem = f"'{path}' cannot be read: {reason_of(error)}"
            raise ConnectionSettingsError(problem, file=configuration, field=field) from None
        raise ConnectionSettingsError(
            f"cannot be read: {reason_of(error)}", file=str(path)
        ) from None


def proxy_for(server: str, environment: Mapping[str, str]) -> str | None:
    """The proxy that the environment asks for, by the rules of Go's programs: HTTPS_PROXY or HTTP_PROXY
    by the server's scheme, and NO_PROXY with names, domains, addresses and networks."""
    parts = urlsplit(server)
    scheme, host = parts.scheme, parts.hostname or ""
    port = parts.port if parts.port is not None else _USUAL_PORTS.get(scheme)
    names = (f"{scheme}_proxy".upper(), f"{scheme}_proxy")
    proxy = next((environment[name] for name in names if environment.get(name)), "")
    if not proxy or _is_direct(
        host, port, environment.get("NO_PROXY") or environment.get("no_proxy", "")
    ):
        return None
    return checked_proxy(proxy if "://" in proxy else f"http://{proxy}", field=names[0])


def checked_proxy(proxy: str, *, field: str, file: str | None = None) -> str:
    if urlsplit(proxy).scheme not in ("http", "https") or not urlsplit(proxy).hostname:
        raise ConnectionSettingsError(
            "cannot use this proxy",
            file=file,
            field=field,
            expected="http://HOST:PORT or https://HOST:PORT",
        )
    return proxy


def _is_direct(host: str, port: int | None, exceptions: str) -> bool:
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    for entry in (each.strip().lower() for each in exceptions.split(",")):
        if entry == "*":
            return True
        if address is not None:
            try:
                if address in ipaddress.ip_network(entry, strict=False):
                    return True
            except ValueError:
                pass
        name, colon, its_port = entry.rpartition(":")
        if colon and its_port.isdecimal() and ":" not in name:
            if int(its_port) != port:
                continue
            entry = name
        domain = entry.removeprefix("*").removeprefix(".")
        if host == entry or (domain and host.endswith(f".{domain}")):
            return True
    return False


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path in memory: OpenSSL reads keys from files only, and a key does not belong on a disk."""
    descriptor = os.memfd_create("argosy", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
