"""What the environment of the process says, unless another is given."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_where_to_connect import IN_POD, write

from argosy.kubernetes.credentials import ConnectionSettingsError
from argosy.kubernetes.kubeconfig import Kubeconfig, load_connection


def test_without_another_environment_that_of_the_process_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in IN_POD:
        monkeypatch.delenv(name, raising=False)
    listed = write(tmp_path / "listed", "listed")
    write(tmp_path / ".kube" / "config", "home")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", listed)
    assert load_connection().server == "https://listed"
    assert load_connection(environment={"HOME": str(tmp_path)}).server == "https://home"
    with pytest.raises(ConnectionSettingsError, match="no kubeconfig found"):
        load_connection(environment={"HOME": str(tmp_path / "elsewhere")})
    monkeypatch.delenv("KUBECONFIG")
    assert load_connection().server == "https://home"


def test_a_proxy_of_the_process_counts_unless_there_is_another_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    file = Path(write(tmp_path / "config", "here"))
    assert str(Kubeconfig([file]).connection().proxy) == "http://proxy:3128"
    assert Kubeconfig([file]).connection(environment={}).proxy is None
    assert str(load_connection(file).proxy) == "http://proxy:3128"
