"""Kubeconfig files: several are merged as kubectl does, and a context of them becomes a connection."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from argosy.kubernetes.connection import (
    SERVICE_ACCOUNT,
    Connection,
    TlsSettings,
    checked_proxy,
    connection_in_cluster,
    proxy_for,
    read_setting,
)
from argosy.kubernetes.credentials import (
    EXEC_VERSIONS,
    ClientCertificate,
    ConnectionSettingsError,
    Credentials,
    FixedCredentials,
    Login,
    PluginCommand,
    PluginCredentials,
    RotatedToken,
    Secret,
    basic,
    bearer,
    reason_of,
)
from argosy.kubernetes.kinds import without_nulls
from argosy.model.errors import MissingExtra

#: What the name of a header may have besides letters and digits.
_HEADER_CHARACTERS: Final = "!#$&'*+-.^_`|~"


class _Spelled(msgspec.Struct, frozen=True, rename="kebab"):
    """A part of a kubeconfig file."""


class _Extension(_Spelled, frozen=True):
    name: str = ""
    extension: Any = None


class _Cluster(_Spelled, frozen=True):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: tuple[_Extension, ...] = ()


class _Variable(_Spelled, frozen=True):
    name: str
    value: Secret


class _Exec(msgspec.Struct, frozen=True, rename="camel"):
    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[_Variable, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class _User(_Spelled, frozen=True):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: Secret = Secret("")
    token: Secret = Secret("")
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: Secret = Secret("")
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    auth_provider: dict[str, Any] | None = None
    exec: _Exec | None = None


class _Context(_Spelled, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(_Spelled, frozen=True):
    name: str
    cluster: _Cluster = _Cluster()


class _NamedUser(_Spelled, frozen=True):
    name: str
    user: _User = _User()


class _NamedContext(_Spelled, frozen=True):
    name: str
    context: _Context = _Context()


class _Kubeconfig(_Spelled, frozen=True):
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()
    current_context: str = ""


class _HasName(Protocol):
    @property
    def name(self) -> str: ...


Entry = TypeVar("Entry", bound=_HasName)


class _Place(NamedTuple):
    """Where in which file an entry stands."""

    file: Path
    field: str

    def error(
        self, problem: str, field: str = "", *, expected: str | None = None, hint: str | None = None
    ) -> ConnectionSettingsError:
        return ConnectionSettingsError(
            problem, file=str(self.file), field=self.within(field), expected=expected, hint=hint
        )

    def within(self, field: str) -> str:
        return f"{self.field}.{field}" if field else self.field

    def path(self, name: str) -> Path:
        """A path in a file is relative to the file."""
        return self.file.parent / name

    def content(self, field: str, name: str, data: str) -> bytes | None:
        """What stands in the configuration itself goes before the file that it names."""
        if data:
            try:
                return base64.b64decode(data, validate=False)
            except (binascii.Error, ValueError):
                raise self.error("is broken", f"{field}-data", expected="base64") from None
        if name:
            return read_setting(self.path(name), self.within(field), str(self.file))
        return None


class Kubeconfig:
    """Merged files: the first that has an entry of a name, or a current context, decides."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._clusters: dict[str, tuple[_Cluster, _Place]] = {}
        self._users: dict[str, tuple[_User, _Place]] = {}
        self._contexts: dict[str, tuple[_Context, _Place]] = {}
        self.current_context = ""
        self.files = [file for file in files if file.exists()]
        for file in self.files:
            self._merge(file, _read(file))

    def __repr__(self) -> str:
        return f"<kubeconfig of {', '.join(map(str, self.files)) or 'no file'}>"

    @property
    def contexts(self) -> list[str]:
        return sorted(self._contexts)

    def _merge(self, file: Path, config: _Kubeconfig) -> None:
        self.current_context = self.current_context or config.current_context
        for cluster, place in _placed(file, "clusters", "cluster", config.clusters):
            self._clusters.setdefault(cluster.name, (cluster.cluster, place))
        for user, place in _placed(file, "users", "user", config.users):
            self._users.setdefault(user.name, (user.user, place))
        for context, place in _placed(file, "contexts", "context", config.contexts):
            self._contexts.setdefault(context.name, (context.context, place))

    def connection(
        self, context: str | None = None, environment: Mapping[str, str] | None = None
    ) -> Connection:
        """The connection of a context, by default of the current one."""
        environment = os.environ if environment is None else environment
        name = context or self.current_context
        files = ":".join(map(str, self.files)) or None
        expected = f"one of {', '.join(self.contexts)}" if self._contexts else None
        if not name:
            raise ConnectionSettingsError(
                "no context is chosen", file=files, field="current-context", expected=expected
            )
        if name not in self._contexts:
            field = None if context else "current-context"
            raise ConnectionSettingsError(
                f"there is no context '{name}'", file=files, field=field, expected=expected
            )
        chosen, place = self._contexts[name]
        cluster, cluster_place = self._entry(self._clusters, chosen.cluster, place, "cluster")
        if chosen.user:
            user, user_place = self._entry(self._users, chosen.user, place, "user")
        else:
            user, user_place = _User(), place
        return _connection(name, chosen, (cluster, cluster_place), (user, user_place), environment)

    @staticmethod
    def _entry(
        entries: Mapping[str, tuple[Any, _Place]], name: str, place: _Place, field: str
    ) -> tuple[Any, _Place]:
        if name in entries:
            return entries[name]
        raise place.error(
            f"there is no {field} '{name}'", field, expected=f"one of {', '.join(sorted(entries))}"
        )


