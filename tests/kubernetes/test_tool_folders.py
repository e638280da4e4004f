"""Where the Kubernetes tools are, and what is said where they are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.kubernetes.control_plane import KubeProgram, KubeTools, KubeToolsMissing, find_tools
from argosy.kubernetes.control_plane import tools as folders


def fill(directory: Path, *names: str) -> KubeTools:
    for name in names:
        (directory / name).touch(0o755)
    return KubeTools(directory)


def said(tools: KubeTools, *programs: KubeProgram) -> str:
    with pytest.raises(KubeToolsMissing) as caught:
        tools.require(iter(programs))
    assert caught.value.code == "kube-tools-missing"
    return str(caught.value).partition(";")[0]


def test_each_program_has_its_name_in_the_folder(tmp_path: Path) -> None:
    tools = KubeTools(tmp_path)
    assert tools.path(KubeProgram.API_SERVER) == tmp_path / "kube-apiserver"
    assert (tools.kubectl, tools.stages) == (tmp_path / "kubectl", tmp_path / "kwok-stages.yaml")


def test_what_is_missing_is_listed_in_the_order_in_which_it_was_asked_for(tmp_path: Path) -> None:
    tools = fill(tmp_path, "etcd", "kwok")
    etcd, kwok, server = KubeProgram.ETCD, KubeProgram.KWOK, KubeProgram.API_SERVER
    tools.require([etcd])
    tools.require([])
    assert said(tools, kwok) == f"no kwok-stages.yaml in {tmp_path}"
    assert said(tools, server, etcd, kwok) == (f"no kube-apiserver, kwok-stages.yaml in {tmp_path}")
    (tmp_path / "kwok-stages.yaml").mkdir()
    assert said(tools, kwok) == f"no kwok-stages.yaml in {tmp_path}"
    (tmp_path / "kwok-stages.yaml").rmdir()
    (tmp_path / "kwok-stages.yaml").touch()
    tools.require(iter([etcd, kwok]))
    (tmp_path / "etcd").chmod(0o644)
    assert said(tools, etcd) == f"no etcd in {tmp_path}"
    (tmp_path / "kube-apiserver").mkdir()
    assert said(tools, server) == f"no kube-apiserver in {tmp_path}"


def test_an_installation_without_the_repository_says_where_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "_BUILD", tmp_path / "none")
    hint = (
        "run `make kube-tools` in Argosy's repository and set KUBEBUILDER_ASSETS to the folder it"
        " prints"
    )
    for environ in ({}, {"KUBEBUILDER_ASSETS": ""}):
        with pytest.raises(KubeToolsMissing) as caught:
            find_tools((), environ)
        message = "the Kubernetes tools are not part of this installation"
        assert str(caught.value) == f"{message}; {hint}"
    given = {"KUBEBUILDER_ASSETS": str(tmp_path)}
    assert find_tools((), given) == KubeTools(tmp_path)
    with pytest.raises(KubeToolsMissing) as caught:
        find_tools((KubeProgram.ETCD,), given)
    assert str(caught.value) == f"no etcd in {tmp_path}; {hint}"


def test_a_folder_may_be_given_relative_to_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fill(tmp_path, "etcd")
    found = find_tools((KubeProgram.ETCD,), {"KUBEBUILDER_ASSETS": "."})
    assert found == KubeTools(tmp_path)


def test_usually_all_programs_are_looked_for(tmp_path: Path) -> None:
    fill(tmp_path, "etcd", "kube-apiserver", "kube-controller-manager", "kwok", "kwok-stages.yaml")
    with pytest.raises(KubeToolsMissing, match=r"^no kube-scheduler in "):
        find_tools(environ={"KUBEBUILDER_ASSETS": str(tmp_path)})
