"""Who we are to the API server. Secrets are shown by no repr, log or error."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from argosy.model.errors import ArgosyError

#: How long a token that was read from a file is used before the file is read again. Kubernetes replaces
#: the token of a pod when a fifth of its life, at least ten minutes, is left.
TOKEN_FILE_SECONDS: Final = 60.0
#: How long a plug-in that cannot ask the user anything may take.
PLUGIN_SECONDS: Final = 60.0
EXEC_VERSIONS: Final = (
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
)


class ConnectionSettingsError(ArgosyError):
    """A connection to Kubernetes that cannot be set up as it is described."""

    code = "kubernetes-connection"


class Secret:
    """A text that shows itself only to who asks for it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Secret(...)"

    __str__ = __repr__

    def __reduce__(self) -> Any:
        raise TypeError("secrets are not written anywhere")


class ClientCertificate(msgspec.Struct, frozen=True):
    """PEM texts."""

    certificate: bytes
    key: Secret


class Login(msgspec.Struct, frozen=True):
    """What proves who we are, for one request. The certificate is used for new connections."""

    authorization: Secret | None = None
    certificate: ClientCertificate | None = None


class Credentials(Protocol):
    async def login(self) -> Login: ...

    def refused(self) -> None:
        """The server did not accept the last login: a cached one is not used again."""


class FixedCredentials:
    """A token, a user and password, a certificate, or nothing: as written in a configuration."""

    def __init__(self, login: Login) -> None:
        self._login = login

    async def login(self) -> Login:
        return self._login

    def refused(self) -> None:
        """Nothing can be got anew."""


def bearer(token: str) -> Secret:
    return Secret(f"Bearer {token}")


def basic(user: str, password: Secret) -> Secret:
    pair = f"{user}:{password.reveal()}".encode()
    return Secret(f"Basic {base64.b64encode(pair).decode('ascii')}")


class RotatedToken:
    """A token that others replace in its file from time to time.

    If the file cannot be read any more, the last token is used on: it may be valid for a while.
    """

    def __init__(
        self,
        path: Path,
        *,
        fallback: Secret | None = None,
        certificate: ClientCertificate | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._certificate = certificate
        self._clock = clock
        self._token = fallback
        self._fresh_until = float("-inf")

    async def login(self) -> Login:
        if self._clock() >= self._fresh_until:
            self._read()
        assert self._token is not None
        return Login(bearer(self._token.reveal()), self._certificate)

    def refused(self) -> None:
        self._fresh_until = float("-inf")

    def _read(self) -> None:
        problem = "is empty"
        try:
            if token := self._path.read_text("utf-8").strip():
                self._token = Secret(token)
                self._fresh_until = self._clock() + TOKEN_FILE_SECONDS
                return
        except (OSError, UnicodeDecodeError) as error:
            problem = f"cannot be read: {reason_of(error)}"
        if self._token is None:
            raise ConnectionSettingsError(
                f"the token {problem}", file=str(self._path), expected="a bearer token"
            )


class PluginCommand(msgspec.Struct, frozen=True):
    """The `exec` part of a user in a kubeconfig."""

    command: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, Secret] = msgspec.field(default_factory=dict)
    api_version: str = EXEC_VERSIONS[0]
    interactive_mode: str = "IfAvailable"
    install_hint: str = ""
    #: What the plug-in is told about the cluster, if it asked for it.
    cluster: Mapping[str, Any] | None = None
    #: File and field of the configuration, for errors.
    file: str = ""
    field: str = ""


class _Issued(msgspec.Struct, frozen=True, rename="camel"):
    """The status of an `ExecCredential`."""

    expiration_timestamp: datetime | None = None
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Issued | None = None


