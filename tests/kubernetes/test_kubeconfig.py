"""Kubeconfigs, plug-ins, tokens in files and proxies, without a server."""

from __future__ import annotations

import asyncio
import base64
import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.kubernetes.connection import Connection, connection_in_cluster, proxy_for
from argosy.kubernetes.credentials import (
    TOKEN_FILE_SECONDS,
    ConnectionSettingsError,
    Login,
    PluginCommand,
    PluginCredentials,
    RotatedToken,
    Secret,
)
from argosy.kubernetes.kubeconfig import Kubeconfig, load_connection

SECRET = "swordfish"


def write(path: Path, config: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(config if isinstance(config, str) else yaml.safe_dump(config))
    return path


def config(user: Any = None, cluster: Any = None, **changes: Any) -> dict[str, Any]:
    return {
        "clusters": [{"name": "c", "cluster": cluster or {"server": "https://example.org:6443"}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
        **changes,
    }


def login(connection: Connection) -> Login:
    return asyncio.run(connection.credentials.login())


def authorization(connection: Connection) -> str | None:
    secret = login(connection).authorization
    return secret.reveal() if secret is not None else None


def test_a_token_of_the_current_context(tmp_path: Path) -> None:
    connection = load_connection(write(tmp_path / "config", config({"token": SECRET})))
    assert connection.server == "https://example.org:6443"
    assert connection.namespace == "default"
    assert authorization(connection) == f"Bearer {SECRET}"
    assert connection.origin == "context x"


def test_another_context_can_be_chosen(tmp_path: Path) -> None:
    contexts = [
        {"name": "x", "context": {"cluster": "c", "user": "u"}},
        {"name": "y", "context": {"cluster": "c", "namespace": "shop"}},
    ]
    file = write(tmp_path / "config", config({"token": SECRET}, contexts=contexts))
    connection = load_connection(file, "y")
    assert connection.namespace == "shop"
    assert authorization(connection) is None


def test_of_several_files_the_first_that_has_an_entry_decides(tmp_path: Path) -> None:
    first = write(
        tmp_path / "a" / "config",
        {
            "users": [{"name": "u", "user": {"tokenFile": "token"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        },
    )
    (tmp_path / "a" / "token").write_text(SECRET + "\n")
    second = write(tmp_path / "b" / "config", config({"token": "another", "username": "ignored"}))
    third = write(tmp_path / "c" / "config", config(**{"current-context": "z"}))
    missing = tmp_path / "missing"
    names = f"{missing}:{first}::{second}:{third}"
    connection = load_connection(environment={"KUBECONFIG": names})
    assert connection.server == "https://example.org:6443"
    assert authorization(connection) == f"Bearer {SECRET}", "relative to the file that names it"


def test_the_file_in_the_home_directory_is_the_default(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", config({"token": SECRET}))
    assert load_connection(environment={"HOME": str(tmp_path)}).origin == "context x"


def test_without_a_kubeconfig_the_pods_own_account_is_used(tmp_path: Path) -> None:
    account = tmp_path / "account"
    write(account / "token", SECRET)
    write(account / "ca.crt", "authority")
    write(account / "namespace", "kube-system")
    environment = {
        "HOME": str(tmp_path),
        "KUBERNETES_SERVICE_HOST": "fd00::1",
        "KUBERNETES_SERVICE_PORT": "443",
    }
    connection = load_connection(environment=environment, account=account)
    assert connection.server == "https://[fd00::1]:443"
    assert connection.namespace == "kube-system"
    assert connection.tls.authority == b"authority"
    assert authorization(connection) == f"Bearer {SECRET}"


def test_data_in_the_file_goes_before_the_files_it_names(tmp_path: Path) -> None:
    data = base64.b64encode(b"inline").decode()
    cluster = {
        "server": "https://h/",
        "certificate-authority": "nowhere",
        "certificate-authority-data": data,
        "tls-server-name": "inner",
        "disable-compression": True,
    }
    user = {"client-certificate-data": data, "client-key": "key.pem"}
    write(tmp_path / "key.pem", SECRET)
    connection = load_connection(write(tmp_path / "config", config(user, cluster)))
    assert connection.server == "https://h"
    assert connection.tls.authority == b"inline"
    assert connection.tls.server_name == "inner"
    assert not connection.compresses
    certificate = login(connection).certificate
    assert certificate is not None
    assert (certificate.certificate, certificate.key) == (b"inline", Secret(SECRET))


def test_user_and_password(tmp_path: Path) -> None:
    file = write(tmp_path / "config", config({"username": "me", "password": "pw"}))
    assert authorization(load_connection(file)) == "Basic bWU6cHc="


def test_whom_to_impersonate_is_sent_with_every_request(tmp_path: Path) -> None:
    user = {
        "as": "jane",
        "as-groups": ["a", "b"],
        "as-user-extra": {"example.org/team": ["x", "y"]},
    }
    connection = load_connection(write(tmp_path / "config", config(user)))
    assert connection.headers == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-example.org%2Fteam", "x"),
        ("Impersonate-Extra-example.org%2Fteam", "y"),
    )


WRONG: list[tuple[Any, str]] = [
    ("a: [", "config:1: broken YAML"),
    (f"a: 'x\nusers: {SECRET}", "broken YAML"),
    ([1], "expected `object`, got `array`"),
    (config({"token": 7}), "users[0].user.token: expected `str`, got `int`"),
    (config({"token": {"a": SECRET}}), "users[0].user.token: expected `str`, got `dict`"),
    ({}, "current-context: no context is chosen"),
    (
        config(**{"current-context": "z"}),
        "current-context: there is no context 'z'; expected one of x",
    ),
    (config(users=[]), "contexts[x].context.user: there is no user 'u'"),
    (
        config(users=[{"name": "w", "user": {}}, {"name": "v", "user": {}}]),
        "contexts[x].context.user: there is no user 'u'; expected one of v, w",
    ),
    (config(clusters=None), "contexts[x].context.cluster: there is no cluster 'c'"),
    (
        config(cluster={"proxy-url": ""}),
        "clusters[c].cluster.server: the server's address is missing",
    ),
    (config(cluster={"server": "h:1"}), "clusters[c].cluster.server: not an address"),
    (
        config(cluster={"server": "https://h", "certificate-authority": "gone"}),
        "gone' cannot be read: no such file or directory",
    ),
    (
        config(cluster={"server": "https://h", "certificate-authority-data": "x"}),
        "clusters[c].cluster.certificate-authority-data: is broken; expected base64",
    ),
    (
        config(
            cluster={
                "server": "https://h",
                "certificate-authority-data": "eA==",
                "insecure-skip-tls-verify": True,
            }
        ),
        "insecure-skip-tls-verify: cannot be combined",
    ),
    (
        config(cluster={"server": "https://h", "proxy-url": f"socks5://me:{SECRET}@h"}),
        "clusters[c].cluster.proxy-url: cannot use this proxy; expected http://HOST:PORT",
    ),
    (config({"client-certificate-data": "eA=="}), "users[u].user.client-key: is missing"),
    (
        config({"auth-provider": {"name": "gcp"}}),
        "users[u].user.auth-provider: Kubernetes does not",
    ),
    (config({"as-groups": ["a"]}), "users[u].user.as: is missing"),
    (
        config({"exec": {"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "p"}}),
        "users[u].user.exec.apiVersion: unknown version",
    ),
    (
        config({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "p"}}),
        "users[u].user.exec.interactiveMode: is missing; expected Never, IfAvailable or Always",
    ),
    (
        config(
            users=[
                {"name": "u", "user": {"token": SECRET}},
                {"name": "u", "user": {"token": SECRET}},
            ]
        ),
        "users: 'u' stands there twice",
    ),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_errors_name_file_and_field_in_one_line_without_secrets(
    tmp_path: Path, text: Any, message: str
) -> None:
    file = write(tmp_path / "config", text)
    with pytest.raises(ConnectionSettingsError) as caught:
        load_connection(file)
    shown = str(caught.value)
    assert message in shown
    assert shown.startswith(str(file))
    assert "\n" not in shown
    assert SECRET not in shown


def test_a_kubeconfig_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConnectionSettingsError, match="there is no such kubeconfig"):
        load_connection(tmp_path / "nowhere")
    with pytest.raises(ConnectionSettingsError, match=r"no kubeconfig found.*--kubeconfig"):
        load_connection(environment={"HOME": str(tmp_path)})


def test_no_repr_shows_a_secret(tmp_path: Path) -> None:
    data = base64.b64encode(SECRET.encode()).decode()
    users = [
        {"token": SECRET},
        {"username": "me", "password": SECRET},
        {"client-certificate-data": "eA==", "client-key-data": data},
    ]
    for user in users:
        file = write(tmp_path / "config", config(user))
        connection = load_connection(file)
        shown = repr([connection, connection.credentials, login(connection), Kubeconfig([file])])
        assert SECRET not in shown
        assert data not in shown
    assert SECRET not in f"{Secret(SECRET)} {Secret(SECRET)!r}"


def test_outside_of_a_pod_there_is_no_account(tmp_path: Path) -> None:
    with pytest.raises(ConnectionSettingsError, match="not in a pod of a cluster"):
        connection_in_cluster({})
    environment = {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}
    with pytest.raises(ConnectionSettingsError, match="no service account token"):
        connection_in_cluster(environment, tmp_path)


class SteppedClock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_token_file_is_read_again_after_a_while_and_when_it_was_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "token", "first")
    clock = SteppedClock()
    token = RotatedToken(file, clock=clock)

    def shown() -> str:
        secret = asyncio.run(token.login()).authorization
        assert secret is not None
        return secret.reveal()

    assert shown() == "Bearer first"
    file.write_text("second")
    assert shown() == "Bearer first"
    clock.now += TOKEN_FILE_SECONDS
    assert shown() == "Bearer second"
    file.write_text("third")
    token.refused()
    assert shown() == "Bearer third"
    file.unlink()
    token.refused()
    assert shown() == "Bearer third", "the last token serves while the file is gone"


def test_an_empty_token_file_is_an_error(tmp_path: Path) -> None:
    file = write(tmp_path / "token", "\n")
    with pytest.raises(ConnectionSettingsError, match="the token is empty"):
        asyncio.run(RotatedToken(file).login())


PLUGIN = """#!/bin/sh
echo run >> "$LOG"
printf '%s' "$KUBERNETES_EXEC_INFO" > "$LOG.info"
[ -t 0 ] || echo "no terminal" > "$LOG.stdin"
cat "$ANSWER"
exit "${STATUS:-0}"
"""


class Plugin:
    """A real plug-in: a script that answers with a file and counts its runs."""

    def __init__(self, directory: Path) -> None:
        self.script = write(directory / "plugin", PLUGIN)
        self.script.chmod(self.script.stat().st_mode | stat.S_IXUSR)
        self.log = directory / "log"
        self.answer = directory / "answer"
        self.status = "0"

    def issues(self, version: str = "client.authentication.k8s.io/v1", **status: Any) -> None:
        self.answer.write_text(
            json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
        )

    def settings(self, mode: str = "Never", **changes: Any) -> dict[str, Any]:
        environment = {"LOG": str(self.log), "ANSWER": str(self.answer), "STATUS": self.status}
        return {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": str(self.script),
                "env": [{"name": name, "value": value} for name, value in environment.items()],
                "interactiveMode": mode,
                **changes,
            }
        }

    @property
    def runs(self) -> int:
        return len(self.log.read_text().split()) if self.log.exists() else 0


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def test_a_plugin_is_run_once_until_its_token_is_refused(tmp_path: Path, plugin: Plugin) -> None:
    plugin.issues(token=SECRET)
    connection = load_connection(write(tmp_path / "config", config(plugin.settings())))

    async def several() -> list[Login]:
        logins = await asyncio.gather(*(connection.credentials.login() for _ in range(5)))
        connection.credentials.refused()
        return [*logins, await connection.credentials.login()]

    logins = asyncio.run(several())
    assert {each.authorization for each in logins} == {Secret(f"Bearer {SECRET}")}
    assert plugin.runs == 2
    assert (tmp_path / "log.stdin").exists()


def test_a_plugin_learns_of_the_cluster_if_it_asks(tmp_path: Path, plugin: Plugin) -> None:
    plugin.issues(token=SECRET)
    cluster = {
        "server": "https://h",
        "certificate-authority-data": "eA==",
        "extensions": [
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}
        ],
    }
    settings = plugin.settings(provideClusterInfo=True)
    asyncio.run(
        load_connection(write(tmp_path / "config", config(settings, cluster))).credentials.login()
    )
    assert json.loads((tmp_path / "log.info").read_text()) == {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://h",
                "certificate-authority-data": "eA==",
                "config": {"audience": "a"},
            },
        },
    }


def test_a_plugin_is_run_again_when_its_credentials_expire(plugin: Plugin) -> None:
    clock = SteppedClock()
    plugin.issues(token="t", expirationTimestamp="1970-01-01T00:20:00Z")
    settings = plugin.settings()["exec"]
    command = PluginCommand(
        command=str(plugin.script),
        environment={each["name"]: Secret(each["value"]) for each in settings["env"]},
        interactive_mode="Never",
    )

    async def use() -> None:
        credentials = PluginCredentials(command, clock=clock)
        await credentials.login()
        clock.now = 1199.9
        await credentials.login()
        assert plugin.runs == 1
        clock.now = 1200.0
        await credentials.login()
        assert plugin.runs == 2

    asyncio.run(use())


def test_a_plugin_may_issue_a_certificate(tmp_path: Path, plugin: Plugin) -> None:
    plugin.issues(clientCertificateData="certificate", clientKeyData=SECRET)
    issued = login(load_connection(write(tmp_path / "config", config(plugin.settings()))))
    assert issued.authorization is None
    assert issued.certificate is not None
    assert issued.certificate.key == Secret(SECRET)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (SECRET, "wrote something else; expected an ExecCredential as JSON"),
        ({"kind": "ExecCredential", "apiVersion": "x"}, "speaks another version"),
        ({}, "issued nothing; expected a token or a client certificate"),
        ({"clientCertificateData": SECRET}, "issued half a certificate"),
    ],
)
def test_a_plugin_that_misbehaves_is_named(
    tmp_path: Path, plugin: Plugin, answer: Any, message: str
) -> None:
    if isinstance(answer, str) or "kind" in answer:
        plugin.answer.write_text(answer if isinstance(answer, str) else json.dumps(answer))
    else:
        plugin.issues(**answer)
    file = write(tmp_path / "config", config(plugin.settings()))
    with pytest.raises(ConnectionSettingsError) as caught:
        login(load_connection(file))
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{file}: users[u].user.exec: ")
    assert SECRET not in str(caught.value)


def test_a_plugin_that_fails_or_is_missing(tmp_path: Path, plugin: Plugin) -> None:
    plugin.issues(token=SECRET)
    plugin.status = "3"
    with pytest.raises(ConnectionSettingsError, match="failed with exit code 3"):
        login(load_connection(write(tmp_path / "config", config(plugin.settings()))))
    settings = plugin.settings(command="no-such-plugin", installHint="get it\nfrom us")
    with pytest.raises(ConnectionSettingsError, match="no such file or directory; get it from us"):
        login(load_connection(write(tmp_path / "config", config(settings))))


def test_a_plugin_that_must_ask_needs_a_terminal(plugin: Plugin) -> None:
    plugin.issues(token=SECRET)
    command = PluginCommand(command=str(plugin.script), interactive_mode="Always")
    with pytest.raises(ConnectionSettingsError, match="there is no terminal"):
        asyncio.run(PluginCredentials(command, has_terminal=lambda: False).login())


ENVIRONMENT = {
    "HTTPS_PROXY": "http://proxy:3128",
    "http_proxy": "proxy:80",
    "NO_PROXY": "example.org, .inner.net,10.0.0.0/8,fd00::/8,192.168.1.1,other.com:6443,*.star.io",
}


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("https://far.com", "http://proxy:3128"),
        ("http://far.com", "http://proxy:80"),
        ("https://example.org", None),
        ("https://sub.example.org", None),
        ("https://anexample.org", "http://proxy:3128"),
        ("https://inner.net", "http://proxy:3128"),
        ("https://a.inner.net", None),
        ("https://a.star.io", None),
        ("https://10.1.2.3:6443", None),
        ("https://11.1.2.3:6443", "http://proxy:3128"),
        ("https://[fd00::7]:6443", None),
        ("https://192.168.1.1", None),
        ("https://other.com:6443", None),
        ("https://other.com:443", "http://proxy:3128"),
        ("https://127.0.0.1:6443", None),
        ("https://localhost:6443", None),
    ],
)
def test_proxies_of_the_environment(server: str, expected: str | None) -> None:
    assert proxy_for(server, ENVIRONMENT) == expected


