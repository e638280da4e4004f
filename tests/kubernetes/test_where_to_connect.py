"""Which kubeconfig counts: a file that is named, listed or at home; else the account of the pod."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from argosy.kubernetes.credentials import ConnectionSettingsError
from argosy.kubernetes.kubeconfig import load_connection

EMPTY = {"contexts": []}


def write(path: Path, *contexts: str) -> str:
    """A kubeconfig with these contexts; the first is chosen. A server has the name of its context."""
    path.parent.mkdir(parents=True, exist_ok=True)
    config = {
        "clusters": [{"name": each, "cluster": {"server": f"https://{each}"}} for each in contexts],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [
            {"name": each, "context": {"cluster": each, "user": "u"}} for each in contexts
        ],
        "current-context": contexts[0] if contexts else "",
    }
    path.write_text(yaml.safe_dump(config if contexts else EMPTY))
    return str(path)


@pytest.fixture
def account(tmp_path: Path) -> Path:
    found = tmp_path / "account"
    found.mkdir()
    (found / "token").write_text("t")
    (found / "ca.crt").write_text("authority")
    (found / "namespace").write_text("ns")
    return found


IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
POD_SERVER = "https://10.0.0.1:443"


def test_a_file_that_is_named_counts_before_all_others(tmp_path: Path, account: Path) -> None:
    named, listed = write(tmp_path / "named", "named"), write(tmp_path / "listed", "listed")
    write(tmp_path / ".kube" / "config", "home")
    environment = {"HOME": str(tmp_path), "KUBECONFIG": listed, **IN_POD}

    def server(file: str | None = None, context: str | None = None) -> str:
        return load_connection(file, context, environment=environment, account=account).server

    assert server(named) == "https://named"
    assert server() == "https://listed"
    environment["KUBECONFIG"] = ""
    assert server() == "https://home"
    (tmp_path / ".kube" / "config").unlink()
    assert server() == POD_SERVER


def test_an_empty_name_in_the_list_names_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = write(tmp_path / "a", "a"), write(tmp_path / "b", "b", "c")
    environment = {"KUBECONFIG": f":{first}::{tmp_path / 'none'}:{second}:"}
    assert load_connection(environment=environment).server == "https://a"
    assert load_connection(context="c", environment=environment).server == "https://c"
    with pytest.raises(ConnectionSettingsError) as caught:
        load_connection(environment={"KUBECONFIG": f":{tmp_path / 'x'}::{tmp_path / 'y'}:"})
    assert caught.value.file == f"{tmp_path / 'x'}:{tmp_path / 'y'}"


def test_a_kubeconfig_without_contexts_leaves_it_to_the_pod(tmp_path: Path, account: Path) -> None:
    listed = write(tmp_path / "empty")
    environment = {"KUBECONFIG": listed, **IN_POD}
    found = load_connection(environment=environment, account=account)
    assert (found.server, found.namespace) == (POD_SERVER, "ns")
    # Somebody who asks for a context does not mean the pod.
    with pytest.raises(ConnectionSettingsError, match="there is no context 'x'"):
        load_connection(None, "x", environment=environment, account=account)


@pytest.mark.parametrize("host", [None, ""])
def test_without_any_the_files_that_were_looked_for_are_named(
    tmp_path: Path, account: Path, host: str | None
) -> None:
    environment = {"HOME": str(tmp_path)}
    if host is not None:
        environment["KUBERNETES_SERVICE_HOST"] = host
    with pytest.raises(ConnectionSettingsError) as caught:
        load_connection(environment=environment, account=account)
    assert str(caught.value).startswith(f"{tmp_path / '.kube' / 'config'}: no kubeconfig found")
    assert caught.value.hint == "name one with --kubeconfig or KUBECONFIG"
    write(tmp_path / ".kube" / "config")
    with pytest.raises(ConnectionSettingsError, match="no kubeconfig found"):
        load_connection(environment=environment, account=account)


def test_without_a_home_it_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / ".kube" / "config", "home")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for environment in ({}, {"HOME": ""}):
        assert load_connection(environment=environment).server == "https://home"


def test_a_named_file_that_is_not_there_is_a_mistake_even_in_a_pod(
    tmp_path: Path, account: Path
) -> None:
    missing = str(tmp_path / "none")
    with pytest.raises(ConnectionSettingsError) as caught:
        load_connection(missing, environment=IN_POD, account=account)
    assert (caught.value.file, str(caught.value)) == (
        missing,
        f"{missing}: there is no such kubeconfig",
    )
