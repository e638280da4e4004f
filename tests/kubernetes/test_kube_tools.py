"""Building and finding the programs of a control plane."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from argosy.kubernetes.control_plane import KubeProgram, KubeTools, KubeToolsMissing, find_tools
from argosy.kubernetes.control_plane.tools import STAGES

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "tools" / "kube" / "build"
#: A Go that compiles nothing: it notes how it was called, and makes the files that a real one would.
GO = """#!/bin/sh
echo "GOTOOLCHAIN=$GOTOOLCHAIN CGO_ENABLED=$CGO_ENABLED $*" >> "$NOTES"
case "$1" in
  env) echo "go$GO_VERSION" ;;
  list) echo "$KWOK_MODULE" ;;
  build)
    echo 'some/package' >&2
    if [ -n "$GO_FAILS" ]; then echo "$GO_FAILS" >&2; exit 1; fi
    while [ "$1" != -o ]; do shift; done
    for name in server kube-apiserver kube-controller-manager kube-scheduler kubectl kwok; do
      printf '#!/bin/sh\\necho %s of a test\\n' "$name" > "$2$name"
      chmod +x "$2$name"
    done ;;
esac
"""
STAGE_FILES = (
    "node/fast/node-initialize",
    "node/heartbeat-with-lease/node-heartbeat-with-lease",
    "pod/fast/pod-ready",
    "pod/fast/pod-complete",
    "pod/fast/pod-delete",
)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An empty cache, and on the path nothing but a Go of a test."""
    path = tmp_path / "bin"
    path.mkdir()
    (path / "go").write_text(GO)
    (path / "go").chmod(0o755)
    for program in ("sh", "chmod", "printf"):
        (path / program).symlink_to(f"/bin/{program}")
    for stage in STAGE_FILES:
        file = tmp_path / "kwok" / "kustomize" / "stage" / f"{stage}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"name: {file.stem}\n")
    return {
        "PATH": str(path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "NOTES": str(tmp_path / "notes"),
        "GO_VERSION": "1.26.8",
        "KWOK_MODULE": str(tmp_path / "kwok"),
    }


def build(environ: Mapping[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(BUILD), *options], env=dict(environ), capture_output=True, text=True
    )


def calls(environ: Mapping[str, str]) -> list[str]:
    notes = Path(environ["NOTES"])
    return notes.read_text().splitlines() if notes.exists() else []


def test_what_was_built_is_found(environ: dict[str, str]) -> None:
    done = build(environ)
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    assert find_tools(environ=environ) == KubeTools(folder)
    assert folder.is_relative_to(environ["XDG_CACHE_HOME"])
    assert {path.name for path in folder.iterdir()} == {*KubeProgram, "kubectl", STAGES}
    stages = (folder / STAGES).read_text().split("---\n")
    assert stages == ["", *(f"name: {each.rpartition('/')[2]}\n" for each in STAGE_FILES)]
    assert "built server of a test, kube-apiserver of a test, kwok of a test" in done.stderr


def test_a_second_build_has_nothing_to_do(environ: dict[str, str]) -> None:
    first = build(environ)
    noted = calls(environ)
    second = build(environ)
    assert (second.stdout, second.stderr) == (first.stdout, "")
    assert calls(environ) == noted


def test_what_is_there_only_in_part_is_built_again(environ: dict[str, str]) -> None:
    folder = Path(build(environ).stdout.strip())
    (folder / "kwok").unlink()
    assert build(environ).returncode == 0
    assert (folder / "kwok").exists()


def test_one_call_compiles_everything(environ: dict[str, str]) -> None:
    build(environ)
    (call,) = [call for call in calls(environ) if " build " in call]
    assert call.startswith("GOTOOLCHAIN=local CGO_ENABLED=0 build -v -o ")
    for package in ("etcd/server/v3", "kube-apiserver", "kube-scheduler", "kubectl", "cmd/kwok"):
        assert f"{package}" in call
    assert "-X k8s.io/component-base/version.gitMinor=36" in call


@pytest.mark.parametrize(("version", "toolchain"), [("1.26.0", "local"), ("1.21.3", "auto")])
def test_an_older_go_fetches_the_one_that_is_needed(
    environ: dict[str, str], version: str, toolchain: str
) -> None:
    build(environ | {"GO_VERSION": version})
    (call,) = [call for call in calls(environ) if " build " in call]
    assert call.startswith(f"GOTOOLCHAIN={toolchain} ")


@pytest.mark.parametrize("reason", ["no Go", "a Go that is too old"])
def test_without_go_and_network_one_line_says_what_is_missing(
    tmp_path: Path, environ: dict[str, str], reason: str
) -> None:
    # The environment that pip would fetch Go into cannot be made.
    (tmp_path / "venv.py").write_text("import sys; sys.exit('no network')")
    without = environ | {"GO_VERSION": "1.20", "PYTHONPATH": str(tmp_path)}
    if reason == "no Go":
        Path(environ["PATH"], "go").unlink()
    done = build(without)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == (
        "kube-tools: cannot build the Kubernetes tools: Go is not installed, and pip cannot fetch it "
        f"({Path(sys.executable).name} exited with 1: no network)"
    )
    assert build(without, "--optional").returncode == 0


def test_a_build_that_fails_leaves_nothing_behind(environ: dict[str, str]) -> None:
    done = build(environ | {"GO_FAILS": "dial tcp: no such host"})
    assert (done.returncode, done.stdout) == (1, "")
    assert "go exited with 1" in done.stderr
    assert "dial tcp: no such host" in done.stderr
    cache = Path(environ["XDG_CACHE_HOME"]) / "argosy" / "kube-tools"
    assert [path.name for path in cache.iterdir()] == [".lock"]
    skipped = build(environ | {"GO_FAILS": "dial tcp: no such host"}, "--optional")
    assert skipped.returncode == 0
    assert skipped.stderr.endswith("kube-tools: tests that need them are skipped\n")


def test_nothing_is_built_where_a_folder_is_given(environ: dict[str, str]) -> None:
    done = build(environ | {"KUBEBUILDER_ASSETS": "/given"}, "--optional")
    assert done.returncode == 0
    assert done.stderr == "kube-tools: not needed: KUBEBUILDER_ASSETS is /given\n"
    assert calls(environ) == []


def test_missing_tools_are_an_error_that_says_how_to_get_them(environ: dict[str, str]) -> None:
    folder = build(environ, "--where").stdout.strip()
    with pytest.raises(KubeToolsMissing) as caught:
        find_tools(environ=environ)
    assert str(caught.value) == (
        "no etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, kwok-stages.yaml in "
        f"{folder}; run `make kube-tools`, or set KUBEBUILDER_ASSETS to a folder that has them"
    )


def test_a_given_folder_need_only_have_what_is_asked_for(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    for name in ("etcd", "kube-apiserver"):
        (tmp_path / name).touch(0o755)
    given = environ | {"KUBEBUILDER_ASSETS": str(tmp_path)}
    needed = (KubeProgram.ETCD, KubeProgram.API_SERVER)
    assert find_tools(needed, given) == KubeTools(tmp_path)
    assert (tmp_path / "kwok").is_dir()
    with pytest.raises(KubeToolsMissing, match=rf"no kwok, {STAGES} in {tmp_path}"):
        find_tools((*needed, KubeProgram.KWOK), given)
    (tmp_path / "etcd").chmod(0o644)
    with pytest.raises(KubeToolsMissing, match="no etcd in"):
        find_tools(needed, given)