@pytest.mark.parametrize(
    ("server", "exceptions", "is_direct"),
    [
        ("https://far.com", "far.com:443", True),
        ("http://far.com", "far.com:80", True),
        ("https://far.com", "far.com:80", False),
        ("https://far.com:444", "far.com:443", False),
        ("https://far.com", "*", True),
        ("https://far.com", "near.com , FAR.com", True),
        ("https://far.com", "", False),
        ("https://far.com", "com", True),
        ("https://far.com", "r.com", False),
        ("https://far.com", "far.com:443x", False),
        ("https://10.1.2.3", "10.1.2.3:443", True),
        ("https://10.1.2.3", "10.1.2.9/24", True),
        ("https://[fd00::7]", "fd00::7", True),
        ("https://[fd00::7]", "fd00::8", False),
    ],
)
def test_servers_that_are_reached_without_the_proxy(
    server: str, exceptions: str, is_direct: bool
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        environment = {"https_proxy": "proxy:1", "http_proxy": "proxy:1", name: exceptions}
        assert proxy_for(server, environment) == (None if is_direct else "http://proxy:1")


def test_variables_in_capitals_go_before_others() -> None:
    environment = {"HTTPS_PROXY": "https://one", "https_proxy": "https://two"}
    assert proxy_for("https://far.com", environment) == "https://one"
    assert proxy_for("https://far.com", {**environment, "HTTPS_PROXY": ""}) == "https://two"
    assert proxy_for("https://a.com", {**environment, "NO_PROXY": "a.com", "no_proxy": "b"}) is None


def test_a_proxy_in_the_kubeconfig_goes_before_the_environment(tmp_path: Path) -> None:
    cluster = {"server": "https://h", "proxy-url": "http://mine:1"}
    file = write(tmp_path / "config", config(cluster=cluster))
    assert load_connection(file, environment=ENVIRONMENT).proxy == "http://mine:1"
