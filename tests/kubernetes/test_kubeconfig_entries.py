"""What each entry of a kubeconfig does, and what is said of one that is wrong."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.kubernetes.connection import Connection, connection_in_cluster, proxy_for
from argosy.kubernetes.credentials import (
    ClientCertificate,
    ConnectionSettingsError,
    FixedCredentials,
    Login,
    PluginCommand,
    PluginCredentials,
    RotatedToken,
    Secret,
)
from argosy.kubernetes.kubeconfig import Kubeconfig, load_connection
from argosy.model.errors import MissingExtra

V1, BETA = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def load(
    directory: Path,
    user: dict[str, Any] | None = None,
    cluster: dict[str, Any] | None = None,
    *,
    context: dict[str, Any] | None = None,
    environment: dict[str, str] | None = None,
    **more: Any,
) -> Connection:
    file = directory / "config"
    document = {
        "clusters": [{"name": "c", "cluster": {"server": "https://h:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", **(context or {})}}],
        "current-context": "x",
        **more,
    }
    file.write_text(yaml.safe_dump(document))
    return load_connection(file, environment=environment or {})


def told(connection: Connection) -> tuple[str | None, ClientCertificate | None]:
    login = asyncio.run(connection.credentials.login())
    return login.authorization and login.authorization.reveal(), login.certificate


def plugin_of(connection: Connection) -> PluginCommand:
    assert isinstance(connection.credentials, PluginCredentials)
    return connection.credentials._plugin


def test_all_that_a_cluster_says_is_in_the_connection(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("authority")
    cluster = {
        "server": "https://h:6443//",
        "certificate-authority": "ca.pem",
        "tls-server-name": "other",
        "proxy-url": "https://proxy:1",
        "disable-compression": True,
    }
    made = load(tmp_path, {"token": "t"}, cluster, context={"namespace": "n"})
    assert (made.server, made.namespace, made.proxy) == ("https://h:6443", "n", "https://proxy:1")
    assert (made.compresses, made.headers, made.origin) == (False, (), "context x")
    tls, file = made.tls, str(tmp_path / "config")
    assert (tls.authority, tls.server_name, tls.is_insecure) == (b"authority", "other", False)
    assert tls.authority_place == (file, "clusters[c].cluster.certificate-authority")
    assert tls.certificate_place == (file, "users[u].user.client-certificate")


def test_what_a_cluster_does_not_say_is_as_usual(tmp_path: Path) -> None:
    made = load(tmp_path)
    assert (made.server, made.namespace, made.proxy) == ("https://h:6443", "default", None)
    assert made.compresses
    tls = made.tls
    assert (tls.authority, tls.server_name, tls.is_insecure) == (None, None, False)
    assert told(made) == (None, None)
    assert load(tmp_path, cluster={"insecure-skip-tls-verify": True}).tls.is_insecure
    place = load(tmp_path, cluster={"certificate-authority-data": encoded("a")}).tls.authority_place
    assert place[1] == "clusters[c].cluster.certificate-authority-data"
    proxied = load(tmp_path, environment={"HTTPS_PROXY": "p:1"})
    assert proxied.proxy == "http://p:1"
    assert load(tmp_path, cluster={"server": "http://h"}).server == "http://h"


def test_of_several_credentials_the_first_of_these_counts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("of the file\n")
    plugin = {"apiVersion": V1, "command": "p", "interactiveMode": "Never"}
    user: dict[str, Any] = {
        "exec": plugin,
        "tokenFile": "file",
        "token": "own",
        "username": "me",
        "password": "word",
    }
    assert isinstance(load(tmp_path, user).credentials, PluginCredentials)
    del user["exec"]
    made = load(tmp_path, user)
    assert isinstance(made.credentials, RotatedToken)
    assert told(made) == ("Bearer of the file", None)
    (tmp_path / "file").unlink()
    assert told(load(tmp_path, user)) == ("Bearer own", None), "while there is no file"
    del user["tokenFile"]
    made = load(tmp_path, user)
    assert isinstance(made.credentials, FixedCredentials)
    assert told(made) == ("Bearer own", None)
    del user["token"]
    assert told(load(tmp_path, user)) == (f"Basic {encoded('me:word')}", None)
    assert told(load(tmp_path, {"password": "word"})) == (None, None)


def test_a_certificate_is_used_with_every_kind_of_credentials(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("token")
    (tmp_path / "cert.pem").write_text("certificate")
    user = {"client-certificate": "cert.pem", "client-key-data": encoded("key")}
    expected = ClientCertificate(b"certificate", Secret("key"))
    assert told(load(tmp_path, user)) == (None, expected)
    assert told(load(tmp_path, {**user, "token": "t"})) == ("Bearer t", expected)
    assert told(load(tmp_path, {**user, "tokenFile": "file"})) == ("Bearer token", expected)
    login = (f"Basic {encoded('me:')}", expected)
    assert told(load(tmp_path, {**user, "username": "me"})) == login
    plugin = {"apiVersion": V1, "command": "p", "interactiveMode": "Never"}
    credentials = load(tmp_path, {**user, "exec": plugin}).credentials
    assert isinstance(credentials, PluginCredentials)
    assert credentials._certificate == expected


def test_a_plug_in_is_called_as_its_entry_says(tmp_path: Path) -> None:
    settings = {
        "apiVersion": BETA,
        "command": "./bin/plugin",
        "args": ["get", "token"],
        "env": [{"name": "A", "value": "1"}],
        "installHint": " get it\n  here ",
        "provideClusterInfo": True,
    }
    cluster = {"tls-server-name": "other", "disable-compression": True}
    plugin = plugin_of(load(tmp_path, {"exec": settings}, cluster))
    assert plugin == PluginCommand(
        command=str(tmp_path / "bin" / "plugin"),
        arguments=("get", "token"),
        environment={"A": Secret("1")},
        api_version=BETA,
        interactive_mode="IfAvailable",
        install_hint="get it here",
        cluster={
            "server": "https://h:6443",
            "tls-server-name": "other",
            "disable-compression": True,
        },
        file=str(tmp_path / "config"),
        field="users[u].user.exec",
    )


def test_a_plug_in_on_the_path_needs_no_more_than_its_name(tmp_path: Path) -> None:
    settings = {"apiVersion": V1, "command": "plugin", "interactiveMode": "Always"}
    plugin = plugin_of(load(tmp_path, {"exec": settings}))
    assert (plugin.command, plugin.arguments, plugin.interactive_mode) == ("plugin", (), "Always")
    assert (plugin.environment, plugin.install_hint, plugin.cluster) == ({}, "", None)
    given = {"apiVersion": BETA, "command": "plugin", "interactiveMode": "Never"}
    assert plugin_of(load(tmp_path, {"exec": given})).interactive_mode == "Never"


def test_a_plug_in_is_told_all_that_the_cluster_says(tmp_path: Path) -> None:
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}
    cluster = {
        "insecure-skip-tls-verify": True,
        "proxy-url": "http://p:1",
        "extensions": [{"name": "other", "extension": 1}, extension],
    }
    settings = {"apiVersion": BETA, "command": "p", "provideClusterInfo": True}
    assert plugin_of(load(tmp_path, {"exec": settings}, cluster)).cluster == {
        "server": "https://h:6443",
        "insecure-skip-tls-verify": True,
        "proxy-url": "http://p:1",
        "config": {"audience": "a"},
    }
    cluster = {"certificate-authority-data": encoded("authority")}
    assert plugin_of(load(tmp_path, {"exec": settings}, cluster)).cluster == {
        "server": "https://h:6443",
        "certificate-authority-data": encoded("authority"),
    }


def test_somebody_else_may_be_named_in_all_ways(tmp_path: Path) -> None:
    user = {
        "as": "jane",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"a-b.c": ["3"], "x y/z": ["1", "2"]},
    }
    assert load(tmp_path, user).headers == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-a-b.c", "3"),
        ("Impersonate-Extra-x%20y%2Fz", "1"),
        ("Impersonate-Extra-x%20y%2Fz", "2"),
    )


CONTEXT_Z = {"current-context": "z"}
WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"cluster": {"server": ""}},
        "clusters[c].cluster.server: the server's address is missing; expected https://HOST:PORT",
    ),
    (
        {"cluster": {"server": "ftp://h"}},
        "clusters[c].cluster.server: not an address of a server; expected https://HOST:PORT",
    ),
    (
        {"cluster": {"certificate-authority": "none", "insecure-skip-tls-verify": True}},
        "clusters[c].cluster.certificate-authority: '{dir}/none' cannot be read: no such file or"
        " directory",
    ),
    (
        {"cluster": {"certificate-authority-data": "eA", "insecure-skip-tls-verify": True}},
        "clusters[c].cluster.certificate-authority-data: is broken; expected base64",
    ),
    (
        {"cluster": {"certificate-authority-data": "eA==", "insecure-skip-tls-verify": True}},
        "clusters[c].cluster.insecure-skip-tls-verify: cannot be combined with a certificate"
        " authority",
    ),
    (
        {"cluster": {"proxy-url": "http://"}},
        "clusters[c].cluster.proxy-url: cannot use this proxy; expected http://HOST:PORT or"
        " https://HOST:PORT",
    ),
    (
        {"user": {"auth-provider": {}}},
        "users[u].user.auth-provider: Kubernetes does not support auth providers any more;"
        " expected exec; let your provider's command update the kubeconfig",
    ),
    (
        {"user": {"client-key-data": "eA=="}},
        "users[u].user.client-certificate: is missing; expected a client certificate and its key",
    ),
    (
        {"user": {"client-certificate-data": "eA=="}},
        "users[u].user.client-key: is missing; expected a client certificate and its key",
    ),
    (
        {"user": {"client-certificate-data": "eA==", "client-key-data": encoded("ü")}},
        "users[u].user.client-key: is broken; expected PEM",
    ),
    (
        {"user": {"exec": {"apiVersion": "v1", "command": "p"}}},
        "users[u].user.exec.apiVersion: unknown version of credential plug-ins; expected"
        f" {V1} or {BETA}",
    ),
    (
        {"user": {"exec": {"apiVersion": V1, "command": "p", "interactiveMode": "Maybe"}}},
        "users[u].user.exec.interactiveMode: 'Maybe' is no mode; expected Never, IfAvailable or"
        " Always",
    ),
    (
        {"user": {"exec": {"apiVersion": BETA, "command": ""}}},
        "users[u].user.exec.command: is missing; expected a program",
    ),
    ({"user": {"as-uid": "7"}}, "users[u].user.as: is missing; expected the user to impersonate"),
    (
        {"user": {"as-user-extra": {"a": ["b"]}}},
        "users[u].user.as: is missing; expected the user to impersonate",
    ),
    ({"context": {"user": "w"}}, "contexts[x].context.user: there is no user 'w'; expected one of u"),
    (
        {"context": {"cluster": ""}},
        "contexts[x].context.cluster: there is no cluster ''; expected one of c",
    ),
    (CONTEXT_Z, "current-context: there is no context 'z'; expected one of x"),
    ({"current-context": ""}, "current-context: no context is chosen; expected one of x"),
    ({"contexts": [], **CONTEXT_Z}, "current-context: there is no context 'z'"),
    ({"contexts": [{"name": "x"}] * 2}, "contexts: 'x' stands there twice"),
    ({"clusters": [{"name": "c"}] * 2}, "clusters: 'c' stands there twice"),
    ({"users": 7}, "users: expected `array`, got `int`"),
    ({"users": [{"user": {}}]}, "users[0]: object missing required field `name`"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "expected"), WRONG)
def test_a_mistake_is_told_with_its_place(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConnectionSettingsError) as caught:
        load(tmp_path, **changes)
    assert str(caught.value) == f"{tmp_path}/config: {expected.format(dir=tmp_path)}"


def test_a_context_that_somebody_names_is_no_fault_of_the_file(tmp_path: Path) -> None:
    load(tmp_path)
    for context, expected in (("y", "there is no context 'y'; expected one of x"), ("x", "")):
        if not expected:
            assert load_connection(tmp_path / "config", context).origin == "context x"
            continue
        with pytest.raises(ConnectionSettingsError) as caught:
            load_connection(tmp_path / "config", context)
        assert str(caught.value) == f"{tmp_path}/config: {expected}"
        assert caught.value.field is None


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(b"\xff")
    with pytest.raises(ConnectionSettingsError) as caught:
        Kubeconfig([file])
    assert str(caught.value) == f"{file}: cannot be read: not a text in UTF-8"
    with pytest.raises(ConnectionSettingsError) as caught:
        Kubeconfig([tmp_path])
    assert str(caught.value) == f"{tmp_path}: cannot be read: is a directory"
    file.write_text("a: 1\nb: [\n")
    with pytest.raises(ConnectionSettingsError) as caught:
        Kubeconfig([file])
    assert (caught.value.line, str(caught.value)) == (3, f"{file}:3: broken YAML")
    file.write_text("\x01")
    with pytest.raises(ConnectionSettingsError) as caught:
        Kubeconfig([file])
    assert str(caught.value) == f"{file}: broken YAML"


def test_an_empty_file_has_no_contexts(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("")
    made = Kubeconfig([file, tmp_path / "none"])
    assert (made.contexts, made.files) == ([], [file])
    assert repr(made) == f"<kubeconfig of {file}>"
    assert repr(Kubeconfig([])) == "<kubeconfig of no file>"
    with pytest.raises(ConnectionSettingsError) as caught:
        made.connection(environment={})
    assert str(caught.value) == f"{file}: current-context: no context is chosen"
    with pytest.raises(ConnectionSettingsError) as caught:
        Kubeconfig([]).connection("x", {})
    assert str(caught.value) == "there is no context 'x'"


def test_a_kubeconfig_is_looked_for_in_order(tmp_path: Path) -> None:
    load(tmp_path)
    home = tmp_path / "home"
    (home / ".kube").mkdir(parents=True)
    (tmp_path / "config").rename(home / ".kube" / "config")
    found = load_connection(environment={"HOME": str(home)})
    assert found.origin == "context x"
    listed = f"{tmp_path}/one{os.pathsep}{os.pathsep}{tmp_path}/two"
    with pytest.raises(ConnectionSettingsError) as caught:
        load_connection(environment={"HOME": str(home), "KUBECONFIG": listed})
    assert str(caught.value) == (
        f"{tmp_path}/one:{tmp_path}/two: no kubeconfig found; name one with --kubeconfig or"
        " KUBECONFIG"
    )
    load(tmp_path)
    (tmp_path / "config").rename(tmp_path / "two")
    found = load_connection(environment={"HOME": "/none", "KUBECONFIG": listed})
    assert found.origin == "context x"


def in_pod(account: Path, **variables: str) -> Connection:
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    return connection_in_cluster({**environment, **variables}, account)


def test_a_pod_has_a_connection_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    with pytest.raises(ConnectionSettingsError) as caught:
        in_pod(tmp_path)
    expected = f"{tmp_path}/ca.crt: cannot be read: no such file or directory"
    assert str(caught.value) == expected
    (tmp_path / "ca.crt").write_text("authority")
    made = in_pod(tmp_path, HTTPS_PROXY="http://p:1")
    assert (made.server, made.namespace) == ("https://10.0.0.1:443", "default")
    assert (made.proxy, made.origin) == ("http://p:1", "service account")
    assert made.tls.authority == b"authority"
    assert made.tls.authority_place == (f"{tmp_path}/ca.crt", "")
    assert repr(made) == "<connection to https://10.0.0.1:443 (service account)>"
    (tmp_path / "namespace").write_text(" mine\n")
    assert in_pod(tmp_path).namespace == "mine"
    assert told(made) == ("Bearer t", None)


def test_without_an_account_or_an_address_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConnectionSettingsError) as caught:
        in_pod(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/token: the pod has no service account token; set automountServiceAccountToken"
        " to true"
    )
    for name in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        with pytest.raises(ConnectionSettingsError) as caught:
            in_pod(tmp_path, **{name: ""})
        assert str(caught.value) == (
            "not in a pod of a cluster; expected KUBERNETES_SERVICE_HOST and"
            " KUBERNETES_SERVICE_PORT in the environment"
        )


def test_a_proxy_that_cannot_be_used_is_told_by_its_variable() -> None:
    for server, name in (("https://h", "HTTPS_PROXY"), ("http://h", "HTTP_PROXY")):
        with pytest.raises(ConnectionSettingsError) as caught:
            proxy_for(server, {name.lower(): "socks5://p:1"})
        assert str(caught.value) == (
            f"{name}: cannot use this proxy; expected http://HOST:PORT or https://HOST:PORT"
        )


def test_a_connection_without_an_origin_shows_its_server() -> None:
    made = Connection("https://h", FixedCredentials(Login()))
    assert repr(made) == "<connection to https://h>"


def test_without_yaml_no_kubeconfig_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(tmp_path)
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtra, match="a kubeconfig needs the extra 'kubernetes'"):
        load_connection(tmp_path / "config")


def test_a_token_that_is_no_text_is_passed_over_while_there_is_another(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(b"\xff")
    for fallback in (None, Secret("before")):
        token = RotatedToken(file, fallback=fallback)
        if fallback is not None:
            login = asyncio.run(token.login())
            assert login.authorization == Secret("Bearer before")
            continue
        with pytest.raises(ConnectionSettingsError) as caught:
            asyncio.run(token.login())
        assert str(caught.value) == (
            f"{file}: the token cannot be read: not a text in UTF-8; expected a bearer token"
        )


ANSWERS: list[tuple[dict[str, Any], str, str]] = [
    ({"kind": "Credential"}, "speaks another version", f"an ExecCredential of {BETA}"),
    ({"apiVersion": V1}, "speaks another version", f"an ExecCredential of {BETA}"),
    ({"status": None}, "issued nothing", "a token or a client certificate"),
    ({"status": {"clientKeyData": "k"}}, "issued nothing", "a token or a client certificate"),
    (
        {"status": {"token": "t", "clientKeyData": "k"}},
        "issued half a certificate",
        "clientCertificateData and clientKeyData",
    ),
    (
        {"status": {"clientCertificateData": "c"}},
        "issued half a certificate",
        "clientCertificateData and clientKeyData",
    ),
    ({"status": 7}, "wrote something else", "an ExecCredential as JSON"),
]


@pytest.mark.parametrize(("changes", "problem", "expected"), ANSWERS)
def test_a_plug_in_is_told_apart_by_what_is_wrong_with_its_answer(
    changes: dict[str, Any], problem: str, expected: str
) -> None:
    command = PluginCommand(command="p", api_version=BETA, file="/config", field="exec")
    answer = {"apiVersion": BETA, "kind": "ExecCredential", "status": {"token": "t"}, **changes}
    with pytest.raises(ConnectionSettingsError) as caught:
        PluginCredentials(command)._read(json.dumps(answer).encode())
    shown = f"/config: exec: the credential plug-in 'p' {problem}; expected {expected}"
    assert str(caught.value) == shown


def test_a_plug_in_issues_a_token_or_a_certificate_or_both_for_a_while() -> None:
    own = ClientCertificate(b"own", Secret("key"))
    credentials = PluginCredentials(PluginCommand(command="p"), certificate=own)

    def issued(**status: str) -> tuple[Login, float]:
        answer = {"apiVersion": V1, "kind": "ExecCredential", "status": status}
        return credentials._read(json.dumps(answer).encode())

    token, other = Secret("Bearer t"), ClientCertificate(b"c", Secret("k"))
    both = {"clientCertificateData": "c", "clientKeyData": "k"}
    assert issued(token="t") == (Login(token, own), float("inf"))
    assert issued(**both) == (Login(None, other), float("inf"))
    expires = {"expirationTimestamp": "1970-01-01T00:01:40Z"}
    assert issued(token="t", **both, **expires) == (Login(token, other), 100.0)


@pytest.mark.parametrize(
    ("mode", "has_terminal", "expected"),
    [
        ("Never", True, False),
        ("Never", False, False),
        ("IfAvailable", True, True),
        ("IfAvailable", False, False),
        ("Always", True, True),
    ],
)
def test_a_plug_in_may_ask_if_there_is_a_terminal(
    mode: str, has_terminal: bool, expected: bool
) -> None:
    command = PluginCommand(command="p", interactive_mode=mode)
    credentials = PluginCredentials(command, has_terminal=lambda: has_terminal)
    assert credentials._is_interactive() is expected