class PluginCredentials:
    """Credentials that a program issues, kept until they expire or are refused."""

    def __init__(
        self,
        plugin: PluginCommand,
        *,
        certificate: ClientCertificate | None = None,
        clock: Callable[[], float] = time.time,
        has_terminal: Callable[[], bool] = lambda: sys.stdin is not None and sys.stdin.isatty(),
    ) -> None:
        self._plugin = plugin
        self._certificate = certificate
        self._clock = clock
        self._has_terminal = has_terminal
        self._login: Login | None = None
        self._expires = float("inf")
        self._one_at_a_time = asyncio.Lock()

    async def login(self) -> Login:
        async with self._one_at_a_time:
            if self._login is None or self._clock() >= self._expires:
                self._login, self._expires = await self._issue()
            return self._login

    def refused(self) -> None:
        self._login = None

    async def _issue(self) -> tuple[Login, float]:
        interactive = self._is_interactive()
        about: dict[str, Any] = {"interactive": interactive}
        if self._plugin.cluster is not None:
            about["cluster"] = dict(self._plugin.cluster)
        info = {"apiVersion": self._plugin.api_version, "kind": "ExecCredential", "spec": about}
        environment = {
            **os.environ,
            **{name: value.reveal() for name, value in self._plugin.environment.items()},
            "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode(),
        }
        output = await self._run(
            [self._plugin.command, *self._plugin.arguments], environment, interactive
        )
        return self._read(output)

    def _is_interactive(self) -> bool:
        match self._plugin.interactive_mode:
            case "Never":
                return False
            case "Always" if not self._has_terminal():
                raise self._error(
                    "the credential plug-in must ask the user, and there is no terminal",
                    hint="run it once in a terminal, or use another user of the kubeconfig",
                )
        return self._has_terminal()

    async def _run(
        self, command: Sequence[str], environment: Mapping[str, str], interactive: bool
    ) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                env=environment,
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
            )
        except OSError as error:
            raise self._error(
                f"cannot run the credential plug-in '{command[0]}': {reason_of(error)}",
                hint=self._plugin.install_hint or None,
            ) from None
        try:
            async with asyncio.timeout(None if interactive else PLUGIN_SECONDS):
                output, _ = await process.communicate()
        except TimeoutError:
            raise self._error(
                f"the credential plug-in '{command[0]}' did not answer in {PLUGIN_SECONDS:.0f} s"
            ) from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            raise self._error(
                f"the credential plug-in '{command[0]}' failed with exit code {process.returncode}"
            )
        return output

    def _read(self, output: bytes) -> tuple[Login, float]:
        try:
            answer = msgspec.json.decode(output, type=_ExecCredential)
        except msgspec.DecodeError:
            raise self._error(
                f"the credential plug-in '{self._plugin.command}' wrote something else",
                expected="an ExecCredential as JSON",
            ) from None
        if answer.kind != "ExecCredential" or answer.api_version != self._plugin.api_version:
            raise self._error(
                f"the credential plug-in '{self._plugin.command}' speaks another version",
                expected=f"an ExecCredential of {self._plugin.api_version}",
            )
        status = answer.status
        if status is None or not (status.token or status.client_certificate_data):
            raise self._error(
                f"the credential plug-in '{self._plugin.command}' issued nothing",
                expected="a token or a client certificate",
            )
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._error(
                f"the credential plug-in '{self._plugin.command}' issued half a certificate",
                expected="clientCertificateData and clientKeyData",
            )
        certificate = self._certificate
        if status.client_certificate_data:
            certificate = ClientCertificate(
                status.client_certificate_data.encode(), Secret(status.client_key_data)
            )
        login = Login(bearer(status.token) if status.token else None, certificate)
        expires = status.expiration_timestamp
        return login, expires.timestamp() if expires is not None else float("inf")

    def _error(
        self, problem: str, *, expected: str | None = None, hint: str | None = None
    ) -> ConnectionSettingsError:
        return ConnectionSettingsError(
            problem,
            file=self._plugin.file or None,
            field=self._plugin.field or None,
            expected=expected,
            hint=hint,
        )


def reason_of(error: Exception) -> str:
    """Why the operating system refused, without the path, which the message has already."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return "not a text in UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