def load_connection(
    kubeconfig: Path | str | None = None,
    context: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """The connection that kubectl would use: of the given file, else of those in KUBECONFIG, else of
    ~/.kube/config, else that of the pod in which this runs."""
    environment = os.environ if environment is None else environment
    if kubeconfig is not None:
        if not Path(kubeconfig).exists():
            raise ConnectionSettingsError("there is no such kubeconfig", file=str(kubeconfig))
        return Kubeconfig([Path(kubeconfig)]).connection(context, environment)
    if listed := environment.get("KUBECONFIG", ""):
        files = [Path(name) for name in listed.split(os.pathsep) if name]
    else:
        home = Path(environment["HOME"]) if environment.get("HOME") else Path.home()
        files = [home / ".kube" / "config"]
    config = Kubeconfig(files)
    if config.files and (config.contexts or context):
        return config.connection(context, environment)
    if environment.get("KUBERNETES_SERVICE_HOST"):
        return connection_in_cluster(environment, account)
    raise ConnectionSettingsError(
        "no kubeconfig found",
        file=":".join(map(str, files)),
        hint="name one with --kubeconfig or KUBECONFIG",
    )


def _read(file: Path) -> _Kubeconfig:
    try:
        import yaml  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise MissingExtra("a kubeconfig", "kubernetes") from None

    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConnectionSettingsError(
            f"cannot be read: {reason_of(error)}", file=str(file)
        ) from None
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        # Not its text: that quotes the lines around, which may hold secrets.
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        raise ConnectionSettingsError("broken YAML", file=str(file), line=line) from None
    try:
        return msgspec.convert(without_nulls(value or {}), _Kubeconfig, dec_hook=_secret)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at ")
        field = re.sub(r"^\$\.?", "", where.strip("`"))
        raise ConnectionSettingsError(
            problem[:1].lower() + problem[1:], file=str(file), field=field or None
        ) from None


def _secret(type_: type, value: Any) -> Any:
    if type_ is Secret and isinstance(value, str):
        return Secret(value)
    raise TypeError(f"Expected `str`, got `{type(value).__name__}`")


def _placed(
    file: Path, table: str, part: str, entries: Iterable[Entry]
) -> Iterable[tuple[Entry, _Place]]:
    seen = set()
    for entry in entries:
        if entry.name in seen:
            raise ConnectionSettingsError(
                f"'{entry.name}' stands there twice", file=str(file), field=table
            )
        seen.add(entry.name)
        yield entry, _Place(file, f"{table}[{entry.name}].{part}")


def _connection(
    name: str,
    context: _Context,
    of_cluster: tuple[_Cluster, _Place],
    of_user: tuple[_User, _Place],
    environment: Mapping[str, str],
) -> Connection:
    cluster, place = of_cluster
    user, user_place = of_user
    server = cluster.server.rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise place.error(
            "the server's address is missing" if not server else "not an address of a server",
            "server",
            expected="https://HOST:PORT",
        )
    authority = place.content(
        "certificate-authority", cluster.certificate_authority, cluster.certificate_authority_data
    )
    if authority is not None and cluster.insecure_skip_tls_verify:
        raise place.error(
            "cannot be combined with a certificate authority", "insecure-skip-tls-verify"
        )
    if cluster.proxy_url:
        proxy: str | None = checked_proxy(
            cluster.proxy_url, field=place.within("proxy-url"), file=str(place.file)
        )
    else:
        proxy = proxy_for(server, environment)
    in_data = "-data" if cluster.certificate_authority_data else ""
    return Connection(
        server=server,
        credentials=_credentials(user, user_place, cluster, authority),
        namespace=context.namespace or "default",
        tls=TlsSettings(
            authority=authority,
            server_name=cluster.tls_server_name or None,
            is_insecure=cluster.insecure_skip_tls_verify,
            authority_place=(str(place.file), place.within(f"certificate-authority{in_data}")),
            certificate_place=(str(user_place.file), user_place.within("client-certificate")),
        ),
        proxy=proxy,
        compresses=not cluster.disable_compression,
        headers=_impersonation(user, user_place),
        origin=f"context {name}",
    )


def _credentials(
    user: _User, place: _Place, cluster: _Cluster, authority: bytes | None
) -> Credentials:
    certificate = _certificate(user, place)
    if user.auth_provider is not None:
        raise place.error(
            "Kubernetes does not support auth providers any more",
            "auth-provider",
            expected="exec",
            hint="let your provider's command update the kubeconfig",
        )
    if user.exec is not None:
        plugin = _plugin(user.exec, place, cluster, authority)
        return PluginCredentials(plugin, certificate=certificate)
    if user.token_file:
        return RotatedToken(
            place.path(user.token_file), fallback=user.token or None, certificate=certificate
        )
    if user.token:
        return FixedCredentials(Login(bearer(user.token.reveal()), certificate))
    if user.username:
        return FixedCredentials(Login(basic(user.username, user.password), certificate))
    return FixedCredentials(Login(None, certificate))


def _certificate(user: _User, place: _Place) -> ClientCertificate | None:
    certificate = place.content(
        "client-certificate", user.client_certificate, user.client_certificate_data
    )
    key = place.content("client-key", user.client_key, user.client_key_data.reveal())
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing = "client-certificate" if certificate is None else "client-key"
        raise place.error("is missing", missing, expected="a client certificate and its key")
    try:
        return ClientCertificate(certificate, Secret(key.decode("ascii")))
    except UnicodeDecodeError:
        raise place.error("is broken", "client-key", expected="PEM") from None


def _plugin(
    settings: _Exec, place: _Place, cluster: _Cluster, authority: bytes | None
) -> PluginCommand:
    if settings.api_version not in EXEC_VERSIONS:
        raise place.error(
            "unknown version of credential plug-ins",
            "exec.apiVersion",
            expected=" or ".join(EXEC_VERSIONS),
        )
    mode = settings.interactive_mode
    if not mode and settings.api_version == "client.authentication.k8s.io/v1beta1":
        mode = "IfAvailable"
    if mode not in ("Never", "IfAvailable", "Always"):
        problem = f"'{mode}' is no mode" if mode else "is missing"
        raise place.error(problem, "exec.interactiveMode", expected="Never, IfAvailable or Always")
    if not settings.command:
        raise place.error("is missing", "exec.command", expected="a program")
    command = settings.command
    if os.sep in command:
        command = str(place.path(command))
    return PluginCommand(
        command=command,
        arguments=settings.args,
        environment={variable.name: variable.value for variable in settings.env},
        api_version=settings.api_version,
        interactive_mode=mode,
        install_hint=" ".join(settings.install_hint.split()),
        cluster=_told(cluster, authority) if settings.provide_cluster_info else None,
        file=str(place.file),
        field=place.within("exec"),
    )


def _told(cluster: _Cluster, authority: bytes | None) -> dict[str, Any]:
    """What a plug-in learns of its cluster."""
    configs = [
        each.extension
        for each in cluster.extensions
        if each.name == "client.authentication.k8s.io/exec"
    ]
    told = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authority or b"").decode("ascii"),
        "proxy-url": cluster.proxy_url,
        "disable-compression": cluster.disable_compression,
        "config": configs[0] if configs else None,
    }
    return {name: value for name, value in told.items() if value}


def _impersonation(user: _User, place: _Place) -> tuple[tuple[str, str], ...]:
    if not user.as_:
        if user.as_uid or user.as_groups or user.as_user_extra:
            raise place.error("is missing", "as", expected="the user to impersonate")
        return ()
    uid = [("Impersonate-Uid", user.as_uid)] if user.as_uid else []
    groups = [("Impersonate-Group", group) for group in user.as_groups]
    extra = [
        (f"Impersonate-Extra-{quote(key, safe=_HEADER_CHARACTERS)}", value)
        for key, values in user.as_user_extra.items()
        for value in values
    ]
    return (("Impersonate-User", user.as_), *uid, *groups, *extra)
